//! Standard rates that may limit a flow, as the rate of a link or of a shaper.
//!
//! Both exist with the same round numbers. Framing distinguishes them: a link also carries preamble,
//! inter-frame gap and FCS, a shaper counts frames or packets without them. If the rate is not known precisely
//! enough, both fit.

use crate::ethernet::{STANDARD_RATES, StandardRate};
use crate::evidence::Evidence;
use crate::{ceilings, framing};

/// A link is full from this share of its ceiling; busy hosts and other traffic account for the rest.
const FULL_SHARE: f64 = 0.98;
/// The mean must be at least this share of the lowest rate of a candidate.
const MIN_MEAN_SHARE: f64 = 0.95;
/// Largest relative shortfall of a shaper below its rate, in addition to what the test itself used of it.
const MAX_SHAPER_SHORTFALL: f64 = 0.005;
/// Largest relative excess of a shaper over its rate: clock error, and what its bucket held.
const MAX_SHAPER_EXCESS: f64 = 0.002;

/// Largest relative excess of a late emulated line. It is less than the difference from a shaper of the same
/// rate.
const MAX_LATE_EXCESS: f64 = 0.004;

/// Largest relative error of the sustained rate: it is the median of intervals that contain whole reads.
const MAX_MEDIAN_ERROR: f64 = 2e-3;

/// What a standard rate belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StandardRateKind {
    /// A link or port.
    Link,
    /// A shaper, which counts less than the bytes on the wire.
    Shaper,
}

/// A standard rate that may limit the flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateCandidate {
    /// Nominal rate.
    pub(super) rate: StandardRate,
    /// Link or shaper.
    pub(super) kind: StandardRateKind,
    /// Lowest and highest payload rate that it lets through, bit/s.
    pub(super) goodput_bps: (f64, f64),
}

/// Candidates that fit the confidence interval of the rate, the one nearest to the sustained rate itself first.
///
/// Empty if none fits the sustained rate itself: it is not enough that the interval touches a link's rate.
pub(super) fn fitting(evidence: &Evidence) -> Vec<RateCandidate> {
    let (Some(sustained), Some((low, high))) = (evidence.sustained_bps(), evidence.rate_range_bps()) else {
        return Vec::new();
    };
    let (least_other, most_other) = evidence.other_shares();
    let within = |candidate: &RateCandidate, low: f64, high: f64| {
        let (least, most) = candidate.goodput_bps;
        low * (1.0 + least_other) <= most && high * (1.0 + most_other) >= least
    };
    // A median that hides frequent dips is not a rate that a link or shaper held.
    let mean = evidence.outcome.goodput_bps.unwrap_or(sustained);
    let held = |candidate: &RateCandidate| mean >= MIN_MEAN_SHARE * candidate.goodput_bps.0;
    let all = STANDARD_RATES.into_iter().flat_map(|rate| of(evidence, rate)).flatten();
    let mut found: Vec<RateCandidate> =
        all.filter(|candidate| within(candidate, low, high) && held(candidate)).collect();
    let distance = |candidate: &RateCandidate| {
        let (least, most) = candidate.goodput_bps;
        let above = sustained * (1.0 + least_other) / most - 1.0;
        let below = least / (sustained * (1.0 + most_other)) - 1.0;
        above.max(below).max(0.0)
    };
    found.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    if found.first().is_none_or(|nearest| distance(nearest) > MAX_MEDIAN_ERROR) {
        found.clear();
    }
    found
}

/// The candidate that fits the sustained rate, and whether no other one fits the interval.
pub(super) fn best(evidence: &Evidence) -> Option<(RateCandidate, bool)> {
    let found = fitting(evidence);
    let best = *found.first()?;
    // With tolerances, both may fit the sustained rate: then the first in the order of [`STANDARD_RATES`] is
    // taken.
    let alone = found.iter().all(|other| other.kind == best.kind && other.rate == best.rate);
    Some((best, alone))
}

/// A link and a shaper of this rate.
fn of(evidence: &Evidence, rate: StandardRate) -> [Option<RateCandidate>; 2] {
    // A late emulated line catches up, and carries a little more than its rate for a while.
    let late = evidence.timing.emulator_late == Some(true);
    let over = if late { MAX_LATE_EXCESS } else { framing::CLOCK_TOLERANCE_PPM * 1e-6 };
    let link = ceilings::link_goodput_bps(evidence, rate.bps).map(|ceiling| RateCandidate {
        rate,
        kind: StandardRateKind::Link,
        goodput_bps: (FULL_SHARE * ceiling, ceiling * (1.0 + over)),
    });
    [link, shaper(evidence, rate)]
}

