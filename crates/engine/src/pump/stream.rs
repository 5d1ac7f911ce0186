//! One TCP stream in one thread with blocking calls.

use linerate_sock::handle::AsFd;
use std::net::TcpStream;
use std::time::Duration;

use linerate_model::flow::{EndMark, PayloadFraming};
use linerate_sock::poll::Interest;
use linerate_sock::stream::{recv, set_nonblocking, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues};

use super::arrival_times::ArrivalTimes;
use super::feed::{Drain, Feed};
use super::low_water::LowWater;
use super::messages::MessageCounter;
use super::notes::NoteReader;
use super::{PumpEnd, PumpGuard, StreamEnd, StreamError, queued};
use crate::control::{MAX_PUMP_WAIT, PumpControl};
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::pacer::{self, PacingSchedule};

/// Makes every call on this socket return within `timeout`.
pub(crate) fn prepare(fd: &impl AsFd, timeout: Duration) -> Result<(), SockError> {
    set_nonblocking(fd, false)?;
    set_recv_timeout(fd, Some(timeout))?;
    set_send_timeout(fd, Some(timeout))
}

/// Writes up to the limit, half-closes, and waits until the peer closes too.
pub(crate) fn write(flow: &FlowSide, pump: usize, guard: &mut PumpGuard<'_>, mut feed: Feed) -> PumpEnd {
    let Some(socket) = flow.sockets.tcp(pump) else { return PumpEnd::default() };
    let meter = flow.meter(pump);
    let filled = fill(flow, pump, &meter, socket, &mut feed);
    // An abort must not look like a regular end to the peer: closing the socket will send a reset.
    let ends_well = filled.is_ok() && !flow.control.aborted();
    let half_closed = ends_well && queues::finish_writing(socket).is_ok();
    guard.written();
    let ended = filled.map_err(StreamError::from).and_then(|()| await_close(&flow.control, socket));
    let end = StreamEnd {
        stream: pump,
        bytes: flow.counters[pump].read().total,
        queued: queued(flow, pump, half_closed),
        trouble: ended.err(),
        mark: None,
        sequence: None,
        position: None,
    };
    flow.stream_ended(&meter, end.trouble.as_ref());
    PumpEnd { streams: vec![end], copied: feed.copied(socket), ..PumpEnd::default() }
}

/// The sender's loop.
fn fill(
    flow: &FlowSide,
    stream: usize,
    meter: &CounterWriter<'_>,
    socket: &TcpStream,
    feed: &mut Feed,
) -> Result<(), SockError> {
    let start = clock::now();
    if meter.begin(start, 0) {
        flow.control.notify_begun();
    }
    let pace = flow.setup.offered.and_then(|rate| PacingSchedule::new(start, rate));
    let pace = pace.map(|pace| pace.in_ticks(flow.setup.pacing_tick));
    let chunk = flow.setup.offered.map_or(u64::MAX, |rate| flow.chunk(rate) as u64);
    let mut left = flow.plan.share(&flow.setup, stream);
    let (mut sent, mut hurried) = (0, false);
    while left > 0 && flow.control.may_write() {
        let until = flow.write_until();
        if let Some(pace) = &pace {
            let due = pace.due(sent);
            if due >= until || !flow.control.sleep_until(due, PumpControl::may_write) {
                flow.control.sleep_until(until.min(due), PumpControl::may_write);
                break;
            }
        }
        let most = left.min(chunk).min(pace.as_ref().map_or(u64::MAX, |pace| pace.left_in_tick(sent)));
        let moved = feed.send(socket, most)?.bytes() as u64;
        let now = clock::now();
        if moved > 0 {
            meter.count(now, moved);
            sent += moved;
            left -= moved;
        }
        if now >= until {
            break;
        }
        // On a slow path, the last call must not exceed the end of the test by a whole timeout.
        if !hurried && until.since(now) < MAX_PUMP_WAIT {
            set_send_timeout(socket, Some(until.since(now)))?;
            hurried = true;
        }
    }
    Ok(())
}

/// Waits for the peer's FIN, which shows that it has read everything.
fn await_close(control: &PumpControl, socket: &TcpStream) -> Result<(), StreamError> {
    let mut ignored = [0; 4096];
    while !control.aborted() {
        if recv(socket, &mut ignored)? == Moved::Closed {
            return Ok(());
        }
    }
    Err(StreamError::Aborted)
}

