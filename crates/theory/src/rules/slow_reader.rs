//! V05: the receiving application reads too slowly.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, TINY_BUFFER_BYTES, any_core_is_full, disk_limits, near};
use crate::evidence::Evidence;
use crate::{ceilings, format};

/// From this share of the busy time, a closed window is the limit.
const HELD_SHARE: f64 = 0.25;
/// Largest relative difference between the goodput and the read rate.
const RATE_TOLERANCE: f64 = 0.05;
/// If the receive buffer is filled to less than this share, nothing waits.
const EMPTY_BUFFER_SHARE: f64 = 0.1;
/// A reader that waits for a processor for at least this share of the time is slow because of that.
const RUN_QUEUE_SHARE: f64 = 0.1;
/// A reader with at least this share of a core is limited by the core.
const BUSY_CORE_SHARE: f64 = 0.8;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let asked = read_rate_holds(evidence);
    let held = evidence.tcp.receiver_window_share;
    let closed = held.is_some_and(|share| share > HELD_SHARE) && queue_is_full(evidence);
    let reader = &evidence.receiver;
    let host_is_limit = any_core_is_full(evidence)
        || reader.thread_share.is_some_and(|share| share >= BUSY_CORE_SHARE)
        || reader.thread_wait_share.is_some_and(|share| share >= RUN_QUEUE_SHARE);
    if !asked && (!closed || host_is_limit) {
        return None;
    }
    let disk = disk_limits(evidence, reader).filter(|_| !asked);
    let text = match (evidence.asked.read_bps.filter(|_| asked), disk) {
        (Some(read), _) => {
            format!("The test limits the receiver's reads to {}, and no more arrived.", format::rate(read))
        }
        (None, Some(bps)) => format!(
            "The receive buffer was full: the disk, which alone writes {}, does not keep up.",
            format::rate(bps)
        ),
        (None, None) => "The receive buffer was full: the receiving application does not keep up.".to_owned(),
    };
    let sure = if asked || disk.is_some() { Confidence::Confirmed } else { Confidence::Probable };
    FindingBuilder::new(Rule::SlowReader, sure, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::ReadBps, evidence.asked.read_bps)
        .with(EvidenceKey::DiskBps, disk)
        .with(EvidenceKey::ReceiverWindowShare, held)
        .with(EvidenceKey::ReceiveQueueShare, evidence.windows.queue_median_share)
        .with(EvidenceKey::ZeroWindows, evidence.windows.zero_windows)
        .with(EvidenceKey::ReceiverThreadShare, evidence.receiver.thread_share)
        .share(held)
        .remedy("Read faster at the receiver: its application or its disk is the limit.")
        .finish()
}

/// Whether the test set a read rate and the goodput reached it.
pub(super) fn read_rate_holds(evidence: &Evidence) -> bool {
    let link = evidence.line_rate_bps().and_then(|rate| ceilings::link_goodput_bps(evidence, rate));
    let link_first = link.zip(evidence.asked.read_bps).is_some_and(|(link, read)| link < read);
    let near = |goodput| near(goodput, evidence.asked.read_bps, RATE_TOLERANCE);
    !link_first && evidence.outcome.goodput_bps.is_some_and(near)
}

/// Whether data waited at the receiver for the application to read it.
pub(super) fn queue_is_full(evidence: &Evidence) -> bool {
    let windows = &evidence.windows;
    // One segment fills a tiny buffer, so its fill says nothing about the reader.
    if windows.rcv_buf_bytes.is_some_and(|buffer| buffer < TINY_BUFFER_BYTES) {
        return false;
    }
    let happened = |count: Option<f64>| count.is_some_and(|count| count > 0.0);
    // A window as small as its buffer closes at any short delay of a busy host and opens again. That is normal
    // if nothing waits in at least half of the samples.
    let mostly_empty = windows.queue_median_share.is_some_and(|share| share < EMPTY_BUFFER_SHARE);
    windows.queue_median_share.is_some_and(|share| share > 0.5)
        || (!mostly_empty && (happened(windows.zero_windows) || happened(windows.pruned)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path};

    fn full_queue() -> Evidence {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(200e6);
        evidence.tcp.receiver_window_share = Some(0.9);
        evidence.windows.queue_median_share = Some(0.9);
        evidence
    }

    #[test]
    fn a_full_queue_behind_a_closed_window_is_a_slow_reader() {
        assert_eq!(rule(&full_queue()).map(|finding| finding.confidence), Some(Confidence::Probable));
    }

    #[test]
    fn a_disk_that_alone_is_as_slow_is_the_limit() {
        let mut evidence = full_queue();
        evidence.receiver.disk_bps = Some(210e6);
        let finding = rule(&evidence).unwrap();
        assert_eq!(finding.confidence, Confidence::Confirmed);
        assert_eq!(finding.evidence[&EvidenceKey::DiskBps], 210e6);
        evidence.receiver.disk_bps = Some(2e9);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
    }

    #[test]
    fn a_rate_of_reading_that_was_asked_for_is_certain() {
        let mut evidence = full_queue();
        evidence.asked.read_bps = Some(198e6);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Confirmed));
    }

    #[test]
    fn a_rate_of_reading_above_the_link_is_no_limit() {
        let mut evidence = full_gigabit();
        evidence.asked.read_bps = Some(960e6);
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::LinkFull);
    }

    #[test]
    fn an_empty_queue_or_a_full_core_is_something_else() {
        assert_eq!(rule(&long_path()), None);
        let mut evidence = full_queue();
        evidence.receiver.thread_share = Some(0.99);
        assert_eq!(rule(&evidence), None);
        let mut evidence = full_queue();
        evidence.sender.thread_share = Some(0.99);
        assert_eq!(rule(&evidence), None, "a sender that is full does not wait");
        let mut evidence = full_queue();
        evidence.receiver.thread_wait_share = Some(0.15);
        assert_eq!(rule(&evidence), None, "it waits for a processor");
        let mut evidence = full_queue();
        evidence.windows.queue_median_share = Some(0.03);
        evidence.windows.zero_windows = Some(3.0);
        assert_eq!(rule(&evidence), None, "a closed window for a moment, and nothing waits");
        evidence.windows.queue_median_share = Some(0.3);
        assert!(rule(&evidence).is_some());
        let mut evidence = full_gigabit();
        evidence.windows.zero_windows = Some(3.0);
        assert_eq!(rule(&evidence), None, "a closed window for a moment holds nothing");
    }

    #[test]
    fn one_segment_in_a_tiny_buffer_is_no_slow_reader() {
        let mut evidence = long_path();
        evidence.windows.queue_median_share = Some(0.63);
        evidence.windows.rcv_buf_bytes = Some(1e6);
        assert!(queue_is_full(&evidence));
        evidence.windows.rcv_buf_bytes = Some(8192.0);
        assert!(!queue_is_full(&evidence));
    }
}
