//! Whether the figures of one line agree with each other, within their printed digits.

use linerate_model::import::{Claim, ClaimScope, Quantity};
use linerate_model::metrics::Side;

use super::case::{CLOCKS, CheckedTest};
use super::judgement::{Check, FigureRemark, Reason, Verdict};
use super::range::FigureRange;
use super::{causes, judgement::CauseKind, judgement::PossibleCause};
use crate::{conversion, format};

/// Relative difference allowed between bytes over time and the rate on the same line: programs read their clock
/// more than once for a line.
const CLOCK_READ_TOLERANCE: f64 = 0.001;
/// Share of the datagrams that arrived last and may be in one count and not in the other.
const LATE_DATAGRAM_SHARE: f64 = 0.01;
/// Relative difference allowed between a message over its time and the rate on the same line.
pub(super) const MESSAGE_DIGITS: f64 = 0.005;
/// Bytes of a stream's first read, which a rate may leave out.
const FIRST_READ_BYTES: f64 = 131_072.0;

/// Checks every line on its own.
pub(super) fn check(case: &mut CheckedTest<'_>) {
    for (index, claim) in case.claims.iter().enumerate() {
        let seconds = case.seconds(claim);
        let remarks = [
            bytes_over_time(case, claim, seconds),
            message_time(claim),
            lost(case, claim),
            packets(claim, seconds),
            bytes_of_calls(claim),
            call_rate(claim),
            call_time(claim, seconds),
            within_the_interval(claim),
        ];
        for (quantity, reason) in remarks.into_iter().flatten() {
            case.remark(index, quantity, reason);
        }
    }
}

fn bytes_over_time(
    case: &CheckedTest<'_>,
    claim: &Claim,
    seconds: Option<FigureRange>,
) -> Option<FigureRemark> {
    let (printed, counted) = (claim.figure(Quantity::Bitrate)?, claim.figure(Quantity::Bytes)?);
    let (rate, bytes) = (FigureRange::of(printed)?, FigureRange::of(counted)?);
    let streams = case.context.streams_of(claim.stream);
    let left_out = if case.context.first_read_left_out { FIRST_READ_BYTES * streams } else { 0.0 };
    let counted_bytes = FigureRange { low: (bytes.low - left_out).max(0.0), ..bytes };
    let of_bytes = counted_bytes.scaled(8.0).over(seconds?)?;
    if rate.meets(of_bytes.widened(CLOCK_READ_TOLERANCE)) {
        return None;
    }
    let implied = counted.value * 8.0 / case.likely_seconds(claim)?;
    let text = format!(
        "The bytes and the time on the same line give {}, not {}.",
        format::fine_rate(implied),
        format::fine_rate(printed.value)
    );
    let mut reason = Reason::new(Check::BytesOverTime, Verdict::Impossible, text)
        .with("rate_bps", Some(printed.value))
        .with("implied_bps", Some(implied))
        .with("ratio", Some(printed.value / implied));
    reason.causes = units(rate, of_bytes);
    Some((Quantity::Bitrate, reason))
}

/// Unit mistakes that turn one rate into the other.
fn units(rate: FigureRange, of_bytes: FigureRange) -> Vec<PossibleCause> {
    let mega = causes::prefix_factor(rate.middle()).0;
    let giga = conversion::GIB / 1e9;
    let binary = CauseKind::BinaryPrefix;
    let table = [
        (
            mega,
            binary,
            "bytes counted in units of 2^20 (2^10) and labelled decimal, or a rate multiplied by 1.048576 (1.024)",
        ),
        (
            1.0 / mega,
            binary,
            "a rate in units of 2^20 (2^10) labelled decimal: multiply it by 1.048576 (1.024)",
        ),
        (
            giga,
            binary,
            "bytes counted in units of 2^30 and labelled decimal, or a rate multiplied by 1.073742",
        ),
        (1.0 / giga, binary, "a rate in units of 2^30 labelled decimal: multiply it by 1.073742"),
        (8.0, CauseKind::BitsForBytes, "bits printed as bytes: divide the rate by 8"),
        (1.0 / 8.0, CauseKind::BitsForBytes, "bytes printed as bits: multiply the rate by 8"),
    ];
    let fits = |factor: f64| rate.scaled(1.0 / factor).meets(of_bytes.widened(0.002));
    let fitting = table.into_iter().filter(|(factor, _, _)| fits(*factor));
    fitting
        .map(|(factor, kind, text)| PossibleCause {
            kind,
            text: text.to_owned(),
            remedy: "compute the rate as bytes x 8 / seconds",
            evidence: [("factor", factor)].into(),
        })
        .collect()
}

