//! netperf 2.7: bulk transfers and transactions, in the "omni" form that its tests have had since 2.5.
//!
//! The client sends messages of a fixed size (`wire`) over the control connection. For each test it sends a
//! [`NetperfRequest`] with everything that the server needs; the server opens a port for data and answers
//! with its number ([`Response`]). The client opens the data connection in every test, also if the server
//! sends. The end of the data connection, three empty datagrams, or the server's timer end the test. Then the
//! server sends its counts ([`NetperfResults`]) and waits for the next request.
//!
//! The facts come from captures of netperf 2.7.0 (`fixtures/transcripts/netperf`) and from its source, which
//! defines the messages. No code of netperf is used.
//!
//! Streams are flows of the engine. Transactions (TCP_RR, TCP_CRR, UDP_RR) are asked and answered by the
//! stand-ins themselves, one message at a time, so they cost more CPU time than in the original.

mod argv;
mod client;
mod confidence;
mod cpu;
mod figures;
mod latencies;
mod option_table;
mod options;
pub(crate) mod read;
mod report;
mod selectors;
mod server;
mod session;
mod terms;
mod transactions;
mod wire;

#[cfg(test)]
mod tests;

pub use argv::{ClientCommand, NetperfServerOptions, NetperfSurroundings, ReadFile, ServerCommand};
pub use client::NetperfClient;
pub use options::NetperfClientOptions;
pub use server::NetperfServer;
pub use wire::{
    DataRoles, HostCpu, MESSAGE_BYTES, NetperfMessage, NetperfProtocol, NetperfRequest, NetperfResults,
    Response,
};

use crate::Tool;
use crate::option_table::OptionGroup;

/// Port of the control connection.
pub const PORT: u16 = 12_865;

/// The version that the stand-ins announce.
pub const VERSION: &str = "2.7.0";

/// netperf in the table of tools.
pub static NETPERF: Tool = Tool {
    name: "netperf",
    default_port: PORT,
    sniff: wire::sniff,
    embedded_server: NetperfServer::embedded_server,
    refusal,
    options: &[
        OptionGroup::new("netperf", option_table::CLIENT),
        OptionGroup::new("netperf, after `--`", option_table::TESTS),
        OptionGroup::new("netserver", option_table::OF_SERVER),
    ],
};

/// The error number of a server that is busy (Linux).
const EBUSY: i32 = 16;

/// netperf prints the error number and its text. There is no room for a reason.
fn refusal(_why: &str) -> Vec<u8> {
    NetperfMessage::error(wire::kind::TEST_RESPONSE, EBUSY).into_bytes()
}
