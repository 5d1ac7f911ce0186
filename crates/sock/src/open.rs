//! Opens sockets: resolve, connect with a deadline, listen, bind.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::clock::{self, Mono};
use crate::handle::{AsFd, BorrowedFd};
use crate::options::{Granted, SocketOptions};
use crate::poll::{Interest, wait_for};
use crate::system::error_codes::{NO_DESTINATION, TIMED_OUT, is_connecting};
use crate::system::multipath;
use crate::{SockError, sockopt};

/// Permitted versions of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedIpVersion {
    /// Any version that the name resolves to.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl AllowedIpVersion {
    fn admits(self, addr: SocketAddr) -> bool {
        match self {
            Self::Any => true,
            Self::V4 => addr.is_ipv4(),
            Self::V6 => addr.is_ipv6(),
        }
    }
}

/// The addresses of a host in the resolver's order of preference, without duplicates.
///
/// # Errors
/// The name is unknown, or has no address of the permitted version.
pub fn resolve(host: &str, port: u16, version: AllowedIpVersion) -> Result<Vec<SocketAddr>, SockError> {
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
            AllowedIpVersion::Any => "no address",
            AllowedIpVersion::V4 => "no IPv4 address",
            AllowedIpVersion::V6 => "no IPv6 address",
        };
        let text = format!("\"{host}\" has {wanted}");
        return Err(SockError::new(OP, io::Error::new(io::ErrorKind::NotFound, text)));
    }
    Ok(addresses)
}

/// Options of a TCP connection attempt.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Addresses of one host, tried in this order.
    pub addresses: Vec<SocketAddr>,
    /// Options to set before the handshake.
    pub socket: SocketOptions,
    /// When to give up.
    pub deadline: Mono,
}

/// An open connection.
#[derive(Debug)]
pub struct Connected {
    /// The connection, in blocking mode.
    pub stream: TcpStream,
    /// The address that accepted the connection.
    pub peer: SocketAddr,
    /// Effective options.
    pub granted: Granted,
    /// Duration of the handshake: one round-trip time and scheduling delays of both hosts. Means nothing with TCP Fast
    /// Open.
    pub handshake: Duration,
}

/// Connects to the first address that answers. Each address gets an equal share of the remaining time, so that
/// one that drops packets does not use up the time of the others.
///
/// # Errors
/// The error of the last address; `ETIMEDOUT` at the deadline.
pub fn connect_tcp(options: &ConnectOptions) -> Result<Connected, SockError> {
    let mut last = SockError::errno("connect without an address", NO_DESTINATION);
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
        return Err(SockError::errno(CONNECT, TIMED_OUT).at(addr));
    }
    connecting.finish()
}

const CONNECT: &str = "connect to";
/// How long the first bytes of a connection with TCP Fast Open may take.
const FAST_OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection during its handshake. Wait until it is writable, then call [`Connecting::finish`].
#[derive(Debug)]
pub struct Connecting {
    socket: Socket,
    peer: SocketAddr,
    requested: SocketOptions,
    began: Mono,
    buffers: Option<(u64, u64)>,
}

/// Starts a TCP handshake without waiting for its end.
///
/// # Errors
/// The kernel refuses an option, there is no route, or a local peer refuses at once.
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
    if requested.fast_open {
        // A kernel that does not allow it opens the connection as usual, which can be read back.
        let _ = sockopt::set_fast_open(&socket, true);
    }
    socket.set_nonblocking(true).map_err(fail)?;
    let buffers = sockopt::snd_buf(&socket).ok().zip(sockopt::rcv_buf(&socket).ok());
    let began = clock::now();
    match socket.connect(&labelled.into()) {
        Ok(()) => {}
        Err(error) if is_connecting(&error) => {}
        // Linux says only that an argument is invalid.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput && lacks_interface(peer) => {
            let why = "a link-local address needs the name of its interface, as in fe80::1%eth0";
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        Err(error) => return Err(fail(error)),
    }
    Ok(Connecting { socket, peer, requested: requested.clone(), began, buffers })
}

/// Whether an address is valid on each link and does not say on which.
fn lacks_interface(peer: SocketAddr) -> bool {
    matches!(peer, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() && v6.scope_id() == 0)
}

