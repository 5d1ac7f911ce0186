//! The end of a test over UDP: a sender sends a last datagram until the receiver has answered it with its counts.

use linerate_units::{Span, Timestamp};

use super::{Iperf2Direction, Iperf2DirectionState};
use crate::iperf2::counted::{server_report, tally};
use crate::iperf2::datagram::{self, Generation, ServerReport, last_number};
use crate::iperf2::output_queue::OutputQueue;
use crate::stand_in::{FlowCounts, Link, Output};

/// Interval between attempts to end a UDP test (2.1.8).
const RETRY_INTERVAL: Span = Span::from_ms(10);

/// How long a UDP receiver repeats its answer.
const ANSWER_TIME: Span = Span::from_secs(2);

/// Silence after which the answer need not be repeated.
const ANSWER_IDLE_TIMEOUT: Span = Span::from_ms(250);

impl Iperf2Direction {
    /// UDP sender: sends the last datagram of each connection.
    pub(super) fn ask(&mut self, queue: &mut OutputQueue, now: Timestamp) {
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
        if rows.len() > 1 || queue.settings.sum_only {
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

    pub(super) fn ask_again(&mut self, queue: &mut OutputQueue, now: Timestamp) {
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
    pub(super) fn answer_all(&mut self, queue: &mut OutputQueue, now: Timestamp, counts: &FlowCounts) {
        // The time ends with the arrival of the last datagram.
        let any_last = counts.marks.iter().any(Option::is_some);
        let end = counts.last_at.filter(|_| !any_last).unwrap_or(now);
        let mut generations = vec![self.load.generation; self.track.streams.len()];
        let marks: Vec<Vec<u8>> = (0..self.track.streams.len())
            .map(|at| counts.marks.get(at).cloned().flatten().unwrap_or_default())
            .collect();
        for (at, mark) in marks.iter().enumerate() {
            let last = last_number(mark, self.load.generation);
            if let (Some(stream), Some((number, sent_by))) = (self.track.streams.get_mut(at), last) {
                stream.last_number = Some(number);
                if let Some(generation) = generations.get_mut(at) {
                    *generation = sent_by;
                }
                // Versions that begin at 1 also count the last datagram; those that begin at 0 do not.
                if sent_by == Generation::New {
                    stream.own_bytes = stream.own_bytes.saturating_add(mark.len() as u64);
                    stream.own_datagrams = stream.own_datagrams.saturating_add(1);
                }
            }
        }
        self.show_last_interval(queue, now, end);
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

    /// Handles a datagram on a link that the engine does not use.
    pub(in super::super) fn datagram(
        &mut self,
        queue: &mut OutputQueue,
        now: Timestamp,
        link: Link,
        bytes: &[u8],
    ) {
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
            Iperf2DirectionState::Moving
            | Iperf2DirectionState::Piping
            | Iperf2DirectionState::Closing
            | Iperf2DirectionState::Counting(_)
            | Iperf2DirectionState::Over => {}
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
}
