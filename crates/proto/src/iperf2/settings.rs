//! What a command line of iperf 2 asks for.

use std::net::IpAddr;

use linerate_units::{Span, Timestamp};

/// How much a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// For so long (-t).
    Time(Span),
    /// So many bytes on each connection (-n).
    Bytes(u64),
}

/// A rate as given with -b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Bits per second.
    Bits(u64),
    /// Datagrams or buffers per second.
    Packets(u64),
}

/// Which way data go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// From the client to the server.
    #[default]
    Plain,
    /// Also back over connections of the server's own, at the same time (-d).
    Dual,
    /// The same, after the first test (-r).
    Tradeoff,
    /// From the server to the client over the client's connections (-R).
    Reverse,
    /// Both ways over the client's connections (--full-duplex).
    FullDuplex,
}

/// In what rates are printed: transfers are always binary, rates in bits decimal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Bits with the prefix that fits.
    #[default]
    AdaptiveBits,
    /// Bytes with the prefix that fits.
    AdaptiveBytes,
    /// Bits, 10^3, 10^6 or 10^9 of them (1 to 3).
    Bits(u8),
    /// Bytes, 2^10, 2^20 or 2^30 of them (1 to 3).
    Bytes(u8),
}

/// What a command line of iperf 2 asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Server instead of client (-s).
    pub server: bool,
    /// Where the server is (-c).
    pub host: Option<String>,
    /// Port of the server (-p).
    pub port: u16,
    /// UDP instead of TCP (-u); a server without a command line listens for both.
    pub udp: bool,
    /// Listen for TCP and UDP at once.
    pub both: bool,
    /// Bytes of a buffer or datagram (-l).
    pub length: Option<u32>,
    /// Socket buffers, bytes (-w).
    pub window: Option<u64>,
    /// Largest segment, bytes (-M).
    pub mss: Option<u32>,
    /// Print the segment size (-m).
    pub print_mss: bool,
    /// Send small segments at once (-N).
    pub no_delay: bool,
    /// How much is sent (-t, -n).
    pub amount: Amount,
    /// How long a server listens (its -t).
    pub listen_for: Option<Span>,
    /// Interval of reports (-i).
    pub interval: Option<Span>,
    /// In what rates are printed (-f).
    pub format: Format,
    /// Rate to send at (-b).
    pub rate: Option<Rate>,
    /// Connections; at a server, after how many it ends (-P).
    pub parallel: Option<u32>,
    /// Which way data go.
    pub mode: Mode,
    /// Port on which a client waits for the connections back (-L).
    pub listen_port: Option<u16>,
    /// No header: data only (-C).
    pub compatible: bool,
    /// Wait for the server's answer before sending (-X).
    pub peer_detect: bool,
    /// More columns (-e).
    pub enhanced: bool,
    /// Say when things were sent (--trip-times).
    pub trip_times: bool,
    /// The server shall not answer the last datagram (--no-udp-fin).
    pub no_udp_fin: bool,
    /// Comma-separated values (-y C).
    pub csv: bool,
    /// Print only the sum of the connections (--sum-only).
    pub sum_only: bool,
    /// One client at a time (-1).
    pub single: bool,
    /// Type-of-service byte (-S).
    pub tos: Option<u8>,
    /// Congestion control (-Z).
    pub congestion: Option<String>,
    /// Kernel pacing rate, bits per second (--fq-rate).
    pub fq_rate: Option<u64>,
    /// Local address (-B).
    pub bind: Option<IpAddr>,
    /// Local port (-B with a port).
    pub bind_port: Option<u16>,
    /// Interface (-B with %device).
    pub device: Option<String>,
    /// Use IPv6 (-V).
    pub ipv6: bool,
    /// Reports to leave out: the letters C, D, M, S, V (-x).
    pub exclude: String,
    /// File that gets what would be printed (-o); opened by whoever runs the tool.
    pub output: Option<String>,
    /// Number of this process, printed with -e.
    pub pid: u32,
    /// Wall clock at the start of the stand-in's time, since 1970.
    pub epoch: Span,
    /// What is odd about the command line, lines and all; printed at the start.
    pub warnings: String,
    /// The server is open to anybody: over UDP it sends nobody a load.
    pub among_strangers: bool,
}

impl Default for Settings {
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
            amount: Amount::Time(Span::from_secs(10)),
            listen_for: None,
            interval: None,
            format: Format::default(),
            rate: None,
            parallel: None,
            mode: Mode::Plain,
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
            exclude: String::new(),
            output: None,
            pid: 0,
            epoch: Span::ZERO,
            warnings: String::new(),
            among_strangers: false,
        }
    }
}

/// Bytes of a TCP buffer, unless given.
const TCP_LENGTH: u32 = 128 << 10;

/// Payload of a datagram over IPv4 and over IPv6, unless given.
const UDP_LENGTH: [u32; 2] = [1470, 1450];

/// Rate of a UDP client, unless given: 2^20.
const UDP_RATE: u64 = 1 << 20;

impl Settings {
    /// A server for TCP and UDP, for ever.
    #[must_use]
    pub fn server(port: u16) -> Self {
        Self { server: true, both: true, port, ..Self::default() }
    }

    /// Bytes of a buffer or datagram in effect.
    #[must_use]
    pub fn length_for(&self, udp: bool) -> u32 {
        self.length.unwrap_or(if udp { UDP_LENGTH[usize::from(self.ipv6)] } else { TCP_LENGTH })
    }

    /// Bits per second that each connection offers; absent to saturate.
    #[must_use]
    pub fn offered(&self) -> Option<u64> {
        match self.rate {
            Some(Rate::Bits(bits)) => Some(bits),
            Some(Rate::Packets(packets)) => {
                Some(packets.saturating_mul(u64::from(self.length_for(self.udp)) * 8))
            }
            None => self.udp.then_some(UDP_RATE),
        }
    }

    /// Seconds and microseconds of the wall clock.
    #[must_use]
    pub fn wall(&self, now: Timestamp) -> (u32, u32) {
        let since = self.epoch + now.since(Timestamp::START);
        ((since.as_ns() / 1_000_000_000) as u32, (since.as_ns() % 1_000_000_000 / 1000) as u32)
    }
}
