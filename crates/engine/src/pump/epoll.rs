//! Many TCP streams in one thread: level-triggered epoll, and one buffer for all streams.
//!
//! Streams with a rate are not watched for readiness; the pump serves them when they are due.

use std::net::TcpStream;
use std::time::Duration;

use linerate_sock::poll::{Events, Interest, Poller};
use linerate_sock::stream::{recv, set_nonblocking};
use linerate_sock::{Mono, Moved, SockError, clock, queues};
use linerate_units::Bitrate;

use super::arrival_times::ArrivalTimes;
use super::feed::{Drain, Feed};
use super::{PumpEnd, PumpGuard, StreamEnd, StreamError, queued};
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::pacer::PacingSchedule;

/// Most streams served between two checks for orders.
const EVENTS: usize = 256;
/// Most chunks of a burst before the other streams have their turn.
const CHUNKS_PER_TURN: usize = 16;
/// Shortest interval between two attempts on streams that are due but not ready.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Makes every call on this socket return at once.
pub(crate) fn prepare(socket: &TcpStream) -> Result<(), SockError> {
    set_nonblocking(socket, true)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EpollStreamPhase {
    /// Bytes may move.
    Open,
    /// Everything is written and half-closed; the peer's FIN has not arrived yet.
    Closing,
    Ended,
}

struct EpollStream<'f> {
    end: StreamEnd,
    socket: &'f TcpStream,
    meter: CounterWriter<'f>,
    times: ArrivalTimes,
    left: u64,
    phase: EpollStreamPhase,
}

/// The streams of one pump and the epoll instance that watches them.
struct EpollStreams<'f> {
    flow: &'f FlowSide,
    slots: Vec<EpollStream<'f>>,
    poller: Poller,
    pace: Option<PacingSchedule>,
    chunk: usize,
    /// Readiness that an open stream waits for; [`Interest::ERROR`] for paced streams.
    interest: Interest,
    open: usize,
    closing: usize,
}

impl<'f> EpollStreams<'f> {
    /// `stamped`: whether the arrival of slow streams is timestamped.
    fn new(
        flow: &'f FlowSide,
        pump: usize,
        rate: Option<Bitrate>,
        ready: Interest,
        stamped: bool,
    ) -> Result<Self, SockError> {
        let interest = if rate.is_some() { Interest::ERROR } else { ready };
        let poller = Poller::new()?;
        let mut slots = Vec::new();
        for stream in flow.plan.streams_of(pump) {
            let Some(socket) = flow.sockets.tcp(stream) else { continue };
            poller.add(socket, slots.len() as u64, interest)?;
            let end = StreamEnd { stream, ..StreamEnd::default() };
            let (meter, left) = (flow.meter(stream), flow.plan.share(&flow.setup, stream));
            let times = ArrivalTimes::new(socket, stamped);
            slots.push(EpollStream { end, socket, meter, times, left, phase: EpollStreamPhase::Open });
        }
        Ok(Self {
            open: slots.len(),
            slots,
            poller,
            pace: None,
            chunk: rate.map_or(flow.plan.block, |rate| flow.chunk(rate)),
            interest,
            closing: 0,
            flow,
        })
    }

    /// Whether open streams are served when they are due instead of when they are ready.
    fn paced(&self) -> bool {
        self.interest == Interest::ERROR
    }

    fn is_due(&self, slot: &EpollStream<'_>, now: Mono) -> bool {
        let due = |pace: PacingSchedule| pace.due(slot.end.bytes) <= now;
        slot.phase == EpollStreamPhase::Open && (self.flow.control.reads_out() || self.pace.is_none_or(due))
    }

    /// Whether a stream with a rate is not due yet, whatever its socket says.
    fn is_early(&self, index: usize, now: Mono) -> bool {
        self.paced() && !self.is_due(&self.slots[index], now)
    }

    /// When to serve the streams again even if no event wakes the pump.
    fn next_look(&self, now: Mono) -> Mono {
        let latest = now + self.flow.control.max_wait();
        if !self.paced() || self.open == 0 {
            return latest;
        }
        if self.flow.control.reads_out() {
            return now + MIN_POLL_INTERVAL;
        }
        let Some(pace) = &self.pace else { return now + MIN_POLL_INTERVAL };
        let open = self.slots.iter().filter(|slot| slot.phase == EpollStreamPhase::Open);
        let due = open.map(|slot| pace.due(slot.end.bytes)).min().unwrap_or(latest);
        due.clamp(now + MIN_POLL_INTERVAL, latest)
    }

