//! The front of the server: waits for everything that arrives at its ports, in one thread.
//!
//! It accepts connections, reads their greeting, and hands them to the run to which they belong. A connection
//! whose greeting is incomplete costs only a descriptor and a few bytes. After its greeting a client gets a
//! thread, if there is a place. [`Shares`] prevents one host or network from taking all places.
//!
//! The front also reads the UDP ports, except those that the [`super::reflector`] reads during runs, and waits for
//! the embedded servers that have no clients.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_proto::agent::AGENT;
use linerate_proto::native::{ConnectionPurpose, NATIVE, Preface};
use linerate_sock::batch::RecvBatch;
use linerate_sock::poll::{Events, Interest};
use linerate_sock::{Mono, SockError, clock, limits, stream, thread};

use super::handover::HandedOver;
use super::inbox::Inbox;
use super::pending_connection::{Action, GreetingKind, GreetingState, PendingConnection};
use super::registry::DataSocket;
use super::{Heartbeat, ServerEvent, Shared, agent, datagrams, embedded_server, session};
use crate::control_stream::ControlStream;
use crate::error::ControlError;
use crate::notice::RateLimitedNotice;
use crate::shares::{Exhausted, Shares};
use crate::stand_in::{IdleDriver, Incoming};
use crate::tls::TlsRequirement;

/// Timeout for the bytes that identify the protocol, and then again for the greeting.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// Most connections with an incomplete greeting. At its share, a host or network loses its oldest one.
const MAX_PENDING_CONNECTIONS: usize = 2_048;

/// Most bytes of all incomplete greetings, and the number of bytes that each connection may send regardless of
/// the others.
const MAX_PENDING_BYTES: usize = 16 << 20;
const PENDING_BYTES_EACH: usize = 8 << 10;

/// Most notices of connections that are not served, in ten seconds.
const MAX_UNSERVED_NOTICES: u32 = 32;

/// Pause before accepting again when this process is out of file descriptors, and before waiting again for an
/// embedded server that got no thread.
const BACKOFF: Duration = Duration::from_millis(100);

/// Why a client, or a coordinator, is refused that could have encrypted its connection.
const CLIENT_NOT_ENCRYPTED: &str = "this server accepts linerate over TLS only; give --tls";
const COORDINATOR_NOT_ENCRYPTED: &str = "this server accepts coordinators over TLS only; give --tls";

/// What a token of the server's poller identifies. The fixed ones come after those of all connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollSource {
    /// A connection whose greeting is incomplete; they count up from 0.
    Connection(u64),
    /// A TCP port, by its index in [`Shared::ports`].
    Listener(usize),
    /// A UDP port, by its index in [`Shared::ports`].
    Datagrams(usize),
    /// An embedded server without a thread, by its index.
    Embedded(usize),
    /// The server stops.
    Stop,
    /// Connections that were accepted elsewhere.
    HandedOver,
}

impl PollSource {
    const FIRST_FIXED: u64 = 1 << 62;
    const KIND_BITS: u32 = 32;

    pub(super) fn token(self) -> u64 {
        let fixed = |kind: u64, at: usize| Self::FIRST_FIXED + (kind << Self::KIND_BITS) + at as u64;
        match self {
            Self::Connection(number) => number,
            Self::Listener(at) => fixed(0, at),
            Self::Datagrams(at) => fixed(1, at),
            Self::Embedded(at) => fixed(2, at),
            Self::Stop => fixed(3, 0),
            Self::HandedOver => fixed(4, 0),
        }
    }

    fn of_token(token: u64) -> Self {
        let Some(fixed) = token.checked_sub(Self::FIRST_FIXED) else { return Self::Connection(token) };
        let at = (fixed & u64::from(u32::MAX)) as usize;
        match fixed >> Self::KIND_BITS {
            0 => Self::Listener(at),
            1 => Self::Datagrams(at),
            2 => Self::Embedded(at),
            4 => Self::HandedOver,
            _ => Self::Stop,
        }
    }
}

