//! Opens links: non-blocking connects, listeners, and connections that the server hands over.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use linerate_compat::stand_in::{Link, LinkOptions, Opened, SystemError, Transport};
use linerate_sock::open::{Bound, Connecting, begin_connect, bind_udp, connect_udp, listen_tcp};
use linerate_sock::{KeepAlive, Mono, SockError, SocketOptions, clock, reply, sockopt, stream};
use linerate_units::Span;

use super::super::driver_event::own_reason;
use super::super::endpoint::{listening_at, socket_options};
use super::{
    AcceptedConnection, DatagramLink, DriverEvent, DriverEvents, LinkSocket, Links, MAX_LINKS, More,
    SharedServerPort, StandInConnection, mapped_address, opened, reason, reason_of,
};

/// Default backlog of a listener.
const BACKLOG: i32 = 1_024;

/// Keep-alive times of accepted connections: detect a vanished peer after about 8 s.
const KEEP_ALIVE: KeepAlive =
    KeepAlive { idle: Some(Duration::from_secs(3)), interval: Some(Duration::from_secs(1)), probes: Some(5) };

/// How long a client of a server may leave data unacknowledged: longer than the queueing delay of a badly
/// bloated path.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(8);

/// A handshake in progress.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) under_way: Connecting,
    pub(super) until: Mono,
    next: Next,
}

/// What to try next if the handshake fails.
#[derive(Debug)]
struct Next {
    addresses: VecDeque<SocketAddr>,
    requested: SocketOptions,
}

/// The error of a connect that takes too long.
pub(super) fn timed_out() -> SystemError {
    const ETIMEDOUT: i32 = 110;
    reason(&std::io::Error::from_raw_os_error(ETIMEDOUT))
}

impl Links {
    /// Starts connecting, to each of the addresses in turn until one accepts.
    pub(in super::super) fn connect(
        &mut self,
        link: Link,
        addresses: Vec<SocketAddr>,
        options: &LinkOptions,
        events: &mut DriverEvents,
    ) {
        if options.transport == Transport::Udp {
            let bound = addresses
                .first()
                .ok_or_else(timed_out)
                .and_then(|peer| {
                    connect_udp(*peer, &socket_options(options))
                        .map_err(|error| reason_of(&error))
                        .map(|b| (b, *peer))
                })
                .and_then(|(bound, peer)| self.hold_datagrams(link, bound, Some(peer)));
            return events.push_back(opening(link, bound));
        }
        let until = options.connect_timeout.map_or(Mono::FAR, |span| clock::now() + span.as_duration());
        let next = Next { addresses: addresses.into(), requested: socket_options(options) };
        self.try_next(link, next, until, timed_out(), events);
    }

    /// Tries the next address. `last` is the error of the previous one.
    fn try_next(
        &mut self,
        link: Link,
        mut next: Next,
        until: Mono,
        mut last: SystemError,
        events: &mut DriverEvents,
    ) {
        while let Some(address) = next.addresses.pop_front() {
            match begin_connect(address, &next.requested) {
                Ok(under_way) => {
                    let attempt = Attempt { under_way, until, next };
                    return self.insert(link, LinkSocket::Connecting(Box::new(attempt)));
                }
                Err(error) => last = reason_of(&error),
            }
        }
        events.push_back(DriverEvent::NotOpened { link, reason: last });
    }

    /// Handles the end of a handshake, successful or not.
    pub(super) fn connected(&mut self, link: Link, events: &mut DriverEvents) -> More {
        let Some(LinkSocket::Connecting(attempt)) = self.remove(link) else { return More::No };
        let Attempt { under_way, until, next } = *attempt;
        let unconnected_buffers = under_way.buffers_before();
        match under_way.finish() {
            Ok(connected) => {
                let handshake = Some(Span::from(connected.handshake));
                let held = self.hold(link, connected.stream, connected.peer, handshake);
                let held = held.map(|opened| Opened { unconnected_buffers, ..opened });
                events.push_back(opening(link, held));
            }
            Err(error) => self.try_next(link, next, until, reason_of(&error), events),
        }
        More::No
    }

