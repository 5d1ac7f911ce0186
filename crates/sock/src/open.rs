//! Opening sockets: resolve, connect by a deadline, listen, bind.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::{self, Mono};
use crate::options::{Granted, SocketOptions};
use crate::poll::{Interest, wait_for};
use crate::{SockError, sockopt};

/// Which version of IP may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// Whichever the name resolves to.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl IpVersion {
    fn admits(self, addr: SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => addr.is_ipv4(),
            Self::V6 => addr.is_ipv6(),
        }
    }
}

/// The addresses of a host, in the order in which the resolver prefers them, each once.
///
/// # Errors
/// When the name is unknown, or known only in the other version of IP.
pub fn resolve(host: &str, port: u16, version: IpVersion) -> Result<Vec<SocketAddr>, SockError> {
    const OP: &str = "resolve host name";
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let found = (bare, port).to_socket_addrs().map_err(|source| {
        SockError::new(OP, io::Error::new(source.kind(), format!("\"{host}\": {source}")))
    })?;
    let mut addresses = Vec::new();
    for addr in found {
        if version.admits(addr) && !addresses.contains(&addr) {
            addresses.push(addr);
        }
    }
    if addresses.is_empty() {
        let wanted = match version {
            IpVersion::Any => "no address",
            IpVersion::V4 => "no IPv4 address",
            IpVersion::V6 => "no IPv6 address",
        };
        let text = format!("\"{host}\" has {wanted}");
        return Err(SockError::new(OP, io::Error::new(io::ErrorKind::NotFound, text)));
    }
    Ok(addresses)
}

/// Whom to connect to, how, and until when to try.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Addresses of one host, tried in this order.
    pub addresses: Vec<SocketAddr>,
    /// Wishes to set before the handshake.
    pub socket: SocketOptions,
    /// When to give up.
    pub deadline: Mono,
}

/// An open connection.
#[derive(Debug)]
pub struct Connected {
    /// The connection, in blocking mode.
    pub stream: TcpStream,
    /// The address that answered.
    pub peer: SocketAddr,
    /// What the kernel made of the wishes.
    pub granted: Granted,
    /// From the first packet to the end of the handshake: one round-trip time and the hosts' scheduling.
    pub handshake: Duration,
}

