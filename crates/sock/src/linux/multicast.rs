//! Membership in multicast groups, and how datagrams to a group leave.

use std::mem::{offset_of, size_of};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use libc::{IPPROTO_IP, IPPROTO_IPV6, group_source_req, sockaddr_storage};
use socket2::SockAddr;

use crate::SockError;
use crate::linux::call::{set, set_bytes};

/// Of netinet/in.h: joins a group for one source, whichever the version of IP.
const MCAST_JOIN_SOURCE_GROUP: i32 = 46;
const IP_MULTICAST_ALL: i32 = 49;
const IPV6_MULTICAST_ALL: i32 = 29;

/// A structure for the kernel, whose padding is 0.
type SourceRequest = [u8; size_of::<group_source_req>()];

/// Sends to groups through this interface, with this time to live (absent: 1, which no router forwards).
///
/// # Errors
/// There is no such interface.
pub(crate) fn send_through(
    socket: &impl AsFd,
    version: IpAddr,
    interface: u32,
    ttl: Option<u8>,
) -> Result<(), SockError> {
    let index = i32::try_from(interface).unwrap_or(i32::MAX);
    let ttl = ttl.map(i32::from);
    if version.is_ipv6() {
        set("set IPV6_MULTICAST_IF", socket, IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, index)?;
        return ttl.map_or(Ok(()), |hops| {
            set("set IPV6_MULTICAST_HOPS", socket, IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, hops)
        });
    }
    // The structure ip_mreqn: two addresses that are not needed, and the index.
    let mut request = [0; 12];
    request[8..].copy_from_slice(&index.to_ne_bytes());
    set_bytes("set IP_MULTICAST_IF", socket, IPPROTO_IP, libc::IP_MULTICAST_IF, &request)?;
    ttl.map_or(Ok(()), |ttl| set("set IP_MULTICAST_TTL", socket, IPPROTO_IP, libc::IP_MULTICAST_TTL, ttl))
}

/// Receives what `source` sends to `group`, on this interface only.
///
/// # Errors
/// There is no such interface, or the host is in as many groups as it may be.
pub(crate) fn join(
    socket: &impl AsFd,
    group: IpAddr,
    source: IpAddr,
    interface: u32,
) -> Result<(), SockError> {
    let (level, all) = match group {
        IpAddr::V4(_) => (IPPROTO_IP, IP_MULTICAST_ALL),
        IpAddr::V6(_) => (IPPROTO_IPV6, IPV6_MULTICAST_ALL),
    };
    // Otherwise a socket gets what any other program on this host has joined.
    set("leave the groups of others", socket, level, all, 0)?;
    let mut request: SourceRequest = [0; size_of::<group_source_req>()];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(offset_of!(group_source_req, gsr_interface), &interface.to_ne_bytes());
    put(offset_of!(group_source_req, gsr_group), &stored(group));
    put(offset_of!(group_source_req, gsr_source), &stored(source));
    set_bytes("join the multicast group", socket, level, MCAST_JOIN_SOURCE_GROUP, &request)
        .map_err(|error| error.at(SocketAddr::new(group, 0)))
}

/// An address as the kernel stores addresses of any family.
fn stored(address: IpAddr) -> [u8; size_of::<sockaddr_storage>()] {
    let mut bytes = [0; size_of::<sockaddr_storage>()];
    let address = SockAddr::from(SocketAddr::new(address, 0));
    let length = address.len() as usize;
    // SAFETY: a socket address is plain data of `length` bytes, which it owns.
    let written = unsafe { std::slice::from_raw_parts(address.as_ptr().cast::<u8>(), length) };
    bytes[..length].copy_from_slice(written);
    bytes
}
