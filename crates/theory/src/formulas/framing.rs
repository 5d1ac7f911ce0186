//! Bytes on the wire, and the highest payload rate after headers.
//!
//! Every rate belongs to a layer: wire (with preamble and gap), frame (with FCS), IP packet, or payload
//! (goodput).

use serde::{Deserialize, Serialize};

use crate::domain::{finite, not_negative, positive};

/// Destination, source and type: the Ethernet header without tags, bytes. Source: IEEE 802.3 clause 3.
pub const ETHERNET_HEADER_BYTES: f64 = 14.0;
/// Frame check sequence, bytes. Source: IEEE 802.3 clause 3.
pub const FCS_BYTES: f64 = 4.0;
/// One 802.1Q or 802.1ad tag, bytes. Source: IEEE 802.1Q.
pub const TAG_BYTES: f64 = 4.0;
/// Preamble, start delimiter (8) and inter-packet gap (12), bytes. Source: IEEE 802.3 clauses 3 and 4; RFC 6349
/// §4.1.1.
pub const PREAMBLE_AND_GAP_BYTES: f64 = 20.0;
/// Smallest frame with FCS, bytes. Source: IEEE 802.3 clause 4.
pub const MINIMUM_FRAME_BYTES: f64 = 64.0;
/// TCP header without options, bytes. Source: RFC 9293 §3.1.
pub const TCP_HEADER_BYTES: f64 = 20.0;
/// UDP header, bytes. Source: RFC 768.
pub const UDP_HEADER_BYTES: f64 = 8.0;
/// TCP timestamps option with its padding, bytes. Source: RFC 7323 §3.2 and appendix A.
pub const TIMESTAMPS_BYTES: f64 = 12.0;
/// IPv6 fragment header, bytes. Source: RFC 8200 §4.5.
const FRAGMENT_HEADER_BYTES: f64 = 8.0;
/// How far a measured rate may exceed a ceiling without being wrong: two clocks, 100 ppm each. Source: IEEE
/// 802.3.
pub const CLOCK_TOLERANCE_PPM: f64 = 200.0;

/// Which Internet Protocol carries the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IpVersion {
    /// IPv4 without options: 20 bytes.
    V4,
    /// IPv6 without extension headers: 40 bytes.
    V6,
}

impl IpVersion {
    /// Bytes of the fixed header. Source: RFC 791 §3.1, RFC 8200 §3.
    #[must_use]
    pub fn header_bytes(self) -> f64 {
        match self {
            Self::V4 => 20.0,
            Self::V6 => 40.0,
        }
    }

    /// Usual name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// Headers between the IP packet's length and its payload, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Headers {
    /// Tunnel headers taken from the MTU (0 without a tunnel).
    pub encapsulation_bytes: f64,
    /// IP header: 20 or 40.
    pub ip_bytes: f64,
    /// TCP 20 or UDP 8.
    pub transport_bytes: f64,
    /// TCP options on a data segment, padded to four.
    pub option_bytes: f64,
}

impl Headers {
    /// A TCP data segment without a tunnel.
    #[must_use]
    pub fn tcp(ip: IpVersion, timestamps: bool) -> Self {
        Self {
            encapsulation_bytes: 0.0,
            ip_bytes: ip.header_bytes(),
            transport_bytes: TCP_HEADER_BYTES,
            option_bytes: if timestamps { TIMESTAMPS_BYTES } else { 0.0 },
        }
    }

    /// A UDP datagram without a tunnel.
    #[must_use]
    pub fn udp(ip: IpVersion) -> Self {
        Self {
            encapsulation_bytes: 0.0,
            ip_bytes: ip.header_bytes(),
            transport_bytes: UDP_HEADER_BYTES,
            option_bytes: 0.0,
        }
    }

    /// Sum of all headers, bytes.
    #[must_use]
    pub fn total_bytes(&self) -> f64 {
        self.encapsulation_bytes + self.ip_bytes + self.transport_bytes + self.option_bytes
    }
}

/// A datagram in the packets that IP cuts it into.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fragments {
    /// Number of packets that are as long as possible, besides the last one.
    pub full: f64,
    /// Bytes of the datagram in each of them.
    pub full_bytes: f64,
    /// Bytes of the datagram in the last packet.
    pub last_bytes: f64,
    /// Bytes of each packet before its part of the datagram: 20 over IPv4, 48 over IPv6, and those of a tunnel.
    pub header_bytes: f64,
}

