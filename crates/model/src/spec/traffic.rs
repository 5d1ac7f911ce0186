//! What to send, how much and how fast.

use std::net::IpAddr;

use linerate_units::{Bitrate, Bytes, Ratio, Span};
use serde::{Deserialize, Serialize};

use super::{SpecError, multicast};

/// What to send, how much and how fast.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Traffic {
    /// Measure with UDP instead of TCP
    #[cfg_attr(feature = "clap", arg(short = 'u', long, conflicts_with = "mptcp", help_heading = "Traffic"))]
    pub udp: bool,
    /// Measure with MPTCP; if a kernel lacks it, plain TCP is used and reported
    #[cfg_attr(feature = "clap", arg(short = 'm', long, help_heading = "Traffic"))]
    pub mptcp: bool,
    /// Measure only from here to the server
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["download", "bidir"], help_heading = "Traffic"))]
    pub upload: bool,
    /// Measure only from the server to here
    #[cfg_attr(
        feature = "clap",
        arg(
            short = 'R',
            long,
            visible_alias = "reverse",
            conflicts_with = "bidir",
            help_heading = "Traffic"
        )
    )]
    pub download: bool,
    /// Measure both directions at the same time
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Traffic"))]
    pub bidir: bool,
    /// How long each direction is measured [default: 10s]
    #[cfg_attr(
        feature = "clap",
        arg(short = 't', long = "time", value_name = "SECONDS", conflicts_with_all = ["bytes", "blocks"], help_heading = "Traffic")
    )]
    #[serde(rename = "duration_ns", skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Send this many bytes in each direction instead of for a time (K, M, G are binary)
    #[cfg_attr(
        feature = "clap",
        arg(short = 'n', long, value_name = "BYTES", conflicts_with = "blocks", help_heading = "Traffic")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// Send this many blocks of the length given by -l in each direction instead of for a time
    #[cfg_attr(
        feature = "clap",
        arg(short = 'k', long = "blockcount", value_name = "BLOCKS", help_heading = "Traffic")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Number of parallel streams, 1 to 10000
    #[cfg_attr(
        feature = "clap",
        arg(short = 'P', long = "parallel", value_name = "STREAMS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Traffic")
    )]
    pub streams: u32,
    /// Offer at most this bit rate in each stream (k, M, G are decimal); 0 saturates [default: 0, for UDP 1M]
    #[cfg_attr(
        feature = "clap",
        arg(short = 'b', long = "bitrate", value_name = "RATE", help_heading = "Traffic")
    )]
    #[serde(rename = "rate_bps", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bitrate>,
    /// With -b, send what is due within this time at once at its start, for example 100ms
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME", help_heading = "Traffic"))]
    #[serde(rename = "burst_period_ns", skip_serializing_if = "Option::is_none")]
    pub burst_period: Option<Span>,
    /// Let the kernel pace each stream to this bit rate (SO_MAX_PACING_RATE), independent of -b
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", help_heading = "Traffic"))]
    #[serde(rename = "fq_rate_bps", skip_serializing_if = "Option::is_none")]
    pub fq_rate: Option<Bitrate>,
    /// Give each datagram its time of departure, which the queueing discipline fq or etf keeps (SO_TXTIME); needs -u
    #[cfg_attr(
        feature = "clap",
        arg(long, conflicts_with_all = ["burst_period", "mptcp"], help_heading = "Traffic")
    )]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub txtime: bool,
    /// Bytes per write; for UDP the payload of one datagram [default: by stream count, for UDP by the path]
    #[cfg_attr(feature = "clap", arg(short = 'l', long, value_name = "BYTES", help_heading = "Traffic"))]
    #[serde(rename = "length_bytes", skip_serializing_if = "Option::is_none")]
    pub length: Option<Bytes>,
    /// Exclude this time at the start from the result; the log still contains it
    #[cfg_attr(feature = "clap", arg(short = 'O', long, value_name = "SECONDS", help_heading = "Traffic"))]
    #[serde(rename = "omit_ns", skip_serializing_if = "Option::is_none")]
    pub omit: Option<Span>,
    /// Interval of the printed rows and of the samples in results
    #[cfg_attr(
        feature = "clap",
        arg(short = 'i', long, value_name = "SECONDS", default_value = "1", help_heading = "Traffic")
    )]
    #[serde(rename = "interval_ns")]
    pub interval: Span,
    /// Let the receiver read at most this bit rate in each stream, to simulate a slow reader
    #[cfg_attr(feature = "clap", arg(long, value_name = "RATE", help_heading = "Traffic"))]
    #[serde(rename = "read_rate_bps", skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<Bitrate>,
    /// Stop once the mean is known this well (95 % interval), for example 1%, or after -t [default of -t: 60s]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", conflicts_with_all = ["bytes", "blocks"], help_heading = "Traffic"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Ratio>,
    /// Send the datagrams to this multicast group, of which the server becomes a receiver; needs -u
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "GROUP", conflicts_with_all = ["download", "bidir", "mptcp"], help_heading = "Traffic")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<IpAddr>,
    /// Routers that datagrams to a multicast group may pass, plus one [default: 1, which stays in the network]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "HOPS", requires = "multicast", value_parser = clap::value_parser!(u8).range(1..), help_heading = "Traffic")
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// Do not measure latency, neither idle nor under load
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Traffic"))]
    pub no_latency: bool,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            udp: false,
            mptcp: false,
            upload: false,
            download: false,
            bidir: false,
            duration: None,
            bytes: None,
            blocks: None,
            streams: 1,
            rate: None,
            burst_period: None,
            fq_rate: None,
            txtime: false,
            length: None,
            omit: None,
            interval: Span::from_secs(1),
            read_rate: None,
            until: None,
            multicast: None,
            ttl: None,
            no_latency: false,
        }
    }
}

