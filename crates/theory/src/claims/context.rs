//! What is known about the path and the test in addition to the claims.

use linerate_model::import::{Claim, ForeignTest, Quantity};
use linerate_model::{Ceiling, Limit};
use linerate_units::Bitrate;

use crate::encapsulation::Encapsulation;
use crate::envelope::Congestion;
use crate::framing::{self, Headers, IpVersion, LayerBytes, TAG_BYTES};
use crate::{ceilings, ethernet, format};

/// MTU of an Ethernet link by default, bytes. Source: IEEE 802.3 clause 3.
pub(super) const USUAL_MTU_BYTES: f64 = 1500.0;
/// Larger packets that are tried if no MTU is stated: jumbo frames, and the largest possible packet.
const OTHER_MTUS_BYTES: [f64; 2] = [9000.0, 65_535.0];
/// MTUs that can be recognised from a segment size.
const KNOWN_MTUS_BYTES: [f64; 12] =
    [1500.0, 9000.0, 1492.0, 1280.0, 1400.0, 1420.0, 4470.0, 6000.0, 8192.0, 9216.0, 16_128.0, 65_535.0];

/// Stated properties of path and test. What is not stated is absent, and any value is then allowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Context {
    /// Rate of the slowest link, bit/s.
    pub link_bps: Option<f64>,
    /// Largest packet, bytes.
    pub mtu_bytes: Option<f64>,
    /// IP version.
    pub ip_version: Option<IpVersion>,
    /// Whether segments carry timestamps.
    pub timestamps: Option<bool>,
    /// 802.1Q tags in each frame.
    pub tags: u32,
    /// Tunnel.
    pub encapsulation: Option<Encapsulation>,
    /// Payload of a full segment, after options, bytes.
    pub mss_bytes: Option<f64>,
    /// Datagrams instead of TCP.
    pub udp: bool,
    /// Payload of a datagram, bytes.
    pub datagram_bytes: Option<f64>,
    /// Number of connections, for a line without a stream number.
    pub streams: Option<u32>,
    /// RTT without queues, s.
    pub rtt_s: Option<f64>,
    /// Window of each connection, bytes.
    pub window_bytes: Option<f64>,
    /// Largest total size of a connection's socket buffers at both ends, bytes.
    pub buffers_bytes: Option<f64>,
    /// Losses per packet.
    pub loss: Option<f64>,
    /// Congestion control.
    pub congestion: Option<Congestion>,
    /// Distance between the ends, one way, m.
    pub distance_m: Option<f64>,
    /// Whether the rates exclude the bytes of each stream's first read, as those of linerate do.
    pub first_read_left_out: bool,
    /// Whether a program's file is checked and not figures that somebody typed. A file holds a measurement, so
    /// unknown properties are allowed for: the link may be a shaper, a line without a side the sender's, a sum
    /// may include streams that are not shown.
    pub from_file: bool,
}

/// A full packet that the path may carry, or all packets of a fragmented datagram.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FullPacket {
    /// Its bytes at each layer.
    pub(super) layers: LayerBytes,
    /// MTU, bytes.
    pub(super) mtu_bytes: f64,
    pub(super) headers: Headers,
    /// Description, such as `MTU 1500, IPv4, TCP timestamps`.
    pub(super) because: String,
    /// Whether its MTU is larger than usual and not stated.
    pub(super) assumed: bool,
}

impl Context {
    /// Adds what the file states about this test, where nothing else is stated.
    #[must_use]
    pub fn with_test(&self, test: &ForeignTest) -> Self {
        let effective = |quantity| {
            let figures = test.effective.iter().filter(|figure| figure.quantity == quantity);
            figures
                .map(|figure| figure.value)
                .filter(|value| value.is_finite() && *value > 0.0)
                .reduce(f64::max)
        };
        let mut all = self.clone();
        all.udp |= test.spec.traffic.udp;
        all.link_bps = all.link_bps.or(test.spec.host.link.map(Bitrate::bps));
        all.mtu_bytes = all.mtu_bytes.or(effective(Quantity::Mtu));
        all.mss_bytes = all.mss_bytes.or(effective(Quantity::Mss));
        if all.udp {
            let length = test.spec.traffic.length.map(|length| length.get() as f64);
            all.datagram_bytes = all.datagram_bytes.or(length).or_else(|| datagram_bytes(&test.claims));
        }
        let buffers = [effective(Quantity::SendBuffer), effective(Quantity::ReceiveBuffer)];
        // Buffer sizes that were not requested are those at the start: the kernel enlarges them during the
        // transfer.
        let asked = test.spec.socket.window.is_some();
        if let (true, [Some(send), Some(receive)]) = (asked, buffers) {
            all.buffers_bytes = all.buffers_bytes.or(Some(send + receive));
        }
        all.streams = all.streams.or_else(|| Some(streams(test)));
        all
    }

