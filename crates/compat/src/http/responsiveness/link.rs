//! A connection: its requests, and what is moved over it in each direction.

use std::collections::VecDeque;

use http::Response;
use linerate_model::Direction;
use linerate_model::flow::StreamCounts;
use linerate_units::Timestamp;

use super::super::body_totals::{BodyReading, BodySums};
use super::super::http2::Http2Connection;
use super::super::server::Ends;
use super::IDLE_TIMEOUT;
use super::transfer::{BodyStep, Http2Transfer};

/// Least and most bytes that wait in this program for a connection, and half of those that wait in its socket: a response
/// of one byte waits behind them. The socket reports room when half of its bytes are sent, so the path stays busy for 5 ms
/// until this program has the CPU.
const MIN_ROOM: usize = 2 << 10;
const MAX_ROOM: usize = 256 << 10;

/// The path needs a twentieth of the time between two readings for them, 5 ms.
const ROOM_SHARE: u64 = 20;

/// Most bytes that a peer may send before it reads what answers them.
const MAX_UNREAD: usize = 256 << 10;

/// Most marks of what was sent and not acknowledged.
const MAX_MARKS: usize = 4_096;

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

/// The payload of one direction, from the first body to the end of the last one.
#[derive(Debug)]
struct LinkLoad {
    direction: Direction,
    first_at: Timestamp,
    last_at: Timestamp,
    /// What had been acknowledged of the bodies of a download before it.
    acknowledged_before: u64,
    bytes: u64,
    /// What the kernel had counted on the connection before it; absent before the first reading.
    before: Option<StreamCounts>,
    /// Whether its last body is over, and it waits for its last counts.
    is_ending: bool,
}

/// A connection.
#[derive(Debug)]
pub(super) struct LoadedLink {
    pub(super) ends: Ends,
    pub(super) connection: Http2Connection,
    /// Number of the client whose bodies it carries.
    pub(super) client: Option<u16>,
    pub(super) transfers: Vec<Http2Transfer>,
    loads: Vec<LinkLoad>,
    /// Whether what was sent last is not in the socket yet.
    is_sending: bool,
    /// The marks up to the first that is acknowledged.
    marks: VecDeque<SentMark>,
    sent: SentMark,
    acknowledged: SentMark,
    /// What the kernel had counted as acknowledged when the connection came.
    handshake: Option<u64>,
    counts: StreamCounts,
    counted_at: Timestamp,
    /// The sum of what was sent at the last reading.
    sent_before: u64,
    room: usize,
    /// Whether the socket does not know the room yet.
    is_resized: bool,
    /// Payload since it was last asked for.
    moved: u64,
    /// Whether windows were opened.
    has_windows: bool,
    /// Whether its counts are wanted at once.
    is_changed: bool,
    is_closed: bool,
    idle_since: Timestamp,
}

impl LoadedLink {
    pub(super) fn new(now: Timestamp, ends: Ends) -> Self {
        Self {
            ends,
            connection: Http2Connection::new(MIN_ROOM),
            client: None,
            transfers: Vec::new(),
            loads: Vec::new(),
            is_sending: false,
            marks: VecDeque::new(),
            sent: SentMark::default(),
            acknowledged: SentMark::default(),
            handshake: None,
            counts: StreamCounts::default(),
            counted_at: now,
            sent_before: 0,
            room: MIN_ROOM,
            is_resized: true,
            moved: 0,
            has_windows: false,
            is_changed: false,
            is_closed: false,
            idle_since: now,
        }
    }

    /// Whether it carries payload, or waits for its last counts.
    pub(super) fn has_load(&self) -> bool {
        !self.loads.is_empty()
    }

