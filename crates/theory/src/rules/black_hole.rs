//! V15: packets above some size are lost without an ICMP message to the sender.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::FindingBuilder;
use crate::evidence::{Evidence, FlowTransport};

/// A connection with fewer acknowledged full-size segments than this counts as stalled.
const MAX_ACKED_SEGMENTS: f64 = 3.0;
/// Timeouts of each connection from which we conclude that its segments do not arrive.
const MIN_TIMEOUTS: f64 = 2.0;

/// Every connection was set up, but nothing of full size was ever acknowledged.
///
/// The control connection worked meanwhile, or there would be no result. So the path itself is up.
pub(super) fn stalled(evidence: &Evidence) -> Option<Finding> {
    let tcp = &evidence.tcp;
    let (acked, segment, timeouts) = (tcp.acked_bytes?, evidence.link.mss_bytes?, tcp.timeouts?);
    let streams = evidence.sampled_streams();
    let silent = acked < MAX_ACKED_SEGMENTS * segment * streams
        && timeouts >= MIN_TIMEOUTS * streams
        && tcp.retransmits.is_some_and(|count| count > 0.0);
    if !silent || evidence.transport != FlowTransport::Tcp {
        return None;
    }
    let packet = evidence.packet_bytes();
    let text = format!(
        "No packet of {packet:.0} bytes was acknowledged, although the connection was established and the \
         small packets of the control connection arrive: the path drops packets of that size without an \
         ICMP message."
    );
    // A device that drops all data of such connections, whatever its size, would look the same.
    FindingBuilder::new(Rule::MtuBlackHole, Confidence::Probable, text)
        .with(EvidenceKey::AckedBytes, Some(acked))
        .with(EvidenceKey::MssBytes, Some(segment))
        .with(EvidenceKey::PacketBytes, Some(packet))
        .with(EvidenceKey::Timeouts, Some(timeouts))
        .with(EvidenceKey::Retransmits, tcp.retransmits)
        .remedy(
            "Test with smaller segments (-M 1200) to confirm it. Let ICMP \"packet too big\" through, \
                 clamp the segment size at the tunnel, or set net.ipv4.tcp_mtu_probing = 1 at the sender.",
        )
        .finish()
}

/// The kernel found by probing that its segments were too long.
pub(super) fn probed(evidence: &Evidence) -> Option<Finding> {
    let tcp = &evidence.tcp;
    let (first, smallest, probes) = (tcp.mss_first_bytes?, evidence.link.mss_bytes?, tcp.mtu_probes?);
    // ICMP messages from the path reduce the segment size too. The kernel probes only if none came.
    if smallest >= first || probes <= 0.0 || evidence.transport != FlowTransport::Tcp {
        return None;
    }
    let text = format!(
        "Segments of {first:.0} bytes are lost on the path without an ICMP message; the sender found \
         {smallest:.0} bytes by MTU probing."
    );
    FindingBuilder::new(Rule::MtuBlackHole, Confidence::Probable, text)
        .with(EvidenceKey::MssFirstBytes, Some(first))
        .with(EvidenceKey::MssBytes, Some(smallest))
        .with(EvidenceKey::MtuProbes, Some(probes))
        .with(EvidenceKey::Timeouts, tcp.timeouts)
        .remedy("Let ICMP \"packet too big\" through, or clamp the segment size where the MTU is smaller.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, lossy_path};
    use linerate_model::Cause;

    fn swallowed() -> Evidence {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(0.0);
        evidence.outcome.intervals_bps = vec![0.0; 30];
        evidence.outcome.measured_s = Some(0.0);
        evidence.tcp.acked_bytes = Some(37.0);
        evidence.tcp.segments_sent = Some(14.0);
        evidence.tcp.retransmits = Some(4.0);
        evidence.tcp.timeouts = Some(4.0);
        evidence
    }

    #[test]
    fn silence_after_the_handshake_is_a_black_hole_before_it_is_too_short() {
        let finding = diagnose(&swallowed()).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::Mtu, &Rule::MtuBlackHole));
        assert!(finding.text.contains("1500 bytes"), "{}", finding.text);
    }

    #[test]
    fn a_flow_that_gets_through_is_not_in_a_hole() {
        let mut evidence = swallowed();
        evidence.tcp.acked_bytes = Some(1e6);
        assert_eq!(stalled(&evidence), None, "a blackout comes later");
        let mut evidence = swallowed();
        evidence.tcp.timeouts = Some(1.0);
        assert_eq!(stalled(&evidence), None, "one loss is a loss");
        let mut evidence = swallowed();
        evidence.outcome.streams = Some(4);
        assert_eq!(stalled(&evidence), None, "one timeout for each connection");
        evidence.tcp.sampled_streams = Some(2);
        assert!(stalled(&evidence).is_some(), "two for each that was sampled");
        for evidence in [full_gigabit(), lossy_path(1e-2), Evidence::default()] {
            assert_eq!(stalled(&evidence), None);
        }
    }

    #[test]
    fn segments_that_shrink_under_probes_are_noted_and_those_of_a_message_are_not() {
        let mut evidence = full_gigabit();
        evidence.tcp.mss_first_bytes = Some(1448.0);
        evidence.link.mss_bytes = Some(1024.0);
        evidence.tcp.mtu_probes = Some(3.0);
        assert!(diagnose(&evidence).also.iter().any(|finding| finding.cause == Cause::Mtu));
        evidence.tcp.mtu_probes = Some(0.0);
        assert_eq!(probed(&evidence), None, "the path reported it itself");
        evidence.tcp.mtu_probes = Some(3.0);
        evidence.link.mss_bytes = Some(1448.0);
        assert_eq!(probed(&evidence), None, "probing upwards shortens nothing");
    }
}
