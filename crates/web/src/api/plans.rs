//! Plans: those that come along, and what one would do.

use axum::Json;
use axum::extract::State;
use linerate_report::page::Page;
use linerate_report::plan_preview::describe;
use linerate_runner::plan::{bundled_plans, read_without_files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MayView;
use crate::problem::{HttpProblem, INTERNAL, INVALID_REQUEST, NOT_FOUND};
use crate::request::{JsonBody, PathParts};
use crate::service::Service;

/// Largest plan with its settings.
const MAX_PLAN_BYTES: usize = 64 << 10;
/// Most settings.
const MAX_SETTINGS: usize = 100;
/// Letters of a line of the description.
const COLUMNS: usize = 80;

/// The plans that come along.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KnownPlans {
    plans: Vec<KnownPlan>,
}

/// A plan that comes along.
#[derive(Debug, Serialize, JsonSchema)]
struct KnownPlan {
    /// Its name.
    name: &'static str,
    /// What it is for, in a line.
    about: &'static str,
}

/// The name of a plan.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct PlanPath {
    /// As listed.
    name: String,
}

/// A plan as a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanText {
    name: &'static str,
    /// The file, TOML.
    text: &'static str,
}

/// A plan that is to be described.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PreviewRequest {
    /// The file, TOML. It cannot include files; topologies are those that come along.
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
    mistakes: Vec<PreviewMistake>,
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
}

/// A mistake in a plan, or in a setting.
#[derive(Debug, Serialize, JsonSchema)]
struct PreviewMistake {
    /// Line of the file, from 1; absent for a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Column in letters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    /// The line of the file, or the setting.
    quoted: String,
    /// What is wrong, and how to correct it.
    text: String,
}

pub(crate) async fn list(_: MayView) -> Result<Json<KnownPlans>, HttpProblem> {
    let known = bundled_plans().iter().map(|plan| KnownPlan { name: plan.name, about: plan.about });
    Ok(Json(KnownPlans { plans: known.collect() }))
}

pub(crate) async fn text(
    _: MayView,
    PathParts(path): PathParts<PlanPath>,
) -> Result<Json<PlanText>, HttpProblem> {
    let found = bundled_plans().iter().find(|plan| plan.name == path.name);
    let found = found.ok_or_else(|| HttpProblem::new(NOT_FOUND, "no plan that comes along has this name"))?;
    Ok(Json(PlanText { name: found.name, text: found.text }))
}

pub(crate) async fn preview(
    State(service): State<Service>,
    _: MayView,
    JsonBody(request): JsonBody<PreviewRequest, MAX_PLAN_BYTES>,
) -> Result<Json<Preview>, HttpProblem> {
    if request.set.len() > MAX_SETTINGS {
        let text = format!("a plan takes at most {MAX_SETTINGS} settings here");
        return Err(HttpProblem::new(INVALID_REQUEST, text).at("set").limit(MAX_SETTINGS as u64));
    }
    let turn = service.plan_turn().await;
    let described = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        describe_plan(&request)
    });
    let failed = |error| {
        tracing::error!(%error, "describing a plan has failed");
        HttpProblem::new(INTERNAL, "describing the plan failed; the log of the server says why")
    };
    described.await.map(Json).map_err(failed)
}

fn describe_plan(request: &PreviewRequest) -> Preview {
    let wrong = |mistakes| Preview { mistakes, text: None, points: None, trials: None, time_ns: None };
    let plan = match read_without_files(&request.text, &request.set) {
        Ok(plan) => plan,
        Err(error) => {
            let mistakes = error.mistakes.into_iter().map(|mistake| PreviewMistake {
                line: mistake.line,
                column: mistake.column,
                quoted: mistake.quoted,
                text: mistake.text,
            });
            return wrong(mistakes.collect());
        }
    };
    let estimate = match plan.estimate() {
        Ok(estimate) => estimate,
        Err(error) => {
            let text = error.to_string();
            return wrong(vec![PreviewMistake { line: None, column: None, quoted: String::new(), text }]);
        }
    };
    let mut page = Page::new(COLUMNS, false);
    describe(&mut page, &plan, &estimate);
    Preview {
        mistakes: Vec::new(),
        text: Some(page.into_text()),
        points: Some(plan.grid.len() as u64),
        trials: Some(estimate.trials),
        time_ns: Some(estimate.time.as_ns()),
    }
}
