//! V09: a pacing rate was set.

use linerate_model::{Cause, Confidence, Finding};

use super::{Draft, near};
use crate::evidence::Evidence;
use crate::phrase;

/// How close the goodput comes to the pacing rate, which may or may not count headers.
const CLOSE: f64 = 0.06;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let paced = evidence.asked.max_pacing_bps?;
    Draft::new(
        Cause::Pacing,
        "V09",
        Confidence::Confirmed,
        format!("The rate is paced at {}.", phrase::rate(paced)),
    )
    .with("goodput_bps", evidence.outcome.goodput_bps)
    .with("max_pacing_bps", Some(paced))
    .with("pacing_rate_bps", evidence.tcp.pacing_rate_bps)
    .remedy("Raise or remove the pacing rate.")
    .finish()
}

/// Whether a pacing rate was set and the flow runs at it.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let paced = evidence.asked.max_pacing_bps.map(|rate| rate * evidence.streams());
    evidence.outcome.goodput_bps.is_some_and(|goodput| near(goodput, paced, CLOSE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

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
}
