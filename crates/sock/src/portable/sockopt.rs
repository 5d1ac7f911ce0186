//! The socket options that socket2 has on every system; all others are refused.

use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use super::error_codes::unsupported;
use crate::SockError;
use crate::handle::AsFd;
use crate::options::KeepAlive;
use crate::sockopt::{ReceiveMemory, Timestamping};

type Result<T> = std::result::Result<T, SockError>;

/// The system reports the size of a buffer as it was requested.
pub(crate) const BUFFER_FACTOR: u64 = 1;

/// Runs `call` on the socket.
pub(super) fn with<T>(
    op: &'static str,
    fd: &impl AsFd,
    call: impl FnOnce(SockRef<'_>) -> io::Result<T>,
) -> Result<T> {
    let fd = fd.as_fd();
    call(SockRef::from(&fd)).map_err(|source| SockError::new(op, source))
}

/// The option of IPv6, and on a socket of IPv4 that of IPv4. A dual-stack socket may have both.
fn either<T>(v6: io::Result<T>, v4: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    match v6 {
        Ok(value) => {
            let _ = v4();
            Ok(value)
        }
        Err(_) => v4(),
    }
}

macro_rules! refused {
    ($( $(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $value:ty, $op:literal; )*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// Always: it is not implemented for this system.
            pub fn $name(_fd: &impl AsFd, $($argument: $type),*) -> Result<$value> {
                Err(unsupported($op))
            }
        )*
    };
}

refused! {
    /// Reaches only hosts of the own networks, without routers.
    set_dont_route(_on: bool) -> (), "set SO_DONTROUTE";
    /// Allows the kernel to merge datagrams of one flow (GRO).
    set_udp_gro(_on: bool) -> (), "set UDP_GRO";
    /// Adds the socket's count of dropped datagrams to every received datagram.
    set_drop_counter(_on: bool) -> (), "set SO_RXQ_OVFL";
    /// Enables [`crate::splice::ZeroCopySender`].
    set_zerocopy(_on: bool) -> (), "set SO_ZEROCOPY";
    /// Acknowledges what has arrived at once.
    set_quick_ack(_on: bool) -> (), "set TCP_QUICKACK";
    /// Delays the handshake of the next connect until the first bytes are written.
    set_fast_open(_on: bool) -> (), "set TCP_FASTOPEN_CONNECT";
    /// Lets a listening socket take data that travels with a SYN.
    accept_fast_open(_pending: u32) -> (), "set TCP_FASTOPEN";
    /// Most bytes that the socket takes without having sent them.
    set_notsent_lowat(_bytes: u64) -> (), "set TCP_NOTSENT_LOWAT";
    /// Most bytes that the socket takes without having sent them.
    notsent_lowat() -> u32, "read TCP_NOTSENT_LOWAT";
    /// How long a waiting call polls the network device, microseconds.
    set_busy_poll(_us: u32) -> (), "set SO_BUSY_POLL";
    /// How long a waiting call polls the network device, microseconds.
    busy_poll() -> u32, "read SO_BUSY_POLL";
    /// Adds the traffic-class byte to every datagram received over IPv6.
    set_receive_tclass(_on: bool) -> (), "set IPV6_RECVTCLASS";
    /// Receive buffer beyond the system's limit.
    force_rcv_buf(_bytes: u64) -> (), "set SO_RCVBUFFORCE";
    /// Sets the congestion control by its kernel name.
    set_congestion(_name: &str) -> (), "set TCP_CONGESTION";
    /// Effective congestion control.
    congestion() -> String, "read TCP_CONGESTION";
    /// Sends only through the named interface.
    set_device(_interface: &str) -> (), "set SO_BINDTODEVICE";
    /// Index of the interface that the socket is bound to; 0 for none.
    device() -> u32, "read SO_BINDTOIFINDEX";
    /// Maximum pacing rate, bytes/s.
    set_max_pacing_rate(_bytes_per_second: u64) -> (), "set SO_MAX_PACING_RATE";
    /// Effective maximum pacing rate, bytes/s.
    max_pacing_rate() -> u64, "read SO_MAX_PACING_RATE";
    /// Closes the connection when sent bytes stay unacknowledged for this long (RFC 5482).
    set_user_timeout(_timeout: Duration) -> (), "set TCP_USER_TIMEOUT";
    /// Leases a flow label towards `peer` (RFC 6437).
    lease_flow_label(_peer: Ipv6Addr, _label: u32) -> (), "set IPV6_FLOWLABEL_MGR";
    /// The kernel's current path MTU of a connected socket.
    path_mtu() -> u32, "read IP_MTU";
    /// Requests software timestamps.
    set_timestamping(_wanted: Timestamping) -> (), "set SO_TIMESTAMPING";
    /// The memory for what this socket has received.
    receive_memory() -> ReceiveMemory, "read SO_MEMINFO";
}

/// Allows binding to a port with connections in TIME-WAIT. On Windows that is always allowed, and the option would
/// let two programs share the port.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_reuse_address(fd: &impl AsFd, on: bool) -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    with("set SO_REUSEADDR", fd, |socket| socket.set_reuse_address(on))
}

