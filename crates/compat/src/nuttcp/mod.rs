//! nuttcp, versions 6 to 8: a text control connection, and separate data connections.
//!
//! The client sends a greeting (`HELO nuttcp v8.2.2`) and one line with all parameters ([`NuttcpRequest`]).
//! The server answers `OK`, or an error between two lines `KO`. Over TCP the transmitter connects, and its
//! FIN ends the test. Over UDP short datagrams begin (`BOD`) and end (`EOD`) it. The server then writes its
//! report as text to the control connection, and the client computes its own lines from it. The facts come
//! from captures of 6.1.2 and 8.2.2.
//!
//! Both stand-ins announce 8.2.2: servers and clients of 6.1.2 accept it, and a request contains only what the
//! server's version knows.
//!
//! Differences between this stand-in and nuttcp:
//! - Each of several streams has its own thread, so blocks are not distributed over the streams in turn. A
//!   datagram's byte count is the one that it would have if they took turns.
//! - Instantaneous rates (`-Ri`) are paced like average ones. Jitter is measured from the kernel's arrival times,
//!   for each stream.
//! - A transmitting server writes retransmission marks, as nuttcp does since 6.2.8. A transmitting client
//!   writes zeros, which mean "unknown", and adds its counts to the interval lines itself.
//! - `-s` works for one stream over TCP. Third-party requests, traceroutes and multicast are refused.

mod argv;
mod client;
mod delays;
mod marks;
mod option_table;
mod options;
mod plan;
pub(crate) mod read;
mod report;
mod results;
mod server;
mod session;
mod summary;
#[cfg(test)]
mod tests;
mod transfer;
mod wire;

pub use argv::{NuttcpInvocation, invocation};
pub use client::NuttcpClient;
pub use options::{NuttcpClientOptions, NuttcpServerOptions, RateLimit, Verbosity};
pub use results::NuttcpResults;
pub use server::NuttcpServer;
pub use wire::{LINE_LIMIT, LineSplitter, NuttcpFormat, NuttcpRequest, NuttcpVersion};

use crate::Tool;
use crate::option_table::OptionGroup;
use linerate_model::sniff::Match;

/// nuttcp in the table of tools.
pub static NUTTCP: Tool = Tool {
    name: "nuttcp",
    default_port: CONTROL_PORT,
    sniff,
    embedded_server: NuttcpServer::embedded_server,
    refusal,
    options: &[OptionGroup::only(option_table::OPTIONS)],
};

/// Port of the control connection.
pub const CONTROL_PORT: u16 = 5000;

/// Port of the first data stream (5001 before 6.2.8).
pub const DATA_PORT: u16 = 5101;

/// Most streams of a test.
pub const MAX_STREAMS: u16 = 128;

/// The first bytes of a client.
const GREETING: &[u8] = b"HELO nuttcp";

fn refusal(why: &str) -> Vec<u8> {
    format!("KO\n{why}\nKO\n").into_bytes()
}

fn sniff(start: &[u8]) -> Match {
    let known = start.len().min(GREETING.len());
    if start[..known] != GREETING[..known] {
        Match::No
    } else if start.len() < GREETING.len() {
        Match::More
    } else {
        Match::Yes
    }
}
