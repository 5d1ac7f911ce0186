//! A flow as the data plane sees it: what one side moves, how its datagrams and blocks are filled, and what its
//! streams count. Protocols request flows and engines execute them, without knowing each other.

mod chunks;
mod counts;
mod exchange;
mod frames;
mod stamp;
mod task;

pub use chunks::{ChunkError, ChunkReader};
pub use counts::{ConnectionCounts, FlowCounts, Noted, StreamCounts, TransitCounts};
pub use exchange::{Exchange, Exchanged};
pub use frames::{FrameKind, FramePart, FrameReader, PayloadFraming, WebSocketError, frame_header};
pub use stamp::{SeqField, StampLayout, TimeField, TimeForm};
pub use task::{
    BlockLength, BlockNote, Blocks, EndMark, FlowTask, Pattern, Payload, ReadBefore, Spacing, Stop, Transit,
};

/// A connection, a datagram socket or a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u32);

impl Link {
    /// First number of accepted links; a stand-in chooses smaller numbers for its own.
    pub const FIRST_ACCEPTED: Self = Self(1 << 16);
}

/// A system error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemError {
    /// Error number of the system; 0 if there is none.
    pub errno: i32,
    /// The error as text, as strerror(3) returns it for an error number.
    pub text: String,
}

/// Number of a flow within its run.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct FlowId(pub u16);

impl FlowId {
    /// The number after this one; 0 after the last.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl std::fmt::Display for FlowId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a run within its stand-in, which chooses one that is not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u32);

impl RunId {
    /// The number after this one; 0 after the last.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}
