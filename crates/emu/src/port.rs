//! An output port: a queue and the line that it feeds.

use std::collections::VecDeque;

use linerate_units::{Bytes, Span, Timestamp};

use crate::link_direction::LinkDirection;
use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::queue::{Head, Queue, Room};
use crate::stage::shaper::Line;
use crate::stage::{Count, Stage, Stats};

/// A queue in front of a line.
///
/// The buffer holds waiting packets only: neither the one on the line nor those propagating after it. A packet
/// of a batch on the line frees its buffer space when it starts, not when the batch ends, so drops start at the
/// configured number of bytes although batches stay whole. A packet for which a shaper has no tokens waits.
#[derive(Debug)]
pub struct Port<T> {
    queue: Queue<T>,
    line: Line<T>,
    framing: Framing,
    buffer: u64,
    /// When a batch was last pushed.
    pushed: Timestamp,
    /// Batches that have left the line and have not been popped yet.
    left: VecDeque<(Timestamp, T)>,
    given: Count,
    wire: Bytes,
    peak: u64,
    peak_ever: u64,
}

impl<T: PacketBatch> Port<T> {
    /// An empty port.
    #[must_use]
    pub fn new(direction: &LinkDirection, seed: u64) -> Self {
        Self {
            queue: Queue::new(direction.discipline, direction.framing, seed),
            line: Line::new(direction.rate, direction.shape, direction.framing),
            framing: direction.framing,
            buffer: direction.buffer.get(),
            pushed: Timestamp::START,
            left: VecDeque::new(),
            given: Count::default(),
            wire: Bytes::new(0),
            peak: 0,
            peak_ever: 0,
        }
    }

    /// Changes rate, buffer and discipline from `now` on. Waiting packets are kept, even if they exceed the new
    /// buffer; the one on the line is sent at its old rate.
    pub fn reconfigure(&mut self, now: Timestamp, direction: &LinkDirection) {
        self.advance(now);
        self.queue.reconfigure(direction.discipline, direction.framing);
        self.line.reconfigure(now, direction.rate, direction.shape, direction.framing);
        (self.framing, self.buffer) = (direction.framing, direction.buffer.get());
    }

    /// Bytes waiting.
    #[must_use]
    pub fn waiting(&self, now: Timestamp) -> u64 {
        self.queue.backlog().bytes.get() + self.line.waiting(now)
    }

    /// Accepts a batch into a buffer of which this port may use `limit` bytes.
    pub fn push_within(&mut self, now: Timestamp, batch: T, limit: u64) {
        self.advance(now);
        self.pushed = now;
        let ahead = self.line.waiting(now);
        let free = limit.saturating_sub(self.queue.backlog().bytes.get() + ahead);
        let passing = self.passing_bytes(now, &batch);
        self.queue.offer(now, batch, Room { free, ahead, passing });
        if self.line.is_idle() {
            self.begin_next();
        }
        self.peak = self.peak.max(self.waiting(now));
        self.peak_ever = self.peak_ever.max(self.peak);
    }

    /// Bytes of the first packets of a batch that never wait, because the line is idle when they arrive and the
    /// shaper has tokens for them.
    fn passing_bytes(&self, now: Timestamp, batch: &T) -> u64 {
        if !self.line.is_idle() || self.queue.head().is_some() {
            return 0;
        }
        let head = Head::of(now, batch);
        self.framing.frames_of(&head.sizes, self.line.passing(&head, now))
    }

    /// Sends on the line up to `now`.
    fn advance(&mut self, now: Timestamp) {
        while let Some(at) = self.line.deadline().filter(|at| *at <= now)
            && let Some(batch) = self.line.end(now)
        {
            let sizes = batch.sizes();
            self.wire = Bytes::new(self.wire.get() + self.framing.wire_of(&sizes, sizes.packets));
            self.left.push_back((at, batch));
            self.begin_next();
        }
    }

    fn begin_next(&mut self) {
        if let Some((arrived, batch)) = self.queue.take(|head| self.line.starts(head)) {
            self.line.begin(arrived, batch);
        }
    }

    /// Bytes on the wire so far, preambles and gaps included.
    #[must_use]
    pub fn wire_bytes(&self) -> Bytes {
        self.wire
    }

    /// Time in which the line was sending.
    #[must_use]
    pub fn busy(&self, now: Timestamp) -> Span {
        self.line.busy(now)
    }

