//! Runs: what the archive is told about a measurement that a stand-in makes.

use linerate_model::flow::{FlowId, Link, RunId};
use linerate_model::{Direction, TestSpec};
use linerate_units::Span;

/// A run that shall begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Its number.
    pub run: RunId,
    /// The tool, as in results: `iperf3`.
    pub tool: &'static str,
    /// What the peer says it is, for example `iperf 3.12`; absent where it does not say.
    pub peer: Option<String>,
    /// A link to the peer: where it is, and over which interface.
    pub link: Link,
    /// Whether this end is the client.
    pub client: bool,
    /// What shall be measured, as far as the tool's wishes can be said in our words.
    pub spec: TestSpec,
    /// Flows by number, and their directions seen from the client.
    pub flows: Vec<(FlowId, Direction)>,
    /// How long it may take; absent when nobody knows.
    pub expected: Option<Span>,
}
