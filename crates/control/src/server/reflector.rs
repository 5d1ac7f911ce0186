//! Answers latency probes, in a thread that exists only during runs: what arrives at the ports meanwhile does not
//! delay the answers, which are a part of the measurement.
//!
//! The thread reads the UDP ports of our own protocol instead of the front, and the TCP connections that clients
//! use for probes if UDP does not get through. Such a connection lives until its run ends.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_proto::native::{DATAGRAM_BYTES, DatagramKind, ProbeDatagram};
use linerate_sock::batch::RecvBatch;
use linerate_sock::poll::{EventFd, Events, Interest, Poller};
use linerate_sock::thread::{self, locked};
use linerate_sock::{Mono, SockError, clock};

use super::front::PollSource;
use super::open_port::OpenPort;
use super::registry::RunInbox;
use super::{Shared, datagrams};
use crate::error::ControlError;
use crate::probe::reply;
use crate::shares::{Permit, Shares};

/// Most probe connections of a server.
const MAX_PROBE_CONNECTIONS: usize = 1_024;

/// Most per run: a run uses one at a time; the others are connections that are closing.
const MAX_PER_RUN: usize = 8;

/// Most probes of one connection that are answered in one turn.
const PROBES_PER_TURN: usize = 64;

/// Tokens of the wakers, and of UDP ports by the index in [`Shared::ports`]; those of connections count up from 0.
const WAKER_TOKEN: u64 = u64::MAX;
const ENDED_TOKEN: u64 = WAKER_TOKEN - 1;
const ARRIVED_TOKEN: u64 = WAKER_TOKEN - 2;
const FIRST_PORT_TOKEN: u64 = 1 << 62;

/// Receives new probe connections, and starts the thread that answers probes.
#[derive(Debug)]
pub(super) struct Reflector {
    state: Mutex<ReflectorState>,
    waker: EventFd,
    places: Arc<Shares>,
}

#[derive(Debug, Default)]
struct ReflectorState {
    arrivals: Vec<(TcpStream, Arc<RunInbox>, Permit)>,
    /// Whether there is a thread that answers probes.
    serving: bool,
    /// The current or the last thread.
    thread: Option<JoinHandle<()>>,
}

impl Reflector {
    pub(super) fn new() -> Result<Self, ControlError> {
        let (state, places) = (Mutex::default(), Shares::new(MAX_PROBE_CONNECTIONS));
        Ok(Self { state, waker: EventFd::new()?, places })
    }

    /// Adds a connection of a run; closes it if there is no place.
    pub(super) fn put(&self, connection: TcpStream, run: Arc<RunInbox>) {
        let Ok(peer) = connection.peer_addr() else { return };
        let Ok(permit) = self.places.take(peer.ip()) else { return };
        if connection.set_nonblocking(true).is_ok() && connection.set_nodelay(true).is_ok() {
            let arrivals = &mut locked(&self.state).arrivals;
            // Without a thread, nobody has taken those of earlier runs.
            arrivals.retain(|(_, run, _)| !run.is_over());
            arrivals.push((connection, run, permit));
            self.waker.wake();
        }
    }

    /// Starts the thread, unless there is one. It ends when no client is registered any more.
    ///
    /// # Errors
    /// The host refuses a thread.
    pub(super) fn start(shared: &Arc<Shared>) -> Result<(), SockError> {
        let mut state = locked(&shared.reflector.state);
        if state.serving {
            return Ok(());
        }
        if let Some(last) = state.thread.take() {
            // It needs nothing that is locked here: its last act was to say that it does not serve any more.
            let _ = last.join();
        }
        let its = Arc::clone(shared);
        state.thread =
            Some(thread::spawn("reflector", move || ReflectorThread { shared: &its, over: false }.serve())?);
        state.serving = true;
        Ok(())
    }

    /// Waits for the end of the thread after the server has stopped.
    pub(super) fn join(&self) {
        let thread = locked(&self.state).thread.take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// The duty of the thread. When it ends, the front reads the UDP ports again.
struct ReflectorThread<'a> {
    shared: &'a Shared,
    over: bool,
}

impl ReflectorThread<'_> {
    fn serve(mut self) {
        if let Err(error) = self.reflect() {
            tracing::error!(%error, "latency probes are answered by the thread of the front");
        }
    }

    /// Our own UDP ports, with their indices.
    fn ports(&self) -> impl Iterator<Item = (usize, &OpenPort)> {
        self.shared.ports.iter().enumerate().filter(|(_, port)| port.native)
    }

