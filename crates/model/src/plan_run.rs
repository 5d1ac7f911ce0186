//! The execution of a plan: what its own log contains, in addition to the logs of its runs.
//!
//! The log of a plan lists its points once, then every trial with the runs it made, one per flow. After the
//! last trial come the summaries. The runs are stored in the archive like any others.

mod point_selector;

use std::collections::BTreeMap;

use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::event::{Body, Event, Outcome, World};
use crate::foreign_text::{ForeignLines, ForeignText};
use crate::method::MethodTable;
use crate::spec::Direction;
pub use point_selector::PointSelectorError;

/// The start of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStart {
    /// Version of the event format.
    pub schema: ForeignText,
    /// Wall-clock time, RFC 3339.
    pub started_at: ForeignText,
    /// Where its runs take place.
    pub world: World,
    /// Version of linerate.
    pub linerate: ForeignText,
    /// Name of the plan.
    pub name: ForeignText,
    /// Its purpose, one line.
    pub about: ForeignLines,
    /// Other notes in its file, such as the tester's name or the device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<ForeignText, ForeignText>,
    /// The files it was read from, the plan itself first.
    pub files: Vec<PlanFile>,
    /// What was set on the command line, as entered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<ForeignLines>,
    /// Its hosts.
    pub hosts: Vec<PlanHost>,
    /// The topology of the emulated network; absent on real hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<ForeignText>,
    /// Its flows; each trial has one run per flow.
    pub flows: Vec<PlanFlow>,
    /// The swept axes; the last axis varies fastest.
    pub axes: Vec<PlanAxis>,
    /// The method it follows, by its name in plans; absent if it follows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<ForeignText>,
    /// The search made at every point, as the condition that must hold; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<ForeignText>,
    /// The points, in the order of the plan.
    pub points: Vec<PlanPoint>,
    /// Number of measurements of each point.
    pub repeats: u32,
    /// The order, by its name in plans.
    pub order: ForeignText,
    /// The seed of a shuffled order.
    pub seed: u64,
    /// Estimated duration.
    #[serde(rename = "estimate_ns")]
    pub estimate: Span,
}

/// A file of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanFile {
    /// Its name as it was opened.
    pub name: ForeignText,
    /// Its whole text.
    pub text: ForeignLines,
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanHost {
    /// Its name.
    pub name: ForeignText,
    /// Its address; absent for a host of the emulated network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<ForeignText>,
}

/// A flow of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanFlow {
    /// Its name.
    pub name: ForeignText,
    /// The host that is its client.
    pub from: ForeignText,
    /// The host that is its server.
    pub to: ForeignText,
    /// Whether it only loads the network, and ends when the others have ended.
    pub cross_traffic: bool,
}

/// An axis of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanAxis {
    /// Its name.
    pub name: ForeignText,
    /// Unit of its numbers: `bit/s`, `bytes`, `ns` or `1`; absent if the values are not numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ForeignText>,
    /// Its values, in the order of the plan.
    pub values: Vec<PlanValue>,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanValue {
    /// How it is displayed.
    pub label: ForeignText,
    /// In the unit of the axis; absent for a value that is not a number, such as `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
}

/// A point of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanPoint {
    /// Its name: sixteen hexadecimal digits.
    pub id: ForeignText,
    /// For each axis the index of its value.
    pub values: Vec<usize>,
}

/// One trial: a repeat at a point, or a step of its search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialEnd {
    /// The point.
    pub point: ForeignText,
    /// The repeat, from 0.
    pub repeat: u32,
    /// A digest of everything measured and set, sixteen hexadecimal digits. A different digest means a
    /// different measurement.
    pub content: ForeignText,
    /// The step of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<SearchStep>,
    /// Its runs, one per flow, in the order of the flows.
    pub runs: Vec<TrialRun>,
}

/// A step of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchStep {
    /// The tested value, as displayed.
    pub label: ForeignText,
    /// The same as a number: bit/s, bytes, nanoseconds, or without a unit.
    pub number: f64,
    /// Whether this was the longer trial that confirms a value.
    pub confirms: bool,
    /// Whether the condition held.
    pub passed: bool,
}

