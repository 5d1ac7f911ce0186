//! A flow as the data plane sees it: what one side moves, how its datagrams and blocks are filled, and what its
//! streams count. Protocols request flows and engines execute them, without knowing each other.

mod counts;
mod exchange;
mod stamp;
mod task;

pub use counts::{FlowCounts, Noted, StreamCounts, TransitCounts};
pub use exchange::{Exchange, Exchanged};
pub use stamp::{SeqField, StampLayout, TimeField, TimeForm};
pub use task::{BlockNote, Blocks, EndMark, FlowId, FlowTask, Pattern, Payload, Stop, Transit};

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

/// Number of a run within its stand-in. The stand-in chooses it; it must not be in use.
pub type RunId = u32;
