//! How datagrams to a multicast group leave. Only servers receive them.

use std::net::IpAddr;

use crate::SockError;
use crate::handle::AsFd;
use crate::portable::error_codes::unsupported;
use crate::portable::sockopt::with;

/// Sends to groups with this time to live (absent: 1, which no router forwards), through the interface of the
/// socket's address.
///
/// # Errors
/// The system refuses it.
pub(crate) fn send_through(
    socket: &impl AsFd,
    version: IpAddr,
    interface: u32,
    ttl: Option<u8>,
) -> Result<(), SockError> {
    let ttl = u32::from(ttl.unwrap_or(1));
    with("send to a multicast group", socket, |socket| {
        if version.is_ipv6() {
            socket.set_multicast_if_v6(interface)?;
            socket.set_multicast_hops_v6(ttl)
        } else {
            socket.set_multicast_ttl_v4(ttl)
        }
    })
}

/// Not available here.
///
/// # Errors
/// Always.
pub(crate) fn join(
    _socket: &impl AsFd,
    _group: IpAddr,
    _source: IpAddr,
    _interface: u32,
) -> Result<(), SockError> {
    Err(unsupported("join the multicast group"))
}
