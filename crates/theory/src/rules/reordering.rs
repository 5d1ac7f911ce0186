//! V21: packets overtake each other, which looks like loss to the sender.

use linerate_model::{EvidenceKey, Finding, Rule};

use super::{
    FindingBuilder, confidence, link_full, local_drops, near, rate_was_asked_for, shaper, windows_are_open,
};
use crate::evidence::{Evidence, FlowTransport};
use crate::{ceilings, format};

/// Smallest share of the retransmissions that must be needless (the receiver already had the data).
const MIN_NEEDLESS_SHARE: f64 = 0.3;
/// Smallest number of needless retransmissions.
const MIN_NEEDLESS: f64 = 5.0;
/// Share of needless retransmissions from which the packets only came late.
const NEARLY_ALL_SHARE: f64 = 0.9;
/// Smallest number of undone back-offs per retransmission; one back-off answers a whole group.
const MIN_UNDO_SHARE: f64 = 0.1;
/// Largest number of timeouts per retransmission. With more, the timeouts were needless and not the path.
const MAX_TIMEOUT_SHARE: f64 = 0.05;
/// Share of the time in needless back-offs from which they limit the rate.
const HELD_SHARE: f64 = 0.1;
/// A loss model explains a rate if they differ by at most this factor.
const MODEL_FACTOR: f64 = 2.0;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let tcp = &evidence.tcp;
    let (needless, retransmits) = (tcp.duplicate_acks?, tcp.retransmits?);
    let (goodput, model) = (evidence.outcome.goodput_bps?, model_bps(evidence));
    let sure = confidence(near(goodput, model, 0.1), true)?;
    let share = (needless / retransmits).min(1.0);
    let text = format!(
        "{} of the retransmissions were unnecessary: the path reorders packets, which looks like loss to \
         the sender.",
        format::percent(share)
    );
    FindingBuilder::new(Rule::Reordering, sure, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::NeedlessShare, Some(share))
        .with(EvidenceKey::Retransmits, Some(retransmits))
        .with(EvidenceKey::Reordered, tcp.reordered)
        .with(EvidenceKey::OutOfOrder, tcp.out_of_order)
        .with(EvidenceKey::WindowUndone, tcp.window_undone)
        .share(held_share(evidence))
        .remedy(
            "Look for a device that distributes the packets of one flow over several links or cores, \
                 and configure it to distribute flows instead.",
        )
        .finish()
}

/// Whether needless retransmissions after reordering limit the rate.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let tcp = &evidence.tcp;
    let needless = tcp
        .duplicate_acks
        .zip(tcp.retransmits)
        .is_some_and(|(needless, all)| needless >= MIN_NEEDLESS && needless >= MIN_NEEDLESS_SHARE * all);
    let seen = tcp.reordered.is_some_and(|count| count > 0.0) || came_late(evidence);
    let explained = link_full::own_link_is_full(evidence)
        || rate_was_asked_for(evidence)
        || local_drops::holds(evidence)
        || shaper::holds(evidence)
        || !windows_are_open(evidence);
    // A sender that does not undo its back-offs is as slow as if the packets had been lost.
    let modelled = evidence
        .outcome
        .goodput_bps
        .zip(model_bps(evidence))
        .is_some_and(|(goodput, model)| goodput <= MODEL_FACTOR * model);
    let held = held_share(evidence).is_some_and(|share| share >= HELD_SHARE);
    evidence.transport == FlowTransport::Tcp && needless && seen && !explained && (held || modelled)
}

/// Whether packets came so late that they were retransmitted before. Then the kernel never detects reordering,
/// but the receiver reports nearly every retransmission as a duplicate (D-SACK), and the sender undoes its
/// back-offs. Needless timeouts and tail loss probes look the same, so there may be only a few timeouts.
/// Packets that the network duplicates cause no retransmission.
fn came_late(evidence: &Evidence) -> bool {
    let tcp = &evidence.tcp;
    let all = tcp.retransmits.unwrap_or(0.0);
    let share = |count: Option<f64>| count.map(|count| count / all).filter(|share| share.is_finite());
    share(tcp.duplicate_acks).is_some_and(|share| share >= NEARLY_ALL_SHARE)
        && share(tcp.window_undone).is_some_and(|share| share >= MIN_UNDO_SHARE)
        && share(tcp.timeouts).is_some_and(|share| share <= MAX_TIMEOUT_SHARE)
}

/// Share of the time in back-offs that were undone, counting one round trip for each.
fn held_share(evidence: &Evidence) -> Option<f64> {
    let rtt = evidence.rtt.mean_s.or_else(|| evidence.base_rtt_s())?;
    let measured = evidence.outcome.measured_s.filter(|seconds| *seconds > 0.0)?;
    Some(evidence.tcp.window_undone? * rtt / measured / evidence.streams())
}

