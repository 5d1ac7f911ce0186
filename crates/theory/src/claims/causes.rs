//! Possible causes of a rate that a link cannot carry, found by the arithmetic that turns one into the other.

use linerate_model::import::Claim;
use linerate_model::metrics::Side;

use super::context::{Context, FullPacket};
use super::judgement::{CauseKind, Numbers, PossibleCause};
use crate::ethernet::STANDARD_RATES;
use crate::framing::{self, Headers, IpVersion};
use crate::{conversion, format, sender_error};

/// Buffers up to this size explain a figure without further evidence, bytes.
const ORDINARY_BYTES: f64 = 10_485_760.0;
/// Buffers beyond this size explain nothing, bytes.
const MAX_BUFFER_BYTES: f64 = 67_108_864.0;
/// Larger MTUs that are in use, bytes.
const LARGER_MTUS: [f64; 5] = [4470.0, 6000.0, 8192.0, 9000.0, 16_128.0];
/// Causes that miss a ceiling by more than this share are named only if there is no better one.
const MAX_MISS: f64 = 0.3;

/// A rate above a ceiling, with what is known about it.
pub(super) struct Excess<'a> {
    pub(super) bps: f64,
    pub(super) ceiling_bps: f64,
    pub(super) link_bps: f64,
    /// The packet on which the ceiling is based.
    pub(super) frame: &'a FullPacket,
    pub(super) frames: &'a [FullPacket],
    pub(super) seconds: Option<f64>,
    pub(super) bytes: Option<f64>,
    pub(super) claim: &'a Claim,
    pub(super) context: &'a Context,
}

/// A cause, with the relative distance to what it would explain.
type Ranked = (f64, PossibleCause);

/// The causes that fit, the most likely first.
pub(super) fn of(excess: &Excess<'_>) -> Vec<PossibleCause> {
    let found = [
        binary_prefix(excess),
        headers_forgotten(excess),
        sender_timing(excess),
        headers_counted(excess),
        shaper_counts(excess),
        no_timestamps(excess),
        larger_mtu(excess),
        bits_for_bytes(excess),
        both_directions(excess),
        faster_link(excess),
    ];
    ranked(found.into_iter().flatten().collect())
}

/// Sorted by fit; causes that fit badly are kept only if none fits well.
pub(super) fn ranked(mut found: Vec<Ranked>) -> Vec<PossibleCause> {
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best = found.first().map_or(0.0, |(miss, _)| *miss);
    found.into_iter().filter(|(miss, _)| *miss <= MAX_MISS.max(best)).map(|(_, cause)| cause).collect()
}

