//! V12: HyStart left slow start long before the path was full.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, window_regrowth};
use crate::evidence::Evidence;
use crate::{bdp, ceilings, format};

/// Leaving slow start with less than this share of the bandwidth-delay product is early.
const EARLY_EXIT_SHARE: f64 = 0.5;

/// Relative rise of the round trip under load that shows a standing queue at the bottleneck.
const QUEUE_RISE_SHARE: f64 = 0.25;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let limits = window_regrowth::nothing_else_limits(evidence)
        && window_regrowth::window_is_used(evidence)
        && !waits_longer(evidence);
    if !left_early(evidence) || !limits {
        return None;
    }
    let (left_at, product) = (evidence.tcp.hystart_window_bytes?, product_bytes(evidence)?);
    let text = format!(
        "HyStart ended slow start at {} in flight, {} of the BDP, although nothing was lost. The rate \
         then grew slowly.",
        format::size(left_at),
        format::percent(left_at / product)
    );
    FindingBuilder::new(Rule::PrematureSlowStartExit, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::HystartExits, evidence.tcp.hystart_exits)
        .with(EvidenceKey::HystartWindowBytes, Some(left_at))
        .with(EvidenceKey::PathBytes, Some(product))
        .with(EvidenceKey::CwndBytes, evidence.tcp.cwnd_bytes)
        .with_time(EvidenceKey::RttNs, evidence.base_rtt_s())
        .remedy(
            "Test longer and omit the start (-O). Pacing with fq, or hystart=0 of the module tcp_cubic, \
                 shows whether RTT noise is the reason.",
        )
        .finish()
}

/// Whether HyStart ended the slow start of this flow's connections with a window below half of what the path
/// holds.
///
/// The counter is host-wide. If it shows more exits than the test has connections, other flows contributed and
/// it is not used.
fn left_early(evidence: &Evidence) -> bool {
    let ours = evidence.tcp.hystart_exits.is_some_and(|exits| (1.0..=evidence.streams()).contains(&exits));
    let early = evidence
        .tcp
        .hystart_window_bytes
        .zip(product_bytes(evidence))
        .is_some_and(|(left_at, product)| left_at < EARLY_EXIT_SHARE * product);
    ours && early
}

/// Whether the load adds to the round trip. The noise that misleads HyStart is there without load too. So the
/// reference is the median before the test, not the smallest round trip.
fn waits_longer(evidence: &Evidence) -> bool {
    let idle = evidence.rtt.idle_p50_s.or_else(|| evidence.base_rtt_s());
    let loaded = evidence.rtt.loaded_p50_s.or(evidence.rtt.mean_s);
    idle.zip(loaded).is_some_and(|(idle, loaded)| loaded - idle >= (QUEUE_RISE_SHARE * idle).max(0.001))
}

/// One connection's share of the bandwidth-delay product of the known link, bytes.
fn product_bytes(evidence: &Evidence) -> Option<f64> {
    let link = ceilings::link_goodput_bps(evidence, evidence.line_rate_bps()?)?;
    Some(bdp::bdp_bytes(link, evidence.base_rtt_s()?)? / evidence.streams())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::rules::examples::{full_gigabit, long_path};
    use crate::rules::window_regrowth::tests::regrowing;
    use linerate_model::Cause;

    /// A gigabit over 21 ms, which holds 2.47 MB, and a slow start that ended at 60 kB.
    fn left() -> Evidence {
        let mut evidence = regrowing();
        evidence.tcp.hystart_exits = Some(1.0);
        evidence.tcp.hystart_window_bytes = Some(60_000.0);
        evidence
    }

    #[test]
    fn a_slow_start_that_hystart_ended_early_is_named() {
        let finding = diagnose(&left()).primary;
        assert_eq!((finding.cause, &finding.rule), (Cause::SlowStart, &Rule::PrematureSlowStartExit));
        assert!(finding.text.contains("2.4 %"), "60 000 of 2 471 391 bytes: {}", finding.text);
        let mut growing = left();
        growing.tcp.cwnd_growth_per_s = Some(0.5);
        assert!(rule(&growing).is_some(), "CUBIC grows faster and faster afterwards");
    }

    #[test]
    fn late_exits_of_ours_and_exits_of_others_are_not() {
        assert_eq!(rule(&regrowing()), None, "no exit was counted");
        for (exits, left_at) in [(1.0, 2.0e6), (3.0, 60_000.0), (0.0, 60_000.0)] {
            let mut evidence = left();
            evidence.tcp.hystart_exits = Some(exits);
            evidence.tcp.hystart_window_bytes = Some(left_at);
            assert_eq!(rule(&evidence), None, "{exits} at {left_at}");
            assert_eq!(
                diagnose(&evidence).primary.rule,
                Rule::WindowRegrowth,
                "what is left is a small window"
            );
        }
    }

    #[test]
    fn noise_that_other_programs_made_is_theirs() {
        let mut busy = left();
        busy.sender.others_share = Some(0.9);
        busy.sender.thread_wait_share = Some(0.3);
        busy.sender.thread_share = Some(0.05);
        let found = diagnose(&busy);
        assert_eq!(found.primary.cause, Cause::HostBusy, "{:?}", found.primary);
        assert!(
            found.also.iter().any(|finding| finding.rule == Rule::PrematureSlowStartExit),
            "{:?}",
            found.also
        );
        busy.sender.thread_wait_share = Some(0.01);
        assert_eq!(diagnose(&busy).primary.rule, Rule::PrematureSlowStartExit, "its thread never waited");
    }

    #[test]
    fn losses_full_links_and_windows_explain_the_rate_without_it() {
        let mut lossy = left();
        lossy.tcp.retransmits = Some(3.0);
        for mut evidence in [lossy, full_gigabit(), long_path()] {
            evidence.tcp.hystart_exits = Some(1.0);
            evidence.tcp.hystart_window_bytes = Some(3_000.0);
            assert_eq!(rule(&evidence), None);
        }
    }

    #[test]
    fn noise_is_no_queue_and_a_queue_is_another_limit() {
        let mut noisy = left();
        noisy.outcome.intervals_bps = (0..90).map(|i| 25e6 * if i % 2 == 0 { 0.7 } else { 1.3 }).collect();
        noisy.rtt.min_s = Some(0.016);
        noisy.rtt.idle_p50_s = Some(0.021);
        noisy.rtt.loaded_p50_s = Some(0.0225);
        assert!(rule(&noisy).is_some());
        noisy.rtt.loaded_p50_s = Some(0.035);
        assert_eq!(rule(&noisy), None);
        let mut unused = left();
        unused.tcp.unacked_bytes = Some(1000.0);
        assert_eq!(rule(&unused), None, "the window is not in use");
    }

    #[test]
    fn without_a_known_link_nobody_knows_what_early_is() {
        let mut evidence = left();
        evidence.link.link_bps = None;
        assert_eq!(rule(&evidence), None);
    }
}
