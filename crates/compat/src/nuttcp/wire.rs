//! The control connection: lines, versions and the request.

use std::fmt;

use linerate_model::foreign_text::one_line;
use linerate_units::Span;

/// Longest accepted line, bytes without the line feed. A request of 8.2.2 has 490.
pub const LINE_LIMIT: usize = 4096;

/// The value of `rate` for no limit.
const NO_RATE: u64 = 4_294_967_295;

/// The value of `nbuf` for no limit.
const NO_COUNT: u64 = 2_147_483_647;

/// Version of nuttcp: `major * 10000 + minor * 100 + delta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NuttcpVersion(u32);

impl NuttcpVersion {
    /// The version that these stand-ins announce.
    pub const REPORTED: Self = Self(80_202);

    /// Creates a version from its number, for example 60102.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Parses `6.1.2`; missing parts are 0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = [0_u32; 3];
        let mut given = text.trim().split('.');
        for (part, digits) in parts.iter_mut().zip(&mut given) {
            *part = digits.parse().ok().filter(|number| *number < 100)?;
        }
        given.next().is_none().then_some(Self(parts[0] * 10_000 + parts[1] * 100 + parts[2]))
    }

    /// Parses a greeting, `HELO nuttcp v6.1.2`.
    #[must_use]
    pub fn parse_greeting(line: &str) -> Option<Self> {
        Self::parse(line.strip_prefix("HELO nuttcp v")?)
    }

    /// Encodes the greeting.
    #[must_use]
    pub fn greeting(self) -> Vec<u8> {
        format!("HELO nuttcp v{self}\n").into_bytes()
    }
}

impl fmt::Display for NuttcpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0 / 10_000, self.0 / 100 % 100, self.0 % 100)
    }
}

/// The output that the client requests: a bit mask that both ends use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NuttcpFormat(pub u32);

impl NuttcpFormat {
    /// Show the transmitter's counts in the lines of a datagram receiver.
    pub const XMIT_STATS: u32 = 0x1;
    /// Show running totals in interval lines.
    pub const RUNNING_TOTAL: u32 = 0x4;
    /// Hide the number of lost datagrams.
    pub const NO_DROPS: u32 = 0x8;
    /// Hide the share of lost datagrams.
    pub const NO_PERCENT_LOSS: u32 = 0x10;
    /// Print lines of `key=value`.
    pub const PARSE: u32 = 0x40;
    /// Hide retransmissions.
    pub const NO_RETRANS: u32 = 0x100;
    /// Show more about retransmissions.
    pub const DEBUG_RETRANS: u32 = 0x200;
    /// Hide notes about beta versions.
    pub const NO_BETA: u32 = 0x400;
    /// Show the round-trip time of the handshake (the default).
    pub const WANT_RTT: u32 = 0x800;
    /// Hide the congestion window.
    pub const NO_CWND: u32 = 0x2000;

    /// Whether a bit is set.
    #[must_use]
    pub const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

impl Default for NuttcpFormat {
    fn default() -> Self {
        Self(Self::WANT_RTT)
    }
}

/// The request of a client, in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct NuttcpRequest {
    /// Length of a block, or payload of a datagram, bytes.
    pub buflen: u64,
    /// Number of blocks to send; absent for no limit.
    pub nbuf: Option<u64>,
    /// Socket buffer of the server, bytes; 0 for the kernel's default.
    pub win: u64,
    /// Number of streams.
    pub nstream: u64,
    /// Rate of all streams together, kbit/s; absent for no limit.
    pub rate_kbps: Option<u64>,
    /// Port of the first data stream.
    pub port: u64,
    /// Whether the client transmits.
    pub trans: bool,
    /// Whether both socket buffers are set instead of only the one used for data.
    pub braindead: bool,
    /// Duration of the sending; 0 for no limit.
    pub timeout: Span,
    /// Whether the transport is UDP.
    pub udp: bool,
    /// Version of the client.
    pub vers: NuttcpVersion,
    /// Interval of the receiver's lines; 0 for none.
    pub interval: Span,
    /// Whether the data connection is opened in the other direction.
    pub flip: bool,
    /// The requested output.
    pub format: NuttcpFormat,
    /// Whether the server should trace the route instead.
    pub traceroute: bool,
    /// Whether the rate is instantaneous: no datagram may be sent early to catch up.
    pub irate: bool,
    /// Whether the server should run a test with a third host.
    pub third_party: bool,
    /// Time to live for multicast; 0 for unicast.
    pub multicast: u64,
    /// Segment size of the data connections; 0 for the kernel's default.
    pub datamss: u64,
    /// Type-of-service byte.
    pub tos: u8,
    /// Whether the number of blocks was given in bytes.
    pub nbuf_bytes: bool,
    /// Whether the rate was given in packets.
    pub rate_pps: bool,
    /// TCP_NODELAY at the transmitter.
    pub nodelay: bool,
    /// Number of datagrams per burst.
    pub maxburst: u64,
    /// Which values of the jitter are reported.
    pub do_jitter: u64,
    /// Which values of the one-way delay are reported.
    pub do_owd: u64,
    /// CPU of the server; absent for any.
    pub affinity: Option<u32>,
    /// Source port of the data connections; 0 for any.
    pub srcport: u64,
    /// Whether an instantaneous rate begins with a smoothed slow start.
    pub smoothed_start: bool,
    /// Whether the streams use several addresses (`multilink` or `stride`).
    pub several_paths: bool,
}

