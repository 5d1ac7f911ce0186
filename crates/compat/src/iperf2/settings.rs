//! The settings of a command line of iperf 2.

use std::net::IpAddr;

use linerate_units::{Span, Timestamp};

/// Longest time of a test: the header has hundredths of a second, in 31 bits. It stands for no limit.
pub(super) const MAX_TIME: Span = Span::from_ms(i32::MAX as u64 * 10);

/// The amount that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iperf2Amount {
    /// For this time (-t).
    Time(Span),
    /// This number of bytes on each connection (-n).
    Bytes(u64),
}

impl Iperf2Amount {
    /// The time, if it ends the test.
    pub(super) fn limited_time(self) -> Option<Span> {
        match self {
            Self::Time(time) if time < MAX_TIME => Some(time),
            Self::Time(_) | Self::Bytes(_) => None,
        }
    }
}

/// A rate as given with -b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iperf2Rate {
    /// Bits per second.
    Bits(u64),
    /// Datagrams or buffers per second.
    Packets(u64),
}

/// The directions of the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Iperf2Mode {
    /// From the client to the server.
    #[default]
    Plain,
    /// In addition from the server to the client, over the server's own connections, at the same time (-d).
    Dual,
    /// The same, but after the first test (-r).
    Tradeoff,
    /// From the server to the client over the client's connections (-R).
    Reverse,
    /// In both directions over the client's connections (--full-duplex).
    FullDuplex,
}

/// Units of printed rates. Transferred amounts are always binary, bit rates decimal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Iperf2Format {
    /// Bits with an adaptive prefix.
    #[default]
    AdaptiveBits,
    /// Bytes with an adaptive prefix.
    AdaptiveBytes,
    /// Bits in units of 10^3, 10^6 or 10^9 (1 to 3).
    Bits(u8),
    /// Bytes in units of 2^10, 2^20 or 2^30 (1 to 3).
    Bytes(u8),
}

/// What a client sends instead of the pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Iperf2Input {
    /// A file (-F); opened by the program that runs the tool.
    File(String),
    /// Standard input (-I).
    Standard,
}

/// What differs between the connections of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Iperf2Increments {
    /// The destination address (--incr-dstip).
    pub to: bool,
    /// The destination port (--incr-dstport).
    pub to_port: bool,
    /// The source address (--incr-srcip).
    pub from: bool,
}

/// The settings of a command line of iperf 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iperf2Settings {
    /// Server instead of client (-s).
    pub server: bool,
    /// Host of the server (-c).
    pub host: Option<String>,
    /// Port of the server (-p).
    pub port: u16,
    /// UDP instead of TCP (-u); the embedded server listens for both.
    pub udp: bool,
    /// Listen for both TCP and UDP.
    pub both: bool,
    /// Length of a buffer or datagram, bytes (-l).
    pub length: Option<u32>,
    /// Socket buffers, bytes (-w).
    pub window: Option<u64>,
    /// Maximum segment size, bytes (-M).
    pub mss: Option<u32>,
    /// Print the segment size (-m).
    pub print_mss: bool,
    /// Disable Nagle's algorithm (-N).
    pub no_delay: bool,
    /// The amount to send (-t, -n).
    pub amount: Iperf2Amount,
    /// How long a server listens (its -t).
    pub listen_for: Option<Span>,
    /// Interval of reports (-i).
    pub interval: Option<Span>,
    /// Units of printed rates (-f).
    pub format: Iperf2Format,
    /// Rate of the sender (-b).
    pub rate: Option<Iperf2Rate>,
    /// Number of connections of a client; number of connections after which a server ends (-P).
    pub parallel: Option<u32>,
    /// The directions of the data.
    pub mode: Iperf2Mode,
    /// Port on which a client waits for reverse connections (-L).
    pub listen_port: Option<u16>,
    /// No header: data only (-C).
    pub compatible: bool,
    /// Wait for the server's answer before sending (-X).
    pub peer_detect: bool,
    /// Print more columns (-e).
    pub enhanced: bool,
    /// Timestamp sent data (--trip-times).
    pub trip_times: bool,
    /// Ask the server not to answer the last datagram (--no-udp-fin).
    pub no_udp_fin: bool,
    /// Comma-separated values (-y C).
    pub csv: bool,
    /// Print only the sum of the connections (--sum-only).
    pub sum_only: bool,
    /// One client at a time (-1).
    pub single: bool,
    /// Type-of-service byte (-S).
    pub tos: Option<u8>,
    /// Congestion control algorithm (-Z).
    pub congestion: Option<String>,
    /// Kernel pacing rate, bits per second (--fq-rate).
    pub fq_rate: Option<u64>,
    /// Local address (-B).
    pub bind: Option<IpAddr>,
    /// Local port (-B with a port).
    pub bind_port: Option<u16>,
    /// Interface (-B with %device).
    pub device: Option<String>,
    /// Use IPv6 (-V, -6).
    pub ipv6: bool,
    /// Use IPv4 only (-4).
    pub ipv4: bool,
    /// Reports to omit: the letters C, D, M, S, V (-x).
    pub exclude: String,
    /// Time to live of the packets (-T).
    pub ttl: Option<u8>,
    /// Hide addresses (--hide-ips).
    pub hide_ips: bool,
    /// Send only to hosts of the own networks (--local-only).
    pub local_only: bool,
    /// Time between connecting and sending (--txdelay-time).
    pub start_delay: Option<Span>,
    /// When to start sending (--txstart-time), since 1970.
    pub start_at: Option<Span>,
    /// Only open this number of connections; 0 for any number (--connect-only).
    pub connect_only: Option<u32>,
    /// Number of further attempts to connect (--connect-retries).
    pub connect_retries: u32,
    /// What differs between the connections.
    pub increments: Iperf2Increments,
    /// What to send instead of the pattern (-F, -I).
    pub input: Option<Iperf2Input>,
    /// Run with real-time priority (-z); the program that runs the tool does it.
    pub realtime: bool,
    /// Run in the background (-D); the program that runs the tool does it.
    pub daemon: bool,
    /// File for the output (-o); opened by the program that runs the tool.
    pub output: Option<String>,
    /// Id of this process, printed with -e.
    pub pid: u32,
    /// Wall-clock time at the stand-in's start, since 1970.
    pub epoch: Span,
    /// Warnings about the command line, printed at the start.
    pub warnings: String,
    /// Whether the server is public. It then does not send test data over UDP.
    pub among_strangers: bool,
}

