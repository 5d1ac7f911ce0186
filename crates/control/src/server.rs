//! The server: one TCP and one UDP port, with many runs at once or one at a time and a visible queue.
//!
//! An idle server has one thread, in which the front waits for everything that may arrive at its ports. Each client
//! and each coordinator has a thread, each foreign tool has one while it has clients, and latency probes are answered
//! by another one during runs.

mod agent;
mod datagrams;
mod embedded_server;
mod event;
mod front;
mod handover;
mod inbox;
mod limits;
mod open_port;
mod own_run;
mod pending_connection;
mod queue;
mod quota;
mod reachable;
mod reflector;
mod registry;
mod session;
mod start_tickets;
#[cfg(test)]
mod tests;
mod tickets;

use std::collections::hash_map::RandomState;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_compat::Tool;
pub use linerate_model::Policy;
use linerate_model::{Calibration, HostInfo};
use linerate_proto::agent::Token;
use linerate_sock::iface::ConnectionEnds;
use linerate_sock::inherited::InheritedSockets;
use linerate_sock::limits as process_limits;
use linerate_sock::poll::{EventFd, Poller};
use linerate_units::Span;

use crate::error::ControlError;
use crate::host::{get_ready, host_info, host_info_of};
use crate::memory::Budget;
use crate::port_observer::PortObserver;
use crate::restored::Guardians;
use crate::shares::Shares;
use crate::stand_in::LogStore;
use crate::tls::{ServerIdentity, TlsRequirement};
use embedded_server::EmbeddedServer;
pub use event::ServerEvent;
pub use handover::PortHandover;
use inbox::Inbox;
pub use limits::{ServerLimits, ServerReload};
use open_port::{OpenPort, OpenPorts, PortTls};
use own_run::VisitorPorts;
pub use own_run::{BrowserPort, OwnRun, OwnRunTurn, OwnRuns, QueueLoad};
use queue::ClientQueue;
pub use quota::Quotas;
pub use reachable::{canonical_address, listening_text};
use reflector::Reflector;
use registry::Registry;
pub use start_tickets::{NoTicket, StartTickets};
use tickets::Tickets;

/// Number of open files that a server requests: enough for 10,000 streams in both directions.
const WANTED_OPEN_FILES: u64 = 32_768;

/// Most clients and coordinators at once; each has a thread.
const MAX_CLIENTS: usize = 512;

/// The configuration of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// Addresses to listen on; empty for all.
    pub addresses: Vec<SocketAddr>,
    /// Whether runs are measured one at a time or together.
    pub policy: Policy,
    /// Limits on its clients.
    pub limits: ServerLimits,
    /// Stop after the first run.
    pub one_off: bool,
    /// The stored calibration of this host; absent if it was never calibrated.
    pub calibration: Option<Box<Calibration>>,
    /// The certificate of the server. With one, clients may encrypt their control connections, and tests of browsers
    /// are served within TLS too.
    pub identity: Option<Arc<dyn ServerIdentity>>,
    /// Who has to encrypt. It needs a certificate.
    pub tls_required: TlsRequirement,
    /// The secret that coordinators must know to direct this agent; absent if it does not accept any.
    pub agent_token: Option<Token>,
    /// Foreign tools that embedded servers serve on the same ports.
    pub foreign: Vec<&'static Tool>,
    /// Protocols of these tools that are not served, of those in [`Tool::protocols`].
    pub without: Vec<String>,
    /// Further ports, on which only foreign tools are served.
    pub classic: Vec<ClassicPort>,
    /// The port of clients that measure responsiveness, on every address of the server; absent to serve none. It needs a
    /// certificate, and a build with HTTP/2.
    pub responsiveness: Option<u16>,
    /// Where the event logs of runs with foreign tools are stored; absent to store none.
    pub log_store: Option<Arc<dyn LogStore>>,
    /// Folder for the undo journal of an agent's host settings; absent for an agent that changes none.
    pub settings: Option<PathBuf>,
    /// Starts the process that restores settings when the agent is killed; absent if the next start of an agent
    /// does it.
    pub guardians: Option<Arc<dyn Guardians>>,
    /// Observes the packets of runs with foreign tools in an emulated network; absent on a real host.
    pub observer: Option<Arc<dyn PortObserver + Send + Sync>>,
    /// Called regularly while the server serves its ports; absent if nobody watches it.
    pub heartbeat: Option<Heartbeat>,
}

