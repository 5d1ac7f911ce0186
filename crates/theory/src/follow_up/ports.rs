//! Many connections instead of one: in a LAG, one connection gets one member link, many connections get
//! several.

use linerate_model::{Confidence, EvidenceKey, Rule};

use super::{Conclusion, FurtherRun, Question, Reply, Topic, verdict_is};
use crate::diagnose::Diagnosis;
use crate::evidence::{Evidence, FlowTransport};
use crate::rules::{FindingBuilder, any_core_is_full};
use crate::{ethernet, format, lag};

/// Connections of the trial. With eight, two member links are detected with 99 %.
const CONNECTIONS: u32 = 16;
/// Smallest speed-up that shows more than one link; on one link, several connections only use what one left
/// unused.
const ONE_LINK_FACTOR: f64 = 1.25;
/// An unexplained rate may be that of a link from this share of the link's ceiling on.
const NEARLY_FULL_SHARE: f64 = 0.9;
/// Largest number of member links considered.
const MAX_MEMBERS: u32 = 16;
/// Numbers of links whose likelihood is below this share of the maximum are excluded: 95 % of a chi-square with
/// one degree of freedom.
const SUPPORT: f64 = 0.147;
const SECONDS: f64 = 3.0;

/// Asked if a flow with few connections reaches the rate of a link that is slower than the host's.
pub(super) fn question(evidence: &Evidence, diagnosis: &Diagnosis) -> Option<Question> {
    // A member link can look like a shaper if data that had waited raises its rate a little.
    let numbers = &diagnosis.primary.evidence;
    let named = numbers.get(&EvidenceKey::LinkBps).or_else(|| numbers.get(&EvidenceKey::ShaperBps)).copied();
    let named = named.filter(|_| verdict_is(diagnosis, &[Rule::LinkFull, Rule::Shaper]));
    let unsure = verdict_is(diagnosis, &[Rule::Unexplained, Rule::TooShort]);
    let link = named.or_else(|| near_link(evidence).filter(|_| unsure));
    let slower = link.is_some_and(|link| evidence.line_rate_bps().is_none_or(|own| link < own));
    let few = evidence.streams() <= 5.0;
    if evidence.transport != FlowTransport::Tcp
        || !few
        || !(slower || verdict_is(diagnosis, &[Rule::LagImbalance]))
    {
        return None;
    }
    Some(Question {
        topic: Topic::Ports,
        because: "the rate is that of a link slower than the host's own: is it a member link of a LAG?"
            .to_owned(),
        meanings: [
            ("many connections are faster than one", "a LAG that hashes ports"),
            ("many connections are not faster", "one link, or a LAG that hashes addresses only"),
        ],
    })
}

/// The standard link whose rate the flow nearly reaches.
fn near_link(evidence: &Evidence) -> Option<f64> {
    let goodput = evidence.outcome.goodput_bps?;
    ethernet::inferred_link(goodput, &evidence.layer_bytes()?, NEARLY_FULL_SHARE).map(|link| link.bps)
}

/// One run with many connections; the system chooses their ports.
pub(super) fn next(_evidence: &Evidence, replies: &[Reply]) -> Option<FurtherRun> {
    replies.is_empty().then_some(FurtherRun {
        udp: false,
        offered_bps: None,
        pace_bps: None,
        length_bytes: None,
        streams: CONNECTIONS,
        seconds: SECONDS,
        latency: false,
    })
}

