//! V07: one core of the sender is full.

use linerate_model::{EvidenceKey, Finding, Rule};

use super::{
    FindingBuilder, QUOTA_REMEDY, STARVED_SHARE, confidence, core_is_full, granted, host_busy, is_crowded,
    is_starved, rate_was_asked_for, uses_up_its_quota,
};
use crate::evidence::{Evidence, FlowTransport, HostEvidence};
use crate::format;

/// From this share of a core, the rate is close to what the core can do. Used where no link rate is known.
const NEARLY_FULL_CORE_SHARE: f64 = 0.85;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let host = &evidence.sender;
    let nearly = is_nearly_full(evidence, host) && share(host) >= share(&evidence.receiver);
    let wants = host_busy::wants_more(evidence, host) && ready(host) >= ready(&evidence.receiver);
    if (!core_is_full(host) && !nearly && !wants) || got_what_it_asked(evidence, host) {
        return None;
    }
    let sure = confidence(is_near(host) || wants, core_is_full(host) && window_is_unused(evidence))?;
    let text = format!("The sender's CPU is the limit: {}.", load(host));
    FindingBuilder::new(Rule::CpuSender, sure, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::SenderThreadShare, host.thread_share)
        .with(EvidenceKey::SenderThreadWaitShare, host.thread_wait_share)
        .with(EvidenceKey::SenderQuotaThrottledShare, host.quota_throttled_share)
        .with(EvidenceKey::SenderSoftirqShare, host.softirq_share)
        .with(EvidenceKey::ReceiverThreadShare, evidence.receiver.thread_share)
        .share(host.thread_full_share.filter(|share| *share > 0.5))
        .remedy(remedy(
            host,
            "Use several streams on several cores, zero-copy, segmentation offload or a larger MTU.",
        ))
        .finish()
}

