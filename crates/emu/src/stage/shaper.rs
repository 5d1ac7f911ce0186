//! The line: one batch after the other, at the line rate, and at the rate of a token bucket after it.

use linerate_units::{Bitrate, Span, Timestamp};

use crate::link_direction::Bucket;
use crate::packet_batch::{Framing, PacketBatch, PacketSizes};
use crate::stage::queue::Head;

/// Times inside a line. At 400 Gb/s a byte takes 20 ps, and rounding errors of each packet accumulate: at this
/// resolution, no rate is off by a millionth.
///
/// # Units
/// femtoseconds since the start of the emulation
type Femtos = u128;

const PER_NS: Femtos = 1_000_000;

/// A line that sends at most one batch at a time.
///
/// A batch whose packets arrived one after the other is sent as they arrive: its first packet may leave before
/// its last has arrived, as in a switch that stores and forwards packets, not batches. A batch thus passes many
/// lines of one rate with the delay of one packet per line, not of one batch.
#[derive(Debug)]
pub struct Line<T> {
    rate: Option<Bitrate>,
    /// As the last packet that has a start leaves it.
    shape: Option<ShaperTokens>,
    framing: Framing,
    service: Option<BatchService<T>>,
    /// When each packet of the batch being sent starts.
    starts: Vec<Femtos>,
    free_at: Femtos,
    busy: Femtos,
}

#[derive(Debug)]
struct BatchService<T> {
    batch: T,
    sizes: PacketSizes,
    /// The packets that had not started when the rates of the line last changed; all, if they never have.
    rest: PacketStarts,
    /// Line time of the packets before these.
    sent: Femtos,
    first_done: Femtos,
    finish: Femtos,
    /// False if no rate has spaced its packets.
    paced: bool,
}

/// A token bucket as a shaper: its level at a given time.
#[derive(Debug, Clone, Copy)]
struct ShaperTokens {
    bucket: Bucket,
    /// Bytes; negative after a packet larger than the bucket.
    level: f64,
    at: Femtos,
}

impl ShaperTokens {
    fn new(bucket: Bucket, at: Femtos) -> Self {
        Self { bucket, level: bucket.burst.get() as f64, at }
    }

    fn depth(&self) -> f64 {
        self.bucket.burst.get() as f64
    }

    fn bytes_per_femto(&self) -> f64 {
        self.bucket.rate.bps() / 8e15
    }

    /// Adds the tokens that arrive until `at`.
    fn fill(&mut self, at: Femtos) {
        let at = at.max(self.at);
        self.level = (self.level + (at - self.at) as f64 * self.bytes_per_femto()).min(self.depth());
        self.at = at;
    }

    /// Changes rate and depth from `at` on; tokens above the new depth are lost.
    fn change(&mut self, at: Femtos, bucket: Bucket) {
        self.fill(at);
        self.bucket = bucket;
        self.level = self.level.min(self.depth());
    }

    /// Takes tokens for a frame that could leave at `earliest`; returns when it may.
    fn admit(&mut self, earliest: Femtos, frame: u64) -> Femtos {
        self.fill(earliest);
        // A packet larger than the bucket leaves when the bucket is full; the rest becomes debt.
        let missing = (frame as f64).min(self.depth()) - self.level;
        if missing > 0.0 {
            let wait = (missing / self.bytes_per_femto()).ceil() as Femtos;
            self.fill(self.at + wait);
        }
        self.level -= frame as f64;
        self.at
    }
}

/// What a packet takes of a line.
#[derive(Debug, Clone, Copy)]
struct PacketCost {
    /// Time on the line.
    time: Femtos,
    /// Tokens, in bytes.
    frame: u64,
}

/// When the packets of a batch start, one after the other, if it is the next on a line.
///
/// A packet starts when it has arrived, the one before it has been sent, and the shaper has tokens for it.
///
/// # Units
/// femtoseconds since the start of the emulation
#[derive(Debug, Clone)]
pub struct PacketStarts {
    packets: u32,
    each: PacketCost,
    last: PacketCost,
    tokens: Option<ShaperTokens>,
    first_arrival: Femtos,
    arrival_gap: Femtos,
    last_arrival: Femtos,
    /// Index of the next packet in the batch.
    next: u32,
    /// When the packets before it have been sent.
    free_at: Femtos,
}

