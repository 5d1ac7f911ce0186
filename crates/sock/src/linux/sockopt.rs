//! The socket options of Linux.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::time::Duration;

use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};

use crate::SockError;
use crate::linux::call::{get, get_bytes, set, set_text};
use crate::options::KeepAlive;
use crate::sockopt::{ReceiveMemory, Timestamping};

type Result<T> = std::result::Result<T, SockError>;

const SO_ZEROCOPY: i32 = 60;

/// The kernel doubles the requested size of a buffer to account for its own bookkeeping.
pub(crate) const BUFFER_FACTOR: u64 = 2;

macro_rules! switches {
    ($( $(#[$doc:meta])* $name:ident: $level:ident, $option:path, $op:literal; )*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// When the socket or the kernel does not have the option.
            pub fn $name(fd: &impl AsFd, on: bool) -> Result<()> {
                set($op, fd, $level, $option, i32::from(on))
            }
        )*
    };
}

switches! {
    /// Allows binding to a port with connections in TIME-WAIT.
    set_reuse_address: SOL_SOCKET, libc::SO_REUSEADDR, "set SO_REUSEADDR";
    /// Allows several sockets of one user to share an address and port.
    set_reuse_port: SOL_SOCKET, libc::SO_REUSEPORT, "set SO_REUSEPORT";
    /// Reaches only hosts of the own networks, without routers.
    set_dont_route: SOL_SOCKET, libc::SO_DONTROUTE, "set SO_DONTROUTE";
    /// Sends small segments at once (disables Nagle's algorithm, RFC 896).
    set_no_delay: IPPROTO_TCP, libc::TCP_NODELAY, "set TCP_NODELAY";
    /// Acknowledges what has arrived at once. The kernel leaves this mode by itself, so it is set after every read.
    set_quick_ack: IPPROTO_TCP, libc::TCP_QUICKACK, "set TCP_QUICKACK";
    /// Delays the handshake of the next connect until the first bytes are written, which travel with the SYN if the
    /// peer is known to take them (RFC 7413).
    set_fast_open: IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, "set TCP_FASTOPEN_CONNECT";
    /// Restricts a socket bound to `::` to IPv6.
    set_only_v6: IPPROTO_IPV6, libc::IPV6_V6ONLY, "set IPV6_V6ONLY";
    /// Allows the kernel to merge datagrams of one flow (GRO); their size is in a control message.
    set_udp_gro: IPPROTO_UDP, libc::UDP_GRO, "set UDP_GRO";
    /// Adds the socket's count of dropped datagrams to every received datagram.
    set_drop_counter: SOL_SOCKET, libc::SO_RXQ_OVFL, "set SO_RXQ_OVFL";
    /// Enables [`crate::splice::ZeroCopySender`].
    set_zerocopy: SOL_SOCKET, SO_ZEROCOPY, "set SO_ZEROCOPY";
    /// Adds the traffic-class byte to every datagram received over IPv6.
    set_receive_tclass: IPPROTO_IPV6, libc::IPV6_RECVTCLASS, "set IPV6_RECVTCLASS";
    /// Leaves urgent data in line (RFC 6093 §6).
    set_inline_urgent: SOL_SOCKET, libc::SO_OOBINLINE, "set SO_OOBINLINE";
}

/// Requested send buffer, bytes. The kernel doubles it for its own bookkeeping and clamps it to
/// `net.core.wmem_max`; see [`snd_buf`]. Disables autotuning.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_snd_buf(fd: &impl AsFd, bytes: u64) -> Result<()> {
    set("set SO_SNDBUF", fd, SOL_SOCKET, libc::SO_SNDBUF, clamp(bytes))
}

/// Requested receive buffer, bytes; as [`set_snd_buf`], with `net.core.rmem_max`.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_rcv_buf(fd: &impl AsFd, bytes: u64) -> Result<()> {
    set("set SO_RCVBUF", fd, SOL_SOCKET, libc::SO_RCVBUF, clamp(bytes))
}