    /// Whether packets of this size have room for payload after their headers.
    #[must_use]
    pub fn leaves_payload(&self) -> bool {
        !self.frames().is_empty()
    }

    /// Number of connections of a line.
    pub(super) fn streams_of(&self, stream: Option<u32>) -> f64 {
        if stream.is_some() { 1.0 } else { f64::from(self.streams.unwrap_or(1).max(1)) }
    }

    /// The packets that fit what is stated, the most likely first.
    pub(super) fn frames(&self) -> Vec<FullPacket> {
        let mut frames = Vec::new();
        for (mtu, assumed) in self.mtus() {
            if self.udp {
                frames.extend(self.datagram(mtu, assumed));
            } else {
                frames.extend(self.segments(mtu, assumed));
            }
        }
        // A segment size that fills the packet with certain headers identifies the headers.
        let fills = |frame: &FullPacket| {
            self.mss_bytes.is_some() && (frame.layers.packet_bytes - frame.mtu_bytes).abs() < 0.5
        };
        if !self.udp && frames.iter().any(fills) {
            frames.retain(fills);
        }
        frames
    }

    fn mtus(&self) -> Vec<(f64, bool)> {
        if let Some(mtu) = self.mtu_bytes {
            return vec![(mtu, false)];
        }
        let of_segment = self.mss_bytes.filter(|_| !self.udp).map(|mss| {
            let packet = mss + self.encapsulation_bytes() + self.versions()[0].header_bytes() + 20.0;
            let known = |extra: f64| KNOWN_MTUS_BYTES.iter().any(|mtu| (mtu - packet - extra).abs() < 0.5);
            if known(framing::TIMESTAMPS_BYTES) { packet + framing::TIMESTAMPS_BYTES } else { packet }
        });
        if let Some(mtu) = of_segment {
            return vec![(mtu, false)];
        }
        let others = OTHER_MTUS_BYTES.into_iter().map(|mtu| (mtu, true));
        std::iter::once((USUAL_MTU_BYTES, false)).chain(others).collect()
    }

    fn encapsulation_bytes(&self) -> f64 {
        self.encapsulation.map_or(0.0, Encapsulation::overhead_bytes)
    }

    fn versions(&self) -> Vec<IpVersion> {
        self.ip_version.map_or_else(|| vec![IpVersion::V4, IpVersion::V6], |version| vec![version])
    }

    fn segments(&self, mtu_bytes: f64, assumed: bool) -> Vec<FullPacket> {
        let stamped = self.timestamps.map_or_else(|| vec![true, false], |stated| vec![stated]);
        let mut frames = Vec::new();
        for version in self.versions() {
            for timestamps in &stamped {
                // IPv6 without timestamps is used only if stated: it is rare, and its ceiling is a usual figure
                // of IPv4 over gigabit.
                if self.ip_version.is_none() && version == IpVersion::V6 && !timestamps {
                    continue;
                }
                let headers = self.tunnelled(Headers::tcp(version, *timestamps));
                let Some(full) = framing::payload_bytes(mtu_bytes, &headers) else { continue };
                // With a known segment size, headers or nothing use the rest of the packet.
                let payload = self.mss_bytes.map_or(full, |mss| mss.min(full));
                let packet = payload + headers.total_bytes();
                let Some(layers) = LayerBytes::of_packet(packet, &headers, f64::from(self.tags)) else {
                    continue;
                };
                let options = if *timestamps { "TCP timestamps" } else { "no TCP timestamps" };
                frames.push(FullPacket {
                    layers,
                    mtu_bytes,
                    headers,
                    because: self.words(mtu_bytes, version, options),
                    assumed,
                });
            }
        }
        frames
    }

