//! V26: the measurement itself was disturbed.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::FindingBuilder;
use crate::evidence::Evidence;
use crate::format;

/// Largest lateness of the sampling clock, in intervals. Later samples spoil a result.
const MAX_LATE_INTERVALS: f64 = 2.0;
/// A pause of at most this share of the test does not spoil its mean.
const MAX_PAUSED_SHARE: f64 = 0.05;
/// Share of the intervals that may be missing. One missing interval is always allowed (the last may be cut
/// short).
const MAX_MISSING_SHARE: f64 = 0.05;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let timing = &evidence.timing;
    let paused = paused_s(evidence);
    let late = paused.is_some_and(|gap| {
        evidence.outcome.measured_s.is_none_or(|measured| gap > MAX_PAUSED_SHARE * measured)
    });
    let miscounted = timing.expected_intervals.zip(timing.seen_intervals).is_some_and(|(expected, seen)| {
        expected.abs_diff(seen) as f64 > (expected as f64 * MAX_MISSING_SHARE).max(1.0)
    });
    if !(late || miscounted) {
        return None;
    }
    let text = match paused.filter(|_| late).map(format::time) {
        Some(gap) => format!("A measuring host was paused for {gap}."),
        None => "The number of intervals does not match the length of the test.".to_owned(),
    };
    FindingBuilder::new(Rule::Disturbed, Confidence::Confirmed, text)
        .with_time(EvidenceKey::GapMaxNs, timing.gap_max_s)
        .with(EvidenceKey::ExpectedIntervals, timing.expected_intervals.map(|count| count as f64))
        .with(EvidenceKey::SeenIntervals, timing.seen_intervals.map(|count| count as f64))
        .remedy("Repeat the test on idle hosts.")
        .finish()
}

/// The longest pause, s, if it exceeds [`MAX_LATE_INTERVALS`].
pub(super) fn paused_s(evidence: &Evidence) -> Option<f64> {
    let interval = evidence.outcome.interval_s?;
    evidence.timing.gap_max_s.filter(|gap| *gap > MAX_LATE_INTERVALS * interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;
    use linerate_model::Cause;

    #[test]
    fn pauses_and_missing_intervals_spoil_a_result() {
        assert_eq!(rule(&full_gigabit()), None);
        let spoilt: [fn(&mut Evidence); 2] = [
            |evidence| evidence.timing.gap_max_s = Some(0.5),
            |evidence| evidence.timing.seen_intervals = Some(90),
        ];
        for spoil in spoilt {
            let mut evidence = full_gigabit();
            spoil(&mut evidence);
            assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::Invalid));
        }
    }

    #[test]
    fn small_lateness_one_interval_and_a_wall_clock_are_forgiven() {
        let mut evidence = full_gigabit();
        evidence.timing.gap_max_s = Some(0.25);
        evidence.timing.seen_intervals = Some(99);
        evidence.timing.clock_stepped = Some(true);
        assert_eq!(rule(&evidence), None);
        evidence.timing.expected_intervals = Some(10);
        evidence.timing.seen_intervals = Some(9);
        assert_eq!(rule(&evidence), None, "the last of ten may be cut short");
    }
}