/// Receive buffer beyond `net.core.rmem_max`, for privileged programs.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`.
pub fn force_rcv_buf(fd: &impl AsFd, bytes: u64) -> Result<()> {
    set("set SO_RCVBUFFORCE", fd, SOL_SOCKET, libc::SO_RCVBUFFORCE, clamp(bytes))
}

/// Effective send buffer, bytes, including the kernel's doubling.
///
/// # Errors
/// The descriptor is not a socket.
pub fn snd_buf(fd: &impl AsFd) -> Result<u64> {
    unsigned("read SO_SNDBUF", fd, SOL_SOCKET, libc::SO_SNDBUF).map(u64::from)
}

/// Effective receive buffer, bytes, including the kernel's doubling.
///
/// # Errors
/// The descriptor is not a socket.
pub fn rcv_buf(fd: &impl AsFd) -> Result<u64> {
    unsigned("read SO_RCVBUF", fd, SOL_SOCKET, libc::SO_RCVBUF).map(u64::from)
}

/// Maximum segment size to use and announce, bytes of payload; only before the handshake.
///
/// # Errors
/// `EINVAL` outside 88 to 32767.
pub fn set_mss(fd: &impl AsFd, bytes: u32) -> Result<()> {
    set("set TCP_MAXSEG", fd, IPPROTO_TCP, libc::TCP_MAXSEG, clamp(u64::from(bytes)))
}

/// Effective MSS, bytes of payload; before the handshake the requested one or a default.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn snd_mss(fd: &impl AsFd) -> Result<u32> {
    unsigned("read TCP_MAXSEG", fd, IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// Most bytes that the socket takes without having sent them.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn set_notsent_lowat(fd: &impl AsFd, bytes: u64) -> Result<()> {
    set("set TCP_NOTSENT_LOWAT", fd, IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, clamp(bytes))
}

/// Most bytes that the socket takes without having sent them; `u32::MAX` without a limit of its own.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn notsent_lowat(fd: &impl AsFd) -> Result<u32> {
    unsigned("read TCP_NOTSENT_LOWAT", fd, IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT)
}

/// Lets a listening socket take data that travels with a SYN, of at most `pending` connections at a time whose
/// handshake is not complete.
///
/// # Errors
/// The kernel does not have the option.
pub fn accept_fast_open(fd: &impl AsFd, pending: u32) -> Result<()> {
    set("set TCP_FASTOPEN", fd, IPPROTO_TCP, libc::TCP_FASTOPEN, clamp(u64::from(pending)))
}

/// How long a waiting call polls the network device, microseconds.
///
/// # Errors
/// `EPERM` for more than `net.core.busy_read` without `CAP_NET_ADMIN`.
pub fn set_busy_poll(fd: &impl AsFd, us: u32) -> Result<()> {
    set("set SO_BUSY_POLL", fd, SOL_SOCKET, libc::SO_BUSY_POLL, clamp(u64::from(us)))
}

/// How long a waiting call polls the network device, microseconds; 0 if it sleeps at once.
///
/// # Errors
/// The kernel does not have the option.
pub fn busy_poll(fd: &impl AsFd) -> Result<u32> {
    unsigned("read SO_BUSY_POLL", fd, SOL_SOCKET, libc::SO_BUSY_POLL)
}

/// Sets the congestion control by its kernel name.
///
/// # Errors
/// This kernel does not have it (the message lists the available ones) or reserves it for root.
pub fn set_congestion(fd: &impl AsFd, name: &str) -> Result<()> {
    const OP: &str = "set TCP_CONGESTION";
    set_text(OP, fd, IPPROTO_TCP, libc::TCP_CONGESTION, name).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT) => SockError::new(OP, unknown_congestion(name)),
        _ => error,
    })
}

