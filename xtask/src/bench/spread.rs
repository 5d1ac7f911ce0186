//! Several readings of one figure: the median and the extremes.

use serde_json::{Value, json};

/// Readings in chronological order; at least one, none of them NaN.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread(Vec<f64>);

impl Spread {
    /// Absent if there is no reading, or one that is not finite.
    pub(super) fn of(readings: Vec<f64>) -> Option<Self> {
        let sound = !readings.is_empty() && readings.iter().all(|reading| reading.is_finite());
        sound.then_some(Self(readings))
    }

    /// The readings in chronological order.
    pub(super) fn readings(&self) -> &[f64] {
        &self.0
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    /// The middle reading, or the mean of the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let half = sorted.len() / 2;
        if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
    }

    pub(super) fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Ratios pair by pair, so that disturbances of both cancel out.
    pub(super) fn ratio_to(&self, other: &Self) -> Option<Self> {
        Self::of(self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect())
    }

    pub(super) fn json(&self) -> Value {
        json!({ "median": self.median(), "min": self.min(), "max": self.max(), "readings": self.0 })
    }
}

/// Difference of pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PairedDifference {
    /// Median of the means of all pairs of differences, including each with itself.
    pub(super) middle: f64,
    /// 95 % interval; absent for fewer than six pairs.
    pub(super) interval: Option<(f64, f64)>,
}

/// The shift of paired differences after Hodges and Lehmann, with the interval of Wilcoxon's signed-rank test
/// (normal approximation). It is robust against single disturbed pairs.
pub(super) fn shift(differences: &[f64]) -> Option<PairedDifference> {
    const QUANTILE: f64 = 1.96;
    let count = differences.len();
    let mut means: Vec<f64> = (0..count)
        .flat_map(|first| {
            (first..count).map(move |second| f64::midpoint(differences[first], differences[second]))
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let middle = Spread::of(means.clone())?.median();
    let n = count as f64;
    let cut = n * (n + 1.0) / 4.0 - QUANTILE * (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    // The interval is from the mean with that rank (from 1) to the one with the same rank from the end.
    let cut = (cut.floor() - 1.0).max(0.0) as usize;
    let interval = (count >= 6).then(|| (means[cut], means[means.len() - 1 - cut]));
    Some(PairedDifference { middle, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_whatever_the_order() {
        let odd = Spread::of(vec![9.0, 1.0, 5.0]).unwrap();
        assert_eq!((odd.median(), odd.min(), odd.max()), (5.0, 1.0, 9.0));
        assert_eq!(Spread::of(vec![4.0, 1.0, 2.0, 8.0]).unwrap().median(), 3.0);
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        // Both halve in the second pair: the ratio of each pair is 2; the ratio of the medians would be 2 only
        // by chance.
        let ours = Spread::of(vec![8.0, 4.0, 6.0]).unwrap();
        let theirs = Spread::of(vec![4.0, 2.0, 1.0]).unwrap();
        assert_eq!(ours.ratio_to(&theirs), Spread::of(vec![2.0, 2.0, 6.0]));
        assert_eq!(ours.ratio_to(&theirs).unwrap().median(), 2.0);
    }

    #[test]
    fn what_was_not_read_is_absent() {
        assert_eq!(Spread::of(Vec::new()), None);
        assert_eq!(Spread::of(vec![1.0, f64::NAN]), None);
        let nothing = Spread::of(vec![0.0]).unwrap();
        assert_eq!(nothing.ratio_to(&nothing), None, "0 / 0 is no ratio");
    }

    #[test]
    fn one_disturbed_pair_moves_the_shift_little_and_few_have_no_interval() {
        // Pairwise means of 1, 2, 9: 1, 1.5, 2, 5, 5.5, 9.
        assert_eq!(shift(&[1.0, 2.0, 9.0]), Some(PairedDifference { middle: 3.5, interval: None }));
        let found = shift(&[1.0, 2.0, 3.0, 4.0, 5.0, 600.0]).unwrap();
        let (low, high) = found.interval.unwrap();
        assert!(found.middle < 5.0 && low < found.middle && found.middle < high, "{found:?}");
        // For six pairs, the interval is from the smallest to the largest.
        assert_eq!((low, high), (1.0, 600.0));
        assert_eq!(shift(&[]), None);
        assert_eq!(shift(&[f64::NAN]), None);
    }
}
