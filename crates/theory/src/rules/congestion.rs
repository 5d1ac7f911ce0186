//! V18: a shared queue overflows.

use linerate_model::{EvidenceKey, Finding, Limit, Rule};

use super::{
    FindingBuilder, confidence, link_full, local_drops, near, policer, rate_was_asked_for, reordering,
    shaper, windows_are_open,
};
use crate::evidence::{Evidence, FlowTransport};
use crate::{ceilings, format};

/// A loss model explains a rate if they differ by at most this factor.
const MODEL_FACTOR: f64 = 2.0;
/// Number of losses from which their count estimates the loss probability.
const MIN_LOSSES: f64 = 10.0;
/// Largest widening of that factor for a small count. From three times the rate on, losses come in bursts.
const MAX_WIDENING: f64 = 1.5;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !loss_limits(evidence) || policer::rtt_is_flat(evidence)? || shaper::holds(evidence) {
        return None;
    }
    let (loss, rise) = (evidence.loss()?, evidence.rtt_rise_s()?);
    let model = model_bps(evidence)?;
    let sure = confidence(near(evidence.outcome.goodput_bps?, Some(model), 0.1), true)?;
    let text = format!(
        "A queue on the path fills ({} added) and overflows ({} lost); other traffic may share it.",
        format::time(rise),
        format::percent(loss)
    );
    numbers(FindingBuilder::new(Rule::Congestion, sure, text), evidence)
        .remedy("Look for other traffic on the path and for its slowest link.")
        .finish()
}

/// Whether the flow loses packets in the network and its rate fits the loss model.
pub(super) fn loss_limits(evidence: &Evidence) -> bool {
    evidence.transport == FlowTransport::Tcp
        && follows_the_law_for_its_count(evidence)
        && windows_are_open(evidence)
        && !local_drops::holds(evidence)
        && !reordering::holds(evidence)
        && !link_full::own_link_is_full(evidence)
        && !rate_was_asked_for(evidence)
}

/// Whether the rate fits the loss model of the flow's congestion control. Where losses come in bursts, as at a
/// policer, the rate is higher, because one back-off answers many losses.
pub(super) fn follows_the_law(evidence: &Evidence) -> bool {
    over_the_law(evidence).is_some_and(|factor| (1.0 / MODEL_FACTOR..=MODEL_FACTOR).contains(&factor))
}

/// Like [`follows_the_law`], but wider where losses are few: the limit is the model's rate at the lowest loss
/// probability that is consistent with the count (two standard deviations). A short test with many connections
/// sees only a few losses of each.
fn follows_the_law_for_its_count(evidence: &Evidence) -> bool {
    let sent = evidence.tcp.segments_sent.unwrap_or(0.0);
    // An emulated network that was late makes losses come in bursts.
    let late = evidence.timing.emulator_late == Some(true);
    let count = evidence.loss().map(|loss| loss * sent).filter(|count| *count >= MIN_LOSSES && !late);
    // CUBIC's rate is proportional to the loss probability to the power of -3/4.
    let width = count.map_or(1.0, |count| (1.0 - 2.0 / count.sqrt()).powf(-0.75).min(MAX_WIDENING));
    over_the_law(evidence).is_some_and(|factor| (1.0 / MODEL_FACTOR..=width * MODEL_FACTOR).contains(&factor))
}

/// Goodput as a multiple of the loss model's rate.
pub(super) fn over_the_law(evidence: &Evidence) -> Option<f64> {
    Some(evidence.outcome.goodput_bps? / model_bps(evidence)?)
}

/// The loss model's rate for the flow's congestion control, bit/s.
fn model_bps(evidence: &Evidence) -> Option<f64> {
    ceilings::of(&ceilings::all(evidence), &Limit::Loss).map(|ceiling| ceiling.bitrate_bps)
}

/// Adds the numbers of a verdict about loss.
pub(super) fn numbers(draft: FindingBuilder, evidence: &Evidence) -> FindingBuilder {
    draft
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::CeilingBps, model_bps(evidence))
        .with(EvidenceKey::LossRatio, evidence.loss())
        .with(EvidenceKey::Retransmits, evidence.tcp.retransmits)
        .with_time(EvidenceKey::RttBaseNs, evidence.base_rtt_s())
        .with_time(EvidenceKey::RttRiseNs, evidence.rtt_rise_s())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, lossy_path, shaped};
    use linerate_model::Cause;

    fn congested() -> Evidence {
        let mut evidence = lossy_path(1e-4);
        evidence.rtt.loaded_p50_s = Some(0.030);
        evidence.rtt.loaded_p95_s = Some(0.040);
        evidence
    }

    #[test]
    fn loss_with_a_standing_queue_is_congestion() {
        assert_eq!(rule(&congested()).map(|finding| finding.cause), Some(Cause::Congestion));
    }

    #[test]
    fn few_losses_tell_their_probability_only_roughly() {
        // 2.3 times the model's rate. With 55 losses the true probability may be three quarters of the observed
        // one, with 5000 not.
        let lossy = |count: f64| {
            let mut evidence = congested();
            evidence.tcp.segments_sent = Some(count * 1e4);
            evidence.tcp.retransmits = Some(count);
            evidence.outcome.goodput_bps = evidence.outcome.goodput_bps.map(|rate| 2.3 * rate);
            evidence
        };
        assert!(rule(&lossy(55.0)).is_some());
        assert_eq!(rule(&lossy(5000.0)), None);
        let mut late = lossy(55.0);
        late.timing.emulator_late = Some(true);
        assert_eq!(rule(&late), None, "the network was late itself");
        assert_eq!(rule(&lossy(5.0)), None, "too few to tell anything");
        let mut bursts = lossy(12.0);
        bursts.outcome.goodput_bps = bursts.outcome.goodput_bps.map(|rate| 1.5 * rate);
        assert_eq!(rule(&bursts), None, "3.5 times the law");
    }

    #[test]
    fn probes_that_a_late_emulator_or_a_crowded_host_delayed_show_no_queue() {
        let mut evidence = lossy_path(1e-4);
        evidence.rtt.loaded_p50_s = Some(0.0213);
        evidence.rtt.loaded_p95_s = Some(0.030);
        assert!(rule(&evidence).is_some());
        evidence.timing.emulator_late = Some(true);
        assert_eq!(rule(&evidence), None);
        evidence.timing.emulator_late = None;
        evidence.receiver.all_cores_share = Some(0.95);
        assert_eq!(rule(&evidence), None);
        evidence.rtt.loaded_p50_s = Some(0.030);
        assert!(rule(&evidence).is_some(), "half of the probes waited");
    }

    #[test]
    fn a_queue_of_the_slow_start_alone_is_none() {
        let mut evidence = lossy_path(1e-4);
        evidence.rtt.loaded_p95_s = Some(0.030);
        evidence.rtt.smoothed_p90_s = Some(0.0214);
        assert_eq!(rule(&evidence), None, "a twentieth of the probes met it, and hardly a segment");
        assert!(super::super::random_loss::rule(&evidence).is_some());
        evidence.rtt.smoothed_p90_s = Some(0.028);
        assert!(rule(&evidence).is_some());
        assert_eq!(super::super::random_loss::rule(&evidence), None);
    }

    #[test]
    fn loss_without_a_queue_and_queues_without_loss_are_not() {
        assert_eq!(rule(&lossy_path(1e-4)), None);
        assert_eq!(rule(&shaped(100e6)), None);
        assert_eq!(rule(&full_gigabit()), None);
        let mut rare = congested();
        rare.tcp.retransmits = Some(1.0);
        assert_eq!(rule(&rare), None, "too little loss to explain the rate");
    }
}
