//! One host: its namespace, the interfaces in it, and their settings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use linerate_sock::routing::{LinkChange, RoutingSocket, index_of, set_speed};
use linerate_sock::tap::Tap;
use linerate_sock::{SockError, netns, proc};

use crate::lab_resources::UserNotes;
use crate::{LabName, LabResourceError, host_nic};
use linerate_emu::topology::{Topology, TopologyHost, TopologyLink};

/// Frames that may wait between the kernel and a late switch, per interface: a few milliseconds of small
/// packets. With the NIC's own pacing almost nothing waits here.
const QUEUE_PACKETS: u32 = 8192;
/// The smallest MTU with which the kernel supports IPv6 on an interface (RFC 8200 §5).
const MIN_V6_MTU: u32 = 1280;
/// The alias of every interface of a lab, by which programs know that its link is emulated.
const ALIAS: &str = "linerate-lab";

/// The resources of a host of a lab.
#[derive(Debug)]
pub struct LabHostResources {
    /// Name of the host.
    pub name: String,
    /// Its IPv4 address and prefix length.
    pub v4: (Ipv4Addr, u8),
    /// Its IPv6 address and prefix length.
    pub v6: (Ipv6Addr, u8),
    /// Its namespace.
    pub netns: OwnedFd,
    /// Name of the namespace under `/run/netns`; `None` in a lab without root.
    pub netns_name: Option<String>,
}

impl LabHostResources {
    /// A path through which other processes can enter the namespace while this process lives: that of its name,
    /// or of this process's descriptor.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let named = self.netns_name.as_deref().and_then(|name| netns::path_of(name).ok());
        let number = self.netns.as_raw_fd();
        named.unwrap_or_else(|| format!("/proc/{}/fd/{number}", std::process::id()).into())
    }
}

/// An interface of a host, and its TAP device.
#[derive(Debug)]
pub struct HostTap {
    /// Index of the host in the topology.
    pub host: usize,
    /// Index of the link in the topology.
    pub link: usize,
    /// Which end of the link the host is: an index of `ends` and `directions`.
    pub end: usize,
    /// Ethernet address of the interface.
    pub mac: [u8; 6],
    /// The device on which its frames are read and written.
    pub tap: Tap,
}

/// Marks a new namespace as this lab's, by the alias of its `lo`. Must be called inside of it.
pub(super) fn mark(host: &str, token: &str) -> Result<(), LabResourceError> {
    let lo = index_of("lo").map_err(LabResourceError::host(host, "reading the state of lo"))?;
    let change = LinkChange { up: Some(true), alias: Some(token), ..LinkChange::default() };
    RoutingSocket::open()
        .and_then(|routing| routing.change(lo, &change))
        .map_err(LabResourceError::host(host, "enabling lo"))
}

/// Creates the interfaces of a host, `eth0` and so on in the order of its links, and applies its settings. Must
/// be called inside its namespace.
pub(super) fn create_interfaces(
    topology: &Topology,
    number: usize,
    lab: &LabName,
    notes: &mut UserNotes,
) -> Result<Vec<HostTap>, LabResourceError> {
    let host = &topology.hosts[number];
    let has_v6 = silence_v6();
    if !has_v6 {
        notes.add("this kernel has no IPv6, so hosts have only IPv4 addresses");
    }
    let ends = topology.links.iter().enumerate().flat_map(|(link, described)| {
        described
            .ends
            .iter()
            .enumerate()
            .filter(|(_, end)| **end == host.name)
            .map(move |(end, _)| (link, end))
    });
    let mut taps = Vec::new();
    for (count, (link, end)) in ends.enumerate() {
        let name = format!("eth{count}");
        let cable = HostLinkEnd { host, name: &name, link: &topology.links[link], end };
        let mac = host_nic::mac(lab, &host.name, link);
        let tap = cable.create_interface(mac, notes)?;
        // Two addresses of one network on two interfaces would make replies leave through the wrong one.
        if count == 0 {
            cable.address(has_v6)?;
        }
        taps.push(HostTap { host: number, link, end, mac, tap });
    }
    for (name, value) in &host.sysctl {
        proc::set_sysctl(&format!("net.{name}"), value).map_err(|source| LabResourceError::Sysctl {
            host: host.name.clone(),
            setting: format!("net.{name} = {value}"),
            source,
        })?;
    }
    Ok(taps)
}