/// A run of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRun {
    /// The flow of the plan.
    pub flow: ForeignText,
    /// The run's name in the archive.
    pub run: ForeignText,
    /// How it ended.
    pub outcome: Outcome,
    /// The reason, unless it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ForeignText>,
    /// Start of its own time on the plan's clock, which puts the events of all runs on one time axis. Absent if
    /// it never began.
    #[serde(rename = "began_ns", default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// Delay of the start of the measurement against the planned time; absent if it did not start, or the delay
    /// is unknown.
    #[serde(rename = "start_error_ns", default, skip_serializing_if = "Option::is_none")]
    pub start_error: Option<Span>,
    /// Largest error of its clock relative to the coordinator's.
    #[serde(rename = "clock_error_ns", default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<Span>,
}

/// Summary of the trials of a point, in one quantity of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointSummary {
    /// The point.
    pub point: ForeignText,
    /// The flow of the plan.
    pub flow: ForeignText,
    /// Direction as seen from the flow's client.
    pub direction: Direction,
    /// The quantity, by its name in assertions.
    pub quantity: ForeignText,
    /// Unit of its numbers: `bit/s`, `bytes`, `ns` or `1`; absent for text values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ForeignText>,
    /// The values of the trials that have one, in the order of the repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// The repeat of each value, from 0; absent in what earlier versions wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<u32>,
    /// Their median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The distribution-free interval of the median; absent below six trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<SummaryInterval>,
    /// The text value of each trial, for a quantity such as the verdict's cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<ForeignText>,
}

/// An interval and its coverage probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SummaryInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// From 0 to 1.
    pub coverage: f64,
}

impl PointSummary {
    /// The name of the quantity that is a rate divided by its ceiling.
    pub const CEILING_SHARE: &str = "share";

    /// The same without shares of a ceiling above 1, which older versions wrote: either the rate or the ceiling
    /// was wrong, and it is unknown which.
    #[must_use]
    fn without_excess(mut self) -> Self {
        if self.quantity == Self::CEILING_SHARE {
            let known = self.values.len();
            let sound = |value: f64| value <= 1.0;
            if self.repeats.len() == known {
                let mut values = self.values.iter();
                self.repeats.retain(|_| values.next().is_some_and(|share| sound(*share)));
            }
            self.values.retain(|share| sound(*share));
            // The old median and interval do not apply to the remaining values.
            let whole = self.values.len() == known;
            self.median = self.median.filter(|median| whole && sound(*median));
            self.interval =
                self.interval.filter(|interval| whole && sound(interval.low) && sound(interval.high));
        }
        self
    }

    /// The smallest value of a trial.
    #[must_use]
    pub fn smallest(&self) -> Option<f64> {
        self.values.iter().copied().min_by(f64::total_cmp)
    }

    /// The largest value of a trial.
    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        self.values.iter().copied().max_by(f64::total_cmp)
    }
}

/// The result of a search at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchEnd {
    /// The point.
    pub point: ForeignText,
    /// The repeat, from 0.
    pub repeat: u32,
    /// The largest value that passed, as displayed; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<ForeignText>,
    /// The same as a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
}

/// Whether an assertion of the plan holds at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanJudgement {
    /// The assertion's name.
    pub assertion: ForeignText,
    /// The point.
    pub point: ForeignText,
    /// The flow of the plan.
    pub flow: ForeignText,
    /// Direction as seen from the flow's client.
    pub direction: Direction,
    /// Whether it holds. If something was not measured, it does not hold.
    pub holds: bool,
    /// Both sides as found, or what was not measured; absent if it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<ForeignText>,
}

/// The place of a run in the execution of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanPlace {
    /// The plan's own run in the archive.
    pub run: ForeignText,
    /// The point.
    pub point: ForeignText,
    /// The repeat, from 0.
    pub repeat: u32,
    /// The flow of the plan.
    pub flow: ForeignText,
}

