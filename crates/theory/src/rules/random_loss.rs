//! V20: packets are lost although no queue fills.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::congestion::{loss_limits, numbers};
use super::{FindingBuilder, local_drops, near, policer};
use crate::evidence::{Evidence, FlowTransport};
use crate::format;

/// Smallest share of lost datagrams that is reported.
const MIN_LOSS: f64 = 2e-3;
/// Largest share of datagrams that are lost at random; with more, they exceed a rate.
const MAX_RANDOM_LOSS: f64 = 0.05;
/// The same if the intervals show that they were lost independently.
const MAX_INDEPENDENT_LOSS: f64 = 0.5;
/// Largest relative difference between the goodput and the offered rate less the loss.
const ARRIVAL_TOLERANCE: f64 = 0.05;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if evidence.transport == FlowTransport::Udp {
        return datagrams(evidence);
    }
    let likely = evidence.loss().is_some_and(|loss| loss <= policer::MAX_MODEL_LOSS);
    if !likely
        || !loss_limits(evidence)
        || !policer::rtt_is_flat(evidence)?
        || policer::rule(evidence).is_some()
    {
        return None;
    }
    let text = format!(
        "{} of the segments are lost although no queue fills. At this round trip, that loss alone limits \
         the rate.",
        format::percent(evidence.loss()?)
    );
    // One run cannot show that the loss does not depend on the load, nor that pacing removes it.
    numbers(FindingBuilder::new(Rule::RandomLoss, Confidence::Probable, text), evidence)
        .remedy(
            "Check cables, optics and error counters hop by hop. Pacing shows whether bursts overflow a \
                 small queue.",
        )
        .finish()
}

/// Whether all datagrams that were offered arrive, except for a few.
pub(super) fn datagrams_arrive(evidence: &Evidence) -> bool {
    let independent = evidence.udp.are_lost_independently();
    let most = if independent { MAX_INDEPENDENT_LOSS } else { MAX_RANDOM_LOSS };
    let arrives = |loss: f64| {
        let left = evidence.asked.offered_bps.map(|offered| offered * (1.0 - loss));
        loss <= most
            && evidence.outcome.goodput_bps.is_some_and(|goodput| near(goodput, left, ARRIVAL_TOLERANCE))
    };
    evidence.transport == FlowTransport::Udp && evidence.loss().is_some_and(arrives)
}

