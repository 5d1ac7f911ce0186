//! Links that show one run, without signing in.

use std::sync::Mutex;

use axum::Json;
use axum::extract::State;
use linerate_archive::Store;
use linerate_control::RateLimitedNotice;
use linerate_fleet::rfc3339;
use linerate_report::html::PageFragment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::archived::{self, ExportPath, RunStatus, Text};
use super::{MayRun, MayView, RunOfPath, RunPath};
use crate::access::{Ability, WebVisitor};
use crate::problem::{HttpProblem, INVALID_REQUEST, NOT_FOUND, RepeatableWarning, SHARES, is_due};
use crate::request::{PathParts, Query};
use crate::service::Service;
use crate::share_key::{LinkDay, ShareKeyError};

/// A link to one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SharedLink {
    /// The id of the run.
    id: String,
    /// The path of the page that shows it to everybody who has the path.
    path: String,
    /// When the link ends, in RFC 3339 format; absent if it does not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_until: Option<String>,
}

/// How long a link is valid.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShareQuery {
    /// Days after today (UTC) for which the link is valid; absent: until all links are made void.
    #[schemars(range(min = 1, max = 3660))]
    days: Option<u16>,
}

/// Ten years.
const MAX_DAYS: u16 = 3660;

/// The run of a link, and the secret in it.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SharedPath {
    /// The id of the run.
    id: String,
    /// The secret of the link.
    secret: String,
}

/// As [`SharedPath`], with the format of an export.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SharedExportPath {
    /// The id of the run.
    id: String,
    /// The secret of the link.
    secret: String,
    /// The name of a format, as for the export of any run.
    format: String,
}

pub(crate) async fn share(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): RunOfPath,
    Query(query): Query<ShareQuery>,
) -> Result<Json<SharedLink>, HttpProblem> {
    if query.days.is_some_and(|days| !(1..=MAX_DAYS).contains(&days)) {
        let text = format!("a link is valid for 1 to {MAX_DAYS} days");
        return Err(HttpProblem::new(INVALID_REQUEST, text).at("days").limit(MAX_DAYS.into()));
    }
    let last_day = query.days.map(|days| LinkDay::today().after(days));
    let key = service.share_key()?;
    let link = service.archive().with(move |archive| {
        let id = archive.find(&path.id)?;
        let secret = key.secret(&id, last_day).map_err(|error| unusable(&error))?;
        let valid_until = last_day.map(|day| rfc3339(day.end()));
        Ok::<_, HttpProblem>(SharedLink { path: format!("/shared/{id}/{secret}"), id, valid_until })
    });
    link.await.map(Json)
}

/// What the link allows: to see this one run. It is checked for each request, so a replaced key voids it at once.
async fn opened(service: &Service, id: &str, secret: String) -> Result<MayView, HttpProblem> {
    let (key, run) = (service.share_key()?, id.to_owned());
    let right = service
        .archive()
        .with(move |_| key.is_secret(&run, &secret, LinkDay::today()).map_err(|error| unusable(&error)));
    if right.await? {
        return Ok(MayView(WebVisitor::without_token(Some(Ability::View))));
    }
    Err(HttpProblem::new(NOT_FOUND, "this link is not or no longer valid; ask for another one"))
}

static LINK_WARNING: RepeatableWarning = Mutex::new(RateLimitedNotice::new(1));

/// The reason may contain the path of the key, so it is only in the log.
fn unusable(error: &ShareKeyError) -> HttpProblem {
    if let Some(more) = is_due(&LINK_WARNING) {
        tracing::warn!(%error, "shared links cannot be used{more}");
    }
    HttpProblem::new(SHARES, "the key of shared links cannot be used; the log of the server says why")
}

pub(crate) async fn run(
    State(service): State<Service>,
    PathParts(path): PathParts<SharedPath>,
) -> Result<Json<RunStatus>, HttpProblem> {
    let may_view = opened(&service, &path.id, path.secret).await?;
    let Json(run) = archived::run(State(service), may_view, PathParts(RunPath { id: path.id })).await?;
    Ok(Json(run.without_tags()))
}

pub(crate) async fn view(
    State(service): State<Service>,
    PathParts(path): PathParts<SharedPath>,
) -> Result<Json<PageFragment>, HttpProblem> {
    let may_view = opened(&service, &path.id, path.secret).await?;
    archived::view(State(service), may_view, PathParts(RunPath { id: path.id })).await
}

pub(crate) async fn export(
    State(service): State<Service>,
    PathParts(path): PathParts<SharedExportPath>,
) -> Result<Text, HttpProblem> {
    let may_view = opened(&service, &path.id, path.secret).await?;
    archived::export(State(service), may_view, PathParts(ExportPath::new(path.id, path.format))).await
}
