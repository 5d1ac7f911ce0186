//! How fast this host copies memory: the bound of every transfer that copies.

use std::hint::black_box;
use std::time::Duration;

use crate::clock;

/// Longest measurement, so that asking is never a burden.
const LONGEST: Duration = Duration::from_millis(30);

/// Copies between two blocks of `block_bytes` for about `budget` (at most 30 ms) and returns bits per second; a block
/// that fits into a cache measures that cache. `None` for an empty block.
#[must_use]
pub fn memcopy_bps(block_bytes: usize, budget: Duration) -> Option<f64> {
    const BYTES_PER_LOOK: usize = 1 << 20;
    if block_bytes == 0 {
        return None;
    }
    let source = vec![1u8; block_bytes];
    let mut target = vec![0u8; block_bytes];
    let copies_per_look = (BYTES_PER_LOOK / block_bytes).max(1);
    let mut copied = 0u64;
    let start = clock::now();
    let deadline = start + budget.min(LONGEST);
    loop {
        for _ in 0..copies_per_look {
            black_box(&mut target).copy_from_slice(black_box(&source));
        }
        copied += (copies_per_look * block_bytes) as u64;
        let now = clock::now();
        if now >= deadline {
            return Some(copied as f64 * 8.0 / now.since(start).as_secs_f64().max(1e-9));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_at_least_once_whatever_the_budget() {
        assert!(memcopy_bps(64 << 10, Duration::ZERO).unwrap() > 0.0);
        assert_eq!(memcopy_bps(0, Duration::ZERO), None);
    }
}
