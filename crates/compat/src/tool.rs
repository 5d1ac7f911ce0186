//! The table of foreign tools: what a port needs in order to serve each of them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use linerate_model::sniff::Match;

use crate::stand_in::StandIn;
use crate::{http, iperf2, iperf3, netperf, netpipe, ntttcp, nuttcp, option_table, ttcp};

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

    /// Whether its embedded server also serves clients that encrypt: that of browsers, whose pages may be encrypted.
    #[must_use]
    pub fn is_served_within_tls(&self) -> bool {
        self.name == http::HTTP.name || self.needs_tls()
    }

    /// Whether all its clients encrypt. It has no port without a certificate.
    #[must_use]
    pub fn needs_tls(&self) -> bool {
        self.name == http::RESPONSIVENESS_NAME
    }

    /// The names of what all tools speak.
    pub fn all_protocols() -> impl Iterator<Item = &'static str> {
        ALL.iter().flat_map(|tool| tool.protocols().iter().copied())
    }
}

/// The configuration of an embedded server, on a port that it shares with others.
#[derive(Debug, Clone)]
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
    /// Decides which tests of pages may start; absent if all may.
    pub start_check: Option<StartCheck>,
}

impl EmbeddedServerConfig {
    /// For clients at this port, one at a time, with everything served and nothing random.
    #[must_use]
    pub fn at(port: u16) -> Self {
        let (shared, seed, wall) = (false, 0, linerate_units::Span::ZERO);
        Self { port, shared, seed, wall, without: Vec::new(), start_check: None }
    }
}

/// Decides whether the test of a page may start, by its ticket and the address of the client.
#[derive(Clone)]
pub struct StartCheck(Arc<TicketCheck>);

type TicketCheck = dyn Fn(&str, Option<IpAddr>) -> bool + Send + Sync;

impl StartCheck {
    /// This decision. It spends the ticket.
    pub fn new(check: impl Fn(&str, Option<IpAddr>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Whether the test with this ticket may start.
    pub(crate) fn admits(&self, ticket: &str, client: Option<IpAddr>) -> bool {
        (self.0)(ticket, client)
    }
}

impl fmt::Debug for StartCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartCheck").finish_non_exhaustive()
    }
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
    #[cfg(feature = "http2")]
    &http::RESPONSIVENESS,
];
