//! A flow as the data plane has it: what one side of it is asked to move, how its datagrams and blocks are filled, and what
//! its streams count. Protocols ask for it and engines carry it out; neither needs to know the other.

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
    /// Links that were accepted have numbers from here up; a stand-in chooses its own below.
    pub const FIRST_ACCEPTED: Self = Self(1 << 16);
}

/// What the system said when it could not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Error number of the system; 0 when it is none of its.
    pub errno: i32,
    /// In words, as strerror(3) says it where there is a number.
    pub text: String,
}

/// Number of a run within its stand-in, chosen by it, not in use.
pub type RunId = u32;
