//! The links of a stand-in: all its sockets, by number.

mod acting;
mod borrowing;
mod connection;
mod opening;
mod tuning;

use linerate_sock::handle::{AsFd, BorrowedFd};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use linerate_compat::stand_in::{Link, Transport};
use linerate_sock::batch::RecvBatch;
use linerate_sock::iface::ConnectionEnds;
use linerate_sock::poll::{Interest, Poller};
use linerate_sock::{Mono, SocketOptions, clock};

use super::driver_event::{DriverEvent, reason, reason_of};
use super::endpoint::{mapped_address, opened, plain};
use crate::shares::Permit;
use crate::tls_channel::TlsChannel;
use connection::{Read, StandInConnection};
use opening::Attempt;

/// How long a closed connection may take to send its remaining bytes.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// Most links at once; further connections are closed when they arrive.
const MAX_LINKS: usize = 4_096;

/// Most peers whose destination addresses are remembered.
const MAX_DESTINATIONS: usize = 4_096;

/// Size of the largest datagram, and of the largest read from a connection.
const BUFFER_BYTES: usize = 65_536;

/// Events that wait for delivery.
pub(super) type DriverEvents = VecDeque<DriverEvent>;

/// The links of a stand-in.
#[derive(Debug)]
pub(super) struct Links {
    poller: Poller,
    table: BTreeMap<Link, LinkEntry>,
    next: Link,
    buffer: Vec<u8>,
    datagrams: RecvBatch,
    /// The addresses of this host at which the datagrams of peers arrive, by listener.
    destinations: HashMap<(Link, SocketAddr), IpAddr>,
}

#[derive(Debug)]
struct LinkEntry {
    kind: LinkSocket,
    /// What the poller currently waits for.
    watched: Option<Interest>,
}

#[derive(Debug)]
enum LinkSocket {
    Connecting(Box<Attempt>),
    Connection(StandInConnection),
    Datagrams(DatagramLink),
    Listener(TcpListener),
    /// A port of the server on each of its addresses, and the socket options of connections accepted there.
    SharedPorts(Vec<SharedServerPort>, SocketOptions),
}

/// A connection that has arrived at a listener.
pub(super) struct AcceptedConnection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    /// Its encryption, if it has one.
    pub(super) channel: Option<TlsChannel>,
    /// Its place, if it arrived at a port of the server.
    pub(super) permit: Option<Permit>,
}

#[derive(Debug)]
struct DatagramLink {
    socket: UdpSocket,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    discards: bool,
    held: bool,
    borrowed: u8,
    closed: bool,
}

/// A port of the server, which passes on what arrives for this stand-in.
#[derive(Debug, Clone)]
pub(crate) struct SharedServerPort {
    /// The transport of the port.
    pub(crate) transport: Transport,
    /// The port number as the stand-in knows it.
    pub(crate) port: u16,
    /// The address on which the server listens.
    pub(crate) address: SocketAddr,
    /// Its socket; absent for TCP.
    pub(crate) socket: Option<Arc<UdpSocket>>,
}

/// Whether another step may find more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Maybe,
    No,
}

impl LinkSocket {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Connecting(attempt) => Some(attempt.under_way.as_fd()),
            Self::Connection(connection) => Some(connection.stream.as_fd()),
            Self::Datagrams(datagrams) => Some(datagrams.socket.as_fd()),
            Self::Listener(listener) => Some(listener.as_fd()),
            Self::SharedPorts(..) => None,
        }
    }

    fn interest(&self) -> Option<Interest> {
        match self {
            Self::Connecting(_) => Some(Interest::WRITE),
            Self::Connection(connection) => connection.interest(),
            Self::Datagrams(datagrams) => {
                (datagrams.borrowed == 0 && !datagrams.held).then_some(Interest::READ)
            }
            Self::Listener(_) => Some(Interest::READ),
            Self::SharedPorts(..) => None,
        }
    }
}

impl Links {
    pub(super) fn new() -> Result<Self, linerate_sock::SockError> {
        Ok(Self {
            poller: Poller::new()?,
            table: BTreeMap::new(),
            next: Link::FIRST_ACCEPTED,
            buffer: vec![0; BUFFER_BYTES],
            datagrams: RecvBatch::new(1, BUFFER_BYTES),
            destinations: HashMap::new(),
        })
    }

    pub(super) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// The local and the remote address of a link, without IPv4 mapping.
    pub(super) fn ends(&self, link: Link) -> Option<(SocketAddr, Option<SocketAddr>)> {
        match &self.table.get(&link)?.kind {
            LinkSocket::Connecting(_) => None,
            LinkSocket::Connection(connection) => {
                Some((plain(connection.local), Some(plain(connection.peer))))
            }
            LinkSocket::Datagrams(datagrams) => Some((plain(datagrams.local), datagrams.peer.map(plain))),
            LinkSocket::Listener(listener) => listener.local_addr().ok().map(|local| (plain(local), None)),
            LinkSocket::SharedPorts(ports, _) => ports.first().map(|port| (plain(port.address), None)),
        }
    }

