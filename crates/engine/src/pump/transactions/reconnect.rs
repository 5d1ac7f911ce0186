//! A connection for each transaction: connect, request, response, close.
//!
//! The side that responds closes first, so that the addresses of connections that have ended wait (TIME_WAIT) at its
//! end: the other end needs a free port for each connection.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use linerate_sock::stream::{recv, send, set_nonblocking, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues};

use super::schedule::{RequestSchedule, TIMER_SLACK_NS};
use super::{TransactionBuffers, ended, share};
use crate::control::PumpControl;
use crate::flow::FlowSide;
use crate::pump::{PumpEnd, PumpGuard, StreamError};
use crate::transactions::{AcceptedConnections, Connector, TransactionCounters, TransactionSetup};

/// A transaction of which nothing moves for this time has failed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Transactions in a row that may fail before the stream ends with an error.
const MAX_FAILURES: u32 = 10;
/// How long a responder waits for a connection before it looks whether the flow is over.
const ACCEPT_WAIT: Duration = Duration::from_millis(20);

/// Makes transactions until the limit, one at a time, then half-closes the stream's own connection.
pub(super) fn request(
    flow: &FlowSide,
    pump: usize,
    guard: &mut PumpGuard<'_>,
    setup: &TransactionSetup,
    connector: &Connector,
    buffers: TransactionBuffers,
) -> PumpEnd {
    let (Some(counters), Some(own)) = (flow.transactions.get(pump), flow.sockets.tcp(pump)) else {
        return PumpEnd::default();
    };
    let meter = flow.meter(pump);
    let start = clock::now();
    if meter.begin(start, 0) {
        flow.control.notify_begun();
    }
    let schedule =
        setup.per_second.map(|per_second| RequestSchedule::new(start, per_second, flow.plan.streams, pump));
    if schedule.is_some() {
        // No current kernel refuses. If it did, requests would be up to 50 us late, and their times as much longer.
        let _ = clock::set_timer_slack_ns(TIMER_SLACK_NS);
    }
    let until = if setup.requests.is_some() { Mono::FAR } else { flow.write_until() };
    let mut connection = Reconnecting { flow, counters, setup, connector, buffers };
    let most = share(setup, flow.plan.streams, pump);
    let (mut begun, mut failures, mut trouble) = (0, 0, None);
    while begun < most && flow.control.may_write() {
        let mut begins = clock::now();
        if let Some(schedule) = &schedule {
            let due = schedule.due(begun);
            if due >= until || !flow.control.sleep_until(due, PumpControl::may_write) {
                break;
            }
            begins = due;
        }
        if clock::now() >= until {
            break;
        }
        begun += 1;
        match connection.transact(&meter) {
            Ok(done) => {
                let inside = begins >= flow.part.opens();
                counters.complete(done.as_ns(), inside, done <= until, 1);
                if inside {
                    counters.time(done.since(begins).as_nanos() as u64);
                }
                failures = 0;
            }
            Err(error) => {
                counters.fail(begins >= flow.part.opens());
                failures += 1;
                if failures == MAX_FAILURES {
                    trouble = Some(StreamError::from(error));
                    break;
                }
            }
        }
    }
    if let Some(schedule) = &schedule {
        let due = schedule.due_before(until.min(clock::now())).min(most);
        counters.leave_unsent(due.saturating_sub(begun));
    }
    guard.written();
    let closed = match trouble {
        Some(trouble) => Err(trouble),
        None => await_close(flow, own),
    };
    PumpEnd { streams: vec![ended(flow, pump, closed.err())], ..PumpEnd::default() }
}

struct Reconnecting<'f> {
    flow: &'f FlowSide,
    counters: &'f TransactionCounters,
    setup: &'f TransactionSetup,
    connector: &'f Connector,
    buffers: TransactionBuffers,
}

impl Reconnecting<'_> {
    /// One transaction; returns when its response was complete.
    fn transact(&mut self, meter: &crate::counters::CounterWriter<'_>) -> Result<Mono, SockError> {
        let connection = SingleConnection::new(self.connector.connect()?, &self.flow.control, self.counters)?;
        let preface = self.connector.preface();
        // One call for both, because a second segment would be a part of the result.
        let first = self.setup.request.min(self.buffers.outgoing.len());
        let opening = [preface, &self.buffers.outgoing[..first]].concat();
        connection.move_all("send a request or response", opening.len(), |connection, left| {
            send(connection, &opening[opening.len() - left..])
        })?;
        connection.send(&self.buffers.outgoing, self.setup.request - first)?;
        meter.count(clock::now(), self.setup.request as u64);
        connection.receive(&mut self.buffers.incoming, self.setup.response)?;
        let done = clock::now();
        // The peer closes first. If it does not, closing here costs a port for a minute and nothing else.
        let _ = recv(&connection.connection, &mut self.buffers.incoming);
        Ok(done)
    }
}