    /// Whether nothing more will come of it, and everything was sent.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed || (self.connection.is_over() && !self.is_sending)
    }

    /// Adds bytes that have arrived.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        if !self.connection.is_over() {
            self.connection.queue.received(bytes);
        }
    }

    /// Whether the peer sends without reading.
    pub(super) fn is_flooded(&self) -> bool {
        self.connection.queue.unread() > MAX_UNREAD
    }

    /// It was asked for something.
    pub(super) fn asked(&mut self, now: Timestamp) {
        self.idle_since = now;
    }

    /// Whether it carries payload in this direction.
    pub(super) fn has_load_of(&self, direction: Direction) -> bool {
        self.loads.iter().any(|load| load.direction == direction)
    }

    /// The peer is gone.
    pub(super) fn closed(&mut self) {
        self.connection.queue.closed();
        self.is_closed = true;
        self.transfers.clear();
        self.end_idle_loads();
    }

    /// Ends it with all its bodies.
    pub(super) fn end(&mut self) {
        self.transfers.iter_mut().for_each(Http2Transfer::give_up);
        self.transfers.clear();
        self.connection.end();
        self.end_idle_loads();
    }

    /// What was sent last is in the socket.
    pub(super) fn sent(&mut self) {
        self.is_sending = false;
    }

    /// Begins the bodies that wait.
    pub(super) fn begin(&mut self, now: Timestamp, head: &Response<()>) {
        if !std::mem::replace(&mut self.has_windows, true) {
            self.connection.open_windows();
        }
        for transfer in self.transfers.iter_mut().filter(|transfer| !transfer.has_begun()) {
            transfer.begin(now, head);
            let direction = transfer.direction;
            match self.loads.iter_mut().find(|load| load.direction == direction) {
                Some(load) => load.is_ending = false,
                None => {
                    self.is_changed = true;
                    self.loads.push(LinkLoad {
                        direction,
                        first_at: now,
                        last_at: now,
                        acknowledged_before: self.acknowledged.bodies,
                        bytes: 0,
                        before: None,
                        is_ending: false,
                    });
                }
            }
        }
    }

    /// Moves what can be moved; true if there was anything.
    pub(super) fn move_bodies(&mut self, now: Timestamp) -> bool {
        let mut has_moved = false;
        let loads = &mut self.loads;
        let moved = &mut self.moved;
        let part = (self.room / 2).clamp(MIN_PART, MAX_PART);
        self.transfers.retain_mut(|transfer| match transfer.step(now, part) {
            BodyStep::Nothing => true,
            BodyStep::Moved(count) => {
                has_moved = true;
                *moved += count;
                let upload = loads.iter_mut().find(|load| load.direction == Direction::Upload);
                if let Some(load) = upload.filter(|_| transfer.direction == Direction::Upload) {
                    load.bytes += count;
                    load.last_at = now;
                }
                true
            }
            BodyStep::Over => {
                has_moved = true;
                false
            }
        });
        self.end_idle_loads();
        if has_moved || !self.transfers.is_empty() {
            self.idle_since = now;
        }
        has_moved
    }

    fn end_idle_loads(&mut self) {
        for load in &mut self.loads {
            let is_moving = self.transfers.iter().any(|transfer| transfer.direction == load.direction);
            if !is_moving && !std::mem::replace(&mut load.is_ending, true) {
                self.is_changed = true;
            }
        }
    }

    /// Takes what has to be sent, if the socket has taken what was before.
    pub(super) fn take_to_send(&mut self) -> Option<Vec<u8>> {
        if self.is_sending {
            return None;
        }
        let bytes = self.connection.queue.take()?;
        self.is_sending = true;
        self.sent.encrypted += self.ends.encryption.encrypted_bytes(bytes.len() as u64);
        self.sent.bodies = self.connection.queue.bodies_taken();
        if self.marks.len() >= MAX_MARKS {
            // This write and the last one have one mark then.
            self.marks.pop_back();
        }
        self.marks.push_back(self.sent);
        Some(bytes)
    }

    /// Whether its counts are wanted at once.
    pub(super) fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Takes the counts of the connection, and returns what was moved in the directions that have ended.
    pub(super) fn counted(
        &mut self,
        now: Timestamp,
        counts: Option<&StreamCounts>,
    ) -> Vec<(Direction, BodyReading)> {
        if let Some(counts) = counts {
            self.take_counts(now, counts);
        }
        let readings: Vec<_> = self.ended().collect();
        self.loads.retain(|load| !load.is_ending);
        readings
    }

    fn take_counts(&mut self, now: Timestamp, counts: &StreamCounts) {
        (self.counts, self.counted_at) = (*counts, now);
        let acknowledged = counts.connection.map(|connection| connection.bytes_acknowledged);
        let handshake = *self.handshake.get_or_insert(acknowledged.unwrap_or_default());
        if let Some(acknowledged) = acknowledged {
            self.acknowledge(acknowledged.saturating_sub(handshake));
        }
        for load in &mut self.loads {
            if load.before.is_none() {
                // What was in flight at its begin belongs to no load.
                load.acknowledged_before = self.acknowledged.bodies;
                load.before = Some(*counts);
            }
            if load.direction == Direction::Download {
                let bytes = self.acknowledged.bodies.saturating_sub(load.acknowledged_before);
                if bytes > load.bytes {
                    (load.bytes, load.last_at) = (bytes, now);
                }
            }
        }
    }

    /// Notes that the time between two readings has passed: what waits depends on the rate.
    pub(super) fn resize(&mut self) {
        let sent = (self.sent.encrypted - self.sent_before) / ROOM_SHARE;
        self.sent_before = self.sent.encrypted;
        let room = usize::try_from(sent).unwrap_or(MAX_ROOM).clamp(MIN_ROOM, MAX_ROOM).next_power_of_two();
        self.is_resized |= room != self.room;
        self.room = room;
        self.connection.queue.set_room(room);
    }

    /// Takes the new limit of what waits in the socket, bytes, if it has changed.
    pub(super) fn take_room(&mut self) -> Option<u64> {
        std::mem::take(&mut self.is_resized).then_some(2 * self.room as u64)
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

    /// What is known of each direction.
    pub(super) fn readings(&self) -> impl Iterator<Item = (Direction, BodyReading)> {
        self.loads.iter().map(|load| (load.direction, self.reading(load)))
    }

    fn ended(&self) -> impl Iterator<Item = (Direction, BodyReading)> {
        self.loads.iter().filter(|load| load.is_ending).map(|load| (load.direction, self.reading(load)))
    }

    fn reading(&self, load: &LinkLoad) -> BodyReading {
        let before = load.before.unwrap_or(self.counts);
        let now = StreamCounts {
            retransmits: self
                .counts
                .retransmits
                .map(|now| now.saturating_sub(before.retransmits.unwrap_or(0))),
            ..self.counts
        };
        let transit = self.counted_at.max(load.first_at) - load.first_at;
        let sums = BodySums::new(load.bytes, transit, &before, &now);
        BodyReading { first_at: load.first_at, last_at: load.last_at, sums, rtt: self.counts.rtt }
    }

    /// Takes the payload that was moved since the last call.
    pub(super) fn take_moved(&mut self) -> u64 {
        std::mem::take(&mut self.moved)
    }

    /// When it has to be looked at.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let stalled = self.transfers.iter().filter_map(Http2Transfer::deadline).min();
        let idle = (self.transfers.is_empty() && !self.is_closed).then(|| self.idle_since + IDLE_TIMEOUT);
        stalled.or(idle)
    }

    /// Gives up what has stalled, and ends the connection if it is idle; true if it did.
    pub(super) fn expire(&mut self, now: Timestamp) -> bool {
        if self.deadline().is_none_or(|at| at > now) {
            return false;
        }
        if self.transfers.is_empty() {
            self.connection.end();
            // A peer that does not answer is not waited for.
            self.is_closed = true;
        }
        for transfer in &mut self.transfers {
            if transfer.deadline().is_some_and(|at| at <= now) {
                transfer.give_up();
            }
        }
        self.transfers.retain(|transfer| transfer.deadline().is_none_or(|at| at > now));
        self.idle_since = now;
        self.end_idle_loads();
        true
    }
}
