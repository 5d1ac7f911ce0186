//! The input of a coordinator, as plain data.

use linerate_sock::Mono;
use linerate_sock::handle::OwnedFd;
use std::fmt;
use std::sync::Arc;

use linerate_model::{HostInfo, PlanPlace, TestSpec, World};
use linerate_proto::agent::{About, Token};
use linerate_units::Span;

use crate::tls::ServerTrust;

/// The hosts that a coordinator may direct.
#[derive(Debug, Clone, Default)]
pub struct TestBed {
    /// Name of the coordinator, shown by the agents.
    pub name: String,
    /// The hosts; flows refer to them by their index.
    pub hosts: Vec<HostRef>,
}

/// A host of a test bed: a `linerate serve --agent-token-file`.
#[derive(Debug, Clone)]
pub struct HostRef {
    /// Name, for messages.
    pub name: String,
    /// Name or address at which the coordinator reaches it.
    pub address: String,
    /// Its port; absent for the default port.
    pub port: Option<u16>,
    /// Address to which the other hosts measure, if it differs: the network under test instead of the
    /// management network.
    pub test_address: Option<String>,
    /// The token of the agent.
    pub token: Token,
    /// How to recognise the agent of an encrypted control connection; absent for one that is not encrypted.
    pub tls: Option<ServerTrust>,
    /// The network namespace in which `address` is valid: that of an emulated host, whose agent is reached
    /// without packets on the network under test. Absent for the namespace of this program.
    pub netns: Option<Arc<OwnedFd>>,
}

/// Runs that are started together.
#[derive(Debug, Clone, Default)]
pub struct RunGroup {
    /// Name, the same in the log of each run; absent for a single run.
    pub name: Option<String>,
    /// Wall-clock start, RFC 3339.
    pub started_at: String,
    /// Latest time of the common start, on the clock of this host. Runs that cannot start by then fail, for example
    /// because a queue is long. Absent if the start may be at any time.
    pub start_by: Option<Mono>,
    /// The runs.
    pub flows: Vec<FlowJob>,
}

impl RunGroup {
    /// The hosts that the group needs, each once, in the order of the test bed.
    pub(super) fn hosts(&self) -> Vec<usize> {
        let ends =
            |flow: &FlowJob| [Some(flow.from), flow.to.host()].into_iter().flatten().collect::<Vec<_>>();
        let mut all: Vec<usize> = self.flows.iter().flat_map(ends).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// One run between two hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowJob {
    /// Index of the host that is the client.
    pub from: usize,
    /// The server.
    pub to: RunServer,
    /// What to measure. A run that starts with others should have one phase: in a run with several, each later
    /// phase follows the end of the previous one, unsynchronized with other runs.
    pub spec: TestSpec,
    /// Time from the start of the group to the start of this run. With `after` it is only an estimate for the
    /// log.
    pub start_after: Span,
    /// Other runs of the group whose ends it waits for; absent for a start by the clock.
    pub after: Option<After>,
    /// Cross traffic: ends when all other runs have ended.
    pub cross_traffic: bool,
    /// The part of a plan that this run is, for its log.
    pub plan: Option<PlanPlace>,
}

/// The condition for the start of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct After {
    /// Indices of the runs that must have ended; none of them may be cross traffic.
    pub flows: Vec<usize>,
    /// Time from the last of their ends to the start.
    pub pause: Span,
}

/// The server of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunServer {
    /// Index of another host of the test bed.
    Host(usize),
    /// Any server of the native protocol; the run waits in its queue like any client.
    Server {
        /// Name or address, as the agent reaches it.
        host: String,
        /// Its port; absent for the default port.
        port: Option<u16>,
    },
}

impl RunServer {
    pub(super) fn host(&self) -> Option<usize> {
        match self {
            Self::Host(at) => Some(*at),
            Self::Server { .. } => None,
        }
    }
}

/// An error that prevents a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// Name of the host in the test bed; empty if the error concerns the group itself.
    pub host: String,
    /// The error, and what to do.
    pub what: String,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", self.host, self.what) }
    }
}

/// A host as a coordinator found it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostState {
    /// The description of the host, with the interface towards the coordinator.
    pub host: HostInfo,
    /// Whether it is a real host or in a lab; absent if unknown.
    pub world: Option<World>,
    /// Its complete self-description.
    pub about: About,
    /// Its monotonic clock minus the coordinator's, nanoseconds; changes with every restart of either program.
    pub offset_ns: i64,
    /// Largest error of the offset: half of the smallest round trip.
    pub offset_error: Span,
}
