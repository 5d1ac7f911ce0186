//! Costs of system calls, clock readings and timers on this host, which limit the resolution of every
//! measurement.

use std::hint::black_box;
use std::time::Duration;

use crate::clock;
use crate::system::cost::SHORT_CALL;

/// Calls between two clock readings.
const BATCH: u32 = 10_000;
/// Number of batches. The fastest counts, as disturbances only add time.
const BATCHES: u32 = 20;

/// Duration of a minimal system call that no library caches; absent on a system without one.
#[must_use]
pub fn syscall() -> Option<Duration> {
    SHORT_CALL.map(quickest)
}

/// Duration of a reading of the monotonic clock.
#[must_use]
pub fn clock_read() -> Duration {
    quickest(clock::now)
}

fn quickest<T>(call: impl Fn() -> T) -> Duration {
    let batch = |_| {
        let start = clock::now();
        for _ in 0..BATCH {
            black_box(call());
        }
        clock::now().since(start) / BATCH
    };
    (0..BATCHES).map(batch).min().unwrap_or_default()
}

/// Wake-up delays of the calling thread in `waits` sleeps of `length` each, in ascending order.
///
/// The sleeps have absolute deadlines and are separate, so a late one does not delay others. The kernel may
/// merge timers as it does for a data thread.
#[must_use]
pub fn wake_ups(waits: u32, length: Duration) -> Vec<Duration> {
    let lateness = |_| {
        let due = clock::now() + length;
        clock::sleep_until(due);
        clock::now().since(due)
    };
    let mut late: Vec<Duration> = (0..waits).map(lateness).collect();
    late.sort_unstable();
    late
}

/// CPU time that a short sleep of the calling thread costs, on average over `waits` sleeps of `length` each. In virtual
/// machines it is several times that of real ones, as each programs a timer of the hypervisor.
#[must_use]
pub fn sleep(waits: u32, length: Duration) -> Duration {
    let before = clock::thread_cpu();
    for _ in 0..waits {
        clock::sleep_until(clock::now() + length);
    }
    clock::thread_cpu().saturating_sub(before) / waits.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_time_and_waits_are_sorted() {
        assert!(syscall().unwrap() > Duration::ZERO);
        assert!(clock_read() > Duration::ZERO);
        assert!(sleep(20, Duration::from_micros(100)) > Duration::ZERO);
        let late = wake_ups(20, Duration::from_micros(200));
        assert!(late.len() == 20 && late.is_sorted() && late[0] > Duration::ZERO, "{late:?}");
    }
}
