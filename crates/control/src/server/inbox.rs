//! What has arrived for an embedded server, and how it is decided which server gets it.

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_compat::Tool;
use linerate_model::sniff::Match;
use linerate_sock::poll::EventFd;
use linerate_sock::thread::locked;
use linerate_sock::{Mono, clock};

use crate::control_stream::ControlStream;
use crate::error::ControlError;
use crate::notice::RateLimitedNotice;
use crate::shares::{Exhausted, Shares};
use crate::stand_in::{Incoming, Interrupts};

/// Most connections and datagrams that wait for one embedded server; further ones are dropped.
const MAX_WAITING: usize = 4_096;

/// Most connections of one embedded server including waiting ones: fewer than the links that it may have.
const MAX_CONNECTIONS: usize = 3_800;

/// Most refused runs of one embedded server that are logged in a while.
const MAX_REFUSALS_LOGGED: u32 = 32;

const SIGTERM: i32 = 15;

/// How long an embedded server may take to end when the server stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Where connections and datagrams wait for the embedded server of one tool.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) tool: &'static Tool,
    /// Wakes the embedded server when something has arrived.
    pub(super) waker: EventFd,
    pub(super) interrupts: Interrupts,
    arrived: Mutex<VecDeque<Incoming>>,
    claims: Mutex<Claims>,
    /// Runs that were refused. Each datagram of a client that goes on asks again.
    refusals: Mutex<RateLimitedNotice>,
    end_by: AtomicU64,
    /// Places of the connections that the embedded server has and of those that wait for it.
    places: Arc<Shares>,
}

/// What an embedded server may receive on ports of others: some tools use each other's ports for their
/// data.
#[derive(Debug, Default)]
struct Claims {
    ports: BTreeSet<u16>,
    /// Hosts that are being measured, with one entry per run.
    guests: Vec<IpAddr>,
}

impl Inbox {
    pub(super) fn new(tool: &'static Tool) -> Result<Self, ControlError> {
        Ok(Self {
            tool,
            waker: EventFd::new()?,
            interrupts: Interrupts::new()?,
            arrived: Mutex::new(VecDeque::new()),
            claims: Mutex::default(),
            refusals: Mutex::new(RateLimitedNotice::new(MAX_REFUSALS_LOGGED)),
            end_by: AtomicU64::new(Mono::FAR.as_ns()),
            places: Shares::new(MAX_CONNECTIONS),
        })
    }

    /// Adds a connection if its host has not reached its share of the places; otherwise returns it with the
    /// reason.
    pub(super) fn connect(
        &self,
        port: u16,
        stream: ControlStream,
        peer: SocketAddr,
        received: Vec<u8>,
    ) -> Result<(), (ControlStream, String)> {
        let name = self.tool.name;
        let permit = match self.places.take(peer.ip()) {
            Ok(permit) => permit,
            Err(Exhausted { group, taken }) => {
                return Err((stream, format!("too many connections for {name}: {taken} from {group}")));
            }
        };
        let mut arrived = locked(&self.arrived);
        if arrived.len() >= MAX_WAITING {
            return Err((stream, format!("too many connections wait for {name}")));
        }
        arrived.push_back(Incoming::Connection { port, stream, peer, received, permit });
        self.waker.wake();
        Ok(())
    }

    /// Adds a datagram, or drops it if there is no room.
    pub(super) fn put_datagram(&self, port: u16, from: SocketAddr, to: Option<IpAddr>, bytes: Vec<u8>) {
        let mut arrived = locked(&self.arrived);
        if arrived.len() < MAX_WAITING {
            arrived.push_back(Incoming::Datagram { port, from, to, bytes });
            self.waker.wake();
        }
    }

    pub(super) fn take(&self) -> Option<Incoming> {
        let mut arrived = locked(&self.arrived);
        let incoming = arrived.pop_front();
        if arrived.is_empty() {
            let _ = self.waker.clear();
        }
        incoming
    }

    /// Notes that the embedded server listens on a port of another protocol.
    pub(super) fn claim(&self, port: u16) {
        locked(&self.claims).ports.insert(port);
    }

    /// Counts a refused run. Returns what to append to its notice if it may be logged.
    pub(super) fn refused(&self) -> Option<String> {
        locked(&self.refusals).is_due(clock::now())
    }

    /// Notes that a run with this host has begun.
    pub(super) fn guest_came(&self, host: IpAddr) {
        locked(&self.claims).guests.push(host.to_canonical());
    }

    /// Notes that a run with this host has ended.
    pub(super) fn guest_left(&self, host: IpAddr) {
        let guests = &mut locked(&self.claims).guests;
        if let Some(at) = guests.iter().position(|guest| *guest == host.to_canonical()) {
            guests.swap_remove(at);
        }
    }

    /// Whether traffic from this host to this port belongs to this embedded server rather than to the port's
    /// own protocol.
    pub(super) fn claims(&self, port: u16, host: IpAddr) -> bool {
        let claims = locked(&self.claims);
        claims.ports.contains(&port) && claims.guests.contains(&host.to_canonical())
    }

    /// Tells the embedded server to end, because the server stops.
    pub(super) fn stop(&self) {
        self.end_by.store((clock::now() + STOP_TIMEOUT).as_ns(), Ordering::Release);
        self.interrupts.raise(SIGTERM);
    }

    /// When the embedded server must have ended.
    pub(super) fn end_by(&self) -> Mono {
        Mono(self.end_by.load(Ordering::Acquire))
    }
}

/// Which of several protocols on one port the first bytes belong to.
pub(super) enum Detected<'a> {
    /// They belong to this one.
    Its(&'a Arc<Inbox>),
    /// More bytes are needed to decide.
    More,
    /// They belong to none.
    Nobody,
}

/// Detects a protocol by the first bytes. With `alone`, a single candidate is accepted without any bytes.
pub(super) fn detect<'a>(inboxes: &'a [Arc<Inbox>], received: &[u8], alone: bool) -> Detected<'a> {
    if let ([only], true) = (inboxes, alone) {
        return Detected::Its(only);
    }
    let mut more = false;
    for inbox in inboxes {
        match (inbox.tool.sniff)(received) {
            Match::Yes => return Detected::Its(inbox),
            Match::More => more = true,
            Match::No => {}
        }
    }
    if more { Detected::More } else { Detected::Nobody }
}
