//! nuttcp, versions 6 to 8: a control connection in text, data connections beside it.
//!
//! The client greets (`HELO nuttcp v8.2.2`), sends one line that says everything ([`Request`]), and the server answers
//! `OK` or a block between two lines `KO`. Over TCP the transmitter connects and its FIN ends the test; over UDP short
//! datagrams open (`BOD`) and end (`EOD`) it. The server then writes its whole report as text to the control
//! connection, and the client makes its own lines from it. Facts come from captures of 6.1.2 and 8.2.2.
//!
//! Both stand-ins announce 8.2.2: servers and clients of 6.1.2 accept it, and a request never says more than the
//! server's version allows.
//!
//! What this stand-in does otherwise than nuttcp:
//! - With several streams each has a thread of its own; blocks do not go round the streams in turn, and a datagram's
//!   running count of bytes is that of its stream, so that losses by interval are told for one stream only.
//! - Instantaneous rates (`-Ri`) are paced like average ones. Jitter is not measured here; a real receiver measures it
//!   from our datagrams.
//! - Marks of retransmissions are written by a transmitting server, as nuttcp does from 6.2.8 on; a transmitting client
//!   writes zeros, which say "not known", and adds the counts to the interval lines itself.
//! - `-s` works for one stream over TCP. Third-party requests, traceroutes and multicast are refused.

mod argv;
mod client;
mod delays;
mod marks;
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

pub use argv::{Invocation, invocation};
pub use client::NuttcpClient;
pub use options::{ClientOptions, Rate, ServerOptions, Verbosity};
pub use results::Results;
pub use server::NuttcpServer;
pub use wire::{Format, LINE_LIMIT, Lines, Request, Version};

use crate::{Match, Protocol};

/// nuttcp in the table.
pub static NUTTCP: Protocol = Protocol {
    name: "nuttcp",
    default_port: CONTROL_PORT,
    sniff,
    embedded_server: Some(NuttcpServer::embedded_server),
    refusal,
};

/// Port of the control connection.
pub const CONTROL_PORT: u16 = 5000;

/// Port of the first data stream (6.2.8 and later; before it was 5001).
pub const DATA_PORT: u16 = 5101;

/// Most streams of a test.
pub const MAX_STREAMS: u16 = 128;

/// How a client begins.
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
