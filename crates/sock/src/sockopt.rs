//! One function per socket option. [`crate::options`] applies the ones that must precede the handshake.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::AsFd;
use std::time::Duration;

use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, SOL_SOCKET};

use crate::SockError;
use crate::call::{get, get_bytes, set, set_text};
use crate::options::KeepAlive;

type Result<T> = std::result::Result<T, SockError>;

const SO_ZEROCOPY: i32 = 60;

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
    /// Lets a listener take a port whose old connections linger in TIME-WAIT.
    set_reuse_address: SOL_SOCKET, libc::SO_REUSEADDR, "set SO_REUSEADDR";
    /// Lets several sockets of one user share an address and port.
    set_reuse_port: SOL_SOCKET, libc::SO_REUSEPORT, "set SO_REUSEPORT";
    /// Sends small segments at once instead of collecting them (turns off RFC 896).
    set_no_delay: IPPROTO_TCP, libc::TCP_NODELAY, "set TCP_NODELAY";
    /// Acknowledges at once for a while instead of delaying; the kernel may fall back on its own.
    set_quick_ack: IPPROTO_TCP, libc::TCP_QUICKACK, "set TCP_QUICKACK";
    /// Restricts a socket bound to `::` to IPv6.
    set_only_v6: IPPROTO_IPV6, libc::IPV6_V6ONLY, "set IPV6_V6ONLY";
    /// Lets the kernel hand over several datagrams of one flow as one, with their common size beside it.
    set_udp_gro: IPPROTO_UDP, libc::UDP_GRO, "set UDP_GRO";
    /// Adds the socket's count of dropped datagrams to every datagram received.
    set_drop_counter: SOL_SOCKET, libc::SO_RXQ_OVFL, "set SO_RXQ_OVFL";
    /// Permits [`crate::splice::ZeroCopySender`].
    set_zerocopy: SOL_SOCKET, SO_ZEROCOPY, "set SO_ZEROCOPY";
    /// Adds the traffic-class byte to every datagram received over IPv4.
    set_receive_tos: IPPROTO_IP, libc::IP_RECVTOS, "set IP_RECVTOS";
    /// Adds the traffic-class byte to every datagram received over IPv6.
    set_receive_tclass: IPPROTO_IPV6, libc::IPV6_RECVTCLASS, "set IPV6_RECVTCLASS";
    /// Leaves urgent data in its place among the other bytes (RFC 6093 §6).
    set_inline_urgent: SOL_SOCKET, libc::SO_OOBINLINE, "set SO_OOBINLINE";
    /// Collects ICMP answers to IPv4 packets in [`crate::errqueue`].
    set_receive_errors: IPPROTO_IP, libc::IP_RECVERR, "set IP_RECVERR";
}

/// Send buffer, bytes as asked. The kernel doubles the number to cover its own bookkeeping and clamps it to
/// `net.core.wmem_max`; [`snd_buf`] says what it became. Switches autotuning off.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn set_snd_buf(fd: &impl AsFd, bytes: u64) -> Result<()> {
    set("set SO_SNDBUF", fd, SOL_SOCKET, libc::SO_SNDBUF, clamp(bytes))
}

/// Receive buffer, bytes as asked; see [`set_snd_buf`], with `net.core.rmem_max`.
///
/// # Errors
/// When the descriptor is not a socket.
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

/// Send buffer as granted, bytes, the kernel's doubling included.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn snd_buf(fd: &impl AsFd) -> Result<u64> {
    unsigned("read SO_SNDBUF", fd, SOL_SOCKET, libc::SO_SNDBUF).map(u64::from)
}

/// Receive buffer as granted, bytes, the kernel's doubling included.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn rcv_buf(fd: &impl AsFd) -> Result<u64> {
    unsigned("read SO_RCVBUF", fd, SOL_SOCKET, libc::SO_RCVBUF).map(u64::from)
}

/// Largest segment to send and to announce, bytes of payload; only before the handshake.
///
/// # Errors
/// `EINVAL` outside 88 to 32767.
pub fn set_mss(fd: &impl AsFd, bytes: u32) -> Result<()> {
    set("set TCP_MAXSEG", fd, IPPROTO_TCP, libc::TCP_MAXSEG, clamp(u64::from(bytes)))
}

