//! Wire protocols as state machines without I/O.
//!
//! Each protocol has one folder with its bytes (`wire` and below) and its dialogue (a [`Session`]), and nothing
//! else. Decoders accept any bytes without panic and are fuzzed. Sockets, sleeping and threads are in other
//! crates.

pub mod agent;
mod allowance;
mod c_format;
mod error;
pub mod iperf2;
pub mod iperf3;
pub mod native;
pub mod netpipe;
pub mod ntttcp;
pub mod nuttcp;
pub mod reading;
mod refusal;
mod session;
pub mod stand_in;
mod ticket;
pub mod ttcp;
#[cfg(test)]
mod virtual_hosts;
mod watch;

pub use error::PeerError;
pub use refusal::no_refusal;
pub use session::{
    Admission, Ended, FlowOrder, Hello, Input, Output, Progress, QueuePosition, Session, Trial, TrialCount,
    Welcome,
};
pub use ticket::Ticket;

use stand_in::StandIn;

/// A protocol as plain data: what a port needs in order to serve it.
#[derive(Debug)]
pub struct Protocol {
    /// Name, as in results.
    pub name: &'static str,
    /// Port when none is given.
    pub default_port: u16,
    /// Whether a connection that begins with these bytes uses the protocol.
    pub sniff: fn(&[u8]) -> Match,
    /// Creates its embedded server for `linerate serve`; absent for a protocol without a stand-in.
    pub embedded_server: Option<MakeServant>,
    /// The message to a client that is refused, with the reason; empty if the protocol has no such message.
    pub refusal: fn(&str) -> Vec<u8>,
}

/// Creates a server stand-in.
pub type MakeServant = fn(&ServantConfig) -> Box<dyn StandIn>;

/// The configuration of an embedded server, on a port that it shares with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServantConfig {
    /// The port on which clients reach it.
    pub port: u16,
    /// Whether several clients may be measured at once, otherwise one at a time.
    pub shared: bool,
    /// Random seed for values that must not be guessable.
    pub seed: u64,
    /// Wall-clock time at the stand-in's start, from the Unix epoch.
    pub wall: linerate_units::Span,
}

/// What the first bytes of a connection tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// It is this protocol.
    Yes,
    /// It is not.
    No,
    /// More bytes are needed.
    More,
}

/// Every protocol this program speaks.
pub static ALL: &[&Protocol] = &[
    &native::NATIVE,
    &agent::AGENT,
    &iperf3::IPERF3,
    &iperf2::IPERF2,
    &ttcp::TTCP,
    &netpipe::NETPIPE,
    &ntttcp::NTTTCP,
    &nuttcp::NUTTCP,
];
