//! Answers datagrams from the address that they were sent to: a host with several addresses has no other way to choose
//! it, and a peer with a connected socket drops answers from another one.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::{SockError, SocketOptions, open};

pub use crate::system::reply::note_destinations;

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
