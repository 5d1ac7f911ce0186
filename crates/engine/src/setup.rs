//! Task of one side of a flow.

use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_model::flow::StampLayout;
use linerate_model::flow::{
    BlockNote, EndMark, FlowId, FlowTask, Payload, PayloadFraming, ReadBefore, Transit,
};
use linerate_model::{SendMethod, Side, SocketKnobs, StopAfter, TestFile, Transport};
use linerate_sock::departure::DepartureClock;
use linerate_units::{Bitrate, Bytes, Span};

use crate::byte_account::ByteAccount;
use crate::channel::SecureChannel;
use crate::transactions::TransactionSetup;

/// Task of one side of a flow.
#[derive(Debug, Clone)]
pub struct FlowSetup {
    /// Number of the flow in its run.
    pub flow: FlowId,
    /// Whether this end writes or reads.
    pub side: Side,
    /// Transport protocol of the data.
    pub transport: Transport,
    /// When the sender stops. A time counts from its first write and includes the omitted part.
    pub stop_after: StopAfter,
    /// Duration of the receiver's measured part after the omitted part; absent for a limit in bytes.
    pub measured: Option<Span>,
    /// Time from the first byte that is not measured.
    pub omit: Span,
    /// Rate that each stream offers; absent to saturate.
    pub offered: Option<Bitrate>,
    /// Kernel pacing rate of each stream (SO_MAX_PACING_RATE).
    pub fq_rate: Option<Bitrate>,
    /// Rate at which the receiver reads each stream; absent to read at once.
    pub read_rate: Option<Bitrate>,
    /// Bytes per call, or the payload of one datagram; absent for the default.
    pub length: Option<Bytes>,
    /// Requested socket options. The opener of the sockets has set them; the engine reports them and applies
    /// zero-copy and discarding reads.
    pub socket: SocketKnobs,
    /// The fastest way of sending on this host, if it is known; otherwise a sender that may choose compares them.
    pub fastest_method: Option<SendMethod>,
    /// CPU to which every data thread is pinned.
    pub affinity: Option<u32>,
    /// Sampling interval.
    pub tick: Span,
    /// Turns sampling off: no samples, no readings, no caveats that need them.
    pub no_sampling: bool,
    /// Interface whose drops and errors are sampled.
    pub interface: Option<String>,
    /// Layout of the header fields in a datagram.
    pub stamp: StampLayout,
    /// Distinguishes the datagrams of this test from others.
    pub tag: [u8; 8],
    /// Payload contents.
    pub payload: Payload,
    /// How the bytes of a TCP connection carry the payload. Only for streams with a thread each.
    pub framing: PayloadFraming,
    /// The encryption of each stream's TCP connection; empty if there is none. Only for streams with a thread each.
    pub channels: Vec<Arc<dyn SecureChannel>>,
    /// Blocks or datagrams that leave together at an offered rate; absent for the default.
    pub burst: Option<u32>,
    /// At an offered rate, everything due within this time leaves together at its start; absent for individual
    /// deadlines.
    pub pacing_tick: Option<Span>,
    /// Whether datagrams with a rate carry the times at which they are to depart (SO_TXTIME); absent if the program keeps
    /// those times.
    pub txtime: Option<Txtime>,
    /// What ends a receiver's stream, besides an order and the end of the connection.
    pub end_mark: EndMark,
    /// What was read of each stream of datagrams before this flow; empty if nothing was.
    pub read_before: Vec<ReadBefore>,
    /// Where the blocks of a single TCP stream carry a note about their connection.
    pub note: Option<BlockNote>,
    /// Whether and how transit times are measured.
    pub transit: Transit,
    /// Whether one call may pass several TCP blocks.
    pub together: bool,
    /// The file that each TCP stream sends instead of the payload, or to which it writes what it receives, replacing what
    /// was there. A [borrowed](Self::borrowed) stream ends at the end of the file; another one begins it again.
    pub file: Option<FlowFile>,
    /// Requests and responses instead of a stream of data; a request counts as a block.
    pub transactions: Option<TransactionSetup>,
    /// A thread for each stream, up to [`FlowSetup::MAX_THREADS`] streams, regardless of the number of cores.
    pub one_pump_each: bool,
    /// Marks the flow of a stand-in: its sockets are duplicates of links that are used further. They are
    /// half-closed or reset only by [`crate::FlowHandle::stop`], and a sender that has reached its limit waits
    /// for that order. Blocks and datagrams are counted whole: a limit in bytes is rounded up to them. After a
    /// stop, a TCP sender finishes the block that it has begun unless its peer takes none of it for 200 ms
    /// (streams that share a thread stop anywhere). A refused datagram (ECONNREFUSED) is recorded and ends
    /// nothing.
    pub borrowed: bool,
    /// Where the flow adds what it moved when it ends; absent if nobody counts it.
    pub account: Option<Arc<ByteAccount>>,
}

