//! What each stream of a flow has moved, while the flow runs.

use linerate_units::{Bytes, Timestamp};
use serde::{Deserialize, Serialize};

/// With more streams than this, a flow does not list them one by one.
pub const MAX_LISTED_STREAMS: usize = 128;

/// Which bytes of a stream are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StreamCounting {
    /// Those that a receiver has read.
    Received,
    /// Those that the peer has acknowledged to a sender of TCP.
    Acknowledged,
    /// Those that a sender has written to its socket: datagrams, and where nothing is known of acknowledgements.
    Sent,
}

impl StreamCounting {
    /// As in `bit rate of each stream, received`.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Acknowledged => "acknowledged to the sender",
            Self::Sent => "sent",
        }
    }
}

/// The counts of all streams of a flow at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamProgress {
    /// The moment, from the start of the run.
    pub at: Timestamp,
    /// Which bytes are counted.
    pub counted: StreamCounting,
    /// Bytes of each stream since the start of the flow, in the order of the streams.
    pub bytes: Vec<Bytes>,
}
