//! The clocks of Linux.

use std::time::Duration;

use super::call::check;
use crate::SockError;
use crate::clock::{Mono, read_together};
use crate::unix::clock::{ns_of, read};

pub use crate::unix::clock::{process_cpu, process_usage, resolution, thread_cpu, wall_ns};

pub(crate) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as libc::c_long }
}

/// The monotonic clock, now.
#[must_use]
pub fn now() -> Mono {
    Mono(read(libc::CLOCK_MONOTONIC))
}

/// Nanoseconds since an arbitrary moment, by a clock that neither NTP nor anybody else adjusts, and that also counts the
/// time in which the host was suspended.
#[must_use]
pub fn unadjusted_ns() -> u64 {
    let (boot, monotonic) = read_together(|| read(libc::CLOCK_BOOTTIME), now);
    let suspended = boot.saturating_sub(monotonic.as_ns());
    read(libc::CLOCK_MONOTONIC_RAW).saturating_add(suspended)
}

/// How far the realtime clock is off at most, by the kernel's own account; absent if nothing synchronises it.
///
/// # Source
/// adjtimex(2): `maxerror`
#[must_use]
pub fn wall_error() -> Option<Duration> {
    // SAFETY: zeroes are a valid value, and with `modes` 0 the call only reads.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `state` is valid for writing.
    let found = unsafe { libc::adjtimex(&raw mut state) };
    let synchronised = found >= 0 && found != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    synchronised.then(|| Duration::from_micros(state.maxerror.max(0) as u64))
}

/// The CPU clock of one thread, readable by every other thread of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadClock {
    clock: libc::clockid_t,
    tid: u32,
}

impl ThreadClock {
    /// The clock of the calling thread; absent if the C library has none.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        let mut clock = 0;
        // SAFETY: `clock` is valid for writing, and the calling thread exists.
        let errno = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        // SAFETY: takes no arguments and accesses none of our memory.
        let tid = unsafe { libc::gettid() };
        (errno == 0).then_some(Self { clock, tid: tid.cast_unsigned() })
    }

    /// The thread id.
    #[must_use]
    pub const fn tid(self) -> u32 {
        self.tid
    }

    /// CPU time that the thread has used, user and system together; `None` after it has ended.
    #[must_use]
    pub fn read(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is valid for writing; for a thread that has ended the call fails safely.
        let ret = unsafe { libc::clock_gettime(self.clock, &raw mut time) };
        (ret == 0).then(|| Duration::from_nanos(ns_of(time)))
    }
}

/// Sleeps until the deadline; returns at once if it has passed. Signals do not shorten the sleep.
///
/// With absolute deadlines, unlike relative sleeps, the errors of wake-ups do not accumulate.
pub fn sleep_until(deadline: Mono) {
    let until = timespec(deadline.0);
    loop {
        // SAFETY: `until` is valid for reading; with TIMER_ABSTIME the remaining time is not written.
        let errno = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const until,
                std::ptr::null_mut(),
            )
        };
        if errno != libc::EINTR {
            return;
        }
    }
}

/// Sets how late the kernel may wake the calling thread in order to merge timers (its default is 50 µs).
///
/// # Errors
/// The kernel refuses, which no current Linux does.
pub fn set_timer_slack_ns(ns: u64) -> Result<(), SockError> {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and accesses none of our memory.
    check("set timer slack", unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ns) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timespec_and_back_keeps_every_nanosecond() {
        assert_eq!(ns_of(timespec(7_123_456_789)), 7_123_456_789);
    }
}
