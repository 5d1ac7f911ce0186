//! Limits of results, and what is reported when they are crossed.

use linerate_units::{Bitrate, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::UnixTime;
use crate::ForeignText;

/// What results must keep to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AlarmLimits {
    /// The lowest goodput.
    #[serde(default, rename = "below_bps", skip_serializing_if = "Option::is_none")]
    pub below: Option<Bitrate>,
    /// The longest median latency under load.
    #[serde(default, rename = "latency_ns", skip_serializing_if = "Option::is_none")]
    pub latency: Option<Span>,
    /// The largest share of lost datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Ratio>,
    /// The smallest lasting change of the goodput that matters, as a share of its earlier median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Ratio>,
    /// Whether runs without a result are reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failure: bool,
}

impl AlarmLimits {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What an alarm is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AlarmKind {
    /// The goodput is below its limit.
    Goodput,
    /// The latency under load is above its limit.
    Latency,
    /// More datagrams than the limit are lost.
    Loss,
    /// The goodput has changed and stayed so.
    Change,
    /// Runs have no result.
    Failure,
}

impl AlarmKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 5] = [Self::Goodput, Self::Latency, Self::Loss, Self::Change, Self::Failure];

    /// Its name, in results and databases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Goodput => "goodput",
            Self::Latency => "latency",
            Self::Loss => "loss",
            Self::Change => "change",
            Self::Failure => "failure",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A limit that was crossed in two runs in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Alarm {
    /// When the first of the two runs ended.
    pub since: UnixTime,
    /// When it was raised: at the end of the second run.
    pub raised: UnixTime,
    /// When a run kept to the limit again.
    pub cleared: Option<UnixTime>,
    /// The schedule.
    pub schedule: String,
    /// Its mesh.
    pub mesh: Option<String>,
    /// The host that is the client.
    pub from: String,
    /// The host that is the server.
    pub to: String,
    /// What it is about.
    pub kind: AlarmKind,
    /// What was found, in words.
    pub text: ForeignText,
    /// The run that crossed the limit.
    pub first_run: String,
    /// The run that confirmed it; the same one if there was no second test.
    pub second_run: String,
}
