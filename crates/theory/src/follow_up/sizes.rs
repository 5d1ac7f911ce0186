//! Datagrams of different sizes, each in one packet that must not be fragmented: above which size are they
//! lost?

use linerate_model::{Confidence, EvidenceKey, Rule};

use super::{Conclusion, FurtherRun, Question, Reply, Topic, verdict_is};
use crate::diagnose::Diagnosis;
use crate::evidence::{Evidence, FlowTransport};
use crate::framing::Headers;
use crate::rules::FindingBuilder;

/// Every IPv4 host accepts packets of this size (RFC 791 section 3.1).
const MIN_PACKET: f64 = 576.0;
/// Every link carries IPv6 packets of this size (RFC 8200 section 5).
const MIN_PACKET_V6: f64 = 1280.0;
/// A size with at least this loss ratio counts as lost.
const VANISHED_LOSS: f64 = 0.9;
/// Rate of the probes: at least a hundred packets per second.
const RATE: f64 = 2e6;
const SECONDS: f64 = 0.3;
/// Number of probes that may fail.
const MAX_FAILURES: usize = 2;
/// Number of halvings that find the exact byte for any Ethernet packet size.
const MAX_HALVINGS: usize = 20;

/// Asked if nothing of full size arrived, or if segments shrank while the kernel probed.
pub(super) fn question(evidence: &Evidence, diagnosis: &Diagnosis) -> Option<Question> {
    let probed = diagnosis.also.iter().any(|finding| finding.rule == Rule::MtuBlackHole);
    if evidence.transport != FlowTransport::Tcp || !(verdict_is(diagnosis, &[Rule::MtuBlackHole]) || probed) {
        return None;
    }
    Some(Question {
        topic: Topic::Sizes,
        because: "full-size segments are lost: from which size on?".to_owned(),
        meanings: [
            ("small datagrams pass and large ones are lost", "an MTU black hole"),
            ("the loss is the same for all sizes", "something other than size drops the data"),
        ],
    })
}

/// The smallest size, the largest, then the middle between those that passed and those that were lost. A failed
/// probe is repeated.
pub(super) fn next(evidence: &Evidence, replies: &[Reply]) -> Option<FurtherRun> {
    let (least, most) = bounds(evidence)?;
    let known = known(replies);
    if replies.len() - known.len() > MAX_FAILURES {
        return None;
    }
    let bytes = match known[..] {
        [] => least,
        [(_, true)] => most,
        [_, (_, false), ..] if known.len() < MAX_HALVINGS => {
            let (passed, vanished) = bracket(&known)?;
            (vanished - passed > 1.0).then(|| f64::midpoint(passed, vanished).floor())?
        }
        _ => return None,
    };
    Some(FurtherRun {
        udp: true,
        offered_bps: Some(RATE),
        pace_bps: None,
        length_bytes: Some(bytes),
        streams: 1,
        seconds: SECONDS,
        latency: false,
    })
}

/// Payloads of the smallest and the largest packet to try, bytes.
fn bounds(evidence: &Evidence) -> Option<(f64, f64)> {
    let headers = headers_bytes(evidence);
    let v6 = evidence.link.ip_version == Some(crate::framing::IpVersion::V6);
    let least = if v6 { MIN_PACKET_V6 } else { MIN_PACKET } - headers;
    let most = evidence.link.mtu_bytes.unwrap_or(1500.0) - headers;
    (most.is_finite() && most > least).then_some((least, most))
}

fn headers_bytes(evidence: &Evidence) -> f64 {
    Headers::udp(evidence.link.ip_version.unwrap_or(crate::framing::IpVersion::V4)).total_bytes()
}

/// Whether datagrams of this size arrived; `None` if unknown.
fn passes(reply: &Reply) -> Option<bool> {
    let evidence = reply.evidence.as_ref()?;
    match evidence.loss() {
        Some(loss) => Some(loss < VANISHED_LOSS),
        // If nothing arrived, the loss ratio is unknown.
        None => (evidence.outcome.goodput_bps.unwrap_or(0.0) <= 0.0).then_some(false),
    }
}

/// Payloads with a known result and whether they passed, in the order of the replies.
fn known(replies: &[Reply]) -> Vec<(f64, bool)> {
    replies.iter().filter_map(|reply| Some((reply.trial.length_bytes?, passes(reply)?))).collect()
}