impl PacketStarts {
    /// When the next packet has arrived and the one before it has been sent: without a shaper, its start.
    pub(super) fn next_ready(&self) -> Timestamp {
        up(self.ready())
    }

    /// When a packet starts; `index` counts from the next one.
    pub(super) fn start_of(&self, index: u32) -> Timestamp {
        up(match self.tokens {
            Some(_) => self.clone().nth(index as usize).unwrap_or(self.free_at),
            // Both bounds are linear along a batch, so one of the two applies to all packets after the first.
            None => {
                let back_to_back = self.ready() + Femtos::from(index) * self.each.time;
                back_to_back.max(self.arrival(self.next + index))
            }
        })
    }

    /// Time between the starts of two packets like the last one of the batch when many are waiting.
    pub(super) fn sustained_time(&self) -> Span {
        let shaped = self
            .tokens
            .map_or(0, |tokens| (self.last.frame as f64 / tokens.bytes_per_femto()).round() as Femtos);
        Span::from_ns((self.last.time.max(shaped) / PER_NS) as u64)
    }

    /// True if a shaper may delay packets.
    pub(super) fn is_shaped(&self) -> bool {
        self.tokens.is_some()
    }

    fn cost(&self, index: u32) -> PacketCost {
        if index + 1 < self.packets { self.each } else { self.last }
    }

    fn arrival(&self, index: u32) -> Femtos {
        if index + 1 < self.packets {
            self.first_arrival + Femtos::from(index) * self.arrival_gap
        } else {
            self.last_arrival
        }
    }

    fn ready(&self) -> Femtos {
        self.free_at.max(self.arrival(self.next))
    }

    /// Line time of the packets from the next one up to, not including, packet `end`.
    fn line_time(&self, end: u32) -> Femtos {
        let packets = Femtos::from(end.saturating_sub(self.next));
        if packets > 0 && end == self.packets {
            (packets - 1) * self.each.time + self.last.time
        } else {
            packets * self.each.time
        }
    }
}

impl Iterator for PacketStarts {
    type Item = Femtos;

    fn next(&mut self) -> Option<Femtos> {
        let index = self.next;
        if index >= self.packets {
            return None;
        }
        let (ready, cost) = (self.ready(), self.cost(index));
        let start = match &mut self.tokens {
            None => ready,
            Some(tokens) => tokens.admit(ready, cost.frame),
        };
        self.next += 1;
        self.free_at = start + cost.time;
        Some(start)
    }
}

impl<T: PacketBatch> Line<T> {
    /// An idle line; without a rate it takes no time.
    #[must_use]
    pub fn new(rate: Option<Bitrate>, shape: Option<Bucket>, framing: Framing) -> Self {
        let shape = shape.map(|bucket| ShaperTokens::new(bucket, 0));
        Self { rate, shape, framing, service: None, starts: Vec::new(), free_at: 0, busy: 0 }
    }

    /// Changes the rates from `now` on. A packet on the line is sent at its old rate; those behind it in its batch
    /// are not. What has ended before `now` must have been taken with [`Line::end`].
    pub fn reconfigure(
        &mut self,
        now: Timestamp,
        rate: Option<Bitrate>,
        shape: Option<Bucket>,
        framing: Framing,
    ) {
        if (rate, shape, framing) == (self.rate, self.shape.map(|tokens| tokens.bucket), self.framing) {
            return;
        }
        let started = self.started(now);
        let mut service = self.service.take();
        if let Some(service) = &mut service {
            // The others have no start any more, and return their tokens.
            self.starts.truncate(started as usize);
            service.sent += service.rest.line_time(started);
            if let Some(last) = started.saturating_sub(service.rest.next).checked_sub(1) {
                service.rest.nth(last as usize);
            }
            self.shape = service.rest.tokens;
        }
        let now = down(now);
        self.shape = match (self.shape, shape) {
            (Some(mut tokens), Some(bucket)) => {
                tokens.change(now, bucket);
                Some(tokens)
            }
            (None, Some(bucket)) => Some(ShaperTokens::new(bucket, now)),
            (Some(_) | None, None) => None,
        };
        (self.rate, self.framing) = (rate, framing);
        if let Some(mut service) = service {
            service.rest = PacketStarts {
                each: self.cost(service.sizes.each),
                last: self.cost(service.sizes.last),
                tokens: self.shape,
                // Not the packets that waited for tokens either: they start now, or later.
                free_at: service.rest.free_at.max(now),
                ..service.rest
            };
            self.schedule(service);
        }
    }

