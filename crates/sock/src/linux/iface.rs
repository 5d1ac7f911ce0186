//! What the kernel says about network interfaces.
//!
//! All queries are system calls, so the answers apply to the calling thread's network namespace (`/sys` may
//! show another one).

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::call::check;
use super::ethtool::{EthtoolSocket, Offload};
use super::netlink;
pub(crate) use super::netlink::outgoing_interface;
use crate::SockError;
use crate::iface::{InterfaceAddress, InterfaceInfo, InterfaceKind, Offloads, QueueCounts, has_line_rate};

impl InterfaceKind {
    /// By the kernel's names of the driver and the bus.
    fn of(loopback: bool, driver: Option<&str>, bus: &str) -> Self {
        if loopback {
            return Self::Loopback;
        }
        match driver.unwrap_or_default() {
            "veth" => Self::Veth,
            "tun" => Self::Tun,
            "bridge" | "openvswitch" => Self::Bridge,
            "bonding" | "bond" | "team" => Self::Lag,
            "802.1Q VLAN Support" | "vlan" => Self::Vlan,
            "virtio_net" | "vmxnet3" | "hv_netvsc" | "vif" | "xen_netfront" | "gve" | "ena" => {
                Self::Paravirtual
            }
            _ if !bus.is_empty() && bus != "N/A" => Self::Physical,
            _ => Self::Virtual,
        }
    }
}

/// Queries an interface by name.
///
/// # Errors
/// `ENODEV` if this namespace has no interface with that name.
pub fn link(name: &str) -> Result<InterfaceInfo, SockError> {
    let absent = || SockError::errno("read the state of the interface", libc::ENODEV);
    let mut ask = EthtoolSocket::about(name).ok_or_else(absent)?;
    let (index, flags, mtu) = (ask.index(), ask.flags(), ask.mtu());
    let (Some(index), Some(flags), Some(mtu)) = (index, flags, mtu) else { return Err(absent()) };
    let (kind, driver) = kind_and_driver(&mut ask, flags);
    let facts = netlink::link_facts(index)?;
    let carrier = if kind == InterfaceKind::Vlan { carrier(facts.below) } else { None };
    let has_rate = has_line_rate(carrier.unwrap_or(kind), facts.alias.as_deref());
    let wire = if has_rate { ask.wire() } else { None }.unwrap_or_default();
    Ok(InterfaceInfo {
        name: name.to_owned(),
        index,
        kind,
        carrier,
        speed_bps: wire.speed_mbps.map(|mbps| u64::from(mbps) * 1_000_000),
        full_duplex: wire.full_duplex,
        mtu,
        driver,
        alias: facts.alias,
        up: flags & libc::IFF_UP != 0,
        running: flags & libc::IFF_RUNNING != 0,
        discipline: netlink::root_discipline(index)?,
        queue_packets: facts.queue_packets,
        gso_max_bytes: facts.gso_max_bytes,
        gro_max_bytes: facts.gro_max_bytes,
        gso_ipv4_max_bytes: facts.gso_ipv4_max_bytes,
        gro_ipv4_max_bytes: facts.gro_ipv4_max_bytes,
        tso_max_bytes: facts.tso_max_bytes,
        hardware_timestamps: ask.hardware_timestamps(),
        offloads: Offloads {
            rx_checksum: ask.setting(Offload::RxChecksum),
            tx_checksum: ask.setting(Offload::TxChecksum),
            scatter_gather: ask.setting(Offload::ScatterGather),
            tso: ask.setting(Offload::Tso),
            gso: ask.setting(Offload::Gso),
            gro: ask.setting(Offload::Gro),
            lro: ask.large_receive_offload(),
        },
    })
}

/// The kind of an interface with these flags, and its driver; interfaces such as the loopback have none.
fn kind_and_driver(ask: &mut EthtoolSocket, flags: libc::c_int) -> (InterfaceKind, Option<String>) {
    let (driver, bus) = ask.driver().unzip();
    let driver = driver.filter(|name| !name.is_empty());
    let loopback = flags & libc::IFF_LOOPBACK != 0;
    (InterfaceKind::of(loopback, driver.as_deref(), &bus.unwrap_or_default()), driver)
}

