//! V25: the sending host drops its own packets.

use linerate_model::{Cause, Confidence, Finding};

use super::Draft;
use crate::evidence::Evidence;

/// Share of the losses that the host's own drops must explain.
const EXPLAINED: f64 = 0.5;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let drops = evidence.sender.local_drops?;
    let text = format!("The sending host's own queue dropped {drops:.0} packets: the loss happens there.");
    Draft::new(Cause::LocalDrops, "V25", Confidence::Probable, text)
        .with("local_drops", Some(drops))
        .with("retransmits", evidence.tcp.retransmits)
        .with("loss_ratio", evidence.loss())
        .remedy("Lengthen the queue (txqueuelen, the limit of its discipline), or use fq, which holds the sender back.")
        .finish()
}

/// Whether the host's own drops explain most of the loss.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let lost = evidence.tcp.retransmits.or(evidence.udp.lost);
    evidence
        .sender
        .local_drops
        .zip(lost)
        .is_some_and(|(drops, lost)| drops > 0.0 && lost > 0.0 && drops >= EXPLAINED * lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

    #[test]
    fn drops_that_explain_the_loss_are_the_hosts() {
        let mut evidence = full_gigabit();
        evidence.sender.local_drops = Some(80.0);
        assert_eq!(rule(&evidence), None, "nothing was lost");
        evidence.tcp.retransmits = Some(100.0);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::LocalDrops));
        evidence.tcp.retransmits = Some(1000.0);
        assert_eq!(rule(&evidence), None, "most were lost elsewhere");
    }
}
