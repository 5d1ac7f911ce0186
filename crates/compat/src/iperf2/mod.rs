//! iperf 2: a test without a control connection.
//!
//! The first bytes of a TCP connection, and every datagram, contain what the server must know: a
//! [`TestHeader`]. A TCP test ends with the connection. A UDP test ends with a datagram that has a negative
//! number, which the server answers with its counts, a [`ServerReport`]. There are three generations
//! of datagrams, which the receiver distinguishes: 2.0.9 and earlier number them in 4 bytes; later versions have
//! two halves of 8, of which those up to 2.0.13 usually write one ([`Generation`]).
//!
//! # Source
//! Captures of 2.0.6, 2.0.9, 2.0.10, 2.0.13a, 2.1.8 and 2.2.1 over loopback.

mod argv;
mod arrival;
mod bounce;
mod client;
mod counted;
mod csv;
mod datagram;
mod direction;
mod load;
mod numbers;
mod option_table;
mod output_queue;
pub(crate) mod read;
mod report;
mod run;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod track;
mod transit;
mod wire;

pub use argv::{Iperf2EarlyExit, parse};
pub use client::Iperf2Client;
pub use datagram::{Generation, REPORT_BYTES, ServerReport, number_of, opening_header};
pub use server::Iperf2Server;
pub use settings::{
    Iperf2Amount, Iperf2Format, Iperf2Increments, Iperf2Input, Iperf2Mode, Iperf2Rate, Iperf2Settings,
};
pub use wire::{Ack, Extension, HeaderError, TestHeader};

use crate::Tool;
use crate::option_table::OptionGroup;
use linerate_model::sniff::Match;

/// iperf 2 in the table of tools.
pub static IPERF2: Tool = Tool {
    name: "iperf2",
    default_port: 5001,
    sniff,
    embedded_server: Iperf2Server::embedded_server,
    refusal: crate::no_refusal,
    options: &[OptionGroup::only(option_table::OPTIONS)],
};

/// The version that we announce: 2.1.8, whose wire format this is.
const VERSION: (u32, u32) = (0x0002_0001, 0x0008_0003);

/// The pattern in every buffer; with -C, there is nothing else.
const DIGITS: &[u8] = b"0123456789";

fn sniff(start: &[u8]) -> Match {
    let known = start.len().min(DIGITS.len());
    if start.get(..known) == DIGITS.get(..known) {
        return if known < 4 { Match::More } else { Match::Yes };
    }
    match wire::sniff(start) {
        Match::No if datagram::is_plausible(start) => Match::Yes,
        matched => matched,
    }
}