    /// Listens for connections or datagrams.
    pub(in super::super) fn listen(
        &mut self,
        link: Link,
        port: u16,
        options: &LinkOptions,
        events: &mut DriverEvents,
    ) {
        let opened = match self.listen_at(link, listening_at(port, options), options) {
            // On a host without IPv6, use IPv4.
            Err(error) if without_ipv6(&error, options) => {
                self.listen_at(link, SocketAddr::from(([0_u8; 4], port)), options)
            }
            other => other,
        };
        events.push_back(opening(link, opened.map_err(|error| reason_of(&error))));
    }

    fn listen_at(
        &mut self,
        link: Link,
        address: SocketAddr,
        options: &LinkOptions,
    ) -> Result<Opened, SockError> {
        let mut requested = socket_options(options);
        if options.transport == Transport::Udp {
            // Needed so that each peer can get its own socket on this port.
            requested.reuse_port = true;
            let bound = bind_udp(address, &requested)?;
            if address.ip().is_unspecified() {
                let _ = reply::note_destinations(&bound.socket);
            }
            stream::set_nonblocking(&bound.socket, true)?;
            let opened_link = opened(&bound.socket, bound.local, None, None);
            self.insert(link, LinkSocket::Datagrams(DatagramLink::new(bound, None)));
            return Ok(opened_link);
        }
        let backlog = options.backlog.map_or(BACKLOG, |most| i32::try_from(most).unwrap_or(i32::MAX));
        let listening = listen_tcp(address, backlog, &requested)?;
        stream::set_nonblocking(&listening.listener, true)?;
        let opened_link = opened(&listening.listener, listening.local, None, None);
        self.insert(link, LinkSocket::Listener(listening.listener));
        Ok(opened_link)
    }

    /// Uses ports of the server instead of opening a listener.
    pub(in super::super) fn listen_on_shared_ports(
        &mut self,
        link: Link,
        ports: Vec<SharedServerPort>,
        options: &LinkOptions,
        events: &mut DriverEvents,
    ) {
        let Some(first) = ports.first() else { return };
        let opened_link = Opened::new(super::plain(first.address), None);
        self.insert(link, LinkSocket::SharedPorts(ports, socket_options(options)));
        events.push_back(DriverEvent::Opened { link, opened: opened_link });
    }

    /// The listener link for a port of the server.
    pub(in super::super) fn shared_listener(&self, transport: Transport, port: u16) -> Option<Link> {
        self.table.iter().find_map(|(link, entry)| match &entry.kind {
            LinkSocket::SharedPorts(ports, _) => ports
                .iter()
                .any(|shared| shared.transport == transport && shared.port == port)
                .then_some(*link),
            _ => None,
        })
    }

    /// Adds a connection that was accepted on a listener.
    pub(in super::super) fn take_in(
        &mut self,
        listener: Link,
        came: AcceptedConnection,
        events: &mut DriverEvents,
    ) -> Option<Link> {
        if self.table.len() >= MAX_LINKS {
            return None;
        }
        let AcceptedConnection { stream, peer, channel, permit } = came;
        // Detects a vanished peer within seconds; the kernel's defaults take hours.
        let _ = sockopt::set_keep_alive(&stream, KEEP_ALIVE);
        if let Some(LinkSocket::SharedPorts(_, requested)) =
            self.table.get(&listener).map(|entry| &entry.kind)
        {
            // The server accepted it with its own options.
            let _ = sockopt::set_user_timeout(&stream, UNANSWERED_TIMEOUT);
            let _ = requested.apply_tcp(&stream);
        }
        let link = self.fresh();
        match self.hold(link, stream, peer, None) {
            Ok(mut opened) => {
                if let Some(LinkSocket::Connection(connection)) =
                    self.table.get_mut(&link).map(|e| &mut e.kind)
                {
                    opened.encrypted = channel.is_some();
                    connection.permit = permit;
                    connection.channel = channel.map(Arc::new);
                }
                events.push_back(DriverEvent::Accepted { listener, link, opened });
                Some(link)
            }
            // It broke before it became a link.
            Err(_) => None,
        }
    }

