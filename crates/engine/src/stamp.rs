//! The header of a datagram, written and read according to the layout.

use linerate_model::flow::{SeqField, StampLayout, TimeField, TimeForm};
use linerate_sock::clock;

/// Number and send time in a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Number within its stream, from 0.
    pub(crate) seq: u64,
    /// When it was sent, ns of the sender's monotonic or wall clock.
    pub(crate) sent_ns: u64,
}

fn put(datagram: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = datagram.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}

fn get<const N: usize>(datagram: &[u8], at: usize) -> Option<[u8; N]> {
    datagram.get(at..)?.first_chunk().copied()
}

/// Writes the fields that are the same in every datagram of a test.
pub(crate) fn write_tag(datagram: &mut [u8], layout: &StampLayout, tag: [u8; 8]) {
    if let Some(at) = layout.tag_at {
        put(datagram, at, &tag);
    }
}

/// The current time, ns, of the clock that the layout uses.
#[inline]
pub(crate) fn now_ns(layout: &StampLayout) -> u64 {
    match layout.time {
        Some(TimeField { form: TimeForm::Wall, .. }) => clock::wall_ns(),
        _ => clock::now().as_ns(),
    }
}

/// Writes the fields that differ between datagrams.
#[inline]
pub(crate) fn write(datagram: &mut [u8], layout: &StampLayout, stream: u32, stamp: Stamp) {
    match layout.seq {
        SeqField::Wide { at, first } => put(datagram, at, &stamp.seq.wrapping_add(first).to_be_bytes()),
        SeqField::Narrow { at, first } | SeqField::Signed { at, first } => {
            put(datagram, at, &(stamp.seq.wrapping_add(first) as u32).to_be_bytes());
        }
        SeqField::Halves { low_at, high_at, first } => {
            let seq = stamp.seq.wrapping_add(first);
            put(datagram, low_at, &(seq as u32).to_be_bytes());
            put(datagram, high_at, &((seq >> 32) as u32).to_be_bytes());
        }
        SeqField::Bytes { at, streams } => {
            let turns = stamp.seq.wrapping_mul(u64::from(streams)).wrapping_add(u64::from(stream) + 1);
            let sent = turns.wrapping_mul(datagram.len() as u64);
            put(datagram, at, &sent.to_le_bytes());
        }
        SeqField::Absent => {}
    }
    if let Some(time) = layout.time {
        match time.form {
            TimeForm::Nanoseconds => put(datagram, time.at, &stamp.sent_ns.to_be_bytes()),
            TimeForm::Monotonic | TimeForm::Wall => {
                let (seconds, rest) = (stamp.sent_ns / 1_000_000_000, stamp.sent_ns % 1_000_000_000);
                put(datagram, time.at, &(seconds as u32).to_be_bytes());
                put(datagram, time.at + 4, &((rest / 1000) as u32).to_be_bytes());
            }
        }
    }
    if let Some(at) = layout.stream_at {
        put(datagram, at, &stream.to_be_bytes());
    }
}

/// Meaning of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatagramMeaning {
    /// Data.
    Data(Stamp),
    /// A negative number, which marks the sender's last datagram.
    Negative,
    /// Not of this test, or with a number that no sender can reach.
    Stray,
}

/// Datagrams with consecutive numbers that were sent at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DatagramRun {
    /// Number of them.
    pub(crate) count: u64,
    /// Their bytes together.
    pub(crate) bytes: usize,
    /// When they were sent, ns of the sender's clock.
    pub(crate) sent_ns: u64,
}

/// No sender reaches this number. Sums over all streams remain far below the capacity of a counter.
const MAX_SEQUENCE: u64 = 1 << 48;
/// A byte count above this in the first datagram of a stream is in the opposite byte order.
const BYTE_SWAPPED_ABOVE: u64 = 1 << 32;

