//! V23: retransmission timeouts.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::FindingBuilder;
use crate::evidence::Evidence;
use crate::format;

/// Share of the time in timeouts from which they limit the rate.
const MIN_TIME_SHARE: f64 = 0.02;
/// Timeouts per second from which they limit the rate: one in 30 s. A single timeout never does.
const MIN_PER_SECOND: f64 = 1.0 / 30.0;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let measured = evidence.outcome.measured_s.filter(|seconds| *seconds > 0.0)?;
    let tcp = &evidence.tcp;
    // Timeouts add up over the connections, and so does the time in which they can happen.
    let share = tcp.timeout_s.map(|seconds| seconds / (measured * evidence.streams()));
    let long = share.is_some_and(|share| share > MIN_TIME_SHARE);
    let often = tcp.timeouts.is_some_and(|count| count >= 2.0 && count / measured > MIN_PER_SECOND);
    if !long && !often {
        return None;
    }
    let text = share.filter(|_| long).map_or_else(
        || {
            format!(
                "{:.0} retransmission timeouts in {}.",
                tcp.timeouts.unwrap_or(0.0),
                format::time(measured)
            )
        },
        |share| format!("Retransmission timeouts took {} of the time.", format::percent(share)),
    );
    let sure = if long && often { Confidence::Confirmed } else { Confidence::Probable };
    FindingBuilder::new(Rule::Timeouts, sure, text)
        .with(EvidenceKey::Timeouts, tcp.timeouts)
        .with_time(EvidenceKey::TimeoutNs, tcp.timeout_s)
        .with(EvidenceKey::LossRatio, evidence.loss())
        .share(share)
        .remedy("Check when the loss occurs: at the end of bursts, or during outages of the path.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

    #[test]
    fn repeated_timeouts_count_and_a_single_one_does_not() {
        let mut evidence = full_gigabit();
        evidence.tcp.timeouts = Some(1.0);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.timeouts = Some(3.0);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.tcp.timeout_s = Some(0.9);
        let finding = rule(&evidence).unwrap();
        assert_eq!(finding.confidence, Confidence::Confirmed);
        assert_eq!(finding.share_of_time, Some(0.1));
        evidence.outcome.streams = Some(8);
        assert_eq!(rule(&evidence).unwrap().share_of_time, Some(0.0125), "of one connection's time");
    }
}