impl Fragments {
    /// Number of packets.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.full + 1.0
    }
}

/// How IP cuts a datagram of `data_bytes` with its UDP header; a single packet if it fits. Fragments carry multiples of
/// eight bytes. `encapsulation_bytes` are the headers of a tunnel.
///
/// Units: bytes. Domain: an MTU larger than the headers. Source: RFC 791 §3.2, RFC 8200 §4.5.
#[must_use]
pub fn fragments(
    data_bytes: f64,
    mtu_bytes: f64,
    ip: IpVersion,
    encapsulation_bytes: f64,
) -> Option<Fragments> {
    let (data, whole) = (not_negative(data_bytes)?, not_negative(encapsulation_bytes)? + ip.header_bytes());
    if data + whole <= finite(mtu_bytes)? {
        return Some(Fragments { full: 0.0, full_bytes: data, last_bytes: data, header_bytes: whole });
    }
    let header_bytes = whole + if ip == IpVersion::V6 { FRAGMENT_HEADER_BYTES } else { 0.0 };
    let full_bytes = positive(((mtu_bytes - header_bytes) / 8.0).floor() * 8.0)?;
    let full = ((data / full_bytes).ceil() - 1.0).max(0.0);
    Some(Fragments { full, full_bytes, last_bytes: data - full * full_bytes, header_bytes })
}

/// Bytes of one segment or datagram at each layer. A datagram that IP cuts is several packets, of which only
/// the first has the UDP header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerBytes {
    /// Its payload (L4).
    pub payload_bytes: f64,
    /// Number of its IP packets.
    pub packets: f64,
    /// All of them with their headers (L3).
    pub packet_bytes: f64,
    /// All of them as a host stores them: with Ethernet header and tags, without padding and FCS. Software
    /// shapers and pacing count these bytes.
    pub stored_bytes: f64,
    /// All frames with FCS, padded to the minimum (L2).
    pub frame_bytes: f64,
    /// All frames with preamble and gap (L1).
    pub wire_bytes: f64,
}

impl LayerBytes {
    /// A single packet of `packet_bytes` that is full of headers and payload.
    ///
    /// Units: bytes. Domain: a packet larger than its headers, tags ≥ 0. Source: as [`payload_bytes`] and
    /// [`wire_bytes`].
    #[must_use]
    pub fn of_packet(packet_bytes: f64, headers: &Headers, tags: f64) -> Option<Self> {
        Self::of_packets(payload_bytes(packet_bytes, headers)?, [(1.0, packet_bytes)], tags)
    }

    /// A UDP datagram in as many packets as [`fragments`] cuts it into. `encapsulation_bytes` are the headers
    /// of a tunnel.
    ///
    /// Units: bytes. Domain: payload and tags ≥ 0, an MTU larger than the headers. Source: as [`fragments`] and
    /// [`wire_bytes`].
    #[must_use]
    pub fn of_datagram(
        payload_bytes: f64,
        mtu_bytes: f64,
        ip: IpVersion,
        encapsulation_bytes: f64,
        tags: f64,
    ) -> Option<Self> {
        let data_bytes = not_negative(payload_bytes)? + UDP_HEADER_BYTES;
        let cut = fragments(data_bytes, mtu_bytes, ip, encapsulation_bytes)?;
        let packets =
            [(cut.full, cut.full_bytes + cut.header_bytes), (1.0, cut.last_bytes + cut.header_bytes)];
        Self::of_packets(payload_bytes, packets, tags)
    }

    /// Adds up packets: how many there are of a length, and the length.
    fn of_packets<const N: usize>(payload_bytes: f64, packets: [(f64, f64); N], tags: f64) -> Option<Self> {
        let mut all = Self {
            payload_bytes,
            packets: 0.0,
            packet_bytes: 0.0,
            stored_bytes: 0.0,
            frame_bytes: 0.0,
            wire_bytes: 0.0,
        };
        for (count, packet) in packets {
            all.packets += count;
            all.packet_bytes += count * packet;
            all.stored_bytes += count * (packet + ETHERNET_HEADER_BYTES + TAG_BYTES * tags);
            all.frame_bytes += count * frame_bytes(packet, tags)?;
            all.wire_bytes += count * wire_bytes(packet, tags)?;
        }
        Some(all)
    }
}

