//! Packet rate against the link, alone and together with the rate.

use linerate_model::import::{Claim, Quantity};
use linerate_model::metrics::Side;

use super::case::{CLOCKS, CheckedTest};
use super::context::{FullPacket, tag_bytes};
use super::judgement::{CauseKind, Check, PossibleCause, Reason, Verdict};
use super::range::FigureRange;
use crate::framing::{self, ETHERNET_HEADER_BYTES, Headers, IpVersion, PREAMBLE_AND_GAP_BYTES};
use crate::{format, sender_error};

/// Wire bytes of the smallest frame.
const MIN_WIRE_BYTES: f64 = framing::MINIMUM_FRAME_BYTES + PREAMBLE_AND_GAP_BYTES;

/// Bytes that a shaper counts for the smallest frame: IPv4 and UDP headers, but no padding, preamble, gap and
/// FCS.
const MIN_SHAPED_BYTES: f64 = ETHERNET_HEADER_BYTES + 28.0;

/// Checks every packet rate.
pub(super) fn check(case: &mut CheckedTest<'_>) {
    for (index, claim) in case.claims.iter().enumerate() {
        let Some(packets) = packet_rate(case, claim) else { continue };
        let reason = case.context.link_bps.and_then(|link| alone(case, claim, &packets, link));
        if let Some(reason) = reason {
            case.remark(index, packets.quantity, reason);
        }
        if let Some(reason) = with_rate(case, claim, &packets) {
            case.remark(index, packets.quantity, reason);
        }
    }
}

/// Packet rate: printed, or count over time.
struct Packets {
    quantity: Quantity,
    /// The most likely value, 1/s.
    per_second: f64,
    low: f64,
    high: f64,
}

fn packet_rate(case: &CheckedTest<'_>, claim: &Claim) -> Option<Packets> {
    if let Some(printed) = claim.figure(Quantity::PacketRate) {
        let FigureRange { low, high } = FigureRange::of(printed)?;
        return Some(Packets { quantity: Quantity::PacketRate, per_second: printed.value, low, high });
    }
    let packets = FigureRange::in_claim(claim, Quantity::Packets)?;
    let lost = FigureRange::in_claim(claim, Quantity::Lost).unwrap_or(FigureRange { low: 0.0, high: 0.0 });
    let arrived = FigureRange { low: (packets.low - lost.high).max(0.0), high: packets.high };
    let FigureRange { low, high } = arrived.over(case.seconds(claim)?)?;
    let per_second = claim.figure(Quantity::Packets)?.value / case.likely_seconds(claim)?;
    Some(Packets { quantity: Quantity::Packets, per_second, low, high })
}

/// More packets than the link carries with the shortest frames.
fn alone(case: &CheckedTest<'_>, claim: &Claim, packets: &Packets, link_bps: f64) -> Option<Reason> {
    let tags = f64::from(case.context.tags);
    let smallest = MIN_WIRE_BYTES.max(framing::wire_bytes(0.0, tags)?);
    let most = framing::frames_per_second(link_bps, smallest)?;
    if packets.low > most * (1.0 + CLOCKS) && !buffered(case, claim, packets.low * smallest * 8.0, link_bps) {
        let shaped = framing::frames_per_second(link_bps, MIN_SHAPED_BYTES)?;
        let (verdict, but) = if case.context.from_file && packets.low <= shaped * (1.0 + CLOCKS) {
            (Verdict::Doubtful, "; only a shaper that does not count padding and gaps lets more through")
        } else {
            (Verdict::Impossible, "")
        };
        let text = format!("The link carries at most {most:.0} of the shortest frames per second{but}.");
        return Some(
            Reason::new(Check::PacketRate, verdict, text)
                .with("packets_per_second", Some(packets.per_second))
                .with("most_per_second", Some(most)),
        );
    }
    let full = framing::frames_per_second(link_bps, framing::wire_bytes(case.context.mtu_bytes?, tags)?)?;
    if case.context.udp || packets.low <= full * (1.0 + CLOCKS) {
        return None;
    }
    let text = format!(
        "The link carries {:.0} full-size packets per second at MTU {:.0}, so these packets are smaller.",
        full.floor(),
        case.context.mtu_bytes?
    );
    let mut reason = Reason::new(Check::PacketRate, Verdict::Doubtful, text)
        .with("packets_per_second", Some(packets.per_second))
        .with("full_packets_per_second", Some(full));
    reason.causes.extend(forgotten(packets, link_bps, case.context.mtu_bytes?));
    Some(reason)
}

