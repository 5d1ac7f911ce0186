//! Transit times of datagrams and blocks by the wall clocks of both ends; only on request.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use linerate_model::flow::StampLayout;
use linerate_model::flow::{BlockLength, Blocks, Spacing, TransitCounts};
use linerate_sock::clock;

use crate::stamp::{DatagramMeaning, DatagramReader};

/// Most bytes of a block's stamp.
const MAX_STAMP_BYTES: usize = 256;

/// Transit times of one stream: one writer, any number of readers.
#[derive(Debug, Default)]
pub(crate) struct Transits {
    count: AtomicU64,
    bytes: AtomicU64,
    first: AtomicI64,
    sum: AtomicI64,
    /// Bits of an `f64`.
    squares: AtomicU64,
    least: AtomicI64,
    most: AtomicI64,
    fresh_least: AtomicI64,
    fresh_most: AtomicI64,
    /// Number of reads, so that the writer restarts the fresh range.
    looks: AtomicU64,
}

impl Transits {
    /// The counts so far; restarts the fresh range. Absent before the first arrival.
    pub(crate) fn read(&self) -> Option<TransitCounts> {
        let count = self.count.load(Relaxed);
        let counts = TransitCounts {
            count,
            bytes: self.bytes.load(Relaxed),
            first_ns: self.first.load(Relaxed),
            sum_ns: self.sum.load(Relaxed),
            squares_ns2: f64::from_bits(self.squares.load(Relaxed)),
            range_ns: (self.least.load(Relaxed), self.most.load(Relaxed)),
            fresh_range_ns: (self.fresh_least.load(Relaxed), self.fresh_most.load(Relaxed)),
        };
        self.looks.fetch_add(1, Relaxed);
        (count > 0).then_some(counts)
    }
}

/// Single-writer handle, held by the pump that serves the stream.
#[derive(Debug)]
pub(crate) struct TransitWriter<'f> {
    shared: &'f Transits,
    count: u64,
    bytes: u64,
    first: i64,
    sum: i64,
    squares: u128,
    range: (i64, i64),
    fresh: (i64, i64),
    looks: u64,
}

/// The empty range.
const EMPTY: (i64, i64) = (i64::MAX, i64::MIN);

impl<'f> TransitWriter<'f> {
    pub(crate) const fn new(shared: &'f Transits) -> Self {
        Self {
            shared,
            count: 0,
            bytes: 0,
            first: 0,
            sum: 0,
            squares: 0,
            range: EMPTY,
            fresh: EMPTY,
            looks: 0,
        }
    }

    /// Records an arrival.
    #[inline]
    pub(crate) fn arrive(&mut self, sent_ns: u64, arrived_ns: u64, bytes: u64) {
        let transit = arrived_ns.wrapping_sub(sent_ns).cast_signed();
        // A reader has taken the fresh range since the last arrival.
        let looks = self.shared.looks.load(Relaxed);
        if looks != self.looks {
            (self.looks, self.fresh) = (looks, EMPTY);
        }
        if self.count == 0 {
            self.first = transit;
        }
        let deviation = transit.wrapping_sub(self.first);
        self.count += 1;
        self.bytes = self.bytes.wrapping_add(bytes);
        self.sum = self.sum.saturating_add(deviation);
        let size = u128::from(deviation.unsigned_abs());
        self.squares = self.squares.saturating_add(size * size);
        for (least, most) in [&mut self.range, &mut self.fresh] {
            *least = transit.min(*least);
            *most = transit.max(*most);
        }
    }

    /// Publishes the arrivals so far.
    pub(crate) fn show(&mut self) {
        if self.count == 0 {
            return;
        }
        let shared = self.shared;
        shared.bytes.store(self.bytes, Relaxed);
        shared.first.store(self.first, Relaxed);
        shared.sum.store(self.sum, Relaxed);
        shared.squares.store((self.squares as f64).to_bits(), Relaxed);
        shared.least.store(self.range.0, Relaxed);
        shared.most.store(self.range.1, Relaxed);
        shared.fresh_least.store(self.fresh.0, Relaxed);
        shared.fresh_most.store(self.fresh.1, Relaxed);
        shared.count.store(self.count, Relaxed);
    }
}

/// Counts how much the gaps between the arrivals of a stream differ from those between its departures.
#[derive(Debug)]
pub(crate) struct SpacingWriter<'f> {
    writer: TransitWriter<'f>,
    spacing: Spacing,
    /// The previous datagram: its number and its arrival, ns.
    last: Option<(u64, u64)>,
}

impl<'f> SpacingWriter<'f> {
    pub(crate) const fn new(writer: TransitWriter<'f>, spacing: Spacing) -> Self {
        Self { writer, spacing, last: None }
    }

