//! Assignment of streams to threads, and bytes per call.

use linerate_model::{SendMethod, Side, StopAfter, Transport};
use linerate_sock::affinity;
use linerate_units::Bytes;

use crate::error::EngineError;
use crate::pump::{payload, transactions::buffer_bytes};
use crate::setup::FlowSetup;
use crate::transactions::TransactionSetup;

/// Up to this many streams per core get a thread each; with more, the scheduler would dominate the result.
const STREAMS_PER_CORE: usize = 4;

/// Assignment of streams to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadPlan {
    /// Number of streams.
    pub(crate) streams: usize,
    /// Number of pump threads.
    pub(crate) pumps: usize,
    /// Bytes per TCP call.
    pub(crate) block: usize,
}

/// Bytes per TCP call when no length is requested. Smaller ones cost more calls and wake-ups than a cache gains; with
/// larger ones, streams that share a thread get their turns less evenly
/// (docs/design/2026-11-26-blocks.md).
fn default_block(streams: usize, cores: usize) -> usize {
    if streams > cores * STREAMS_PER_CORE { 256 << 10 } else { 512 << 10 }
}

/// Bytes that this host writes per call in a TCP flow of `streams` streams when no length is requested.
#[must_use]
pub fn block_length(streams: u32) -> Bytes {
    Bytes::new(default_block(streams as usize, affinity::online_cpus()) as u64)
}

/// Longest buffer of a TCP receiver: more than any kernel returns from one call.
pub(crate) const MAX_READ_BYTES: usize = 4 << 20;

/// Memory of a comparison of methods.
const COMPARISON_BYTES: usize = 16 << 20;

/// Memory that a sender passes by reference: whole huge pages, and one more for their alignment.
fn pages(setup: &FlowSetup, block: usize) -> usize {
    const HUGE_PAGE: usize = 2 << 20;
    let refers = setup.socket.zerocopy || !matches!(setup.socket.io, None | Some(SendMethod::Copy));
    // A comparison of methods has three blocks and their readers' at the same time.
    let compared = if setup.socket.chooses().is_some() { COMPARISON_BYTES } else { 0 };
    if refers { (block.next_multiple_of(HUGE_PAGE) + HUGE_PAGE).max(compared) } else { 0 }
}

/// Memory of a pump besides its buffers: the part of its stack that it uses, the datagrams of one call.
const PUMP_BYTES: u64 = 1 << 20;

/// Memory of a stream besides the buffers of its pump: its counters and its socket.
const STREAM_BYTES: u64 = 4 << 10;

/// Memory of an encrypted connection: what was read of it, and what waits encrypted and decrypted.
const CHANNEL_BYTES: u64 = 256 << 10;

/// Memory of a sample: its readings, and the text in which they are reported.
const SAMPLE_BYTES: u64 = 2 << 10;

/// Number of samples assumed for a flow without a known end: ten minutes of them.
const UNKNOWN_SAMPLES: u64 = 6_000;

/// Upper bound of the memory that [`crate::arm`] and the flow take on this host.
///
/// # Errors
/// The flow is beyond the engine's bounds.
pub fn memory_needed(setup: &FlowSetup, streams: usize) -> Result<Bytes, EngineError> {
    needed(setup, streams, affinity::online_cpus())
}

