//! Windows, loss and retransmissions: what TCP can achieve over a round trip.

use linerate_model::Limit;
use linerate_model::import::{Claim, ClaimScope, Figure, Quantity};
use linerate_model::metrics::Side;

use super::case::{CLOCKS, CeilingComparison, CheckedTest, LineRate};
use super::causes;
use super::judgement::{CauseKind, Check, FigureRemark, PossibleCause, Reason, Verdict};
use super::range::FigureRange;
use crate::ceilings::new_ceiling;
use crate::envelope::Congestion;
use crate::{bdp, format, framing, tcp_rate};

/// Factor by which a rate may exceed a loss model before it is doubted: the models are no more precise.
const LOSS_MODEL_FACTOR: f64 = 1.5;
/// Factor by which a rate may exceed the congestion window over a round trip: the window is a momentary value.
const MOMENTARY_WINDOW_FACTOR: f64 = 1.25;
/// Number of lines in which the previous interval is searched.
const MAX_LOOK_BACK_LINES: usize = 4096;
/// Largest segment that fits a packet of IPv4, bytes: 65 535 less two headers of twenty.
const MAX_MSS_BYTES: f64 = 65_495.0;

/// Checks figures of TCP.
pub(super) fn check(case: &mut CheckedTest<'_>) {
    if case.context.udp {
        return;
    }
    let (one, all) = (window_ceiling(case, 1.0), window_ceiling(case, case.context.streams_of(None)));
    for (index, claim) in case.claims.iter().enumerate() {
        if let Some(ceiling) = if claim.stream.is_some() { &one } else { &all } {
            window(case, index, claim, ceiling);
        }
        loss(case, index, claim);
        let remarks = [congestion_window(case, index, claim), retransmits(case, claim), segment(claim)];
        for (quantity, reason) in remarks.into_iter().flatten() {
            case.remark(index, quantity, reason);
        }
    }
}

/// The rate that the stated window allows, with the accumulated excess of the intervals.
struct WindowCeiling {
    ceiling_bps: f64,
    rtt_s: f64,
    because: String,
    queues_bytes: Vec<f64>,
}

fn window_ceiling(case: &CheckedTest<'_>, streams: f64) -> Option<WindowCeiling> {
    let (window, rtt_s) = (case.context.window_bytes?, case.context.rtt_s?);
    let ceiling_bps = bdp::window_rate_bps(window, rtt_s)? * streams;
    let because = format!("window of {}, RTT {}", format::size(window), format::time(rtt_s));
    Some(WindowCeiling { ceiling_bps, rtt_s, because, queues_bytes: case.queues_bytes(ceiling_bps) })
}

fn window(case: &mut CheckedTest<'_>, index: usize, claim: &Claim, limit: &WindowCeiling) {
    let Some(rate) = case.rate(claim) else { return };
    let (ceiling, rtt, because) = (limit.ceiling_bps, limit.rtt_s, &limit.because);
    let streams = case.context.streams_of(claim.stream);
    case.add_ceiling(index, Some(new_ceiling(Limit::ReceiverWindow, ceiling, because.clone())));
    let queue = limit.queues_bytes.get(index).copied().unwrap_or_default();
    let needed = bdp::bdp_bytes(rate.bps / streams, rtt);
    let with = |reason: Reason| {
        reason
            .with("rate_bps", Some(rate.bps))
            .with("ceiling_bps", Some(ceiling))
            .with("excess_bps", Some(rate.bps - ceiling))
            .with("excess_ratio", Some(rate.bps / ceiling - 1.0))
            .with("window_needed_bytes", needed)
    };
    let reason = match case.standing(claim, &rate, ceiling, queue) {
        CeilingComparison::Within if !rate.rounded.meets(FigureRange::exact(ceiling).widened(CLOCKS)) => {
            return;
        }
        CeilingComparison::Within => {
            let text =
                format!("Exactly one window per round trip: {} ({because}).", format::fine_rate(ceiling));
            with(Reason::new(Check::Window, Verdict::AtCeiling, text))
        }
        CeilingComparison::Untimed => {
            let text = format!(
                "The {because} lets {} through; the line does not state its duration.",
                format::fine_rate(ceiling)
            );
            with(Reason::new(Check::Window, Verdict::Doubtful, text))
        }
        CeilingComparison::InBuffers(bytes) => {
            let text = format!(
                "The {because} lets {} through; {} more were written into buffers, or read late.",
                format::fine_rate(ceiling),
                format::size(bytes)
            );
            with(Reason::new(Check::Window, Verdict::Doubtful, text)).with("excess_bytes", Some(bytes))
        }
        CeilingComparison::Beyond(bytes) => {
            let text = format!(
                "{} exceeds the {} of one window per round trip ({because}) by {}.",
                format::fine_rate(rate.bps),
                format::fine_rate(ceiling),
                format::beyond(rate.bps / ceiling)
            );
            let mut reason =
                with(Reason::new(Check::Window, Verdict::Impossible, text)).with("excess_bytes", bytes);
            reason.causes = window_causes(&rate, ceiling, rtt, needed);
            reason
        }
    };
    case.remark(index, rate.quantity, reason);
}

