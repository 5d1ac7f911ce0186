//! V11: the congestion window is small although nothing is being lost.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, any_core_is_full, link_full, premature_exit, rate_was_asked_for, shaper};
use crate::evidence::Evidence;
use crate::{bdp, ceilings, format, tcp_rate};

/// Growth per second below which the window regrows slowly.
const MAX_GROWTH_PER_S: f64 = 0.1;
/// Smallest share of the time in which neither the receive window nor the send buffer limits the flow.
const MIN_NETWORK_SHARE: f64 = 0.8;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let tcp = &evidence.tcp;
    let grows_slowly = tcp.cwnd_growth_per_s.is_some_and(|growth| growth < MAX_GROWTH_PER_S);
    let limits = nothing_else_limits(evidence)
        && window_is_the_limit(evidence)
        && !link_full::queue_was_seen(evidence);
    if !grows_slowly || !limits || premature_exit::rule(evidence).is_some() {
        return None;
    }
    let text = format!(
        "The congestion window ({}) limits the rate although nothing is lost: the flow is recovering from \
         an early loss, or left slow start early.",
        format::size(tcp.cwnd_bytes?)
    );
    let name = tcp.congestion.as_deref().unwrap_or("the congestion control");
    let remedy = recovery_s(evidence).map_or_else(
        || "Test longer.".to_owned(),
        |seconds| format!("{name} needs about {} to recover: test longer.", format::time(seconds)),
    );
    FindingBuilder::new(Rule::WindowRegrowth, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, evidence.outcome.goodput_bps)
        .with(EvidenceKey::CwndBytes, tcp.cwnd_bytes)
        .with(EvidenceKey::CwndGrowthPerS, tcp.cwnd_growth_per_s)
        .with_time(EvidenceKey::RttNs, evidence.base_rtt_s())
        .remedy(remedy)
        .finish()
}

/// Whether nothing was lost, slow start is over, and neither windows nor hosts nor a rate of the path explain
/// the rate.
pub(super) fn nothing_else_limits(evidence: &Evidence) -> bool {
    let tcp = &evidence.tcp;
    let held = tcp.receiver_window_share.unwrap_or(0.0) + tcp.send_buffer_share.unwrap_or(0.0);
    let lossless = tcp.retransmits == Some(0.0) && tcp.ssthresh_infinite == Some(false);
    let explained = any_core_is_full(evidence)
        || rate_was_asked_for(evidence)
        || link_full::own_link_is_full(evidence)
        || shaper::holds(evidence)
        || evidence.is_bbr();
    1.0 - held > MIN_NETWORK_SHARE && lossless && !explained
}

/// Whether at least 70 % of the congestion window was in flight.
pub(super) fn window_is_used(evidence: &Evidence) -> bool {
    let tcp = &evidence.tcp;
    tcp.unacked_bytes.zip(tcp.cwnd_bytes).is_some_and(|(flight, cwnd)| flight >= 0.7 * cwnd)
}

/// Whether the window was used and gives the goodput.
fn window_is_the_limit(evidence: &Evidence) -> bool {
    let tcp = &evidence.tcp;
    let allowed = tcp
        .cwnd_bytes
        .zip(evidence.base_rtt_s())
        .and_then(|(cwnd, rtt)| bdp::window_rate_bps(cwnd, rtt))
        .map(|rate| rate * evidence.streams());
    window_is_used(evidence)
        && evidence.outcome.goodput_bps.is_some_and(|goodput| super::near(goodput, allowed, 0.3))
}

/// Time, s, in which the congestion control fills the link again.
fn recovery_s(evidence: &Evidence) -> Option<f64> {
    let rate = ceilings::link_goodput_bps(evidence, evidence.line_rate_bps()?)? / evidence.streams();
    let (rtt, mss) = (evidence.base_rtt_s()?, evidence.link.mss_bytes?);
    if evidence.tcp.congestion.as_deref() == Some("cubic") {
        tcp_rate::cubic_recovery_s(tcp_rate::CUBIC, rate, rtt, mss)
    } else {
        tcp_rate::reno_recovery_s(rate, rtt, mss)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, loopback, shaped};

    pub(in crate::rules) fn regrowing() -> Evidence {
        let mut evidence = long_path();
        evidence.windows.rcv_buf_asked_bytes = None;
        evidence.windows.offered_median_bytes = Some(3e6);
        evidence.tcp.receiver_window_share = Some(0.0);
        evidence.tcp.cwnd_growth_per_s = Some(0.05);
        evidence
    }

    #[test]
    fn a_small_window_without_loss_regrows() {
        let finding = rule(&regrowing()).unwrap();
        assert_eq!(finding.rule, Rule::WindowRegrowth);
        assert!(finding.remedy.unwrap().contains("10.86 s"), "K of a gigabit at 21 ms");
    }

    #[test]
    fn steady_flows_with_a_known_limit_do_not() {
        for evidence in [full_gigabit(), loopback(), shaped(100e6), long_path()] {
            assert_eq!(rule(&evidence), None);
        }
        let mut evidence = regrowing();
        evidence.tcp.unacked_bytes = Some(1000.0);
        assert_eq!(rule(&evidence), None, "the window is not in use");
        let mut evidence = shaped(100e6);
        evidence.rtt.mean_s = Some(0.0105);
        evidence.rtt.loaded_p50_s = None;
        evidence.rtt.idle_p50_s = None;
        evidence.rtt.min_s = Some(0.0105);
        evidence.tcp.cwnd_bytes = Some(95.64e6 * 0.0105 / 8.0);
        evidence.tcp.unacked_bytes = evidence.tcp.cwnd_bytes;
        assert_eq!(rule(&evidence), None, "a shaper whose queue stays empty");
        let mut evidence = regrowing();
        evidence.tcp.cwnd_growth_per_s = Some(0.5);
        assert_eq!(rule(&evidence), None);
    }
}
