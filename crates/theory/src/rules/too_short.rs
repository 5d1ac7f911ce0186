//! V01: the test is too short for a steady result.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, any_core_is_full};
use crate::evidence::{CountedBy, Evidence};
use crate::{format, sender_error, tcp_rate};

/// Shortest measured time, s: five samples of 100 ms.
const MIN_MEASURED_S: f64 = 0.5;
/// Smallest number of round trips in the steady part.
const MIN_ROUND_TRIPS: f64 = 10.0;
/// Smallest number of congestion epochs in a mean over back-offs.
const MIN_EPOCHS: f64 = 5.0;
/// A rate that varies by less than this is a valid mean after any number of epochs.
const MAX_VARIATION: f64 = 0.05;
/// Largest error of a sender's count that still gives a result.
const MAX_SENDER_ERROR: f64 = 0.01;

/// There is no steady part that could be judged.
pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let measured = evidence.outcome.measured_s?;
    let reasons = [
        too_few_samples(measured),
        too_few_round_trips(evidence, measured),
        sender_error(evidence, measured),
    ];
    finding(evidence, measured, reasons, Confidence::Confirmed)
}

/// The mean is inexact. This rule runs last and is never certain: a cause that shows in a few back-offs or
/// after a long ramp would be the same in a longer test, so its rule comes first.
pub(super) fn inexact(evidence: &Evidence) -> Option<Finding> {
    let measured = evidence.outcome.measured_s?;
    let reasons = [mostly_ramp(evidence, measured), too_few_epochs(evidence, measured)];
    finding(evidence, measured, reasons, Confidence::Probable)
}

fn finding<const N: usize>(
    evidence: &Evidence,
    measured: f64,
    reasons: [SteadyTimeNeeded; N],
    sure: Confidence,
) -> Option<Finding> {
    // The reason that requires the longest test.
    let (needed, reason) = reasons.into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let text = format!("{} of steady measurement is too short: {reason}.", format::time(measured));
    let before = evidence.outcome.ramp_s.unwrap_or(0.0).max(evidence.outcome.omitted_s.unwrap_or(0.0));
    let total = (needed + before).ceil();
    let ramp_up = (before > 0.0).then(|| format!("; {} of it is ramp-up", format::time(before)));
    FindingBuilder::new(Rule::TooShort, sure, text)
        .with_time(EvidenceKey::MeasuredNs, Some(measured))
        .with_time(EvidenceKey::NeededNs, Some(needed))
        .with_time(EvidenceKey::RampNs, evidence.outcome.ramp_s)
        .remedy(format!("Run at least {total:.0} s{}.", ramp_up.unwrap_or_default()))
        .finish()
}

/// Steady time needed, s, and why. `None` if the test is long enough.
type SteadyTimeNeeded = Option<(f64, String)>;

fn too_few_samples(measured: f64) -> SteadyTimeNeeded {
    (measured < MIN_MEASURED_S).then(|| (1.0, "fewer than five samples".to_owned()))
}

fn too_few_round_trips(evidence: &Evidence, measured: f64) -> SteadyTimeNeeded {
    let rtt = evidence.rtt.mean_s.or_else(|| evidence.base_rtt_s())?;
    let needed = MIN_ROUND_TRIPS * rtt;
    (measured < needed).then(|| (needed, format!("fewer than ten round trips of {}", format::time(rtt))))
}

/// Whether a queue that never emptied kept the rate even. Then it is the path's rate, after any number of
/// back-offs.
fn holds_a_rate(evidence: &Evidence) -> bool {
    evidence.has_standing_queue()
        && evidence.queue_never_empties()
        && evidence.is_steady(MAX_VARIATION) == Some(true)
}