/// The range from a shaper that counts the FCS to one that counts IP packets.
fn shaper(evidence: &Evidence, rate: StandardRate) -> Option<RateCandidate> {
    let layers = evidence.layer_bytes()?;
    let of_frames = framing::payload_rate_bps(rate.bps, layers.payload_bytes, layers.frame_bytes)?;
    let least = of_frames * (1.0 - MAX_SHAPER_SHORTFALL);
    let most = ceilings::link_packets_goodput_bps(evidence, rate.bps)? * (1.0 + MAX_SHAPER_EXCESS);
    Some(RateCandidate { rate, kind: StandardRateKind::Shaper, goodput_bps: (least, most) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::FlowTransport;
    use crate::rules::examples::{full_gigabit, shaped};

    fn at(rate: f64, width: f64) -> Evidence {
        let mut evidence = shaped(1e9);
        evidence.outcome.goodput_bps = Some(rate);
        evidence.outcome.intervals_bps = vec![rate; 90];
        evidence.outcome.uncertainty_bps = Some(width);
        evidence
    }

    fn kinds(evidence: &Evidence) -> Vec<(StandardRateKind, f64)> {
        fitting(evidence).iter().map(|found| (found.kind, found.rate.bps)).collect()
    }

    #[test]
    fn framing_distinguishes_a_link_from_a_shaper_of_the_same_rate() {
        // 1448 of 1538 bytes on the wire; 1448 of 1514 in a bucket.
        for rate in [10e6, 100e6, 1e9, 10e9] {
            let link = at(rate * 1448.0 / 1538.0, 1e-4 * rate);
            assert_eq!(kinds(&link), [(StandardRateKind::Link, rate)]);
            let shaper = at(rate * 1448.0 / 1514.0, 1e-4 * rate);
            assert_eq!(kinds(&shaper), [(StandardRateKind::Shaper, rate)]);
        }
        assert_eq!(kinds(&full_gigabit()), [(StandardRateKind::Link, 1e9)]);
    }

    #[test]
    fn fragments_are_part_of_the_framing() {
        // 8192 bytes in six packets: 8548 bytes on the wire, 8404 in a bucket.
        for (counted, kind) in [(8548.0, StandardRateKind::Link), (8404.0, StandardRateKind::Shaper)] {
            let mut evidence = at(1e9 * 8192.0 / counted, 1e5);
            evidence.transport = FlowTransport::Udp;
            evidence.link.mss_bytes = Some(8192.0);
            assert_eq!(kinds(&evidence), [(kind, 1e9)]);
        }
    }

    #[test]
    fn an_interval_that_covers_both_fits_both() {
        let unsure = at(933.7e6, 37e6);
        assert_eq!(kinds(&unsure), [(StandardRateKind::Link, 1e9), (StandardRateKind::Shaper, 1e9)]);
        assert_eq!(
            best(&unsure).map(|(found, alone)| (found.kind, alone)),
            Some((StandardRateKind::Link, false))
        );
        let mut uneven = at(933.7e6, 0.0);
        uneven.outcome.intervals_bps = [880e6, 955e6, 957e6].repeat(30);
        assert_eq!(
            best(&uneven).map(|(found, alone)| (found.kind, alone)),
            Some((StandardRateKind::Shaper, false))
        );
    }

    #[test]
    fn what_the_test_itself_used_of_a_slow_shaper_is_counted_in() {
        // Probes of 92 bytes, a hundred per second, and one retransmission per hundred segments.
        let mut evidence = at(9.42e6, 1e4);
        evidence.asked.probe_bps = Some(73.6e3);
        evidence.tcp.segments_sent = Some(8000.0);
        evidence.tcp.retransmits = Some(40.0);
        assert_eq!(kinds(&evidence), [(StandardRateKind::Shaper, 10e6)]);
        evidence.outcome.goodput_bps = Some(9.3e6);
        evidence.outcome.intervals_bps = vec![9.3e6; 90];
        assert_eq!(kinds(&evidence), [(StandardRateKind::Link, 10e6)]);
    }

    #[test]
    fn a_median_between_whole_reads_may_be_a_little_above_the_link() {
        // Three connections over 100BASE-TX (94.15 Mb/s): an interval has 811 or 814 segments.
        let mut evidence = at(94.08e6, 2e4);
        evidence.outcome.intervals_bps = [94.29e6, 93.94e6, 94.29e6].repeat(10);
        assert_eq!(kinds(&evidence), [(StandardRateKind::Link, 100e6)]);
        evidence.outcome.intervals_bps = [94.49e6, 93.94e6, 94.49e6].repeat(10);
        assert_eq!(kinds(&evidence), [], "most intervals are clearly above it");
    }

    #[test]
    fn an_emulated_line_that_was_late_may_have_made_up_for_it() {
        for rate in [10e6, 100e6, 1e9] {
            let mut evidence = at(1.002 * rate * 1448.0 / 1538.0, 1e-4 * rate);
            assert_eq!(kinds(&evidence), []);
            evidence.timing.emulator_late = Some(true);
            assert_eq!(kinds(&evidence), [(StandardRateKind::Link, rate)]);
            let mut shaper = at(rate * 1448.0 / 1514.0, 1e-4 * rate);
            shaper.timing.emulator_late = Some(true);
            assert_eq!(kinds(&shaper), [(StandardRateKind::Shaper, rate)]);
        }
    }

    #[test]
    fn a_rate_between_two_candidates_is_neither() {
        assert_eq!(kinds(&at(912e6, 1e5)), []);
        assert_eq!(kinds(&at(980e6, 1e5)), []);
        assert_eq!(kinds(&at(912e6, 15e6)), [], "its interval only touches that of the link");
    }
}