/// The Ethernet frame of an IP packet, FCS included and padded to the minimum.
///
/// Units: bytes. Domain: `mtu_bytes`, `tags` ≥ 0. Source: IEEE 802.3 clauses 3 and 4.
#[must_use]
pub fn frame_bytes(mtu_bytes: f64, tags: f64) -> Option<f64> {
    let frame =
        ETHERNET_HEADER_BYTES + TAG_BYTES * not_negative(tags)? + not_negative(mtu_bytes)? + FCS_BYTES;
    finite(frame.max(MINIMUM_FRAME_BYTES))
}

/// The frame with preamble and gap: the bytes that one packet takes on the wire.
///
/// Units: bytes. Domain: as [`frame_bytes`]. Source: IEEE 802.3 clauses 3 and 4; RFC 6349 §4.1.1.
#[must_use]
pub fn wire_bytes(mtu_bytes: f64, tags: f64) -> Option<f64> {
    finite(frame_bytes(mtu_bytes, tags)? + PREAMBLE_AND_GAP_BYTES)
}

/// Bytes on the wire for a payload whose frame needs no padding: the sum of its layers.
///
/// Units: bytes. Domain: payload and tags ≥ 0; frames of 64 bytes and more. Source: IEEE 802.3 clause 3.
#[must_use]
pub fn layers_bytes(payload_bytes: f64, headers: &Headers, tags: f64) -> Option<f64> {
    let packet = not_negative(payload_bytes)? + headers.total_bytes();
    let frame = ETHERNET_HEADER_BYTES + TAG_BYTES * not_negative(tags)? + packet + FCS_BYTES;
    finite(frame + PREAMBLE_AND_GAP_BYTES)
}

/// Payload of a full packet: MSS after options for TCP, the largest unfragmented datagram for UDP.
///
/// Units: bytes. Domain: an MTU larger than its headers. Source: RFC 9293 §3.7.1, RFC 6691.
#[must_use]
pub fn payload_bytes(mtu_bytes: f64, headers: &Headers) -> Option<f64> {
    positive(finite(mtu_bytes)? - headers.total_bytes())
}

/// Highest payload rate of a link with only full packets.
///
/// Units: bit/s. Domain: `link_bps` > 0, an MTU larger than its headers. Full duplex, steady bulk transfer.
/// Source: RFC 6349 §4.1.1, with options and tags counted.
#[must_use]
pub fn goodput_ceiling_bps(link_bps: f64, mtu_bytes: f64, headers: &Headers, tags: f64) -> Option<f64> {
    payload_rate_bps(link_bps, payload_bytes(mtu_bytes, headers)?, wire_bytes(mtu_bytes, tags)?)
}

/// Payload rate of packets that carry `payload_bytes` and take `wire_bytes`.
///
/// Units: bit/s. Domain: link and wire > 0. Source: RFC 6349 §4.1.1.
#[must_use]
pub fn payload_rate_bps(link_bps: f64, payload_bytes: f64, wire_bytes: f64) -> Option<f64> {
    finite(positive(link_bps)? * not_negative(payload_bytes)? / positive(wire_bytes)?)
}

/// Packets per second if each takes `wire_bytes`.
///
/// Units: 1/s, exact; the RFCs print its integer part. Domain: both > 0. Source: RFC 2544 appendix B, RFC 6349
/// §4.1.1.
#[must_use]
pub fn frames_per_second(link_bps: f64, wire_bytes: f64) -> Option<f64> {
    finite(positive(link_bps)? / (8.0 * positive(wire_bytes)?))
}

/// Time from the start of one frame to the start of the next at line rate.
///
/// Units: s. Domain: link > 0, frame (with FCS) ≥ 0. Source: IEEE 802.3 clause 4.
#[must_use]
pub fn frame_interval_s(link_bps: f64, frame_bytes: f64) -> Option<f64> {
    finite(8.0 * (not_negative(frame_bytes)? + PREAMBLE_AND_GAP_BYTES) / positive(link_bps)?)
}

