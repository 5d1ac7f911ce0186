//! TCP connections for latency probes, used if UDP does not get through. One thread serves all of them; a
//! connection lives until its run ends.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use linerate_proto::native::{DATAGRAM_BYTES, Datagram, DatagramKind};
use linerate_sock::poll::{EventFd, Events, Interest, Poller};
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};

use super::Shared;
use super::registry::Inbox;
use crate::error::ControlError;
use crate::probe::reply;
use crate::shares::{Permit, Shares};

/// Most probe connections of a server.
const MAX_PROBE_CONNECTIONS: usize = 1_024;

/// Most per run: a run uses one at a time; the others are connections that are closing.
const MAX_PER_RUN: usize = 8;

/// Most probes of one connection that are answered in one turn.
const PROBES_PER_TURN: usize = 64;

/// Tokens of the wakers; those of connections count up from 0.
const WAKER_TOKEN: u64 = u64::MAX;
const ENDED_TOKEN: u64 = WAKER_TOKEN - 1;
const ARRIVED_TOKEN: u64 = WAKER_TOKEN - 2;

/// Receives new probe connections.
#[derive(Debug)]
pub(super) struct Probes {
    arrivals: Mutex<Vec<(TcpStream, Arc<Inbox>, Permit)>>,
    waker: EventFd,
    places: Arc<Shares>,
}

impl Probes {
    pub(super) fn new() -> Result<Self, ControlError> {
        Ok(Self {
            arrivals: Mutex::default(),
            waker: EventFd::new()?,
            places: Shares::new(MAX_PROBE_CONNECTIONS),
        })
    }

    /// Adds a connection of a run; closes it if there is no place.
    pub(super) fn put(&self, connection: TcpStream, run: Arc<Inbox>) {
        let Ok(peer) = connection.peer_addr() else { return };
        let Ok(permit) = self.places.take(peer.ip()) else { return };
        if connection.set_nonblocking(true).is_ok() && connection.set_nodelay(true).is_ok() {
            locked(&self.arrivals).push((connection, run, permit));
            self.waker.wake();
        }
    }

    /// Reflects probes until the server stops.
    pub(super) fn serve(&self, shared: &Shared) -> Result<(), ControlError> {
        let mut reflector = Reflector { poller: Poller::new()?, lines: BTreeMap::new(), next: 0 };
        reflector.poller.add(&shared.switch.waker, WAKER_TOKEN, Interest::READ)?;
        reflector.poller.add(&shared.registry.waker, ENDED_TOKEN, Interest::READ)?;
        reflector.poller.add(&self.waker, ARRIVED_TOKEN, Interest::READ)?;
        let mut events = Events::with_capacity(64);
        let _ = clock::set_timer_slack_ns(1);
        while !shared.stopping() {
            reflector.poller.wait(&mut events, Mono::FAR)?;
            let tokens: Vec<u64> = events.iter().map(|ready| ready.token).collect();
            // Probes first: the delay until they are read is part of the measured time.
            for token in tokens.iter().filter(|token| **token < ARRIVED_TOKEN) {
                reflector.step(*token);
            }
            if tokens.contains(&ARRIVED_TOKEN) {
                let _ = self.waker.clear();
                let arrived = std::mem::take(&mut *locked(&self.arrivals));
                arrived.into_iter().for_each(|(stream, run, permit)| reflector.add(stream, run, permit));
            }
            // A connection may have arrived after the end of its run was signalled.
            if tokens.contains(&ENDED_TOKEN) || tokens.contains(&ARRIVED_TOKEN) {
                let _ = shared.registry.waker.clear();
                reflector.lines.retain(|_, line| !line.run.is_over());
            }
        }
        Ok(())
    }
}

struct Reflector {
    poller: Poller,
    lines: BTreeMap<u64, Line>,
    next: u64,
}

/// One connection. Closing it removes it from the poller.
struct Line {
    stream: TcpStream,
    run: Arc<Inbox>,
    partial: Vec<u8>,
    unsent: Vec<u8>,
    _permit: Permit,
}

impl Reflector {
    fn add(&mut self, stream: TcpStream, run: Arc<Inbox>, permit: Permit) {
        let of_run = self.lines.values().filter(|line| Arc::ptr_eq(&line.run, &run)).count();
        let token = self.next;
        if of_run < MAX_PER_RUN && self.poller.add(&stream, token, Interest::READ).is_ok() {
            self.next += 1;
            let line = Line { stream, run, partial: Vec::new(), unsent: Vec::new(), _permit: permit };
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

impl Line {
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
                let probe = Datagram::decode(&self.partial).filter(|said| said.kind == DatagramKind::Probe);
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
