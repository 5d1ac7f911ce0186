//! Bounce-back tests (--bounceback): returns each request with this end's times in it.

use linerate_units::Timestamp;

use super::output_queue::OutputQueue;
use super::report::Iperf2ReportLine;
use super::track::Iperf2Stream;
use super::wire::{put, read_u32};
use crate::stand_in::{Link, Output};

/// Longest message.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Shortest message: its fields end here.
const MIN_MESSAGE_BYTES: usize = 48;

/// One bounce-back connection.
#[derive(Debug)]
pub(super) struct Bounce {
    stream: Iperf2Stream,
    started_at: Timestamp,
    received: Vec<u8>,
}

impl Bounce {
    pub(super) const fn new(now: Timestamp, stream: Iperf2Stream) -> Self {
        Self { stream, started_at: now, received: Vec::new() }
    }

    /// Returns every complete message.
    pub(super) fn bytes(&mut self, queue: &mut OutputQueue, now: Timestamp, link: Link, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        loop {
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

    pub(super) fn finish(&self, queue: &mut OutputQueue, now: Timestamp) {
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
