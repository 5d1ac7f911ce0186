//! The parameters of a test, as the client sends them and the server checks them.

use serde::{Serialize, Serializer};

use super::errors::Iperf3ErrorNumber;
use super::json::Iperf3Json;
use super::settings::{EndCondition, Iperf3Settings};

/// Default block length of a byte stream.
const DEFAULT_BLOCK: i64 = 128 << 10;

/// Default interval of the pacing timer, microseconds.
const PACING_TIMER: i64 = 1000;

/// Largest UDP payload in an IPv4 packet.
const MAX_DATAGRAM_BYTES: i64 = 65_507;

/// Most datagrams in one GSO buffer (UDP_MAX_SEGMENTS of the kernel).
const MAX_SEGMENTS: i64 = 128;

/// The parameters of a test. Numbers are unchecked values from the wire until [`Params::check`] has accepted
/// them.
///
/// # Source
/// iperf3 3.12 and 3.21: the names and the order of the keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Params {
    /// TCP; exactly one of three keys selects the transport.
    #[serde(skip_serializing_if = "no")]
    pub tcp: bool,
    /// UDP.
    #[serde(skip_serializing_if = "no")]
    pub udp: bool,
    /// SCTP.
    #[serde(skip_serializing_if = "no")]
    pub sctp: bool,
    /// Omitted seconds at the start.
    pub omit: i64,
    /// CPU for the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_affinity: Option<i64>,
    /// Duration in seconds after the omitted part; 0 for no limit.
    pub time: i64,
    /// Bytes after which the client ends the test; 0 for no limit.
    pub num: i64,
    /// Blocks after which the client ends the test; 0 for no limit.
    pub blockcount: i64,
    /// Maximum segment size, bytes.
    #[serde(rename = "MSS", skip_serializing_if = "Option::is_none")]
    pub mss: Option<i64>,
    /// Whether Nagle's algorithm is disabled.
    #[serde(skip_serializing_if = "no")]
    pub nodelay: bool,
    /// Number of streams in each direction.
    pub parallel: i64,
    /// Whether the server sends.
    #[serde(skip_serializing_if = "no")]
    pub reverse: bool,
    /// Whether both ends send.
    #[serde(skip_serializing_if = "no")]
    pub bidirectional: bool,
    /// Multipath TCP.
    #[serde(skip_serializing_if = "no")]
    pub mptcp: bool,
    /// Both socket buffers, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<i64>,
    /// Length of a block or datagram, bytes.
    pub len: i64,
    /// Rate of each stream, bit/s; 0 for no limit.
    #[serde(skip_serializing_if = "zero")]
    pub bandwidth: i64,
    /// Rate to which the kernel paces each stream, bit/s; 0 for none.
    #[serde(skip_serializing_if = "zero")]
    pub fqrate: i64,
    /// Interval of the pacing timer, microseconds; 0 for none.
    #[serde(skip_serializing_if = "zero")]
    pub pacing_timer: i64,
    /// Number of blocks per burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<i64>,
    /// GSO and GRO; UDP only.
    #[serde(flatten)]
    pub bundles: Option<Bundles>,
    /// Type-of-service byte.
    #[serde(rename = "TOS", skip_serializing_if = "zero")]
    pub tos: i64,
    /// IPv6 flow label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flowlabel: Option<i64>,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Text that is copied to the JSON of both ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_data: Option<String>,
    /// Congestion control algorithm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Whether the client requests the server's report.
    #[serde(skip_serializing_if = "no", serialize_with = "one")]
    pub get_server_output: bool,
    /// Whether datagram numbers have 8 bytes.
    #[serde(skip_serializing_if = "no", serialize_with = "one")]
    pub udp_counters_64bit: bool,
    /// Whether the payload is digits instead of random bytes.
    #[serde(skip_serializing_if = "no", serialize_with = "one")]
    pub repeating_payload: bool,
    /// Whether a sender uses sendfile.
    #[serde(skip_serializing_if = "no", serialize_with = "one")]
    pub zerocopy: bool,
    /// Whether datagrams must not be fragmented.
    #[serde(skip_serializing_if = "no", serialize_with = "one")]
    pub dont_fragment: bool,
    /// The encrypted login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authtoken: Option<String>,
    /// Whether receivers discard data without copying them.
    #[serde(skip_serializing_if = "no", serialize_with = "one")]
    pub skip_rx_copy: bool,
    /// Name and version of the client, as free text.
    pub client_version: String,
}

/// GSO at the sender and GRO at the receiver (iperf3 3.21).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bundles {
    /// Whether the sender should use GSO (1).
    pub gso: i64,
    /// Length of a datagram in a GSO buffer; 0 without GSO.
    pub gso_dg_size: i64,
    /// Length of a GSO buffer, bytes.
    pub gso_bf_size: i64,
    /// Whether the receiver should use GRO (1).
    pub gro: i64,
    /// Length of a GRO buffer, bytes.
    pub gro_bf_size: i64,
}

