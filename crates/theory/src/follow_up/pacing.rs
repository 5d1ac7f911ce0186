//! TCP with pacing: loss that vanishes came from bursts, loss that stays is the path's.

use linerate_model::{Confidence, EvidenceKey, Rule};

use super::{Conclusion, FurtherRun, Question, Reply, Topic, verdict_is};
use crate::diagnose::Diagnosis;
use crate::evidence::{Evidence, FlowTransport};
use crate::format;
use crate::rules::FindingBuilder;

/// Pacing rate divided by the mean rate: enough to keep the rate, without bursts.
const PACE_FACTOR: f64 = 1.1;
/// Loss counts as gone if at most this share of it remains.
const REMAINING_LOSS_SHARE: f64 = 0.2;
/// Losses that the paced run should see if nothing changes. With eight expected, none has a probability of 0.03
/// %.
const MIN_EXPECTED_LOSSES: f64 = 8.0;
const SECONDS: f64 = 4.0;

/// Asked if packets are lost without a queue.
pub(super) fn question(evidence: &Evidence, diagnosis: &Diagnosis) -> Option<Question> {
    let flat = crate::rules::rtt_is_flat(evidence) == Some(true);
    let lossy = evidence.loss().is_some_and(|loss| loss > 0.0);
    if evidence.transport != FlowTransport::Tcp
        || !verdict_is(diagnosis, &[Rule::RandomLoss, Rule::Unexplained, Rule::TooShort])
        || !flat
        || !lossy
    {
        return None;
    }
    evidence.outcome.goodput_bps.filter(|rate| *rate > 0.0)?;
    Some(Question {
        topic: Topic::Pacing,
        because: format!(
            "{} of the segments are lost although no queue fills: do bursts overflow a small queue?",
            format::percent(evidence.loss()?)
        ),
        meanings: [
            ("the loss disappears with pacing", "bursts overflow a small queue"),
            ("the loss stays the same with pacing", "packets are lost at random, whatever the load"),
        ],
    })
}

/// One run, paced at slightly more than the mean rate of the first.
pub(super) fn next(evidence: &Evidence, replies: &[Reply]) -> Option<FurtherRun> {
    let rate = evidence.outcome.goodput_bps.filter(|rate| rate.is_finite() && *rate > 0.0)?;
    replies.is_empty().then(|| FurtherRun {
        udp: false,
        offered_bps: None,
        pace_bps: Some(PACE_FACTOR * rate / evidence.streams()),
        length_bytes: None,
        streams: evidence.outcome.streams.unwrap_or(1).max(1),
        seconds: SECONDS,
        latency: false,
    })
}

pub(super) fn conclude(evidence: &Evidence, replies: &[Reply]) -> Conclusion {
    let reply = replies.first();
    let paced = reply.and_then(Reply::loss);
    let sent = reply.and_then(|reply| reply.evidence.as_ref()?.tcp.segments_sent);
    let (Some(first), Some(paced), Some(sent)) = (evidence.loss(), paced, sent) else {
        return Conclusion::open("the paced run could not be measured");
    };
    let answer = Conclusion::open(format!(
        "paced at {}, {} of the segments are lost instead of {}",
        format::rate(reply.and_then(|reply| reply.trial.pace_bps).unwrap_or(0.0) * evidence.streams()),
        format::percent(paced),
        format::percent(first)
    ))
    .with(EvidenceKey::LossUnpacedRatio, Some(first))
    .with(EvidenceKey::LossPacedRatio, Some(paced))
    .with(EvidenceKey::PacedBps, reply.and_then(Reply::goodput_bps));
    if first * sent < MIN_EXPECTED_LOSSES {
        let mut few = answer;
        few.answer.push_str("; too few packets to decide");
        return few;
    }
    if paced > REMAINING_LOSS_SHARE * first {
        return answer;
    }
    let text = format!(
        "{} of the segments are lost without pacing and {} with it: bursts overflow a small queue, or the \
         small bucket of a policer.",
        format::percent(first),
        format::percent(paced)
    );
    // A policer and a shallow buffer both pass evenly spaced packets. Datagrams above the rate distinguish
    // them, if that follow-up is requested.
    let finding = FindingBuilder::new(Rule::ShallowBuffer, Confidence::Probable, text)
        .remedy("Pace the sender (fq, --fq-rate), or give the port a larger share of its switch's buffer.")
        .finish();
    answer.found(finding)
}

#[cfg(test)]
mod tests {
    use super::super::examples::long_lossy;
    use super::*;

    fn after(lost: f64, sent: f64) -> Conclusion {
        let evidence = long_lossy();
        let trial = next(&evidence, &[]).unwrap();
        let mut paced = evidence.clone();
        paced.tcp.retransmits = Some(lost);
        paced.tcp.segments_sent = Some(sent);
        let reply = Reply { trial, evidence: Some(paced), intervals_bps: Vec::new() };
        assert_eq!(next(&evidence, std::slice::from_ref(&reply)), None);
        conclude(&evidence, &[reply])
    }

    #[test]
    fn loss_that_pacing_takes_away_came_from_bursts() {
        // One in ten thousand: twenty expected.
        let gone = after(1.0, 200_000.0);
        let finding = gone.finding.unwrap();
        assert_eq!((&finding.rule, finding.confidence), (&Rule::ShallowBuffer, Confidence::Probable));
        assert!(finding.text.contains("policer"), "{}", finding.text);
        assert_eq!(after(18.0, 200_000.0).finding, None);
        let few = after(0.0, 20_000.0);
        assert!(few.finding.is_none() && few.answer.contains("too few"), "{}", few.answer);
    }
}
