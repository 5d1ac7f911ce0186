//! A connection: its requests, and what is moved over it in each direction.

use http::Response;
use linerate_model::Direction;
use linerate_model::flow::StreamCounts;
use linerate_units::Timestamp;

use super::super::acknowledged::{LinkLoad, MIN_ROOM, SendRoom, SentBodies};
use super::super::body_totals::BodyReading;
use super::super::http2::Http2Connection;
use super::super::server::Ends;
use super::IDLE_TIMEOUT;
use super::transfer::{BodyStep, Http2Transfer};

/// Most bytes that a peer may send before it reads what answers them.
const MAX_UNREAD: usize = 256 << 10;

/// The payload of one direction.
#[derive(Debug)]
struct ClosingLoad {
    load: LinkLoad,
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
    loads: Vec<ClosingLoad>,
    /// Whether what was sent last is not in the socket yet.
    is_sending: bool,
    sent: SentBodies,
    counts: StreamCounts,
    counted_at: Timestamp,
    room: SendRoom,
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
            sent: SentBodies::default(),
            counts: StreamCounts::default(),
            counted_at: now,
            room: SendRoom::default(),
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
        self.loads.iter().any(|of| of.load.direction == direction)
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
            match self.loads.iter_mut().find(|of| of.load.direction == direction) {
                Some(of) => of.is_ending = false,
                None => {
                    self.is_changed = true;
                    let load = LinkLoad::new(now, direction, self.sent.acknowledged());
                    self.loads.push(ClosingLoad { load, is_ending: false });
                }
            }
        }
    }

    /// Moves what can be moved; true if there was anything.
    pub(super) fn move_bodies(&mut self, now: Timestamp) -> bool {
        let mut has_moved = false;
        let loads = &mut self.loads;
        let moved = &mut self.moved;
        let part = self.room.part();
        self.transfers.retain_mut(|transfer| match transfer.step(now, part) {
            BodyStep::Nothing => true,
            BodyStep::Moved(count) => {
                has_moved = true;
                *moved += count;
                let upload = loads.iter_mut().find(|of| of.load.direction == Direction::Upload);
                if let Some(of) = upload.filter(|_| transfer.direction == Direction::Upload) {
                    of.load.read(now, count);
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
        for of in &mut self.loads {
            let is_moving = self.transfers.iter().any(|transfer| transfer.direction == of.load.direction);
            if !is_moving && !std::mem::replace(&mut of.is_ending, true) {
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
        let encrypted = self.ends.encryption.encrypted_bytes(bytes.len() as u64);
        self.sent.wrote(encrypted, self.connection.queue.bodies_taken());
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
        self.loads.retain(|of| !of.is_ending);
        readings
    }

    fn take_counts(&mut self, now: Timestamp, counts: &StreamCounts) {
        (self.counts, self.counted_at) = (*counts, now);
        self.sent.counted(counts);
        let acknowledged = self.sent.acknowledged();
        for ClosingLoad { load, .. } in &mut self.loads {
            load.counted(now, counts, (load.direction == Direction::Download).then_some(acknowledged));
        }
    }

    /// Notes that the time between two readings has passed.
    pub(super) fn resize(&mut self) {
        self.connection.queue.set_room(self.room.resize(self.sent.sent()));
    }

    /// Takes the new limit of what waits in the socket, bytes, if it has changed.
    pub(super) fn take_room(&mut self) -> Option<u64> {
        self.room.take()
    }

    /// What is known of each direction.
    pub(super) fn readings(&self) -> impl Iterator<Item = (Direction, BodyReading)> {
        self.loads.iter().map(|of| (of.load.direction, self.reading(of)))
    }

    fn ended(&self) -> impl Iterator<Item = (Direction, BodyReading)> {
        self.loads.iter().filter(|of| of.is_ending).map(|of| (of.load.direction, self.reading(of)))
    }

    fn reading(&self, of: &ClosingLoad) -> BodyReading {
        of.load.reading(&self.counts, self.counted_at)
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