impl Default for NuttcpRequest {
    fn default() -> Self {
        Self {
            buflen: 65_536,
            nbuf: None,
            win: 0,
            nstream: 1,
            rate_kbps: None,
            port: u64::from(super::DATA_PORT),
            trans: true,
            braindead: false,
            timeout: Span::from_secs(10),
            udp: false,
            vers: NuttcpVersion::REPORTED,
            interval: Span::ZERO,
            flip: false,
            format: NuttcpFormat::default(),
            traceroute: false,
            irate: false,
            third_party: false,
            multicast: 0,
            datamss: 0,
            tos: 0,
            nbuf_bytes: false,
            rate_pps: false,
            nodelay: false,
            maxburst: 1,
            do_jitter: 0,
            do_owd: 0,
            affinity: None,
            srcport: 0,
            smoothed_start: false,
            several_paths: false,
        }
    }
}

/// Items that every request has, in this order.
const BASE: [&str; 11] =
    ["buflen", "nbuf", "win", "nstream", "rate", "port", "trans", "braindead", "timeout", "udp", "vers"];

impl NuttcpRequest {
    /// Encodes the line for a server of this version, with its line feed. For an older server, items that it
    /// does not know are omitted. Those servers expect the blanks before some commas.
    #[must_use]
    pub fn encode(&self, server: NuttcpVersion) -> Vec<u8> {
        let seconds = self.timeout.as_secs_f64();
        let bit = u8::from;
        let timeout = if server.0 < 30_200 { format!("{seconds:.0}") } else { format!("{seconds:.6}") };
        let mut line = format!(
            "buflen = {}, nbuf = {}, win = {}, nstream = {}, rate = {}, port = {}, trans = {}, braindead = {}, \
             timeout = {timeout}, udp = {}, vers = {}",
            self.buflen,
            self.nbuf.unwrap_or(NO_COUNT),
            self.win,
            self.nstream,
            self.rate_kbps.unwrap_or(NO_RATE),
            self.port,
            bit(self.trans),
            bit(self.braindead),
            bit(self.udp),
            self.vers
        );
        let newer = [
            (30_302, format!(", interval = {:.6}", self.interval.as_secs_f64())),
            (30_401, format!(", reverse = {}", bit(self.flip))),
            (30_501, format!(", format = {}", self.format.0)),
            (30_601, format!(", traceroute = {}, irate = {}", bit(self.traceroute), bit(self.irate))),
            (50_001, ", thirdparty = _NULL_".to_owned()),
            (50_101, format!(" , multicast = {}", self.multicast)),
            (60_201, " , ssm = 0".to_owned()),
            (50_201, format!(" , datamss = {}", self.datamss)),
            (50_301, format!(" , tos = {:x}", self.tos)),
            (
                50_501,
                format!(
                    " , nbuf_bytes = {} , rate_pps = {} , nodelay = {}",
                    bit(self.nbuf_bytes),
                    bit(self.rate_pps),
                    bit(self.nodelay)
                ),
            ),
            (60_206, format!(" , affinity = {}", self.affinity.map_or(-1, i64::from))),
            (60_207, format!(" , maxburst = {}", self.maxburst)),
            (70_001, format!(" , do_jitter = {} , do_owd = {}", self.do_jitter, self.do_owd)),
            (70_101, format!(" , stride = 0 , multilink = {}", bit(self.several_paths))),
            (70_201, ", group = _NULL_".to_owned()),
            (70_301, format!(" , srcport = {}", self.srcport)),
            (80_101, format!(", iratesss = {}", bit(self.smoothed_start))),
        ];
        for (since, item) in newer {
            if server.0 >= since {
                line.push_str(&item);
            }
        }
        line.push('\n');
        line.into_bytes()
    }

