//! The door: accepts connections, reads their preface, and hands them to the run they belong to.
//!
//! One thread for everybody who has not said what they want, so that a stranger costs one descriptor and a few bytes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_proto::Protocol;
use linerate_proto::native::{Connection, Preface};
use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::{Mono, clock, stream};

use super::datagrams::Reflector;
use super::registry::Arrival;
use super::servant::{self, Post, Posts};
use super::stranger::{Stranger, Wish};
use super::tray::Tray;
use super::{News, Shared, agent, session};
use crate::error::ControlError;
use crate::probe::reflect_over_tcp;
use crate::stand_in::Parcel;

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
    pub(super) socket: Arc<UdpSocket>,
    /// The port as servants know it.
    pub(super) port: u16,
    /// Whether our own protocol is spoken here.
    pub(super) native: bool,
    /// The others, in the order in which they are asked.
    pub(super) protocols: Vec<&'static Protocol>,
}

/// Serves the doors until the server stops, then waits for the runs to end.
pub(super) fn serve(doors: Vec<Door>, shared: &Arc<Shared>) -> Result<(), ControlError> {
    let mut threads = Vec::new();
    let trays = hire(&doors, shared, &mut threads)?;
    let mut gates = Vec::new();
    for door in doors {
        let own = |tray: &&Arc<Tray>| door.protocols.iter().any(|protocol| same(protocol, tray.protocol));
        let here: Vec<_> = trays.iter().filter(own).cloned().collect();
        let reflector = Reflector {
            socket: door.socket,
            address: door.address,
            port: door.port,
            native: door.native,
            trays: here.clone(),
            all: trays.clone(),
        };
        let for_datagrams = Arc::clone(shared);
        threads.push(spawn("datagrams", move || reflector.serve(&for_datagrams))?);
        gates.push(Gate { listener: door.listener, port: door.port, native: door.native, trays: here });
    }
    let mut front = Front::new(gates, trays.clone(), Arc::clone(shared))?;
    let result = front.run();
    drop(front);
    trays.iter().for_each(|tray| tray.stop());
    for thread in threads {
        let _ = thread.join();
    }
    result
}

/// A servant for each protocol of others.
fn hire(
    doors: &[Door],
    shared: &Arc<Shared>,
    threads: &mut Vec<JoinHandle<()>>,
) -> Result<Vec<Arc<Tray>>, ControlError> {
    let mut trays: Vec<Arc<Tray>> = Vec::new();
    for protocol in doors.iter().flat_map(|door| &door.protocols) {
        if trays.iter().any(|tray| same(tray.protocol, protocol)) {
            continue;
        }
        let tray = Arc::new(Tray::new(protocol)?);
        let (own, others): (Vec<&Door>, Vec<&Door>) =
            doors.iter().partition(|door| door.protocols.iter().any(|other| same(other, protocol)));
        let post =
            |door: &Door| Post { port: door.port, address: door.address, socket: Arc::clone(&door.socket) };
        let [own, others] = [own, others].map(|doors| doors.into_iter().map(post).collect());
        let posts = Posts { own, others };
        let (its, for_servant) = (Arc::clone(&tray), Arc::clone(shared));
        threads.push(spawn("servant", move || servant::serve(&its, &posts, &for_servant))?);
        trays.push(tray);
    }
    Ok(trays)
}

