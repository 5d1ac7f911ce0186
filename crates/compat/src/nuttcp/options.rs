//! The options of a command line.

use std::net::IpAddr;

use linerate_units::Span;

use super::wire::{NuttcpFormat, NuttcpRequest, NuttcpVersion};
use super::{CONTROL_PORT, DATA_PORT};

/// Bits of `-j` and `-o`: the smallest value is reported.
pub(super) const LEAST: u64 = 1;

/// The mean is reported.
pub(super) const MEAN: u64 = 2;

/// The largest value is reported.
pub(super) const MOST: u64 = 4;

/// Bit of `-j` only: jitter counts between datagrams that follow each other in the sender's order.
pub(super) const NEIGHBOURS: u64 = 8;

/// The amount of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The summary line.
    #[default]
    Brief,
    /// The reports of both ends.
    Verbose,
    /// Also the CPU time of the test.
    VeryVerbose,
}

/// A limit for the rate of all streams together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimit {
    /// None.
    Unlimited,
    /// Payload, kbit/s.
    Kbps(u64),
    /// Datagrams or blocks per second.
    Pps(u64),
}

/// Longest time of a test, and longest interval: a timer's seconds in 31 bits. Longer ones are refused.
pub(super) const MAX_TIME: Span = Span::from_secs(i32::MAX as u64);

/// The options of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct NuttcpClientOptions {
    /// The host as the user typed it.
    pub host: String,
    /// Destination of data connections if it differs from the control connection's (`control/data`).
    pub data_host: Option<IpAddr>,
    /// Port of the control connection.
    pub control_port: u16,
    /// Port of the first data stream.
    pub data_port: u16,
    /// Whether the client transmits.
    pub transmit: bool,
    /// Whether the transport is UDP.
    pub udp: bool,
    /// Length of a block, or payload of a datagram, bytes; absent for the default.
    pub length: Option<u64>,
    /// Number of blocks to send.
    pub blocks: Option<u64>,
    /// Bytes to send, in whole blocks.
    pub bytes: Option<u64>,
    /// Duration of the sending; absent for the default.
    pub time: Option<Span>,
    /// Number of streams.
    pub streams: u16,
    /// Rate limit; absent for the default.
    pub rate: Option<RateLimit>,
    /// Whether the sender must not catch up after a delay.
    pub instantaneous: bool,
    /// Number of blocks per burst.
    pub burst: u64,
    /// Interval of printed lines; 0 for none.
    pub interval: Span,
    /// Socket buffer of this end, bytes.
    pub window: Option<u64>,
    /// Socket buffer of the server, bytes.
    pub server_window: Option<u64>,
    /// Whether to set both buffers of each end.
    pub both_windows: bool,
    /// Maximum segment size, bytes.
    pub mss: Option<u32>,
    /// Type-of-service byte.
    pub tos: u8,
    /// Whether to set TCP_NODELAY.
    pub no_delay: bool,
    /// Whether to open data connections in the other direction.
    pub flip: bool,
    /// Whether to retry a refused control connection.
    pub again: bool,
    /// Whether to send standard input, or to write received data to standard output.
    pub stdio: bool,
    /// Prefix of the lines.
    pub identifier: Option<String>,
    /// The contents of the output.
    pub format: NuttcpFormat,
    /// The amount of output.
    pub verbosity: Verbosity,
    /// Only IPv4.
    pub ipv4: bool,
    /// Only IPv6.
    pub ipv6: bool,
    /// Which values of the jitter are reported: bits as in the request.
    pub jitter: u64,
    /// Which values of the one-way delay are reported: bits as in the request.
    pub one_way_delay: u64,
    /// Source port of the data connections of the end that connects.
    pub source_port: Option<u16>,
    /// Source port of the control connection.
    pub control_source_port: Option<u16>,
    /// CPU of the data threads of this end.
    pub affinity: Option<u32>,
    /// CPU of the data threads of the server.
    pub server_affinity: Option<u32>,
    /// Whether the last line shows the retransmissions of each stream.
    pub stream_retrans: bool,
    /// Whether the last line shows the congestion window of each stream.
    pub stream_cwnd: bool,
    /// Shortest, default and longest idle timeout.
    pub idle: [Span; 3],
}

/// The idle timeouts if none are given: shortest, default and longest.
pub(super) const IDLE: [Span; 3] = [Span::from_secs(15), Span::from_secs(30), Span::from_secs(60)];

