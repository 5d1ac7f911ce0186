//! The source address of single datagrams.

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use socket2::{MsgHdr, SockAddr, SockRef};

use super::call::set;
use super::cmsg::{self, ControlMessage};
use crate::SockError;

/// Adds to every received datagram the address of this host that it was sent to.
///
/// # Errors
/// The descriptor is no datagram socket.
pub fn note_destinations(socket: &UdpSocket) -> Result<(), SockError> {
    let local = socket.local_addr().map_err(|source| SockError::new("read the local address", source))?;
    if local.is_ipv4() {
        set("set IP_PKTINFO", socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)
    } else {
        // Also for datagrams over IPv4, with mapped addresses.
        set("set IPV6_RECVPKTINFO", socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)
    }
}

/// The address of this host at which a datagram arrived, if an answer can come from it; groups cannot send, and an address
/// of one link needs its interface, which the kernel finds.
pub(crate) fn answering(address: IpAddr) -> Option<IpAddr> {
    let (own, group) = match address.to_canonical() {
        IpAddr::V4(v4) => (v4.is_unspecified(), v4.is_multicast() || v4.is_broadcast()),
        IpAddr::V6(v6) => (v6.is_unspecified() || v6.is_unicast_link_local(), v6.is_multicast()),
    };
    (!own && !group).then_some(address)
}

/// Sends a datagram from this address.
pub(crate) fn send_from(
    socket: &UdpSocket,
    from: IpAddr,
    to: SocketAddr,
    bytes: &[u8],
) -> Result<(), SockError> {
    // `struct in_pktinfo` and `struct in6_pktinfo`; interface 0 leaves the choice to the routes.
    let mut info = [0; 20];
    let (level, kind, length) = match (from, to) {
        (IpAddr::V4(v4), SocketAddr::V4(_)) => {
            info[4..8].copy_from_slice(&v4.octets());
            (libc::IPPROTO_IP, libc::IP_PKTINFO, 12)
        }
        (from, _) => {
            let v6 = match from {
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
                IpAddr::V6(v6) => v6,
            };
            info[..16].copy_from_slice(&v6.octets());
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, 20)
        }
    };
    let mut control = [0; cmsg::space(20)];
    let message = ControlMessage { level, kind, data: &info[..length] };
    let used = cmsg::write(&mut control, &message).unwrap_or(0);
    let (address, parts) = (SockAddr::from(to), [IoSlice::new(bytes)]);
    let header = MsgHdr::new().with_addr(&address).with_buffers(&parts).with_control(&control[..used]);
    let fd = socket.as_fd();
    SockRef::from(&fd)
        .sendmsg(&header, libc::MSG_NOSIGNAL)
        .map(|_| ())
        .map_err(|source| SockError::new("send a datagram from", source).at(to))
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
