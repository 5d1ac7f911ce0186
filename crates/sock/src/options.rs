//! What a socket is asked to be before its handshake, and what the kernel made of it.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::{SockError, sockopt};

/// Wishes that must be set before `connect` or `listen`. `None` and `false` leave the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Send buffer, bytes as given to `SO_SNDBUF` (iperf3's `-w` sets this and `rcv_buf`).
    pub snd_buf: Option<u64>,
    /// Receive buffer, bytes as given to `SO_RCVBUF`.
    pub rcv_buf: Option<u64>,
    /// Largest TCP segment, bytes of payload.
    pub mss: Option<u32>,
    /// Congestion control by its kernel name.
    pub congestion: Option<String>,
    /// Traffic-class byte (DSCP shifted left by two).
    pub tos: Option<u8>,
    /// Send small segments at once.
    pub no_delay: bool,
    /// Multipath TCP where the kernel has it.
    pub mptcp: bool,
    /// Local address to send from.
    pub local: Option<IpAddr>,
    /// Local port to send from.
    pub local_port: Option<u16>,
    /// Interface to send through.
    pub device: Option<String>,
    /// Upper bound of the sending rate, bytes/s.
    pub max_pacing_rate: Option<u64>,
    /// Give up when bytes stay unacknowledged for so long.
    pub user_timeout: Option<Duration>,
    /// Forbid fragmentation.
    pub dont_fragment: bool,
    /// Share the local port with other sockets.
    pub reuse_port: bool,
    /// A socket bound to `::` is not for IPv4.
    pub only_v6: bool,
    /// Flow label of every packet (IPv6; RFC 6437), 20 bits.
    pub flow_label: Option<u32>,
    /// Probe an idle connection (TCP keep-alive).
    pub keep_alive: Option<KeepAlive>,
}

/// How an idle connection is probed; what is absent is the system's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time without a byte before the first probe; whole seconds.
    pub idle: Option<Duration>,
    /// Time between probes; whole seconds.
    pub interval: Option<Duration>,
    /// Probes without an answer after which the connection is given up.
    pub probes: Option<u32>,
}

/// A buffer size as asked and as granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedBuffer {
    /// Bytes asked for; `None` leaves TCP's autotuning on.
    pub asked: Option<u64>,
    /// Bytes that the kernel reports, its doubling included.
    pub granted: u64,
    /// True if the kernel gave less than it gives for this wish: `net.core.{w,r}mem_max` is lower.
    pub clamped: bool,
}

impl GrantedBuffer {
    fn new(asked: Option<u64>, granted: u64) -> Self {
        // The kernel doubles what is asked, to make room for its own bookkeeping.
        let clamped = asked.is_some_and(|bytes| granted < bytes.saturating_mul(2));
        Self { asked, granted, clamped }
    }
}

/// What the kernel granted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Send buffer.
    pub snd_buf: GrantedBuffer,
    /// Receive buffer.
    pub rcv_buf: GrantedBuffer,
    /// Segment size, bytes; for TCP after the handshake the effective one.
    pub mss: Option<u32>,
    /// Congestion control in force; TCP only.
    pub congestion: Option<String>,
    /// Traffic-class byte in force.
    pub tos: Option<u8>,
    /// Upper bound of the sending rate, bytes/s; `None` when there is none.
    pub max_pacing_rate: Option<u64>,
    /// True for a connection that really uses MPTCP, also after the peer had its say.
    pub mptcp: bool,
}

impl SocketOptions {
    /// These wishes with the largest TCP segment, bytes of payload.
    #[must_use]
    pub fn with_segment(self, bytes: Option<u32>) -> Self {
        Self { mss: bytes, ..self }
    }

    /// Sets every wish on a TCP socket that has not started its handshake.
    ///
    /// # Errors
    /// The first wish that the kernel refuses.
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
        if let Some(timeout) = self.user_timeout {
            sockopt::set_user_timeout(fd, timeout)?;
        }
        if let Some(wish) = self.keep_alive {
            sockopt::set_keep_alive(fd, wish)?;
        }
        Ok(())
    }

    /// Leases the flow label, if one is wished, and writes it into the address that is then connected to.
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

    /// Sets the wishes that datagram sockets have too.
    ///
    /// # Errors
    /// The first wish that the kernel refuses.
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
        if let Some(name) = &self.device {
            sockopt::set_device(fd, name)?;
        }
        if let Some(rate) = self.max_pacing_rate {
            sockopt::set_max_pacing_rate(fd, rate)?;
        }
        if self.dont_fragment {
            sockopt::set_dont_fragment(fd, true)?;
        }
        if self.reuse_port {
            sockopt::set_reuse_port(fd, true)?;
        }
        Ok(())
    }

    /// The local end to bind before connecting to `peer`; `None` when the kernel shall choose.
    #[must_use]
    pub fn local_towards(&self, peer: SocketAddr) -> Option<SocketAddr> {
        if self.local.is_none() && self.local_port.is_none() {
            return None;
        }
        let any = match peer {
            SocketAddr::V4(_) => IpAddr::from([0; 4]),
            SocketAddr::V6(_) => IpAddr::from([0; 16]),
        };
        Some(SocketAddr::new(self.local.unwrap_or(any), self.local_port.unwrap_or(0)))
    }

    /// What `fd` has got of these wishes, now.
    ///
    /// # Errors
    /// When the descriptor is not a socket.
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
