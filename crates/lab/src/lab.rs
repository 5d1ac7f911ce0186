//! A lab in the process that is its switch.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use linerate_sock::netns::with_netns_fd;
use linerate_sock::poll::EventFd;
use linerate_sock::routing::{RoutingSocket, index_of};
use linerate_sock::{SockError, clock, limits, process, thread};

use crate::control::{ControlState, serve};
use crate::control_protocol::HostStatus;
use crate::history::History;
use crate::host_nic::HostNic;
use crate::memory_limit::MemoryLimit;
use crate::state_dir::StateDir;
use crate::switch::{Gauge, SwitchLoop, SwitchOrder};
use crate::{HostTap, LabHostResources, LabName, LabResourceError, LabResources, Privilege, Site};
use linerate_emu::fabric::{AttachmentPoint, Fabric, Router};
use linerate_emu::topology::Topology;
use linerate_units::Bytes;

/// Why a lab cannot be created, or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Its hosts cannot be created or removed.
    #[error(transparent)]
    Resources(#[from] LabResourceError),
    /// Another system call failed.
    #[error(transparent)]
    System(#[from] SockError),
    /// More packets wait in its buffers and delays than this host has memory for.
    #[error(
        "the packets in transit take {used} of memory, and a lab may take {limit}; make buffers smaller or delays shorter"
    )]
    Memory {
        /// What the switch takes.
        used: Bytes,
        /// What it may take.
        limit: Bytes,
    },
    /// Its control socket cannot be created.
    #[error("the control socket of the lab cannot be created in {path}")]
    Control {
        /// Its folder.
        path: std::path::PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A lab whose hosts exist and whose switch is about to run.
#[derive(Debug)]
pub struct Lab {
    resources: LabResources,
    switch: SwitchLoop,
    stopper: Stopper,
    memory: MemoryLimit,
}

/// Stops the switch of a lab, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper {
    orders: Sender<SwitchOrder>,
    waker: Arc<EventFd>,
}

impl Stopper {
    /// The switch ends as soon as it has completed its current step.
    pub fn stop(&self) {
        // A switch that has already ended accepts no orders.
        let _ = self.orders.send(SwitchOrder::Stop);
        self.waker.wake();
    }
}

impl Lab {
    /// Creates the hosts and the control socket of a lab, whose packets in transit may take so much memory; absent for
    /// a quarter of what this process may take. The process must have a single thread: without root
    /// it first becomes root in a user namespace.
    ///
    /// # Errors
    /// A name is taken, permission is missing, or the process may not open enough files; everything is removed
    /// again.
    pub fn create(
        topology: Topology,
        name: &LabName,
        place: &StateDir,
        memory: Option<Bytes>,
    ) -> Result<Self, LabError> {
        let privilege = Privilege::acquire()?;
        // Its own session: closing the terminal that it was started from does not end the lab.
        let _ = process::new_session();
        clock::set_timer_slack_ns(1)?;
        // Without the highest priority it is late more often, which it reports.
        let _ = process::first_in_line();
        limits::raise_open_files(open_files(&topology))?;
        let site = Site { run_dir: place.run_dir().to_owned(), privilege };
        let mut resources = LabResources::create(&topology, name, &site)?;
        match create_hosts(topology, name, place, privilege, &mut resources) {
            Ok((switch, stopper)) => {
                Ok(Self { resources, switch, stopper, memory: MemoryLimit::new(memory) })
            }
            Err(error) => {
                let _ = resources.remove();
                Err(error)
            }
        }
    }

    /// The handle that stops it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Forwards packets until it is stopped, then removes everything. If it ends by itself, `on_error` gets the reason while
    /// the hosts still stand: whoever loses one of them can then know why.
    ///
    /// # Errors
    /// The kernel refuses to poll, packets take too much memory, or something cannot be removed.
    pub fn run(self, on_error: impl FnOnce(&LabError)) -> Result<(), LabError> {
        let Self { resources, mut switch, memory, .. } = self;
        let ran = switch.run(memory).inspect_err(on_error);
        drop(switch);
        resources.remove()?;
        ran
    }
}

/// How many files the switch of this network may have open at a time.
fn open_files(topology: &Topology) -> u64 {
    /// Its namespace, twice, its TAP device, and a socket for the counters of that.
    const FILES_OF_A_HOST: u64 = 4;
    /// Libraries, logs, the control socket and its clients.
    const OTHER_FILES: u64 = 256;
    topology.hosts.len() as u64 * FILES_OF_A_HOST + OTHER_FILES
}