/// Gap between two frames: 96 bit times.
///
/// Units: s. Domain: link > 0; from 10 Gbit/s up it is a mean, single gaps vary. Source: IEEE 802.3 clause 4.
#[must_use]
pub fn inter_packet_gap_s(link_bps: f64) -> Option<f64> {
    finite(96.0 / positive(link_bps)?)
}

/// The highest rate that a receiver may correctly report for `ceiling_bps`, given clock errors.
///
/// Units: bit/s, tolerance in ppm. Domain: ceiling > 0, ppm ≥ 0. Source: IEEE 802.3 (±100 ppm for each clock).
#[must_use]
pub fn acceptable_ceiling_bps(ceiling_bps: f64, tolerance_ppm: f64) -> Option<f64> {
    finite(positive(ceiling_bps)? * (1.0 + not_negative(tolerance_ppm)? * 1e-6))
}

/// The MTU at which payload takes the share `efficiency` of an untagged link.
///
/// Units: bytes. Domain: 0 < efficiency < 1. Source: RFC 6349 §4.1.1 solved for the MTU.
#[must_use]
pub fn mtu_for_efficiency_bytes(efficiency: f64, headers: &Headers) -> Option<f64> {
    let share = crate::domain::open_unit(efficiency)?;
    let outside = ETHERNET_HEADER_BYTES + FCS_BYTES + PREAMBLE_AND_GAP_BYTES;
    finite((outside * share + headers.total_bytes()) / (1.0 - share))
}

/// Bytes on the wire of a TCP segment without data: the cost of one acknowledgement on the return path.
///
/// Units: bytes. Domain: headers of TCP, tags ≥ 0. Source: IEEE 802.3 clause 4, RFC 9293 §3.1.
#[must_use]
pub fn ack_wire_bytes(headers: &Headers, tags: f64) -> Option<f64> {
    wire_bytes(headers.total_bytes(), tags)
}

