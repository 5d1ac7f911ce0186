//! Evaluation of pairs of transfers: the ratio of ours to theirs, its uncertainty, and whether a difference is
//! shown.

use linerate_theory::stats::paired;
use serde_json::{Value, json};

use super::spread::Spread;

/// Required probability that the interval covers the ratio.
const CONFIDENCE: f64 = 0.95;

/// The ratio of ours to theirs over all pairs.
///
/// Computed with differences of logarithms, so that half as fast weighs as much as twice as fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contest {
    /// Hodges-Lehmann estimate.
    pub(super) ratio: f64,
    low: f64,
    high: f64,
    /// Actual probability that the interval covers the ratio.
    coverage: f64,
    pairs: usize,
}

impl Contest {
    /// Absent if there are too few pairs for an interval, or if a ratio is invalid.
    pub(super) fn of(ratios: &Spread) -> Option<Self> {
        let logarithms: Vec<f64> = ratios.readings().iter().map(|ratio| ratio.ln()).collect();
        let centre = paired::centre(&logarithms)?;
        let interval = paired::centre_interval(&logarithms, CONFIDENCE)?;
        let (low, high) = (interval.low.exp(), interval.high.exp());
        Some(Self { ratio: centre.exp(), low, high, coverage: interval.coverage, pairs: logarithms.len() })
    }

    /// Whether ours is at least as fast, or slower; absent if undecided.
    pub(super) fn at_least_as_fast(&self) -> Option<bool> {
        self.at_least(1.0)
    }

    /// Whether the whole interval is at least this ratio, or below it; absent if undecided.
    pub(super) fn at_least(&self, ratio: f64) -> Option<bool> {
        if self.low >= ratio {
            return Some(true);
        }
        (self.high < ratio).then_some(false)
    }

    /// Whether the whole interval is at most this ratio, or above it; absent if undecided.
    pub(super) fn at_most(&self, ratio: f64) -> Option<bool> {
        if self.high <= ratio {
            return Some(true);
        }
        (self.low > ratio).then_some(false)
    }

    /// Text for the table.
    pub(super) fn describe(&self) -> String {
        let conclusion = match self.at_least_as_fast() {
            Some(true) => "ours is faster",
            Some(false) => "ours is slower",
            None => "no difference shown",
        };
        let Self { ratio, low, high, pairs, .. } = self;
        let percent = self.coverage * 100.0;
        format!("ratio {ratio:.3} ({low:.3} to {high:.3} with {percent:.1} %, {pairs} pairs): {conclusion}")
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "ratio": self.ratio,
            "low": self.low,
            "high": self.high,
            "coverage": self.coverage,
            "pairs": self.pairs,
            "at_least_as_fast": self.at_least_as_fast(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest(ratios: &[f64]) -> Option<Contest> {
        Contest::of(&Spread::of(ratios.to_vec()).unwrap())
    }

    /// Swapping the sides inverts the ratio and its interval.
    #[test]
    fn half_as_fast_weighs_as_much_as_twice_as_fast() {
        let ratios = [2.0, 0.5, 1.25, 0.8, 4.0, 0.25];
        let found = contest(&ratios).unwrap();
        assert!((found.ratio - 1.0).abs() < 1e-12, "{found:?}");
        assert!((found.low * found.high - 1.0).abs() < 1e-12, "{found:?}");
        assert_eq!(found.at_least_as_fast(), None);
        assert!(found.describe().ends_with("6 pairs): no difference shown"), "{}", found.describe());
    }

    #[test]
    fn a_difference_is_shown_when_the_interval_leaves_one_out() {
        // For six pairs on one side, the interval is from the smallest to the largest: 1 - 2/64 = 96.9 %.
        let faster = contest(&[1.01, 1.02, 1.03, 1.04, 1.05, 1.3]).unwrap();
        assert_eq!(faster.at_least_as_fast(), Some(true));
        let (from, to) = (faster.low, faster.high);
        assert!((from - 1.01).abs() < 1e-12 && (to - 1.3).abs() < 1e-12, "{faster:?}");
        assert!(faster.describe().contains("with 96.9 %, 6 pairs): ours is faster"), "{}", faster.describe());
        let slower = contest(&[0.99, 0.98, 0.97, 0.96, 0.95, 0.7]).unwrap();
        assert_eq!(slower.at_least_as_fast(), Some(false));
        assert_eq!(slower.json()["at_least_as_fast"], false);
    }

    #[test]
    fn few_pairs_show_nothing() {
        assert_eq!(contest(&[2.0; 5]), None);
        assert_eq!(contest(&[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), None, "nothing arrived");
    }
}
