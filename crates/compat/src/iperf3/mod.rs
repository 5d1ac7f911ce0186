//! iperf3, versions 3.1 to 3.21, in both roles.
//!
//! One TCP connection carries the dialogue: single [`Iperf3State`](state::Iperf3State) bytes, and three JSON
//! messages with a length before each. The data streams are further connections to the same port that begin
//! with the cookie of the test, or datagrams to it. Only the client decides when a test ends.
//!
//! Based on captures of 3.1.7, 3.7, 3.12, 3.17.1 and 3.21; details are documented at the code that needs them.

pub mod argv;
pub mod auth;
mod calendar;
pub mod client;
pub mod errors;
mod json;
mod measure;
pub mod numbers;
pub mod params;
mod plan;
pub(crate) mod read;
pub mod report;
pub mod results;
pub mod server;
pub mod settings;
pub mod state;
mod test_state;
#[cfg(test)]
mod tests;
pub mod wire;

use crate::Tool;
use linerate_model::sniff::Match;

/// iperf3 in the table of tools.
pub static IPERF3: Tool = Tool {
    name: "iperf3",
    default_port: settings::PORT,
    sniff,
    embedded_server: server::Iperf3Server::embedded_server,
    refusal,
    options: argv::OPTIONS,
};

/// The answer of a busy server, which has no room for a reason.
fn refusal(_why: &str) -> Vec<u8> {
    vec![state::Iperf3State::AccessDenied.byte()]
}

/// A connection begins with a cookie: 36 bytes of text and a NUL.
fn sniff(start: &[u8]) -> Match {
    let (text, end) = start.split_at(start.len().min(wire::COOKIE_BYTES - 1));
    if text.iter().any(u8::is_ascii_control) {
        return Match::No;
    }
    match end.first() {
        None => Match::More,
        Some(0) => Match::Yes,
        Some(_) => Match::No,
    }
}
