//! V23: retransmission timeouts.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::FindingBuilder;
use crate::evidence::Evidence;
use crate::format;

/// Share of the time in timeouts from which they limit the rate.
const MIN_TIME_SHARE: f64 = 0.02;
/// Timeouts per second of one connection from which they limit the rate: one in 30 s. A single timeout never
/// does.
const MIN_PER_SECOND: f64 = 1.0 / 30.0;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let measured = evidence.outcome.measured_s.filter(|seconds| *seconds > 0.0)?;
    let tcp = &evidence.tcp;
    // Timeouts add up over the sampled connections, and so does the time in which they can happen.
    let time = measured * evidence.sampled_streams();
    let share = tcp.timeout_s.map(|seconds| seconds / time);
    let long = share.is_some_and(|share| share > MIN_TIME_SHARE);
    let often = tcp.timeouts.is_some_and(|count| count >= 2.0 && count / time > MIN_PER_SECOND);
    if !long && !often {
        return None;
    }
    let text = share.filter(|_| long).map_or_else(
        || {
            format!(
                "{:.0} retransmission timeouts in {}.",
                tcp.timeouts.unwrap_or(0.0),
                format::time(measured)
            )
        },
        |share| format!("Retransmission timeouts took {} of the time.", format::percent(share)),
    );
    let sure = if long && often { Confidence::Confirmed } else { Confidence::Probable };
    FindingBuilder::new(Rule::Timeouts, sure, text)
        .with(EvidenceKey::Timeouts, tcp.timeouts)
        .with_time(EvidenceKey::TimeoutNs, tcp.timeout_s)
        .with(EvidenceKey::LossRatio, evidence.loss())
        .share(share)
        .remedy("Check when the loss occurs: at the end of bursts, or during outages of the path.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, shaped};

    #[test]
    fn repeated_timeouts_count_and_a_single_one_does_not() {
        let mut evidence = full_gigabit();
        evidence.tcp.timeouts = Some(1.0);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.timeouts = Some(3.0);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.tcp.timeout_s = Some(0.9);
        let finding = rule(&evidence).unwrap();
        assert_eq!(finding.confidence, Confidence::Confirmed);
        assert_eq!(finding.share_of_time, Some(0.1));
        evidence.outcome.streams = Some(8);
        assert_eq!(rule(&evidence).unwrap().share_of_time, Some(0.0125), "of one connection's time");
    }

    #[test]
    fn two_timeouts_of_many_connections_do_not_hide_what_limits_them_all() {
        // 0.4 s of the 576 s that 64 connections have in 9 s.
        let mut evidence = shaped(100e6);
        evidence.outcome.streams = Some(64);
        (evidence.tcp.timeouts, evidence.tcp.timeout_s) = (Some(2.0), Some(0.4));
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::Shaper);
        evidence.tcp.timeouts = Some(25.0);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        // The same two of a few connections: more than one in 30 s of each.
        for (streams, limits) in [(1, true), (2, true), (4, true), (6, true), (8, false)] {
            evidence.outcome.streams = Some(streams);
            (evidence.tcp.timeouts, evidence.tcp.timeout_s) = (Some(2.0), None);
            assert_eq!(rule(&evidence).is_some(), limits, "{streams}");
        }
    }

    #[test]
    fn a_dead_path_counts_however_many_connections_it_has() {
        // A second without a path in nine: each connection waits for its timer twice.
        for streams in [1_u32, 2, 4, 8, 16, 64] {
            let mut evidence = full_gigabit();
            evidence.outcome.streams = Some(streams);
            evidence.tcp.timeouts = Some(2.0 * f64::from(streams));
            evidence.tcp.timeout_s = Some(f64::from(streams));
            let finding = rule(&evidence).unwrap();
            assert_eq!((finding.confidence, finding.share_of_time), (Confidence::Confirmed, Some(1.0 / 9.0)));
        }
    }

    #[test]
    fn timeouts_are_divided_among_the_connections_that_were_sampled() {
        let mut evidence = full_gigabit();
        evidence.outcome.streams = Some(256);
        evidence.tcp.sampled_streams = Some(64);
        (evidence.tcp.timeouts, evidence.tcp.timeout_s) = (Some(32.0), Some(57.6));
        assert_eq!(rule(&evidence).unwrap().share_of_time, Some(0.1), "of 64 times 9 s");
        evidence.tcp.timeout_s = None;
        assert!(rule(&evidence).is_some(), "more than one in 30 s of each");
    }
}