/// Reads until the peer has half-closed, and closes.
pub(crate) fn read(flow: &FlowSide, pump: usize, mut drain: Drain) -> PumpEnd {
    let Some(socket) = flow.sockets.tcp(pump) else { return PumpEnd::default() };
    let meter = flow.meter(pump);
    let ended = empty(flow, pump, &meter, socket, &mut drain);
    if ended.is_ok() && !flow.setup.borrowed {
        // Fails only if the peer has already closed the connection.
        let _ = queues::finish_writing(socket);
    }
    let bytes = flow.counters[pump].read().total;
    let end = StreamEnd { stream: pump, bytes, trouble: ended.err(), ..StreamEnd::default() };
    flow.stream_ended(&meter, end.trouble.as_ref());
    PumpEnd { streams: vec![end], ..PumpEnd::default() }
}

/// The receiver's loop.
fn empty(
    flow: &FlowSide,
    stream: usize,
    meter: &CounterWriter<'_>,
    socket: &TcpStream,
    drain: &mut Drain,
) -> Result<(), StreamError> {
    let chunk = flow.setup.read_rate.map_or(usize::MAX, |rate| pacer::chunk(rate, flow.plan.block));
    let length = if let EndMark::Length(bytes) = flow.setup.end_mark { bytes } else { u64::MAX };
    let mut pace = None;
    // A reader with a limited rate wakes up by its schedule and needs no mark. The end of a given length may be less
    // than a mark, and the peer waits for an answer to it. A decrypted record needs no further bytes.
    let is_chunked = matches!(flow.setup.framing, PayloadFraming::Chunks(_));
    let marked = flow.setup.read_rate.is_none() && length == u64::MAX && !is_chunked && !drain.decrypts();
    let most = if marked { flow.plan.block } else { 0 };
    let mut low_water = LowWater::new(socket, &flow.counters, most, flow.control.max_wait());
    // What waits for a reader with a limited rate arrived long before. Stamps are of encrypted bytes.
    let stamped = flow.setup.read_rate.is_none() && !drain.discards() && !drain.decrypts();
    let mut times = ArrivalTimes::new(socket, stamped);
    let (mut taken, mut now) = (0, Mono::default());
    let mut notes = flow.setup.note.map(|note| NoteReader::new(note, flow.plan.block));
    let mut blocks = flow.block_reader(stream);
    let mut messages = MessageCounter::new(flow.setup.framing);
    while flow.control.may_read(now) {
        if taken >= length {
            times.end(socket);
            return Ok(());
        }
        let chunk = chunk.min(usize::try_from(length - taken).unwrap_or(usize::MAX));
        if let Some(pace) = &pace {
            let due = PacingSchedule::due(pace, taken);
            flow.control.sleep_until(due, |control| !control.reads_out() && !control.aborted());
        }
        let (moved, stamp_ns) = if times.are_on() {
            drain.recv_stamped(socket, chunk)?
        } else {
            (drain.recv(socket, chunk)?, None)
        };
        now = clock::now();
        match moved {
            Moved::Bytes(bytes) => {
                let arrived = times.of_read(now, stamp_ns);
                let payload = match &mut messages {
                    Some(messages) => messages.count(drain.taken(bytes))?,
                    None => bytes as u64,
                };
                // A header alone is not the beginning of the payload.
                let counts = payload > 0 || messages.is_none();
                if counts && meter.is_new() {
                    pace = flow.setup.read_rate.and_then(|rate| PacingSchedule::new(now, rate));
                    if meter.begin(arrived.unwrap_or(now), payload) {
                        flow.control.notify_begun();
                    }
                }
                drain.keep(bytes)?;
                if counts {
                    meter.count_read(now, arrived, payload);
                }
                times.after(socket, now, bytes as u64);
                taken += bytes as u64;
                if let Some(notes) = &mut notes {
                    notes.see(drain.taken(bytes), meter);
                }
                if let Some(blocks) = &mut blocks {
                    blocks.take(drain.taken(bytes));
                }
                if messages.as_ref().is_some_and(MessageCounter::is_over) {
                    times.end(socket);
                    return Ok(());
                }
                low_water.after(now, bytes);
            }
            Moved::Pending => {
                low_water.after(now, 0);
                flow.pause(socket, Interest::READ)?;
            }
            Moved::Closed => return Ok(()),
        }
    }
    times.end(socket);
    flow.stop_result()
}
