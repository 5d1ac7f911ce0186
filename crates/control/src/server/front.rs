//! The door: accepts connections, reads their preface, and hands them to the run they belong to.
//!
//! One thread for everybody who has not said what they want, so that a stranger costs one descriptor and a few bytes.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use linerate_proto::PeerError;
use linerate_proto::native::{Connection, PREFACE_BYTES, Preface};
use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::{Mono, clock, stream};

use super::registry::Arrival;
use super::{News, Shared, datagrams, session};
use crate::error::ControlError;
use crate::probe::reflect_over_tcp;

/// How long a connection may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most connections that have not said what they want; beyond it the oldest goes.
const MOST_STRANGERS: usize = 2_048;

/// Most control connections at once, each of which has a thread; beyond it they are closed.
const MOST_RUNS: usize = 512;

/// Token of the switch; those of connections count up from the listeners'.
const SWITCH: u64 = u64::MAX;

/// An open port.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) listener: TcpListener,
    pub(super) socket: UdpSocket,
}

/// Serves the doors until the server stops, then waits for the runs to end.
pub(super) fn serve(doors: Vec<Door>, shared: &Arc<Shared>) -> Result<(), ControlError> {
    let thread = |error: std::io::Error| ControlError::Local(format!("this host refuses a thread: {error}"));
    let mut reflectors = Vec::new();
    let mut listeners = Vec::new();
    for door in doors {
        let for_datagrams = Arc::clone(shared);
        let (address, socket) = (door.address, door.socket);
        let run = move || datagrams::serve(&socket, address, &for_datagrams);
        reflectors.push(std::thread::Builder::new().name("datagrams".to_owned()).spawn(run).map_err(thread)?);
        listeners.push(door.listener);
    }
    let mut front = Front::new(listeners, Arc::clone(shared))?;
    let result = front.run();
    drop(front);
    for reflector in reflectors {
        let _ = reflector.join();
    }
    result
}

struct Front {
    poller: Poller,
    listeners: Vec<TcpListener>,
    strangers: BTreeMap<u64, Stranger>,
    next: u64,
    shared: Arc<Shared>,
    runs: Vec<std::thread::JoinHandle<()>>,
}

/// A connection that has not said what it wants.
struct Stranger {
    connection: TcpStream,
    peer: SocketAddr,
    until: Mono,
    said: [u8; PREFACE_BYTES],
    length: usize,
}

impl Front {
    fn new(listeners: Vec<TcpListener>, shared: Arc<Shared>) -> Result<Self, ControlError> {
        let poller = Poller::new()?;
        for (token, listener) in (0_u64..).zip(&listeners) {
            stream::set_nonblocking(listener, true)?;
            poller.add(listener, token, Interest::READ)?;
        }
        let next = listeners.len() as u64;
        poller.add(&shared.switch.bell, SWITCH, Interest::READ)?;
        Ok(Self { poller, listeners, strangers: BTreeMap::new(), next, shared, runs: Vec::new() })
    }

    fn run(&mut self) -> Result<(), ControlError> {
        let mut events = Events::with_capacity(256);
        while !self.shared.stopping() {
            self.poller.wait(&mut events, self.oldest_deadline())?;
            let tokens: Vec<u64> = events.iter().map(|ready| ready.token).collect();
            for token in tokens {
                if token < self.listeners.len() as u64 {
                    self.accept(token as usize);
                } else {
                    self.listen_to(token);
                }
            }
            self.forget_silent();
            self.runs.retain(|run| !run.is_finished());
        }
        for run in self.runs.drain(..) {
            let _ = run.join();
        }
        Ok(())
    }

    fn oldest_deadline(&self) -> Mono {
        // Numbers grow, and so do deadlines: the first entry is the oldest.
        self.strangers.first_key_value().map_or(Mono::FAR, |(_, stranger)| stranger.until)
    }

