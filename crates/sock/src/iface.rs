//! Network interfaces: which one has an address, and the capabilities of its link.
//!
//! All queries are system calls, so the answers apply to the calling thread's network namespace (`/sys` may
//! show another one).

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::call::check;
use crate::ethtool::{EthtoolSocket, Offload};
pub use crate::netlink::{ClassCounts, QueueCounts, TokenBucket};
use crate::open::source_towards;
use crate::{SockError, netlink};

/// Alias that marks a `tun` or `tap` as the end of an emulated link with a meaningful rate. Without it they
/// report 10 Mb/s in any case.
pub const EMULATED_LINE: &str = "linerate-lab";

/// Kind of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceKind {
    /// Loopback.
    Loopback,
    /// One end of a virtual cable between namespaces.
    Veth,
    /// A `tun` or `tap` interface of a program.
    Tun,
    /// A software bridge or Open vSwitch.
    Bridge,
    /// A LAG: several links used as one (bond, team).
    Lag,
    /// A VLAN on another interface.
    Vlan,
    /// NIC of a hypervisor (virtio, vmxnet3, netvsc, xen).
    Paravirtual,
    /// NIC on a bus.
    Physical,
    /// Any other software interface.
    Virtual,
}

impl InterfaceKind {
    /// Whether the reported speed is a real line rate. Others are invented (veth reports 10 Gb/s).
    fn has_line_rate(self) -> bool {
        matches!(self, Self::Physical | Self::Lag | Self::Vlan | Self::Paravirtual)
    }

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

/// Work that the NIC or the network stack does for several packets at once. `None`: not reported by the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offloads {
    /// Checksums of received packets.
    pub rx_checksum: Option<bool>,
    /// Checksums of sent packets.
    pub tx_checksum: Option<bool>,
    /// Gathering a packet from several memory buffers.
    pub scatter_gather: Option<bool>,
    /// The NIC cuts TCP segments.
    pub tso: Option<bool>,
    /// The network stack cuts segments just before the driver.
    pub gso: Option<bool>,
    /// The network stack merges received segments.
    pub gro: Option<bool>,
    /// The NIC merges received segments.
    pub lro: Option<bool>,
}

/// An interface and its link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceInfo {
    /// Interface name.
    pub name: String,
    /// Interface index.
    pub index: u32,
    /// Kind of the interface.
    pub kind: InterfaceKind,
    /// Line rate, bits per second; absent if not [`InterfaceInfo::has_line_rate`] or unknown to the driver.
    pub speed_bps: Option<u64>,
    /// Whether the link is full duplex; absent without a line rate.
    pub full_duplex: Option<bool>,
    /// MTU, bytes.
    pub mtu: u32,
    /// Driver name.
    pub driver: Option<String>,
    /// Alias that the administrator has set.
    pub alias: Option<String>,
    /// Administratively up.
    pub up: bool,
    /// Carrier present.
    pub running: bool,
    /// Queueing discipline at the root. Only "fq" applies the pacing rate of a UDP socket.
    pub discipline: Option<String>,
    /// Length of the transmit queue, packets.
    pub queue_packets: Option<u32>,
    /// Largest GSO packet for the driver, bytes; above 65536 with BIG TCP.
    pub gso_max_bytes: Option<u32>,
    /// Largest GRO packet, bytes.
    pub gro_max_bytes: Option<u32>,
    /// Whether the NIC can timestamp sent and received packets.
    pub hardware_timestamps: Option<bool>,
    /// Effective offloads.
    pub offloads: Offloads,
}

impl InterfaceInfo {
    /// Whether [`InterfaceInfo::speed_bps`] is a real or emulated line rate.
    #[must_use]
    pub fn has_line_rate(&self) -> bool {
        has_line_rate(self.kind, self.alias.as_deref())
    }
}

