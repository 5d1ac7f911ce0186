//! Passes several blocks in one call.
//!
//! A call costs the same for one block as for eight. While the kernel copies them, the receiver's
//! acknowledgements wait and are then processed together. The number of blocks is what leaves in 100 µs, so
//! that the counts at interval ends stay as precise as with single blocks at 1 Gb/s.

use std::time::Duration;

use linerate_sock::Mono;

/// Approximate duration of a call.
const TARGET_CALL_TIME: Duration = Duration::from_micros(100);
/// Most bytes of a call. It always repeats the same block, but the kernel's copies have to fit into a cache.
const MAX_CALL_BYTES: usize = 1 << 20;
/// Calls after which the number of blocks is chosen again.
const CALLS_PER_ADJUSTMENT: u32 = 16;

/// Number of blocks in the next call.
#[derive(Debug)]
pub(super) struct Gather {
    block: usize,
    most: usize,
    times: usize,
    calls: u32,
    bytes: u64,
    since: Mono,
}

impl Gather {
    /// For blocks of `block` bytes, the first written after `start`. If not `wanted`, each call takes one
    /// block.
    pub(super) fn new(block: usize, wanted: bool, start: Mono) -> Self {
        let most = if wanted {
            (MAX_CALL_BYTES / block.max(1)).clamp(1, linerate_sock::stream::MAX_PARTS)
        } else {
            1
        };
        Self { block, most, times: 1, calls: 0, bytes: 0, since: start }
    }

    /// Number of blocks in the next call, of `left` remaining ones.
    #[inline]
    pub(super) fn times(&self, left: u64) -> usize {
        usize::try_from(left).unwrap_or(usize::MAX).min(self.times)
    }

    /// Records a call that passed `bytes` bytes and returned at `now`.
    #[inline]
    pub(super) fn note(&mut self, now: Mono, bytes: u64) {
        self.calls += 1;
        self.bytes += bytes;
        if self.calls >= CALLS_PER_ADJUSTMENT {
            self.choose(now);
        }
    }

    fn choose(&mut self, now: Mono) {
        let elapsed = now.since(self.since).as_nanos().max(1);
        let fitting =
            u128::from(self.bytes) * TARGET_CALL_TIME.as_nanos() / elapsed / self.block.max(1) as u128;
        self.times = usize::try_from(fitting).unwrap_or(usize::MAX).clamp(1, self.most);
        (self.calls, self.bytes, self.since) = (0, 0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 128 << 10;

    /// Number of blocks per call after `calls` calls that take `us` microseconds per block.
    fn after(gather: &mut Gather, calls: u32, us: u64) -> usize {
        let mut now = gather.since;
        for _ in 0..calls {
            let times = gather.times(u64::MAX);
            now += Duration::from_micros(us * times as u64);
            gather.note(now, (times * BLOCK) as u64);
        }
        gather.times(u64::MAX)
    }

    #[test]
    fn as_many_blocks_as_leave_in_a_tenth_of_a_millisecond() {
        for (us, expected) in [(1000, 1), (60, 1), (50, 2), (25, 4), (12, 8), (1, 8)] {
            let mut gather = Gather::new(BLOCK, true, Mono::default());
            assert_eq!(gather.times(u64::MAX), 1, "nothing is known at first");
            assert_eq!(after(&mut gather, 4 * CALLS_PER_ADJUSTMENT, us), expected, "{us} us for a block");
        }
    }

    #[test]
    fn a_flow_that_slows_down_goes_back_to_single_blocks() {
        let mut gather = Gather::new(BLOCK, true, Mono::default());
        assert_eq!(after(&mut gather, 4 * CALLS_PER_ADJUSTMENT, 10), 8);
        assert_eq!(after(&mut gather, CALLS_PER_ADJUSTMENT, 1000), 1);
    }

    #[test]
    fn never_more_than_is_left_and_only_where_it_is_wanted() {
        let mut gather = Gather::new(BLOCK, true, Mono::default());
        after(&mut gather, 4 * CALLS_PER_ADJUSTMENT, 10);
        assert_eq!((gather.times(3), gather.times(0)), (3, 0));
        let mut single = Gather::new(BLOCK, false, Mono::default());
        assert_eq!(after(&mut single, 4 * CALLS_PER_ADJUSTMENT, 1), 1);
        let mut large = Gather::new(4 << 20, true, Mono::default());
        assert_eq!(after(&mut large, 4 * CALLS_PER_ADJUSTMENT, 1), 1, "a block beyond the most of a call");
    }
}
