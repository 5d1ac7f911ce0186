//! What one side of a flow is asked to move.

use linerate_units::{Bitrate, Bytes, Span};

use super::{Link, RunId, StampLayout};
use crate::{Direction, Side, SocketKnobs, Transport};

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
    pub socket: SocketKnobs,
    /// CPU on which the data threads are kept.
    pub affinity: Option<u32>,
    /// What ends a receiver's stream, apart from a stop order and the end of the connection.
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
