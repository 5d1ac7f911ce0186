//! Findings: the conclusions of the rules, together with their evidence.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;

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
    Trunk,
    /// Queues mark congestion.
    Ecn,
    /// Acknowledgements are delayed or lost on the return path.
    ReturnPath,
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
            Self::Trunk => "trunk",
            Self::Ecn => "ecn",
            Self::ReturnPath => "return_path",
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
    pub rule: ForeignText,
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
    pub evidence: BTreeMap<ForeignText, f64>,
    /// What to change; absent when there is nothing to change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<ForeignText>,
}