/// The loss model's rate if every retransmission were a loss, bit/s.
fn model_bps(evidence: &Evidence) -> Option<f64> {
    let sent = evidence.tcp.segments_sent.filter(|sent| *sent > 0.0)?;
    ceilings::backed_off_bps(evidence, evidence.tcp.retransmits? / sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, lossy_path, shaped};
    use linerate_model::Cause;

    /// 0.02 % of the segments are retransmitted; 90 % of these had arrived.
    fn overtaken() -> Evidence {
        let mut evidence = lossy_path(2e-4);
        evidence.tcp.duplicate_acks = evidence.tcp.retransmits.map(|count| 0.9 * count);
        evidence.tcp.reordered = Some(50.0);
        evidence.tcp.segments_sent = evidence.tcp.segments_sent.map(|count| count * 10.0);
        evidence.tcp.retransmits = evidence.tcp.retransmits.map(|count| count * 10.0);
        evidence.tcp.duplicate_acks = evidence.tcp.duplicate_acks.map(|count| count * 10.0);
        evidence
    }

    #[test]
    fn retransmissions_that_were_needless_are_reordering() {
        let finding = diagnose(&overtaken()).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::Reordering, &Rule::Reordering));
        assert!((finding.evidence[&EvidenceKey::NeedlessShare] - 0.9).abs() < 1e-9);
    }

    #[test]
    fn little_remaining_loss_is_not_blamed_too() {
        let mut evidence = overtaken();
        evidence.tcp.duplicate_acks = evidence.tcp.retransmits.map(|count| 0.5 * count);
        let diagnosis = diagnose(&evidence);
        assert_eq!(diagnosis.primary.rule, Rule::Reordering);
        assert!(
            diagnosis.also.iter().all(|finding| finding.cause != Cause::RandomLoss),
            "{:?}",
            diagnosis.also
        );
    }

    #[test]
    fn real_losses_are_not_even_if_packets_overtake() {
        let mut evidence = overtaken();
        evidence.tcp.duplicate_acks = Some(6.0);
        evidence.tcp.retransmits = Some(100.0);
        assert_eq!(rule(&evidence), None);
        let mut evidence = overtaken();
        evidence.tcp.reordered = Some(0.0);
        assert_eq!(rule(&evidence), None, "needless for another reason");
        assert_eq!(rule(&lossy_path(2e-4)), None);
    }

    #[test]
    fn packets_later_than_their_retransmission_are_overtaken_too() {
        // 0.02 % came 20 ms late on a path of 21 ms. Each was retransmitted and reported as a duplicate, and
        // the back-off was undone. The kernel never detects reordering.
        let mut evidence = overtaken();
        evidence.tcp.duplicate_acks = evidence.tcp.retransmits;
        evidence.tcp.reordered = Some(0.0);
        assert_eq!(rule(&evidence), None, "nothing was taken back");
        evidence.tcp.window_undone = evidence.tcp.retransmits;
        assert_eq!(diagnose(&evidence).primary.rule, Rule::Reordering);
        let mut timeouts = evidence.clone();
        timeouts.tcp.timeouts = timeouts.tcp.retransmits.map(|count| 0.5 * count);
        assert_eq!(rule(&timeouts), None, "needless timeouts: the whole path was late");
        let mut some = evidence.clone();
        some.tcp.duplicate_acks = some.tcp.retransmits.map(|count| 0.6 * count);
        assert_eq!(rule(&some), None, "many were really lost");
        let mut twice = evidence;
        twice.tcp.retransmits = Some(0.0);
        assert_eq!(rule(&twice), None, "the path sends packets twice");
    }

    #[test]
    fn reordering_that_costs_nothing_is_not_the_cause() {
        let disturb = |mut evidence: Evidence| {
            evidence.tcp.retransmits = Some(10.0);
            evidence.tcp.duplicate_acks = Some(10.0);
            evidence.tcp.reordered = Some(10.0);
            evidence.tcp.window_undone = Some(1e4);
            evidence
        };
        assert_eq!(rule(&disturb(full_gigabit())), None, "the link is full");
        assert_eq!(rule(&disturb(shaped(100e6))), None, "a shaper sets the rate");
    }

    #[test]
    fn a_rate_above_what_the_back_offs_allow_has_another_cause() {
        let mut evidence = overtaken();
        evidence.outcome.goodput_bps = evidence.outcome.goodput_bps.map(|rate| 3.0 * rate);
        assert_eq!(rule(&evidence), None);
        // 60 s of round trips of 21 ms: 285 back-offs are 10 % of them.
        evidence.tcp.window_undone = Some(280.0);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.window_undone = Some(290.0);
        assert_eq!(
            diagnose(&evidence).primary.rule,
            Rule::Reordering,
            "back-offs that were taken back cost time too"
        );
    }
}
