//! Statistics for measurements: few runs, dependent intervals, no assumption of normal noise.

pub mod change;
pub mod compare;
pub mod independence;
pub mod loss;
pub mod order;
pub mod paired;
pub mod ramp;
pub mod rank;
pub mod resample;
pub mod series;
pub mod spread;
pub mod uncertainty;
pub mod until;

/// An interval with the probability that it covers the true value.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Lower end, in the unit of the samples.
    pub low: f64,
    /// Upper end, in the unit of the samples.
    pub high: f64,
    /// Probability of covering the true value, 0 to 1.
    pub coverage: f64,
}

/// The samples in ascending order; `None` if there are none or one is not finite.
pub(crate) fn sorted(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || samples.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut ascending = samples.to_vec();
    ascending.sort_by(f64::total_cmp);
    Some(ascending)
}
