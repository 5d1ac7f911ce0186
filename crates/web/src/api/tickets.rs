//! Tickets for tests from the browsers of visitors.

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;

use super::{MayView, about_write};
use crate::guard::VisitorAddress;
use crate::problem::HttpProblem;
use crate::service::Service;

/// A ticket for one test from the visitor's browser.
#[derive(Debug, Serialize, JsonSchema)]
struct StartTicket {
    /// The name of the test: 32 hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    ticket: String,
}

/// Tests from browsers are not started here, but at the port of the server.
pub(super) fn routes() -> ApiRouter<Service> {
    ApiRouter::new().api_route(
        "/api/v1/tickets",
        post_with(issue, |op| {
            about_write(
                op,
                "issueTicket",
                "runs",
                "Get a ticket, with which the visitor's browser starts one test to this host within a minute",
            )
            .response::<201, Json<StartTicket>>()
        }),
    )
}

async fn issue(
    State(service): State<Service>,
    from: VisitorAddress,
    _: MayView,
) -> Result<Issued, HttpProblem> {
    service.start_ticket(from).map(|ticket| Issued(StartTicket { ticket }))
}

/// 201.
#[derive(Debug)]
struct Issued(StartTicket);

impl IntoResponse for Issued {
    fn into_response(self) -> axum::response::Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl aide::OperationOutput for Issued {
    type Inner = StartTicket;
}
