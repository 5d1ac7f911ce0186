//! The only module that reads clocks.

use std::ops::{Add, AddAssign};
use std::time::Duration;

pub use crate::system::clock::{
    ThreadClock, now, process_cpu, process_usage, resolution, set_timer_slack_ns, sleep_until, thread_cpu,
    unadjusted_ns, wall_error, wall_ns,
};

/// A reading of the monotonic clock: nanoseconds since an arbitrary point, the same for all threads of this
/// host.
///
/// It never goes backwards and is never stepped, but NTP adjusts its rate. It does not advance while the host
/// is suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The latest possible instant, for "no deadline".
    pub const FAR: Self = Self(u64::MAX);

    /// The reading in nanoseconds.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` before; the clock's zero if there is none.
    #[must_use]
    pub fn earlier(self, span: Duration) -> Self {
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(ns))
    }

    /// The time left until this deadline; zero if it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.since(now())
    }

    /// Whether this deadline has passed.
    #[must_use]
    pub fn has_passed(self) -> bool {
        now() >= self
    }
}

impl Add<Duration> for Mono {
    type Output = Self;
    /// Saturates at [`Mono::FAR`].
    fn add(self, span: Duration) -> Self {
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

impl AddAssign<Duration> for Mono {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

/// Both clocks at the same moment: realtime in ns, and monotonic. A thread that loses its CPU between the readings repeats
/// them.
#[must_use]
pub fn same_moment() -> (u64, Mono) {
    read_together(wall_ns, now)
}

/// Another clock and the monotonic one, as in [`same_moment`].
pub(crate) fn read_together(other: impl Fn() -> u64, monotonic: impl Fn() -> Mono) -> (u64, Mono) {
    const TRIES: u32 = 3;
    const CLOSE: Duration = Duration::from_micros(2);
    let mut before = monotonic();
    for _ in 0..TRIES {
        let (found, after) = (other(), monotonic());
        if after.since(before) < CLOSE {
            return (found, after);
        }
        before = after;
    }
    (other(), monotonic())
}

/// When a packet arrived, from its timestamp of the realtime clock; absent if the timestamp is not from the last
/// second. A clock that was set in between would give a false time.
#[must_use]
pub fn arrival(stamp_ns: u64) -> Option<Mono> {
    arrival_before(stamp_ns, wall_ns(), now())
}

/// As [`arrival`], for many packets after one look at both clocks: `wall_ns` and `now` are the same moment.
#[must_use]
pub fn arrival_before(stamp_ns: u64, wall_ns: u64, now: Mono) -> Option<Mono> {
    const MAX_AGE_NS: u64 = 1_000_000_000;
    let age = wall_ns.checked_sub(stamp_ns).filter(|age| *age < MAX_AGE_NS)?;
    now.0.checked_sub(age).map(Mono)
}

/// Resource usage of this process, all threads.
///
/// # Source
/// getrusage(2)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// CPU time in user mode.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// What else the system counts; absent on a system that does not.
    pub counts: Option<UsageCounts>,
}

/// What a system counts of a process besides its time.
///
/// # Source
/// getrusage(2)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Maximum resident set size, KiB.
    pub max_resident_kib: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// Context switches because a thread waited.
    pub voluntary_switches: u64,
    /// Context switches because a time slice ended or a thread of higher priority became ready.
    pub involuntary_switches: u64,
}

/// CPU time used by this process, all threads: in user mode, and in the kernel.
#[must_use]
pub fn process_times() -> (Duration, Duration) {
    let usage = process_usage();
    (usage.user, usage.system)
}

/// Detects steps of the realtime clock during a measurement.
///
/// Compares the difference of realtime and monotonic clock with the previous check. NTP's slewing (at most 500
/// ppm) stays below any sensible threshold when the checks are a second apart.
#[derive(Clone, Debug)]
pub struct StepDetector {
    threshold: Duration,
    offset_ns: i128,
}

impl StepDetector {
    /// Starts to watch for steps larger than `threshold`.
    #[must_use]
    pub fn new(threshold: Duration) -> Self {
        let (mono, wall) = pair();
        Self::starting_at(threshold, mono, wall)
    }

    fn starting_at(threshold: Duration, mono: Mono, wall_ns: u64) -> Self {
        Self { threshold, offset_ns: i128::from(wall_ns) - i128::from(mono.0) }
    }

