//! The server: one TCP and one UDP port, many runs or one at a time with a visible queue.

mod agent;
mod datagrams;
mod embedded_server;
mod front;
mod inbox;
mod pending_connection;
mod probes;
mod queue;
mod registry;
mod session;
mod shares;
#[cfg(test)]
mod tests;
mod tickets;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_model::{Calibration, ForeignText, HostInfo};
use linerate_proto::Protocol;
use linerate_proto::agent::{SettingInForce, Token};
use linerate_sock::open::{bind_udp, listen_tcp};
use linerate_sock::poll::EventFd;
use linerate_sock::{SocketOptions, limits};
use linerate_units::{Bytes, Span};

use crate::error::ControlError;
use crate::host::{get_ready, host_info};
use crate::host_settings::{Guardians, Restored};
use crate::memory::Budget;
use crate::port_observer::PortObserver;
use crate::stand_in::LogStore;
use probes::Probes;
use queue::Queue;
use registry::Registry;
pub(crate) use shares::Permit;
use shares::Shares;
use tickets::Tickets;

/// Connections that may wait in the kernel until they are accepted.
const BACKLOG: i32 = 16_384;

/// Open files that a server wants: 10,000 streams both ways.
const WANTED_OPEN_FILES: u64 = 32_768;

/// Most clients and coordinators at once, each of which has a thread.
const MAX_CLIENTS: usize = 512;

/// Pairs of equal ports tried when the kernel chooses.
const MAX_PORT_TRIES: u32 = 32;

/// Who is measured when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// One run at a time; the others wait in a queue that they see.
    #[default]
    Exclusive,
    /// Everybody at once; each result says what ran beside it.
    Shared,
}

/// How a server behaves.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// Addresses to listen on; empty for all.
    pub addresses: Vec<SocketAddr>,
    /// Who is measured when.
    pub policy: Policy,
    /// Longest run, all phases together; absent for no limit.
    pub longest: Option<Span>,
    /// Most clients in the queue or at work; absent for no limit but memory.
    pub most_clients: Option<u32>,
    /// Memory that runs may take together; absent for a quarter of what this process may have.
    pub memory: Option<Bytes>,
    /// Stop after the first run.
    pub one_off: bool,
    /// What this host measured of itself; absent when it never did.
    pub calibration: Option<Box<Calibration>>,
    /// The secret of those who may have tests run from here; absent when nobody may.
    pub agent_token: Option<Token>,
    /// Protocols of others that are served at the same ports, by their servants.
    pub foreign: Vec<&'static Protocol>,
    /// Further ports, at which only others are served.
    pub classic: Vec<ClassicPort>,
    /// Where the event logs of runs with others go; absent to keep none.
    pub keeper: Option<Arc<dyn LogStore>>,
    /// Where an agent keeps the undo journal of settings of its host; absent for one that changes none.
    pub settings: Option<PathBuf>,
    /// What puts the settings back when the agent is killed; absent where the next start of an agent has to do it.
    pub guardians: Option<Arc<dyn Guardians>>,
    /// Who sees the packets of runs with others, in an emulated network; absent on a real host.
    pub observer: Option<Arc<dyn PortObserver + Send + Sync>>,
}

impl ServerConfig {
    /// The protocols of others whose usual port is ours: their clients need not be told where to go.
    #[must_use]
    pub fn others_at_home() -> Vec<&'static Protocol> {
        let at_home =
            |protocol: &&Protocol| protocol.default_port == linerate_proto::native::NATIVE.default_port;
        with_embedded_server(linerate_proto::ALL).into_iter().filter(at_home).collect()
    }
}

/// A port that tools of others expect, at every address of the server.
#[derive(Debug, Clone)]
pub struct ClassicPort {
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// Who may speak there; told apart by their first bytes where there are several.
    pub protocols: Vec<&'static Protocol>,
}

/// What happens on a server, for its owner's log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// It listens here.
    Listening(SocketAddr),
    /// A client was let in.
    Begun {
        /// Who.
        client: SocketAddr,
        /// Name of its host.
        name: ForeignText,
    },
    /// A client waits.
    Waiting {
        /// Who.
        client: SocketAddr,
        /// 1 is next.
        place: u32,
    },
    /// A coordinator was given the server's place: nobody else is measured until it is done.
    Held {
        /// Who.
        client: SocketAddr,
        /// What it calls itself.
        name: ForeignText,
    },
    /// A coordinator has a run carried out from here.
    Asked {
        /// Who.
        client: SocketAddr,
        /// The server to measure to.
        target: ForeignText,
    },
    /// Settings of this host were changed for a coordinator.
    SettingsChanged {
        /// Who.
        client: SocketAddr,
        /// All that is changed now; none when nothing could be.
        in_force: Vec<SettingInForce>,
    },
    /// Settings of this host were put back.
    SettingsRestored {
        /// For whom they had been changed.
        client: SocketAddr,
        /// What was, and what was not.
        restored: Restored,
    },
    /// A run ended.
    Ended {
        /// Whose.
        client: SocketAddr,
        /// Why, unless it was completed.
        trouble: Option<ForeignText>,
    },
    /// A connection was not ours.
    Foreign {
        /// Whose.
        client: SocketAddr,
        /// Why it was closed.
        why: ForeignText,
    },
    /// This process is out of descriptors, or the kernel of memory for sockets: who comes waits until some are free. Told
    /// every 10 s at most.
    OutOfFiles {
        /// What the kernel said.
        why: String,
        /// Open files that this process may have.
        allowed: u64,
    },
}

/// Ends a server from another thread. At rest a server sleeps until something arrives or this is turned off.
#[derive(Debug)]
pub struct ServerHandle {
    off: AtomicBool,
    waker: EventFd,
}