    fn end(&mut self, index: usize, trouble: Option<StreamError>) {
        let slot = &mut self.slots[index];
        match slot.phase {
            EpollStreamPhase::Open => self.open -= 1,
            EpollStreamPhase::Closing => self.closing -= 1,
            EpollStreamPhase::Ended => return,
        }
        slot.phase = EpollStreamPhase::Ended;
        slot.times.end(slot.socket);
        self.flow.stream_ended(&slot.meter, trouble.as_ref());
        slot.end.trouble = trouble;
        // Fails only for a socket that is no longer registered.
        let _ = self.poller.remove(slot.socket);
    }

    /// Half-closes a stream that has written all its bytes.
    fn half_close(&mut self, index: usize) {
        if self.flow.setup.borrowed {
            return self.end(index, None);
        }
        let slot = &mut self.slots[index];
        let closed = queues::finish_writing(slot.socket)
            .and_then(|()| self.poller.modify(slot.socket, index as u64, Interest::READ));
        if let Err(error) = closed {
            return self.end(index, Some(error.into()));
        }
        slot.phase = EpollStreamPhase::Closing;
        self.open -= 1;
        self.closing += 1;
    }

    fn write_once(&mut self, index: usize, feed: &mut Feed) {
        let slot = &mut self.slots[index];
        let in_tick = self.pace.as_ref().map_or(u64::MAX, |pace| pace.left_in_tick(slot.end.bytes));
        match feed.send(slot.socket, slot.left.min(self.chunk as u64).min(in_tick)) {
            Ok(moved) => {
                let bytes = moved.bytes() as u64;
                slot.end.bytes += bytes;
                slot.left -= bytes;
                if bytes > 0 {
                    slot.meter.count(clock::now(), bytes);
                }
                if self.slots[index].left == 0 {
                    self.half_close(index);
                }
            }
            Err(error) => self.end(index, Some(error.into())),
        }
    }

    fn read_once(&mut self, index: usize, drain: &mut Drain) {
        let slot = &mut self.slots[index];
        let taken = if slot.times.are_on() {
            drain.recv_stamped(slot.socket, self.chunk)
        } else {
            drain.recv(slot.socket, self.chunk).map(|moved| (moved, None))
        };
        let (taken, stamp_ns) = taken.map_or_else(|error| (Err(error), None), |(moved, at)| (Ok(moved), at));
        match taken {
            Ok(Moved::Bytes(bytes)) => {
                let (now, bytes) = (clock::now(), bytes as u64);
                let arrived = slot.times.of_read(now, stamp_ns);
                slot.end.bytes += bytes;
                if slot.meter.is_new() && slot.meter.begin(arrived.unwrap_or(now), bytes) {
                    self.flow.control.notify_begun();
                }
                slot.meter.count_read(now, arrived, bytes);
                slot.times.after(slot.socket, now, bytes);
                if self.pace.is_none() && self.paced() {
                    self.pace = self.flow.setup.read_rate.and_then(|rate| PacingSchedule::new(now, rate));
                }
            }
            Ok(Moved::Pending) => {}
            Ok(Moved::Closed) => {
                if !self.flow.setup.borrowed {
                    // Fails only if the peer has already closed the connection.
                    let _ = queues::finish_writing(slot.socket);
                }
                self.end(index, None);
            }
            Err(error) => self.end(index, Some(error.into())),
        }
    }

    /// Checks whether the peer has closed a stream that is written to.
    fn check_closed(&mut self, index: usize) {
        let mut ignored = [0; 4096];
        match recv(self.slots[index].socket, &mut ignored) {
            Ok(Moved::Closed) => self.end(index, None),
            Ok(_) => {}
            Err(error) => self.end(index, Some(error.into())),
        }
    }

    fn finish(mut self, half_closes: bool) -> PumpEnd {
        for index in 0..self.slots.len() {
            let half_closed = self.slots[index].phase != EpollStreamPhase::Open;
            self.end(index, self.flow.stop_result().err());
            if half_closes {
                let end = &mut self.slots[index].end;
                end.queued = queued(self.flow, end.stream, half_closed);
            }
        }
        PumpEnd { streams: self.slots.into_iter().map(|slot| slot.end).collect(), ..PumpEnd::default() }
    }
}

