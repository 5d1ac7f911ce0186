//! V00: the rate exceeds what the link can carry, or the byte accounting does not balance.

use linerate_model::{Confidence, EvidenceKey, Finding, Rule};
use linerate_units::Bitrate;

use super::{FindingBuilder, core_is_full, slow_reader};
use crate::evidence::{CountedBy, Evidence, LinkSource};
use crate::{ceilings, format, framing};

/// Largest fill of the receive buffer, as a share, from which data waited for the program.
const WAITING_SHARE: f64 = 0.1;
/// Data that waited lifts most of the steady intervals above a ceiling by less than this factor.
pub(super) const MAX_LIFT: f64 = 1.005;
/// Share of the written bytes that may be unaccounted for.
const MAX_UNACCOUNTED_SHARE: f64 = 0.01;
/// Largest factor by which a late switch may exceed its rate within a test while it catches up.
const MAX_CATCH_UP: f64 = 1.25;

pub(super) fn rule(evidence: &Evidence) -> Option<Finding> {
    above_the_link(evidence).or_else(|| above_the_bucket(evidence)).or_else(|| bytes_do_not_balance(evidence))
}

fn above_the_link(evidence: &Evidence) -> Option<Finding> {
    // Neither the printed rate nor the rate of the steady part may exceed the ceiling.
    let goodput = evidence.highest_bps()?;
    let ceiling = ceilings::link_goodput_bps(evidence, evidence.line_rate_bps()?)?;
    // A rate that the user states may be that of a shaper or a tariff. These count packets and not bytes on the
    // wire.
    let counted = match evidence.link.source {
        Some(LinkSource::User) => {
            ceilings::link_packets_goodput_bps(evidence, evidence.line_rate_bps()?)?.max(ceiling)
        }
        _ => ceiling,
    };
    let most = framing::acceptable_ceiling_bps(counted, framing::CLOCK_TOLERANCE_PPM)?;
    if goodput <= most || held_back(evidence, goodput - ceiling, counted) {
        return None;
    }
    if evidence.timing.emulator_late == Some(true) && goodput <= MAX_CATCH_UP * counted {
        return late(goodput, ceiling);
    }
    let text = format!(
        "{} exceeds the {} that the link can carry ({}).",
        format::rate(goodput),
        format::rate(ceiling),
        ceilings::framing_text(evidence)
    );
    let remedy = match evidence.outcome.counted_by {
        Some(CountedBy::Sender) => "This is the sender's count; use the receiver's figure.",
        _ => "Check the units, the MTU and the link rate, and that the figure is the receiver's.",
    };
    FindingBuilder::new(Rule::Impossible, Confidence::Confirmed, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::CeilingBps, Some(ceiling))
        .remedy(remedy)
        .finish()
}

/// The rate exceeds what the sender's own qdisc lets through, including what its bucket held.
fn above_the_bucket(evidence: &Evidence) -> Option<Finding> {
    let goodput = evidence.highest_bps()?;
    let bucket = ceilings::qdisc(evidence)?;
    let ceiling = bucket.bitrate_bps;
    if !bucket.is_exceeded_by(Bitrate::from_bps(goodput)?) || held_back(evidence, goodput - ceiling, ceiling)
    {
        return None;
    }
    if evidence.timing.emulator_late == Some(true) && goodput <= MAX_CATCH_UP * ceiling {
        return late(goodput, ceiling);
    }
    let text = format!(
        "{} exceeds the {} that the sender's own queueing discipline lets through ({}).",
        format::rate(goodput),
        format::rate(ceiling),
        bucket.because
    );
    FindingBuilder::new(Rule::Impossible, Confidence::Confirmed, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::CeilingBps, Some(ceiling))
        .remedy("Check that its rate was not changed during the test, and that the figure is the receiver's.")
        .finish()
}

