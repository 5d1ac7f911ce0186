//! V13: a policer drops what exceeds its rate.

use linerate_model::{Cause, Confidence, Finding};

use super::{Draft, congestion, link_full, local_drops, rate_was_asked_for, windows_are_open};
use crate::evidence::{Evidence, Host};
use crate::phrase;

/// Loss from which packets are dropped on purpose.
const SOME_LOSS: f64 = 1e-3;
/// Constancy of the delivered rate.
const CONSTANT: f64 = 0.10;
/// How far the start must lie above the rest: the bucket was full.
const EARLY_BURST: f64 = 1.2;
/// Share of all cores from which a probe may wait for a processor.
const CROWDED: f64 = 0.9;
/// Share of a committed rate that a sender should shape to.
const CONFORMING: f64 = 0.98;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let goodput = evidence.outcome.goodput_bps?;
    let lossy = evidence.loss().is_some_and(|loss| loss > SOME_LOSS);
    let burst = evidence.outcome.early_over_steady.is_some_and(|ratio| ratio > EARLY_BURST);
    let steady = evidence.is_surely_constant(CONSTANT) == Some(true);
    let explained = link_full::own_link_is_full(evidence)
        || rate_was_asked_for(evidence)
        || local_drops::holds(evidence)
        || congestion::follows_the_law(evidence)
        || !windows_are_open(evidence);
    if !lossy || !burst || !steady || !rtt_is_flat(evidence)? || explained {
        return None;
    }
    let text = format!(
        "After a burst the path delivers a constant {} and drops the rest without queueing it: it is policed.",
        phrase::rate(goodput)
    );
    Draft::new(Cause::Policer, "V13", Confidence::Probable, text)
        .with("goodput_bps", Some(goodput))
        .with("loss_ratio", evidence.loss())
        .with("early_over_steady", evidence.outcome.early_over_steady)
        .with("interval_variation", evidence.variation())
        .remedy(format!("Shape at the sender to {}.", phrase::rate(CONFORMING * goodput)))
        .finish()
}

/// Whether the round trip under load stays at its base: in nineteen of twenty probes, or, where hosts or an emulated
/// network were late by themselves, in half of them.
pub(crate) fn rtt_is_flat(evidence: &Evidence) -> Option<bool> {
    let base = evidence.base_rtt_s()?;
    let probes = if is_disturbed(evidence) { evidence.rtt.loaded_p50_s } else { evidence.rtt.loaded_p95_s };
    let loaded = probes.or(evidence.rtt.mean_s)?;
    Some(loaded - base < (0.1 * base).max(0.002))
}

/// Whether probes waited for something else than the network.
fn is_disturbed(evidence: &Evidence) -> bool {
    let crowded = |host: &Host| host.all_cores_share.is_some_and(|busy| busy >= CROWDED);
    evidence.timing.emulator_late == Some(true) || crowded(&evidence.sender) || crowded(&evidence.receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, policed, shaped};

    #[test]
    fn burst_then_constant_rate_with_loss_and_no_queue_is_a_policer() {
        assert_eq!(rule(&policed()).map(|finding| finding.cause), Some(Cause::Policer));
    }

    #[test]
    fn without_one_of_the_signs_it_is_not() {
        let controls: [fn(&mut Evidence); 6] = [
            |evidence| evidence.outcome.early_over_steady = Some(1.0),
            |evidence| evidence.rtt.loaded_p95_s = Some(0.080),
            |evidence| evidence.tcp.retransmits = Some(0.0),
            |evidence| evidence.outcome.intervals_bps = [20e6, 20e6, 60e6, 60e6].repeat(22),
            |evidence| evidence.outcome.intervals_bps.truncate(6),
            // The loss law gives 15 Mb/s.
            |evidence| evidence.outcome.goodput_bps = Some(28e6),
        ];
        for control in controls {
            let mut evidence = policed();
            control(&mut evidence);
            assert_eq!(rule(&evidence), None);
        }
        assert_eq!(rule(&full_gigabit()), None);
        assert_eq!(rule(&shaped(100e6)), None);
    }
}
