//! Foreign tools without I/O: the behaviour of iperf2, iperf3, netperf, netpipe, ntttcp, nuttcp and ttcp on the wire and
//! on the terminal.
//!
//! Each tool is one folder with its command line, wire format, dialogue and output, and a reader for the output
//! of the real program (`read`); its entry is in [`ALL`]. The contract of a dialogue is [`stand_in`].
//! [`import`] detects which tool wrote a text. Decoders accept any bytes without panic and are fuzzed.
//! Sockets, sleeping and threads are in other crates.
//!
//! ```
//! let text = "\
//! Connecting to host 192.0.2.2, port 5201
//! [  5] local 192.0.2.1 port 40000 connected to 192.0.2.2 port 5201
//! [ ID] Interval           Transfer     Bitrate
//! [  5]   0.00-10.00  sec  1.10 GBytes   944 Mbits/sec                  receiver
//! ";
//! let readings = linerate_compat::import::read(text, None).unwrap();
//! assert_eq!(readings[0].tool, "iperf3");
//! assert_eq!(readings[0].tests.len(), 1);
//! ```

mod c_format;
pub mod c_time;
mod errno;
pub mod http;
pub mod import;
pub mod iperf2;
pub mod iperf3;
pub mod iperf_habits;
pub mod netperf;
pub mod netpipe;
pub mod ntttcp;
pub mod nuttcp;
pub mod option_table;
mod refusal;
mod sessions;
pub mod stand_in;
mod tos;
pub mod ttcp;
#[cfg(test)]
mod virtual_hosts;

pub use refusal::no_refusal;

use linerate_model::sniff::Match;
use stand_in::StandIn;

/// A foreign tool as plain data: what a port needs in order to serve it.
#[derive(Debug)]
pub struct Tool {
    /// Name, as in results.
    pub name: &'static str,
    /// Port when none is given.
    pub default_port: u16,
    /// Whether a connection that begins with these bytes comes from this tool.
    pub sniff: fn(&[u8]) -> Match,
    /// Creates its embedded server for `linerate serve`.
    pub embedded_server: fn(&EmbeddedServerConfig) -> Box<dyn StandIn>,
    /// The message to a client that is refused, with the reason; empty if the tool has no such message.
    pub refusal: fn(&str) -> Vec<u8>,
    /// Every option of its command line, in groups; empty for a protocol without a command line.
    pub options: &'static [option_table::OptionGroup],
}

impl Tool {
    /// What its embedded server speaks, by name. Each can be switched off.
    #[must_use]
    pub fn protocols(&self) -> &[&'static str] {
        if self.name == http::HTTP.name { &http::PROTOCOLS } else { std::slice::from_ref(&self.name) }
    }

    /// The names of what all tools speak.
    pub fn all_protocols() -> impl Iterator<Item = &'static str> {
        ALL.iter().flat_map(|tool| tool.protocols().iter().copied())
    }
}

/// The configuration of an embedded server, on a port that it shares with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedServerConfig {
    /// The port on which clients reach it.
    pub port: u16,
    /// Whether several clients may be measured at once, otherwise one at a time.
    pub shared: bool,
    /// Random seed for values that must not be guessable.
    pub seed: u64,
    /// Wall-clock time at the stand-in's start, from the Unix epoch.
    pub wall: linerate_units::Span,
    /// Protocols of the tool that are not served, of those in [`Tool::protocols`].
    pub without: Vec<String>,
}

/// Every foreign tool that has a stand-in.
pub static ALL: &[&Tool] = &[
    &iperf3::IPERF3,
    &iperf2::IPERF2,
    &ttcp::TTCP,
    &netpipe::NETPIPE,
    &nuttcp::NUTTCP,
    &ntttcp::NTTTCP,
    &netperf::NETPERF,
    &http::HTTP,
];
