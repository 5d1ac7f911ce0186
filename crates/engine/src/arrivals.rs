//! Loss, reordering, duplication and jitter of one stream's datagrams. Does no I/O, so that tests can try any
//! order.

use linerate_model::LossBursts;
use linerate_model::flow::ReadBefore;

use crate::counters::DatagramCounts;

/// Size of the reordering window: whether a datagram has arrived is known for the last this many numbers.
const WINDOW_DATAGRAMS: u64 = 64 << 10;
const WINDOW_WORDS: usize = WINDOW_DATAGRAMS as usize / 64;

/// Sequence numbers received.
///
/// A number is late (reordered) when a higher one arrived before it (RFC 4737 §3.3), and a duplicate when it
/// has already arrived. A datagram that arrives more than [`WINDOW_DATAGRAMS`] numbers late may be a duplicate;
/// it is counted as late.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Highest number received plus one.
    next: u64,
    /// Numbers below the first `next` that arrived before this sequence began.
    before: u64,
    received: u64,
    late: u64,
    doubled: u64,
    /// Ring of one bit for each of the last [`WINDOW_DATAGRAMS`] numbers.
    seen: Box<[u64; WINDOW_WORDS]>,
    /// Numbers below this are in `losses`.
    settled: u64,
    losses: LossRuns,
    /// How far a late number was behind the highest one, at most.
    late_by: u64,
}

/// Numbers that are missing in a row.
#[derive(Debug, Default)]
struct LossRuns {
    /// Length of a run whose end is not known.
    open: u64,
    bursts: LossBursts,
}

impl LossRuns {
    /// Adds the next `count` numbers, the lowest in the lowest bit, which is set if it arrived.
    fn take(&mut self, bits: u64, count: u32) {
        let (mut bits, mut left) = (bits, count);
        while left > 0 {
            let missing = bits.trailing_zeros().min(left);
            self.open = self.open.saturating_add(u64::from(missing));
            (bits, left) = (bits.checked_shr(missing).unwrap_or(0), left - missing);
            let arrived = bits.trailing_ones().min(left);
            if arrived > 0 {
                self.bursts.add(std::mem::take(&mut self.open));
            }
            (bits, left) = (bits.checked_shr(arrived).unwrap_or(0), left - arrived);
        }
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self::after(ReadBefore::default())
    }
}

impl Sequence {
    /// A sequence that continues after what was read before, if anything was.
    pub(crate) fn after(ReadBefore { datagrams, next }: ReadBefore) -> Self {
        Self {
            next,
            before: datagrams,
            received: 0,
            late: 0,
            doubled: 0,
            seen: Box::new([0; WINDOW_WORDS]),
            settled: next,
            losses: LossRuns::default(),
            late_by: 0,
        }
    }

    /// Notes an arrival.
    #[inline]
    pub(crate) fn arrive(&mut self, seq: u64) {
        self.received += 1;
        if seq == self.next {
            // The usual case: nothing is missing between it and the highest number, so only its own bit changes.
            if seq.is_multiple_of(64) {
                self.settle_before(seq);
            }
            self.next = seq.saturating_add(1);
        } else if seq > self.next {
            self.settle_before(seq);
            self.clear_slots(seq);
            self.next = seq.saturating_add(1);
        } else if self.next - seq > WINDOW_DATAGRAMS {
            self.note_late(seq);
            return;
        } else if self.has_seen(seq) {
            self.doubled += 1;
            return;
        } else {
            self.note_late(seq);
        }
        self.seen[word_index(seq)] |= bit(seq);
    }

    /// Notes the arrival of `count` datagrams whose numbers follow the highest so far, as [`Sequence::arrive`] for each.
    pub(crate) fn arrive_run(&mut self, count: u64) {
        self.received += count;
        let end = self.next.saturating_add(count);
        while self.next < end {
            let place = self.next % 64;
            if place == 0 {
                self.settle_before(self.next);
            }
            let within = (64 - place).min(end - self.next);
            self.seen[word_index(self.next)] |= (u64::MAX >> (64 - within)) << place;
            self.next += within;
        }
    }

    /// Numbers below the highest received that have not arrived.
    pub(crate) const fn missing(&self) -> u64 {
        self.next.saturating_sub(self.before.saturating_add(self.received - self.doubled))
    }

    /// The losses below the highest number, and how far a late one was behind it. Nothing may arrive afterwards.
    pub(crate) fn end(&mut self) -> (LossBursts, u64) {
        self.settle(self.next);
        (std::mem::take(&mut self.losses.bursts), self.late_by)
    }

