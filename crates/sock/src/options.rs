//! Requested socket options before the handshake, and the effective ones.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::handle::AsFd;
use crate::{SockError, sockopt};

/// Options that must be set before `connect` or `listen`. `None` and `false` keep the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Send buffer, bytes as given to `SO_SNDBUF` (iperf3's `-w` sets this and `rcv_buf`).
    pub snd_buf: Option<u64>,
    /// Receive buffer, bytes as given to `SO_RCVBUF`.
    pub rcv_buf: Option<u64>,
    /// Maximum TCP segment size (MSS), bytes of payload.
    pub mss: Option<u32>,
    /// Congestion control, by its kernel name.
    pub congestion: Option<String>,
    /// Traffic-class byte (DSCP shifted left by two).
    pub tos: Option<u8>,
    /// Time to live, or hop limit, of the packets.
    pub ttl: Option<u8>,
    /// Send small segments at once (TCP_NODELAY).
    pub no_delay: bool,
    /// Most bytes in the socket that were not sent yet (TCP_NOTSENT_LOWAT).
    pub notsent_lowat: Option<u64>,
    /// Open connections with TCP Fast Open (RFC 7413), or take those of others, where the kernel allows it.
    pub fast_open: bool,
    /// How long a waiting call polls the network device (SO_BUSY_POLL), where the kernel allows it.
    pub busy_poll: Option<Duration>,
    /// Use Multipath TCP if the kernel supports it.
    pub mptcp: bool,
    /// Local address.
    pub local: Option<IpAddr>,
    /// Local port.
    pub local_port: Option<u16>,
    /// Interface to send through (SO_BINDTODEVICE).
    pub device: Option<String>,
    /// Maximum pacing rate, bytes/s.
    pub max_pacing_rate: Option<u64>,
    /// Give up when bytes stay unacknowledged for this long (TCP_USER_TIMEOUT).
    pub user_timeout: Option<Duration>,
    /// Forbid fragmentation.
    pub dont_fragment: bool,
    /// Reach only hosts of the own networks (SO_DONTROUTE).
    pub dont_route: bool,
    /// Share the local port with other sockets.
    pub reuse_port: bool,
    /// Exclude IPv4 on a socket bound to `::`.
    pub only_v6: bool,
    /// Flow label of every packet (IPv6; RFC 6437), 20 bits.
    pub flow_label: Option<u32>,
    /// Probe an idle connection (TCP keep-alive).
    pub keep_alive: Option<KeepAlive>,
}

/// TCP keep-alive settings; absent ones keep the system's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time before the first probe; whole seconds.
    pub idle: Option<Duration>,
    /// Time between probes; whole seconds.
    pub interval: Option<Duration>,
    /// Unanswered probes before the connection is given up.
    pub probes: Option<u32>,
}

/// A requested and an effective buffer size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedBuffer {
    /// Requested bytes; `None` keeps TCP's autotuning on.
    pub asked: Option<u64>,
    /// Bytes reported by the kernel, including its doubling on Linux.
    pub granted: u64,
    /// Whether the kernel granted less than requested: `net.core.{w,r}mem_max` is lower.
    pub clamped: bool,
}

impl GrantedBuffer {
    fn new(asked: Option<u64>, granted: u64) -> Self {
        let clamped = asked.is_some_and(|bytes| granted < bytes.saturating_mul(sockopt::BUFFER_FACTOR));
        Self { asked, granted, clamped }
    }
}

/// Effective socket options.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Send buffer.
    pub snd_buf: GrantedBuffer,
    /// Receive buffer.
    pub rcv_buf: GrantedBuffer,
    /// MSS, bytes; for TCP the effective one after the handshake.
    pub mss: Option<u32>,
    /// Effective congestion control; TCP only.
    pub congestion: Option<String>,
    /// Effective traffic-class byte.
    pub tos: Option<u8>,
    /// Maximum pacing rate, bytes/s; `None` if unlimited.
    pub max_pacing_rate: Option<u64>,
    /// Whether the connection really uses MPTCP, which the peer may refuse.
    pub mptcp: bool,
}

impl SocketOptions {
    /// These options with an MSS, bytes of payload.
    #[must_use]
    pub fn with_segment(self, bytes: Option<u32>) -> Self {
        Self { mss: bytes, ..self }
    }

