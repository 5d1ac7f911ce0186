//! Tells the owner of the service who has changed something: with which token, from where, and what.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use linerate_model::ForeignText;

use crate::guard::VisitorAddress;
use crate::service::Service;

/// Requests that change nothing although they have a body, or only the visitor's own session.
const NO_CHANGE: [&str; 4] =
    ["/api/v1/envelope", "/api/v1/check", "/api/v1/plans/preview", "/api/v1/session"];

/// Tells of a request that has changed something.
pub(crate) async fn audit_log(State(service): State<Service>, request: Request, next: Next) -> Response {
    let Some(audited) = AuditedRequest::of(&request) else { return next.run(request).await };
    let response = next.run(request).await;
    if response.status().is_success() {
        let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
        service.notify(audited.in_words(&service, location).await);
    }
    response
}

/// A request that may change something.
struct AuditedRequest {
    method: Method,
    path: String,
    headers: HeaderMap,
    from: VisitorAddress,
}

impl AuditedRequest {
    fn of(request: &Request) -> Option<Self> {
        let (method, path) = (request.method(), request.uri().path());
        let changes =
            ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method) && !NO_CHANGE.contains(&path);
        let from = *request.extensions().get::<VisitorAddress>()?;
        changes.then(|| Self {
            method: method.clone(),
            path: path.to_owned(),
            headers: request.headers().clone(),
            from,
        })
    }

    async fn in_words(&self, service: &Service, location: Option<&str>) -> String {
        let Self { method, path, headers, from: VisitorAddress(from) } = self;
        let access = service.access();
        let visitor = access.visitor(headers, *from).await.ok();
        let who = visitor.map_or_else(String::new, |visitor| access.name_of(&visitor));
        // A path is what a visitor has typed.
        let path = ForeignText::new(path);
        let made = location.map(|location| format!(" ({location})")).unwrap_or_default();
        format!("{from} {who}: {method} {path}{made}")
    }
}
