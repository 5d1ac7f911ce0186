//! What a coordinator is told: plain data.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use linerate_model::{HostInfo, PlanPlace, TestSpec, World};
use linerate_proto::agent::{About, Token};
use linerate_units::Span;

/// The hosts that a coordinator may ask.
#[derive(Debug, Clone, Default)]
pub struct TestBed {
    /// What the coordinator calls itself to them.
    pub name: String,
    /// The hosts; flows name them by their place in this list.
    pub hosts: Vec<HostRef>,
}

/// A host of a rig: a `linerate serve --agent-token-file`.
#[derive(Debug, Clone)]
pub struct HostRef {
    /// Name, for people.
    pub name: String,
    /// Where the coordinator reaches it: a name or an address.
    pub address: String,
    /// Its port; absent for the usual one.
    pub port: Option<u16>,
    /// Where the other hosts measure to, if that is another address: the network under test, not the one of management.
    pub test_address: Option<String>,
    /// The secret that the agent was given.
    pub token: Token,
    /// The network namespace in which `address` is meant: that of an emulated host, where the agent is reached without a
    /// packet on the network under test. Absent for that of this program.
    pub netns: Option<Arc<OwnedFd>>,
}

/// Runs that are started together.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Name, the same in the log of each run; absent for a single run that is no part of anything.
    pub name: Option<String>,
    /// Wall-clock start, RFC 3339.
    pub started_at: String,
    /// The runs.
    pub flows: Vec<FlowJob>,
}

impl Group {
    /// The hosts that the group needs, each once, in the order of the rig.
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
    /// The host that is the client.
    pub from: usize,
    /// The server.
    pub to: Target,
    /// What shall be measured. A run that starts with others should be of one phase: later ones follow when the first is
    /// over, each run by itself.
    pub spec: TestSpec,
    /// Time from the start of the group to the start of this run; with `after` an estimate, which is noted and not obeyed.
    pub start_after: Span,
    /// Other runs of the group whose ends it waits for; absent for one that starts by the clock.
    pub after: Option<After>,
    /// There to load the network: ends when all that are not have ended.
    pub background: bool,
    /// Its place in a plan, for its log.
    pub plan: Option<PlanPlace>,
}

/// What a run waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct After {
    /// The runs that have to be over, by their places in the group; none of them in the background.
    pub flows: Vec<usize>,
    /// Time from the last of their ends to the start.
    pub pause: Span,
}

/// Whom a run measures to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Another host of the rig.
    Host(usize),
    /// Any server that speaks the native protocol; the run waits in its queue as every client does.
    Server {
        /// Name or address, as the agent reaches it.
        host: String,
        /// Its port; absent for the usual one.
        port: Option<u16>,
    },
}

impl Target {
    pub(super) fn host(&self) -> Option<usize> {
        match self {
            Self::Host(at) => Some(*at),
            Self::Server { .. } => None,
        }
    }
}

/// Something that stands in the way of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// The host, by its name in the rig; empty when it is the group's own.
    pub host: String,
    /// What it is, and what to do.
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
    /// The host, with the interface that leads to the coordinator.
    pub host: HostInfo,
    /// Where it is, if it says.
    pub world: Option<World>,
    /// All that it says of itself.
    pub about: About,
    /// Its monotonic clock minus the coordinator's, nanoseconds; differs from start to start of either program.
    pub offset_ns: i64,
    /// Largest error of that: half of the smallest round trip.
    pub offset_error: Span,
}
