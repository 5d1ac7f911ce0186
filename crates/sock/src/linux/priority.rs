//! Real-time priority of a thread.

use std::marker::PhantomData;

use crate::SockError;
use crate::linux::call::check;

/// The kernel's `struct sched_param`. That of musl has fields which the kernel does not know.
#[repr(C)]
struct SchedulingParameters {
    priority: libc::c_int,
}

/// While this exists, the calling thread runs before all ordinary ones (`SCHED_FIFO` with the lowest priority).
/// Hold it only for moments: a thread that spins with it blocks its CPU for all others.
#[derive(Debug)]
pub struct Urgent {
    policy: libc::c_int,
    priority: libc::c_int,
    /// Not `Send`: applies to one thread.
    _here: PhantomData<*const ()>,
}

impl Urgent {
    /// Raises the priority.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_NICE` and with an `RLIMIT_RTPRIO` of 0, as for most users.
    pub fn claim() -> Result<Self, SockError> {
        // musl refuses the corresponding library functions, so these are direct system calls.
        // SAFETY: takes a thread, 0 being the calling one, and accesses none of our memory.
        let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let policy = check("read the scheduling policy", policy as libc::c_int)?;
        let mut before = SchedulingParameters { priority: 0 };
        // SAFETY: `before` is valid for writing.
        let read = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut before) };
        check("read the scheduling priority", read as libc::c_int)?;
        set(libc::SCHED_FIFO, 1)?;
        Ok(Self { policy, priority: before.priority, _here: PhantomData })
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // Lowering the priority is always allowed.
        let _ = set(self.policy, self.priority);
    }
}

fn set(policy: libc::c_int, priority: libc::c_int) -> Result<(), SockError> {
    let param = SchedulingParameters { priority };
    // SAFETY: the kernel reads `param`, which is alive.
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