/// Whether the excess may be data that arrived before the measured part and was read within it: it waited for a
/// retransmission (head-of-line blocking) or for the program. The receive buffers must have had room for it,
/// and the link time to carry it.
pub(super) fn held_back(evidence: &Evidence, excess_bps: f64, ceiling_bps: f64) -> bool {
    let happened = |count: Option<f64>| count.is_some_and(|count| count > 0.0);
    let outcome = &evidence.outcome;
    let waited = evidence.windows.queue_max_share.is_some_and(|share| share > WAITING_SHARE);
    let holes = happened(evidence.tcp.retransmits) || happened(evidence.tcp.out_of_order) || waited;
    let excess = outcome.measured_s.map(|seconds| excess_bps * seconds / 8.0);
    let room = evidence.windows.rcv_buf_bytes.filter(|_| holes).map(|buffer| buffer * evidence.streams());
    // The time before the first measured interval: the ramp, the omitted part, and one interval for the edge.
    let before_s = [outcome.omitted_s, outcome.ramp_s, outcome.interval_s].into_iter().flatten().sum::<f64>();
    let came = ceiling_bps * before_s / 8.0;
    let fits = excess.zip(room).is_some_and(|(excess, room)| excess <= room.min(came));
    // After a pause, an emulated line catches up over as much time as it missed.
    let late = evidence.timing.emulator_late == Some(true);
    fits && (late || !evidence.mostly_exceeds(MAX_LIFT * ceiling_bps))
}

/// No end miscounted: an emulated line caught up after a pause.
fn late(goodput: f64, ceiling: f64) -> Option<Finding> {
    let text = format!(
        "{} exceeds the {} that the emulated link carries: the lab's switch was late and then caught up.",
        format::rate(goodput),
        format::rate(ceiling)
    );
    FindingBuilder::new(Rule::Disturbed, Confidence::Confirmed, text)
        .with(EvidenceKey::GoodputBps, Some(goodput))
        .with(EvidenceKey::CeilingBps, Some(ceiling))
        .remedy("Repeat the test when the machine is idle, or at a lower rate.")
        .finish()
}

/// Bytes that may be left in the receive buffers, acknowledged but never read, because the receiver had no
/// processor or its queue was full.
fn never_read(evidence: &Evidence) -> Option<f64> {
    let late = core_is_full(&evidence.receiver) || slow_reader::queue_is_full(evidence);
    evidence.windows.rcv_buf_bytes.filter(|_| late).map(|buffer| buffer * evidence.streams())
}

