//! V02: a link on the path is full.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::standard_rates::{self, StandardRateKind};
use super::{
    FindingBuilder, any_core_is_full, confidence, congestion, hosts_have_room, impossible, own_queue,
    rate_was_asked_for, windows_are_open,
};
use crate::ethernet::StandardRate;
use crate::evidence::{Evidence, FlowTransport};
use crate::{ceilings, ethernet, format, framing};

/// A link that carries at least this share of its ceiling is full.
const FULL_SHARE: f64 = 0.98;
/// A link that carries at least this share is nearly full: other traffic may use the rest.
const NEARLY_FULL_SHARE: f64 = 0.93;
/// Intervals of a full link vary by less than this.
const MAX_VARIATION: f64 = 0.02;
/// Intervals of a slower link with a queue vary by less than this, which allows for busy hosts.
const MAX_QUEUED_VARIATION: f64 = 0.10;
/// A thread with this much of a core may itself be the limit.
const BUSY_THREAD_SHARE: f64 = 0.85;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if rate_was_asked_for(evidence) || own_queue::holds(evidence) {
        return None;
    }
    own_link(evidence).or_else(|| slower_link(evidence))
}

/// Whether the known link is at least nearly full.
pub(super) fn own_link_is_full(evidence: &Evidence) -> bool {
    share_of_own_link(evidence).is_some_and(|(share, _)| share >= NEARLY_FULL_SHARE)
}

fn share_of_own_link(evidence: &Evidence) -> Option<(f64, f64)> {
    let ceiling = ceilings::link_goodput_bps(evidence, evidence.line_rate_bps()?)?;
    Some((evidence.outcome.goodput_bps? / ceiling, ceiling))
}

fn own_link(evidence: &Evidence) -> Option<Finding> {
    let (share, ceiling) = share_of_own_link(evidence)?;
    let above = share > 1.0 + framing::CLOCK_TOLERANCE_PPM * 1e-6;
    let excess_bps = evidence.outcome.goodput_bps? - ceiling;
    // Data that waited lifts the mean, but not most of the intervals. If most intervals exceed a link, it is
    // not the limit.
    let exceeded = evidence.sustained_bps()? > impossible::MAX_LIFT * ceiling;
    if share < NEARLY_FULL_SHARE
        || exceeded
        || (above && !impossible::held_back(evidence, excess_bps, ceiling))
    {
        return None;
    }
    let constant = evidence.is_constant(MAX_VARIATION) == Some(true);
    let counters = windows_are_open(evidence) && constant;
    let sure = if share >= FULL_SHARE {
        // What a hypervisor's card reports may be that rate by chance only.
        confidence(true, counters && !evidence.is_nominal_link())?
    } else if (counters || queue_fills(evidence)) && !any_core_is_full(evidence) {
        Confidence::Probable
    } else {
        return None;
    };
    let link = evidence.line_rate_bps()?;
    let whose =
        if evidence.link.link_bps.is_some_and(|own| own > link) { "The peer's link" } else { "The link" };
    let name = ethernet::standard_name(link).map_or_else(|| format::rate(link), str::to_owned);
    let text = format!(
        "{whose} is full: {} of the capacity of {name} with {}.",
        format::percent(share.min(1.0)),
        ceilings::framing_text(evidence)
    );
    numbers(FindingBuilder::new(Rule::LinkFull, sure, text), evidence, ceiling, link)
        .remedy("This is the maximum. Only a faster link or a larger MTU gives more.")
        .finish()
}

/// Whether there is a standing queue at a bottleneck and no window limits the flow. Then the bottleneck is
/// full, and other traffic or the line itself took the rest, however unevenly.
fn queue_fills(evidence: &Evidence) -> bool {
    evidence.has_standing_queue() && windows_are_open(evidence)
}

