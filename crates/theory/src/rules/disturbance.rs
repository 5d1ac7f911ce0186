//! V26 as an additional finding: a measuring host lost time, but too little to spoil the result.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, QUOTA_REMEDY, clock_fault, uses_up_its_quota};
use crate::evidence::Evidence;
use crate::format;

/// Smallest share of a CPU quota's periods in which it was used up that is reported.
const MIN_THROTTLED_SHARE: f64 = 0.05;
/// Smallest share of steal time (taken by the hypervisor) that is reported.
const MIN_STEAL_SHARE: f64 = 0.05;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if clock_fault::rule(evidence).is_some() {
        return None;
    }
    let shares = [evidence.sender.steal_share, evidence.receiver.steal_share];
    let stolen = shares.into_iter().flatten().reduce(f64::max).filter(|share| *share > MIN_STEAL_SHARE);
    let paused = clock_fault::paused_s(evidence);
    if let Some(share) = sometimes_throttled(evidence).filter(|_| stolen.or(paused).is_none()) {
        return quota(evidence, share);
    }
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

/// Share of the periods in which a host had used up its CPU quota, if that is not its limit.
fn sometimes_throttled(evidence: &Evidence) -> Option<f64> {
    let hosts = [&evidence.sender, &evidence.receiver].into_iter();
    let shares = hosts.filter(|host| !uses_up_its_quota(host)).filter_map(|host| host.quota_throttled_share);
    shares.reduce(f64::max).filter(|share| *share > MIN_THROTTLED_SHARE)
}

fn quota(evidence: &Evidence, share: f64) -> Option<Finding> {
    let text = format!(
        "A host had used up its CPU quota in {} of the periods: the measured rate may be too low, and delays \
         too long.",
        format::percent(share)
    );
    FindingBuilder::new(Rule::Disturbed, Confidence::Probable, text)
        .with(EvidenceKey::SenderQuotaThrottledShare, evidence.sender.quota_throttled_share)
        .with(EvidenceKey::ReceiverQuotaThrottledShare, evidence.receiver.quota_throttled_share)
        .remedy(QUOTA_REMEDY)
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
    fn a_quota_that_is_used_up_now_and_then_is_a_remark() {
        let mut evidence = full_gigabit();
        for (share, expected) in [(0.02, false), (0.3, true), (0.95, false)] {
            evidence.receiver.quota_throttled_share = Some(share);
            let found = rule(&evidence).is_some_and(|finding| finding.text.contains("CPU quota"));
            assert_eq!(found, expected, "{share}; one that is always used up has a rule of its own");
        }
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
