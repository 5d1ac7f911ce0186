//! Messages in turn over one connection, as round trips are measured with them.

use linerate_units::{Bytes, Span};

use super::Link;

/// Messages in turn over one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The connection.
    pub link: Link,
    /// Bytes of each message of ours; 0 to send nothing.
    pub send: Bytes,
    /// Bytes of each message of the peer; 0 to receive nothing.
    pub receive: Bytes,
    /// Whether this end sends before it receives.
    pub sends_first: bool,
    /// How many times.
    pub repeats: u32,
    /// Time after which the whole exchange is given up.
    pub patience: Span,
    /// What a message says: its first bytes, the rest is 0.
    pub head: Vec<u8>,
    /// Write every message from another place of a large pool, so that no cache holds it.
    pub cold: bool,
    /// Tell the time of every turn. It costs a look at the clock in each.
    pub each_turn: bool,
}

/// How an exchange went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchanged {
    /// From before the first call to after the last.
    pub elapsed: Span,
    /// Of that, the time until the first turn was over.
    pub first: Span,
    /// Bytes that waited to be read when the first turn was over: of the messages that follow.
    pub waiting: Bytes,
    /// Of messages that arrived in pieces, the bytes after the first piece of each.
    pub arrived: Bytes,
    /// The time in which those arrived.
    pub arriving: Span,
    /// Times of the single turns, when they were wanted and at most 100,000.
    pub turns: Vec<Span>,
    /// The last message that was received.
    pub last: Vec<u8>,
}