    fn note_late(&mut self, seq: u64) {
        self.late += 1;
        self.late_by = self.late_by.max(self.next - 1 - seq);
    }

    /// Settles the numbers whose bits make room for `seq` and the rest of its word.
    fn settle_before(&mut self, seq: u64) {
        self.settle((seq | 63).saturating_add(1).saturating_sub(WINDOW_DATAGRAMS));
    }

    /// Counts what is missing below `end`, for good. Of what arrives later, only the last 64 numbers of the window can still
    /// be counted as late instead of lost; in the bursts they stay.
    fn settle(&mut self, end: u64) {
        while self.settled < end.min(self.next) {
            let place = self.settled % 64;
            let count = (64 - place).min(end.min(self.next) - self.settled);
            let bits = (self.seen[word_index(self.settled)] >> place) & (u64::MAX >> (64 - count));
            self.losses.take(bits, count as u32);
            self.settled += count;
        }
        if self.settled < end {
            self.losses.open = self.losses.open.saturating_add(end - self.settled);
            self.settled = end;
        }
    }

    fn has_seen(&self, seq: u64) -> bool {
        self.seen[word_index(seq)] & bit(seq) != 0
    }

    /// Clears the bits of the numbers up to `seq`, which reuse the places of older numbers in the ring.
    fn clear_slots(&mut self, seq: u64) {
        if seq - self.next >= WINDOW_DATAGRAMS {
            self.seen.fill(0);
            return;
        }
        for number in self.next..=seq {
            self.seen[word_index(number)] &= !bit(number);
        }
    }
}

const fn word_index(seq: u64) -> usize {
    (seq / 64) as usize % WINDOW_WORDS
}

const fn bit(seq: u64) -> u64 {
    1 << (seq % 64)
}

/// Interarrival jitter in order of arrival, starting at 0.
///
/// # Source
/// RFC 3550 §6.4.1: `J += (|D| - J) / 16`.
#[derive(Debug, Default)]
pub(crate) struct InterarrivalJitter {
    /// Sixteen times the jitter in ns, so that the division by 16 loses no precision.
    sixteenfold: u64,
    /// Arrival time minus send time of the previous datagram. It includes the clock offset, which cancels out.
    transit: Option<i64>,
}

impl InterarrivalJitter {
    /// Notes an arrival.
    #[inline]
    pub(crate) fn arrive(&mut self, sent_ns: u64, arrived_ns: u64) {
        let transit = arrived_ns.wrapping_sub(sent_ns).cast_signed();
        if let Some(before) = self.transit.replace(transit) {
            let change = transit.wrapping_sub(before).unsigned_abs();
            self.sixteenfold = (self.sixteenfold - self.sixteenfold / 16).saturating_add(change);
        }
    }

    /// Notes the arrival of `count` datagrams that were sent and received at the same time, as
    /// [`InterarrivalJitter::arrive`] for each.
    pub(crate) fn arrive_run(&mut self, sent_ns: u64, arrived_ns: u64, count: u64) {
        self.arrive(sent_ns, arrived_ns);
        for _ in 1..count {
            // Below 16 the division leaves it as it is.
            if self.sixteenfold < 16 {
                break;
            }
            self.sixteenfold -= self.sixteenfold / 16;
        }
    }

    /// Nanoseconds.
    pub(crate) const fn ns(&self) -> u64 {
        self.sixteenfold / 16
    }
}

/// Arrival statistics of one stream.
#[derive(Debug)]
pub(crate) struct ArrivalStatistics {
    pub(crate) sequence: Sequence,
    pub(crate) jitter: InterarrivalJitter,
    pub(crate) foreign: u64,
    socket_drops: u64,
    /// The kernel's cumulative count, which wraps at 2^32.
    dropped: u32,
}

impl Default for ArrivalStatistics {
    fn default() -> Self {
        Self::after(ReadBefore::default())
    }
}

impl ArrivalStatistics {
    pub(crate) fn after(before: ReadBefore) -> Self {
        let (sequence, jitter) = (Sequence::after(before), InterarrivalJitter::default());
        Self { sequence, jitter, foreign: 0, socket_drops: 0, dropped: 0 }
    }

