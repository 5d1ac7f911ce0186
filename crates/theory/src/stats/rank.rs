//! Compares two configurations: Mann-Whitney test and Hodges-Lehmann shift.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{Interval, order, sorted};
use crate::domain::open_unit;

/// Up to this product of sample sizes the distribution of U is counted exactly.
pub const MAX_EXACT_PRODUCT: usize = 400;

/// Outcome of a Mann-Whitney test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs in which the first sample is larger; ties count one half.
    pub u: f64,
    /// Two-sided probability of a U at least this far from its mean if there is no difference.
    pub p: f64,
}

/// Two-sided Mann-Whitney test with mid-ranks for ties.
///
/// Exact over all permutations while n·m ≤ [`MAX_EXACT_PRODUCT`]; above that, the normal approximation with
/// correction for ties.
/// Domain: both samples non-empty and finite, independent. Source: Mann and Whitney 1947.
#[must_use]
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Option<MannWhitney> {
    let doubled = doubled_ranks(x, y)?;
    let (n, m) = (x.len(), y.len());
    let rank_sum: usize = doubled[..n].iter().sum();
    // All ranks are stored doubled, so that mid-ranks are whole numbers.
    let u2 = rank_sum - n * (n + 1);
    let p = if n * m <= MAX_EXACT_PRODUCT {
        // The rank sum of the smaller sample is equivalent and needs far fewer steps to count.
        let (smaller, sum) = if n <= m { (n, rank_sum) } else { (m, doubled[n..].iter().sum()) };
        exact_p(&doubled, smaller, sum)
    } else {
        normal_p(&doubled, n, u2)?
    };
    Some(MannWhitney { u: u2 as f64 / 2.0, p })
}

/// Twice the mid-rank of every value, those of the first sample first.
fn doubled_ranks(x: &[f64], y: &[f64]) -> Option<Vec<usize>> {
    let (first, second) = (sorted(x)?, sorted(y)?);
    let all = sorted(&[first, second].concat())?;
    let rank = |value: &f64| {
        let below = all.partition_point(|other| other < value);
        let not_above = all.partition_point(|other| other <= value);
        below + not_above + 1
    };
    Some(x.iter().chain(y).map(rank).collect())
}

/// Share of the choices of `n` values whose rank sum is at least as far from its mean.
fn exact_p(doubled: &[usize], n: usize, rank_sum: usize) -> f64 {
    let ways = ways_by_sum(doubled, n);
    let mean = n * (doubled.len() + 1);
    let distance = rank_sum.abs_diff(mean);
    let total: f64 = ways.iter().sum();
    let extreme: f64 = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| sum.abs_diff(mean) >= distance)
        .map(|(_, count)| count)
        .sum();
    extreme / total
}

/// Number of ways in which `n` of the weights add up to each sum. Counts stay below 2^53 for the sizes that are
/// counted exactly.
fn ways_by_sum(weights: &[usize], n: usize) -> Vec<f64> {
    let largest: usize = weights.iter().sum();
    let mut ways = vec![vec![0.0; largest + 1]; n + 1];
    ways[0][0] = 1.0;
    for &weight in weights {
        for taken in (1..=n).rev() {
            for sum in (weight..=largest).rev() {
                ways[taken][sum] += ways[taken - 1][sum - weight];
            }
        }
    }
    ways.pop().unwrap_or_default()
}

fn normal_p(doubled: &[usize], n: usize, u2: usize) -> Option<f64> {
    let (n, all) = (n as f64, doubled.len() as f64);
    let m = all - n;
    let mut ranks = doubled.to_vec();
    ranks.sort_unstable();
    let ties: f64 =
        ranks.chunk_by(|a, b| a == b).map(|group| (group.len() as f64).powi(3) - group.len() as f64).sum();
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return Some(1.0); // All values are equal.
    }
    // Half a step of continuity correction towards the mean.
    let distance = ((u2 as f64 / 2.0 - n * m / 2.0).abs() - 0.5).max(0.0);
    Some(2.0 * Normal::standard().sf(distance / variance.sqrt()))
}

/// Hodges-Lehmann shift: how far the first sample is above the second.
///
/// Units: those of the samples. Domain: both non-empty and finite. Source: Hodges and Lehmann 1963.
#[must_use]
pub fn shift(x: &[f64], y: &[f64]) -> Option<f64> {
    order::median(&differences(x, y)?)
}

/// Interval of the shift, and the rank of its lower end among all differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShiftInterval {
    /// The interval.
    pub interval: Interval,
    /// Rank of the lower end, counted from 1. The upper end has the same rank, counted from the largest.
    pub rank: usize,
}

/// Interval of the Hodges-Lehmann shift from the distribution of U without ties, exact while n·m ≤
/// [`MAX_EXACT_PRODUCT`]; above that, its normal approximation.
///
/// Units: those of the samples. Domain: `None` if the samples are too few for `confidence`.
/// Source: Hodges and Lehmann 1963; Mann and Whitney 1947.
#[must_use]
pub fn shift_interval(x: &[f64], y: &[f64], confidence: f64) -> Option<ShiftInterval> {
    let confidence = open_unit(confidence)?;
    let ordered = differences(x, y)?;
    let pairs = ordered.len();
    if pairs > MAX_EXACT_PRODUCT {
        let (rank, coverage) = (normal_rank(x.len() as f64, y.len() as f64, confidence)?, confidence);
        let interval = Interval { low: ordered[rank - 1], high: ordered[pairs - rank], coverage };
        return Some(ShiftInterval { interval, rank });
    }
    let ranks: Vec<usize> = (1..=x.len() + y.len()).collect();
    let smaller = x.len().min(y.len());
    let ways = ways_by_sum(&ranks, smaller);
    let total: f64 = ways.iter().sum();
    let least = smaller * (smaller + 1) / 2;
    let (mut tail, mut found) = (0.0, None);
    for rank in 1..=pairs.div_ceil(2) {
        tail += ways[least + rank - 1] / total;
        let coverage = 1.0 - 2.0 * tail;
        if coverage < confidence {
            break;
        }
        found = Some((rank, coverage));
    }
    let (rank, coverage) = found?;
    Some(ShiftInterval {
        interval: Interval { low: ordered[rank - 1], high: ordered[pairs - rank], coverage },
        rank,
    })
}

