//! Rates against the link, stated or recognised.

use linerate_model::import::{Claim, ClaimScope, Quantity};
use linerate_model::metrics::Side;
use linerate_model::{Ceiling, Limit};

use super::case::{CLOCKS, CeilingComparison, CheckedTest, LineRate};
use super::causes::{self, Excess};
use super::context::{Context, FullPacket, USUAL_MTU_BYTES};
use super::judgement::{Check, Reason, Verdict};
use super::range::FigureRange;
use crate::ceilings::new_ceiling;
use crate::ethernet::{self, STANDARD_RATES, StandardRate};
use crate::format;
use crate::framing::{ETHERNET_HEADER_BYTES, TAG_BYTES};

/// Coarsest relative resolution of a rate that is recognised as a ceiling.
const MAX_DIGIT_STEP: f64 = 0.002;
/// Coarsest relative resolution of a rate for which a link is only suspected.
const MAX_SUSPECT_DIGIT_STEP: f64 = 0.1;
/// A slower link is suspected from this share of its ceiling on.
const SUSPECT_SHARE: f64 = 0.93;
/// Largest packet whose ceilings are recognised, bytes.
const MAX_RECOGNISED: f64 = 9000.0;

/// Checks every rate against the link.
pub(super) fn check(case: &mut CheckedTest<'_>) {
    let limits = case.context.link_bps.and_then(|link| LinkLimits::of(case, link));
    let mut found = Vec::new();
    for (index, claim) in case.claims.iter().enumerate() {
        // The offered rate of UDP may exceed the link's.
        let offered = case.context.udp && (claim.side == Some(Side::Sender) || perhaps_offered(case, claim));
        let Some(rate) = case.rate(claim).filter(|_| !offered) else { continue };
        let rate = arrived(case, claim, rate);
        let (reason, ceilings) = match &limits {
            Some(limits) => (limits.judge(case, index, claim, &rate), limits.ceilings.clone()),
            None => recognised(case, claim, &rate, f64::INFINITY)
                .map_or((None, Vec::new()), |(reason, ceiling)| (Some(reason), vec![ceiling])),
        };
        found.push((index, rate.quantity, reason, ceilings));
    }
    for (index, quantity, reason, ceilings) in found {
        for ceiling in ceilings {
            case.add_ceiling(index, Some(ceiling));
        }
        if let Some(reason) = reason {
            case.remark(index, quantity, reason);
        }
    }
}

/// Whether a line of a file about UDP may be the sender's: it states neither its side nor the loss.
fn perhaps_offered(case: &CheckedTest<'_>, claim: &Claim) -> bool {
    let fate = [Quantity::Lost, Quantity::LossRatio].into_iter().any(|one| claim.figure(one).is_some());
    case.context.from_file && claim.side.is_none() && !fate
}

/// The rate of datagrams that arrived, if the line does not state its side: the rate less the loss.
fn arrived(case: &CheckedTest<'_>, claim: &Claim, rate: LineRate) -> LineRate {
    let lost = FigureRange::in_claim(claim, Quantity::LossRatio)
        .filter(|lost| case.context.udp && claim.side.is_none() && lost.high <= 1.0);
    let Some(lost) = lost else { return rate };
    let kept = FigureRange { low: 1.0 - lost.high, high: 1.0 - lost.low };
    LineRate {
        bps: rate.bps * (1.0 - lost.middle()),
        range: rate.range.times(kept),
        rounded: rate.rounded.times(kept),
        ..rate
    }
}

/// Limits of a link with a stated rate.
struct LinkLimits<'a> {
    link_bps: f64,
    /// With the stated or usual packets, bit/s.
    usual_bps: f64,
    /// With the largest possible packets, bit/s.
    absolute_bps: f64,
    /// After a shaper that counts less than the bytes on the wire, with the stated or usual packets, bit/s;
    /// absent for a figure that was typed, which is about a wire.
    shaped_bps: Option<f64>,
    /// The packet of `usual_bps`.
    best: &'a FullPacket,
    frames: &'a [FullPacket],
    ceilings: Vec<Ceiling>,
    usual_queues: Vec<f64>,
    absolute_queues: Vec<f64>,
}

