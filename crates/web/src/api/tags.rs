//! Tags: what users say about runs afterwards.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MayRun, NoContent};
use crate::problem::HttpProblem;
use crate::request::PathParts;
use crate::service::Service;

/// A run and a tag in a path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TagPath {
    /// The id of a run, the beginning of one, the name of a run, or `latest`.
    id: String,
    /// 1 to 64 characters without spaces and commas.
    #[schemars(regex(pattern = r"^[^\s,\x00-\x1f\x7f-\x9f]{1,64}$"))]
    tag: String,
}

pub(crate) async fn add(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): PathParts<TagPath>,
) -> Result<NoContent, HttpProblem> {
    let added = service.archive().with(move |archive| archive.tag(&path.id, &path.tag));
    added.await.map(|()| NoContent)
}

pub(crate) async fn remove(
    State(service): State<Service>,
    _: MayRun,
    PathParts(path): PathParts<TagPath>,
) -> Result<NoContent, HttpProblem> {
    let removed = service.archive().with(move |archive| archive.untag(&path.id, &path.tag));
    removed.await.map(|_| NoContent)
}