/// Rank of the lower end of the shift's interval, by the normal approximation.
fn normal_rank(n: f64, m: f64, confidence: f64) -> Option<usize> {
    let z = Normal::standard().inverse_cdf(f64::midpoint(1.0, confidence));
    let rank = (n * m / 2.0 - z * (n * m * (n + m + 1.0) / 12.0).sqrt()).floor();
    (rank >= 1.0).then_some(rank as usize)
}

/// All differences x − y, ascending.
fn differences(x: &[f64], y: &[f64]) -> Option<Vec<f64>> {
    let all: Vec<f64> = x.iter().flat_map(|a| y.iter().map(move |b| a - b)).collect();
    sorted(&all)
}

/// Which hypotheses are rejected if many are tested at once.
///
/// Shape: `[test]`, in the order of `p_values`. Domain: rate between 0 and 1. Source: Benjamini and Hochberg
/// 1995.
#[must_use]
pub fn benjamini_hochberg(p_values: &[f64], false_discovery_rate: f64) -> Vec<bool> {
    let tests = p_values.len() as f64;
    let mut order: Vec<f64> = p_values.iter().copied().filter(|p| p.is_finite()).collect();
    order.sort_by(f64::total_cmp);
    let limit = order
        .iter()
        .enumerate()
        .rev()
        .find(|(i, p)| **p <= false_discovery_rate * (*i as f64 + 1.0) / tests)
        .map(|(_, p)| *p);
    p_values.iter().map(|p| limit.is_some_and(|limit| *p <= limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completely_separate_samples_have_the_smallest_p() {
        let outcome = mann_whitney(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(outcome.u, 9.0);
        assert!((outcome.p - 2.0 / 20.0).abs() < 1e-12);
    }

    #[test]
    fn the_order_of_the_samples_does_not_matter() {
        let (x, y) = ([1.0, 2.0, 2.0, 9.0], [2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 11.0]);
        let (one, other) = (mann_whitney(&x, &y).unwrap(), mann_whitney(&y, &x).unwrap());
        assert!((one.p - other.p).abs() < 1e-12);
        assert!((one.u + other.u - 28.0).abs() < 1e-12, "the pairs are shared out");
        let (forth, back) = (shift_interval(&x, &y, 0.9).unwrap(), shift_interval(&y, &x, 0.9).unwrap());
        assert!((forth.interval.low + back.interval.high).abs() < 1e-12);
        assert!((forth.interval.coverage - back.interval.coverage).abs() < 1e-12);
    }

    #[test]
    fn equal_samples_do_not_differ() {
        assert!((mann_whitney(&[1.0; 4], &[1.0; 5]).unwrap().p - 1.0).abs() < 1e-12);
        assert!((mann_whitney(&[1.0; 30], &[1.0; 30]).unwrap().p - 1.0).abs() < 1e-12);
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[f64::NAN], &[1.0]), None);
    }

    #[test]
    fn the_normal_approximation_continues_the_exact_one() {
        let x: Vec<f64> = (0..20).map(|i| f64::from(i) * 1.1).collect();
        let y: Vec<f64> = (0..20).map(|i| f64::from(i) + 4.03).collect();
        let exact = mann_whitney(&x, &y).unwrap().p;
        let doubled = doubled_ranks(&x, &y).unwrap();
        let sum: usize = doubled[..20].iter().sum();
        let approximate = normal_p(&doubled, 20, sum - 20 * 21).unwrap();
        assert!((exact - approximate).abs() < 0.01, "{exact} against {approximate}");
    }

    #[test]
    fn a_constant_shift_is_found_and_covered() {
        let y = [1.0, 4.0, 2.0, 8.0, 5.0, 7.0];
        let x = y.map(|value| value + 10.0);
        assert_eq!(shift(&x, &y), Some(10.0));
        let found = shift_interval(&x, &y, 0.95).unwrap();
        assert!(found.interval.low < 10.0 && found.interval.high > 10.0);
        assert!(found.interval.coverage >= 0.95);
        assert_eq!(shift_interval(&[1.0], &[2.0], 0.95), None);
    }

    #[test]
    fn the_approximate_rank_continues_the_exact_one() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let exact = shift_interval(&x, &x, 0.95).unwrap().rank;
        let approximate = normal_rank(20.0, 20.0, 0.95).unwrap();
        assert!(exact.abs_diff(approximate) <= 1, "{exact} against {approximate}");
        let x: Vec<f64> = (0..21).map(f64::from).collect();
        let wide = shift_interval(&x, &x, 0.95).unwrap().interval;
        assert!(wide.low < 0.0 && wide.low + wide.high == 0.0, "{wide:?}");
    }

    #[test]
    fn discoveries_follow_benjamini_and_hochberg() {
        assert_eq!(benjamini_hochberg(&[0.01, 0.04, 0.03, 0.5], 0.05), [true, false, false, false]);
        assert_eq!(benjamini_hochberg(&[0.01, 0.02, 0.03, 0.5], 0.05), [true, true, true, false]);
    }
}