/// NetPIPE's line: message size, one-way time and rate.
fn message_time(claim: &Claim) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::Bitrate)?;
    let (rate, size) = (FigureRange::of(printed)?, FigureRange::in_claim(claim, Quantity::MessageSize)?);
    let time = FigureRange::in_claim(claim, Quantity::OneWay)?;
    let implied = size.scaled(8.0).over(time)?;
    // For a message of one or two bytes only a few digits are printed; for both directions at once, the sum.
    let agrees = |factor: f64| rate.meets(implied.scaled(factor).widened(MESSAGE_DIGITS));
    if agrees(1.0) || agrees(2.0) {
        return None;
    }
    let text = format!(
        "The message size and its time give {}, not {}.",
        format::fine_rate(implied.middle()),
        format::fine_rate(printed.value)
    );
    let mut reason = Reason::new(Check::BytesOverTime, Verdict::Impossible, text)
        .with("rate_bps", Some(printed.value))
        .with("implied_bps", Some(implied.middle()));
    reason.causes = units(rate, implied);
    Some((Quantity::Bitrate, reason))
}

/// The packet count of the same stream's sender.
fn sent_packets(case: &CheckedTest<'_>, claim: &Claim) -> Option<FigureRange> {
    let same = |one: &&Claim| {
        (one.scope, one.stream, one.direction) == (claim.scope, claim.stream, claim.direction)
            && one.side == Some(Side::Sender)
    };
    case.claims.iter().filter(same).find_map(|one| FigureRange::in_claim(one, Quantity::Packets))
}

fn lost(case: &CheckedTest<'_>, claim: &Claim) -> Option<FigureRemark> {
    let lost = FigureRange::in_claim(claim, Quantity::Lost)?;
    let packets = FigureRange::in_claim(claim, Quantity::Packets)?;
    if lost.low > packets.high {
        let text = "More packets were lost than were sent.".to_owned();
        return Some((Quantity::Lost, Reason::new(Check::LossAccounting, Verdict::Impossible, text)));
    }
    let printed = claim.figure(Quantity::LossRatio)?;
    let ratio = FigureRange::of(printed)?;
    let implied = lost.over(packets)?;
    // Programs differ in whether the counted packets include the lost ones.
    let with_lost = lost.over(packets.plus(lost))?;
    let fits = |range: FigureRange| ratio.meets(range.widened(LATE_DATAGRAM_SHARE));
    // iperf3 counts the packets that arrived, and divides by those sent.
    let of_sent = || sent_packets(case, claim).and_then(|sent| lost.over(sent));
    if fits(implied) || fits(with_lost) || (claim.scope == ClaimScope::Total && of_sent().is_some_and(fits)) {
        return None;
    }
    let makes = claim.figure(Quantity::Lost)?.value / claim.figure(Quantity::Packets)?.value;
    let text = format!(
        "Lost packets divided by sent packets give {}, not {}.",
        format::percent(makes),
        format::percent(printed.value)
    );
    let reason = Reason::new(Check::LossAccounting, Verdict::Impossible, text)
        .with("loss_ratio", Some(printed.value))
        .with("implied_ratio", Some(makes));
    Some((Quantity::LossRatio, reason))
}

