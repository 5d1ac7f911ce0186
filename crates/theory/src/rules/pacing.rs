//! V09: a pacing rate was set.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, near};
use crate::evidence::Evidence;
use crate::{ceilings, format};

/// Largest relative difference between the goodput and the pacing rate, which may or may not count headers.
const RATE_TOLERANCE: f64 = 0.06;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let paced = evidence.asked.max_pacing_bps?;
    FindingBuilder::new(
        Rule::Pacing,
        Confidence::Confirmed,
        format!("The rate is paced at {}.", format::rate(paced)),
    )
    .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
    .with(EvidenceKey::MaxPacingBps, Some(paced))
    .with(EvidenceKey::PacingRateBps, evidence.tcp.pacing_rate_bps)
    .remedy("Raise or remove the pacing rate.")
    .finish()
}

/// Whether a pacing rate was set and the flow runs at it. If the link carries less, or a queue is always
/// present, the path is the limit instead.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let paced = evidence.asked.max_pacing_bps.map(|rate| rate * evidence.streams());
    let link = evidence.line_rate_bps().and_then(|rate| ceilings::link_goodput_bps(evidence, rate));
    let pace = ceilings::pacing_bps(evidence);
    let link_first = link.zip(pace).is_some_and(|(link, pace)| link < pace);
    let queued = evidence.has_standing_queue() && evidence.queue_never_empties();
    !link_first
        && !queued
        && evidence.outcome.goodput_bps.is_some_and(|goodput| near(goodput, paced, RATE_TOLERANCE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;
    use linerate_model::Cause;

    #[test]
    fn a_rate_that_was_set_and_is_kept_limits() {
        let mut evidence = full_gigabit();
        evidence.tcp.pacing_rate_bps = Some(1.1e9);
        assert_eq!(rule(&evidence), None, "the kernel paces every flow; nobody asked for it");
        evidence.asked.max_pacing_bps = Some(300e6);
        assert_eq!(rule(&evidence), None, "and this rate is not the flow's");
        evidence.outcome.goodput_bps = Some(290e6);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::Pacing));
    }

    #[test]
    fn a_link_or_a_queue_that_binds_first_is_the_limit() {
        let mut evidence = full_gigabit();
        // A pacing rate of 980 Mb/s lets 937 Mb/s of payload through, one of 1 Gb/s lets 956 Mb/s through, the
        // link 941 Mb/s.
        evidence.asked.max_pacing_bps = Some(1e9);
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::LinkFull);
        evidence.asked.max_pacing_bps = Some(980e6);
        evidence.outcome.goodput_bps = Some(937e6);
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::Pacing);
        let mut shaped = crate::rules::examples::shaped(20e6);
        shaped.asked.max_pacing_bps = Some(20e6);
        shaped.rtt.smoothed_p10_s = Some(0.045);
        assert_eq!(crate::diagnose(&shaped).primary.rule, Rule::Shaper, "who is paced leaves no queue");
    }
}
