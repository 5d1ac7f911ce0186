//! What one side of a flow is asked to do.

use std::net::{TcpStream, UdpSocket};

use linerate_model::{Limit, Side, SocketKnobs, Transport};
use linerate_proto::StampLayout;
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
    /// Interface whose drops and errors are watched.
    pub interface: Option<String>,
    /// Where the header of a datagram has its fields.
    pub stamp: StampLayout,
    /// What tells the datagrams of this test from others.
    pub tag: [u8; 8],
}

impl FlowSetup {
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
            interface: None,
            stamp: linerate_proto::native::STAMP,
            tag: [0; 8],
        }
    }

    /// The payload of one datagram, bytes.
    #[must_use]
    pub fn datagram_length(&self) -> usize {
        self.length.map_or(1448, |length| length.get().min(65_507) as usize)
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