fn has_line_rate(kind: InterfaceKind, alias: Option<&str>) -> bool {
    kind.has_line_rate() || (kind == InterfaceKind::Tun && alias == Some(EMULATED_LINE))
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
    let (driver, bus) = ask.driver().unzip();
    let driver = driver.filter(|name| !name.is_empty());
    let kind =
        InterfaceKind::of(flags & libc::IFF_LOOPBACK != 0, driver.as_deref(), &bus.unwrap_or_default());
    let facts = netlink::link_facts(index)?;
    let wire =
        if has_line_rate(kind, facts.alias.as_deref()) { ask.wire() } else { None }.unwrap_or_default();
    Ok(InterfaceInfo {
        name: name.to_owned(),
        index,
        kind,
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

/// Counters of the queueing discipline at the root of an interface; absent if there is none with counters.
///
/// # Errors
/// The routing socket does not answer.
pub fn root_queue(index: u32) -> Result<Option<QueueCounts>, SockError> {
    netlink::root_counts(index)
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

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Interface name.
    pub name: String,
    /// One of its addresses.
    pub address: IpAddr,
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

/// The interface with a local address (an IPv4 address may be in its IPv6-mapped form).
///
/// # Errors
/// `EADDRNOTAVAIL` if no interface has it.
pub fn of_local_address(address: IpAddr) -> Result<InterfaceInfo, SockError> {
    let address = address.to_canonical();
    let owner = addresses()?.into_iter().find(|entry| entry.address == address);
    match owner {
        Some(entry) => link(&entry.name),
        // All of 127.0.0.0/8 is on loopback, but only one of its addresses is listed.
        None if address.is_loopback() => link("lo"),
        None => Err(SockError::errno("find the interface of a local address", libc::EADDRNOTAVAIL)),
    }
}

/// The interface through which packets to `peer` leave, derived from their source address.
///
/// # Errors
/// There is no route to the peer.
pub fn towards(peer: SocketAddr) -> Result<InterfaceInfo, SockError> {
    of_local_address(source_towards(peer)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_line_rate() {
        let lo = link("lo").unwrap();
        assert_eq!((lo.kind, lo.speed_bps, lo.full_duplex), (InterfaceKind::Loopback, None, None));
        assert!(lo.mtu >= 1280 && lo.up && lo.index > 0);
        assert_eq!(lo.offloads.gso, Some(true));
        assert_eq!((lo.discipline.as_deref(), lo.hardware_timestamps), (Some("noqueue"), Some(false)));
    }

    #[test]
    fn an_interface_is_found_by_its_address_and_by_the_way_to_a_peer() {
        for text in ["127.0.0.1", "127.1.2.3", "::ffff:127.0.0.1"] {
            assert_eq!(of_local_address(text.parse().unwrap()).unwrap().name, "lo", "{text}");
        }
        assert_eq!(towards("127.0.0.1:9".parse().unwrap()).unwrap().name, "lo");
        let error = of_local_address("192.0.2.1".parse().unwrap()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL));
        assert_eq!(name_of(link("lo").unwrap().index).as_deref(), Some("lo"));
        assert_eq!(name_of(i32::MAX as u32), None);
        assert!(link("nosuch0").unwrap_err().remedy().unwrap().contains("ip link"));
    }

    #[test]
    fn kinds_follow_the_driver() {
        assert_eq!(InterfaceKind::of(false, Some("veth"), ""), InterfaceKind::Veth);
        assert_eq!(InterfaceKind::of(false, Some("ixgbe"), "0000:01:00.0"), InterfaceKind::Physical);
        assert_eq!(InterfaceKind::of(false, Some("virtio_net"), "virtio0"), InterfaceKind::Paravirtual);
        assert_eq!(InterfaceKind::of(false, Some("tun"), "tap"), InterfaceKind::Tun);
        assert_eq!(InterfaceKind::of(false, Some("dummy"), ""), InterfaceKind::Virtual);
        assert_eq!(InterfaceKind::of(false, None, ""), InterfaceKind::Virtual);
        assert!(!InterfaceKind::Veth.has_line_rate(), "its 10 Gb/s are invented");
    }
}
