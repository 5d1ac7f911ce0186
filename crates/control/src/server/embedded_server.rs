//! The embedded server of a foreign tool: a server stand-in that gets what arrives for it on the server's
//! ports.
//!
//! It has a thread only while it has clients. Then the front waits for the next one.

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_compat::stand_in::{Planned, RunId, Transport};
use linerate_compat::{EmbeddedServerConfig, StartCheck};
use linerate_model::FlowOutcome;
use linerate_sock::poll::{Interest, Poller, poll_few};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, SockError, clock};
use linerate_units::{Bytes, Span};

use super::front::PollSource;
use super::inbox::Inbox;
use super::open_port::OpenPort;
use super::queue::QueueDecision;
use super::start_tickets::StartTickets;
use super::{Policy, ServerConfig, ServerEvent, Shared};
use crate::error::ControlError;
use crate::memory::Loan;
use crate::port_observer::PortObserver;
use crate::stand_in::{
    self, EmbeddedStandIn, IdleDriver, Incoming, MeasurementPermit, MeasurementRefusal, ReleasedPlace,
    Returned, ServerPorts, serve_at,
};

/// Delay before a failed embedded server is restarted; bounds the cost of one that fails immediately.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// Assumed duration of a run if the client does not announce one.
const DEFAULT_RUN_TIME: Span = Span::from_secs(60);

/// How much longer than the limit a run may take: time for opening, draining and the dialogue.
const RUN_GRACE: Duration = Duration::from_secs(10);

/// The embedded server of one tool.
pub(super) struct EmbeddedServer {
    pub(super) inbox: Arc<Inbox>,
    /// Its driver while it has no thread; absent also before its first thread.
    idle: Mutex<Option<Box<IdleDriver>>>,
}

impl EmbeddedServer {
    pub(super) fn new(inbox: Arc<Inbox>) -> Self {
        Self { inbox, idle: Mutex::default() }
    }

    /// Lets the front wait for the next client, which `poller` reports with this token. Returns the driver if
    /// the kernel refuses that.
    pub(super) fn rest(
        &self,
        idle: Box<IdleDriver>,
        poller: &Poller,
        token: u64,
    ) -> Result<(), (SockError, Box<IdleDriver>)> {
        // Locked until the driver is there, because the front may be woken at once.
        let mut here = locked(&self.idle);
        match poller.add_poller(idle.poller(), token) {
            Ok(()) => {
                *here = Some(idle);
                Ok(())
            }
            Err(error) => Err((error, idle)),
        }
    }

    /// Takes the driver in order to give it a thread; absent if it has one.
    pub(super) fn wake(&self, poller: &Poller) -> Option<Box<IdleDriver>> {
        let idle = locked(&self.idle).take()?;
        let _ = poller.remove_poller(idle.poller());
        Some(idle)
    }
}