/// Serves the ports until the server stops, then waits for the runs to end.
pub(super) fn serve(shared: &Arc<Shared>) -> Result<(), ControlError> {
    let mut front = Front::new(Arc::clone(shared))?;
    let result = front.start_embedded_servers().and_then(|()| front.run());
    let embedded = std::mem::take(&mut front.embedded);
    drop(front);
    shared.inboxes().for_each(|inbox| inbox.stop());
    for thread in embedded {
        let _ = thread.join();
    }
    shared.reflector.join();
    result
}

struct Front {
    pending: BTreeMap<u64, PendingConnection>,
    places: Arc<Shares>,
    next: u64,
    datagrams: RecvBatch,
    shared: Arc<Shared>,
    runs: Vec<JoinHandle<()>>,
    /// The threads of embedded servers.
    embedded: Vec<JoinHandle<()>>,
    /// Until when nothing is accepted, for lack of file descriptors.
    paused: Option<Mono>,
    /// Embedded servers that got no thread, and until when nothing is awaited for them.
    threadless: Vec<(usize, Box<IdleDriver>)>,
    threadless_until: Mono,
    out_of_files: RateLimitedNotice,
    /// Of connections that are not served.
    unserved: RateLimitedNotice,
    too_many: RateLimitedNotice,
    next_beat: Mono,
}

impl Front {
    fn new(shared: Arc<Shared>) -> Result<Self, ControlError> {
        for (at, port) in shared.ports.iter().enumerate() {
            stream::set_nonblocking(&port.listener, true)?;
            shared.poller.add(&port.listener, PollSource::Listener(at).token(), Interest::READ)?;
            datagrams::prepare(port)?;
            shared.poller.add(&*port.socket, PollSource::Datagrams(at).token(), Interest::READ)?;
        }
        shared.poller.add(&shared.switch.waker, PollSource::Stop.token(), Interest::READ)?;
        shared.poller.add(shared.handover.waker(), PollSource::HandedOver.token(), Interest::READ)?;
        Ok(Self {
            pending: BTreeMap::new(),
            places: Shares::new(MAX_PENDING_CONNECTIONS),
            next: 0,
            datagrams: datagrams::batch(shared.ports.iter()),
            next_beat: if shared.config.heartbeat.is_some() { clock::now() } else { Mono::FAR },
            shared,
            runs: Vec::new(),
            embedded: Vec::new(),
            paused: None,
            threadless: Vec::new(),
            threadless_until: Mono::FAR,
            out_of_files: RateLimitedNotice::new(1),
            unserved: RateLimitedNotice::new(MAX_UNSERVED_NOTICES),
            too_many: RateLimitedNotice::new(1),
        })
    }