/// Datagrams are lost although the offered rate arrives and none waits.
fn datagrams(evidence: &Evidence) -> Option<Finding> {
    let (loss, goodput) = (evidence.loss()?, evidence.outcome.goodput_bps?);
    let offered = evidence.asked.offered_bps?;
    let own = local_drops::holds(evidence) || evidence.udp.were_dropped_at_the_socket();
    if loss < MIN_LOSS || !datagrams_arrive(evidence) || own || !policer::rtt_is_flat(evidence)? {
        return None;
    }
    let how = if evidence.udp.are_lost_independently() { ", independently of each other," } else { "" };
    let text = format!(
        "{} of the datagrams are lost{how} although no queue fills; the rest of the offered {} arrives.",
        format::percent(loss),
        format::rate(offered)
    );
    FindingBuilder::new(Rule::RandomLoss, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::OfferedBps, Some(offered))
        .with(EvidenceKey::LossRatio, Some(loss))
        .with_time(EvidenceKey::RttBaseNs, evidence.base_rtt_s())
        .with_time(EvidenceKey::RttRiseNs, evidence.rtt_rise_s())
        .remedy(
            "Check cables, optics and error counters hop by hop. A test at half the rate shows whether \
                 the loss depends on the rate.",
        )
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, lossy_path, policed};
    use crate::stats::loss::LossDispersion;
    use linerate_model::Cause;

    #[test]
    fn one_in_ten_thousand_at_21_ms_holds_the_rate() {
        assert_eq!(rule(&lossy_path(1e-4)).map(|finding| finding.cause), Some(Cause::RandomLoss));
    }

    #[test]
    fn the_same_loss_on_a_lan_holds_nothing() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(500e6);
        evidence.rtt =
            crate::evidence::RoundTrip { min_s: Some(0.0002), mean_s: Some(0.0002), ..Default::default() };
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * 1e-4);
        assert_eq!(rule(&evidence), None, "the model allows 7 Gbit/s there");
        assert_eq!(rule(&long_path()), None);
    }

    #[test]
    fn datagrams_that_vanish_below_a_rate_that_arrives_are_lost_at_random() {
        let mut evidence = lossy_path(1e-4);
        evidence.transport = FlowTransport::Udp;
        evidence.outcome.goodput_bps = Some(19.8e6);
        evidence.asked.offered_bps = Some(20e6);
        (evidence.udp.packets, evidence.udp.lost) = (Some(5000.0), Some(50.0));
        assert_eq!(crate::diagnose(&evidence).primary.cause, Cause::RandomLoss);
        // As constant as the offered rate, so no shaper is the cause.
        evidence.outcome.intervals_bps = vec![20.2e6; 30];
        evidence.outcome.goodput_bps = Some(20.2e6);
        assert_eq!(crate::diagnose(&evidence).primary.cause, Cause::RandomLoss);
        evidence.udp.buffer_drops = Some(50.0);
        assert_eq!(rule(&evidence), None, "the receiver's own socket");
        evidence.udp.buffer_drops = None;
        // A fifth is too much, unless the intervals show that nothing kept to a rate.
        (evidence.udp.lost, evidence.outcome.goodput_bps) = (Some(1000.0), Some(16e6));
        evidence.outcome.intervals_bps = vec![16e6; 30];
        assert_eq!(crate::diagnose(&evidence).primary.cause, Cause::Policer);
        evidence.udp.dispersion = Some(LossDispersion { ratio: 1.1, median_square: 0.5, intervals: 30 });
        assert_eq!(crate::diagnose(&evidence).primary.cause, Cause::RandomLoss);
        for (ratio, median_square) in [(0.1, 0.05), (4.0, 0.5), (1.1, 0.02)] {
            evidence.udp.dispersion = Some(LossDispersion { ratio, median_square, intervals: 30 });
            assert_eq!(crate::diagnose(&evidence).primary.cause, Cause::Policer);
        }
        evidence.udp.dispersion = None;
        evidence.udp.buffer_drops = Some(900.0);
        assert_ne!(crate::diagnose(&evidence).primary.cause, Cause::Policer, "the receiver's own socket");
        evidence.udp.buffer_drops = None;
        (evidence.udp.lost, evidence.outcome.goodput_bps) = (Some(50.0), Some(20.2e6));
        evidence.outcome.intervals_bps = vec![20.2e6; 30];
        evidence.rtt.loaded_p95_s = Some(0.060);
        assert_eq!(rule(&evidence), None, "a queue");
        evidence.rtt.loaded_p95_s = Some(0.0212);
        evidence.udp.lost = Some(2.0);
        assert_eq!(rule(&evidence), None, "four in ten thousand");
    }

    #[test]
    fn half_of_everything_is_not_lost_at_random() {
        let mut evidence = lossy_path(1e-4);
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| 0.5 * sent);
        let law = super::super::congestion::over_the_law(&evidence).unwrap();
        evidence.outcome.goodput_bps = evidence.outcome.goodput_bps.map(|rate| rate / law);
        assert_eq!(rule(&evidence), None, "whatever the law says there");
    }

    #[test]
    fn a_policers_loss_is_not_random() {
        assert_eq!(rule(&policed()), None);
    }

    #[test]
    fn bbr_does_not_answer_to_loss() {
        let mut evidence = lossy_path(1e-4);
        evidence.tcp.congestion = Some("bbr".to_owned());
        assert_eq!(rule(&evidence), None);
    }
}
