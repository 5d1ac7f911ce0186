//! Turns evidence into a verdict.

use linerate_model::{Ceiling, EvidenceKey, Finding, Limit, Rule};

use crate::evidence::Evidence;
use crate::rate_after_remedy::Remedied;
use crate::{caveats, ceilings, ethernet, format, rate_after_remedy, rules};

/// What limited a flow, with all further findings.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The verdict.
    pub primary: Finding,
    /// Further findings, in the order in which to remedy them.
    pub also: Vec<Finding>,
    /// Every ceiling, ascending.
    pub ceilings: Vec<Ceiling>,
    /// Rates measured on a host that are below the flow's rate, and therefore no ceilings.
    pub disproved: Vec<Ceiling>,
    /// The ceiling to print next to the measured rate: the lowest of those of the link, of the sender's qdisc,
    /// and of a link or shaper that the verdict inferred. If there is none, the host's memory, over loopback
    /// and if the path does not limit the flow.
    pub expected: Option<Ceiling>,
}

/// Diagnoses one flow.
///
/// The first rule whose conditions hold gives the verdict. Further findings are listed with it. If no rule
/// matches, the verdict is "unknown" with all ceilings, which is better than a wrong verdict.
#[must_use]
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let (mut ceilings, disproved) = ceilings::without_disproved(ceilings::all(evidence), evidence);
    let answers =
        |table: &[rules::RuleFn]| table.iter().filter_map(|rule| rule(evidence)).collect::<Vec<_>>();
    let mut found = answers(&rules::PRIMARY);
    found.retain(|finding| !another_binds_first(finding, evidence, &ceilings));
    let primary = if found.is_empty() { rules::unexplained(evidence, &ceilings) } else { found.remove(0) };
    found.extend(answers(&rules::ADDITIONAL));
    // A rule may have a second, weaker form further down the table.
    let mut named = vec![primary.rule.clone()];
    found.retain(|finding| {
        let is_new = !named.contains(&finding.rule);
        named.push(finding.rule.clone());
        is_new
    });
    let finished =
        |finding| caveats::weighed(rate_after_remedy::with(finding, evidence, &ceilings), evidence);
    let primary = finished(primary);
    let found: Vec<Finding> = found.into_iter().map(finished).collect();
    // A shaper may let through more than Ethernet of the stated rate.
    let link = ceilings::of(&ceilings, &Limit::Link)
        .filter(|_| primary.rule != Rule::Shaper || !evidence.is_stated_link());
    let link = link.cloned();
    let inferred = inferred(evidence, &primary);
    if let Some(found) = inferred.as_ref().filter(|found| ceilings::of(&ceilings, &found.limit).is_none()) {
        ceilings.push(found.clone());
        ceilings.sort_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps));
    }
    // A slower link or a shaper found on the path limits the flow, however fast the host's own link is.
    let expected = link
        .into_iter()
        .chain(ceilings::of(&ceilings, &Limit::Qdisc).cloned())
        .chain(inferred)
        .min_by(|a, b| a.bitrate_bps.total_cmp(&b.bitrate_bps))
        .or_else(|| ceilings::of(&ceilings, &Limit::Link).cloned())
        .or_else(|| {
            ceilings::of(&ceilings, &Limit::HostMemory)
                .filter(|_| !caveats::is_of_the_path(primary.cause))
                .cloned()
        });
    Diagnosis { primary, also: found, ceilings, disproved, expected }
}

/// Another ceiling is the limit instead if it is lower than this share of the one that a finding names.
const FIRST_LIMIT_SHARE: f64 = 0.9;

/// Whether a link, or a rate that the test requested, is clearly below the ceiling that the finding names, and
/// the flow does not exceed it. Then the finding is not the limit.
fn another_binds_first(finding: &Finding, evidence: &Evidence, ceilings: &[Ceiling]) -> bool {
    let limit = match rate_after_remedy::remedied(finding) {
        Some(Remedied::Ceiling(limit)) if limit != Limit::Loss => limit,
        _ => return false,
    };
    let ceiling = ceilings::of(ceilings, &limit).map(|ceiling| ceiling.bitrate_bps);
    let named = finding.evidence.get(&EvidenceKey::CeilingBps).copied().or(ceiling);
    let (Some(named), Some(goodput)) = (named, evidence.outcome.goodput_bps) else {
        return false;
    };
    [Limit::Link, Limit::Qdisc, Limit::Pacing, Limit::Application].into_iter().any(|hard| {
        let other = ceilings::of(ceilings, &hard).filter(|_| hard != limit);
        other.is_some_and(|other| {
            other.bitrate_bps < FIRST_LIMIT_SHARE * named && other.bitrate_bps >= goodput
        })
    })
}

