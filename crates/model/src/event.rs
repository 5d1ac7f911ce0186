//! The event log: the ground state of a run. Everything else derives from it and can be rebuilt.

use linerate_units::{Bytes, Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::accounting_step::BookStep;
use crate::caveat::{Caveat, CaveatKind};
use crate::ceiling::Ceiling;
use crate::finding::Finding;
use crate::follow_up::FollowUp;
use crate::foreign_text::ForeignText;
use crate::host::HostInfo;
use crate::method::MethodTable;
use crate::metrics::{Sample, Side};
use crate::plan_run::{PlanJudgement, PlanPlace, PlanStart, PointSummary, SearchEnd, TrialEnd};
use crate::port::PortSample;
use crate::settings::SideSettings;
use crate::size::{SizeCurve, SizePoint};
use crate::spec::{Direction, TestSpec, Transport};
use crate::tally::{ByteAccounting, LatencyReport, Steady, Tally};
use crate::uncertainty::Uncertainty;

/// Version of the event format; a reader takes every version up to its own.
pub const EVENT_SCHEMA: &str = "linerate.event/1";

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The run.
    pub run: ForeignText,
    /// The host that says so: 0 is the client, 1 the server.
    pub host: u16,
    /// Number of the event in its run, from 0 without gaps.
    pub seq: u64,
    /// When, on the client's clock.
    #[serde(rename = "at_ns")]
    pub at: Timestamp,
    /// What.
    pub body: Body,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// The run began.
    RunStarted(RunStart),
    /// A host is known; `host` of the event says which.
    Host {
        /// The host.
        info: HostInfo,
    },
    /// The server is busy: the client waits in its queue.
    Queued {
        /// Place in the queue, 1 is next.
        place: u32,
        /// Longest expected wait.
        #[serde(rename = "wait_ns")]
        wait: Span,
    },
    /// A flow will be measured.
    FlowPlanned(FlowPlan),
    /// The sockets of one side are open.
    FlowOpened {
        /// The flow.
        flow: u16,
        /// Which end.
        side: Side,
        /// As the kernel set them.
        settings: SideSettings,
    },
    /// The receiver's count while the flow runs.
    Progress {
        /// The flow.
        flow: u16,
        /// Bytes read since the start of the flow.
        bytes: Bytes,
        /// Time since the receiver's first read.
        #[serde(rename = "elapsed_ns")]
        elapsed: Span,
        /// The sender's smoothed round-trip time.
        #[serde(rename = "srtt_ns", default, skip_serializing_if = "Option::is_none")]
        srtt: Option<Span>,
        /// Segments that the sender sent again so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retransmits: Option<u64>,
    },
    /// One interval of one side.
    Sample {
        /// The flow.
        flow: u16,
        /// What was read.
        sample: Sample,
    },
    /// One interval of one port of an emulated network.
    Port {
        /// The flows that ran meanwhile.
        flows: Vec<u16>,
        /// The port: the node that it belongs to and the node that it sends to, as `a>s`.
        port: ForeignText,
        /// What was counted.
        sample: PortSample,
    },
    /// One size of a series over message sizes is measured.
    Size {
        /// The flow.
        flow: u16,
        /// What was measured.
        point: SizePoint,
    },
    /// The series over message sizes is over.
    Curve {
        /// The flow.
        flow: u16,
        /// What its points amount to.
        curve: SizeCurve,
    },
    /// Latency probes of one phase are evaluated.
    Latency {
        /// The flow beside which they ran; absent when idle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<u16>,
        /// What they saw.
        report: LatencyReport,
    },
    /// One side has closed its sockets.
    FlowEnded {
        /// The flow.
        flow: u16,
        /// Which end.
        side: Side,
        /// What it counted.
        tally: Tally,
    },
    /// Both sides' counts are compared.
    BooksClosed {
        /// The flow.
        flow: u16,
        /// What became of the bytes.
        books: ByteAccounting,
    },
    /// Counts on the way to the wire and back are compared; a later one takes the place of an earlier one.
    Reconciled {
        /// The flow.
        flow: u16,
        /// From the sender's socket to the receiver's, then the way back.
        steps: Vec<BookStep>,
    },
    /// The steady part was found.
    Steady {
        /// The flow.
        flow: u16,
        /// What it is.
        steady: Steady,
    },
    /// How well the rate is known.
    Uncertainty {
        /// The flow.
        flow: u16,
        /// What it is made of.
        uncertainty: Uncertainty,
    },
    /// What the limits would allow, smallest first.
    Ceilings {
        /// The flow.
        flow: u16,
        /// Every limit that is known.
        ladder: Vec<Ceiling>,
        /// The one to compare the result with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ceiling: Option<Ceiling>,
    },
    /// Further runs answered a question about a flow.
    Inquired {
        /// The flow.
        flow: u16,
        /// The question and the answer.
        inquiry: FollowUp,
    },
    /// What held the flow back. A later one takes the place of an earlier one.
    Verdict {
        /// The flow.
        flow: u16,
        /// The first rule whose conditions all hold.
        verdict: Finding,
        /// The others.
        also: Vec<Finding>,
    },
    /// The run is one of several that a coordinator starts together.
    Grouped(GroupPlace),
    /// A run of a group began to measure.
    Started(GroupStart),
    /// A plan began; the log is the plan's own, and each of its trials makes runs with logs of theirs.
    PlanStarted(Box<PlanStart>),
    /// A plan that was interrupted goes on.
    PlanResumed,
    /// A trial of a plan is over.
    TrialEnded(TrialEnd),
    /// A search of a plan is over at a point.
    SearchEnded(SearchEnd),
    /// What the trials of a point amount to.
    PointSummed(PointSummary),
    /// What a plan amounts to in the terms of its method.
    MethodTable(MethodTable),
    /// An assertion of a plan was judged.
    Judged(PlanJudgement),
    /// A result is weakened.
    Caveat {
        /// The flow; absent when it concerns the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<u16>,
        /// How.
        caveat: Caveat,
    },
    /// The run ended.
    RunEnded {
        /// How.
        outcome: Outcome,
        /// Why, unless it was completed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<ForeignText>,
    },
}

