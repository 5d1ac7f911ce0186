//! V14: a shaper (or a slower link) delays what exceeds its rate.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};

use super::standard_rates::{self, StandardRateKind};
use super::{
    FindingBuilder, any_core_is_full, congestion, ecn, hosts_have_room, link_full, own_queue, random_loss,
    rate_was_asked_for, windows_are_open,
};
use crate::ethernet::StandardRate;
use crate::evidence::{Evidence, FlowTransport, LinkSource};
use crate::format;

/// Largest variation of a shaped rate.
const MAX_VARIATION: f64 = 0.03;
/// Largest variation with a standing queue and a mean at a standard rate, which allows for busy hosts.
const MAX_QUEUED_VARIATION: f64 = 0.10;
/// Largest loss that the overflow of a shaper's queue may cause. With more loss, the rate must not fit the loss
/// model.
const MAX_OVERFLOW_LOSS: f64 = 0.01;
/// Share of lost datagrams from which they exceed what the path carries.
const EXCESS_LOSS: f64 = 0.05;
/// A thread with at least this share of a core may itself limit the rate.
const BUSY_THREAD_SHARE: f64 = 0.6;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) || own_queue::holds(evidence) {
        return None;
    }
    let goodput = evidence.outcome.goodput_bps?;
    let rise = evidence.rtt_rise_s().filter(|rise| *rise > 0.0);
    let waits = rise.map_or_else(String::new, |rise| format!(" Its queue adds {}.", format::time(rise)));
    let (sure, text) = match standard(evidence) {
        Some((rate, true)) => (
            if link_full::queue_was_seen(evidence) { Confidence::Confirmed } else { Confidence::Probable },
            format!(
                "Limited to {} by a shaper that counts frames without preamble, gap and FCS.{waits}",
                format::rate(rate.bps)
            ),
        ),
        Some((rate, false)) => (
            Confidence::Probable,
            format!(
                "The rate fits a shaper set to {}, but it is too uncertain to rule out {}: the path \
                 contains one of the two.{waits}",
                format::rate(rate.bps),
                rate.name
            ),
        ),
        None => (
            Confidence::Probable,
            format!(
                "A shaper, a slower link, or other steady traffic on the same link limits the rate to \
                 {}.{waits}",
                format::rate(goodput)
            ),
        ),
    };
    FindingBuilder::new(Rule::Shaper, sure, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::ShaperBps, standard(evidence).map(|(rate, _)| rate.bps))
        .with_time(EvidenceKey::QueueNs, rise)
        .with(EvidenceKey::IntervalVariation, evidence.variation())
        .with(EvidenceKey::LossRatio, evidence.loss())
        .remedy("Raise the shaper's rate, or accept it as the rate of the path.")
        .finish()
}

/// Whether a shaper sets the rate: the sender's own qdisc, or a shaper on the path.
pub(super) fn holds(evidence: &Evidence) -> bool {
    own_queue::holds(evidence) || of_the_path(evidence)
}

/// Whether the rate is constant and nothing else limits it, and it is a standard rate or has a standing queue.
fn of_the_path(evidence: &Evidence) -> bool {
    let free = windows_are_open(evidence)
        && !any_core_is_full(evidence)
        && !rate_was_asked_for(evidence)
        && !random_loss::datagrams_arrive(evidence)
        && (!link_full::own_link_is_full(evidence) || is_the_stated_rate(evidence));
    // With a standing queue, only a shaper set to a standard rate gives a mean at that rate. If too many
    // datagrams are sent, only the bottleneck's rate gets through. A late host only adds gaps.
    let overrun = is_overrun(evidence);
    let certain = overrun || (standard(evidence).is_some() && evidence.has_standing_queue());
    // Late hosts move bytes between intervals, not between sixths of the test.
    let constant = evidence.is_constant(if certain { MAX_QUEUED_VARIATION } else { MAX_VARIATION })
        == Some(true)
        || (evidence.has_standing_queue() && evidence.is_steady(MAX_VARIATION) == Some(true));
    // The variation between the reads of a slow flow is allowed. A share of a line that other flows use too
    // varies over longer times, and more if it loses packets, because the flow backs off.
    let lossless = evidence.loss().is_none_or(|loss| loss <= 0.0);
    let steady = standard(evidence).is_some()
        || (evidence.is_steady(MAX_QUEUED_VARIATION) != Some(false)
            && (lossless || overrun || evidence.is_steady(MAX_VARIATION) == Some(true)));
    let queued = link_full::queue_was_seen(evidence);
    // A queue that never empties keeps the bottleneck busy. Its losses then only divide the rate among the
    // flow's own connections.
    let little_loss = evidence.loss().is_none_or(|loss| loss <= MAX_OVERFLOW_LOSS)
        || !congestion::follows_the_law(evidence)
        || evidence.queue_never_empties();
    let at_ease = hosts_have_room(evidence, BUSY_THREAD_SHARE);
    let signs =
        if standard(evidence).is_some() { queued || at_ease } else { queued && at_ease && little_loss };
    // Marks keep a rate below that of the line. Only a standard rate is then still a shaper's own.
    let set_by_marks = standard(evidence).is_none() && ecn::holds_back(evidence);
    free && constant && steady && !is_a_link(evidence) && signs && !set_by_marks
}

