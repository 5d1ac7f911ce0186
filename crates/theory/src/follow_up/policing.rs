//! UDP above and below the rate: a policer drops the excess at once, a shaper or a link queues it first.

use linerate_model::{Confidence, EvidenceKey, Rule};

use super::{Conclusion, FurtherRun, Question, Reply, Topic, verdict_is};
use crate::diagnose::Diagnosis;
use crate::evidence::{Evidence, FlowTransport};
use crate::rules::{
    FindingBuilder, any_core_is_full, core_is_full, rtt_is_flat, sender_dropped, windows_are_open,
};
use crate::{ceilings, ethernet, format};

/// Each further attempt to exceed the path is faster by this factor.
const RATE_STEP: f64 = 2.0;
/// Number of attempts to exceed it: a policer or loss leaves TCP at least 1/16 of the path.
const MAX_ATTEMPTS: usize = 5;
/// Received rates within this tolerance are the same limit.
const SAME_RATE_TOLERANCE: f64 = 0.1;
/// Loss of datagrams that shows an excess.
const EXCESS_LOSS: f64 = 0.05;
/// This share of the received rate must pass without loss.
const BELOW_RATE_SHARE: f64 = 0.9;
/// Largest loss below the rate at which the rate is still the cause of the loss above it.
const CLEAN_LOSS: f64 = 0.005;
/// An interval that exceeds the rate by this factor is part of the bucket's burst.
const BUCKET_RATE_FACTOR: f64 = 1.02;
/// Rise of the smoothed RTT that a busy host does not cause, as a share of the smallest RTT and in seconds.
const RTT_RISE_SHARE: f64 = 0.25;
const RTT_RISE_S: f64 = 0.005;
/// TCP filled a link from this share on; busy hosts or others took the rest.
const FILLED_SHARE: f64 = 0.9;
/// Tolerance for the rate of a link. A policer or shaper that counts frames lets through 1.3 % more.
const LINK_TOLERANCE: f64 = 0.005;
/// The sender should shape to this share of the policed rate.
const CONFORMING: f64 = 0.98;
const SECONDS: f64 = 2.0;

/// Asked if TCP's rate has no certain explanation, or one that only UDP can confirm.
pub(super) fn question(evidence: &Evidence, diagnosis: &Diagnosis) -> Option<Question> {
    let open = verdict_is(
        diagnosis,
        &[Rule::Unexplained, Rule::TooShort, Rule::Policer, Rule::Congestion, Rule::RandomLoss],
    ) || (verdict_is(diagnosis, &[Rule::Shaper])
        && diagnosis.primary.confidence == Confidence::Probable);
    let path = windows_are_open(evidence) && !any_core_is_full(evidence);
    let lossy = evidence.loss().is_some_and(|loss| loss > 0.0) || verdict_is(diagnosis, &[Rule::Shaper]);
    let rate = evidence.outcome.goodput_bps.filter(|rate| *rate > 0.0)?;
    if evidence.transport != FlowTransport::Tcp || !open || !path || !lossy {
        return None;
    }
    Some(Question {
        topic: Topic::Policing,
        because: format!(
            "TCP got {} and lost packets: does the path drop or delay packets above its rate?",
            format::rate(rate)
        ),
        meanings: [
            (
                "datagrams above a certain rate are lost without delay",
                "a policer, or a link with almost no \
                                                                       buffer",
            ),
            ("datagrams above a certain rate are delayed first", "a shaper or a slower link"),
        ],
    })
}

/// Raises the rate until the path is exceeded and two consecutive trials receive the same rate. Then offers
/// slightly less than was received.
pub(super) fn next(evidence: &Evidence, replies: &[Reply]) -> Option<FurtherRun> {
    let first = evidence.outcome.goodput_bps.filter(|rate| rate.is_finite() && *rate > 0.0)?;
    let Some(last) = replies.last() else { return Some(trial(evidence, RATE_STEP * first)) };
    last.evidence.as_ref()?;
    if below(replies).is_some() {
        return None;
    }
    if exceeds(last) && dropping_host(last).is_some() {
        return None;
    }
    let offered = last.trial.offered_bps?;
    let at_line = evidence.line_rate_bps().is_some_and(|line| offered >= 0.9 * line);
    let last_attempt = replies.len() >= MAX_ATTEMPTS || at_line;
    if exceeds(last) && (last_attempt || is_a_limit(replies)) {
        return Some(trial(evidence, BELOW_RATE_SHARE * steady_bps(last)?));
    }
    (!last_attempt).then(|| trial(evidence, RATE_STEP * offered))
}

