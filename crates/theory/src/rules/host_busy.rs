//! V27: other programs use a host's processors.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{
    FULL_CORE_SHARE, FindingBuilder, STARVED_SHARE, is_crowded, is_starved, link_full, rate_was_asked_for,
    uses_up_its_quota,
};
use crate::evidence::{Evidence, HostEvidence};
use crate::format;

/// If other programs use at least this share of all cores, they are the reason why a thread waits.
pub(crate) const BUSY_SHARE: f64 = 0.3;
/// If nothing else explains the rate, other programs with this share of all cores are suspected.
const SUSPECT_SHARE: f64 = 0.5;
/// With more loss than this, the network limits the flow and not a waiting thread.
const MAX_LOSS: f64 = 1e-3;

/// Runs before the rules for the path: a thread waits for a processor that others use, and no other limit is
/// visible.
pub(super) fn starved(evidence: &Evidence) -> Option<Finding> {
    let path = link_full::queue_was_seen(evidence) || evidence.loss().is_some_and(|loss| loss > MAX_LOSS);
    if path || rate_was_asked_for(evidence) {
        return None;
    }
    let waits = |host: &HostEvidence| by_others(host) && (is_starved(host) || is_crowded(host));
    finding(evidence, waits)
}

/// Runs after most other rules: other programs used most of a host, a thread waited at times, and nothing else
/// explains the rate.
pub(super) fn suspected(evidence: &Evidence) -> Option<Finding> {
    if rate_was_asked_for(evidence) {
        return None;
    }
    let waits = |host: &HostEvidence| {
        host.others_share.is_some_and(|others| others >= SUSPECT_SHARE)
            && host.thread_wait_share.is_some_and(|waits| waits >= STARVED_SHARE)
    };
    finding(evidence, waits)
}

/// Whether other programs keep the host busy and its thread wants more of a processor than it gets. The rules
/// for the host's own processor then also report, since the thread may be the limit on an idle machine too.
pub(super) fn wants_more(evidence: &Evidence, host: &HostEvidence) -> bool {
    (is_starved(host) || is_crowded(host)) && starved(evidence).is_some()
}

/// Whether other programs, and neither the thread itself nor its CPU quota, use the host's processors.
pub(super) fn by_others(host: &HostEvidence) -> bool {
    host.others_share.is_some_and(|others| others >= BUSY_SHARE)
        && !uses_up_its_quota(host)
        && host.thread_share.is_none_or(|share| share < FULL_CORE_SHARE)
}

fn finding(evidence: &Evidence, waits: impl Fn(&HostEvidence) -> bool) -> Option<Finding> {
    let sides = [("sending", &evidence.sender), ("receiving", &evidence.receiver)];
    let (side, host) = sides.into_iter().find(|(_, host)| waits(host))?;
    let others = format::percent(host.others_share?);
    let waited = host.thread_wait_share.map_or_else(String::new, |share| {
        format!(", and its thread waited for a core {} of the time", format::percent(share))
    });
    let text = format!(
        "Other programs used {others} of the {side} host's CPU{waited}: the host may be the limit rather \
         than the path."
    );
    FindingBuilder::new(Rule::HostBusy, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::OthersShare, host.others_share)
        .with(EvidenceKey::ThreadShare, host.thread_share)
        .with(EvidenceKey::ThreadWaitShare, host.thread_wait_share)
        .remedy("Measure again while the host is idle (`linerate doctor` shows its load).")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{loopback, shaped};
    use linerate_model::Cause;

    /// Memory to memory next to busy loops of other programs that use 90 % of all cores.
    fn with_busy_loops() -> Evidence {
        let mut evidence = loopback();
        evidence.rtt.loaded_p50_s = Some(0.000_02);
        evidence.sender.thread_share = Some(0.3);
        evidence.sender.thread_wait_share = Some(0.65);
        evidence.sender.others_share = Some(0.9);
        evidence.sender.all_cores_share = Some(1.0);
        evidence.receiver.thread_share = Some(0.2);
        evidence
    }

    #[test]
    fn a_thread_that_waits_for_others_is_not_what_fills_the_processor() {
        let verdict = diagnose(&with_busy_loops()).primary;
        assert_eq!((verdict.cause, verdict.confidence), (Cause::HostBusy, Confidence::Probable));
        assert!(verdict.text.contains("90.0 % of the sending host's CPU"), "{}", verdict.text);
        assert!(diagnose(&with_busy_loops()).also.iter().any(|finding| {
            (finding.cause, finding.confidence) == (Cause::CpuSender, Confidence::Probable)
        }));
        let found = diagnose(&with_busy_loops());
        assert!(
            found.also.iter().all(|finding| finding.rule != found.primary.rule),
            "listed once: {found:?}"
        );
        let mut own = with_busy_loops();
        own.sender.others_share = Some(0.1);
        assert_eq!(diagnose(&own).primary.cause, Cause::CpuSender, "its own work, or a quota");
        let mut full = with_busy_loops();
        full.sender.thread_share = Some(0.99);
        assert_eq!(diagnose(&full).primary.cause, Cause::CpuSender, "it has a whole core all the same");
    }

    #[test]
    fn a_queue_on_the_path_is_the_path_however_busy_the_host_is() {
        let mut evidence = shaped(37e6);
        evidence.sender.thread_share = Some(0.05);
        evidence.sender.thread_wait_share = Some(0.9);
        evidence.sender.others_share = Some(0.9);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Shaper);
    }

    #[test]
    fn a_ramp_that_a_busy_host_drew_out_is_the_hosts() {
        let mut evidence = with_busy_loops();
        // The thread waits too little to count as starved, and the ramp took longer than the rest.
        evidence.sender.thread_wait_share = Some(0.3);
        evidence.sender.all_cores_share = Some(0.9);
        evidence.asked.from_memory = true;
        (evidence.outcome.ramp_s, evidence.outcome.measured_s) = (Some(2.0), Some(1.4));
        let found = diagnose(&evidence);
        assert_eq!(found.primary.cause, Cause::HostBusy, "{:?}", found.primary);
        assert!(found.also.iter().any(|finding| finding.rule == Rule::TooShort), "{:?}", found.also);
        evidence.sender.others_share = Some(0.1);
        assert_eq!(diagnose(&evidence).primary.rule, Rule::TooShort, "an idle host");
    }

    #[test]
    fn a_busy_host_is_suspected_where_nothing_else_explains_the_rate() {
        let mut evidence = shaped(37e6);
        evidence.rtt.loaded_p50_s = Some(0.0001);
        evidence.rtt.mean_s = Some(0.0001);
        evidence.outcome.intervals_bps = [20e6, 50e6].repeat(45);
        evidence.sender.thread_share = Some(0.05);
        evidence.sender.thread_wait_share = Some(0.3);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::Unknown);
        evidence.sender.others_share = Some(0.7);
        assert_eq!(diagnose(&evidence).primary.cause, Cause::HostBusy);
    }
}
