//! V08: one core of the receiver is full, or the host drops what it cannot process.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::cpu_sender::{
    got_what_it_asked, is_near, is_nearly_full, load, ready, remedy, sends_all_it_can, share,
};
use super::{FindingBuilder, confidence, core_is_full, host_busy};
use crate::evidence::{Evidence, FlowTransport};

/// Loss from which drops in the host must be explained.
const MIN_LOSS: f64 = 1e-4;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    full_core(evidence).or_else(|| drops(evidence))
}

fn full_core(evidence: &Evidence) -> Option<Finding> {
    let host = &evidence.receiver;
    let full = core_is_full(host);
    let nearly = is_nearly_full(evidence, host) && share(host) > share(&evidence.sender);
    let wants = host_busy::wants_more(evidence, host) && ready(host) > ready(&evidence.sender);
    if (!full && !nearly && !wants) || got_what_it_asked(evidence, host) {
        return None;
    }
    // With both ends full, a closing window or the busier thread shows which end waits for the other.
    let window_closes = evidence.tcp.receiver_window_share.is_some_and(|held| held > 0.25);
    if core_is_full(&evidence.sender) && !window_closes && share(host) < share(&evidence.sender) + 0.02 {
        return None;
    }
    let text = format!("The receiver's CPU is the limit: {}.", load(host));
    finish(evidence, confidence(is_near(host) || wants, full)?, &text)
}

fn drops(evidence: &Evidence) -> Option<Finding> {
    let lossy = evidence.loss().is_some_and(|loss| loss > MIN_LOSS);
    let in_stack = evidence.receiver.softnet_dropped_per_s.is_some_and(|rate| rate > 0.0);
    let in_socket = evidence.transport == FlowTransport::Udp
        && evidence.udp.buffer_drops.zip(evidence.udp.lost).is_some_and(|(drops, lost)| drops >= 0.5 * lost);
    if !lossy || !(in_stack || in_socket) || sends_all_it_can(evidence) {
        return None;
    }
    let text = if in_socket {
        let drops = evidence.udp.buffer_drops.unwrap_or(0.0);
        format!(
            "The receiver's socket buffer dropped {drops:.0} datagrams: the application does not keep up."
        )
    } else {
        "The receiving host drops packets before its protocol stack.".to_owned()
    };
    finish(evidence, Confidence::Probable, &text)
}

