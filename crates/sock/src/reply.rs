//! Answers datagrams from the address that they were sent to: a host with several addresses has no other way to choose
//! it, and a peer with a connected socket drops answers from another one.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::{SockError, SocketOptions, open};

pub use crate::system::reply::note_destinations;

/// The address of this host at which a datagram arrived, if an answer can come from it; groups cannot send, and an address
/// of one link needs its interface, which the kernel finds.
pub(crate) fn answering(address: IpAddr) -> Option<IpAddr> {
    let (own, group) = match address.to_canonical() {
        IpAddr::V4(v4) => (v4.is_unspecified(), v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => (v6.is_unspecified() || v6.is_unicast_link_local(), v6.is_multicast()),
    };
    (!own && !group).then_some(address)
}

/// Sends a datagram from this address of the host; from the one that the kernel chooses if there is none, or if datagrams
/// cannot come from it any more.
///
/// # Errors
/// As [`crate::stream::send`].
pub fn send_from(
    socket: &UdpSocket,
    from: Option<IpAddr>,
    to: SocketAddr,
    bytes: &[u8],
) -> Result<(), SockError> {
    if from.is_some_and(|from| crate::system::reply::send_from(socket, from, to, bytes).is_ok()) {
        return Ok(());
    }
    socket.send_to(bytes, to).map(|_| ()).map_err(|source| SockError::new("send a datagram", source).at(to))
}

/// A socket on the port of `local`, for this peer only, at the address where the peer's datagrams arrive; at `local` if that
/// is not known, or not there any more.
///
/// # Errors
/// As [`open::udp_connected_on_same_port`].
pub fn connected_at(
    destination: Option<IpAddr>,
    local: SocketAddr,
    peer: SocketAddr,
    requested: &SocketOptions,
) -> Result<open::Bound, SockError> {
    let same_family = |ip: IpAddr| match (ip, local) {
        (IpAddr::V4(v4), SocketAddr::V6(_)) => IpAddr::V6(v4.to_ipv6_mapped()),
        _ => ip,
    };
    let own = destination.map(|ip| SocketAddr::new(same_family(ip), local.port()));
    let at_own = own.and_then(|own| open::udp_connected_on_same_port(own, peer, requested).ok());
    at_own.map_or_else(|| open::udp_connected_on_same_port(local, peer, requested), Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_from_addresses_that_can_send() {
        let own = |text: &str| answering(text.parse().unwrap());
        for address in ["192.0.2.7", "127.0.0.1", "::1", "2001:db8::7", "::ffff:192.0.2.7"] {
            assert_eq!(own(address), address.parse().ok(), "{address}");
        }
        for other in
            ["0.0.0.0", "::", "224.0.0.5", "255.255.255.255", "ff02::1", "fe80::1", "::ffff:239.1.1.1"]
        {
            assert_eq!(own(other), None, "{other}");
        }
    }
}