/// Runs embedded servers of one tool, one after another, until the server stops or there are no clients. The
/// first one is `idle`, if there is one.
pub(super) fn serve(at: usize, mut idle: Option<Box<IdleDriver>>, shared: &Shared) {
    let Some(server) = shared.embedded.get(at) else { return };
    let inbox = &*server.inbox;
    while !shared.stopping() {
        let mut ports = InboxPorts { inbox, shared, clients: BTreeMap::new() };
        let first = idle.take();
        // If a stand-in panics, the other tools and the next clients are still served.
        let life = catch_unwind(AssertUnwindSafe(|| live(first, &mut ports)));
        ports.release_all();
        let ended = match life {
            Ok(Ok(Returned::Idle(driver))) => {
                match server.rest(driver, &shared.poller, PollSource::Embedded(at).token()) {
                    Ok(()) => return,
                    Err((error, driver)) => {
                        tracing::warn!(tool = inbox.tool.name, %error, "an embedded server keeps its thread");
                        idle = Some(driver);
                        continue;
                    }
                }
            }
            Ok(Ok(Returned::Exited(code))) => format!("exit code {code}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "panicked".to_owned(),
        };
        if !shared.stopping() {
            tracing::warn!(tool = inbox.tool.name, ended, "an embedded server ended and is replaced");
            let _ = poll_few(&[(shared.switch.waker.as_fd(), Interest::READ)], clock::now() + RESTART_DELAY);
        }
    }
}

fn config(inbox: &Inbox, shared: &Shared) -> EmbeddedServerConfig {
    EmbeddedServerConfig {
        port: shared.ports.iter().find(|open| open.serves(inbox)).map_or(0, |open| open.number),
        shared: shared.config.policy == Policy::Shared,
        seed: seed(),
        wall: Span::from_ns(clock::wall_ns()),
        without: shared.config.without.clone(),
        start_check: Some(start_check(&shared.start_tickets)),
    }
}

fn start_check(tickets: &Arc<StartTickets>) -> StartCheck {
    let tickets = Arc::clone(tickets);
    StartCheck::new(move |ticket, from| tickets.redeem(ticket, from, clock::now()))
}

fn live(idle: Option<Box<IdleDriver>>, ports: &mut InboxPorts<'_>) -> Result<Returned, ControlError> {
    let (inbox, shared) = (ports.inbox, ports.shared);
    let ServerConfig { log_store, observer, .. } = &shared.config;
    let observer = observer.as_deref().map(|observer| observer as &dyn PortObserver);
    let stand_in = match idle {
        Some(idle) => EmbeddedStandIn::Idle(idle),
        None => EmbeddedStandIn::New((inbox.tool.embedded_server)(&config(inbox, shared))),
    };
    serve_at(stand_in, &inbox.interrupts, log_store.as_deref(), observer, ports)
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
    shared: &'a Shared,
    clients: BTreeMap<RunId, AdmittedRun>,
}

/// An admitted run.
struct AdmittedRun {
    ticket: u64,
    address: SocketAddr,
}

impl InboxPorts<'_> {
    /// Releases the places of an embedded server that has ended.
    fn release_all(&mut self) {
        for run in self.clients.keys().copied().collect::<Vec<_>>() {
            if let Some(left) = self.leave(run) {
                self.ended(left.client, Err("the embedded server ended during the run".to_owned()));
            }
        }
    }

    /// Admits a run, unless a limit of the server or another run forbids it.
    fn admit(
        &mut self,
        planned: &Planned,
        address: SocketAddr,
    ) -> Result<MeasurementPermit, MeasurementRefusal> {
        let longest = self.shared.longest();
        let too_long = |longest: &Span| planned.expected.is_some_and(|expected| expected > *longest);
        if let Some(longest) = longest.filter(too_long) {
            let why = format!("the run would take longer than the {longest} that this server allows");
            return Err(MeasurementRefusal { why, may_retry: false });
        }
        if let Some(client) = self.clients.get(&planned.run) {
            let concurrent_runs = self.concurrent_runs(client.ticket).unwrap_or(0);
            return Ok(self.permit(client.ticket, concurrent_runs));
        }
        let name = match &planned.peer {
            Some(peer) => format!("{}: {peer}", planned.tool),
            None => planned.tool.to_owned(),
        };
        self.join(planned.run, &name, address, planned.expected)
    }

    /// Takes a place for a run.
    fn join(
        &mut self,
        run: RunId,
        name: &str,
        address: SocketAddr,
        expected: Option<Span>,
    ) -> Result<MeasurementPermit, MeasurementRefusal> {
        let length = expected.or(self.shared.longest()).unwrap_or(DEFAULT_RUN_TIME);
        let ticket = self.shared.queue.join(address.ip(), length).map_err(|no_place| MeasurementRefusal {
            why: no_place.to_string(),
            may_retry: no_place.may_retry(),
        })?;
        let Some(concurrent_runs) = self.concurrent_runs(ticket) else {
            self.shared.queue.leave_for_retry(ticket);
            return Err(MeasurementRefusal { why: "another run is in progress".to_owned(), may_retry: true });
        };
        (self.shared.event)(ServerEvent::Begun { client: address, name: name.into() });
        self.inbox.guest_came(address.ip());
        self.clients.insert(run, AdmittedRun { ticket, address });
        Ok(self.permit(ticket, concurrent_runs))
    }

    /// What a run may do that begins now.
    fn permit(&self, ticket: u64, concurrent_runs: u32) -> MeasurementPermit {
        let account = self.shared.queue.account(ticket);
        MeasurementPermit { concurrent_runs, until: self.latest_end(), account }
    }

    /// The number of other runs if this one may run.
    fn concurrent_runs(&self, ticket: u64) -> Option<u32> {
        match self.shared.queue.turn(ticket) {
            QueueDecision::Now { concurrent_runs } => Some(concurrent_runs),
            QueueDecision::Later { .. } | QueueDecision::Displaced => None,
        }
    }

    /// When a run that begins now must end.
    fn latest_end(&self) -> Mono {
        let longest = self.shared.longest();
        longest.map_or(Mono::FAR, |longest| clock::now() + longest.as_duration() + RUN_GRACE)
    }

    /// Logs why a run was refused.
    fn report_refusal(
        &self,
        tool: &str,
        client: SocketAddr,
        result: &Result<MeasurementPermit, MeasurementRefusal>,
    ) {
        if let Err(MeasurementRefusal { why, .. }) = result
            && let Some(more) = self.inbox.refused()
        {
            (self.shared.event)(ServerEvent::Foreign { client, why: format!("{tool}: {why}{more}").into() });
        }
    }
}