fn finish(evidence: &Evidence, sure: Confidence, text: &str) -> Option<Finding> {
    let host = &evidence.receiver;
    let squeezed = host.softnet_squeezed_per_s.filter(|rate| *rate > 10.0).map_or_else(String::new, |rate| {
        format!(" Packet processing exceeded its budget {rate:.0} times per second.")
    });
    FindingBuilder::new(Rule::CpuReceiver, sure, format!("{text}{squeezed}"))
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::ReceiverThreadShare, host.thread_share)
        .with(EvidenceKey::ReceiverThreadWaitShare, host.thread_wait_share)
        .with(EvidenceKey::ReceiverQuotaThrottledShare, host.quota_throttled_share)
        .with(EvidenceKey::ReceiverSoftirqShare, host.softirq_share)
        .with(EvidenceKey::SoftnetDroppedPerS, host.softnet_dropped_per_s)
        .with(EvidenceKey::SoftnetSqueezedPerS, host.softnet_squeezed_per_s)
        .with(EvidenceKey::BufferDrops, evidence.udp.buffer_drops)
        .with(EvidenceKey::LossRatio, evidence.loss())
        .share(host.thread_full_share.filter(|share| *share > 0.5))
        .remedy(remedy(
            host,
            "Receive several streams on several cores, enable GRO, enlarge the RX rings, distribute \
                 interrupts over cores, or use a larger MTU.",
        ))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, loopback};
    use linerate_model::Cause;

    fn receiver_full() -> Evidence {
        let mut evidence = loopback();
        evidence.sender.thread_share = Some(0.7);
        evidence.receiver.thread_share = Some(0.99);
        evidence
    }

    /// Busy loops run next to a sender that makes a call for every few bytes. Threads at both ends wait for a
    /// processor, but only the sender's is never idle.
    #[test]
    fn among_busy_programs_the_thread_that_was_never_idle_is_named() {
        let mut evidence = loopback();
        for (host, runs, waits) in [(&mut evidence.sender, 0.42, 0.54), (&mut evidence.receiver, 0.25, 0.37)]
        {
            (host.thread_share, host.thread_wait_share) = (Some(runs), Some(waits));
            (host.thread_full_share, host.others_share) = (None, Some(0.51));
            host.all_cores_share = Some(1.0);
        }
        assert_eq!(rule(&evidence), None);
        assert!(super::super::cpu_sender::rule(&evidence).is_some());
        std::mem::swap(&mut evidence.sender, &mut evidence.receiver);
        assert!(rule(&evidence).is_some());
        assert_eq!(super::super::cpu_sender::rule(&evidence), None);
    }

    #[test]
    fn a_full_core_is_the_limit() {
        assert_eq!(rule(&receiver_full()).map(|finding| finding.confidence), Some(Confidence::Confirmed));
        assert_eq!(rule(&full_gigabit()), None);
        assert_eq!(rule(&long_path()), None);
    }

    #[test]
    fn with_both_full_the_window_shows_who_waits() {
        let mut evidence = receiver_full();
        evidence.sender.thread_share = Some(0.99);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.receiver_window_share = Some(0.6);
        assert!(rule(&evidence).is_some());
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_all_the_time_has_a_full_one() {
        let mut evidence = long_path();
        evidence.windows.rcv_buf_asked_bytes = None;
        evidence.windows.queue_median_share = Some(0.9);
        evidence.receiver.thread_share = Some(0.25);
        assert_eq!(
            crate::diagnose(&evidence).primary.rule,
            Rule::SlowReader,
            "a reader at its ease is slow a limit of its own"
        );
        evidence.receiver.thread_wait_share = Some(0.74);
        let finding = crate::diagnose(&evidence).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::CpuReceiver, &Rule::CpuReceiver));
        assert!(finding.text.contains("waited for a core 74.0 % of the time"), "{}", finding.text);
        evidence.receiver.softirq_share = Some(0.3);
        assert!(rule(&evidence).unwrap().text.contains("waited"), "what fills the core, not what is larger");
        let mut paced = evidence.clone();
        paced.asked.max_pacing_bps = paced.outcome.goodput_bps;
        assert_eq!(rule(&paced), None, "it did what it was asked");
        evidence.receiver.thread_wait_share = Some(0.3);
        assert_ne!(
            crate::diagnose(&evidence).primary.rule,
            Rule::CpuReceiver,
            "it was idle for almost half of the time"
        );
    }

    #[test]
    fn datagrams_lost_in_the_socket_buffer_are_the_hosts() {
        let mut evidence = full_gigabit();
        evidence.transport = FlowTransport::Udp;
        evidence.udp.packets = Some(1000.0);
        evidence.udp.lost = Some(100.0);
        evidence.udp.buffer_drops = Some(10.0);
        assert_eq!(rule(&evidence), None, "most were lost elsewhere");
        evidence.udp.buffer_drops = Some(95.0);
        assert!(rule(&evidence).is_some());
    }

    #[test]
    fn drops_without_loss_mean_nothing() {
        let mut evidence = full_gigabit();
        evidence.receiver.softnet_dropped_per_s = Some(5.0);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.retransmits = Some(5000.0);
        assert!(rule(&evidence).is_some());
    }

    /// Measured: 1 Gb/s in packets of 256 bytes, with 96 % of a core at the sender and 0.06 % of them dropped.
    #[test]
    fn a_few_drops_are_not_the_limit_of_a_sender_whose_core_is_full() {
        let mut evidence = loopback();
        evidence.receiver.softnet_dropped_per_s = Some(198.0);
        evidence.tcp.retransmits = Some(5000.0);
        (evidence.tcp.unacked_bytes, evidence.tcp.cwnd_bytes) = (Some(1e5), Some(1e6));
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::CpuSender);
        evidence.sender.thread_share = Some(0.5);
        assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::CpuReceiver);
    }
}
