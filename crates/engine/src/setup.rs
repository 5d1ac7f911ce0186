//! What one side of a flow is asked to do.

use std::net::{TcpStream, UdpSocket};

use linerate_model::flow::StampLayout;
use linerate_model::flow::{BlockNote, EndMark, FlowTask, Payload, Transit};
use linerate_model::{Limit, Side, SocketKnobs, Transport};
use linerate_units::{Bitrate, Bytes, Span};

/// What one side of a flow is asked to do.
#[derive(Debug, Clone)]
pub struct FlowSetup {
    /// Number of the flow in its run.
    pub flow: u16,
    /// Whether this end writes or reads.
    pub side: Side,
    /// What carries the data.
    pub transport: Transport,
    /// When the sender stops; a time counts from its first write and includes the omitted part.
    pub limit: Limit,
    /// Length of the receiver's measured part after the omitted part; absent when the limit is a number of bytes.
    pub measured: Option<Span>,
    /// Time from the first byte that is left out of it.
    pub omit: Span,
    /// Rate that each stream offers; absent to saturate.
    pub offered: Option<Bitrate>,
    /// Rate to which the kernel paces each stream (SO_MAX_PACING_RATE).
    pub fq_rate: Option<Bitrate>,
    /// Rate at which the receiver reads each stream; absent to read at once.
    pub read_rate: Option<Bitrate>,
    /// Bytes handed to the kernel at once, or the payload of one datagram; absent to choose.
    pub length: Option<Bytes>,
    /// What is asked of the sockets. Whoever opened them has set it; here it is reported, and how bytes are moved is obeyed.
    pub socket: SocketKnobs,
    /// CPU on which every data thread is kept.
    pub affinity: Option<u32>,
    /// Interval of the samples.
    pub tick: Span,
    /// Whether nothing is sampled: no samples, no readings, no caveats that need them.
    pub unwatched: bool,
    /// Interface whose drops and errors are watched.
    pub interface: Option<String>,
    /// Where the header of a datagram has its fields.
    pub stamp: StampLayout,
    /// What tells the datagrams of this test from others.
    pub tag: [u8; 8],
    /// What each stream says.
    pub payload: Payload,
    /// Blocks or datagrams that leave together when a rate is offered; absent to choose.
    pub burst: Option<u32>,
    /// What is due within so long leaves together at its start when a rate is offered; absent for each at its own time.
    /// Of streams that share a thread over TCP it is not obeyed.
    pub pacing_tick: Option<Span>,
    /// What ends a receiver's stream of datagrams, beside an order.
    pub end_mark: EndMark,
    /// Where the blocks of a single stream over TCP tell of their connection.
    pub note: Option<BlockNote>,
    /// Whether it is counted how long the data were under way.
    pub transit: Transit,
    /// Whether several blocks over TCP may leave in one call.
    pub together: bool,
    /// A thread for each stream up to [`FlowSetup::MOST_THREADS`] streams, however few cores there are.
    pub one_pump_each: bool,
    /// The flow is a stand-in's: its sockets are duplicates of links that are used further. They are half-closed and
    /// reset only when [`crate::FlowHandle::stop`] says so, and a sender that has reached its limit waits for that
    /// order. Blocks and datagrams are counted whole: a limit in bytes is rounded up to them, a stop lets a sender over
    /// TCP finish the block it has begun, unless its peer takes none of it for 200 ms (streams that share a thread stop
    /// anywhere). What refuses single datagrams (ECONNREFUSED) is noted and ends nothing.
    pub lent: bool,
}

impl FlowSetup {
    /// Streams that have a thread each where that is asked for.
    pub const MAX_THREADS: usize = 128;

    /// Most bytes of a block or datagram. A flow that asks for more is refused, whoever asks.
    pub const MAX_BLOCK_BYTES: usize = 64 << 20;

    /// Most streams of a flow.
    pub const MAX_STREAMS: usize = 10_000;

    /// The limit of a sender that goes on until it is told.
    pub const UNTIL_STOPPED: Limit = Limit::TimeNs(Span::from_ns(u64::MAX));

    /// A saturating TCP flow for `measured` time with a sample every 100 ms; change the fields that differ.
    #[must_use]
    pub fn new(flow: u16, side: Side, measured: Span) -> Self {
        Self {
            flow,
            side,
            transport: Transport::Tcp,
            limit: Limit::TimeNs(measured),
            measured: Some(measured),
            omit: Span::ZERO,
            offered: None,
            fq_rate: None,
            read_rate: None,
            length: None,
            socket: SocketKnobs::default(),
            affinity: None,
            tick: Span::from_ms(100),
            unwatched: false,
            interface: None,
            stamp: StampLayout::NONE,
            tag: [0; 8],
            payload: Payload::default(),
            burst: None,
            pacing_tick: None,
            end_mark: EndMark::None,
            note: None,
            transit: Transit::Uncounted,
            together: false,
            one_pump_each: false,
            lent: false,
        }
    }

    /// What a stand-in asks for; its links stay its own. Samples are taken every 100 ms.
    #[must_use]
    pub fn of_task(task: &FlowTask) -> Self {
        let limit = match (task.bytes, task.time) {
            (Some(bytes), _) => Limit::Bytes(bytes),
            (None, Some(time)) => {
                Limit::TimeNs(Span::from_ns(task.omit.as_ns().saturating_add(time.as_ns())))
            }
            (None, None) => Self::UNTIL_STOPPED,
        };
        Self {
            transport: task.transport,
            limit,
            measured: task.time,
            omit: task.omit,
            offered: task.offered,
            fq_rate: task.fq_rate,
            length: Some(task.length.min(Bytes::new(Self::MAX_BLOCK_BYTES as u64))),
            socket: task.socket.clone(),
            affinity: task.affinity,
            stamp: task.stamp,
            payload: task.payload.clone(),
            burst: task.burst,
            pacing_tick: task.pacing_tick,
            end_mark: task.end_mark,
            note: task.note,
            transit: task.transit.clone(),
            together: task.together,
            one_pump_each: true,
            lent: true,
            ..Self::new(task.flow, task.side, Span::ZERO)
        }
    }

    /// The payload of one datagram, bytes.
    #[must_use]
    pub fn datagram_length(&self) -> usize {
        self.length.map_or(1448, |length| length.get().clamp(1, 65_507) as usize)
    }
}

/// The connected sockets of a flow; the index is the number of the stream.
#[derive(Debug)]
pub enum Sockets {
    /// TCP or MPTCP connections.
    Tcp(Vec<TcpStream>),
    /// UDP sockets with a peer.
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
