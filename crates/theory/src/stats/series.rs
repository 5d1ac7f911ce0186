//! Statistics of the dependent intervals of one long run.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Interval;
use crate::domain::{finite, not_negative, open_unit, positive};

/// Mean of a series.
///
/// Units: those of the series. Domain: at least one value, finite. Source: definition.
#[must_use]
pub fn mean(series: &[f64]) -> Option<f64> {
    finite(series.iter().sum::<f64>() / series.len() as f64)
}

/// Sample variance (n − 1).
///
/// Units: those of the series, squared. Domain: at least two values. Source: definition.
#[must_use]
pub fn variance(series: &[f64]) -> Option<f64> {
    let centre = mean(series)?;
    if series.len() < 2 {
        return None;
    }
    finite(series.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / (series.len() as f64 - 1.0))
}

/// Coefficient of variation: standard deviation over mean.
///
/// Units: ratio. Domain: at least two values with a mean above 0. Source: definition.
#[must_use]
pub fn coefficient_of_variation(series: &[f64]) -> Option<f64> {
    finite(variance(series)?.sqrt() / positive(mean(series)?)?)
}

/// Autocorrelation at a lag; 0 for a constant series.
///
/// Units: ratio. Domain: more values than the lag, at least two. Source: Law and Kelton, Simulation Modeling
/// and Analysis.
#[must_use]
pub fn autocorrelation(series: &[f64], lag: usize) -> Option<f64> {
    if series.len() < 2 || lag >= series.len() {
        return None;
    }
    let centre = mean(series)?;
    let spread: f64 = series.iter().map(|x| (x - centre).powi(2)).sum();
    // Values that differ only by their binary rounding are equal.
    if spread <= series.len() as f64 * (1e-12 * centre).powi(2) {
        return Some(0.0);
    }
    let joint: f64 = series.iter().zip(&series[lag..]).map(|(a, b)| (a - centre) * (b - centre)).sum();
    finite(joint / spread)
}

/// Effective number of independent values in a series with this correlation at lag 1.
///
/// Units: values. Domain: n ≥ 0, −1 < r < 1. Source: first-order autoregression.
#[must_use]
pub fn effective_samples(values: f64, lag1: f64) -> Option<f64> {
    let r = finite(lag1).filter(|r| r.abs() < 1.0)?;
    finite(not_negative(values)? * (1.0 - r) / (1.0 + r))
}

/// Two-sided quantile of Student's t.
///
/// Units: standard errors. Domain: freedom > 0, 0 < confidence < 1. Source: Student 1908.
#[must_use]
pub fn student_quantile(freedom: f64, confidence: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, positive(freedom)?).ok()?;
    finite(distribution.inverse_cdf(f64::midpoint(1.0, open_unit(confidence)?)))
}

/// Interval of the mean of a dependent series.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct BatchMeans {
    /// Mean of all the values.
    pub mean: f64,
    /// The interval around it.
    pub interval: Interval,
    /// Number of batches, 5 to 10.
    pub batches: usize,
}

impl BatchMeans {
    /// Half the width of the interval.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.interval.high - self.interval.low) / 2.0
    }

    /// Standard error of the mean.
    #[must_use]
    pub fn standard_error(&self) -> Option<f64> {
        finite(self.half_width() / student_quantile(self.batches as f64 - 1.0, self.interval.coverage)?)
    }
}

/// Largest correlation between neighbouring batches that still count as independent. Source: Law and Kelton.
const BATCH_CORRELATION: f64 = 0.3;

/// Mean of a series and its interval by batch means. Starts with ten batches and uses fewer, longer ones while
/// neighbours correlate.
///
/// Every value is in a batch, so the interval is that of the mean of all values. Batches differ by one value if
/// they cannot be equal.
///
/// Units: those of the series. Domain: `None` with fewer than ten values, or if five batches still correlate.
/// Source: Law and Kelton.
#[must_use]
pub fn batch_means(series: &[f64], confidence: f64) -> Option<BatchMeans> {
    weighted_batch_means(series, &vec![1.0; series.len()], confidence)
}

