//! The calendar clock, and the processor time of threads and of this process.

use std::time::{Duration, SystemTime};

use windows_sys::Win32::Foundation::{FILETIME, HANDLE};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessTimes, GetThreadTimes,
};

use crate::clock::ProcessUsage;

const NO_TIME: FILETIME = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };

/// The realtime (calendar) clock, now: nanoseconds since 1970-01-01T00:00:00Z. May be stepped at any time.
#[must_use]
pub fn wall_ns() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this is the module that reads the clock")]
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time used by the calling thread, user and system together.
#[must_use]
pub fn thread_cpu() -> Duration {
    // SAFETY: takes nothing; the result stands for the calling thread and needs no closing.
    let thread = unsafe { GetCurrentThread() };
    let (user, system) = times(|created, ended, system, user| {
        // SAFETY: all four are valid for writing.
        unsafe { GetThreadTimes(thread, created, ended, system, user) }
    });
    user + system
}

/// CPU time used by this process, all threads, user and system together.
#[must_use]
pub fn process_cpu() -> Duration {
    let usage = process_usage();
    usage.user + usage.system
}

/// Resource usage of this process, all threads: only its processor time.
#[must_use]
pub fn process_usage() -> ProcessUsage {
    // SAFETY: takes nothing; the result stands for this process and needs no closing.
    let process: HANDLE = unsafe { GetCurrentProcess() };
    let (user, system) = times(|created, ended, system, user| {
        // SAFETY: all four are valid for writing.
        unsafe { GetProcessTimes(process, created, ended, system, user) }
    });
    ProcessUsage { user, system, counts: None }
}

/// The resolution of the monotonic clock: not known.
#[must_use]
pub const fn resolution() -> Option<Duration> {
    None
}

/// User and kernel time from a call that cannot fail with a handle of one's own.
fn times(
    call: impl FnOnce(*mut FILETIME, *mut FILETIME, *mut FILETIME, *mut FILETIME) -> i32,
) -> (Duration, Duration) {
    let (mut created, mut ended, mut system, mut user) = (NO_TIME, NO_TIME, NO_TIME, NO_TIME);
    call(&raw mut created, &raw mut ended, &raw mut system, &raw mut user);
    (span(user), span(system))
}

/// Units of 100 ns.
fn span(time: FILETIME) -> Duration {
    let units = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(units.saturating_mul(100))
}