/// Reads the datagrams of one stream.
#[derive(Debug)]
pub(crate) struct DatagramReader {
    layout: StampLayout,
    tag: [u8; 8],
    /// Bytes of a datagram, to convert byte counts to numbers.
    length: u64,
    /// Highest number so far plus one. A wrapped number is taken as the value nearest to it.
    next: u64,
    /// Whether byte counts are in the opposite byte order; absent before the first.
    swapped: Option<bool>,
}

impl DatagramReader {
    pub(crate) fn new(layout: StampLayout, tag: [u8; 8], length: usize) -> Self {
        Self { layout, tag, length: length.max(1) as u64, next: 0, swapped: None }
    }

    /// Reads a datagram.
    #[inline]
    pub(crate) fn read(&mut self, datagram: &[u8]) -> DatagramMeaning {
        let layout = &self.layout;
        let foreign = layout.tag_at.is_some_and(|at| get(datagram, at) != Some(self.tag));
        if datagram.len() < layout.length || foreign {
            return DatagramMeaning::Stray;
        }
        if negative(datagram, layout.seq) {
            return DatagramMeaning::Negative;
        }
        let sent_ns = layout.time.map_or(Some(0), |time| sent_ns(datagram, time));
        match self.seq(datagram).zip(sent_ns) {
            Some((seq, sent_ns)) if seq < MAX_SEQUENCE => {
                self.next = self.next.max(seq + 1);
                DatagramMeaning::Data(Stamp { seq, sent_ns })
            }
            _ => DatagramMeaning::Stray,
        }
    }

    /// The datagrams at the start of `bytes`, each of `segment` bytes, the last possibly shorter, whose numbers follow
    /// each other from the next expected one and that were sent at the same time. They are read at once, with the same
    /// result as one by one. Absent if the first is none of them, and for other layouts than that of linerate.
    pub(crate) fn run(&mut self, bytes: &[u8], segment: usize) -> Option<DatagramRun> {
        let StampLayout {
            tag_at: Some(tag_at),
            seq: SeqField::Wide { at, first },
            time: Some(time),
            length,
            ..
        } = self.layout
        else {
            return None;
        };
        if time.form != TimeForm::Nanoseconds || segment == 0 {
            return None;
        }
        let sent = get::<8>(bytes, time.at)?;
        let (start, mut whole) = (self.next, 0);
        for datagram in bytes.chunks(segment) {
            let same = datagram.len() >= length
                && get(datagram, tag_at) == Some(self.tag)
                && get(datagram, at) == Some(self.next.wrapping_add(first).to_be_bytes())
                && get(datagram, time.at) == Some(sent);
            if !same || self.next >= MAX_SEQUENCE {
                break;
            }
            self.next += 1;
            whole += datagram.len();
        }
        let count = self.next - start;
        (count > 0).then(|| DatagramRun { count, bytes: whole, sent_ns: u64::from_be_bytes(sent) })
    }

    fn seq(&mut self, datagram: &[u8]) -> Option<u64> {
        match self.layout.seq {
            SeqField::Wide { at, first } => u64::from_be_bytes(get(datagram, at)?).checked_sub(first),
            SeqField::Narrow { at, first } => {
                let ahead = narrow(datagram, at)?.wrapping_sub(first as u32).wrapping_sub(self.next as u32);
                self.next.checked_add_signed(i64::from(ahead.cast_signed()))
            }
            SeqField::Signed { at, first } => u64::from(narrow(datagram, at)?).checked_sub(first),
            SeqField::Halves { low_at, high_at, first } => {
                let high = u64::from(narrow(datagram, high_at)?);
                (high << 32 | u64::from(narrow(datagram, low_at)?)).checked_sub(first)
            }
            SeqField::Bytes { at, streams } => {
                let bytes = u64::from_le_bytes(get(datagram, at)?);
                let swapped = *self.swapped.get_or_insert(bytes > BYTE_SWAPPED_ABOVE);
                let turns =
                    (if swapped { bytes.swap_bytes() } else { bytes } / self.length).checked_sub(1)?;
                Some(turns / u64::from(streams.max(1)))
            }
            SeqField::Absent => Some(self.next),
        }
    }
}