fn packets(claim: &Claim, seconds: Option<FigureRange>) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::PacketRate)?;
    let rate = FigureRange::of(printed)?;
    let packets = FigureRange::in_claim(claim, Quantity::Packets)?;
    let lost = FigureRange::in_claim(claim, Quantity::Lost).unwrap_or(FigureRange { low: 0.0, high: 0.0 });
    // Packets that were sent or that arrived; one more or less between two reads of a counter.
    let all = FigureRange { low: (packets.low - lost.high - 1.0).max(0.0), high: packets.high + 1.0 };
    let implied = all.over(seconds?)?;
    if rate.meets(implied.widened(CLOCK_READ_TOLERANCE)) {
        return None;
    }
    let text = format!("The packets and the time give {:.0} packets per second.", implied.middle());
    let reason = Reason::new(Check::PacketRate, Verdict::Impossible, text)
        .with("packets_per_second", Some(printed.value))
        .with("implied_per_second", Some(implied.middle()));
    Some((Quantity::PacketRate, reason))
}

fn bytes_of_calls(claim: &Claim) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::Bytes)?;
    let bytes = FigureRange::of(printed)?;
    let most = FigureRange::in_claim(claim, Quantity::Calls)?
        .times(FigureRange::in_claim(claim, Quantity::MessageSize)?);
    // Reads may return less than requested, and the last one returns nothing.
    if bytes.low <= most.high {
        return None;
    }
    let text =
        format!("This number of calls moves {:.0} B at most, not {:.0} B.", most.middle(), printed.value);
    let reason = Reason::new(Check::Calls, Verdict::Impossible, text)
        .with("bytes", Some(printed.value))
        .with("most_bytes", Some(most.middle()));
    Some((Quantity::Bytes, reason))
}

fn call_rate(claim: &Claim) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::CallRate)?;
    let rate = FigureRange::of(printed)?;
    let calls = FigureRange::in_claim(claim, Quantity::Calls)?;
    let implied = calls.over(FigureRange::in_claim(claim, Quantity::Seconds)?)?;
    if rate.meets(implied.widened(CLOCKS)) {
        return None;
    }
    let text = format!("The calls and the time give {:.2} calls per second.", implied.middle());
    let reason = Reason::new(Check::Calls, Verdict::Impossible, text)
        .with("calls_per_second", Some(printed.value))
        .with("implied_per_second", Some(implied.middle()));
    Some((Quantity::CallRate, reason))
}

/// ttcp multiplies seconds by 1024 and prints them as milliseconds.
fn call_time(claim: &Claim, seconds: Option<FigureRange>) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::CallTime)?;
    let time = FigureRange::of(printed)?;
    let implied = seconds?.over(FigureRange::in_claim(claim, Quantity::Calls)?)?;
    if time.meets(implied.widened(CLOCKS)) {
        return None;
    }
    let binary = time.meets(implied.scaled(1.024).widened(CLOCKS));
    let text = if binary {
        format!(
            "A call took {}. ttcp has a bug: it prints seconds times 1024 as milliseconds.",
            format::time(implied.middle())
        )
    } else {
        format!("The time divided by the number of calls is {}.", format::time(implied.middle()))
    };
    let verdict = if binary { Verdict::Doubtful } else { Verdict::Impossible };
    let reason = Reason::new(Check::Calls, verdict, text)
        .with("call_s", Some(printed.value))
        .with("implied_s", Some(implied.middle()))
        .with("binary_s", Some(implied.middle() * 1.024).filter(|_| binary));
    Some((Quantity::CallTime, reason))
}

/// No part of a time is longer than the whole.
fn within_the_interval(claim: &Claim) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::Seconds)?;
    let (start, end) = (claim.start?.as_secs_f64(), claim.end?.as_secs_f64());
    let utilisation = crate::host::utilisation(printed.value, end - start)?;
    // A receiver waits for data in flight.
    let late = if claim.side == Some(Side::Receiver) { 1.0 } else { 0.1 };
    if end <= start || printed.value - printed.step <= end - start + late {
        return None;
    }
    let text = format!(
        "{} measured within an interval of {}: {utilisation:.3} times its length.",
        format::time(printed.value),
        format::time(end - start)
    );
    let reason =
        Reason::new(Check::Clock, Verdict::Impossible, text).with("utilisation_ratio", Some(utilisation));
    Some((Quantity::Seconds, reason))
}
