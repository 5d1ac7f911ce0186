//! One direction of a test from start to end: intervals, the amount, the close over TCP, and the last datagram
//! and its answer over UDP. Both roles use it: a sender behaves the same at either end.

use linerate_units::{Span, Timestamp};

use super::counted::{server_report, tally};
use super::datagram::{self, Generation, ServerReport, last_number, number_of};
use super::load::{Iperf2Load, rest_of, task};
use super::output_queue::OutputQueue;
use super::settings::Iperf2Amount;
use super::track::{Iperf2Meter, Iperf2Stream};
use crate::stand_in::{FlowCounts, Link, Output, Stop, SystemError};

/// Interval between attempts to end a UDP test (2.1.8).
const RETRY_INTERVAL: Span = Span::from_ms(10);

/// Number of attempts to end a UDP test (2.1.8: two seconds).
const MAX_TRIES: u32 = 200;

/// How long a UDP receiver repeats its answer.
const ANSWER_TIME: Span = Span::from_secs(2);

/// Silence after which the answer need not be repeated.
const ANSWER_IDLE_TIMEOUT: Span = Span::from_ms(250);

/// Shortest wait of a sender for the receiver's close.
const CLOSE_WAIT: Span = Span::from_secs(2);

/// Idle timeout after which the peer counts as dead, over TCP and over UDP.
const IDLE: [Span; 2] = [Span::from_secs(60), Span::from_secs(5)];

/// How often a flow is polled if there are no intervals.
const POLL_INTERVAL: Span = Span::from_secs(1);

/// Longest delay between a connection and its data that counts as part of the test.
const QUEUED: Span = Span::from_ms(500);

