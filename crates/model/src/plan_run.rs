//! A plan carried out: what its own log says, beside the logs of the runs that it is made of.
//!
//! The log of a plan names its points once, then every trial with the runs that it made, one a flow; behind the last
//! trial what they amount to. The runs are in the archive like any others.

use std::collections::BTreeMap;

use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::event::{Body, Event, Outcome, World};
use crate::foreign_text::{ForeignLines, ForeignText};
use crate::method::MethodTable;
use crate::spec::Direction;

/// The beginning of a plan.
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
    /// What it is for, one line.
    pub about: ForeignLines,
    /// What else its file says of itself, as the tester's name or the device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<ForeignText, ForeignText>,
    /// The files that it was read from, the plan itself first.
    pub files: Vec<PlanFile>,
    /// What was set from outside, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<ForeignLines>,
    /// Its hosts.
    pub hosts: Vec<PlanHost>,
    /// The topology of the emulated network; absent on real hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<ForeignText>,
    /// Its flows; each trial has a run for each.
    pub flows: Vec<PlanFlow>,
    /// What is swept; the last axis varies fastest.
    pub axes: Vec<PlanAxis>,
    /// The method that it follows, by its name in plans; absent when it follows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<ForeignText>,
    /// What is searched at every point, as the claim that must hold; absent when nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<ForeignText>,
    /// The points, in the order of the plan.
    pub points: Vec<PlanPoint>,
    /// How often each point is measured.
    pub repeats: u32,
    /// In which order, by its name in plans.
    pub order: ForeignText,
    /// What a shuffled order draws from.
    pub seed: u64,
    /// How long it should take.
    #[serde(rename = "estimate_ns")]
    pub estimate: Span,
}

/// A file of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanFile {
    /// Its name as it was opened.
    pub name: ForeignText,
    /// All of it.
    pub text: ForeignLines,
}

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanHost {
    /// Its name.
    pub name: ForeignText,
    /// Where it was reached; absent for one that the emulated network has.
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
    /// Whether it is there to load the network, and ends when the others have ended.
    pub background: bool,
}

/// An axis of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanAxis {
    /// Its name.
    pub name: ForeignText,
    /// What its numbers are measured in: `bit/s`, `bytes`, `ns` or `1`; absent where the values are no numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ForeignText>,
    /// Its values, in the order of the plan.
    pub values: Vec<PlanValue>,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanValue {
    /// How it is shown.
    pub label: ForeignText,
    /// In the unit of the axis; absent for what is no number, as `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
}

/// A point of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanPoint {
    /// Its name: sixteen hexadecimal digits.
    pub id: ForeignText,
    /// For each axis the number of its value.
    pub values: Vec<usize>,
}

/// One trial: a repeat at a point, or a step of its search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialEnd {
    /// The point.
    pub point: ForeignText,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// A digest of all that was measured and set, sixteen hexadecimal digits: under another one it is another measurement.
    pub content: ForeignText,
    /// The step of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<SearchStep>,
    /// Its runs, one a flow, in the order of the flows.
    pub runs: Vec<TrialRun>,
}

/// A step of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchStep {
    /// The value that was tried, as it is shown.
    pub label: ForeignText,
    /// The same as a number: bit/s, bytes, nanoseconds, or as it is.
    pub number: f64,
    /// Whether it was the longer trial that confirms a value.
    pub confirms: bool,
    /// Whether what must hold held.
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
    /// Why, unless it was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<ForeignText>,
    /// Where its own time begins, on the plan's clock: with it the events of all runs are on one line of time. Absent when
    /// it never began.
    #[serde(rename = "began_ns", default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Timestamp>,
    /// How much later than planned it began to measure; absent when it did not, or nobody told.
    #[serde(rename = "late_ns", default, skip_serializing_if = "Option::is_none")]
    pub late: Option<Span>,
    /// Largest error of its clock against the coordinator's.
    #[serde(rename = "clock_error_ns", default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<Span>,
}

/// What the trials of a point amount to, in one quantity of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointSummary {
    /// The point.
    pub point: ForeignText,
    /// The flow of the plan.
    pub flow: ForeignText,
    /// Which way, seen from the flow's client.
    pub direction: Direction,
    /// The quantity, by its name in assertions.
    pub quantity: ForeignText,
    /// What its numbers are measured in: `bit/s`, `bytes`, `ns` or `1`; absent for words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<ForeignText>,
    /// The figure of each trial that has one, in the order of the repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Their median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// The distribution-free interval of the median; absent below six trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<SummaryInterval>,
    /// The word of each trial, where the quantity is one, as the verdict's cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<ForeignText>,
}

