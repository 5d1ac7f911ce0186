//! Findings: the conclusions of the rules, together with their evidence.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::evidence_key::EvidenceKey;
use crate::foreign_text::ForeignText;
use crate::names::names;

/// What limited the flow. These names are part of the public result format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// A link on the path is full.
    Link,
    /// A shaper delays what exceeds its rate.
    Shaper,
    /// A policer drops what exceeds its rate.
    Policer,
    /// A shared queue overflows.
    Congestion,
    /// Bursts overrun a small queue.
    ShallowBuffer,
    /// Loss that is independent of the load.
    RandomLoss,
    /// Packets overtake each other.
    Reordering,
    /// Retransmission timeouts.
    Timeouts,
    /// The send buffer is too small for the path.
    SenderWindow,
    /// The receive window is too small for the path.
    ReceiverWindow,
    /// Nothing to send, or a slow reader.
    Application,
    /// A pacing rate was set.
    Pacing,
    /// One core of the sender is full.
    CpuSender,
    /// One core of the receiver is full.
    CpuReceiver,
    /// The sending host drops its own packets.
    LocalDrops,
    /// Slow start had not finished, or had ended early.
    SlowStart,
    /// The test is too short for a steady figure.
    TooShort,
    /// Packets above some size are lost.
    Mtu,
    /// Duplex mismatch or bad cable.
    Duplex,
    /// Flows share one member link of a LAG.
    Lag,
    /// Queues mark congestion.
    Ecn,
    /// Acknowledgements are delayed or lost on the return path.
    ReturnPath,
    /// The browser at one end does not move more.
    Browser,
    /// Other programs use a host's processors.
    HostBusy,
    /// The figure exceeds what the link can carry.
    Impossible,
    /// Clock or timer fault.
    Invalid,
    /// None of the rules explains the figure.
    Unknown,
}