    /// Opens a datagram socket for one peer of a listener.
    pub(in super::super) fn adopt(
        &mut self,
        listener: Link,
        peer: SocketAddr,
        options: &LinkOptions,
        events: &mut DriverEvents,
    ) {
        let local = match self.table.get(&listener).map(|entry| &entry.kind) {
            Some(LinkSocket::Datagrams(datagrams)) => Ok(datagrams.local),
            Some(LinkSocket::SharedPorts(ports, _)) => {
                port_for_peer(ports, peer).map(|port| port.address).ok_or_else(|| own_reason("no port"))
            }
            _ => Err(own_reason("there is no such listener for datagrams")),
        };
        let link = self.fresh();
        let held = local.and_then(|local| {
            let peer = mapped_address(peer, local);
            let destination = self.destination(listener, peer);
            let bound = reply::connected_at(destination, local, peer, &socket_options(options));
            self.hold_datagrams(link, bound.map_err(|error| reason_of(&error))?, Some(peer))
        });
        events.push_back(match held {
            Ok(opened) => DriverEvent::Accepted { listener, link, opened },
            Err(reason) => DriverEvent::NotOpened { link, reason },
        });
    }

    /// An unused link number.
    fn fresh(&mut self) -> Link {
        loop {
            let link = self.next;
            self.next = Link(link.0.checked_add(1).unwrap_or(Link::FIRST_ACCEPTED.0));
            if !self.table.contains_key(&link) {
                return link;
            }
        }
    }

    fn hold(
        &mut self,
        link: Link,
        stream: TcpStream,
        peer: SocketAddr,
        handshake: Option<Span>,
    ) -> Result<Opened, SystemError> {
        stream.set_nonblocking(true).map_err(|error| reason(&error))?;
        let local = stream.local_addr().map_err(|error| reason(&error))?;
        let opened_link = opened(&stream, local, Some(peer), handshake);
        self.insert(link, LinkSocket::Connection(StandInConnection::new(stream, local, peer)));
        Ok(opened_link)
    }

    fn hold_datagrams(
        &mut self,
        link: Link,
        bound: Bound,
        peer: Option<SocketAddr>,
    ) -> Result<Opened, SystemError> {
        stream::set_nonblocking(&bound.socket, true).map_err(|error| reason_of(&error))?;
        let opened_link = opened(&bound.socket, bound.local, peer, None);
        self.insert(link, LinkSocket::Datagrams(DatagramLink::new(bound, peer)));
        Ok(opened_link)
    }
}

impl DatagramLink {
    fn new(bound: Bound, peer: Option<SocketAddr>) -> Self {
        let Bound { socket, local, .. } = bound;
        Self { socket, local, peer, discards: false, held: false, borrowed: 0, closed: false }
    }
}

/// The port from which a peer can be answered: one of its IP version, or a dual-stack one.
pub(super) fn port_for_peer(ports: &[SharedServerPort], peer: SocketAddr) -> Option<&SharedServerPort> {
    let own = |port: &&SharedServerPort| {
        let (here, there) = (port.address.ip(), super::plain(peer).ip());
        here.is_ipv4() == there.is_ipv4()
            && (here.is_unspecified() || here.is_loopback() == there.is_loopback())
    };
    ports
        .iter()
        .find(own)
        .or_else(|| ports.iter().find(|port| port.address.ip().is_unspecified()))
        .or(ports.first())
}

fn opening(link: Link, opened: Result<Opened, SystemError>) -> DriverEvent {
    match opened {
        Ok(opened) => DriverEvent::Opened { link, opened },
        Err(reason) => DriverEvent::NotOpened { link, reason },
    }
}

fn without_ipv6(error: &SockError, options: &LinkOptions) -> bool {
    options.local.is_none() && !options.ipv6 && error.lacks_address()
}
