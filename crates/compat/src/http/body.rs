//! A body in transit: what the engine is asked to move, and what is known of it.

use linerate_model::flow::{ChunkReader, StreamCounts};
use linerate_model::{Direction, Side};
use linerate_units::{Bytes, Span, Timestamp};

use super::body_totals::{BodyReading, BodySums};
use super::endpoint::CLOUDFLARE;
use super::request::{self, HttpRequest};
use super::transfer::Encryption;
use crate::stand_in::{EndMark, FlowCounts, FlowId, FlowTask, Link, PayloadFraming, RunId};

/// Shorter bodies are moved without the engine and do not count: they show the latency of the path, not its rate.
const MIN_BODY_BYTES: u64 = 16 << 10;

/// Longest block of a download.
const MAX_BLOCK_BYTES: u64 = 64 << 10;

/// Content of the few bytes that are written with a head.
pub(super) const FILLER: u8 = 0x5a;

/// The head of a response with a body of `length` bytes, `delay` after its request.
pub(super) fn head_of_body(tool: &str, delay: Span, length: u64, is_persistent: bool) -> Vec<u8> {
    // Cloudflare's engine takes the time of the server from the time to the first byte.
    let timing = format!("cfRequestDuration;dur={:.3}", delay.as_secs_f64() * 1e3);
    let fields = [("Content-Type", "application/octet-stream"), ("Server-Timing", timing.as_str())];
    let used = if tool == CLOUDFLARE { 2 } else { 1 };
    request::persistent_head("200 OK", &fields[..used], length, is_persistent)
}

/// The state of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyPhase {
    /// Waiting for the driver's decision.
    Waiting,
    /// In the engine.
    Moving,
    /// A download has been written, and waits to be acknowledged until this time.
    Delivering(Timestamp),
}

/// A body in transit.
#[derive(Debug)]
pub(super) struct HttpBody {
    pub(super) flow: FlowId,
    pub(super) encryption: Encryption,
    pub(super) direction: Direction,
    /// All bytes of the body; absent if it comes in chunks.
    pub(super) length: Option<u64>,
    /// The payload of an upload that came with the request.
    pub(super) early: u64,
    /// How the rest of an upload carries its payload.
    pub(super) framing: PayloadFraming,
    pub(super) requested: Timestamp,
    pub(super) is_persistent: bool,
    pub(super) expects_continue: bool,
    pub(super) phase: BodyPhase,
    /// Whether the engine has it no more, or not yet.
    pub(super) is_returned: bool,
    /// What the kernel had counted on the connection before the flow.
    pub(super) before: Option<StreamCounts>,
    /// What it has counted now.
    pub(super) now: StreamCounts,
    /// When that was read; the kernel's counts of a flow that has ended stay as they were.
    pub(super) counted_at: Timestamp,
    pub(super) first_at: Option<Timestamp>,
    /// Bytes that were read or acknowledged, and when that was last known.
    pub(super) bytes: u64,
    pub(super) last_at: Timestamp,
}

impl HttpBody {
    /// The body of a request, or the response that refuses it; `received` are the bytes after the head.
    pub(super) fn new(
        now: Timestamp,
        (flow, encryption): (FlowId, Encryption),
        request: &HttpRequest,
        (direction, length): (Direction, Option<u64>),
        received: &[u8],
    ) -> Result<Self, Vec<u8>> {
        let (early, framing) = match length {
            Some(_) => (received.len() as u64, PayloadFraming::None),
            None => {
                let malformed = |why: &str| request::text("400 Bad Request", &format!("{why}\n"));
                let mut chunks = ChunkReader::default();
                let (payload, used) = chunks.take(received).map_err(|error| malformed(&error.to_string()))?;
                if used < received.len() {
                    return Err(malformed("one request at a time"));
                }
                (payload, PayloadFraming::Chunks(chunks))
            }
        };
        Ok(Self {
            flow,
            encryption,
            direction,
            length,
            early,
            framing,
            requested: now,
            is_persistent: request.is_persistent,
            expects_continue: request.expects_continue && received.is_empty(),
            phase: BodyPhase::Waiting,
            is_returned: true,
            before: None,
            now: StreamCounts::default(),
            counted_at: now,
            first_at: None,
            bytes: 0,
            last_at: now,
        })
    }

