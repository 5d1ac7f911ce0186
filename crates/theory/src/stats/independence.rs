//! Whether repeats are independent, or correlate with their predecessors.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::series::{autocorrelation, mean};
use crate::domain::finite;

/// Fewer values than this cannot show dependence, however strong it is.
pub const MIN_VALUES: usize = 8;
/// Number of random permutations.
const PERMUTATIONS: u32 = 499;
/// The search ends early after this number of permutations that are at least as correlated as the measured
/// order.
const ENOUGH_PERMUTATIONS: u32 = 100;
/// Fixed seed, so that results are reproducible.
const SEED: u64 = 9097;
/// Upper bound of the estimated correlation: no series of repeats shows a stronger one reliably.
const MAX_CORRELATION: f64 = 0.95;

/// Probability that neighbours correlate at least this strongly if the order of the values is random: a
/// permutation test of the correlation at lag 1, over several series together.
///
/// Domain: `None` if no series has [`MIN_VALUES`] values, or one is not finite. Source: Wald and Wolfowitz
/// 1943; Besag and Clifford 1991 for ending the search early if the probability is large.
#[must_use]
pub fn p_of_order(series: &[&[f64]]) -> Option<f64> {
    let long = series.iter().filter(|one| one.len() >= MIN_VALUES);
    let mut drawn: Vec<Vec<f64>> = long.map(|one| standardised(one)).collect::<Option<_>>()?;
    if drawn.is_empty() {
        return None;
    }
    // Summing the same products in another order may change the last digit.
    let measured = products(&drawn) - 1e-12;
    let mut random = StdRng::seed_from_u64(SEED);
    let (mut as_alike, mut tried) = (0_u32, 0_u32);
    while tried < PERMUTATIONS && as_alike < ENOUGH_PERMUTATIONS {
        drawn.iter_mut().for_each(|one| one.shuffle(&mut random));
        as_alike += u32::from(products(&drawn) >= measured);
        tried += 1;
    }
    // The measured order counts as one of the permutations.
    let p = if as_alike >= ENOUGH_PERMUTATIONS {
        f64::from(as_alike) / f64::from(tried)
    } else {
        f64::from(as_alike + 1) / f64::from(tried + 1)
    };
    finite(p)
}

/// Deviations from the mean, scaled so that their squares sum to 1; all 0 for a constant series.
fn standardised(values: &[f64]) -> Option<Vec<f64>> {
    let centre = mean(values)?;
    let length = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>().sqrt();
    let scale = if finite(length)? > 0.0 { 1.0 / length } else { 0.0 };
    Some(values.iter().map(|value| (value - centre) * scale).collect())
}

/// Sum of the products of neighbours over all series: the sum of their correlations.
fn products(series: &[Vec<f64>]) -> f64 {
    series.iter().flat_map(|one| one.iter().zip(one.iter().skip(1))).map(|(a, b)| a * b).sum()
}

/// Correlation of neighbours in an infinite series of which these are parts. Corrects the negative bias of
/// short series.
///
/// Units: ratio, 0 to 0.95. Domain: at least one series of [`MIN_VALUES`] values. Source: first-order
/// autoregression, bias after Kendall 1954.
#[must_use]
pub fn correlation(series: &[&[f64]]) -> Option<f64> {
    let long: Vec<&[f64]> = series.iter().copied().filter(|one| one.len() >= MIN_VALUES).collect();
    let each: Vec<f64> = long.iter().map(|one| autocorrelation(one, 1)).collect::<Option<_>>()?;
    let seen = mean(&each)?;
    let values = long.iter().map(|one| one.len()).sum::<usize>() as f64 / long.len() as f64;
    Some(((seen + 1.0 / values) / (1.0 - 3.0 / values)).clamp(0.0, MAX_CORRELATION))
}

/// Variance of the mean divided by the expected sample variance, for a part of a first-order autoregression:
/// `1/n` without correlation.
///
/// Units: ratio. Domain: at least two values, 0 ≤ correlation < 1. Source: variance of a mean of correlated
/// values; Law and Kelton.
#[must_use]
pub fn mean_over_sample_variance(values: usize, correlation: f64) -> Option<f64> {
    let phi = finite(correlation).filter(|phi| (0.0..1.0).contains(phi))?;
    if values < 2 {
        return None;
    }
    let n = values as f64;
    let power = i32::try_from(values).ok()?;
    let mean =
        (1.0 + phi) / (n * (1.0 - phi)) - 2.0 * phi * (1.0 - phi.powi(power)) / (n * (1.0 - phi)).powi(2);
    finite(mean / ((1.0 - mean) * n / (n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_no_accident_and_a_zigzag_is() {
        let drift: Vec<f64> = (0..12).map(f64::from).collect();
        let zigzag: Vec<f64> = (0..12).map(|number| f64::from(number % 2)).collect();
        assert!(p_of_order(&[&drift]).unwrap() < 0.01);
        assert!(p_of_order(&[&zigzag]).unwrap() > 0.9);
        assert!(p_of_order(&[&[5.0; 12]]).unwrap() > 0.9, "equal values correlate with nothing");
        assert_eq!(p_of_order(&[&drift]), p_of_order(&[&drift]));
    }

    #[test]
    fn few_values_say_nothing_of_their_order() {
        assert_eq!(p_of_order(&[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]), None);
        assert_eq!(p_of_order(&[&[f64::NAN; 9]]), None);
        assert_eq!(correlation(&[]), None);
    }

    #[test]
    fn values_that_do_not_correlate_count_each() {
        assert!((mean_over_sample_variance(15, 0.0).unwrap() - 1.0 / 15.0).abs() < 1e-12);
        // 15 values at 0.9: (1.9 / 1.5 - 1.8 x (1 - 0.9^15) / 2.25) of the variance is that of the mean, the
        // rest is in the sample.
        let mean = 1.9 / 1.5 - 1.8 * (1.0 - 0.9_f64.powi(15)) / 2.25;
        let want = mean / ((1.0 - mean) * 15.0 / 14.0);
        assert!((mean_over_sample_variance(15, 0.9).unwrap() - want).abs() < 1e-12);
        assert_eq!(mean_over_sample_variance(1, 0.5), None);
        assert_eq!(mean_over_sample_variance(15, 1.0), None);
    }
}
