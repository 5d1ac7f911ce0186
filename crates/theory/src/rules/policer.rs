//! V13: a policer drops what exceeds its rate.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::{FindingBuilder, congestion, link_full, local_drops, rate_was_asked_for, windows_are_open};
use crate::evidence::{Evidence, FlowTransport, HostEvidence};
use crate::format;
use crate::stats::{order, series};

/// Smallest loss that can come from a policer.
const MIN_LOSS: f64 = 1e-3;
/// Largest variation of the delivered rate.
const MAX_VARIATION: f64 = 0.10;
/// Smallest loss from which a rate above the loss model shows a policer.
const HIGH_LOSS: f64 = 5e-3;
/// Losses come in bursts if the rate exceeds the loss model's by this factor.
const BURSTY_FACTOR: f64 = 3.0;
/// Largest loss ratio that loss models describe.
pub(super) const MAX_MODEL_LOSS: f64 = 0.1;
/// Largest variation between sixths of the steady part. The bucket may be small compared with TCP's data in
/// flight.
const MAX_SWAY: f64 = 0.25;
/// Share of lost datagrams from which they exceed a rate instead of being lost at random.
const EXCESS_LOSS: f64 = 0.05;
/// If the start exceeds the rest by this factor, the bucket was full.
const EARLY_BURST_FACTOR: f64 = 1.2;
/// If the first interval exceeds the median by this factor, a bucket was full. A burst is at most a third of
/// all intervals.
const FULL_BUCKET_FACTOR: f64 = 1.5;
/// Share of all cores from which a probe may have waited for a processor.
const CROWDED_SHARE: f64 = 0.9;
/// The sender should shape to this share of the policed rate.
const CONFORMING: f64 = 0.98;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    let settled = without_burst(evidence);
    let evidence = settled.as_ref().unwrap_or(evidence);
    let goodput = evidence.outcome.goodput_bps?;
    let signs = after_a_burst(evidence) || against_the_law(evidence) || datagrams_beyond(evidence);
    let explained = link_full::own_link_is_full(evidence)
        || rate_was_asked_for(evidence)
        || local_drops::holds(evidence)
        || (congestion::follows_the_law(evidence) && !beyond_any_law(evidence))
        || !windows_are_open(evidence);
    if !signs || !rtt_is_flat(evidence)? || explained {
        return None;
    }
    let rate = format::rate(goodput);
    let text = if after_a_burst(evidence) {
        format!(
            "The path is policed: after a burst it delivers a constant {rate} and drops the rest without \
             queueing."
        )
    } else {
        format!(
            "The path delivers {rate} and drops the rest ({}) without queueing: it is policed, or it has \
             almost no buffer.",
            format::percent(evidence.loss()?)
        )
    };
    FindingBuilder::new(Rule::Policer, Confidence::Probable, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::LossRatio, evidence.loss())
        .with(EvidenceKey::EarlyOverSteady, evidence.outcome.early_over_steady)
        .with(EvidenceKey::IntervalVariation, evidence.variation())
        .remedy(format!("Shape the traffic at the sender to {}.", format::rate(CONFORMING * goodput)))
        .finish()
}

/// The evidence without the burst that a full bucket let through: intervals at the start that are far above the
/// median are removed, and the rate is the mean of the others. `None` without such a burst.
fn without_burst(evidence: &Evidence) -> Option<Evidence> {
    let intervals = &evidence.outcome.intervals_bps;
    let centre = order::median(intervals).filter(|median| *median > 0.0)?;
    let first = *intervals.first()?;
    let burst = intervals.iter().take_while(|rate| **rate > EARLY_BURST_FACTOR * centre).count();
    // A single interval may contain one read more than others.
    if first < FULL_BUCKET_FACTOR * centre || burst > intervals.len() / 3 {
        return None;
    }
    let mut settled = evidence.clone();
    settled.outcome.intervals_bps.drain(..burst);
    let rate = series::mean(&settled.outcome.intervals_bps)?;
    settled.outcome.goodput_bps = Some(rate);
    settled.outcome.early_over_steady = Some(first / rate);
    Some(settled)
}

/// Whether a burst (full bucket) came first and then a constant rate.
fn after_a_burst(evidence: &Evidence) -> bool {
    evidence.loss().is_some_and(|loss| loss > MIN_LOSS)
        && evidence.outcome.early_over_steady.is_some_and(|ratio| ratio > EARLY_BURST_FACTOR)
        && (evidence.is_surely_constant(MAX_VARIATION) == Some(true)
            || (beyond_any_law(evidence) && evidence.is_steady(MAX_VARIATION) == Some(true)))
}

/// Whether far more arrives than congestion control achieves with single losses. Losses at a policer come in
/// bursts, whenever the bucket is empty. The bucket's rate is visible only over longer times.
fn against_the_law(evidence: &Evidence) -> bool {
    evidence.transport == FlowTransport::Tcp
        && !evidence.is_bbr()
        && evidence.loss().is_some_and(|loss| loss > HIGH_LOSS)
        && (beyond_any_law(evidence)
            || congestion::over_the_law(evidence).is_some_and(|factor| factor > BURSTY_FACTOR))
        && evidence.is_steady(MAX_SWAY) == Some(true)
}

/// Whether the loss exceeds what loss models describe.
fn beyond_any_law(evidence: &Evidence) -> bool {
    evidence.loss().is_some_and(|loss| loss > MAX_MODEL_LOSS)
}

