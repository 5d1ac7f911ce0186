//! First runs and replies for the tests of follow-up questions.

use super::{FurtherRun, Reply};
use crate::evidence::{Evidence, FlowTransport};
use crate::rules::examples::lossy_path;

/// 0.01 % loss at 21 ms, but three times the loss model's rate: no rule explains it.
pub(super) fn long_lossy() -> Evidence {
    let mut evidence = lossy_path(1e-4);
    evidence.outcome.goodput_bps = evidence.outcome.goodput_bps.map(|rate| 3.0 * rate);
    evidence
}

/// Nothing of full size was ever acknowledged.
pub(super) fn stalled() -> Evidence {
    let mut evidence = lossy_path(1e-4);
    evidence.outcome.goodput_bps = None;
    evidence.outcome.delivered_bytes = Some(0.0);
    evidence.tcp.acked_bytes = Some(0.0);
    evidence.tcp.timeouts = Some(4.0);
    evidence.tcp.retransmits = Some(4.0);
    evidence
}

/// Datagrams of which the share `loss` is lost, while the RTT rises from 21 ms by `rise_s`.
pub(super) fn datagrams(trial: FurtherRun, loss: f64, rise_s: f64) -> Reply {
    let mut evidence = Evidence { transport: FlowTransport::Udp, ..Evidence::default() };
    let offered = trial.offered_bps.unwrap_or(1e6);
    let arrived = offered * (1.0 - loss);
    evidence.outcome.goodput_bps = (arrived > 0.0).then_some(arrived);
    evidence.outcome.interval_s = Some(0.1);
    evidence.udp.packets = Some(10_000.0);
    evidence.udp.lost = Some(10_000.0 * loss);
    evidence.rtt.min_s = None;
    evidence.rtt.idle_p50_s = Some(0.021);
    evidence.rtt.loaded_p50_s = Some(0.021 + rise_s);
    evidence.rtt.loaded_p95_s = Some(0.021 + rise_s);
    evidence.link.mtu_bytes = Some(1500.0);
    evidence.link.mss_bytes = trial.length_bytes.or(Some(1472.0));
    let intervals_bps = vec![arrived; (trial.seconds * 10.0) as usize];
    Reply { trial, evidence: Some(evidence), intervals_bps }
}
