//! Sends datagrams: one per call if the gap between them is long enough to sleep, otherwise several that the
//! kernel cuts (GSO).

use std::net::UdpSocket;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::time::Duration;

use linerate_model::flow::StampLayout;
use linerate_sock::batch::{MAX_DATAGRAM, MAX_SEGMENTS, send_segments};
use linerate_sock::departure::DepartureClock;
use linerate_sock::poll::Interest;
use linerate_sock::stream::{send, set_nonblocking, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, cost, sockopt};
use linerate_units::{Bitrate, Bytes};

use super::departures::{self, TimedDepartures};
use super::{PumpEnd, PumpGuard, StreamEnd, payload};
use crate::control::PumpControl;
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::histogram::TimeHistogram;
use crate::pacer::{PacingSchedule, SchedulePosition};
use crate::stamp::{self, Stamp};

/// Bounds of the shortest time that a thread sleeps between datagrams: what a thread can keep, and what a short queue
/// takes at once.
const SHORTEST_SLEEP: RangeInclusive<Duration> = Duration::from_micros(20)..=Duration::from_micros(50);
/// The shortest sleep is this many times what it costs, so that sleeping takes a third of a core at most.
const SLEEP_PER_COST: u32 = 3;
/// A stand-in sends datagrams one at a time, like the original program, unless their gap is shorter than this. Then it sends
/// what is due within the batch time together.
const MIN_SLEEP_OF_OTHERS: Duration = Duration::from_micros(10);
const BATCH_OF_OTHERS: Duration = Duration::from_micros(50);
/// Sleeps whose cost is measured, and their length.
const TRIED_SLEEPS: u32 = 50;
const TRIED_SLEEP: Duration = Duration::from_micros(20);
/// Datagrams per call that kernels before Linux 6.9 cut; they refuse more.
const OLD_MAX_SEGMENTS: usize = 64;
/// Most bytes per call, below the limit of every kernel.
const MAX_CALL_BYTES: usize = 65_000;
/// Backoff before retrying a send that failed with ENOBUFS, where no datagram may be left out.
const NO_BUFFER_BACKOFF: Duration = Duration::from_millis(1);
/// Header bytes of a datagram over IPv4: 20 of IP and 8 of UDP. Over IPv6, where they are more, the kernel
/// refuses.
const HEADERS: usize = 28;

/// Datagrams passed to the kernel together.
pub(crate) struct DatagramBatch {
    bytes: Vec<u8>,
    /// The first datagram of a stream, if it is longer.
    first: Option<Vec<u8>>,
    length: usize,
    /// Datagrams between two deadlines.
    burst: usize,
    /// Whether the kernel cuts a burst into datagrams (GSO); otherwise each takes a call.
    cut: bool,
    /// When they depart, if a queueing discipline keeps these times.
    departures: Option<TimedDepartures>,
    layout: StampLayout,
}

/// Makes every call on this socket return within `timeout`.
pub(crate) fn prepare(socket: &UdpSocket, timeout: Duration) -> Result<(), SockError> {
    set_nonblocking(socket, false)?;
    set_send_timeout(socket, Some(timeout))
}

/// The shortest time that a thread sleeps between datagrams. With shorter gaps, those that are due within this time leave
/// together.
fn shortest_sleep() -> Duration {
    static FOUND: OnceLock<Duration> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let cost = cost::sleep(TRIED_SLEEPS, TRIED_SLEEP);
        (cost * SLEEP_PER_COST).clamp(*SHORTEST_SLEEP.start(), *SHORTEST_SLEEP.end())
    })
}

/// Datagrams between two deadlines, as requested or as their gap requires.
fn burst(
    length: usize,
    offered: Option<Bitrate>,
    asked: Option<u32>,
    shortest: Duration,
    borrowed: bool,
) -> usize {
    let most = (MAX_CALL_BYTES / length.max(1)).clamp(1, MAX_SEGMENTS);
    if let Some(asked) = asked.filter(|_| offered.is_some()) {
        return (asked as usize).clamp(1, most);
    }
    let Some(gap) = offered.and_then(|rate| rate.time_for(Bytes::new(length as u64))) else { return most };
    let shortest = match gap.as_duration() {
        gap if borrowed && gap >= MIN_SLEEP_OF_OTHERS => return 1,
        _ if borrowed => BATCH_OF_OTHERS,
        _ => shortest,
    };
    let together = shortest.as_nanos().div_ceil(u128::from(gap.as_ns().max(1)));
    usize::try_from(together).unwrap_or(most).clamp(1, most)
}

