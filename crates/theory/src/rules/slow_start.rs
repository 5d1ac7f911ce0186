//! V10: slow start had not finished.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, link_full};
use crate::evidence::Evidence;
use crate::format;

/// Smallest growth of the last interval, and of the window per second, that shows slow start.
const MIN_GROWTH: f64 = 0.1;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let still_in = evidence.tcp.ssthresh_infinite == Some(true);
    let rate_grows = evidence.outcome.last_over_previous.is_some_and(|ratio| ratio > 1.0 + MIN_GROWTH);
    let window_grows = evidence.tcp.cwnd_growth_per_s.map(|growth| growth > MIN_GROWTH);
    if !still_in || !rate_grows || window_grows == Some(false) || link_full::own_link_is_full(evidence) {
        return None;
    }
    let sure = if window_grows == Some(true) { Confidence::Confirmed } else { Confidence::Probable };
    let text = "The rate was still growing when the test ended: slow start had not finished.".to_owned();
    let longer = evidence.outcome.asked_s.or(evidence.outcome.measured_s).map(|seconds| 2.0 * seconds);
    let remedy = longer.map_or_else(
        || "Test longer, and omit the start (-O).".to_owned(),
        |seconds| format!("Test at least {}, and omit the start (-O).", format::time(seconds)),
    );
    FindingBuilder::new(Rule::SlowStartUnfinished, sure, text)
        .with(EvidenceKey::LastOverPrevious, evidence.outcome.last_over_previous)
        .with(EvidenceKey::CwndGrowthPerS, evidence.tcp.cwnd_growth_per_s)
        .with(EvidenceKey::CwndLastBytes, evidence.tcp.cwnd_last_bytes)
        .remedy(remedy)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path};
    use linerate_model::Cause;

    fn growing() -> Evidence {
        let mut evidence = long_path();
        evidence.tcp.ssthresh_infinite = Some(true);
        evidence.outcome.last_over_previous = Some(1.8);
        evidence.tcp.cwnd_growth_per_s = Some(3.0);
        evidence
    }

    #[test]
    fn a_rate_that_still_doubles_is_no_result() {
        assert_eq!(rule(&growing()).map(|finding| finding.cause), Some(Cause::SlowStart));
    }

    #[test]
    fn a_steady_rate_that_never_lost_anything_is_one() {
        let mut evidence = full_gigabit();
        evidence.tcp.ssthresh_infinite = Some(true);
        assert_eq!(rule(&evidence), None);
        let mut evidence = growing();
        evidence.tcp.cwnd_growth_per_s = Some(0.0);
        assert_eq!(rule(&evidence), None);
        let mut evidence = growing();
        evidence.tcp.ssthresh_infinite = Some(false);
        assert_eq!(rule(&evidence), None);
    }
}
