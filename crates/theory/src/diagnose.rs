//! From evidence to a verdict.

use linerate_model::{Ceiling, Confidence, Finding};

use crate::evidence::Evidence;
use crate::{ethernet, ladder, phrase, prospect, rules};

/// What held a flow back, with everything else that was noticed.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The verdict.
    pub primary: Finding,
    /// Further findings, in order of remedy.
    pub also: Vec<Finding>,
    /// Every ceiling, ascending.
    pub ladder: Vec<Ceiling>,
    /// The ceiling to print beside the measured rate: the link's where it is known, else that of the link or shaper
    /// that a confirmed verdict found, else the host's memory.
    pub expected: Option<Ceiling>,
}

/// Judges one flow.
///
/// The first rule whose conditions hold is the verdict, further ones are listed beside it. Without one the verdict is
/// "unknown" with all ceilings: that beats a wrong one.
#[must_use]
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let ladder = ladder::ladder(evidence);
    let answers = |table: &[rules::Rule]| table.iter().filter_map(|rule| rule(evidence)).collect::<Vec<_>>();
    let mut found = answers(&rules::PRIMARY);
    let primary = if found.is_empty() { rules::unexplained(evidence, &ladder) } else { found.remove(0) };
    found.extend(answers(&rules::ADDITIONAL));
    let primary = prospect::with(primary, evidence, &ladder);
    let found: Vec<Finding> =
        found.into_iter().map(|finding| prospect::with(finding, evidence, &ladder)).collect();
    // What a shaper lets through may lie above what Ethernet of the stated rate would.
    let link = ladder::of(&ladder, "link").filter(|_| primary.rule != "V14" || !evidence.is_stated_link());
    let expected = link
        .cloned()
        .or_else(|| inferred(evidence, &primary))
        .or_else(|| ladder::of(&ladder, "link").cloned())
        .or_else(|| ladder::of(&ladder, "host_memory").cloned());
    Diagnosis { primary, also: found, ladder, expected }
}

/// The ceiling of a link or shaper that nothing told us of but the rate itself.
fn inferred(evidence: &Evidence, verdict: &Finding) -> Option<Ceiling> {
    if verdict.confidence != Confidence::Confirmed {
        return None;
    }
    let number = |name: &str| verdict.evidence.get(name).copied();
    let (bitrate_bps, what) = match verdict.rule.as_str() {
        "V02" => (number("ceiling_bps")?, phrase::rate(number("link_bps")?)),
        "V14" => {
            let shaper = number("shaper_bps")?;
            (
                ethernet::shaped_goodput_bps(
                    shaper,
                    evidence.packet_bytes(),
                    &evidence.headers(),
                    evidence.tags(),
                )?,
                phrase::rate(shaper),
            )
        }
        _ => return None,
    };
    let (limit, known) = if evidence.is_stated_link() {
        ("link", "as given, counted without preamble, gap and FCS")
    } else {
        ("link_inferred", "inferred from the rate itself")
    };
    let because = format!("{what} {known}, {}", ladder::framing_text(evidence));
    Some(Ceiling { limit: limit.to_owned(), bitrate_bps, because })
}

#[cfg(test)]
mod tests {
    use linerate_model::Cause;

    use super::*;
    use crate::evidence::Transport;
    use crate::rules::examples::{full_gigabit, long_path, loopback, shaped};

    #[test]
    fn a_full_gigabit_is_a_link_for_ten_seconds_of_cubic() {
        let verdict = diagnose(&full_gigabit());
        assert_eq!(verdict.primary.cause, Cause::Link);
        assert_eq!(verdict.primary.confidence, Confidence::Confirmed);
        assert!(verdict.also.is_empty(), "{:?}", verdict.also);
        assert_eq!(verdict.expected.map(|ceiling| ceiling.limit).as_deref(), Some("link"));
    }

    #[test]
    fn a_few_retransmissions_do_not_make_a_full_link_too_short() {
        let mut evidence = full_gigabit();
        evidence.tcp.retransmits = Some(40.0);
        evidence.tcp.ssthresh_infinite = Some(false);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Link);
    }

    #[test]
    fn a_shaper_that_nobody_told_us_of_gives_an_inferred_ceiling() {
        let verdict = diagnose(&shaped(1e8));
        let ceiling = verdict.expected.unwrap();
        assert_eq!(ceiling.limit, "link_inferred");
        // A bucket that counts the Ethernet header and nothing below it.
        assert!((ceiling.bitrate_bps - 1e8 * 1448.0 / 1514.0).abs() < 1.0, "{}", ceiling.bitrate_bps);
        assert!(ceiling.because.contains("inferred"), "{}", ceiling.because);
        let mut stated = shaped(1e8);
        stated.link.link_bps = Some(1e8);
        stated.link.source = Some(crate::evidence::LinkSource::User);
        let ceiling = diagnose(&stated).expected.unwrap();
        assert!(ceiling.limit == "link" && ceiling.because.contains("as given"), "{}", ceiling.because);
    }

    #[test]
    fn loopback_ends_at_a_core() {
        let verdict = diagnose(&loopback());
        assert_eq!(verdict.primary.cause, Cause::CpuSender);
        assert_eq!(verdict.expected.map(|ceiling| ceiling.limit).as_deref(), Some("host_memory"));
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
        assert_eq!(verdict.primary.rule, "V99");
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
            for transport in [Transport::Tcp, Transport::Udp] {
                evidence.transport = transport;
                let _ = diagnose(&evidence);
            }
        }
    }
}
