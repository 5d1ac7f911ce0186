//! Links: connections, datagram sockets and listeners, by number.

use std::net::{IpAddr, SocketAddr};

use linerate_model::Transport;
use linerate_units::Span;

/// Options of a link, set before it connects or listens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkOptions {
    /// The transport protocol.
    pub transport: Transport,
    /// Local address; absent for any.
    pub local: Option<IpAddr>,
    /// Name of this host whose address is the local one, if `local` is absent. It is resolved when the link opens.
    pub local_name: Option<String>,
    /// Local port of a link that connects; absent to let the kernel choose.
    pub local_port: Option<u16>,
    /// Interface (SO_BINDTODEVICE).
    pub device: Option<String>,
    /// Use only IPv4.
    pub ipv4: bool,
    /// Use only IPv6.
    pub ipv6: bool,
    /// Send buffer, bytes as given to SO_SNDBUF.
    pub snd_buf: Option<u64>,
    /// Receive buffer, bytes as given to SO_RCVBUF.
    pub rcv_buf: Option<u64>,
    /// Maximum segment size, bytes of payload.
    pub mss: Option<u32>,
    /// Congestion control algorithm, by its kernel name.
    pub congestion: Option<String>,
    /// Type-of-service byte.
    pub tos: Option<u8>,
    /// Time to live, or hop limit, of the packets.
    pub ttl: Option<u8>,
    /// Disable Nagle's algorithm (TCP_NODELAY).
    pub no_delay: bool,
    /// Most bytes in the socket that were not sent (TCP_NOTSENT_LOWAT).
    pub notsent_lowat: Option<u64>,
    /// Forbid fragmentation.
    pub dont_fragment: bool,
    /// Send only to hosts of the own networks, not through routers (SO_DONTROUTE).
    pub dont_route: bool,
    /// Flow label of IPv6.
    pub flow_label: Option<u32>,
    /// Timeout for unacknowledged data (TCP_USER_TIMEOUT).
    pub user_timeout: Option<Span>,
    /// Timeout for connecting; absent for the kernel's.
    pub connect_timeout: Option<Span>,
    /// Backlog of a listener; absent for a large one.
    pub backlog: Option<u32>,
    /// Keep-alive: idle time before the first probe, interval, and number of probes; absent values are the
    /// kernel's.
    pub keep_alive: Option<(Option<Span>, Option<Span>, Option<u32>)>,
}

impl LinkOptions {
    /// The same link at this local address, or at the address of this name of the host.
    #[must_use]
    pub fn at(self, local: Option<&str>) -> Self {
        let address = local.and_then(|local| local.parse().ok());
        let local_name = local.filter(|_| address.is_none()).map(str::to_owned);
        Self { local: address, local_name, ..self }
    }
}

/// The properties of an open link.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// Local address.
    pub local: SocketAddr,
    /// Remote address; absent for a listener.
    pub remote: Option<SocketAddr>,
    /// Segment size that the kernel reports, bytes of payload.
    pub mss: Option<u32>,
    /// Duration of the handshake.
    pub handshake: Option<Span>,
    /// Send buffer as read back, bytes.
    pub snd_buf: u64,
    /// Receive buffer as read back, bytes.
    pub rcv_buf: u64,
    /// Congestion control algorithm in use; TCP only.
    pub congestion: Option<String>,
    /// Round-trip time that the kernel measured in the handshake; TCP only.
    pub rtt: Option<Span>,
    /// Send and receive buffer as read back before it connected, bytes: the kernel enlarges the send buffer of a
    /// new connection. Absent for links that do not connect.
    pub unconnected_buffers: Option<(u64, u64)>,
    /// File descriptor, which some tools print as the number of a stream; -1 for a port that is shared with
    /// other protocols.
    pub descriptor: i32,
    /// Whether a server's client has encrypted it (TLS 1.3).
    pub encrypted: bool,
}

impl Opened {
    /// A link of which only the addresses are known: without a descriptor, with buffers of 0 bytes.
    #[must_use]
    pub const fn new(local: SocketAddr, remote: Option<SocketAddr>) -> Self {
        Self {
            local,
            remote,
            mss: None,
            handshake: None,
            snd_buf: 0,
            rcv_buf: 0,
            congestion: None,
            rtt: None,
            unconnected_buffers: None,
            descriptor: -1,
            encrypted: false,
        }
    }
}