/// Segment size in force, bytes of payload; before the handshake the one asked for or a default.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn snd_mss(fd: &impl AsFd) -> Result<u32> {
    unsigned("read TCP_MAXSEG", fd, IPPROTO_TCP, libc::TCP_MAXSEG)
}

/// Chooses the congestion control by its kernel name.
///
/// # Errors
/// When this kernel does not have it (the message lists those that it has) or keeps it for root.
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
        Some(list) => format!("this kernel has no congestion control \"{name}\"; it has: {list}"),
        None => format!("this kernel has no congestion control \"{name}\""),
    };
    io::Error::new(io::ErrorKind::NotFound, text)
}

/// The congestion control in force.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn congestion(fd: &impl AsFd) -> Result<String> {
    let mut buffer = [0; 16];
    let name = get_bytes("read TCP_CONGESTION", fd, IPPROTO_TCP, libc::TCP_CONGESTION, &mut buffer)?;
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The traffic-class byte: DSCP in the upper six bits. Sets it for both address families of a socket.
///
/// # Errors
/// When the socket has neither option.
pub fn set_tos(fd: &impl AsFd, tos: u8) -> Result<()> {
    let value = i32::from(tos);
    if family(fd)? == libc::AF_INET6 {
        set("set IPV6_TCLASS", fd, IPPROTO_IPV6, libc::IPV6_TCLASS, value)?;
        // Only matters for IPv4 peers of a dual-stack socket; one restricted to IPv6 may refuse it.
        let _ = set("set IP_TOS", fd, IPPROTO_IP, libc::IP_TOS, value);
        return Ok(());
    }
    set("set IP_TOS", fd, IPPROTO_IP, libc::IP_TOS, value)
}

/// The traffic-class byte in force. TCP clears its lowest two bits, which belong to ECN.
///
/// # Errors
/// When the socket has neither option.
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
/// `ENODEV` when there is none of that name.
pub fn set_device(fd: &impl AsFd, interface: &str) -> Result<()> {
    set_text("set SO_BINDTODEVICE", fd, SOL_SOCKET, libc::SO_BINDTODEVICE, interface)
}

/// Upper bound of the sending rate, bytes/s; `u64::MAX` lifts it.
///
/// TCP paces itself to it. UDP obeys only where the interface has the `fq` queueing discipline, see
/// [`crate::iface::LinkInfo::discipline`].
///
/// # Errors
/// When the descriptor is not a socket.
pub fn set_max_pacing_rate(fd: &impl AsFd, bytes_per_second: u64) -> Result<()> {
    set("set SO_MAX_PACING_RATE", fd, SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes_per_second)
}

/// Upper bound of the sending rate in force, bytes/s; `u64::MAX` when there is none.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn max_pacing_rate(fd: &impl AsFd) -> Result<u64> {
    get("read SO_MAX_PACING_RATE", fd, SOL_SOCKET, libc::SO_MAX_PACING_RATE)
}

/// Closing will reset the connection instead of finishing it.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn set_linger_abort(fd: &impl AsFd) -> Result<()> {
    let value = libc::linger { l_onoff: 1, l_linger: 0 };
    set("set SO_LINGER", fd, SOL_SOCKET, libc::SO_LINGER, value)
}

/// Gives the connection up when sent bytes stay unacknowledged for so long (RFC 5482); zero restores the default.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn set_user_timeout(fd: &impl AsFd, timeout: Duration) -> Result<()> {
    let ms = clamp(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    set("set TCP_USER_TIMEOUT", fd, IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms)
}

