//! Starting and cancelling runs.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;

use super::archived::started_here;
use super::plans::MAX_PLAN_BYTES;
use super::{MayRun, RunOfPath};
use crate::plan_request::PlanRunRequest;
use crate::problem::{HttpProblem, INTERNAL, INVALID_REQUEST, NOT_FOUND};
use crate::request::{JsonBody, PathParts};
use crate::run_request::RunRequest;
use crate::service::Service;
use crate::web_task::WebTask;

/// The header with which a request that is repeated starts only one run.
const KEY: &str = "idempotency-key";
/// Longest key.
const MAX_KEY_BYTES: usize = 128;

/// A run was added.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// Its id.
    id: String,
    /// Runs and clients before it; 0 if it starts now.
    place: u32,
}

pub(crate) async fn start(
    State(service): State<Service>,
    _: MayRun,
    headers: HeaderMap,
    JsonBody(request): JsonBody<RunRequest>,
) -> Result<Created, HttpProblem> {
    let key = key_of(&headers)?;
    let test = request.check(&service.runs().limits())?;
    started(&service, WebTask::Test(Box::new(test)), key)
}

pub(crate) async fn start_plan(
    State(service): State<Service>,
    _: MayRun,
    headers: HeaderMap,
    JsonBody(request): JsonBody<PlanRunRequest, MAX_PLAN_BYTES>,
) -> Result<Created, HttpProblem> {
    let key = key_of(&headers)?;
    let permit = service.plan_start_permit().await?;
    let known = service.clone();
    let checked = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        request.check(&known.runs().limits(), known.runs().plan_setup())
    });
    let plan = checked.await.unwrap_or_else(|error| {
        tracing::error!(%error, "checking a plan has failed");
        Err(HttpProblem::new(INTERNAL, "checking the plan failed; the log of the server says why"))
    })?;
    started(&service, WebTask::Plan(plan), key)
}

/// The value of the header with which a request that is repeated starts only one run.
fn key_of(headers: &HeaderMap) -> Result<Option<&str>, HttpProblem> {
    match headers.get(KEY).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(key)) if !key.is_empty() && key.len() <= MAX_KEY_BYTES => Ok(Some(key)),
        Some(_) => {
            let text = format!("an Idempotency-Key has 1 to {MAX_KEY_BYTES} printable characters");
            Err(HttpProblem::new(INVALID_REQUEST, text).at("Idempotency-Key"))
        }
    }
}

fn started(service: &Service, task: WebTask, key: Option<&str>) -> Result<Created, HttpProblem> {
    let run = service.runs().start(task, key)?;
    let place = service.runs().wait(&run).map_or(0, |(position, _)| position);
    Ok(Created(Started { id: run.id.clone(), place }))
}

/// 201 with the path of the run.
#[derive(Debug)]
pub(crate) struct Created(Started);

impl IntoResponse for Created {
    fn into_response(self) -> axum::response::Response {
        let location = format!("/api/v1/runs/{}", self.0.id);
        (StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(self.0)).into_response()
    }
}

impl aide::OperationOutput for Created {
    type Inner = Started;
}

pub(crate) async fn cancel(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): RunOfPath,
) -> Result<Accepted, HttpProblem> {
    let run = started_here(&service, &path.id).await.ok_or_else(|| {
        HttpProblem::new(
            NOT_FOUND,
            "no such run was started from the pages of this server, or it ended long ago",
        )
    })?;
    service.runs().cancel(&run);
    Ok(Accepted)
}

/// 202.
#[derive(Debug)]
pub(crate) struct Accepted;

impl IntoResponse for Accepted {
    fn into_response(self) -> axum::response::Response {
        StatusCode::ACCEPTED.into_response()
    }
}

impl aide::OperationOutput for Accepted {
    type Inner = ();
}
