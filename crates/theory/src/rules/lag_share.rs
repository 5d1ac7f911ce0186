//! V17: connections share the member links of a LAG unevenly.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, any_core_is_full, link_full, rate_was_asked_for, windows_are_open};
use crate::ethernet::{self, StandardRate};
use crate::evidence::{Evidence, FlowTransport};

/// A member link that carries at least this share of its ceiling is full.
const FULL_SHARE: f64 = 0.95;
/// If the sum varies by less than this, the member links are full all the time.
const MAX_VARIATION: f64 = 0.05;
/// Tolerance with which the connections of a member link must add up to its rate.
const SUM_TOLERANCE: f64 = 0.03;
/// Smallest ratio between a connection alone on its member link and one that shares a member link.
const ALONE_FACTOR: f64 = 1.5;
/// Largest number of connections: with more, groups that fit by chance are frequent.
const MAX_CONNECTIONS: usize = 5;

/// Connections on a LAG, as inferred from their rates.
struct Bundle {
    member: StandardRate,
    used: usize,
}

/// One run cannot repeat the grouping with other ports, so the finding is at most probable.
pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let steady = windows_are_open(evidence)
        && evidence.is_constant(MAX_VARIATION) == Some(true)
        && !any_core_is_full(evidence)
        && !rate_was_asked_for(evidence)
        && !link_full::own_link_is_full(evidence);
    if evidence.transport != FlowTransport::Tcp || !steady {
        return None;
    }
    let bundle = bundle(evidence)?;
    let (used, name) = (bundle.used, bundle.member.name);
    let text = format!(
        "The connections together have the rate of {used} links of {name}, but their rates differ: they \
         share the member links of a LAG, and each uses only one."
    );
    let largest = evidence.outcome.stream_bytes.iter().copied().reduce(f64::max);
    let smallest = evidence.outcome.stream_bytes.iter().copied().reduce(f64::min);
    FindingBuilder::new(Rule::LagImbalance, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::MemberBps, Some(bundle.member.bps))
        .with(EvidenceKey::MembersUsed, Some(used as f64))
        .with(EvidenceKey::LargestOverSmallest, largest.zip(smallest).map(|(large, small)| large / small))
        .with(EvidenceKey::IntervalVariation, evidence.variation())
        .remedy(
            "Use more connections or other ports (--cport); configure the LAG to hash ports as well as \
                 addresses. Several runs with other ports show how many member links there are.",
        )
        .finish()
}

/// Finds the rate of the member links that the connections fill exactly, in groups of different size.
fn bundle(evidence: &Evidence) -> Option<Bundle> {
    let streams = &evidence.outcome.stream_bytes;
    let total: f64 = streams.iter().sum();
    let largest = streams.iter().copied().reduce(f64::max)?;
    let smallest = streams.iter().copied().reduce(f64::min)?;
    if !(3..=MAX_CONNECTIONS).contains(&streams.len()) || smallest <= 0.0 || largest < ALONE_FACTOR * smallest
    {
        return None;
    }
    let (goodput, layers) = (evidence.outcome.goodput_bps?, evidence.layer_bytes()?);
    (2..streams.len()).find_map(|used| {
        let member = ethernet::inferred_link(goodput / used as f64, &layers, FULL_SHARE)?;
        let below = evidence.line_rate_bps().is_none_or(|own| member.bps < own);
        let shares: Vec<f64> = streams.iter().map(|bytes| bytes / total * used as f64).collect();
        (below && fits(&shares, &mut vec![0.0; used])).then_some(Bundle { member, used })
    })
}

/// Whether the shares (in units of a member link) can be distributed so that each member link is exactly full.
fn fits(shares: &[f64], members: &mut Vec<f64>) -> bool {
    let Some((share, rest)) = shares.split_first() else {
        return members.iter().all(|filled| (filled - 1.0).abs() <= SUM_TOLERANCE);
    };
    (0..members.len()).any(|number| {
        members[number] += share;
        let found = members[number] <= 1.0 + SUM_TOLERANCE && fits(rest, members);
        members[number] -= share;
        found
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::full_gigabit;
    use linerate_model::Cause;

    /// Three connections from a host of 10 Gb/s: one alone on a gigabit member link, two on another.
    fn bundled(bytes: &[f64], goodput: f64) -> Evidence {
        let mut evidence = full_gigabit();
        evidence.link.link_bps = Some(10e9);
        evidence.outcome.streams = Some(bytes.len() as u32);
        evidence.outcome.stream_bytes = bytes.to_vec();
        evidence.outcome.goodput_bps = Some(goodput);
        evidence.outcome.intervals_bps =
            (0..90).map(|i| goodput * if i % 2 == 0 { 0.999 } else { 1.001 }).collect();
        evidence
    }

    #[test]
    fn one_alone_and_two_together_on_two_gigabits_are_a_bundle() {
        let finding = diagnose(&bundled(&[1.0e9, 0.6e9, 0.41e9], 1.88e9)).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::Lag, &Rule::LagImbalance));
        assert_eq!(finding.evidence[&EvidenceKey::MembersUsed], 2.0);
        assert_eq!(finding.evidence[&EvidenceKey::MemberBps], 1e9);
    }

    #[test]
    fn shares_that_fill_no_member_and_even_ones_are_no_bundle() {
        assert_eq!(rule(&bundled(&[0.8e9, 0.7e9, 0.4e9], 1.88e9)), None, "no group fills a member");
        assert_eq!(rule(&bundled(&[1.0e9, 1.0e9], 1.88e9)), None, "two lines or one of two gigabits");
        assert_eq!(rule(&bundled(&[0.5e9; 4], 1.88e9)), None, "fair shares of anything");
        assert_eq!(rule(&bundled(&[1.0e9, 0.6e9, 0.4e9], 1.5e9)), None, "no multiple of a standard rate");
        assert_eq!(rule(&bundled(&[1.0e9, 0.6e9, 0.4e9], 9.4e9)), None, "the link itself is full");
    }

    #[test]
    fn a_rate_that_sways_is_not_full_members() {
        let mut evidence = bundled(&[1.0e9, 0.6e9, 0.4e9], 1.88e9);
        evidence.outcome.intervals_bps = vec![1.5e9, 2.2e9, 1.5e9, 2.2e9];
        assert_eq!(rule(&evidence), None);
    }
}