impl NuttcpClientOptions {
    /// The default options of a client for this host.
    #[must_use]
    pub fn to(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            data_host: None,
            control_port: CONTROL_PORT,
            data_port: DATA_PORT,
            transmit: true,
            udp: false,
            length: None,
            blocks: None,
            bytes: None,
            time: None,
            streams: 1,
            rate: None,
            instantaneous: false,
            burst: 1,
            interval: Span::ZERO,
            window: None,
            server_window: None,
            both_windows: false,
            mss: None,
            tos: 0,
            no_delay: false,
            flip: false,
            again: false,
            stdio: false,
            identifier: None,
            format: NuttcpFormat::default(),
            verbosity: Verbosity::default(),
            ipv4: false,
            ipv6: false,
            jitter: 0,
            one_way_delay: 0,
            source_port: None,
            control_source_port: None,
            affinity: None,
            server_affinity: None,
            stream_retrans: false,
            stream_cwnd: false,
            idle: IDLE,
        }
    }

    /// Length of a block, bytes: as given, or 64 KiB over TCP. The default over UDP fits into one packet of the
    /// path: 8 KiB halved until it fits into a segment of the control connection.
    #[must_use]
    pub fn length_for(&self, control_mss: Option<u32>) -> u64 {
        if let Some(length) = self.length {
            return length;
        }
        if !self.udp {
            return 65_536;
        }
        let mss = u64::from(control_mss.unwrap_or(1448));
        let mut length = 8192;
        while length > mss && length > 512 {
            length /= 2;
        }
        length
    }

    /// The request for these options.
    #[must_use]
    pub fn request(&self, control_mss: Option<u32>) -> NuttcpRequest {
        let buflen = self.length_for(control_mss);
        let nbuf = self.bytes.map(|bytes| (bytes / buflen.max(1)).max(1)).or(self.blocks);
        let default = if self.udp { RateLimit::Kbps(1000) } else { RateLimit::Unlimited };
        let rate_kbps = match self.rate.unwrap_or(default) {
            RateLimit::Unlimited => None,
            RateLimit::Kbps(rate) => Some(rate),
            RateLimit::Pps(rate) => Some((rate.saturating_mul(buflen).saturating_mul(8) / 1000).max(1)),
        };
        let timeout = match (self.time, nbuf) {
            (Some(time), _) => time,
            (None, Some(_)) => Span::ZERO,
            // Standard input and output have an end of their own.
            (None, None) if self.stdio => Span::ZERO,
            (None, None) => Span::from_secs(10),
        };
        NuttcpRequest {
            buflen,
            nbuf,
            win: self.server_window.or(self.window).unwrap_or(0),
            nstream: u64::from(self.streams),
            rate_kbps,
            port: u64::from(self.data_port),
            trans: self.transmit,
            braindead: self.both_windows,
            timeout,
            udp: self.udp,
            vers: NuttcpVersion::REPORTED,
            interval: self.interval,
            flip: self.flip,
            format: self.format,
            irate: self.instantaneous,
            datamss: self.mss.map_or(0, u64::from),
            tos: self.tos,
            nbuf_bytes: self.bytes.is_some(),
            rate_pps: matches!(self.rate, Some(RateLimit::Pps(_))),
            nodelay: self.no_delay,
            maxburst: self.burst,
            do_jitter: self.jitter,
            do_owd: self.one_way_delay,
            affinity: self.server_affinity,
            srcport: u64::from(self.source_port.unwrap_or(0)),
            ..NuttcpRequest::default()
        }
    }
}

/// The options of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct NuttcpServerOptions {
    /// Port of the control connection.
    pub control_port: u16,
    /// Whether to end after one client.
    pub one_shot: bool,
    /// Whether clients wait for each other.
    pub single: bool,
    /// CPU of the data threads, if a client does not request one.
    pub affinity: Option<u32>,
    /// Whether to write received data to standard output, or to send standard input.
    pub stdio: bool,
    /// Only IPv4.
    pub ipv4: bool,
    /// Only IPv6.
    pub ipv6: bool,
    /// Shortest, default and longest idle timeout of a test.
    pub idle: [Span; 3],
}

impl Default for NuttcpServerOptions {
    fn default() -> Self {
        Self {
            control_port: CONTROL_PORT,
            one_shot: false,
            single: false,
            affinity: None,
            stdio: false,
            ipv4: false,
            ipv6: false,
            idle: IDLE,
        }
    }
}
