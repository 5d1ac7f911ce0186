//! The front of the server: accepts connections, reads their greeting, and hands them to the run to which they
//! belong.
//!
//! One thread serves all connections whose greeting is incomplete, so each costs only a descriptor and a few
//! bytes. After its greeting a client gets a thread, if there is a place. [`Shares`] prevents one host or
//! network from taking all places.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_compat::Tool;
use linerate_proto::agent::AGENT;
use linerate_proto::native::{Connection, NATIVE, Preface};
use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::{Mono, clock, limits, stream, thread};

use super::datagrams::Reflector;
use super::embedded_server::{self, Posts, ServerPort};
use super::inbox::Inbox;
use super::pending_connection::{Action, Greets, Heard, PendingConnection, send_refusal};
use super::registry::Arrival;
use super::{ServerEvent, Shared, agent, session};
use crate::error::ControlError;
use crate::shares::{Exhausted, Shares};

/// Timeout for the bytes that identify the protocol, and then again for the greeting.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Most connections with an incomplete greeting. At its share, a host or network loses its oldest one.
const MAX_PENDING_CONNECTIONS: usize = 2_048;

/// Most bytes of all incomplete greetings, and the number of bytes that each connection may send regardless of
/// the others.
const MAX_PENDING_BYTES: usize = 16 << 20;
const PENDING_BYTES_EACH: usize = 8 << 10;

/// Pause before accepting again when this process is out of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Shortest interval between two notices of the same kind in the server's log.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

/// Token of the server's waker. Those of listeners count up from 0, and those of connections follow.
const WAKER_TOKEN: u64 = u64::MAX;

/// An open port.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) listener: TcpListener,
    pub(super) socket: Arc<UdpSocket>,
    /// The port number as embedded servers know it.
    pub(super) port: u16,
    /// Whether our own protocol is served here.
    pub(super) native: bool,
    /// The foreign tools, in the order in which they examine the first bytes.
    pub(super) tools: Vec<&'static Tool>,
}

/// Serves the ports until the server stops, then waits for the runs to end.
pub(super) fn serve(doors: Vec<Door>, shared: &Arc<Shared>) -> Result<(), ControlError> {
    let mut threads = Vec::new();
    let inboxes = start_embedded_servers(&doors, shared, &mut threads)?;
    let mut gates = Vec::new();
    for door in doors {
        let own = |inbox: &&Arc<Inbox>| door.tools.iter().any(|tool| same(tool, inbox.tool));
        let here: Vec<_> = inboxes.iter().filter(own).cloned().collect();
        let reflector = Reflector {
            socket: door.socket,
            address: door.address,
            port: door.port,
            native: door.native,
            inboxes: here.clone(),
            all: inboxes.clone(),
        };
        let for_datagrams = Arc::clone(shared);
        threads.push(thread::spawn("datagrams", move || reflector.serve(&for_datagrams))?);
        gates.push(ListeningPort {
            listener: door.listener,
            port: door.port,
            native: door.native,
            inboxes: here,
        });
    }
    let for_probes = Arc::clone(shared);
    let probes = move || {
        if let Err(error) = for_probes.probes.serve(&for_probes) {
            tracing::error!(%error, "latency probing over TCP has stopped");
        }
    };
    threads.push(thread::spawn("probes", probes)?);
    let mut front = Front::new(gates, inboxes.clone(), Arc::clone(shared))?;
    let result = front.run();
    drop(front);
    inboxes.iter().for_each(|inbox| inbox.stop());
    for thread in threads {
        let _ = thread.join();
    }
    result
}

