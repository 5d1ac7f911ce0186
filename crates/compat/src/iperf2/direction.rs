//! One direction of a test from start to end: intervals, the amount, the close over TCP, and the last datagram
//! and its answer over UDP. Both roles use it: a sender behaves the same at either end.

mod input;
mod last_datagram;

use linerate_units::{Span, Timestamp};

use super::datagram::number_of;
use super::load::{Iperf2Load, rest_of, task};
use super::output_queue::OutputQueue;
use super::settings::Iperf2Amount;
use super::track::{Iperf2Meter, Iperf2Stream};
use crate::stand_in::{FlowCounts, Link, Output, Stop, SystemError};

/// Number of attempts to end a UDP test (2.1.8: two seconds).
const MAX_TRIES: u32 = 200;

/// Shortest wait of a sender for the receiver's close.
const CLOSE_WAIT: Span = Span::from_secs(2);

/// Idle timeout after which the peer counts as dead. A path may be interrupted for a shorter time, and a slow sender of
/// datagrams may pause.
const IDLE: Span = Span::from_secs(60);

/// The same over UDP at a server that is for others too: a client that has vanished, or never existed because its address
/// was forged, closes no connection. Longer than the pause of the slowest usual sender (-b 1k).
const SHARED_UDP_IDLE: Span = Span::from_secs(15);

/// How often a flow is polled if there are no intervals.
const POLL_INTERVAL: Span = Span::from_secs(1);

/// Longest delay between a connection and its flow that counts as part of the test: longer than the time for which
/// a server waits for further connections.
const QUEUED: Span = Span::from_secs(1);

/// The state of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf2DirectionState {
    /// The engine transfers data.
    Moving,
    /// The stand-in itself sends what it reads.
    Piping,
    /// Everything is written, but the other end has not closed yet.
    Closing,
    /// The connections are over since this time; the kernel's last counts were requested.
    Counting(Timestamp),
    /// Waiting for the answer to the last datagram.
    Asking,
    /// The last datagram was answered, but may be repeated.
    Answering,
    Over,
}

/// One direction of a test.
#[derive(Debug)]
pub(super) struct Iperf2Direction {
    pub(super) load: Iperf2Load,
    pub(super) track: Iperf2Meter,
    pub(super) trouble: Option<String>,
    phase: Iperf2DirectionState,
    pub(super) due: Option<Timestamp>,
    until: Timestamp,
    /// Whether counts were requested.
    looking: bool,
    cut: bool,
    alive: (Timestamp, u64),
    tries: u32,
    /// Connections that have ended: closed, or the last datagram answered.
    done: Vec<bool>,
    answers: Vec<Vec<u8>>,
    /// Bytes received from each datagram sender, minus those sent to it.
    unanswered: Vec<u64>,
}

impl Iperf2Direction {
    /// Starts a flow on the links.
    pub(super) fn start(
        queue: &mut OutputQueue,
        now: Timestamp,
        load: Iperf2Load,
        streams: Vec<Iperf2Stream>,
    ) -> Self {
        let task = task(queue, &load, &streams);
        queue.put(Output::Start(Box::new(task)));
        let mut direction = Self::new(now, load, streams);
        direction.due = Some(now + queue.settings.interval.unwrap_or(POLL_INTERVAL));
        direction
    }

    fn new(now: Timestamp, load: Iperf2Load, streams: Vec<Iperf2Stream>) -> Self {
        let track = Iperf2Meter {
            sends: load.sends,
            star: load.star,
            started_at: now,
            shown_until: Span::ZERO,
            counts: FlowCounts::default(),
            streams,
            udp: load.udp,
        };
        Self {
            done: vec![false; track.streams.len()],
            answers: vec![Vec::new(); track.streams.len()],
            unanswered: vec![0; track.streams.len()],
            due: None,
            until: now,
            alive: (now, 0),
            trouble: None,
            phase: Iperf2DirectionState::Moving,
            looking: false,
            cut: false,
            tries: 0,
            load,
            track,
        }
    }