    /// Sets all options on a TCP socket before its handshake.
    ///
    /// # Errors
    /// The first option that the kernel refuses.
    pub fn apply_tcp(&self, fd: &impl AsFd) -> Result<(), SockError> {
        self.apply_any(fd)?;
        if let Some(bytes) = self.mss {
            sockopt::set_mss(fd, bytes)?;
        }
        if let Some(name) = &self.congestion {
            sockopt::set_congestion(fd, name)?;
        }
        if self.no_delay {
            sockopt::set_no_delay(fd, true)?;
        }
        if let Some(bytes) = self.notsent_lowat {
            sockopt::set_notsent_lowat(fd, bytes)?;
        }
        if let Some(timeout) = self.user_timeout {
            sockopt::set_user_timeout(fd, timeout)?;
        }
        if let Some(keep_alive) = self.keep_alive {
            sockopt::set_keep_alive(fd, keep_alive)?;
        }
        Ok(())
    }

    /// Leases the flow label, if one is requested, and writes it into the address for `connect`.
    pub(crate) fn labelled(&self, fd: &impl AsFd, peer: SocketAddr) -> Result<SocketAddr, SockError> {
        match (self.flow_label, peer) {
            (Some(label), SocketAddr::V6(mut v6)) => {
                sockopt::lease_flow_label(fd, *v6.ip(), label)?;
                v6.set_flowinfo(sockopt::flow_info(label));
                Ok(v6.into())
            }
            _ => Ok(peer),
        }
    }

    /// Sets the options that apply to datagram sockets too.
    ///
    /// # Errors
    /// The first option that the kernel refuses.
    pub fn apply_any(&self, fd: &impl AsFd) -> Result<(), SockError> {
        if let Some(bytes) = self.snd_buf {
            sockopt::set_snd_buf(fd, bytes)?;
        }
        if let Some(bytes) = self.rcv_buf {
            sockopt::set_rcv_buf(fd, bytes)?;
        }
        if let Some(tos) = self.tos {
            sockopt::set_tos(fd, tos)?;
        }
        if let Some(ttl) = self.ttl {
            sockopt::set_ttl(fd, ttl)?;
        }
        if let Some(name) = &self.device {
            sockopt::set_device(fd, name)?;
        }
        if let Some(rate) = self.max_pacing_rate {
            sockopt::set_max_pacing_rate(fd, rate)?;
        }
        if let Some(time) = self.busy_poll {
            // Beyond the system's setting it needs a privilege; what took effect can be read back.
            let _ = sockopt::set_busy_poll(fd, u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
        }
        if self.dont_fragment {
            sockopt::set_dont_fragment(fd, true)?;
        }
        if self.dont_route {
            sockopt::set_dont_route(fd, true)?;
        }
        if self.reuse_port {
            sockopt::set_reuse_port(fd, true)?;
        }
        Ok(())
    }

    /// The local address to bind before connecting to `peer`; `None` to let the kernel choose.
    #[must_use]
    pub fn local_towards(&self, peer: SocketAddr) -> Option<SocketAddr> {
        if self.local.is_none() && self.local_port.is_none() {
            return None;
        }
        let any = match peer {
            SocketAddr::V4(_) => IpAddr::from([0; 4]),
            SocketAddr::V6(_) => IpAddr::from([0; 16]),
        };
        let mut local = SocketAddr::new(self.local.unwrap_or(any), self.local_port.unwrap_or(0));
        // An address of a single link needs its interface, which is that of the peer's.
        if let (SocketAddr::V6(own), SocketAddr::V6(peer)) = (&mut local, peer)
            && own.ip().is_unicast_link_local()
        {
            own.set_scope_id(peer.scope_id());
        }
        Some(local)
    }

    /// The options currently in effect on `fd`.
    ///
    /// # Errors
    /// The descriptor is not a socket.
    pub fn granted(&self, fd: &impl AsFd) -> Result<Granted, SockError> {
        Ok(Granted {
            snd_buf: GrantedBuffer::new(self.snd_buf, sockopt::snd_buf(fd)?),
            rcv_buf: GrantedBuffer::new(self.rcv_buf, sockopt::rcv_buf(fd)?),
            mss: sockopt::snd_mss(fd).ok(),
            congestion: sockopt::congestion(fd).ok(),
            tos: sockopt::tos(fd).ok(),
            max_pacing_rate: sockopt::max_pacing_rate(fd).ok().filter(|&rate| rate != u64::MAX),
            mptcp: sockopt::uses_mptcp(fd),
        })
    }
}
