//! Tests of browsers over HTTP/1.1 and WebSocket: a page's own tests, and clients of ndt7, LibreSpeed and Cloudflare.
//!
//! The server reads the head of a request (`request`) and hands the connection to a test. A page's test
//! (`browser`) has a control connection, over which the server announces its phases and pings, and 1 to 16 further
//! connections a phase, from the browser's workers. ndt7 (`ndt7`) has one connection a phase. Both move payload in
//! flows of the engine (`transfer`). Clients of LibreSpeed and Cloudflare have no dialogue around their requests
//! (`endpoint`): each body is a flow, and what a client's bodies come to is its result (`bodies`, `body_totals`). The
//! server judges every test: a rate is that of the bytes that it read, or of
//! those that the peer's kernel acknowledged, by its own clock.
//!
//! Sources: RFC 9112, RFC 6455, and the specification of ndt7 (v0.11.0); of the others, their clients.

#[cfg(feature = "http2")]
mod acknowledged;
mod bodies;
mod body;
mod body_totals;
mod browser;
mod endpoint;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http2")]
mod http2_client;
mod ndt7;
mod page;
mod request;
#[cfg(feature = "http2")]
mod responsiveness;
#[cfg(feature = "http2")]
mod responsiveness_test;
mod server;
mod transfer;
mod websocket;

#[cfg(test)]
mod tests;

#[cfg(feature = "http2")]
pub use http2_client::Http2Tls;
pub use request::{HttpMethod, HttpRequest, RequestError};
#[cfg(feature = "http2")]
pub use responsiveness::{CONFIG_PATH as RESPONSIVENESS_CONFIG_PATH, RESPONSIVENESS, responsiveness_config};
#[cfg(feature = "http2")]
pub use responsiveness_test::{
    LoadOrder, ResponsivenessTarget, ResponsivenessTargetError, ResponsivenessTest, ResponsivenessTestConfig,
};
pub use server::{HttpServer, test_request};

use linerate_model::sniff::Match;

use crate::Tool;

/// Port of the pages' tests: that of the server's own protocol.
pub const PORT: u16 = 5201;

/// Tests of browsers in the table of tools.
pub static HTTP: Tool = Tool {
    name: "http",
    default_port: PORT,
    sniff,
    embedded_server: HttpServer::embedded_server,
    refusal,
    options: &[],
};

/// Name of the tests of clients that measure responsiveness, as in results.
pub(crate) const RESPONSIVENESS_NAME: &str = "responsiveness";

/// Name of the tests of pages, as in results.
pub const BROWSER: &str = browser::TOOL;

/// What is served, by the names of the tools in results.
pub(crate) const PROTOCOLS: [&str; 4] =
    [browser::TOOL, ndt7::TOOL, endpoint::LIBRESPEED, endpoint::CLOUDFLARE];

/// Every request of a test begins with one of these.
fn sniff(start: &[u8]) -> Match {
    let starts: [&[u8]; 3] = [b"GET /", b"POST /", b"OPTIONS /"];
    let matches = starts.map(|magic| Match::magic(start, magic));
    let has = |wanted| matches.contains(&wanted);
    match (has(Match::Yes), has(Match::More)) {
        (true, _) => Match::Yes,
        (false, true) => Match::More,
        (false, false) => Match::No,
    }
}

fn refusal(why: &str) -> Vec<u8> {
    request::busy(why)
}
