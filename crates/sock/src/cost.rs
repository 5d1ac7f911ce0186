//! What this host's system calls, clock and timers cost: the grain of everything that is measured with them.

use std::hint::black_box;
use std::time::Duration;

use crate::clock;

/// Calls between two looks at the clock.
const BATCH: u32 = 10_000;
/// Batches; the quickest counts, since others only add to it.
const BATCHES: u32 = 20;

/// Time of a system call that does nothing (`getppid`, which no library answers from memory).
#[must_use]
pub fn syscall() -> Duration {
    // SAFETY: getppid takes nothing and cannot fail.
    quickest(|| unsafe { libc::getppid() })
}

/// Time of a look at the monotonic clock.
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

/// How late the calling thread wakes from so many waits of a length each, in ascending order.
///
/// The waits are absolute and apart from each other, so that one that is late delays no other. The kernel may merge
/// timers as it does for a data thread.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_time_and_waits_are_sorted() {
        assert!(syscall() > Duration::ZERO);
        assert!(clock_read() > Duration::ZERO);
        let late = wake_ups(20, Duration::from_micros(200));
        assert!(late.len() == 20 && late.is_sorted() && late[0] > Duration::ZERO, "{late:?}");
    }
}
