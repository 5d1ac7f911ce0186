//! One row of the result.

use serde_json::{Value, json};

use super::pairs::Contest;
use super::spread::Spread;

/// A measured quantity, ours and, in a comparison, the peer's.
pub(super) struct BenchFigure {
    pub(super) name: &'static str,
    /// Unit of `ours` and `peer`.
    pub(super) unit: &'static str,
    pub(super) ours: Spread,
    pub(super) peer: Option<Spread>,
    /// Name of the peer in the document.
    pub(super) peer_name: &'static str,
    /// CPU seconds of the whole machine per 10^9 bytes, ours and the peer's.
    pub(super) cpu_seconds_per_gb: Option<(Spread, Spread)>,
    /// Ours may use at most this share of the peer's CPU time.
    pub(super) cpu_goal: Option<f64>,
    /// How the bytes pass through both ends; absent if it does not matter for the figure.
    pub(super) class: Option<&'static str>,
    pub(super) goal: BenchGoal,
    /// Additional information.
    pub(super) note: Option<String>,
}

/// The project's target for a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BenchGoal {
    /// The ratio over the pairs is at least this: shown by its interval, or by the median if there are too few
    /// pairs for one.
    RatioAtLeast(f64),
    /// The median is below this, in the figure's unit.
    Below(f64),
    /// The median is at least this, in the figure's unit.
    AtLeast(f64),
    /// The median is in this range, in the figure's unit.
    Within { low: f64, high: f64 },
    /// No target; the ratios of the pairs are shown.
    HigherIsBetter,
    /// No target.
    Nothing,
}

/// The readings of a figure without a peer, and additional information.
pub(super) struct FigureReadings {
    pub(super) all: Vec<f64>,
    pub(super) note: Option<String>,
}

impl FigureReadings {
    /// A figure with a single reading.
    pub(super) fn once(value: f64, note: String) -> Self {
        Self { all: vec![value], note: Some(note) }
    }

    /// Builds the row.
    pub(super) fn figure(
        self,
        name: &'static str,
        unit: &'static str,
        goal: BenchGoal,
    ) -> Result<BenchFigure, String> {
        let ours = Spread::of(self.all).ok_or("nothing was read")?;
        let peer_name = "iperf3";
        Ok(BenchFigure {
            name,
            unit,
            ours,
            peer: None,
            peer_name,
            cpu_seconds_per_gb: None,
            cpu_goal: None,
            class: None,
            goal,
            note: self.note,
        })
    }
}

impl BenchGoal {
    /// Decimals needed to show on which side of the goal a value is; absent if three digits are enough.
    pub(super) fn decimals(self) -> Option<usize> {
        let Self::Within { low, high } = self else { return None };
        // A tenth of the distance from the middle to either end, with a margin for binary rounding.
        let step = (high - low) / 20.0 * (1.0 + 1e-9);
        (0..9).find(|decimals| 0.1_f64.powi(*decimals) <= step).and_then(|decimals| decimals.try_into().ok())
    }
}

impl BenchFigure {
    /// Ours divided by the peer's, pair by pair; only if higher is better.
    pub(super) fn ratio(&self) -> Option<Spread> {
        let more_is_better = matches!(self.goal, BenchGoal::RatioAtLeast(_) | BenchGoal::HigherIsBetter);
        let peer = self.peer.as_ref().filter(|_| more_is_better)?;
        self.ours.ratio_to(peer)
    }

    /// The ratio with its interval; absent if there are too few pairs.
    pub(super) fn contest(&self) -> Option<Contest> {
        Contest::of(&self.ratio()?)
    }

    /// Whether the target was reached; absent without a target or if undecided.
    pub(super) fn reached(&self) -> Option<bool> {
        match self.goal {
            BenchGoal::RatioAtLeast(goal) => match self.contest() {
                Some(contest) => contest.at_least(goal),
                None => Some(self.ratio()?.median() >= goal),
            },
            BenchGoal::Below(limit) => Some(self.ours.median() < limit),
            BenchGoal::AtLeast(limit) => Some(self.ours.median() >= limit),
            BenchGoal::Within { low, high } => Some((low..=high).contains(&self.ours.median())),
            BenchGoal::HigherIsBetter | BenchGoal::Nothing => None,
        }
    }

