//! A link of a host in virtual time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use linerate_units::Span;

use crate::stand_in::{FlowId, Link, Opened};

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
        }
    }
}

pub(super) fn address(host: usize, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1 + host as u8)), port)
}

pub(super) fn opened(local: SocketAddr, remote: Option<SocketAddr>) -> Opened {
    Opened {
        local,
        remote,
        mss: Some(1448),
        handshake: Some(Span::from_ns(37_000)),
        snd_buf: 16_384,
        rcv_buf: 131_072,
        congestion: Some("cubic".to_owned()),
        descriptor: 3,
    }
}
