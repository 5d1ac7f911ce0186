//! V16: a cable or a duplex mismatch destroys frames at an interface of the two hosts.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, confidence, link_full, local_drops, near, rate_was_asked_for};
use crate::evidence::{Evidence, HostEvidence};
use crate::{ceilings, format};

/// Smallest share of the losses that damaged frames must explain.
const MIN_EXPLAINED_SHARE: f64 = 0.5;
/// Loss ratio below which the link counts as intact.
const MIN_LOSS: f64 = 1e-5;

/// Needs a counter of an interface, because loss alone has many other causes.
pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let loss = evidence.loss().filter(|loss| *loss > MIN_LOSS)?;
    if link_full::own_link_is_full(evidence) || rate_was_asked_for(evidence) || local_drops::holds(evidence) {
        return None;
    }
    let lost = loss * evidence.tcp.segments_sent.or(evidence.udp.packets)?;
    let (end, sign) = [("sender", &evidence.sender), ("receiver", &evidence.receiver)]
        .into_iter()
        .find_map(|(end, host)| Some((end, sign(host, lost)?)))?;
    let text =
        format!("{} of the packets are lost, and {sign} on the {end}'s interface.", format::percent(loss));
    let model = ceilings::backed_off_bps(evidence, loss);
    let counted = [&evidence.sender, &evidence.receiver].into_iter().any(|host| counted(host, lost));
    let sure = if counted {
        confidence(near(evidence.outcome.goodput_bps?, model, 0.1), true)?
    } else {
        Confidence::Probable
    };
    FindingBuilder::new(Rule::DamagedLink, sure, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::CeilingBps, model)
        .with(EvidenceKey::LossRatio, Some(loss))
        .with(EvidenceKey::SenderDamagedFrames, evidence.sender.damaged_frames)
        .with(EvidenceKey::ReceiverDamagedFrames, evidence.receiver.damaged_frames)
        .with(EvidenceKey::SenderCollisions, evidence.sender.collisions)
        .with(EvidenceKey::ReceiverCollisions, evidence.receiver.collisions)
        .remedy(format!(
            "Check cable, optics and auto-negotiation at the {end} (ethtool): both ends of its link must \
             use the same speed and duplex."
        ))
        .finish()
}

/// Whether the interface counted damaged frames or collisions that explain the loss.
fn counted(host: &HostEvidence, lost: f64) -> bool {
    explains(host.damaged_frames, lost).or(explains(host.collisions, lost)).is_some()
}

fn explains(count: Option<f64>, lost: f64) -> Option<f64> {
    count.filter(|count| *count > 0.0 && *count >= MIN_EXPLAINED_SHARE * lost)
}

/// What the interface's counters show about the losses, as text.
fn sign(host: &HostEvidence, lost: f64) -> Option<String> {
    match (explains(host.damaged_frames, lost), explains(host.collisions, lost)) {
        (Some(frames), _) => Some(format!("{frames:.0} damaged frames were counted")),
        (None, Some(count)) => Some(format!("{count:.0} collisions were counted")),
        // Half duplex by itself loses nothing. With loss, the usual reason is a duplex mismatch.
        (None, None) => (host.half_duplex == Some(true)).then(|| "half duplex is set".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, lossy_path};
    use linerate_model::Cause;

    fn damaged() -> Evidence {
        let mut evidence = lossy_path(1e-4);
        evidence.receiver.damaged_frames = evidence.tcp.retransmits;
        evidence
    }

    #[test]
    fn frames_that_arrive_damaged_explain_the_loss_at_that_end() {
        let finding = diagnose(&damaged()).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::Duplex, &Rule::DamagedLink));
        assert!(
            finding.text.contains("damaged frames were counted on the receiver's interface"),
            "{}",
            finding.text
        );
    }

    #[test]
    fn collisions_and_half_duplex_with_loss_are_reported_too() {
        let mut evidence = lossy_path(1e-4);
        evidence.sender.half_duplex = Some(true);
        assert!(rule(&evidence).unwrap().text.contains("half duplex is set on the sender's interface"));
        evidence.sender.half_duplex = Some(false);
        assert_eq!(rule(&evidence), None);
        evidence.sender.collisions = evidence.tcp.retransmits;
        assert!(rule(&evidence).unwrap().text.contains("collisions"));
    }

    #[test]
    fn a_few_damaged_frames_and_a_full_link_are_not() {
        let mut few = damaged();
        few.receiver.damaged_frames = Some(1.0);
        few.tcp.retransmits = Some(40.0);
        assert_eq!(rule(&few), None, "most were lost elsewhere");
        let mut lossless = full_gigabit();
        lossless.receiver.damaged_frames = Some(5.0);
        assert_eq!(rule(&lossless), None, "nobody's packets");
        let mut rare = damaged();
        rare.tcp.retransmits = Some(0.5e-5 * rare.tcp.segments_sent.unwrap());
        assert_eq!(rule(&rare), None, "one packet in 200 000");
        assert_eq!(rule(&lossy_path(1e-4)), None, "loss without a sign is somebody else's");
        let mut full = full_gigabit();
        full.tcp.retransmits = Some(40.0);
        full.receiver.damaged_frames = Some(40.0);
        assert_eq!(rule(&full), None);
    }
}