impl ServerHandle {
    /// A switch that is on.
    ///
    /// # Errors
    /// The host is out of descriptors.
    pub fn new() -> Result<Self, ControlError> {
        Ok(Self { off: AtomicBool::new(false), waker: EventFd::new()? })
    }

    /// Ends the server.
    pub fn turn_off(&self) {
        self.off.store(true, Ordering::Relaxed);
        // Never cleared, so that every thread that waits for it wakes.
        self.waker.wake();
    }

    /// Whether it was turned off.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    doors: Vec<front::Door>,
    config: ServerConfig,
}

/// What the threads of a server share.
struct Shared {
    registry: Registry,
    queue: Queue,
    passes: Tickets,
    memory: Arc<Budget>,
    probes: Probes,
    /// Places of clients and coordinators.
    clients: Arc<Shares>,
    /// A random number of this server, as digits.
    identity: String,
    config: ServerConfig,
    switch: Arc<ServerHandle>,
    event: Box<dyn Fn(ServerEvent) + Send + Sync>,
}

impl Shared {
    fn stopping(&self) -> bool {
        self.switch.is_off()
    }
}

impl ServerConfig {
    /// This host as its peers are told of it, seen from a connection that ends at `local`.
    fn host(&self, local: Option<IpAddr>) -> HostInfo {
        HostInfo { calibration: self.calibration.clone(), ..host_info(local) }
    }
}

impl Server {
    /// Opens the ports.
    ///
    /// # Errors
    /// An address is taken or not ours.
    pub fn bind(config: ServerConfig) -> Result<Self, ControlError> {
        // Best effort: with a lower limit the server works, and says so when a test needs more.
        if let Err(error) = limits::raise_open_files(WANTED_OPEN_FILES) {
            let all = limits::open_files().map(|files| files.hard).unwrap_or(0);
            let _ = limits::raise_open_files(all);
            tracing::info!(%error, allowed = all, "fewer open files than wanted");
        }
        let addresses = if config.addresses.is_empty() {
            vec![SocketAddr::from(([0_u16; 8], linerate_proto::native::NATIVE.default_port))]
        } else {
            config.addresses.clone()
        };
        let mut doors = Vec::new();
        for address in &addresses {
            let mut door = bind_pair(*address)?;
            door.protocols = with_embedded_server(&config.foreign);
            // Where the system chose, every address has a port of its own, and servants know the first.
            door.port = doors.first().map_or(door.port, |first: &front::Door| first.port);
            doors.push(door);
        }
        for (classic, address) in
            config.classic.iter().flat_map(|classic| addresses.iter().map(move |a| (classic, a)))
        {
            let door = bind_pair(SocketAddr::new(address.ip(), classic.port))?;
            let protocols = with_embedded_server(&classic.protocols);
            doors.push(front::Door { native: false, protocols, ..door });
        }
        Ok(Self { doors, config })
    }

    /// Where it listens; the classic ports come last.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.doors.iter().map(|door| door.address).collect()
    }

    /// Serves until the switch is off, or one run is over if it shall be only one.
    ///
    /// # Errors
    /// The host refuses threads or polling.
    pub fn run(
        self,
        switch: Arc<ServerHandle>,
        event: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<(), ControlError> {
        // A program of others that connects has begun its test.
        if self.config.keeper.is_some() {
            get_ready();
        }
        for door in &self.doors {
            event(ServerEvent::Listening(door.address));
        }
        let shared = Arc::new(Shared {
            registry: Registry::new()?,
            queue: Queue::new(self.config.policy, self.config.most_clients),
            passes: Tickets::default(),
            memory: Budget::new(self.config.memory),
            probes: Probes::new()?,
            clients: Shares::new(MAX_CLIENTS),
            identity: identity()?,
            config: self.config,
            switch,
            event: Box::new(event),
        });
        front::serve(self.doors, &shared)
    }
}

fn identity() -> Result<String, ControlError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ControlError::Local(format!("no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// TCP and UDP on the same port; for port 0 the kernel chooses one that is free for both.
fn bind_pair(address: SocketAddr) -> Result<front::Door, ControlError> {
    let mut tries = if address.port() == 0 { MAX_PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        // A listener that knows MPTCP serves plain TCP clients as plain TCP; a kernel without it makes a plain one.
        let requested = SocketOptions { mptcp: true, ..SocketOptions::default() };
        let tcp = match listen_tcp(address, BACKLOG, &requested) {
            // A host without IPv6 is still served.
            Err(error) if address.ip().is_unspecified() && address.is_ipv6() && no_ipv6(&error) => {
                return bind_pair(SocketAddr::from(([0_u8; 4], address.port())));
            }
            other => other?,
        };
        let requested = SocketOptions {
            reuse_port: true,
            rcv_buf: Some(crate::setup::UDP_RCV_BUF),
            ..SocketOptions::default()
        };
        match bind_udp(tcp.local, &requested) {
            Ok(udp) => {
                return Ok(front::Door {
                    address: tcp.local,
                    listener: tcp.listener,
                    socket: Arc::new(udp.socket),
                    port: tcp.local.port(),
                    native: true,
                    protocols: Vec::new(),
                });
            }
            Err(error) if tries == 0 => return Err(error.into()),
            Err(_) => {}
        }
    }
}

/// Those that have a servant.
fn with_embedded_server(protocols: &[&'static Protocol]) -> Vec<&'static Protocol> {
    protocols.iter().copied().filter(|protocol| protocol.embedded_server.is_some()).collect()
}

pub(crate) fn no_ipv6(error: &linerate_sock::SockError) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    const EADDRNOTAVAIL: i32 = 99;
    matches!(error.raw_os_error(), Some(EAFNOSUPPORT | EADDRNOTAVAIL))
}
