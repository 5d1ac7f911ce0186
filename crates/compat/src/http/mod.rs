//! Tests of browsers over HTTP/1.1 and WebSocket: a page's own tests, and clients of ndt7.
//!
//! The server reads the head of a request (`request`) and hands the connection to a test. A page's test
//! (`browser`) has a control connection, over which the server announces its phases and pings, and 1 to 16 further
//! connections a phase, from the browser's workers. ndt7 (`ndt7`) has one connection a phase. Both move payload in
//! flows of the engine (`transfer`). The server judges every test: a rate is that of the bytes that it read, or of
//! those that the peer's kernel acknowledged, by its own clock.
//!
//! Sources: RFC 9112, RFC 6455, and the specification of ndt7 (v0.11.0).

mod browser;
mod ndt7;
mod page;
mod request;
mod server;
mod transfer;
mod websocket;

#[cfg(test)]
mod tests;

pub use request::{HttpRequest, RequestError};
pub use server::HttpServer;

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

/// Name of the tests of pages, as in results.
pub const BROWSER: &str = browser::TOOL;

/// What is served, by the names of the tools in results.
pub(crate) const PROTOCOLS: [&str; 2] = [browser::TOOL, ndt7::TOOL];

/// Every request of a test begins so.
fn sniff(start: &[u8]) -> Match {
    Match::magic(start, b"GET /")
}

fn refusal(why: &str) -> Vec<u8> {
    request::busy(why)
}
