//! The event log: the primary data of a run. All other data derive from it and can be rebuilt.

mod v1;

use crate::BrowserNote;
use crate::flow::FlowId;
use linerate_units::{Bytes, Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::accounting_step::AccountingStep;
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
use crate::responsiveness::ResponsivenessReport;
use crate::run_labels::RunLabels;
use crate::settings::SideSettings;
use crate::size::{SizeCurve, SizePoint};
use crate::spec::{Direction, TestSpec, Transport};
use crate::stream_progress::StreamCounting;
use crate::tally::{ByteAccounting, LatencyReport, Steady, Tally};
use crate::uncertainty::Uncertainty;

/// Version of the event format; a reader accepts every version up to its own.
pub const EVENT_SCHEMA: &str = "linerate.event/2";

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The run.
    pub run: ForeignText,
    /// The host that reports it: 0 is the client, 1 the server.
    pub host: u16,
    /// Number of the event in its run, from 0 without gaps.
    pub seq: u64,
    /// The time, on the client's clock.
    #[serde(rename = "at_ns")]
    pub at: Timestamp,
    /// The event itself.
    pub body: Body,
}

impl Event {
    /// Reads a line of a log, written by this version or an earlier one.
    ///
    /// # Errors
    /// When it is no event that this version knows.
    pub fn read(line: &str) -> serde_json::Result<Self> {
        let mut event: serde_json::Value = serde_json::from_str(line)?;
        if let Some(body) = event.get_mut("body") {
            v1::upgrade_body(body);
        }
        serde_json::from_value(event)
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Body {
    /// The run began.
    RunStarted(Box<RunStart>),
    /// A host is known; `host` of the event is its number.
    Host {
        /// The host.
        info: HostInfo,
    },
    /// The server is busy: the client waits in its queue.
    Queued {
        /// Place in the queue; 1 is next.
        position: u32,
        /// Longest expected wait.
        #[serde(rename = "wait_ns")]
        wait: Span,
    },
    /// A flow will be measured.
    FlowPlanned(FlowPlan),
    /// The sockets of one side are open.
    FlowOpened {
        /// The flow.
        flow: FlowId,
        /// Which end.
        side: Side,
        /// The settings as the kernel applied them.
        settings: SideSettings,
    },
    /// The receiver's count while the flow runs.
    Progress {
        /// The flow.
        flow: FlowId,
        /// Bytes read since the start of the flow.
        bytes: Bytes,
        /// Time since the receiver's first read.
        #[serde(rename = "elapsed_ns")]
        elapsed: Span,
        /// The sender's smoothed round-trip time.
        #[serde(rename = "srtt_ns", default, skip_serializing_if = "Option::is_none")]
        srtt: Option<Span>,
        /// Segments that the sender has retransmitted so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retransmits: Option<u64>,
    },
    /// What each stream of a flow has moved so far; only of flows with 2 to 128 streams, from the client's end.
    Streams {
        /// The flow.
        flow: FlowId,
        /// Which bytes are counted.
        counted: StreamCounting,
        /// Bytes of each stream since the start of the flow, in the order of the streams.
        bytes: Vec<Bytes>,
    },
    /// One interval of one side.
    Sample {
        /// The flow.
        flow: FlowId,
        /// What was read.
        sample: Sample,
    },
    /// One interval of one port of an emulated network.
    Port {
        /// The flows that ran at that time.
        flows: Vec<FlowId>,
        /// The port: its own node and the node it sends to, as `a>s`.
        port: ForeignText,
        /// What was counted.
        sample: PortSample,
    },
    /// One size of a sweep over message sizes is measured.
    Size {
        /// The flow.
        flow: FlowId,
        /// What was measured.
        point: SizePoint,
    },
    /// The sweep over message sizes is over.
    Curve {
        /// The flow.
        flow: FlowId,
        /// The summary of its points.
        curve: SizeCurve,
    },
    /// Latency probes of one phase are evaluated.
    Latency {
        /// The flow during which they ran; absent for idle latency.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<FlowId>,
        /// Their results.
        report: LatencyReport,
    },
    /// The responsiveness under load was measured.
    Responsiveness(Box<ResponsivenessReport>),
    /// One side has closed its sockets.
    FlowEnded {
        /// The flow.
        flow: FlowId,
        /// Which end.
        side: Side,
        /// What it counted.
        tally: Tally,
    },
    /// One end was a browser.
    Browser {
        /// The flow.
        flow: FlowId,
        /// What its page said.
        note: BrowserNote,
    },
    /// Both sides' counts are compared.
    BytesAccounted {
        /// The flow.
        flow: FlowId,
        /// Where the bytes went.
        byte_accounting: ByteAccounting,
    },
    /// Counts on the way to the wire and back are compared; a later event replaces an earlier one.
    Reconciled {
        /// The flow.
        flow: FlowId,
        /// From the sender's socket to the receiver's, then the way back.
        steps: Vec<AccountingStep>,
    },
    /// The steady part was found.
    Steady {
        /// The flow.
        flow: FlowId,
        /// The steady part.
        steady: Steady,
    },
    /// How well the rate is known.
    Uncertainty {
        /// The flow.
        flow: FlowId,
        /// The uncertainty and its contributions.
        uncertainty: Uncertainty,
    },
    /// All ceilings, smallest first.
    Ceilings {
        /// The flow.
        flow: FlowId,
        /// Every known limit.
        ceilings: Vec<Ceiling>,
        /// The limit to compare the result with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ceiling: Option<Ceiling>,
    },
    /// A follow-up answered a question about a flow.
    FollowUp {
        /// The flow.
        flow: FlowId,
        /// The question and the answer.
        follow_up: FollowUp,
    },
    /// What limited the flow. A later event replaces an earlier one.
    Verdict {
        /// The flow.
        flow: FlowId,
        /// The first rule whose conditions all hold.
        verdict: Finding,
        /// The others.
        also: Vec<Finding>,
    },
    /// The name and notes that the user gave the run. A later event replaces an earlier one.
    Labelled(RunLabels),
    /// The run is one of several that a coordinator starts together.
    Grouped(GroupPlace),
    /// A run of a group began to measure.
    Started(GroupStart),
    /// A plan began. The log is the plan's own; the runs of its trials have their own logs.
    PlanStarted(Box<PlanStart>),
    /// An interrupted plan was resumed.
    PlanResumed,
    /// A trial of a plan is over.
    TrialEnded(TrialEnd),
    /// A search of a plan is over at a point.
    SearchEnded(SearchEnd),
    /// The summary of a point's trials.
    PointSummed(PointSummary),
    /// A table of the plan's results in the terms of its method.
    MethodTable(MethodTable),
    /// An assertion of a plan was judged.
    Judged(PlanJudgement),
    /// A caveat for a result.
    Caveat {
        /// The flow; absent when it concerns the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<FlowId>,
        /// The caveat.
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
    /// Reads the body of an event of this version or an earlier one.
    ///
    /// # Errors
    /// When it is of no kind that this version knows, or a field of another type.
    pub fn read(mut body: serde_json::Value) -> serde_json::Result<Self> {
        v1::upgrade_body(&mut body);
        serde_json::from_value(body)
    }

    /// The body for event `seq` if its kind is unknown to this version or cannot be read.
    #[must_use]
    pub fn unreadable(seq: u64, why: &dyn std::fmt::Display) -> Self {
        let text = format!("event {seq} of the log cannot be read by this version and is skipped: {why}");
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
    /// The server, as entered.
    pub target: ForeignText,
    /// What to measure.
    pub spec: TestSpec,
}

/// The place of a run among those a coordinator starts together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupPlace {
    /// Name of the group, the same in all of its runs.
    pub group: ForeignText,
    /// Requested delay from the start of the group to the start of this run.
    #[serde(rename = "start_after_ns")]
    pub start_after: Span,
    /// Whether it only loads the network, and ends when the others have ended.
    pub cross_traffic: bool,
    /// Its place in the execution of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanPlace>,
}

/// When a run of a group began to measure: its first phase, at its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupStart {
    /// Planned time, from the start of the run.
    #[serde(rename = "planned_ns")]
    pub planned: Timestamp,
    /// Delay until the client's data threads ran and the start message was sent to the server, by the client's clock.
    #[serde(rename = "start_error_ns")]
    pub start_error: Span,
    /// Largest error of the client's clock relative to the coordinator's. The difference between the start
    /// times of two runs of a group is at most the difference of their delays plus the sum of these errors.
    #[serde(rename = "clock_error_ns", default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<Span>,
}

/// Where a run takes place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum World {
    /// Real hosts.
    #[cfg_attr(
        feature = "clap",
        value(help = "On real hosts, each with `linerate serve --agent-token-file`")
    )]
    Hosts,
    /// An emulated network on one machine.
    #[cfg_attr(feature = "clap", value(help = "In an emulated network on this machine"))]
    Lab,
    /// Virtual time.
    #[cfg_attr(feature = "clap", value(skip))]
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
    pub flow: FlowId,
    /// Name for display: the direction.
    pub name: ForeignText,
    /// The sending host.
    pub from: ForeignText,
    /// The receiving host.
    pub to: ForeignText,
    /// What carries the data.
    pub transport: Transport,
    /// Direction as seen from the client.
    pub direction: Direction,
    /// Number of streams.
    pub streams: u32,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything requested was measured.
    Completed,
    /// The user stopped it; the figures cover what was measured.
    Interrupted,
    /// It could not be finished; the figures cover what was measured.
    Failed,
}

impl Outcome {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}
