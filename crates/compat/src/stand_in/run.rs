//! Runs: the description of a stand-in's measurement for the archive.

use linerate_model::flow::{FlowId, Link, RunId};
use linerate_model::{Direction, Sample, Side, SideSettings, Tally, TestSpec};
use linerate_units::Span;

/// A run that is about to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Number of the run.
    pub run: RunId,
    /// Name of the tool, as in results: `iperf3`.
    pub tool: &'static str,
    /// The program that the peer claims to be, for example `iperf 3.12`; absent if it makes no claim.
    pub peer: Option<String>,
    /// A link to the peer, from which its address and the interface follow.
    pub link: Link,
    /// Whether this end is the client.
    pub client: bool,
    /// What to measure, as far as the options of the tool can be expressed.
    pub spec: TestSpec,
    /// Numbers of the flows, and their directions as seen from the client.
    pub flows: Vec<(FlowId, Direction)>,
    /// Expected duration; absent if unknown.
    pub expected: Option<Span>,
}

/// The result of a flow that a stand-in counts itself, because the flows of the engine are only its parts: a client
/// that sends many requests is one flow to its user.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedFlow {
    /// Direction as seen from the client.
    pub direction: Direction,
    /// Most parts in transit at once.
    pub streams: u32,
    /// Which side this end is.
    pub side: Side,
    /// The settings of its sockets.
    pub settings: SideSettings,
    /// What this end counted. Its elapsed time leaves out pauses in which no part was moved.
    pub tally: Tally,
    /// What this end knows of the receiver's counts; absent if it is the receiver.
    pub receiver: Option<Tally>,
    /// Its samples, with times from its first byte.
    pub samples: Vec<Sample>,
}