/// The kind of the interface below a VLAN, whose speed the VLAN passes on; absent if that is a real or emulated line.
fn carrier(mut below: Option<u32>) -> Option<InterfaceKind> {
    const MAX_STACKED: usize = 4;
    for _ in 0..MAX_STACKED {
        let index = below?;
        let mut ask = EthtoolSocket::about(&name_of(index)?)?;
        let flags = ask.flags()?;
        let (kind, _) = kind_and_driver(&mut ask, flags);
        let facts = netlink::link_facts(index).ok()?;
        if kind != InterfaceKind::Vlan {
            let real = kind != InterfaceKind::Paravirtual && has_line_rate(kind, facts.alias.as_deref());
            return (!real).then_some(kind);
        }
        below = facts.below;
    }
    None
}

/// Counters of the queueing discipline at the root of an interface; absent if there is none with counters.
///
/// # Errors
/// The routing socket does not answer.
pub fn root_queue(index: u32) -> Result<Option<QueueCounts>, SockError> {
    netlink::root_counts(index)
}

/// Kinds of the queueing disciplines that hold or distribute what an interface sends, each as often as it is there: `mq`,
/// `fq`, `fq` for an interface with two queues.
///
/// # Errors
/// The routing socket does not answer.
pub fn queue_kinds(index: u32) -> Result<Vec<String>, SockError> {
    netlink::kinds(index)
}

/// Current name of the interface with that index; `None` if it no longer exists.
#[must_use]
pub fn name_of(index: u32) -> Option<String> {
    let mut name = [0 as libc::c_char; libc::IF_NAMESIZE];
    // SAFETY: `name` has the size that the call requires.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the call has terminated the name with a zero.
    Some(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}

/// All addresses of all interfaces, in the kernel's order.
///
/// # Errors
/// The kernel is out of memory.
pub fn addresses() -> Result<Vec<InterfaceAddress>, SockError> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: writes the head of a list to `head`; it is freed below.
    check("list the interfaces", unsafe { libc::getifaddrs(&raw mut head) })?;
    let mut found = Vec::new();
    let mut next = head;
    // SAFETY: `next` is null or an entry of the list that getifaddrs created, alive until freeifaddrs.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: `ifa_addr` is null or a socket address whose family implies its length.
        if let Some(address) = unsafe { ip_of(entry.ifa_addr) } {
            // SAFETY: `ifa_name` is a C string of the same list.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
            found.push(InterfaceAddress { name, address });
        }
        next = entry.ifa_next;
    }
    // SAFETY: `head` is from getifaddrs, and nothing of the list is used after this.
    unsafe { libc::freeifaddrs(head) };
    Ok(found)
}

/// # Safety
/// `addr` must be null or point to a socket address whose family implies its length.
unsafe fn ip_of(addr: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: by contract.
    let family = unsafe { addr.as_ref() }?.sa_family;
    match i32::from(family) {
        libc::AF_INET => {
            // SAFETY: the family implies a sockaddr_in; read without assuming alignment.
            let v4 = unsafe { addr.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family implies a sockaddr_in6; read without assuming alignment.
            let v6 = unsafe { addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_driver() {
        assert_eq!(InterfaceKind::of(false, Some("veth"), ""), InterfaceKind::Veth);
        assert_eq!(InterfaceKind::of(false, Some("ixgbe"), "0000:01:00.0"), InterfaceKind::Physical);
        assert_eq!(InterfaceKind::of(false, Some("virtio_net"), "virtio0"), InterfaceKind::Paravirtual);
        assert_eq!(InterfaceKind::of(false, Some("tun"), "tap"), InterfaceKind::Tun);
        assert_eq!(InterfaceKind::of(false, Some("dummy"), ""), InterfaceKind::Virtual);
        assert_eq!(InterfaceKind::of(false, None, ""), InterfaceKind::Virtual);
    }

    #[test]
    fn a_vlan_has_the_line_rate_of_what_carries_it_or_none() {
        let loopback = link("lo").unwrap().index;
        assert_eq!(carrier(Some(loopback)), Some(InterfaceKind::Loopback));
        assert_eq!((carrier(Some(i32::MAX as u32)), carrier(None)), (None, None));
    }
}