fn window_causes(rate: &LineRate, ceiling: f64, rtt: f64, needed: Option<f64>) -> Vec<PossibleCause> {
    let mut found = Vec::new();
    let (factor, words) = causes::prefix_factor(rate.bps);
    let units = [
        (factor, CauseKind::BinaryPrefix, format!("a factor of {factor} ({words}) applied once too often")),
        (8.0, CauseKind::BitsForBytes, "bits printed as bytes".to_owned()),
    ];
    for (factor, kind, words) in units {
        let implied = rate.bps / factor;
        if implied <= ceiling * (1.0 + CLOCKS) {
            let text = format!("{words}: without it {}", format::fine_rate(implied));
            let remedy = "compare with bytes x 8 / seconds of the same test";
            let evidence = [("implied_bps", implied)].into();
            found.push(((1.0 - implied / ceiling).abs(), PossibleCause { kind, text, remedy, evidence }));
        }
    }
    if let Some(needed) = needed {
        let text = format!(
            "an effective window of {}, or a round trip of {}",
            format::size(needed),
            format::time(rtt * ceiling / rate.bps)
        );
        let evidence = [("window_needed_bytes", needed), ("rtt_needed_s", rtt * ceiling / rate.bps)].into();
        let remedy = "check the granted buffer and the smallest round trip";
        found.push((0.1, PossibleCause { kind: CauseKind::LargerWindow, text, remedy, evidence }));
    }
    causes::ranked(found)
}

/// A rate and the window on the same line give a round trip; with a stated round trip, a window.
fn congestion_window(case: &CheckedTest<'_>, index: usize, claim: &Claim) -> Option<FigureRemark> {
    let figure = claim.figure(Quantity::CongestionWindow)?;
    let rate = case.rate(claim).filter(|rate| rate.bps > 0.0)?;
    let cwnd = FigureRange::of(figure).filter(|range| range.low > 0.0)?;
    let before = earlier(case, index, claim).and_then(|one| one.figure(Quantity::CongestionWindow));
    let mean = before.map_or(figure.value, |before| f64::midpoint(before.value, figure.value));
    let most = before.and_then(FigureRange::of).map_or(cwnd.high, |before| before.high.max(cwnd.high));
    let implied = mean * 8.0 / rate.bps;
    let Some(rtt) = case.context.rtt_s else {
        let text = format!("The window and the rate give a round trip of {}.", format::time(implied));
        let reason = Reason::new(Check::CongestionWindow, Verdict::Possible, text)
            .with("rtt_implied_s", Some(implied));
        return Some((Quantity::CongestionWindow, reason));
    };
    let needed = bdp::bdp_bytes(rate.bps, rtt)?;
    let numbers = |reason: Reason| {
        reason
            .with("rtt_implied_s", Some(implied))
            .with("window_needed_bytes", Some(needed))
            .with("cwnd_bytes", Some(figure.value))
            .with("queue_s", Some(implied - rtt).filter(|queue| *queue > 0.0))
    };
    if bdp::bdp_bytes(rate.range.low, rtt)? <= most * MOMENTARY_WINDOW_FACTOR {
        let text = format!(
            "The window and the rate give a round trip of {}, {} of it in queues.",
            format::time(implied),
            format::time((implied - rtt).max(0.0))
        );
        let reason = numbers(Reason::new(Check::CongestionWindow, Verdict::Possible, text));
        return Some((Quantity::CongestionWindow, reason));
    }
    let text = format!(
        "{} over a round trip of {} needs a mean window of {}, but {} is printed: {}.",
        format::fine_rate(rate.bps),
        format::time(rtt),
        format::size(needed),
        format::size(figure.value),
        if claim.side == Some(Side::Receiver) {
            "the window has shrunk since then"
        } else {
            "bytes were written ahead of TCP"
        }
    );
    let reason = numbers(Reason::new(Check::CongestionWindow, Verdict::Doubtful, text));
    Some((rate.quantity, reason))
}

/// The previous interval of the same stream, direction and side.
fn earlier<'a>(case: &CheckedTest<'a>, index: usize, claim: &Claim) -> Option<&'a Claim> {
    let same = |one: &&Claim| {
        one.scope == ClaimScope::Interval
            && (one.stream, one.direction, one.side) == (claim.stream, claim.direction, claim.side)
    };
    case.claims.get(..index)?.iter().rev().take(MAX_LOOK_BACK_LINES).find(same)
}

