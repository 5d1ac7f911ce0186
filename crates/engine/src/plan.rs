//! How the streams are dealt to threads, and how many bytes a call takes.

use linerate_model::{Limit, Transport};
use linerate_sock::affinity;
use linerate_units::Bytes;

use crate::setup::FlowSetup;

/// A thread for each stream pays up to so many streams per core; beyond it the scheduler would rule the figure.
const STREAMS_PER_CORE: usize = 4;

/// How the streams are dealt to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Number of streams.
    pub(crate) streams: usize,
    /// Number of pump threads.
    pub(crate) pumps: usize,
    /// Bytes of one TCP call.
    pub(crate) block: usize,
}

/// Bytes of one TCP call when none are asked: what the buffers of all threads and the packets between them leave of a
/// core's cache.
fn default_block(streams: usize, cores: usize) -> usize {
    match (streams > cores * STREAMS_PER_CORE, streams) {
        (true, _) => 64 << 10,
        (false, 1) => 512 << 10,
        (false, _) => 256 << 10,
    }
}

/// Bytes that this host hands to its kernel at once in a TCP flow of `streams` streams, when no length is asked.
#[must_use]
pub fn block_length(streams: u32) -> Bytes {
    Bytes::new(default_block(streams as usize, affinity::online_cpus()) as u64)
}

impl Plan {
    pub(crate) fn new(streams: usize, cores: usize, setup: &FlowSetup) -> Self {
        let alone = if setup.one_pump_each { FlowSetup::MOST_THREADS } else { 0 };
        let shared = streams > (cores * STREAMS_PER_CORE).max(alone);
        let block = default_block(streams, cores);
        let block = setup.length.map_or(block, |length| usize::try_from(length.get()).unwrap_or(block));
        Self { streams, pumps: if shared { cores } else { streams }, block: block.max(1) }
    }

    /// Bytes of one block or datagram.
    fn unit(&self, setup: &FlowSetup) -> u64 {
        if setup.transport == Transport::Udp {
            setup.datagram_length().max(1) as u64
        } else {
            self.block as u64
        }
    }

    /// Whether a pump has more than one stream to serve.
    pub(crate) const fn shared(&self) -> bool {
        self.pumps < self.streams
    }

    /// The streams of one pump.
    pub(crate) fn streams_of(&self, pump: usize) -> impl Iterator<Item = usize> + use<> {
        (pump..self.streams).step_by(self.pumps)
    }

    /// Bytes that one stream may write; the shares of all add up to the limit.
    pub(crate) fn share(&self, setup: &FlowSetup, stream: usize) -> u64 {
        let Limit::Bytes(all) = setup.limit else { return u64::MAX };
        let (streams, stream) = (self.streams as u64, stream as u64);
        let share = |units: u64| units / streams + u64::from(stream < units % streams);
        if setup.lent {
            let block = self.unit(setup);
            return share(all.get().div_ceil(block)).saturating_mul(block);
        }
        share(all.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Side;
    use linerate_units::Span;
    use proptest::prelude::*;

    #[test]
    fn threads_up_to_four_streams_a_core_then_one_worker_a_core() {
        let mut setup = FlowSetup::new(0, Side::Sender, Span::ZERO);
        let plan = |streams| Plan::new(streams, 2, &setup);
        assert_eq!((plan(1).pumps, plan(1).block), (1, 512 << 10));
        assert_eq!((plan(8).pumps, plan(8).block), (8, 256 << 10));
        assert_eq!((plan(9).pumps, plan(9).block), (2, 64 << 10));
        assert!(plan(9).shared() && !plan(8).shared());
        setup.length = Some(Bytes::new(777));
        assert_eq!(Plan::new(300, 2, &setup).block, 777);
        setup.one_pump_each = true;
        assert_eq!((Plan::new(128, 2, &setup).pumps, Plan::new(129, 2, &setup).pumps), (128, 2));
    }

    proptest! {
        #[test]
        fn every_stream_has_one_pump_and_the_shares_add_up(streams in 1usize..300, cores in 1usize..9, bytes: u64) {
            let mut setup = FlowSetup::new(0, Side::Sender, Span::ZERO);
            setup.limit = Limit::Bytes(Bytes::new(bytes));
            let plan = Plan::new(streams, cores, &setup);
            let mut dealt: Vec<usize> = (0..plan.pumps).flat_map(|pump| plan.streams_of(pump)).collect();
            dealt.sort_unstable();
            prop_assert_eq!(dealt, (0..streams).collect::<Vec<_>>());
            let sum: u128 = (0..streams).map(|stream| u128::from(plan.share(&setup, stream))).sum();
            prop_assert_eq!(sum, u128::from(bytes));
        }

        #[test]
        fn shares_in_whole_blocks_reach_the_limit_and_exceed_it_by_less_than_a_block(
            streams in 1usize..130, block in 1u64..100_000, bytes in 1u64..1 << 40,
        ) {
            let mut setup = FlowSetup::new(0, Side::Sender, Span::ZERO);
            (setup.limit, setup.length) = (Limit::Bytes(Bytes::new(bytes)), Some(Bytes::new(block)));
            setup.lent = true;
            let plan = Plan::new(streams, 2, &setup);
            let shares: Vec<u64> = (0..streams).map(|stream| plan.share(&setup, stream)).collect();
            let sum: u64 = shares.iter().sum();
            prop_assert!(shares.iter().all(|share| share % block == 0));
            prop_assert!(bytes <= sum && sum < bytes + block);
        }
    }
}
