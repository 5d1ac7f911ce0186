//! When the flows of a trial run, and how long a plan takes.

use std::collections::BTreeMap;

use linerate_model::TestSpec;
use linerate_units::Span;
use serde::Serialize;

use crate::plan::{Flow, Plan};
use crate::point::{Point, PointError};

/// Time that a phase may take longer than usual before the next flow starts.
const PHASE_SLACK: Span = Span::from_ms(1600);
/// Set-up and end of a trial: connections, settings of hosts or of the lab.
const TRIAL_OVERHEAD: Span = Span::from_secs(1);

/// Start and end of a flow within its trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowTiming {
    /// The flow.
    pub flow: String,
    /// Start, relative to the start of the trial.
    pub start: Span,
    /// End; absent if it depends on the network.
    pub end: Option<Span>,
}

/// Estimated duration of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// Number of trials, including those of searches.
    pub trials: u64,
    /// Total duration, including pauses and overheads.
    #[serde(rename = "time_ns")]
    pub time: Span,
    /// Whether a flow ends after an amount of data: then the plan may take longer than the estimate.
    pub at_least: bool,
    /// Whether a flow or a search may end early: then the plan may take less time.
    pub at_most: bool,
}

/// Longest duration of a test, for flows that follow it; `None` if it depends on the network.
fn longest(spec: &TestSpec) -> Option<Span> {
    let phases = spec.phases().len() as u64;
    Some(spec.expected_time()? + PHASE_SLACK.saturating_mul(phases))
}

impl Plan {
    /// Start and end of each flow of a point, in the order of the plan.
    #[must_use]
    pub fn schedule(&self, point: &Point) -> Vec<FlowTiming> {
        let lengths: Vec<Option<Span>> = point.tests.iter().map(|test| longest(&test.spec)).collect();
        let mut slots: BTreeMap<&str, FlowTiming> = BTreeMap::new();
        // Each round places the flows whose predecessors are placed. Circular references were rejected when the
        // plan was read.
        for _ in 0..self.flows.len() {
            for (flow, length) in self.flows.iter().zip(&lengths) {
                if slots.contains_key(flow.name.as_str()) {
                    continue;
                }
                let Some(before) = latest(flow, &slots) else { continue };
                let start = before + flow.at;
                let end = length.map(|length| start + length);
                slots.insert(&flow.name, FlowTiming { flow: flow.name.clone(), start, end });
            }
        }
        let judged = || self.flows.iter().filter(|flow| !flow.cross_traffic);
        let ends = judged().map(|flow| slots.get(flow.name.as_str()).and_then(|slot| slot.end));
        let last = ends.collect::<Option<Vec<Span>>>().and_then(|ends| ends.into_iter().max());
        let cross_traffic = |slot: &mut FlowTiming| slot.end = last.map(|last| last.max(slot.start));
        for flow in self.flows.iter().filter(|flow| flow.cross_traffic) {
            slots.get_mut(flow.name.as_str()).map(cross_traffic);
        }
        self.flows.iter().filter_map(|flow| slots.get(flow.name.as_str()).cloned()).collect()
    }

    /// Known duration of a trial of a point, including the pause after it.
    #[must_use]
    pub fn trial_time(&self, point: &Point) -> Span {
        self.usual_end(point, &self.schedule(point)) + TRIAL_OVERHEAD + self.pause
    }

    /// When the last judged flow of a trial usually ends; 0 if that is not known of any.
    fn usual_end(&self, point: &Point, slots: &[FlowTiming]) -> Span {
        let timed =
            self.flows.iter().zip(&point.tests).zip(slots).filter(|((flow, _), _)| !flow.cross_traffic);
        let ends = timed.filter_map(|((_, test), slot)| Some(slot.start + test.spec.expected_time()?));
        ends.max().unwrap_or_default()
    }

    /// Estimates the duration of the plan.
    ///
    /// # Errors
    /// A point that cannot be executed.
    pub fn estimate(&self) -> Result<Estimate, PointError> {
        let mut estimate = Estimate::default();
        for number in 0..self.grid.len() {
            let point = self.point(number)?;
            let slots = self.schedule(&point);
            estimate.at_least |= slots.iter().any(|slot| slot.end.is_none());
            let ends_early = |spec: &TestSpec| spec.traffic.until.is_some() || spec.sweep.is_some();
            estimate.at_most |= point.tests.iter().any(|test| ends_early(&test.spec));
            let steps = self.search.as_ref().map_or(1, |search| u64::from(search.trials()));
            let each = self.usual_end(&point, &slots) + TRIAL_OVERHEAD + self.pause;
            let repeats = u64::from(self.largest_repeats());
            estimate.at_most |= self.until.is_some();
            let mut time = each.saturating_mul(steps);
            if let Some(search) = &self.search {
                estimate.at_most = true;
                // The confirming trial is longer than the others, which are already counted.
                let measured = point.tests.iter().map(|test| test.spec.traffic.measured()).max();
                let confirm = search.confirm.unwrap_or_default();
                time = time + confirm.saturating_sub(measured.unwrap_or_default());
            }
            estimate.trials = estimate.trials.saturating_add(steps.saturating_mul(repeats));
            let all = estimate.time.as_ns().saturating_add(time.saturating_mul(repeats).as_ns());
            estimate.time = Span::from_ns(all);
        }
        // There is no pause after the last trial.
        estimate.time = estimate.time.saturating_sub(self.pause);
        Ok(estimate)
    }
}

/// The end of the last flow that this one waits for; `None` if one of them has not been placed.
fn latest(flow: &Flow, slots: &BTreeMap<&str, FlowTiming>) -> Option<Span> {
    let mut latest = Span::ZERO;
    for name in &flow.after {
        // An unknown end counts as the start; the estimate is then marked `at_least`.
        let slot = slots.get(name.as_str())?;
        latest = latest.max(slot.end.unwrap_or(slot.start));
    }
    Some(latest)
}