fn unknown_congestion(name: &str) -> io::Error {
    let available = crate::proc::sysctl("net.ipv4.tcp_available_congestion_control");
    let text = match available {
        Some(list) => format!(
            "this kernel does not have the congestion control \"{name}\"; available: \
                               {list}"
        ),
        None => format!("this kernel does not have the congestion control \"{name}\""),
    };
    io::Error::new(io::ErrorKind::NotFound, text)
}

/// Effective congestion control.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn congestion(fd: &impl AsFd) -> Result<String> {
    let mut buffer = [0; 16];
    let name = get_bytes("read TCP_CONGESTION", fd, IPPROTO_TCP, libc::TCP_CONGESTION, &mut buffer)?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Sets the traffic-class byte, with the DSCP in its upper six bits, for both address families.
///
/// # Errors
/// The socket has neither option.
pub fn set_tos(fd: &impl AsFd, tos: u8) -> Result<()> {
    let value = i32::from(tos);
    if family(fd)? == libc::AF_INET6 {
        set("set IPV6_TCLASS", fd, IPPROTO_IPV6, libc::IPV6_TCLASS, value)?;
        // Applies to IPv4 peers of a dual-stack socket; an IPv6-only socket may refuse it.
        let _ = set("set IP_TOS", fd, IPPROTO_IP, libc::IP_TOS, value);
        return Ok(());
    }
    set("set IP_TOS", fd, IPPROTO_IP, libc::IP_TOS, value)
}

/// Sets the time to live of all packets; on IPv6 the hop limit.
///
/// # Errors
/// The kernel refuses it: it is 0.
pub fn set_ttl(fd: &impl AsFd, ttl: u8) -> Result<()> {
    let value = i32::from(ttl);
    if family(fd)? == libc::AF_INET6 {
        set("set IPV6_UNICAST_HOPS", fd, IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, value)?;
        // For IPv4 peers of a dual-stack socket.
        let _ = set("set IP_TTL", fd, IPPROTO_IP, libc::IP_TTL, value);
        return Ok(());
    }
    set("set IP_TTL", fd, IPPROTO_IP, libc::IP_TTL, value)
}

/// Effective traffic-class byte. TCP clears its lowest two bits, which belong to ECN.
///
/// # Errors
/// The socket has neither option.
pub fn tos(fd: &impl AsFd) -> Result<u8> {
    let value = if family(fd)? == libc::AF_INET6 {
        unsigned("read IPV6_TCLASS", fd, IPPROTO_IPV6, libc::IPV6_TCLASS)?
    } else {
        unsigned("read IP_TOS", fd, IPPROTO_IP, libc::IP_TOS)?
    };
    Ok((value & 0xff) as u8)
}

/// Sends only through the named interface.
///
/// # Errors
/// `ENODEV` if there is no interface with that name.
pub fn set_device(fd: &impl AsFd, interface: &str) -> Result<()> {
    set_text("set SO_BINDTODEVICE", fd, SOL_SOCKET, libc::SO_BINDTODEVICE, interface)
}

/// Index of the interface that the socket is bound to; 0 for none.
///
/// # Errors
/// The kernel is older than Linux 5.0.
pub fn device(fd: &impl AsFd) -> Result<u32> {
    unsigned("read SO_BINDTOIFINDEX", fd, SOL_SOCKET, libc::SO_BINDTOIFINDEX)
}

/// Maximum pacing rate, bytes/s; `u64::MAX` removes it.
///
/// TCP paces itself. UDP is paced only if the interface has the `fq` queueing discipline, see
/// [`crate::iface::InterfaceInfo::discipline`].
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_max_pacing_rate(fd: &impl AsFd, bytes_per_second: u64) -> Result<()> {
    set("set SO_MAX_PACING_RATE", fd, SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)
}

/// Effective maximum pacing rate, bytes/s; `u64::MAX` if unlimited.
///
/// # Errors
/// The descriptor is not a socket.
pub fn max_pacing_rate(fd: &impl AsFd) -> Result<u64> {
    get("read SO_MAX_PACING_RATE", fd, SOL_SOCKET, libc::SO_MAX_PACING_RATE)
}

