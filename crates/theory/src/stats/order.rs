//! Rank-based statistics: percentiles, the median and its interval.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::{Interval, sorted};
use crate::domain::{finite, open_unit, unit};

/// Median: the middle value, or the mean of the two middle ones.
///
/// Units: those of the samples. Domain: at least one, all finite. Source: definition.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    let ascending = sorted(samples)?;
    let half = ascending.len() / 2;
    if ascending.len() % 2 == 1 {
        Some(ascending[half])
    } else {
        finite(f64::midpoint(ascending[half - 1], ascending[half]))
    }
}

/// Percentile by nearest rank: the smallest sample x with F(x) ≥ `share`, never an interpolation.
///
/// Units: those of the samples, share 0 to 1. Domain: at least one sample, all finite. Source: RFC 2330 §11.3.
#[must_use]
pub fn percentile(samples: &[f64], share: f64) -> Option<f64> {
    let ascending = sorted(samples)?;
    let exact = unit(share)? * ascending.len() as f64;
    // 0.55 · 20 is 11.000000000000002 in binary; that must not become rank 12.
    let rank = (exact - 1e-9).ceil().max(1.0) as usize;
    ascending.get(rank - 1).copied()
}

/// Ranks that enclose the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianRanks {
    /// Lower rank, counted from 1.
    pub lower: usize,
    /// Upper rank, counted from 1.
    pub upper: usize,
    /// Probability that the median lies between them.
    pub coverage: f64,
}

/// The narrowest symmetric pair of ranks that covers the median with at least `confidence`.
///
/// Domain: `None` if even the extremes do not cover it (fewer than 6 samples at 95 %). Source: sign-test
/// interval; no distribution assumed.
#[must_use]
pub fn median_ranks(samples: usize, confidence: f64) -> Option<MedianRanks> {
    let confidence = open_unit(confidence)?;
    let binomial = Binomial::new(0.5, u64::try_from(samples).ok()?).ok()?;
    let coverage_of = |lower: usize| 1.0 - 2.0 * binomial.cdf(lower as u64 - 1);
    // Rounding in the tail sum must not exclude a pair of ranks whose coverage is exactly the requested one.
    let covers = |rank: usize| coverage_of(rank) >= confidence - 1e-12;
    if samples < 2 || !covers(1) {
        return None;
    }
    // Coverage falls with the rank. The largest rank that still covers lies between `lower` and `beyond`.
    let (mut lower, mut beyond) = (1, samples / 2 + 1);
    while beyond - lower > 1 {
        let middle = lower.midpoint(beyond);
        if covers(middle) {
            lower = middle;
        } else {
            beyond = middle;
        }
    }
    Some(MedianRanks { lower, upper: samples + 1 - lower, coverage: coverage_of(lower) })
}

/// Distribution-free interval of the median.
///
/// Units: those of the samples. Domain: as [`median_ranks`]; independent samples. Source: sign-test interval.
#[must_use]
pub fn median_interval(samples: &[f64], confidence: f64) -> Option<Interval> {
    let ascending = sorted(samples)?;
    let ranks = median_ranks(ascending.len(), confidence)?;
    Some(Interval {
        low: ascending[ranks.lower - 1],
        high: ascending[ranks.upper - 1],
        coverage: ranks.coverage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank_returns_a_sample() {
        let samples: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(percentile(&samples, 0.55), Some(11.0));
        assert_eq!(percentile(&samples, 0.0), Some(1.0));
        assert_eq!(percentile(&samples, 1.0), Some(20.0));
        assert_eq!(percentile(&samples, 1.1), None);
        assert_eq!(percentile(&[], 0.5), None);
    }

    #[test]
    fn five_runs_have_no_interval_and_six_have() {
        assert_eq!(median_ranks(5, 0.95), None);
        let six = median_ranks(6, 0.95).unwrap();
        assert_eq!((six.lower, six.upper), (1, 6));
        assert!((six.coverage - 0.96875).abs() < 1e-12);
        assert_eq!(median_ranks(0, 0.95), None);
        let fifty = median_ranks(50, 0.95).unwrap();
        assert_eq!((fifty.lower, fifty.upper), (18, 33));
        assert_eq!(median_ranks(1, 0.1), None);
        assert_eq!(median_ranks(2, 0.4).map(|ranks| (ranks.lower, ranks.upper)), Some((1, 2)));
    }

    #[test]
    fn the_interval_takes_the_samples_at_those_ranks() {
        let interval = median_interval(&[6.0, 1.0, 5.0, 2.0, 4.0, 3.0], 0.95).unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 6.0));
        assert_eq!(median(&[6.0, 1.0, 5.0, 2.0]), Some(3.5));
        assert_eq!(median(&[f64::NAN]), None);
    }
}