impl DatagramBatch {
    pub(crate) fn new(flow: &FlowSide, clock: Option<DepartureClock>) -> Result<Self, SockError> {
        let (setup, length) = (&flow.setup, flow.setup.datagram_length());
        let paced = setup.offered.is_some() && setup.burst.is_none() && !setup.borrowed;
        let shortest = match setup.pacing_tick {
            Some(tick) if !setup.borrowed => tick.as_duration(),
            _ if paced => shortest_sleep(),
            _ => Duration::ZERO,
        };
        let timed = clock.zip(setup.offered);
        let burst = timed.map_or_else(
            || burst(length, setup.offered, setup.burst, shortest, setup.borrowed),
            |(_, offered)| departures::together(length, offered),
        );
        let departures = timed.map(|(clock, offered)| TimedDepartures::new(clock, length, offered, burst));
        let mut bytes = payload::datagrams(&setup.payload, length, burst)?;
        for datagram in bytes.chunks_mut(length) {
            stamp::write_tag(datagram, &setup.stamp, setup.tag);
        }
        // IP fragments longer datagrams, which GSO does not support.
        let fits = flow
            .sockets
            .udp(0)
            .and_then(|socket| sockopt::path_mtu(socket).ok())
            .is_none_or(|mtu| length + HEADERS <= mtu as usize);
        let first = payload::first(&setup.payload, length, MAX_DATAGRAM)?;
        let cut = burst > 1 && fits && departures.is_none();
        Ok(Self { bytes, first, length, burst, cut, departures, layout: setup.stamp })
    }

    /// Datagrams per call.
    pub(crate) const fn per_call(&self) -> u32 {
        if self.cut { self.burst as u32 } else { 1 }
    }