impl Body {
    /// What stands in a log for event `seq`, of a kind that this version does not know or cannot read.
    #[must_use]
    pub fn unreadable(seq: u64, why: &dyn std::fmt::Display) -> Self {
        let text = format!("event {seq} of the log cannot be read by this version and is left out: {why}");
        Self::Caveat { flow: None, caveat: Caveat { kind: CaveatKind::EventsDropped, text: text.into() } }
    }
}

/// The beginning of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStart {
    /// Version of the event format.
    pub schema: ForeignText,
    /// Wall-clock time, RFC 3339.
    pub started_at: ForeignText,
    /// Where it runs.
    pub world: World,
    /// Version of linerate.
    pub linerate: ForeignText,
    /// The server as typed.
    pub target: ForeignText,
    /// What shall be measured.
    pub spec: TestSpec,
}

/// The place of a run among those that a coordinator starts together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupPlace {
    /// Name of the group, the same in all of its runs.
    pub group: ForeignText,
    /// Asked time from the start of the group to the start of this run.
    #[serde(rename = "start_after_ns")]
    pub start_after: Span,
    /// Whether it is there to load the network, and ends when the others have ended.
    pub background: bool,
    /// Its place in a plan that is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanPlace>,
}

/// When a run of a group began to measure: its first phase, at the host that is its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupStart {
    /// When it should, since the start of the run.
    #[serde(rename = "planned_ns")]
    pub planned: Timestamp,
    /// How much later the client's data threads ran and the server was told to start, by the client's clock.
    #[serde(rename = "late_ns")]
    pub late: Span,
    /// Largest error of the client's clock against the coordinator's; two runs of a group began together within the
    /// differences of their lateness and the sum of these.
    #[serde(rename = "clock_error_ns", default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<Span>,
}

/// Where a run takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum World {
    /// Real hosts.
    Hosts,
    /// Emulated networks on one machine.
    Lab,
    /// Virtual time.
    Twin,
}

impl World {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hosts => "hosts",
            Self::Lab => "lab",
            Self::Twin => "twin",
        }
    }
}

/// A flow as planned: one group of streams from host to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowPlan {
    /// Number of the flow in its run.
    pub flow: u16,
    /// Name, for people: the direction.
    pub name: ForeignText,
    /// The sending host.
    pub from: ForeignText,
    /// The receiving host.
    pub to: ForeignText,
    /// What carries the data.
    pub transport: Transport,
    /// Which way, seen from the client.
    pub direction: Direction,
    /// Number of streams.
    pub streams: u32,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything asked was measured.
    Completed,
    /// Somebody stopped it; the figures cover what was measured.
    Interrupted,
    /// It could not be finished; the figures cover what was measured.
    Failed,
}