/// A connection with one transaction, whose calls look for orders.
struct SingleConnection<'f> {
    connection: TcpStream,
    control: &'f PumpControl,
    counters: &'f TransactionCounters,
}

impl<'f> SingleConnection<'f> {
    fn new(
        connection: TcpStream,
        control: &'f PumpControl,
        counters: &'f TransactionCounters,
    ) -> Result<Self, SockError> {
        set_nonblocking(&connection, false)?;
        set_send_timeout(&connection, Some(control.max_wait()))?;
        set_recv_timeout(&connection, Some(control.max_wait()))?;
        Ok(Self { connection, control, counters })
    }

    /// Repeats a call until `left` bytes have moved. Fails if none have for [`IDLE_TIMEOUT`], by an abort, and when the
    /// peer closes.
    fn move_all(
        &self,
        op: &'static str,
        mut left: usize,
        mut call: impl FnMut(&TcpStream, usize) -> Result<Moved, SockError>,
    ) -> Result<(), SockError> {
        let mut give_up: Option<Mono> = None;
        while left > 0 {
            match call(&self.connection, left)? {
                Moved::Bytes(moved) => {
                    left -= moved.min(left);
                    self.counters.moved(moved as u64);
                    give_up = None;
                }
                Moved::Closed => return Err(SockError::new(op, ErrorKind::UnexpectedEof.into())),
                Moved::Pending => {
                    if give_up.get_or_insert_with(|| clock::now() + IDLE_TIMEOUT).has_passed() {
                        return Err(SockError::new(op, ErrorKind::TimedOut.into()));
                    }
                }
            }
            if self.control.aborted() {
                return Err(SockError::new(op, ErrorKind::Interrupted.into()));
            }
        }
        Ok(())
    }

    /// Sends `left` bytes, whose contents mean nothing.
    fn send(&self, bytes: &[u8], left: usize) -> Result<(), SockError> {
        self.move_all("send a request or response", left, |connection, left| {
            send(connection, &bytes[..left.min(bytes.len())])
        })
    }

    /// Receives `left` bytes.
    fn receive(&self, buffer: &mut [u8], left: usize) -> Result<(), SockError> {
        self.move_all("receive a request or response", left, |connection, left| {
            let room = left.min(buffer.len());
            recv(connection, &mut buffer[..room])
        })
    }
}

/// Half-closes the stream's own connection and waits until the peer closes it too.
fn await_close(flow: &FlowSide, own: &TcpStream) -> Result<(), StreamError> {
    queues::finish_writing(own)?;
    let mut ignored = [0; 64];
    while !flow.control.aborted() {
        if recv(own, &mut ignored)? == Moved::Closed {
            return Ok(());
        }
    }
    Err(StreamError::Aborted)
}

/// Responds on connections as they arrive, until the peer half-closes the stream's own connection.
pub(super) fn respond(
    flow: &FlowSide,
    pump: usize,
    setup: &TransactionSetup,
    accepted: &AcceptedConnections,
    mut buffers: TransactionBuffers,
) -> PumpEnd {
    let (Some(counters), Some(own)) = (flow.transactions.get(pump), flow.sockets.tcp(pump)) else {
        return PumpEnd::default();
    };
    let meter = flow.meter(pump);
    let result = (|| -> Result<(), StreamError> {
        set_nonblocking(own, true)?;
        let mut ignored = [0; 64];
        loop {
            if let Some(connection) = accepted.take(ACCEPT_WAIT) {
                // A client that breaks off its transaction counts it as failed.
                let connection = SingleConnection::new(connection, &flow.control, counters);
                if let Ok(now) = connection.and_then(|one| answer(&one, setup, &mut buffers)) {
                    if meter.is_new() && meter.begin(now, setup.request as u64) {
                        flow.control.notify_begun();
                    }
                    meter.count(now, setup.request as u64);
                    let measured = flow.part.opens()..=flow.part.closes();
                    counters.complete(now.as_ns(), measured.contains(&now), true, 1);
                }
                if flow.control.may_read(clock::now()) {
                    continue;
                }
            }
            if !flow.control.may_read(clock::now()) {
                return flow.stop_result();
            }
            if recv(own, &mut ignored)? == Moved::Closed {
                // Fails only if the peer has already closed the connection.
                let _ = queues::finish_writing(own);
                return Ok(());
            }
        }
    })();
    PumpEnd { streams: vec![ended(flow, pump, result.err())], ..PumpEnd::default() }
}

/// Receives the request of a connection and responds; returns when the request was complete.
fn answer(
    connection: &SingleConnection<'_>,
    setup: &TransactionSetup,
    buffers: &mut TransactionBuffers,
) -> Result<Mono, SockError> {
    connection.receive(&mut buffers.incoming, setup.request)?;
    let now = clock::now();
    connection.send(&buffers.outgoing, setup.response)?;
    Ok(now)
}
