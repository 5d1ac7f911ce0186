//! V03: the sending application does not supply data fast enough.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, core_is_full, disk_limits, link_full, rate_was_asked_for, send_buffer};
use crate::evidence::Evidence;
use crate::format;

/// If data is outstanding for less than this share of the time, the sender waits for its application.
const BUSY_SHARE: f64 = 0.9;
/// A thread with at least this share of a core may itself be the limit.
const BUSY_CORE_SHARE: f64 = 0.6;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let tcp = &evidence.tcp;
    let idle = tcp.busy_share.is_some_and(|share| share < BUSY_SHARE);
    let app_limited = tcp.app_limited_share.is_some_and(|share| share > 0.5);
    let segment = evidence.link.mss_bytes.unwrap_or(1448.0);
    let nothing_waits = tcp.not_sent_bytes.is_none_or(|bytes| bytes <= 2.0 * segment);
    let host_is_limit = core_is_full(&evidence.sender)
        || evidence.sender.thread_share.is_some_and(|share| share >= BUSY_CORE_SHARE)
        || core_is_full(&evidence.receiver);
    let windows_limit =
        [tcp.receiver_window_share, tcp.send_buffer_share].into_iter().flatten().any(|share| share > 0.25);
    // Data generated in memory is always available. If the thread is late, the host is the cause.
    let explained = host_is_limit
        || evidence.asked.from_memory
        || evidence.has_standing_queue()
        || windows_limit
        || rate_was_asked_for(evidence)
        || link_full::own_link_is_full(evidence)
        || send_buffer::rule(evidence).is_some();
    if !(idle || app_limited) || !nothing_waits || explained {
        return None;
    }
    let waiting = tcp.busy_share.map(|busy| 1.0 - busy);
    let text = waiting.filter(|_| idle).map_or_else(
        || "The sender had nothing to send in most samples.".to_owned(),
        |share| format!("For {} of the time the sender had nothing to send.", format::percent(share)),
    );
    let disk = disk_limits(evidence, &evidence.sender);
    let (sure, text, remedy) = match disk {
        Some(bps) => (
            Confidence::Confirmed,
            format!("{text} The file alone is read at {}, so its disk is the limit.", format::rate(bps)),
            "Read from a faster disk; to measure the path, test from memory.",
        ),
        None => {
            (Confidence::Probable, text, "The data source is too slow: test from memory, or check the disk.")
        }
    };
    FindingBuilder::new(Rule::SlowSource, sure, text)
        .with(EvidenceKey::DiskBps, disk)
        .with(EvidenceKey::BusyShare, tcp.busy_share)
        .with(EvidenceKey::AppLimitedShare, tcp.app_limited_share)
        .with(EvidenceKey::NotSentBytes, tcp.not_sent_bytes)
        .share(waiting.filter(|_| idle).or(tcp.app_limited_share))
        .remedy(remedy)
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, loopback};
    use linerate_model::Cause;

    fn starved() -> Evidence {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(300e6);
        evidence.tcp.busy_share = Some(0.4);
        evidence.tcp.app_limited_share = Some(0.8);
        evidence.tcp.not_sent_bytes = Some(0.0);
        (evidence.rtt.mean_s, evidence.rtt.loaded_p50_s) = (Some(0.0003), Some(0.0003));
        evidence
    }

    #[test]
    fn an_idle_sender_waits_for_its_source() {
        let finding = rule(&starved()).unwrap();
        assert_eq!(finding.cause, Cause::Application);
        assert!((finding.share_of_time.unwrap() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_disk_that_alone_is_as_slow_is_the_limit_and_a_faster_one_is_not() {
        let with_disk = |bps: f64| {
            let mut evidence = starved();
            evidence.sender.disk_bps = Some(bps);
            crate::diagnose(&evidence).primary
        };
        let finding = with_disk(330e6);
        assert_eq!((finding.rule.clone(), finding.confidence), (Rule::SlowSource, Confidence::Confirmed));
        assert_eq!(finding.evidence[&EvidenceKey::DiskBps], 330e6);
        // Beyond the disk, the receiver's core, which 300 Mb/s fill to 40 %.
        assert!((finding.evidence[&EvidenceKey::AfterRemedyBps] / 750e6 - 1.0).abs() < 1e-9, "{finding:?}");
        let finding = with_disk(2e9);
        assert_eq!((finding.rule, finding.confidence), (Rule::SlowSource, Confidence::Probable));
        assert!(!finding.evidence.contains_key(&EvidenceKey::DiskBps));
    }

    #[test]
    fn payload_made_in_memory_and_a_standing_queue_speak_against_it() {
        let mut evidence = starved();
        assert!(rule(&evidence).is_some());
        evidence.asked.from_memory = true;
        assert_eq!(rule(&evidence), None);
        let mut shaped = crate::rules::examples::shaped(1e9);
        shaped.tcp.app_limited_share = Some(0.87);
        shaped.tcp.not_sent_bytes = Some(0.0);
        assert_eq!(crate::diagnose(&shaped).primary.rule, Rule::Shaper, "a queue of 50 ms stays");
    }

    #[test]
    fn waiting_data_or_a_busy_core_speak_against_it() {
        let mut evidence = starved();
        evidence.tcp.not_sent_bytes = Some(1e6);
        assert_eq!(rule(&evidence), None);
        let mut evidence = starved();
        evidence.sender.thread_share = Some(0.97);
        assert_eq!(rule(&evidence), None);
        assert_eq!(rule(&loopback()), None, "there the core is the limit");
        assert_eq!(rule(&full_gigabit()), None);
    }
}
