//! V99: none of the rules explains the figure.

use linerate_model::{Ceiling, Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, local_drops};

use crate::evidence::Evidence;
use crate::format;

/// Ceilings above the rate by more than this factor are not listed.
const FAR_FACTOR: f64 = 4.0;
/// A ceiling within this factor above the rate is where to look first.
const NEAR_FACTOR: f64 = 1.5;

pub(crate) fn finding(evidence: &Evidence, ceilings: &[Ceiling]) -> Finding {
    let mut text = "No rule explains this rate.".to_owned();
    let goodput = evidence.outcome.goodput_bps.filter(|rate| rate.is_finite() && *rate > 0.0);
    // A ceiling below the rate is wrong: its model does not fit, or it was measured at a busy moment.
    let within = |ceiling: &&Ceiling, far: f64| {
        goodput.is_some_and(|rate| (rate..=far * rate).contains(&ceiling.bitrate_bps))
    };
    let near: Vec<&Ceiling> = ceilings.iter().filter(|ceiling| within(ceiling, FAR_FACTOR)).collect();
    let listed: Vec<String> = near
        .iter()
        .map(|ceiling| format!("{} {}", ceiling.limit.words(), format::rate(ceiling.bitrate_bps)))
        .collect();
    if !listed.is_empty() {
        text = format!("{text} Ceilings above the rate: {}.", listed.join(", "));
    }
    let mut numbers: std::collections::BTreeMap<EvidenceKey, f64> = near
        .iter()
        .map(|ceiling| (EvidenceKey::CeilingOf(ceiling.limit.clone()), ceiling.bitrate_bps))
        .collect();
    if let Some(goodput) = goodput {
        numbers.insert(EvidenceKey::GoodputBps, goodput);
    }
    let lowest = near
        .into_iter()
        .filter(|ceiling| within(ceiling, NEAR_FACTOR))
        .min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps));
    let remedy = lowest.map(|lowest| {
        format!("Check the lowest ceiling first: {} ({}).", lowest.limit.words(), lowest.because)
    });
    Finding {
        cause: Rule::Unexplained.cause(),
        rule: Rule::Unexplained,
        confidence: Confidence::Unexplained,
        share_of_time: None,
        text: text.into(),
        evidence: numbers,
        remedy: remedy.map(Into::into),
    }
}

/// Not one datagram arrived. Whatever else is true of the hosts, it does not explain that; the control connection worked
/// meanwhile, or there would be no result.
pub(crate) fn nothing_arrived(evidence: &Evidence) -> Option<Finding> {
    let by_a_host = local_drops::holds(evidence) || evidence.udp.were_dropped_at_the_socket();
    let sent = evidence.lost_altogether().filter(|_| !by_a_host)?;
    let (where_to, remedy) = if evidence.asked.to_a_group {
        (
            "sent to a group that no switch or router forwards to this receiver",
            "Check that switches and routers forward the group. Where switches snoop IGMP or MLD, the network needs a \
             querier; through routers, --ttl must be above 1. If other groups arrive, look for a filter.",
        )
    } else {
        (
            "too long for the path",
            "Test with short datagrams (-l 200); if none of them arrives, look for a filter.",
        )
    };
    let text = format!(
        "None of {sent:.0} datagrams arrived, although the control connection worked. They were filtered, or {where_to}."
    );
    FindingBuilder::new(Rule::Unexplained, Confidence::Unexplained, text)
        .with(EvidenceKey::LossRatio, Some(1.0))
        .remedy(remedy)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceilings;
    use crate::rules::examples::full_gigabit;

    #[test]
    fn datagrams_that_all_vanish_were_not_measured_too_shortly() {
        use crate::evidence::FlowTransport;
        let mut evidence = full_gigabit();
        evidence.transport = FlowTransport::Udp;
        (evidence.udp.packets, evidence.udp.lost) = (Some(5180.0), Some(5180.0));
        (evidence.outcome.measured_s, evidence.outcome.goodput_bps) = (Some(0.0), Some(0.0));
        evidence.outcome.intervals_bps = vec![0.0; 30];
        // A busy host explains a lower rate, but not nothing.
        evidence.sender = crate::evidence::HostEvidence {
            others_share: Some(0.95),
            all_cores_share: Some(1.0),
            thread_wait_share: Some(0.3),
            ..evidence.sender
        };
        let verdict = |evidence: &Evidence| crate::diagnose::diagnose(evidence).primary;
        let found = verdict(&evidence);
        assert_eq!(found.rule, Rule::Unexplained);
        assert!(found.text.as_str().starts_with("None of 5180 datagrams arrived"), "{}", found.text);
        assert!(found.remedy.unwrap().as_str().contains("-l 200"));
        evidence.asked.to_a_group = true;
        assert!(verdict(&evidence).remedy.unwrap().as_str().contains("querier"));
        evidence.udp.buffer_drops = Some(5000.0);
        assert_ne!(verdict(&evidence).rule, Rule::Unexplained, "the receiver's own socket");
        evidence.udp.buffer_drops = None;
        evidence.udp.lost = Some(5179.0);
        assert_eq!(verdict(&evidence).rule, Rule::TooShort, "one arrived");
        (evidence.udp.packets, evidence.udp.lost) = (Some(3.0), Some(3.0));
        assert_eq!(verdict(&evidence).rule, Rule::TooShort, "three may be lost by chance");
    }

    #[test]
    fn ceilings_that_say_something_are_listed_and_no_others() {
        // Threads with 0.3 and 0.4 of a core, a link of a gigabit.
        let mut evidence = full_gigabit();
        let listed = |evidence: &Evidence| {
            let found = finding(evidence, &ceilings::all(evidence));
            let names: Vec<String> = found.evidence.keys().map(EvidenceKey::to_string).collect();
            (names, found.remedy.unwrap_or_default())
        };
        let (names, remedy) = listed(&evidence);
        assert_eq!(
            names,
            ["cpu_receiver_ceiling_bps", "cpu_sender_ceiling_bps", "goodput_bps", "link_ceiling_bps"]
        );
        assert!(remedy.contains("link (1000BASE-T"), "{remedy}");
        // 18 times above the rate.
        evidence.outcome.goodput_bps = Some(941.48e6 / 18.0);
        let (names, remedy) = listed(&evidence);
        assert_eq!(names, ["cpu_receiver_ceiling_bps", "cpu_sender_ceiling_bps", "goodput_bps"]);
        assert_eq!(remedy, "", "2.5 times the rate explains nothing");
        // Below the rate.
        evidence.outcome.goodput_bps = Some(950e6);
        assert!(!listed(&evidence).0.contains(&"link_ceiling_bps".to_owned()));
    }
}
