//! Decides whether one configuration is better than another, from repeated measurements of both.
//!
//! A difference is shown if it is statistically significant and larger than the resolution of the figures.
//! Otherwise the result is "no difference shown", with an interval for a possible difference. Repeats that were
//! measured alternately are compared in pairs, which removes the drift of the machine. Autocorrelated repeats
//! count as fewer.

use linerate_model::metrics::Better;

use crate::domain::not_negative;
use crate::stats::{Interval, order, paired, rank, spread};

mod dependence;

pub use dependence::Dependence;

/// Probability of a false positive, for one comparison and for all that are decided together.
pub const SIGNIFICANCE: f64 = 0.05;

/// With at least this number of repeats (or pairs), strong dependence is nearly always detected. With eight,
/// the fewest that are tested, a correlation of 0.9 is rarely detected.
pub const MIN_REPEATS_FOR_DEPENDENCE: usize = 15;

/// Coverage probability of the intervals.
const CONFIDENCE: f64 = 0.95;

/// How the repeats of two configurations are paired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Not paired: measured at different times.
    None,
    /// The n-th repeats of both were measured directly after each other.
    InTurn,
}

/// The repeats of one configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct RepeatSummary {
    /// Number of repeats.
    pub repeats: usize,
    /// Their median.
    pub median: f64,
    /// Distribution-free interval of the median; absent with fewer than six repeats.
    pub interval: Option<Interval>,
    /// The smallest.
    pub smallest: f64,
    /// The largest.
    pub largest: f64,
}

impl RepeatSummary {
    fn of(samples: &[f64]) -> Option<Self> {
        Some(Self {
            repeats: samples.len(),
            median: order::median(samples)?,
            interval: order::median_interval(samples, CONFIDENCE),
            smallest: samples.iter().copied().min_by(f64::total_cmp)?,
            largest: samples.iter().copied().max_by(f64::total_cmp)?,
        })
    }
}

/// Comparison of two configurations in one quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The reference.
    pub base: RepeatSummary,
    /// The configuration that is compared with it.
    pub other: RepeatSummary,
    /// Difference of `other` from `base`: the Hodges-Lehmann estimate.
    pub shift: f64,
    /// Its interval; absent with too few repeats.
    pub interval: Option<Interval>,
    /// Probability of a difference at least as clear if there is none (Mann-Whitney, or Wilcoxon for pairs;
    /// Student's t with fewer values if the repeats depend on each other).
    pub p: f64,
    /// The smallest `p` that this number of repeats can give.
    pub least_p: f64,
    /// Number of compared pairs; absent if all repeats were compared with all.
    pub pairs: Option<usize>,
    /// Difference of two single runs by chance: twice their robust spread, or the resolution if that is larger.
    pub noise_floor: f64,
    /// The smallest difference that the figures can show.
    pub resolution: f64,
    /// How the repeats depend on each other; absent if no dependence was found, or if they are too few to
    /// detect it.
    pub dependence: Option<Dependence>,
    /// The result. [`decide`] sets it from all comparisons together.
    pub outcome: ComparisonOutcome,
}

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// `other` is higher than `base`.
    Higher,
    /// `other` is lower than `base`.
    Lower,
    /// No difference is shown: chance may explain it.
    NotShown,
    /// There is a difference, but it is smaller than the figures can show.
    BelowNoise,
    /// The difference would be clear with independent repeats, but they depend on each other.
    Dependent,
    /// Too few repeats to show a difference.
    TooFew,
}

impl ComparisonOutcome {
    /// Whether the result is better or worse; `None` if no difference is shown or neither direction is better.
    #[must_use]
    pub fn is_better(self, better: Better) -> Option<bool> {
        match (self, better) {
            (Self::Higher, Better::Higher) | (Self::Lower, Better::Lower) => Some(true),
            (Self::Higher, Better::Lower) | (Self::Lower, Better::Higher) => Some(false),
            _ => None,
        }
    }
}

impl Comparison {
    /// Whether the repeats are too few to detect dependence. Then a difference may be shown although there is
    /// none.
    #[must_use]
    pub fn is_independence_unknown(&self) -> bool {
        let repeats = self.pairs.unwrap_or(self.base.repeats.max(self.other.repeats));
        self.dependence.is_none() && repeats < MIN_REPEATS_FOR_DEPENDENCE
    }

    /// The shift as a share of the base's median; `None` if that is 0.
    #[must_use]
    pub fn relative(&self) -> Option<f64> {
        let share = self.shift / self.base.median.abs();
        share.is_finite().then_some(share)
    }
}