/// A function that the thread of the ports calls regularly. It must return at once.
#[derive(Clone)]
pub struct Heartbeat {
    /// Time from one call to the next.
    pub interval: Duration,
    /// The function.
    pub beat: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heartbeat").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl ServerConfig {
    /// The foreign tools with the same default port as ours, which their clients therefore find without
    /// options.
    #[must_use]
    pub fn others_at_home() -> Vec<&'static Tool> {
        let at_home = |tool: &&Tool| tool.default_port == linerate_proto::native::NATIVE.default_port;
        linerate_compat::ALL.iter().copied().filter(at_home).collect()
    }

    /// Removes the tools of which nothing is served, and the ports on which there is none then.
    fn leave_out(&mut self) {
        let without = &self.without;
        let is_served = |tool: &&Tool| {
            tool.protocols().iter().any(|protocol| without.iter().all(|name| name != protocol))
        };
        self.foreign.retain(is_served);
        self.classic.iter_mut().for_each(|port| port.tools.retain(is_served));
        self.classic.retain(|port| !port.tools.is_empty());
        let measures = linerate_compat::ALL.iter().any(|tool| tool.needs_tls() && is_served(tool));
        self.responsiveness = self.responsiveness.filter(|_| measures);
    }

    /// The ports that all other foreign tools expect, in the order of their numbers.
    #[must_use]
    pub fn classic_ports() -> Vec<ClassicPort> {
        let mut ports: Vec<ClassicPort> = Vec::new();
        let at_home = Self::others_at_home();
        let is_elsewhere =
            |tool: &&&Tool| at_home.iter().all(|own| own.name != tool.name) && !tool.needs_tls();
        for tool in linerate_compat::ALL.iter().filter(is_elsewhere) {
            match ports.iter_mut().find(|classic| classic.port == tool.default_port) {
                Some(classic) => classic.tools.push(tool),
                None => ports.push(ClassicPort { port: tool.default_port, tools: vec![tool] }),
            }
        }
        ports.sort_by_key(|classic| classic.port);
        ports
    }
}

/// A port that foreign tools expect, on every address of the server.
#[derive(Debug, Clone)]
pub struct ClassicPort {
    /// The port; 0 lets the kernel choose.
    pub port: u16,
    /// The tools served there. If there are several, their first bytes distinguish them.
    pub tools: Vec<&'static Tool>,
}

/// Stops a server from another thread. An idle server sleeps until something arrives or it is stopped.
#[derive(Debug)]
pub struct ServerHandle {
    off: AtomicBool,
    waker: EventFd,
}

impl ServerHandle {
    /// Creates the handle of a server that is not stopped.
    ///
    /// # Errors
    /// The host is out of file descriptors.
    pub fn new() -> Result<Self, ControlError> {
        Ok(Self { off: AtomicBool::new(false), waker: EventFd::new()? })
    }

    /// Stops the server.
    pub fn turn_off(&self) {
        self.off.store(true, Ordering::Relaxed);
        // The waker is never cleared, so every thread that waits for it wakes up.
        self.waker.wake();
    }

    /// Whether the server was stopped.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Relaxed)
    }
}

/// A server with open ports.
#[derive(Debug)]
pub struct Server {
    ports: OpenPorts,
    reload: ServerReload,
    handover: PortHandover,
    start_tickets: Arc<StartTickets>,
    config: ServerConfig,
}

/// What the threads of a server share.
struct Shared {
    registry: Registry,
    queue: Arc<ClientQueue>,
    tickets: Tickets,
    start_tickets: Arc<StartTickets>,
    memory: Arc<Budget>,
    /// The secret of an agent's coordinators, as it is now.
    agent_token: Arc<Mutex<Option<Token>>>,
    ports: Vec<OpenPort>,
    /// The foreign tools that are served, in the order of their first ports.
    embedded: Vec<EmbeddedServer>,
    /// What the front waits for. Threads that end return to it what they have waited for.
    poller: Poller,
    reflector: Reflector,
    handover: PortHandover,
    /// The key of the challenges of UDP flows: random for every server and never sent.
    challenge_key: RandomState,
    /// Places for clients and coordinators.
    clients: Arc<Shares>,
    /// A random number that identifies this server, as digits.
    identity: String,
    config: ServerConfig,
    switch: Arc<ServerHandle>,
    event: Box<dyn Fn(ServerEvent) + Send + Sync>,
}

impl Shared {
    fn stopping(&self) -> bool {
        self.switch.is_off()
    }

    /// The longest run that is allowed now.
    fn longest(&self) -> Option<Span> {
        self.queue.longest()
    }

    /// The inboxes of all embedded servers.
    fn inboxes(&self) -> impl Iterator<Item = &Arc<Inbox>> {
        self.embedded.iter().map(|server| &server.inbox)
    }
}

impl ServerConfig {
    /// The description of this host for its peers, for a connection whose local address is `local`.
    fn host(&self, local: Option<IpAddr>) -> HostInfo {
        HostInfo { calibration: self.calibration.clone(), ..host_info(local) }
    }

    /// The description of this host for the other end of a connection.
    fn host_of(&self, ends: Option<&ConnectionEnds>) -> HostInfo {
        HostInfo { calibration: self.calibration.clone(), ..host_info_of(ends) }
    }
}

impl Server {
    /// Opens the ports.
    ///
    /// # Errors
    /// An address is in use or does not belong to this host.
    pub fn bind(config: ServerConfig) -> Result<Self, ControlError> {
        Self::bind_with(config, &mut InheritedSockets::default())
    }