/// The transport that carries the data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP datagrams.
    Udp,
    /// Multipath TCP; plain TCP if a kernel lacks it.
    Mptcp,
}

impl Transport {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Mptcp => "mptcp",
        }
    }
}

/// Direction of the data as seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Upload,
    /// From the server to the client.
    Download,
}

impl Direction {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::Download => "download",
        }
    }
}

/// When a sender stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StopAfter {
    /// After this time.
    TimeNs(Span),
    /// After this many bytes, over all streams.
    Bytes(Bytes),
}

/// How the traffic of one run differs from the traffic of another on the same path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation {
    /// Datagrams instead of TCP.
    pub udp: bool,
    /// The only direction.
    pub direction: Direction,
    /// Number of streams.
    pub streams: u32,
    /// Duration.
    pub duration: Span,
    /// Rate each stream offers; absent for the default.
    pub each: Option<Bitrate>,
    /// Pace of each TCP connection.
    pub pace: Option<Bitrate>,
    /// Payload of a datagram; absent if the path determines it. Over TCP the length of a block; absent to keep
    /// that of the first run.
    pub length: Option<Bytes>,
    /// Whether latency is measured.
    pub latency: bool,
}

/// The longest test: one day.
const MAX_DURATION: Span = Span::from_secs(86_400);

/// Longest block over TCP.
const MAX_BLOCK: u64 = 64 << 20;

/// Longest block over TCP if the test leaves the length to the hosts.
const MAX_DEFAULT_BLOCK: u64 = 1 << 20;

/// Shortest and longest payload of a datagram: our header, and the maximum for UDP over IPv4.
const DATAGRAM_BYTES: std::ops::RangeInclusive<u64> = 32..=65_507;