/// The remedy for a host without a CPU quota, or the one for its quota: with that, more cores do not help.
pub(super) fn remedy(host: &HostEvidence, without_quota: &'static str) -> &'static str {
    if uses_up_its_quota(host) { QUOTA_REMEDY } else { without_quota }
}

/// Whether a TCP sender's full core, and nothing on the path, held the rate: a lost packet closes a window that
/// the sender could not fill anyway.
pub(super) fn sends_all_it_can(evidence: &Evidence) -> bool {
    evidence.transport == FlowTransport::Tcp && core_is_full(&evidence.sender) && window_is_unused(evidence)
}

/// Whether the congestion window was not fully used, as when a core is the limit.
fn window_is_unused(evidence: &Evidence) -> bool {
    let flight = evidence.tcp.unacked_bytes.zip(evidence.tcp.cwnd_bytes);
    flight.is_none_or(|(flight, cwnd)| flight < 0.7 * cwnd)
}

/// Whether a thread that waits for a processor nevertheless achieved the rate that the test requested.
pub(super) fn got_what_it_asked(evidence: &Evidence, host: &HostEvidence) -> bool {
    (is_starved(host) || uses_up_its_quota(host)) && rate_was_asked_for(evidence)
}

/// Whether the host's busiest thread nearly fills a core and no link rate is known.
pub(super) fn is_nearly_full(evidence: &Evidence, host: &HostEvidence) -> bool {
    evidence.line_rate_bps().is_none() && wanted(host) >= NEARLY_FULL_CORE_SHARE * granted(host)
}

/// Whether the thread uses nearly all of the processor that it can get.
pub(super) fn is_near(host: &HostEvidence) -> bool {
    core_is_full(host) || wanted(host) >= NEARLY_FULL_CORE_SHARE * granted(host)
}

/// The busiest thread's share of a core, 0 if unknown.
pub(super) fn share(host: &HostEvidence) -> f64 {
    host.thread_share.unwrap_or(0.0)
}

/// Share of the time in which the busiest thread was not idle: it ran or waited for a processor.
pub(super) fn ready(host: &HostEvidence) -> f64 {
    share(host) + host.thread_wait_share.unwrap_or(0.0)
}

/// The share of a core that the busiest thread wanted: the share it had plus the time it was ready and waited.
/// A long wait caused by other programs is left out, because it does not show what the thread wanted.
fn wanted(host: &HostEvidence) -> f64 {
    let waits = host.thread_wait_share.filter(|waits| *waits < STARVED_SHARE || !host_busy::by_others(host));
    share(host) + waits.unwrap_or(0.0)
}

/// What fills the processor, as text.
pub(super) fn load(host: &HostEvidence) -> String {
    if let Some(used_up) = host.quota_throttled_share.filter(|_| uses_up_its_quota(host)) {
        return format!("its CPU quota was used up in {} of the periods", format::percent(used_up));
    }
    let thread = share(host);
    if let Some(waits) = host.thread_wait_share.filter(|_| is_starved(host)) {
        return format!(
            "its busiest thread used {} of a core and waited for a core {} of the time",
            format::percent(thread),
            format::percent(waits)
        );
    }
    if let Some(softirq) = host.softirq_share.filter(|softirq| *softirq > thread) {
        return format!("software interrupts took {} of a core", format::percent(softirq));
    }
    match host.all_cores_share.filter(|busy| is_crowded(host) && *busy > thread) {
        Some(busy) => format!("its cores were {} busy on average", format::percent(busy)),
        None => format!("its busiest thread took {} of a core", format::percent(thread)),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::Cause;
    use linerate_model::Confidence;

    use super::*;
    use crate::rules::examples::{full_gigabit, loopback, shaped};

    #[test]
    fn a_full_core_is_the_limit() {
        let mut evidence = loopback();
        evidence.tcp.cwnd_bytes = Some(1e7);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Confirmed));
        evidence.tcp.cwnd_bytes = evidence.tcp.unacked_bytes;
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
    }

    #[test]
    fn a_crowded_host_limits_its_busiest_thread() {
        let mut evidence = loopback();
        evidence.sender.thread_share = Some(0.7);
        evidence.receiver.thread_share = Some(0.5);
        assert_eq!(rule(&evidence), None);
        evidence.sender.all_cores_share = Some(0.98);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::CpuSender));
    }

    #[test]
    fn a_thread_that_waits_a_little_wants_the_whole_core() {
        let mut evidence = loopback();
        evidence.sender.thread_share = Some(0.83);
        evidence.receiver.thread_share = Some(0.5);
        assert_eq!(rule(&evidence), None);
        evidence.sender.thread_wait_share = Some(0.08);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::CpuSender));
        // A long wait caused by other programs, on a path with a queue, does not show what this thread wanted.
        evidence.sender.thread_share = Some(0.3);
        evidence.sender.thread_wait_share = Some(0.6);
        evidence.sender.others_share = Some(0.9);
        (evidence.tcp.retransmits, evidence.tcp.segments_sent) = (Some(1e3), Some(1e5));
        assert_eq!(rule(&evidence), None);
    }

    /// Between a thread that has a whole core and one that waits a fifth of the time.
    #[test]
    fn a_thread_that_is_never_idle_has_a_full_core_however_little_it_waits() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(500e6);
        (evidence.tcp.unacked_bytes, evidence.tcp.cwnd_bytes) = (Some(1e5), Some(1e6));
        for (runs, waits) in [(0.94, 0.06), (0.9, 0.1), (0.81, 0.19), (0.7, 0.3), (0.4, 0.6)] {
            (evidence.sender.thread_share, evidence.sender.thread_wait_share) = (Some(runs), Some(waits));
            let sure = rule(&evidence).map(|finding| finding.confidence);
            assert_eq!(sure, Some(Confidence::Confirmed), "{runs} {waits}");
            assert!(sends_all_it_can(&evidence), "what is dropped on the way costs nothing: {runs} {waits}");
        }
        (evidence.sender.thread_share, evidence.sender.thread_wait_share) = (Some(0.8), Some(0.1));
        assert_eq!(rule(&evidence), None, "it was idle for a tenth of the time");
    }

    /// The time in which a thread is stopped may count neither as running nor as waiting.
    #[test]
    fn a_quota_that_is_always_used_up_is_the_limit_however_small_its_share() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(100e6);
        (evidence.tcp.unacked_bytes, evidence.tcp.cwnd_bytes) = (Some(1e5), Some(1e6));
        (evidence.sender.thread_share, evidence.sender.thread_wait_share) = (Some(0.04), Some(0.0));
        for (used_up, expected) in
            [(None, None), (Some(0.5), None), (Some(0.97), Some(Confidence::Confirmed))]
        {
            evidence.sender.quota_throttled_share = used_up;
            assert_eq!(rule(&evidence).map(|finding| finding.confidence), expected, "{used_up:?}");
        }
        let found = crate::diagnose(&evidence).primary;
        assert!(found.text.contains("its CPU quota was used up in 97.0 % of the periods"), "{}", found.text);
        assert!(found.remedy.unwrap().starts_with("Raise the CPU limit of the container"));
        let ceilings = crate::ceilings::all(&evidence);
        let cpu = crate::ceilings::of(&ceilings, &linerate_model::Limit::CpuSender).unwrap();
        assert_eq!(cpu.bitrate_bps, 100e6, "what a whole core could do is not allowed");
        evidence.asked.max_pacing_bps = evidence.outcome.goodput_bps;
        assert_eq!(rule(&evidence), None, "it did what it was asked");
    }

    #[test]
    fn a_core_is_full_with_what_the_hypervisor_leaves_of_it() {
        let mut evidence = full_gigabit();
        evidence.sender.thread_share = Some(0.75);
        assert_eq!(rule(&evidence), None);
        evidence.sender.steal_share = Some(0.22);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::CpuSender));
    }

    #[test]
    fn interrupts_fill_a_core_too() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(500e6);
        evidence.sender.softirq_share = Some(0.95);
        assert!(rule(&evidence).unwrap().text.contains("software interrupts"));
    }

    #[test]
    fn nine_tenths_of_a_core_count_only_where_no_link_is() {
        let mut evidence = loopback();
        evidence.sender.thread_share = Some(0.9);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.receiver.thread_share = Some(0.93);
        assert_eq!(rule(&evidence), None, "the receiver is busier");
        let mut evidence = full_gigabit();
        evidence.sender.thread_share = Some(0.9);
        assert_eq!(rule(&evidence), None);
        assert_eq!(rule(&shaped(1e9)), None);
    }
}
