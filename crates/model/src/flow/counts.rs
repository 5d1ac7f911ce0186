//! The counts of a flow's streams.

use linerate_units::{Span, Timestamp};

use super::{FlowId, SystemError};
use crate::Tally;

/// The counts of a flow, so far or at its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowCounts {
    /// The flow.
    pub flow: FlowId,
    /// When the counts were read.
    pub at: Timestamp,
    /// When the first byte was read or the first write began; absent until then.
    pub first_at: Option<Timestamp>,
    /// When the last byte was read or written.
    pub last_at: Option<Timestamp>,
    /// One entry for each stream.
    pub streams: Vec<StreamCounts>,
    /// For each stream the datagram that ended it (see [`EndMark`](super::EndMark)); filled when the flow has
    /// ended.
    pub marks: Vec<Option<Vec<u8>>>,
    /// The first error (peer gone, write failed), in the system's words. Over TCP it ended a stream. Datagrams
    /// refused by the peer's host (ECONNREFUSED) end no stream.
    pub trouble: Option<SystemError>,
    /// The engine's own tally, once the flow has ended.
    pub tally: Option<Box<Tally>>,
}

impl FlowCounts {
    /// The sum over all streams, at most the largest number.
    #[must_use]
    pub fn total(&self, of: fn(&StreamCounts) -> u64) -> u64 {
        self.streams.iter().fold(0, |sum, stream| sum.saturating_add(of(stream)))
    }
}

/// The counts of one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamCounts {
    /// Application bytes read or written; datagrams without headers, duplicates included.
    pub bytes: u64,
    /// Number of system calls that moved these bytes.
    pub calls: u64,
    /// Datagrams sent, or received (duplicates included).
    pub packets: u64,
    /// Highest sequence number seen, counted from 1: at least this many datagrams were sent.
    pub highest: u64,
    /// Datagrams missing below the highest number.
    pub lost: u64,
    /// Datagrams that arrived after a later one.
    pub out_of_order: u64,
    /// Datagrams that arrived more than once.
    pub duplicates: u64,
    /// Interarrival jitter (RFC 3550 §6.4.1).
    pub jitter: Span,
    /// Segments retransmitted since the flow began; absent at a receiver and if the kernel does not report
    /// them. What is written last is retransmitted after the flow: the count grows until the link is closed.
    pub retransmits: Option<u64>,
    /// Whether the peer's kernel has acknowledged everything that was written; absent at a receiver and if the
    /// kernel does not report it.
    pub all_acknowledged: Option<bool>,
    /// Congestion window, bytes.
    pub snd_cwnd: Option<u64>,
    /// The peer's receive window, bytes.
    pub snd_wnd: Option<u64>,
    /// Smoothed round-trip time.
    pub rtt: Option<Span>,
    /// Its variance.
    pub rttvar: Option<Span>,
    /// Path MTU, bytes.
    pub pmtu: Option<u32>,
    /// What else the kernel has counted since the connection was opened; absent if it does not report it.
    pub connection: Option<ConnectionCounts>,
    /// Times that the kernel saw segments reordered (tcpi_reord_seen).
    pub reorder: Option<u32>,
    /// Transit times of the datagrams or blocks; absent if they are not counted or none has arrived.
    pub transit: Option<TransitCounts>,
    /// Sizes of the differences between arrival gaps and departure gaps (see [`Spacing`](super::Spacing)); absent if
    /// they are not counted or nothing has arrived.
    pub spacing: Option<TransitCounts>,
    /// Whether the stream has ended.
    pub ended: bool,
    /// The sender's notes about the connection (see [`BlockNote`](super::BlockNote)); absent before the first
    /// block, and if there are none.
    pub noted: Option<Noted>,
}

/// What a kernel has counted on a connection since it was opened (TCP_INFO).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_retransmitted: u64,
    /// Bytes that the peer has acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Shortest round-trip time.
    pub min_rtt: Span,
    /// Time in which there was something to send.
    pub busy: Span,
    /// The part of it in which the peer's receive window was closed.
    pub rwnd_limited: Span,
    /// The part of it in which the send buffer was full.
    pub sndbuf_limited: Span,
}

/// Transit times of datagrams or blocks: arrival time by the receiver's wall clock minus the send time. They
/// include the offset between the two clocks and can therefore be negative.
///
/// Times are stored as deviations from the first, so sums of squares stay exact whatever the offset is.
///
/// # Units
/// nanoseconds; the sum of squares, square nanoseconds
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TransitCounts {
    /// Number of datagrams or blocks.
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
    /// The same since the previous reading; older values if none has arrived since then.
    pub fresh_range_ns: (i64, i64),
}

/// The notes of a stream, as read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// From its first block.
    pub first: [u8; 8],
    /// From its last complete block.
    pub last: [u8; 8],
}