    /// Records the kernel's cumulative count of messages dropped at the socket. A GRO message is dropped and
    /// counted as one, so each drop counts as the number of datagrams (`joined`) in the message that carried
    /// the count.
    #[inline]
    pub(crate) fn dropped(&mut self, count: u32, joined: usize) {
        self.socket_drops += u64::from(count.wrapping_sub(self.dropped)) * joined as u64;
        self.dropped = count;
    }

    pub(crate) const fn counts(&self) -> DatagramCounts {
        DatagramCounts {
            packets: self.sequence.received,
            highest: self.sequence.next,
            lost: self.sequence.missing(),
            out_of_order: self.sequence.late,
            duplicates: self.sequence.doubled,
            socket_drops: self.socket_drops,
            jitter: self.jitter.ns(),
            foreign: self.foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Received, missing, late, duplicates.
    fn observe(numbers: &[u64]) -> (u64, u64, u64, u64) {
        let mut sequence = Sequence::default();
        numbers.iter().for_each(|&seq| sequence.arrive(seq));
        (sequence.received, sequence.missing(), sequence.late, sequence.doubled)
    }

    /// Reference implementation that remembers every number.
    fn naive(numbers: &[u64]) -> (u64, u64, u64, u64) {
        let (mut seen, mut late, mut doubled) = (BTreeSet::new(), 0, 0);
        for &seq in numbers {
            let below = seen.last().is_some_and(|&highest| seq < highest);
            if !seen.insert(seq) {
                doubled += 1;
            } else if below {
                late += 1;
            }
        }
        let highest = seen.last().map_or(0, |highest| highest + 1);
        (numbers.len() as u64, highest - seen.len() as u64, late, doubled)
    }

    /// The lengths of losses in a row below the highest number.
    fn naive_bursts(numbers: &[u64]) -> LossBursts {
        let seen: BTreeSet<u64> = numbers.iter().copied().collect();
        let mut bursts = LossBursts::default();
        let mut expected = 0;
        for number in seen {
            bursts.add(number - expected);
            expected = number + 1;
        }
        bursts
    }

    fn bursts(numbers: &[u64]) -> LossBursts {
        let mut sequence = Sequence::default();
        numbers.iter().for_each(|&seq| sequence.arrive(seq));
        sequence.end().0
    }

    #[test]
    fn losses_in_a_row_are_a_burst_unless_one_of_them_comes_late() {
        let of = |numbers: &[u64]| {
            let found = bursts(numbers);
            (found.count, found.lost, found.longest)
        };
        assert_eq!(of(&[0, 1, 2]), (0, 0, 0));
        assert_eq!(of(&[3, 4, 7]), (2, 5, 3));
        assert_eq!(of(&[0, 6, 3]), (2, 4, 2), "3 divides the burst");
        assert_eq!(of(&[0, 5 * WINDOW_DATAGRAMS + 1]), (1, 5 * WINDOW_DATAGRAMS, 5 * WINDOW_DATAGRAMS));
        let mut late = Sequence::default();
        [0, 1, 9, 4, 2].iter().for_each(|&seq| late.arrive(seq));
        assert_eq!(late.end().1, 7, "2 came after 9");
    }

    #[test]
    fn lost_late_and_duplicate_packets_are_distinguished() {
        assert_eq!(observe(&[0, 1, 2]), (3, 0, 0, 0));
        assert_eq!(observe(&[2]), (1, 2, 0, 0), "the first two are missing");
        assert_eq!(observe(&[0, 3, 1, 1, 4]), (5, 1, 1, 1));
        assert_eq!(observe(&[0, 0, 0]), (3, 0, 0, 2));
        assert_eq!(observe(&[]), (0, 0, 0, 0));
    }

    #[test]
    fn a_number_that_takes_over_a_place_in_the_ring_is_not_taken_for_the_old_one() {
        assert_eq!(
            observe(&[0, WINDOW_DATAGRAMS, 0]),
            (3, WINDOW_DATAGRAMS - 2, 1, 0),
            "beyond memory: taken for a late one"
        );
        assert_eq!(observe(&[1, WINDOW_DATAGRAMS, 1]), (3, WINDOW_DATAGRAMS - 1, 0, 1), "just remembered");
        assert_eq!(observe(&[5, 5 + 3 * WINDOW_DATAGRAMS, 5 + 2 * WINDOW_DATAGRAMS + 1]).3, 0);
    }

    #[test]
    fn absurd_numbers_do_no_harm() {
        assert_eq!(observe(&[u64::MAX, 0, u64::MAX]).0, 3);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definitions(numbers in proptest::collection::vec(0u64..2000, 0..400)) {
            prop_assert_eq!(observe(&numbers), naive(&numbers));
            prop_assert_eq!(bursts(&numbers), naive_bursts(&numbers));
        }

        #[test]
        fn agrees_with_the_definitions_along_a_moving_window(
            steps in proptest::collection::vec((0u64..30_000, 0u64..20_000), 0..30),
        ) {
            let mut base = 0;
            let numbers: Vec<u64> = steps.iter().map(|(ahead, below)| {
                base += ahead;
                base.saturating_sub(*below)
            }).collect();
            // A number is at most 20,000 below the highest so far, which is within the window.
            prop_assert_eq!(observe(&numbers), naive(&numbers));
            prop_assert_eq!(bursts(&numbers), naive_bursts(&numbers));
        }
    }

    proptest! {
        #[test]
        fn runs_count_as_their_datagrams_one_by_one(
            steps in proptest::collection::vec((0u64..300, 1u64..200, 0u64..70_000, 0u64..1_000_000), 0..30),
        ) {
            let (mut runs, mut each) = (ArrivalStatistics::default(), ArrivalStatistics::default());
            for (gap, count, back, ns) in steps {
                // A number after a gap, one that may be late or doubled, then a run.
                let ahead = each.sequence.next + gap;
                for seq in [ahead, ahead.saturating_sub(back)] {
                    runs.sequence.arrive(seq);
                    each.sequence.arrive(seq);
                }
                runs.sequence.arrive_run(count);
                runs.jitter.arrive_run(1, ns, count);
                for _ in 0..count {
                    let next = each.sequence.next;
                    each.sequence.arrive(next);
                    each.jitter.arrive(1, ns);
                }
                prop_assert_eq!(runs.counts(), each.counts());
            }
            prop_assert_eq!(runs.sequence.end(), each.sequence.end());
        }
    }

    #[test]
    fn jitter_follows_the_worked_example() {
        // Transit times in µs. The expected values, in ns, add up (|D| - J)/16 by hand.
        let transits = [20_000, 20_400, 19_900, 21_300, 20_200, 20_200, 25_000, 20_100u64];
        let expected = [0.0, 25_000.0, 54_687.5, 138_769.5, 198_846.4, 186_418.5, 474_767.4, 751_344.4];
        let mut jitter = InterarrivalJitter::default();
        for (index, (transit, expected)) in transits.iter().zip(expected).enumerate() {
            let sent = index as u64 * 10_000_000;
            jitter.arrive(sent, sent + transit * 1000);
            let error = (jitter.ns() as f64 - expected).abs();
            assert!(error <= 2.0, "{index}: {} instead of {expected}", jitter.ns());
        }
    }

    #[test]
    fn an_offset_between_the_clocks_cancels() {
        let with_offset = |offset: u64| {
            let mut jitter = InterarrivalJitter::default();
            for (sent, delay) in [(0u64, 5_000u64), (1_000_000, 9_000), (2_000_000, 7_000)] {
                jitter.arrive(sent.wrapping_add(offset), sent + delay);
            }
            jitter.ns()
        };
        assert_eq!(with_offset(0), with_offset(u64::MAX - 3_000_000_000));
        assert!(with_offset(0) > 0);
    }

    #[test]
    fn the_kernels_count_of_drops_may_wrap() {
        let mut arrivals = ArrivalStatistics::default();
        for count in [0, 3, u32::MAX, 1] {
            arrivals.dropped(count, 1);
        }
        assert_eq!(arrivals.counts().socket_drops, u64::from(u32::MAX) + 2);
        arrivals.dropped(3, 44);
        assert_eq!(arrivals.counts().socket_drops, u64::from(u32::MAX) + 2 + 88, "two of 44 datagrams each");
    }

    #[test]
    fn what_was_read_before_is_neither_counted_nor_missing() {
        // 0, 1 and 3 of the first five numbers.
        let mut sequence = Sequence::after(ReadBefore { datagrams: 3, next: 4 });
        assert_eq!(sequence.missing(), 1);
        for seq in [4, 6] {
            sequence.arrive(seq);
        }
        assert_eq!((sequence.received, sequence.missing(), sequence.late), (2, 2, 0));
        sequence.arrive(2);
        assert_eq!((sequence.received, sequence.missing(), sequence.late), (3, 1, 1));
        sequence.arrive_run(200);
        assert_eq!((sequence.received, sequence.missing(), sequence.next), (203, 1, 207));
        assert_eq!(sequence.end().0.lost, 1);
    }
}