/// Whether datagrams are sent faster than they arrive, and those that arrive had to wait. Loss does not slow
/// UDP down.
fn is_overrun(evidence: &Evidence) -> bool {
    evidence.transport == FlowTransport::Udp
        && evidence.loss().is_some_and(|loss| loss > EXCESS_LOSS)
        && evidence.has_standing_queue()
}

/// The standard rate below the link's to which a shaper seems to be set, and whether no other candidate fits.
fn standard(evidence: &Evidence) -> Option<(StandardRate, bool)> {
    let (found, alone) = standard_rates::best(evidence)?;
    let rate = found.rate;
    let below = evidence.line_rate_bps().is_none_or(|link| rate.bps < link);
    let possible = found.kind == StandardRateKind::Shaper && (below || stated(evidence) == Some(rate.bps));
    possible.then_some((rate, alone))
}

/// The link's rate as stated by the user, bit/s.
fn stated(evidence: &Evidence) -> Option<f64> {
    evidence.line_rate_bps().filter(|_| evidence.link.source == Some(LinkSource::User))
}

/// Whether the rate that the user stated is that of a shaper, which counts less than the bytes on the wire.
fn is_the_stated_rate(evidence: &Evidence) -> bool {
    stated(evidence).is_some() && standard(evidence).map(|(rate, _)| rate.bps) == stated(evidence)
}

