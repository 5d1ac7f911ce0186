//! CPU affinity of threads: only the number of CPUs is known here.

use super::error_codes::unsupported;
use crate::SockError;

/// Restricts the calling thread to these CPUs.
///
/// # Errors
/// Always: this system has no such call.
pub fn set_thread_affinity(_cpus: &[usize]) -> Result<(), SockError> {
    Err(unsupported("set CPU affinity"))
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// Always: this system has no such call.
pub fn thread_affinity() -> Result<Vec<usize>, SockError> {
    Err(unsupported("read CPU affinity"))
}

/// Number of CPUs that this process may use, at least 1.
#[must_use]
pub fn online_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
