//! A configuration that is compared, and the source of its figures.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::{Outcome, PlanRecord, PointSummary, RunRecord};
use linerate_theory::compare::Pairing;
use thiserror::Error;

use super::{Subject, facts};
use crate::assertion::{QUANTITIES, QuantityValue};
use crate::plan::TrialOrder;

/// The repeats of everything that was measured with one configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidate {
    /// Name.
    pub name: String,
    /// Subjects in the order in which they were found, each with its figures by quantity.
    figures: Vec<(Subject, BTreeMap<String, RepeatedFigures>)>,
    /// Facts about hosts and settings, each with every value that was seen.
    pub(super) facts: BTreeMap<String, BTreeSet<String>>,
    /// Number of the runs that were added one by one.
    runs: u32,
}

/// The figures of a quantity, one per repeat that has one.
#[derive(Debug, Clone, Default, PartialEq)]
struct RepeatedFigures {
    values: Vec<f64>,
    /// The repeat of each value, from 0; absent if it is not known.
    repeats: Vec<Option<u32>>,
}

/// Reasons why the values of an axis cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AxisError {
    /// The run is not a plan, or the start of its log is missing.
    #[error("the run {0} is not a run of a plan, so it has no axes")]
    NoPlan(String),
    /// The plan has no such axis.
    #[error("the plan has no axis '{name}'{hint}")]
    NoAxis {
        /// The name as entered.
        name: String,
        /// A similar name as a suggestion.
        hint: String,
    },
    /// The axis has one value.
    #[error("the axis '{0}' has only one value; a comparison needs two")]
    OneValue(String),
}

impl Candidate {
    /// Runs that repeat one measurement.
    #[must_use]
    pub fn of_runs(name: String, runs: &[RunRecord]) -> Self {
        let mut candidate = Self::without_runs(name);
        runs.iter().for_each(|run| candidate.add_run(run));
        candidate
    }

