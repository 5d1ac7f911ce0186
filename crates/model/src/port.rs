//! The counts of an emulated network's ports.

use crate::flow::FlowId;
use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::metrics::Readings;

/// The counts of one port in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortSample {
    /// Start of the interval, from the start of the run.
    pub start_ns: Timestamp,
    /// End of the interval.
    pub end_ns: Timestamp,
    /// Whether the interval is not completely inside the measured part of the load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// The counts.
    pub readings: Readings,
}

impl PortSample {
    /// Length of the interval.
    #[must_use]
    pub fn span(&self) -> Span {
        self.end_ns - self.start_ns
    }
}

/// The counts of one port during the flows of one phase, folded from events.
#[derive(Debug, Clone, PartialEq)]
pub struct PortRecord {
    /// The port: its own node and the node it sends to, as `a>s`.
    pub port: ForeignText,
    /// Numbers of the flows that ran at that time; more than one if they ran simultaneously.
    pub flows: Vec<FlowId>,
    /// Its intervals, in order.
    pub samples: Vec<PortSample>,
}