/// Starts an embedded server for each foreign tool.
fn start_embedded_servers(
    doors: &[Door],
    shared: &Arc<Shared>,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<Vec<Arc<Inbox>>, ControlError> {
    let mut inboxes: Vec<Arc<Inbox>> = Vec::new();
    for tool in doors.iter().flat_map(|door| &door.tools) {
        if inboxes.iter().any(|inbox| same(inbox.tool, tool)) {
            continue;
        }
        let inbox = Arc::new(Inbox::new(tool)?);
        let (own, others): (Vec<&Door>, Vec<&Door>) =
            doors.iter().partition(|door| door.tools.iter().any(|other| same(other, tool)));
        let post = |door: &Door| ServerPort {
            port: door.port,
            address: door.address,
            socket: Arc::clone(&door.socket),
        };
        let [own, others] = [own, others].map(|doors| doors.into_iter().map(post).collect());
        let posts = Posts { own, others };
        let (its, for_server) = (Arc::clone(&inbox), Arc::clone(shared));
        threads.push(thread::spawn("embedded", move || embedded_server::serve(&its, &posts, &for_server))?);
        inboxes.push(inbox);
    }
    Ok(inboxes)
}

fn same(one: &Tool, other: &Tool) -> bool {
    one.name == other.name
}

/// A port that accepts connections.
struct ListeningPort {
    listener: TcpListener,
    port: u16,
    native: bool,
    inboxes: Vec<Arc<Inbox>>,
}

/// A notice that is logged at most once per [`NOTICE_INTERVAL`], however often its cause occurs.
#[derive(Debug)]
struct RateLimitedNotice {
    not_before: Mono,
    times: u64,
}

impl RateLimitedNotice {
    /// Counts one occurrence. Returns the number since the last notice if the next one is due.
    fn is_due(&mut self) -> Option<u64> {
        self.times += 1;
        self.not_before.has_passed().then(|| {
            self.not_before = clock::now() + NOTICE_INTERVAL;
            std::mem::take(&mut self.times)
        })
    }
}

impl Default for RateLimitedNotice {
    fn default() -> Self {
        Self { not_before: Mono(0), times: 0 }
    }
}

struct Front {
    poller: Poller,
    gates: Vec<ListeningPort>,
    /// Inboxes of all embedded servers.
    inboxes: Vec<Arc<Inbox>>,
    pending: BTreeMap<u64, PendingConnection>,
    places: Arc<Shares>,
    next: u64,
    shared: Arc<Shared>,
    runs: Vec<JoinHandle<()>>,
    /// Until when nothing is accepted, for lack of file descriptors.
    paused: Option<Mono>,
    out_of_files: RateLimitedNotice,
    too_many: RateLimitedNotice,
}

impl Front {
    fn new(
        gates: Vec<ListeningPort>,
        inboxes: Vec<Arc<Inbox>>,
        shared: Arc<Shared>,
    ) -> Result<Self, ControlError> {
        let poller = Poller::new()?;
        for (token, gate) in (0_u64..).zip(&gates) {
            stream::set_nonblocking(&gate.listener, true)?;
            poller.add(&gate.listener, token, Interest::READ)?;
        }
        let next = gates.len() as u64;
        poller.add(&shared.switch.waker, WAKER_TOKEN, Interest::READ)?;
        Ok(Self {
            poller,
            gates,
            inboxes,
            pending: BTreeMap::new(),
            places: Shares::new(MAX_PENDING_CONNECTIONS),
            next,
            shared,
            runs: Vec::new(),
            paused: None,
            out_of_files: RateLimitedNotice::default(),
            too_many: RateLimitedNotice::default(),
        })
    }

    fn run(&mut self) -> Result<(), ControlError> {
        let mut events = Events::with_capacity(256);
        while !self.shared.stopping() {
            let deadline = self.oldest_deadline().min(self.paused.unwrap_or(Mono::FAR));
            self.poller.wait(&mut events, deadline)?;
            let tokens: Vec<u64> = events.iter().map(|ready| ready.token).collect();
            for token in tokens {
                if token < self.gates.len() as u64 {
                    self.accept(token as usize);
                } else {
                    self.listen_to(token);
                }
            }
            self.close_silent();
            self.runs.retain(|run| !run.is_finished());
            if self.paused.is_some_and(Mono::has_passed) {
                self.paused = None;
                self.watch_gates(Interest::READ);
            }
        }
        for run in self.runs.drain(..) {
            let _ = run.join();
        }
        Ok(())
    }

    fn oldest_deadline(&self) -> Mono {
        // Tokens and deadlines both increase, so the first entry is the oldest.
        self.pending.first_key_value().map_or(Mono::FAR, |(_, pending)| pending.until)
    }

    fn watch_gates(&self, interest: Interest) {
        for (token, gate) in (0_u64..).zip(&self.gates) {
            let _ = self.poller.modify(&gate.listener, token, interest);
        }
    }

    fn accept(&mut self, at: usize) {
        // Accepts a burst at once, but bounded, so that other events are handled too.
        for _ in 0..256 {
            let Some(gate) = self.gates.get(at).filter(|_| self.paused.is_none()) else { return };
            match gate.listener.accept() {
                Ok((connection, peer)) => self.add_pending(connection, peer, at),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The peer has already closed the connection.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return self.rest_without_files(&error),
            }
        }
    }

    /// Out of descriptors or of memory for sockets: closes the oldest pending connection and pauses. New
    /// connections wait in the kernel.
    fn rest_without_files(&mut self, error: &std::io::Error) {
        if let Some((_, oldest)) = self.pending.pop_first() {
            oldest.reject("this server has reached its limit of open files; try again later");
        }
        self.paused = Some(clock::now() + ACCEPT_BACKOFF);
        self.watch_gates(Interest::ERROR);
        if self.out_of_files.is_due().is_some() {
            let allowed = limits::open_files().map(|files| files.soft).unwrap_or(0);
            (self.shared.event)(ServerEvent::OutOfFiles { why: error.to_string(), allowed });
        }
    }

    fn add_pending(&mut self, connection: TcpStream, peer: SocketAddr, gate: usize) {
        if connection.set_nonblocking(true).is_err() {
            return;
        }
        let Some(port) = self.gates.get(gate).map(|gate| gate.port) else { return };
        if let Some(inbox) = self.inboxes.iter().find(|inbox| inbox.claims(port, peer.ip())).cloned() {
            return self.hand_over(&inbox, port, connection, peer, Vec::new());
        }
        let permit = self.places.take(peer.ip()).or_else(|exhausted| {
            self.make_room(exhausted);
            self.places.take(peer.ip())
        });
        let Ok(permit) = permit else { return };
        let token = self.next;
        self.next += 1;
        let until = clock::now() + HELLO_TIMEOUT;
        if self.poller.add(&connection, token, Interest::READ).is_ok() {
            let (said, greets) = (Vec::new(), None);
            let pending = PendingConnection { connection, peer, until, gate, said, greets, permit };
            self.pending.insert(token, pending);
            // Our clients send their preface immediately. Reading now saves a second poll for each of ten
            // thousand streams.
            self.listen_to(token);
        }
    }

    /// Closes the oldest pending connection of a host or network that has reached its share.
    fn make_room(&mut self, exhausted: Exhausted) {
        let its = |pending: &PendingConnection| exhausted.group.contains(pending.peer.ip());
        let oldest = self.pending.iter().find(|(_, pending)| its(pending)).map(|(token, _)| *token);
        if let Some(pending) = oldest.and_then(|token| self.pending.remove(&token)) {
            self.reject(pending, exhausted);
        }
    }

    fn reject(&mut self, pending: PendingConnection, exhausted: Exhausted) {
        let Exhausted { group, taken } = exhausted;
        let why = format!("too many clients: {taken} from {group} are already connected; try again later");
        self.report_too_many(pending.peer, &why);
        pending.reject(&why);
    }

    fn report_too_many(&mut self, client: SocketAddr, why: &str) {
        if let Some(times) = self.too_many.is_due() {
            let more = if times > 1 { format!(" ({times} times)") } else { String::new() };
            (self.shared.event)(ServerEvent::Foreign { client, why: format!("{why}{more}").into() });
        }
    }

    fn hand_over(
        &mut self,
        inbox: &Inbox,
        port: u16,
        connection: TcpStream,
        peer: SocketAddr,
        said: Vec<u8>,
    ) {
        if let Err((mut connection, why)) = inbox.connect(port, connection, peer, said) {
            self.report_too_many(peer, &why);
            send_refusal(&mut connection, inbox.tool.refusal, &why);
        }
    }

    fn listen_to(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        let Some(gate) = self.gates.get(pending.gate) else { return };
        let port = gate.port;
        let heard = match pending.read(gate.native, &gate.inboxes) {
            Ok(Heard::More) => return self.hold_within_bounds(token),
            Ok(Heard::Greets) => return self.await_greeting(token),
            Ok(Heard::Wish(request)) => Ok(request),
            Err(why) => Err(why),
        };
        let Some(pending) = self.pending.remove(&token) else { return };
        let _ = self.poller.remove(&pending.connection);
        match heard {
            Ok(Action::Run) => self.serve(pending, Greets::Client),
            Ok(Action::Coordinator) => self.serve(pending, Greets::Coordinator),
            Ok(Action::Part(preface)) => self.direct(pending.connection, preface),
            Ok(Action::Foreign(inbox)) => {
                let PendingConnection { connection, peer, said, .. } = pending;
                self.hand_over(&inbox, port, connection, peer, said);
            }
            Err(why) => (self.shared.event)(ServerEvent::Foreign { client: pending.peer, why: why.into() }),
        }
    }

    /// Restarts the timeout after the protocol is identified. Often the greeting has already arrived.
    fn await_greeting(&mut self, token: u64) {
        let Some(mut pending) = self.pending.remove(&token) else { return };
        let token = self.next;
        self.next += 1;
        pending.until = clock::now() + HELLO_TIMEOUT;
        if self.poller.modify(&pending.connection, token, Interest::READ).is_ok() {
            self.pending.insert(token, pending);
            self.listen_to(token);
        }
    }

    /// Bounds the bytes of all incomplete greetings together. The length of a usual greeting is always allowed.
    fn hold_within_bounds(&mut self, token: u64) {
        let said = self.pending.get(&token).map_or(0, |pending| pending.said.len());
        if said <= PENDING_BYTES_EACH {
            return;
        }
        if self.pending.values().map(|pending| pending.said.len()).sum::<usize>() > MAX_PENDING_BYTES
            && let Some(pending) = self.pending.remove(&token)
        {
            let why = "too many clients are sending a long greeting slowly; try again later";
            self.report_too_many(pending.peer, why);
            pending.reject(why);
        }
    }

    /// Starts a thread for a client or coordinator if its host has a free place.
    fn serve(&mut self, pending: PendingConnection, who: Greets) {
        let permit = match self.shared.clients.take(pending.peer.ip()) {
            Ok(permit) => permit,
            Err(exhausted) => return self.reject(pending, exhausted),
        };
        let PendingConnection { connection, peer, said, .. } = pending;
        let shared = Arc::clone(&self.shared);
        let (name, refusal) = match who {
            Greets::Client => ("run", NATIVE.refusal),
            Greets::Coordinator => ("agent", AGENT.refusal),
        };
        let work = move |(connection, _place)| match who {
            Greets::Client => session::serve(connection, peer, &said, &shared),
            Greets::Coordinator => agent::serve(connection, peer, &said, &shared),
        };
        match thread::spawn_with(name, (connection, permit), work) {
            Ok(thread) => self.runs.push(thread),
            Err((error, back)) => {
                let why = format!("this server could not start a thread: {}", error.source);
                if let Some((mut connection, _)) = back {
                    send_refusal(&mut connection, refusal, &why);
                }
                self.report_too_many(peer, &why);
            }
        }
    }

    /// Hands a data or probe connection to its run. A connection of an unknown run is closed.
    fn direct(&mut self, connection: TcpStream, preface: Preface) {
        let Some(inbox) = self.shared.registry.find(&preface.cookie) else { return };
        if preface.connection == Connection::Probe {
            self.shared.probes.put(connection, inbox);
        } else if connection.set_nonblocking(false).is_ok() {
            inbox.put(Arrival::Tcp { flow: preface.flow, stream: preface.stream, connection });
        }
    }

    fn close_silent(&mut self) {
        let now = clock::now();
        while let Some(oldest) = self.pending.first_entry().filter(|oldest| now >= oldest.get().until) {
            let pending = oldest.remove();
            if pending.greets.is_some() {
                let why = format!("no greeting within {} s", HELLO_TIMEOUT.as_secs());
                (self.shared.event)(ServerEvent::Foreign { client: pending.peer, why: why.as_str().into() });
                pending.reject(&why);
            }
        }
    }
}