fn slower_link(evidence: &Evidence) -> Option<Finding> {
    let (found, alone) = link_candidate(evidence)?;
    let known = evidence.line_rate_bps();
    let slower = known.is_none_or(|own| found.bps < own);
    let limit = if queue_fills(evidence) { MAX_QUEUED_VARIATION } else { MAX_VARIATION };
    let undisturbed = windows_are_open(evidence)
        && evidence.is_constant(limit) == Some(true)
        && !any_core_is_full(evidence);
    // If no link rate is known, a queue and idle hosts show that the rate is that of a link and no coincidence.
    let coincidence =
        known.is_none() && !(queue_was_seen(evidence) && hosts_have_room(evidence, BUSY_THREAD_SHARE));
    // A rate that fits the loss model, without a queue, is limited by loss and not by a full link.
    let lossy = evidence.tcp.retransmits.is_some_and(|count| count > 0.0)
        && !queue_was_seen(evidence)
        && congestion::follows_the_law(evidence);
    if !slower || !undisturbed || coincidence || lossy {
        return None;
    }
    let ceiling = ceilings::link_goodput_bps(evidence, found.bps)?;
    let fits = format!(
        "The rate is {} of the capacity of {} with {}",
        format::percent((evidence.sustained_bps()? / ceiling).min(1.0)),
        found.name,
        ceilings::framing_text(evidence)
    );
    let (sure, text, remedy) = if alone {
        (
            Confidence::Confirmed,
            format!("{fits}: the path contains a link or port of that rate."),
            "Check auto-negotiation and cabling at the peer and at the next hop.".to_owned(),
        )
    } else {
        let shaper = format::rate(found.bps);
        (
            Confidence::Probable,
            format!(
                "{fits}, but it is too uncertain to rule out a shaper set to {shaper}: the path contains \
                 one of the two."
            ),
            format!(
                "Test longer to distinguish them. Look for a port of that rate and for a shaper set to \
                 {shaper}."
            ),
        )
    };
    numbers(FindingBuilder::new(Rule::LinkFull, sure, text), evidence, ceiling, found.bps)
        .remedy(remedy)
        .finish()
}

/// The standard link whose rate the flow has, and whether no other candidate fits.
fn link_candidate(evidence: &Evidence) -> Option<(StandardRate, bool)> {
    let (found, alone) = standard_rates::best(evidence)?;
    (found.kind == StandardRateKind::Link).then_some((found.rate, alone))
}

/// The standard link whose rate the flow has.
pub(super) fn standard_link(evidence: &Evidence) -> Option<StandardRate> {
    link_candidate(evidence).map(|(rate, _)| rate)
}

/// Whether packets waited in a queue (or, for datagrams, were lost).
pub(super) fn queue_was_seen(evidence: &Evidence) -> bool {
    let waited = evidence
        .rtt_rise_s()
        .zip(evidence.base_rtt_s())
        .is_some_and(|(rise, base)| rise >= (0.25 * base).max(0.001));
    waited || (evidence.transport == FlowTransport::Udp && evidence.loss().is_some_and(|loss| loss > 0.001))
}

