//! The clocks that every Unix has.

use std::time::Duration;

use crate::clock::{ProcessUsage, UsageCounts};

/// The maximum resident set size is in KiB, on macOS in bytes.
const RESIDENT_UNITS_PER_KIB: u64 = if cfg!(target_vendor = "apple") { 1024 } else { 1 };

/// Reads a clock that exists on every system with this module.
#[inline]
pub(crate) fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing. The clocks used here exist on every Unix, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    ns_of(time)
}

#[inline]
pub(crate) fn ns_of(time: libc::timespec) -> u64 {
    (time.tv_sec.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.max(0) as u64)
}

/// The realtime (calendar) clock, now: nanoseconds since 1970-01-01T00:00:00Z. May be stepped at any time.
#[must_use]
pub fn wall_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time used by the calling thread, user and system together.
#[must_use]
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// CPU time used by this process, all threads, user and system together.
#[must_use]
pub fn process_cpu() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// Resource usage of this process, all threads.
#[must_use]
pub fn process_usage() -> ProcessUsage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing. RUSAGE_SELF cannot fail, and zeroes would be a valid value if it
    // did.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let span = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.max(0) as u64) + Duration::from_micros(time.tv_usec.max(0) as u64)
    };
    let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
    ProcessUsage {
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
        counts: Some(UsageCounts {
            max_resident_kib: count(usage.ru_maxrss) / RESIDENT_UNITS_PER_KIB,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }),
    }
}

/// The resolution of the monotonic clock; absent if the system does not say.
#[must_use]
pub fn resolution() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    let ret = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut time) };
    (ret == 0).then(|| Duration::from_nanos(ns_of(time)))
}