impl FlowSetup {
    /// Most streams with a thread each if [`FlowSetup::one_pump_each`] is set.
    pub const MAX_THREADS: usize = 128;

    /// Most bytes of a block or datagram. A longer one is refused, also when a peer requests it.
    pub const MAX_BLOCK_BYTES: usize = 64 << 20;

    /// Most streams of a flow.
    pub const MAX_STREAMS: usize = 10_000;

    /// Limit of a sender that writes until it is stopped.
    pub const UNTIL_STOPPED: StopAfter = StopAfter::TimeNs(Span::from_ns(u64::MAX));

    /// A saturating TCP flow of `measured` time with a sample every 100 ms; callers change the fields that
    /// differ.
    #[must_use]
    pub fn new(flow: FlowId, side: Side, measured: Span) -> Self {
        Self {
            flow,
            side,
            transport: Transport::Tcp,
            stop_after: StopAfter::TimeNs(measured),
            measured: Some(measured),
            omit: Span::ZERO,
            offered: None,
            fq_rate: None,
            read_rate: None,
            length: None,
            socket: SocketKnobs::default(),
            fastest_method: None,
            affinity: None,
            tick: Span::from_ms(100),
            no_sampling: false,
            interface: None,
            stamp: StampLayout::NONE,
            tag: [0; 8],
            payload: Payload::default(),
            framing: PayloadFraming::None,
            channels: Vec::new(),
            burst: None,
            pacing_tick: None,
            txtime: None,
            end_mark: EndMark::None,
            read_before: Vec::new(),
            note: None,
            transit: Transit::Uncounted,
            together: false,
            file: None,
            transactions: None,
            one_pump_each: false,
            borrowed: false,
            account: None,
        }
    }

    /// The task of a stand-in, on borrowed links. Samples are taken every 100 ms.
    #[must_use]
    pub fn of_task(task: &FlowTask) -> Self {
        let stop_after = match (task.bytes, task.time) {
            (Some(bytes), _) => StopAfter::Bytes(bytes),
            (None, Some(time)) => {
                StopAfter::TimeNs(Span::from_ns(task.omit.as_ns().saturating_add(time.as_ns())))
            }
            (None, None) => Self::UNTIL_STOPPED,
        };
        Self {
            transport: task.transport,
            stop_after,
            measured: task.time,
            omit: task.omit,
            offered: task.offered,
            fq_rate: task.fq_rate,
            length: Some(task.length.min(Bytes::new(Self::MAX_BLOCK_BYTES as u64))),
            socket: task.socket.clone(),
            affinity: task.affinity,
            stamp: task.stamp,
            payload: task.payload.clone(),
            framing: task.framing,
            burst: task.burst,
            pacing_tick: task.pacing_tick,
            end_mark: task.end_mark,
            read_before: task.read_before.clone(),
            note: task.note,
            transit: task.transit.clone(),
            together: task.together,
            file: task.file.as_deref().map(FlowFile::of),
            one_pump_each: true,
            borrowed: true,
            ..Self::new(task.flow, task.side, Span::ZERO)
        }
    }

    /// Payload of one datagram, bytes.
    #[must_use]
    pub fn datagram_length(&self) -> usize {
        self.length.map_or(1448, |length| length.get().clamp(1, 65_507) as usize)
    }
}

/// Which clock the departure times of datagrams are given by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Txtime {
    /// That of the queueing disciplines of the interface; if they ignore departure times, the program keeps the times.
    ByDiscipline,
    /// This one, whatever the disciplines are.
    OnClock(DepartureClock),
}

/// A file that a flow sends or writes.
#[derive(Debug, Clone)]
pub struct FlowFile {
    /// Where it is.
    pub path: PathBuf,
    /// What the settings of this side say of it.
    pub about: TestFile,
}

impl FlowFile {
    /// A file of whose disk nothing is known.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self { path: path.to_owned(), about: TestFile { name: name.into(), alone_bps: None } }
    }
}

/// The connected sockets of a flow, indexed by stream.
#[derive(Debug)]
pub enum Sockets {
    /// TCP or MPTCP connections.
    Tcp(Vec<TcpStream>),
    /// Connected UDP sockets.
    Udp(Vec<UdpSocket>),
}

impl Sockets {
    /// Number of streams.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Tcp(streams) => streams.len(),
            Self::Udp(sockets) => sockets.len(),
        }
    }

    /// Whether there is no stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