    /// Decodes a request; absent if one of the first items is missing, or if a known item is not a number.
    #[must_use]
    pub fn decode(line: &str) -> Option<Self> {
        let mut items = Vec::new();
        for item in line.split(',') {
            let (name, value) = item.split_once('=')?;
            items.push((name.trim(), value.trim()));
        }
        if items.len() < BASE.len() || items.iter().zip(BASE).any(|((name, _), base)| *name != base) {
            return None;
        }
        let mut request = Self { format: NuttcpFormat(0), ..Self::default() };
        for (name, value) in items {
            request.set(name, value)?;
        }
        Some(request)
    }

    /// Sets one item; unknown items of later versions are ignored.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let number = || value.parse::<u64>().ok();
        let flag = || value.parse::<i64>().ok().map(|number| number != 0);
        let span = || value.parse::<f64>().ok().and_then(Span::from_secs_f64);
        match name {
            "buflen" => self.buflen = number()?,
            "nbuf" => self.nbuf = Some(number()?).filter(|count| *count < NO_COUNT),
            "win" => self.win = number()?,
            "nstream" => self.nstream = number()?,
            "rate" => self.rate_kbps = Some(number()?).filter(|rate| (1..NO_RATE).contains(rate)),
            "port" => self.port = number()?,
            "trans" => self.trans = flag()?,
            "braindead" => self.braindead = flag()?,
            "timeout" => self.timeout = span()?,
            "udp" => self.udp = flag()?,
            "vers" => self.vers = NuttcpVersion::parse(value)?,
            "interval" => self.interval = span()?,
            "reverse" => self.flip = flag()?,
            "format" => self.format = NuttcpFormat(value.parse().ok()?),
            "traceroute" => self.traceroute = flag()?,
            "irate" => self.irate = flag()?,
            "thirdparty" => self.third_party = value != "_NULL_",
            "multicast" => self.multicast = number()?,
            "datamss" => self.datamss = number()?,
            "tos" => self.tos = u8::from_str_radix(value, 16).ok()?,
            "nbuf_bytes" => self.nbuf_bytes = flag()?,
            "rate_pps" => self.rate_pps = flag()?,
            "nodelay" => self.nodelay = flag()?,
            "maxburst" => self.maxburst = number()?,
            "do_jitter" => self.do_jitter = number()?,
            "do_owd" => self.do_owd = number()?,
            // -1 for any.
            "affinity" => self.affinity = value.parse::<i64>().ok().map(|cpu| u32::try_from(cpu).ok())?,
            "srcport" => self.srcport = number()?,
            "iratesss" => self.smoothed_start = flag()?,
            "stride" | "multilink" => self.several_paths |= flag()?,
            _ => {}
        }
        Some(())
    }
}

/// Splits a byte stream into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    held: Vec<u8>,
    /// Where to search for the next line feed, so that a long line in small pieces is scanned only once.
    seen: usize,
}

impl LineSplitter {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next line without its end; absent while bytes are missing. A line that is too long is returned in
    /// pieces.
    pub fn pull(&mut self) -> Option<String> {
        let end = self.held.iter().skip(self.seen).position(|byte| *byte == b'\n').map(|at| at + self.seen);
        let (length, used) = match end {
            Some(end) if end <= LINE_LIMIT => (end, end + 1),
            _ if self.held.len() > LINE_LIMIT => (LINE_LIMIT, LINE_LIMIT),
            _ => {
                self.seen = self.held.len();
                return None;
            }
        };
        let line = one_line(String::from_utf8_lossy(self.held.get(..length)?).trim_end_matches('\r'));
        self.held.drain(..used);
        self.seen = 0;
        Some(line)
    }

    /// What has arrived after the last line feed.
    #[must_use]
    pub fn rest(&self) -> String {
        one_line(&String::from_utf8_lossy(&self.held))
    }
}
