//! The times of single transactions, in whole microseconds as netperf counts them.

use std::collections::BTreeMap;

use linerate_units::Span;

/// Counts of times. They are exact to three digits, so that there are few of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Latencies {
    /// Number of times with each value.
    counts: BTreeMap<u64, u64>,
    count: u64,
    sum: f64,
    squares: f64,
    /// The shortest and the longest time.
    pub(super) least: u64,
    /// The longest.
    pub(super) most: u64,
}

/// The time, cut after its third digit.
fn cut(microseconds: u64) -> u64 {
    let mut step = 1;
    while microseconds / step >= 1000 {
        step *= 10;
    }
    microseconds / step * step
}

impl Latencies {
    pub(super) fn add(&mut self, time: Span) {
        let time = time.as_ns() / 1000;
        self.least = if self.count == 0 { time } else { self.least.min(time) };
        self.most = self.most.max(time);
        self.count = self.count.saturating_add(1);
        self.sum += time as f64;
        self.squares += time as f64 * time as f64;
        let counted = self.counts.entry(cut(time)).or_default();
        *counted = counted.saturating_add(1);
    }

    /// The time that this share of all transactions did not exceed, microseconds; 0 if there are too few.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let wanted = u128::from(self.count) * u128::from(percent) / 100;
        if wanted == 0 {
            return 0;
        }
        let mut seen = 0_u128;
        for (time, count) in &self.counts {
            seen += u128::from(*count);
            if seen >= wanted {
                return *time;
            }
        }
        self.most
    }

    /// Microseconds; 0 if there are none.
    pub(super) fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The standard deviation of the population, microseconds; 0 if there are none.
    pub(super) fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let mean = self.mean();
        (self.squares / self.count as f64 - mean * mean).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let mut all = Latencies::default();
        assert_eq!((all.percentile(99), all.mean(), all.deviation()), (0, 0.0, 0.0));
        (1..=100).for_each(|time| all.add(Span::from_ns(1000 * time)));
        assert_eq!((all.percentile(50), all.percentile(90), all.percentile(99)), (50, 90, 99));
        assert_eq!((all.least, all.most), (1, 100));
        // The mean of 1 to n is (n + 1) / 2, its variance (n² - 1) / 12.
        assert_eq!(all.mean(), 50.5);
        assert!((all.deviation() - (9999.0_f64 / 12.0).sqrt()).abs() < 1e-9);
        all.add(Span::from_ns(12_345_678_999));
        assert_eq!((all.most, all.percentile(100)), (12_345_678, 12_300_000));
    }
}
