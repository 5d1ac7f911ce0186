//! Repeats that correlate with their predecessors.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::domain::{finite, positive};
use crate::stats::Interval;
use crate::stats::independence::{correlation, mean_over_sample_variance, p_of_order};
use crate::stats::series::{effective_samples, student_quantile, variance};

use super::{CONFIDENCE, SIGNIFICANCE};

/// Correlation from which differences of pairs are suspect, if the repeats themselves are dependent.
const SUSPECT_CORRELATION: f64 = 0.15;

/// Dependence of the repeats, and the result with it taken into account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dependence {
    /// Correlation of neighbours, 0 to 0.95.
    pub correlation: f64,
    /// Equivalent number of independent repeats.
    pub counts_as: f64,
    /// The probability `p` if all repeats were independent.
    pub p_if_independent: f64,
    /// Probability of a difference at least as clear if there is none.
    pub(super) p: f64,
    /// Interval of the difference.
    pub(super) interval: Interval,
}

impl Dependence {
    /// For two configurations; `None` if no dependence is found.
    pub(super) fn of_groups(other: &[f64], base: &[f64], shift: f64, p: f64) -> Option<Self> {
        if p_of_order(&[base, other])? >= SIGNIFICANCE {
            return None;
        }
        let phi = correlation(&[base, other])?;
        let part =
            |samples: &[f64]| Some(mean_over_sample_variance(samples.len(), phi)? * variance(samples)?);
        let counts_as = effective_samples((base.len() + other.len()) as f64, phi)?;
        Self::new(shift, part(base)? + part(other)?, counts_as, counts_as - 2.0, phi, p)
    }

    /// For pairs. Drift that both share is not in the differences and does no harm.
    pub(super) fn of_pairs(
        differences: &[f64],
        other: &[f64],
        base: &[f64],
        shift: f64,
        p: f64,
    ) -> Option<Self> {
        let order = p_of_order(&[differences])?;
        let drifting = || p_of_order(&[base, other]).is_some_and(|p| p < SIGNIFICANCE);
        if order >= SIGNIFICANCE && !(order < SUSPECT_CORRELATION && drifting()) {
            return None;
        }
        let phi = correlation(&[differences])?;
        let squared = mean_over_sample_variance(differences.len(), phi)? * variance(differences)?;
        let counts_as = effective_samples(differences.len() as f64, phi)?;
        Self::new(shift, squared, counts_as, counts_as - 1.0, phi, p)
    }

    fn new(shift: f64, squared: f64, counts_as: f64, freedom: f64, phi: f64, p: f64) -> Option<Self> {
        let (error, freedom) = (positive(squared.sqrt())?, freedom.max(1.0));
        let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
        let half = student_quantile(freedom, CONFIDENCE)? * error;
        Some(Self {
            correlation: phi,
            counts_as,
            p_if_independent: p,
            p: finite(2.0 * student.sf((shift / error).abs()))?,
            interval: Interval { low: shift - half, high: shift + half, coverage: CONFIDENCE },
        })
    }
}