impl<'a> LinkLimits<'a> {
    fn of(case: &'a CheckedTest<'_>, link_bps: f64) -> Option<Self> {
        let rate = |frame: &FullPacket| frame.rate_bps(link_bps).unwrap_or(0.0);
        let fastest = |assumed: bool| {
            let frames = case.frames.iter().filter(move |frame| assumed || !frame.assumed);
            frames.max_by(|a, b| rate(a).total_cmp(&rate(b)))
        };
        let (best, largest) = (fastest(false)?, fastest(true)?);
        // A figure is compared with the most likely IP version; the other one leaves less room for payload.
        let likeliest = case.frames.first().map(|frame| frame.headers.ip_bytes);
        let alike = |frame: &&FullPacket| Some(frame.headers.ip_bytes) == likeliest && !frame.assumed;
        let shaped = |frames: &mut dyn Iterator<Item = &FullPacket>| {
            let rates = frames.filter_map(|frame| frame.shaped_bps(link_bps));
            rates.reduce(f64::max).filter(|_| case.context.from_file)
        };
        let absolute = shaped(&mut case.frames.iter());
        Some(Self {
            link_bps,
            usual_bps: rate(best),
            absolute_bps: absolute.unwrap_or_default().max(rate(largest)),
            shaped_bps: shaped(&mut case.frames.iter().filter(|frame| !frame.assumed)),
            best,
            frames: &case.frames,
            ceilings: case.frames.iter().filter(alike).filter_map(|frame| frame.ceiling(link_bps)).collect(),
            usual_queues: case.queues_bytes(rate(best)),
            absolute_queues: case.queues_bytes(absolute.unwrap_or_default().max(rate(largest))),
        })
    }

    fn judge(&self, case: &CheckedTest<'_>, index: usize, claim: &Claim, rate: &LineRate) -> Option<Reason> {
        let queue = |queues: &[f64]| queues.get(index).copied().unwrap_or_default();
        let absolute = case.standing(claim, rate, self.absolute_bps, queue(&self.absolute_queues));
        let usual = case.standing(claim, rate, self.usual_bps, queue(&self.usual_queues));
        match (absolute, usual) {
            (CeilingComparison::Beyond(bytes), _) => Some(self.impossible(case, claim, rate, bytes)),
            (_, CeilingComparison::Within) => {
                recognised(case, claim, rate, self.link_bps).map(|(reason, _)| reason)
            }
            (_, CeilingComparison::InBuffers(bytes)) => Some(in_buffers(claim, rate, self.usual_bps, bytes)),
            (CeilingComparison::InBuffers(bytes), _) => {
                Some(in_buffers(claim, rate, self.absolute_bps, bytes))
            }
            (CeilingComparison::Untimed, _) | (_, CeilingComparison::Untimed) => {
                Some(untimed(rate, self.usual_bps))
            }
            (CeilingComparison::Within, _) => Some(
                self.shaped(rate)
                    .unwrap_or_else(|| larger_packets(case, rate, self.link_bps, self.usual_bps)),
            ),
        }
    }

    /// More than a wire of that rate carries, but not more than a shaper lets through.
    fn shaped(&self, rate: &LineRate) -> Option<Reason> {
        let shaped_bps = self.shaped_bps.filter(|most| rate.range.low <= most * (1.0 + CLOCKS))?;
        let text = format!(
            "A wire of {} carries only {}, but a shaper of that rate that counts frames without preamble, \
             gap and FCS lets {} through.",
            format::rate(self.link_bps),
            format::fine_rate(self.usual_bps),
            format::fine_rate(shaped_bps)
        );
        let reason = Reason::new(Check::Link, Verdict::Doubtful, text)
            .with("rate_bps", Some(rate.bps))
            .with("ceiling_bps", Some(self.usual_bps))
            .with("shaped_ceiling_bps", Some(shaped_bps));
        Some(reason)
    }

    fn impossible(
        &self,
        case: &CheckedTest<'_>,
        claim: &Claim,
        rate: &LineRate,
        bytes: Option<f64>,
    ) -> Reason {
        let because = self.best.ceiling(self.link_bps).map(|ceiling| ceiling.because).unwrap_or_default();
        let mut reason = beyond(rate, self.usual_bps, &because).with("excess_bytes", bytes);
        reason.causes = causes::of(&Excess {
            bps: rate.bps,
            ceiling_bps: self.usual_bps,
            link_bps: self.link_bps,
            frame: self.best,
            frames: self.frames,
            seconds: case.seconds(claim).map(FigureRange::middle),
            bytes: claim.figure(Quantity::Bytes).map(|figure| figure.value),
            claim,
            context: &case.context,
        });
        reason
    }
}

