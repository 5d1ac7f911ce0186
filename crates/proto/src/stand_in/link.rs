//! Links: connections, datagram sockets and listeners, by number.

use std::net::{IpAddr, SocketAddr};

use linerate_model::Transport;
use linerate_units::Span;

/// How a link is set up before it connects or listens.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkOptions {
    /// What carries the bytes.
    pub transport: Transport,
    /// Local address; absent for any.
    pub local: Option<IpAddr>,
    /// Local port of a link that connects; absent lets the system choose.
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
    /// Largest segment, bytes of payload.
    pub mss: Option<u32>,
    /// Congestion control by its kernel name.
    pub congestion: Option<String>,
    /// Type-of-service byte.
    pub tos: Option<u8>,
    /// Send small segments at once.
    pub no_delay: bool,
    /// Forbid fragmentation.
    pub dont_fragment: bool,
    /// Flow label of IPv6.
    pub flow_label: Option<u32>,
    /// Give up when bytes stay unacknowledged for so long (TCP_USER_TIMEOUT).
    pub user_timeout: Option<Span>,
    /// Give up connecting after so long; absent leaves it to the system.
    pub connect_timeout: Option<Span>,
    /// Connections that wait to be accepted; absent for many.
    pub backlog: Option<u32>,
    /// Send keep-alives after so long without a byte, so far apart, so many: the system's own where absent.
    pub keep_alive: Option<(Option<Span>, Option<Span>, Option<u32>)>,
}

/// What is known about a link that is open.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened {
    /// This end.
    pub local: SocketAddr,
    /// The other end; absent for a listener.
    pub remote: Option<SocketAddr>,
    /// Segment size that the kernel has found, bytes of payload.
    pub mss: Option<u32>,
    /// Time that the handshake took.
    pub handshake: Option<Span>,
    /// Send buffer as read back, bytes.
    pub snd_buf: u64,
    /// Receive buffer as read back, bytes.
    pub rcv_buf: u64,
    /// Congestion control in force; TCP only.
    pub congestion: Option<String>,
    /// Descriptor, which some tools show as the number of a stream; -1 for a port that others share.
    pub descriptor: i32,
}