/// Whether the rate is that of a standard link, which another rule reports.
fn is_a_link(evidence: &Evidence) -> bool {
    link_full::standard_link(evidence).is_some() && standard(evidence).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceilings;
    use crate::rules::examples::{full_gigabit, long_path, loopback, lossy_path, shaped};

    #[test]
    fn a_token_bucket_at_a_standard_rate_is_named() {
        let finding = rule(&shaped(100e6)).unwrap();
        assert_eq!(finding.confidence, Confidence::Confirmed);
        assert_eq!(finding.evidence[&EvidenceKey::ShaperBps], 100e6);
        assert!(finding.text.contains("100 Mb/s"));
    }

    #[test]
    fn any_other_rate_is_probable_with_a_standing_queue() {
        let mut evidence = shaped(37e6);
        assert_eq!(rule(&evidence).map(|finding| finding.confidence), Some(Confidence::Probable));
        evidence.rtt.mean_s = Some(0.0001);
        evidence.rtt.loaded_p50_s = Some(0.0001);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_window_larger_than_the_path_only_bounds_the_queue() {
        let mut evidence = shaped(100e6);
        evidence.tcp.receiver_window_share = Some(0.9);
        assert!(rule(&evidence).is_some());
    }

    #[test]
    fn a_standard_rate_behind_a_standing_queue_may_be_uneven() {
        let mut evidence = shaped(100e6);
        let uneven = |rate: f64| [0.95 * rate, 1.05 * rate].repeat(45);
        evidence.outcome.intervals_bps = uneven(95.6e6);
        assert!(rule(&evidence).is_some());
        evidence.rtt.loaded_p50_s = Some(0.0001);
        assert_eq!(rule(&evidence), None, "no queue");
        let mut other = shaped(370e6);
        other.outcome.intervals_bps = uneven(354e6);
        assert!(rule(&other).is_some(), "even over sixths of the test");
        other.outcome.intervals_bps = [vec![336e6; 15], vec![372e6; 15]].concat().repeat(3);
        assert_eq!(rule(&other), None, "no standard rate, and it sways for seconds");
    }

    #[test]
    fn a_slow_flow_that_sways_for_seconds_is_not_shaped() {
        let mut evidence = shaped(15e6);
        assert!(rule(&evidence).is_some());
        evidence.outcome.intervals_bps = [vec![13e6; 30], vec![16e6; 30], vec![14e6; 30]].concat();
        assert_eq!(evidence.is_constant(MAX_VARIATION), Some(true), "a read of 64 KiB excuses it");
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_share_that_loses_packets_must_be_constant_over_many_reads() {
        // 17 Mb/s for three seconds next to other traffic: reads of whole 64 KiB hide a variation of a sixth.
        let mut evidence = shaped(17e6);
        evidence.outcome.interval_s = Some(0.1);
        evidence.outcome.intervals_bps = (0..30).map(|i| if i % 10 < 5 { 15.5e6 } else { 17.5e6 }).collect();
        evidence.tcp.retransmits = Some(4.0);
        assert!(!holds(&evidence));
        evidence.tcp.retransmits = Some(0.0);
        assert!(holds(&evidence), "nothing was lost");
        evidence.tcp.retransmits = Some(4.0);
        evidence.outcome.intervals_bps = vec![17e6; 80];
        assert!(holds(&evidence), "it is constant for long");
    }

    #[test]
    fn a_busy_host_may_hold_a_rate_as_constant_as_a_shaper() {
        let mut evidence = shaped(37e6);
        evidence.receiver.thread_share = Some(0.7);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_standing_queue_survives_a_little_loss() {
        let mut evidence = shaped(37e6);
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * 0.005);
        assert!(rule(&evidence).is_some());
        // Far above the loss model: loss is not the limit.
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * 0.05);
        assert!(rule(&evidence).is_some());
        // One loss in eleven leaves four segments per round trip of 50 ms.
        let mut slow = shaped(0.95e6);
        slow.tcp.retransmits = slow.tcp.segments_sent.map(|sent| sent * 0.09);
        assert_eq!(rule(&slow), None);
    }

    /// 3 s at 5 Mb/s on a busy host, as the receiver read them: 2.6 % lost in slow start, then a constant queue
    /// of 70 ms.
    fn slow_shaper() -> Evidence {
        let mut evidence = shaped(5e6);
        evidence.outcome.goodput_bps = Some(4.705e6);
        evidence.outcome.intervals_bps = [
            1.51, 8.9, 2.15, 7.63, 4.53, 4.07, 5.43, 4.74, 4.66, 4.2, 3.92, 6.07, 4.61, 4.45, 5.08, 2.44,
            5.65, 5.94, 4.63, 4.85, 3.6, 5.08, 5.46, 3.69, 5.2, 5.0, 3.79, 5.26, 3.95,
        ]
        .map(|mbps| mbps * 1e6)
        .to_vec();
        evidence.outcome.measured_s = Some(2.97);
        evidence.rtt.mean_s = Some(0.0754);
        evidence.rtt.loaded_p50_s = Some(0.0695);
        (evidence.tcp.segments_sent, evidence.tcp.retransmits) = (Some(1296.0), Some(34.0));
        evidence
    }

    #[test]
    fn a_slow_shaper_is_known_by_its_queue_whatever_slow_start_lost() {
        let evidence = slow_shaper();
        assert!(rule(&evidence).is_some());
        let mut flat = evidence.clone();
        flat.rtt.mean_s = Some(0.0002);
        flat.rtt.loaded_p50_s = Some(0.0002);
        assert_eq!(rule(&flat), None, "no queue");
        let mut swaying = evidence;
        swaying.outcome.intervals_bps = [[3.5e6; 5], [5.8e6; 5]].concat().repeat(3);
        assert_eq!(rule(&swaying), None);
    }

    #[test]
    fn a_shaper_at_a_standard_rate_that_the_probes_share_is_no_link() {
        // 10 Mb/s: 100 probes per second of 92 bytes are 0.7 %.
        let mut evidence = shaped(10e6);
        evidence.outcome.goodput_bps = Some(9.48e6);
        evidence.outcome.intervals_bps = vec![9.48e6; 30];
        evidence.asked.probe_bps = Some(73.6e3);
        evidence.tcp.retransmits = Some(12.0);
        let verdict = crate::diagnose(&evidence).primary;
        assert_eq!(
            (&verdict.rule, verdict.confidence),
            (&Rule::Shaper, Confidence::Confirmed),
            "{verdict:?}"
        );
    }

    #[test]
    fn datagrams_that_overrun_a_queue_are_held_by_its_rate_though_a_host_was_late() {
        // Offered twice what arrives for 3 s; in the last half second the sender got hardly any CPU time.
        for rate in [1e6, 48e6, 700e6, 4e9] {
            let mut evidence = shaped(rate);
            evidence.transport = FlowTransport::Udp;
            evidence.tcp = crate::evidence::Tcp::default();
            evidence.asked.offered_bps = Some(2.0 * rate);
            (evidence.udp.packets, evidence.udp.lost) = (Some(26e3), Some(13e3));
            evidence.outcome.intervals_bps =
                [vec![rate; 25], [0.8, 0.7, 0.5, 1.6].map(|s| s * rate).to_vec()].concat();
            evidence.outcome.goodput_bps = crate::stats::series::mean(&evidence.outcome.intervals_bps);
            let named = |evidence: &Evidence| crate::diagnose(evidence).primary.rule;
            assert_eq!(named(&evidence), Rule::Shaper, "{rate}");
            let mut flat = evidence.clone();
            (flat.rtt.loaded_p50_s, flat.rtt.loaded_p95_s) = (flat.rtt.min_s, flat.rtt.min_s);
            assert_eq!(named(&flat), Rule::Policer, "nothing waits: a policer");
            evidence.udp.lost = Some(520.0);
            evidence.asked.offered_bps = evidence.outcome.goodput_bps.map(|rate| rate / 0.98);
            assert_ne!(named(&evidence), Rule::Shaper, "nearly all that was sent came");
        }
    }

    #[test]
    fn connections_that_share_a_shaper_lose_much_and_hold_its_queue_all_the_same() {
        for (bps, streams, base_s) in [(20e6, 8, 0.01), (3e6, 4, 0.05), (300e6, 128, 0.02), (5e9, 64, 0.003)]
        {
            let mut evidence = shaped(bps);
            evidence.outcome.streams = Some(streams);
            evidence.rtt.min_s = Some(base_s);
            evidence.rtt.idle_p50_s = Some(base_s);
            for rtt in
                [&mut evidence.rtt.mean_s, &mut evidence.rtt.loaded_p50_s, &mut evidence.rtt.loaded_p95_s]
            {
                *rtt = Some(base_s + 0.05);
            }
            // The loss at which the model gives each connection its share.
            let law = |loss: f64| {
                ceilings::backed_off_bps(&evidence, loss).unwrap() / evidence.outcome.goodput_bps.unwrap()
            };
            let loss = (1..400).map(|i| 0.3 * 0.97_f64.powi(i)).find(|loss| law(*loss) > 1.0).unwrap();
            evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * loss);
            evidence.rtt.smoothed_p10_s = Some(base_s);
            let emptied = crate::diagnose(&evidence).primary.rule;
            assert_eq!(
                emptied == Rule::Shaper,
                loss <= MAX_OVERFLOW_LOSS,
                "{bps}: {loss}, and the queue was empty at times"
            );
            evidence.rtt.smoothed_p10_s = Some(base_s + 0.04);
            assert_eq!(crate::diagnose(&evidence).primary.rule, Rule::Shaper, "{bps}: {loss}");
            evidence.outcome.intervals_bps = [[0.7 * bps; 15], [1.2 * bps; 15]].concat().repeat(3);
            assert_ne!(crate::diagnose(&evidence).primary.rule, Rule::Shaper, "{bps}: its share varies");
        }
    }

    #[test]
    fn a_share_next_to_steady_traffic_is_among_what_an_odd_rate_may_be() {
        assert!(rule(&shaped(37e6)).unwrap().text.contains("other steady traffic on the same link"));
        assert!(!rule(&shaped(100e6)).unwrap().text.contains("steady traffic"));
    }

    #[test]
    fn links_windows_cores_and_losses_are_not_shapers() {
        for evidence in [full_gigabit(), long_path(), loopback(), lossy_path(1e-4)] {
            assert_eq!(rule(&evidence), None);
        }
        let mut port = shaped(100e6);
        port.outcome.goodput_bps = Some(94.1e6);
        port.outcome.intervals_bps = vec![94.1e6; 90];
        assert_eq!(rule(&port), None, "a real port at that rate");
        let mut uneven = shaped(100e6);
        uneven.outcome.intervals_bps = vec![80e6, 110e6, 80e6, 110e6];
        assert_eq!(rule(&uneven), None);
    }

    #[test]
    fn a_stated_rate_may_be_the_shapers_own() {
        let mut evidence = shaped(1e8);
        evidence.link.link_bps = Some(1e8);
        evidence.link.source = Some(LinkSource::User);
        assert!(rule(&evidence).is_some(), "100 Mb/s as stated, counted without preamble, gap and FCS");
        evidence.link.source = Some(LinkSource::Interface);
        evidence.link.is_virtual = false;
        assert_eq!(rule(&evidence), None, "more than an interface of that rate can carry is no shaper");
    }
}