    /// The step since the last check in ns (positive: forward), if it exceeded the threshold.
    pub fn check(&mut self) -> Option<i64> {
        let (mono, wall) = pair();
        self.observe(mono, wall)
    }

    fn observe(&mut self, mono: Mono, wall_ns: u64) -> Option<i64> {
        let offset = i128::from(wall_ns) - i128::from(mono.0);
        let step = offset - self.offset_ns;
        self.offset_ns = offset;
        let stepped = step.unsigned_abs() > self.threshold.as_nanos();
        stepped.then(|| i64::try_from(step).unwrap_or(if step < 0 { i64::MIN } else { i64::MAX }))
    }
}

/// Both clocks at nearly the same moment: the tightest of five readings.
fn pair() -> (Mono, u64) {
    let mut best = (Duration::MAX, Mono::default(), 0);
    for _ in 0..5 {
        let (before, wall, after) = (now(), wall_ns(), now());
        let gap = after.since(before);
        if gap < best.0 {
            best = (gap, before + gap / 2, wall);
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_clock_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
    }

    #[test]
    fn a_pause_between_two_readings_is_not_in_their_difference() {
        use std::cell::RefCell;
        let monotonic = RefCell::new([100, 5_000_100, 5_000_900].into_iter().map(Mono));
        let other = RefCell::new([1_150, 5_001_500].into_iter());
        let found =
            read_together(|| other.borrow_mut().next().unwrap(), || monotonic.borrow_mut().next().unwrap());
        assert_eq!(found, (5_001_500, Mono(5_000_900)));
    }

    #[test]
    fn sleeping_until_a_deadline_never_wakes_before_it() {
        let deadline = now() + Duration::from_millis(3);
        sleep_until(deadline);
        assert!(now() >= deadline);
        assert!(deadline.has_passed());
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[test]
    fn a_packet_arrived_as_long_ago_as_its_timestamp_says_unless_the_clock_was_set() {
        let (now, wall) = (Mono(5_000_000_000), 1_700_000_000_000_000_000);
        assert_eq!(arrival_before(wall - 20_000_000, wall, now), Some(Mono(4_980_000_000)));
        assert_eq!(arrival_before(wall, wall, now), Some(now));
        assert_eq!(arrival_before(wall + 1, wall, now), None, "from the future");
        assert_eq!(arrival_before(wall - 1_000_000_000, wall, now), None, "too old to be true");
        assert_eq!(arrival_before(wall - 500, wall, Mono(400)), None, "before the monotonic clock began");
    }

    #[test]
    fn adding_and_subtracting_saturate() {
        assert_eq!(Mono(5) + Duration::MAX, Mono::FAR);
        assert_eq!(Mono(5).since(Mono(9)), Duration::ZERO);
        assert_eq!(Mono(9).since(Mono(5)), Duration::from_nanos(4));
    }

    #[test]
    fn a_step_is_reported_once_with_its_sign_and_a_slew_is_not() {
        let s = 1_000_000_000;
        let mut steps = StepDetector::starting_at(Duration::from_millis(10), Mono(0), 100 * s);
        assert_eq!(steps.observe(Mono(s), 101 * s + 500_000), None, "500 ppm is a slew");
        assert_eq!(steps.observe(Mono(2 * s), 105 * s + 500_000), Some(3_000_000_000));
        assert_eq!(steps.observe(Mono(3 * s), 106 * s + 500_000), None);
        assert_eq!(steps.observe(Mono(4 * s), 105 * s + 500_000), Some(-2_000_000_000));
    }

    #[test]
    fn the_clock_of_a_thread_is_readable_from_another_until_the_thread_ends() {
        let (give, take) = std::sync::mpsc::channel();
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while thread_cpu() < Duration::from_millis(5) {}
            give.send((ThreadClock::of_this_thread().unwrap(), thread_cpu())).unwrap();
            let _ = wait.recv();
        });
        let (clock, used) = take.recv().unwrap();
        assert!(clock.read().unwrap() >= used);
        assert_ne!(Some(clock), ThreadClock::of_this_thread());
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn working_threads_use_cpu_time_of_the_process() {
        let (thread, process) = (thread_cpu(), process_cpu());
        while thread_cpu() == thread {}
        assert!(process_cpu() > process);
        let (user, system) = process_times();
        assert!(user + system > Duration::ZERO);
        set_timer_slack_ns(1).unwrap();
        assert!(resolution().unwrap() <= Duration::from_millis(10));
    }
}