/// Allows several sockets of one user to share an address and port.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_reuse_port(fd: &impl AsFd, on: bool) -> Result<()> {
    #[cfg(unix)]
    return with("set SO_REUSEPORT", fd, |socket| socket.set_reuse_port(on));
    #[cfg(not(unix))]
    return with("set SO_REUSEADDR", fd, |socket| socket.set_reuse_address(on));
}

/// Sends small segments at once (disables Nagle's algorithm, RFC 896).
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn set_no_delay(fd: &impl AsFd, on: bool) -> Result<()> {
    with("set TCP_NODELAY", fd, |socket| socket.set_tcp_nodelay(on))
}

/// Restricts a socket bound to `::` to IPv6.
///
/// # Errors
/// The descriptor is not a socket of IPv6.
pub fn set_only_v6(fd: &impl AsFd, on: bool) -> Result<()> {
    with("set IPV6_V6ONLY", fd, |socket| socket.set_only_v6(on))
}

/// Leaves urgent data in line (RFC 6093 §6).
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_inline_urgent(fd: &impl AsFd, on: bool) -> Result<()> {
    with("set SO_OOBINLINE", fd, |socket| socket.set_out_of_band_inline(on))
}

/// Requested send buffer, bytes.
///
/// # Errors
/// The descriptor is not a socket, or the system has a lower limit.
pub fn set_snd_buf(fd: &impl AsFd, bytes: u64) -> Result<()> {
    with("set SO_SNDBUF", fd, |socket| socket.set_send_buffer_size(clamp(bytes)))
}

/// Requested receive buffer, bytes.
///
/// # Errors
/// The descriptor is not a socket, or the system has a lower limit.
pub fn set_rcv_buf(fd: &impl AsFd, bytes: u64) -> Result<()> {
    with("set SO_RCVBUF", fd, |socket| socket.set_recv_buffer_size(clamp(bytes)))
}

/// Effective send buffer, bytes.
///
/// # Errors
/// The descriptor is not a socket.
pub fn snd_buf(fd: &impl AsFd) -> Result<u64> {
    with("read SO_SNDBUF", fd, |socket| socket.send_buffer_size()).map(|bytes| bytes as u64)
}

/// Effective receive buffer, bytes.
///
/// # Errors
/// The descriptor is not a socket.
pub fn rcv_buf(fd: &impl AsFd) -> Result<u64> {
    with("read SO_RCVBUF", fd, |socket| socket.recv_buffer_size()).map(|bytes| bytes as u64)
}

/// Maximum segment size to use and announce, bytes of payload; only before the handshake.
///
/// # Errors
/// The system has no such option, or refuses the value.
pub fn set_mss(fd: &impl AsFd, bytes: u32) -> Result<()> {
    const OP: &str = "set TCP_MAXSEG";
    #[cfg(unix)]
    return with(OP, fd, |socket| socket.set_tcp_mss(bytes));
    #[cfg(not(unix))]
    {
        let _ = (fd, bytes);
        Err(unsupported(OP))
    }
}

