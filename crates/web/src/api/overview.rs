//! The host, its visitors, its known servers, and its queue.

use std::net::IpAddr;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use linerate_model::ForeignText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MayView, NoContent};
use crate::access::Ability;
use crate::guard::VisitorAddress;
use crate::latest_runs::latest_runs;
use crate::plan_request::WorldOfPlan;
use crate::problem::HttpProblem;
use crate::request::JsonBody;
use crate::service::Service;
use crate::streams;

/// Most known servers.
const MAX_KNOWN: usize = 50;

/// Who is asking, and what the server is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionInfo {
    /// Whether a token gives more abilities than none.
    needs_token: bool,
    /// Whether this visitor has given a token.
    signed_in: bool,
    /// What this visitor may do now.
    abilities: Vec<Ability>,
    /// Name of this host.
    host: String,
    /// Version of linerate.
    linerate: &'static str,
    /// `ok`, or why results are not archived.
    archive: String,
    /// Where browsers measure to this host; absent if it takes no such tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    browser_test: Option<BrowserTest>,
    /// Where plans from the pages can be carried out.
    plan_worlds: Vec<WorldOfPlan>,
}

/// Where browsers measure to this host.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BrowserTest {
    /// The port, at the name of the page's host.
    port: u16,
    /// Whether it has TLS too: pages over HTTPS may not connect to a port without.
    tls: bool,
}

pub(crate) async fn session(
    State(service): State<Service>,
    VisitorAddress(from): VisitorAddress,
    headers: HeaderMap,
) -> Result<Json<SessionInfo>, HttpProblem> {
    let access = service.access();
    let visitor = access.visitor(&headers, from).await?;
    let abilities = visitor.abilities();
    Ok(Json(SessionInfo {
        needs_token: access.needs_token(),
        signed_in: visitor.token.is_some(),
        host: service.host().to_owned(),
        linerate: env!("CARGO_PKG_VERSION"),
        archive: service
            .archive()
            .trouble()
            .filter(|_| !abilities.is_empty())
            .unwrap_or_else(|| "ok".to_owned()),
        abilities,
        browser_test: service.browser_test().map(|at| BrowserTest { port: at.number, tls: at.has_tls }),
        plan_worlds: service.runs().plan_setup().worlds(),
    }))
}

/// A token of the server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    token: String,
}

pub(crate) async fn sign_in(
    State(service): State<Service>,
    VisitorAddress(from): VisitorAddress,
    JsonBody(given): JsonBody<SignIn>,
) -> Result<WithCookie, HttpProblem> {
    service.access().sign_in(&given.token, from).await.map(WithCookie)
}

pub(crate) async fn sign_out(
    State(service): State<Service>,
    headers: HeaderMap,
) -> Result<WithCookie, HttpProblem> {
    Ok(WithCookie(service.access().sign_out(&headers)))
}

/// 204 that sets a cookie.
#[derive(Debug)]
pub(crate) struct WithCookie(String);

impl IntoResponse for WithCookie {
    fn into_response(self) -> axum::response::Response {
        ([(header::SET_COOKIE, self.0)], NoContent).into_response()
    }
}

impl aide::OperationOutput for WithCookie {
    type Inner = ();
}

/// The hosts that a test may have.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HostList {
    /// Name of this host.
    this_host: String,
    /// Servers of earlier runs, the latest first.
    known: Vec<KnownServer>,
    /// The queue of this host.
    queue: QueueStatus,
}

/// A server of earlier runs.
#[derive(Debug, Serialize, JsonSchema)]
struct KnownServer {
    /// The server, as typed.
    target: ForeignText,
    /// Its latest run.
    last_run: ForeignText,
    /// When that started.
    last_at: Option<ForeignText>,
}

/// The queue of this host, with the runs of its pages and of its clients.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueStatus {
    /// Clients and runs that wait.
    waiting: usize,
    /// Clients and runs that are measured.
    measured: usize,
    /// The run of a page that is carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<String>,
}

pub(crate) async fn hosts(State(service): State<Service>, _: MayView) -> Result<Json<HostList>, HttpProblem> {
    let latest = service.archive().with(|archive| latest_runs(archive, &mut |_| Ok(false))).await?;
    let limits = service.runs().limits();
    let known = latest.into_iter().filter_map(|run| {
        // A host that would be refused is no suggestion.
        let target = run.target.filter(|to| is_server(to) && !is_loopback(to) && limits.allow(to))?;
        Some(KnownServer { target, last_run: run.id, last_at: run.started_at })
    });
    let load = service.runs().load();
    let running = service.runs().current_runs().borrow().running.clone();
    Ok(Json(HostList {
        this_host: service.host().to_owned(),
        known: known.take(MAX_KNOWN).collect(),
        queue: QueueStatus { waiting: load.waiting, measured: load.running, running },
    }))
}

/// Whether it is not the client of another tool that this host served: after its address follows the tool's name.
fn is_server(target: &str) -> bool {
    !target.contains(' ')
}

/// What was measured over loopback was this host, which needs no address.
fn is_loopback(target: &str) -> bool {
    target.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

pub(crate) async fn current_runs(
    State(service): State<Service>,
    from: VisitorAddress,
    MayView(visitor): MayView,
) -> Result<streams::Stream, HttpProblem> {
    let watcher = service.admit_stream(from, visitor)?;
    Ok(streams::current_runs(watcher, service.runs().current_runs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_another_tool_is_no_server() {
        for server in ["ams-1", "ams-1.example.net:5201", "192.0.2.7", "[2001:db8::1]:5201"] {
            assert!(is_server(server), "{server}");
        }
        assert!(!is_server("192.0.2.7:50123 (iperf3)"));
    }
}