/// The largest payload that passed, and the smallest that was lost.
fn bracket(known: &[(f64, bool)]) -> Option<(f64, f64)> {
    let of = |fate: bool| known.iter().filter(move |(_, passed)| *passed == fate).map(|(bytes, _)| *bytes);
    Some((of(true).reduce(f64::max)?, of(false).reduce(f64::min)?))
}

pub(super) fn conclude(evidence: &Evidence, replies: &[Reply]) -> Conclusion {
    let known = known(replies);
    match known[..] {
        [(_, false), ..] => {
            return Conclusion::open("small datagrams are lost too: the size does not matter");
        }
        [_, (_, true), ..] => {
            return Conclusion::open("full-size datagrams pass: something other than size drops the data");
        }
        _ => {}
    }
    let Some((passed, vanished)) = bracket(&known) else {
        return Conclusion::open("the probes could not be measured");
    };
    let headers = headers_bytes(evidence);
    let (largest, lost) = (passed + headers, vanished + headers);
    let answer = Conclusion::open(format!(
        "packets of {largest:.0} bytes pass, packets of {lost:.0} bytes \
                                           are lost"
    ))
    .with(EvidenceKey::LargestPacketBytes, Some(largest))
    .with(EvidenceKey::SmallestLostBytes, Some(lost));
    let of_tcp = evidence.headers().total_bytes();
    let above = if lost - largest > 1.0 {
        format!("Packets of {lost:.0} bytes are lost and packets of {largest:.0} bytes pass")
    } else {
        format!("Packets above {largest:.0} bytes are lost")
    };
    let text = format!("{above}, and no ICMP message reaches the sender (MTU black hole).");
    let finding = FindingBuilder::new(Rule::MtuBlackHole, Confidence::Confirmed, text)
        .remedy(format!(
            "Let ICMP through, limit segments to {:.0} bytes (--set-mss {:.0}), or set \
             net.ipv4.tcp_mtu_probing=1.",
            largest - of_tcp,
            largest - of_tcp + evidence.headers().option_bytes,
        ))
        .finish();
    answer.found(finding)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{datagrams, stalled};
    use super::*;

    fn asked(mtu: f64) -> (usize, Conclusion) {
        let evidence = stalled();
        let mut replies = Vec::new();
        while let Some(trial) = next(&evidence, &replies) {
            let lost = trial.length_bytes.unwrap() + 28.0 > mtu;
            replies.push(datagrams(trial, f64::from(u8::from(lost)), 0.0));
        }
        (replies.len(), conclude(&evidence, &replies))
    }

    #[test]
    fn the_size_is_found_to_the_byte() {
        for mtu in [1499.0, 1400.0, 1280.0, 577.0, 576.0] {
            let (trials, conclusion) = asked(mtu);
            assert_eq!(conclusion.evidence[&EvidenceKey::LargestPacketBytes], mtu);
            assert_eq!(conclusion.finding.unwrap().rule, Rule::MtuBlackHole);
            assert!(trials <= 12, "{trials}");
        }
    }

    #[test]
    fn all_sizes_alike_are_no_black_hole() {
        let (trials, all_pass) = asked(1500.0);
        assert!(trials == 2 && all_pass.finding.is_none(), "{}", all_pass.answer);
        let (trials, none) = asked(100.0);
        assert!(trials == 1 && none.finding.is_none(), "{}", none.answer);
    }

    #[test]
    fn a_probe_that_failed_is_repeated_and_three_end_the_search() {
        let evidence = stalled();
        let failed = |replies: &[Reply]| Reply {
            trial: next(&evidence, replies).unwrap(),
            evidence: None,
            intervals_bps: Vec::new(),
        };
        let mut replies = vec![datagrams(next(&evidence, &[]).unwrap(), 0.0, 0.0)];
        replies.push(failed(&replies));
        assert_eq!(replies[1].trial, next(&evidence, &replies).unwrap(), "the same size again");
        replies.push(datagrams(next(&evidence, &replies).unwrap(), 1.0, 0.0));
        replies.push(failed(&replies));
        replies.push(failed(&replies));
        assert_eq!(next(&evidence, &replies), None);
        let conclusion = conclude(&evidence, &replies);
        assert_eq!(conclusion.evidence[&EvidenceKey::LargestPacketBytes], 576.0);
        assert_eq!(conclusion.evidence[&EvidenceKey::SmallestLostBytes], 1500.0);
    }
}