    /// Sends the next datagrams of a stream, numbered from `seq`, at most `left` bytes; returns datagrams and
    /// bytes.
    fn send(
        &mut self,
        socket: &UdpSocket,
        stream: u32,
        seq: u64,
        left: u64,
    ) -> Result<(u64, u64), SockError> {
        let sent_ns = stamp::now_ns(&self.layout);
        if let Some(first) = self.first.as_mut().filter(|_| seq == 0) {
            stamp::write(first, &self.layout, stream, Stamp { seq, sent_ns });
            return send(socket, first).map(|moved| match moved {
                Moved::Bytes(bytes) => (1, bytes as u64),
                Moved::Pending | Moved::Closed => (0, 0),
            });
        }
        let whole = usize::try_from(left).unwrap_or(usize::MAX).min(self.bytes.len());
        // The last datagram may be shorter, but not shorter than its header.
        let rest = whole % self.length;
        let length = if rest > 0 { whole - rest + rest.max(self.layout.length) } else { whole };
        let bytes = &mut self.bytes[..length];
        if let Some(departures) = &mut self.departures {
            let now = clock::now();
            let sent_at = departures.times(now).map(|time| sent_ns + time.since(now).as_nanos() as u64);
            for ((datagram, seq), sent_ns) in bytes.chunks_mut(self.length).zip(seq..).zip(sent_at) {
                stamp::write(datagram, &self.layout, stream, Stamp { seq, sent_ns });
            }
            let packets = departures.send(socket, bytes, now)?;
            return Ok((packets as u64, length.min(packets * self.length) as u64));
        }
        for (datagram, seq) in bytes.chunks_mut(self.length).zip(seq..) {
            stamp::write(datagram, &self.layout, stream, Stamp { seq, sent_ns });
        }
        if self.cut && length > self.length {
            match send_segments(socket, bytes, self.length as u16) {
                Err(error) if error.refuses_segments() && self.burst > OLD_MAX_SEGMENTS => {
                    self.burst = OLD_MAX_SEGMENTS;
                    self.bytes.truncate(self.burst * self.length);
                    return Ok((0, 0));
                }
                Err(error) if error.refuses_segments() => self.cut = false,
                moved => return moved.map(|moved| self.count(moved)),
            }
        }
        let (mut packets, mut total) = (0, 0);
        for datagram in self.bytes[..length].chunks(self.length) {
            match send(socket, datagram) {
                Ok(Moved::Bytes(bytes)) => {
                    packets += 1;
                    total += bytes as u64;
                }
                // Count what was sent; a persistent error appears again on the next call.
                Ok(_) => break,
                Err(_) if packets > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok((packets, total))
    }

    /// Bytes that leave next in each stream after `offered` bytes of the schedule: what belongs together and is due
    /// before `end`, at least one datagram. Other programs' ticks are those of their timers, which batches may cross; they
    /// have no schedule here.
    fn due(&mut self, schedule: Option<PacingSchedule>, offered: u64, end: Mono) -> u64 {
        let in_tick = schedule.map_or(u64::MAX, |schedule| schedule.left_in_tick(offered));
        let mut datagrams = in_tick.div_ceil(self.length as u64).min(self.burst as u64);
        if let Some((departures, schedule)) = self.departures.as_mut().zip(schedule) {
            departures.follow(schedule, offered);
            datagrams = departures.before(end, datagrams).max(1);
        }
        datagrams * self.length as u64
    }

    fn count(&self, moved: Moved) -> (u64, u64) {
        (moved.bytes().div_ceil(self.length) as u64, moved.bytes() as u64)
    }
}

struct DatagramSender<'f> {
    end: StreamEnd,
    socket: &'f UdpSocket,
    meter: CounterWriter<'f>,
    next_seq: u64,
    left: u64,
}

/// Sends the datagrams of every stream until the limit.
pub(crate) fn write(
    flow: &FlowSide,
    pump: usize,
    guard: &mut PumpGuard<'_>,
    mut datagrams: DatagramBatch,
) -> PumpEnd {
    let mut slots: Vec<DatagramSender<'_>> = flow
        .plan
        .streams_of(pump)
        .filter_map(|stream| {
            let (socket, left) = (flow.sockets.udp(stream)?, flow.plan.share(&flow.setup, stream));
            let end = StreamEnd { stream, ..StreamEnd::default() };
            Some(DatagramSender { end, socket, meter: flow.meter(stream), next_seq: 0, left })
        })
        .collect();
    if flow.setup.offered.is_some() {
        // No current kernel refuses. If it did, deadlines would be up to 50 µs (the default timer slack) late.
        let _ = clock::set_timer_slack_ns(1);
    }
    let start = clock::now();
    for slot in &slots {
        if slot.meter.begin(start, 0) {
            flow.control.notify_begun();
        }
    }
    let setup = &flow.setup;
    let schedule = |start| {
        let pace = setup.offered.and_then(|rate| PacingSchedule::new(start, rate));
        pace.map(|pace| pace.in_ticks(setup.pacing_tick))
    };
    // What a queueing discipline keeps is handed over before its time.
    let ahead = datagrams.departures.as_ref().map_or(Duration::ZERO, TimedDepartures::ahead);
    let mut pace = schedule(start + ahead);
    // A requested burst may be larger than a batch.
    let together = u64::from(setup.burst.unwrap_or(1).max(1)) * datagrams.length as u64;
    let mut offered = 0;
    let timed = datagrams.departures.is_some();
    // When datagrams with departure times are handed over says nothing about their gaps.
    let mut gaps = (pace.is_some() && !timed).then(TimeHistogram::new);
    let mut before = None;
    while flow.control.may_write() {
        let until = flow.write_until();
        if let Some(pace) = &pace {
            let due = pace.due(offered - offered % together).earlier(ahead);
            if !flow.control.sleep_until(due.min(until), PumpControl::may_write) || due >= until {
                break;
            }
        }
        if let Some(gaps) = &mut gaps {
            let now = clock::now();
            if let Some(before) = before.replace(now) {
                gaps.note(u64::try_from(now.since(before).as_nanos()).unwrap_or(u64::MAX));
            }
        }
        let batch = datagrams.due(pace.filter(|_| !setup.borrowed), offered, until + ahead);
        let (mut open, mut sent) = (0, 0);
        for slot in &mut slots {
            sent = slot.burst(flow, &mut datagrams, batch).max(sent);
            open += usize::from(slot.left > 0 && slot.end.trouble.is_none());
        }
        // The first call takes longer than others. Catching up would make the rate at the receiver too high.
        if offered == 0 && !setup.borrowed && !timed {
            pace = schedule(clock::now());
        }
        // A stand-in retries a datagram that the kernel refused; otherwise its time slot has passed.
        offered += if setup.borrowed { sent * datagrams.length as u64 } else { batch };
        if open == 0 || clock::now() >= until {
            break;
        }
    }
    let position = pace.map(|schedule| SchedulePosition { schedule, passed: offered });
    for slot in &mut slots {
        slot.end.position = position;
        flow.stream_ended(&slot.meter, slot.end.trouble.as_ref());
    }
    guard.written();
    PumpEnd {
        streams: slots.into_iter().map(|slot| slot.end).collect(),
        per_call: Some(datagrams.per_call()),
        send_gaps: gaps,
        ..PumpEnd::default()
    }
}

impl DatagramSender<'_> {
    /// Sends the stream's next datagrams, at most `batch` bytes; returns the number sent.
    fn burst(&mut self, flow: &FlowSide, datagrams: &mut DatagramBatch, batch: u64) -> u64 {
        if self.left == 0 || self.end.trouble.is_some() {
            return 0;
        }
        match datagrams.send(self.socket, self.end.stream as u32, self.next_seq, self.left.min(batch)) {
            Ok((packets, bytes)) => {
                if packets > 0 {
                    self.meter.count(clock::now(), bytes);
                    self.meter.sent(packets, 0);
                } else {
                    let _ = flow.pause(self.socket, Interest::WRITE);
                }
                self.next_seq += packets;
                self.end.bytes += bytes;
                // A longer first datagram does not use up the share of others.
                let used = if flow.setup.borrowed { packets * datagrams.length as u64 } else { bytes };
                self.left = self.left.saturating_sub(used);
                packets
            }
            Err(error) => {
                self.refused(flow, error);
                0
            }
        }
    }