/// Compares the repeats of two configurations.
///
/// Units: those of the samples; `resolution` is the smallest difference that the figures can show. Domain: both
/// not empty, all finite. With [`Pairing::InTurn`] and unequal numbers, the last of the longer list have no
/// pair and are left out of the test. Source: Mann and Whitney 1947; Wilcoxon 1945; Hodges and Lehmann 1963.
#[must_use]
pub fn compare(base: &[f64], other: &[f64], pairing: Pairing, resolution: f64) -> Option<Comparison> {
    let resolution = not_negative(resolution)?;
    let (base_group, other_group) = (RepeatSummary::of(base)?, RepeatSummary::of(other)?);
    let differences: Vec<f64> = base.iter().zip(other).map(|(base, other)| other - base).collect();
    let mut spread = spread_of_equals(base, other)?;
    if pairing == Pairing::InTurn {
        // A difference has the noise of two runs. A drift that both share cancels in it and does not count as
        // noise.
        spread = spread.min(spread::robust_sigma(&differences)? / std::f64::consts::SQRT_2);
    }
    let noise_floor = (2.0 * spread).max(resolution);
    let (shift, interval, p, least_p) = match pairing {
        Pairing::None => (
            rank::shift(other, base)?,
            rank::shift_interval(other, base, CONFIDENCE).map(|found| found.interval),
            rank::mann_whitney(other, base)?.p,
            2.0 / ways_to_choose(base.len() + other.len(), base.len()),
        ),
        Pairing::InTurn => (
            paired::centre(&differences)?,
            paired::centre_interval(&differences, CONFIDENCE),
            paired::signed_rank(&differences)?.p,
            2.0 * 0.5_f64.powi(i32::try_from(differences.len()).ok()?),
        ),
    };
    let pairs = (pairing == Pairing::InTurn).then_some(differences.len());
    let dependence = match pairing {
        Pairing::None => Dependence::of_groups(other, base, shift, p),
        Pairing::InTurn => Dependence::of_pairs(&differences, other, base, shift, p),
    };
    let (interval, p) = match &dependence {
        Some(found) => (Some(found.interval), p.max(found.p)),
        None => (interval, p),
    };
    let mut comparison = Comparison {
        base: base_group,
        other: other_group,
        shift,
        interval,
        p,
        least_p: least_p.min(1.0),
        pairs,
        noise_floor,
        resolution,
        dependence,
        outcome: ComparisonOutcome::NotShown,
    };
    decide(std::slice::from_mut(&mut comparison));
    Some(comparison)
}

/// Sets the outcome of comparisons that are made together. The more there are, the clearer each must be.
///
/// Source: Benjamini and Hochberg 1995, at 5 %.
pub fn decide(comparisons: &mut [Comparison]) {
    let p: Vec<f64> = comparisons.iter().map(|comparison| comparison.p).collect();
    let clear = rank::benjamini_hochberg(&p, SIGNIFICANCE);
    for (comparison, clear) in comparisons.iter_mut().zip(clear) {
        comparison.outcome = if comparison.least_p >= SIGNIFICANCE {
            ComparisonOutcome::TooFew
        } else if !clear {
            let hidden = comparison.dependence.is_some_and(|found| found.p_if_independent < SIGNIFICANCE);
            if hidden { ComparisonOutcome::Dependent } else { ComparisonOutcome::NotShown }
        } else if comparison.shift.abs() <= comparison.resolution {
            ComparisonOutcome::BelowNoise
        } else if comparison.shift > 0.0 {
            ComparisonOutcome::Higher
        } else {
            ComparisonOutcome::Lower
        };
    }
}

/// Robust spread of runs around the median of their own configuration.
fn spread_of_equals(base: &[f64], other: &[f64]) -> Option<f64> {
    let mut residuals = Vec::with_capacity(base.len() + other.len());
    for samples in [base, other] {
        let median = order::median(samples)?;
        // A single sample is its own median and says nothing about the spread.
        if samples.len() > 1 {
            residuals.extend(samples.iter().map(|sample| sample - median));
        }
    }
    if residuals.is_empty() { Some(0.0) } else { spread::robust_sigma(&residuals) }
}

