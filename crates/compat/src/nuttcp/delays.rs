//! One-way delays and jitter of datagrams, as nuttcp reports them.

use super::options::{LEAST, MEAN, MOST};
use crate::stand_in::TransitCounts;

/// One-way delays by the wall clocks of both ends, whose error is the offset between the clocks, which may make
/// them negative; or jitter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OneWay {
    /// Number of values.
    pub(super) datagrams: u64,
    /// Their sum, microseconds.
    pub(super) sum_us: i128,
    /// The smallest, microseconds.
    pub(super) min_us: i64,
    /// The largest, microseconds.
    pub(super) max_us: i64,
}

impl OneWay {
    /// The delays of one stream.
    pub(super) fn of(counts: &TransitCounts) -> Self {
        // The clocks may differ by decades.
        let sum_ns = i128::from(counts.count) * i128::from(counts.first_ns) + i128::from(counts.sum_ns);
        Self {
            datagrams: counts.count,
            sum_us: sum_ns / 1000,
            min_us: counts.range_ns.0 / 1000,
            max_us: counts.range_ns.1 / 1000,
        }
    }

    /// Combines the delays of two streams.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            datagrams: self.datagrams.saturating_add(other.datagrams),
            sum_us: self.sum_us.saturating_add(other.sum_us),
            min_us: self.min_us.min(other.min_us),
            max_us: self.max_us.max(other.max_us),
        }
    }

    /// What was added since `earlier`; the range is one of the values since then.
    pub(super) fn since(self, earlier: Option<Self>, range_us: Option<(i64, i64)>) -> Self {
        let earlier = earlier.unwrap_or_default();
        let (min_us, max_us) = range_us.unwrap_or((self.min_us, self.max_us));
        Self {
            datagrams: self.datagrams.saturating_sub(earlier.datagrams),
            sum_us: self.sum_us.saturating_sub(earlier.sum_us),
            min_us,
            max_us,
        }
    }

    /// Smallest, mean and largest value, milliseconds; absent without values.
    pub(super) fn ms(&self) -> Option<[f64; 3]> {
        let mean = self.sum_us as f64 / self.datagrams as f64;
        (self.datagrams > 0).then(|| [self.min_us as f64, mean, self.max_us as f64].map(|us| us / 1e3))
    }
}

/// The kind of values in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelayKind {
    /// `-j`.
    Jitter,
    /// `-o`.
    OneWay,
}

impl DelayKind {
    /// The values of these bits, as in interval lines and in the last line; each with a blank before it.
    pub(super) fn text(self, values: Option<[f64; 3]>, bits: u64, parse: bool) -> String {
        let Some(values) = values else { return String::new() };
        let (long, short) = match self {
            Self::Jitter => ("Jitter", "jitter"),
            Self::OneWay => ("OWD", "OWD"),
        };
        let names = [(LEAST, "Min", "min"), (MEAN, "Avg", "avg"), (MOST, "Max", "max")];
        let wanted = names.into_iter().zip(values).filter(|((bit, ..), _)| bits & bit != 0);
        let texts = wanted.map(|((_, word, key), value)| {
            if parse { format!(" ms{key}{short}={value:.4}") } else { format!(" {value:.4} ms{word}{long}") }
        });
        texts.collect()
    }

    /// The line of a receiver's report.
    pub(super) fn report(self, [least, mean, most]: [f64; 3], parse: bool) -> String {
        match (self, parse) {
            (Self::Jitter, true) => {
                format!("msminjitter={least:.4} msavgjitter={mean:.4} msmaxjitter={most:.4}")
            }
            (Self::OneWay, true) => format!("msminOWD={least:.4} msavgOWD={mean:.4} msmaxOWD={most:.4}"),
            (kind, false) => {
                let name = if kind == Self::Jitter { "jitter" } else { "OWD" };
                format!("min-{name} = {least:.4} ms, avg-{name} = {mean:.4} ms, max-{name} = {most:.4} ms")
            }
        }
    }
}

/// The range of the values since the last interval line, from readings that may come more often than the lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FreshRange {
    /// Number of values at the last reading, for each stream.
    seen: Vec<u64>,
    range_us: Option<(i64, i64)>,
}

