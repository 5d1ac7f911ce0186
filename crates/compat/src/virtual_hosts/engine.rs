//! Simulates a flow of the engine in virtual time: blocks, sequence numbers, counts, marks.

use linerate_model::Side;
use linerate_units::{Bitrate, Span, Timestamp};

use super::{VirtualPath, WALL_SECONDS};
use crate::stand_in::{EndMark, FlowCounts, FlowTask, Pattern, StreamCounts, Transport};
use linerate_model::flow::{SeqField, TimeForm};

/// A flow that is running, or has ended and was not forgotten.
pub(super) struct VirtualFlow {
    pub(super) task: FlowTask,
    pub(super) counts: FlowCounts,
    started: Timestamp,
    sent: u64,
    numbers: Vec<u64>,
    marks: u32,
    pub(super) over: bool,
    pub(super) full: bool,
    /// Whether it was stopped and ends soon.
    pub(super) stopping: bool,
    rate: f64,
}

impl VirtualFlow {
    pub(super) fn new(task: FlowTask, now: Timestamp, path: &VirtualPath) -> Self {
        let first = match task.stamp.seq {
            SeqField::Wide { first, .. }
            | SeqField::Narrow { first, .. }
            | SeqField::Halves { first, .. }
            | SeqField::Signed { first, .. } => first,
            SeqField::Bytes { .. } | SeqField::Absent => 0,
        };
        let reported = task.side == Side::Sender && task.transport == Transport::Tcp;
        let stream = if reported { path.tcp } else { StreamCounts::default() };
        let streams = vec![stream; task.links.len()];
        let marks = vec![None; task.links.len()];
        Self {
            counts: FlowCounts { flow: task.flow, at: now, streams, marks, ..FlowCounts::default() },
            numbers: vec![first; task.links.len()],
            rate: task.offered.map_or(path.rate, Bitrate::bps),
            task,
            started: now,
            sent: 0,
            marks: 0,
            over: false,
            full: false,
            stopping: false,
        }
    }

    pub(super) fn is_full(&self, now: Timestamp) -> bool {
        self.task.bytes.is_some_and(|limit| self.sent >= limit.get())
            || self.task.time.is_some_and(|time| now.since(self.started) >= self.task.omit + time)
    }

    pub(super) fn gap(&self) -> Span {
        Span::from_secs_f64(self.task.length.get() as f64 * 8.0 / self.rate).unwrap_or(Span::from_ms(1))
    }

    /// A round trip after its end, a sender's kernel has retransmitted what was lost at the end, and everything
    /// is acknowledged.
    pub(super) fn count_acknowledged(&mut self, now: Timestamp, path: &VirtualPath) {
        if !self.over || self.task.side != Side::Sender || path.late_retransmits == 0 {
            return;
        }
        let acknowledged = now >= self.counts.last_at.unwrap_or(self.started) + path.delay + path.delay;
        for stream in &mut self.counts.streams {
            stream.all_acknowledged = Some(acknowledged);
            if acknowledged {
                stream.retransmits = path.tcp.retransmits.map(|before| before + path.late_retransmits);
            }
        }
    }

    /// Makes and counts the next block of a stream.
    pub(super) fn block(&mut self, at: usize, now: Timestamp) -> Vec<u8> {
        let udp = self.task.transport == Transport::Udp;
        let number = self.numbers[at];
        self.numbers[at] += 1;
        let mut length = self.task.length.get();
        if let Some(first) = self.task.payload.first_length.filter(|_| self.counts.streams[at].packets == 0) {
            length = length.max(first.get());
        }
        let mut block: Vec<u8> = (0..length).map(|at| filler(self.task.payload.pattern, at)).collect();
        for (byte, head) in block.iter_mut().zip(&self.task.payload.head) {
            *byte = *head;
        }
        self.sent += length;
        if udp {
            self.stamp(&mut block, at, number, now);
        }
        self.counts.first_at.get_or_insert(now);
        self.counts.last_at = Some(now);
        let stream = &mut self.counts.streams[at];
        stream.bytes += length;
        stream.calls += 1;
        stream.packets += u64::from(udp);
        stream.highest = stream.packets;
        block
    }