    fn datagram(&self, mtu_bytes: f64, assumed: bool) -> Vec<FullPacket> {
        let of_version = |version: IpVersion| {
            let headers = self.tunnelled(Headers::udp(version));
            let payload = match self.datagram_bytes {
                Some(bytes) => bytes,
                None => framing::payload_bytes(mtu_bytes, &headers)?,
            };
            let tunnel = self.encapsulation_bytes();
            let layers = LayerBytes::of_datagram(payload, mtu_bytes, version, tunnel, f64::from(self.tags))?;
            let what = format!("datagrams of {payload:.0} bytes");
            Some(FullPacket {
                layers,
                mtu_bytes,
                headers,
                because: self.words(mtu_bytes, version, &what),
                assumed,
            })
        };
        self.versions().into_iter().filter_map(of_version).collect()
    }

    fn tunnelled(&self, inner: Headers) -> Headers {
        Headers { encapsulation_bytes: self.encapsulation_bytes(), ..inner }
    }

    fn words(&self, mtu_bytes: f64, version: IpVersion, what: &str) -> String {
        let mut parts = vec![format!("MTU {mtu_bytes:.0}"), version.name().to_owned(), what.to_owned()];
        parts.extend((self.tags > 0).then(|| format!("{} VLAN tag(s)", self.tags)));
        let tunnel = self.encapsulation.filter(|tunnel| *tunnel != Encapsulation::None);
        parts.extend(tunnel.map(|tunnel| tunnel.name().to_owned()));
        parts.join(", ")
    }
}

impl FullPacket {
    /// Highest payload rate of a link of this rate with such packets, bit/s.
    pub(super) fn rate_bps(&self, link_bps: f64) -> Option<f64> {
        framing::payload_rate_bps(link_bps, self.layers.payload_bytes, self.layers.wire_bytes)
    }

    /// Highest payload rate after a Linux shaper of this rate, bit/s. It counts frames without preamble, gap,
    /// FCS and padding.
    pub(super) fn shaped_bps(&self, link_bps: f64) -> Option<f64> {
        ethernet::shaped_goodput_bps(link_bps, &self.layers)
    }

    /// Whether it is a datagram in several packets.
    pub(super) fn is_cut(&self) -> bool {
        self.layers.packets > 1.0
    }

    /// The link's rate with such packets, as a named ceiling.
    pub(super) fn ceiling(&self, link_bps: f64) -> Option<Ceiling> {
        let name = ethernet::standard_name(link_bps).map_or_else(|| format::rate(link_bps), str::to_owned);
        Some(ceilings::new_ceiling(
            Limit::Link,
            self.rate_bps(link_bps)?,
            format!("{name}, {}", self.because),
        ))
    }
}

/// Bytes that 802.1Q tags add to a frame.
pub(super) fn tag_bytes(tags: u32) -> f64 {
    TAG_BYTES * f64::from(tags)
}

/// Number of connections of a test: the requested number, or the number of streams that its lines name, if that
/// is larger.
fn streams(test: &ForeignTest) -> u32 {
    let mut named: Vec<u32> = test.claims.iter().filter_map(|claim| claim.stream).collect();
    named.sort_unstable();
    named.dedup();
    test.spec.traffic.streams.max(u32::try_from(named.len()).unwrap_or(u32::MAX))
}

/// Length of the datagrams, if a line has their count and bytes precisely enough.
fn datagram_bytes(claims: &[Claim]) -> Option<f64> {
    claims.iter().find_map(|claim| {
        let bytes = claim.figure(Quantity::Bytes).filter(|bytes| bytes.step <= bytes.value * 1e-4)?;
        let sent = claim.figure(Quantity::Packets).filter(|packets| packets.step < 1.0)?;
        let lost = claim.figure(Quantity::Lost).map_or(0.0, |lost| lost.value);
        let length = (bytes.value / (sent.value - lost)).round();
        (sent.value - lost >= 100.0 && (1.0..=65_507.0).contains(&length)).then_some(length)
    })
}
