//! What the streams of a flow have counted.

use linerate_units::{Span, Timestamp};

use super::{FlowId, Reason};
use crate::Tally;

/// What a flow has counted so far, or in the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowCounts {
    /// The flow.
    pub flow: FlowId,
    /// When the counts were read.
    pub at: Timestamp,
    /// When the first byte was read or the first write began; absent before it.
    pub first_at: Option<Timestamp>,
    /// When the last byte was read or written.
    pub last_at: Option<Timestamp>,
    /// One for each stream.
    pub streams: Vec<StreamCounts>,
    /// Of each stream the datagram that ended it (see [`EndMark`]); filled once the flow has ended.
    pub marks: Vec<Option<Vec<u8>>>,
    /// What first went wrong (peer gone, write failed), in the words of the system. A stream over TCP has ended by it;
    /// datagrams that the peer's host refused (ECONNREFUSED) end none.
    pub trouble: Option<Reason>,
    /// The engine's own account, once the flow has ended.
    pub tally: Option<Box<Tally>>,
}

/// What one stream has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamCounts {
    /// Application bytes read or written; datagrams without their headers, doubled ones included.
    pub bytes: u64,
    /// System calls that moved them.
    pub calls: u64,
    /// Datagrams sent, or received (doubled ones included).
    pub packets: u64,
    /// Highest number seen, counted from 1; the number of datagrams that have been sent at least.
    pub highest: u64,
    /// Datagrams missing below the highest.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Interarrival jitter (RFC 3550 §6.4.1).
    pub jitter: Span,
    /// Segments sent again since the flow began; absent at a receiver and where a kernel does not say.
    pub retransmits: Option<u64>,
    /// Congestion window, bytes.
    pub snd_cwnd: Option<u64>,
    /// The peer's window, bytes.
    pub snd_wnd: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Its variance.
    pub rttvar: Option<Span>,
    /// Path MTU, bytes.
    pub pmtu: Option<u32>,
    /// Reordering that the kernel has met, segments.
    pub reorder: Option<u32>,
    /// How long its datagrams or blocks were under way; absent where that is not asked for or none has come.
    pub transit: Option<TransitCounts>,
    /// The stream has ended.
    pub ended: bool,
    /// What its sender told of the connection (see [`BlockNote`]); absent before the first block, and elsewhere.
    pub noted: Option<Noted>,
}

/// How long datagrams or blocks were under way: their arrival by the receiver's wall clock less the sender's time. The
/// offset between both clocks is in it, so that it may be negative.
///
/// Times are told as deviations from that of the first, which keeps sums of squares exact whatever the offset.
///
/// # Units
/// nanoseconds; the sum of squares, square nanoseconds
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TransitCounts {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time of the first.
    pub first_ns: i64,
    /// Sum of the deviations.
    pub sum_ns: i64,
    /// Sum of their squares.
    pub squares_ns2: f64,
    /// The shortest and the longest time.
    pub range_ns: (i64, i64),
    /// The same since the counts were read before; of an earlier time where none has come since.
    pub fresh_range_ns: (i64, i64),
}

/// The notes of a stream as they were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// In its first block.
    pub first: [u8; 8],
    /// In its last whole one.
    pub last: [u8; 8],
}
