//! The facts that doctor collects before it judges.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_sock::iface::{self, ConnectionEnds, InterfaceInfo};
use linerate_sock::limits::{self, OpenFiles};
use linerate_sock::open::AllowedIpVersion;
use linerate_sock::proc::cgroup::CpuCgroups;
use linerate_sock::proc::net::{Device, Softnet};
use linerate_sock::proc::nic::{self, Nic};
use linerate_sock::proc::{cpu, host, net};
use linerate_sock::{SockError, SocketOptions, affinity, clock, open, proc, sockopt};

use super::sysctls;

/// The state of this host; unknown facts are absent.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// Sysctls by their dotted names, with fields separated by one space.
    pub(super) sysctls: BTreeMap<&'static str, String>,
    /// Interfaces that are up, by name.
    pub(super) interfaces: Vec<InterfaceFacts>,
    /// Backlog counters since boot, one row per CPU.
    pub(super) softnet: Vec<Softnet>,
    /// CPUs, clock and memory.
    pub(super) machine: MachineFacts,
}

/// An interface with the facts from its driver and bus.
#[derive(Debug, Clone)]
pub(super) struct InterfaceFacts {
    /// Link and offloads.
    pub(super) link: InterfaceInfo,
    /// Counters since the interface was created.
    pub(super) counters: Option<Device>,
    /// PCI Express slot and queues.
    pub(super) card: Nic,
}

/// CPUs, clock and memory.
#[derive(Debug, Clone, Default)]
pub(super) struct MachineFacts {
    pub(super) clock_source: Option<String>,
    pub(super) clock_resolution: Option<Duration>,
    pub(super) timer_slack: Option<Duration>,
    pub(super) governors: BTreeSet<String>,
    pub(super) is_virtual: Option<bool>,
    /// Share of the time since boot stolen by the hypervisor.
    pub(super) steal_share: Option<f64>,
    pub(super) cores: usize,
    /// One-minute load average.
    pub(super) load: Option<f64>,
    /// Number of CPUs that this process may use.
    pub(super) usable_cores: Option<usize>,
    /// Number of CPUs that the quotas of this process's cgroups allow.
    pub(super) quota_cpus: Option<f64>,
    pub(super) open_files: Option<OpenFiles>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) memory_available_bytes: Option<u64>,
}

impl Facts {
    /// Collects the facts. Takes a few milliseconds and sends nothing.
    pub(super) fn gather() -> Self {
        let read = |name: &'static str| {
            let value = proc::sysctl(name)?;
            Some((name, value.split_whitespace().collect::<Vec<_>>().join(" ")))
        };
        let counters = net::devices().unwrap_or_default();
        let links = counters.keys().filter_map(|name| iface::link(name).ok()).filter(|link| link.up);
        Self {
            sysctls: sysctls::NAMES.iter().filter_map(|name| read(name)).collect(),
            interfaces: links.map(|link| InterfaceFacts::gather(link, &counters)).collect(),
            softnet: net::softnet().unwrap_or_default(),
            machine: MachineFacts::gather(),
        }
    }
}

impl InterfaceFacts {
    fn gather(link: InterfaceInfo, counters: &BTreeMap<String, Device>) -> Self {
        Self {
            counters: counters.get(&link.name).copied(),
            card: nic::read_nic(&link.name, link.index),
            link,
        }
    }
}

impl MachineFacts {
    fn gather() -> Self {
        let cores = affinity::online_cpus();
        Self {
            clock_source: host::clock_source(),
            clock_resolution: clock::resolution(),
            timer_slack: host::timer_slack(),
            governors: (0..cores).filter_map(|cpu| host::cpu_frequency(cpu).governor).collect(),
            is_virtual: host::is_virtual_machine(),
            steal_share: cpu::stat().and_then(|stat| stat.all.steal_share()),
            cores,
            load: host::load_average(),
            usable_cores: affinity::thread_affinity().ok().map(|cpus| cpus.len()),
            quota_cpus: CpuCgroups::find().quotas().cpus(),
            open_files: limits::open_files().ok(),
            memory_bytes: host::memory_bytes(),
            memory_available_bytes: host::memory_available_bytes(),
        }
    }
}

/// The route to a host, according to this host's tables.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The peer as typed.
    pub(super) host: String,
    /// Its address.
    pub(super) peer: IpAddr,
    /// Source address of packets to it.
    pub(super) source: IpAddr,
    /// Outgoing interface.
    pub(super) link: InterfaceInfo,
    /// Current path MTU according to the kernel, bytes.
    pub(super) path_mtu: Option<u32>,
}

impl Route {
    /// Queries the resolver and the routing table; sends no packet to the host.
    pub(super) fn gather(host: &str) -> Result<Self, SockError> {
        // Any port works: connecting a UDP socket sends nothing.
        const PORT: u16 = 5201;
        let mut refused = None;
        for peer in open::resolve(host, PORT, AllowedIpVersion::Any)? {
            match Self::to(host, peer) {
                Ok(route) => return Ok(route),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        Err(refused
            .unwrap_or_else(|| SockError::new("resolve host name", std::io::ErrorKind::NotFound.into())))
    }

    fn to(host: &str, peer: SocketAddr) -> Result<Self, SockError> {
        let bound = open::connect_udp(peer, &SocketOptions::default())?;
        Ok(Self {
            host: host.to_owned(),
            peer: peer.ip(),
            source: bound.local.ip(),
            link: ConnectionEnds::with_socket(bound.local, peer, &bound.socket).interface()?,
            path_mtu: sockopt::path_mtu(&bound.socket).ok(),
        })
    }
}