/// Effective MSS, bytes of payload.
///
/// # Errors
/// The system has no such option.
pub fn snd_mss(fd: &impl AsFd) -> Result<u32> {
    const OP: &str = "read TCP_MAXSEG";
    #[cfg(unix)]
    return with(OP, fd, |socket| socket.tcp_mss());
    #[cfg(not(unix))]
    {
        let _ = fd;
        Err(unsupported(OP))
    }
}

/// Sets the traffic-class byte, with the DSCP in its upper six bits. Windows accepts the option and ignores it, so it
/// is refused there.
///
/// # Errors
/// The system has no such option.
pub fn set_tos(fd: &impl AsFd, tos: u8) -> Result<()> {
    const OP: &str = "set the traffic class";
    #[cfg(unix)]
    return with(OP, fd, |socket| either(socket.set_tclass_v6(tos.into()), || socket.set_tos_v4(tos.into())));
    #[cfg(not(unix))]
    {
        let _ = (fd, tos);
        Err(unsupported(OP))
    }
}

/// Effective traffic-class byte.
///
/// # Errors
/// The system has no such option.
pub fn tos(fd: &impl AsFd) -> Result<u8> {
    const OP: &str = "read the traffic class";
    #[cfg(unix)]
    return with(OP, fd, |socket| either(socket.tclass_v6(), || socket.tos_v4()))
        .map(|tos| (tos & 0xff) as u8);
    #[cfg(not(unix))]
    {
        let _ = fd;
        Err(unsupported(OP))
    }
}

/// Sets the time to live of all packets; on IPv6 the hop limit.
///
/// # Errors
/// The system refuses it: it is 0.
pub fn set_ttl(fd: &impl AsFd, ttl: u8) -> Result<()> {
    with("set the time to live", fd, |socket| {
        either(socket.set_unicast_hops_v6(ttl.into()), || socket.set_ttl_v4(ttl.into()))
    })
}

/// Makes close send a reset instead of a FIN.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_linger_abort(fd: &impl AsFd) -> Result<()> {
    with("set SO_LINGER", fd, |socket| socket.set_linger(Some(Duration::ZERO)))
}

/// Probes an idle connection, and closes it if nothing answers.
///
/// # Errors
/// The system refuses a value.
pub fn set_keep_alive(fd: &impl AsFd, keep_alive: KeepAlive) -> Result<()> {
    let mut wanted = TcpKeepalive::new();
    if let Some(idle) = keep_alive.idle {
        wanted = wanted.with_time(idle);
    }
    if let Some(interval) = keep_alive.interval {
        wanted = wanted.with_interval(interval);
    }
    if let Some(probes) = keep_alive.probes {
        wanted = wanted.with_retries(probes);
    }
    with("set SO_KEEPALIVE", fd, |socket| socket.set_tcp_keepalive(&wanted))
}

/// Disables fragmentation (RFC 1191): a datagram larger than the known path MTU fails.
///
/// # Errors
/// The socket has no such option.
pub fn set_dont_fragment(fd: &impl AsFd, on: bool) -> Result<()> {
    const OP: &str = "disable fragmentation";
    #[cfg(target_vendor = "apple")]
    {
        use crate::unix::call::set;
        let value = i32::from(on);
        let v6 = set(OP, fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, value);
        let v4 = set(OP, fd, libc::IPPROTO_IP, libc::IP_DONTFRAG, value);
        v6.or(v4)
    }
    #[cfg(windows)]
    {
        super::windows::socket::set_dont_fragment(OP, fd, on)
    }
    #[cfg(not(any(windows, target_vendor = "apple")))]
    {
        let _ = (fd, on);
        Err(unsupported(OP))
    }
}

/// The pending error of this socket, if any; reading clears it.
///
/// # Errors
/// The descriptor is not a socket.
pub fn take_error(fd: &impl AsFd) -> Result<Option<io::Error>> {
    with("read SO_ERROR", fd, |socket| socket.take_error())
}

/// Whether this is an MPTCP connection: never.
#[must_use]
pub fn uses_mptcp(_fd: &impl AsFd) -> bool {
    false
}

/// Systems take C ints; larger values become the largest int.
fn clamp(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX).min(i32::MAX as usize)
}
