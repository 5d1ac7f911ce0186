//! The result document of a plan: one JSON object, format `linerate.plan-result/2`.

use std::collections::BTreeMap;

use linerate_model::{
    Caveat, MethodTable, Outcome, PlanJudgement, PlanRecord, PlanStart, PointSummary, SearchEnd, TrialEnd,
};
use serde::Serialize;

/// Version of the format. A change of meaning needs a new version.
pub const PLAN_RESULT_SCHEMA: &str = "linerate.plan-result/2";

/// An executed plan. What was not measured is absent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanDocument {
    /// Version of this format.
    pub schema: &'static str,
    /// Name of the plan's run in the archive.
    pub run: String,
    /// How it ended; absent while it runs and if it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Reason, unless it was completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of times that it was resumed.
    pub resumed: u32,
    /// The plan: hosts, flows, axes and points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanStart>,
    /// The points, in the order of the plan, with the summaries of their trials.
    pub points: Vec<PointSection>,
    /// The tables of the plan's method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<MethodTable>,
    /// Results of every assertion at every point, flow and direction that it applies to.
    pub assertions: Vec<PlanJudgement>,
    /// Every trial, in the order of time, with its runs in the archive.
    pub trials: Vec<TrialEnd>,
    /// Caveats of the whole plan.
    pub caveats: Vec<Caveat>,
}

/// A point and the summaries of its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointSection {
    /// Identifier of the point.
    pub id: String,
    /// Its value on every axis.
    pub values: Vec<AxisSection>,
    /// Results of searches by repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<SearchEnd>,
    /// Summaries by flow, direction and quantity.
    pub summaries: Vec<PointSummary>,
}

/// The value of a point on an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AxisSection {
    /// Name of the axis.
    pub axis: String,
    /// Displayed value.
    pub label: String,
    /// Value in the unit of the axis; absent if it is not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
}

/// The document of a plan.
#[must_use]
pub fn document(record: &PlanRecord) -> PlanDocument {
    let mut summaries: BTreeMap<&str, Vec<PointSummary>> = BTreeMap::new();
    for summary in &record.summaries {
        summaries.entry(&summary.point).or_default().push(summary.clone());
    }
    let start = record.start.iter();
    let points = start.flat_map(|start| start.points.iter().map(move |point| (start, point)));
    let points = points.map(|(start, point)| PointSection {
        id: point.id.to_string(),
        values: start
            .axes
            .iter()
            .zip(&point.values)
            .filter_map(|(axis, value)| {
                let value = axis.values.get(*value)?;
                Some(AxisSection {
                    axis: axis.name.to_string(),
                    label: value.label.to_string(),
                    number: value.number,
                })
            })
            .collect(),
        found: record.found.iter().filter(|found| found.point == point.id).cloned().collect(),
        summaries: summaries.remove(point.id.as_str()).unwrap_or_default(),
    });
    PlanDocument {
        schema: PLAN_RESULT_SCHEMA,
        run: record.run.to_string(),
        outcome: record.outcome,
        reason: record.reason.clone().map(Into::into),
        resumed: record.resumed,
        plan: record.start.clone(),
        points: points.collect(),
        tables: record.tables.clone(),
        assertions: record.judgements.clone(),
        trials: record.trials.clone(),
        caveats: record.caveats.clone(),
    }
}

/// The JSON Schema of the document.
#[cfg(feature = "schema")]
#[must_use]
pub fn plan_result_schema() -> schemars::Schema {
    schemars::schema_for!(PlanDocument)
}
