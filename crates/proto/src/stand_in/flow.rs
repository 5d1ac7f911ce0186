//! Flows: what the engine is asked to move and what it counts.

use linerate_model::{Direction, Side, Tally};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::link::{Link, Reason, Transport};
use super::run::RunId;
use crate::StampLayout;

/// Number of a flow, chosen by the stand-in, not in use.
pub type FlowId = u16;

/// What the engine is asked to move.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowTask {
    /// Its number.
    pub flow: FlowId,
    /// The run that it belongs to.
    pub run: RunId,
    /// Whether this end writes or reads.
    pub side: Side,
    /// Which way, seen from the client.
    pub direction: Direction,
    /// What carries it.
    pub transport: Transport,
    /// One open link for each stream, in the order of the streams.
    ///
    /// A link may be in two flows, one of each side: both ways over one connection.
    pub links: Vec<Link>,
    /// Bytes handed to the kernel at once, or payload of one datagram.
    pub length: Bytes,
    /// What each stream says.
    pub payload: Payload,
    /// Where datagrams carry number and time.
    pub stamp: StampLayout,
    /// The sender stops after this many bytes over all streams, in whole blocks of `length`; absent until it is told.
    pub bytes: Option<Bytes>,
    /// The sender stops after the omitted part and this time, and the receiver's measured part has this length after
    /// the omitted one; absent until it is told. What has stopped keeps its links until it is told how to end.
    pub time: Option<Span>,
    /// Left out of the archived result at the start.
    pub omit: Span,
    /// Rate that each stream offers; absent to saturate.
    pub offered: Option<Bitrate>,
    /// Blocks that leave together when a rate is offered; absent for one.
    pub burst: Option<u32>,
    /// What is due within so long leaves together at its start when a rate is offered; absent for each block at its own
    /// time.
    pub pacing_tick: Option<Span>,
    /// Rate to which the kernel paces each stream.
    pub fq_rate: Option<Bitrate>,
    /// How the sender gives bytes to the kernel, and whether the receiver copies them.
    pub socket: linerate_model::SocketKnobs,
    /// CPU on which the data threads are kept.
    pub affinity: Option<u32>,
    /// What ends the stream of a receiver, beside being told and the end of a connection.
    pub end_mark: EndMark,
    /// Where the blocks of a single stream over TCP tell of their connection; absent where they do not.
    pub note: Option<BlockNote>,
    /// Whether it is counted how long the data were under way.
    pub transit: Transit,
    /// Whether a sender over TCP may hand over several blocks in one call where they are taken at once. A tool that tells
    /// its calls makes one for each block.
    pub together: bool,
}

/// Where each block of a stream tells what its sender's kernel counts of the connection (nuttcp).
///
/// Two words of 4 bytes in the sender's own byte order, written little-endian: segments sent again since the flow began,
/// and the congestion window in KiB. In the first block the second word says what the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockNote {
    /// Bytes of a block before it.
    pub at: usize,
    /// The second word of the first block.
    pub kind: u32,
}

/// The notes of a stream as they were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// In its first block.
    pub first: [u8; 8],
    /// In its last whole one.
    pub last: [u8; 8],
}

/// Whether a receiver counts how long datagrams or blocks were under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Transit {
    /// It does not, and blocks over TCP carry no stamp.
    #[default]
    Uncounted,
    /// Datagrams: since the wall-clock time in their stamp.
    Datagrams,
    /// Blocks over TCP: a sender writes the stamp of the task into each of them, and a receiver reads it. A flow with
    /// more streams than the engine has threads for does neither.
    Blocks(Blocks),
}

/// What a receiver must know of stamped blocks over TCP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// Where a block says its own length, stamp included: 4 bytes, big-endian.
    pub length_at: usize,
    /// Bytes in front of the first block.
    pub skipped: u64,
    /// Of each stream what came before the flow began.
    pub early: Vec<Vec<u8>>,
}

/// What a stream says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// Bytes at the start of every block or datagram, as far as it is long enough; a stamp is written over them.
    pub head: Vec<u8>,
    /// What follows.
    pub pattern: Pattern,
    /// The first block or datagram is at least so long, when `head` would not fit.
    pub first_length: Option<Bytes>,
}

/// What a block is filled with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Bytes that cannot be compressed.
    #[default]
    Random,
    /// The ASCII digits 0 to 9, again and again (iperf).
    Digits,
    /// The printable ASCII characters 0x20 to 0x7e, again and again (ttcp).
    Printable,
    /// One byte, again and again.
    Byte(u8),
}

/// What ends a receiver's stream of datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EndMark {
    /// Nothing.
    #[default]
    None,
    /// A negative sequence number.
    Negative,
    /// The n-th datagram of at most so many bytes; these never count as data.
    Short {
        /// Most bytes of a mark.
        bytes: usize,
        /// Which of them ends the stream, from 1.
        nth: u32,
    },
}

/// How a flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The sender finishes the block it is writing and stops; the receiver stops reading. The links stay open.
    AtOnce,
    /// The sender stops and closes its side of the connections; the receiver reads until the peer has closed its.
    Regularly,
    /// Connections are reset.
    Abort,
}

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

/// CPU time since the driver began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// When it was read, from the driver's start.
    pub elapsed: Span,
    /// Of this process, in user mode.
    pub user: Span,
    /// Of this process, in the kernel.
    pub system: Span,
    /// What else this process has used; absent where nobody counts it.
    pub usage: Option<Usage>,
}

/// What this process has used of the machine since it began, beside CPU time.
///
/// # Source
/// getrusage(2)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Most memory that was resident, KiB.
    pub max_resident_kib: u64,
    /// Page faults that needed no reading.
    pub minor_faults: u64,
    /// Page faults that needed reading.
    pub major_faults: u64,
    /// Switches to other threads because this one waited.
    pub voluntary_switches: u64,
    /// Switches to other threads because their turn came.
    pub involuntary_switches: u64,
}

impl Cpu {
    /// What was used after `before`; of memory the most until now. Absent where nobody counts it.
    #[must_use]
    pub fn usage_since(&self, before: &Self) -> Option<Usage> {
        let (now, then) = self.usage.zip(before.usage)?;
        Some(Usage {
            max_resident_kib: now.max_resident_kib,
            minor_faults: now.minor_faults.saturating_sub(then.minor_faults),
            major_faults: now.major_faults.saturating_sub(then.major_faults),
            voluntary_switches: now.voluntary_switches.saturating_sub(then.voluntary_switches),
            involuntary_switches: now.involuntary_switches.saturating_sub(then.involuntary_switches),
        })
    }
}

impl Usage {
    /// The end of the line that ttcp and its descendants print of getrusage(2) on Linux, where shared text and unshared
    /// data (`0i+0d`) are always 0, and memory is halved, as if pages had 512 bytes.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        format!(
            "0i+0d {}maxrss {}+{}pf {}+{}csw",
            self.max_resident_kib / 2,
            self.major_faults,
            self.minor_faults,
            self.voluntary_switches,
            self.involuntary_switches
        )
    }
}

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