/// The link rate divided by the MTU, as if frames had no headers and gaps.
fn forgotten(packets: &Packets, link_bps: f64, mtu_bytes: f64) -> Option<PossibleCause> {
    let bare = link_bps / (8.0 * mtu_bytes);
    ((packets.per_second / bare - 1.0).abs() <= 0.005).then(|| PossibleCause {
        kind: CauseKind::HeadersForgotten,
        text: format!(
            "the link rate divided by {mtu_bytes:.0} bytes gives {bare:.1}: headers, preamble and gap are \
             missing"
        ),
        remedy: "check the counters of the interface",
        evidence: [("without_headers_per_second", bare)].into(),
    })
}

/// Rate and packet rate together require a link and a packet size.
fn with_rate(case: &CheckedTest<'_>, claim: &Claim, packets: &Packets) -> Option<Reason> {
    let rate = case.rate(claim)?;
    let context = &case.context;
    let version = context.ip_version.unwrap_or(IpVersion::V4);
    let headers = if context.udp {
        Headers::udp(version)
    } else {
        Headers::tcp(version, context.timestamps.unwrap_or(false))
    };
    let payload = rate.range.low / 8.0 / packets.high;
    let middle = sender_error::payload_per_packet_bytes(rate.bps, packets.per_second)?;
    let tags = f64::from(context.tags);
    // A shaper counts fewer bytes per packet than the wire.
    let shaped = rate.range.low
        + packets.low * 8.0 * (headers.total_bytes() + ETHERNET_HEADER_BYTES + tag_bytes(context.tags));
    let needed = sender_error::wire_rate_needed_bps(rate.range.low, packets.low, &headers, tags)
        .map(|wire| if context.from_file { shaped.min(wire) } else { wire })
        .filter(|_| packets.low > 0.0);
    let shown = sender_error::wire_rate_needed_bps(rate.bps, packets.per_second, &headers, tags);
    let describe = |verdict: Verdict, text: String| {
        Reason::new(Check::PacketRate, verdict, text)
            .with("payload_per_packet_bytes", Some(middle))
            .with("wire_needed_bps", shown)
            .with("link_bps", context.link_bps)
    };
    if let (Some(needed), Some(link)) = (needed, context.link_bps)
        && needed > link * (1.0 + CLOCKS)
        && !cut(case)
        && !buffered(case, claim, needed, link)
    {
        let text = format!(
            "With this rate, each packet has {middle:.2} bytes of payload, which need {} on the wire; the \
             link has {}.",
            format::fine_rate(shown.unwrap_or(needed)),
            format::rate(link)
        );
        let mut reason = describe(Verdict::Impossible, text);
        let mtu = context.mtu_bytes.unwrap_or(1500.0);
        reason.causes.extend(forgotten(packets, link, mtu));
        if let Some(most) = framing::frames_per_second(link, framing::wire_bytes(mtu, tags)?) {
            reason = reason.with("full_packets_per_second", Some(most));
        }
        return Some(reason);
    }
    if let Some(mtu) =
        context.mtu_bytes.filter(|mtu| payload * (1.0 - CLOCKS) + headers.total_bytes() > *mtu && !cut(case))
    {
        let text = format!(
            "With this rate, each packet has {middle:.2} bytes of payload, more than MTU {mtu:.0} allows; a \
             NIC may have counted GSO super-packets."
        );
        let verdict = if context.udp { Verdict::Impossible } else { Verdict::Doubtful };
        return Some(describe(verdict, text));
    }
    let text = format!("With this rate, each packet has {middle:.2} bytes of payload.");
    Some(describe(Verdict::Possible, text))
}

/// Whether the excess of a line over the link may only have waited in buffers, or was offered and not carried.
fn buffered(case: &CheckedTest<'_>, claim: &Claim, wire_bps: f64, link_bps: f64) -> bool {
    let offered = case.context.udp && claim.side == Some(Side::Sender);
    let waited = case
        .seconds(claim)
        .is_some_and(|seconds| (wire_bps - link_bps) * seconds.high / 8.0 <= case.buffered_bytes(claim));
    offered || waited
}

/// Whether datagrams are fragmented, so that their count says nothing about packets.
fn cut(case: &CheckedTest<'_>) -> bool {
    case.context.udp && case.frames.iter().any(FullPacket::is_cut)
}
