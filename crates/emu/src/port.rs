//! An output port: what waits, and the line it waits for.

use linerate_units::{Bytes, Span, Timestamp};

use crate::stage::queue::{Queue, Room};
use crate::stage::shaper::Line;
use crate::stage::{Count, Stage, Stats};
use crate::train::{Framing, Train};
use crate::way::Way;

/// A queue in front of a line.
///
/// The buffer holds what waits: not the packet on the line, nor what propagates behind it. A packet of a train that is
/// being sent gives its place back when it starts, not when the train ends, so drops begin at the configured byte
/// although trains stay whole.
#[derive(Debug)]
pub struct Port<T> {
    queue: Queue<T>,
    line: Line<T>,
    framing: Framing,
    buffer: u64,
    given: Count,
    wire: Bytes,
    peak: u64,
    peak_ever: u64,
}

impl<T: Train> Port<T> {
    /// An empty port.
    #[must_use]
    pub fn new(way: &Way, seed: u64) -> Self {
        Self {
            queue: Queue::new(way.discipline, way.framing, seed),
            line: Line::new(way.rate, way.shape, way.framing),
            framing: way.framing,
            buffer: way.buffer.get(),
            given: Count::default(),
            wire: Bytes::new(0),
            peak: 0,
            peak_ever: 0,
        }
    }

    /// Changes rate, buffer and discipline. What waits goes on waiting, also where the new buffer would not take it.
    pub fn reconfigure(&mut self, way: &Way) {
        self.queue.reconfigure(way.discipline, way.framing);
        self.line.reconfigure(way.rate, way.shape, way.framing);
        (self.framing, self.buffer) = (way.framing, way.buffer.get());
    }

    /// Bytes that wait.
    #[must_use]
    pub fn waiting(&self, now: Timestamp) -> u64 {
        self.queue.backlog().bytes.get() + self.line.waiting(now)
    }

    /// Takes a train into a buffer of which this port may fill `limit` bytes.
    pub fn push_within(&mut self, now: Timestamp, train: T, limit: u64) {
        let ahead = self.line.waiting(now);
        let occupied = self.queue.backlog().bytes.get() + ahead;
        let free = (limit + self.passing(now, &train)).saturating_sub(occupied);
        self.queue.offer(now, train, Room { free, ahead });
        if self.line.is_idle() {
            self.begin_next();
        }
        self.peak = self.peak.max(self.waiting(now));
        self.peak_ever = self.peak_ever.max(self.peak);
    }

    /// Bytes of a train's first packets that never wait, because the line is free when they come.
    fn passing(&self, now: Timestamp, train: &T) -> u64 {
        if !self.line.is_idle() || self.queue.head().is_some() {
            return 0;
        }
        let sizes = train.sizes();
        let first = Timestamp::from_ns(now.as_ns().saturating_sub(train.spread().as_ns()));
        self.framing.frames_of(&sizes, self.line.started(&sizes, first, now))
    }

    fn begin_next(&mut self) {
        let Some(head) = self.queue.head() else { return };
        let first = Timestamp::from_ns(head.arrived.as_ns().saturating_sub(head.spread.as_ns()));
        let start = self.line.free_at().max(first);
        if let Some(train) = self.queue.take(start, |length| self.line.packet_time(length)) {
            self.line.begin(head.arrived, train);
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

    /// The most that waited since the peak was last forgotten.
    #[must_use]
    pub fn peak(&self, now: Timestamp) -> u64 {
        self.peak.max(self.waiting(now))
    }

    /// The most that ever waited.
    #[must_use]
    pub fn peak_ever(&self) -> u64 {
        self.peak_ever
    }

    /// Begins a new span of time for the peak.
    pub fn forget_peak(&mut self, now: Timestamp) {
        self.peak = self.waiting(now);
    }
}

impl<T: Train> Stage<T> for Port<T> {
    fn push(&mut self, now: Timestamp, train: T) {
        self.push_within(now, train, self.buffer);
    }

    fn pop(&mut self, now: Timestamp) -> Option<T> {
        let train = self.line.end(now)?;
        self.given.add(Count::of(&train, self.framing));
        let sizes = train.sizes();
        let wire = self.framing.wire_of(&sizes, sizes.packets);
        self.wire = Bytes::new(self.wire.get() + wire);
        self.begin_next();
        Some(train)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.line.deadline()
    }

    fn stats(&self) -> Stats {
        let queue = self.queue.stats();
        let mut held = queue.held;
        if let Some(train) = self.line.in_service() {
            held.add(Count::of(train, self.framing));
        }
        Stats { given: self.given, held, ..queue }
    }
}
