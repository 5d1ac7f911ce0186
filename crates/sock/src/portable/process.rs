//! Processes: most of what linerate does with them, it does only on Linux.

use super::error_codes::unsupported;
use crate::SockError;

/// Whether this process ignores a signal, as one that nohup(1) has started does SIGHUP.
#[must_use]
pub fn ignores(signal: i32) -> bool {
    #[cfg(unix)]
    {
        let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a null pointer changes nothing, and `action` is valid for writing. All zero is a valid value, and it
        // is not SIG_IGN.
        let action = unsafe {
            libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr());
            action.assume_init()
        };
        action.sa_sigaction == libc::SIG_IGN
    }
    #[cfg(not(unix))]
    {
        let _ = signal;
        false
    }
}

/// Whether a process with this id exists. On Unix, also whether this one may signal it.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    #[cfg(unix)]
    {
        let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
        // SAFETY: takes numbers and accesses none of our memory. Signal 0 is not delivered.
        pid > 0 && unsafe { libc::kill(pid, 0) } == 0
    }
    #[cfg(windows)]
    super::windows::process::is_running(pid)
}

/// Whether a process has ended and only its parent has not asked for its exit code yet; false, as this system does not
/// tell.
#[must_use]
pub const fn has_ended(_pid: u32) -> bool {
    false
}

/// Continues in the background.
///
/// # Errors
/// Always: it is not implemented for this system.
pub fn detach() -> Result<(), SockError> {
    Err(unsupported("continue in the background"))
}

/// Lowers the priority of the calling thread.
///
/// # Errors
/// Always: it is not implemented for this system.
pub fn lower_thread_priority() -> Result<(), SockError> {
    Err(unsupported("lower the priority of a thread"))
}
