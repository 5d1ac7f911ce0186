//! Completed trials of a plan, so that it can continue after an interruption.

use std::collections::BTreeMap;

use linerate_model::{Outcome, PlanRecord, SearchEnd, TrialEnd};
use serde::{Deserialize, Serialize};

use crate::order::Trial;
use crate::plan::Plan;
use crate::point::{Point, PointId};

/// Completed trials of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedTrials {
    /// Name of the plan.
    pub plan: String,
    /// Completed trials by point, in the order of completion.
    pub done: BTreeMap<PointId, Vec<CompletedTrial>>,
}

/// A completed trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedTrial {
    /// Number of the repeat.
    pub repeat: u32,
    /// [`Point::content`] at that time.
    pub content: u64,
    /// The names of its runs, one per flow.
    pub runs: Vec<String>,
}

impl CompletedTrials {
    /// No trial is completed yet.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self { plan: plan.name.clone(), done: BTreeMap::new() }
    }

    /// Reads the log of a plan: every trial whose runs were all completed, without steps of searches.
    #[must_use]
    pub fn of(record: &PlanRecord) -> Self {
        let plan = record.start.as_ref().map(|start| start.name.clone()).unwrap_or_default();
        let mut progress = Self { plan: plan.into(), done: BTreeMap::new() };
        for trial in record.trials.iter().filter(|trial| trial.step.is_none() && is_complete(trial)) {
            let (Ok(point), Some(content)) = (trial.point.parse(), content_of(trial)) else { continue };
            let runs = trial.runs.iter().map(|run| run.run.to_string()).collect();
            let done = CompletedTrial { repeat: trial.repeat.saturating_add(1), content, runs };
            progress.done.entry(point).or_default().push(done);
        }
        progress
    }

    /// Adds a trial.
    pub fn note(&mut self, point: &Point, repeat: u32, runs: Vec<String>) {
        let done = CompletedTrial { repeat, content: point.content, runs };
        self.done.entry(point.id).or_default().push(done);
    }

    /// Whether this repeat of the point was completed and the content of the point has not changed since.
    #[must_use]
    pub fn is_done(&self, point: &Point, repeat: u32) -> bool {
        let done = self.done.get(&point.id);
        done.is_some_and(|all| all.iter().any(|done| done.repeat == repeat && done.content == point.content))
    }

    /// The remaining trials, in the order of the plan.
    #[must_use]
    pub fn remaining(&self, plan: &Plan) -> Vec<Trial> {
        let points: Vec<Option<Point>> = (0..plan.grid.len()).map(|number| plan.point(number).ok()).collect();
        let remains = |trial: &Trial| {
            let point = points.get(trial.point).and_then(Option::as_ref);
            !point.is_some_and(|point| self.is_done(point, trial.repeat))
        };
        plan.trials().into_iter().filter(remains).collect()
    }
}

/// Recognises the trials of a log that measured what the plan measures now.
#[derive(Debug)]
pub(crate) struct CurrentContent<'p> {
    plan: &'p Plan,
    numbers: BTreeMap<PointId, usize>,
}

impl<'p> CurrentContent<'p> {
    pub(crate) fn of(plan: &'p Plan) -> Self {
        let number = |number: usize| Some((plan.point(number).ok()?.id, number));
        Self { plan, numbers: (0..plan.grid.len()).filter_map(number).collect() }
    }

    /// The point of a trial, at a step of a search with the value that was tried. `None` if the plan has no such
    /// point, or measures something else there than this trial did.
    pub(crate) fn point_of(&self, trial: &TrialEnd) -> Option<Point> {
        let number = *self.numbers.get(&trial.point.parse::<PointId>().ok()?)?;
        let point = match &trial.step {
            Some(step) => {
                let value = self.plan.search.as_ref()?.high.with_number(step.number)?;
                self.plan.point_of_step(number, &value, step.confirms)
            }
            None => self.plan.point(number),
        };
        point.ok().filter(|point| content_of(trial) == Some(point.content))
    }
}

/// The record of a plan without results from before the plan was changed, as it is resumed with other settings.
pub(crate) fn without_superseded(plan: &Plan, record: &PlanRecord) -> PlanRecord {
    let content = CurrentContent::of(plan);
    let is_current = |trial: &TrialEnd| content.point_of(trial).is_some();
    let mut current = record.clone();
    current.trials.retain(is_current);
    current.found.retain(|found| trial_of(record, found).is_none_or(is_current));
    current
}

/// The trial at the value that a search found. A longer one that confirms the value comes last. Whether it passed is not
/// asked, because the log says so of the condition that the plan had then.
pub(crate) fn trial_of<'r>(record: &'r PlanRecord, found: &SearchEnd) -> Option<&'r TrialEnd> {
    record.trials.iter().rfind(|trial| {
        let is_found = trial.step.as_ref().is_some_and(|step| Some(step.number) == found.number);
        is_found && is_complete(trial) && trial.point == found.point && trial.repeat == found.repeat
    })
}

/// Whether every run of the trial was completed.
pub(crate) fn is_complete(trial: &TrialEnd) -> bool {
    !trial.runs.is_empty() && trial.runs.iter().all(|run| run.outcome == Outcome::Completed)
}

/// The digest of a trial's content; `None` if it is not valid.
pub(crate) fn content_of(trial: &TrialEnd) -> Option<u64> {
    u64::from_str_radix(&trial.content, 16).ok()
}
