//! The gain of a remedy: the ceiling that binds next.

use linerate_model::{Ceiling, EvidenceKey, Finding, Limit, Rule};

use crate::domain::positive;
use crate::evidence::Evidence;
use crate::rules::TURNAROUND_S;
use crate::{ceilings, format};

/// The next ceiling is reported if it is at least this factor above the measured rate.
const MIN_GAIN: f64 = 1.05;

/// The limits that are windows over a round trip.
const WINDOWS: [Limit; 2] = [Limit::ReceiverWindow, Limit::SendBuffer];

/// Adds the highest rate that the remedy could give (`after_remedy_bps`) to the finding, if the ceilings give
/// one.
///
/// If the next ceiling is below the measured rate, it is wrong, and nothing is added.
pub(crate) fn with(mut finding: Finding, evidence: &Evidence, ceilings: &[Ceiling]) -> Finding {
    let next = remedied(&finding).and_then(|remedied| {
        // One option (`-w`) sets both buffers; without it, the kernel sets both.
        let both = matches!(&remedied, Remedied::Ceiling(limit) if WINDOWS.contains(limit))
            && evidence.windows.rcv_buf_asked_bytes.is_some();
        let left: Vec<Ceiling> = ceilings
            .iter()
            .filter(|ceiling| remedied != Remedied::Ceiling(ceiling.limit.clone()))
            .filter(|ceiling| !(both && WINDOWS.contains(&ceiling.limit)))
            .cloned()
            .collect();
        ceilings::binding(&left).filter(|next| !is_beyond_the_hosts(next, evidence)).cloned()
    });
    let goodput = evidence.outcome.goodput_bps.and_then(positive);
    let (Some(next), Some(goodput), Some(remedy)) = (next, goodput, finding.remedy.as_mut()) else {
        return finding;
    };
    if next.bitrate_bps < MIN_GAIN * goodput {
        return finding;
    }
    let rate = format::rate(next.bitrate_bps);
    remedy.push_str(&format!(" The next limit is then {rate} ({}: {}).", next.limit.words(), next.because));
    finding.evidence.insert(EvidenceKey::AfterRemedyBps, next.bitrate_bps);
    finding
}

/// Whether a window allows so much because the path is so short that the hosts take longer than the path. Their own
/// time then is the next limit, and it is not known.
fn is_beyond_the_hosts(next: &Ceiling, evidence: &Evidence) -> bool {
    WINDOWS.contains(&next.limit) && evidence.base_rtt_s().is_some_and(|rtt| rtt < TURNAROUND_S)
}

/// The effect of a remedy on the ceilings.
#[derive(Debug, PartialEq)]
pub(crate) enum Remedied {
    /// It removes this ceiling.
    Ceiling(Limit),
    /// It helps, but removes none of the ceilings.
    NoCeiling,
}

/// The ceiling that a finding's remedy removes. The remedy for a full link, a shaper or a policer removes none, and
/// there is nothing to promise.
pub(crate) fn remedied(finding: &Finding) -> Option<Remedied> {
    Some(Remedied::Ceiling(match finding.rule {
        Rule::SlowSource | Rule::SlowReader if finding.evidence.contains_key(&EvidenceKey::DiskBps) => {
            Limit::Disk
        }
        Rule::SlowSource | Rule::SlowReader => Limit::Application,
        Rule::ReceiverWindow => Limit::ReceiverWindow,
        Rule::SendBuffer => Limit::SendBuffer,
        Rule::CpuSender => Limit::CpuSender,
        Rule::CpuReceiver => Limit::CpuReceiver,
        Rule::Pacing => Limit::Pacing,
        Rule::SlowStartUnfinished | Rule::WindowRegrowth | Rule::PrematureSlowStartExit => {
            return Some(Remedied::NoCeiling);
        }
        Rule::DamagedLink | Rule::RandomLoss | Rule::Reordering | Rule::Timeouts | Rule::LocalDrops => {
            Limit::Loss
        }
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use linerate_model::{EvidenceKey, Rule};

    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, long_path, lossy_path};

    #[test]
    fn a_larger_window_promises_the_rung_above_it() {
        // A window of 64 KiB over 21 ms on a gigabit. Of other limits only the cores are known: 24.97 Mb/s at
        // 0.4 of one.
        let finding = diagnose(&long_path()).primary;
        assert_eq!(finding.rule, Rule::ReceiverWindow);
        let next = 65536.0 * 8.0 / 0.021 / 0.4;
        assert!((finding.evidence[&EvidenceKey::AfterRemedyBps] / next - 1.0).abs() < 1e-9, "{finding:?}");
        assert!(finding.remedy.unwrap().contains("The next limit is then 62.42 Mb/s (cpu receiver: "));
    }

    #[test]
    fn leaving_an_option_out_frees_both_buffers() {
        let mut evidence = long_path();
        evidence.windows.snd_buf_asked_bytes = evidence.windows.rcv_buf_asked_bytes;
        evidence.windows.snd_buf_bytes = Some(160_000.0);
        let promised = diagnose(&evidence).primary.evidence[&EvidenceKey::AfterRemedyBps];
        assert!((promised / 62.42e6 - 1.0).abs() < 1e-3, "not the 40 Mb/s of the send buffer: {promised}");
    }

    /// A smallest round trip of 1 us, which the kernel reports between neighbours, made 33 Tb/s of a buffer of 4 MiB.
    #[test]
    fn a_window_over_a_path_of_no_length_promises_nothing() {
        for (rtt, promised) in [(1e-6, false), (40e-6, false), (60e-6, true)] {
            let mut evidence = full_gigabit();
            (evidence.link.link_bps, evidence.outcome.goodput_bps) = (None, Some(500e6));
            (evidence.sender.thread_share, evidence.receiver.thread_share) = (Some(0.99), None);
            (evidence.rtt.min_s, evidence.rtt.idle_min_s) = (Some(rtt), Some(rtt));
            evidence.windows.wmem_max_bytes = Some(4_194_304.0);
            let finding = diagnose(&evidence).primary;
            assert_eq!(finding.rule, Rule::CpuSender);
            assert_eq!(
                finding.evidence.contains_key(&EvidenceKey::AfterRemedyBps),
                promised,
                "{rtt} {finding:?}"
            );
        }
    }

    #[test]
    fn without_loss_the_link_is_next() {
        let mut evidence = lossy_path(1e-4);
        evidence.sender.thread_share = None;
        evidence.receiver.thread_share = None;
        let finding = diagnose(&evidence).primary;
        assert_eq!(finding.rule, Rule::RandomLoss);
        assert!((finding.evidence[&EvidenceKey::AfterRemedyBps] - 941.48e6).abs() < 1e4);
    }

    #[test]
    fn a_full_link_and_ceilings_below_the_rate_promise_nothing() {
        let finding = diagnose(&full_gigabit()).primary;
        assert!(!finding.evidence.contains_key(&EvidenceKey::AfterRemedyBps));
        let mut evidence = long_path();
        evidence.asked.max_pacing_bps = Some(20e6);
        let finding = diagnose(&evidence).primary;
        assert!(!finding.evidence.contains_key(&EvidenceKey::AfterRemedyBps), "{finding:?}");
    }
}
