//! Checks that need the whole plan: its size, its points, its lab.

use std::collections::BTreeSet;

use linerate_config::SourcePosition;

use super::PlanReader;
use crate::axis::AxisTarget;
use crate::include::with_cause;
use crate::order::MAX_TRIALS;
use crate::plan::{Flow, Plan};

/// Largest number of tests (one per flow and point) in a plan.
const MAX_TESTS: usize = 100_000;

impl PlanReader<'_> {
    /// Checks every point.
    pub(super) fn check(&mut self, plan: &Plan) {
        let points = plan.grid.len();
        let trials = points.saturating_mul(plan.largest_repeats() as usize);
        if trials > MAX_TRIALS {
            let text = format!(
                "{points} points with {} trials each make {trials} trials; at most {MAX_TRIALS} are allowed",
                plan.largest_repeats()
            );
            self.mistakes.add(&SourcePosition::START, text);
        }
        let tests = points.saturating_mul(plan.flows.len());
        if tests > MAX_TESTS {
            let text = format!(
                "{points} points with {} flows each make {tests} tests; at most {MAX_TESTS} are allowed",
                plan.flows.len()
            );
            self.mistakes.add(&SourcePosition::START, text);
            return;
        }
        for number in 0..points {
            let (place, text) = match plan.point(number) {
                Err(error) => {
                    (self.place_of_knob(plan, &error.flow, error.knob.as_deref()), error.to_string())
                }
                Ok(point) if point.tests.iter().all(|test| test.cross_traffic) => {
                    let over_flows = |axis: &&crate::axis::Axis| axis.targets.contains(&AxisTarget::Flows);
                    // A plan of cross traffic alone was already rejected.
                    let Some(axis) = plan.axes.iter().find(over_flows) else { continue };
                    let entry = self.document.find(&format!("axis.{}", axis.name));
                    let place = entry.map_or(SourcePosition::START, |entry| entry.at.clone());
                    (place, format!("only cross traffic runs at {}; name another flow there", point.label()))
                }
                Ok(_) => continue,
            };
            self.mistakes.add(&place, text);
            // Further points would give the same message.
            break;
        }
        self.check_effect(plan);
        self.check_lab(plan);
    }

    /// An axis over a knob that every flow sets itself would have no effect.
    fn check_effect(&mut self, plan: &Plan) {
        let search = plan.search.iter().map(|search| (&search.name, &search.targets));
        for (name, targets) in plan.axes.iter().map(|axis| (&axis.name, &axis.targets)).chain(search) {
            let has_own = |flow: &Flow, knob: &String| flow.test.contains_key(knob) || flow.ignores(knob);
            let set = |knob: &String| plan.flows.iter().all(|flow| has_own(flow, knob));
            let idle = targets.iter().all(|target| matches!(target, AxisTarget::Test(knob) if set(knob)));
            if idle && let Some(entry) = self.document.find(&format!("axis.{name}")) {
                let text = format!(
                    "axis.{name}: it has no effect, because every flow sets this knob itself; sweep \
                     flow.NAME.KNOB"
                );
                self.mistakes.add(&entry.at, text);
            }
            self.refuse_an_end_of_cross_traffic(plan, name, targets);
        }
    }

    /// An axis over a knob that would end cross traffic before the other flows.
    fn refuse_an_end_of_cross_traffic(&mut self, plan: &Plan, name: &str, targets: &[AxisTarget]) {
        let ended = targets.iter().find_map(|target| match target {
            AxisTarget::Flow { flow, knob } if plan.flow(flow).is_some_and(|flow| flow.ignores(knob)) => {
                Some(format!("flow.{flow}.{knob}"))
            }
            _ => None,
        });
        let path = format!("axis.{name}.key");
        if let (Some(key), Some(entry)) = (ended, self.document.find(&path)) {
            let text = format!(
                "{path}: '{key}' cannot be swept; cross traffic runs until the last other flow has ended, so \
                 remove the axis, or cross_traffic"
            );
            self.mistakes.add(&entry.value.at, text);
        }
    }

    /// Position where a knob of a flow is set: by an axis, by the flow, or by the plan.
    fn place_of_knob(&self, plan: &Plan, flow: &str, knob: Option<&str>) -> SourcePosition {
        let knob = knob.unwrap_or_default();
        let search = plan.search.iter().map(|search| (&search.name, &search.targets));
        let axes = plan.axes.iter().map(|axis| (&axis.name, &axis.targets)).chain(search);
        let sweeps = |targets: &[AxisTarget]| {
            targets.iter().any(|target| match target {
                AxisTarget::Test(name) => name == knob,
                AxisTarget::Flow { flow: of, knob: name } => of == flow && name == knob,
                _ => false,
            })
        };
        let axis = axes.filter(|(_, targets)| sweeps(targets)).map(|(name, _)| format!("axis.{name}"));
        let paths = axis.chain([format!("flow.{flow}.test.{knob}"), format!("test.{knob}")]);
        let mut found = paths.filter_map(|path| self.document.find(&path));
        found.next().map_or(SourcePosition::START, |entry| entry.at.clone())
    }

    /// Every value that an axis sets in the lab must give a valid network.
    fn check_lab(&mut self, plan: &Plan) {
        let mut seen = BTreeSet::new();
        for number in 0..plan.grid.len() {
            let Some(lab) = plan.point(number).ok().and_then(|point| point.lab) else { return };
            // The unchanged lab was checked when the hosts were read.
            if plan.lab.as_ref() == Some(&lab) || !seen.insert(lab.set.clone()) || seen.len() > 1000 {
                continue;
            }
            let set: Vec<(&str, &str)> =
                lab.set.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let relative_to = self.sources.first().map_or("", |source| source.name.as_str());
            if let Err(error) = self.around.hosts(&lab.topology, &set, relative_to) {
                let swept = |axis: &&crate::axis::Axis| {
                    axis.targets.iter().any(|target| matches!(target, AxisTarget::Lab(_)))
                };
                let axis = plan.axes.iter().find(swept).map(|axis| format!("axis.{}", axis.name));
                let entry = axis.and_then(|path| self.document.find(&path));
                let place = entry.map_or(SourcePosition::START, |entry| entry.at.clone());
                let why = with_cause(&error);
                self.mistakes.add(&place, format!("the lab cannot be created with these values: {why}"));
                return;
            }
        }
    }
}