fn narrow(datagram: &[u8], at: usize) -> Option<u32> {
    get(datagram, at).map(u32::from_be_bytes)
}

fn negative(datagram: &[u8], seq: SeqField) -> bool {
    match seq {
        SeqField::Signed { at, .. } | SeqField::Halves { high_at: at, .. } => {
            narrow(datagram, at).is_some_and(|word| word.cast_signed() < 0)
        }
        SeqField::Wide { .. } | SeqField::Narrow { .. } | SeqField::Bytes { .. } | SeqField::Absent => false,
    }
}

fn sent_ns(datagram: &[u8], time: TimeField) -> Option<u64> {
    match time.form {
        TimeForm::Nanoseconds => get(datagram, time.at).map(u64::from_be_bytes),
        TimeForm::Monotonic | TimeForm::Wall => {
            let (seconds, us) = (narrow(datagram, time.at)?, narrow(datagram, time.at + 4)?);
            Some(u64::from(seconds) * 1_000_000_000 + u64::from(us) * 1000)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::ArrivalStatistics;
    use proptest::prelude::*;

    const LAYOUT: StampLayout = StampLayout {
        tag_at: Some(0),
        seq: SeqField::Wide { at: 8, first: 0 },
        time: Some(TimeField { at: 16, form: TimeForm::Nanoseconds }),
        stream_at: Some(24),
        length: 32,
    };
    const TAG: [u8; 8] = *b"thistest";

    /// Numbers and bytes of what arrives in `bytes`, in runs where possible, or one by one.
    fn arrivals(
        reader: &mut DatagramReader,
        bytes: &[u8],
        segment: usize,
        runs: bool,
    ) -> Vec<DatagramMeaning> {
        let (mut rest, mut all) = (bytes, Vec::new());
        while runs && let Some(run) = reader.run(rest, segment) {
            let first = reader.next - run.count;
            let stamp = |seq| DatagramMeaning::Data(Stamp { seq, sent_ns: run.sent_ns });
            all.extend((first..reader.next).map(stamp));
            assert!(run.bytes > rest.len().saturating_sub(1) || run.bytes.is_multiple_of(segment));
            rest = &rest[run.bytes..];
        }
        all.extend(rest.chunks(segment).map(|datagram| reader.read(datagram)));
        all
    }

    proptest::proptest! {
        #[test]
        fn runs_are_what_their_datagrams_are_one_by_one(
            all in proptest::collection::vec((0u64..4, 0u64..3, 0u8..20), 1..64),
            segment in 32usize..80, short in 0usize..32,
        ) {
            let layout = StampLayout {
                tag_at: Some(0),
                seq: SeqField::Wide { at: 8, first: 5 },
                time: Some(TimeField { at: 16, form: TimeForm::Nanoseconds }),
                stream_at: None,
                length: 32,
            };
            let mut bytes = vec![0; segment * all.len()];
            let mut seq = 1;
            for (datagram, (step, time, odd)) in bytes.chunks_mut(segment).zip(&all) {
                // Mostly the next number, sometimes the same or a later one, or another test's datagram.
                seq += if *step < 3 { 1 } else { *time };
                write_tag(datagram, &layout, if *odd == 0 { *b"stranger" } else { *b"thistest" });
                write(datagram, &layout, 0, Stamp { seq: seq - 1, sent_ns: time / 2 });
            }
            bytes.truncate(bytes.len() - short.min(segment - 1));
            let read = |runs| {
                let mut reader = DatagramReader::new(layout, *b"thistest", segment);
                (arrivals(&mut reader, &bytes, segment, runs), reader.next)
            };
            proptest::prop_assert_eq!(read(true), read(false));
        }
    }

    #[test]
    fn the_fields_are_where_the_layout_says_most_significant_byte_first() {
        let mut datagram = [0; 40];
        write_tag(&mut datagram, &LAYOUT, TAG);
        let stamp = Stamp { seq: 0x0102, sent_ns: 0x0304_0506_0708_090A };
        write(&mut datagram, &LAYOUT, 7, stamp);
        assert_eq!(datagram[..16], *b"thistest\0\0\0\0\0\0\x01\x02");
        assert_eq!(datagram[16..28], [3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 7]);
        let read = |datagram, tag| DatagramReader::new(LAYOUT, tag, 40).read(datagram);
        assert_eq!(read(&datagram[..], TAG), DatagramMeaning::Data(stamp));
        assert_eq!(read(&datagram[..], *b"another!"), DatagramMeaning::Stray);
        assert_eq!(read(&datagram[..31], TAG), DatagramMeaning::Stray, "too short to be ours");
    }

    fn layout(seq: SeqField) -> StampLayout {
        StampLayout { tag_at: None, seq, time: None, stream_at: None, length: 16 }
    }

    /// The numbers read from datagrams of 100 bytes; absent for strays.
    fn numbers(seq: SeqField, datagrams: &[[u8; 16]]) -> Vec<Option<u64>> {
        let mut reader = DatagramReader::new(layout(seq), [0; 8], 100);
        let number = |datagram: &[u8; 16]| match reader.read(datagram) {
            DatagramMeaning::Data(stamp) => Some(stamp.seq),
            _ => None,
        };
        datagrams.iter().map(number).collect()
    }

    fn word_at(at: usize, word: u32) -> [u8; 16] {
        let mut datagram = [0; 16];
        datagram[at..at + 4].copy_from_slice(&word.to_be_bytes());
        datagram
    }

    #[test]
    fn narrow_numbers_go_on_after_they_have_wrapped_and_a_late_one_stays_late() {
        let seq = SeqField::Narrow { at: 8, first: 1 };
        let words = [1, 0x7000_0000, 0xE000_0000, u32::MAX, 0, 1, u32::MAX - 1, 2];
        let expected =
            [0, 0x6FFF_FFFF, 0xDFFF_FFFF, 0xFFFF_FFFE, 0xFFFF_FFFF, 1 << 32, 0xFFFF_FFFD, (1 << 32) + 1];
        assert_eq!(numbers(seq, &words.map(|word| word_at(8, word))), expected.map(Some));
        // Numbers below the first are invalid.
        assert_eq!(numbers(seq, &[word_at(8, 0)]), [None]);
    }

    #[test]
    fn a_signed_number_in_halves_or_alone_ends_the_stream_below_zero() {
        let halves = SeqField::Halves { low_at: 0, high_at: 12, first: 1 };
        let mut wide = word_at(0, 5);
        wide[12..].copy_from_slice(&[0, 0, 0, 1]);
        assert_eq!(numbers(halves, &[word_at(0, 1), wide]), [Some(0), Some((1 << 32) + 4)]);
        let mut last = word_at(0, 0xFFFF_FF4A);
        last[12..].copy_from_slice(&[0xFF; 4]);
        let read = |seq, datagram: &[u8]| DatagramReader::new(layout(seq), [0; 8], 100).read(datagram);
        assert_eq!(read(halves, &last), DatagramMeaning::Negative);
        let signed = SeqField::Signed { at: 0, first: 0 };
        assert_eq!(read(signed, &last), DatagramMeaning::Negative);
        assert_eq!(numbers(signed, &[word_at(0, 0), word_at(0, 7)]), [Some(0), Some(7)]);
    }

    #[test]
    fn counts_of_bytes_become_numbers_in_either_byte_order() {
        let count = |bytes: u64, swap: bool| {
            let mut datagram = [0; 16];
            let bytes = if swap { bytes.to_be_bytes() } else { bytes.to_le_bytes() };
            datagram[8..].copy_from_slice(&bytes);
            datagram
        };
        for swap in [false, true] {
            let datagrams = [100, 200, 500, 400].map(|bytes| count(bytes, swap));
            assert_eq!(numbers(SeqField::Bytes { at: 8, streams: 1 }, &datagrams), [0, 1, 4, 3].map(Some));
            // The second of two streams, and the first.
            let datagrams = [200, 400, 800, 100, 300].map(|bytes| count(bytes, swap));
            assert_eq!(numbers(SeqField::Bytes { at: 8, streams: 2 }, &datagrams), [0, 1, 3, 0, 1].map(Some));
        }
        let layout = layout(SeqField::Bytes { at: 8, streams: 2 });
        let mut datagram = [0; 100];
        write(&mut datagram, &layout, 1, Stamp { seq: 3, sent_ns: 0 });
        assert_eq!(datagram[8..16], 800_u64.to_le_bytes());
    }

    #[test]
    fn without_numbers_each_is_the_next_and_an_absurd_number_is_a_stray() {
        assert_eq!(numbers(SeqField::Absent, &[[9; 16]; 3]), [0, 1, 2].map(Some));
        assert_eq!(numbers(SeqField::Wide { at: 0, first: 0 }, &[[0x7F; 16]]), [None]);
    }

    #[test]
    fn a_wall_time_is_seconds_and_microseconds() {
        let time = TimeField { at: 4, form: TimeForm::Wall };
        let layout = StampLayout { time: Some(time), ..layout(SeqField::Signed { at: 0, first: 1 }) };
        let mut datagram = [0; 16];
        write(&mut datagram, &layout, 0, Stamp { seq: 1, sent_ns: 5_000_678_999 });
        assert_eq!(datagram[..12], [0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 2, 0xA6]);
        let read = DatagramReader::new(layout, [0; 8], 16).read(&datagram);
        assert_eq!(read, DatagramMeaning::Data(Stamp { seq: 1, sent_ns: 5_000_678_000 }));
    }

    proptest! {
        #[test]
        fn no_bytes_and_no_layout_make_it_panic(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..60), at in 0usize..80, length in 0usize..80,
            form in 0usize..5,
        ) {
            let seq = [
                SeqField::Wide { at: at / 2, first: 1 },
                SeqField::Narrow { at: at / 2, first: 1 },
                SeqField::Halves { low_at: at, high_at: at / 2, first: 1 },
                SeqField::Bytes { at, streams: 1 },
                SeqField::Absent,
            ][form];
            let time = Some(TimeField { at, form: [TimeForm::Nanoseconds, TimeForm::Wall][form % 2] });
            let layout = StampLayout { tag_at: Some(at), seq, time, stream_at: Some(at), length };
            write(&mut bytes, &layout, 1, Stamp { seq: 1, sent_ns: 1 });
            let _ = DatagramReader::new(layout, TAG, length).read(&bytes);
        }

        #[test]
        fn whatever_arrives_the_counts_stay_within_what_can_be_summed(
            datagrams in proptest::collection::vec(any::<[u8; 16]>(), 0..60), first in 0u64..3, form in 0usize..6,
        ) {
            let seq = [
                SeqField::Wide { at: 0, first },
                SeqField::Narrow { at: 0, first },
                SeqField::Signed { at: 0, first },
                SeqField::Halves { low_at: 0, high_at: 4, first },
                SeqField::Bytes { at: 0, streams: 3 },
                SeqField::Absent,
            ][form];
            let time = Some(TimeField { at: 8, form: TimeForm::Wall });
            let mut reader = DatagramReader::new(StampLayout { time, ..layout(seq) }, TAG, 1);
            let mut arrivals = ArrivalStatistics::default();
            for (arrived, datagram) in datagrams.iter().enumerate() {
                if let DatagramMeaning::Data(stamp) = reader.read(datagram) {
                    arrivals.sequence.arrive(stamp.seq);
                    arrivals.jitter.arrive(stamp.sent_ns, arrived as u64);
                }
            }
            let counts = arrivals.counts();
            prop_assert!(counts.highest <= MAX_SEQUENCE && counts.lost <= counts.highest);
            prop_assert_eq!(counts.highest - counts.lost, counts.packets - counts.duplicates);
        }
    }
}
