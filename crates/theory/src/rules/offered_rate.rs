//! V03: the test itself offered no higher rate.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, near};
use crate::evidence::{Evidence, FlowTransport};
use crate::{ceilings, format};

/// Largest relative difference between the goodput and the offered rate.
const RATE_TOLERANCE: f64 = 0.03;
/// Share of datagrams that may be lost although the offered rate counts as delivered.
const MAX_LOSS: f64 = 2e-3;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let (goodput, offered) = (evidence.outcome.goodput_bps?, evidence.asked.offered_bps?);
    let text = format!("The test offered only {}, and the path carried it.", format::rate(offered));
    let remedy = match evidence.transport {
        // Without a rate, datagrams are sent at 1 Mb/s.
        FlowTransport::Udp => "Offer more with -b, or -b 0 for no limit, to find out what the path carries.",
        _ => "Offer more, or set no rate, to find out what the path carries.",
    };
    FindingBuilder::new(Rule::SlowSource, Confidence::Confirmed, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::OfferedBps, Some(offered))
        .remedy(remedy)
        .finish()
}

/// Whether the offered rate arrived and is less than the link can carry.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let (Some(goodput), Some(offered)) = (evidence.outcome.goodput_bps, evidence.asked.offered_bps) else {
        return false;
    };
    // Datagrams that are lost although the rate arrives are a sign of a fault on the path.
    if evidence.transport == FlowTransport::Udp && evidence.loss().is_some_and(|loss| loss > MAX_LOSS) {
        return false;
    }
    let link = evidence.line_rate_bps().and_then(|rate| ceilings::link_goodput_bps(evidence, rate));
    near(goodput, Some(offered), RATE_TOLERANCE) && link.is_none_or(|ceiling| offered < ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;
    use linerate_model::Cause;

    #[test]
    fn what_was_offered_and_arrived_is_the_limit() {
        let mut evidence = full_gigabit();
        assert_eq!(rule(&evidence), None);
        evidence.outcome.goodput_bps = Some(49.5e6);
        evidence.asked.offered_bps = Some(50e6);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::Application));
        evidence.outcome.goodput_bps = Some(40e6);
        assert_eq!(rule(&evidence), None, "the path took less than was offered");
    }

    #[test]
    fn datagrams_that_vanish_below_the_offered_rate_are_the_paths() {
        let mut evidence = full_gigabit();
        evidence.transport = FlowTransport::Udp;
        evidence.outcome.goodput_bps = Some(19.8e6);
        evidence.asked.offered_bps = Some(20e6);
        (evidence.udp.packets, evidence.udp.lost) = (Some(5000.0), Some(5.0));
        assert!(rule(&evidence).is_some(), "one in a thousand");
        evidence.udp.lost = Some(50.0);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn an_offer_beyond_the_link_does_not_limit() {
        let mut evidence = full_gigabit();
        evidence.asked.offered_bps = Some(950e6);
        assert_eq!(rule(&evidence), None);
    }
}