impl FreshRange {
    /// Notes a reading.
    pub(super) fn note<'c>(&mut self, streams: impl Iterator<Item = Option<&'c TransitCounts>>) {
        for (number, counts) in streams.enumerate() {
            if self.seen.len() <= number {
                self.seen.push(0);
            }
            // Without new values the range is that of an earlier reading.
            let Some(counts) = counts.filter(|counts| counts.count > self.seen[number]) else { continue };
            self.seen[number] = counts.count;
            let (low, high) = (counts.fresh_range_ns.0 / 1000, counts.fresh_range_ns.1 / 1000);
            let (least, most) = self.range_us.unwrap_or((low, high));
            self.range_us = Some((least.min(low), most.max(high)));
        }
    }

    /// The range since the last call.
    pub(super) fn take(&mut self) -> Option<(i64, i64)> {
        self.range_us.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_that_of_the_delays_and_not_of_what_they_differ_by() {
        // 3 ms, 5 ms and 4 ms.
        let counts = TransitCounts {
            count: 3,
            first_ns: 3_000_000,
            sum_ns: 3_000_000,
            range_ns: (3_000_000, 5_000_000),
            ..TransitCounts::default()
        };
        let delays = OneWay::of(&counts);
        assert_eq!(delays.ms(), Some([3.0, 4.0, 5.0]));
        let ahead = OneWay { datagrams: 1, sum_us: -8000, min_us: -8000, max_us: -8000 };
        assert_eq!(delays.with(ahead), OneWay { datagrams: 4, sum_us: 4000, min_us: -8000, max_us: 5000 });
        assert_eq!(OneWay::default().ms(), None);
        // The clock of the other end shows 1970.
        let first_ns = 1_800_000_000_000_000_000;
        let range_ns = (first_ns, first_ns + 2_000_000);
        let counts =
            TransitCounts { count: 1_000_000, first_ns, sum_ns: 1_000_000_000_000, range_ns, ..counts };
        assert_eq!(OneWay::of(&counts).ms(), Some([1.8e12, 1.8e12 + 1.0, 1.8e12 + 2.0]));
    }

    #[test]
    fn the_range_of_an_interval_spans_all_its_readings_and_no_other() {
        let counts = |count, low: i64, high: i64| TransitCounts {
            count,
            fresh_range_ns: (low * 1000, high * 1000),
            ..TransitCounts::default()
        };
        let mut fresh = FreshRange::default();
        let mut note = |first: Option<TransitCounts>, second: Option<TransitCounts>| {
            fresh.note([first.as_ref(), second.as_ref()].into_iter());
            fresh.clone()
        };
        note(Some(counts(2, 5, 9)), None);
        assert_eq!(note(Some(counts(3, 7, 7)), Some(counts(1, 2, 4))).take(), Some((2, 9)));
        let mut fresh = FreshRange { range_us: None, ..fresh };
        // Nothing new has arrived on the first stream.
        fresh.note([Some(&counts(3, 7, 7)), Some(&counts(2, 3, 3))].into_iter());
        assert_eq!((fresh.take(), fresh.take()), (Some((3, 3)), None));
    }

    /// As printed by 8.2.2 with `-jmaxo -omax`.
    #[test]
    fn the_letters_choose_the_values() {
        let values = Some([0.0, 0.008, 0.016]);
        let all = LEAST | MEAN | MOST;
        let line = " 0.0000 msMinJitter 0.0080 msAvgJitter 0.0160 msMaxJitter";
        assert_eq!(DelayKind::Jitter.text(values, all, false), line);
        assert_eq!(DelayKind::OneWay.text(values, LEAST | MOST, false), " 0.0000 msMinOWD 0.0160 msMaxOWD");
        assert_eq!(DelayKind::Jitter.text(values, MEAN, true), " msavgjitter=0.0080");
        assert_eq!(DelayKind::OneWay.text(values, MEAN, true), " msavgOWD=0.0080");
        assert_eq!(DelayKind::OneWay.text(None, all, true), "");
    }
}
