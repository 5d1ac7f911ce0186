//! V26 as an additional finding: a measuring host lost time, but too little to spoil the result.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, clock_fault};
use crate::evidence::Evidence;
use crate::format;

/// Smallest share of steal time (taken by the hypervisor) that is reported.
const MIN_STEAL_SHARE: f64 = 0.05;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if clock_fault::rule(evidence).is_some() {
        return None;
    }
    let shares = [evidence.sender.steal_share, evidence.receiver.steal_share];
    let stolen = shares.into_iter().flatten().reduce(f64::max).filter(|share| *share > MIN_STEAL_SHARE);
    let paused = clock_fault::paused_s(evidence);
    let stepped = evidence.timing.clock_stepped == Some(true);
    let text = match (stolen, paused) {
        (Some(share), _) => {
            format!(
                "A hypervisor took {} of a host's time: the measured rate may be too low.",
                format::percent(share)
            )
        }
        (None, Some(pause)) => {
            format!(
                "A measuring host was paused for {}: the measured rate may be too low.",
                format::time(pause)
            )
        }
        (None, None) if stepped => {
            "A wall clock was set during the test. Rates and round trips are not affected: they use \
             monotonic clocks."
                .to_owned()
        }
        (None, None) => return None,
    };
    FindingBuilder::new(Rule::Disturbed, Confidence::Probable, text)
        .with(EvidenceKey::SenderStealShare, evidence.sender.steal_share)
        .with(EvidenceKey::ReceiverStealShare, evidence.receiver.steal_share)
        .with_time(EvidenceKey::GapMaxNs, paused)
        .remedy("Repeat the test when the machine is idle, or on dedicated hosts.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

    #[test]
    fn the_worse_host_counts() {
        let mut evidence = full_gigabit();
        evidence.sender.steal_share = Some(0.01);
        assert_eq!(rule(&evidence), None);
        evidence.receiver.steal_share = Some(0.2);
        assert!(rule(&evidence).unwrap().text.contains("20.0 %"));
    }

    #[test]
    fn a_short_pause_is_a_remark_and_a_long_one_a_verdict() {
        let mut evidence = full_gigabit();
        evidence.timing.gap_max_s = Some(0.25);
        assert!(rule(&evidence).unwrap().text.contains("250 ms"));
        evidence.timing.gap_max_s = Some(1.0);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_wall_clock_that_was_set_is_a_remark() {
        let mut evidence = full_gigabit();
        evidence.timing.clock_stepped = Some(true);
        assert!(rule(&evidence).unwrap().text.contains("wall clock"));
    }
}
