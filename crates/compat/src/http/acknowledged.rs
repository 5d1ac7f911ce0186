//! What of the bodies of a connection its peer's kernel has acknowledged, and how much may wait in front of the path.
//!
//! The kernel counts bytes of TCP, so the sender notes after each write how many bytes of bodies are among them.

use std::collections::VecDeque;

use linerate_model::Direction;
use linerate_model::flow::StreamCounts;
use linerate_units::Timestamp;

use super::body_totals::{BodyReading, BodySums};

/// Most marks of what was sent and not acknowledged.
const MAX_MARKS: usize = 4_096;

/// Least and most bytes that wait in this program for a connection, and half of those that wait in its socket: a message
/// of one byte waits behind them. The socket reports room when half of its bytes are sent, so the path stays busy for 5 ms
/// until this program has the CPU.
pub(super) const MIN_ROOM: usize = 2 << 10;
const MAX_ROOM: usize = 256 << 10;

/// The path needs a twentieth of the time between two readings for them, 5 ms.
const ROOM_SHARE: u64 = 20;

/// Least and most bytes of a part of a body: nothing else passes between them.
const MIN_PART: usize = 1 << 10;
const MAX_PART: usize = 16 << 10;

/// The end of what was passed to the kernel at once.
#[derive(Debug, Clone, Copy, Default)]
struct SentMark {
    /// Bytes of TCP since the connection came.
    encrypted: u64,
    /// Bytes of bodies among them.
    bodies: u64,
}

/// What was sent over a connection, and what of it was acknowledged.
#[derive(Debug, Default)]
pub(super) struct SentBodies {
    /// The marks up to the first that is acknowledged.
    marks: VecDeque<SentMark>,
    sent: SentMark,
    acknowledged: SentMark,
    /// What the kernel had counted as acknowledged before.
    before: Option<u64>,
}

impl SentBodies {
    /// Notes a write of this many bytes of TCP; `bodies` is the sum of the bytes of bodies in all writes so far.
    pub(super) fn wrote(&mut self, encrypted: u64, bodies: u64) {
        self.sent.encrypted += encrypted;
        self.sent.bodies = bodies;
        if self.marks.len() >= MAX_MARKS {
            // This write and the last one have one mark then.
            self.marks.pop_back();
        }
        self.marks.push_back(self.sent);
    }

    /// Bytes of TCP that were passed to the kernel.
    pub(super) fn sent(&self) -> u64 {
        self.sent.encrypted
    }

    /// Bytes of bodies that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.bodies
    }

    /// Takes the counts of the kernel. The first ones are those from before everything that was written.
    pub(super) fn counted(&mut self, counts: &StreamCounts) {
        let acknowledged = counts.connection.map(|connection| connection.bytes_acknowledged);
        let before = *self.before.get_or_insert(acknowledged.unwrap_or_default());
        if let Some(acknowledged) = acknowledged {
            self.acknowledge(acknowledged.saturating_sub(before));
        }
    }

    /// Notes that the peer's kernel has acknowledged this number of bytes.
    fn acknowledge(&mut self, encrypted: u64) {
        while let Some(mark) = self.marks.front().copied().filter(|mark| mark.encrypted <= encrypted) {
            self.acknowledged = mark;
            self.marks.pop_front();
        }
        // Of what was sent at once, bodies are everywhere the same part.
        if let Some(next) = self.marks.front() {
            let (from, length) = (self.acknowledged, next.encrypted - self.acknowledged.encrypted);
            let part = encrypted.saturating_sub(from.encrypted).min(length);
            let bodies = u128::from(next.bodies - from.bodies) * u128::from(part) / u128::from(length.max(1));
            let bodies = from.bodies + u64::try_from(bodies).unwrap_or(0);
            self.acknowledged = SentMark { encrypted: from.encrypted + part, bodies };
        }
    }
}

/// How many bytes may wait in front of the path.
#[derive(Debug)]
pub(super) struct SendRoom {
    room: usize,
    /// Whether the socket does not know it yet.
    is_resized: bool,
    /// The sum of what was sent at the last reading.
    sent_before: u64,
}

impl Default for SendRoom {
    fn default() -> Self {
        Self { room: MIN_ROOM, is_resized: true, sent_before: 0 }
    }
}

impl SendRoom {
    /// Notes that the time between two readings has passed, and what was sent until now: what may wait depends on the
    /// rate. Returns the room in this program.
    pub(super) fn resize(&mut self, sent: u64) -> usize {
        let share = (sent - self.sent_before) / ROOM_SHARE;
        self.sent_before = sent;
        let room = usize::try_from(share).unwrap_or(MAX_ROOM).clamp(MIN_ROOM, MAX_ROOM).next_power_of_two();
        self.is_resized |= room != self.room;
        self.room = room;
        room
    }

    /// Takes the new limit of what waits in the socket, bytes, if it has changed.
    pub(super) fn take(&mut self) -> Option<u64> {
        std::mem::take(&mut self.is_resized).then_some(2 * self.room as u64)
    }

    /// Bytes of a part of a body.
    pub(super) fn part(&self) -> usize {
        (self.room / 2).clamp(MIN_PART, MAX_PART)
    }
}

/// The payload of one direction of a connection, from its first body to the end of the last one.
#[derive(Debug)]
pub(super) struct LinkLoad {
    pub(super) direction: Direction,
    pub(super) bytes: u64,
    first_at: Timestamp,
    last_at: Timestamp,
    /// What had been acknowledged of the sent bodies before it.
    acknowledged_before: u64,
    /// What the kernel had counted on the connection before it; absent before the first reading.
    before: Option<StreamCounts>,
}

impl LinkLoad {
    /// It begins now, when this number of bytes of earlier bodies was acknowledged.
    pub(super) fn new(now: Timestamp, direction: Direction, acknowledged: u64) -> Self {
        let (first_at, last_at) = (now, now);
        Self { direction, bytes: 0, first_at, last_at, acknowledged_before: acknowledged, before: None }
    }

    /// Adds bytes that this end has read.
    pub(super) fn read(&mut self, now: Timestamp, bytes: u64) {
        self.bytes += bytes;
        self.last_at = now;
    }

    /// Takes the counts of the connection, and what the peer has acknowledged if this end sends.
    pub(super) fn counted(&mut self, now: Timestamp, counts: &StreamCounts, acknowledged: Option<u64>) {
        if self.before.is_none() {
            // What was in flight at its begin belongs to no load.
            self.acknowledged_before = acknowledged.unwrap_or(self.acknowledged_before);
            self.before = Some(*counts);
        }
        let bytes = acknowledged.map(|bytes| bytes.saturating_sub(self.acknowledged_before));
        if let Some(bytes) = bytes.filter(|bytes| *bytes > self.bytes) {
            (self.bytes, self.last_at) = (bytes, now);
        }
    }

    /// What is known of it, with the last counts of the connection and when they were read.
    pub(super) fn reading(&self, counts: &StreamCounts, counted_at: Timestamp) -> BodyReading {
        let before = self.before.unwrap_or(*counts);
        let retransmits = counts.retransmits.map(|now| now.saturating_sub(before.retransmits.unwrap_or(0)));
        let now = StreamCounts { retransmits, ..*counts };
        let transit = counted_at.max(self.first_at) - self.first_at;
        let sums = BodySums::new(self.bytes, transit, &before, &now);
        BodyReading { first_at: self.first_at, last_at: self.last_at, sums, rtt: counts.rtt }
    }
}
