//! Clocks and lengths: tests that are too short, and round trips that are too short for their distance.

use linerate_model::import::{Claim, ClaimScope, Quantity};

use super::case::CheckedTest;
use super::judgement::{Check, FigureRemark, Reason, Verdict};
use super::range::FigureRange;
use crate::slow_start::{self, GROWTH_PER_SEGMENT, SlowStart};
use crate::{bdp, format, sender_error};

/// Relative uncertainty of a rate from the digits of a time, above which the rate is doubted.
const MAX_TIME_ROUNDING: f64 = 0.01;
/// Share of a rate that slow start may cost before the rate is doubted.
const MAX_SLOW_START_BIAS: f64 = 0.10;
/// Initial window, segments. Source: RFC 6928 §2.
const INITIAL_SEGMENTS: f64 = 10.0;
/// Ratio of path length to distance from which detours are likely.
const DETOUR_STRETCH: f64 = 3.0;

/// Checks times.
pub(super) fn check(case: &mut CheckedTest<'_>) {
    for (index, claim) in case.claims.iter().enumerate() {
        let remarks = [granularity(case, claim), ramp(case, claim), distance(case, claim)];
        for (quantity, reason) in remarks.into_iter().flatten() {
            case.remark(index, quantity, reason);
        }
    }
}

/// A rate that was not printed but computed from a time with few digits.
fn granularity(case: &CheckedTest<'_>, claim: &Claim) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::Seconds)?;
    if claim.scope != ClaimScope::Total || claim.figure(Quantity::Bytes).is_none() {
        return None;
    }
    let seconds = case.seconds(claim)?;
    if printed.value <= 0.0 {
        let text = "No time passed on this clock, so there is no rate.".to_owned();
        return Some((Quantity::Seconds, Reason::new(Check::Clock, Verdict::Doubtful, text)));
    }
    let open = seconds.relative_width() / 2.0;
    if claim.figure(Quantity::Bitrate).is_some() || open <= MAX_TIME_ROUNDING {
        return None;
    }
    let text = format!(
        "Too short for its clock: rounding of the time leaves the rate uncertain by {} in either direction; \
         test longer.",
        format::percent(open)
    );
    let reason = Reason::new(Check::Clock, Verdict::Doubtful, text).with("open_ratio", Some(open));
    Some((Quantity::Seconds, reason))
}

/// A test that is mostly slow start.
fn ramp(case: &CheckedTest<'_>, claim: &Claim) -> Option<FigureRemark> {
    let (rtt, link) = (case.context.rtt_s?, case.context.link_bps?);
    if claim.scope != ClaimScope::Total || case.context.udp {
        return None;
    }
    let rate = case.rate(claim).filter(|rate| rate.bps > 0.0)?;
    let frame = case.frames.first()?;
    let full = frame.rate_bps(link)? / case.context.streams_of(claim.stream);
    let window = bdp::window_segments(full, rtt, frame.layers.payload_bytes)?;
    let start = SlowStart {
        rate_bps: full,
        rtt_s: rtt,
        mss_bytes: frame.layers.payload_bytes,
        initial_segments: INITIAL_SEGMENTS,
        growth: GROWTH_PER_SEGMENT,
    };
    let rounds =
        slow_start::rounds(window, INITIAL_SEGMENTS, GROWTH_PER_SEGMENT).filter(|rounds| *rounds > 0.0)?;
    let lost = slow_start::lost_time_s(&start, rounds).filter(|lost| *lost > 0.0)?;
    let seconds = case.seconds(claim)?.middle();
    let bias = lost / seconds;
    // A rate near the ceiling did not lose that time, or the start was left out.
    if bias <= MAX_SLOW_START_BIAS || rate.bps > full * (1.0 - bias) * 1.05 {
        return None;
    }
    let text = format!(
        "Too short: slow start alone costs {} of {}; test for {} or leave the start out.",
        format::time(lost),
        format::time(seconds),
        format::time(lost / 0.01)
    );
    let reason = Reason::new(Check::Clock, Verdict::Doubtful, text)
        .with("lost_s", Some(lost))
        .with("bias_ratio", Some(bias));
    Some((rate.quantity, reason))
}

/// A round trip compared with the speed of light in fibre, and in vacuum for other media.
fn distance(case: &CheckedTest<'_>, claim: &Claim) -> Option<FigureRemark> {
    let printed = claim.figure(Quantity::RoundTrip)?;
    let range = FigureRange::of(printed)?;
    let distance = case.context.distance_m?;
    let fibre = sender_error::signal_speed_m_per_s(sender_error::FIBRE_INDEX)?;
    let floor = sender_error::round_trip_floor_s(distance, fibre)?;
    let vacuum = sender_error::round_trip_floor_s(distance, sender_error::LIGHT_M_PER_S)?;
    let stretch = sender_error::path_stretch(printed.value, fibre, distance)?;
    let (verdict, text) = if range.high < vacuum {
        let text = format!("Light takes {}: the distance or the clock is wrong.", format::time(vacuum));
        (Verdict::Impossible, text)
    } else if range.high < floor {
        let text = format!("Light in fibre takes {}; only a radio path is faster.", format::time(floor));
        (Verdict::Doubtful, text)
    } else if stretch > DETOUR_STRETCH {
        let text = format!(
            "{stretch:.3} times the {} of light in fibre: the path takes detours.",
            format::time(floor)
        );
        (Verdict::Possible, text)
    } else {
        let text = format!("{stretch:.3} times the {} of light in fibre.", format::time(floor));
        (Verdict::Possible, text)
    };
    let reason = Reason::new(Check::Distance, verdict, text)
        .with("floor_s", Some(floor))
        .with("vacuum_floor_s", Some(vacuum))
        .with("stretch_ratio", Some(stretch));
    Some((Quantity::RoundTrip, reason))
}
