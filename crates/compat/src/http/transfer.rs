//! One phase of a test: the flow that moves its payload, and the server's figures of it.

use std::collections::VecDeque;

use linerate_model::flow::{FrameKind, frame_header};
use linerate_model::{BrowserNote, Direction, Side, Tally};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use crate::stand_in::{FlowCounts, FlowId, FlowTask, Link, Output, Payload, PayloadFraming, RunId, Stop};

/// Payload of a message, or of one write.
pub(super) const MESSAGE_BYTES: u64 = 64 << 10;

/// Most content of a record of TLS 1.3, and what encryption adds to it: header, kind, and authentication (RFC 8446,
/// section 5.2; all its ciphers have 16 bytes for the last).
const RECORD_BYTES: u64 = 16 << 10;
const RECORD_OVERHEAD: u64 = 22;

/// How the payload of a connection becomes the bytes of TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Encryption {
    /// They are the same.
    #[default]
    None,
    /// TLS 1.3. Each write begins a record.
    Tls,
}

impl Encryption {
    pub(super) fn of(is_encrypted: bool) -> Self {
        if is_encrypted { Self::Tls } else { Self::None }
    }

    /// Bytes of TCP in which a write of this length travels.
    pub(super) fn encrypted_bytes(self, write: u64) -> u64 {
        match self {
            Self::None => write,
            Self::Tls => write + write.div_ceil(RECORD_BYTES) * RECORD_OVERHEAD,
        }
    }

    /// What the first `bytes` of TCP carry of a write; a part of a record carries nothing yet.
    pub(super) fn decrypted_bytes(self, bytes: u64, write: u64) -> u64 {
        match self {
            Self::None => bytes.min(write),
            Self::Tls if bytes >= self.encrypted_bytes(write) => write,
            Self::Tls => bytes / (RECORD_BYTES + RECORD_OVERHEAD) * RECORD_BYTES,
        }
    }
}

/// What the server has counted of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TransferCounts {
    /// Bytes of payload that the server read, or that the peer's kernel acknowledged.
    pub(super) bytes: u64,
    /// Time since the first of them was read or written.
    pub(super) elapsed: Span,
}

impl TransferCounts {
    /// Mean rate, bit/s; 0 before anything was counted.
    pub(super) fn bitrate_bps(&self) -> f64 {
        rate(self.bytes, self.elapsed)
    }

    /// The rate since earlier counts, bit/s.
    pub(super) fn since(&self, earlier: &Self) -> f64 {
        let elapsed = Span::from_ns(self.elapsed.as_ns().saturating_sub(earlier.elapsed.as_ns()));
        rate(self.bytes.saturating_sub(earlier.bytes), elapsed)
    }
}

fn rate(bytes: u64, elapsed: Span) -> f64 {
    if elapsed == Span::ZERO { 0.0 } else { bytes as f64 * 8.0 / elapsed.as_secs_f64() }
}

/// One phase of a test.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) flow: FlowId,
    pub(super) direction: Direction,
    framing: PayloadFraming,
    encryption: Encryption,
    /// What the peer's kernels had acknowledged before the flow.
    before: Option<u64>,
    pub(super) counts: TransferCounts,
    /// Bytes of messages that were written between the blocks.
    inserted: u64,
    /// Whether it was told to stop.
    pub(super) stopped: bool,
}

impl Transfer {
    pub(super) fn new(
        flow: FlowId,
        direction: Direction,
        framing: PayloadFraming,
        encryption: Encryption,
    ) -> Self {
        Self {
            flow,
            direction,
            framing,
            encryption,
            before: None,
            counts: TransferCounts::default(),
            inserted: 0,
            stopped: false,
        }
    }

    fn header(&self) -> Vec<u8> {
        match self.framing {
            PayloadFraming::WebSocket if self.direction == Direction::Download => {
                frame_header(FrameKind::Binary, MESSAGE_BYTES)
            }
            _ => Vec::new(),
        }
    }

    /// Starts the flow over these connections.
    pub(super) fn start(&self, run: RunId, links: Vec<Link>, time: Option<Span>, out: &mut VecDeque<Output>) {
        let head = self.header();
        let side = match self.direction {
            Direction::Download => Side::Sender,
            Direction::Upload => Side::Receiver,
        };
        let length = Bytes::new(MESSAGE_BYTES + head.len() as u64);
        let task = FlowTask {
            links,
            payload: Payload { head, ..Payload::default() },
            framing: self.framing,
            time,
            together: true,
            ..FlowTask::new(self.flow, run, side, self.direction, length)
        };
        out.push_back(Output::Start(Box::new(task)));
    }

