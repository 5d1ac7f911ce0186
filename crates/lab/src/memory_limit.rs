//! The limit of the memory that packets in transit may take.

use linerate_sock::proc::host;
use linerate_units::Bytes;

use crate::LabError;

/// A lab may use one of this number of parts of the memory of the host, or of its control group.
const PARTS: u64 = 4;

/// How much memory the switch may take. Buffers and delays are as large as a topology says, and what waits in them is
/// in the memory of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryLimit(Option<u64>);

impl MemoryLimit {
    /// The limit that the user gives, or that of this host.
    pub(crate) fn new(given: Option<Bytes>) -> Self {
        Self(given.map(Bytes::get).or_else(|| Some(host::memory_allowed_bytes()? / PARTS)))
    }

    /// Compares the memory of this process with the limit.
    ///
    /// # Errors
    /// It is above.
    pub(crate) fn check(self) -> Result<(), LabError> {
        let (Some(limit), Some(used)) = (self.0, host::resident_bytes()) else { return Ok(()) };
        if used <= limit {
            return Ok(());
        }
        Err(LabError::Memory { used: Bytes::new(used), limit: Bytes::new(limit) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_above_its_limit_says_what_to_change() {
        assert!(MemoryLimit::new(None).check().is_ok());
        let error = MemoryLimit::new(Some(Bytes::new(1 << 20))).check().unwrap_err().to_string();
        assert!(error.contains("may take 1 MiB") && error.contains("buffers"), "{error}");
    }
}
