//! Links that show one run, without signing in.

use std::sync::Mutex;

use axum::Json;
use axum::extract::State;
use linerate_archive::Store;
use linerate_control::RateLimitedNotice;
use linerate_report::html::PageFragment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::archived::{self, ExportPath, RunStatus, Text};
use super::{MayRun, MayView, RunOfPath, RunPath};
use crate::access::{Ability, WebVisitor};
use crate::problem::{HttpProblem, NOT_FOUND, RepeatableWarning, SHARES, is_due};
use crate::request::PathParts;
use crate::service::Service;
use crate::share_key::ShareKeyError;

/// A link to one run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SharedLink {
    /// The id of the run.
    id: String,
    /// The path of the page that shows it to everybody who has the path.
    path: String,
}

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
) -> Result<Json<SharedLink>, HttpProblem> {
    let key = service.share_key()?;
    let link = service.archive().with(move |archive| {
        let id = archive.find(&path.id)?;
        let secret = key.secret(&id).map_err(|error| unusable(&error))?;
        Ok::<_, HttpProblem>(SharedLink { path: format!("/shared/{id}/{secret}"), id })
    });
    link.await.map(Json)
}

/// What the link allows: to see this one run. It is checked for each request, so a replaced key voids it at once.
async fn opened(service: &Service, id: &str, secret: String) -> Result<MayView, HttpProblem> {
    let (key, run) = (service.share_key()?, id.to_owned());
    let right =
        service.archive().with(move |_| key.is_secret(&run, &secret).map_err(|error| unusable(&error)));
    if right.await? {
        return Ok(MayView(WebVisitor { ability: Some(Ability::View), token: None }));
    }
    Err(HttpProblem::new(NOT_FOUND, "this link is not or no longer valid; ask for another one"))
}

static LINK_WARNING: RepeatableWarning = Mutex::new(RateLimitedNotice::new(1));

/// The path of the key is nobody's business.
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
