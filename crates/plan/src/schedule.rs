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

/// When a flow is measured, if nothing takes longer than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MeasuredTime {
    start: Span,
    /// Absent if it depends on the network.
    end: Option<Span>,
}

impl MeasuredTime {
    /// Whether both are measured at the same time for a while.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let begins_before_end_of = |one: &Self, of: &Self| of.end.is_none_or(|end| one.start < end);
        begins_before_end_of(self, other) && begins_before_end_of(other, self)
    }
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
    /// Start and end of each flow that runs at a point, in the order of the plan.
    #[must_use]
    pub fn schedule(&self, point: &Point) -> Vec<FlowTiming> {
        let flows = || point.tests.iter().filter_map(|test| Some((self.flow(&test.flow)?, test)));
        let mut slots: BTreeMap<&str, FlowTiming> = BTreeMap::new();
        // Each round places the flows whose predecessors are placed. Circular references were rejected when the
        // plan was read.
        for _ in 0..point.tests.len() {
            for (flow, test) in flows() {
                if slots.contains_key(flow.name.as_str()) {
                    continue;
                }
                let Some(before) = latest(flow, point, &slots) else { continue };
                let start = before + flow.at;
                let end = longest(&test.spec).map(|length| start + length);
                slots.insert(&flow.name, FlowTiming { flow: flow.name.clone(), start, end });
            }
        }
        let judged = || point.tests.iter().filter(|test| !test.cross_traffic);
        let ends = judged().map(|test| slots.get(test.flow.as_str()).and_then(|slot| slot.end));
        let last = ends.collect::<Option<Vec<Span>>>().and_then(|ends| ends.into_iter().max());
        let cross_traffic = |slot: &mut FlowTiming| slot.end = last.map(|last| last.max(slot.start));
        for test in point.tests.iter().filter(|test| test.cross_traffic) {
            slots.get_mut(test.flow.as_str()).map(cross_traffic);
        }
        point.tests.iter().filter_map(|test| slots.get(test.flow.as_str()).cloned()).collect()
    }

    /// When each flow that runs at a point is measured, by its name.
    pub(crate) fn measured_times<'p>(&self, point: &'p Point) -> BTreeMap<&'p str, MeasuredTime> {
        let times = self.schedule(point).into_iter().zip(&point.tests).map(|(slot, test)| {
            let usual = test.spec.expected_time().map(|time| slot.start + time);
            let end = if test.cross_traffic { slot.end } else { usual };
            (test.flow.as_str(), MeasuredTime { start: slot.start, end })
        });
        times.collect()
    }

    /// Known duration of a trial of a point, including the pause after it.
    #[must_use]
    pub fn trial_time(&self, point: &Point) -> Span {
        self.usual_end(point, &self.schedule(point)) + TRIAL_OVERHEAD + self.pause
    }

    /// When the last judged flow of a trial usually ends; 0 if that is not known of any.
    fn usual_end(&self, point: &Point, slots: &[FlowTiming]) -> Span {
        let timed = point.tests.iter().zip(slots).filter(|(test, _)| !test.cross_traffic);
        let ends = timed.filter_map(|(test, slot)| Some(slot.start + test.spec.expected_time()?));
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
                let judged = point.tests.iter().filter(|test| !test.cross_traffic);
                let measured = judged.map(|test| test.spec.traffic.measured()).max();
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
fn latest(flow: &Flow, point: &Point, slots: &BTreeMap<&str, FlowTiming>) -> Option<Span> {
    let mut latest = Span::ZERO;
    for name in flow.after.iter().filter(|name| point.test_of(name).is_some()) {
        // An unknown end counts as the start; the estimate is then marked `at_least`.
        let slot = slots.get(name.as_str())?;
        latest = latest.max(slot.end.unwrap_or(slot.start));
    }
    Some(latest)
}