/// Compares with the rate that the stated loss leaves. Models are rough, so a rate is doubted but never called
/// impossible.
fn loss(case: &mut CheckedTest<'_>, index: usize, claim: &Claim) {
    let context = &case.context;
    let (Some(loss), Some(rtt)) = (context.loss.filter(|loss| *loss > 0.0), context.rtt_s) else { return };
    if context.congestion == Some(Congestion::Bbr) {
        return;
    }
    let Some(mss) = case.frames.first().map(|frame| frame.layers.payload_bytes) else { return };
    let one = match context.congestion {
        Some(Congestion::Reno) => tcp_rate::mathis_bps(mss, rtt, loss),
        _ => tcp_rate::cubic_bps(tcp_rate::CUBIC, mss, rtt, loss),
    };
    let streams = context.streams_of(claim.stream);
    let (Some(model), Some(rate)) = (one.map(|one| one * streams), case.rate(claim)) else { return };
    let name = context.congestion.map_or("cubic", Congestion::name);
    let because = format!("{name} at a loss of {}, RTT {}", format::percent(loss), format::time(rtt));
    // Only if no link has a lower ceiling: a loss model says nothing about links.
    case.add_ceiling(index, Some(new_ceiling(Limit::Loss, model, because.clone())));
    if claim.scope == ClaimScope::Interval || rate.range.low <= model * LOSS_MODEL_FACTOR {
        return;
    }
    let text = format!(
        "{} is {:.1} times the rate of {because}: {}.",
        format::fine_rate(rate.bps),
        rate.bps / model,
        format::fine_rate(model)
    );
    let reason = Reason::new(Check::Loss, Verdict::Doubtful, text)
        .with("rate_bps", Some(rate.bps))
        .with("ceiling_bps", Some(model))
        .with("loss_ratio", Some(loss));
    case.remark(index, rate.quantity, reason);
}

fn retransmits(case: &CheckedTest<'_>, claim: &Claim) -> Option<FigureRemark> {
    let figure = claim.figure(Quantity::Retransmits).filter(|figure| figure.value > 0.0)?;
    let bytes = sent_bytes(case, claim)?;
    let mss = case.frames.first()?.layers.payload_bytes;
    let segments = bytes / mss;
    let ratio = framing::retransmission_ratio(figure.value, bytes * 8.0, 1.0, mss)?;
    let remark = |verdict: Verdict, text: String| {
        let reason = Reason::new(Check::Retransmits, verdict, text)
            .with("retransmission_ratio", Some(ratio))
            .with("segments", Some(segments));
        Some((Quantity::Retransmits, reason))
    };
    let lossless = claim.figure(Quantity::LossRatio).is_some_and(nothing);
    if lossless {
        return remark(
            Verdict::Doubtful,
            "Segments were retransmitted although nothing was lost.".to_owned(),
        );
    }
    // Segments may be smaller than full ones, so only a multiple is suspicious.
    if figure.value > segments * 2.0 + 10.0 {
        let text = format!(
            "More segments were retransmitted than the bytes fill: {segments:.0} full-size \
                            segments."
        );
        return remark(Verdict::Doubtful, text);
    }
    let text =
        format!("{} of the segments were retransmitted; the loss is at most that.", format::percent(ratio));
    remark(Verdict::Possible, text)
}

fn nothing(figure: &Figure) -> bool {
    figure.value <= 0.0 && figure.step <= 1e-6
}

fn sent_bytes(case: &CheckedTest<'_>, claim: &Claim) -> Option<f64> {
    let bytes = claim.figure(Quantity::Bytes).map(|figure| figure.value);
    let of_rate = || Some(case.rate(claim)?.bps * case.seconds(claim)?.middle() / 8.0);
    bytes.or_else(of_rate).filter(|bytes| *bytes > 0.0 && bytes.is_finite())
}

fn segment(claim: &Claim) -> Option<FigureRemark> {
    let figure = claim.figure(Quantity::Mss)?;
    let mtu = claim.figure(Quantity::Mtu).map(|mtu| mtu.value - 40.0);
    let most = mtu.map_or(MAX_MSS_BYTES, |mtu| mtu.min(MAX_MSS_BYTES));
    (figure.value - figure.step > most).then(|| {
        let text = format!("No segment is larger than {most:.0} bytes at this MTU.");
        let reason = Reason::new(Check::SegmentSize, Verdict::Impossible, text)
            .with("mss_bytes", Some(figure.value))
            .with("most_bytes", Some(most));
        (Quantity::Mss, reason)
    })
}
