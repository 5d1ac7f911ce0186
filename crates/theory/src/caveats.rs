//! Adjusts a finding's confidence and location, whichever rule found it.

use linerate_model::{Cause, Confidence, EvidenceKey, Finding};

use crate::evidence::{Evidence, PortEvidence};

/// Share of the losses that a port's drops must explain to be named as their location.
const MIN_EXPLAINED_SHARE: f64 = 0.5;

/// Adjusts the finding with what the emulated network reported about itself.
pub(crate) fn weighed(finding: Finding, evidence: &Evidence) -> Finding {
    placed(unsettled(finding, evidence), evidence)
}

/// If the emulated network delivered frames late, no finding about the path is confirmed, because its lines did
/// not have their nominal rates. Findings about what the test requested or about an invalid measurement are not
/// affected.
fn unsettled(mut finding: Finding, evidence: &Evidence) -> Finding {
    let certain = matches!(
        finding.cause,
        Cause::Application | Cause::Pacing | Cause::Invalid | Cause::Impossible | Cause::TooShort
    );
    let late = evidence.timing.emulator_late == Some(true);
    if late && !certain && finding.confidence == Confidence::Confirmed {
        finding.confidence = Confidence::Probable;
        finding.text.push_str(" The emulated network was late, so it may have caused this itself.");
    }
    finding
}

/// If a port of the emulated network dropped most of the lost packets, it is named as the location.
fn placed(mut finding: Finding, evidence: &Evidence) -> Finding {
    if !is_about_loss(finding.cause) {
        return finding;
    }
    let lost = evidence.tcp.retransmits.or(evidence.udp.lost).filter(|lost| *lost > 0.0);
    let Some((port, drops)) = most_drops(evidence)
        .filter(|(_, drops)| lost.is_some_and(|lost| *drops >= MIN_EXPLAINED_SHARE * lost))
    else {
        return finding;
    };
    finding
        .text
        .push_str(&format!(" Port {} of the emulated network dropped {drops:.0} packets.", port.name));
    finding.evidence.insert(EvidenceKey::PortDrops, drops);
    finding
}

/// Whether the cause is a loss between the hosts, by overload or at random.
const fn is_about_loss(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Link
            | Cause::Shaper
            | Cause::Policer
            | Cause::Congestion
            | Cause::ShallowBuffer
            | Cause::RandomLoss
            | Cause::Timeouts
            | Cause::Unknown
    )
}

/// Whether the path limited the flow. Then the hosts' memory rate is no useful comparison.
pub(crate) const fn is_of_the_path(cause: Cause) -> bool {
    let named = is_about_loss(cause) && !matches!(cause, Cause::Unknown);
    named
        || matches!(
            cause,
            Cause::Reordering | Cause::Mtu | Cause::Duplex | Cause::Lag | Cause::Ecn | Cause::ReturnPath
        )
}

fn most_drops(evidence: &Evidence) -> Option<(&PortEvidence, f64)> {
    let drops = evidence.ports.iter().map(|port| (port, port.dropped));
    drops.filter(|(_, drops)| *drops > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, lossy_path};

    #[test]
    fn nothing_of_the_path_is_confirmed_under_a_late_network() {
        let mut evidence = full_gigabit();
        assert_eq!(diagnose(&evidence).primary.confidence, Confidence::Confirmed);
        evidence.timing.emulator_late = Some(true);
        let verdict = diagnose(&evidence).primary;
        assert_eq!((verdict.cause, verdict.confidence), (Cause::Link, Confidence::Probable));
        assert!(verdict.text.contains("late"), "{}", verdict.text);
        evidence.outcome.goodput_bps = Some(50e6);
        evidence.asked.offered_bps = Some(50e6);
        assert_eq!(diagnose(&evidence).primary.confidence, Confidence::Confirmed, "the test asked for it");
    }

    #[test]
    fn the_port_that_dropped_what_was_lost_is_named() {
        let mut evidence = lossy_path(1e-4);
        let lost = evidence.tcp.retransmits.unwrap();
        let port = |name: &str, dropped: f64| PortEvidence { name: name.to_owned(), dropped };
        evidence.ports = vec![port("a>s", 1.0), port("s>b", lost)];
        let verdict = diagnose(&evidence).primary;
        assert!(verdict.text.contains("Port s>b"), "{}", verdict.text);
        assert_eq!(verdict.evidence[&EvidenceKey::PortDrops], lost);
        evidence.ports = vec![port("s>b", 0.2 * lost)];
        assert!(!diagnose(&evidence).primary.text.contains("Port"), "most were lost elsewhere");
    }
}