impl Default for Iperf2Settings {
    fn default() -> Self {
        Self {
            server: false,
            host: None,
            port: 5001,
            udp: false,
            both: false,
            length: None,
            window: None,
            mss: None,
            print_mss: false,
            no_delay: false,
            amount: Iperf2Amount::Time(Span::from_secs(10)),
            listen_for: None,
            interval: None,
            format: Iperf2Format::default(),
            rate: None,
            parallel: None,
            mode: Iperf2Mode::Plain,
            listen_port: None,
            compatible: false,
            peer_detect: false,
            enhanced: false,
            trip_times: false,
            no_udp_fin: false,
            csv: false,
            sum_only: false,
            single: false,
            tos: None,
            congestion: None,
            fq_rate: None,
            bind: None,
            bind_port: None,
            device: None,
            ipv6: false,
            ipv4: false,
            exclude: String::new(),
            ttl: None,
            hide_ips: false,
            local_only: false,
            start_delay: None,
            start_at: None,
            connect_only: None,
            connect_retries: 0,
            increments: Iperf2Increments::default(),
            input: None,
            realtime: false,
            daemon: false,
            output: None,
            pid: 0,
            epoch: Span::ZERO,
            warnings: String::new(),
            among_strangers: false,
        }
    }
}

/// Default length of a TCP buffer, bytes.
const TCP_LENGTH: u32 = 128 << 10;

/// Default payload of a datagram over IPv4 and over IPv6, bytes.
const UDP_LENGTH: [u32; 2] = [1470, 1450];

/// Default rate of a UDP client, bit/s: 2^20.
const UDP_RATE: u64 = 1 << 20;

impl Iperf2Settings {
    /// A server for TCP and UDP without a time limit.
    #[must_use]
    pub fn server(port: u16) -> Self {
        Self { server: true, both: true, port, ..Self::default() }
    }

    /// Effective length of a buffer or datagram, bytes.
    #[must_use]
    pub fn length_for(&self, udp: bool) -> u32 {
        self.length.unwrap_or(if udp { UDP_LENGTH[usize::from(self.ipv6)] } else { TCP_LENGTH })
    }

    /// Offered rate of each connection, bit/s; absent to saturate.
    #[must_use]
    pub fn offered(&self) -> Option<u64> {
        match self.rate {
            Some(Iperf2Rate::Bits(bits)) => Some(bits),
            Some(Iperf2Rate::Packets(packets)) => {
                Some(packets.saturating_mul(u64::from(self.length_for(self.udp)) * 8))
            }
            None => self.udp.then_some(UDP_RATE),
        }
    }

    /// Seconds and microseconds of the wall clock.
    #[must_use]
    pub fn wall(&self, now: Timestamp) -> (u32, u32) {
        parts(self.epoch + now.since(Timestamp::START))
    }

    /// An address as it is printed: with --hide-ips only the last part of an IPv4 address, as in 2.1.8.
    #[must_use]
    pub fn shown_ip(&self, address: IpAddr) -> String {
        match address {
            IpAddr::V4(v4) if self.hide_ips => format!("*.*.*.{}", v4.octets()[3]),
            other => other.to_string(),
        }
    }

    /// A time of the wall clock on the clock of this stand-in; the start for earlier times.
    #[must_use]
    pub fn at_wall(&self, wall: Span) -> Timestamp {
        Timestamp::START + wall.saturating_sub(self.epoch)
    }
}

/// Seconds and microseconds.
pub(super) fn parts(span: Span) -> (u32, u32) {
    ((span.as_ns() / 1_000_000_000) as u32, (span.as_ns() % 1_000_000_000 / 1000) as u32)
}