    fn accept(&mut self, at: usize) {
        // A burst is taken whole, but others get their turn.
        for _ in 0..256 {
            let Some(listener) = self.listeners.get(at) else { return };
            let (connection, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Out of descriptors: the oldest stranger makes room, or the door pauses a moment.
                    tracing::warn!(%error, "a connection could not be accepted");
                    if self.strangers.pop_first().is_none() {
                        clock::sleep_until(clock::now() + Duration::from_millis(10));
                    }
                    return;
                }
            };
            self.meet(connection, peer);
        }
    }

    fn meet(&mut self, connection: TcpStream, peer: SocketAddr) {
        if self.strangers.len() >= MOST_STRANGERS {
            self.strangers.pop_first();
        }
        if connection.set_nonblocking(true).is_err() {
            return;
        }
        let token = self.next;
        self.next += 1;
        let until = clock::now() + PATIENCE;
        if self.poller.add(&connection, token, Interest::READ).is_ok() {
            self.strangers
                .insert(token, Stranger { connection, peer, until, said: [0; PREFACE_BYTES], length: 0 });
            // Ours say it at once: no second round through the poller for each of ten thousand streams.
            self.listen_to(token);
        }
    }

    fn listen_to(&mut self, token: u64) {
        let Some(stranger) = self.strangers.get_mut(&token) else { return };
        match stranger.read() {
            Ok(None) => {}
            Ok(Some(preface)) => {
                if let Some(stranger) = self.strangers.remove(&token) {
                    let _ = self.poller.remove(&stranger.connection);
                    self.direct(stranger, preface);
                }
            }
            Err(why) => {
                if let Some(stranger) = self.strangers.remove(&token) {
                    (self.shared.news)(News::Foreign { client: stranger.peer, why });
                }
            }
        }
    }

    fn direct(&mut self, stranger: Stranger, preface: Preface) {
        let Stranger { connection, peer, .. } = stranger;
        match preface.connection {
            Connection::Control if self.runs.len() >= MOST_RUNS => {
                let why = format!("more than {MOST_RUNS} clients at once");
                (self.shared.news)(News::Foreign { client: peer, why });
            }
            Connection::Control => {
                let shared = Arc::clone(&self.shared);
                self.spawn("run", move || session::serve(connection, peer, preface, &shared));
            }
            Connection::Data => {
                if let Some(inbox) = self.shared.registry.find(&preface.cookie)
                    && connection.set_nonblocking(false).is_ok()
                {
                    inbox.put(Arrival::Tcp { flow: preface.flow, stream: preface.stream, connection });
                }
            }
            Connection::Probe => {
                if let Some(inbox) = self.shared.registry.find(&preface.cookie)
                    && connection.set_nonblocking(false).is_ok()
                    && inbox.begin_probes()
                {
                    let reflector = Arc::clone(&inbox);
                    // Ends with its connection; nobody waits for it.
                    let work = move || {
                        reflect_over_tcp(connection);
                        reflector.end_probes();
                    };
                    if std::thread::Builder::new().name("probe".to_owned()).spawn(work).is_err() {
                        inbox.end_probes();
                    }
                }
            }
        }
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) {
        match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
            Ok(thread) => self.runs.push(thread),
            Err(error) => tracing::warn!(%error, "this host refuses a thread"),
        }
    }

    fn forget_silent(&mut self) {
        let now = clock::now();
        while self.strangers.first_key_value().is_some_and(|(_, stranger)| now >= stranger.until) {
            self.strangers.pop_first();
        }
    }
}

impl Stranger {
    /// Reads the preface and not a byte more: what follows belongs to whoever gets the connection.
    fn read(&mut self) -> Result<Option<Preface>, String> {
        loop {
            match self.connection.read(&mut self.said[self.length..]) {
                Ok(0) => return Err("closed before it said what it wants".to_owned()),
                Ok(count) => {
                    self.length += count;
                    match Preface::decode(&self.said[..self.length]) {
                        Ok(None) => {}
                        Ok(Some(preface)) => return Ok(Some(preface)),
                        Err(PeerError::Version { theirs, ours }) => {
                            self.tell_version();
                            return Err(format!("protocol version {theirs}, this server speaks {ours}"));
                        }
                        Err(_) => return Err("not the protocol of linerate".to_owned()),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Our preface carries our version: the other end can then say what is wrong.
    fn tell_version(&mut self) {
        use std::io::Write;
        let _ = self.connection.write(&Preface::CONTROL.encode());
    }
}
