//! V25: the sending host drops its own packets.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::FindingBuilder;
use crate::ceilings;
use crate::evidence::Evidence;

/// Smallest share of the losses that the host's own drops must explain.
const MIN_EXPLAINED_SHARE: f64 = 0.5;
/// A loss model whose rate exceeds the goodput by this factor does not explain it.
const AMPLE_FACTOR: f64 = 4.0;
/// Smallest relevant loss where no model is known: datagrams, BBR.
const MIN_LOSS: f64 = 1e-3;
/// Smallest relevant share of the segments that the host drops, if none is counted as lost.
const MIN_DROP_SHARE: f64 = 1e-3;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let drops = evidence.sender.local_drops?;
    let place = evidence.own_queue.as_ref().filter(|queue| queue.dropped.is_some_and(|count| count > 0.0));
    let place = place.map_or_else(
        || "queue".to_owned(),
        |queue| format!("{} on {} of {}", queue.kind, queue.interface, queue.host),
    );
    let text = format!(
        "The sending host's own {place} dropped {drops:.0} packets: the loss happens inside \
                        the host."
    );
    FindingBuilder::new(Rule::LocalDrops, Confidence::Probable, text)
        .with(EvidenceKey::LocalDrops, Some(drops))
        .with(EvidenceKey::Retransmits, evidence.tcp.retransmits)
        .with(EvidenceKey::LossRatio, evidence.loss())
        .remedy(
            "Lengthen the queue (txqueuelen, or the limit of its qdisc), or use fq, which slows the \
                 sender down instead of dropping.",
        )
        .finish()
}

/// Whether the host's own drops explain most of the loss and suffice to limit the rate.
pub(crate) fn holds(evidence: &Evidence) -> bool {
    matters(evidence) && explain_the_loss(evidence)
}

/// Whether the loss model's rate is near the goodput. One back-off answers a whole burst of drops, so the
/// goodput may be well above the model.
fn matters(evidence: &Evidence) -> bool {
    let Some(lost) = evidence.loss() else { return true };
    let dropped =
        evidence.sender.local_drops.zip(evidence.tcp.segments_sent).map(|(drops, sent)| drops / sent);
    let loss = dropped.map_or(lost, |dropped| lost.max(dropped));
    match ceilings::backed_off_bps(evidence, loss) {
        Some(law) => evidence.outcome.goodput_bps.is_none_or(|goodput| law <= AMPLE_FACTOR * goodput),
        None => loss >= MIN_LOSS || loss.is_nan(),
    }
}

fn explain_the_loss(evidence: &Evidence) -> bool {
    let lost = evidence.tcp.retransmits.or(evidence.udp.lost);
    let drops = evidence.sender.local_drops.filter(|drops| *drops > 0.0);
    let explains =
        drops.zip(lost).is_some_and(|(drops, lost)| lost > 0.0 && drops >= MIN_EXPLAINED_SHARE * lost);
    // TCP learns at once that its own host dropped a packet. It backs off and sends the packet again without
    // counting it as lost.
    let many = drops.zip(evidence.tcp.segments_sent).is_some_and(|(drops, sent)| {
        drops >= MIN_DROP_SHARE * sent && lost.is_none_or(|lost| drops >= MIN_EXPLAINED_SHARE * lost)
    });
    explains || many
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::OwnQueue;
    use crate::rules::examples::full_gigabit;
    use linerate_model::Cause;

    #[test]
    fn drops_that_explain_the_loss_are_the_hosts() {
        let mut evidence = full_gigabit();
        evidence.sender.local_drops = Some(80.0);
        assert_eq!(rule(&evidence), None, "nothing was lost, and 80 of 730,000 are few");
        evidence.tcp.retransmits = Some(100.0);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::LocalDrops));
        evidence.tcp.retransmits = Some(1000.0);
        assert_eq!(rule(&evidence), None, "most were lost elsewhere");
    }

    #[test]
    fn a_few_drops_of_millions_hold_nothing_back() {
        let mut evidence = full_gigabit();
        evidence.tcp.segments_sent = Some(6.6e6);
        evidence.tcp.retransmits = Some(15.0);
        evidence.sender.local_drops = Some(15.0);
        assert_eq!(rule(&evidence), None, "CUBIC reaches many gigabits at 2 in a million and 1.5 ms");
        evidence.tcp.congestion = Some("bbr".to_owned());
        assert_eq!(rule(&evidence), None);
        evidence.tcp.retransmits = Some(15e3);
        evidence.sender.local_drops = Some(15e3);
        assert!(rule(&evidence).is_some());
    }

    #[test]
    fn drops_of_the_hosts_own_queue_count_although_tcp_calls_none_of_them_lost() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(48e6);
        evidence.tcp.segments_sent = Some(16_288.0);
        evidence.tcp.retransmits = Some(0.0);
        evidence.sender.local_drops = Some(110.0);
        evidence.own_queue = Some(OwnQueue {
            kind: "tbf".to_owned(),
            interface: "eth0".to_owned(),
            host: "alpha".to_owned(),
            rate_bps: Some(100e6),
            dropped: Some(110.0),
            ..OwnQueue::default()
        });
        let finding = rule(&evidence).unwrap();
        assert!(finding.text.contains("own tbf on eth0 of alpha dropped 110"), "{}", finding.text);
        evidence.sender.local_drops = Some(10.0);
        assert!(rule(&evidence).is_none());
    }
}