    /// Most bytes waiting since the last reset of the peak.
    #[must_use]
    pub fn peak(&self, now: Timestamp) -> u64 {
        self.peak.max(self.waiting(now))
    }

    /// Most bytes ever waiting.
    #[must_use]
    pub fn peak_ever(&self) -> u64 {
        self.peak_ever
    }

    /// Starts a new interval for the peak.
    pub fn reset_peak(&mut self, now: Timestamp) {
        self.peak = self.waiting(now);
    }
}

impl<T: PacketBatch> Stage<T> for Port<T> {
    fn push(&mut self, now: Timestamp, batch: T) {
        self.push_within(now, batch, self.buffer);
    }

    fn pop(&mut self, now: Timestamp) -> Option<T> {
        self.advance(now);
        let (_, batch) = self.left.pop_front()?;
        self.given.add(Count::of(&batch, self.framing));
        Some(batch)
    }

    fn deadline(&self) -> Option<Timestamp> {
        let next = self.left.front().map(|(at, _)| *at).or_else(|| self.line.deadline());
        // The first packets of a batch may have left before its last one arrived and was dropped, but nobody knew.
        next.map(|at| at.max(self.pushed))
    }

    fn stats(&self) -> Stats {
        let queue = self.queue.stats();
        let mut held = queue.held;
        for batch in self.left.iter().map(|(_, batch)| batch).chain(self.line.in_service()) {
            held.add(Count::of(batch, self.framing));
        }
        Stats { given: self.given, held, ..queue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_direction::{Bucket, CoDelSettings, QueueDiscipline, RedSettings};
    use crate::stage::laws::{Arriving, Laws, Numbered, arrivals, check};
    use linerate_units::{Bitrate, Ratio};
    use proptest::prelude::*;

    fn direction() -> LinkDirection {
        LinkDirection {
            rate: Bitrate::from_bps(300e6),
            buffer: Bytes::new(100_000),
            ..LinkDirection::default()
        }
    }

    fn disciplines() -> impl Strategy<Value = QueueDiscipline> {
        let codel = CoDelSettings { target: Span::from_ms(1), interval: Span::from_ms(5), ecn: true };
        let red = RedSettings {
            min: Bytes::new(20_000),
            max: Bytes::new(60_000),
            max_probability: Ratio::new(0.1).unwrap(),
            weight: Ratio::new(0.02).unwrap(),
            ecn: true,
        };
        prop_oneof![
            Just(QueueDiscipline::TailDrop),
            Just(QueueDiscipline::CoDel(codel)),
            Just(QueueDiscipline::Red(red)),
        ]
    }

    proptest! {
        #[test]
        fn a_port_keeps_the_laws(arriving in arrivals(), discipline in disciplines(), shaped in any::<bool>()) {
            let shape = Bucket { rate: Bitrate::from_bps(150e6).unwrap(), burst: Bytes::new(30_000) };
            let direction = LinkDirection { discipline, shape: shaped.then_some(shape), ..direction() };
            check(&arriving, Laws::IN_ORDER, || Port::new(&direction, 3))?;
        }

        #[test]
        fn a_port_never_exceeds_its_rate_nor_its_buffer(arriving in arrivals()) {
            let (mut port, direction) = (Port::new(&direction(), 0), direction());
            let mut left: Vec<(Timestamp, Numbered)> = Vec::new();
            for (at, batch) in &arriving {
                drain(&mut port, *at, &mut left);
                port.push(*at, batch.clone());
                prop_assert!(port.waiting(*at) <= direction.buffer.get());
            }
            drain(&mut port, Timestamp::from_ns(u64::MAX), &mut left);
            prop_assert!(port.peak_ever() <= direction.buffer.get());
            // Between the ends of any two batches, the line has carried exactly what is between them.
            let wire = |batch: &Numbered| direction.framing.wire_of(&batch.sizes(), batch.packets()) as f64 * 8.0;
            for pair in left.windows(2) {
                let time = (pair[1].0 - pair[0].0).as_secs_f64();
                // A batch may have started before its last packet arrived, never before the previous one had
                // left.
                prop_assert!(wire(&pair[1].1) <= 300e6 * (time + 2e-9), "{:?}", pair);
            }
        }
    }

    /// What a port sends of batches, or of their packets one by one, and its counters: numbers of the packets, and
    /// whether they are marked; dropped and marked packets; bytes on the wire and time on the line.
    fn fate(port: &mut Port<Numbered>, arriving: &Arriving, singly: bool) -> PacketFates {
        let mut left = Vec::new();
        for (at, batch) in arriving {
            drain(port, *at, &mut left);
            // All packets of a batch arrive at once: a port is asked for space when the last has arrived.
            let mut rest = Some(batch.clone().spread_over(Span::ZERO));
            while let Some(mut packets) = rest {
                rest = (singly && packets.packets() > 1).then(|| packets.split_off(1));
                port.push(*at, packets);
            }
        }
        let end = Timestamp::from_ns(u64::MAX);
        drain(port, end, &mut left);
        let sent = left.iter().flat_map(|(_, batch)| batch.ids().map(move |id| (id, batch.marked())));
        let stats = port.stats();
        (
            sent.collect(),
            [stats.dropped.packets, stats.marked, port.wire_bytes().get(), port.busy(end).as_ns()],
        )
    }

    type PacketFates = (Vec<(u64, bool)>, [u64; 4]);

    proptest! {
        #[test]
        fn a_batch_fares_as_its_packets_would_with_any_line_and_shaper(
            arriving in arrivals(),
            discipline in disciplines(),
            // No topology has a buffer for less than a frame. Below that, the short last packet of a batch may find
            // tokens that the packets before it, which were dropped, did not need.
            buffer in 1518..200_000_u64,
            rate in prop_oneof![Just(None), Just(Some(300e6)), Just(Some(1e9))],
            shape in prop::option::of((50e6..400e6, 0..100_000_u64)),
        ) {
            let shape = shape.map(|(bps, burst)| {
                Bucket { rate: Bitrate::from_bps(bps).unwrap(), burst: Bytes::new(burst) }
            });
            let rate = rate.and_then(Bitrate::from_bps);
            let direction = LinkDirection {
                rate, buffer: Bytes::new(buffer), discipline, shape, ..LinkDirection::default()
            };
            let [whole, singly] =
                [false, true].map(|singly| fate(&mut Port::new(&direction, 3), &arriving, singly));
            prop_assert_eq!(whole, singly);
        }
    }

    fn shaped(bps: f64, burst: u64, buffer: u64) -> LinkDirection {
        let shape = Bucket { rate: Bitrate::from_bps(bps).unwrap(), burst: Bytes::new(burst) };
        LinkDirection { shape: Some(shape), buffer: Bytes::new(buffer), ..LinkDirection::default() }
    }

    #[test]
    fn a_shaper_without_a_line_fills_the_buffer_to_the_byte() {
        // Two frames leave at once; ten of the others fit into the buffer.
        let mut port = Port::new(&shaped(100e6, 2 * 1518, 10 * 1518), 0);
        let now = Timestamp::from_ns(1000);
        port.push(now, Numbered::new(0, 44, 1514));
        assert_eq!((port.stats().dropped.packets, port.waiting(now)), (32, 10 * 1518));
        assert_eq!(port.peak_ever(), 10 * 1518);
        // A frame takes 121.44 us of the shaper: the third packet has started after that, the fourth has not.
        assert_eq!(port.waiting(now + Span::from_us(122)), 9 * 1518);
        let mut left = Vec::new();
        drain(&mut port, now + Span::from_secs(1), &mut left);
        let (at, batch) = left.pop().unwrap();
        assert!((at - now).as_ns().abs_diff(10 * 121_440) <= 1, "{at:?}");
        assert!(
            batch.spread().as_ns().abs_diff(10 * 121_440) <= 1,
            "the next line sees the pace of the shaper"
        );
    }

    fn at_rate(bps: f64) -> LinkDirection {
        LinkDirection { rate: Bitrate::from_bps(bps), ..direction() }
    }

    #[test]
    fn a_change_of_the_rate_holds_from_the_next_packet_on() {
        let mut port = Port::new(&at_rate(1e3), 0);
        port.push(Timestamp::START, Numbered::new(0, 17, 1514));
        let second = |seconds| Timestamp::START + Span::from_secs(seconds);
        port.reconfigure(second(1), &at_rate(1e9));
        // 1538 bytes take 12.304 s at 1 kb/s, and each of the other 16 a millionth of that.
        let ends = Timestamp::from_ns(12_304_000_000 + 16 * 12_304);
        assert_eq!(port.deadline(), Some(ends));
        assert_eq!(port.waiting(second(12)), 16 * 1518);
        for seconds in [1, 5, 12] {
            assert_eq!(port.busy(second(seconds)), Span::from_secs(seconds));
        }
        // Slower again while the fifth packet is on the line; once more without an effect.
        let fifth = Timestamp::from_ns(12_304_000_000 + 4 * 12_304 - 1);
        for bps in [1e6, 1e6] {
            port.reconfigure(fifth, &at_rate(bps));
            assert_eq!(
                port.deadline(),
                Some(Timestamp::from_ns(12_304_000_000 + 4 * 12_304 + 12 * 12_304_000))
            );
        }
        let mut left = Vec::new();
        drain(&mut port, second(20), &mut left);
        assert_eq!(left[0].1.ids(), 0..17);
        assert_eq!(port.busy(second(20)).as_ns(), 12_304_000_000 + 4 * 12_304 + 12 * 12_304_000);
    }

    #[test]
    fn tokens_come_at_the_rate_of_their_time() {
        // The bucket of one frame is empty; after 12.144 ms at 1 Mb/s it has one again.
        let mut port = Port::new(&shaped(1e6, 1518, 100_000), 0);
        let now = Timestamp::START + Span::from_us(12_144);
        port.push(Timestamp::START, Numbered::new(0, 1, 1514));
        port.reconfigure(now, &shaped(1e9, 100 * 1518, 100_000));
        port.push(now, Numbered::new(1, 11, 1514));
        assert_eq!(port.waiting(now + Span::from_ns(1)), 10 * 1518, "one frame had tokens");
        let ends = port.left.pop_front().and_then(|_| port.deadline()).unwrap();
        assert!((ends - now).as_ns().abs_diff(10 * 12_144) <= 1, "{ends:?}");
    }

    #[test]
    fn what_waits_for_tokens_leaves_when_the_shaper_is_removed() {
        let mut port = Port::new(&shaped(1e3, 1518, 100_000), 0);
        port.push(Timestamp::START, Numbered::new(0, 5, 1514));
        let now = Timestamp::START + Span::from_secs(1);
        assert_eq!(port.waiting(now), 4 * 1518);
        port.reconfigure(now, &LinkDirection { shape: None, ..shaped(1e3, 1518, 100_000) });
        assert_eq!((port.waiting(now), port.deadline()), (0, Some(now)));
    }

    fn drain(port: &mut Port<Numbered>, until: Timestamp, left: &mut Vec<(Timestamp, Numbered)>) {
        while let Some(at) = port.deadline().filter(|at| *at <= until) {
            left.extend(std::iter::from_fn(|| port.pop(at)).map(|batch| (at, batch)));
        }
    }

    #[test]
    fn what_is_on_the_line_does_not_wait() {
        let mut port = Port::new(&LinkDirection { buffer: Bytes::new(0), ..direction() }, 0);
        let batch = |first| Numbered::new(first, 1, 1514);
        let now = Timestamp::from_ns(1000);
        port.push(now, batch(0));
        port.push(now, batch(1));
        assert_eq!(port.stats().dropped.packets, 1, "without a buffer a port carries one packet at a time");
        let sent: Arriving =
            std::iter::from_fn(|| port.deadline().and_then(|at| Some((at, port.pop(at)?)))).collect();
        // 1538 bytes at 300 Mb/s: 41013.3 ns, and a packet has left when its last bit has.
        assert_eq!(sent.iter().map(|(at, _)| at.as_ns()).collect::<Vec<_>>(), [1000 + 41_014]);
    }

    #[test]
    fn a_second_has_as_many_bits_as_the_rate_says_however_odd_it_is() {
        // Three packets in 7 ns cannot be expressed in whole nanoseconds; after a million packets the sum is
        // still exact.
        let rate = 1538.0 * 8.0 * 3.0 / 7e-9;
        let direction = LinkDirection {
            rate: Bitrate::from_bps(rate),
            buffer: Bytes::new(1 << 40),
            ..LinkDirection::default()
        };
        let mut port = Port::new(&direction, 0);
        for number in 0..3_000_000 / 44 {
            port.push(Timestamp::START, Numbered::new(number * 44, 44, 1514));
        }
        let mut left = Vec::new();
        drain(&mut port, Timestamp::from_ns(u64::MAX), &mut left);
        let packets = 3_000_000 / 44 * 44;
        let expected = packets as f64 * 7.0 / 3.0;
        let last = left.last().unwrap().0.as_ns() as f64;
        assert!((last - expected).abs() / expected < 1e-6, "{last}, expected {expected}");
    }
}