    /// Our CPU time for each byte divided by the peer's, pair by pair.
    pub(super) fn cpu_ratio(&self) -> Option<Spread> {
        let (ours, peer) = self.cpu_seconds_per_gb.as_ref()?;
        ours.ratio_to(peer)
    }

    /// Whether the target for CPU time was reached; absent without one or if undecided.
    pub(super) fn cpu_reached(&self) -> Option<bool> {
        let (goal, ratio) = (self.cpu_goal?, self.cpu_ratio()?);
        match Contest::of(&ratio) {
            Some(contest) => contest.at_most(goal),
            None => Some(ratio.median() <= goal),
        }
    }

    /// The target as text.
    pub(super) fn promise(&self) -> Option<String> {
        match self.goal {
            BenchGoal::RatioAtLeast(goal) => Some(format!(">= {goal:?}x")),
            BenchGoal::Below(limit) => Some(format!("< {limit} {}", self.unit)),
            BenchGoal::AtLeast(limit) => Some(format!(">= {limit} {}", self.unit)),
            BenchGoal::Within { low, high } => {
                let decimals = self.goal.decimals().unwrap_or_default();
                Some(format!("{low:.decimals$} to {high:.decimals$} {}", self.unit))
            }
            BenchGoal::HigherIsBetter | BenchGoal::Nothing => None,
        }
    }