    /// Updates the server's figures.
    pub(super) fn update(&mut self, counts: &FlowCounts) {
        let Some(first) = counts.first_at else { return };
        let bytes = match self.direction {
            Direction::Upload => counts.total(|stream| stream.bytes),
            Direction::Download => {
                let acknowledged = counts.streams.iter().map(|stream| stream.connection);
                let acknowledged =
                    acknowledged.map(|connection| Some(connection?.bytes_acknowledged)).sum::<Option<u64>>();
                let Some(acknowledged) = acknowledged else { return };
                let before = *self.before.get_or_insert(acknowledged);
                let header = self.header().len() as u64;
                let block = MESSAGE_BYTES + header;
                let encrypted = self.encryption.encrypted_bytes(block);
                // Those of them that are not acknowledged yet count too little for a moment, and nothing too much.
                let new = acknowledged.saturating_sub(before).saturating_sub(self.inserted);
                let rest = self.encryption.decrypted_bytes(new % encrypted, block);
                (new / encrypted * MESSAGE_BYTES + rest.saturating_sub(header))
                    .min(counts.total(|stream| stream.bytes))
            }
        };
        let until = match self.direction {
            Direction::Upload => counts.last_at.unwrap_or(first),
            Direction::Download => counts.at,
        };
        let elapsed = if until > first { until - first } else { Span::ZERO };
        self.counts = TransferCounts { bytes, elapsed };
    }

    /// How long payload has to arrive at least in a phase of this time: silence at its end would not count.
    pub(super) fn least(time: Span) -> Span {
        let tolerated = (time.as_ns() / 10).max(500_000_000);
        Span::from_ns(time.as_ns().saturating_sub(tolerated))
    }

    /// Notes what was acknowledged when the flow had started.
    pub(super) fn baseline(&mut self, counts: &FlowCounts) {
        let acknowledged = counts.streams.iter().map(|stream| Some(stream.connection?.bytes_acknowledged));
        self.before = self.before.or(acknowledged.sum());
    }

    /// Writes a message between two blocks of a download.
    pub(super) fn insert(&mut self, bytes: Vec<u8>, out: &mut VecDeque<Output>) {
        let encrypted = self.encryption.encrypted_bytes(bytes.len() as u64);
        self.inserted = self.inserted.saturating_add(encrypted);
        out.push_back(Output::Insert { flow: self.flow, bytes });
    }

    /// Stops the flow where it is.
    pub(super) fn stop(&mut self, how: Stop, out: &mut VecDeque<Output>) {
        if !std::mem::replace(&mut self.stopped, true) || how == Stop::Abort {
            out.push_back(Output::Stop { flow: self.flow, how });
        }
    }

    /// What the server knows of the other end's counts.
    pub(super) fn peer_counted(&self, browser: Option<BrowserNote>, out: &mut VecDeque<Output>) {
        if let Some(note) = browser {
            out.push_back(Output::Browser { flow: self.flow, note: Box::new(note) });
        }
        if self.direction == Direction::Upload {
            return;
        }
        let bytes = Bytes::new(self.counts.bytes);
        let tally = Tally {
            bytes,
            total_bytes: bytes,
            elapsed: self.counts.elapsed,
            bitrate: Bitrate::from_bps(self.counts.bitrate_bps()).unwrap_or_default(),
            complete: true,
            ..Tally::default()
        };
        out.push_back(Output::PeerCounted { flow: self.flow, tally: Box::new(tally) });
    }
}

/// Whether `at` has come.
pub(super) fn is_due(at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| at <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Read record by record, by the words of RFC 8446, section 5.2.
        #[test]
        fn what_is_decrypted_of_a_write_is_the_content_of_its_whole_records(
            write in 1u64..200_000, share in 0.0f64..1.1,
        ) {
            let mut records = Vec::new();
            let mut left = write;
            while left > 0 {
                let content = left.min(1 << 14);
                records.push((content, content + 5 + 1 + 16));
                left -= content;
            }
            let all: u64 = records.iter().map(|(_, encrypted)| encrypted).sum();
            prop_assert_eq!(Encryption::Tls.encrypted_bytes(write), all);
            let arrived = (all as f64 * share) as u64;
            let (mut rest, mut content) = (arrived, 0);
            for (inside, encrypted) in records {
                let Some(after) = rest.checked_sub(encrypted) else { break };
                (rest, content) = (after, content + inside);
            }
            prop_assert_eq!(Encryption::Tls.decrypted_bytes(arrived, write), content);
            prop_assert_eq!(Encryption::None.decrypted_bytes(arrived, write), arrived.min(write));
        }
    }
}
