//! Converts counters to the tally of the flow.

use linerate_model::{LossBursts, MAX_LISTED_STREAMS, StopAfter, StreamTally, Tally, UdpTally};
use linerate_sock::Mono;
use linerate_units::{Bitrate, Bytes, Span};

use crate::counters::Counts;
use crate::flow::FlowSide;
use crate::pump::{StreamEnd, StreamError};
use crate::setup::FlowSetup;
use crate::slots::{self, RequestSlots, SentSlots};
use crate::transactions::TransactionCounts;

/// The counts of one side, without the probes' results. `slots` are those of a sender at a rate, and `retransmits` has one
/// entry for each stream.
pub(crate) fn assemble(
    flow: &FlowSide,
    mut ends: Vec<StreamEnd>,
    slots: Option<SentSlots>,
    retransmits: Option<&[u64]>,
) -> Tally {
    ends.sort_by_key(|end| end.stream);
    let counts = Counts::of(&flow.counters);
    // The time of bursts begins before their first byte.
    let all = flow.writes() || flow.part.omits() || bursts(&flow.setup).is_some();
    let first = if all { 0 } else { first_inside(&counts) };
    let elapsed = slots.map_or_else(|| until_last(flow, &counts), |slots| slots.elapsed());
    let bytes = Bytes::new(counts.inside);
    let queued = ends.iter().filter_map(|end| end.queued).reduce(|sum, bytes| sum + bytes);
    let (complete, trouble) = outcome(&ends, flow.plan.streams);
    let streams = if ends.len() > MAX_LISTED_STREAMS { &[] } else { ends.as_slice() };
    Tally {
        bytes,
        first_read_bytes: Bytes::new(first),
        omitted_bytes: Bytes::new(counts.omitted),
        tail_bytes: Bytes::new(counts.total - counts.omitted - counts.inside),
        total_bytes: Bytes::new(counts.total),
        elapsed,
        arrival_times: counts.calls > 0 && counts.stamped == counts.calls,
        bitrate: Bitrate::of(Bytes::new(counts.inside - first), elapsed).unwrap_or_default(),
        queued_bytes: queued.map(Bytes::new),
        retransmits: retransmits.map(|all| all.iter().sum()),
        udp: flow.sockets.udp(0).map(|_| datagrams(flow, &counts, &ends)),
        streams: streams
            .iter()
            .map(|end| StreamTally {
                bytes: Bytes::new(end.bytes),
                retransmits: retransmits.and_then(|all| all.get(end.stream).copied()),
            })
            .collect(),
        complete,
        error: trouble.map(Into::into),
        transactions: (!flow.transactions.is_empty()).then(|| {
            let counts = TransactionCounts::of(&flow.transactions);
            Box::new(counts.tally(flow.part.opens(), RequestSlots::of(flow)))
        }),
        ..Tally::default()
    }
}

/// The time of the measured part: until the last byte in it.
fn until_last(flow: &FlowSide, counts: &Counts) -> Span {
    if counts.inside == 0 {
        return Span::ZERO;
    }
    let (opens, last) = (flow.part.opens(), Mono(counts.last_inside));
    let last = match slots::last_received(flow) {
        Some(slot) => (last + slot.as_duration()).min(flow.part.closes()).max(last),
        None => last,
    };
    whole_bursts(&flow.setup, Span::from(last.since(opens)))
}

/// Bytes of the first read in the measured part. A receiver that did not run until that part was over has none there: when
/// they arrived is known by the kernel, and the part ends by the clock of the receiver.
fn first_inside(counts: &Counts) -> u64 {
    counts.first_bytes.min(counts.inside)
}

/// The period of a flow that sends in bursts, and how long it sends.
pub(crate) fn bursts(setup: &FlowSetup) -> Option<(Span, Span)> {
    let StopAfter::TimeNs(sends) = setup.stop_after else { return None };
    setup.pacing_tick.filter(|_| !setup.borrowed).map(|period| (period, sends))
}

/// The time of a flow that sends in bursts: to the last burst belongs the pause after it. Without it, two bursts would
/// count as two in one period. A path that is too slow for the bursts leaves no pause.
fn whole_bursts(setup: &FlowSetup, elapsed: Span) -> Span {
    let Some((period, sends)) = bursts(setup) else { return elapsed };
    let measured = setup.measured.unwrap_or(sends);
    let whole = elapsed.as_ns().next_multiple_of(period.as_ns().max(1));
    if elapsed <= measured { Span::from_ns(whole) } else { elapsed }
}