    pub(super) fn stamp(&self, block: &mut [u8], stream: usize, number: u64, now: Timestamp) {
        let mut put = |at: usize, word: u32| {
            if let Some(place) = block.get_mut(at..at + 4) {
                place.copy_from_slice(&word.to_be_bytes());
            }
        };
        match self.task.stamp.seq {
            SeqField::Halves { low_at, high_at, .. } => {
                put(low_at, number as u32);
                put(high_at, (number >> 32) as u32);
            }
            SeqField::Signed { at, .. } | SeqField::Narrow { at, .. } => put(at, number as u32),
            SeqField::Wide { at, .. } => {
                put(at, (number >> 32) as u32);
                put(at + 4, number as u32);
            }
            SeqField::Bytes { at, streams } => {
                let turns = number * u64::from(streams) + stream as u64 + 1;
                let bytes = turns * self.task.length.get();
                put(at, (bytes as u32).swap_bytes());
                put(at + 4, ((bytes >> 32) as u32).swap_bytes());
            }
            SeqField::Absent => {}
        }
        if let Some(time) = self.task.stamp.time {
            let epoch = if time.form == TimeForm::Wall { WALL_SECONDS } else { 0 };
            put(time.at, (epoch + now.as_ns() / 1_000_000_000) as u32);
            put(time.at + 4, (now.as_ns() % 1_000_000_000 / 1000) as u32);
        }
    }

    pub(super) fn read(&mut self, now: Timestamp, at: usize, bytes: &[u8]) {
        assert_eq!(self.task.side, Side::Receiver, "bytes for a sender");
        self.counts.first_at.get_or_insert(now);
        self.counts.last_at = Some(now);
        self.counts.streams[at].bytes += bytes.len() as u64;
        self.counts.streams[at].calls += 1;
    }

    /// Counts a datagram; true if it is the mark that ends the last stream.
    pub(super) fn read_datagram(&mut self, now: Timestamp, at: usize, bytes: &[u8]) -> bool {
        let word = |at: usize| {
            bytes
                .get(at..at + 4)
                .map(|word| i64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
        };
        let number = match self.task.stamp.seq {
            SeqField::Halves { low_at, high_at, .. } => {
                let Some((low, high)) = word(low_at).zip(word(high_at)) else { return false };
                Some((high << 32) | low)
            }
            SeqField::Signed { at, .. } => word(at).map(|number| i64::from(number as i32)),
            SeqField::Narrow { at, .. } => word(at),
            SeqField::Wide { at, .. } => word(at).zip(word(at + 4)).map(|(high, low)| (high << 32) | low),
            SeqField::Bytes { at, streams } => word(at).map(|low| {
                (i64::from((low as u32).swap_bytes()) / bytes.len() as i64 - 1) / i64::from(streams)
            }),
            SeqField::Absent => None,
        };
        match self.task.end_mark {
            EndMark::Short { bytes: most, nth } if bytes.len() <= most => {
                self.marks += 1;
                return self.marks == nth;
            }
            EndMark::Negative if number.is_some_and(|number| number < 0) => {
                self.counts.marks[at].get_or_insert_with(|| bytes.to_vec());
                return self.counts.marks.iter().all(Option::is_some);
            }
            _ => {}
        }
        self.counts.first_at.get_or_insert(now);
        self.counts.last_at = Some(now);
        let first = self.numbers[at];
        let stream = &mut self.counts.streams[at];
        stream.bytes += bytes.len() as u64;
        stream.calls += 1;
        stream.packets += 1;
        if let Some(number) = number {
            let number = (number as u64).saturating_sub(first) + 1;
            if number > stream.highest {
                stream.lost += number - stream.highest - 1;
                stream.highest = number;
            } else {
                stream.out_of_order += 1;
                stream.lost = stream.lost.saturating_sub(1);
            }
        }
        false
    }
}

/// The byte at this position of a block. Incompressible data are a constant byte here.
fn filler(pattern: Pattern, at: u64) -> u8 {
    match pattern {
        Pattern::Random => 0xa5,
        Pattern::Digits => b'0' + (at % 10) as u8,
        Pattern::Printable => 0x20 + (at % 95) as u8,
        Pattern::Byte(byte) => byte,
    }
}
