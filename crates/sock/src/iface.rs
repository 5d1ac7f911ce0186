//! Network interfaces: which one has an address, and the capabilities of its link.

use std::net::{IpAddr, SocketAddr, TcpStream};

use crate::handle::AsFd;
use crate::open::source_towards;
use crate::system::iface::outgoing_interface;
use crate::{SockError, sockopt};

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
    /// Whether the reported speed is a line rate. Others are invented (veth reports 10 Gb/s). That of a hypervisor's NIC
    /// may be the rate of the host's, which packets between two guests do not keep to.
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
    /// For a VLAN on an interface without a line rate of its own, the kind of that interface.
    pub carrier: Option<InterfaceKind>,
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
        has_line_rate(self.carrier.unwrap_or(self.kind), self.alias.as_deref())
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

/// The two ends of a connection, of which the first is on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnds {
    /// The address of this host.
    pub local: SocketAddr,
    /// The address of the other end, which may be this host too.
    pub peer: SocketAddr,
    /// Index of the interface that the socket is bound to (SO_BINDTODEVICE).
    pub device: Option<u32>,
}

impl ConnectionEnds {
    /// The ends of a connection; absent if it has been closed.
    #[must_use]
    pub fn of(stream: &TcpStream) -> Option<Self> {
        Some(Self::with_socket(stream.local_addr().ok()?, stream.peer_addr().ok()?, stream))
    }

    /// The ends of what this socket carries.
    #[must_use]
    pub fn with_socket(local: SocketAddr, peer: SocketAddr, socket: &impl AsFd) -> Self {
        let device = sockopt::device(socket).ok().filter(|index| *index != 0);
        Self { local, peer, device }
    }

    /// The interface through which packets to the peer leave. It need not have the local address: a host uses its
    /// loopback for all of its own addresses, and several interfaces can lead to one network. Without an answer from
    /// the kernel, the interface that has the local address.
    ///
    /// # Errors
    /// There is no route, and no interface has the local address.
    pub fn interface(&self) -> Result<InterfaceInfo, SockError> {
        let by_route = self.route().and_then(name_of).and_then(|name| link(&name).ok());
        by_route.map_or_else(|| of_local_address(self.local.ip()), Ok)
    }

    fn route(&self) -> Option<u32> {
        let scope = [self.peer, self.local].into_iter().find_map(|end| match end {
            SocketAddr::V6(end) => Some(end.scope_id()).filter(|scope| *scope != 0),
            SocketAddr::V4(_) => None,
        });
        let device = self.device.or(scope);
        let peer = self.peer.ip().to_canonical();
        // Every interface leads to the network of these addresses.
        let ambiguous = matches!(peer, IpAddr::V6(v6) if v6.is_unicast_link_local()) && device.is_none();
        if ambiguous {
            return None;
        }
        outgoing_interface(self.local.ip().to_canonical(), peer, device).ok()
    }
}

/// The interface through which packets to `peer` leave.
///
/// # Errors
/// There is no route to the peer.
pub fn towards(peer: SocketAddr) -> Result<InterfaceInfo, SockError> {
    let local = SocketAddr::new(source_towards(peer)?, 0);
    ConnectionEnds { local, peer, device: None }.interface()
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
    fn what_goes_to_an_own_address_goes_through_the_loopback() {
        let own = addresses().unwrap().into_iter().map(|entry| entry.address);
        let own: Vec<IpAddr> = own.filter(|address| !is_link_local(*address)).collect();
        assert!(own.iter().any(IpAddr::is_loopback), "{own:?}");
        for peer in own {
            let ends = |address| SocketAddr::new(address, 9);
            assert_eq!(towards(ends(peer)).unwrap().name, "lo", "{peer}");
            let found = ConnectionEnds { local: ends(peer), peer: ends(peer), device: None }.interface();
            assert_eq!(found.unwrap().kind, InterfaceKind::Loopback, "{peer}");
        }
    }

    fn is_link_local(address: IpAddr) -> bool {
        matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
    }

    #[test]
    fn a_connection_has_its_interface_from_both_ends() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        let [here, there] = [&stream, &accepted].map(|end| ConnectionEnds::of(end).unwrap());
        assert_eq!((here.local, here.peer, here.device), (there.peer, there.local, None));
        assert_eq!(
            (here.interface().unwrap().name, there.interface().unwrap().name),
            ("lo".into(), "lo".into())
        );
    }

    #[test]
    fn without_a_route_the_local_address_tells_the_interface() {
        let [local, peer] = ["127.0.0.1:9", "[2001:db8::1]:9"].map(|text| text.parse().unwrap());
        assert_eq!(ConnectionEnds { local, peer, device: None }.interface().unwrap().name, "lo");
        let [local, peer] = ["192.0.2.1:9", "[2001:db8::1]:9"].map(|text| text.parse().unwrap());
        assert!(ConnectionEnds { local, peer, device: None }.interface().is_err());
    }

    #[test]
    fn a_virtual_cable_has_no_line_rate() {
        assert!(!InterfaceKind::Veth.has_line_rate(), "its 10 Gb/s are invented");
    }
}