/// Whether every stream ended regularly; otherwise the first error and the number of affected streams.
fn outcome(ends: &[StreamEnd], streams: usize) -> (bool, Option<String>) {
    let missing = streams.saturating_sub(ends.len());
    if missing > 0 {
        return (
            false,
            Some(format!("{missing} of {streams} streams ended because of a bug in this program")),
        );
    }
    let troubles: Vec<&StreamError> = ends.iter().filter_map(|end| end.trouble.as_ref()).collect();
    if troubles.is_empty() {
        return (true, None);
    }
    let failure = troubles.iter().find_map(|trouble| match trouble {
        StreamError::Failed { text, .. } => Some(text.as_str()),
        StreamError::Aborted => None,
    });
    let text = failure.unwrap_or("stopped before the other end had finished");
    let count = troubles.len();
    (
        false,
        Some(if streams == 1 { text.to_owned() } else { format!("{count} of {streams} streams: {text}") }),
    )
}

fn datagrams(flow: &FlowSide, counts: &Counts, ends: &[StreamEnd]) -> UdpTally {
    let sender = flow.writes();
    let jitter = Span::from_ns(counts.jitter / flow.plan.streams.max(1) as u64);
    let mut bursts = LossBursts::default();
    let mut late_by = 0;
    for (own, late) in ends.iter().filter_map(|end| end.sequence.as_ref()) {
        bursts.merge(own);
        late_by = late_by.max(*late);
    }
    UdpTally {
        loss_bursts: Some(bursts).filter(|bursts| bursts.count > 0),
        late_by: Some(late_by).filter(|late| *late > 0),
        packets: counts.packets,
        lost: counts.lost,
        out_of_order: counts.out_of_order,
        duplicates: counts.duplicates,
        socket_drops: (!sender).then_some(counts.socket_drops.min(counts.lost)),
        jitter: (!sender && counts.packets > 1).then_some(jitter),
        send_errors: sender.then_some(counts.send_errors),
        send_gaps: None,
    }
}

/// Completes the receiver's datagram counts with the sender's. Everything that was sent and did not arrive is
/// lost, including the last datagrams, whose loss no later sequence number reveals.
pub fn complete_udp(sender: &Tally, receiver: &mut Tally) {
    if let (Some(sent), Some(received)) = (&sender.udp, &mut receiver.udp) {
        let unique = received.packets.saturating_sub(received.duplicates);
        received.lost = sent.packets.saturating_sub(unique);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Side;
    use linerate_model::flow::{FlowId, SystemError};

    fn end(stream: usize, trouble: Option<StreamError>) -> StreamEnd {
        StreamEnd { stream, trouble, ..StreamEnd::default() }
    }

    #[test]
    fn a_failure_is_named_before_an_order_to_stop() {
        let reason = SystemError { errno: 104, text: "reset by peer".to_owned() };
        let failed = StreamError::Failed { reason, text: "reset".to_owned() };
        let ends = [end(0, Some(StreamError::Aborted)), end(1, Some(failed)), end(2, None)];
        assert_eq!(outcome(&ends, 3), (false, Some("2 of 3 streams: reset".to_owned())));
        assert_eq!(outcome(&ends[2..], 1), (true, None));
        assert!(outcome(&ends[..1], 1).1.is_some_and(|text| text.contains("stopped")));
        assert!(outcome(&ends[2..], 2).1.is_some_and(|text| text.contains("1 of 2")));
    }

    #[test]
    fn a_burst_has_the_pause_after_it() {
        let ms = Span::from_ms;
        let bursts =
            FlowSetup { pacing_tick: Some(ms(100)), ..FlowSetup::new(FlowId(0), Side::Receiver, ms(400)) };
        assert_eq!(whole_bursts(&bursts, ms(303)), ms(400));
        assert_eq!(whole_bursts(&bursts, ms(300)), ms(300));
        assert_eq!(whole_bursts(&bursts, ms(437)), ms(437), "the path is still busy when the time is over");
        let evenly = FlowSetup { pacing_tick: None, ..bursts.clone() };
        assert_eq!(whole_bursts(&evenly, ms(303)), ms(303));
        let part = FlowSetup { measured: Some(ms(250)), ..bursts };
        assert_eq!(whole_bursts(&part, ms(203)), ms(300), "three bursts take three periods");
    }

    #[test]
    fn a_first_read_that_comes_after_the_measured_part_is_not_in_it() {
        let late = Counts { first_bytes: 1448, total: 1448, inside: 0, ..Counts::default() };
        assert_eq!(first_inside(&late), 0);
        assert_eq!(first_inside(&Counts { inside: 14_480, ..late }), 1448);
    }

    #[test]
    fn what_was_sent_and_never_read_is_lost_and_a_duplicate_replaces_nothing() {
        let tally = |packets, duplicates, lost| Tally {
            udp: Some(UdpTally { packets, duplicates, lost, ..UdpTally::default() }),
            ..Tally::default()
        };
        let mut receiver = tally(93, 3, 4);
        complete_udp(&tally(100, 0, 0), &mut receiver);
        assert_eq!(receiver.udp.map(|udp| udp.lost), Some(10));
    }
}