/// Writes each stream up to its limit, half-closes it and waits until the peer closes it too.
pub(crate) fn write(flow: &FlowSide, pump: usize, guard: &mut PumpGuard<'_>, mut feed: Feed) -> PumpEnd {
    let mut stream_set = match EpollStreams::new(flow, pump, flow.setup.offered, Interest::WRITE, false) {
        Ok(stream_set) => stream_set,
        Err(error) => return failed(flow, pump, error),
    };
    let mut now = clock::now();
    for slot in &stream_set.slots {
        if slot.meter.begin(now, 0) {
            flow.control.notify_begun();
        }
    }
    let pace = flow.setup.offered.and_then(|rate| PacingSchedule::new(now, rate));
    stream_set.pace = pace.map(|pace| pace.in_ticks(flow.setup.pacing_tick));
    let mut events = Events::with_capacity(EVENTS);
    for index in 0..stream_set.slots.len() {
        if stream_set.slots[index].left == 0 {
            stream_set.half_close(index);
        }
    }
    loop {
        let until = flow.write_until();
        if stream_set.open > 0 && (now >= until || !flow.control.may_write()) && !flow.control.aborted() {
            let open = |stream_set: &EpollStreams<'_>, index: usize| {
                stream_set.slots[index].phase == EpollStreamPhase::Open
            };
            (0..stream_set.slots.len()).for_each(|index| {
                if open(&stream_set, index) {
                    stream_set.half_close(index)
                }
            });
        }
        if stream_set.open == 0 {
            guard.written();
        }
        if stream_set.open + stream_set.closing == 0 || flow.control.aborted() {
            let copied = stream_set.slots.iter().any(|slot| feed.copied(slot.socket));
            return PumpEnd { copied, ..stream_set.finish(true) };
        }
        let look = stream_set.next_look(now);
        let look = if stream_set.open > 0 { look.min(until) } else { look };
        if stream_set.poller.wait(&mut events, look).is_err() {
            return stream_set.finish(true);
        }
        now = clock::now();
        for ready in events.iter() {
            let index = ready.token as usize;
            // Completions of MSG_ZEROCOPY would wake this thread again and again.
            feed.collect(stream_set.slots[index].socket);
            match stream_set.slots[index].phase {
                EpollStreamPhase::Open if stream_set.is_early(index, now) => {}
                EpollStreamPhase::Open => stream_set.write_once(index, &mut feed),
                EpollStreamPhase::Closing => stream_set.check_closed(index),
                EpollStreamPhase::Ended => {}
            }
        }
        if stream_set.paced() && now < until {
            for index in 0..stream_set.slots.len() {
                // Once, unless a whole burst is due.
                let times = if flow.setup.pacing_tick.is_some() { CHUNKS_PER_TURN } else { 1 };
                for _ in 0..times {
                    let before = stream_set.slots[index].end.bytes;
                    if !stream_set.is_due(&stream_set.slots[index], now) || !flow.control.may_write() {
                        break;
                    }
                    stream_set.write_once(index, &mut feed);
                    if stream_set.slots[index].end.bytes == before {
                        break;
                    }
                }
            }
        }
    }
}

/// Reads each stream until the peer has half-closed it, and closes it.
pub(crate) fn read(flow: &FlowSide, pump: usize, mut drain: Drain) -> PumpEnd {
    // What waits for a reader with a limited rate arrived long before.
    let stamped = flow.setup.read_rate.is_none() && !drain.discards();
    let mut stream_set = match EpollStreams::new(flow, pump, flow.setup.read_rate, Interest::READ, stamped) {
        Ok(stream_set) => stream_set,
        Err(error) => return failed(flow, pump, error),
    };
    let mut events = Events::with_capacity(EVENTS);
    let mut now = clock::now();
    while stream_set.open > 0 && flow.control.may_read(now) {
        if stream_set.poller.wait(&mut events, stream_set.next_look(now)).is_err() {
            break;
        }
        now = clock::now();
        for ready in events.iter() {
            stream_set.read_once(ready.token as usize, &mut drain);
        }
        if stream_set.paced() {
            for index in 0..stream_set.slots.len() {
                if stream_set.is_due(&stream_set.slots[index], now) {
                    stream_set.read_once(index, &mut drain);
                }
            }
        }
    }
    stream_set.finish(false)
}

/// The result of a pump that could not start.
fn failed(flow: &FlowSide, pump: usize, error: SockError) -> PumpEnd {
    let trouble = StreamError::from(error);
    let end = |stream| StreamEnd { stream, trouble: Some(trouble.clone()), ..StreamEnd::default() };
    PumpEnd { streams: flow.plan.streams_of(pump).map(end).collect(), ..PumpEnd::default() }
}