    /// A refused datagram was not sent and uses no number.
    fn refused(&mut self, flow: &FlowSide, error: SockError) {
        if error.is_out_of_buffers() || flow.tolerates(&error) {
            self.meter.sent(0, 1);
            if flow.setup.borrowed {
                flow.control.sleep_until(clock::now() + NO_BUFFER_BACKOFF, PumpControl::may_write);
            }
        } else {
            self.end.trouble = Some(error.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_leave_one_by_one_while_the_gap_can_be_slept() {
        let us = Duration::from_micros;
        let burst = |length, bps| burst(length, Bitrate::from_bps(bps), None, us(20), false);
        assert_eq!(burst(1448, 5e8), 1, "23.2 µs");
        assert_eq!(burst(1448, 1e9), 2, "11.6 µs, of which two are more than 20 µs");
        assert_eq!(burst(1448, 2e9), 4, "5.8 µs");
        assert_eq!(burst(64, 1e11), 128, "as many as a call takes");
        assert_eq!(burst(60_000, 1e12), 1, "no two fit into a call");
        let others = |bps| super::burst(1448, Bitrate::from_bps(bps), None, Duration::ZERO, true);
        assert_eq!((others(1e9), others(1.2e9)), (1, 6), "11.6 and 9.65 µs");
        assert_eq!(
            super::burst(1448, None, Some(3), us(20), false),
            44,
            "65000 / 1448; together they leave anyhow"
        );
        let asked = |asked| super::burst(1000, Bitrate::from_bps(1e6), Some(asked), us(20), false);
        assert_eq!((asked(0), asked(7), asked(1000)), (1, 7, 65));
    }
}