/// The address of a peer; the unspecified one if it is unknown.
fn address_of(peer: Option<SocketAddr>) -> SocketAddr {
    peer.unwrap_or(SocketAddr::from(([0; 4], 0)))
}

impl ServerPorts for InboxPorts<'_> {
    fn waker(&self) -> BorrowedFd<'_> {
        self.inbox.waker.as_fd()
    }

    fn take(&mut self) -> Option<Incoming> {
        self.inbox.take()
    }

    fn shared_ports(&self, transport: Transport, port: u16) -> Vec<stand_in::SharedServerPort> {
        let shared_port = |open: &OpenPort| stand_in::SharedServerPort {
            transport,
            port,
            address: open.address,
            socket: (transport == Transport::Udp).then(|| Arc::clone(&open.socket)),
        };
        let at = self.shared.ports.iter().filter(|open| open.number == port);
        let (own, others): (Vec<&OpenPort>, Vec<&OpenPort>) = at.partition(|open| open.serves(self.inbox));
        if own.is_empty() && !others.is_empty() {
            self.inbox.claim(port);
        }
        let serving = if own.is_empty() { others } else { own };
        serving.into_iter().map(shared_port).collect()
    }

    fn reserve(
        &mut self,
        run: RunId,
        tool: &'static str,
        peer: Option<SocketAddr>,
    ) -> Result<MeasurementPermit, MeasurementRefusal> {
        let permit = self.join(run, tool, address_of(peer), None);
        self.report_refusal(tool, address_of(peer), &permit);
        permit
    }

    fn ask(
        &mut self,
        planned: &Planned,
        peer: Option<SocketAddr>,
    ) -> Result<MeasurementPermit, MeasurementRefusal> {
        let permit = self.admit(planned, address_of(peer));
        self.report_refusal(planned.tool, address_of(peer), &permit);
        permit
    }

    fn leave(&mut self, run: RunId) -> Option<ReleasedPlace> {
        let client = self.clients.remove(&run)?;
        self.inbox.guest_left(client.address.ip());
        let concurrent_runs = self.concurrent_runs(client.ticket).unwrap_or(0);
        self.shared.queue.leave(client.ticket);
        if self.shared.config.one_off {
            self.shared.switch.turn_off();
        }
        Some(ReleasedPlace { client: client.address, concurrent_runs })
    }

    fn ended(&mut self, client: SocketAddr, result: Result<Vec<FlowOutcome>, String>) {
        let trouble = match result {
            Ok(flows) => {
                (self.shared.event)(ServerEvent::Measured { client, flows });
                None
            }
            Err(why) => Some(why.into()),
        };
        (self.shared.event)(ServerEvent::Ended { client, trouble });
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