pub(super) fn conclude(evidence: &Evidence, replies: &[Reply]) -> Conclusion {
    let member = member_bps(evidence);
    let all = replies.first().and_then(Reply::goodput_bps);
    let (Some(member), Some(all)) = (member.filter(|rate| *rate > 0.0), all) else {
        return Conclusion::open("many connections could not be measured");
    };
    let ratio = all / member;
    let answer = Conclusion::open(format!(
        "{CONNECTIONS} connections together get {}, {ratio:.2} times one link",
        format::rate(all)
    ))
    .with(EvidenceKey::TogetherBps, Some(all))
    .with(EvidenceKey::MemberBps, Some(member))
    .with(EvidenceKey::Times, Some(ratio));
    if ratio < ONE_LINK_FACTOR {
        let mut one = answer;
        one.answer.push_str(": one link, or a LAG that hashes addresses only");
        return one;
    }
    if replies.first().and_then(|reply| reply.evidence.as_ref()).is_some_and(any_core_is_full) {
        let mut busy = answer;
        busy.answer.push_str(", but a core is saturated, which hides the number of member links");
        return busy;
    }
    let used = ratio.round().max(2.0);
    if used > f64::from(CONNECTIONS) / 2.0 {
        let mut alone = answer;
        alone.answer.push_str(": each connection has a limit of its own, not a shared link");
        return alone;
    }
    let members = members(used as u32);
    let many = match members {
        (least, most) if least == most => format!("{least}"),
        (least, most) => format!("{least} to {most}"),
    };
    let text = format!(
        "One connection uses one of {many} member links of a LAG, and {CONNECTIONS} connections with other \
         ports use {ratio:.1} of them: the LAG hashes ports."
    );
    let uneven = replies.first().and_then(|reply| spread(reply.evidence.as_ref()?));
    let finding = FindingBuilder::new(Rule::LagImbalance, Confidence::Confirmed, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .remedy("Use more connections (-P): a connection never uses more than one member link.")
        .finish();
    answer
        .with(EvidenceKey::MembersUsed, Some(used))
        .with(EvidenceKey::MembersLeast, Some(f64::from(members.0)))
        .with(EvidenceKey::MembersMost, Some(f64::from(members.1)))
        .with(EvidenceKey::LargestOverSmallest, uneven)
        .found(finding)
}

/// Rate of one member link: that of one connection, or of several divided by the number of member links that
/// they used.
fn member_bps(evidence: &Evidence) -> Option<f64> {
    let goodput = evidence.outcome.goodput_bps?;
    let diagnosis = crate::diagnose(evidence);
    let used = diagnosis
        .primary
        .evidence
        .get(&EvidenceKey::MembersUsed)
        .copied()
        .filter(|_| verdict_is(&diagnosis, &[Rule::LagImbalance]));
    Some(goodput / used.unwrap_or(1.0))
}

/// Range of likely numbers of member links if `used` of them were seen in use.
fn members(used: u32) -> (u32, u32) {
    let likelihood = |links: u32| lag::occupancy_probability(CONNECTIONS, used, links).unwrap_or(0.0);
    let best = (used..=MAX_MEMBERS).map(likelihood).fold(0.0, f64::max);
    let most = (used..=MAX_MEMBERS).rfind(|links| likelihood(*links) >= SUPPORT * best);
    (used, most.unwrap_or(used))
}

/// Ratio of the fastest connection's bytes to the slowest's.
fn spread(evidence: &Evidence) -> Option<f64> {
    let bytes = &evidence.outcome.stream_bytes;
    let largest = bytes.iter().copied().reduce(f64::max)?;
    let smallest = bytes.iter().copied().reduce(f64::min).filter(|bytes| *bytes > 0.0)?;
    Some(largest / smallest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::full_gigabit;

    fn after(together: f64) -> Conclusion {
        let mut evidence = full_gigabit();
        evidence.link.link_bps = Some(10e9);
        let trial = next(&evidence, &[]).unwrap();
        let mut many = evidence.clone();
        many.outcome.goodput_bps = Some(together);
        many.outcome.stream_bytes = vec![1e8, 3e8];
        conclude(&evidence, &[Reply { trial, evidence: Some(many), intervals_bps: Vec::new() }])
    }

    #[test]
    fn twice_the_rate_is_two_members() {
        let finding = after(1.88e9).finding.unwrap();
        assert_eq!((&finding.rule, finding.confidence), (&Rule::LagImbalance, Confidence::Confirmed));
        assert_eq!(
            (finding.evidence[&EvidenceKey::MembersLeast], finding.evidence[&EvidenceKey::MembersMost]),
            (2.0, 2.0)
        );
        assert_eq!(finding.evidence[&EvidenceKey::LargestOverSmallest], 3.0);
        // Six links seen with sixteen flows: seven links have 53 % of the likelihood of six, eight 17 %, nine 5
        // %.
        assert_eq!(members(6).0, 6);
        assert!(members(6).1 > 6);
    }

    #[test]
    fn the_same_rate_is_one_link_and_sixteen_times_is_no_link_at_all() {
        let one = after(0.94e9);
        assert!(one.finding.is_none() && one.answer.contains("one link"), "{}", one.answer);
        let each = after(9.3e9);
        assert!(each.finding.is_none() && each.answer.contains("a limit of its own"), "{}", each.answer);
    }
}
