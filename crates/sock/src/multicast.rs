//! Datagrams to several hosts at once: the socket that sends them, and those of receivers, which have joined the group
//! for this one source (RFC 4607).

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::open::{Bound, bound, connect_datagram, datagram_socket};
use crate::system::multicast;
use crate::{SockError, SocketOptions, sockopt};

/// Where datagrams to a group come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulticastPath {
    /// The group.
    pub group: IpAddr,
    /// The sender's address.
    pub source: IpAddr,
    /// Index of the interface through which this host sends, or receives.
    pub interface: u32,
}

impl MulticastPath {
    /// An address on this path. Addresses of one link need its interface.
    fn address(&self, ip: IpAddr, port: u16) -> SocketAddr {
        match ip {
            IpAddr::V4(_) => SocketAddr::new(ip, port),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, self.interface).into(),
        }
    }

    /// A socket that sends to the group, from a port that nobody else has, to the same port. The kernel chooses it if
    /// absent. Sockets that are opened later with `reuse_port` may share it. The time to live is that of datagrams to
    /// groups; absent, it is 1.
    ///
    /// # Errors
    /// The source is no address of this host, the port is in use, or the host has no route to the group.
    pub fn sender(
        &self,
        port: Option<u16>,
        ttl: Option<u8>,
        requested: &SocketOptions,
    ) -> Result<Bound, SockError> {
        let requested = SocketOptions { reuse_port: false, ttl: None, ..requested.clone() };
        let local = self.address(self.source, port.unwrap_or(0));
        let socket = datagram_socket(local, &requested)?;
        // Only now, so that the port was free: another sender on it would send the same datagrams for all receivers.
        sockopt::set_reuse_address(&socket, true)?;
        multicast::send_through(&socket, self.group, self.interface, ttl)?;
        let own = socket.local_addr().ok().and_then(|address| address.as_socket()).unwrap_or(local);
        connect_datagram(&socket, self.address(self.group, own.port()))?;
        bound(socket, local, &requested)
    }

    /// A socket that receives what the source sends from `port` to the group and the same port, and nothing else.
    ///
    /// # Errors
    /// Another program uses the port, or the host is in as many groups as it may be.
    pub fn receiver(&self, port: u16, requested: &SocketOptions) -> Result<Bound, SockError> {
        let requested = SocketOptions { reuse_port: true, ..requested.clone() };
        let local = self.address(self.group, port);
        let socket = datagram_socket(local, &requested)?;
        // First, so that nothing of others arrives between.
        connect_datagram(&socket, self.address(self.source, port))?;
        multicast::join(&socket, self.group, self.source, self.interface)?;
        bound(socket, local, &requested)
    }
}
