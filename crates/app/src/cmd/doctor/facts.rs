//! What doctor looks at, gathered before anything is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_sock::iface::{self, LinkInfo};
use linerate_sock::limits::{self, OpenFiles};
use linerate_sock::open::IpVersion;
use linerate_sock::proc::net::{Device, Softnet};
use linerate_sock::proc::nic::{self, Nic};
use linerate_sock::proc::{cpu, host, net};
use linerate_sock::{SockError, SocketOptions, affinity, clock, open, proc, sockopt};

use super::sysctls;

/// The state of this host. What it does not tell is absent.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// Kernel settings by their dotted names, fields separated by one space.
    pub(super) sysctls: BTreeMap<&'static str, String>,
    /// Interfaces that are switched on, by name.
    pub(super) interfaces: Vec<Interface>,
    /// Backlog counters since boot, a row for each processor.
    pub(super) softnet: Vec<Softnet>,
    /// Processors, clock and memory.
    pub(super) machine: Machine,
}

/// An interface with what its driver and its bus say.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    /// Link and offloads.
    pub(super) link: LinkInfo,
    /// Counters since the interface was made.
    pub(super) counters: Option<Device>,
    /// Slot and queues.
    pub(super) card: Nic,
}

/// Processors, clock and memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    pub(super) clock_source: Option<String>,
    pub(super) clock_resolution: Duration,
    pub(super) timer_slack: Option<Duration>,
    pub(super) governors: BTreeSet<String>,
    pub(super) is_virtual: Option<bool>,
    /// Share of the time since boot that the hypervisor took away.
    pub(super) steal_share: Option<f64>,
    pub(super) cores: usize,
    /// Programs that ran or were ready to run, over the last minute.
    pub(super) load: Option<f64>,
    /// Processors that this process may use.
    pub(super) usable_cores: Option<usize>,
    pub(super) open_files: Option<OpenFiles>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) memory_available_bytes: Option<u64>,
}

impl Facts {
    /// Looks at this host. Takes some milliseconds and sends nothing.
    pub(super) fn gather() -> Self {
        let read = |name: &'static str| {
            let value = proc::sysctl(name)?;
            Some((name, value.split_whitespace().collect::<Vec<_>>().join(" ")))
        };
        let counters = net::devices().unwrap_or_default();
        let links = counters.keys().filter_map(|name| iface::link(name).ok()).filter(|link| link.up);
        Self {
            sysctls: sysctls::NAMES.iter().filter_map(|name| read(name)).collect(),
            interfaces: links.map(|link| Interface::gather(link, &counters)).collect(),
            softnet: net::softnet().unwrap_or_default(),
            machine: Machine::gather(),
        }
    }
}

impl Interface {
    fn gather(link: LinkInfo, counters: &BTreeMap<String, Device>) -> Self {
        Self {
            counters: counters.get(&link.name).copied(),
            card: nic::read_nic(&link.name, link.index),
            link,
        }
    }
}

impl Machine {
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
            open_files: limits::open_files().ok(),
            memory_bytes: host::memory_bytes(),
            memory_available_bytes: host::memory_available_bytes(),
        }
    }
}

/// The way to a host, as far as this host's own tables know it.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// The peer as typed.
    pub(super) host: String,
    /// Its address.
    pub(super) peer: IpAddr,
    /// The address that packets to it come from.
    pub(super) source: IpAddr,
    /// The interface that they leave through.
    pub(super) link: LinkInfo,
    /// Largest packet that the kernel would send there now, bytes.
    pub(super) path_mtu: Option<u32>,
}

impl Route {
    /// Asks the resolver and the routing table; no packet goes to the host itself.
    pub(super) fn gather(host: &str) -> Result<Self, SockError> {
        // Any port does: a connected UDP socket sends nothing by itself.
        const PORT: u16 = 5201;
        let mut refused = None;
        for peer in open::resolve(host, PORT, IpVersion::Any)? {
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
            link: iface::of_local_address(bound.local.ip())?,
            path_mtu: sockopt::path_mtu(&bound.socket).ok(),
        })
    }
}
