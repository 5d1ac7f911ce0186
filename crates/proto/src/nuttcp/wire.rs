//! The control connection: lines, versions and the request.

use std::fmt;

use linerate_model::foreign_text::one_line;
use linerate_units::Span;

/// Longest line that is taken, bytes without the line feed. A request of 8.2.2 has 490.
pub const LINE_LIMIT: usize = 4096;

/// What `rate` says when there is no limit.
const NO_RATE: u64 = 4_294_967_295;

/// What `nbuf` says when there is no limit.
const NO_COUNT: u64 = 2_147_483_647;

/// Version of nuttcp: `major * 10000 + minor * 100 + delta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32);

impl Version {
    /// What these stand-ins say they are.
    pub const REPORTED: Self = Self(80_202);

    /// A version by its number, for example 60102.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Reads `6.1.2`; parts that are missing are 0.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = [0_u32; 3];
        let mut given = text.trim().split('.');
        for (part, digits) in parts.iter_mut().zip(&mut given) {
            *part = digits.parse().ok().filter(|number| *number < 100)?;
        }
        given.next().is_none().then_some(Self(parts[0] * 10_000 + parts[1] * 100 + parts[2]))
    }

    /// Reads a greeting, `HELO nuttcp v6.1.2`.
    #[must_use]
    pub fn parse_greeting(line: &str) -> Option<Self> {
        Self::parse(line.strip_prefix("HELO nuttcp v")?)
    }

    /// The greeting as it is sent.
    #[must_use]
    pub fn greeting(self) -> Vec<u8> {
        format!("HELO nuttcp v{self}\n").into_bytes()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0 / 10_000, self.0 / 100 % 100, self.0 % 100)
    }
}

/// What the client wants printed: a mask of bits that both sides obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format(pub u32);

impl Format {
    /// What the transmitter sent, in lines of a receiver of datagrams.
    pub const XMIT_STATS: u32 = 0x1;
    /// Sums since the start in interval lines.
    pub const RUNNING_TOTAL: u32 = 0x4;
    /// No counts of lost datagrams.
    pub const NO_DROPS: u32 = 0x8;
    /// No share of lost datagrams.
    pub const NO_PERCENT_LOSS: u32 = 0x10;
    /// Lines of `key=value`.
    pub const PARSE: u32 = 0x40;
    /// No retransmissions.
    pub const NO_RETRANS: u32 = 0x100;
    /// More about retransmissions.
    pub const DEBUG_RETRANS: u32 = 0x200;
    /// No words about test versions.
    pub const NO_BETA: u32 = 0x400;
    /// The round-trip time of the handshake (the default).
    pub const WANT_RTT: u32 = 0x800;
    /// No congestion window.
    pub const NO_CWND: u32 = 0x2000;

    /// Whether a bit is set.
    #[must_use]
    pub const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }
}

impl Default for Format {
    fn default() -> Self {
        Self(Self::WANT_RTT)
    }
}

/// What a client asks for, in one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Bytes of a block, or payload of a datagram.
    pub buflen: u64,
    /// Blocks to send; absent without limit.
    pub nbuf: Option<u64>,
    /// Socket buffer of the server, bytes; 0 leaves it to the system.
    pub win: u64,
    /// Number of streams.
    pub nstream: u64,
    /// Rate of all streams together, kbit/s; absent without limit.
    pub rate_kbps: Option<u64>,
    /// Port of the first data stream.
    pub port: u64,
    /// The client transmits.
    pub trans: bool,
    /// Both buffers are set, not only the one that carries data.
    pub braindead: bool,
    /// How long is sent; 0 without limit.
    pub timeout: Span,
    /// Over UDP.
    pub udp: bool,
    /// Version of the client.
    pub vers: Version,
    /// Interval of the receiver's lines; 0 for none.
    pub interval: Span,
    /// The data connection is opened the other way round.
    pub flip: bool,
    /// What is printed.
    pub format: Format,
    /// The server shall trace the route instead.
    pub traceroute: bool,
    /// No datagram may leave earlier than its turn.
    pub irate: bool,
    /// The server shall run a test with a third host.
    pub third_party: bool,
    /// Time to live of multicast; 0 for unicast.
    pub multicast: u64,
    /// Segment size of the data connections; 0 leaves it to the system.
    pub datamss: u64,
    /// Type-of-service byte.
    pub tos: u8,
    /// The count was given in bytes.
    pub nbuf_bytes: bool,
    /// The rate was given in packets.
    pub rate_pps: bool,
    /// TCP_NODELAY at the transmitter.
    pub nodelay: bool,
    /// Datagrams that may leave together.
    pub maxburst: u64,
    /// What of the jitter is told.
    pub do_jitter: u64,
    /// What of the one-way delay is told.
    pub do_owd: u64,
}

impl Default for Request {
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
            vers: Version::REPORTED,
            interval: Span::ZERO,
            flip: false,
            format: Format::default(),
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
        }
    }
}

/// Items that every request has, in this order.
const BASE: [&str; 11] =
    ["buflen", "nbuf", "win", "nstream", "rate", "port", "trans", "braindead", "timeout", "udp", "vers"];

impl Request {
    /// The line as it is sent to a server of this version, with its line feed. A server older than an item reads the
    /// line without it; the blanks before some commas are what those servers look for.
    #[must_use]
    pub fn encode(&self, server: Version) -> Vec<u8> {
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
            (60_206, " , affinity = -1".to_owned()),
            (60_207, format!(" , maxburst = {}", self.maxburst)),
            (70_001, format!(" , do_jitter = {} , do_owd = {}", self.do_jitter, self.do_owd)),
            (70_101, " , stride = 0 , multilink = 0".to_owned()),
            (70_201, ", group = _NULL_".to_owned()),
            (70_301, " , srcport = 0".to_owned()),
            (80_101, ", iratesss = 0".to_owned()),
        ];
        for (since, item) in newer {
            if server.0 >= since {
                line.push_str(&item);
            }
        }
        line.push('\n');
        line.into_bytes()
    }

    /// Reads a request; absent when one of the first items is missing or an item that is understood is no number.
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
        let mut request = Self { format: Format(0), ..Self::default() };
        for (name, value) in items {
            request.set(name, value)?;
        }
        Some(request)
    }

    /// Takes one item; items of later versions are none of ours.
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
            "vers" => self.vers = Version::parse(value)?,
            "interval" => self.interval = span()?,
            "reverse" => self.flip = flag()?,
            "format" => self.format = Format(value.parse().ok()?),
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
            _ => {}
        }
        Some(())
    }
}

/// Cuts a byte stream into lines.
#[derive(Debug, Default)]
pub struct Lines {
    held: Vec<u8>,
    /// Where a line feed is looked for next, so that long lines in small pieces cost no more.
    seen: usize,
}

impl Lines {
    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next line without its end, unless more bytes are needed. A line that is too long comes in pieces.
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

    /// What came after the last line feed.
    #[must_use]
    pub fn rest(&self) -> String {
        one_line(&String::from_utf8_lossy(&self.held))
    }
}