    /// Records the arrival of datagram `seq`.
    #[inline]
    pub(crate) fn arrive(&mut self, seq: u64, arrived_ns: u64) {
        let Some((before, last_ns)) = self.last.replace((seq, arrived_ns)) else { return };
        if self.spacing.neighbours && seq != before.wrapping_add(1) {
            return;
        }
        let gap = arrived_ns.saturating_sub(last_ns);
        self.writer.arrive(0, gap.abs_diff(self.spacing.gap.as_ns()), 0);
    }

    /// Publishes the arrivals so far.
    pub(crate) fn show(&mut self) {
        self.writer.show();
    }
}

/// Finds the stamps in a stream of blocks.
#[derive(Debug)]
pub(crate) struct BlockReader<'f> {
    writer: TransitWriter<'f>,
    stamps: DatagramReader,
    stamp_length: usize,
    length: BlockLength,
    /// The part of the stamp that has arrived.
    stamp: [u8; MAX_STAMP_BYTES],
    known: usize,
    /// Bytes to skip, of a block or before the first one.
    left: u64,
    /// The block that is being skipped: its length and its send time.
    block: Option<(u64, u64)>,
    /// An invalid stamp was found: the blocks after it cannot be located.
    lost: bool,
}

impl<'f> BlockReader<'f> {
    /// A reader of stream `stream`, which has already processed the bytes in `blocks.early`.
    pub(crate) fn new(
        writer: TransitWriter<'f>,
        layout: StampLayout,
        blocks: &Blocks,
        stream: usize,
    ) -> Self {
        let mut reader = Self {
            writer,
            stamps: DatagramReader::new(layout, [0; 8], 0),
            stamp_length: layout.length,
            length: blocks.length,
            stamp: [0; MAX_STAMP_BYTES],
            known: 0,
            left: blocks.skipped,
            block: None,
            lost: layout.length > MAX_STAMP_BYTES
                || layout.length == 0
                || matches!(blocks.length, BlockLength::At(at) if at.saturating_add(4) > layout.length),
        };
        if let Some(early) = blocks.early.get(stream) {
            reader.take(early);
        }
        reader
    }