impl Traffic {
    /// The requested transport.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        if self.udp {
            Transport::Udp
        } else if self.mptcp {
            Transport::Mptcp
        } else {
            Transport::Tcp
        }
    }

    /// The directions, phase after phase; simultaneous directions share one phase.
    #[must_use]
    pub fn phases(&self) -> Vec<Vec<Direction>> {
        if self.bidir {
            vec![vec![Direction::Upload, Direction::Download]]
        } else if self.upload || self.multicast.is_some() {
            vec![vec![Direction::Upload]]
        } else if self.download {
            vec![vec![Direction::Download]]
        } else {
            vec![vec![Direction::Download], vec![Direction::Upload]]
        }
    }

    /// When the sender stops, for the given block length.
    #[must_use]
    pub fn stop_after(&self, length: Bytes) -> StopAfter {
        if let Some(bytes) = self.bytes {
            StopAfter::Bytes(bytes)
        } else if let Some(blocks) = self.blocks {
            StopAfter::Bytes(Bytes::new(blocks.saturating_mul(length.get())))
        } else {
            StopAfter::TimeNs(self.measured() + self.omit.unwrap_or_default())
        }
    }

    /// The requested measuring time, without the omitted part.
    #[must_use]
    pub fn measured(&self) -> Span {
        let default = Span::from_secs(if self.until.is_some() { 60 } else { 10 });
        self.duration.unwrap_or(default)
    }

    /// The rate each stream offers; absent if it saturates.
    #[must_use]
    pub fn offered(&self) -> Option<Bitrate> {
        match self.rate {
            Some(rate) if rate == Bitrate::ZERO => None,
            None if self.udp => Bitrate::from_bps(1e6),
            rate => rate,
        }
    }

    /// The same traffic with the changes of the variation: in one direction, for a time, with nothing omitted.
    #[must_use]
    pub fn varied(&self, by: &Variation) -> Self {
        Self {
            udp: by.udp,
            mptcp: self.mptcp && !by.udp,
            upload: by.direction == Direction::Upload,
            download: by.direction == Direction::Download,
            duration: Some(by.duration),
            streams: by.streams,
            rate: by.each,
            fq_rate: by.pace,
            length: by.length.or(self.length.filter(|_| !by.udp)),
            interval: self.interval,
            no_latency: !by.latency,
            ..Self::default()
        }
    }

    /// Longest block or datagram of this traffic.
    #[must_use]
    pub fn longest_block(&self) -> Bytes {
        let chosen = if self.udp { *DATAGRAM_BYTES.end() } else { MAX_DEFAULT_BLOCK };
        self.length.unwrap_or(Bytes::new(chosen))
    }

    /// Checks whether a flow of this traffic can have blocks or datagrams of `length`: the requested length, or
    /// one that hosts choose if none was requested.
    ///
    /// # Errors
    /// The flow cannot have this length.
    pub fn check_length(&self, length: Bytes) -> Result<(), SpecError> {
        let chosen = if self.udp { DATAGRAM_BYTES } else { 1..=MAX_DEFAULT_BLOCK };
        let fits = self.length.map_or(chosen.contains(&length.get()), |asked| asked == length);
        if fits {
            return Ok(());
        }
        let trouble = format!("a flow with blocks of {} does not match the request", length.exact());
        let remedy = format!("give blocks of at most {}", self.longest_block().exact());
        Err(SpecError { knob: "--length", trouble, remedy })
    }

    /// The settings that apply only to a stream of data, and whether they were given.
    pub(super) fn stream_knobs(&self) -> [(bool, &'static str); 13] {
        [
            (self.upload, "--upload"),
            (self.download, "--download"),
            (self.bidir, "--bidir"),
            (self.bytes.is_some(), "--bytes"),
            (self.blocks.is_some(), "--blockcount"),
            (self.rate.is_some(), "--bitrate"),
            (self.burst_period.is_some(), "--burst-period"),
            (self.fq_rate.is_some(), "--fq-rate"),
            (self.txtime, "--txtime"),
            (self.length.is_some(), "--length"),
            (self.read_rate.is_some(), "--read-rate"),
            (self.until.is_some(), "--until"),
            (self.multicast.is_some(), "--multicast"),
        ]
    }

    /// Checks when what is sent leaves.
    fn check_departures(&self) -> Result<(), SpecError> {
        let fail = |knob, trouble: &str, remedy: &str| {
            Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
        };
        if let Some(period) = self.burst_period {
            if period < Span::from_ms(1) || period > Span::from_secs(60) {
                return fail("--burst-period", "the time is out of range", "give 1ms to 60 seconds");
            }
            if self.offered().is_none() {
                let trouble = "without a rate there is no burst and no pause";
                return fail("--burst-period", trouble, "give the average rate with -b");
            }
            if self.bytes.is_some() || self.blocks.is_some() {
                let trouble = "the pause after the last burst has no end without a time";
                return fail("--burst-period", trouble, "give a time with -t");
            }
            let whole = |time: Span| time.as_ns().is_multiple_of(period.as_ns().max(1));
            if !whole(self.measured()) || !self.omit.is_none_or(whole) || self.until.is_some() {
                let trouble = "a part of a period would make the rate wrong";
                let remedy = "give a time (and -O) of whole periods, without --until";
                return fail("--burst-period", trouble, remedy);
            }
            if self.fq_rate.is_some() {
                return fail("--burst-period", "--fq-rate would spread each burst", "remove one of them");
            }
        }
        if self.txtime {
            if !self.udp {
                let trouble = "only datagrams depart one by one";
                return fail("--txtime", trouble, "add -u; --fq-rate paces TCP");
            }
            if self.offered().is_none() {
                return fail(
                    "--txtime",
                    "without a rate there are no times to keep",
                    "give the rate with -b",
                );
            }
            if self.burst_period.is_some() {
                let trouble = "the datagrams of a burst have no times of their own";
                return fail("--txtime", trouble, "remove --burst-period");
            }
        }
        if self.fq_rate.is_some_and(|r| r.bps() < 8.0) {
            return fail("--fq-rate", "the rate is too small", "give at least 8 bit/s");
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let fail = |knob, trouble: &str, remedy: &str| {
            Err(SpecError { knob, trouble: trouble.to_owned(), remedy: remedy.to_owned() })
        };
        if self.streams == 0 || self.streams > 10_000 {
            return fail("--parallel", "the number of streams is out of range", "give 1 to 10000");
        }
        if self.duration.is_some_and(|d| d < Span::from_ms(10) || d > MAX_DURATION) {
            return fail("--time", "the time is out of range", "give 0.01 to 86400 seconds");
        }
        if self.bytes.is_some_and(|b| b.get() == 0) {
            return fail("--bytes", "there is nothing to send", "give at least 1 byte");
        }
        if self.blocks == Some(0) {
            return fail("--blockcount", "there is nothing to send", "give at least 1 block");
        }
        self.check_departures()?;
        if self.omit.is_some_and(|o| o > Span::from_secs(600)) {
            return fail("--omit", "the omitted time is out of range", "give 0 to 600 seconds");
        }
        if self.interval < Span::from_ms(10) || self.interval > Span::from_secs(3600) {
            return fail("--interval", "the interval is out of range", "give 0.01 to 3600 seconds");
        }
        if self.until.is_some_and(|u| u.get() < 1e-4 || u.get() > 0.5) {
            return fail("--until", "the share is out of range", "give 0.01% to 50%");
        }
        let longest = if self.udp { *DATAGRAM_BYTES.end() } else { MAX_BLOCK };
        if self.length.is_some_and(|l| l.get() == 0 || l.get() > longest) {
            let remedy =
                if self.udp { "give 32 to 65507 bytes for a datagram" } else { "give 1 byte to 64M" };
            return fail("--length", "the length is out of range", remedy);
        }
        if self.udp && self.length.is_some_and(|l| l.get() < *DATAGRAM_BYTES.start()) {
            return fail(
                "--length",
                "every datagram contains a 32-byte header of linerate",
                "give 32 to 65507 bytes",
            );
        }
        if self.read_rate.is_some_and(|r| r.bps() < 8.0) {
            return fail("--read-rate", "the rate is too small", "give at least 8 bit/s");
        }
        multicast::check(self)
    }
}