/// The ceiling of a link or shaper that is known only from the measured rate.
fn inferred(evidence: &Evidence, verdict: &Finding) -> Option<Ceiling> {
    let number = |key: &EvidenceKey| verdict.evidence.get(key).copied();
    let (bitrate_bps, what) = match verdict.rule {
        Rule::LinkFull => (number(&EvidenceKey::CeilingBps)?, format::rate(number(&EvidenceKey::LinkBps)?)),
        // It was read, and is already among the ceilings.
        Rule::Shaper if own_queue_binds(evidence, number(&EvidenceKey::ShaperBps)) => return None,
        Rule::Shaper => match number(&EvidenceKey::ShaperBps) {
            Some(shaper) => {
                let lets_through = ethernet::shaped_goodput_bps(shaper, &evidence.layer_bytes()?)?;
                (lets_through, format::rate(shaper))
            }
            // A shaper with a non-standard rate lets through what arrived.
            None => {
                let arrived = evidence.sustained_bps()?.max(evidence.outcome.goodput_bps?);
                (arrived, format::rate(arrived))
            }
        },
        _ => return None,
    };
    // The shaper may count a little less than assumed. It cannot be slower than the rate that it lets through.
    let bitrate_bps = bitrate_bps.max(evidence.outcome.goodput_bps?);
    let (limit, known) = if evidence.is_stated_link() {
        (Limit::Link, "as given, counted without preamble, gap and FCS")
    } else {
        (Limit::LinkInferred, "inferred from the rate itself")
    };
    let because = format!("{what} {known}, {}", ceilings::framing_text(evidence));
    Some(ceilings::new_ceiling(limit, bitrate_bps, because))
}

/// Whether the shaper of the verdict is the sender's own qdisc.
fn own_queue_binds(evidence: &Evidence, shaper_bps: Option<f64>) -> bool {
    let own = ceilings::qdisc(evidence).and(evidence.own_queue.as_ref()).and_then(|queue| queue.rate_bps);
    own.is_some() && own == shaper_bps
}

#[cfg(test)]
mod tests {
    use linerate_model::{Cause, Confidence};

    use super::*;
    use crate::evidence::FlowTransport;
    use crate::rules::examples::{full_gigabit, long_path, loopback, shaped};

    #[test]
    fn a_full_gigabit_is_a_link_for_ten_seconds_of_cubic() {
        let verdict = diagnose(&full_gigabit());
        assert_eq!(verdict.primary.cause, Cause::Link);
        assert_eq!(verdict.primary.confidence, Confidence::Confirmed);
        assert!(verdict.also.is_empty(), "{:?}", verdict.also);
        assert_eq!(verdict.expected.map(|ceiling| ceiling.limit), Some(Limit::Link));
    }