fn cause(
    kind: CauseKind,
    text: String,
    remedy: &'static str,
    evidence: &[(&'static str, f64)],
) -> PossibleCause {
    let evidence: Numbers = evidence.iter().copied().filter(|(_, value)| value.is_finite()).collect();
    PossibleCause { kind, text, remedy, evidence }
}

impl Excess<'_> {
    fn fits(&self, bps: f64) -> bool {
        bps <= self.ceiling_bps * (1.0 + super::case::CLOCKS)
    }

    /// Relative distance of a rate from the nearest known ceiling.
    fn miss(&self, bps: f64) -> f64 {
        let alike =
            |frame: &&FullPacket| !frame.assumed && frame.headers.ip_bytes == self.frame.headers.ip_bytes;
        let rates = self.frames.iter().filter(alike);
        let misses =
            rates.filter_map(|frame| frame.rate_bps(self.link_bps)).map(|one| (bps / one - 1.0).abs());
        misses.reduce(f64::min).unwrap_or(1.0)
    }
}

/// The factor of using a binary prefix for a decimal one, for example 2^20 for 10^6.
pub(super) fn prefix_factor(bps: f64) -> (f64, &'static str) {
    match bps {
        bps if bps >= 1e6 => (conversion::MIB / 1e6, "2^20 / 10^6"),
        _ => (conversion::KIB / 1e3, "2^10 / 10^3"),
    }
}

fn binary_prefix(excess: &Excess<'_>) -> Option<Ranked> {
    let mega = prefix_factor(excess.bps);
    let giga = (excess.bps >= 1e9).then_some((conversion::GIB / 1e9, "2^30 / 10^9"));
    let fitting = std::iter::once(mega).chain(giga).filter(|(factor, _)| excess.fits(excess.bps / factor));
    let nearest =
        fitting.min_by(|a, b| excess.miss(excess.bps / a.0).total_cmp(&excess.miss(excess.bps / b.0)));
    let (factor, words) = nearest?;
    let implied = excess.bps / factor;
    let text = format!(
        "a factor of {factor} ({words}) applied once too often: without it {}, {} of the ceiling",
        format::fine_rate(implied),
        format::percent((implied / excess.ceiling_bps).min(1.0))
    );
    let remedy = "compare with bytes x 8 / seconds of the same test";
    Some((excess.miss(implied), cause(CauseKind::BinaryPrefix, text, remedy, &[("implied_bps", implied)])))
}

fn headers_forgotten(excess: &Excess<'_>) -> Option<Ranked> {
    let miss = (excess.bps / excess.link_bps - 1.0).abs();
    let layers = &excess.frame.layers;
    (miss <= 0.002).then(|| {
        let text = format!(
            "it is the link rate of {} itself; {} of every {} bytes are headers, preamble and gap",
            format::rate(excess.link_bps),
            layers.wire_bytes - layers.payload_bytes,
            layers.wire_bytes
        );
        (
            0.0,
            cause(
                CauseKind::HeadersForgotten,
                text,
                "measure at the receiver; a line rate is not a result",
                &[],
            ),
        )
    })
}

fn sender_timing(excess: &Excess<'_>) -> Option<Ranked> {
    if excess.claim.side == Some(Side::Receiver) || excess.context.udp {
        return None;
    }
    let total = excess.bytes.or_else(|| conversion::transferred_bytes(excess.bps, excess.seconds?))?;
    let outstanding =
        |frame_bps: f64| sender_error::outstanding_for_report_bytes(total, frame_bps, excess.bps);
    let least = outstanding(excess.ceiling_bps)?;
    if least > MAX_BUFFER_BYTES {
        return None;
    }
    let usual = excess.frames.first().and_then(|frame| outstanding(frame.rate_bps(excess.link_bps)?))?;
    let span = if usual > least * 1.001 {
        format!(
            "{} (or {} with {})",
            format::size(least),
            format::size(usual),
            excess.frames.first()?.because
        )
    } else {
        format::size(least)
    };
    let text =
        format!("the sender's clock stopped while {span} of {} waited in buffers", format::size(total));
    let remedy = "take the receiver's count and time";
    let numbers = [("outstanding_bytes", least), ("outstanding_likely_bytes", usual), ("total_bytes", total)];
    let miss = if least <= ORDINARY_BYTES { 0.005 } else { 0.05 };
    Some((miss, cause(CauseKind::SenderTiming, text, remedy, &numbers)))
}

fn headers_counted(excess: &Excess<'_>) -> Option<Ranked> {
    let layers = &excess.frame.layers;
    let ways = [
        (layers.packet_bytes, "IP packets (L3)"),
        (layers.frame_bytes, "frames (L2)"),
        (layers.wire_bytes, "the wire (L1)"),
    ];
    let (counted, layer) = ways.into_iter().find(|(counted, _)| {
        let most = excess.link_bps * counted / layers.wire_bytes;
        excess.bps <= most * (1.0 + super::case::CLOCKS)
    })?;
    let most = excess.link_bps * counted / layers.wire_bytes;
    let implied = excess.bps * layers.payload_bytes / counted;
    let share = excess.bps / most;
    let text = format!(
        "a rate of {layer}, not of payload: {} of the {} of that layer, payload {}",
        format::percent(share),
        format::fine_rate(most),
        format::fine_rate(implied)
    );
    let numbers = [("layer_ceiling_bps", most), ("implied_bps", implied)];
    let remedy = "count what the application read";
    // Programs that count headers are rarer than unit mistakes.
    let miss = 0.004 + (1.0 - share).max(0.0);
    Some((miss, cause(CauseKind::HeadersCounted, text, remedy, &numbers)))
}

fn shaper_counts(excess: &Excess<'_>) -> Option<Ranked> {
    let layers = &excess.frame.layers;
    let ways = [
        (layers.stored_bytes, "frames without preamble, gap and FCS"),
        (layers.packet_bytes, "IP packets only"),
    ];
    let payload = layers.payload_bytes;
    ways.into_iter().find_map(|(counted, what)| {
        let most = excess.link_bps * payload / counted;
        (excess.bps <= most * (1.0 + super::case::CLOCKS)).then(|| {
            let text = format!(
                "a shaper or a tariff of {} that counts {what} lets {} through; a wire of that rate does not",
                format::rate(excess.link_bps),
                format::fine_rate(most)
            );
            let remedy = "give the rate of the wire as the link";
            // A shaper that nobody mentioned is less likely than a mistake that fits equally well.
            let miss = 0.03 + (1.0 - excess.bps / most).abs();
            (miss, cause(CauseKind::ShaperCounts, text, remedy, &[("shaped_ceiling_bps", most)]))
        })
    })
}

fn no_timestamps(excess: &Excess<'_>) -> Option<Ranked> {
    let frame = excess.frame;
    if excess.context.udp || frame.headers.option_bytes <= 0.0 {
        return None;
    }
    let unstamped = frame.layers.payload_bytes + frame.headers.option_bytes;
    let bare = excess.link_bps * unstamped / frame.layers.wire_bytes;
    (excess.bps <= bare * (1.0 + super::case::CLOCKS)).then(|| {
        let text = format!("no TCP timestamps: without them the link carries {}", format::fine_rate(bare));
        let remedy = "check the effective segment size";
        let miss = (1.0 - excess.bps / bare).abs();
        (miss, cause(CauseKind::NoTimestamps, text, remedy, &[("ceiling_without_timestamps_bps", bare)]))
    })
}

/// The MTU that a rate needs, without and with timestamps, bytes; for datagrams both are the same.
pub(super) fn mtu_needed_bytes(context: &Context, bps: f64, link_bps: f64) -> Option<(f64, f64)> {
    let version = context.ip_version.unwrap_or(IpVersion::V4);
    let needed = |headers: &Headers| framing::mtu_for_efficiency_bytes(bps / link_bps, headers);
    if context.udp {
        let needed = needed(&Headers::udp(version))?;
        return Some((needed, needed));
    }
    Some((needed(&Headers::tcp(version, false))?, needed(&Headers::tcp(version, true))?))
}

fn larger_mtu(excess: &Excess<'_>) -> Option<Ranked> {
    let (bare, stamped) = mtu_needed_bytes(excess.context, excess.bps, excess.link_bps)?;
    if bare > 65_535.0 || bare <= excess.frame.mtu_bytes {
        return None;
    }
    let headers = Headers::tcp(excess.context.ip_version.unwrap_or(IpVersion::V4), true);
    let usual = LARGER_MTUS.into_iter().find(|mtu| *mtu >= stamped);
    let ceiling = usual.and_then(|mtu| framing::goodput_ceiling_bps(excess.link_bps, mtu, &headers, 0.0));
    let example = usual.zip(ceiling).map_or_else(String::new, |(mtu, bps)| {
        format!("; at {mtu:.0} the ceiling is {}", format::fine_rate(bps))
    });
    let text = format!(
        "an effective MTU of at least {:.0} bytes, or {:.0} with timestamps{example}",
        bare.ceil(),
        stamped.ceil()
    );
    let remedy = "check the MTU of both ends and the effective segment size";
    let numbers = [("mtu_needed_bytes", bare), ("mtu_needed_with_timestamps_bytes", stamped)];
    let miss = ceiling.map_or(0.2, |bps| (1.0 - excess.bps / bps).abs()).min(0.2);
    Some((miss, cause(CauseKind::LargerMtu, text, remedy, &numbers)))
}

fn bits_for_bytes(excess: &Excess<'_>) -> Option<Ranked> {
    let implied = excess.bps / 8.0;
    excess.fits(implied).then(|| {
        let text = format!(
            "bits printed as bytes: an eighth of it is {}, {} of the ceiling",
            format::fine_rate(implied),
            format::percent((implied / excess.ceiling_bps).min(1.0))
        );
        let remedy = "compare with bytes x 8 / seconds of the same test";
        (excess.miss(implied), cause(CauseKind::BitsForBytes, text, remedy, &[("implied_bps", implied)]))
    })
}

fn both_directions(excess: &Excess<'_>) -> Option<Ranked> {
    let implied = excess.bps / 2.0;
    excess.fits(implied).then(|| {
        let text = format!(
            "both directions added: {} each, {} of the ceiling",
            format::fine_rate(implied),
            format::percent((implied / excess.ceiling_bps).min(1.0))
        );
        let miss = excess.miss(implied) + 0.01;
        (
            miss,
            cause(
                CauseKind::BothDirections,
                text,
                "report each direction separately",
                &[("implied_bps", implied)],
            ),
        )
    })
}

fn faster_link(excess: &Excess<'_>) -> Option<Ranked> {
    let share = excess.frame.layers.payload_bytes / excess.frame.layers.wire_bytes;
    let next = STANDARD_RATES
        .into_iter()
        .find(|rate| rate.bps > excess.link_bps && rate.bps * share >= excess.bps)?;
    let ceiling = next.bps * share;
    let text = format!("the link is {}, which carries {}", next.name, format::fine_rate(ceiling));
    let miss = (1.0 - excess.bps / ceiling).clamp(0.1, 0.9);
    let remedy = "check the rate of every link on the path";
    Some((miss, cause(CauseKind::FasterLink, text, remedy, &[("link_bps", next.bps)])))
}
