//! Windows does not limit the open files and threads of a process by numbers that a program could raise.

use super::super::error_codes::unsupported;
use crate::SockError;

/// Limits on the open files of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// The limit in force.
    pub soft: u64,
    /// Largest value to which `soft` can be raised without privileges.
    pub hard: u64,
}

/// Reads the limit of open files.
///
/// # Errors
/// Always: there is none.
pub fn open_files() -> Result<OpenFiles, SockError> {
    Err(unsupported("read the limit of open files"))
}

/// Raises the limit to `needed` open files: nothing to do without a limit.
///
/// # Errors
/// None.
pub const fn raise_open_files(needed: u64) -> Result<u64, SockError> {
    Ok(needed)
}

/// Limit on processes and threads of this user: absent.
#[must_use]
pub const fn processes() -> Option<u64> {
    None
}

/// Limit on processes and threads of this process's control group: absent.
#[must_use]
pub const fn pids_of_group() -> Option<u64> {
    None
}

/// Number of open files of this process: not known.
#[must_use]
pub const fn files_in_use() -> Option<u64> {
    None
}