    #[test]
    fn a_few_retransmissions_do_not_make_a_full_link_too_short() {
        let mut evidence = full_gigabit();
        evidence.tcp.retransmits = Some(40.0);
        evidence.tcp.ssthresh_infinite = Some(false);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Link);
    }

    #[test]
    fn an_unknown_shaper_gives_an_inferred_ceiling() {
        let verdict = diagnose(&shaped(1e8));
        let ceiling = verdict.expected.unwrap();
        assert_eq!(ceiling.limit, Limit::LinkInferred);
        // A bucket that counts the Ethernet header and nothing below it.
        assert!((ceiling.bitrate_bps - 1e8 * 1448.0 / 1514.0).abs() < 1.0, "{}", ceiling.bitrate_bps);
        assert!(ceiling.because.contains("inferred"), "{}", ceiling.because);
        let mut stated = shaped(1e8);
        stated.link.link_bps = Some(1e8);
        stated.link.source = Some(crate::evidence::LinkSource::User);
        let ceiling = diagnose(&stated).expected.unwrap();
        assert!(ceiling.limit == Limit::Link && ceiling.because.contains("as given"), "{}", ceiling.because);
        let mut fast = shaped(1e8);
        fast.link.is_virtual = false;
        fast.link.source = Some(crate::evidence::LinkSource::Interface);
        let ceiling = diagnose(&fast).expected.unwrap();
        assert_eq!(ceiling.limit, Limit::LinkInferred, "and not the host's own 10 Gb/s");
    }

    #[test]
    fn a_shaper_at_an_odd_rate_is_the_ceiling_though_only_probable() {
        let verdict = diagnose(&shaped(37e6));
        assert_eq!(verdict.primary.confidence, Confidence::Probable);
        let ceiling = verdict.expected.unwrap();
        assert_eq!(ceiling.limit, Limit::LinkInferred);
        assert!((ceiling.bitrate_bps / 35.39e6 - 1.0).abs() < 2e-3, "{ceiling:?}");
        assert!(verdict.ceilings.contains(&ceiling), "{:?}", verdict.ceilings);
    }

    #[test]
    fn a_window_above_the_link_is_not_what_holds_the_rate() {
        // 21.8 Mb/s through a link of 23.5 Mb/s as stated, and a window that would allow 25 Mb/s.
        let mut evidence = long_path();
        assert_eq!(diagnose(&evidence).primary.rule, Rule::ReceiverWindow);
        evidence.outcome.goodput_bps = Some(21.8e6);
        evidence.link.link_bps = Some(23.5e6);
        evidence.link.source = Some(crate::evidence::LinkSource::User);
        evidence.windows.offered_median_bytes = Some(65536.0);
        assert!(diagnose(&evidence).also.iter().all(|finding| finding.rule != Rule::ReceiverWindow));
        assert_ne!(diagnose(&evidence).primary.rule, Rule::ReceiverWindow);
    }

    #[test]
    fn loopback_ends_at_a_core() {
        let verdict = diagnose(&loopback());
        assert_eq!(verdict.primary.cause, Cause::CpuSender);
        assert_eq!(verdict.expected.map(|ceiling| ceiling.limit), Some(Limit::HostMemory));
    }

    #[test]
    fn a_path_is_not_compared_with_memory() {
        // The same flow between two namespaces: the path between them is unknown.
        let mut path = loopback();
        path.link.is_loopback = false;
        assert_eq!(diagnose(&path).expected, None);
        // A shaper on the loopback interface itself.
        let mut shaped = shaped(3.7e6);
        shaped.link.is_loopback = true;
        shaped.sender.copy_bps = Some(60e9);
        shaped.receiver.copy_bps = Some(60e9);
        let verdict = diagnose(&shaped);
        assert_ne!(verdict.expected.map(|ceiling| ceiling.limit), Some(Limit::HostMemory));
    }

    #[test]
    fn a_copy_slower_than_the_flow_is_withdrawn() {
        let mut evidence = loopback();
        (evidence.sender.copy_bps, evidence.receiver.copy_bps) = (Some(12e6), Some(12e6));
        let verdict = diagnose(&evidence);
        assert_eq!(verdict.expected, None);
        assert!(
            verdict.ceilings.iter().all(|ceiling| ceiling.limit != Limit::HostMemory),
            "{:?}",
            verdict.ceilings
        );
        assert_eq!(verdict.disproved.len(), 1);
    }

    #[test]
    fn an_offered_rate_is_the_applications_even_where_a_link_would_fit() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(94e6);
        evidence.outcome.intervals_bps = vec![94e6; 100];
        evidence.asked.offered_bps = Some(94e6);
        let verdict = diagnose(&evidence);
        assert_eq!(verdict.primary.cause, Cause::Application);
        assert!(verdict.also.iter().all(|finding| finding.cause != Cause::Link), "{:?}", verdict.also);
    }

    #[test]
    fn the_same_rate_without_an_offer_is_a_slower_link() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(94e6);
        evidence.outcome.intervals_bps = vec![94e6; 100];
        let verdict = diagnose(&evidence);
        assert_eq!(verdict.primary.cause, Cause::Link);
        assert!(verdict.primary.text.contains("100BASE-TX"), "{}", verdict.primary.text);
    }

    #[test]
    fn a_token_bucket_at_a_standard_rate_is_a_shaper_and_not_impossible() {
        for bps in [100e6, 1e9] {
            let verdict = diagnose(&shaped(bps));
            assert_eq!(verdict.primary.cause, Cause::Shaper, "{bps}: {:?}", verdict.primary);
        }
    }

    #[test]
    fn a_small_window_on_a_long_path_is_the_receivers() {
        let verdict = diagnose(&long_path());
        assert_eq!(verdict.primary.cause, Cause::ReceiverWindow);
        assert_eq!(verdict.primary.confidence, Confidence::Confirmed);
    }

    #[test]
    fn a_fifth_of_a_second_is_too_short_for_any_verdict() {
        let mut evidence = full_gigabit();
        evidence.outcome.measured_s = Some(0.2);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::TooShort);
    }

    #[test]
    fn a_rate_above_the_ceiling_is_impossible_before_anything_else() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(966.5e6);
        evidence.outcome.measured_s = Some(0.2);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Impossible);
    }

    #[test]
    fn nothing_known_is_unknown() {
        let verdict = diagnose(&Evidence::default());
        assert_eq!(verdict.primary.cause, Cause::Unknown);
        assert_eq!(verdict.primary.rule, Rule::Unexplained);
        assert!(verdict.expected.is_none());
    }

    #[test]
    fn nonsense_does_not_panic() {
        for value in [f64::NAN, f64::INFINITY, 0.0, -1.0, f64::MIN_POSITIVE] {
            let mut evidence = full_gigabit();
            evidence.outcome.goodput_bps = Some(value);
            evidence.outcome.intervals_bps = vec![value; 30];
            evidence.rtt.min_s = Some(value);
            evidence.rtt.mean_s = Some(value);
            evidence.link.mss_bytes = Some(value);
            evidence.tcp.retransmits = Some(value);
            evidence.windows.offered_median_bytes = Some(value);
            for transport in [FlowTransport::Tcp, FlowTransport::Udp] {
                evidence.transport = transport;
                let _ = diagnose(&evidence);
            }
        }
    }
}
