//! What the ports of an emulated network counted.

use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use crate::foreign_text::ForeignText;
use crate::metrics::Readings;

/// What one port counted in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortSample {
    /// Start of the interval, from the start of the run.
    pub start_ns: Timestamp,
    /// End of the interval.
    pub end_ns: Timestamp,
    /// Whether the interval is not wholly inside the measured part of the load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// What was counted.
    pub readings: Readings,
}

impl PortSample {
    /// Length of the interval.
    #[must_use]
    pub fn span(&self) -> Span {
        self.end_ns - self.start_ns
    }
}

/// What one port counted beside the flows of one phase, folded from events.
#[derive(Debug, Clone, PartialEq)]
pub struct PortRecord {
    /// The port: the node that it belongs to and the node that it sends to, as `a>s`.
    pub port: ForeignText,
    /// Numbers of the flows that ran meanwhile; more than one when they ran at the same time.
    pub flows: Vec<u16>,
    /// Its intervals, in order.
    pub samples: Vec<PortSample>,
}
