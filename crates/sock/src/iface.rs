//! Network interfaces: which one has an address, and the capabilities of its link.

use std::net::{IpAddr, SocketAddr};

use crate::SockError;
use crate::open::source_towards;

pub use crate::system::iface::{addresses, link, name_of, queue_kinds, root_queue};

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

/// Packets above this size are those of BIG TCP, bytes.
pub const USUAL_MAX_PACKET: u32 = 65_536;

impl InterfaceInfo {
    /// Largest GSO packet of IPv4 or IPv6, bytes; 0 if unknown.
    #[must_use]
    pub fn largest_gso(&self) -> u32 {
        self.gso_max_bytes.max(self.gso_ipv4_max_bytes).unwrap_or(0)
    }

    /// Largest GRO packet of IPv4 or IPv6, bytes; 0 if unknown.
    #[must_use]
    pub fn largest_gro(&self) -> u32 {
        self.gro_max_bytes.max(self.gro_ipv4_max_bytes).unwrap_or(0)
    }
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
    /// Largest GSO packet for the driver, bytes; above 65536 with BIG TCP over IPv6.
    pub gso_max_bytes: Option<u32>,
    /// Largest GRO packet, bytes; likewise.
    pub gro_max_bytes: Option<u32>,
    /// The same for IPv4 (Linux 6.3 and newer).
    pub gso_ipv4_max_bytes: Option<u32>,
    /// The same for IPv4.
    pub gro_ipv4_max_bytes: Option<u32>,
    /// Largest packet that the device itself cuts, bytes: no GSO size can be larger.
    pub tso_max_bytes: Option<u32>,
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

/// Whether the reported speed of an interface is a real or emulated line rate.
pub(crate) fn has_line_rate(kind: InterfaceKind, alias: Option<&str>) -> bool {
    kind.has_line_rate() || (kind == InterfaceKind::Tun && alias == Some(EMULATED_LINE))
}

/// Counters of a queueing discipline since it was created.
///
/// Bytes and packets are those that have left it. Each segment of a GSO packet counts with its own headers.
///
/// # Source
/// `linux/gen_stats.h`: `TCA_STATS_BASIC`, `TCA_STATS_QUEUE`, where packets and drops have 32 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Kind: "fq", "pfifo_fast".
    pub kind: String,
    /// Bytes, including the link-layer header.
    pub bytes: u64,
    /// Packets; wraps.
    pub packets: u32,
    /// Dropped packets; wraps.
    pub dropped: u32,
    /// Rate and burst of a `tbf`.
    pub bucket: Option<TokenBucket>,
    /// The classes of an `htb`, by handle.
    pub classes: Vec<ClassCounts>,
}

/// Rate and burst of a token bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bit/s.
    pub rate_bps: u64,
    /// Burst size, bytes.
    pub burst_bytes: u64,
}

/// A class of `htb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassCounts {
    /// Handle: major and minor number.
    pub handle: u32,
    /// Bytes that left it and the classes below it, since it was made.
    pub bytes: u64,
    /// The most that it lets through.
    pub ceiling: TokenBucket,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Interface name.
    pub name: String,
    /// One of its addresses.
    pub address: IpAddr,
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
    fn a_virtual_cable_has_no_line_rate() {
        assert!(!InterfaceKind::Veth.has_line_rate(), "its 10 Gb/s are invented");
    }
}