/// Makes close send a reset instead of a FIN.
///
/// # Errors
/// The descriptor is not a socket.
pub fn set_linger_abort(fd: &impl AsFd) -> Result<()> {
    let value = libc::linger { l_onoff: 1, l_linger: 0 };
    set("set SO_LINGER", fd, SOL_SOCKET, libc::SO_LINGER, value)
}

/// Closes the connection when sent bytes stay unacknowledged for this long (RFC 5482); zero restores the
/// default.
///
/// # Errors
/// The descriptor is not a TCP socket.
pub fn set_user_timeout(fd: &impl AsFd, timeout: Duration) -> Result<()> {
    let ms = clamp(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    set("set TCP_USER_TIMEOUT", fd, IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms)
}

/// Probes an idle connection, and closes it if nothing answers.
///
/// # Errors
/// `EINVAL` outside 1 s to 32767 s and 1 to 127 probes.
pub fn set_keep_alive(fd: &impl AsFd, keep_alive: KeepAlive) -> Result<()> {
    let seconds = |span: Duration| clamp(span.as_secs());
    if let Some(idle) = keep_alive.idle {
        set("set TCP_KEEPIDLE", fd, IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(idle))?;
    }
    if let Some(interval) = keep_alive.interval {
        set("set TCP_KEEPINTVL", fd, IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(interval))?;
    }
    if let Some(probes) = keep_alive.probes {
        set("set TCP_KEEPCNT", fd, IPPROTO_TCP, libc::TCP_KEEPCNT, clamp(u64::from(probes)))?;
    }
    set("set SO_KEEPALIVE", fd, SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}

/// Leases a flow label towards `peer`, so that packets may carry it (RFC 6437; include/uapi/linux/in6.h).
///
/// # Errors
/// `EPERM` if another user has leased it, or if the socket is not an IPv6 socket.
pub fn lease_flow_label(fd: &impl AsFd, peer: Ipv6Addr, label: u32) -> Result<()> {
    const IPV6_FLOWLABEL_MGR: i32 = 32;
    const IPV6_FLOWINFO_SEND: i32 = 33;
    const ACTION_GET: u8 = 0;
    const SHARED_WITH_ANY: u8 = 255;
    const CREATE: u16 = 1;
    // struct in6_flowlabel_req: address 16, label 4, action 1, share 1, flags 2, expires 2, linger 2, padding 4.
    let mut request = [0u8; 32];
    request[..16].copy_from_slice(&peer.octets());
    request[16..20].copy_from_slice(&(label & 0x000f_ffff).to_be_bytes());
    request[20] = ACTION_GET;
    request[21] = SHARED_WITH_ANY;
    request[22..24].copy_from_slice(&CREATE.to_ne_bytes());
    set("set IPV6_FLOWLABEL_MGR", fd, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, request)?;
    set("set IPV6_FLOWINFO_SEND", fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, 1)
}

/// Disables fragmentation (RFC 1191): a datagram larger than the known path MTU fails with `EMSGSIZE`.
///
/// # Errors
/// The socket has no such option.
pub fn set_dont_fragment(fd: &impl AsFd, on: bool) -> Result<()> {
    let v4 = if on { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
    let v6 = if on { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_DONT };
    if family(fd)? == libc::AF_INET6 {
        set("set IPV6_MTU_DISCOVER", fd, IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, v6)?;
        // Applies to IPv4 peers of a dual-stack socket.
        let _ = set("set IP_MTU_DISCOVER", fd, IPPROTO_IP, libc::IP_MTU_DISCOVER, v4);
        return Ok(());
    }
    set("set IP_MTU_DISCOVER", fd, IPPROTO_IP, libc::IP_MTU_DISCOVER, v4)
}

/// The kernel's current path MTU of a connected socket, bytes including the IP header.
///
/// # Errors
/// `ENOTCONN` for a socket without a peer.
pub fn path_mtu(fd: &impl AsFd) -> Result<u32> {
    if family(fd)? == libc::AF_INET6 {
        unsigned("read IPV6_MTU", fd, IPPROTO_IPV6, libc::IPV6_MTU)
    } else {
        unsigned("read IP_MTU", fd, IPPROTO_IP, libc::IP_MTU)
    }
}

/// Requests software timestamps.
///
/// For the first socket of a host that requests receive timestamps, the kernel enables them asynchronously:
/// packets that arrive before that have none.
///
/// # Errors
/// The kernel does not support them.
pub fn set_timestamping(fd: &impl AsFd, wanted: Timestamping) -> Result<()> {
    const OPT_ID: u32 = 1 << 7;
    const TX_ACK: u32 = 1 << 9;
    const OPT_TSONLY: u32 = 1 << 11;
    let mut flags = 0;
    if wanted.receive {
        flags |= libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    }
    if wanted.send {
        flags |= libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE | OPT_ID | OPT_TSONLY;
    }
    if wanted.acknowledged {
        flags |= libc::SOF_TIMESTAMPING_SOFTWARE | OPT_ID | OPT_TSONLY | TX_ACK;
    }
    set("set SO_TIMESTAMPING", fd, SOL_SOCKET, libc::SO_TIMESTAMPING, flags)
}

/// The memory for what this socket has received.
///
/// # Errors
/// The descriptor is not a socket, or the kernel is older than 4.12.
pub fn receive_memory(fd: &impl AsFd) -> Result<ReceiveMemory> {
    const OP: &str = "read SO_MEMINFO";
    const SO_MEMINFO: i32 = 55;
    // The numbers of the values are in include/uapi/linux/sock_diag.h.
    const SK_MEMINFO_RMEM_ALLOC: usize = 0;
    const SK_MEMINFO_RCVBUF: usize = 1;
    let mut buffer = [0; 64];
    let values = get_bytes(OP, fd, SOL_SOCKET, SO_MEMINFO, &mut buffer)?;
    let value = |number: usize| {
        let bytes = values.get(number * size_of::<u32>()..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(|| SockError::errno(OP, libc::ENOPROTOOPT))
    };
    Ok(ReceiveMemory { taken: value(SK_MEMINFO_RMEM_ALLOC)?, buffer: value(SK_MEMINFO_RCVBUF)? })
}

/// The pending error of this socket, if any; reading clears it.
///
/// # Errors
/// The descriptor is not a socket.
pub fn take_error(fd: &impl AsFd) -> Result<Option<io::Error>> {
    let errno: i32 = get("read SO_ERROR", fd, SOL_SOCKET, libc::SO_ERROR)?;
    Ok((errno != 0).then(|| io::Error::from_raw_os_error(errno)))
}

/// Whether this is an MPTCP connection that has not fallen back to TCP.
#[must_use]
pub fn uses_mptcp(fd: &impl AsFd) -> bool {
    const SOL_MPTCP: i32 = 284;
    const MPTCP_INFO: i32 = 1;
    const FLAGS_OFFSET: usize = 8;
    const FLAG_FALLBACK: u32 = 1;
    let mut buffer = [0; 256];
    get_bytes("read MPTCP_INFO", fd, SOL_MPTCP, MPTCP_INFO, &mut buffer)
        .ok()
        .and_then(|info| info.get(FLAGS_OFFSET..)?.first_chunk().copied())
        .is_some_and(|flags| u32::from_ne_bytes(flags) & FLAG_FALLBACK == 0)
}

fn family(fd: &impl AsFd) -> Result<i32> {
    get("read SO_DOMAIN", fd, SOL_SOCKET, libc::SO_DOMAIN)
}

fn unsigned(op: &'static str, fd: &impl AsFd, level: i32, name: i32) -> Result<u32> {
    get::<i32>(op, fd, level, name).map(|value| u32::try_from(value).unwrap_or(0))
}

/// The kernel takes C ints; larger values become the largest int.
fn clamp(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
