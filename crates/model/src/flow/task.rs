//! What one side of a flow has to move.

use std::path::PathBuf;

use super::FlowId;
use linerate_units::{Bitrate, Bytes, Span};

use super::{Link, PayloadFraming, RunId, StampLayout};
use crate::{Direction, Side, SocketKnobs, Transport};

/// What the engine has to move.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowTask {
    /// Its number.
    pub flow: FlowId,
    /// The run it belongs to.
    pub run: RunId,
    /// Whether this end writes or reads.
    pub side: Side,
    /// Direction as seen from the client.
    pub direction: Direction,
    /// What carries it.
    pub transport: Transport,
    /// One open link for each stream, in the order of the streams.
    ///
    /// A link can be in two flows, one of each side: both directions over one connection.
    pub links: Vec<Link>,
    /// Bytes per write, or payload of one datagram.
    pub length: Bytes,
    /// What each stream sends.
    pub payload: Payload,
    /// How the bytes of a TCP connection carry the payload.
    pub framing: PayloadFraming,
    /// The positions of number and time in a datagram.
    pub stamp: StampLayout,
    /// The sender stops after this many bytes over all streams, in whole blocks of `length`; absent until it is
    /// set.
    pub bytes: Option<Bytes>,
    /// The sender stops after the omitted part plus this time. The receiver's measured part has this length and
    /// starts after the omitted part. Absent until it is set. A stopped flow keeps its links until it receives
    /// a stop order.
    pub time: Option<Span>,
    /// Part at the start that is left out of the archived result.
    pub omit: Span,
    /// Rate each stream offers; absent to saturate.
    pub offered: Option<Bitrate>,
    /// Blocks sent together when a rate is offered; absent for one.
    pub burst: Option<u32>,
    /// With an offered rate: everything due within this interval is sent together at its start. Absent if each
    /// block is sent at its own time.
    pub pacing_tick: Option<Span>,
    /// Rate to which the kernel paces each stream.
    pub fq_rate: Option<Bitrate>,
    /// How the sender passes bytes to the kernel, and whether the receiver copies them.
    pub socket: SocketKnobs,
    /// CPU the data threads are pinned to.
    pub affinity: Option<u32>,
    /// What ends a receiver's stream, apart from a stop order and the end of the connection.
    pub end_mark: EndMark,
    /// What was read of each stream of datagrams before this flow; empty if nothing was.
    pub read_before: Vec<ReadBefore>,
    /// Where the blocks of a single TCP stream carry notes about their connection; absent if they carry none.
    pub note: Option<BlockNote>,
    /// Whether transit times are counted.
    pub transit: Transit,
    /// Whether a TCP sender may pass several blocks to the kernel in one call if they are accepted at once. A
    /// tool that reports its number of calls makes one call per block.
    pub together: bool,
    /// The file that each stream of a TCP sender sends up to its end instead of the payload, or to which each stream
    /// of a TCP receiver writes what it receives, replacing what was there.
    pub file: Option<PathBuf>,
}

impl FlowTask {
    /// An endless, saturating TCP flow in blocks of `length`, without links.
    #[must_use]
    pub fn new(flow: FlowId, run: RunId, side: Side, direction: Direction, length: Bytes) -> Self {
        Self {
            flow,
            run,
            side,
            direction,
            transport: Transport::Tcp,
            links: Vec::new(),
            length,
            payload: Payload::default(),
            framing: PayloadFraming::None,
            stamp: StampLayout::NONE,
            bytes: None,
            time: None,
            omit: Span::ZERO,
            offered: None,
            burst: None,
            pacing_tick: None,
            fq_rate: None,
            socket: SocketKnobs::default(),
            affinity: None,
            end_mark: EndMark::None,
            read_before: Vec::new(),
            note: None,
            transit: Transit::Uncounted,
            together: false,
            file: None,
        }
    }
}

/// Datagrams of a stream that were read before its flow began: by whoever accepted it. They are not counted in the flow,
/// and their numbers are not missing in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadBefore {
    /// How many.
    pub datagrams: u64,
    /// One more than the highest of their numbers, which begin at 0.
    pub next: u64,
}

/// Where each block of a stream carries the kernel's counts for the sender's connection (nuttcp).
///
/// Two words of 4 bytes in the sender's byte order, written little-endian: segments retransmitted since the
/// flow began, and the congestion window in KiB. In the first block the second word specifies what the first
/// one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockNote {
    /// Bytes of a block before the note.
    pub at: usize,
    /// The second word of the first block.
    pub kind: u32,
}

/// Whether a receiver counts transit times of datagrams or blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Transit {
    /// It does not, and TCP blocks carry no stamp.
    #[default]
    Uncounted,
    /// For datagrams: from the wall-clock time in their stamp.
    Datagrams,
    /// For datagrams: like [`Transit::Datagrams`] if their stamp has a time, and also how much the time between
    /// two arrivals differs from that between two departures.
    Spaced(Spacing),
    /// For TCP blocks: a sender writes the task's stamp into each block, and a receiver reads it. A flow with
    /// more streams than the engine has threads does neither.
    Blocks(Blocks),
}

/// How the datagrams of a stream leave their sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spacing {
    /// Time between two of them.
    pub gap: Span,
    /// Whether only datagrams count that follow each other in the sender's numbers.
    pub neighbours: bool,
}

/// How the end of a block is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockLength {
    /// Its stamp contains its length, stamp included: 4 bytes, big-endian, at this offset.
    At(usize),
    /// All blocks have this length, bytes.
    Fixed(u64),
}

impl Default for BlockLength {
    fn default() -> Self {
        Self::At(0)
    }
}

/// What a receiver needs to know about stamped TCP blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The length of a block.
    pub length: BlockLength,
    /// Bytes before the first block.
    pub skipped: u64,
    /// For each stream the data that arrived before the flow began.
    pub early: Vec<Vec<u8>>,
}

/// What a stream sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// Bytes at the start of every block or datagram, cut if it is too short; a stamp overwrites them.
    pub head: Vec<u8>,
    /// The pattern of the remaining bytes.
    pub pattern: Pattern,
    /// Minimum length of the first block or datagram, for a `head` that would not fit otherwise.
    pub first_length: Option<Bytes>,
}

/// The pattern that fills a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Incompressible bytes.
    #[default]
    Random,
    /// The ASCII digits 0 to 9, repeated (iperf).
    Digits,
    /// The printable ASCII characters 0x20 to 0x7e, repeated (ttcp).
    Printable,
    /// One byte, repeated.
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
    /// The n-th datagram of at most this size; such datagrams never count as data.
    Short {
        /// Maximum size of an end mark.
        bytes: usize,
        /// Which of them ends the stream, from 1.
        nth: u32,
    },
    /// This many bytes of a TCP stream that has a thread to itself. What follows stays in the socket.
    Length(u64),
}

/// How a flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The sender finishes the block it is writing and stops; the receiver stops reading. The links stay open.
    AtOnce,
    /// The sender stops and closes its side of the connections; the receiver reads until the peer has closed
    /// its side.
    Regularly,
    /// The connections are reset.
    Abort,
}
