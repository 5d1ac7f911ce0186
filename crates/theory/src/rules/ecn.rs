//! V24: queues mark congestion instead of dropping.

use linerate_model::{Cause, Finding};

use super::{Draft, confidence, near, rate_was_asked_for, windows_are_open};
use crate::evidence::{Evidence, Transport};
use crate::{ladder, phrase};

/// Share of marked segments that slows any congestion control down.
const MARKED: f64 = 0.005;
/// Losses for each mark above which the losses matter more.
const LOST_PER_MARK: f64 = 0.1;
/// A loss model explains a rate within this factor.
const MODEL_FACTOR: f64 = 2.0;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let tcp = &evidence.tcp;
    let marks = tcp.delivered_marked.filter(|marks| *marks > 0.0)?;
    let share = marks / tcp.delivered.filter(|delivered| *delivered > 0.0)?;
    let lossless = tcp.retransmits.is_some_and(|count| count <= LOST_PER_MARK * marks);
    if evidence.transport != Transport::Tcp
        || !lossless
        || !windows_are_open(evidence)
        || rate_was_asked_for(evidence)
    {
        return None;
    }
    let goodput = evidence.outcome.goodput_bps?;
    // A sender backs off for a mark as for a loss.
    let model = ladder::backed_off_bps(evidence, share);
    let modelled =
        model.is_some_and(|model| (1.0 / MODEL_FACTOR..=MODEL_FACTOR).contains(&(goodput / model)));
    if !modelled && share <= MARKED {
        return None;
    }
    let sure = confidence(near(goodput, model, 0.1), true)?;
    let text = format!(
        "A queue on the path marks {} of the segments as having met congestion: a link is full, without loss.",
        phrase::percent(share)
    );
    Draft::new(Cause::Ecn, "V24", sure, text)
        .with("goodput_bps", Some(goodput))
        .with("ceiling_bps", model)
        .with("marked_share", Some(share))
        .with("marked", Some(marks))
        .with("retransmits", tcp.retransmits)
        .with_time("rtt_rise_ns", evidence.rtt_rise_s())
        .remedy("Nothing is broken: the queue management holds the delay down. Look for other traffic at the slowest link if the rate is too low.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, long_path, lossy_path};

    /// As many marks as a lossy path has losses, and no loss.
    fn marked(share: f64) -> Evidence {
        let mut evidence = lossy_path(share);
        evidence.tcp.delivered = evidence.tcp.segments_sent;
        evidence.tcp.delivered_marked = evidence.tcp.retransmits;
        evidence.tcp.retransmits = Some(0.0);
        evidence
    }

    #[test]
    fn marks_without_loss_are_ecn_and_the_model_says_how_sure() {
        let finding = diagnose(&marked(1e-4)).primary;
        assert_eq!((finding.cause, finding.rule.as_str()), (Cause::Ecn, "V24"));
        assert_eq!(finding.confidence, linerate_model::Confidence::Confirmed);
        let mut dctcp = marked(0.1);
        dctcp.outcome.goodput_bps = Some(600e6);
        let finding = rule(&dctcp).unwrap();
        assert_eq!(finding.confidence, linerate_model::Confidence::Probable);
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
    fn few_marks_losses_and_windows_are_not() {
        let mut few = marked(1e-4);
        few.tcp.delivered_marked = Some(1.0);
        few.tcp.delivered = Some(1e6);
        assert_eq!(rule(&few), None, "one mark in a million explains no 200 Mb/s");
        let mut lossy = marked(1e-4);
        lossy.tcp.retransmits = lossy.tcp.delivered_marked;
        assert_eq!(rule(&lossy), None, "as many losses as marks");
        let mut windowed = long_path();
        windowed.tcp.delivered = Some(1e5);
        windowed.tcp.delivered_marked = Some(1e3);
        assert_eq!(rule(&windowed), None);
        assert_eq!(rule(&lossy_path(1e-4)), None, "no marks were counted");
    }
}
