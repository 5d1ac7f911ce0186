//! V14: a shaper (or a slower link) delays what exceeds its rate.

use linerate_model::{Cause, Confidence, Finding};

use super::{Draft, any_core_is_full, hosts_have_room, link_full, rate_was_asked_for, windows_are_open};
use crate::ethernet::{StandardRate, inferred_shaper};
use crate::evidence::{Evidence, LinkSource};
use crate::phrase;

/// Constancy of a shaped rate.
const CONSTANT: f64 = 0.03;
/// Constancy where a queue stands and the mean is a standard rate: the rest is what busy hosts make of it.
const UNEVEN: f64 = 0.10;
/// Loss that the overflow of a shaper's queue may cause; more is another cause.
const OVERFLOW: f64 = 0.01;
/// A thread with this much of a core may hold the rate by itself.
const BUSY_THREAD: f64 = 0.6;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    if !holds(evidence) {
        return None;
    }
    let goodput = evidence.outcome.goodput_bps?;
    let rise = evidence.rtt_rise_s().filter(|rise| *rise > 0.0);
    let waits = rise.map_or_else(String::new, |rise| format!(" Its queue adds {}.", phrase::time(rise)));
    let (sure, text) = match standard(evidence) {
        Some(rate) => (
            if link_full::queue_was_seen(evidence) { Confidence::Confirmed } else { Confidence::Probable },
            format!(
                "Limited to {} by a shaper that counts frames without preamble, gap and FCS.{waits}",
                phrase::rate(rate.bps)
            ),
        ),
        None => (
            Confidence::Probable,
            format!("A shaper or a slower link holds the rate at {}.{waits}", phrase::rate(goodput)),
        ),
    };
    Draft::new(Cause::Shaper, "V14", sure, text)
        .with("goodput_bps", Some(goodput))
        .with("shaper_bps", standard(evidence).map(|rate| rate.bps))
        .with_time("queue_ns", rise)
        .with("interval_variation", evidence.variation())
        .with("loss_ratio", evidence.loss())
        .remedy("Raise the shaper's rate, or accept it as the path's.")
        .finish()
}

/// Whether the rate is a shaper's: constant, limited by nothing else, and standard or with a queue before it.
pub(super) fn holds(evidence: &Evidence) -> bool {
    let free = windows_are_open(evidence)
        && !any_core_is_full(evidence)
        && !rate_was_asked_for(evidence)
        && (!link_full::own_link_is_full(evidence) || is_the_stated_rate(evidence));
    // Behind a standing queue nothing but its own rate brings a mean to that of a standard.
    let certain = standard(evidence).is_some() && evidence.queue_stands();
    // Late hosts move bytes between intervals, not between sixths of the test.
    let constant = evidence.is_constant(if certain { UNEVEN } else { CONSTANT }) == Some(true)
        || (evidence.queue_stands() && evidence.is_constant_by_sixths(CONSTANT) == Some(true));
    // Reads excuse what a slow flow varies; a share of a line that others use too varies over longer times.
    // So does a share whose losses are the path's, over as many reads as it takes to see it.
    let lossless = evidence.loss().is_none_or(|loss| loss <= 0.0);
    let steady = standard(evidence).is_some()
        || (evidence.is_constant_by_sixths(UNEVEN) != Some(false)
            && (lossless || evidence.is_surely_constant(CONSTANT) == Some(true)));
    let queued = link_full::queue_was_seen(evidence);
    let little_loss = evidence.loss().is_none_or(|loss| loss <= OVERFLOW);
    let at_ease = hosts_have_room(evidence, BUSY_THREAD);
    let signs =
        if standard(evidence).is_some() { queued || at_ease } else { queued && at_ease && little_loss };
    free && constant && steady && !is_a_link(evidence) && signs
}

/// The standard rate that a shaper seems to be set to, below the link's.
fn standard(evidence: &Evidence) -> Option<StandardRate> {
    let goodput = evidence.outcome.goodput_bps?;
    let rate = inferred_shaper(goodput, evidence.packet_bytes(), &evidence.headers(), evidence.tags())?;
    let below = evidence.line_rate_bps().is_none_or(|link| rate.bps < link);
    (below || stated(evidence) == Some(rate.bps)).then_some(rate)
}

/// The link's rate as the user states it.
fn stated(evidence: &Evidence) -> Option<f64> {
    evidence.line_rate_bps().filter(|_| evidence.link.source == Some(LinkSource::User))
}

/// Whether the rate that the user states turns out to be a shaper's, which counts less than the wire carries.
fn is_the_stated_rate(evidence: &Evidence) -> bool {
    stated(evidence).is_some() && standard(evidence).map(|rate| rate.bps) == stated(evidence)
}

/// Whether the rate is that of a standard link, which is another rule's.
fn is_a_link(evidence: &Evidence) -> bool {
    link_full::standard_link(evidence).is_some() && standard(evidence).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::examples::{full_gigabit, long_path, loopback, lossy_path, shaped};

    #[test]
    fn a_token_bucket_at_a_standard_rate_is_named() {
        let finding = rule(&shaped(100e6)).unwrap();
        assert_eq!(finding.confidence, Confidence::Confirmed);
        assert_eq!(finding.evidence["shaper_bps"], 100e6);
        assert!(finding.text.contains("100 Mb/s"));
    }

    #[test]
    fn any_other_rate_is_probable_when_a_queue_stands_before_it() {
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
        assert_eq!(evidence.is_constant(CONSTANT), Some(true), "a read of 64 KiB excuses it");
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_share_that_loses_packets_must_be_constant_over_many_reads() {
        // 17 Mb/s for three seconds beside others: whole reads of 64 KiB hide that it sways by a sixth.
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
        evidence.tcp.retransmits = evidence.tcp.segments_sent.map(|sent| sent * 0.05);
        assert_eq!(rule(&evidence), None);
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
