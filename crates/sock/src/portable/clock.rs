//! The clocks of the standard library.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::error_codes::unsupported;
use crate::SockError;
use crate::clock::Mono;

#[cfg(windows)]
pub use super::windows::clock::{process_cpu, process_usage, resolution, thread_cpu, wall_ns};
#[cfg(unix)]
pub use crate::unix::clock::{process_cpu, process_usage, resolution, thread_cpu, wall_ns};

/// Reading at the first call, so that moments before it can be expressed too.
const FIRST_READING: Duration = Duration::from_secs(3600);

/// The monotonic clock, now. Readings of different processes cannot be compared.
#[must_use]
pub fn now() -> Mono {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
    let origin = ORIGIN.get_or_init(Instant::now);
    Mono(0) + (FIRST_READING + origin.elapsed())
}

/// Nanoseconds since an arbitrary moment. This system has no clock that nobody adjusts and that goes on while the host is
/// suspended, so it is the monotonic one.
#[must_use]
pub fn unadjusted_ns() -> u64 {
    now().as_ns()
}

/// How far the realtime clock is off: not known.
#[must_use]
pub const fn wall_error() -> Option<Duration> {
    None
}

/// Sleeps until the deadline; returns at once if it has passed.
pub fn sleep_until(deadline: Mono) {
    while !deadline.has_passed() {
        #[expect(clippy::disallowed_methods, reason = "this is the module that sleeps")]
        std::thread::sleep(deadline.remaining());
    }
}

/// Sets how late the kernel may wake the calling thread in order to merge timers.
///
/// # Errors
/// Always: this system has no such setting.
pub fn set_timer_slack_ns(_ns: u64) -> Result<(), SockError> {
    Err(unsupported("set timer slack"))
}

/// The CPU clock of one thread, which other threads cannot read on this system: it has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadClock {}

impl ThreadClock {
    /// The clock of the calling thread: always absent.
    #[must_use]
    pub const fn of_this_thread() -> Option<Self> {
        None
    }

    /// The thread id.
    #[must_use]
    pub const fn tid(self) -> u32 {
        match self {}
    }

    /// CPU time that the thread has used.
    #[must_use]
    pub const fn read(self) -> Option<Duration> {
        match self {}
    }
}
