//! How long a sender at a rate has sent, and requests at a rate were made.
//!
//! Each write has a slot in the schedule, which ends when the next write is due. From the first write to the last, n
//! writes would count in n - 1 slots, and a low rate would be too high.

use std::time::Duration;

use linerate_model::StopAfter;
use linerate_sock::Mono;
use linerate_units::{Bitrate, Bytes, Span};

use crate::counters::Counts;
use crate::flow::FlowSide;
use crate::pump::StreamEnd;
use crate::tally::bursts;

/// The slots of what a sender wrote in its measured part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentSlots {
    /// When the first one began.
    from: Mono,
    /// When the last one ends, even if the flow ended before.
    until: Mono,
    /// When the flow had sent for its time, or was stopped.
    over: Mono,
    /// The last write.
    last: Mono,
}

impl SentSlots {
    /// Those of a flow that sends at a rate for a time. Absent for other flows: an amount is sent with its last write.
    /// Bursts have a rule of their own.
    pub(crate) fn of(flow: &FlowSide, ends: &[StreamEnd]) -> Option<Self> {
        let counts = Counts::of(&flow.counters);
        let timed = matches!(flow.setup.stop_after, StopAfter::TimeNs(_));
        if !flow.writes() || !timed || counts.inside == 0 || bursts(&flow.setup).is_some() {
            return None;
        }
        let opens = flow.part.opens();
        let of_stream = |end: &StreamEnd| {
            let omitted = flow.counters.get(end.stream)?.read().omitted;
            let position = end.position.or_else(|| flow.schedule_position(end.stream))?;
            // The omitted part may end within a slot, whose write is not counted.
            let from = if omitted == 0 { opens } else { position.due_after(omitted).max(opens) };
            Some((from, position.next_due()))
        };
        let (from, until) = ends
            .iter()
            .filter_map(of_stream)
            .reduce(|all, stream| (all.0.min(stream.0), all.1.max(stream.1)))?;
        let over = flow.write_until().min(flow.control.stopped_at());
        Some(Self { from, until, over, last: Mono(counts.last_inside) })
    }

    /// The time of the slots, of the last one only what belongs to the test.
    pub(crate) fn elapsed(&self) -> Span {
        Span::from(self.until.min(self.over).max(self.last).since(self.from))
    }

    /// The rate of these bytes over whole slots: the requested one, unless the pace was missed.
    pub(crate) fn pace(&self, bytes: Bytes) -> Option<Bitrate> {
        Bitrate::of(bytes, Span::from(self.until.max(self.last).since(self.from)))
    }
}

/// What the last block or datagram of a receiver takes at the rate of its sender, if a part was omitted: otherwise the
/// first read is not counted, and n - 1 writes take n - 1 slots.
pub(crate) fn last_received(flow: &FlowSide) -> Option<Span> {
    let setup = &flow.setup;
    let rate = setup.offered.filter(|_| !flow.writes() && flow.part.omits() && bursts(setup).is_none())?;
    let bytes = match flow.sockets.udp(0) {
        Some(_) => (setup.datagram_length() as u64).saturating_mul(setup.burst.unwrap_or(1).max(1).into()),
        None => flow.chunk(rate) as u64,
    };
    rate.time_for(Bytes::new(bytes))
}

/// The slots of requests that are made at a rate for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSlots {
    pub(crate) per_second: u64,
    /// When the first one began; absent at the side that responds, which knows only when requests arrived.
    pub(crate) origin: Option<Mono>,
    /// When the measured part began.
    pub(crate) opens: Mono,
    /// When the flow had made requests for its time, or was stopped.
    pub(crate) over: Mono,
}

impl RequestSlots {
    /// Those of a flow; absent if a request follows a response, or if the flow ends after a number of them.
    pub(crate) fn of(flow: &FlowSide) -> Option<Self> {
        let setup = flow.setup.transactions.as_ref().filter(|setup| setup.requests.is_none())?;
        let StopAfter::TimeNs(_) = flow.setup.stop_after else { return None };
        let per_second = setup.per_second.filter(|rate| *rate > 0)?;
        let origin = if flow.writes() { Some(flow.part.begun()?) } else { None };
        let over = match origin {
            Some(_) => flow.write_until().min(flow.control.stopped_at()),
            None => flow.part.closes(),
        };
        Some(Self { per_second, origin, opens: flow.part.opens(), over })
    }