fn same(one: &Protocol, other: &Protocol) -> bool {
    one.name == other.name
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, ControlError> {
    let refused = |error| ControlError::Local(format!("this host refuses a thread: {error}"));
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(refused)
}

/// A port at which connections come.
struct Gate {
    listener: TcpListener,
    port: u16,
    native: bool,
    trays: Vec<Arc<Tray>>,
}

struct Front {
    poller: Poller,
    gates: Vec<Gate>,
    /// Every servant.
    trays: Vec<Arc<Tray>>,
    strangers: BTreeMap<u64, Stranger>,
    next: u64,
    shared: Arc<Shared>,
    runs: Vec<JoinHandle<()>>,
}

impl Front {
    fn new(gates: Vec<Gate>, trays: Vec<Arc<Tray>>, shared: Arc<Shared>) -> Result<Self, ControlError> {
        let poller = Poller::new()?;
        for (token, gate) in (0_u64..).zip(&gates) {
            stream::set_nonblocking(&gate.listener, true)?;
            poller.add(&gate.listener, token, Interest::READ)?;
        }
        let next = gates.len() as u64;
        poller.add(&shared.switch.bell, SWITCH, Interest::READ)?;
        Ok(Self { poller, gates, trays, strangers: BTreeMap::new(), next, shared, runs: Vec::new() })
    }

    fn run(&mut self) -> Result<(), ControlError> {
        let mut events = Events::with_capacity(256);
        while !self.shared.stopping() {
            self.poller.wait(&mut events, self.oldest_deadline())?;
            let tokens: Vec<u64> = events.iter().map(|ready| ready.token).collect();
            for token in tokens {
                if token < self.gates.len() as u64 {
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
            let Some(gate) = self.gates.get(at) else { return };
            let (connection, peer) = match gate.listener.accept() {
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
            self.meet(connection, peer, at);
        }
    }

    fn meet(&mut self, connection: TcpStream, peer: SocketAddr, gate: usize) {
        if self.strangers.len() >= MOST_STRANGERS {
            self.strangers.pop_first();
        }
        if connection.set_nonblocking(true).is_err() {
            return;
        }
        let Some(port) = self.gates.get(gate).map(|gate| gate.port) else { return };
        if let Some(tray) = self.trays.iter().find(|tray| tray.claims(port, peer.ip())) {
            let said = Vec::new();
            tray.put(Parcel::Connection { port, stream: connection, peer, said });
            return;
        }
        let token = self.next;
        self.next += 1;
        let until = clock::now() + PATIENCE;
        if self.poller.add(&connection, token, Interest::READ).is_ok() {
            self.strangers.insert(token, Stranger { connection, peer, until, gate, said: Vec::new() });
            // Ours say it at once: no second round through the poller for each of ten thousand streams.
            self.listen_to(token);
        }
    }

    fn listen_to(&mut self, token: u64) {
        let Some(stranger) = self.strangers.get_mut(&token) else { return };
        let Some(gate) = self.gates.get(stranger.gate) else { return };
        let wish = match stranger.read(gate.native, &gate.trays) {
            Ok(None) => return,
            Ok(Some(wish)) => Ok((wish, gate.port)),
            Err(why) => Err(why),
        };
        let Some(stranger) = self.strangers.remove(&token) else { return };
        let _ = self.poller.remove(&stranger.connection);
        match wish {
            Ok((Wish::Native(preface), _)) => self.direct(stranger, preface),
            Ok((Wish::Coordinator, _)) => self.introduce(stranger),
            Ok((Wish::Foreign(tray), port)) => {
                let Stranger { connection: stream, peer, said, .. } = stranger;
                if !tray.put(Parcel::Connection { port, stream, peer, said }) {
                    let why = format!("too many connections wait for {}", tray.protocol.name);
                    (self.shared.news)(News::Foreign { client: peer, why });
                }
            }
            Err(why) => (self.shared.news)(News::Foreign { client: stranger.peer, why }),
        }
    }

    /// A coordinator gets a thread, as a client does.
    fn introduce(&mut self, stranger: Stranger) {
        let Stranger { connection, peer, said, .. } = stranger;
        if self.runs.len() >= MOST_RUNS {
            return self.too_many(peer);
        }
        let shared = Arc::clone(&self.shared);
        self.spawn("agent", move || agent::serve(connection, peer, &said, &shared));
    }

    fn too_many(&self, peer: SocketAddr) {
        let why = format!("more than {MOST_RUNS} clients at once");
        (self.shared.news)(News::Foreign { client: peer, why });
    }

    fn direct(&mut self, stranger: Stranger, preface: Preface) {
        let Stranger { connection, peer, .. } = stranger;
        match preface.connection {
            Connection::Control if self.runs.len() >= MOST_RUNS => self.too_many(peer),
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