fn mostly_ramp(evidence: &Evidence, measured: f64) -> SteadyTimeNeeded {
    // If the processors limit the rate, a slow beginning comes from another program and not from slow start.
    let ramp = evidence.outcome.ramp_s.filter(|_| !any_core_is_full(evidence) && !holds_a_rate(evidence))?;
    (measured < ramp).then(|| (2.0 * ramp, format!("the ramp-up took {}", format::time(ramp))))
}

/// Epochs matter only for a flow with losses whose rate varies. A full link is steady after any number of
/// epochs.
fn too_few_epochs(evidence: &Evidence, measured: f64) -> SteadyTimeNeeded {
    let lossless = evidence.loss()? <= 0.0;
    // Variation between the reads of a slow flow is allowed between intervals, but not between sixths of the
    // test.
    let constant = evidence.is_constant(MAX_VARIATION)? && evidence.is_steady(MAX_VARIATION) != Some(false);
    if lossless || evidence.is_bbr() || constant || holds_a_rate(evidence) {
        return None;
    }
    let rate = evidence.outcome.goodput_bps? / evidence.streams();
    let (rtt, mss) = (evidence.rtt.mean_s.or_else(|| evidence.base_rtt_s())?, evidence.link.mss_bytes?);
    let reno = tcp_rate::reno_recovery_s(rate, rtt, mss)?;
    let epoch = if evidence.tcp.congestion.as_deref() == Some("cubic") {
        // In its AIMD-friendly region CUBIC recovers as fast as Reno.
        tcp_rate::cubic_recovery_s(tcp_rate::CUBIC, rate, rtt, mss)?.min(reno)
    } else {
        reno
    };
    let needed = MIN_EPOCHS * epoch;
    (measured < needed)
        .then(|| (needed, format!("fewer than five congestion epochs of {}", format::time(epoch))))
}