    /// Opens the ports, and takes those over that the service manager has opened: if it has any TCP listener, its
    /// listeners replace the addresses of the configuration.
    ///
    /// # Errors
    /// An address is in use or does not belong to this host.
    pub fn bind_with(
        mut config: ServerConfig,
        inherited: &mut InheritedSockets,
    ) -> Result<Self, ControlError> {
        config.leave_out();
        // Best effort: with a lower limit the server works, and reports an error when a test needs more.
        if let Err(error) = process_limits::raise_open_files(WANTED_OPEN_FILES) {
            let all = process_limits::open_files().map(|files| files.hard).unwrap_or(0);
            let _ = process_limits::raise_open_files(all);
            tracing::info!(%error, allowed = all, "fewer open files than wanted");
        }
        let addresses = if config.addresses.is_empty() {
            vec![SocketAddr::from(([0_u16; 8], linerate_proto::native::NATIVE.default_port))]
        } else {
            config.addresses.clone()
        };
        let ports = OpenPorts::open(&addresses, &config, inherited)?;
        let reload = ServerReload {
            queue: Arc::new(ClientQueue::new(config.policy, config.limits)),
            memory: Budget::new(config.limits.memory),
            agent_token: Arc::new(Mutex::new(config.agent_token.take())),
        };
        // Ports of the service manager may have other numbers than those of the configuration.
        let own = ports.ports.iter().filter(|port| port.native);
        let handover = PortHandover::new(own.map(|port| port.address.ip()))?;
        Ok(Self { ports, reload, handover, start_tickets: StartTickets::new(), config })
    }

    /// Takes connections that the program has accepted elsewhere, as if they had come to the port of this server.
    #[must_use]
    pub fn handover(&self) -> PortHandover {
        self.handover.clone()
    }

    /// Changes this server while it runs.
    #[must_use]
    pub fn reload(&self) -> ServerReload {
        self.reload.clone()
    }

    /// The addresses on which it listens; those of the classic ports come last.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.ports.ports.iter().map(|port| port.address).collect()
    }

    /// The addresses at which its own protocol is served too.
    #[must_use]
    pub fn own_addresses(&self) -> Vec<SocketAddr> {
        self.ports.ports.iter().filter(|port| port.native).map(|port| port.address).collect()
    }

    /// Where it serves, in one line.
    #[must_use]
    pub fn status(&self) -> String {
        let addresses: Vec<String> = self.addresses().iter().map(ToString::to_string).collect();
        format!("serving at {}", addresses.join(", "))
    }

    /// The queue of this server, for runs that the program starts itself.
    #[must_use]
    pub fn own_runs(&self) -> OwnRuns {
        // All addresses have the same port.
        let port = self.ports.ports.first().map_or(0, |port| port.address.port());
        let has_browsers = |inbox: &Arc<Inbox>| inbox.tool.name == linerate_compat::http::HTTP.name;
        let serves = self.ports.inboxes.iter().any(has_browsers)
            && self.config.without.iter().all(|name| name != linerate_compat::http::BROWSER);
        let browsers = BrowserPort { number: port, has_tls: self.config.identity.is_some() };
        let responsiveness = self.ports.ports.iter().find(|port| port.tls == PortTls::Http2);
        OwnRuns::new(
            Arc::clone(&self.reload.queue),
            port,
            VisitorPorts {
                browsers: serves.then_some(browsers),
                responsiveness: responsiveness.map(|port| port.address.port()),
            },
            Arc::clone(&self.start_tickets),
        )
    }

    /// Serves until the handle stops it, or until one run has ended if only one was requested.
    ///
    /// # Errors
    /// The host refuses threads or polling.
    pub fn run(
        self,
        switch: Arc<ServerHandle>,
        event: impl Fn(ServerEvent) + Send + Sync + 'static,
    ) -> Result<(), ControlError> {
        // A foreign client begins its test as soon as it connects, and a native one waits for the description of this
        // host, so what takes time in it is measured now.
        get_ready();
        for port in &self.ports.ports {
            event(match port.tls {
                PortTls::Http2 => ServerEvent::ListeningForResponsiveness(port.address),
                PortTls::None | PortTls::Control => ServerEvent::Listening(port.address),
            });
        }
        let OpenPorts { ports, inboxes } = self.ports;
        let shared = Arc::new(Shared {
            registry: Registry::new()?,
            queue: self.reload.queue,
            tickets: Tickets::default(),
            start_tickets: self.start_tickets,
            memory: self.reload.memory,
            agent_token: self.reload.agent_token,
            ports,
            embedded: inboxes.into_iter().map(EmbeddedServer::new).collect(),
            poller: Poller::new()?,
            reflector: Reflector::new()?,
            handover: self.handover,
            challenge_key: RandomState::new(),
            clients: Shares::new(MAX_CLIENTS),
            identity: identity()?,
            config: self.config,
            switch,
            event: Box::new(event),
        });
        front::serve(&shared)
    }
}

fn identity() -> Result<String, ControlError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| ControlError::Local(format!("no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
