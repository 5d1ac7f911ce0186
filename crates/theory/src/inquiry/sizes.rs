//! Datagrams of different sizes, each one packet that must not be cut: above which size do they vanish?

use linerate_model::{Cause, Confidence};

use super::{Conclusion, Question, Reply, Topic, Trial, verdict_is};
use crate::diagnose::Diagnosis;
use crate::evidence::{Evidence, Transport};
use crate::framing::Headers;
use crate::rules::Draft;

/// Every IPv4 host takes packets of this size (RFC 791 section 3.1).
const LEAST_PACKET: f64 = 576.0;
/// Every link carries IPv6 packets of this size (RFC 8200 section 5).
const LEAST_PACKET_V6: f64 = 1280.0;
/// Loss from which a size counts as vanishing.
const VANISHED: f64 = 0.9;
/// Rate of the probes: a hundred packets a second and more.
const RATE: f64 = 2e6;
const SECONDS: f64 = 0.3;
/// Halvings that reach a byte from any size that Ethernet has.
const MOST: usize = 20;

/// Asked where nothing of full size came through, or segments shrank while the kernel probed.
pub(super) fn question(evidence: &Evidence, diagnosis: &Diagnosis) -> Option<Question> {
    let probed = diagnosis.also.iter().any(|finding| finding.rule == "V15");
    if evidence.transport != Transport::Tcp || !(verdict_is(diagnosis, &["V15"]) || probed) {
        return None;
    }
    Some(Question {
        topic: Topic::Sizes,
        because: "full segments vanish: above which size?".to_owned(),
        meanings: [
            ("small datagrams pass and large ones vanish", "a black hole for packets above a size"),
            ("all sizes fare alike", "something else drops the connections' data"),
        ],
    })
}

/// The smallest, the largest, then the middle between what passed and what vanished.
pub(super) fn next(evidence: &Evidence, replies: &[Reply]) -> Option<Trial> {
    let (least, most) = bounds(evidence)?;
    let bytes = match replies.len() {
        0 => least,
        1 if passes(&replies[0])? => most,
        2.. if replies.len() < MOST && !passes(&replies[1])? => {
            let (passed, vanished) = bracket(replies)?;
            (vanished - passed > 1.0).then(|| f64::midpoint(passed, vanished).floor())?
        }
        _ => return None,
    };
    Some(Trial {
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
    let least = if v6 { LEAST_PACKET_V6 } else { LEAST_PACKET } - headers;
    let most = evidence.link.mtu_bytes.unwrap_or(1500.0) - headers;
    (most.is_finite() && most > least).then_some((least, most))
}

fn headers_bytes(evidence: &Evidence) -> f64 {
    Headers::udp(evidence.link.ip_version.unwrap_or(crate::framing::IpVersion::V4)).total_bytes()
}

/// Whether datagrams of this size came through; `None` when that is not known.
fn passes(reply: &Reply) -> Option<bool> {
    let evidence = reply.evidence.as_ref()?;
    match evidence.loss() {
        Some(loss) => Some(loss < VANISHED),
        // Where nothing came, nothing tells how much was lost.
        None => (evidence.outcome.goodput_bps.unwrap_or(0.0) <= 0.0).then_some(false),
    }
}

/// The largest payload that passed, and the smallest that vanished.
fn bracket(replies: &[Reply]) -> Option<(f64, f64)> {
    let sizes = |passed: bool| {
        let fitting = replies.iter().filter(move |reply| passes(reply) == Some(passed));
        fitting.filter_map(|reply| reply.trial.length_bytes)
    };
    // An answer that is missing would otherwise be asked for again and again.
    replies.iter().all(|reply| passes(reply).is_some()).then_some(())?;
    Some((sizes(true).reduce(f64::max)?, sizes(false).reduce(f64::min)?))
}

pub(super) fn conclude(evidence: &Evidence, replies: &[Reply]) -> Conclusion {
    match replies {
        [small, ..] if passes(small) == Some(false) => {
            return Conclusion::open("small datagrams vanish too: their size is not what decides");
        }
        [_, large, ..] if passes(large) == Some(true) => {
            return Conclusion::open(
                "datagrams of full size pass: something else drops the connections' data",
            );
        }
        _ => {}
    }
    let Some((passed, vanished)) = bracket(replies) else {
        return Conclusion::open("the probes could not be measured");
    };
    let headers = headers_bytes(evidence);
    let (largest, lost) = (passed + headers, vanished + headers);
    let answer = Conclusion::open(format!("packets of {largest:.0} bytes pass, those of {lost:.0} vanish"))
        .with("largest_packet_bytes", Some(largest))
        .with("smallest_lost_bytes", Some(lost));
    let of_tcp = evidence.headers().total_bytes();
    let text = format!("Packets above {largest:.0} bytes vanish without a word to the sender.");
    let finding = Draft::new(Cause::Mtu, "V15", Confidence::Confirmed, text)
        .remedy(format!(
            "Let ICMP through, or use segments of {:.0} bytes at most (--set-mss {:.0}), or net.ipv4.tcp_mtu_probing=1.",
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
            assert_eq!(conclusion.evidence["largest_packet_bytes"], mtu);
            assert_eq!(conclusion.finding.unwrap().rule, "V15");
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
    fn a_probe_that_failed_ends_the_search() {
        let evidence = stalled();
        let small = datagrams(next(&evidence, &[]).unwrap(), 0.0, 0.0);
        let mut large = datagrams(next(&evidence, std::slice::from_ref(&small)).unwrap(), 1.0, 0.0);
        large.evidence = None;
        assert_eq!(next(&evidence, &[small.clone(), large.clone()]), None);
        assert_eq!(conclude(&evidence, &[small, large]).finding, None);
    }
}