    /// Whether it is moved without the engine.
    pub(super) fn is_short(&self) -> bool {
        match (self.direction, self.framing) {
            (Direction::Upload, PayloadFraming::Chunks(chunks)) => chunks.is_over(),
            (Direction::Upload, _) => self.length.is_some_and(|length| self.early >= length),
            (Direction::Download, _) => self.length.is_some_and(|length| length < MIN_BODY_BYTES),
        }
    }

    fn side(&self) -> Side {
        match self.direction {
            Direction::Download => Side::Sender,
            Direction::Upload => Side::Receiver,
        }
    }

    /// Blocks of equal length, and what is left over: a sender of the engine writes whole blocks.
    pub(super) fn blocks(&self) -> (u64, u64) {
        let length = self.length.unwrap_or_default();
        let count = length.div_ceil(MAX_BLOCK_BYTES).max(1);
        (length / count, length % count)
    }

    pub(super) fn task(&self, run: RunId, link: Link) -> FlowTask {
        let is_download = self.direction == Direction::Download;
        let (block, rest) = if is_download { self.blocks() } else { (MAX_BLOCK_BYTES, self.early) };
        let length = self.length.map(|length| length.saturating_sub(rest));
        FlowTask {
            links: vec![link],
            framing: self.framing,
            bytes: length.filter(|_| is_download).map(Bytes::new),
            end_mark: length.filter(|_| !is_download).map_or(EndMark::None, EndMark::Length),
            together: true,
            ..FlowTask::new(self.flow, run, self.side(), self.direction, Bytes::new(block))
        }
    }

    /// Takes over what the flow has counted.
    pub(super) fn update(&mut self, now: Timestamp, counts: &FlowCounts) {
        let Some(stream) = counts.streams.first() else { return };
        (self.now, self.counted_at) = (*stream, counts.at);
        let before = *self.before.get_or_insert(*stream);
        let Some(first) = counts.first_at else { return };
        self.first_at.get_or_insert(first);
        match self.direction {
            Direction::Upload => {
                self.bytes = stream.bytes.saturating_add(self.early);
                self.last_at = counts.last_at.unwrap_or(first);
            }
            Direction::Download => {
                if self.is_written() && stream.all_acknowledged == Some(true) {
                    return self.delivered(now);
                }
                let acknowledged = |counts: StreamCounts| Some(counts.connection?.bytes_acknowledged);
                if let Some((now, before)) = acknowledged(*stream).zip(acknowledged(before)) {
                    let (block, rest) = self.blocks();
                    let (new, encrypted) =
                        (now.saturating_sub(before), self.encryption.encrypted_bytes(block).max(1));
                    let part = self.encryption.decrypted_bytes(new % encrypted, block);
                    let written = stream.bytes.saturating_add(rest);
                    self.bytes = (new / encrypted * block + part).min(written);
                    self.last_at = counts.at;
                }
            }
        }
    }

    /// Whether all of it was read or acknowledged, as far as its length is known.
    pub(super) fn is_complete(&self) -> bool {
        self.length.is_none_or(|length| self.bytes == length)
    }

    pub(super) fn is_written(&self) -> bool {
        matches!(self.phase, BodyPhase::Delivering(_))
    }

    /// The client has all of the body.
    pub(super) fn delivered(&mut self, now: Timestamp) {
        (self.bytes, self.last_at) = (self.length.unwrap_or(self.bytes), now);
    }

    /// What is known of the body; absent before its first byte.
    pub(super) fn reading(&self) -> Option<BodyReading> {
        let first = self.first_at?;
        // The body of an upload follows the head of its request at once.
        let first_at = if self.direction == Direction::Upload { self.requested } else { first };
        let transit = self.counted_at.max(first_at) - first_at;
        let sums = BodySums::new(self.bytes, transit, &self.before.unwrap_or_default(), &self.now);
        Some(BodyReading { first_at, last_at: self.last_at, sums, rtt: self.now.rtt })
    }
}