    pub(super) fn json(&self) -> Value {
        let spread = |spread: Option<&Spread>| spread.map(Spread::json);
        let (ours_cpu, peer_cpu) =
            self.cpu_seconds_per_gb.as_ref().map_or((None, None), |(a, b)| (Some(a), Some(b)));
        json!({
            "name": self.name,
            "unit": self.unit,
            "linerate": self.ours.json(),
            self.peer_name: spread(self.peer.as_ref()),
            "ratio": spread(self.ratio().as_ref()),
            "contest": self.contest().as_ref().map(Contest::json),
            "class": self.class,
            "linerate_cpu_seconds_per_gb": spread(ours_cpu),
            format!("{}_cpu_seconds_per_gb", self.peer_name): spread(peer_cpu),
            "goal": self.promise(),
            "reached": self.reached(),
            "cpu_ratio": spread(self.cpu_ratio().as_ref()),
            "cpu_goal": self.cpu_goal.map(|goal| format!("<= {goal:?}x")),
            "cpu_reached": self.cpu_reached(),
            "note": self.note,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(ours: &[f64], peer: Option<&[f64]>, goal: BenchGoal) -> BenchFigure {
        BenchFigure {
            name: "a",
            unit: "ms",
            ours: Spread::of(ours.to_vec()).unwrap(),
            peer: peer.and_then(|peer| Spread::of(peer.to_vec())),
            peer_name: "iperf3",
            cpu_seconds_per_gb: None,
            cpu_goal: None,
            class: None,
            goal,
            note: None,
        }
    }

    #[test]
    fn cpu_time_is_judged_by_its_ratio_and_not_where_the_pairs_differ_more() {
        let reached = |ours: &[f64], goal| {
            let cpu = (Spread::of(ours.to_vec())?, Spread::of(vec![0.5; ours.len()])?);
            let one = figure(&[1.0], None, BenchGoal::Nothing);
            BenchFigure { cpu_seconds_per_gb: Some(cpu), cpu_goal: goal, ..one }.cpu_reached()
        };
        assert_eq!(reached(&[0.39; 6], Some(0.8)), Some(true));
        assert_eq!(reached(&[0.41; 6], Some(0.8)), Some(false));
        assert_eq!(reached(&[0.3, 0.5, 0.35, 0.45, 0.3, 0.5], Some(0.8)), None);
        assert_eq!(reached(&[0.39], Some(0.8)), Some(true), "one pair has no interval");
        assert_eq!(reached(&[0.39; 6], None), None);
    }

    #[test]
    fn the_bar_is_held_against_the_median() {
        assert_eq!(
            figure(&[1.0, 2.0, 9.0], Some(&[1.0, 2.0, 3.0]), BenchGoal::RatioAtLeast(1.0)).reached(),
            Some(true)
        );
        assert_eq!(
            figure(&[1.0, 1.9, 9.0], Some(&[1.1, 2.0, 3.0]), BenchGoal::RatioAtLeast(1.0)).reached(),
            Some(false)
        );
        let (equal, mixed) = ([1.0; 6], [1.5, 0.9, 1.2, 0.8, 1.1, 1.3]);
        assert_eq!(
            figure(&mixed, Some(&equal), BenchGoal::RatioAtLeast(1.0)).reached(),
            None,
            "the median is 1.15"
        );
        assert_eq!(figure(&[1.1; 6], Some(&equal), BenchGoal::RatioAtLeast(1.0)).reached(), Some(true));
        assert_eq!(figure(&[19.0, 19.9, 90.0], None, BenchGoal::Below(20.0)).reached(), Some(true));
        assert_eq!(figure(&[20.0], None, BenchGoal::Below(20.0)).reached(), Some(false));
        assert_eq!(figure(&[20.0], None, BenchGoal::AtLeast(20.0)).reached(), Some(true));
        assert_eq!(figure(&[19.9], None, BenchGoal::AtLeast(20.0)).reached(), Some(false));
        let ratio = |ours: f64| figure(&[ours; 6], Some(&equal), BenchGoal::RatioAtLeast(1.4)).reached();
        assert_eq!((ratio(1.39), ratio(1.41)), (Some(false), Some(true)));
        let range = BenchGoal::Within { low: 0.999, high: 1.001 };
        assert_eq!(figure(&[0.5, 1.0009, 1.5], None, range).reached(), Some(true));
        assert_eq!(figure(&[0.9989], None, range).reached(), Some(false));
        assert_eq!(figure(&[1.0011], None, range).reached(), Some(false));
        assert_eq!(figure(&[20.0], None, BenchGoal::Nothing).reached(), None);
    }

    #[test]
    fn a_narrow_range_is_shown_with_the_digits_it_takes() {
        assert_eq!(BenchGoal::Within { low: 0.999, high: 1.001 }.decimals(), Some(4));
        assert_eq!(BenchGoal::Within { low: 0.97, high: 1.03 }.decimals(), Some(3));
        assert_eq!(BenchGoal::Below(1.0).decimals(), None);
        let figure = figure(&[1.0], None, BenchGoal::Within { low: 1.0 / 1.5, high: 1.5 });
        assert_eq!(figure.promise().unwrap(), "0.67 to 1.50 ms");
    }

    #[test]
    fn without_a_promise_ratios_are_shown_where_more_is_better() {
        let compared = figure(&[3.0], Some(&[2.0]), BenchGoal::HigherIsBetter);
        assert_eq!(compared.ratio().unwrap().median(), 1.5);
        assert_eq!((compared.promise(), compared.reached()), (None, None));
        assert_eq!(figure(&[3.0], Some(&[2.0]), BenchGoal::Nothing).ratio(), None);
    }

    #[test]
    fn a_peer_is_named_in_the_document() {
        let document =
            BenchFigure { peer_name: "nuttcp", ..figure(&[3.0], Some(&[2.0]), BenchGoal::HigherIsBetter) }
                .json();
        assert_eq!(document["nuttcp"]["median"], 2.0);
        assert!(document.get("iperf3").is_none());
    }

    #[test]
    fn what_was_not_measured_is_null_and_not_0() {
        let document = figure(&[20.0], None, BenchGoal::Nothing).json();
        assert!(document["iperf3"].is_null() && document["ratio"].is_null() && document["reached"].is_null());
        assert_eq!(document["linerate"]["median"], 20.0);
    }
}