/// The state of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf2DirectionState {
    /// The engine transfers data.
    Moving,
    /// Everything is written, but the other end has not closed yet.
    Closing,
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
        let mut half = Self::new(now, load, streams);
        half.due = Some(now + queue.settings.interval.unwrap_or(POLL_INTERVAL));
        half
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
        let mut half = Self::new(now, load, streams);
        half.has_begun(queue, began);
        half.finish(queue, now, now);
        half
    }

    /// Moves the start to that of the connection, which is a little earlier than the engine's, unless the test
    /// had to wait.
    pub(super) fn has_begun(&mut self, queue: &OutputQueue, at: Timestamp) {
        if self.track.started_at.since(at) <= QUEUED {
            self.due = self.due.map(|_| at + queue.settings.interval.unwrap_or(POLL_INTERVAL));
            self.track.started_at = at;
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
            _ => self.phase = Iperf2DirectionState::Over,
        }
    }

    /// Handles the counts that were requested at a tick.
    pub(super) fn counts(&mut self, queue: &mut OutputQueue, now: Timestamp, flows: &[FlowCounts]) {
        let own = flows.iter().find(|counts| counts.flow == self.load.flow);
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
        self.show_interval(queue, now, now);
        if now.since(self.alive.0) >= IDLE[usize::from(self.load.udp)] && !self.cut {
            self.cut = true;
            self.trouble =
                Some("no data was sent or received for too long: the other end has disappeared".to_owned());
            let how = if self.load.sends { Stop::Abort } else { Stop::AtOnce };
            queue.put(Output::Stop { flow: self.load.flow, how });
        }
    }

    /// Prints the interval that is complete at `end`: a late poll must not print one that has just begun.
    fn show_interval(&mut self, queue: &mut OutputQueue, now: Timestamp, end: Timestamp) {
        let Some(interval) = queue.settings.interval else { return };
        let until = self.track.shown_until + interval;
        if end.since(self.track.started_at) >= until {
            let rows = self.track.interval(until);
            let kind = queue.report.kind(self.load.udp, self.load.sends, self.load.trip_times);
            let text = queue.report.rows(now, kind, &rows, &self.track.ends());
            queue.print(text);
        }
    }

    /// Handles the end of the flow; the links belong to the stand-in again.
    pub(super) fn ended(&mut self, queue: &mut OutputQueue, now: Timestamp, counts: &FlowCounts) {
        if self.phase != Iperf2DirectionState::Moving {
            return;
        }
        self.track.note_transit(counts);
        self.track.counts = counts.clone();
        self.show_interval(queue, now, now);
        // A datagram refused by the other host does not end a test of this tool.
        if let (None, Some(reason)) = (&self.trouble, counts.trouble.as_ref().filter(|_| !self.load.udp)) {
            self.trouble = Some(reason.text.clone());
        }
        queue.put(Output::Forget { flow: self.load.flow });
        match (self.load.udp, self.load.sends) {
            (false, true) => self.close(queue, now),
            (true, true) => self.ask(queue, now),
            (false, false) => {
                // The time ends with the connection, unless it broke or was cut.
                let regular = self.trouble.is_none() && !self.cut;
                let end = counts.last_at.filter(|_| !regular).unwrap_or(now);
                self.finish(queue, now, end);
            }
            (true, false) => self.answer_all(queue, now, counts),
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
        let rest = rest_of(&self.load, self.track.streams.len(), own_head(&self.track));
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
        let wait = match self.load.amount {
            Some(Iperf2Amount::Time(time)) => time.max(CLOSE_WAIT),
            _ => CLOSE_WAIT.saturating_mul(5),
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
        if self.phase == Iperf2DirectionState::Closing && self.done.iter().all(|done| *done) {
            self.finish(queue, now, now);
        }
    }

    /// UDP sender: sends the last datagram of each connection.
    fn ask(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        for at in 0..self.track.streams.len() {
            let length = u64::from(self.load.length);
            if let Some(stream) = self.track.streams.get_mut(at) {
                stream.own_bytes = stream.own_bytes.saturating_add(length);
                stream.own_datagrams = stream.own_datagrams.saturating_add(1);
            }
        }
        let rows = self.track.whole(now);
        let kind = queue.report.kind(true, true, self.load.trip_times);
        let text = queue.report.rows(now, kind, &rows, &self.track.ends());
        queue.print(text);
        for row in &rows {
            let text = queue.report.sent(row.id, rows.len(), row.total.saturating_add(1));
            queue.print(text);
        }
        if rows.len() > 1 {
            let all = rows.iter().map(|row| row.total.saturating_add(1)).fold(0, u64::saturating_add);
            let text = queue.report.sent(None, rows.len(), all);
            queue.print(text);
        }
        self.phase = Iperf2DirectionState::Asking;
        self.ask_again(queue, now);
        if !self.load.answers || self.cut {
            self.phase = Iperf2DirectionState::Over;
            self.due = None;
        }
    }

    fn ask_again(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        // If there will be no answer, it is sent three times at once.
        let copies = if self.load.answers { 1 } else { 3 };
        let wall = queue.settings.wall(now);
        for (at, stream) in self.track.streams.iter().enumerate() {
            if self.done.get(at).is_some_and(|done| *done) {
                continue;
            }
            let sent = self.track.counts.streams.get(at).map_or(0, |counts| counts.packets);
            let number = i64::try_from(sent.saturating_add(1 + u64::from(self.tries))).unwrap_or(i64::MAX);
            let bytes = datagram::last(&self.load.head, self.load.length as usize, -number, wall);
            for _ in 0..copies {
                queue.put(Output::Send { link: stream.link, bytes: bytes.clone() });
            }
        }
        self.tries += 1;
        self.due = Some(now + RETRY_INTERVAL);
    }

    /// UDP receiver: sends its counts to each sender.
    fn answer_all(&mut self, queue: &mut OutputQueue, now: Timestamp, counts: &FlowCounts) {
        // The time ends with the arrival of the last datagram.
        let told = counts.marks.iter().any(Option::is_some);
        let end = counts.last_at.filter(|_| !told).unwrap_or(now);
        let mut generations = vec![self.load.generation; self.track.streams.len()];
        let marks: Vec<Vec<u8>> = (0..self.track.streams.len())
            .map(|at| counts.marks.get(at).cloned().flatten().unwrap_or_default())
            .collect();
        for (at, mark) in marks.iter().enumerate() {
            let last = last_number(mark, self.load.generation);
            if let (Some(stream), Some((number, told))) = (self.track.streams.get_mut(at), last) {
                stream.last_number = Some(number);
                if let Some(generation) = generations.get_mut(at) {
                    *generation = told;
                }
                // Versions that begin at 1 also count the last datagram; those that begin at 0 do not.
                if told == Generation::New {
                    stream.own_bytes = stream.own_bytes.saturating_add(mark.len() as u64);
                    stream.own_datagrams = stream.own_datagrams.saturating_add(1);
                }
            }
        }
        let rows = self.track.whole(end);
        let kind = queue.report.kind(true, false, self.load.trip_times);
        let text = queue.report.rows(now, kind, &rows, &self.track.ends());
        queue.print(text);
        if !self.load.answers || self.cut {
            self.phase = Iperf2DirectionState::Over;
            self.due = None;
            return;
        }
        for (((row, mark), generation), at) in rows.iter().zip(&marks).zip(generations).zip(0..) {
            let report = server_report(row);
            let link = self.track.streams.get(at).map(|stream| stream.link);
            if let (Some(kept), Some(room)) = (self.answers.get_mut(at), self.unanswered.get_mut(at)) {
                (*kept, *room) = (report.encode(generation, mark), report.bytes);
            }
            if let Some(link) = link {
                self.answer(queue, at, link);
            }
        }
        self.phase = Iperf2DirectionState::Answering;
        self.until = now + ANSWER_TIME;
        self.due = Some(now + ANSWER_IDLE_TIMEOUT);
    }

    /// Answers a last datagram. A public server never sends more bytes than it received from an address,
    /// because that may be forged; a truncated report still acknowledges the last datagram.
    fn answer(&mut self, queue: &mut OutputQueue, at: usize, link: Link) {
        let (Some(answer), Some(room)) = (self.answers.get(at), self.unanswered.get_mut(at)) else { return };
        let room_for = if queue.settings.among_strangers { *room } else { u64::MAX };
        let most = usize::try_from(room_for).unwrap_or(usize::MAX).min(answer.len());
        if let Some(bytes) = answer.get(..most).filter(|bytes| !bytes.is_empty()) {
            *room = room.saturating_sub(bytes.len() as u64);
            queue.put(Output::Send { link, bytes: bytes.to_vec() });
        }
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

    /// Handles a datagram on a link that the engine does not use.
    pub(super) fn datagram(&mut self, queue: &mut OutputQueue, now: Timestamp, link: Link, bytes: &[u8]) {
        let Some(at) = self.stream_of(link) else { return };
        match self.phase {
            Iperf2DirectionState::Asking => self.answered(queue, at, bytes),
            Iperf2DirectionState::Answering => {
                if self.answers.get(at).is_some_and(|answer| !answer.is_empty()) {
                    if let Some(room) = self.unanswered.get_mut(at) {
                        *room = room.saturating_add(bytes.len() as u64);
                    }
                    self.answer(queue, at, link);
                    self.due = Some((now + ANSWER_IDLE_TIMEOUT).min(self.until));
                }
            }
            Iperf2DirectionState::Moving | Iperf2DirectionState::Closing | Iperf2DirectionState::Over => {}
        }
    }

    /// Handles the answer of the other end, with or without counts.
    fn answered(&mut self, queue: &mut OutputQueue, at: usize, bytes: &[u8]) {
        let Some(done) = self.done.get_mut(at).filter(|done| !**done) else { return };
        *done = true;
        if let (Some(report), Some(stream)) = (ServerReport::decode(bytes), self.track.streams.get(at)) {
            let text = queue.report.server_report(stream.id, &report);
            queue.print(text);
            if self.track.streams.len() == 1 {
                let tally = Box::new(tally(&report));
                queue.put(Output::PeerCounted { flow: self.load.flow, tally });
            }
        }
        if self.done.iter().all(|done| *done) {
            self.phase = Iperf2DirectionState::Over;
            self.due = None;
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
            Iperf2DirectionState::Closing => self.finish(queue, now, now),
            Iperf2DirectionState::Asking if self.tries < MAX_TRIES => self.ask_again(queue, now),
            Iperf2DirectionState::Asking => {
                let text = "did not receive ack of last datagram after 10 tries.";
                for (stream, done) in self.track.streams.iter().zip(&self.done) {
                    if !done {
                        queue
                            .outputs
                            .push_back(Output::Complain(format!("[{:>3}] WARNING: {text}\n", stream.id)));
                    }
                }
                self.trouble = Some(text.to_owned());
                self.phase = Iperf2DirectionState::Over;
                self.due = None;
            }
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
        if let Some(trouble) = &self.trouble {
            let what = if self.load.sends { "write" } else { "read" };
            let text = format!("{what} failed: {trouble}\n");
            queue.print_error(text);
        }
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