/// Disables spontaneous IPv6 traffic on interfaces yet to be created: no router solicitation, and no duplicate
/// address detection for addresses that are unique by construction. False if there is no IPv6.
fn silence_v6() -> bool {
    const DISABLED_SETTINGS: [&str; 5] =
        ["accept_ra", "autoconf", "router_solicitations", "accept_dad", "dad_transmits"];
    let settings =
        ["all", "default"].into_iter().flat_map(|which| DISABLED_SETTINGS.map(|name| (which, name)));
    settings.fold(true, |all, (which, name)| {
        all & proc::set_sysctl(&format!("net.ipv6.conf.{which}.{name}"), "0").is_ok()
    })
}

/// One end of a link at a host.
struct HostLinkEnd<'a> {
    host: &'a TopologyHost,
    name: &'a str,
    link: &'a TopologyLink,
    /// Which end of the link the host is.
    end: usize,
}

impl HostLinkEnd<'_> {
    /// Creates the interface with the properties of a NIC on that link, and sets it up.
    fn create_interface(&self, mac: [u8; 6], notes: &mut UserNotes) -> Result<Tap, LabResourceError> {
        let tap = Tap::create(self.name)?;
        if !tap.has_udp_segments() {
            notes.add(
                "this kernel passes UDP packets one by one (Linux before 6.2), so UDP costs the switch more \
                 CPU time",
            );
        }
        let (index, routing) = self.routing()?;
        if let Some(mbps) = host_nic::speed_mbps(self.link, self.end)
            && set_speed(self.name, mbps).is_err()
        {
            notes.add(
                "the speed of this kernel's TAP devices cannot be set, so programs see 10 Mb/s regardless \
                 of the line rate",
            );
        }
        let direction = &self.link.directions[self.end];
        let change = LinkChange {
            up: None,
            mac: Some(mac),
            mtu: Some(direction.mtu),
            queue_packets: Some(QUEUE_PACKETS),
            super_frame: Some(host_nic::super_frame_bytes(direction)),
            alias: Some(ALIAS),
        };
        routing.change(index, &change).map_err(self.failed("setting MTU and address"))?;
        if let Some(discipline) = host_nic::discipline(self.link, self.end).filter(|_| self.link.nic)
            && routing.replace_root_discipline(index, &discipline).is_err()
        {
            notes.add(
                "this kernel has no tbf queueing discipline (sch_tbf), so hosts send faster than a NIC \
                 would, and a full line causes losses instead of backpressure",
            );
        }
        let up = LinkChange { up: Some(true), ..LinkChange::default() };
        routing.change(index, &up).map_err(self.failed("enabling the interface"))?;
        Ok(tap)
    }

    /// Assigns the host's addresses to the interface.
    fn address(&self, has_v6: bool) -> Result<(), LabResourceError> {
        let (index, routing) = self.routing()?;
        let (v4, v6) = (self.host.v4, self.host.v6);
        let add = |address: IpAddr, prefix| {
            routing
                .add_address(index, address, prefix)
                .map_err(self.failed(&format!("adding {address}/{prefix}")))
        };
        add(v4.0.into(), v4.1)?;
        if has_v6 && self.link.directions[self.end].mtu >= MIN_V6_MTU {
            add(v6.0.into(), v6.1)?;
        }
        Ok(())
    }

    fn routing(&self) -> Result<(u32, RoutingSocket), LabResourceError> {
        let index = index_of(self.name).map_err(self.failed("finding it"))?;
        let routing = RoutingSocket::open().map_err(self.failed("opening a routing socket"))?;
        Ok((index, routing))
    }

    fn failed(&self, what: &str) -> impl FnOnce(SockError) -> LabResourceError + use<> {
        LabResourceError::host(&self.host.name, &format!("interface {}: {what}", self.name))
    }
}