    fn reflect(&mut self) -> Result<(), SockError> {
        let shared = self.shared;
        let mut lines = ProbeConnections { poller: Poller::new()?, lines: BTreeMap::new(), next: 0 };
        lines.poller.add(&shared.switch.waker, WAKER_TOKEN, Interest::READ)?;
        lines.poller.add(&shared.registry.waker, ENDED_TOKEN, Interest::READ)?;
        lines.poller.add(&shared.reflector.waker, ARRIVED_TOKEN, Interest::READ)?;
        for (at, port) in self.ports() {
            lines.poller.add(&*port.socket, FIRST_PORT_TOKEN + at as u64, Interest::READ)?;
            let _ = shared.poller.remove(&*port.socket);
        }
        let mut batch: RecvBatch = datagrams::batch(self.ports().map(|(_, port)| port));
        let mut events = Events::with_capacity(64);
        let (mut has_probes, mut notes_arrivals) = (false, false);
        let _ = clock::set_timer_slack_ns(1);
        while !shared.stopping() {
            lines.poller.wait(&mut events, Mono::FAR)?;
            let tokens: Vec<u64> = events.iter().map(|ready| ready.token).collect();
            // Probes first: the delay until they are read is part of the measured time.
            for token in tokens.iter().filter(|token| **token < ARRIVED_TOKEN) {
                let udp_port =
                    token.checked_sub(FIRST_PORT_TOKEN).and_then(|at| shared.ports.get(at as usize));
                match udp_port {
                    Some(port) => has_probes |= datagrams::receive(port, &mut batch, shared),
                    None => lines.step(*token),
                }
            }
            if has_probes && !notes_arrivals {
                self.ports().for_each(|(_, port)| datagrams::note_arrivals(port, true));
                notes_arrivals = true;
            }
            if tokens.contains(&ARRIVED_TOKEN) {
                let _ = shared.reflector.waker.clear();
                let arrived = std::mem::take(&mut locked(&shared.reflector.state).arrivals);
                arrived.into_iter().for_each(|(stream, run, permit)| lines.add(stream, run, permit));
            }
            // A connection may have arrived after the end of its run was signalled.
            if tokens.contains(&ENDED_TOKEN) || tokens.contains(&ARRIVED_TOKEN) {
                let _ = shared.registry.waker.clear();
                lines.lines.retain(|_, line| !line.run.is_over());
                if self.ends() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Ends the duty if no client is registered. A client that registers later starts another thread.
    fn ends(&mut self) -> bool {
        let mut state = locked(&self.shared.reflector.state);
        if self.shared.registry.is_empty() {
            self.return_ports();
            state.serving = false;
            self.over = true;
        }
        self.over
    }

    fn return_ports(&self) {
        for (at, port) in self.ports() {
            datagrams::note_arrivals(port, false);
            let _ = self.shared.poller.add(&*port.socket, PollSource::Datagrams(at).token(), Interest::READ);
        }
    }
}

impl Drop for ReflectorThread<'_> {
    fn drop(&mut self) {
        // Also after an error or a panic.
        if !self.over {
            self.return_ports();
            locked(&self.shared.reflector.state).serving = false;
        }
    }
}

struct ProbeConnections {
    poller: Poller,
    lines: BTreeMap<u64, ProbeConnection>,
    next: u64,
}

/// One connection. Closing it removes it from the poller.
struct ProbeConnection {
    stream: TcpStream,
    run: Arc<RunInbox>,
    partial: Vec<u8>,
    unsent: Vec<u8>,
    _permit: Permit,
}

impl ProbeConnections {
    fn add(&mut self, stream: TcpStream, run: Arc<RunInbox>, permit: Permit) {
        let of_run = self.lines.values().filter(|line| Arc::ptr_eq(&line.run, &run)).count();
        let token = self.next;
        if of_run < MAX_PER_RUN && self.poller.add(&stream, token, Interest::READ).is_ok() {
            self.next += 1;
            let line =
                ProbeConnection { stream, run, partial: Vec::new(), unsent: Vec::new(), _permit: permit };
            self.lines.insert(token, line);
        }
    }

    fn step(&mut self, token: u64) {
        let Some(line) = self.lines.get_mut(&token) else { return };
        let waits = !line.unsent.is_empty();
        if line.turn().is_err() {
            self.lines.remove(&token);
            return;
        }
        // While answers are unsent, no further probes are read.
        let interest = if line.unsent.is_empty() { Interest::READ } else { Interest::WRITE };
        if waits == line.unsent.is_empty() {
            let _ = self.poller.modify(&line.stream, token, interest);
        }
    }
}

impl ProbeConnection {
    /// Answers the probes that have arrived. An error ends the connection.
    fn turn(&mut self) -> std::io::Result<()> {
        self.flush()?;
        for _ in 0..PROBES_PER_TURN {
            if !self.unsent.is_empty() {
                return Ok(());
            }
            let mut bytes = [0; DATAGRAM_BYTES];
            let room = bytes.get_mut(..DATAGRAM_BYTES - self.partial.len()).unwrap_or_default();
            match self.stream.read(room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.partial.extend_from_slice(room.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.partial.len() == DATAGRAM_BYTES {
                let arrived = clock::now();
                let probe = ProbeDatagram::decode(&self.partial)
                    .filter(|message| message.kind == DatagramKind::Probe);
                let probe = probe.ok_or(ErrorKind::InvalidData)?;
                self.partial.clear();
                self.unsent.extend_from_slice(&reply(&probe, arrived).encode());
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
