//! One long run: its intervals depend on each other, and the first of them belong to the start.

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
/// Units: ratio. Domain: more values than the lag, at least two. Source: Law and Kelton, Simulation Modeling and Analysis.
#[must_use]
pub fn autocorrelation(series: &[f64], lag: usize) -> Option<f64> {
    if series.len() < 2 || lag >= series.len() {
        return None;
    }
    let centre = mean(series)?;
    let spread: f64 = series.iter().map(|x| (x - centre).powi(2)).sum();
    if spread == 0.0 {
        return Some(0.0);
    }
    let joint: f64 = series.iter().zip(&series[lag..]).map(|(a, b)| (a - centre) * (b - centre)).sum();
    finite(joint / spread)
}

/// How many independent values a series with that lag-1 correlation is worth.
///
/// Units: values. Domain: n ≥ 0, −1 < r < 1. Source: first-order autoregression.
#[must_use]
pub fn effective_samples(values: f64, lag1: f64) -> Option<f64> {
    let r = finite(lag1).filter(|r| r.abs() < 1.0)?;
    finite(not_negative(values)? * (1.0 - r) / (1.0 + r))
}

/// The same from the integrated autocorrelation time.
///
/// Units: whole values, s. Domain: both > 0. Source: T / 2τ.
#[must_use]
pub fn effective_intervals(measured_s: f64, correlation_time_s: f64) -> Option<f64> {
    finite((positive(measured_s)? / (2.0 * positive(correlation_time_s)?)).floor())
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
    /// Mean of the values used.
    pub mean: f64,
    /// The interval around it.
    pub interval: Interval,
    /// Batches it rests on, 5 to 10.
    pub batches: usize,
    /// Values left out at the front so that the batches are equal.
    pub left_out: usize,
}

/// Largest correlation between neighbouring batches that still counts as independent. Source: Law and Kelton.
const BATCH_CORRELATION: f64 = 0.3;

/// Mean of a series and its interval by batch means: ten batches, fewer and longer ones while neighbours correlate.
///
/// Units: those of the series. Domain: `None` below ten values, or when five batches still correlate. Source: Law and Kelton.
#[must_use]
pub fn batch_means(series: &[f64], confidence: f64) -> Option<BatchMeans> {
    if series.len() < 10 || series.iter().any(|x| !x.is_finite()) {
        return None;
    }
    (5..=10).rev().find_map(|batches| {
        let length = series.len() / batches;
        let left_out = series.len() - length * batches;
        let means: Vec<f64> = series[left_out..].chunks(length).filter_map(mean).collect();
        if autocorrelation(&means, 1)? >= BATCH_CORRELATION {
            return None;
        }
        let centre = mean(&means)?;
        let error = (variance(&means)? / batches as f64).sqrt();
        let half = student_quantile(batches as f64 - 1.0, confidence)? * error;
        let interval = Interval { low: centre - half, high: centre + half, coverage: confidence };
        Some(BatchMeans { mean: centre, interval, batches, left_out })
    })
}

/// Values to leave out at the front by MSER-5: the cut that makes the mean of the rest most certain.
///
/// Units: values, a multiple of five. Domain: at least 20 values, finite; cuts beyond the middle are not considered.
/// Source: White 1997.
#[must_use]
pub fn mser5_cut(series: &[f64]) -> Option<usize> {
    if series.len() < 20 || series.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let groups: Vec<f64> = series.chunks_exact(5).filter_map(mean).collect();
    let score = |cut: usize| -> Option<f64> {
        let rest = &groups[cut..];
        let centre = mean(rest)?;
        let squares: f64 = rest.iter().map(|x| (x - centre).powi(2)).sum();
        Some(squares / (rest.len() as f64).powi(2))
    };
    let mut best = (f64::INFINITY, 0);
    for cut in 0..=groups.len() / 2 {
        let candidate = score(cut)?;
        if candidate < best.0 {
            best = (candidate, cut);
        }
    }
    Some(best.1 * 5)
}

#[cfg(test)]
mod tests {
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
        assert_eq!(effective_intervals(60.0, 0.0), None);
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

    #[test]
    fn a_trend_has_no_interval() {
        let series: Vec<f64> = (0..100).map(f64::from).collect();
        // Batch means of a trend correlate: 0.7 for ten of them, 0.4 for five.
        assert_eq!(batch_means(&series, 0.95), None);
        assert_eq!(batch_means(&[1.0; 9], 0.95), None);
    }

    #[test]
    fn mser_cuts_the_ramp_and_nothing_else() {
        let mut series = vec![100.0; 60];
        for (i, value) in series.iter_mut().enumerate().take(10) {
            *value = 10.0 * i as f64;
        }
        assert_eq!(mser5_cut(&series), Some(10));
        assert_eq!(mser5_cut(&[5.0; 40]), Some(0));
        assert_eq!(mser5_cut(&[5.0; 19]), None);
    }
}