    /// True while no batch is being sent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.service.is_none()
    }

    /// When the packets of a batch start if it is given to the line next.
    #[must_use]
    pub fn starts(&self, head: &Head) -> PacketStarts {
        let Head { arrived, spread, sizes } = *head;
        let last_arrival = down(arrived);
        let first_arrival = last_arrival.saturating_sub(Femtos::from(spread.as_ns()) * PER_NS);
        let gaps = Femtos::from(sizes.packets.saturating_sub(1).max(1));
        PacketStarts {
            packets: sizes.packets,
            each: self.cost(sizes.each),
            last: self.cost(sizes.last),
            tokens: self.shape,
            first_arrival,
            arrival_gap: (last_arrival - first_arrival) / gaps,
            last_arrival,
            next: 0,
            free_at: self.service.as_ref().map_or(self.free_at, |service| service.finish),
        }
    }

    /// How many packets of a batch start at or before `now` if it is given to the line next.
    #[must_use]
    pub fn passing(&self, head: &Head, now: Timestamp) -> u32 {
        let now = down(now);
        let passing = self.starts(head).take_while(|start| *start <= now).count();
        u32::try_from(passing).unwrap_or(head.sizes.packets)
    }

    /// Sends a batch that arrived at `arrived`, its packets over the `spread` before that. The line must be
    /// idle.
    pub fn begin(&mut self, arrived: Timestamp, batch: T) {
        let head = Head::of(arrived, &batch);
        let rest = self.starts(&head);
        self.starts.clear();
        let (sizes, sent, first_done, finish) = (head.sizes, 0, 0, 0);
        self.schedule(BatchService { batch, sizes, rest, sent, first_done, finish, paced: false });
    }

    /// Determines the starts of the packets of a batch that have none yet.
    fn schedule(&mut self, mut service: BatchService<T>) {
        let mut starts = service.rest.clone();
        self.starts.extend(starts.by_ref());
        self.shape = starts.tokens;
        service.finish = starts.free_at;
        if service.rest.next == 0 {
            service.first_done = self.starts.first().map_or(0, |start| start + service.rest.cost(0).time);
        }
        service.paced |= self.rate.is_some() || self.shape.is_some();
        self.service = Some(service);
    }

    /// When the batch being sent has left.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.service.as_ref().map(|service| up(service.finish))
    }

    /// The batch, once it has left; the line is idle then.
    pub fn end(&mut self, now: Timestamp) -> Option<T> {
        self.service.as_ref().filter(|service| up(service.finish) <= now)?;
        let mut service = self.service.take()?;
        self.free_at = service.finish;
        self.busy += service.sent + service.rest.line_time(service.sizes.packets);
        // Over a line of unlimited rate packets keep the spacing with which they arrived.
        if service.paced {
            let spread = service.finish.saturating_sub(service.first_done) / PER_NS;
            service.batch.set_spread(Span::from_ns(spread as u64));
        }
        Some(service.batch)
    }

    /// The batch being sent.
    #[must_use]
    pub fn in_service(&self) -> Option<&T> {
        self.service.as_ref().map(|service| &service.batch)
    }

    /// Bytes of its packets that have not started: they wait in the buffer.
    #[must_use]
    pub fn waiting(&self, now: Timestamp) -> u64 {
        let Some(service) = &self.service else { return 0 };
        let all = self.framing.frames_of(&service.sizes, service.sizes.packets);
        all - self.framing.frames_of(&service.sizes, self.started(now)).min(all)
    }

    /// How many packets of the batch being sent have started at `now`.
    fn started(&self, now: Timestamp) -> u32 {
        let now = down(now);
        self.starts.partition_point(|start| *start <= now) as u32
    }

    /// Time in which the line was sending until `now`.
    #[must_use]
    pub fn busy(&self, now: Timestamp) -> Span {
        let of_batch = self.service.as_ref().map_or(0, |service| {
            let (rest, started, now) = (&service.rest, self.started(now), down(now));
            // The packet on the line is one of those before the last change of the rates, or has started since.
            let (sent, end) = match started.checked_sub(1) {
                Some(on_line) if on_line >= rest.next => (
                    service.sent + rest.line_time(started),
                    self.starts[on_line as usize] + rest.cost(on_line).time,
                ),
                Some(_) | None => (service.sent, rest.free_at),
            };
            sent.saturating_sub(end.saturating_sub(now))
        });
        Span::from_ns(((self.busy + of_batch) / PER_NS) as u64)
    }

    fn cost(&self, length: u32) -> PacketCost {
        let wire_bits = self.framing.wire(length) as f64 * 8.0;
        let time = self.rate.map_or(0, |rate| (wire_bits * 1e15 / rate.bps()).round() as Femtos);
        PacketCost { time, frame: self.framing.frame(length) }
    }
}

