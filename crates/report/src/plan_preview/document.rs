//! A plan as JSON.

use std::collections::BTreeMap;

use linerate_model::TestSpec;
use linerate_plan::{Estimate, Plan, PlanError, PlanMistake, Point, PointId, SettingValue, bundled};
use linerate_units::Span;
use serde::Serialize;

const SCHEMA: &str = "linerate.plan/2";

/// The errors in an invalid plan.
#[derive(Debug, Serialize)]
pub struct PlanMistakes<'p> {
    schema: &'static str,
    mistakes: &'p [PlanMistake],
}

impl<'p> PlanMistakes<'p> {
    /// All errors of a file.
    #[must_use]
    pub fn new(error: &'p PlanError) -> Self {
        Self { schema: SCHEMA, mistakes: &error.mistakes }
    }
}

/// The bundled plans.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundledPlans {
    schema: &'static str,
    plans: Vec<PreviewEntry>,
}

/// A bundled plan.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "BundledPlan"))]
struct PreviewEntry {
    /// Its name.
    name: &'static str,
    /// What it is for, in one line.
    about: &'static str,
}

impl BundledPlans {
    /// All plans that the program contains.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "not an empty document")]
    pub fn new() -> Self {
        let plans = bundled().iter().map(|known| PreviewEntry { name: known.name, about: known.about });
        Self { schema: SCHEMA, plans: plans.collect() }
    }
}

/// What a plan would do.
#[derive(Debug, Serialize)]
pub struct PlanPreview<'p> {
    schema: &'static str,
    name: &'p str,
    #[serde(skip_serializing_if = "str::is_empty")]
    about: &'p str,
    notes: &'p BTreeMap<String, String>,
    files: Vec<&'p str>,
    hosts: Vec<HostEntry<'p>>,
    estimate: Estimate,
    order: &'static str,
    seed: u64,
    repeats: u32,
    points: Vec<PointEntry>,
    /// Number of the point and of its repeat, in order of execution.
    trials: Vec<(usize, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SearchEntry<'p>>,
    assertions: Vec<AssertionEntry<'p>>,
    /// Assertions about points that `--set` removed.
    left_out: &'p [String],
}

#[derive(Debug, Serialize)]
struct HostEntry<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'p str>,
    port: u16,
    in_lab: bool,
}

#[derive(Debug, Serialize)]
struct PointEntry {
    id: PointId,
    values: BTreeMap<String, String>,
    flows: Vec<PreviewFlowEntry>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    hosts: BTreeMap<String, BTreeMap<String, SettingValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lab: Option<LabEntry>,
}

#[derive(Debug, Serialize)]
struct LabEntry {
    topology: String,
    set: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct PreviewFlowEntry {
    flow: String,
    from: String,
    to: String,
    cross_traffic: bool,
    start_ns: Span,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_ns: Option<Span>,
    spec: TestSpec,
}

#[derive(Debug, Serialize)]
struct SearchEntry<'p> {
    axis: &'p str,
    from: &'p SettingValue,
    to: &'p SettingValue,
    resolution: f64,
    pass: &'p str,
    trials: u32,
}

#[derive(Debug, Serialize)]
struct AssertionEntry<'p> {
    name: &'p str,
    that: &'p str,
}

impl<'p> PlanPreview<'p> {
    /// Every point of the plan, and the order of its trials.
    #[must_use]
    pub fn new(plan: &'p Plan, estimate: &Estimate) -> Self {
        let host = |host: &'p linerate_plan::Host| HostEntry {
            name: &host.name,
            address: host.address.as_deref(),
            port: host.port,
            in_lab: host.in_lab,
        };
        let search = plan.search.as_ref().map(|search| SearchEntry {
            axis: &search.name,
            from: &search.low,
            to: &search.high,
            resolution: search.resolution.get(),
            pass: &search.text,
            trials: search.trials(),
        });
        let points = (0..plan.grid.len()).filter_map(|number| plan.point(number).ok());
        Self {
            schema: SCHEMA,
            name: &plan.name,
            about: &plan.about,
            notes: &plan.notes,
            files: plan.files.iter().map(|file| file.name.as_str()).collect(),
            hosts: plan.hosts.iter().map(host).collect(),
            estimate: *estimate,
            order: plan.order.name(),
            seed: plan.seed,
            repeats: plan.repeats,
            points: points.map(|point| entry(plan, point)).collect(),
            trials: plan.trials().into_iter().map(|trial| (trial.point, trial.repeat)).collect(),
            search,
            assertions: plan
                .assertions
                .iter()
                .map(|one| AssertionEntry { name: &one.name, that: &one.text })
                .collect(),
            left_out: &plan.left_out,
        }
    }
}

fn entry(plan: &Plan, point: Point) -> PointEntry {
    let slots = plan.schedule(&point);
    let flow = |(test, slot): (linerate_plan::PointFlow, linerate_plan::FlowTiming)| PreviewFlowEntry {
        flow: test.flow,
        from: test.from,
        to: test.to,
        cross_traffic: test.cross_traffic,
        start_ns: slot.start,
        end_ns: slot.end,
        spec: test.spec,
    };
    PointEntry {
        id: point.id,
        values: point.values.into_iter().collect(),
        flows: point.tests.into_iter().zip(slots).map(flow).collect(),
        hosts: point.hosts,
        lab: point.lab.map(|lab| LabEntry { topology: lab.topology, set: lab.set }),
    }
}