/// Probes a connection that is idle, and gives it up when nothing answers.
///
/// # Errors
/// `EINVAL` outside 1 s to 32767 s and 1 to 127 probes.
pub fn set_keep_alive(fd: &impl AsFd, wish: KeepAlive) -> Result<()> {
    let seconds = |span: Duration| clamp(span.as_secs());
    if let Some(idle) = wish.idle {
        set("set TCP_KEEPIDLE", fd, IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(idle))?;
    }
    if let Some(interval) = wish.interval {
        set("set TCP_KEEPINTVL", fd, IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(interval))?;
    }
    if let Some(probes) = wish.probes {
        set("set TCP_KEEPCNT", fd, IPPROTO_TCP, libc::TCP_KEEPCNT, clamp(u64::from(probes)))?;
    }
    set("set SO_KEEPALIVE", fd, SOL_SOCKET, libc::SO_KEEPALIVE, 1)
}

/// A flow label as it stands in a socket address: in network order, the upper 12 bits empty.
#[must_use]
pub fn flow_info(label: u32) -> u32 {
    (label & 0x000f_ffff).to_be()
}

/// Leases a flow label towards `peer`, so that packets may carry it (RFC 6437; include/uapi/linux/in6.h).
///
/// # Errors
/// `EPERM` when another user has leased it, or the socket is not one of IPv6.
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

/// Forbids fragmentation (RFC 1191): a datagram above the known path MTU is refused with `EMSGSIZE`.
///
/// # Errors
/// When the socket has no such option.
pub fn set_dont_fragment(fd: &impl AsFd, on: bool) -> Result<()> {
    let v4 = if on { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
    let v6 = if on { libc::IPV6_PMTUDISC_DO } else { libc::IPV6_PMTUDISC_DONT };
    if family(fd)? == libc::AF_INET6 {
        set("set IPV6_MTU_DISCOVER", fd, IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, v6)?;
        // For IPv4 peers of a dual-stack socket, as with the traffic class.
        let _ = set("set IP_MTU_DISCOVER", fd, IPPROTO_IP, libc::IP_MTU_DISCOVER, v4);
        return Ok(());
    }
    set("set IP_MTU_DISCOVER", fd, IPPROTO_IP, libc::IP_MTU_DISCOVER, v4)
}

/// The path MTU that the kernel knows for a connected socket, bytes with the IP header.
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

/// Which packets the kernel shall stamp in software; its stamps are of the realtime clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamping {
    /// Received packets, on entry from the driver; the stamp comes beside the datagram.
    pub receive: bool,
    /// Sent packets, on hand-over to the driver; the stamp comes through [`crate::errqueue`], numbered per datagram.
    pub send: bool,
    /// TCP bytes, when the peer has acknowledged them.
    pub acknowledged: bool,
}

/// Asks for software timestamps.
///
/// The first socket of a host that asks for receive stamps makes the kernel switch them on in the background; packets
/// that arrive before that carry none.
///
/// # Errors
/// When the kernel does not have them.
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

/// Datagrams that this socket has dropped so far for want of buffer or for a bad checksum; wraps at 2^32.
///
/// # Errors
/// When the descriptor is not a socket, or the kernel is older than 4.12.
pub fn dropped(fd: &impl AsFd) -> Result<u32> {
    const OP: &str = "read SO_MEMINFO";
    const SO_MEMINFO: i32 = 55;
    const DROPS_AT: usize = 32;
    let mut buffer = [0; 64];
    let counters = get_bytes(OP, fd, SOL_SOCKET, SO_MEMINFO, &mut buffer)?;
    let drops = counters.get(DROPS_AT..).and_then(|rest| rest.first_chunk());
    drops.map(|bytes| u32::from_ne_bytes(*bytes)).ok_or_else(|| SockError::errno(OP, libc::ENOPROTOOPT))
}

/// The error that the kernel keeps for this socket, if any; reading clears it.
///
/// # Errors
/// When the descriptor is not a socket.
pub fn take_error(fd: &impl AsFd) -> Result<Option<io::Error>> {
    let errno: i32 = get("read SO_ERROR", fd, SOL_SOCKET, libc::SO_ERROR)?;
    Ok((errno != 0).then(|| io::Error::from_raw_os_error(errno)))
}

/// True if this is an MPTCP connection that has not fallen back to plain TCP.
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

/// The kernel takes C ints: a larger wish is the largest one.
fn clamp(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
