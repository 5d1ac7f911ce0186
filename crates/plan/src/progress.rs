//! Which trials of a plan are done, so that it can go on after an interruption.

use std::collections::BTreeMap;

use linerate_model::{Outcome, PlanRecord, TrialEnd};
use serde::{Deserialize, Serialize};

use crate::order::Trial;
use crate::plan::Plan;
use crate::point::{Point, PointId};

/// Which trials of a plan are done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Name of the plan.
    pub plan: String,
    /// Done trials by point, in the order in which they were done.
    pub done: BTreeMap<PointId, Vec<Done>>,
}

/// A trial that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Which repeat.
    pub repeat: u32,
    /// [`Point::content`] at that time.
    pub content: u64,
    /// The runs that it made, one a flow.
    pub runs: Vec<String>,
}

impl Progress {
    /// Nothing is done yet.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        Self { plan: plan.name.clone(), done: BTreeMap::new() }
    }

    /// What the log of a plan says: every trial whose runs were all completed. Steps of searches are not among them.
    #[must_use]
    pub fn of(record: &PlanRecord) -> Self {
        let plan = record.start.as_ref().map(|start| start.name.clone()).unwrap_or_default();
        let mut progress = Self { plan: plan.into(), done: BTreeMap::new() };
        for trial in record.trials.iter().filter(|trial| trial.step.is_none() && is_complete(trial)) {
            let (Ok(point), Some(content)) = (trial.point.parse(), content_of(trial)) else { continue };
            let runs = trial.runs.iter().map(|run| run.run.to_string()).collect();
            let done = Done { repeat: trial.repeat.saturating_add(1), content, runs };
            progress.done.entry(point).or_default().push(done);
        }
        progress
    }

    /// Notes a trial.
    pub fn note(&mut self, point: &Point, repeat: u32, runs: Vec<String>) {
        let done = Done { repeat, content: point.content, runs };
        self.done.entry(point.id).or_default().push(done);
    }

    /// True if that repeat of the point was done, and nothing of what the point measures has changed since.
    #[must_use]
    pub fn is_done(&self, point: &Point, repeat: u32) -> bool {
        let done = self.done.get(&point.id);
        done.is_some_and(|all| all.iter().any(|done| done.repeat == repeat && done.content == point.content))
    }

    /// What remains to be done, in the order of the plan.
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

/// True if every run of the trial was completed.
pub(crate) fn is_complete(trial: &TrialEnd) -> bool {
    !trial.runs.is_empty() && trial.runs.iter().all(|run| run.outcome == Outcome::Completed)
}

/// The digest of what a trial measured; absent if it is none.
pub(crate) fn content_of(trial: &TrialEnd) -> Option<u64> {
    u64::from_str_radix(&trial.content, 16).ok()
}
