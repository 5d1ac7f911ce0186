//! One TCP stream of whole blocks over a borrowed connection, in one thread with blocking calls.
//!
//! Other tools count blocks, and their peers may discard a partial one, so every block that has begun is
//! finished.

use std::net::TcpStream;
use std::time::Duration;

use linerate_model::flow::{PayloadFraming, Transit};
use linerate_sock::poll::Interest;
use linerate_sock::{Mono, Moved, SockError, clock};

use super::feed::Feed;
use super::gather::Gather;
use super::notes::NoteWriter;
use super::{PumpEnd, PumpGuard, StreamEnd, StreamError, queued};
use crate::control::PumpControl;
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::pacer::PacingSchedule;

/// After the end, a block that has begun is given up if the peer has not taken it within this time.
const LAST_BLOCK_TIMEOUT: Duration = Duration::from_millis(200);

struct BlockWriter<'f> {
    flow: &'f FlowSide,
    meter: CounterWriter<'f>,
    socket: &'f TcpStream,
    feed: Feed,
    notes: Option<NoteWriter>,
    /// Whether each block carries its send time.
    stamps: bool,
    /// Bytes at the start of each block that are no payload.
    header: usize,
    gather: Gather,
}

/// Writes until the limit or an order to stop; the connection stays open.
pub(crate) fn write(flow: &FlowSide, pump: usize, guard: &mut PumpGuard<'_>, feed: Feed) -> PumpEnd {
    let Some(socket) = flow.sockets.tcp(pump) else { return PumpEnd::default() };
    let notes = flow.setup.note.map(|note| NoteWriter::new(note, socket));
    let stamps = matches!(flow.setup.transit, Transit::Blocks(_));
    // Blocks that differ, or that have deadlines of their own, are sent one per call.
    let alike = feed.repeats() && notes.is_none() && !stamps && flow.setup.offered.is_none();
    let gather = Gather::new(flow.plan.block, flow.setup.together && alike, clock::now());
    let header = match flow.setup.framing {
        PayloadFraming::None | PayloadFraming::Chunks(_) => 0,
        PayloadFraming::WebSocket => flow.setup.payload.head.len(),
    };
    let mut writer =
        BlockWriter { flow, meter: flow.meter(pump), socket, feed, notes, stamps, header, gather };
    let ended = writer.run(flow.plan.share(&flow.setup, pump) / flow.plan.block as u64);
    let aborted = flow.control.aborted().then_some(StreamError::Aborted);
    let end = StreamEnd {
        stream: pump,
        bytes: flow.counters[pump].read().total,
        queued: queued(flow, pump, false),
        trouble: ended.err().map(StreamError::from).or(aborted),
        mark: None,
        sequence: None,
        position: None,
    };
    flow.stream_ended(&writer.meter, end.trouble.as_ref());
    guard.written();
    PumpEnd { streams: vec![end], copied: writer.feed.copied(socket), ..PumpEnd::default() }
}

