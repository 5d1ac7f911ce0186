//! The bundled plans, and what a plan would do.

use axum::Json;
use axum::extract::State;
use linerate_report::page::Page;
use linerate_report::plan_preview::{BundledPlans, describe};
use linerate_runner::plan::{PlanMistake, bundled_plans};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MayView;
use crate::plan_request::{WorldOfPlan, read_plan};
use crate::problem::{HttpProblem, INTERNAL, NOT_FOUND};
use crate::request::{JsonBody, PathParts};
use crate::service::Service;

/// Largest plan with its settings.
pub(super) const MAX_PLAN_BYTES: usize = 64 << 10;
/// Letters of a line of the description.
const COLUMNS: usize = 80;

/// The name of a plan.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PlanPath {
    /// As listed.
    name: String,
}

/// A bundled plan as a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanText {
    name: &'static str,
    /// The file, TOML.
    text: &'static str,
}

/// A plan to describe.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewRequest {
    /// The file, TOML. It cannot include files, and its topology is a bundled one.
    text: String,
    /// Values that replace those of the file, as `--set` of `linerate plan` takes them: `KEY=VALUE`.
    #[serde(default)]
    #[schemars(length(max = 100))]
    set: Vec<String>,
}

/// What a plan would do, or what is wrong with it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Preview {
    /// All mistakes; none if the plan can be carried out.
    mistakes: Vec<PlanMistake>,
    /// What it would do, as `linerate plan` prints it. It is there if there are no mistakes, as are the figures below.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Points of the grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<u64>,
    /// Trials, with their repeats and those of searches.
    #[serde(skip_serializing_if = "Option::is_none")]
    trials: Option<u64>,
    /// How long it takes, about.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<u64>,
    /// Where the plan can be carried out: the usual world first. Whether this server can is in `getSession`.
    worlds: Vec<WorldOfPlan>,
}

pub(crate) async fn list(_: MayView) -> Result<Json<BundledPlans>, HttpProblem> {
    Ok(Json(BundledPlans::new()))
}

pub(crate) async fn text(
    _: MayView,
    PathParts(path): PathParts<PlanPath>,
) -> Result<Json<PlanText>, HttpProblem> {
    let found = bundled_plans().iter().find(|plan| plan.name == path.name);
    let found = found.ok_or_else(|| HttpProblem::new(NOT_FOUND, "no bundled plan has this name"))?;
    Ok(Json(PlanText { name: found.name, text: found.text }))
}

pub(crate) async fn preview(
    State(service): State<Service>,
    _: MayView,
    JsonBody(request): JsonBody<PreviewRequest, MAX_PLAN_BYTES>,
) -> Result<Json<Preview>, HttpProblem> {
    let permit = service.plan_preview_permit().await?;
    let described = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        describe_plan(&request)
    });
    described.await.unwrap_or_else(|error| {
        tracing::error!(%error, "describing a plan has failed");
        Err(HttpProblem::new(INTERNAL, "describing the plan failed; the log of the server says why"))
    })
}

fn describe_plan(request: &PreviewRequest) -> Result<Json<Preview>, HttpProblem> {
    let wrong = |mistakes| {
        let worlds = Vec::new();
        Ok(Json(Preview { mistakes, text: None, points: None, trials: None, time_ns: None, worlds }))
    };
    let plan = match read_plan(&request.text, &request.set)? {
        Ok(plan) => plan,
        Err(mistakes) => return wrong(mistakes),
    };
    let estimate = match plan.estimate() {
        Ok(estimate) => estimate,
        Err(error) => {
            let text = error.to_string();
            let quoted = String::new();
            return wrong(vec![PlanMistake { file: None, line: None, column: None, quoted, text }]);
        }
    };
    let mut page = Page::new(COLUMNS, false);
    describe(&mut page, &plan, &estimate);
    Ok(Json(Preview {
        mistakes: Vec::new(),
        text: Some(page.into_text()),
        points: Some(plan.grid.len() as u64),
        trials: Some(estimate.trials),
        time_ns: Some(estimate.time.as_ns()),
        worlds: WorldOfPlan::all_of(&plan),
    }))
}