/// [`batch_means`] for values of unequal duration: `weights` are their durations, in any unit.
///
/// Units: those of the series. Domain: as [`batch_means`], with as many weights as values, all above 0. Source:
/// Law and Kelton; the variance of a weighted mean from that of the batches.
#[must_use]
pub fn weighted_batch_means(series: &[f64], weights: &[f64], confidence: f64) -> Option<BatchMeans> {
    let fit = series.iter().all(|x| x.is_finite()) && weights.iter().all(|w| w.is_finite() && *w > 0.0);
    if series.len() < 10 || weights.len() != series.len() || !fit {
        return None;
    }
    let total: f64 = weights.iter().sum();
    (5..=10).rev().find_map(|batches| {
        let ends =
            (0..batches).map(|batch| (batch * series.len() / batches, (batch + 1) * series.len() / batches));
        let of_batch = |(from, to): (usize, usize)| {
            let weight: f64 = weights[from..to].iter().sum();
            let sum: f64 = series[from..to].iter().zip(&weights[from..to]).map(|(x, w)| x * w).sum();
            (sum / weight, weight)
        };
        let (means, lengths): (Vec<f64>, Vec<f64>) = ends.map(of_batch).unzip();
        if autocorrelation(&means, 1)? >= BATCH_CORRELATION {
            return None;
        }
        let centre = means.iter().zip(&lengths).map(|(m, w)| m * w).sum::<f64>() / total;
        let squares: f64 = means.iter().zip(&lengths).map(|(m, w)| w * (m - centre).powi(2)).sum();
        let error = (squares / (batches as f64 - 1.0) / total).sqrt();
        let half = student_quantile(batches as f64 - 1.0, confidence)? * error;
        let interval = Interval { low: centre - half, high: centre + half, coverage: confidence };
        Some(BatchMeans { mean: finite(centre)?, interval, batches })
    })
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn alternating_values_anticorrelate() {
        let series: Vec<f64> = (0..100).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(autocorrelation(&series, 1).unwrap() < -0.98);
        assert_eq!(autocorrelation(&[3.0; 5], 1), Some(0.0));
        assert_eq!(autocorrelation(&[3.0], 1), None);
    }

    #[test]
    fn sixty_seconds_with_strong_correlation_are_worth_seven() {
        assert!((effective_samples(60.0, 0.8).unwrap() - 6.666_666_67).abs() < 1e-6);
        assert_eq!(effective_samples(60.0, 1.0), None);
    }

    #[test]
    fn batch_means_of_a_known_series() {
        // Ten batches of two: means 1, 2, 1, 2, …: mean 1.5, variance 5/18, standard error √(1/36).
        let series: Vec<f64> = (0..20).map(|i| if (i / 2) % 2 == 0 { 1.0 } else { 2.0 }).collect();
        let found = batch_means(&series, 0.95).unwrap();
        assert_eq!(found.batches, 10);
        assert!((found.mean - 1.5).abs() < 1e-12);
        let half = 2.262_157_162_8 / 6.0;
        assert!((found.interval.high - 1.5 - half).abs() < 1e-6);
    }

    /// A slower start: with 100 values it was in the first batch, with 99 it was left out.
    #[test]
    fn one_value_more_or_less_changes_little() {
        let half = |count: usize| {
            let series: Vec<f64> =
                (0..count).map(|i| if i == 0 { 0.0 } else { 100.0 + (i % 3) as f64 }).collect();
            let found = batch_means(&series, 0.95).unwrap();
            assert!(
                (found.mean - mean(&series).unwrap()).abs() < 1e-9,
                "the interval is that of the whole mean"
            );
            found.half_width()
        };
        // One batch of ten is 10 % low: s = 10.1/√10, half of the interval 2.262 × s/√10 = 2.28.
        assert!((half(100) - 2.28).abs() < 0.05, "{}", half(100));
        for count in 91..110 {
            let change = half(count) / half(count + 1);
            assert!((0.75..1.33).contains(&change), "{count} and {}: {change}", count + 1);
        }
    }

    #[test]
    fn a_short_value_weighs_little() {
        let mut series: Vec<f64> = (0..50).map(|i| 100.0 + f64::from(i % 4)).collect();
        let mut weights = vec![1.0; 50];
        let whole = weighted_batch_means(&series, &weights, 0.95).unwrap();
        series.push(0.0);
        weights.push(0.01);
        let with_rest = weighted_batch_means(&series, &weights, 0.95).unwrap();
        assert!((with_rest.mean - whole.mean).abs() < 0.05, "{with_rest:?}");
        assert_eq!(weighted_batch_means(&series, &weights[1..], 0.95), None);
        assert_eq!(weighted_batch_means(&[1.0; 10], &[0.0; 10], 0.95), None);
    }

    /// Known truth: values of an autoregression around 100, their intervals, and how many of these contain 100.
    #[test]
    fn nineteen_of_twenty_intervals_hold_the_mean() {
        let mut random = StdRng::seed_from_u64(7);
        for (phi, count, least) in [(0.0, 99, 0.93), (0.5, 100, 0.92), (0.7, 203, 0.90), (-0.4, 57, 0.93)] {
            let (mut held, mut stated) = (0, 0);
            for _ in 0..600 {
                let mut last = 0.0;
                let series: Vec<f64> = (0..count)
                    .map(|_| {
                        let noise: f64 = (0..12).map(|_| random.random_range(-0.5..0.5)).sum();
                        last = phi * last + noise;
                        100.0 + last
                    })
                    .collect();
                if let Some(found) = batch_means(&series, 0.95) {
                    stated += 1;
                    held += u32::from(found.interval.low <= 100.0 && found.interval.high >= 100.0);
                }
            }
            let share = f64::from(held) / f64::from(stated);
            assert!(stated > 500 && share >= least, "phi {phi}, {count} values: {held} of {stated}");
        }
    }

    #[test]
    fn a_trend_has_no_interval() {
        let series: Vec<f64> = (0..100).map(f64::from).collect();
        // Batch means of a trend correlate: 0.7 for ten of them, 0.4 for five.
        assert_eq!(batch_means(&series, 0.95), None);
        assert_eq!(batch_means(&[1.0; 9], 0.95), None);
    }
}