/// Whether datagrams offered at a constant rate arrive at a lower, constant rate and do not wait.
fn datagrams_beyond(evidence: &Evidence) -> bool {
    evidence.transport == FlowTransport::Udp
        && evidence.loss().is_some_and(|loss| loss > EXCESS_LOSS)
        && !evidence.udp.are_lost_independently()
        && !evidence.udp.were_dropped_at_the_socket()
        && evidence.asked.offered_bps.is_none_or(|offered| {
            evidence.outcome.goodput_bps.is_some_and(|goodput| goodput < offered * (1.0 - 0.5 * EXCESS_LOSS))
        })
        && evidence.is_steady(MAX_VARIATION) == Some(true)
}

/// Whether the round trip under load stays at its base. This must hold for 95 % of the probes, or for half of
/// them if the hosts or an emulated network were late.
///
/// In a short test, more than 5 % of the probes can meet the queue of slow start. So a queue must also show in
/// the RTT that the sender's TCP saw for 10 % of the test.
pub(crate) fn rtt_is_flat(evidence: &Evidence) -> Option<bool> {
    let base = evidence.base_rtt_s()?;
    let flat = |loaded: f64| loaded - base < (0.1 * base).max(0.002);
    let probes = if is_disturbed(evidence) { evidence.rtt.loaded_p50_s } else { evidence.rtt.loaded_p95_s };
    let loaded = probes.or(evidence.rtt.mean_s)?;
    Some(flat(loaded) || evidence.rtt.smoothed_p90_s.is_some_and(flat))
}

/// Whether probes may have waited for something other than the network.
fn is_disturbed(evidence: &Evidence) -> bool {
    let crowded = |host: &HostEvidence| host.all_cores_share.is_some_and(|busy| busy >= CROWDED_SHARE);
    evidence.timing.emulator_late == Some(true) || crowded(&evidence.sender) || crowded(&evidence.receiver)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, policed, shaped};
    use linerate_model::Cause;

    #[test]
    fn burst_then_constant_rate_with_loss_and_no_queue_is_a_policer() {
        assert_eq!(rule(&policed()).map(|finding| finding.cause), Some(Cause::Policer));
    }

    #[test]
    fn losses_in_bursts_that_the_law_forbids_are_a_policers() {
        // A large bucket that slow start emptied before the first sample: 14 % lost, and seven times the
        // model's rate.
        let mut evidence = policed();
        evidence.outcome.early_over_steady = Some(0.8);
        assert_eq!(rule(&evidence), None);
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| 0.1 * sent);
        assert!(rule(&evidence).is_some());
        evidence.outcome.intervals_bps = [vec![25e6; 30], vec![65e6; 30], vec![45e6; 30]].concat();
        assert_eq!(rule(&evidence), None, "no constant rate");
        let mut bbr = policed();
        bbr.outcome.early_over_steady = Some(0.8);
        bbr.tcp.congestion = Some("bbr".to_owned());
        assert_eq!(rule(&bbr), None, "no law holds for it");
    }

    /// A policer of 20 Mb/s with a bucket of a few hundred kilobytes, as the receiver read it: slow start
    /// empties the bucket at once, and 20 % of everything is lost.
    fn emptied_at_once() -> Evidence {
        let mut evidence = policed();
        evidence.outcome.intervals_bps = [
            169.4, 65.4, 22.2, 20.8, 17.5, 21.0, 19.4, 16.5, 19.6, 21.7, 20.5, 16.8, 17.7, 23.5, 21.6, 14.0,
            11.3, 16.2, 26.8, 29.9, 20.8, 20.2, 18.6, 20.8, 18.0, 20.2, 19.1, 21.6, 16.6, 14.7,
        ]
        .map(|mbps| mbps * 1e6)
        .to_vec();
        evidence.outcome.goodput_bps = Some(26.1e6);
        evidence.outcome.early_over_steady = Some(6.5);
        (evidence.tcp.segments_sent, evidence.tcp.retransmits) = (Some(8528.0), Some(1771.0));
        evidence
    }

    #[test]
    fn a_burst_at_the_start_is_no_part_of_the_rate() {
        let finding = rule(&emptied_at_once()).unwrap();
        assert!((finding.evidence[&EvidenceKey::GoodputBps] - 19.5e6).abs() < 0.5e6, "{finding:?}");
        let mut half = emptied_at_once();
        half.outcome.intervals_bps = [[40e6; 15], [20e6; 15]].concat();
        assert_eq!(rule(&half), None, "no bucket lasts for half of a test");
        let mut one_by_one = emptied_at_once();
        one_by_one.tcp.retransmits = Some(20.0);
        assert_eq!(rule(&one_by_one), None, "few losses, and what the law makes of them");
    }

    #[test]
    fn datagrams_of_which_a_third_vanishes_and_none_waits_are_policed() {
        let mut evidence = policed();
        evidence.transport = FlowTransport::Udp;
        evidence.outcome.early_over_steady = Some(1.0);
        evidence.asked.offered_bps = Some(67e6);
        (evidence.udp.packets, evidence.udp.lost) = (Some(3e4), Some(1e4));
        assert!(rule(&evidence).is_some());
        evidence.udp.lost = Some(300.0);
        assert_eq!(rule(&evidence), None, "one in a hundred is lost at random");
        evidence.udp.lost = Some(1e4);
        evidence.rtt.loaded_p95_s = Some(0.080);
        assert_eq!(rule(&evidence), None, "they wait");
    }

    #[test]
    fn without_one_of_the_signs_it_is_not() {
        let controls: [fn(&mut Evidence); 6] = [
            |evidence| evidence.outcome.early_over_steady = Some(1.0),
            |evidence| evidence.rtt.loaded_p95_s = Some(0.080),
            |evidence| evidence.tcp.retransmits = Some(0.0),
            |evidence| evidence.outcome.intervals_bps = [20e6, 20e6, 60e6, 60e6].repeat(22),
            |evidence| evidence.outcome.intervals_bps.truncate(6),
            // The loss model gives 15 Mb/s.
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
