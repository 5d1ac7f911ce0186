//! Compares two configurations that were measured alternately, by differences of pairs.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{Interval, order, sorted};
use crate::domain::open_unit;

/// Up to this number of differences, the distribution of the rank sum is counted exactly.
pub const MAX_EXACT_DIFFERENCES: usize = 50;

/// Outcome of a Wilcoxon signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of the positive differences; ties share the mean of their ranks.
    pub w: f64,
    /// Number of non-zero differences, which the test uses.
    pub used: usize,
    /// Two-sided probability of a sum at least this far from its mean if there is no difference.
    pub p: f64,
}

/// Two-sided Wilcoxon signed-rank test of differences. Differences of 0 are left out.
///
/// Exact over all signs up to [`MAX_EXACT_DIFFERENCES`] differences; above that, the normal approximation with
/// correction for ties.
/// Domain: at least one difference, all finite; pairs independent of each other. Source: Wilcoxon 1945.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    let all = sorted(differences)?;
    let used: Vec<f64> = all.into_iter().filter(|difference| *difference != 0.0).collect();
    if used.is_empty() {
        return Some(SignedRank { w: 0.0, used: 0, p: 1.0 });
    }
    let sizes = sorted(&used.iter().map(|difference| difference.abs()).collect::<Vec<_>>())?;
    // Ranks are stored doubled, so that mid-ranks are whole numbers.
    let rank = |difference: &f64| {
        let size = difference.abs();
        sizes.partition_point(|other| *other < size) + sizes.partition_point(|other| *other <= size) + 1
    };
    let doubled: Vec<usize> = used.iter().map(rank).collect();
    let positive: usize =
        used.iter().zip(&doubled).filter(|(difference, _)| **difference > 0.0).map(|(_, rank)| rank).sum();
    let p = if used.len() <= MAX_EXACT_DIFFERENCES {
        exact_p(&doubled, positive)
    } else {
        normal_p(&doubled, positive)
    };
    Some(SignedRank { w: positive as f64 / 2.0, used: used.len(), p })
}

