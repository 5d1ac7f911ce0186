//! V24: queues mark packets (ECN) instead of dropping them.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, rate_was_asked_for, windows_are_open};
use crate::evidence::{Evidence, FlowTransport};
use crate::format;

/// Share of segments with an ECN echo from which marks limit the rate: about one back-off in 200 round trips.
///
/// A receiver echoes a mark until the sender has responded (RFC 3168 §6.1.3). So each mark appears on about one
/// round trip's worth of segments, and no loss model applies to this share.
const MIN_ECHO_SHARE: f64 = 0.005;
/// Losses per echo above which the losses matter more than the marks.
const MAX_LOST_PER_ECHO: f64 = 0.01;

/// Segments with an ECN echo, and their share of the delivered ones, if they make the sender back off and losses
/// do not.
fn limiting_echoes(evidence: &Evidence) -> Option<(f64, f64)> {
    let tcp = &evidence.tcp;
    let echoed = tcp.delivered_marked?;
    let share = echoed / tcp.delivered.filter(|delivered| *delivered > 0.0)?;
    let lossless = tcp.retransmits.is_some_and(|count| count <= MAX_LOST_PER_ECHO * echoed);
    (share > MIN_ECHO_SHARE && lossless).then_some((echoed, share))
}

/// Whether marks hold the sender back, so that its rate is not that of the line.
pub(super) fn holds_back(evidence: &Evidence) -> bool {
    limiting_echoes(evidence).is_some()
}

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let (echoed, share) = limiting_echoes(evidence)?;
    let explained = !windows_are_open(evidence) || rate_was_asked_for(evidence);
    if evidence.transport != FlowTransport::Tcp || explained {
        return None;
    }
    let text = format!(
        "A queue on the path marks packets instead of dropping them (ECN), and {} of the segments were \
         acknowledged with an ECN echo: a link is full, without loss.",
        format::percent(share)
    );
    FindingBuilder::new(Rule::EcnMarks, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::EchoedShare, Some(share))
        .with(EvidenceKey::Echoed, Some(echoed))
        .with(EvidenceKey::Retransmits, evidence.tcp.retransmits)
        .with_time(EvidenceKey::RttRiseNs, evidence.rtt_rise_s())
        .remedy(
            "Nothing is broken: queue management keeps the delay low. If the rate is too low, look for \
                 other traffic on the slowest link.",
        )
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, long_path, lossy_path, shaped};
    use linerate_model::Cause;

    /// As many marks as a lossy path has losses, and no losses.
    fn marked(share: f64) -> Evidence {
        let mut evidence = lossy_path(share);
        evidence.tcp.delivered = evidence.tcp.segments_sent;
        evidence.tcp.delivered_marked = evidence.tcp.retransmits;
        evidence.tcp.retransmits = Some(0.0);
        evidence
    }

    #[test]
    fn echoes_without_loss_are_ecn() {
        let finding = diagnose(&marked(0.02)).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::Ecn, &Rule::EcnMarks));
        assert!((finding.evidence[&EvidenceKey::EchoedShare] - 0.02).abs() < 1e-9);
    }

    #[test]
    fn a_full_link_that_marks_is_a_full_link_first() {
        let mut evidence = full_gigabit();
        evidence.tcp.delivered = Some(7e5);
        evidence.tcp.delivered_marked = Some(7e3);
        let diagnosis = diagnose(&evidence);
        assert_eq!(diagnosis.primary.cause, Cause::Link);
        assert!(diagnosis.also.iter().any(|finding| finding.cause == Cause::Ecn));
    }

    #[test]
    fn a_steady_rate_below_the_line_that_marks_set_is_not_a_shapers() {
        // A queue on 20 Mb/s that marks; on a busy machine the sender does not always use what is free.
        for mbps in [12.3, 16.5, 370.0] {
            let mut evidence = shaped(mbps * 1e6);
            assert_eq!(diagnose(&evidence).primary.cause, Cause::Shaper, "{mbps}");
            (evidence.tcp.delivered, evidence.tcp.delivered_marked) = (Some(7e3), Some(250.0));
            evidence.tcp.retransmits = Some(0.0);
            assert_eq!(diagnose(&evidence).primary.cause, Cause::Ecn, "{mbps}");
            evidence.tcp.delivered_marked = Some(20.0);
            assert_eq!(diagnose(&evidence).primary.cause, Cause::Shaper, "{mbps}: hardly any marks");
        }
    }

    #[test]
    fn few_marks_losses_and_windows_are_not() {
        assert_eq!(rule(&marked(1e-3)), None, "one back-off in a thousand round trips");
        let mut lossy = marked(0.02);
        lossy.tcp.retransmits = lossy.tcp.delivered_marked.map(|count| 0.1 * count);
        assert_eq!(rule(&lossy), None, "the losses count for more");
        let mut windowed = long_path();
        windowed.tcp.delivered = Some(1e5);
        windowed.tcp.delivered_marked = Some(1e4);
        assert_eq!(rule(&windowed), None);
        assert_eq!(rule(&lossy_path(0.02)), None, "no marks were counted");
    }
}
