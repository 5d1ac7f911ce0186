//! Stopping rule: a test runs until its mean is known precisely enough.

use super::series::{BatchMeans, batch_means};
use crate::domain::{finite, positive};

/// Coverage of the checks. It is high, because frequent checks would otherwise stop at chance results.
const COVERAGE: f64 = 0.99;
/// Number of intervals before the first check, and least number between two checks.
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

/// Decides during a test whether the mean of one flow is known precisely enough.
///
/// Several flows are known when the last check of each says so: their intervals do not end at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct StoppingRule {
    target: f64,
    next_check: usize,
    reached: bool,
}

impl StoppingRule {
    /// The rule for this relative half-width (0.01 for 1 %).
    #[must_use]
    pub const fn new(target: f64) -> Self {
        Self { target, next_check: FIRST_CHECK, reached: false }
    }

    /// Whether the last check had the target. Checks first if there are enough new intervals since then.
    ///
    /// Pass all intervals so far after ramp-up and omission. Units: any rate. Domain: target > 0, a mean above
    /// 0. Source: batch means (Law and Kelton), 99 % coverage.
    pub fn is_reached(&mut self, steady: &[f64]) -> bool {
        if steady.len() >= self.next_check {
            self.next_check = steady.len() + CHECK_INTERVAL;
            let found = precision(steady, self.target);
            self.reached = found.is_some_and(|precision| precision.reached);
        }
        self.reached
    }
}

fn precision(steady: &[f64], target: f64) -> Option<Precision> {
    let target = positive(target)?;
    let estimate = batch_means(steady, COVERAGE)?;
    let relative_half_width = finite(estimate.half_width() / positive(estimate.mean)?)?;
    Some(Precision { relative_half_width, reached: relative_half_width <= target, estimate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_known_at_the_first_check() {
        let mut rule = StoppingRule::new(0.01);
        assert!(!rule.is_reached(&[5.0; 19]));
        assert!(rule.is_reached(&[5.0; 20]));
    }

    /// Intervals may arrive several at a time, and one that was merged changes the number of those before it.
    #[test]
    fn a_check_is_never_missed_and_its_result_lasts_until_the_next() {
        let noisy: Vec<f64> = (0..60).map(|i| if (i / 2) % 2 == 0 { 0.8 } else { 1.2 }).collect();
        let mut rule = StoppingRule::new(0.01);
        assert!(!rule.is_reached(&noisy[..23]));
        assert!(!rule.is_reached(&[5.0; 32]), "nine more are too few");
        assert!(rule.is_reached(&[5.0; 33]));
        assert!(rule.is_reached(&noisy[..42]), "between two checks");
        assert!(!rule.is_reached(&noisy[..43]));
    }

    #[test]
    fn a_noisy_rate_goes_on() {
        // Pairs of ±20 % around 1: see batch_means' own test for the same shape.
        let noisy: Vec<f64> = (0..20).map(|i| if (i / 2) % 2 == 0 { 0.8 } else { 1.2 }).collect();
        let found = precision(&noisy, 0.01).unwrap();
        assert!(!found.reached && found.relative_half_width > 0.1);
        assert!(!StoppingRule::new(0.01).is_reached(&noisy));
    }

    #[test]
    fn silence_has_no_precision() {
        assert_eq!(precision(&[0.0; 40], 0.01), None);
        assert_eq!(precision(&[1.0; 40], 0.0), None);
    }
}
