//! A link of a host in virtual time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use linerate_units::Span;

use crate::stand_in::{FlowId, Link, LinkOptions, Opened};

/// A link of a host.
pub(super) struct VirtualLink {
    pub(super) udp: bool,
    pub(super) listens: bool,
    pub(super) local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) peer_link: Option<Link>,
    /// Flows that use the link: one, or one per side.
    pub(super) flows: Vec<FlowId>,
    /// What has arrived while no flow was reading.
    pub(super) held: Vec<(SocketAddr, Vec<u8>)>,
    pub(super) peer_closed: bool,
    /// Whether what arrives waits for a flow.
    pub(super) holds: bool,
    pub(super) snd_buf: u64,
    pub(super) rcv_buf: u64,
    /// Bytes that have arrived at the peer.
    pub(super) acknowledged: u64,
}

impl VirtualLink {
    pub(super) const fn new(udp: bool, local: SocketAddr, peer: Option<SocketAddr>) -> Self {
        Self {
            udp,
            listens: false,
            local,
            peer,
            peer_link: None,
            flows: Vec::new(),
            held: Vec::new(),
            peer_closed: false,
            holds: false,
            snd_buf: 16_384,
            rcv_buf: 131_072,
            acknowledged: 0,
        }
    }

    /// Sets requested buffers, of which Linux reports twice the size.
    pub(super) fn tune(&mut self, options: &LinkOptions) {
        self.snd_buf = options.snd_buf.map_or(self.snd_buf, |bytes| 2 * bytes);
        self.rcv_buf = options.rcv_buf.map_or(self.rcv_buf, |bytes| 2 * bytes);
    }

    pub(super) fn opened(&self) -> Opened {
        Opened {
            mss: Some(1448),
            handshake: Some(Span::from_ns(37_000)),
            snd_buf: self.snd_buf,
            rcv_buf: self.rcv_buf,
            congestion: Some("cubic".to_owned()),
            descriptor: 3,
            ..Opened::new(self.local, self.peer)
        }
    }

    /// Whether what arrives now is kept, because a flow uses the link or will.
    pub(super) fn is_held(&self) -> bool {
        self.holds || !self.flows.is_empty()
    }
}

pub(super) fn address(host: usize, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + host as u8)), port)
}

/// The host with this address.
pub(super) fn host_of(address: SocketAddr) -> usize {
    match address.ip() {
        IpAddr::V4(address) => usize::from(address.octets()[3]) - 1,
        IpAddr::V6(_) => panic!("no virtual host has the address {address}"),
    }
}

/// A link of a host as tests make it that have no virtual hosts.
pub(crate) fn opened(local: impl Into<SocketAddr>, remote: impl Into<SocketAddr>) -> Opened {
    VirtualLink::new(false, local.into(), Some(remote.into())).opened()
}