/// Whether the last two trials exceed the path and received the same rate. If bursts overrun a queue, a higher
/// offered rate gives a higher received rate.
fn is_a_limit(replies: &[Reply]) -> bool {
    let [.., before, last] = replies else { return false };
    let rates = steady_bps(before).zip(steady_bps(last));
    exceeds(before) && rates.is_some_and(|(before, last)| (last / before - 1.0).abs() <= SAME_RATE_TOLERANCE)
}

fn trial(evidence: &Evidence, offered: f64) -> FurtherRun {
    // Above its own line rate, the sending host would drop.
    let most = evidence.line_rate_bps().map_or(f64::INFINITY, |line| 0.93 * line);
    FurtherRun {
        udp: true,
        offered_bps: Some(offered.min(most)),
        pace_bps: None,
        length_bytes: None,
        streams: 1,
        seconds: SECONDS,
        latency: true,
    }
}

/// The trial below the rate: the only one that is slower than its predecessor.
fn below(replies: &[Reply]) -> Option<&Reply> {
    let [.., before, last] = replies else { return None };
    let (before, offered) = before.trial.offered_bps.zip(last.trial.offered_bps)?;
    (offered < before).then_some(last)
}

/// Whether more was offered than received, or packets had to wait.
fn exceeds(reply: &Reply) -> bool {
    let flat = reply.evidence.as_ref().and_then(rtt_is_flat);
    reply.loss().is_some_and(|loss| loss >= EXCESS_LOSS) || flat == Some(false)
}

/// The host that itself dropped the datagrams of a trial. A full core of the sender drops none; it only sends fewer.
fn dropping_host(reply: &Reply) -> Option<&'static str> {
    let evidence = reply.evidence.as_ref()?;
    if sender_dropped(evidence) {
        return Some("sending host");
    }
    let late = evidence.udp.were_dropped_at_the_socket() || core_is_full(&evidence.receiver);
    late.then_some("receiving host")
}

/// Received rate after the first third: a bucket or a queue takes more at first.
fn steady_bps(reply: &Reply) -> Option<f64> {
    let intervals = &reply.intervals_bps;
    let later = intervals.get(intervals.len() / 3..intervals.len().saturating_sub(1))?;
    crate::stats::order::median(later).or_else(|| reply.goodput_bps()).filter(|rate| *rate > 0.0)
}

pub(super) fn conclude(evidence: &Evidence, replies: &[Reply]) -> Conclusion {
    let below = below(replies);
    let faster = &replies[..replies.len() - usize::from(below.is_some())];
    let Some(above) = faster.iter().rfind(|reply| exceeds(reply)) else { return never_too_many(replies) };
    let (Some(rate), Some(flat)) = (steady_bps(above), above.evidence.as_ref().and_then(rtt_is_flat)) else {
        return Conclusion::open("the datagrams above the rate could not be measured");
    };
    // Probes have other ports and may take another member link of a LAG than the flow.
    let flat = flat && !tcp_waited(evidence);
    let loss_below = below.and_then(Reply::loss);
    let loss = above.loss().unwrap_or(0.0);
    let base = |answer: String| {
        Conclusion::open(answer)
            .with(EvidenceKey::OfferedBps, above.trial.offered_bps)
            .with(EvidenceKey::PassedBps, Some(rate))
            .with(EvidenceKey::LossAboveRatio, above.loss())
            .with(EvidenceKey::LossBelowRatio, loss_below)
    };
    if let Some(host) = dropping_host(above) {
        return base(format!(
            "datagrams sent at {} lost {}, but the {host} itself drops above {}: what the path does with them \
             is undecided",
            format::rate(above.trial.offered_bps.unwrap_or(0.0)),
            format::percent(loss),
            format::rate(rate),
        ));
    }
    if loss_below.is_none_or(|below| below > CLEAN_LOSS.max(0.05 * loss)) {
        return base(format!(
            "datagrams sent at {} lost {}, and datagrams sent at {} of the received rate lost {}: the loss \
             does not depend on the rate alone",
            format::rate(above.trial.offered_bps.unwrap_or(0.0)),
            format::percent(loss),
            format::percent(BELOW_RATE_SHARE),
            loss_below.map_or_else(|| "an unknown share".to_owned(), format::percent),
        ));
    }
    let of_probes = above.evidence.as_ref().and_then(Evidence::rtt_rise_s).unwrap_or(0.0);
    let of_tcp = evidence.rtt.mean_s.zip(evidence.rtt.min_s).map_or(0.0, |(mean, least)| mean - least);
    let waits = if tcp_waited(evidence) { of_probes.max(of_tcp) } else { of_probes };
    let answer = base(format!(
        "datagrams sent at {} arrived at {} with {} loss, {} later than on the idle path; at {} of the \
         received rate the loss was {}",
        format::rate(above.trial.offered_bps.unwrap_or(0.0)),
        format::rate(rate),
        format::percent(loss),
        format::time(waits.max(0.0)),
        format::percent(BELOW_RATE_SHARE),
        format::percent(loss_below.unwrap_or(0.0)),
    ));
    let alone = faster.iter().filter(|reply| exceeds(reply)).count() == 1;
    if !alone && !is_a_limit(faster) {
        let mut grows = answer;
        grows.answer.push_str(
            "; a higher sending rate gives a higher received rate, so the path has no \
                               fixed rate limit",
        );
        return grows;
    }
    match (flat, link_of(above, rate)) {
        (true, Some(link)) => shallow(answer, link),
        (true, None) => policer(answer, evidence, above, rate),
        (false, link) => delayed(answer, evidence, rate, waits, link),
    }
}