fn down(at: Timestamp) -> Femtos {
    Femtos::from(at.as_ns()) * PER_NS
}

/// A batch has left when its last bit has: rounded up.
fn up(at: Femtos) -> Timestamp {
    Timestamp::from_ns(u64::try_from(at.div_ceil(PER_NS)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use linerate_units::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::stage::laws::Numbered;

    #[test]
    fn many_packets_take_the_time_of_the_slower_of_line_and_shaper() {
        // 1538 bytes of line, 1518 bytes of tokens.
        let shape = Bucket { rate: Bitrate::from_bps(100e6).unwrap(), burst: Bytes::new(3036) };
        let head = Head::of(Timestamp::START, &Numbered::new(0, 44, 1514));
        for (line_bps, shape, expected) in [
            (None, None, 0),
            (None, Some(shape), 121_440),
            (Some(1e9), None, 12_304),
            (Some(1e9), Some(shape), 121_440),
            (Some(10e6), Some(shape), 1_230_400),
        ] {
            let rate = line_bps.and_then(Bitrate::from_bps);
            let line = Line::<Numbered>::new(rate, shape, Framing::default());
            assert_eq!(line.starts(&head).sustained_time().as_ns(), expected, "{rate:?}, {shape:?}");
        }
    }

    #[test]
    fn packets_start_as_fast_as_the_line_while_there_are_tokens() {
        let shape = Bucket { rate: Bitrate::from_bps(100e6).unwrap(), burst: Bytes::new(3 * 1518) };
        let line = Line::<Numbered>::new(Bitrate::from_bps(1e9), Some(shape), Framing::default());
        let head = Head::of(Timestamp::START, &Numbered::new(0, 6, 1514));
        let starts = line.starts(&head);
        let expected = [0, 12_304, 2 * 12_304, 121_440, 2 * 121_440, 3 * 121_440];
        for (index, expected) in (0..).zip(expected) {
            assert!(starts.start_of(index).as_ns().abs_diff(expected) <= 1, "packet {index}");
        }
        assert_eq!(line.passing(&head, Timestamp::from_ns(30_000)), 3);
    }

    proptest! {
        #[test]
        fn a_start_is_known_without_those_of_the_packets_before(
            before in 1..30_u32,
            later in 0..3_000_000_u64,
            packets in 1..44_u32,
            last in 60..=1514_u32,
            spread in 0..2_000_000_u64,
            mbps in 10..2000_u32,
        ) {
            let rate = Bitrate::from_bps(f64::from(mbps) * 1e6);
            let mut line = Line::new(rate, None, Framing::default());
            let at = Timestamp::from_ns(10_000_000);
            line.begin(at, Numbered::new(0, before, 1514));
            let batch = Numbered::new(0, packets, 1514).ending_with(last).spread_over(Span::from_ns(spread));
            let starts = line.starts(&Head::of(at + Span::from_ns(later), &batch));
            for (index, start) in (0..).zip(starts.clone()) {
                prop_assert_eq!(starts.start_of(index), up(start));
            }
        }
    }
}
