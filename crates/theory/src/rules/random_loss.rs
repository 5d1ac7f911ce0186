//! V20: packets vanish although no queue fills.

use linerate_model::{Cause, Confidence, Finding};

use super::congestion::{loss_limits, numbers};
use super::{Draft, policer};
use crate::evidence::Evidence;
use crate::phrase;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !loss_limits(evidence) || !policer::rtt_is_flat(evidence)? || policer::rule(evidence).is_some() {
        return None;
    }
    let text = format!(
        "{} of the segments are lost although no queue fills; at this round trip that alone holds the rate down.",
        phrase::percent(evidence.loss()?)
    );
    // One run cannot show that the loss does not depend on the load, nor that pacing removes it.
    numbers(Draft::new(Cause::RandomLoss, "V20", Confidence::Probable, text), evidence)
        .remedy("Check cables, optics and error counters hop by hop; pacing tells whether bursts overrun a small queue.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, lossy_path, policed};

    #[test]
    fn one_in_ten_thousand_at_21_ms_holds_the_rate() {
        assert_eq!(rule(&lossy_path(1e-4)).map(|finding| finding.cause), Some(Cause::RandomLoss));
    }

    #[test]
    fn the_same_loss_on_a_lan_holds_nothing() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(500e6);
        evidence.rtt =
            crate::evidence::RoundTrip { min_s: Some(0.0002), mean_s: Some(0.0002), ..Default::default() };
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * 1e-4);
        assert_eq!(rule(&evidence), None, "the model allows 7 Gbit/s there");
        assert_eq!(rule(&long_path()), None);
    }

    #[test]
    fn a_policers_loss_is_not_random() {
        assert_eq!(rule(&policed()), None);
    }

    #[test]
    fn bbr_does_not_answer_to_loss() {
        let mut evidence = lossy_path(1e-4);
        evidence.tcp.congestion = Some("bbr".to_owned());
        assert_eq!(rule(&evidence), None);
    }
}
