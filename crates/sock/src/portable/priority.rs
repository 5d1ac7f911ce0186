//! Real-time priority of a thread, which is not implemented for this system.

use super::error_codes::unsupported;
use crate::SockError;

/// A thread that runs before all ordinary ones: it has no value.
#[derive(Debug)]
pub enum Urgent {}

impl Urgent {
    /// Raises the priority.
    ///
    /// # Errors
    /// Always.
    pub fn claim() -> Result<Self, SockError> {
        Err(unsupported("set the scheduling policy"))
    }
}
