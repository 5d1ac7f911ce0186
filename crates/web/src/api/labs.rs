//! The emulated networks of this host.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{EventStream, MayView, about};
use crate::guard::VisitorAddress;
use crate::labs::{LabList, LabMessage, LabViewer, WatchedLabs};
use crate::live::LabSnapshot;
use crate::problem::{HttpProblem, INTERNAL};
use crate::request::PathParts;
use crate::service::Service;
use crate::streams;

const TAG: &str = "labs";

/// The name of a lab.
#[derive(Debug, Deserialize, JsonSchema)]
struct LabPath {
    /// As listed.
    name: String,
}

/// Labs are brought up and down by `linerate lab` and by plans.
pub(super) fn routes() -> ApiRouter<Service> {
    ApiRouter::new()
        .api_route(
            "/api/v1/labs",
            get_with(list, |op| about(op, "listLabs", TAG, "The emulated networks that are up on this host")),
        )
        .api_route(
            "/api/v1/labs/{name}",
            get_with(lab, |op| {
                about(op, "getLab", TAG, "Hosts, switches and links of an emulated network, and its queues")
            }),
        )
        .api_route(
            "/api/v1/labs/{name}/live",
            get_with(live, |op| {
                about(op, "watchLab", TAG, "The events snapshot, frame and end of an emulated network")
                    .response_with::<200, EventStream<LabMessage>, _>(|r| r)
            }),
        )
}

async fn list(State(service): State<Service>, _: MayView) -> Result<Json<LabList>, HttpProblem> {
    blocking(&service, |labs| labs.list()).await.map(Json)
}

async fn lab(
    State(service): State<Service>,
    _: MayView,
    PathParts(path): PathParts<LabPath>,
) -> Result<Json<LabSnapshot>, HttpProblem> {
    viewer(&service, path).await?.first().await.map(Json)
}

async fn live(
    State(service): State<Service>,
    from: VisitorAddress,
    MayView(visitor): MayView,
    PathParts(path): PathParts<LabPath>,
) -> Result<streams::Stream, HttpProblem> {
    let watcher = service.admit_stream(from, visitor)?;
    let mut viewer = viewer(&service, path).await?;
    viewer.first().await?;
    Ok(streams::lab(watcher, viewer))
}

async fn viewer(service: &Service, path: LabPath) -> Result<LabViewer, HttpProblem> {
    blocking(service, move |labs| labs.watch(&path.name)).await
}

async fn blocking<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&Arc<WatchedLabs>) -> Result<T, HttpProblem> + Send + 'static,
) -> Result<T, HttpProblem> {
    let labs = Arc::clone(service.labs());
    tokio::task::spawn_blocking(move || work(&labs)).await.unwrap_or_else(|error| {
        tracing::error!(%error, "reading the emulated networks has failed");
        Err(HttpProblem::new(INTERNAL, "reading them failed; the log of the server says why"))
    })
}
