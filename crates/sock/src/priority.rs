//! A thread's claim to the processor.

use std::marker::PhantomData;

use crate::SockError;
use crate::call::check;

/// While this lives, the calling thread runs before every ordinary one (`SCHED_FIFO` at the lowest of its priorities).
/// For moments only: who spins meanwhile leaves its processor to nobody.
#[derive(Debug)]
pub struct Urgent {
    policy: libc::c_int,
    priority: libc::c_int,
    /// It is the claim of one thread.
    _here: PhantomData<*const ()>,
}

impl Urgent {
    /// Makes the claim.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_NICE` and with an `RLIMIT_RTPRIO` of 0, as for most users.
    pub fn claim() -> Result<Self, SockError> {
        // The calls of the C library are refused by some of them (musl), those of the kernel are not.
        // SAFETY: takes a thread, 0 being the calling one, and touches no memory of ours.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let policy = check("read the scheduling policy", policy as libc::c_int)?;
        let mut before = libc::sched_param { sched_priority: 0 };
        // SAFETY: `before` is valid for writing.
        let read = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut before) };
        check("read the scheduling priority", read as libc::c_int)?;
        set(libc::SCHED_FIFO, 1)?;
        Ok(Self { policy, priority: before.sched_priority, _here: PhantomData })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // Nobody is refused a lower claim.
        let _ = set(self.policy, self.priority);
    }
}

fn set(policy: libc::c_int, priority: libc::c_int) -> Result<(), SockError> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads `param`, which lives here.
    let ret = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) };
    check("set the scheduling policy", ret as libc::c_int).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> libc::c_long {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
    }

    #[test]
    fn a_claim_ends_with_its_value_or_is_refused() {
        let ordinary = policy();
        match Urgent::claim() {
            Ok(urgent) => {
                assert_eq!(policy(), libc::c_long::from(libc::SCHED_FIFO));
                drop(urgent);
            }
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert_eq!(policy(), ordinary);
    }
}