    /// Both ends of a link with a peer.
    pub(super) fn connection(&self, link: Link) -> Option<ConnectionEnds> {
        let (local, peer) = self.ends(link)?;
        let socket = self.table.get(&link)?.kind.fd()?;
        Some(ConnectionEnds::with_socket(local, peer?, &socket))
    }

    /// Whether a connection is encrypted.
    pub(super) fn is_encrypted(&self, link: Link) -> bool {
        let kind = self.table.get(&link).map(|entry| &entry.kind);
        matches!(kind, Some(LinkSocket::Connection(connection)) if connection.channel.is_some())
    }

    /// The socket of a connection.
    pub(super) fn stream(&self, link: Link) -> Option<&TcpStream> {
        match &self.table.get(&link)?.kind {
            LinkSocket::Connection(connection) => Some(&connection.stream),
            _ => None,
        }
    }

    pub(super) fn is_listener(&self, link: Link) -> bool {
        matches!(self.table.get(&link).map(|entry| &entry.kind), Some(LinkSocket::Listener(_)))
    }

    /// Whether all links are listeners, so that only a new client can cause an event.
    pub(super) fn are_listeners(&self) -> bool {
        self.table
            .values()
            .all(|entry| matches!(entry.kind, LinkSocket::Listener(_) | LinkSocket::SharedPorts(..)))
    }

    /// The links with decrypted data that was not read yet. The poller does not report them.
    pub(super) fn with_decrypted(&self) -> Vec<Link> {
        let has = |entry: &LinkEntry| matches!(&entry.kind, LinkSocket::Connection(c) if c.has_decrypted());
        self.table.iter().filter(|(_, entry)| has(entry)).map(|(link, _)| *link).collect()
    }

    /// The earliest timeout of a link.
    pub(super) fn deadline(&self) -> Mono {
        let of = |entry: &LinkEntry| match &entry.kind {
            LinkSocket::Connecting(attempt) => Some(attempt.until),
            LinkSocket::Connection(connection) if connection.has_decrypted() => Some(Mono(0)),
            LinkSocket::Connection(connection) => connection.closing,
            _ => None,
        };
        self.table.values().filter_map(of).min().unwrap_or(Mono::FAR)
    }

    /// Closes the links whose timeout has passed.
    pub(super) fn expire(&mut self, events: &mut DriverEvents) {
        let late = |entry: &LinkEntry| match &entry.kind {
            LinkSocket::Connecting(attempt) => attempt.until.has_passed(),
            LinkSocket::Connection(connection) => connection.closing.is_some_and(Mono::has_passed),
            _ => false,
        };
        let gone: Vec<Link> =
            self.table.iter().filter(|(_, entry)| late(entry)).map(|(link, _)| *link).collect();
        for link in gone {
            if let Some(LinkSocket::Connecting(_)) = self.remove(link) {
                events.push_back(DriverEvent::NotOpened { link, reason: opening::timed_out() });
            }
        }
    }

    /// Executes one step of what is ready on a link.
    pub(super) fn step(&mut self, link: Link, events: &mut DriverEvents) -> More {
        let Some(entry) = self.table.get_mut(&link) else { return More::No };
        let more = match &mut entry.kind {
            LinkSocket::Connecting(_) => return self.connected(link, events),
            LinkSocket::Listener(_) => return self.accept(link, events),
            LinkSocket::SharedPorts(..) => return More::No,
            LinkSocket::Datagrams(datagrams) => {
                let (more, to) = datagrams.read(link, &mut self.datagrams, events);
                if let Some((from, to)) = to {
                    self.note_destination(link, from, Some(to));
                }
                more
            }
            LinkSocket::Connection(connection) => {
                acting::note_flushed(link, connection.flush(), events);
                if connection.interest().is_some_and(|wants| wants.read) {
                    read(connection, link, &mut self.buffer, events)
                } else {
                    More::No
                }
            }
        };
        self.update_interest(link);
        more
    }

    /// Remembers at which address of this host the datagrams of a peer arrive, so that it is answered from there.
    pub(super) fn note_destination(&mut self, listener: Link, peer: SocketAddr, to: Option<IpAddr>) {
        let Some(to) = to else { return };
        if self.destinations.len() >= MAX_DESTINATIONS {
            // Those that are forgotten are answered from the address that the kernel chooses.
            self.destinations.clear();
        }
        self.destinations.insert((listener, peer), to);
    }