fn create_hosts(
    topology: Topology,
    name: &LabName,
    place: &StateDir,
    privilege: Privilege,
    resources: &mut LabResources,
) -> Result<(SwitchLoop, Stopper), LabError> {
    let handle = place.lab(name.clone());
    handle.write_names(&topology)?;
    let path = handle.socket();
    let listener =
        UnixListener::bind(&path).map_err(|source| LabError::Control { path: path.clone(), source })?;
    let epoch = clock::now();
    let (orders, taken) = channel();
    let waker = Arc::new(EventFd::new()?);
    let history = Arc::new(Mutex::new(History::default()));
    let fabric = Fabric::new(&topology, router(&topology));
    let gauges = gauges(resources)?;
    let nics = nics(&topology, resources)?;
    let plugged = resources
        .taps
        .drain(..)
        .map(|cable| (AttachmentPoint { host: cable.host, link: cable.link }, cable.tap))
        .collect();
    let switch =
        SwitchLoop::new(fabric, plugged, epoch, taken, Arc::clone(&waker), Arc::clone(&history), gauges);
    let state = Arc::new(ControlState {
        name: name.to_string(),
        hosts: resources.hosts.iter().map(status_of).collect(),
        notes: resources.notes.clone(),
        rootless: privilege == Privilege::UserNamespace,
        topology: Mutex::new(topology),
        epoch,
        orders: Mutex::new(orders.clone()),
        waker: Arc::clone(&waker),
        history,
        nics,
    });
    let served = thread::spawn("lab-control", move || serve(&listener, &state));
    served.map_err(|error| LabError::Control { path: path.clone(), source: error.source })?;
    Ok((switch, Stopper { orders, waker }))
}

/// The NICs that follow changes of their links.
fn nics(topology: &Topology, resources: &LabResources) -> Result<Vec<HostNic>, SockError> {
    let paced = resources.taps.iter().filter(|cable| topology.links[cable.link].nic);
    let nic = |cable: &HostTap| {
        let copied = resources.hosts[cable.host].netns.try_clone();
        let netns = copied.map_err(|source| SockError::new("keep a network namespace", source))?;
        Ok(HostNic::new(cable, &topology.links[cable.link], netns))
    };
    paced.map(nic).collect()
}

/// One for each interface, opened in its host's network namespace.
fn gauges(resources: &LabResources) -> Result<Vec<Gauge>, SockError> {
    let gauge = |cable: &HostTap| {
        with_netns_fd(&resources.hosts[cable.host].netns, || {
            Ok(Gauge { routing: RoutingSocket::open()?, index: index_of(cable.tap.name())? })
        })?
    };
    resources.taps.iter().map(gauge).collect()
}

fn status_of(host: &LabHostResources) -> HostStatus {
    HostStatus {
        name: host.name.clone(),
        address: format!("{}/{}", host.v4.0, host.v4.1),
        address6: format!("{}/{}", host.v6.0, host.v6.1),
        netns: host.netns_name.clone().unwrap_or_else(|| host.path().display().to_string()),
    }
}

/// The addresses of the emulated routers: the highest ones of the hosts' network that no host has.
fn router(topology: &Topology) -> Router {
    let taken4: Vec<Ipv4Addr> = topology.hosts.iter().map(|host| host.v4.0).collect();
    let taken6: Vec<Ipv6Addr> = topology.hosts.iter().map(|host| host.v6.0).collect();
    let first = topology.hosts.first();
    let last4 =
        first.map_or(0, |host| u32::from(host.v4.0) | u32::MAX.checked_shr(host.v4.1.into()).unwrap_or(0));
    let last6 =
        first.map_or(0, |host| u128::from(host.v6.0) | u128::MAX.checked_shr(host.v6.1.into()).unwrap_or(0));
    let below4 = (1..256).map(|down| Ipv4Addr::from(last4.wrapping_sub(down)));
    let below6 = (1..256).map(|down| Ipv6Addr::from(last6.wrapping_sub(down)));
    Router {
        // Locally administered; the addresses of hosts are constructed differently.
        mac: [0x02, 0x6c, 0x72, 0xff, 0xff, 0xfe],
        v4: below4.into_iter().find(|address| !taken4.contains(address)).unwrap_or(Ipv4Addr::UNSPECIFIED),
        v6: below6.into_iter().find(|address| !taken6.contains(address)).unwrap_or(Ipv6Addr::UNSPECIFIED),
    }
}