fn numbers(draft: FindingBuilder, evidence: &Evidence, ceiling: f64, link: f64) -> FindingBuilder {
    let goodput = evidence.outcome.goodput_bps;
    draft
        .with(EvidenceKey::GoodputBps, goodput)
        .with(EvidenceKey::CeilingBps, Some(ceiling))
        .with(EvidenceKey::LinkBps, Some(link))
        .with(EvidenceKey::Share, goodput.map(|rate| (rate / ceiling).min(1.0)))
        .with(EvidenceKey::IntervalVariation, evidence.variation())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, loopback, lossy_path, shaped};

    fn at(rate: f64) -> Evidence {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(rate);
        evidence.outcome.intervals_bps = vec![rate; 90];
        evidence
    }

    #[test]
    fn losses_without_a_queue_that_happen_to_leave_the_rate_of_a_link_are_no_link() {
        let mut evidence = at(9.41e6);
        evidence.outcome.intervals_bps = vec![9.41e6; 30];
        assert_eq!(rule(&evidence).map(|finding| finding.rule), Some(Rule::LinkFull));
        (evidence.rtt.loaded_p50_s, evidence.rtt.mean_s) = (Some(0.02), Some(0.02));
        (evidence.rtt.min_s, evidence.rtt.idle_p50_s) = (Some(0.02), Some(0.02));
        evidence.tcp.congestion = Some("reno".to_owned());
        // Mathis: 1448 x 8 / 0.02 x sqrt(1.5 / p) is 9.4 Mb/s at p = 0.0057.
        let sent = 8125.0;
        (evidence.tcp.segments_sent, evidence.tcp.retransmits) = (Some(sent), Some(0.0057 * sent));
        assert_eq!(rule(&evidence), None);
        evidence.rtt.loaded_p50_s = Some(0.08);
        assert!(rule(&evidence).is_some(), "a queue was seen");
    }

    #[test]
    fn fullness_has_degrees() {
        assert_eq!(rule(&at(941.0e6)).map(|finding| finding.confidence), Some(Confidence::Confirmed));
        assert_eq!(rule(&at(890.0e6)).map(|finding| finding.confidence), Some(Confidence::Probable));
        assert_eq!(rule(&at(800.0e6)), None);
        assert_eq!(rule(&at(960.0e6)), None, "above the ceiling is another rule");
    }

    #[test]
    fn an_uneven_rate_near_the_ceiling_is_only_probable() {
        let mut evidence = at(930.0e6);
        evidence.outcome.intervals_bps = vec![850e6, 941e6, 850e6, 941e6];
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
    }

    #[test]
    fn behind_a_standing_queue_a_nearly_full_link_may_be_uneven() {
        let mut evidence = at(900.0e6);
        evidence.outcome.intervals_bps = vec![800e6, 941e6, 850e6, 941e6];
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.rtt.loaded_p50_s = Some(0.0003);
        assert_eq!(rule(&evidence), None, "no queue");
    }

    #[test]
    fn a_port_at_100_megabits_is_named() {
        let finding = rule(&at(94.0e6)).unwrap();
        assert!(finding.text.contains("100BASE-TX"));
        assert_eq!(finding.evidence[&EvidenceKey::LinkBps], 100e6);
    }

    #[test]
    fn a_slower_link_behind_a_standing_queue_may_be_uneven() {
        let mut evidence = at(93.5e6);
        evidence.outcome.intervals_bps = [89e6, 98e6].repeat(45);
        assert!(rule(&evidence).is_some());
        evidence.rtt.loaded_p50_s = Some(0.0002);
        assert_eq!(rule(&evidence), None, "no queue");
    }

    #[test]
    fn what_waited_behind_holes_may_lift_the_rate_a_little_above_a_slower_link() {
        let mut evidence = at(94.14e6);
        evidence.outcome.goodput_bps = Some(94.69e6);
        evidence.outcome.intervals_bps[0] = 130e6;
        assert!(rule(&evidence).unwrap().text.contains("100BASE-TX"));
        // The sustained rate exceeds what that wire carries, whatever was lost.
        let mut shaper = at(94.69e6);
        shaper.tcp.retransmits = Some(200.0);
        assert_eq!(rule(&shaper), None);
        // A shaper of 100 Mb/s that counts 1514 of the 1538 bytes.
        assert_eq!(standard_link(&at(95.6e6)), None);
    }

    #[test]
    fn a_link_that_cannot_be_distinguished_from_a_shaper_of_the_same_rate_is_one_of_two() {
        let mut evidence = at(933.7e6);
        evidence.link.link_bps = Some(10e9);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Confirmed));
        evidence.outcome.uncertainty_bps = Some(37e6);
        let finding = rule(&evidence).unwrap();
        assert_eq!(finding.confidence, Confidence::Probable);
        assert!(finding.text.contains("one of the two") && finding.text.contains("shaper set to 1 Gb/s"));
        assert!(!finding.remedy.unwrap().contains("cabling"));
    }

    #[test]
    fn a_link_that_is_exceeded_by_what_waited_is_full() {
        let mut evidence = at(943.0e6);
        evidence.windows.rcv_buf_bytes = Some(6e6);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.retransmits = Some(20.0);
        assert!(rule(&evidence).is_some(), "1.5 Mb/s too much for nine seconds are 1.7 MB");
        evidence.windows.rcv_buf_bytes = Some(1e6);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_coincidence_on_loopback_is_no_link() {
        let mut evidence = loopback();
        evidence.outcome.goodput_bps = ceilings::link_goodput_bps(&evidence, 25e9);
        evidence.outcome.intervals_bps = vec![24.9e9; 90];
        evidence.sender.thread_share = Some(0.6);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn an_emulated_port_is_recognised_by_rate_and_queue() {
        let mut evidence = shaped(100e6);
        evidence.outcome.goodput_bps = Some(94.1e6);
        evidence.outcome.intervals_bps = vec![94.1e6; 90];
        assert!(rule(&evidence).is_some());
        evidence.rtt =
            crate::evidence::RoundTrip { min_s: Some(0.01), mean_s: Some(0.01), ..Default::default() };
        assert_eq!(rule(&evidence), None, "no queue, no link");
        let mut evidence = shaped(100e6);
        evidence.outcome.goodput_bps = Some(94.1e6);
        evidence.outcome.intervals_bps = vec![94.1e6; 90];
        evidence.receiver.thread_share = Some(0.9);
        assert_eq!(rule(&evidence), None, "a busy thread may be the limit");
    }

    #[test]
    fn windows_losses_and_shapers_are_not_links() {
        assert_eq!(rule(&long_path()), None);
        assert_eq!(rule(&lossy_path(1e-4)), None);
        assert_eq!(rule(&shaped(1e9)), None);
    }

    #[test]
    fn the_slower_end_counts() {
        let mut evidence = at(941.0e6);
        evidence.link.link_bps = Some(10e9);
        evidence.link.peer_link_bps = Some(1e9);
        assert!(rule(&evidence).unwrap().text.starts_with("The peer's link"));
    }
}