    /// The time of the slots of the measured part, if the last transaction in it was complete at `last`.
    pub(crate) fn elapsed(&self, last: Mono) -> Span {
        let (from, until) = match self.origin {
            Some(origin) => {
                let slots = |at: Mono| at.since(origin).as_nanos() * u128::from(self.per_second);
                let (first, next) =
                    (slots(self.opens).div_ceil(NS_PER_SECOND), slots(last) / NS_PER_SECOND + 1);
                (origin + self.time_of(first), origin + self.time_of(next))
            }
            None => (self.opens, last + self.time_of(1)),
        };
        Span::from(until.min(self.over).max(last).since(from))
    }

    fn time_of(&self, slots: u128) -> Duration {
        let ns = slots * NS_PER_SECOND / u128::from(self.per_second);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

const NS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use linerate_model::flow::FlowId;
    use linerate_model::{Side, Transport};
    use proptest::prelude::*;

    use super::*;
    use crate::setup::{FlowSetup, Sockets};

    const MS: u64 = 1_000_000;
    /// When the flow begins.
    const BEGIN: Mono = Mono(77 * MS);
    const LENGTH: u64 = 1000;

    /// A flow of datagrams of 1000 bytes, with a gap of `gap_ms` between them.
    fn setup(side: Side, gap_ms: u64, omit_ms: u64, measured_ms: u64) -> FlowSetup {
        let measured = Span::from_ms(measured_ms);
        FlowSetup {
            transport: Transport::Udp,
            omit: Span::from_ms(omit_ms),
            stop_after: StopAfter::TimeNs(Span::from_ms(omit_ms + measured_ms)),
            offered: Bitrate::from_bps(8_000.0 * LENGTH as f64 / gap_ms as f64),
            length: Some(Bytes::new(LENGTH)),
            ..FlowSetup::new(FlowId(0), side, measured)
        }
    }

    /// The flow after it has moved a datagram at each of these times, in ms after its begin.
    fn moved(setup: FlowSetup, at_ms: impl IntoIterator<Item = u64>) -> FlowSide {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let flow = FlowSide::new(setup, Sockets::Udp(vec![socket])).unwrap();
        let meter = flow.meter(0);
        for at_ms in at_ms {
            let now = BEGIN + Duration::from_millis(at_ms);
            if meter.is_new() {
                meter.begin(now, if flow.writes() { 0 } else { LENGTH });
            }
            meter.count(now, LENGTH);
        }
        flow
    }

    fn slots_of(flow: &FlowSide) -> Option<SentSlots> {
        SentSlots::of(flow, &[StreamEnd::default()])
    }

    fn sent_ms(setup: FlowSetup, at_ms: impl IntoIterator<Item = u64>) -> Option<u64> {
        slots_of(&moved(setup, at_ms)).map(|slots| slots.elapsed().as_ns() / MS)
    }

    #[test]
    fn the_last_datagram_of_a_paced_sender_has_its_slot() {
        let of = |measured_ms| setup(Side::Sender, 100, 0, measured_ms);
        assert_eq!(sent_ms(of(300), [0, 100, 200]), Some(300), "as many as slots");
        assert_eq!(sent_ms(of(250), [0, 100, 200]), Some(250), "the rest of the slot is after the test");
        assert_eq!(sent_ms(of(300), [0]), Some(100));
        assert_eq!(sent_ms(of(50), [0]), Some(50));
        // One is late, and a host that cannot keep the pace has used its slots when it sends.
        assert_eq!(sent_ms(of(300), [0, 130, 200]), Some(300));
        assert_eq!(sent_ms(of(300), [0, 190, 290]), Some(300));
        assert_eq!(sent_ms(of(300), [0, 190, 310]), Some(310), "the last call ended after the test");
        assert_eq!(sent_ms(of(300), []), None);
    }

    #[test]
    fn only_a_sender_at_a_rate_for_a_time_has_slots() {
        let paced = setup(Side::Sender, 100, 0, 300);
        let at_ms = [0, 100, 200];
        assert_eq!(sent_ms(FlowSetup { offered: None, ..paced.clone() }, at_ms), None);
        let amount = StopAfter::Bytes(Bytes::new(3 * LENGTH));
        assert_eq!(sent_ms(FlowSetup { stop_after: amount, ..paced.clone() }, at_ms), None);
        assert_eq!(sent_ms(FlowSetup { pacing_tick: Some(Span::from_ms(100)), ..paced }, at_ms), None);
        assert_eq!(sent_ms(setup(Side::Receiver, 100, 0, 300), at_ms), None);
    }

    #[test]
    fn refused_datagrams_have_had_their_slots() {
        let flow = moved(setup(Side::Sender, 100, 0, 900), [0, 100, 200]);
        let counted = flow.schedule_position(0).unwrap();
        // Of ten that were due, the kernel refused the last seven.
        let position = Some(crate::pacer::SchedulePosition { passed: 10 * LENGTH, ..counted });
        let slots = SentSlots::of(&flow, &[StreamEnd { position, ..StreamEnd::default() }]).unwrap();
        assert_eq!(slots.elapsed(), Span::from_ms(900));
        assert_eq!(slots.pace(Bytes::new(3 * LENGTH)), Bitrate::from_bps(24_000.0));
    }

    #[test]
    fn a_stopped_flow_has_the_time_until_it_was_stopped() {
        let flow = moved(setup(Side::Sender, 100, 0, u64::MAX / MS / 2), [0, 100]);
        assert_eq!(slots_of(&flow).unwrap().elapsed(), Span::from_ms(200));
        flow.control.stop_writing();
        // The clock of this machine is far ahead of the times of the flow.
        let slots = slots_of(&flow).unwrap();
        assert_eq!(slots.over, flow.control.stopped_at());
        let stopped = SentSlots { over: BEGIN + Duration::from_millis(150), ..slots };
        assert_eq!(stopped.elapsed(), Span::from_ms(150));
    }

    #[test]
    fn a_receiver_that_omits_counts_the_slot_of_its_last_datagram() {
        let last = |setup: FlowSetup| last_received(&moved(setup, [0, 100, 200]));
        assert_eq!(last(setup(Side::Receiver, 100, 50, 300)), Some(Span::from_ms(100)));
        assert_eq!(last(setup(Side::Receiver, 100, 0, 300)), None, "the first read is left out instead");
        let unpaced = FlowSetup { offered: None, ..setup(Side::Receiver, 100, 50, 300) };
        assert_eq!(last(unpaced), None);
    }

    proptest! {
        /// With n datagrams in n slots, the rate is the requested one, or higher by the part of the last slot that is
        /// after the test: whatever was omitted, and however late single datagrams are.
        #[test]
        fn the_rate_of_a_kept_pace_is_the_requested_one(
            gap_ms in 4u64..500, omit_ms in 0u64..1000, measured_ms in 1u64..3000, late_ms in 0u64..2,
        ) {
            let end_ms = omit_ms + measured_ms;
            let due = (0..).map(|number| number * gap_ms).take_while(|due_ms| *due_ms < end_ms);
            let at_ms = due.map(|due_ms| if due_ms == 0 { 0 } else { due_ms + late_ms });
            let flow = moved(setup(Side::Sender, gap_ms, omit_ms, measured_ms), at_ms);
            let Some(slots) = slots_of(&flow) else { return Ok(()) };
            let bytes = Counts::of(&flow.counters).inside;
            let count = bytes / LENGTH;
            prop_assert!(slots.elapsed() <= Span::from_ms(measured_ms + 2 * late_ms));
            prop_assert!(slots.elapsed() + Span::from_ms(2) >= Span::from_ms((count - 1) * gap_ms));
            let asked = 8_000.0 * LENGTH as f64 / gap_ms as f64;
            let pace = slots.pace(Bytes::new(bytes)).unwrap().bps();
            let late = 1.5 * (late_ms as f64 + 0.001) / (count * gap_ms) as f64;
            prop_assert!((pace / asked - 1.0).abs() < late, "{pace} instead of {asked}");
            if end_ms.is_multiple_of(gap_ms) && late_ms == 0 {
                let rate = Bitrate::of(Bytes::new(bytes), slots.elapsed()).unwrap().bps();
                prop_assert!((rate / asked - 1.0).abs() < 1e-6, "{rate}");
            }
        }
    }
}
