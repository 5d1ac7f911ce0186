//! V14: the shaper is the sender's own qdisc, whose rate was read.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, impossible, rate_was_asked_for};
use crate::evidence::{Evidence, LinkSource, OwnQueue};
use crate::{ceilings, ethernet, format};

/// From this share of the rate that the qdisc lets through, the qdisc holds the rate.
const NEAR_SHARE: f64 = 0.90;
/// From this share, nothing else can be the limit.
const AT_SHARE: f64 = 0.96;
/// Allows for buckets that were full at the start, and for reads that end within an interval.
const MAX_SHARE: f64 = 1.03;
/// A qdisc with at least this share of the interface's line rate emulates the line, as in the NIC of an
/// emulated host, or where a link is paced to spare the buffer of the next hop.
const LINE_SHARE: f64 = 0.99;
/// A qdisc that lets through at least this share of the stated link rate is as fast as that link.
const AS_FAST_SHARE: f64 = 0.998;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let (queue, ceiling) = shaper(evidence).filter(|_| holds(evidence))?;
    let (goodput, rate) = (evidence.outcome.goodput_bps?, queue.rate_bps?);
    let sure = if goodput >= AT_SHARE * ceiling { Confidence::Confirmed } else { Confidence::Probable };
    let dropped = queue.dropped.filter(|dropped| *dropped > 0.0);
    let drops = dropped.map_or_else(String::new, |dropped| format!(" It dropped {dropped:.0} packets."));
    let text = format!(
        "Your own {} on {} of {} is set to {}, which lets {} of payload through.{drops}",
        queue.kind,
        queue.interface,
        queue.host,
        format::rate(rate),
        format::rate(ceiling)
    );
    FindingBuilder::new(Rule::Shaper, sure, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::CeilingBps, Some(ceiling))
        .with(EvidenceKey::ShaperBps, Some(rate))
        .with(EvidenceKey::LocalDrops, dropped)
        .remedy(format!(
            "Raise or remove it (`tc qdisc show dev {}` shows it) if it is not meant to be there.",
            queue.interface
        ))
        .finish()
}

/// Whether the sender's own queue holds the rate: it lets through about the goodput, and less than the link
/// carries.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let near = |ceiling: f64| {
        evidence
            .outcome
            .goodput_bps
            .is_some_and(|goodput| (NEAR_SHARE..=MAX_SHARE).contains(&(goodput / ceiling)))
    };
    let holds = |(_, ceiling)| near(ceiling) && !link_comes_first(evidence, ceiling);
    shaper(evidence).is_some_and(holds) && !rate_was_asked_for(evidence)
}

/// Whether the link (measured or stated by the user) carries no more than the qdisc lets through. Then the link
/// is the limit, unless the flow exceeds it: a stated rate can be wrong.
fn link_comes_first(evidence: &Evidence, ceiling: f64) -> bool {
    let carries = evidence.line_rate_bps().and_then(|link| ceilings::link_goodput_bps(evidence, link));
    let exceeded =
        |carries: f64| evidence.sustained_bps().is_some_and(|rate| rate > impossible::MAX_LIFT * carries);
    carries.is_some_and(|carries| ceiling >= AS_FAST_SHARE * carries && !exceeded(carries))
}

/// The sender's own queue, if it has a rate below that of the line, and the payload that it lets through,
/// bit/s.
pub(crate) fn shaper(evidence: &Evidence) -> Option<(&OwnQueue, f64)> {
    let queue = evidence.own_queue.as_ref()?;
    let rate = queue.rate_bps.filter(|rate| *rate > 0.0)?;
    let ceiling = ethernet::shaped_goodput_bps(rate, &evidence.layer_bytes()?)?;
    let from_interface = evidence.link.source == Some(LinkSource::Interface);
    let line = evidence.line_rate_bps().filter(|_| from_interface);
    let line = line.and_then(|line| ceilings::link_goodput_bps(evidence, line));
    (line.is_none_or(|line| ceiling < LINE_SHARE * line)).then_some((queue, ceiling))
}

#[cfg(test)]
mod tests {
    use linerate_model::Cause;
    use linerate_model::Limit;

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
            burst_bytes: Some(32_768.0),
            may_count_packets: false,
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
    fn a_bucket_that_limits_the_line_is_a_case_of_the_lines_rule() {
        // A line of 1 Gb/s carries 1514 of 1538 bytes as the kernel counts them: 984.4 Mb/s, less 200 ppm for
        // its clock.
        let mut card = full_gigabit();
        card.own_queue = own(1e9 * 1514.0 / 1538.0 * (1.0 - 200e-6)).own_queue;
        let verdict = diagnose(&card);
        assert_eq!(
            (verdict.primary.cause, &verdict.primary.rule),
            (Cause::Link, &Rule::LinkFull),
            "{verdict:?}"
        );
        assert_eq!(verdict.expected.map(|ceiling| ceiling.limit), Some(Limit::Link));
        // The same bucket on a line that is ten times as fast.
        card.link.link_bps = Some(10e9);
        assert!(rule(&card).is_some());
    }