    /// The address of this host at which the datagrams of a peer arrive at a listener, if it is known.
    fn destination(&self, listener: Link, peer: SocketAddr) -> Option<IpAddr> {
        self.destinations.get(&(listener, plain(peer))).copied()
    }

    /// Updates the poller's interest in a link, and removes a link that has ended.
    fn update_interest(&mut self, link: Link) {
        let over = self.table.get(&link).is_some_and(|entry| match &entry.kind {
            LinkSocket::Connection(c) => {
                c.closing.is_some() && c.borrowed == 0 && !c.has_unsent() || c.discarded()
            }
            LinkSocket::Datagrams(datagrams) => datagrams.closed && datagrams.borrowed == 0,
            _ => false,
        });
        if over {
            if let Some(LinkSocket::Connection(connection)) = self.remove(link) {
                connection.say_end();
            }
            return;
        }
        let Some(entry) = self.table.get_mut(&link) else { return };
        let (wanted, Some(fd)) = (entry.kind.interest(), entry.kind.fd()) else { return };
        let token = u64::from(link.0);
        let done = match (entry.watched, wanted) {
            (None, Some(interest)) => self.poller.add(&fd, token, interest),
            (Some(now), Some(interest)) if now != interest => self.poller.modify(&fd, token, interest),
            (Some(_), None) => self.poller.remove(&fd),
            _ => Ok(()),
        };
        match done {
            Ok(()) => entry.watched = wanted,
            Err(error) => tracing::warn!(%error, "a link cannot be watched"),
        }
    }

    fn insert(&mut self, link: Link, kind: LinkSocket) {
        self.remove(link);
        self.table.insert(link, LinkEntry { kind, watched: None });
        self.update_interest(link);
    }

    /// Removes a link. The poller must forget it first, because a duplicate of its descriptor would keep it
    /// registered.
    fn remove(&mut self, link: Link) -> Option<LinkSocket> {
        let entry = self.table.remove(&link)?;
        if let (Some(_), Some(fd)) = (entry.watched, entry.kind.fd()) {
            let _ = self.poller.remove(&fd);
        }
        Some(entry.kind)
    }

    fn accept(&mut self, listener: Link, events: &mut DriverEvents) -> More {
        let Some(LinkSocket::Listener(socket)) = self.table.get(&listener).map(|entry| &entry.kind) else {
            return More::No;
        };
        match socket.accept() {
            Ok((stream, peer)) => {
                let came = AcceptedConnection { stream, peer, channel: None, permit: None };
                self.take_in(listener, came, events);
                More::Maybe
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => More::No,
            // The peer has already closed the connection.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => More::Maybe,
            Err(error) => {
                // Out of file descriptors: pause, because the poller would report the listener again
                // immediately.
                tracing::warn!(%error, "a connection could not be accepted");
                clock::sleep_until(clock::now() + Duration::from_millis(10));
                More::No
            }
        }
    }
}

impl DatagramLink {
    /// Reads a datagram. Also returns its source and the address of this host that it was sent to, if it is known.
    fn read(
        &mut self,
        link: Link,
        batch: &mut RecvBatch,
        events: &mut DriverEvents,
    ) -> (More, Option<(SocketAddr, IpAddr)>) {
        if self.borrowed > 0 || self.held {
            return (More::No, None);
        }
        if let Err(error) = batch.recv(&self.socket) {
            // An ICMP error. The socket remains usable, but a stand-in that waits for a datagram has to know.
            if self.peer.is_some() && !self.discards {
                events.push_back(DriverEvent::Closed { link, reason: Some(reason_of(&error)) });
            }
            return (More::No, None);
        }
        let Some(datagram) = batch.get(0) else { return (More::No, None) };
        let Some(from) = datagram.source.map(plain).filter(|_| !self.discards) else {
            return (More::Maybe, None);
        };
        let to = datagram.ancillary.destination.map(|to| (from, to));
        events.push_back(DriverEvent::Datagram { link, from, bytes: datagram.bytes.to_vec() });
        (More::Maybe, to)
    }
}

fn read(
    connection: &mut StandInConnection,
    link: Link,
    buffer: &mut [u8],
    events: &mut DriverEvents,
) -> More {
    match connection.read(buffer) {
        Read::Bytes(_) if connection.discards => More::Maybe,
        Read::Bytes(count) => {
            let bytes = buffer.get(..count).unwrap_or_default().to_vec();
            events.push_back(DriverEvent::Bytes { link, bytes });
            More::Maybe
        }
        Read::Closed(reason) if !connection.discards => {
            events.push_back(DriverEvent::Closed { link, reason });
            More::No
        }
        Read::Pending | Read::Closed(_) => More::No,
    }
}