impl BlockWriter<'_> {
    /// Writes at most `blocks` blocks.
    fn run(&mut self, blocks: u64) -> Result<(), SockError> {
        let control = &self.flow.control;
        let start = clock::now();
        if self.meter.begin(start, 0) {
            control.notify_begun();
        }
        let setup = &self.flow.setup;
        let pace = setup.offered.and_then(|rate| PacingSchedule::new(start, rate));
        let pace = pace.map(|pace| pace.in_ticks(setup.pacing_tick));
        let burst = u64::from(self.flow.setup.burst.unwrap_or(1).max(1));
        let mut written = 0;
        while written < blocks && control.may_write() {
            let until = self.flow.write_until();
            if let Some(pace) = &pace {
                // A block leaves when the rate allows the blocks before it; after a delay several leave at
                // once.
                let due = pace.due((written - written % burst).saturating_mul(self.flow.plan.block as u64));
                if due >= until || !control.sleep_until(due, PumpControl::may_write) {
                    control.sleep_until(until.min(due), PumpControl::may_write);
                    break;
                }
            }
            if let Some(bytes) = control.inserted() {
                self.insert(&bytes, until)?;
            }
            if !self.feed.load()? {
                break;
            }
            if let Some(notes) = &mut self.notes {
                notes.write(self.socket, &mut self.feed);
            }
            if self.stamps {
                self.feed.stamp(&self.flow.setup.stamp, written);
            }
            let times = self.gather.times(blocks - written);
            let (now, count) = self.blocks(until, written == 0, times)?;
            if now >= until {
                break;
            }
            written += count;
        }
        self.flush()
    }

    /// Waits until all encrypted bytes are in the socket, but after the end not longer than for a last block.
    fn flush(&self) -> Result<(), SockError> {
        let mut given_up = Mono::FAR;
        while !self.feed.flush(self.socket)? && !self.flow.control.aborted() && !given_up.has_passed() {
            let over = self.flow.write_until().has_passed() || !self.flow.control.may_write();
            if given_up == Mono::FAR && over {
                given_up = clock::now() + LAST_BLOCK_TIMEOUT;
            }
            self.flow.pause(self.socket, Interest::WRITE)?;
        }
        Ok(())
    }

    /// Writes all of `bytes`, unless the peer takes nothing for a while after the end.
    fn insert(&self, bytes: &[u8], until: Mono) -> Result<(), SockError> {
        let (mut rest, mut given_up) = (bytes, Mono::FAR);
        while !rest.is_empty() && !self.flow.control.aborted() {
            let moved = self.feed.send_inserted(self.socket, rest)?;
            rest = rest.get(moved.bytes()..).unwrap_or_default();
            let now = clock::now();
            if now >= given_up {
                break;
            }
            if given_up == Mono::FAR && (now >= until || !self.flow.control.may_write()) {
                given_up = now + LAST_BLOCK_TIMEOUT;
            }
            if moved == Moved::Pending {
                self.flow.pause(self.socket, Interest::WRITE)?;
            }
        }
        Ok(())
    }

    /// Writes at most `times` blocks, at least one. Returns when the kernel took the last byte, and the number
    /// of blocks. If the kernel takes only a part of several blocks, only the block that has begun is finished.
    fn blocks(&mut self, until: Mono, first: bool, times: usize) -> Result<(Mono, u64), SockError> {
        let length = self.feed.length(first);
        let (mut taken, mut given_up) = (0, Mono::FAR);
        loop {
            let moved = match (taken, times) {
                (0, 2..) => self.feed.send_blocks(self.socket, times)?,
                _ => self.feed.send_rest(self.socket, first, taken % length)?,
            };
            let now = clock::now();
            if moved.bytes() > 0 {
                let payload = payload_of(taken, moved.bytes(), length, self.header);
                taken += moved.bytes();
                self.meter.count(now, payload as u64);
                self.gather.note(now, moved.bytes() as u64);
            }
            let whole = taken > 0 && taken.is_multiple_of(length);
            if whole || self.flow.control.aborted() || now >= given_up {
                return Ok((now, taken.div_ceil(length) as u64));
            }
            if given_up == Mono::FAR && (now >= until || !self.flow.control.may_write()) {
                given_up = now + LAST_BLOCK_TIMEOUT;
            }
            if moved == Moved::Pending {
                self.flow.pause(self.socket, Interest::WRITE)?;
            }
        }
    }
}

/// How many of the `count` bytes after the first `from` are payload, in blocks of `length` with a header each.
#[inline]
fn payload_of(from: usize, count: usize, length: usize, header: usize) -> usize {
    if header == 0 {
        return count;
    }
    let headers = |bytes: usize| bytes / length * header + (bytes % length).min(header);
    count - (headers(from + count) - headers(from))
}

#[cfg(test)]
mod tests {
    use super::payload_of;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_after_the_headers_are_payload(
            cuts in proptest::collection::vec(1usize..50, 1..20), length in 1usize..30, header in 0usize..14,
        ) {
            let header = header.min(length);
            let mut from = 0;
            for count in cuts {
                let expected = (from..from + count).filter(|at| at % length >= header).count();
                prop_assert_eq!(payload_of(from, count, length, header), expected);
                from += count;
            }
        }
    }
}
