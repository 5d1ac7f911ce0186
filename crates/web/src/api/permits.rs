//! What a visitor may do, as arguments of handlers.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::access::{Ability, WebVisitor};
use crate::guard::VisitorAddress;
use crate::problem::{HttpProblem, NOT_FOUND};
use crate::service::Service;

/// A value that proves an ability of the visitor: handlers that take one are not reached without it.
macro_rules! permit {
    ($name:ident, $ability:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub(crate) struct $name;

        impl FromRequestParts<Service> for $name {
            type Rejection = HttpProblem;

            async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, HttpProblem> {
                permitted(Ability::$ability, parts, service).await.map(|_| Self)
            }
        }

        impl aide::OperationInput for $name {}
    };
}

permit!(MayRun, Run, "The visitor may start and cancel tests and plans, and tag runs.");
permit!(MayAdminister, Admin, "The visitor may delete results, and add and remove schedules.");

/// The visitor may see results.
#[derive(Debug)]
pub(crate) struct MayView(pub(crate) WebVisitor);

impl FromRequestParts<Service> for MayView {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, HttpProblem> {
        permitted(Ability::View, parts, service).await.map(Self)
    }
}

impl aide::OperationInput for MayView {}

async fn permitted(ability: Ability, parts: &Parts, service: &Service) -> Result<WebVisitor, HttpProblem> {
    let VisitorAddress(from) = visitor(parts)?;
    service.access().permit(ability, &parts.headers, from).await
}

fn visitor(parts: &Parts) -> Result<VisitorAddress, HttpProblem> {
    let unknown = || HttpProblem::new(NOT_FOUND, "the address of the visitor is unknown");
    parts.extensions.get::<VisitorAddress>().copied().ok_or_else(unknown)
}

impl FromRequestParts<Service> for VisitorAddress {
    type Rejection = HttpProblem;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, HttpProblem> {
        visitor(parts)
    }
}

impl aide::OperationInput for VisitorAddress {}
