//! What the command line asks for.

use std::net::IpAddr;

use linerate_units::Span;

use super::wire::{Format, Request, Version};
use super::{CONTROL_PORT, DATA_PORT};

/// How much a client prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// One line.
    #[default]
    Brief,
    /// The reports of both ends.
    Verbose,
    /// Also what the test cost in CPU time.
    VeryVerbose,
}

/// A limit of the rate, of all streams together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// None.
    Unlimited,
    /// Payload, kbit/s.
    Kbps(u64),
    /// Datagrams or blocks a second.
    Pps(u64),
}

/// A client as the command line asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientOptions {
    /// The host as it was given.
    pub host: String,
    /// Where data connections go, when not to the host of the control connection (`control/data`).
    pub data_host: Option<IpAddr>,
    /// Port of the control connection.
    pub control_port: u16,
    /// Port of the first data stream.
    pub data_port: u16,
    /// The client transmits.
    pub transmit: bool,
    /// Over UDP.
    pub udp: bool,
    /// Bytes of a block or payload of a datagram; absent for the default.
    pub length: Option<u64>,
    /// Blocks to send.
    pub blocks: Option<u64>,
    /// Bytes to send, in whole blocks.
    pub bytes: Option<u64>,
    /// How long is sent; absent for the default.
    pub time: Option<Span>,
    /// Number of streams.
    pub streams: u16,
    /// Limit of the rate; absent for the default.
    pub rate: Option<Rate>,
    /// No catching up.
    pub instantaneous: bool,
    /// Blocks that may leave together.
    pub burst: u64,
    /// Interval of lines; 0 for none.
    pub interval: Span,
    /// Socket buffer of this end, bytes.
    pub window: Option<u64>,
    /// Socket buffer of the server, bytes.
    pub server_window: Option<u64>,
    /// Set both buffers.
    pub both_windows: bool,
    /// Segment size.
    pub mss: Option<u32>,
    /// Type-of-service byte.
    pub tos: u8,
    /// TCP_NODELAY.
    pub no_delay: bool,
    /// Open data connections the other way round.
    pub flip: bool,
    /// Try a refused control connection again.
    pub again: bool,
    /// Standard input is sent, or what comes is written to standard output.
    pub stdio: bool,
    /// What the lines begin with.
    pub identifier: Option<String>,
    /// What is printed.
    pub format: Format,
    /// How much is printed.
    pub verbosity: Verbosity,
    /// Only IPv4.
    pub ipv4: bool,
    /// Only IPv6.
    pub ipv6: bool,
    /// Jitter, as it is asked of the receiver.
    pub jitter: u64,
    /// One-way delay, as it is asked of the receiver.
    pub one_way_delay: u64,
}

impl ClientOptions {
    /// A client of this host with nothing else said.
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
            format: Format::default(),
            verbosity: Verbosity::default(),
            ipv4: false,
            ipv6: false,
            jitter: 0,
            one_way_delay: 0,
        }
    }

    /// Bytes of a block: as given, 64 KiB over TCP, and over UDP what the path carries in one packet: 8 KiB halved
    /// until it fits into a segment of the control connection.
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

    /// The request that says all this.
    #[must_use]
    pub fn request(&self, control_mss: Option<u32>) -> Request {
        let buflen = self.length_for(control_mss);
        let nbuf = self.bytes.map(|bytes| (bytes / buflen.max(1)).max(1)).or(self.blocks);
        let default = if self.udp { Rate::Kbps(1000) } else { Rate::Unlimited };
        let rate_kbps = match self.rate.unwrap_or(default) {
            Rate::Unlimited => None,
            Rate::Kbps(rate) => Some(rate),
            Rate::Pps(rate) => Some((rate.saturating_mul(buflen).saturating_mul(8) / 1000).max(1)),
        };
        let timeout = match (self.time, nbuf) {
            (Some(time), _) => time,
            (None, Some(_)) => Span::ZERO,
            (None, None) => Span::from_secs(10),
        };
        Request {
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
            vers: Version::REPORTED,
            interval: self.interval,
            flip: self.flip,
            format: self.format,
            irate: self.instantaneous,
            datamss: self.mss.map_or(0, u64::from),
            tos: self.tos,
            nbuf_bytes: self.bytes.is_some(),
            rate_pps: matches!(self.rate, Some(Rate::Pps(_))),
            nodelay: self.no_delay,
            maxburst: self.burst,
            do_jitter: self.jitter,
            do_owd: self.one_way_delay,
            ..Request::default()
        }
    }
}

/// A server as the command line asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerOptions {
    /// Port of the control connection.
    pub control_port: u16,
    /// End after one client.
    pub one_shot: bool,
    /// Write what comes to standard output, or send standard input.
    pub stdio: bool,
    /// Only IPv4.
    pub ipv4: bool,
    /// Only IPv6.
    pub ipv6: bool,
    /// Shortest, default and longest time without data after which a test is given up.
    pub idle: [Span; 3],
}

impl Default for ServerOptions {
    fn default() -> Self {
        let idle = [15, 30, 60].map(Span::from_secs);
        Self { control_port: CONTROL_PORT, one_shot: false, stdio: false, ipv4: false, ipv6: false, idle }
    }
}