/// Binomial coefficient: ways to choose `chosen` of `all` items.
fn ways_to_choose(all: usize, chosen: usize) -> f64 {
    (0..chosen.min(all - chosen)).map(|i| (all - i) as f64 / (i + 1) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Rates of repeated runs around `mean` with a spread of `share`, roughly normal.
    fn runs(random: &mut StdRng, count: usize, mean: f64, share: f64) -> Vec<f64> {
        let mut draw = || {
            let sum: f64 = (0..12).map(|_| random.random_range(0.0..1.0)).sum();
            mean * (1.0 + share * (sum - 6.0))
        };
        (0..count).map(|_| draw()).collect()
    }

    fn outcomes(change: f64, pairing: Pairing) -> Vec<ComparisonOutcome> {
        let mut random = StdRng::seed_from_u64(2544);
        let mut once = || {
            let base = runs(&mut random, 15, 941e6, 0.003);
            let other = runs(&mut random, 15, 941e6 * (1.0 + change), 0.003);
            compare(&base, &other, pairing, 0.0).unwrap().outcome
        };
        (0..20).map(|_| once()).collect()
    }

    #[test]
    fn one_per_cent_is_found_in_fifteen_repeats() {
        for pairing in [Pairing::None, Pairing::InTurn] {
            assert_eq!(outcomes(0.01, pairing), [ComparisonOutcome::Higher; 20]);
            assert_eq!(outcomes(-0.01, pairing), [ComparisonOutcome::Lower; 20]);
        }
    }

    /// A drift as large as the difference hides it from a comparison of all with all, but not from a paired
    /// one.
    #[test]
    fn pairs_take_a_drift_out() {
        let drift = |number: u32| 900e6 + f64::from(number) * 5e6;
        let base: Vec<f64> = (0..15).map(drift).collect();
        let other: Vec<f64> =
            (0..15).map(|number| drift(number) + 6e6 + f64::from(number % 3) * 1e5).collect();
        assert_eq!(compare(&base, &other, Pairing::None, 0.0).unwrap().outcome, ComparisonOutcome::NotShown);
        let pairs = compare(&base, &other, Pairing::InTurn, 0.0).unwrap();
        assert!((pairs.shift - 6.1e6).abs() < 1e5, "{pairs:?}");
        assert_eq!((pairs.outcome, pairs.pairs), (ComparisonOutcome::Higher, Some(15)));
    }

    #[test]
    fn too_few_repeats_are_reported() {
        let three = compare(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0], Pairing::None, 0.0).unwrap();
        assert_eq!((three.outcome, three.interval), (ComparisonOutcome::TooFew, None));
        let four = compare(&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 14.0], Pairing::None, 0.0).unwrap();
        assert_eq!(four.outcome, ComparisonOutcome::Higher);
        assert!((four.least_p - 2.0 / 70.0).abs() < 1e-12);
        let pairs = |count: usize| {
            let base: Vec<f64> = (0..count).map(|number| number as f64).collect();
            let other: Vec<f64> = base.iter().map(|value| value + 100.0).collect();
            compare(&base, &other, Pairing::InTurn, 0.0).unwrap().outcome
        };
        assert_eq!((pairs(5), pairs(6)), (ComparisonOutcome::TooFew, ComparisonOutcome::Higher));
    }

    #[test]
    fn a_difference_below_the_resolution_is_none() {
        let base = [100.0, 100.1, 99.9, 100.0, 100.1, 99.9];
        let other = base.map(|value| value + 1.0);
        assert_eq!(compare(&base, &other, Pairing::None, 0.0).unwrap().outcome, ComparisonOutcome::Higher);
        assert_eq!(
            compare(&base, &other, Pairing::None, 2.0).unwrap().outcome,
            ComparisonOutcome::BelowNoise
        );
        assert!(
            (compare(&base, &other, Pairing::None, 0.0).unwrap().relative().unwrap() - 0.01).abs() < 1e-9
        );
    }

    #[test]
    fn many_comparisons_at_once_have_to_be_clearer() {
        let (base, other) = ([1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0]);
        let clear = compare(&base, &other, Pairing::None, 0.0).unwrap();
        let dull = compare(&base, &base, Pairing::None, 0.0).unwrap();
        let mut all = vec![dull; 9];
        all.push(clear.clone());
        assert_eq!(clear.outcome, ComparisonOutcome::Higher);
        decide(&mut all);
        assert_eq!(all[9].outcome, ComparisonOutcome::NotShown, "one of ten with p = 0.029");
    }

    #[test]
    fn better_depends_on_the_quantity() {
        assert_eq!(ComparisonOutcome::Higher.is_better(Better::Lower), Some(false));
        assert_eq!(ComparisonOutcome::Lower.is_better(Better::Lower), Some(true));
        assert_eq!(ComparisonOutcome::NotShown.is_better(Better::Higher), None);
        assert_eq!(ComparisonOutcome::Higher.is_better(Better::Neither), None);
    }

    #[test]
    fn nothing_can_be_compared_with_nothing() {
        assert_eq!(compare(&[], &[1.0], Pairing::None, 0.0), None);
        assert_eq!(compare(&[1.0], &[f64::INFINITY], Pairing::None, 0.0), None);
        let zero = compare(&[0.0, 0.0], &[0.0, 0.0], Pairing::None, 0.0).unwrap();
        assert_eq!((zero.relative(), zero.outcome), (None, ComparisonOutcome::TooFew));
    }
}
