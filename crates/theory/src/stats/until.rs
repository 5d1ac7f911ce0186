//! Stopping rule: a test runs until its mean is known precisely enough.

use super::series::{BatchMeans, batch_means};
use crate::domain::{finite, positive};

/// Coverage of the checks. It is high, because frequent checks would otherwise stop at chance results.
const COVERAGE: f64 = 0.99;
/// Number of intervals before the first check, and between two checks.
const FIRST_CHECK: usize = 20;
const CHECK_INTERVAL: usize = 10;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Precision {
    /// Half the interval divided by the mean.
    pub relative_half_width: f64,
    /// Whether that is at most the target.
    pub reached: bool,
    /// The estimate that it comes from.
    pub estimate: BatchMeans,
}

/// Checks the steady intervals so far; `None` if there are too few, between two checks, or if they are too
/// correlated.
///
/// `target` is the wanted relative half-width (0.01 for 1 %). Pass only the intervals after ramp-up and
/// omission. Units: any rate. Domain: target > 0, a mean above 0. Source: batch means (Law and Kelton), 99 %
/// coverage.
#[must_use]
pub fn look(steady: &[f64], target: f64) -> Option<Precision> {
    if steady.len() < FIRST_CHECK || !steady.len().is_multiple_of(CHECK_INTERVAL) {
        return None;
    }
    let target = positive(target)?;
    let estimate = batch_means(steady, COVERAGE)?;
    let relative_half_width = finite(estimate.half_width() / positive(estimate.mean)?)?;
    Some(Precision { relative_half_width, reached: relative_half_width <= target, estimate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_known_at_the_first_look() {
        assert_eq!(look(&[5.0; 19], 0.01), None);
        let found = look(&[5.0; 20], 0.01).unwrap();
        assert!(found.reached && found.relative_half_width == 0.0);
        assert_eq!(look(&[5.0; 21], 0.01), None, "no look between two looks");
    }

    #[test]
    fn a_noisy_rate_goes_on() {
        // Pairs of ±20 % around 1: see batch_means' own test for the same shape.
        let noisy: Vec<f64> = (0..20).map(|i| if (i / 2) % 2 == 0 { 0.8 } else { 1.2 }).collect();
        let found = look(&noisy, 0.01).unwrap();
        assert!(!found.reached && found.relative_half_width > 0.1);
    }

    #[test]
    fn silence_has_no_precision() {
        assert_eq!(look(&[0.0; 40], 0.01), None);
        assert_eq!(look(&[1.0; 40], 0.0), None);
    }
}