fn beyond(rate: &LineRate, ceiling_bps: f64, because: &str) -> Reason {
    let excess = rate.bps - ceiling_bps;
    let text = format!(
        "{} exceeds the {} that the link carries ({because}) by {}, {}.",
        format::fine_rate(rate.bps),
        format::fine_rate(ceiling_bps),
        format::fine_rate(excess),
        format::beyond(rate.bps / ceiling_bps)
    );
    Reason::new(Check::Link, Verdict::Impossible, text)
        .with("rate_bps", Some(rate.bps))
        .with("ceiling_bps", Some(ceiling_bps))
        .with("excess_bps", Some(excess))
        .with("excess_ratio", Some(excess / ceiling_bps))
}

/// The line does not state its duration: all of it may have come from buffers.
fn untimed(rate: &LineRate, ceiling_bps: f64) -> Reason {
    let text = format!(
        "{} exceeds the {} of the path, and the line does not state its duration: bytes may have waited in \
         buffers. Use the figure of the whole test.",
        format::fine_rate(rate.bps),
        format::fine_rate(ceiling_bps)
    );
    Reason::new(Check::Link, Verdict::Doubtful, text)
        .with("rate_bps", Some(rate.bps))
        .with("ceiling_bps", Some(ceiling_bps))
}

fn in_buffers(claim: &Claim, rate: &LineRate, ceiling_bps: f64, bytes: f64) -> Reason {
    let (what, remedy) = match (claim.side, claim.scope) {
        (Some(Side::Sender), ClaimScope::Interval) => ("written into buffers", "use the receiver's figures"),
        (Some(Side::Sender), _) => {
            ("in buffers when the sender's clock stopped", "use the receiver's figure, or test longer")
        }
        (_, ClaimScope::Interval) => (
            "sent in an earlier interval and read late",
            "use the figure of the whole \
                                                                               test",
        ),
        _ => ("received before the clock started", "test longer"),
    };
    let text = format!(
        "{} is not a rate of the path, which carries {}. The excess of {} may have been {what}; {remedy}.",
        format::fine_rate(rate.bps),
        format::fine_rate(ceiling_bps),
        format::size(bytes)
    );
    Reason::new(Check::Link, Verdict::Doubtful, text)
        .with("rate_bps", Some(rate.bps))
        .with("ceiling_bps", Some(ceiling_bps))
        .with("excess_bps", Some(rate.bps - ceiling_bps))
        .with("excess_bytes", Some(bytes))
}

/// No MTU was stated, and the usual one is too small.
fn larger_packets(case: &CheckedTest<'_>, rate: &LineRate, link_bps: f64, usual: f64) -> Reason {
    let needed = causes::mtu_needed_bytes(&case.context, rate.bps, link_bps);
    let mtu = needed.map_or_else(String::new, |(bare, stamped)| {
        format!(" (at least {:.0} bytes, or {:.0} with TCP timestamps)", bare.ceil(), stamped.ceil())
    });
    let text = format!(
        "{} needs a larger MTU{mtu}; with 1500 bytes the link carries {}. Give the MTU with --mtu.",
        format::fine_rate(rate.bps),
        format::fine_rate(usual)
    );
    Reason::new(Check::Link, Verdict::Doubtful, text)
        .with("rate_bps", Some(rate.bps))
        .with("ceiling_bps", Some(usual))
        .with("mtu_needed_bytes", needed.map(|(bare, _)| bare))
        .with("mtu_needed_with_timestamps_bytes", needed.map(|(_, stamped)| stamped))
}