/// An interval with the probability that it covers what it is about.
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
    /// The name of the quantity that is a rate over its ceiling.
    pub const CEILING_SHARE: &str = "share";

    /// The same without shares of a ceiling above the whole, which older versions told: either the rate or the ceiling
    /// was wrong, and nobody knows which.
    #[must_use]
    fn without_excess(mut self) -> Self {
        if self.quantity == Self::CEILING_SHARE {
            let known = self.values.len();
            self.values.retain(|share| *share <= 1.0);
            let sound = |value: f64| value <= 1.0;
            // What was made of them is not that of those that are left.
            let whole = self.values.len() == known;
            self.median = self.median.filter(|median| whole && sound(*median));
            self.interval =
                self.interval.filter(|interval| whole && sound(interval.low) && sound(interval.high));
        }
        self
    }

    /// The smallest figure of a trial.
    #[must_use]
    pub fn smallest(&self) -> Option<f64> {
        self.values.iter().copied().min_by(f64::total_cmp)
    }

    /// The largest figure of a trial.
    #[must_use]
    pub fn largest(&self) -> Option<f64> {
        self.values.iter().copied().max_by(f64::total_cmp)
    }
}

/// What a search came to at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchEnd {
    /// The point.
    pub point: ForeignText,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The largest value that passed, as it is shown; absent when none did.
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
    /// Which way, seen from the flow's client.
    pub direction: Direction,
    /// Whether it holds; what was not measured does not.
    pub holds: bool,
    /// Both sides as found, or what was not measured; absent where it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<ForeignText>,
}

/// The place of a run in a plan that is carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanPlace {
    /// The plan's own run in the archive.
    pub run: ForeignText,
    /// The point.
    pub point: ForeignText,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The flow of the plan.
    pub flow: ForeignText,
}

/// A plan folded from its own log. Folding a log again gives the same record.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanRecord {
    /// The plan's run.
    pub run: ForeignText,
    /// How it began; absent in a log whose beginning is lost, and in that of a run that is no plan.
    pub start: Option<PlanStart>,
    /// Trials, in the order in which they were run.
    pub trials: Vec<TrialEnd>,
    /// What searches came to.
    pub found: Vec<SearchEnd>,
    /// What the points come to.
    pub summaries: Vec<PointSummary>,
    /// What they come to in the terms of the plan's method.
    pub tables: Vec<MethodTable>,
    /// What became of the assertions.
    pub judgements: Vec<PlanJudgement>,
    /// What weakens all of it.
    pub caveats: Vec<Caveat>,
    /// How often it was taken up again.
    pub resumed: u32,
    /// Number of events in its log.
    pub events: u64,
    /// Time of the last event.
    pub last: Timestamp,
    /// How it ended; absent while it runs and when it was killed.
    pub outcome: Option<Outcome>,
    /// Why, unless it was completed.
    pub reason: Option<ForeignText>,
}

impl PlanRecord {
    /// The record of a log.
    #[must_use]
    pub fn fold(log: &[Event]) -> Self {
        let mut record = Self::default();
        for event in log {
            record.apply(event);
        }
        record
    }

    /// Takes one more event in. Those that a plan's log does not have change nothing.
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
                // What was summed up is not the last word any more.
                (self.summaries, self.judgements, self.tables) = (Vec::new(), Vec::new(), Vec::new());
                (self.outcome, self.reason) = (None, None);
            }
            Body::TrialEnded(trial) => self.trials.push(trial.clone()),
            Body::SearchEnded(found) => self.found.push(found.clone()),
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

    /// The values of a point as they are shown, axis by axis.
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

    /// What the trials of a point amount to in a quantity of a flow; of a flow that is measured both ways, the first.
    #[must_use]
    pub fn summary(&self, point: &str, flow: &str, quantity: &str) -> Option<&PointSummary> {
        let is =
            |known: &&PointSummary| known.point == point && known.flow == flow && known.quantity == quantity;
        self.summaries.iter().find(is)
    }
}

#[cfg(test)]
mod tests;