fn sender_error(evidence: &Evidence, measured: f64) -> SteadyTimeNeeded {
    if evidence.outcome.counted_by != Some(CountedBy::Sender) {
        return None;
    }
    let (written, delivered) = (evidence.outcome.written_bytes?, evidence.outcome.delivered_bytes?);
    let error = sender_error::overreport(written, written - delivered)?;
    (error > MAX_SENDER_ERROR).then(|| {
        let needed = measured * error / MAX_SENDER_ERROR;
        (needed, format!("the sender's count is too high by {}", format::percent(error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, lossy_path};

    fn fires(evidence: &Evidence) -> bool {
        rule(evidence).is_some()
    }

    #[test]
    fn samples_round_trips_and_ramp_set_a_least_length() {
        let mut evidence = full_gigabit();
        assert!(!fires(&evidence));
        evidence.outcome.measured_s = Some(0.4);
        assert!(fires(&evidence));
        evidence.outcome.measured_s = Some(4.0);
        evidence.rtt.mean_s = Some(0.6);
        assert!(fires(&evidence));
        evidence.rtt.mean_s = Some(0.001);
        evidence.outcome.ramp_s = Some(5.0);
        assert_eq!(inexact(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        assert!(!fires(&evidence));
    }

    #[test]
    fn the_remedy_names_a_ramp_up_only_if_there_was_one() {
        let mut evidence = full_gigabit();
        evidence.outcome.measured_s = Some(0.3);
        (evidence.outcome.ramp_s, evidence.outcome.omitted_s) = (Some(0.0), None);
        let remedy = |evidence: &Evidence| rule(evidence).unwrap().remedy.unwrap().to_string();
        assert_eq!(remedy(&evidence), "Run at least 1 s.");
        evidence.outcome.ramp_s = Some(0.5);
        assert_eq!(remedy(&evidence), "Run at least 2 s; 500 ms of it is ramp-up.");
    }

    #[test]
    fn epochs_count_for_a_flow_that_backs_off_and_shows_it() {
        // W = 40 637 segments at 10 Gbit/s and 50 ms: K = 31 s, five times K is 156 s.
        let mut evidence = lossy_path(1e-4);
        evidence.outcome.goodput_bps = Some(9.4e9);
        evidence.rtt.mean_s = Some(0.05);
        evidence.outcome.measured_s = Some(30.0);
        let finding = inexact(&evidence).unwrap();
        assert!((finding.evidence[&EvidenceKey::NeededNs] / 1e9 - 156.0).abs() < 1.0, "{finding:?}");
        evidence.outcome.intervals_bps = vec![9.4e9; 90];
        assert!(inexact(&evidence).is_none(), "a constant rate is steady");
        let mut lossless = evidence;
        lossless.tcp.retransmits = Some(0.0);
        assert!(inexact(&lossless).is_none());
    }

    #[test]
    fn a_slow_flow_that_grows_again_is_not_constant_for_the_size_of_its_reads() {
        // 4 to 5.6 Mb/s over 100 ms after a burst of losses: K of 38 segments is 1.9 s, and 6.6 s were
        // measured.
        let mut evidence = lossy_path(7.5e-3);
        (evidence.rtt.min_s, evidence.rtt.mean_s) = (Some(0.1), Some(0.1));
        (evidence.rtt.loaded_p50_s, evidence.rtt.loaded_p95_s) = (Some(0.1), Some(0.1));
        evidence.outcome.goodput_bps = Some(4.8e6);
        evidence.outcome.intervals_bps = (0..66).map(|i| 4e6 + 1.6e6 * f64::from(i) / 65.0).collect();
        evidence.outcome.measured_s = Some(6.6);
        assert_eq!(inexact(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.outcome.intervals_bps = vec![4.8e6; 66];
        assert_eq!(inexact(&evidence), None);
    }

    #[test]
    fn an_even_rate_behind_a_queue_that_never_empties_is_not_too_short() {
        let mut evidence = crate::rules::examples::shaped(50e6);
        evidence.outcome.measured_s = Some(1.0);
        evidence.outcome.ramp_s = Some(1.2);
        evidence.outcome.intervals_bps = [44e6, 51e6, 48e6, 47e6, 49e6].repeat(2);
        evidence.tcp.retransmits = Some(20.0);
        assert!(inexact(&evidence).is_some(), "nothing tells that the queue never ran empty");
        evidence.rtt.smoothed_p10_s = Some(0.045);
        assert_eq!(inexact(&evidence), None);
        evidence.outcome.intervals_bps = [30e6, 30e6, 60e6, 60e6, 30e6, 30e6, 60e6, 60e6].to_vec();
        assert!(inexact(&evidence).is_some(), "an uneven one");
    }

    #[test]
    fn a_cause_that_few_back_offs_show_is_named_before_their_number() {
        let mut evidence = lossy_path(1e-4);
        evidence.outcome.measured_s = Some(4.0);
        let diagnosis = crate::diagnose(&evidence);
        assert_eq!(diagnosis.primary.rule, Rule::RandomLoss);
        assert!(diagnosis.also.iter().any(|finding| finding.rule == Rule::TooShort), "{:?}", diagnosis.also);
        evidence.outcome.goodput_bps = evidence.outcome.goodput_bps.map(|rate| 3.0 * rate);
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::TooShort, "nothing else explains it");
    }

    #[test]
    fn only_a_senders_count_needs_length_for_its_error() {
        let mut evidence = full_gigabit();
        evidence.outcome.written_bytes = Some(1e9);
        evidence.outcome.delivered_bytes = Some(0.95e9);
        assert!(!fires(&evidence));
        evidence.outcome.counted_by = Some(CountedBy::Sender);
        assert!(fires(&evidence));
    }

    #[test]
    fn a_rate_that_processors_set_has_no_slow_start() {
        let mut evidence = full_gigabit();
        evidence.outcome.measured_s = Some(1.4);
        evidence.outcome.ramp_s = Some(1.6);
        assert!(inexact(&evidence).is_some());
        evidence.receiver.thread_share = Some(0.99);
        assert_eq!(inexact(&evidence), None);
    }
}