/// Share of sent segments that were retransmitted: an upper bound of the loss probability.
///
/// Units: ratio of segments. Domain: rate, time, MSS > 0. Spurious retransmissions count as loss here.
/// Source: RFC 6349 §4.2 counted in segments.
#[must_use]
pub fn retransmission_ratio(
    retransmits: f64,
    goodput_bps: f64,
    measured_s: f64,
    mss_bytes: f64,
) -> Option<f64> {
    let segments = positive(goodput_bps)? * positive(measured_s)? / 8.0 / positive(mss_bytes)?;
    finite(not_negative(retransmits)? / segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 791 §3.2: 1480 bytes of 1500 are a multiple of eight, 1452 of 1500 over IPv6 are not.
    #[test]
    fn a_datagram_is_cut_at_multiples_of_eight_bytes() {
        let cut = |data, mtu, ip| fragments(data, mtu, ip, 0.0).unwrap();
        let whole = Fragments { full: 0.0, full_bytes: 1480.0, last_bytes: 1480.0, header_bytes: 20.0 };
        assert_eq!(cut(1480.0, 1500.0, IpVersion::V4), whole);
        let two = Fragments { full: 1.0, full_bytes: 1480.0, last_bytes: 1.0, header_bytes: 20.0 };
        assert_eq!(cut(1481.0, 1500.0, IpVersion::V4), two);
        let seven = Fragments { full: 6.0, full_bytes: 1480.0, last_bytes: 128.0, header_bytes: 20.0 };
        assert_eq!((cut(9008.0, 1500.0, IpVersion::V4), seven.packets()), (seven, 7.0));
        let over_ipv6 = Fragments { full: 1.0, full_bytes: 1448.0, last_bytes: 13.0, header_bytes: 48.0 };
        assert_eq!(cut(1461.0, 1500.0, IpVersion::V6), over_ipv6);
        assert_eq!(fragments(100.0, 27.0, IpVersion::V4, 0.0), None, "no eight bytes fit");
        assert_eq!(fragments(f64::NAN, 1500.0, IpVersion::V4, 0.0), None);
    }

    #[test]
    fn only_the_first_fragment_of_a_datagram_has_a_udp_header() {
        // 8200 bytes: five packets of 1480 and one of 800, each with 20 bytes of IP header.
        let cut = LayerBytes::of_datagram(8192.0, 1500.0, IpVersion::V4, 0.0, 0.0).unwrap();
        assert_eq!((cut.payload_bytes, cut.packets, cut.packet_bytes), (8192.0, 6.0, 8320.0));
        assert_eq!((cut.stored_bytes, cut.frame_bytes, cut.wire_bytes), (8404.0, 8428.0, 8548.0));
        // One byte too much: its packet of 21 bytes fills the smallest frame. A shaper does not count padding.
        let two = LayerBytes::of_datagram(1473.0, 1500.0, IpVersion::V4, 0.0, 0.0).unwrap();
        assert_eq!((two.packets, two.stored_bytes, two.wire_bytes), (2.0, 1514.0 + 35.0, 1538.0 + 84.0));
        // 1508 bytes over IPv6 with a tag: 1448 and 60 of them, each after 48 bytes of headers.
        let v6 = LayerBytes::of_datagram(1500.0, 1500.0, IpVersion::V6, 0.0, 1.0).unwrap();
        assert_eq!((v6.packet_bytes, v6.wire_bytes), (1496.0 + 108.0, 1496.0 + 108.0 + 2.0 * 42.0));
        assert_eq!(LayerBytes::of_datagram(100.0, 27.0, IpVersion::V4, 0.0, 0.0), None, "no eight bytes fit");
    }

    #[test]
    fn a_datagram_that_fits_is_one_packet_like_a_segment() {
        for tags in [0.0, 2.0] {
            let datagram = LayerBytes::of_datagram(1472.0, 1500.0, IpVersion::V4, 0.0, tags);
            assert_eq!(datagram, LayerBytes::of_packet(1500.0, &Headers::udp(IpVersion::V4), tags));
            assert_eq!(datagram.unwrap().wire_bytes, 1538.0 + 4.0 * tags);
        }
        assert_eq!(LayerBytes::of_packet(40.0, &Headers::tcp(IpVersion::V4, false), 0.0), None, "no payload");
    }

    #[test]
    fn an_acknowledgement_has_the_headers_of_its_tunnel_and_its_tags() {
        let plain = Headers::tcp(IpVersion::V4, true);
        assert_eq!(ack_wire_bytes(&plain, 0.0), Some(90.0));
        // VXLAN over IPv6: 70 bytes.
        let tunnelled = Headers { encapsulation_bytes: 70.0, ..plain };
        assert_eq!(ack_wire_bytes(&tunnelled, 2.0), Some(52.0 + 70.0 + 18.0 + 8.0 + 20.0));
        let bare = Headers::tcp(IpVersion::V4, false);
        assert_eq!(ack_wire_bytes(&bare, 0.0), Some(84.0), "padded to the minimum frame");
    }

    #[test]
    fn a_full_packet_costs_1538_bytes_and_a_tag_four_more() {
        assert_eq!(wire_bytes(1500.0, 0.0), Some(1538.0));
        assert_eq!(wire_bytes(1500.0, 1.0), Some(1542.0));
        assert_eq!(wire_bytes(20.0, 0.0), Some(84.0), "padded to the minimum frame");
    }

    #[test]
    fn gigabit_with_timestamps_carries_941_megabits() {
        let ceiling = goodput_ceiling_bps(1e9, 1500.0, &Headers::tcp(IpVersion::V4, true), 0.0).unwrap();
        assert!((ceiling - 1e9 * 1448.0 / 1538.0).abs() < 1e-3);
        let bare = goodput_ceiling_bps(1e9, 1500.0, &Headers::tcp(IpVersion::V4, false), 0.0).unwrap();
        assert!(bare > ceiling);
    }

    #[test]
    fn an_mtu_smaller_than_its_headers_has_no_payload() {
        assert_eq!(payload_bytes(40.0, &Headers::tcp(IpVersion::V4, false)), None);
        assert_eq!(goodput_ceiling_bps(0.0, 1500.0, &Headers::udp(IpVersion::V4), 0.0), None);
        assert_eq!(wire_bytes(f64::NAN, 0.0), None);
    }

    #[test]
    fn the_mtu_for_an_efficiency_gives_that_efficiency() {
        let headers = Headers::tcp(IpVersion::V4, true);
        let mtu = mtu_for_efficiency_bytes(0.98, &headers).unwrap();
        let back = payload_bytes(mtu, &headers).unwrap() / wire_bytes(mtu, 0.0).unwrap();
        assert!((back - 0.98).abs() < 1e-12);
    }
}
