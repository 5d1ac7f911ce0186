//! The embedded server of a foreign tool: a server stand-in that gets what arrives for it on the server's
//! ports.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use linerate_compat::EmbeddedServerConfig;
use linerate_compat::stand_in::{Planned, RunId, StandIn, Transport};
use linerate_sock::poll::{Interest, poll_few};
use linerate_sock::{Mono, clock};
use linerate_units::{Bytes, Span};

use super::inbox::Inbox;
use super::queue::Turn;
use super::{Policy, ServerConfig, ServerEvent, Shared};
use crate::error::ControlError;
use crate::memory::Loan;
use crate::port_observer::PortObserver;
use crate::stand_in::{Door, Incoming, MeasurementPermit, ServerPorts, serve_at};

/// Delay before a failed embedded server is restarted; bounds the cost of one that fails immediately.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// Assumed duration of a run if the client does not announce one.
const DEFAULT_RUN_TIME: Span = Span::from_secs(60);

/// How much longer than the limit a run may take: time for opening, draining and the dialogue.
const RUN_GRACE: Duration = Duration::from_secs(10);

/// A port of the server on which the embedded server can be reached.
#[derive(Debug, Clone)]
pub(super) struct ServerPort {
    /// The port number as the embedded server knows it. The addresses of one server may have different ports.
    pub(super) port: u16,
    pub(super) address: SocketAddr,
    /// The datagram socket of this port.
    pub(super) socket: Arc<UdpSocket>,
}

/// The ports of the server, as one embedded server sees them.
#[derive(Debug)]
pub(super) struct Posts {
    /// Ports on which it can always be reached.
    pub(super) own: Vec<ServerPort>,
    /// Ports of other protocols, on which it can be reached only during a run.
    pub(super) others: Vec<ServerPort>,
}

/// Runs embedded servers of one tool, one after another, until the server stops.
pub(super) fn serve(inbox: &Inbox, posts: &Posts, shared: &Shared) {
    let Some(first) = posts.own.first() else { return };
    while !shared.stopping() {
        let config = EmbeddedServerConfig {
            port: first.port,
            shared: shared.config.policy == Policy::Shared,
            seed: seed(),
            wall: Span::from_ns(clock::wall_ns()),
        };
        let mut ports = InboxPorts { inbox, posts, shared, clients: BTreeMap::new() };
        // If a stand-in panics, the other tools and the next clients are still served.
        let life = catch_unwind(AssertUnwindSafe(|| live((inbox.tool.embedded_server)(&config), &mut ports)));
        ports.release_all();
        if !shared.stopping() {
            let ended = life.map(|result| result.map(|code| format!("exit code {code}")));
            tracing::warn!(tool = inbox.tool.name, ?ended, "an embedded server ended and is replaced");
            let _ = poll_few(&[(shared.switch.waker.as_fd(), Interest::READ)], clock::now() + RESTART_DELAY);
        }
    }
}

fn live(stand_in: Box<dyn StandIn>, ports: &mut InboxPorts<'_>) -> Result<i32, ControlError> {
    let ServerConfig { keeper, observer, .. } = ports.shared.config.clone();
    let observer = observer.as_deref().map(|observer| observer as &dyn PortObserver);
    serve_at(stand_in, &ports.inbox.interrupts, keeper.as_deref(), observer, ports)
}

fn seed() -> u64 {
    let mut bytes = [0; 8];
    // Without a random number the clock is used: the number is not secret, it only has to be unlikely to
    // repeat.
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => clock::now().as_ns(),
    }
}

/// The server as an embedded server sees it.
struct InboxPorts<'a> {
    inbox: &'a Inbox,
    posts: &'a Posts,
    shared: &'a Shared,
    clients: BTreeMap<RunId, Client>,
}

/// An admitted run.
struct Client {
    ticket: u64,
    address: SocketAddr,
}