fn needed(setup: &FlowSetup, streams: usize, cores: usize) -> Result<Bytes, EngineError> {
    let plan = ThreadPlan::new(streams, cores, setup)?;
    let first = payload::first_length(&setup.payload, plan.block, FlowSetup::MAX_BLOCK_BYTES).unwrap_or(0);
    let buffers = match (setup.transport, setup.side) {
        _ if let Some(transactions) = &setup.transactions => buffer_bytes(transactions),
        (Transport::Udp, _) => first,
        (_, Side::Sender) => plan.block + first + pages(setup, plan.block),
        (_, Side::Receiver) => plan.read_length(setup),
    };
    let samples = match setup.stop_after {
        _ if setup.no_sampling => 0,
        StopAfter::TimeNs(time) if setup.measured.is_some() => time.as_ns() / setup.tick.as_ns().max(1),
        _ => UNKNOWN_SAMPLES,
    };
    let pumps = (plan.pumps as u64).saturating_mul(PUMP_BYTES.saturating_add(buffers as u64));
    let streams = (streams as u64).saturating_mul(STREAM_BYTES);
    let streams = streams.saturating_add((setup.channels.len() as u64).saturating_mul(CHANNEL_BYTES));
    Ok(Bytes::new(pumps.saturating_add(streams).saturating_add(samples.saturating_mul(SAMPLE_BYTES))))
}

impl ThreadPlan {
    /// Bytes that a TCP receiver reads at once.
    pub(crate) fn read_length(&self, setup: &FlowSetup) -> usize {
        // Other tools count whole blocks.
        if setup.borrowed { self.block } else { self.block.min(MAX_READ_BYTES) }
    }

    /// Every plan is checked here before anything is allocated, so a peer's request beyond the engine's bounds
    /// fails here at the latest.
    pub(crate) fn new(streams: usize, cores: usize, setup: &FlowSetup) -> Result<Self, EngineError> {
        if streams > FlowSetup::MAX_STREAMS {
            return Err(EngineError::TooManyStreams { streams, most: FlowSetup::MAX_STREAMS });
        }
        let length = setup.length.map_or(0, Bytes::get);
        if length > FlowSetup::MAX_BLOCK_BYTES as u64 {
            return Err(EngineError::BlockTooLong { length, most: FlowSetup::MAX_BLOCK_BYTES as u64 });
        }
        let alone = if setup.one_pump_each { FlowSetup::MAX_THREADS } else { 0 };
        let spins = setup.transactions.as_ref().is_some_and(TransactionSetup::spins);
        let per_core = if spins { 1 } else { STREAMS_PER_CORE };
        let shared = streams > (cores * per_core).max(alone);
        let block = default_block(streams, cores);
        let block = setup.length.map_or(block, |length| usize::try_from(length.get()).unwrap_or(block));
        Ok(Self { streams, pumps: if shared { cores } else { streams }, block: block.max(1) })
    }

    /// Bytes of one block or datagram.
    fn unit(&self, setup: &FlowSetup) -> u64 {
        if setup.transport == Transport::Udp {
            setup.datagram_length().max(1) as u64
        } else {
            self.block as u64
        }
    }

    /// Whether some pump serves more than one stream.
    pub(crate) const fn shared(&self) -> bool {
        self.pumps < self.streams
    }

    /// The streams of one pump: every `pumps`-th.
    pub(crate) fn streams_of(&self, pump: usize) -> impl Iterator<Item = usize> + use<> {
        (pump..self.streams).step_by(self.pumps)
    }