/// A plan folded from its own log. Folding the log again gives the same record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanRecord {
    /// The plan's run.
    pub run: ForeignText,
    /// Its start; absent if the start of the log is lost, and in the log of a run that is not a plan.
    pub start: Option<PlanStart>,
    /// The trials, in the order in which they were run.
    pub trials: Vec<TrialEnd>,
    /// The results of searches that have ended, one for each point and repeat.
    pub found: Vec<SearchEnd>,
    /// The summaries of the points.
    pub summaries: Vec<PointSummary>,
    /// The summaries in the terms of the plan's method.
    pub tables: Vec<MethodTable>,
    /// The results of the assertions.
    pub judgements: Vec<PlanJudgement>,
    /// The caveats for the whole plan.
    pub caveats: Vec<Caveat>,
    /// How often it was resumed.
    pub resumed: u32,
    /// Number of events in its log.
    pub events: u64,
    /// Time of the last event.
    pub last: Timestamp,
    /// How it ended; absent while it runs and if it was killed.
    pub outcome: Option<Outcome>,
    /// The reason, unless it was completed.
    pub reason: Option<ForeignText>,
}

impl PlanRecord {
    /// Whether a log is that of a plan, and not that of a run.
    #[must_use]
    pub fn is_plan(log: &[Event]) -> bool {
        log.iter().any(|event| matches!(event.body, Body::PlanStarted(_)))
    }

    /// The record of the log of a plan; absent for the log of a run.
    #[must_use]
    pub fn of_log(log: &[Event]) -> Option<Self> {
        Self::is_plan(log).then(|| Self::fold(log))
    }

    /// The record of a log.
    #[must_use]
    pub fn fold(log: &[Event]) -> Self {
        let mut record = Self::default();
        for event in log {
            record.apply(event);
        }
        record
    }

    /// Applies one more event. Events that do not occur in a plan's log change nothing.
    pub fn apply(&mut self, event: &Event) {
        if self.events == 0 {
            self.run.clone_from(&event.run);
        }
        self.events = self.events.max(event.seq.saturating_add(1));
        self.last = self.last.max(event.at);
        match &event.body {
            Body::PlanStarted(start) => self.start = Some((**start).clone()),
            Body::PlanResumed => {
                self.resumed = self.resumed.saturating_add(1);
                // The earlier summaries are no longer final.
                (self.summaries, self.judgements, self.tables) = (Vec::new(), Vec::new(), Vec::new());
                (self.outcome, self.reason) = (None, None);
            }
            Body::TrialEnded(trial) => {
                if trial.step.is_some() {
                    // The search goes on, or begins again after the plan was changed.
                    self.found.retain(|found| (&found.point, found.repeat) != (&trial.point, trial.repeat));
                }
                self.trials.push(trial.clone());
            }
            Body::SearchEnded(found) => {
                self.found.retain(|earlier| (&earlier.point, earlier.repeat) != (&found.point, found.repeat));
                self.found.push(found.clone());
            }
            Body::PointSummed(summary) => self.summaries.push(summary.clone().without_excess()),
            Body::MethodTable(table) => self.tables.push(table.clone()),
            Body::Judged(judgement) => self.judgements.push(judgement.clone()),
            Body::Caveat { flow: None, caveat } => self.caveats.push(caveat.clone()),
            Body::RunEnded { outcome, reason } => {
                (self.outcome, self.reason) = (Some(*outcome), reason.clone());
            }
            _ => {}
        }
    }

    /// The values of a point as displayed, axis by axis.
    #[must_use]
    pub fn labels(&self, point: &str) -> Vec<(&str, &str)> {
        let Some(start) = &self.start else { return Vec::new() };
        let Some(point) = start.points.iter().find(|known| known.id == point) else { return Vec::new() };
        let label = |(axis, value): (_, &usize)| {
            let axis: &PlanAxis = axis;
            Some((axis.name.as_str(), axis.values.get(*value)?.label.as_str()))
        };
        start.axes.iter().zip(&point.values).filter_map(label).collect()
    }
}

#[cfg(test)]
mod tests;