/// Whether the packets of the first run waited, according to the sender's kernel.
fn tcp_waited(evidence: &Evidence) -> bool {
    let rise = evidence.rtt.mean_s.zip(evidence.rtt.min_s).map(|(mean, least)| (mean - least, least));
    rise.is_some_and(|(rise, least)| rise >= (RTT_RISE_SHARE * least).max(RTT_RISE_S))
}

fn never_too_many(replies: &[Reply]) -> Conclusion {
    let fastest = replies.iter().filter_map(Reply::goodput_bps).reduce(f64::max);
    match fastest {
        Some(rate) => Conclusion::open(format!(
            "datagrams sent at {} arrived without delay: neither a policer nor a queue limits TCP's rate",
            format::rate(rate)
        ))
        .with(EvidenceKey::PassedBps, Some(rate)),
        None => Conclusion::open("no datagrams could be measured"),
    }
}

/// The standard link whose ceiling for these datagrams is the rate, within 0.5 %.
fn link_of(reply: &Reply, rate: f64) -> Option<f64> {
    let layers = reply.evidence.as_ref()?.layer_bytes()?;
    let at = |rate: f64| ethernet::inferred_link(rate, &layers, 1.0 - LINK_TOLERANCE);
    at(rate).or_else(|| at(rate * (1.0 - LINK_TOLERANCE))).map(|link| link.bps)
}