    #[test]
    fn a_bucket_that_was_read_is_the_ceiling_and_nothing_is_inferred() {
        let verdict = diagnose(&own(50e6));
        let ceiling = verdict.expected.unwrap();
        assert_eq!(ceiling.limit, Limit::Qdisc);
        assert!((ceiling.bitrate_bps - 50e6 * 1448.0 / 1514.0).abs() < 1.0, "{ceiling:?}");
        assert!(ceiling.because.contains("tbf of 50 Mb/s on eth0 of alpha"), "{}", ceiling.because);
        assert!(
            verdict.ceilings.iter().all(|ceiling| ceiling.limit != Limit::LinkInferred),
            "{:?}",
            verdict.ceilings
        );
        // The bucket is also the ceiling of a flow that something else limits.
        let mut slow = own(200e6);
        slow.asked.offered_bps = Some(47.8e6);
        assert_eq!(diagnose(&slow).expected.unwrap().limit, Limit::Qdisc);
    }

    #[test]
    fn above_the_bucket_is_impossible_and_what_was_in_it_is_not() {
        // 47.82 Mb/s of payload; 32,768 bytes over 9 s are 29 kb/s, and 50 ms of queue another 266 kb/s.
        let of = |bps: f64| {
            let mut evidence = own(50e6);
            evidence.outcome.goodput_bps = Some(bps);
            evidence.outcome.intervals_bps = vec![bps; 90];
            diagnose(&evidence).primary.cause
        };
        assert_eq!((of(48.0e6), of(48.3e6)), (Cause::Shaper, Cause::Impossible));
        let mut larger = own(50e6);
        larger.own_queue.as_mut().unwrap().burst_bytes = Some(1e6);
        larger.outcome.goodput_bps = Some(48.3e6);
        assert_eq!(diagnose(&larger).primary.cause, Cause::Shaper, "a bucket of 1 MB");
        larger.own_queue.as_mut().unwrap().burst_bytes = None;
        larger.outcome.goodput_bps = Some(60e6);
        assert_ne!(diagnose(&larger).primary.cause, Cause::Impossible, "nobody knows what was in it");
    }

    #[test]
    fn the_same_shaper_is_not_listed_twice_nor_with_a_link() {
        for rate in [2e6, 10e6, 50e6, 100e6, 1e9] {
            let mut evidence = shaped(rate);
            evidence.own_queue = own(rate).own_queue;
            let found = diagnose(&evidence);
            assert!(found.primary.text.contains("Your own tbf"), "{rate}: {:?}", found.primary);
            let again = found
                .also
                .iter()
                .find(|finding| [Rule::Shaper, Rule::LinkFull, Rule::WindowRegrowth].contains(&finding.rule));
            assert_eq!(again, None, "{rate}");
        }
    }

    #[test]
    fn a_bucket_as_fast_as_its_link_leaves_the_link_the_limit() {
        // 1514 of 1538 bytes of a frame on the wire: a bucket that emulates the wire.
        let mut evidence = full_gigabit();
        evidence.own_queue = own(1e9 * 1514.0 / 1538.0).own_queue;
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Link);
        evidence.link.source = Some(LinkSource::User);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Link, "nor where the link is stated");
        // At 960 Mb/s the bucket is the limit, and the link is not full.
        evidence.outcome.goodput_bps = Some(960e6 * 1448.0 / 1514.0);
        evidence.outcome.intervals_bps = vec![960e6 * 1448.0 / 1514.0; 90];
        evidence.own_queue = own(960e6).own_queue;
        let found = diagnose(&evidence);
        assert_eq!(found.primary.cause, Cause::Shaper, "{:?}", found.primary);
        assert!(found.also.iter().all(|finding| finding.cause != Cause::Link), "{:?}", found.also);
    }

    #[test]
    fn a_bucket_set_to_the_rate_that_is_stated_is_the_bucket() {
        let mut evidence = own(50e6);
        evidence.link.link_bps = Some(50e6);
        evidence.link.source = Some(LinkSource::User);
        let verdict = diagnose(&evidence).primary;
        assert!(verdict.text.contains("Your own tbf"), "{}", verdict.text);
    }

    #[test]
    fn a_rate_that_was_asked_for_is_not_the_buckets() {
        let mut evidence = own(50e6);
        evidence.asked.offered_bps = evidence.outcome.goodput_bps;
        assert!(rule(&evidence).is_none());
    }
}
