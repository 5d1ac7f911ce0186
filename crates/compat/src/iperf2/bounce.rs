//! Bounce-back tests (--bounceback): returns each request with this end's times in it.

use linerate_units::{Span, Timestamp};

use super::output_queue::OutputQueue;
use super::report::Iperf2ReportLine;
use super::track::Iperf2Stream;
use super::wire::{put, read_u32};
use crate::stand_in::{Link, Output, RunId};

/// Longest message.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Shortest message: its fields end here.
const MIN_MESSAGE_BYTES: usize = 48;

/// Without a request for this time, its client has vanished, as for other TCP tests.
const MAX_SILENCE: Span = Span::from_secs(60);

/// One bounce-back connection.
#[derive(Debug)]
pub(super) struct Bounce {
    /// The run for which it has a place, once the driver has admitted it.
    pub(super) run: RunId,
    is_admitted: bool,
    stream: Iperf2Stream,
    started_at: Timestamp,
    /// When something last arrived.
    active_at: Timestamp,
    received: Vec<u8>,
}

impl Bounce {
    pub(super) fn new(now: Timestamp, run: RunId, stream: Iperf2Stream, start: Vec<u8>) -> Self {
        Self { run, is_admitted: false, stream, started_at: now, active_at: now, received: start }
    }

    /// The driver has given it a place.
    pub(super) fn admitted(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        let Iperf2Stream { id, ends, link, .. } = self.stream;
        let text = queue.report.connected(id, false, ends.local, ends.remote, " (bb)");
        queue.print(text);
        self.is_admitted = true;
        self.bytes(queue, now, link, &[]);
    }

    /// When it is given up if nothing arrives.
    pub(super) fn due(&self) -> Timestamp {
        self.active_at + MAX_SILENCE
    }

    /// Returns every complete message.
    pub(super) fn bytes(&mut self, queue: &mut OutputQueue, now: Timestamp, link: Link, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        self.active_at = now;
        while self.is_admitted {
            let Some(size) = read_u32(&self.received, 4).map(|size| size as usize) else { return };
            if !(MIN_MESSAGE_BYTES..=MAX_MESSAGE_BYTES).contains(&size) {
                self.received.clear();
                queue.put(Output::FinishWriting { link });
                return;
            }
            if self.received.len() < size {
                return;
            }
            let mut message: Vec<u8> = self.received.drain(..size).collect();
            let (seconds, micros) = queue.settings.wall(now);
            for at in [28, 36] {
                put(&mut message, at, seconds);
                put(&mut message, at + 4, micros);
            }
            // The tool also counts the returned bytes.
            self.stream.own_bytes = self.stream.own_bytes.saturating_add(2 * size as u64);
            queue.put(Output::Send { link, bytes: message });
        }
    }

    /// Its last report, and its place goes to the next client.
    pub(super) fn finish(&self, queue: &mut OutputQueue, now: Timestamp) {
        queue.put(Output::Close { link: self.stream.link });
        queue.put(Output::RunOver { run: self.run, trouble: None });
        let row = Iperf2ReportLine {
            id: Some(self.stream.id),
            to: now.since(self.started_at).as_secs_f64(),
            bytes: self.stream.own_bytes,
            ..Iperf2ReportLine::default()
        };
        let text = queue.report.rows(now, super::report::Iperf2LineKind::Plain, &[row], &[self.stream.ends]);
        queue.print(text);
    }
}
