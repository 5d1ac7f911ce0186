//! The line: one batch after the other, at the line rate, and at the rate of a token bucket after it.

use linerate_units::{Bitrate, Span, Timestamp};

use crate::link_direction::Bucket;
use crate::packet_batch::{Framing, PacketBatch, PacketSizes};

/// Times inside a line. At 400 Gb/s a byte takes 20 ps, and rounding errors of each batch accumulate: at this
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
    shape: Option<ShaperTokens>,
    framing: Framing,
    service: Option<BatchService<T>>,
    free_at: Femtos,
    busy: Femtos,
}

#[derive(Debug)]
struct BatchService<T> {
    batch: T,
    sizes: PacketSizes,
    start: Femtos,
    first_done: Femtos,
    finish: Femtos,
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

    /// Takes tokens for a frame that could leave at `earliest`; returns when it may.
    fn admit(&mut self, earliest: Femtos, frame: u64) -> Femtos {
        let bytes_per_femto = self.bucket.rate.bps() / 8e15;
        let depth = self.bucket.burst.get() as f64;
        let earliest = earliest.max(self.at);
        let level = (self.level + (earliest - self.at) as f64 * bytes_per_femto).min(depth);
        // A packet larger than the bucket leaves when the bucket is full; the rest becomes debt.
        let missing = (frame as f64).min(depth) - level;
        let wait = if missing > 0.0 { (missing / bytes_per_femto).ceil() as Femtos } else { 0 };
        self.at = earliest + wait;
        self.level = (level + wait as f64 * bytes_per_femto).min(depth) - frame as f64;
        self.at
    }
}

impl<T: PacketBatch> Line<T> {
    /// An idle line; without a rate it takes no time.
    #[must_use]
    pub fn new(rate: Option<Bitrate>, shape: Option<Bucket>, framing: Framing) -> Self {
        let shape = shape.map(|bucket| ShaperTokens::new(bucket, 0));
        Self { rate, shape, framing, service: None, free_at: 0, busy: 0 }
    }

    /// Changes the rates; the batch being sent keeps its own.
    pub fn reconfigure(&mut self, rate: Option<Bitrate>, shape: Option<Bucket>, framing: Framing) {
        (self.rate, self.framing) = (rate, framing);
        self.shape = match (self.shape, shape) {
            (Some(tokens), Some(bucket)) => {
                Some(ShaperTokens { bucket, level: tokens.level.min(bucket.burst.get() as f64), ..tokens })
            }
            (_, bucket) => bucket.map(|bucket| ShaperTokens::new(bucket, self.free_at)),
        };
    }

    /// True while no batch is being sent.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.service.is_none()
    }

    /// When the line became idle, or will.
    #[must_use]
    pub fn free_at(&self) -> Timestamp {
        self.service.as_ref().map_or_else(|| up(self.free_at), |service| up(service.finish))
    }

    /// Time that one packet occupies the line, without a shaper; needed by queueing disciplines to look ahead.
    #[must_use]
    pub fn packet_time(&self, length: u32) -> Span {
        Span::from_ns((self.time(self.framing.wire(length)) / PER_NS) as u64)
    }

    /// How many packets of a batch that may start at `start` start at or before `now`.
    #[must_use]
    pub fn started(&self, sizes: &PacketSizes, start: Timestamp, now: Timestamp) -> u32 {
        let start = down(start).max(self.free_at);
        share(down(now), start, start + self.time(self.framing.wire_of(sizes, sizes.packets)), sizes.packets)
    }

    /// Sends a batch that arrived at `arrived`, its packets over the `spread` before that. The line must be
    /// idle.
    pub fn begin(&mut self, arrived: Timestamp, batch: T) {
        let sizes = batch.sizes();
        let first = Timestamp::from_ns(arrived.as_ns().saturating_sub(batch.spread().as_ns()));
        let earliest = self.free_at.max(down(first));
        let each = self.time(self.framing.wire(sizes.of(0)));
        let last = self.time(self.framing.wire(sizes.last));
        let whole = self.time(self.framing.wire_of(&sizes, sizes.packets));
        let (start, mut finish) = match &mut self.shape {
            None => (earliest, earliest + whole),
            Some(tokens) => {
                let (mut start, mut end) = (None, earliest);
                for index in 0..sizes.packets {
                    let leaves = tokens.admit(end, self.framing.frame(sizes.of(index)));
                    start.get_or_insert(leaves);
                    end = leaves + if index + 1 == sizes.packets { last } else { each };
                }
                (start.unwrap_or(earliest), end)
            }
        };
        // The last packet cannot have left before it arrived.
        finish = finish.max(down(arrived) + last);
        self.busy += whole;
        self.service = Some(BatchService { batch, sizes, start, first_done: start + each, finish });
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
        let spread = service.finish.saturating_sub(service.first_done) / PER_NS;
        // Over a line of unlimited rate packets keep the spacing with which they arrived.
        if self.rate.is_some() {
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
        let started = share(down(now), service.start, service.finish, service.sizes.packets);
        let all = self.framing.frames_of(&service.sizes, service.sizes.packets);
        all - self.framing.frames_of(&service.sizes, started).min(all)
    }

    /// Time in which the line was sending until `now`.
    #[must_use]
    pub fn busy(&self, now: Timestamp) -> Span {
        let ahead = self.service.as_ref().map_or(0, |service| {
            let whole = self.time(self.framing.wire_of(&service.sizes, service.sizes.packets));
            service.finish.saturating_sub(down(now)).min(whole)
        });
        Span::from_ns((self.busy.saturating_sub(ahead) / PER_NS) as u64)
    }

    fn time(&self, wire_bytes: u64) -> Femtos {
        self.rate.map_or(0, |rate| (wire_bytes as f64 * 8e15 / rate.bps()).round() as Femtos)
    }
}

/// Of `packets` that start at equal intervals from `start` on and end at `finish`: how many have started at
/// `now`.
fn share(now: Femtos, start: Femtos, finish: Femtos, packets: u32) -> u32 {
    if now < start {
        return 0;
    }
    if now >= finish {
        return packets;
    }
    let started = (now - start) * Femtos::from(packets) / (finish - start) + 1;
    u32::try_from(started).unwrap_or(packets).min(packets)
}

fn down(at: Timestamp) -> Femtos {
    Femtos::from(at.as_ns()) * PER_NS
}

/// A batch has left when its last bit has: rounded up.
fn up(at: Femtos) -> Timestamp {
    Timestamp::from_ns(u64::try_from(at.div_ceil(PER_NS)).unwrap_or(u64::MAX))
}
