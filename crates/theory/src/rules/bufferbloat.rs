//! V22: packets wait long in a queue under load. Listed with a verdict, never the verdict itself.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::FindingBuilder;
use crate::evidence::Evidence;
use crate::{delay, format};

/// Smallest rise of the round trip under load that is reported, s.
const NOTICEABLE_RISE_S: f64 = 0.030;
/// Limits of a fair and a poor round trip under load, s: 1000 and 300 round trips per minute.
const FAIR_RTT_S: f64 = 0.060;
const POOR_RTT_S: f64 = 0.200;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let base = evidence.base_rtt_s()?;
    let working = evidence.rtt.loaded_p95_s.or(evidence.rtt.loaded_p50_s)?;
    let rise = working - base;
    if rise.is_nan() || rise <= NOTICEABLE_RISE_S {
        return None;
    }
    let grade = match working {
        working if working > POOR_RTT_S => "poor",
        working if working > FAIR_RTT_S => "fair",
        _ => "noticeable",
    };
    let rpm = delay::round_trips_per_minute(working)?;
    let text = format!(
        "Under load a round trip takes {} instead of {} ({rpm:.0} per minute, {grade}): a queue builds up \
         on the path.",
        format::time(working),
        format::time(base)
    );
    FindingBuilder::new(Rule::Bufferbloat, Confidence::Confirmed, text)
        .with_time(EvidenceKey::RttBaseNs, Some(base))
        .with_time(EvidenceKey::RttLoadedP95Ns, Some(working))
        .with(EvidenceKey::RoundTripsPerMinute, Some(rpm))
        .remedy("Enable active queue management (fq_codel, CAKE) at the bottleneck.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, shaped};

    #[test]
    fn fifty_milliseconds_of_queue_are_noticed_and_graded() {
        let finding = rule(&shaped(100e6)).unwrap();
        assert!(finding.text.contains("noticeable"), "{}", finding.text);
        let mut worse = shaped(100e6);
        worse.rtt.loaded_p95_s = Some(0.3);
        let finding = rule(&worse).unwrap();
        assert!(finding.text.contains("poor"));
        assert_eq!(finding.evidence[&EvidenceKey::RoundTripsPerMinute], 200.0);
    }

    #[test]
    fn a_long_path_without_a_queue_is_not_bloated() {
        assert_eq!(rule(&long_path()), None);
        assert_eq!(rule(&full_gigabit()), None);
    }
}