fn policer(answer: Conclusion, evidence: &Evidence, above: &Reply, rate: f64) -> Conclusion {
    let bucket = bucket_bytes(above, rate);
    let held = bucket.map_or_else(String::new, |bytes| format!(", after a burst of {}", format::size(bytes)));
    let text = format!(
        "The path is policed: it drops datagrams above {} without queueing them{held}.",
        format::rate(rate)
    );
    let finding = FindingBuilder::new(Rule::Policer, Confidence::Confirmed, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .remedy(format!("Shape the traffic at the sender to {}.", format::rate(CONFORMING * rate)))
        .finish();
    answer.with(EvidenceKey::BucketBytes, bucket).found(finding)
}

/// Bytes received in excess of the rate at the start; absent if there was no such burst.
fn bucket_bytes(above: &Reply, rate: f64) -> Option<f64> {
    let interval = above.evidence.as_ref()?.outcome.interval_s?;
    let burst = above.intervals_bps.iter().take_while(|bps| **bps > BUCKET_RATE_FACTOR * rate);
    let bytes: f64 = burst.map(|bps| (bps - rate) * interval / 8.0).sum();
    (bytes > 0.0).then_some(bytes)
}

fn shallow(answer: Conclusion, link: f64) -> Conclusion {
    let name = ethernet::standard_name(link).unwrap_or("a link");
    let text = format!(
        "Datagrams fill {name} without delay and the excess is lost at once: bursts overflow a small queue \
         in front of that link."
    );
    let finding = FindingBuilder::new(Rule::ShallowBuffer, Confidence::Probable, text)
        .with(EvidenceKey::LinkBps, Some(link))
        .remedy("Pace the sender (fq, --fq-rate), or give the port a larger share of its switch's buffer.")
        .finish();
    answer.found(finding)
}

fn delayed(answer: Conclusion, evidence: &Evidence, rate: f64, waits: f64, link: Option<f64>) -> Conclusion {
    let Some(link) = link else {
        let text = format!(
            "A shaper limits datagrams on the path to {}: the excess is delayed (by {}) before it is lost.",
            format::rate(rate),
            format::time(waits)
        );
        let finding = FindingBuilder::new(Rule::Shaper, Confidence::Confirmed, text)
            .with_time(EvidenceKey::QueueNs, Some(waits))
            .remedy("Raise the shaper's rate, or accept it as the rate of the path.")
            .finish();
        return answer.found(finding);
    };
    let mut answer =
        answer.with(EvidenceKey::LinkBps, Some(link)).with(EvidenceKey::QueueNs, Some((waits * 1e9).round()));
    let name = ethernet::standard_name(link).unwrap_or("a link");
    answer.answer.push_str(&format!("; that is the rate of {name} with a queue in front of it"));
    let ceiling = ceilings::link_goodput_bps(evidence, link);
    let share = evidence.outcome.goodput_bps.zip(ceiling).map(|(goodput, ceiling)| goodput / ceiling);
    if share.is_none_or(|share| share < FILLED_SHARE) {
        return answer;
    }
    let text = format!(
        "Datagrams fill {name} with a queue in front of it, and TCP reached {} of its capacity: the link is \
         full.",
        format::percent(share.unwrap_or(1.0))
    );
    let finding = FindingBuilder::new(Rule::LinkFull, Confidence::Confirmed, text)
        .with(EvidenceKey::CeilingBps, ceiling)
        .with(EvidenceKey::Share, share)
        .remedy("Check auto-negotiation and cabling at the peer and at the next hop.")
        .finish();
    answer.found(finding)
}

#[cfg(test)]
mod tests {
    use super::super::examples::{datagrams, long_lossy};
    use super::*;

    /// The conclusion if UDP above `path` loses all excess, with a queue of `waits`, and TCP got 40 Mb/s.
    fn found(path: f64, waits: f64, noise: f64) -> (Vec<f64>, Conclusion) {
        found_after(40e6, path, waits, noise)
    }

    fn found_after(tcp: f64, path: f64, waits: f64, noise: f64) -> (Vec<f64>, Conclusion) {
        let mut evidence = long_lossy();
        evidence.outcome.goodput_bps = Some(tcp);
        evidence.link.link_bps = Some(1e9);
        let mut replies: Vec<Reply> = Vec::new();
        while let Some(trial) = next(&evidence, &replies) {
            let offered = trial.offered_bps.unwrap();
            let loss = (1.0 - path / offered).max(0.0) + noise;
            replies.push(datagrams(trial, loss, if offered > path { waits } else { 0.0 }));
        }
        let offered = replies.iter().filter_map(|reply| reply.trial.offered_bps).collect();
        (offered, conclude(&evidence, &replies))
    }

    #[test]
    fn what_is_lost_above_a_rate_without_waiting_is_policed() {
        let (offered, conclusion) = found(70e6, 0.0, 0.0);
        assert_eq!(offered, [80e6, 160e6, 63e6]);
        let finding = conclusion.finding.unwrap();
        assert_eq!((&finding.rule, finding.confidence), (&Rule::Policer, Confidence::Confirmed));
        assert!((finding.evidence[&EvidenceKey::PassedBps] / 70e6 - 1.0).abs() < 1e-9);
        assert!(!finding.evidence.contains_key(&EvidenceKey::BucketBytes));
    }

    #[test]
    fn what_waits_first_is_shaped_or_a_slower_link() {
        let (_, conclusion) = found(70e6, 0.05, 0.0);
        assert_eq!(conclusion.finding.unwrap().rule, Rule::Shaper);
        // 1472 of 1538 bytes at 100 Mb/s.
        let (_, link) = found(1e8 * 1472.0 / 1538.0, 0.05, 0.0);
        assert_eq!(link.finding, None);
        assert!(link.answer.contains("100BASE-TX"), "{}", link.answer);
        let (_, shaper) = found(1e8 * 1472.0 / 1518.0, 0.05, 0.0);
        assert_eq!(shaper.finding.unwrap().rule, Rule::Shaper, "it counts frames");
        let (_, hair) = found(1.002e8 * 1472.0 / 1538.0, 0.05, 0.0);
        assert!(hair.answer.contains("100BASE-TX"), "{}", hair.answer);
        let (_, full) = found_after(90e6, 1e8 * 1472.0 / 1538.0, 0.05, 0.0);
        assert_eq!(full.finding.unwrap().rule, Rule::LinkFull);
    }

    #[test]
    fn a_full_link_without_a_queue_has_a_shallow_buffer() {
        let (offered, conclusion) = found(1e8 * 1472.0 / 1538.0, 0.0, 0.0);
        assert_eq!(offered[..3], [80e6, 160e6, 320e6]);
        assert_eq!(conclusion.finding.unwrap().rule, Rule::ShallowBuffer);
    }

    #[test]
    fn a_queue_that_only_the_flow_itself_saw_counts() {
        let mut evidence = long_lossy();
        evidence.outcome.goodput_bps = Some(40e6);
        evidence.rtt.mean_s = Some(0.060);
        let above = datagrams(next(&evidence, &[]).unwrap(), 0.125, 0.0);
        let twice = datagrams(next(&evidence, std::slice::from_ref(&above)).unwrap(), 0.5625, 0.0);
        let mut replies = vec![above, twice];
        replies.push(datagrams(next(&evidence, &replies).unwrap(), 0.0, 0.0));
        assert_eq!(conclude(&evidence, &replies).finding.unwrap().rule, Rule::Shaper);
    }

    #[test]
    fn what_grows_with_the_offer_is_no_limit() {
        let mut evidence = long_lossy();
        evidence.outcome.goodput_bps = Some(10e6);
        let mut replies = Vec::new();
        while let Some(trial) = next(&evidence, &replies) {
            let slow = replies.last().is_some_and(|last: &Reply| trial.offered_bps < last.trial.offered_bps);
            replies.push(datagrams(trial, if slow { 0.0 } else { 0.3 }, 0.0));
        }
        let conclusion = conclude(&evidence, &replies);
        assert!(conclusion.finding.is_none() && replies.len() == 6, "{conclusion:?}");
        assert!(
            conclusion.answer.contains("a higher sending rate gives a higher received rate"),
            "{}",
            conclusion.answer
        );
    }

    #[test]
    fn loss_that_does_not_depend_on_the_rate_decides_nothing() {
        let (_, conclusion) = found(70e6, 0.0, 0.06);
        assert_eq!(conclusion.finding, None, "{}", conclusion.answer);
        let (offered, free) = found(1e12, 0.0, 0.0);
        assert_eq!(offered, [80e6, 160e6, 320e6, 640e6, 930e6]);
        assert!(free.finding.is_none() && free.answer.contains("930 Mb/s"), "{}", free.answer);
    }

    /// A receiver that keeps up with 70 Mb/s loses the rest without delay, like a policer.
    #[test]
    fn what_a_host_drops_is_not_policed() {
        type Plant = fn(&mut Evidence);
        let plants: [(Plant, &str); 3] = [
            (|trial| trial.udp.buffer_drops = trial.udp.lost, "receiving host"),
            (|trial| trial.receiver.thread_share = Some(1.0), "receiving host"),
            (|trial| trial.sender.local_drops = trial.udp.lost, "sending host"),
        ];
        for (plant, host) in plants {
            let mut evidence = long_lossy();
            evidence.outcome.goodput_bps = Some(40e6);
            let mut replies: Vec<Reply> = Vec::new();
            while let Some(trial) = next(&evidence, &replies) {
                let loss = (1.0 - 70e6 / trial.offered_bps.unwrap()).max(0.0);
                let mut reply = datagrams(trial, loss, 0.0);
                reply.evidence.as_mut().filter(|_| loss > 0.0).map(plant);
                replies.push(reply);
            }
            let conclusion = conclude(&evidence, &replies);
            assert_eq!((conclusion.finding, replies.len()), (None, 1), "{host}");
            let expected = format!("the {host} itself drops above 70 Mb/s");
            assert!(conclusion.answer.contains(&expected), "{}", conclusion.answer);
        }
    }

    #[test]
    fn the_bucket_is_what_came_above_the_rate_at_first() {
        let mut evidence = long_lossy();
        evidence.outcome.goodput_bps = Some(40e6);
        let above = datagrams(next(&evidence, &[]).unwrap(), 0.125, 0.0);
        let mut twice = datagrams(next(&evidence, std::slice::from_ref(&above)).unwrap(), 0.5625, 0.0);
        // 100 ms at 80 Mb/s instead of 70: 125 kB.
        twice.intervals_bps[0] = 80e6;
        let mut replies = vec![above, twice];
        replies.push(datagrams(next(&evidence, &replies).unwrap(), 0.0, 0.0));
        let conclusion = conclude(&evidence, &replies);
        assert!((conclusion.evidence[&EvidenceKey::BucketBytes] - 125e3).abs() < 1.0, "{conclusion:?}");
    }
}