    /// All data arrived before the engine could use the links.
    pub(super) fn completed_before_engine(
        queue: &mut OutputQueue,
        now: Timestamp,
        began: Timestamp,
        load: Iperf2Load,
        streams: Vec<Iperf2Stream>,
    ) -> Self {
        let mut direction = Self::new(now, load, streams);
        direction.has_begun(queue, began);
        direction.finish(queue, now, now);
        direction
    }

    /// Moves the start to that of the connection, which is a little earlier than the engine's, unless the test
    /// had to wait.
    pub(super) fn has_begun(&mut self, queue: &OutputQueue, at: Timestamp) {
        if self.track.started_at.since(at) <= QUEUED {
            self.due = self.due.map(|_| at + queue.settings.interval.unwrap_or(POLL_INTERVAL));
            self.track.started_at = at;
            self.alive.0 = self.alive.0.max(at);
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Iperf2DirectionState::Over
    }

    /// Whether nothing is left except repeating the answer to the last datagram.
    pub(super) fn is_measured(&self) -> bool {
        matches!(self.phase, Iperf2DirectionState::Answering | Iperf2DirectionState::Over)
    }

    fn stream_of(&self, link: Link) -> Option<usize> {
        self.track.streams.iter().position(|stream| stream.link == link)
    }

    /// The engine has sent everything that the limit allows.
    pub(super) fn written(&self, queue: &mut OutputQueue) {
        // On connections with another direction, the engine only closes the writing side.
        let how = if self.load.shared && !self.load.udp { Stop::Regularly } else { Stop::AtOnce };
        queue.put(Output::Stop { flow: self.load.flow, how });
    }

    pub(super) fn stop(&mut self, queue: &mut OutputQueue) {
        self.cut = true;
        match self.phase {
            Iperf2DirectionState::Moving => {
                queue.put(Output::Stop { flow: self.load.flow, how: Stop::AtOnce })
            }
            Iperf2DirectionState::Piping => {
                let end = self.track.counts.last_at.unwrap_or(self.track.started_at);
                self.finish(queue, end, end);
            }
            _ => self.phase = Iperf2DirectionState::Over,
        }
    }

    /// Handles the counts that were requested at a tick.
    pub(super) fn counts(&mut self, queue: &mut OutputQueue, now: Timestamp, flows: &[FlowCounts]) {
        let own = flows.iter().find(|counts| counts.flow == self.load.flow);
        if let Iperf2DirectionState::Counting(end) = self.phase {
            if let Some(counts) = own {
                self.track.counts = counts.clone();
            }
            return self.finish(queue, now, end);
        }
        if let Some(counts) = own.filter(|_| self.phase == Iperf2DirectionState::Moving) {
            self.track.note_transit(counts);
        }
        if !std::mem::replace(&mut self.looking, false) || self.phase != Iperf2DirectionState::Moving {
            return;
        }
        let Some(counts) = own else { return };
        self.track.counts = counts.clone();
        let moved = self.track.moved();
        if moved != self.alive.1 {
            self.alive = (now, moved);
        }
        self.show_intervals(queue, now);
        let is_shared_udp = queue.settings.among_strangers && self.load.udp;
        let idle = if is_shared_udp { SHARED_UDP_IDLE } else { IDLE };
        if now.since(self.alive.0) >= idle + self.load.gap() && !self.cut {
            self.cut = true;
            self.trouble =
                Some("no data was sent or received for too long: the other end has disappeared".to_owned());
            let how = if self.load.sends { Stop::Abort } else { Stop::AtOnce };
            queue.put(Output::Stop { flow: self.load.flow, how });
        }
    }

    /// Prints the intervals that are complete. One line is about all of them if a busy machine has delayed the
    /// counts by a whole interval, because nobody knows where its bytes belong.
    fn show_intervals(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        let Some(interval) = queue.settings.interval.map(Span::as_ns).filter(|interval| *interval > 0) else {
            return;
        };
        let passed = now.since(self.track.started_at).as_ns() / interval * interval;
        if passed > self.track.shown_until.as_ns() {
            self.show_until(queue, now, Span::from_ns(passed));
        }
    }

    /// At the end, prints the interval that is not complete if anything was moved in it. As in the tool, a sender
    /// of datagrams prints none, and a test over TCP none if it is the only one.
    fn show_last_interval(&mut self, queue: &mut OutputQueue, now: Timestamp, end: Timestamp) {
        let until = end.since(self.track.first_at());
        let begun = queue.settings.interval.is_some() && until > self.track.shown_until;
        let printed = if self.load.udp { !self.load.sends } else { self.track.shown_until > Span::ZERO };
        if begun && printed && self.track.has_moved() {
            self.show_until(queue, now, until);
        }
    }

    fn show_until(&mut self, queue: &mut OutputQueue, now: Timestamp, until: Span) {
        let rows = self.track.interval(until);
        let kind = queue.report.kind(self.load.udp, self.load.sends, self.load.trip_times);
        let text = queue.report.rows(now, kind, &rows, &self.track.ends());
        queue.print(text);
    }

    /// Handles the end of the flow; the links belong to the stand-in again.
    pub(super) fn ended(&mut self, queue: &mut OutputQueue, now: Timestamp, counts: &FlowCounts) {
        if self.phase != Iperf2DirectionState::Moving {
            return;
        }
        self.track.note_transit(counts);
        self.track.counts = counts.clone();
        self.show_intervals(queue, now);
        // A datagram refused by the other host does not end a test of this tool.
        if let (None, Some(reason)) = (&self.trouble, counts.trouble.as_ref().filter(|_| !self.load.udp)) {
            self.trouble = Some(reason.text.clone());
        }
        match (self.load.udp, self.load.sends) {
            (false, true) => self.close(queue, now),
            (true, true) => {
                queue.put(Output::Forget { flow: self.load.flow });
                self.ask(queue, now);
            }
            (false, false) => {
                // The time ends with the connection, unless it broke or was cut.
                let regular = self.trouble.is_none() && !self.cut;
                let end = counts.last_at.filter(|_| !regular).unwrap_or(now);
                self.finish(queue, now, end);
            }
            (true, false) => {
                queue.put(Output::Forget { flow: self.load.flow });
                self.answer_all(queue, now, counts);
            }
        }
    }

    pub(super) fn not_started(&mut self, reason: &SystemError) {
        self.trouble = Some(reason.text.clone());
        self.phase = Iperf2DirectionState::Over;
        self.due = None;
    }

    /// TCP sender: sends the last partial buffer and closes the writing side.
    fn close(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        if self.trouble.is_some() || self.cut {
            let end = self.track.counts.last_at.unwrap_or(now);
            self.finish(queue, now, end);
            return;
        }
        let cut = rest_of(&self.load, self.track.streams.len(), own_head(&self.track));
        let rest = if self.is_piping() { 0 } else { cut };
        if !self.load.shared {
            for stream in self.track.streams.iter_mut().filter(|_| rest > 0) {
                let bytes = (0..rest).map(|at| b'0' + (at % 10) as u8).collect();
                stream.own_bytes = stream.own_bytes.saturating_add(rest);
                queue.put(Output::Send { link: stream.link, bytes });
            }
            for stream in &self.track.streams {
                queue.put(Output::FinishWriting { link: stream.link });
            }
        }
        let wait = match self.load.amount.and_then(Iperf2Amount::limited_time) {
            Some(time) => time.max(CLOSE_WAIT),
            None => CLOSE_WAIT.saturating_mul(5),
        };
        self.phase = Iperf2DirectionState::Closing;
        self.due = Some(now + wait);
        if self.load.shared {
            // The other direction handles the close.
            let end = self.track.counts.last_at.unwrap_or(now);
            self.finish(queue, now, end);
        }
    }

    /// Handles a connection that the other end has closed.
    pub(super) fn closed(
        &mut self,
        queue: &mut OutputQueue,
        now: Timestamp,
        link: Link,
        reason: Option<&SystemError>,
    ) {
        let Some(at) = self.stream_of(link) else { return };
        if let Some(reason) = reason
            .filter(|_| matches!(self.phase, Iperf2DirectionState::Closing | Iperf2DirectionState::Asking))
        {
            queue.print_error(format!("read failed: {}\n", reason.text));
        }
        if self.load.udp {
            return;
        }
        if let Some(done) = self.done.get_mut(at) {
            *done = true;
        }
        if self.is_piping() {
            self.trouble =
                Some(reason.map_or_else(|| "Broken pipe".to_owned(), |reason| reason.text.clone()));
            self.finish(queue, now, now);
        }
        if self.phase == Iperf2DirectionState::Closing && self.done.iter().all(|done| *done) {
            self.count(queue, now);
        }
    }

    /// TCP sender: the connections are over. The kernel has retransmitted until now.
    fn count(&mut self, queue: &mut OutputQueue, end: Timestamp) {
        self.phase = Iperf2DirectionState::Counting(end);
        self.due = None;
        queue.put(Output::Look);
    }

    /// Handles a datagram that reached the listener before its own socket existed.
    pub(super) fn late_datagram(&mut self, link: Link, bytes: &[u8]) {
        let generation = self.load.generation;
        let number = number_of(bytes, generation).filter(|number| *number >= 0);
        let receiving = self.phase == Iperf2DirectionState::Moving && !self.load.sends;
        let stream = self.track.streams.iter_mut().find(|stream| stream.link == link);
        if let (true, Some(number), Some(stream)) = (receiving, number, stream) {
            stream.add_datagram(bytes.len(), number, generation);
        }
    }

    pub(super) fn tick(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        match self.phase {
            Iperf2DirectionState::Moving => {
                let step = queue.settings.interval.unwrap_or(POLL_INTERVAL);
                let mut due = self.due.unwrap_or(now);
                while due <= now {
                    due = due + step;
                }
                self.due = Some(due);
                self.looking = true;
                queue.put(Output::Look);
            }
            Iperf2DirectionState::Closing => self.count(queue, now),
            Iperf2DirectionState::Asking if self.tries < MAX_TRIES => self.ask_again(queue, now),
            Iperf2DirectionState::Asking => {
                let text = "did not receive ack of last datagram after 10 tries.";
                for (stream, done) in self.track.streams.iter().zip(&self.done) {
                    if !done {
                        queue
                            .outputs
                            .push_back(Output::PrintError(format!("[{:>3}] WARNING: {text}\n", stream.id)));
                    }
                }
                self.trouble = Some(text.to_owned());
                self.phase = Iperf2DirectionState::Over;
                self.due = None;
            }
            Iperf2DirectionState::Piping => {
                self.show_intervals(queue, now);
                let step = queue.settings.interval.unwrap_or(POLL_INTERVAL);
                self.due = Some(self.track.started_at + self.track.shown_until + step);
            }
            Iperf2DirectionState::Counting(_) => {}
            Iperf2DirectionState::Answering | Iperf2DirectionState::Over => {
                self.phase = Iperf2DirectionState::Over;
                self.due = None;
            }
        }
    }

    /// Prints the last lines.
    fn finish(&mut self, queue: &mut OutputQueue, now: Timestamp, end: Timestamp) {
        self.phase = Iperf2DirectionState::Over;
        self.due = None;
        queue.put(Output::Forget { flow: self.load.flow });
        if let Some(trouble) = &self.trouble {
            let what = if self.load.sends { "write" } else { "read" };
            let text = format!("{what} failed: {trouble}\n");
            queue.print_error(text);
        }
        self.show_last_interval(queue, now, end);
        let rows = self.track.whole(end);
        let kind = queue.report.kind(self.load.udp, self.load.sends, self.load.trip_times);
        let text = queue.report.rows(now, kind, &rows, &self.track.ends());
        queue.print(text);
    }
}

/// Bytes of headers that were sent before the engine started.
fn own_head(track: &Iperf2Meter) -> u64 {
    track.streams.iter().map(|stream| stream.own_bytes).sum()
}
