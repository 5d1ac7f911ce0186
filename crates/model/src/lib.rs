//! The data types of a measurement.
//!
//! Two types connect the layers: a [`TestSpec`] is passed down, [`Event`]s are passed up. Both are plain
//! immutable data and the only two versioned formats. A setting is one documented field of the specification, a
//! metric one entry of the [`CATALOGUE`]; names, help texts, JSON keys and schemas derive from them.
//!
//! This crate does no I/O, starts no threads and formats nothing for display.

#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, reason = "counts come from peers and files and may be absurd")
)]

mod accounting_step;
pub mod calendar;
mod calibration;
mod caveat;
mod ceiling;
mod event;
mod evidence_key;
mod finding;
mod fingerprint;
pub mod flow;
mod flow_outcome;
mod follow_up;
pub mod foreign_text;
mod host;
mod host_and_port;
mod host_check;
pub mod import;
mod kernel_counts;
mod method;
pub mod metrics;
mod names;
mod output_options;
mod plan_run;
mod port;
mod record;
mod responsiveness;
mod responsiveness_options;
mod run_head;
mod run_labels;
mod server_options;
mod settings;
mod size;
pub mod sniff;
mod spec;
mod stream_progress;
mod tally;
mod tls_options;
mod uncertainty;
pub mod upgrade;

pub use accounting_step::{AccountingPoint, AccountingStep};
pub use calibration::{CALIBRATION_SCHEMA, Calibration, CopyRate, LoopbackRate, PacingError, WakeUp};
pub use caveat::{Caveat, CaveatKind};
pub use ceiling::{Ceiling, CeilingShare, Limit};
pub use event::{Body, EVENT_SCHEMA, Event, FlowPlan, GroupPlace, GroupStart, Outcome, RunStart, World};
pub use evidence_key::EvidenceKey;
pub use finding::{Cause, Confidence, Finding, Rule};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use flow_outcome::FlowOutcome;
pub use follow_up::{FollowUp, Investigation};
pub use foreign_text::{ForeignLines, ForeignText};
pub use host::{HostInfo, LinkInfo, LinkKind};
pub use host_and_port::{join_host_and_port, split_host_and_port};
pub use host_check::{CheckSection, CheckStatus, HostCheck, HostCheckup, JudgedPath, KernelFeature};
pub use kernel_counts::{IdleCounts, InterfaceCounts, KernelCounts, PassedCounts, QdiscCounts, SocketCounts};
pub use method::{MethodCell, MethodColumn, MethodRow, MethodTable};
pub use metrics::{CATALOGUE, MetricValue, Readings, Sample, Side};
pub use names::UnknownName;
pub use output_options::{
    CompareOptions, LiveOutput, PlanOutputOptions, ShowOptions, SweepOutputOptions, TestOutputOptions,
};
pub use plan_run::{
    PlanAxis, PlanFile, PlanFlow, PlanHost, PlanJudgement, PlanPlace, PlanPoint, PlanRecord, PlanStart,
    PlanValue, PointSelectorError, PointSummary, SearchEnd, SearchStep, SummaryInterval, TrialEnd, TrialRun,
};
pub use port::{PortRecord, PortSample};
pub use record::{FlowRecord, RunRecord};
pub use responsiveness::{ResponsivenessConfidence, ResponsivenessReport};
pub use responsiveness_options::ResponsivenessOptions;
pub use run_head::{FlowHead, RunHead};
pub use run_labels::{LabelError, LabelOptions, RunLabels};
pub use server_options::{ArchiveLimitOptions, ArchiveOptions, ListenOptions, Policy, ServerLimitOptions};
pub use settings::{Effective, SideSettings, TestFile};
pub use size::{SizeCurve, SizeFit, SizePoint, TimeInterval};
pub use spec::{
    CheckedSpec, Direction, Dscp, DscpError, HostKnobs, MessageMode, SendMethod, SizeList, SizeListError,
    SocketKnobs, SpecError, StopAfter, Sweep, TestSpec, Traffic, Transactions, Transport, TrialSequence,
    Variation, Workload,
};
pub use stream_progress::{MAX_LISTED_STREAMS, StreamCounting, StreamProgress};
pub use tally::{
    BrowserNote, ByteAccounting, DelayBucket, Digest, LatencyInterval, LatencyReport, LossBursts, ProbePhase,
    ProbeTransport, Steady, StreamTally, Tally, TransactionTally, TransactionTimes, UdpTally,
};
pub use tls_options::{ServerTlsOptions, TlsOptions};
pub use uncertainty::{Contribution, Uncertainty, UncertaintySource};
