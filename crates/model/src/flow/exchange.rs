//! An exchange of alternating messages over one connection, used to measure round trips.

use linerate_units::{Bytes, Span};

use super::Link;

/// An exchange of alternating messages over one connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// The connection.
    pub link: Link,
    /// Bytes of each message this end sends; 0 to send nothing.
    pub send: Bytes,
    /// Bytes of each message the peer sends; 0 to receive nothing.
    pub receive: Bytes,
    /// Whether this end sends before it receives.
    pub sends_first: bool,
    /// Number of repeats.
    pub repeats: u32,
    /// Time limit for the whole exchange.
    pub timeout: Span,
    /// The first bytes of a message; the rest is 0.
    pub head: Vec<u8>,
    /// Write every message from a different part of a large pool, so no cache holds it.
    pub cold: bool,
    /// Report the time of every turn. This costs a clock reading in each turn.
    pub each_turn: bool,
}

/// The outcome of an exchange.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exchanged {
    /// From before the first call to after the last.
    pub elapsed: Span,
    /// The part of that time until the end of the first turn.
    pub first: Span,
    /// Bytes already waiting to be read at the end of the first turn, which belong to the following messages.
    pub waiting: Bytes,
    /// Of messages that arrived in pieces: the bytes after the first piece of each.
    pub arrived: Bytes,
    /// The time in which these bytes arrived.
    pub arriving: Span,
    /// Times of the single turns, if requested; at most 100,000.
    pub turns: Vec<Span>,
    /// The last message received.
    pub last: Vec<u8>,
}
