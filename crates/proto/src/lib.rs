//! Wire protocols as state machines without I/O.
//!
//! Each protocol is one folder: its bytes (`wire` and below), its dialogue (a [`Session`]), nothing else. A decoder
//! takes any bytes without panic and is fuzzed. Sockets, sleeping and threads are elsewhere.

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

/// A protocol as plain data: what a port needs to know to serve it.
#[derive(Debug)]
pub struct Protocol {
    /// Name, as in results.
    pub name: &'static str,
    /// Port when none is given.
    pub default_port: u16,
    /// Whether a connection that begins with these bytes speaks it.
    pub sniff: fn(&[u8]) -> Match,
    /// Its server, for `linerate serve`; absent for a protocol that is no stand-in.
    pub embedded_server: Option<MakeServant>,
    /// What a server says to a client that it cannot serve, and why; empty where the protocol has no words for it.
    pub refusal: fn(&str) -> Vec<u8>,
}

/// Makes a server stand-in.
pub type MakeServant = fn(&ServantConfig) -> Box<dyn StandIn>;

/// What a server stand-in is told that serves behind a port which others share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServantConfig {
    /// The port at which clients reach it.
    pub port: u16,
    /// Whether several clients may be measured at once; otherwise one at a time.
    pub shared: bool,
    /// Randomness for what nobody may guess.
    pub seed: u64,
    /// Wall-clock time at the stand-in's start, from the Unix epoch.
    pub wall: linerate_units::Span,
}

/// What the first bytes of a connection say.
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