fn bytes_do_not_balance(evidence: &Evidence) -> Option<Finding> {
    let unaccounted = evidence.outcome.unaccounted_bytes?;
    let share = unaccounted.abs() / evidence.outcome.written_bytes?;
    if share.is_nan()
        || share <= MAX_UNACCOUNTED_SHARE
        || never_read(evidence).is_some_and(|bytes| unaccounted <= bytes)
    {
        return None;
    }
    let text = format!(
        "{} of the bytes written are unaccounted for: the counts of the two ends differ.",
        format::percent(share)
    );
    FindingBuilder::new(Rule::Impossible, Confidence::Probable, text)
        .with(EvidenceKey::UnaccountedShare, Some(share))
        .with(EvidenceKey::WrittenBytes, evidence.outcome.written_bytes)
        .with(EvidenceKey::DeliveredBytes, evidence.outcome.delivered_bytes)
        .remedy("Repeat the test; if this happens again, one end counts wrongly.")
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::FlowTransport;
    use crate::rules::examples::{full_gigabit, loopback, shaped};
    use linerate_model::{Cause, Limit};

    #[test]
    fn the_ceiling_and_two_hundred_ppm_are_possible_more_is_not() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(941.66e6);
        assert_eq!(rule(&evidence), None);
        evidence.outcome.goodput_bps = Some(941.68e6);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::Impossible));
    }

    /// 20 Mb/s and 200 ms after a slow start that lost packets: an excess of 2 Mb/s over 4 s is 1 MB.
    #[test]
    fn what_waited_behind_a_hole_arrives_faster_than_the_link() {
        let mut evidence = full_gigabit();
        evidence.link.link_bps = Some(20e6);
        evidence.outcome.goodput_bps = Some(20.9e6);
        evidence.outcome.intervals_bps = [vec![60.8e6; 2], vec![18.8e6; 38]].concat();
        evidence.outcome.measured_s = Some(4.0);
        evidence.windows.rcv_buf_bytes = Some(6e6);
        assert!(rule(&evidence).is_some(), "no hole");
        evidence.tcp.retransmits = Some(30.0);
        assert_eq!(rule(&evidence), None);
        evidence.windows.rcv_buf_bytes = Some(0.9e6);
        assert!(rule(&evidence).is_some(), "more than the buffer holds");
    }

    #[test]
    fn a_buffer_excuses_neither_a_whole_test_nor_what_had_no_time_to_come() {
        // Twice the stated 10 Mb/s for 3 s, with a receive buffer that grew to 6 MB and some losses.
        let mut evidence = shaped(20e6);
        evidence.link.link_bps = Some(10e6);
        evidence.link.source = Some(LinkSource::User);
        (evidence.outcome.measured_s, evidence.outcome.ramp_s, evidence.outcome.omitted_s) =
            (Some(3.0), Some(0.0), None);
        evidence.outcome.intervals_bps.truncate(30);
        evidence.windows.rcv_buf_bytes = Some(6e6);
        evidence.tcp.retransmits = Some(39.0);
        assert!(rule(&evidence).is_some(), "nothing came before the test began");
        evidence.outcome.omitted_s = Some(5.0);
        assert!(rule(&evidence).is_some(), "every second is too fast");
        evidence.timing.emulator_late = Some(true);
        assert_eq!(rule(&evidence), None, "an emulated line that had stood still before");
        evidence.timing.emulator_late = None;
        // The same excess at once: 3.6 MB, with five seconds to arrive.
        evidence.outcome.intervals_bps = [vec![154.4e6; 2], vec![9.5e6; 28]].concat();
        assert_eq!(rule(&evidence), None);
        evidence.outcome.omitted_s = None;
        assert!(rule(&evidence).is_some(), "no time to come");
    }

    #[test]
    fn the_printed_rate_is_judged_and_not_only_the_steady_one() {
        let mut evidence = full_gigabit();
        evidence.outcome.whole_bps = Some(990e6);
        assert_eq!(rule(&evidence).map(|finding| finding.cause), Some(Cause::Impossible));
        evidence.outcome.whole_bps = Some(930e6);
        assert_eq!(rule(&evidence), None);
    }

    #[test]
    fn a_late_emulator_is_no_miscount() {
        let mut evidence = full_gigabit();
        evidence.outcome.goodput_bps = Some(950e6);
        evidence.timing.emulator_late = Some(true);
        let found = rule(&evidence).unwrap();
        assert_eq!((found.cause, &found.rule), (Cause::Invalid, &Rule::Disturbed));
        evidence.outcome.goodput_bps = Some(941e6);
        assert_eq!(rule(&evidence), None);
        evidence.outcome.goodput_bps = Some(1.2e9);
        assert_eq!(rule(&evidence).unwrap().rule, Rule::Impossible, "no lateness makes up for so much");
    }

    #[test]
    fn datagrams_in_fragments_fill_a_link_and_do_not_exceed_it() {
        let mut evidence = full_gigabit();
        evidence.transport = FlowTransport::Udp;
        // Five packets of 1538 bytes on the wire and one of 858: 958.35 Mb/s. As many full packets with a UDP
        // header each would carry 957.1.
        evidence.link.mss_bytes = Some(8192.0);
        evidence.outcome.goodput_bps = Some(958.3e6);
        evidence.outcome.intervals_bps = vec![958.3e6; 90];
        let verdict = crate::diagnose(&evidence).primary;
        assert_eq!((verdict.cause, &verdict.rule), (Cause::Link, &Rule::LinkFull), "{}", verdict.text);
        let ceiling = verdict.evidence[&EvidenceKey::CeilingBps];
        assert!((ceiling - 1e9 * 8192.0 / 8548.0).abs() < 1.0, "{ceiling}");
        assert!(verdict.text.contains("datagrams of 8192 bytes in 6 packets"), "{}", verdict.text);
        // The second packet of each carries a single byte: 908.1 Mb/s.
        evidence.link.mss_bytes = Some(1473.0);
        evidence.outcome.goodput_bps = Some(950e6);
        assert!(rule(&evidence).is_some());
    }

    #[test]
    fn virtual_links_have_no_ceiling_to_exceed() {
        let mut evidence = loopback();
        evidence.link.link_bps = Some(10e9);
        assert_eq!(rule(&evidence), None);
        assert_eq!(rule(&shaped(1e9)), None);
    }

    /// vmxnet3 always reports 10 Gb/s, hv_netvsc the rate of the host's card. Two guests of one host exceed both.
    #[test]
    fn what_a_hypervisors_card_reports_is_no_ceiling_to_exceed() {
        let mut evidence = full_gigabit();
        let fast = [Some(1.5e9); 2];
        (evidence.outcome.goodput_bps, evidence.outcome.whole_bps) = fast.into();
        assert!(rule(&evidence).is_some(), "a real gigabit");
        evidence.link.is_nominal = true;
        assert_eq!(rule(&evidence), None);
        assert!(ceilings::all(&evidence).iter().all(|ceiling| ceiling.limit != Limit::Link));
        (evidence.link.peer_link_bps, evidence.link.peer_is_nominal) = (Some(1e9), true);
        assert_eq!(rule(&evidence), None);
        evidence.link.peer_is_nominal = false;
        assert!(rule(&evidence).is_some(), "the peer's real gigabit");
        evidence.link.peer_link_bps = None;
        evidence.link.is_nominal = false;
        evidence.link.source = Some(LinkSource::User);
        assert!(rule(&evidence).is_some(), "the user stated it");
    }

    #[test]
    fn missing_bytes_are_reported_beyond_one_percent() {
        let mut evidence = full_gigabit();
        evidence.outcome.written_bytes = Some(1e9);
        evidence.outcome.unaccounted_bytes = Some(9e6);
        assert_eq!(rule(&evidence), None);
        evidence.outcome.unaccounted_bytes = Some(11e6);
        assert!(rule(&evidence).is_some());
        evidence.windows.rcv_buf_bytes = Some(12e6);
        assert!(rule(&evidence).is_some(), "a receiver at its ease has read everything");
        evidence.receiver.thread_share = Some(0.99);
        assert_eq!(rule(&evidence), None, "its buffer holds them");
        evidence.windows.rcv_buf_bytes = Some(10e6);
        assert!(rule(&evidence).is_some(), "more than its buffer holds");
        evidence.outcome.written_bytes = Some(0.0);
        evidence.outcome.unaccounted_bytes = Some(0.0);
        assert_eq!(rule(&evidence), None, "an empty test balances");
    }

    #[test]
    fn a_stated_rate_may_count_packets_only() {
        let mut evidence = full_gigabit();
        // A gigabit counted at the IP layer: 965 Mbit/s of payload.
        evidence.outcome.goodput_bps = Some(1e9 * 1448.0 / 1500.0);
        assert!(rule(&evidence).is_some(), "more than a gigabit interface carries");
        evidence.link.source = Some(LinkSource::User);
        assert_eq!(rule(&evidence), None);
        evidence.outcome.goodput_bps = Some(0.97e9);
        assert!(rule(&evidence).is_some(), "more than a gigabit of packets");
    }
}