/// A rate that equals the ceiling of this link or of a slower one, or is near one.
fn recognised(
    case: &CheckedTest<'_>,
    claim: &Claim,
    rate: &LineRate,
    link_bps: f64,
) -> Option<(Reason, Ceiling)> {
    let width = rate.rounded.relative_width();
    let near = width <= MAX_SUSPECT_DIGIT_STEP && rate.bps > 0.0;
    if !near {
        return None;
    }
    let stated = link_bps.is_finite().then_some((ethernet::standard_name(link_bps), link_bps));
    let slower = STANDARD_RATES.into_iter().filter(|one| one.bps < link_bps);
    let links = stated.into_iter().chain(slower.map(|StandardRate { name, bps }| (Some(name), bps)));
    let links: Vec<(String, f64)> =
        links.map(|(name, bps)| (name.map_or_else(|| format::rate(bps), str::to_owned), bps)).collect();
    for (name, bps) in links.iter().filter(|_| width <= MAX_DIGIT_STEP) {
        if let Some(found) = at_ceiling(case, rate, name, *bps) {
            return Some(found);
        }
    }
    if claim.scope == ClaimScope::Interval {
        return None;
    }
    let likeliest = case.frames.first()?;
    links.iter().filter(|(_, bps)| *bps < link_bps).find_map(|(name, bps)| {
        let ceiling = likeliest.rate_bps(*bps)?;
        let share = rate.bps / ceiling;
        let near = (SUSPECT_SHARE..=1.0005).contains(&share);
        near.then(|| suspected(rate, name, ceiling, share, likeliest))
    })
}

fn at_ceiling(
    case: &CheckedTest<'_>,
    rate: &LineRate,
    name: &str,
    link_bps: f64,
) -> Option<(Reason, Ceiling)> {
    let is = |ceiling: f64| rate.rounded.meets(FigureRange::exact(ceiling).widened(CLOCKS));
    let frames = || case.frames.iter().filter(|frame| frame.mtu_bytes <= MAX_RECOGNISED);
    let known = |text: String, ceiling: f64, because: String| {
        let reason = Reason::new(Check::KnownCeiling, Verdict::AtCeiling, text)
            .with("rate_bps", Some(rate.bps))
            .with("ceiling_bps", Some(ceiling))
            .with("share_ratio", Some(rate.bps / ceiling))
            .with("link_bps", Some(link_bps));
        (reason, new_ceiling(Limit::LinkInferred, ceiling, because))
    };
    for frame in frames() {
        let ceiling = frame.rate_bps(link_bps)?;
        if is(ceiling) {
            let because = format!("{name}, {}", frame.because);
            let full = format::fine_rate(ceiling);
            return Some(known(format!("Exactly the {full} of a full link ({because})."), ceiling, because));
        }
    }
    if let Some(frame) =
        smaller_packets(case).into_iter().find(|frame| frame.rate_bps(link_bps).is_some_and(is))
    {
        let ceiling = frame.rate_bps(link_bps)?;
        let because = format!("{name}, {}", frame.because);
        let text = format!(
            "Exactly the {} of a full link ({because}): the larger MTU is not in effect.",
            format::fine_rate(ceiling)
        );
        return Some(known(text, ceiling, because));
    }
    let frame = frames().next().filter(|frame| !case.context.udp && !frame.is_cut())?;
    let counted = frame.mtu_bytes + ETHERNET_HEADER_BYTES + TAG_BYTES * f64::from(case.context.tags);
    let shaped = link_bps * frame.layers.payload_bytes / counted;
    let slower = case.context.link_bps.is_none_or(|stated| link_bps < stated * 0.999);
    (slower && is(shaped)).then(|| {
        let because = format!(
            "shaper of {} that counts frames without preamble, gap and FCS, {}",
            format::rate(link_bps),
            frame.because
        );
        known(format!("Exactly the {} of a {because}.", format::fine_rate(shaped)), shaped, because)
    })
}

/// Segments of the usual size, if larger ones are stated.
fn smaller_packets(case: &CheckedTest<'_>) -> Vec<FullPacket> {
    if case.context.udp || case.context.mtu_bytes.is_none_or(|mtu| mtu <= USUAL_MTU_BYTES) {
        return Vec::new();
    }
    let usual = Context { mtu_bytes: Some(USUAL_MTU_BYTES), mss_bytes: None, ..case.context.clone() };
    usual.frames()
}

fn suspected(rate: &LineRate, name: &str, ceiling: f64, share: f64, frame: &FullPacket) -> (Reason, Ceiling) {
    let because = format!("{name}, {}", frame.because);
    let text = format!(
        "{} of the {} that {name} carries ({}): a link of that rate may be on the path, or a shaper set to it.",
        format::percent(share.min(1.0)),
        format::fine_rate(ceiling),
        frame.because
    );
    let reason = Reason::new(Check::KnownCeiling, Verdict::Possible, text)
        .with("rate_bps", Some(rate.bps))
        .with("ceiling_bps", Some(ceiling))
        .with("share_ratio", Some(share));
    (reason, new_ceiling(Limit::LinkInferred, ceiling, because))
}
