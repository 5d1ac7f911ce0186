//! Envelopes and checks: answers that need neither a measurement nor the archive.

use axum::Json;
use axum::extract::State;
use linerate_report::check::CheckDocument;
use linerate_report::envelope::EnvelopeDocument;

use super::MayView;
use crate::claim_request::ClaimRequest;
use crate::envelope_request::EnvelopeRequest;
use crate::problem::{HttpProblem, INTERNAL};
use crate::request::JsonBody;
use crate::service::Service;

/// Largest description of a path.
const MAX_PATH_BYTES: usize = 16 << 10;
/// Largest printed result, with the figures.
const MAX_CHECK_BYTES: usize = 1 << 20;

pub(crate) async fn envelope(
    _: MayView,
    JsonBody(request): JsonBody<EnvelopeRequest, MAX_PATH_BYTES>,
) -> Result<Json<EnvelopeDocument>, HttpProblem> {
    let answers = request.answers()?;
    let document = EnvelopeDocument::of(&answers).map_err(|error| HttpProblem::new(INTERNAL, error))?;
    Ok(Json(document))
}

pub(crate) async fn check(
    State(service): State<Service>,
    _: MayView,
    JsonBody(request): JsonBody<ClaimRequest, MAX_CHECK_BYTES>,
) -> Result<Json<CheckDocument>, HttpProblem> {
    let place = if request.is_long() { Some(service.admit_long_check()?) } else { None };
    // A long text takes a while to read, so this is not done by the thread that answers everybody.
    let checked = tokio::task::spawn_blocking(move || {
        let _place = place;
        request.report().map(|report| CheckDocument::of(&report))
    });
    let failed = |error| {
        tracing::error!(%error, "a check has failed");
        HttpProblem::new(INTERNAL, "the check failed; the log of the server says why")
    };
    checked.await.map_err(failed)?.map(Json)
}
