//! Spread and fairness.

use super::{order, sorted};
use crate::domain::{finite, not_negative, positive};

/// Factor that scales the median absolute deviation to the standard deviation of normal noise.
pub const MAD_TO_SIGMA: f64 = 1.4826;

/// Robust standard deviation: scaled median absolute deviation from the median.
///
/// Units: those of the samples. Domain: at least one sample, finite. Source: Hampel 1974.
#[must_use]
pub fn robust_sigma(samples: &[f64]) -> Option<f64> {
    let centre = order::median(samples)?;
    let deviations: Vec<f64> = samples.iter().map(|x| (x - centre).abs()).collect();
    finite(MAD_TO_SIGMA * order::median(&deviations)?)
}

/// Jain's fairness index of flows: 1 if all are equal, 1/n if one has everything.
///
/// Units: ratio. Domain: rates ≥ 0, not all 0. Source: Jain, Chiu and Hawe 1984.
#[must_use]
pub fn jain(rates: &[f64]) -> Option<f64> {
    let ascending = sorted(rates)?;
    not_negative(ascending[0])?;
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|x| x * x).sum();
    finite(sum * sum / (rates.len() as f64 * positive(squares)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_run_does_not_widen_the_robust_spread() {
        let runs = [941.0, 940.0, 941.0, 939.0, 941.0, 940.0, 911.0];
        assert_eq!(robust_sigma(&runs), Some(1.4826));
        assert_eq!(robust_sigma(&[]), None);
        assert_eq!(robust_sigma(&[f64::NAN]), None);
    }

    #[test]
    fn fairness_runs_from_one_nth_to_one() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[-1.0, 2.0]), None);
    }
}