impl InboxPorts<'_> {
    /// Releases the places of an embedded server that has ended.
    fn release_all(&mut self) {
        for run in self.clients.keys().copied().collect::<Vec<_>>() {
            self.over(run, Some("the embedded server ended during the run"));
        }
    }

    /// Admits a run, unless a limit of the server or another run forbids it.
    fn admit(&mut self, planned: &Planned, address: SocketAddr) -> Result<MeasurementPermit, String> {
        let config = &self.shared.config;
        let too_long = |longest: &Span| planned.expected.is_some_and(|expected| expected > *longest);
        if let Some(longest) = config.longest.filter(too_long) {
            return Err(format!("the run would take longer than the {longest} that this server allows"));
        }
        let length = planned.expected.or(config.longest).unwrap_or(DEFAULT_RUN_TIME);
        let ticket = self.shared.queue.join(address.ip(), length).map_err(|full| full.to_string())?;
        let Turn::Now { concurrent_runs } = self.shared.queue.turn(ticket) else {
            self.shared.queue.leave_for_retry(ticket);
            return Err("another run is in progress".to_owned());
        };
        let name = match &planned.peer {
            Some(peer) => format!("{}: {peer}", planned.tool),
            None => planned.tool.to_owned(),
        };
        (self.shared.event)(ServerEvent::Begun { client: address, name: name.into() });
        self.inbox.guest_came(address.ip());
        self.clients.insert(planned.run, Client { ticket, address });
        let until =
            config.longest.map_or(Mono::FAR, |longest| clock::now() + longest.as_duration() + RUN_GRACE);
        Ok(MeasurementPermit { concurrent_runs, until })
    }
}

impl ServerPorts for InboxPorts<'_> {
    fn waker(&self) -> BorrowedFd<'_> {
        self.inbox.waker.as_fd()
    }

    fn take(&mut self) -> Option<Incoming> {
        self.inbox.take()
    }

    fn doors(&self, transport: Transport, port: u16) -> Vec<Door> {
        let door = |post: &ServerPort| Door {
            transport,
            port,
            address: post.address,
            socket: (transport == Transport::Udp).then(|| Arc::clone(&post.socket)),
        };
        let at = |posts: &[ServerPort]| {
            posts.iter().filter(|post| post.port == port).map(door).collect::<Vec<_>>()
        };
        let own = at(&self.posts.own);
        if !own.is_empty() {
            return own;
        }
        let others = at(&self.posts.others);
        if !others.is_empty() {
            self.inbox.claim(port);
        }
        others
    }

    fn ask(&mut self, planned: &Planned, peer: Option<SocketAddr>) -> Result<MeasurementPermit, String> {
        let address = peer.unwrap_or(SocketAddr::from(([0; 4], 0)));
        let leave = self.admit(planned, address);
        if let Err(why) = &leave {
            let why = format!("{}: {why}", planned.tool);
            (self.shared.event)(ServerEvent::Foreign { client: address, why: why.into() });
        }
        leave
    }

    fn over(&mut self, run: RunId, trouble: Option<&str>) -> u32 {
        let Some(client) = self.clients.remove(&run) else { return 0 };
        self.inbox.guest_left(client.address.ip());
        let concurrent_runs = match self.shared.queue.turn(client.ticket) {
            Turn::Now { concurrent_runs } => concurrent_runs,
            Turn::Later { .. } | Turn::Displaced => 0,
        };
        self.shared.queue.leave(client.ticket);
        (self.shared.event)(ServerEvent::Ended { client: client.address, trouble: trouble.map(Into::into) });
        if self.shared.config.one_off {
            self.shared.switch.turn_off();
        }
        concurrent_runs
    }

    fn others_wait(&self, run: RunId) -> bool {
        self.clients.get(&run).is_some_and(|client| self.shared.queue.others_wait(client.ticket))
    }

    fn reserve_memory(&mut self, needed: Bytes) -> Result<Loan, String> {
        self.shared.memory.reserve(needed)
    }

    fn end_by(&self) -> Mono {
        self.inbox.end_by()
    }
}