    /// Bytes that one stream may write; the shares of all streams add up to the limit.
    pub(crate) fn share(&self, setup: &FlowSetup, stream: usize) -> u64 {
        let StopAfter::Bytes(all) = setup.stop_after else { return u64::MAX };
        let (streams, stream) = (self.streams as u64, stream as u64);
        let share = |units: u64| units / streams + u64::from(stream < units % streams);
        if setup.borrowed {
            let block = self.unit(setup);
            return share(all.get().div_ceil(block)).saturating_mul(block);
        }
        share(all.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::FlowId;
    use linerate_units::Span;
    use proptest::prelude::*;

    #[test]
    fn threads_up_to_four_streams_a_core_then_one_worker_a_core() {
        let mut setup = FlowSetup::new(FlowId(0), Side::Sender, Span::ZERO);
        let plan = |streams| ThreadPlan::new(streams, 2, &setup).unwrap();
        assert_eq!((plan(1).pumps, plan(1).block), (1, 512 << 10));
        assert_eq!((plan(8).pumps, plan(8).block), (8, 512 << 10));
        assert_eq!((plan(9).pumps, plan(9).block), (2, 256 << 10));
        assert!(plan(9).shared() && !plan(8).shared());
        setup.length = Some(Bytes::new(777));
        assert_eq!(ThreadPlan::new(300, 2, &setup).unwrap().block, 777);
        setup.one_pump_each = true;
        let pumps = |streams| ThreadPlan::new(streams, 2, &setup).unwrap().pumps;
        assert_eq!((pumps(128), pumps(129)), (128, 2));
    }

    #[test]
    fn memory_is_that_of_the_buffers_of_all_pumps_and_of_what_is_noted() {
        let of = |side, streams, length: u64| {
            let mut setup = FlowSetup::new(FlowId(0), side, Span::from_secs(10));
            setup.length = Some(Bytes::new(length));
            needed(&setup, streams, 2).unwrap().get()
        };
        let (block, mib) = (64 << 20, 1 << 20);
        // Eight blocks of 64 MiB, plus 1 MiB for each pump, 4 KiB for each stream and 100 samples of 2 KiB.
        assert_eq!(of(Side::Sender, 8, block), 8 * (block + mib) + 8 * 4096 + 100 * 2048);
        // A receiver needs no more than a kernel returns at once, and a thousand streams share two pumps.
        assert_eq!(of(Side::Receiver, 8, block), 8 * (4 * mib + mib) + 8 * 4096 + 100 * 2048);
        assert_eq!(of(Side::Sender, 1000, mib), 2 * 2 * mib + 1000 * 4096 + 100 * 2048);
        let mut forever = FlowSetup::new(FlowId(0), Side::Sender, Span::from_secs(86_400));
        (forever.tick, forever.stop_after) = (Span::from_ms(10), StopAfter::TimeNs(Span::from_secs(86_400)));
        assert!(needed(&forever, 1, 2).unwrap().get() > 8_640_000 * 2048, "a day of samples");
        assert!(needed(&FlowSetup { no_sampling: true, ..forever }, 1, 2).unwrap().get() < 4 * mib);
    }

    #[test]
    fn there_is_no_plan_for_blocks_and_streams_beyond_the_bounds() {
        let plan = |streams: usize, length: u64| {
            let length = Some(Bytes::new(length));
            ThreadPlan::new(
                streams,
                2,
                &FlowSetup { length, ..FlowSetup::new(FlowId(0), Side::Sender, Span::ZERO) },
            )
        };
        assert!(plan(10_000, 64 << 20).is_ok());
        for length in [(64 << 20) + 1, 1 << 40, u64::MAX] {
            assert!(matches!(plan(1, length), Err(EngineError::BlockTooLong { .. })), "{length}");
        }
        assert!(matches!(plan(10_001, 1), Err(EngineError::TooManyStreams { .. })));
    }

    proptest! {
        #[test]
        fn every_stream_has_one_pump_and_the_shares_add_up(streams in 1usize..300, cores in 1usize..9, bytes: u64) {
            let mut setup = FlowSetup::new(FlowId(0), Side::Sender, Span::ZERO);
            setup.stop_after = StopAfter::Bytes(Bytes::new(bytes));
            let plan = ThreadPlan::new(streams, cores, &setup).unwrap();
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
            let mut setup = FlowSetup::new(FlowId(0), Side::Sender, Span::ZERO);
            (setup.stop_after, setup.length) = (StopAfter::Bytes(Bytes::new(bytes)), Some(Bytes::new(block)));
            setup.borrowed = true;
            let plan = ThreadPlan::new(streams, 2, &setup).unwrap();
            let shares: Vec<u64> = (0..streams).map(|stream| plan.share(&setup, stream)).collect();
            let sum: u64 = shares.iter().sum();
            prop_assert!(shares.iter().all(|share| share % block == 0));
            prop_assert!(bytes <= sum && sum < bytes + block);
        }
    }
}