    /// Processes bytes that have just arrived.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while !self.lost && !bytes.is_empty() {
            let passed = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
            bytes = bytes.get(passed..).unwrap_or_default();
            self.left -= passed as u64;
            if self.left > 0 {
                return;
            }
            if let Some((length, sent_ns)) = self.block.take() {
                self.writer.arrive(sent_ns, clock::wall_ns(), length);
                self.writer.show();
            }
            let wanted = bytes.len().min(self.stamp_length - self.known);
            if let (Some(place), Some(piece)) =
                (self.stamp.get_mut(self.known..self.known + wanted), bytes.get(..wanted))
            {
                place.copy_from_slice(piece);
            }
            self.known += wanted;
            bytes = bytes.get(wanted..).unwrap_or_default();
            if self.known == self.stamp_length {
                self.begin();
            }
        }
    }

    /// Called when the stamp of a block is complete.
    fn begin(&mut self) {
        self.known = 0;
        let stamp = self.stamp.get(..self.stamp_length).unwrap_or_default();
        let length = match self.length {
            BlockLength::At(at) => {
                let length_field = stamp.get(at..).and_then(|rest| rest.first_chunk());
                length_field.map_or(0, |length_field| u64::from(u32::from_be_bytes(*length_field)))
            }
            BlockLength::Fixed(length) => length,
        };
        match (self.stamps.read(stamp), length.checked_sub(self.stamp_length as u64)) {
            // A block that consists of its stamp only is recorded when the next one begins.
            (DatagramMeaning::Data(stamp), Some(left)) => {
                (self.left, self.block) = (left, Some((length, stamp.sent_ns)));
            }
            _ => self.lost = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::flow::{SeqField, TimeField, TimeForm};

    #[test]
    fn sums_minima_and_maxima_are_those_of_the_transit_times() {
        let transits = Transits::default();
        let mut writer = TransitWriter::new(&transits);
        assert_eq!(transits.read(), None);
        for (sent, arrived) in [(1000, 1400), (2000, 2100), (3000, 3700)] {
            writer.arrive(sent, arrived, 10);
        }
        writer.show();
        let counts = transits.read().unwrap();
        assert_eq!((counts.count, counts.bytes, counts.first_ns, counts.sum_ns), (3, 30, 400, 0));
        assert_eq!(counts.squares_ns2, 180_000.0, "300 below and 300 above the first");
        assert_eq!((counts.range_ns, counts.fresh_range_ns), ((100, 700), (100, 700)));
    }

    #[test]
    fn what_is_fresh_begins_anew_when_it_was_read() {
        let transits = Transits::default();
        let mut writer = TransitWriter::new(&transits);
        let mut arrive = |transit: u64| {
            writer.arrive(1000, 1000 + transit, 1);
            writer.show();
        };
        arrive(400);
        assert_eq!(transits.read().unwrap().fresh_range_ns, (400, 400));
        arrive(500);
        arrive(600);
        let counts = transits.read().unwrap();
        assert_eq!((counts.fresh_range_ns, counts.range_ns), ((500, 600), (400, 600)));
    }

    #[test]
    fn a_clock_that_is_behind_makes_times_negative_and_absurd_ones_overflow_nothing() {
        let transits = Transits::default();
        let mut writer = TransitWriter::new(&transits);
        writer.arrive(5000, 2000, 1);
        for sent in [0, u64::MAX, 1 << 63] {
            writer.arrive(sent, 0, 1);
        }
        writer.show();
        let counts = transits.read().unwrap();
        assert_eq!((counts.count, counts.first_ns), (4, -3000));
        assert!(counts.squares_ns2.is_finite());
    }

    const LAYOUT: StampLayout = StampLayout {
        tag_at: None,
        seq: SeqField::Narrow { at: 0, first: 1 },
        time: Some(TimeField { at: 4, form: TimeForm::Wall }),
        stream_at: None,
        length: 16,
    };

    fn block(number: u32, length: u32) -> Vec<u8> {
        let stamp: Vec<u8> = [number, 5, 0, length].into_iter().flat_map(u32::to_be_bytes).collect();
        let rest = vec![0xff; (length as usize).saturating_sub(16)];
        [stamp, rest].concat()
    }

    /// Number of blocks found, and their bytes.
    fn found(early: &[u8], bytes: &[u8], piece: usize) -> (u64, u64) {
        let transits = Transits::default();
        let blocks = Blocks { length: BlockLength::At(12), skipped: 3, early: vec![early.to_vec()] };
        let mut reader = BlockReader::new(TransitWriter::new(&transits), LAYOUT, &blocks, 0);
        bytes.chunks(piece).for_each(|piece| reader.take(piece));
        transits.read().map_or((0, 0), |counts| (counts.count, counts.bytes))
    }

    #[test]
    fn blocks_are_found_however_they_are_cut() {
        let all = [b"abc".to_vec(), block(1, 40), block(2, 16), block(3, 100), block(4, 40)].concat();
        for early in [0, 2, 10, 43, 60] {
            for piece in [1, 7, 64, 1000] {
                // The last block is incomplete.
                let seen = found(&all[..early], &all[early..all.len() - 1], piece);
                assert_eq!(seen, (3, 156), "{early} early, pieces of {piece}");
            }
        }
    }

    #[test]
    fn blocks_of_one_length_need_not_tell_it() {
        let transits = Transits::default();
        let blocks = Blocks { length: BlockLength::Fixed(40), skipped: 0, early: vec![vec![0; 7]] };
        let layout = StampLayout { seq: SeqField::Absent, ..LAYOUT };
        let mut reader = BlockReader::new(TransitWriter::new(&transits), layout, &blocks, 0);
        // Seven bytes came before the flow: the second block begins 33 bytes later.
        let silent = |number| {
            let mut block = block(number, 40);
            block[12..16].fill(0);
            block
        };
        let rest = [vec![0; 33], silent(2), silent(3)].concat();
        let seen = || transits.read().map(|counts| (counts.count, counts.bytes));
        rest[..33 + 39].chunks(9).for_each(|piece| reader.take(piece));
        assert_eq!(seen(), Some((1, 40)), "the last byte of the second block is missing");
        reader.take(&rest[33 + 39..]);
        assert_eq!(seen(), Some((3, 120)));
    }

    #[test]
    fn jitter_is_what_gaps_between_arrivals_differ_from_those_between_departures() {
        let jitter = |neighbours| {
            let transits = Transits::default();
            let spacing = Spacing { gap: linerate_units::Span::from_ns(1000), neighbours };
            let mut writer = SpacingWriter::new(TransitWriter::new(&transits), spacing);
            // 200 late, 300 early; datagram 3 is lost; exactly in time.
            for (seq, arrived) in [(0, 5000), (1, 6200), (2, 6900), (4, 9900), (5, 10_900)] {
                writer.arrive(seq, arrived);
            }
            writer.show();
            let counts = transits.read().unwrap();
            let sum = counts.count as i64 * counts.first_ns + counts.sum_ns;
            (counts.count, sum, counts.range_ns)
        };
        assert_eq!(jitter(false), (4, 200 + 300 + 2000, (0, 2000)));
        assert_eq!(jitter(true), (3, 200 + 300, (0, 300)));
    }

    #[test]
    fn what_is_no_block_ends_the_search() {
        let all = [b"abc".to_vec(), block(1, 40), block(2, 8), block(3, 40), block(4, 40)].concat();
        assert_eq!(found(b"", &all, 9), (1, 40));
    }
}