/// Connects to the first address that answers. Each gets an equal share of the time that is left, so that one which
/// swallows packets does not use up the turn of the others.
///
/// # Errors
/// That of the last address tried; `ETIMEDOUT` when the deadline passed.
pub fn connect_tcp(options: &ConnectOptions) -> Result<Connected, SockError> {
    let mut last = SockError::errno("connect without an address", libc::EDESTADDRREQ);
    for (index, &addr) in options.addresses.iter().enumerate() {
        let left = (options.addresses.len() - index) as u32;
        let until = clock::now() + options.deadline.remaining() / left;
        match connect_one(addr, &options.socket, until) {
            Ok(connected) => return Ok(connected),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_one(addr: SocketAddr, requested: &SocketOptions, deadline: Mono) -> Result<Connected, SockError> {
    let connecting = begin_connect(addr, requested)?;
    if !wait_for(&connecting, Interest::WRITE, deadline)? {
        return Err(SockError::errno(CONNECT, libc::ETIMEDOUT).at(addr));
    }
    connecting.finish()
}

const CONNECT: &str = "connect to";

/// A connection whose handshake is under way. Wait until it can be written to, then [`Connecting::finish`].
#[derive(Debug)]
pub struct Connecting {
    socket: Socket,
    peer: SocketAddr,
    requested: SocketOptions,
    began: Mono,
}

/// Begins a TCP handshake and does not wait for its end.
///
/// # Errors
/// A wish is refused, there is no route, or a host of this name refuses at once.
pub fn begin_connect(peer: SocketAddr, requested: &SocketOptions) -> Result<Connecting, SockError> {
    let fail = |source: io::Error| SockError::new(CONNECT, source).at(peer);
    let socket = stream_socket(peer, requested.mptcp)?;
    requested.apply_tcp(&socket).map_err(|error| error.at(peer))?;
    if let Some(local) = requested.local_towards(peer) {
        if requested.local_port.is_some() {
            sockopt::set_reuse_address(&socket, true)?;
        }
        bind(&socket, local)?;
    }
    let labelled = requested.labelled(&socket, peer)?;
    socket.set_nonblocking(true).map_err(fail)?;
    let began = clock::now();
    match socket.connect(&labelled.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(fail(error)),
    }
    Ok(Connecting { socket, peer, requested: requested.clone(), began })
}

impl Connecting {
    /// The connection, once the socket can be written to.
    ///
    /// # Errors
    /// Why the handshake failed.
    pub fn finish(self) -> Result<Connected, SockError> {
        let fail = |source: io::Error| SockError::new(CONNECT, source).at(self.peer);
        if let Some(error) = sockopt::take_error(&self.socket)? {
            return Err(fail(error));
        }
        let handshake = clock::now().since(self.began);
        self.socket.set_nonblocking(false).map_err(fail)?;
        let granted = self.requested.granted(&self.socket)?;
        Ok(Connected { stream: self.socket.into(), peer: self.peer, granted, handshake })
    }
}

impl AsFd for Connecting {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that accepts connections.
#[derive(Debug)]
pub struct Listening {
    /// The listener, in blocking mode. Accepted connections inherit its buffers, segment size and congestion control.
    pub listener: TcpListener,
    /// The address it is bound to, with the port that the kernel chose for port 0.
    pub local: SocketAddr,
    /// What the kernel made of the wishes.
    pub granted: Granted,
}

/// Listens for TCP connections; on `::` for those of IPv4 too.
///
/// # Errors
/// When the address is taken, not ours, or a wish is refused.
pub fn listen_tcp(addr: SocketAddr, backlog: i32, requested: &SocketOptions) -> Result<Listening, SockError> {
    let socket = stream_socket(addr, requested.mptcp)?;
    if is_any_v6(addr) {
        sockopt::set_only_v6(&socket, requested.only_v6)?;
    }
    sockopt::set_reuse_address(&socket, true)?;
    requested.apply_tcp(&socket).map_err(|error| error.at(addr))?;
    bind(&socket, addr)?;
    socket.listen(backlog).map_err(|source| SockError::new("listen on", source).at(addr))?;
    let granted = requested.granted(&socket)?;
    let listener = TcpListener::from(socket);
    let local =
        listener.local_addr().map_err(|source| SockError::new("read the address of", source).at(addr))?;
    Ok(Listening { listener, local, granted })
}

/// A datagram socket.
#[derive(Debug)]
pub struct Bound {
    /// The socket, in blocking mode.
    pub socket: UdpSocket,
    /// The address it is bound to, with the port that the kernel chose for port 0.
    pub local: SocketAddr,
    /// What the kernel made of the wishes.
    pub granted: Granted,
}

/// Binds a UDP socket; on `::` for IPv4 too.
///
/// # Errors
/// When the address is taken, not ours, or a wish is refused.
pub fn bind_udp(addr: SocketAddr, requested: &SocketOptions) -> Result<Bound, SockError> {
    bound(datagram_socket(addr, requested)?, addr, requested)
}

/// A UDP socket connected to `peer`, from the address and port in `wishes` or those the kernel chooses.
///
/// # Errors
/// When there is no route to the peer, or a wish is refused.
pub fn connect_udp(peer: SocketAddr, requested: &SocketOptions) -> Result<Bound, SockError> {
    let any = if peer.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let local = requested.local_towards(peer).unwrap_or(SocketAddr::new(any, 0));
    let socket = datagram_socket(local, requested)?;
    connect_datagram(&socket, requested.labelled(&socket, peer)?)?;
    bound(socket, local, requested)
}

/// A further UDP socket on a port that is already open, connected to one peer: from then on the kernel hands that
/// peer's datagrams to this socket alone. The socket already open must have been bound with `reuse_port`.
///
/// Datagrams that arrive between the bind and the connect can be dealt to the new socket whoever sent them.
///
/// # Errors
/// `EADDRINUSE` when the first socket does not share its port.
pub fn udp_connected_on_same_port(
    local: SocketAddr,
    peer: SocketAddr,
    requested: &SocketOptions,
) -> Result<Bound, SockError> {
    let requested = SocketOptions { reuse_port: true, ..requested.clone() };
    let socket = datagram_socket(local, &requested)?;
    connect_datagram(&socket, peer)?;
    bound(socket, local, &requested)
}

/// The address this host would send from to reach `peer`. No packet is sent.
///
/// # Errors
/// When there is no route.
pub fn source_towards(peer: SocketAddr) -> Result<IpAddr, SockError> {
    connect_udp(peer, &SocketOptions::default()).map(|bound| bound.local.ip())
}

fn datagram_socket(local: SocketAddr, requested: &SocketOptions) -> Result<Socket, SockError> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))
        .map_err(|source| SockError::new("open a UDP socket for", source).at(local))?;
    if is_any_v6(local) {
        sockopt::set_only_v6(&socket, requested.only_v6)?;
    }
    if requested.reuse_port {
        sockopt::set_reuse_address(&socket, true)?;
    }
    requested.apply_any(&socket).map_err(|error| error.at(local))?;
    bind(&socket, local)?;
    Ok(socket)
}

fn connect_datagram(socket: &Socket, peer: SocketAddr) -> Result<(), SockError> {
    socket.connect(&peer.into()).map_err(|source| SockError::new("connect a UDP socket to", source).at(peer))
}

fn bound(socket: Socket, asked: SocketAddr, requested: &SocketOptions) -> Result<Bound, SockError> {
    let granted = requested.granted(&socket)?;
    let socket = UdpSocket::from(socket);
    let local =
        socket.local_addr().map_err(|source| SockError::new("read the address of", source).at(asked))?;
    Ok(Bound { socket, local, granted })
}

/// An MPTCP socket where asked for and possible, else a TCP socket; [`Granted::mptcp`] tells which it became.
fn stream_socket(addr: SocketAddr, mptcp: bool) -> Result<Socket, SockError> {
    let domain = Domain::for_address(addr);
    if mptcp && let Ok(socket) = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP)) {
        return Ok(socket);
    }
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
        .map_err(|source| SockError::new("open a TCP socket for", source).at(addr))
}

fn bind(socket: &Socket, local: SocketAddr) -> Result<(), SockError> {
    socket.bind(&local.into()).map_err(|source| SockError::new("bind to", source).at(local))
}

fn is_any_v6(addr: SocketAddr) -> bool {
    matches!(addr, SocketAddr::V6(v6) if v6.ip().is_unspecified())
}