    /// A configuration whose runs are added one by one.
    #[must_use]
    pub fn without_runs(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// Adds the next repeat. Only its figures and facts are kept, which are few; the record has every sample.
    pub fn add_run(&mut self, run: &RunRecord) {
        facts::note(&mut self.facts, run);
        for flow in &run.flows {
            let (name, direction) = (flow.plan.name.clone(), flow.plan.direction);
            let place = Subject { point: Vec::new(), flow: name.into(), direction };
            for quantity in QUANTITIES {
                if let Some(QuantityValue::Number(number)) = (quantity.of)(run, flow) {
                    self.note(&place, quantity.name, number, Some(self.runs));
                }
            }
        }
        self.runs += 1;
    }

    /// An executed plan. `runs` are those of its runs whose hosts and settings are compared too.
    #[must_use]
    pub fn of_plan(name: String, plan: &PlanRecord, runs: &[RunRecord]) -> Self {
        let mut candidate = Self { name, ..Self::default() };
        runs.iter().for_each(|run| facts::note(&mut candidate.facts, run));
        candidate.take(plan, None);
        candidate
    }

    /// Adds the summaries of all points, or of those with one value of an axis, which is then left out of the
    /// subject.
    fn take(&mut self, plan: &PlanRecord, only: Option<(&str, &str)>) {
        for summary in &plan.summaries {
            let labels = plan.labels(&summary.point);
            if only.is_some_and(|only| !labels.contains(&only)) {
                continue;
            }
            let kept = labels.into_iter().filter(|(axis, _)| only.is_none_or(|(name, _)| name != *axis));
            let point = kept.map(|(axis, label)| (axis.to_owned(), label.to_owned())).collect();
            let place = Subject { point, flow: summary.flow.to_string(), direction: summary.direction };
            let repeats = repeats_of(plan, summary);
            for (at, value) in summary.values.iter().enumerate() {
                let repeat = repeats.as_ref().and_then(|repeats| repeats.get(at)).copied();
                self.note(&place, &summary.quantity, *value, repeat);
            }
        }
    }

    fn note(&mut self, place: &Subject, quantity: &str, number: f64, repeat: Option<u32>) {
        let at = self.figures.iter().position(|(known, _)| known == place).unwrap_or_else(|| {
            self.figures.push((place.clone(), BTreeMap::new()));
            self.figures.len() - 1
        });
        if let Some((_, figures)) = self.figures.get_mut(at) {
            let of_quantity = figures.entry(quantity.to_owned()).or_default();
            of_quantity.values.push(number);
            of_quantity.repeats.push(repeat);
        }
    }

    /// Subjects that have figures.
    pub(super) fn places(&self) -> impl Iterator<Item = &Subject> {
        self.figures.iter().map(|(place, _)| place)
    }

    /// The figures of a quantity for a subject, one per repeat.
    #[must_use]
    pub fn samples(&self, place: &Subject, quantity: &str) -> Option<&[f64]> {
        self.find(place, quantity).map(|figures| figures.values.as_slice())
    }

    fn find(&self, place: &Subject, quantity: &str) -> Option<&RepeatedFigures> {
        let (_, figures) = self.figures.iter().find(|(known, _)| known == place)?;
        figures.get(quantity)
    }

    /// Whether this configuration and another one have figures of a quantity from the same repeats, so that they can be
    /// paired.
    pub(super) fn has_repeats_of(&self, other: &Self, place: &Subject, quantity: &str) -> bool {
        let repeats =
            |one: &Self| -> Option<Vec<u32>> { one.find(place, quantity)?.repeats.iter().copied().collect() };
        repeats(self).is_some_and(|own| Some(own) == repeats(other))
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.figures.is_empty()
    }
}

/// The repeats of a summary's values, from 0; `None` if they are not known.
fn repeats_of(plan: &PlanRecord, summary: &PointSummary) -> Option<Vec<u32>> {
    if !summary.repeats.is_empty() {
        return (summary.repeats.len() == summary.values.len()).then(|| summary.repeats.clone());
    }
    // Earlier versions wrote no repeats. They are known if every repeat that was measured has a value.
    let measured = plan.trials.iter().filter(|trial| {
        let mut runs = trial.runs.iter();
        trial.point == summary.point
            && runs.any(|run| run.flow == summary.flow && run.outcome == Outcome::Completed)
    });
    let repeats: BTreeSet<u32> = measured.map(|trial| trial.repeat).collect();
    (repeats.len() == summary.values.len()).then(|| repeats.into_iter().collect())
}

/// The values of an axis as configurations, the first one as the base, and the pairing of their repeats: in a
/// plan with interleaved order, the n-th repeats of all values are paired.
///
/// # Errors
/// If there is no such axis, or it has only one value.
pub fn values_of_axis(plan: &PlanRecord, axis: &str) -> Result<(Vec<Candidate>, Pairing), AxisError> {
    let start = plan.start.as_ref().ok_or_else(|| AxisError::NoPlan(plan.run.to_string()))?;
    let Some(found) = start.axes.iter().find(|known| known.name == axis) else {
        let hint = linerate_config::hint(axis, start.axes.iter().map(|known| known.name.as_str()));
        return Err(AxisError::NoAxis { name: axis.to_owned(), hint });
    };
    let candidate = |label: &str| {
        let mut candidate = Candidate { name: format!("{axis}={label}"), ..Candidate::default() };
        candidate.take(plan, Some((axis, label)));
        candidate
    };
    let candidates: Vec<Candidate> = found.values.iter().map(|value| candidate(&value.label)).collect();
    if candidates.len() < 2 {
        return Err(AxisError::OneValue(axis.to_owned()));
    }
    let in_turn = start.order == TrialOrder::Interleaved.name();
    Ok((candidates, if in_turn { Pairing::InTurn } else { Pairing::None }))
}
