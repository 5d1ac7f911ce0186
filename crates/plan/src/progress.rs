//! What a coordinator keeps of a plan under way, so that it can go on after an interruption.

use std::collections::BTreeMap;

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
