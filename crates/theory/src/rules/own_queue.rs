//! V14: the shaper is the sender's own queueing discipline, whose rate was read.

use linerate_model::{Cause, Confidence, Finding};

use super::{Draft, rate_was_asked_for};
use crate::evidence::{Evidence, OwnQueue};
use crate::{ethernet, phrase};

/// From this share of what the discipline lets through, the rate is its.
const NEAR: f64 = 0.90;
/// From this share, nothing else can matter.
const AT: f64 = 0.96;
/// Buckets that were full at the start, and reads that end within an interval.
const ABOVE: f64 = 1.03;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let (queue, ceiling) = shaper(evidence)?;
    let (goodput, rate) = (evidence.outcome.goodput_bps?, queue.rate_bps?);
    if !(NEAR..=ABOVE).contains(&(goodput / ceiling)) || rate_was_asked_for(evidence) {
        return None;
    }
    let sure = if goodput >= AT * ceiling { Confidence::Confirmed } else { Confidence::Probable };
    let dropped = queue.dropped.filter(|dropped| *dropped > 0.0);
    let drops = dropped.map_or_else(String::new, |dropped| format!(" It dropped {dropped:.0} packets."));
    let text = format!(
        "Your own {} on {} of {} is set to {}, which lets {} of payload through.{drops}",
        queue.kind,
        queue.interface,
        queue.host,
        phrase::rate(rate),
        phrase::rate(ceiling)
    );
    Draft::new(Cause::Shaper, "V14", sure, text)
        .with("goodput_bps", Some(goodput))
        .with("ceiling_bps", Some(ceiling))
        .with("shaper_bps", Some(rate))
        .with("local_drops", dropped)
        .remedy(format!(
            "Raise or remove it (`tc qdisc show dev {}` shows it) if it is not meant to be there.",
            queue.interface
        ))
        .finish()
}

/// The sender's own queue, if it has a rate, and the payload that this lets through.
pub(crate) fn shaper(evidence: &Evidence) -> Option<(&OwnQueue, f64)> {
    let queue = evidence.own_queue.as_ref()?;
    let rate = queue.rate_bps.filter(|rate| *rate > 0.0)?;
    let ceiling =
        ethernet::shaped_goodput_bps(rate, evidence.packet_bytes(), &evidence.headers(), evidence.tags())?;
    Some((queue, ceiling))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, shaped};

    fn own(rate_bps: f64) -> Evidence {
        let mut evidence = shaped(50e6);
        evidence.own_queue = Some(OwnQueue {
            kind: "tbf".to_owned(),
            interface: "eth0".to_owned(),
            host: "alpha".to_owned(),
            rate_bps: Some(rate_bps),
            dropped: Some(12.0),
        });
        evidence
    }

    #[test]
    fn the_senders_own_bucket_is_named_with_its_place() {
        let verdict = diagnose(&own(50e6)).primary;
        assert_eq!((verdict.cause, verdict.confidence), (Cause::Shaper, Confidence::Confirmed));
        assert!(verdict.text.contains("Your own tbf on eth0 of alpha is set to 50 Mb/s"), "{}", verdict.text);
        assert!(verdict.text.contains("dropped 12 packets"), "{}", verdict.text);
    }

    #[test]
    fn a_faster_bucket_or_one_without_a_rate_is_not_the_shaper() {
        for rate in [56e6, 60e6, 500e6] {
            let verdict = diagnose(&own(rate)).primary;
            assert!(!verdict.text.contains("Your own"), "{rate}: {}", verdict.text);
        }
        let mut fair = own(50e6);
        fair.own_queue.as_mut().unwrap().rate_bps = None;
        assert!(rule(&fair).is_none());
        assert!(rule(&full_gigabit()).is_none());
    }

    #[test]
    fn a_rate_that_was_asked_for_is_not_the_buckets() {
        let mut evidence = own(50e6);
        evidence.asked.offered_bps = evidence.outcome.goodput_bps;
        assert!(rule(&evidence).is_none());
    }
}
