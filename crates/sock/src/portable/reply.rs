//! The source address of single datagrams, which is not chosen on these systems: their clients have one peer for each
//! socket.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::error_codes::unsupported;
use crate::SockError;

/// Adds to every received datagram the address of this host that it was sent to.
///
/// # Errors
/// Always: it is not implemented for this system.
pub fn note_destinations(_socket: &UdpSocket) -> Result<(), SockError> {
    Err(unsupported("set IP_PKTINFO"))
}

/// Sends nothing.
pub(crate) fn send_from(
    _socket: &UdpSocket,
    _from: IpAddr,
    _to: SocketAddr,
    _bytes: &[u8],
) -> Result<(), SockError> {
    Err(unsupported("send a datagram from an address"))
}