impl Connecting {
    /// Send and receive buffer before the handshake, bytes; the kernel enlarges the send buffer afterwards. Absent
    /// if they cannot be read.
    #[must_use]
    pub const fn buffers_before(&self) -> Option<(u64, u64)> {
        self.buffers
    }

    /// The connection, once the socket is writable.
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
        if self.requested.fast_open {
            // The handshake may only begin with the first bytes, and take as long as the kernel repeats it.
            self.socket.set_write_timeout(Some(FAST_OPEN_TIMEOUT)).map_err(fail)?;
        }
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
    /// The listener, in blocking mode. Accepted connections inherit its buffers, MSS and congestion control.
    pub listener: TcpListener,
    /// The bound address, with the port that the kernel chose for port 0.
    pub local: SocketAddr,
    /// Effective options.
    pub granted: Granted,
}

/// Listens for TCP connections; on `::` also for IPv4.
///
/// # Errors
/// The address is in use or not local, or the kernel refuses an option.
pub fn listen_tcp(addr: SocketAddr, backlog: i32, requested: &SocketOptions) -> Result<Listening, SockError> {
    let socket = stream_socket(addr, requested.mptcp)?;
    if is_any_v6(addr) {
        sockopt::set_only_v6(&socket, requested.only_v6)?;
    }
    sockopt::set_reuse_address(&socket, true)?;
    requested.apply_tcp(&socket).map_err(|error| error.at(addr))?;
    bind(&socket, addr)?;
    if requested.fast_open {
        // Without it the first bytes follow the handshake as usual.
        let _ = sockopt::accept_fast_open(&socket, u32::try_from(backlog).unwrap_or(0));
    }
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
    /// The bound address, with the port that the kernel chose for port 0.
    pub local: SocketAddr,
    /// Effective options.
    pub granted: Granted,
}

/// Binds a UDP socket; on `::` also for IPv4.
///
/// # Errors
/// The address is in use or not local, or the kernel refuses an option.
pub fn bind_udp(addr: SocketAddr, requested: &SocketOptions) -> Result<Bound, SockError> {
    bound(datagram_socket(addr, requested)?, addr, requested)
}

/// A UDP socket connected to `peer`, with the local address and port in `requested` or those that the kernel
/// chooses.
///
/// # Errors
/// There is no route to the peer, or the kernel refuses an option.
pub fn connect_udp(peer: SocketAddr, requested: &SocketOptions) -> Result<Bound, SockError> {
    let any = if peer.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let local = requested.local_towards(peer).unwrap_or(SocketAddr::new(any, 0));
    let socket = datagram_socket(local, requested)?;
    connect_datagram(&socket, requested.labelled(&socket, peer)?)?;
    bound(socket, local, requested)
}

/// Another UDP socket on a port that is already open, connected to one peer: from then on the kernel delivers
/// that peer's datagrams to this socket only. The existing socket must have been bound with `reuse_port`.
///
/// Between bind and connect, the kernel may deliver datagrams of any peer to the new socket.
///
/// # Errors
/// `EADDRINUSE` if the first socket does not share its port.
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

/// The local address that this host uses towards `peer`. Sends no packet.
///
/// # Errors
/// There is no route.
pub fn source_towards(peer: SocketAddr) -> Result<IpAddr, SockError> {
    connect_udp(peer, &SocketOptions::default()).map(|bound| bound.local.ip())
}

pub(crate) fn datagram_socket(local: SocketAddr, requested: &SocketOptions) -> Result<Socket, SockError> {
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

pub(crate) fn connect_datagram(socket: &Socket, peer: SocketAddr) -> Result<(), SockError> {
    socket.connect(&peer.into()).map_err(|source| SockError::new("connect a UDP socket to", source).at(peer))
}

pub(crate) fn bound(
    socket: Socket,
    asked: SocketAddr,
    requested: &SocketOptions,
) -> Result<Bound, SockError> {
    let granted = requested.granted(&socket)?;
    let socket = UdpSocket::from(socket);
    let local =
        socket.local_addr().map_err(|source| SockError::new("read the address of", source).at(asked))?;
    Ok(Bound { socket, local, granted })
}

/// An MPTCP socket if requested and supported, otherwise a TCP socket; see [`Granted::mptcp`].
fn stream_socket(addr: SocketAddr, mptcp: bool) -> Result<Socket, SockError> {
    let domain = Domain::for_address(addr);
    if mptcp && let Some(socket) = multipath::socket(domain) {
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