/// Share of all sign assignments whose positive rank sum is at least as far from its mean.
fn exact_p(doubled: &[usize], positive: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    let mut ways = vec![0.0_f64; total + 1];
    ways[0] = 1.0;
    for &rank in doubled {
        for sum in (rank..=total).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    // The mean is half the total. Doubled once more it is a whole number.
    let distance = (2 * positive).abs_diff(total);
    let extreme: f64 = ways
        .iter()
        .enumerate()
        .filter(|(sum, _)| (2 * sum).abs_diff(total) >= distance)
        .map(|(_, ways)| ways)
        .sum();
    extreme / ways.iter().sum::<f64>()
}

fn normal_p(doubled: &[usize], positive: usize) -> f64 {
    let total: usize = doubled.iter().sum();
    // The sum of squared ranks is four times the variance, ties included.
    let variance: f64 = doubled.iter().map(|rank| (*rank as f64 / 2.0).powi(2)).sum::<f64>() / 4.0;
    let distance = ((positive as f64 - total as f64 / 2.0).abs() / 2.0 - 0.5).max(0.0);
    2.0 * Normal::standard().sf(distance / variance.sqrt())
}

/// Hodges-Lehmann centre of differences: the median of the means of all pairs, including each value with
/// itself.
///
/// Units: those of the differences. Domain: at least one, all finite. Source: Hodges and Lehmann 1963.
#[must_use]
pub fn centre(differences: &[f64]) -> Option<f64> {
    order::median(&walsh(differences)?)
}

/// Interval of [`centre`] from the distribution of the signed rank sum without ties.
///
/// Exact up to [`MAX_EXACT_DIFFERENCES`]; above that, the normal approximation.
/// Units: those of the differences. Domain: `None` if they are too few for `confidence` (five at 95 %). Source: Tukey
/// 1949; Hollander and Wolfe 1999, section 3.3.
#[must_use]
pub fn centre_interval(differences: &[f64], confidence: f64) -> Option<Interval> {
    let confidence = open_unit(confidence)?;
    let ordered = walsh(differences)?;
    let (rank, coverage) = if differences.len() > MAX_EXACT_DIFFERENCES {
        (normal_rank(differences.len() as f64, confidence)?, confidence)
    } else {
        exact_rank(differences.len(), confidence)?
    };
    Some(Interval { low: ordered[rank - 1], high: ordered[ordered.len() - rank], coverage })
}

/// Rank of the lower end of the centre's interval among the means of all pairs, and its coverage.
fn exact_rank(count: usize, confidence: f64) -> Option<(usize, f64)> {
    let means = count * (count + 1) / 2;
    let mut ways = vec![0.0_f64; means + 1];
    ways[0] = 1.0;
    for rank in 1..=count {
        for sum in (rank..=means).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all: f64 = ways.iter().sum();
    let (mut tail, mut found) = (0.0, None);
    for rank in 1..=means.div_ceil(2) {
        tail += ways[rank - 1] / all;
        let coverage = 1.0 - 2.0 * tail;
        if coverage < confidence {
            break;
        }
        found = Some((rank, coverage));
    }
    found
}

/// The same rank by the normal approximation.
fn normal_rank(n: f64, confidence: f64) -> Option<usize> {
    let z = Normal::standard().inverse_cdf(f64::midpoint(1.0, confidence));
    let rank = (n * (n + 1.0) / 4.0 - z * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt()).floor();
    (rank >= 1.0).then_some(rank as usize)
}

/// Means of all pairs, including each value with itself, ascending.
fn walsh(differences: &[f64]) -> Option<Vec<f64>> {
    let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (number, one) in differences.iter().enumerate() {
        means.extend(differences[number..].iter().map(|other| f64::midpoint(*one, *other)));
    }
    // In place: there are half a million of a thousand differences.
    let finite = differences.iter().all(|difference| difference.is_finite());
    means.sort_unstable_by(f64::total_cmp);
    (finite && !means.is_empty()).then_some(means)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine patients before and after a treatment: Hollander and Wolfe, Nonparametric Statistical Methods,
    /// table 3.1. They give T+ = 5 for after minus before, hence 40 for before minus after, and P = 0.0195
    /// one-sided.
    #[expect(clippy::approx_constant, reason = "a value from the book's table")]
    #[test]
    fn the_worked_example_of_hollander_and_wolfe() {
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| before - after).collect();
        let found = signed_rank(&differences).unwrap();
        assert_eq!((found.w, found.used), (40.0, 9));
        assert!((found.p - 2.0 * 10.0 / 512.0).abs() < 1e-12, "{}", found.p);
        assert!((centre(&differences).unwrap() - 0.46).abs() < 1e-9);
    }

    #[test]
    fn the_smallest_p_is_that_of_differences_of_one_sign() {
        let found = signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert!((found.p - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!(signed_rank(&[0.0, 0.0]).unwrap().p, 1.0);
        assert_eq!(signed_rank(&[]), None);
        assert_eq!(signed_rank(&[f64::NAN]), None);
    }

    #[test]
    fn the_sign_of_the_differences_changes_nothing_but_the_side() {
        let differences = [0.3, -0.1, 0.4, 0.4, -0.7, 1.2, 0.0, 0.9];
        let turned = differences.map(|difference| -difference);
        let (one, other) = (signed_rank(&differences).unwrap(), signed_rank(&turned).unwrap());
        assert!((one.p - other.p).abs() < 1e-12);
        assert_eq!(one.w + other.w, 28.0, "the ranks of seven differences are shared out");
        assert!((centre(&differences).unwrap() + centre(&turned).unwrap()).abs() < 1e-12);
        let (one, other) =
            (centre_interval(&differences, 0.9).unwrap(), centre_interval(&turned, 0.9).unwrap());
        assert!((one.low + other.high).abs() < 1e-12 && (one.coverage - other.coverage).abs() < 1e-12);
    }

    #[test]
    fn the_normal_approximation_continues_the_exact_one() {
        let doubled: Vec<usize> = (1..=40).map(|rank| rank * 2).collect();
        let positive = 2 * 550;
        let (exact, normal) = (exact_p(&doubled, positive), normal_p(&doubled, positive));
        assert!((exact - normal).abs() < 0.005, "{exact} against {normal}");
    }

    #[test]
    fn six_pairs_are_the_fewest_that_bound_the_centre() {
        assert_eq!(centre_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95), None);
        let six = centre_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap();
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((six.coverage - (1.0 - 2.0 / 64.0)).abs() < 1e-12);
    }

    #[test]
    fn the_approximate_rank_of_many_pairs_covers_what_it_promises() {
        for count in [MAX_EXACT_DIFFERENCES, MAX_EXACT_DIFFERENCES + 1, 75, 120] {
            for confidence in [0.9, 0.95, 0.99] {
                let (exact, _) = exact_rank(count, confidence).unwrap();
                let approximate = normal_rank(count as f64, confidence).unwrap();
                // A lower rank is a wider interval. The tails of the exact distribution are shorter.
                let sigma = ((count * (count + 1) * (2 * count + 1)) as f64 / 24.0).sqrt();
                let narrower = exact as f64 - approximate as f64;
                assert!((0.0..=1.0 + 0.03 * sigma).contains(&narrower), "{count}: {exact}, {approximate}");
            }
        }
    }

    #[test]
    fn one_more_pair_than_is_counted_exactly_changes_the_interval_little() {
        // Around 0.5, one every hundredth.
        let spread = |count: usize| -> Vec<f64> {
            (0..count).map(|number| 0.5 + (number as f64 - (count - 1) as f64 / 2.0) / 100.0).collect()
        };
        let [exact, normal] = [MAX_EXACT_DIFFERENCES, MAX_EXACT_DIFFERENCES + 1]
            .map(|count| centre_interval(&spread(count), 0.95).unwrap());
        assert!((exact.low - normal.low).abs() < 0.01 && (exact.high - normal.high).abs() < 0.01);
        assert!((exact.coverage - normal.coverage).abs() < 0.002, "{exact:?}, {normal:?}");
        let many = centre_interval(&spread(1000), 0.95).unwrap();
        assert!(many.low < 0.5 && (many.low + many.high - 1.0).abs() < 1e-9, "{many:?}");
        assert_eq!(centre_interval(&[f64::INFINITY; 60], 0.95), None);
    }

    /// 400 series of pairs that differ by 0.3 in the middle: 95 % is 380, with a standard deviation of 4.4.
    #[test]
    fn the_interval_holds_the_true_centre_as_often_as_it_says() {
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for count in [MAX_EXACT_DIFFERENCES, MAX_EXACT_DIFFERENCES + 1, 80] {
            let mut held = 0;
            for _ in 0..400 {
                let differences: Vec<f64> = (0..count).map(|_| 0.3 + uniform() - uniform()).collect();
                let found = centre_interval(&differences, 0.95).unwrap();
                held += usize::from(found.low <= 0.3 && 0.3 <= found.high);
            }
            assert!((367..=393).contains(&held), "{count}: {held} of 400");
        }
    }
}