impl Cause {
    /// The name used in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Shaper => "shaper",
            Self::Policer => "policer",
            Self::Congestion => "congestion",
            Self::ShallowBuffer => "shallow_buffer",
            Self::RandomLoss => "random_loss",
            Self::Reordering => "reordering",
            Self::Timeouts => "timeouts",
            Self::SenderWindow => "sender_window",
            Self::ReceiverWindow => "receiver_window",
            Self::Application => "application",
            Self::Pacing => "pacing",
            Self::CpuSender => "cpu_sender",
            Self::CpuReceiver => "cpu_receiver",
            Self::LocalDrops => "local_drops",
            Self::SlowStart => "slow_start",
            Self::TooShort => "too_short",
            Self::Mtu => "mtu",
            Self::Duplex => "duplex",
            Self::Lag => "lag",
            Self::Ecn => "ecn",
            Self::ReturnPath => "return_path",
            Self::Browser => "browser",
            Self::HostBusy => "host_busy",
            Self::Impossible => "impossible",
            Self::Invalid => "invalid",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

names! {
    /// The row of the decision table that a finding comes from. Several rows may name the same [`Cause`].
    pub enum Rule {
        /// The rate exceeds a physical or stated limit, or bytes are unaccounted for.
        Impossible = "V00",
        /// The steady part of the test is too short, or the mean not exact enough.
        TooShort = "V01",
        /// A link is full.
        LinkFull = "V02",
        /// The sending application offers no more.
        SlowSource = "V03",
        /// The receive window is too small for the path.
        ReceiverWindow = "V04",
        /// The receiving application reads too slowly.
        SlowReader = "V05",
        /// The send buffer is too small for the path.
        SendBuffer = "V06",
        /// The sender's processor is the limit.
        CpuSender = "V07",
        /// The receiver's processor is the limit.
        CpuReceiver = "V08",
        /// The pace that was asked for is the limit.
        Pacing = "V09",
        /// Slow start had not finished when the test ended.
        SlowStartUnfinished = "V10",
        /// The congestion window is still growing back after a loss.
        WindowRegrowth = "V11",
        /// HyStart ended slow start long before the path was full.
        PrematureSlowStartExit = "V12",
        /// A policer drops what exceeds its rate.
        Policer = "V13",
        /// A shaper, on the path or the sender's own queueing discipline, delays what exceeds its rate.
        Shaper = "V14",
        /// Packets above some size vanish, and nothing tells the sender.
        MtuBlackHole = "V15",
        /// Frames are damaged at an interface: duplex mismatch or bad cable.
        DamagedLink = "V16",
        /// Connections share the member links of a LAG unevenly.
        LagImbalance = "V17",
        /// A shared queue overflows.
        Congestion = "V18",
        /// Bursts overrun a small queue.
        ShallowBuffer = "V19",
        /// Packets are lost although no queue fills.
        RandomLoss = "V20",
        /// Reordering makes the sender back off needlessly.
        Reordering = "V21",
        /// Latency rises far under load.
        Bufferbloat = "V22",
        /// Retransmission timeouts.
        Timeouts = "V23",
        /// A queue marks packets with ECN, and the sender backs off.
        EcnMarks = "V24",
        /// The sending host drops its own packets.
        LocalDrops = "V25",
        /// The measurement itself was disturbed: a sampler was late, or a clock or a host stood still.
        Disturbed = "V26",
        /// Other programs use a host's processors.
        HostBusy = "V27",
        /// Acknowledgements are delayed or lost on the way back.
        ReturnPath = "V28",
        /// The browser at one end does not move more.
        Browser = "V29",
        /// No other rule explains the figure.
        Unexplained = "V99",
    }
}

impl Rule {
    /// The cause that a finding of this rule names.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Impossible => Cause::Impossible,
            Self::TooShort => Cause::TooShort,
            Self::LinkFull => Cause::Link,
            Self::SlowSource | Self::SlowReader => Cause::Application,
            Self::ReceiverWindow => Cause::ReceiverWindow,
            Self::SendBuffer => Cause::SenderWindow,
            Self::CpuSender => Cause::CpuSender,
            Self::CpuReceiver => Cause::CpuReceiver,
            Self::Pacing => Cause::Pacing,
            Self::SlowStartUnfinished | Self::WindowRegrowth | Self::PrematureSlowStartExit => {
                Cause::SlowStart
            }
            Self::Policer => Cause::Policer,
            Self::Shaper => Cause::Shaper,
            Self::MtuBlackHole => Cause::Mtu,
            Self::DamagedLink => Cause::Duplex,
            Self::LagImbalance => Cause::Lag,
            Self::Congestion | Self::Bufferbloat => Cause::Congestion,
            Self::ShallowBuffer => Cause::ShallowBuffer,
            Self::RandomLoss => Cause::RandomLoss,
            Self::Reordering => Cause::Reordering,
            Self::Timeouts => Cause::Timeouts,
            Self::EcnMarks => Cause::Ecn,
            Self::LocalDrops => Cause::LocalDrops,
            Self::Disturbed => Cause::Invalid,
            Self::HostBusy => Cause::HostBusy,
            Self::ReturnPath => Cause::ReturnPath,
            Self::Browser => Cause::Browser,
            Self::Unexplained | Self::Other(_) => Cause::Unknown,
        }
    }
}

/// How strongly the evidence supports the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The measured rate is within 10 % of the ceiling predicted by the cause, and the counters agree.
    Confirmed,
    /// Only one of the two is true.
    Probable,
    /// Neither is true: every ceiling is listed instead.
    Unexplained,
}

/// One conclusion about one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What limited the flow.
    pub cause: Cause,
    /// The row of the decision table, such as `V02`.
    pub rule: Rule,
    /// How strongly the evidence supports it.
    pub confidence: Confidence,
    /// The share of the measured time in which the cause was active, 0 to 1; absent if the evidence has no time
    /// axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_time: Option<f64>,
    /// One or two sentences for the user, with the relevant numbers.
    pub text: ForeignText,
    /// The numbers the rule evaluated; each name carries its unit (`_bps`, `_bytes`, `_ns`) or is a plain
    /// ratio.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::evidence_key::map_schema"))]
    pub evidence: BTreeMap<EvidenceKey, f64>,
    /// What to change; absent when there is nothing to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<ForeignText>,
}