    /// Starts every embedded server. Its thread ends as soon as it has opened its ports.
    fn start_embedded_servers(&mut self) -> Result<(), ControlError> {
        for at in 0..self.shared.embedded.len() {
            self.start_embedded(at, None).map_err(|(error, _)| error)?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), ControlError> {
        let mut events = Events::with_capacity(256);
        while !self.shared.stopping() {
            let paused = self.paused.unwrap_or(Mono::FAR);
            let deadline = self.oldest_deadline().min(paused).min(self.threadless_until).min(self.next_beat);
            self.shared.poller.wait(&mut events, deadline)?;
            for ready in events.iter() {
                match PollSource::of_token(ready.token) {
                    PollSource::Connection(token) => self.listen_to(token),
                    PollSource::Listener(at) => self.accept(at),
                    PollSource::Datagrams(at) => self.receive(at),
                    PollSource::Embedded(at) => self.wake_embedded(at),
                    PollSource::Stop => {}
                    PollSource::HandedOver => {
                        for connection in self.shared.handover.take() {
                            // The first port is the server's own.
                            self.add_pending(connection, 0);
                        }
                    }
                }
            }
            self.close_silent();
            self.runs.retain(|run| !run.is_finished());
            self.embedded.retain(|server| !server.is_finished());
            self.resume();
            self.beat();
        }
        for run in self.runs.drain(..) {
            let _ = run.join();
        }
        Ok(())
    }

    /// Tells whoever watches this server that it serves.
    fn beat(&mut self) {
        if let Some(Heartbeat { interval, beat }) = &self.shared.config.heartbeat
            && self.next_beat.has_passed()
        {
            beat();
            self.next_beat = clock::now() + *interval;
        }
    }

    /// Continues what was paused for lack of file descriptors or threads.
    fn resume(&mut self) {
        if self.paused.is_some_and(Mono::has_passed) {
            self.paused = None;
            self.watch_listeners(Interest::READ);
        }
        if self.threadless_until.has_passed() {
            self.threadless_until = Mono::FAR;
            for (at, idle) in std::mem::take(&mut self.threadless) {
                self.rest_embedded(at, idle);
            }
        }
    }

    fn oldest_deadline(&self) -> Mono {
        // Tokens and deadlines both increase, so the first entry is the oldest.
        self.pending.first_key_value().map_or(Mono::FAR, |(_, pending)| pending.until)
    }

    fn watch_listeners(&self, interest: Interest) {
        for (at, port) in self.shared.ports.iter().enumerate() {
            let _ = self.shared.poller.modify(&port.listener, PollSource::Listener(at).token(), interest);
        }
    }

    fn accept(&mut self, at: usize) {
        // Accepts a burst at once, but bounded, so that other events are handled too.
        for _ in 0..256 {
            let Some(port) = self.shared.ports.get(at).filter(|_| self.paused.is_none()) else { return };
            match port.listener.accept() {
                Ok((connection, peer)) => {
                    let connection = ControlStream::plain(connection);
                    self.add_pending(HandedOver { connection, peer, received: Vec::new() }, at);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The peer has already closed the connection.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(error) => return self.rest_without_files(&error),
            }
        }
    }

    fn receive(&mut self, at: usize) {
        if let Some(port) = self.shared.ports.get(at) {
            datagrams::receive(port, &mut self.datagrams, &self.shared);
        }
    }

    /// Gives an embedded server a thread.
    fn start_embedded(
        &mut self,
        at: usize,
        idle: Option<Box<IdleDriver>>,
    ) -> Result<(), (SockError, Option<Box<IdleDriver>>)> {
        let shared = Arc::clone(&self.shared);
        let work = move |idle| embedded_server::serve(at, idle, &shared);
        let thread =
            thread::spawn_with("embedded", idle, work).map_err(|(error, idle)| (error, idle.flatten()))?;
        self.embedded.push(thread);
        Ok(())
    }

    /// Gives an embedded server a thread because something has arrived for it, or refuses its clients.
    fn wake_embedded(&mut self, at: usize) {
        let shared = Arc::clone(&self.shared);
        let Some(server) = shared.embedded.get(at) else { return };
        let Some(idle) = server.wake(&shared.poller) else { return };
        let Err((error, idle)) = self.start_embedded(at, Some(idle)) else { return };
        let why = no_thread(&error);
        while let Some(incoming) = server.inbox.take() {
            if let Incoming::Connection { stream, peer, .. } = incoming {
                stream.close_with(&(server.inbox.tool.refusal)(&why));
                self.report_too_many(peer, &why);
            }
        }
        self.threadless_until = clock::now() + BACKOFF;
        self.threadless.extend(idle.map(|idle| (at, idle)));
    }

    fn rest_embedded(&mut self, at: usize, idle: Box<IdleDriver>) {
        let Some(server) = self.shared.embedded.get(at) else { return };
        if let Err((_, idle)) = server.rest(idle, &self.shared.poller, PollSource::Embedded(at).token()) {
            self.threadless_until = clock::now() + BACKOFF;
            self.threadless.push((at, idle));
        }
    }

    /// Out of descriptors or of memory for sockets: closes the oldest pending connection and pauses. New
    /// connections wait in the kernel.
    fn rest_without_files(&mut self, error: &std::io::Error) {
        if let Some((_, oldest)) = self.pending.pop_first() {
            oldest.reject("this server has reached its limit of open files; try again later");
        }
        self.paused = Some(clock::now() + BACKOFF);
        self.watch_listeners(Interest::ERROR);
        if self.out_of_files.is_due(clock::now()).is_some() {
            let allowed = limits::open_files().map(|files| files.soft).unwrap_or(0);
            (self.shared.event)(ServerEvent::OutOfFiles { why: error.to_string(), allowed });
        }
    }

    fn add_pending(&mut self, accepted: HandedOver, port_index: usize) {
        let HandedOver { connection, peer, received } = accepted;
        if connection.tcp().set_nonblocking(true).is_err() {
            return;
        }
        let Some(port) = self.shared.ports.get(port_index).map(|port| port.number) else { return };
        let is_encrypted = connection.is_encrypted();
        let takes = |inbox: &&Arc<Inbox>| {
            (!is_encrypted || inbox.tool.is_served_within_tls()) && inbox.claims(port, peer.ip())
        };
        let claimed = self.shared.inboxes().find(takes).cloned();
        if let Some(inbox) = claimed {
            return self.hand_over(&inbox, port, connection, peer, received);
        }
        let permit = self.places.take(peer.ip()).or_else(|exhausted| {
            self.make_room(exhausted);
            self.places.take(peer.ip())
        });
        let Ok(permit) = permit else { return };
        let token = self.next;
        self.next += 1;
        let until = clock::now() + HELLO_TIMEOUT;
        if self.shared.poller.add(connection.tcp(), token, Interest::READ).is_ok() {
            let greeting = None;
            let pending =
                PendingConnection { connection, peer, until, port_index, received, greeting, permit };
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

    fn report_unserved(&mut self, client: SocketAddr, why: &str) {
        if let Some(more) = self.unserved.is_due(clock::now()) {
            (self.shared.event)(ServerEvent::Foreign { client, why: format!("{why}{more}").into() });
        }
    }

    fn report_too_many(&mut self, client: SocketAddr, why: &str) {
        if let Some(more) = self.too_many.is_due(clock::now()) {
            (self.shared.event)(ServerEvent::Foreign { client, why: format!("{why}{more}").into() });
        }
    }

    fn hand_over(
        &mut self,
        inbox: &Inbox,
        port: u16,
        connection: ControlStream,
        peer: SocketAddr,
        received: Vec<u8>,
    ) {
        if let Err((connection, why)) = inbox.connect(port, connection, peer, received) {
            self.report_too_many(peer, &why);
            connection.close_with(&(inbox.tool.refusal)(&why));
        }
    }

    fn listen_to(&mut self, token: u64) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        let Some(open) = self.shared.ports.get(pending.port_index) else { return };
        let port = open.number;
        let identity = self.shared.config.identity.as_deref();
        let action = match pending.read(open, identity) {
            Ok(GreetingState::More) => return self.hold_within_bounds(token),
            Ok(GreetingState::KindKnown) => return self.await_greeting(token),
            Ok(GreetingState::Identified(action)) => Ok(action),
            Err(why) => Err(why),
        };
        let Some(pending) = self.pending.remove(&token) else { return };
        let _ = self.shared.poller.remove(pending.connection.tcp());
        match action {
            Ok(Action::Run) if self.lacks_encryption(&pending) => {
                self.report_unserved(pending.peer, CLIENT_NOT_ENCRYPTED);
                pending.reject(CLIENT_NOT_ENCRYPTED);
            }
            Ok(Action::Coordinator) if self.lacks_encryption(&pending) => {
                self.report_unserved(pending.peer, COORDINATOR_NOT_ENCRYPTED);
                pending.reject(COORDINATOR_NOT_ENCRYPTED);
            }
            Ok(Action::Run) => self.serve(pending, GreetingKind::Client),
            Ok(Action::Coordinator) => self.serve(pending, GreetingKind::Coordinator),
            Ok(Action::Part(preface)) => self.direct(pending.peer, pending.connection.into_tcp(), preface),
            Ok(Action::Foreign(inbox)) => {
                let PendingConnection { connection, peer, received, .. } = pending;
                self.hand_over(&inbox, port, connection, peer, received);
            }
            Ok(Action::HealthCheck) => {}
            Err(why) => self.report_unserved(pending.peer, &why),
        }
    }

    /// Restarts the timeout after the protocol is identified. Often the greeting has already arrived.
    fn await_greeting(&mut self, token: u64) {
        let Some(mut pending) = self.pending.remove(&token) else { return };
        let token = self.next;
        self.next += 1;
        pending.until = clock::now() + HELLO_TIMEOUT;
        if self.shared.poller.modify(pending.connection.tcp(), token, Interest::READ).is_ok() {
            self.pending.insert(token, pending);
            self.listen_to(token);
        }
    }

    /// Bounds the bytes of all incomplete greetings together. The length of a usual greeting is always allowed.
    fn hold_within_bounds(&mut self, token: u64) {
        let received = self.pending.get(&token).map_or(0, |pending| pending.received.len());
        if received <= PENDING_BYTES_EACH {
            return;
        }
        if self.pending.values().map(|pending| pending.received.len()).sum::<usize>() > MAX_PENDING_BYTES
            && let Some(pending) = self.pending.remove(&token)
        {
            let why = "too many clients are sending a long greeting slowly; try again later";
            self.report_too_many(pending.peer, why);
            pending.reject(why);
        }
    }

    /// Starts a thread for a client or coordinator if its host has a free place.
    fn serve(&mut self, pending: PendingConnection, kind: GreetingKind) {
        let permit = match self.shared.clients.take(pending.peer.ip()) {
            Ok(permit) => permit,
            Err(exhausted) => return self.reject(pending, exhausted),
        };
        let PendingConnection { connection, peer, received, .. } = pending;
        let shared = Arc::clone(&self.shared);
        let (name, refusal) = match kind {
            GreetingKind::Client => ("run", NATIVE.refusal),
            GreetingKind::Coordinator => ("agent", AGENT.refusal),
        };
        let work = move |(connection, _place)| match kind {
            GreetingKind::Client => session::serve(connection, peer, &received, &shared),
            GreetingKind::Coordinator => agent::serve(connection, peer, &received, &shared),
        };
        match thread::spawn_with(name, (connection, permit), work) {
            Ok(thread) => self.runs.push(thread),
            Err((error, back)) => {
                let why = no_thread(&error);
                if let Some((connection, _)) = back {
                    connection.close_with(&refusal(&why));
                }
                self.report_too_many(peer, &why);
            }
        }
    }

    /// Whether a peer of ours should have encrypted its connection and has not.
    fn lacks_encryption(&self, pending: &PendingConnection) -> bool {
        let config = &self.shared.config;
        let is_required = match config.tls_required {
            TlsRequirement::Nobody => false,
            TlsRequirement::Coordinators => matches!(pending.greeting, Some(GreetingKind::Coordinator)),
            TlsRequirement::Everybody => true,
        };
        is_required && !pending.connection.is_encrypted()
    }

    /// Hands a data or probe connection to its run. A connection of an unknown run is closed.
    fn direct(&mut self, peer: SocketAddr, connection: TcpStream, preface: Preface) {
        let Some(inbox) = self.shared.registry.find(&preface.cookie) else { return };
        match preface.connection {
            ConnectionPurpose::Probe => self.shared.reflector.put(connection, inbox),
            ConnectionPurpose::Transaction => inbox.put_transaction(peer.ip(), connection),
            ConnectionPurpose::Control | ConnectionPurpose::Data => {
                if connection.set_nonblocking(false).is_ok() {
                    inbox.put(DataSocket::Tcp { flow: preface.flow, stream: preface.stream, connection });
                }
            }
        }
    }

    fn close_silent(&mut self) {
        let now = clock::now();
        while let Some(oldest) = self.pending.first_entry().filter(|oldest| now >= oldest.get().until) {
            let pending = oldest.remove();
            if pending.greeting.is_some() {
                let why = format!("no greeting within {} s", HELLO_TIMEOUT.as_secs());
                self.report_unserved(pending.peer, &why);
                pending.reject(&why);
            }
        }
    }
}

fn no_thread(error: &SockError) -> String {
    format!("this server could not start a thread: {}", error.source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_its_own_token() {
        let sources = [
            PollSource::Connection(0),
            PollSource::Connection(PollSource::FIRST_FIXED - 1),
            PollSource::Listener(0),
            PollSource::Listener(7),
            PollSource::Datagrams(0),
            PollSource::Datagrams(7),
            PollSource::Embedded(0),
            PollSource::Embedded(7),
            PollSource::Stop,
        ];
        for source in sources {
            assert_eq!(PollSource::of_token(source.token()), source);
        }
    }
}