/// The limits of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Iperf3Limits {
    /// Rate over all streams, bit/s.
    pub bitrate: Option<u64>,
    /// Seconds of a test, including the omitted ones.
    pub seconds: Option<u64>,
    /// Whether it writes received data to a file.
    pub file: bool,
}

impl Params {
    /// The parameters for a client's settings. `block` is the actual block length.
    #[must_use]
    pub fn of(settings: &Iperf3Settings, block: u64, token: Option<String>) -> Self {
        let client = &settings.client;
        let (time, num, blockcount) = match client.end {
            EndCondition::Time(seconds) => (u64::from(seconds), 0, 0),
            EndCondition::Bytes(bytes) => (0, bytes, 0),
            EndCondition::Blocks(blocks) => (0, 0, blocks),
        };
        Self {
            tcp: !client.udp,
            udp: client.udp,
            sctp: false,
            omit: i64::from(client.omit),
            server_affinity: client.server_affinity.map(i64::from),
            time: whole(time),
            num: whole(num),
            blockcount: whole(blockcount),
            mss: client.mss.map(i64::from),
            nodelay: client.no_delay,
            parallel: i64::from(client.parallel),
            reverse: client.reverse,
            bidirectional: client.bidir,
            mptcp: client.mptcp,
            window: client.window.map(whole),
            len: whole(block),
            bandwidth: whole(client.bitrate),
            fqrate: whole(client.fq_rate),
            pacing_timer: whole(client.pacing_timer_us),
            burst: client.burst.map(i64::from),
            bundles: client.udp.then(|| Bundles::of(client.gsro, whole(block))),
            tos: i64::from(client.tos),
            flowlabel: client.flow_label.map(i64::from),
            title: client.title.clone(),
            extra_data: client.extra_data.clone(),
            congestion: client.congestion.clone(),
            get_server_output: client.get_server_output,
            udp_counters_64bit: client.udp_counters_64bit,
            repeating_payload: client.repeating_payload,
            zerocopy: client.zerocopy,
            dont_fragment: client.dont_fragment,
            authtoken: token,
            skip_rx_copy: client.skip_rx_copy,
            client_version: format!("linerate {}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Encodes the message.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a message; absent if it is not a JSON object. A key with a value of the wrong type counts as
    /// missing.
    #[must_use]
    pub fn read(json: &[u8]) -> Option<Self> {
        let node = Iperf3Json::parse(json)?;
        if !matches!(node, Iperf3Json::Object(_)) {
            return None;
        }
        let number = |key, default| node.integer(key).unwrap_or(default);
        let text = |key| node.text(key);
        // iperf3 looks for tcp, udp and sctp in this order, and the last one found counts.
        let sctp = node.has("sctp");
        let udp = node.has("udp") && !sctp;
        Some(Self {
            tcp: !udp && !sctp,
            udp,
            sctp,
            omit: number("omit", 0),
            server_affinity: node.integer("server_affinity"),
            time: number("time", 10),
            num: number("num", 0),
            blockcount: number("blockcount", 0),
            mss: node.integer("MSS"),
            nodelay: node.has("nodelay"),
            parallel: number("parallel", 1),
            reverse: node.has("reverse"),
            bidirectional: node.has("bidirectional"),
            mptcp: node.has("mptcp"),
            window: node.integer("window"),
            len: number("len", DEFAULT_BLOCK),
            bandwidth: number("bandwidth", 0),
            fqrate: number("fqrate", 0),
            pacing_timer: number("pacing_timer", PACING_TIMER),
            burst: node.integer("burst"),
            bundles: udp.then(|| Bundles::read(&node)),
            tos: number("TOS", 0),
            flowlabel: node.integer("flowlabel"),
            title: text("title"),
            extra_data: text("extra_data"),
            congestion: text("congestion"),
            get_server_output: node.has("get_server_output"),
            udp_counters_64bit: node.has("udp_counters_64bit"),
            repeating_payload: node.has("repeating_payload"),
            zerocopy: node.integer("zerocopy").is_some_and(|value| value != 0),
            dont_fragment: node.has("dont_fragment"),
            authtoken: text("authtoken"),
            skip_rx_copy: node.has("skip_rx_copy"),
            client_version: text("client_version").unwrap_or_default(),
        })
    }

    /// Checks the values in the order of iperf3.
    ///
    /// # Errors
    /// The last error found, because iperf3 reports only that one.
    pub fn check(&self, limits: &Iperf3Limits) -> Result<(), Iperf3ErrorNumber> {
        let within = |value: Option<i64>, range: std::ops::RangeInclusive<i64>| {
            value.is_none_or(|value| range.contains(&value))
        };
        let checks = [
            (within(Some(self.omit), 0..=600), Iperf3ErrorNumber::OMIT),
            (within(self.server_affinity, 0..=1024), Iperf3ErrorNumber::AFFINITY),
            (within(Some(self.time), 0..=86_400), Iperf3ErrorNumber::DURATION),
            (!self.has_negative(), Iperf3ErrorNumber::RECV_PARAMS),
            (within(self.mss, 0..=32_767), Iperf3ErrorNumber::MSS),
            (within(Some(self.parallel), 1..=128), Iperf3ErrorNumber::PARALLEL),
            (within(self.window, 0..=512 << 20), Iperf3ErrorNumber::BUF_SIZE),
            (self.udp || within(Some(self.len), 1..=1 << 20), Iperf3ErrorNumber::BLOCK_SIZE),
            (!self.udp || within(Some(self.len), 16..=MAX_DATAGRAM_BYTES), Iperf3ErrorNumber::UDP_BLOCK_SIZE),
            (within(self.burst, 1..=1000), Iperf3ErrorNumber::BURST),
            (within(Some(self.tos), 0..=255), Iperf3ErrorNumber::BAD_TOS),
            (within(self.flowlabel, 1..=0xf_ffff), Iperf3ErrorNumber::FLOW_LABEL),
            (!(self.udp && limits.file), Iperf3ErrorNumber::UDP_FILE),
            (!self.is_too_long(limits), Iperf3ErrorNumber::MAX_DURATION),
            (!self.is_too_fast(limits), Iperf3ErrorNumber::TOTAL_RATE),
        ];
        checks.iter().rev().find(|(passes, _)| !passes).map_or(Ok(()), |(_, number)| Err(*number))
    }

    /// Number of streams in both directions.
    #[must_use]
    pub fn streams(&self) -> usize {
        let each = usize::try_from(self.parallel).unwrap_or(0);
        if self.bidirectional { each.saturating_mul(2) } else { each }
    }

    /// Whether the server sends on the stream that was opened as number `at`, from 0.
    #[must_use]
    pub fn server_sends(&self, at: usize) -> bool {
        let each = usize::try_from(self.parallel).unwrap_or(0);
        if self.bidirectional { at >= each } else { self.reverse }
    }

    /// Bytes after which the client ends the test, in whole blocks; absent if the duration ends it.
    #[must_use]
    pub fn goal(&self) -> Option<u64> {
        let len = natural(self.len).max(1);
        match (natural(self.num), natural(self.blockcount)) {
            (0, 0) => None,
            (0, blocks) => Some(blocks.saturating_mul(len)),
            (bytes, _) => Some(bytes.div_ceil(len).saturating_mul(len)),
        }
    }

    /// Datagrams that leave together with GSO; absent without it.
    pub(super) fn datagrams_per_buffer(&self) -> Option<i64> {
        let bundles = self.bundles.filter(|bundles| self.udp && bundles.gso > 0)?;
        Some((bundles.gso_bf_size / self.len.max(1)).clamp(1, MAX_SEGMENTS))
    }

    fn has_negative(&self) -> bool {
        let own = [self.num, self.blockcount, self.bandwidth, self.fqrate, self.pacing_timer];
        let bundles = self.bundles.map_or([0; 5], |bundles| {
            [bundles.gso, bundles.gso_dg_size, bundles.gso_bf_size, bundles.gro, bundles.gro_bf_size]
        });
        own.iter().chain(&bundles).any(|value| *value < 0)
    }

    fn is_too_long(&self, limits: &Iperf3Limits) -> bool {
        limits.seconds.is_some_and(|most| {
            self.time == 0 || natural(self.time).saturating_add(natural(self.omit)) > most
        })
    }

    fn is_too_fast(&self, limits: &Iperf3Limits) -> bool {
        let streams = self.streams() as u64;
        let total = |rate: i64| natural(rate).saturating_mul(streams);
        limits.bitrate.is_some_and(|most| total(self.bandwidth) > most || total(self.fqrate) > most)
    }
}

impl Bundles {
    fn of(used: bool, block: i64) -> Self {
        let datagrams = (MAX_DATAGRAM_BYTES / block.max(1)).clamp(1, MAX_SEGMENTS);
        Self {
            gso: i64::from(used),
            gso_dg_size: if used { block } else { 0 },
            gso_bf_size: if used { datagrams * block } else { MAX_DATAGRAM_BYTES },
            gro: i64::from(used),
            gro_bf_size: MAX_DATAGRAM_BYTES,
        }
    }

    fn read(node: &Iperf3Json) -> Self {
        let number = |key, default| node.integer(key).unwrap_or(default);
        Self {
            gso: number("gso", 0),
            gso_dg_size: number("gso_dg_size", 0),
            gso_bf_size: number("gso_bf_size", MAX_DATAGRAM_BYTES),
            gro: number("gro", 0),
            gro_bf_size: number("gro_bf_size", MAX_DATAGRAM_BYTES),
        }
    }
}

/// Converts a number of ours to the type on the wire.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Converts a checked number from the wire, which is not negative.
pub(super) fn natural(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn no(flag: &bool) -> bool {
    !flag
}

fn zero(number: &i64) -> bool {
    *number == 0
}

fn one<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(1)
}
