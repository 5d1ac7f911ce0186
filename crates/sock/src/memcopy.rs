//! Memory copy rate of this host, the upper bound of every transfer that copies.

use std::hint::black_box;
use std::time::Duration;

use crate::clock;

/// Longest measurement, so that it never disturbs.
const MAX_DURATION: Duration = Duration::from_millis(30);
/// Bytes copied between two clock readings: takes a few hundred microseconds, compared to which a reading is
/// negligible.
const BYTES_PER_SLICE: usize = 4 << 20;
/// Number of slices regardless of the time: the first one includes the page faults of new memory.
const MIN_SLICES: usize = 4;

/// Copies between two blocks of `block_bytes` for about `budget` (at most 30 ms) and returns bits per second. A
/// block that fits into a cache measures that cache. `None` for an empty block.
///
/// Each slice is timed by the thread's CPU time, and the fastest counts, to exclude what other programs take of
/// the machine.
#[must_use]
pub fn memcopy_bps(block_bytes: usize, budget: Duration) -> Option<f64> {
    if block_bytes == 0 {
        return None;
    }
    let source = vec![1u8; block_bytes];
    let mut target = vec![0u8; block_bytes];
    let copies = (BYTES_PER_SLICE / block_bytes).max(1);
    let deadline = clock::now() + budget.min(MAX_DURATION);
    let mut made = 0;
    let slices = std::iter::from_fn(|| {
        if made >= MIN_SLICES && deadline.has_passed() {
            return None;
        }
        made += 1;
        let began = clock::thread_cpu();
        for _ in 0..copies {
            black_box(&mut target).copy_from_slice(black_box(&source));
        }
        Some(((copies * block_bytes) as u64, clock::thread_cpu().saturating_sub(began)))
    });
    fastest_bps(slices)
}

/// Rate of the fastest slice, each given as bytes and CPU time. Ignores slices that are too short for the
/// clock.
fn fastest_bps(slices: impl Iterator<Item = (u64, Duration)>) -> Option<f64> {
    slices
        .filter(|(_, spent)| !spent.is_zero())
        .map(|(bytes, spent)| bytes as f64 * 8.0 / spent.as_secs_f64())
        .reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_at_least_once_whatever_the_budget() {
        assert!(memcopy_bps(64 << 10, Duration::ZERO).unwrap() > 0.0);
        assert_eq!(memcopy_bps(0, Duration::ZERO), None);
    }

    #[test]
    fn one_undisturbed_slice_is_enough() {
        let us = Duration::from_micros;
        // 1 MB in 100 µs is 80 Gb/s. The others were disturbed, and one was too short to be timed.
        let slices = [(1_000_000, us(700)), (1_000_000, us(100)), (1_000_000, Duration::ZERO), (1, us(50))];
        let found = fastest_bps(slices.into_iter()).unwrap();
        assert!((found - 80e9).abs() < 1.0, "{found}");
        assert_eq!(fastest_bps(std::iter::empty()), None);
    }

    /// Time in which the thread does not run does not count: here it sleeps for most of a slice.
    #[test]
    fn a_thread_that_was_kept_waiting_copies_no_slower() {
        let (began, cpu) = (clock::now(), clock::thread_cpu());
        clock::sleep_until(began + Duration::from_millis(20));
        let (waited, spent) = (clock::now().since(began), clock::thread_cpu().saturating_sub(cpu));
        let slice = |time| fastest_bps([(1_000_000_u64, time)].into_iter()).unwrap();
        assert!(spent < waited && slice(spent.max(Duration::from_nanos(1))) > slice(waited));
    }
}
