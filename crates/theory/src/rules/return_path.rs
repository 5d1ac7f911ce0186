//! V28: acknowledgements wait or are lost on the return path.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, any_core_is_full, link_full, rate_was_asked_for};
use crate::evidence::{Evidence, FlowTransport};
use crate::format;

/// Smallest relevant queue on the return path, as a share of the base round trip. At least [`MIN_QUEUE_S`].
const MIN_QUEUE_OF_BASE: f64 = 0.5;
/// See [`MIN_QUEUE_OF_BASE`], s.
const MIN_QUEUE_S: f64 = 0.003;
/// The queue on the forward path is at most this share of that on the return path.
const MAX_FORWARD_QUEUE_SHARE: f64 = 0.25;
/// Smallest share of the receiver's segments that must be lost on the return path.
const MIN_ACK_LOSS: f64 = 0.5;
/// Largest share of segments that may be retransmitted: the data arrives although acknowledgements are lost.
const MAX_DATA_LOSS: f64 = 0.2;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let unlimited = evidence.transport == FlowTransport::Tcp
        && !rate_was_asked_for(evidence)
        && !any_core_is_full(evidence)
        && !link_full::own_link_is_full(evidence);
    if !unlimited {
        return None;
    }
    let text = held_back(evidence).or_else(|| lost(evidence))?;
    // One run cannot show what the flow would achieve with a free return path.
    FindingBuilder::new(Rule::ReturnPath, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with_time(EvidenceKey::BackRiseNs, evidence.rtt.back_rise_s)
        .with_time(EvidenceKey::OutRiseNs, evidence.rtt.out_rise_s)
        .with(EvidenceKey::ReturnLostRatio, evidence.tcp.return_lost_share)
        .with(EvidenceKey::ReturnPps, evidence.tcp.return_pps)
        .with(EvidenceKey::ReturnPerSegment, evidence.tcp.return_per_segment)
        .remedy(
            "Look for other traffic on the return path, and for its slowest link. Larger segments and GRO \
             at the receiver reduce the number of acknowledgements.",
        )
        .finish()
}

/// There is a queue on the return path but not on the forward path.
fn held_back(evidence: &Evidence) -> Option<String> {
    let (back, base) = (evidence.rtt.back_rise_s?, evidence.base_rtt_s()?);
    let out = evidence.rtt.out_rise_s?.max(0.0);
    if back < (MIN_QUEUE_OF_BASE * base).max(MIN_QUEUE_S) || out > MAX_FORWARD_QUEUE_SHARE * back {
        return None;
    }
    Some(format!(
        "Acknowledgements wait {} in a queue on the return path, and data waits {}: the return path limits \
         the flow.",
        format::time(back),
        format::time(out)
    ))
}

/// Most acknowledgements are lost, but the data arrives.
fn lost(evidence: &Evidence) -> Option<String> {
    let back = evidence.tcp.return_lost_share.filter(|share| *share >= MIN_ACK_LOSS)?;
    if link_full::queue_was_seen(evidence) || evidence.loss()? > MAX_DATA_LOSS {
        return None;
    }
    Some(format!(
        "{} of the receiver's acknowledgements are lost on the return path, which limits the flow.",
        format::percent(back)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, lossy_path, shaped};
    use linerate_model::Cause;

    /// 120 Mb/s over 10 ms: 147 ms of queue on the return path, none on the forward path.
    fn slow_way_back() -> Evidence {
        let mut evidence = shaped(120e6);
        evidence.rtt.min_s = Some(0.010);
        evidence.rtt.idle_p50_s = Some(0.0103);
        evidence.rtt.loaded_p50_s = Some(0.157);
        evidence.rtt.loaded_p95_s = Some(0.259);
        evidence.rtt.back_rise_s = Some(0.147);
        evidence.rtt.out_rise_s = Some(-0.0001);
        evidence
    }

    #[test]
    fn a_queue_on_the_way_back_only_is_named() {
        let verdict = diagnose(&slow_way_back()).primary;
        assert_eq!((verdict.cause, verdict.confidence), (Cause::ReturnPath, Confidence::Probable));
        assert!(verdict.text.contains("147 ms"), "{}", verdict.text);
    }

    #[test]
    fn a_queue_before_the_data_is_the_paths() {
        let mut evidence = slow_way_back();
        evidence.rtt.out_rise_s = Some(0.050);
        assert_ne!(diagnose(&evidence).primary.cause, Cause::ReturnPath);
        (evidence.rtt.out_rise_s, evidence.rtt.back_rise_s) = (Some(0.147), Some(0.0));
        assert_ne!(diagnose(&evidence).primary.cause, Cause::ReturnPath);
        let mut small = slow_way_back();
        small.rtt.back_rise_s = Some(0.002);
        assert_ne!(diagnose(&small).primary.cause, Cause::ReturnPath, "two milliseconds of ten");
    }

    #[test]
    fn a_full_link_of_ones_own_and_a_rate_that_was_asked_for_come_first() {
        let mut full = full_gigabit();
        (full.rtt.out_rise_s, full.rtt.back_rise_s) = (Some(0.0), Some(0.010));
        assert_eq!(diagnose(&full).primary.cause, Cause::Link);
        let mut asked = slow_way_back();
        asked.asked.offered_bps = asked.outcome.goodput_bps;
        assert_ne!(diagnose(&asked).primary.cause, Cause::ReturnPath);
    }

    #[test]
    fn lost_acknowledgements_are_no_lost_data() {
        let mut evidence = lossy_path(1e-4);
        evidence.outcome.goodput_bps = Some(20e6);
        evidence.tcp.return_lost_share = Some(0.8);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::ReturnPath));
        evidence.tcp.return_lost_share = Some(0.01);
        assert!(rule(&evidence).is_none());
    }
}
