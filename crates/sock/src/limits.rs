//! The limit of open files, which is the limit of connections.

use std::io;

use crate::SockError;
use crate::call::check;

/// Open files that this process may have: the limit in force, and how far it may raise it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// In force.
    pub soft: u64,
    /// The most that `soft` may be raised to without privileges.
    pub hard: u64,
}

/// Reads the limit of open files.
///
/// # Errors
/// None that a correct program can meet.
pub fn open_files() -> Result<OpenFiles, SockError> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes one rlimit to `limit`.
    check("read the limit of open files", unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    Ok(OpenFiles { soft: limit.rlim_cur, hard: limit.rlim_max })
}

/// Makes room for `needed` open files, if it is not there yet; returns the limit in force.
///
/// # Errors
/// When the hard limit is lower; the message says both numbers and how to raise it.
pub fn raise_open_files(needed: u64) -> Result<u64, SockError> {
    const OP: &str = "raise the limit of open files";
    let now = open_files()?;
    if needed <= now.soft {
        return Ok(now.soft);
    }
    let limit = libc::rlimit { rlim_cur: needed, rlim_max: now.hard.max(needed) };
    // SAFETY: the kernel reads one rlimit from `limit`.
    match check(OP, unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }) {
        Ok(_) => Ok(needed),
        Err(error) => {
            let text = format!(
                "{needed} files are needed and {} allowed ({}); raise the hard limit (ulimit -Hn, LimitNOFILE= of \
                 the service) or use fewer streams",
                now.hard, error.source
            );
            Err(SockError::new(OP, io::Error::new(io::ErrorKind::PermissionDenied, text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test, because the limit belongs to the whole process.
    #[test]
    fn a_limit_is_raised_as_far_as_needed_and_as_far_as_the_kernel_goes() {
        let before = open_files().unwrap();
        assert_eq!(raise_open_files(1).unwrap(), before.soft, "enough is left alone");
        // Above fs.nr_open, which is an int, not even root may go.
        let error = raise_open_files(1 << 40).unwrap_err();
        assert!(error.source.to_string().contains("ulimit -Hn"), "{}", error.source);
        assert_eq!(open_files().unwrap(), before);

        let lowered = libc::rlimit { rlim_cur: before.soft - 1, rlim_max: before.hard };
        // SAFETY: the kernel reads one rlimit from `lowered`.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const lowered) }, 0);
        assert_eq!(raise_open_files(before.soft).unwrap(), before.soft);
        assert_eq!(open_files().unwrap(), before);
    }
}
