//! Network namespaces, which this system does not have.

use super::error_codes::unsupported;
use crate::SockError;
use crate::handle::AsFd;

/// Moves the calling thread into an open namespace.
///
/// # Errors
/// Always.
pub fn enter_fd(_fd: &impl AsFd) -> Result<(), SockError> {
    Err(unsupported("enter a network namespace"))
}
