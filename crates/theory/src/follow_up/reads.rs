//! Reads of different sizes: how many acknowledgements return for each, and what share of the return path they
//! use.

use linerate_model::EvidenceKey;

use super::{Conclusion, FurtherRun, Question, Reply, Topic};
use crate::diagnose::Diagnosis;
use crate::evidence::{Evidence, FlowTransport};
use crate::{format, framing};

/// Sizes of a read, bytes: from 1 KiB to 1 MiB, each four times the one before.
const SIZES: [f64; 6] = [1024.0, 4096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];
/// Smallest relevant share of the return path.
const MIN_RETURN_SHARE: f64 = 0.03;
const SECONDS: f64 = 2.0;

/// Asked if acknowledgements and window updates use a relevant share of the return path.
pub(super) fn question(evidence: &Evidence, _: &Diagnosis) -> Option<Question> {
    let share = share(evidence).filter(|share| *share > MIN_RETURN_SHARE)?;
    let because = format!(
        "acknowledgements and window updates use {} of the return path: does the read size change that?",
        format::percent(share)
    );
    question_for(evidence).map(|question| Question { because, ..question })
}

/// The question as a user asks for it, without a finding that suggests it.
pub(super) fn question_for(evidence: &Evidence) -> Option<Question> {
    (evidence.transport == FlowTransport::Tcp).then(|| Question {
        topic: Topic::Reads,
        because: "how many packets go back for reads of 1 KiB to 1 MiB?".to_owned(),
        meanings: [
            ("small reads cause more packets back", "the kernel sends a window update for each read"),
            (
                "all read sizes cause the same number of packets",
                "acknowledgements depend on the segments, \
                                                                 not on the reads",
            ),
        ],
    })
}

/// One size after the other.
pub(super) fn next(evidence: &Evidence, replies: &[Reply]) -> Option<FurtherRun> {
    Some(FurtherRun {
        udp: false,
        offered_bps: None,
        pace_bps: None,
        length_bytes: Some(*SIZES.get(replies.len())?),
        streams: evidence.outcome.streams.unwrap_or(1).max(1),
        seconds: SECONDS,
        latency: false,
    })
}

/// Rate of the returning packets on the wire, preamble and gap included.
///
/// Units: bit/s. Domain: `None` if the returning packets were not counted. Source:
/// [`framing::ack_wire_bytes`].
fn back_bps(evidence: &Evidence) -> Option<f64> {
    let wire = framing::ack_wire_bytes(&evidence.headers(), evidence.tags())?;
    Some(evidence.tcp.return_pps? * wire * 8.0).filter(|bps| bps.is_finite())
}

/// Share of the slower interface's rate; `None` if neither has a rate.
fn share(evidence: &Evidence) -> Option<f64> {
    let rates = [evidence.link.peer_link_bps, evidence.link.link_bps].into_iter().flatten();
    let link = rates.filter(|rate| *rate > 0.0).reduce(f64::min)?;
    back_bps(evidence).map(|back| back / link)
}

pub(super) fn conclude(_: &Evidence, replies: &[Reply]) -> Conclusion {
    let mut conclusion = Conclusion::open(String::new());
    let mut parts = Vec::new();
    for reply in replies {
        let Some((evidence, bytes)) = reply.evidence.as_ref().zip(reply.trial.length_bytes) else { continue };
        let (Some(pps), Some(back)) = (evidence.tcp.return_pps, back_bps(evidence)) else { continue };
        let (each, share) = (evidence.tcp.return_per_segment, share(evidence));
        let mut words = format!("{}: {pps:.0} packets/s, {}", format::size(bytes), format::rate(back));
        words.extend(each.map(|each| format!(", {each:.3} per segment")));
        words.extend(share.map(|share| format!(", {} of the return path", format::percent(share))));
        parts.push(words);
        let size = bytes as u64;
        conclusion = conclusion
            .with(EvidenceKey::ReadReturnBps(size), Some(back))
            .with(EvidenceKey::ReadReturnPerSegmentRatio(size), each)
            .with(EvidenceKey::ReadReturnShareRatio(size), share)
            .with(EvidenceKey::ReadGoodputBps(size), reply.goodput_bps());
    }
    conclusion.answer = match parts.is_empty() {
        true => "the packets on the return path could not be counted".to_owned(),
        false => format!("packets back for reads (and writes) of {}", parts.join("; ")),
    };
    conclusion
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::follow_up::questions;
    use crate::rules::examples::full_gigabit;
    use linerate_model::EvidenceKey;

    /// Half an acknowledgement for each of 81,274 segments per second, over a return link of `link_bps`.
    fn acknowledged(link_bps: f64) -> Evidence {
        let mut evidence = full_gigabit();
        evidence.link.peer_link_bps = Some(link_bps);
        evidence.tcp.return_pps = Some(40_637.2);
        evidence.tcp.return_per_segment = Some(0.5);
        evidence
    }

    #[test]
    fn an_acknowledgement_has_90_bytes_on_the_wire() {
        // A full gigabit causes 29.26 Mb/s on the return path.
        let back = back_bps(&acknowledged(1e9)).unwrap();
        assert!((back - 29.2588e6).abs() < 1e3, "{back}");
        assert!((share(&acknowledged(100e6)).unwrap() - 0.2926).abs() < 1e-4);
    }

    #[test]
    fn it_is_asked_where_the_way_back_is_narrow() {
        let asked = |evidence: &Evidence| {
            questions(evidence, &diagnose(evidence)).iter().any(|question| question.topic == Topic::Reads)
        };
        assert!(!asked(&acknowledged(1e9)), "2.9 % of it");
        assert!(asked(&acknowledged(500e6)));
        let mut unknown = acknowledged(500e6);
        unknown.tcp.return_pps = None;
        assert!(!asked(&unknown));
        let mut udp = acknowledged(500e6);
        udp.transport = FlowTransport::Udp;
        assert_eq!(question_for(&udp), None);
    }

    #[test]
    fn six_sizes_are_tried_and_reported_with_their_share() {
        let first = acknowledged(500e6);
        let mut replies = Vec::new();
        while let Some(trial) = next(&first, &replies) {
            let mut evidence = first.clone();
            // Four times as many for the smallest reads.
            if trial.length_bytes == Some(1024.0) {
                evidence.tcp.return_pps = Some(4.0 * 40_637.2);
                evidence.tcp.return_per_segment = Some(2.0);
            }
            let evidence = (trial.length_bytes != Some(4096.0)).then_some(evidence);
            replies.push(Reply { trial, evidence, intervals_bps: Vec::new() });
        }
        assert_eq!(replies.len(), 6);
        let found = conclude(&first, &replies);
        assert_eq!(found.evidence[&EvidenceKey::ReadReturnPerSegmentRatio(1024)], 2.0);
        assert_eq!(found.evidence[&EvidenceKey::ReadReturnPerSegmentRatio(1_048_576)], 0.5);
        assert!(!found.evidence.contains_key(&EvidenceKey::ReadReturnBps(4096)), "that run failed");
        assert!((found.evidence[&EvidenceKey::ReadReturnShareRatio(1024)] - 0.234).abs() < 1e-3);
        assert!(
            found.answer.contains("1 KiB: 162549 packets/s, 117 Mb/s, 2.000 per segment"),
            "{}",
            found.answer
        );
        assert_eq!(found.finding, None);
        assert!(conclude(&first, &[]).answer.contains("could not be counted"));
    }
}
