//! A connection for each transaction: connect, request, response, close.
//!
//! The side that responds closes first, so that the addresses of connections that have ended wait (TIME_WAIT) at its
//! end: the other end needs a free port for each connection.

use std::net::TcpStream;
use std::time::Duration;

use linerate_sock::stream::{recv, send, set_nonblocking, set_recv_timeout, set_send_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues};

use super::requests::RequestSchedule;
use super::{TransactionBuffers, ended, share};
use crate::control::PumpControl;
use crate::flow::FlowSide;
use crate::pump::{PumpEnd, PumpGuard, StreamError};
use crate::transactions::{AcceptedConnections, Connector, TransactionSetup};

/// Time for the request or the response of one transaction, after which it has failed.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);
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
    let until = if setup.requests.is_some() { Mono::FAR } else { flow.write_until() };
    let mut connection = Reconnecting { flow, setup, connector, buffers };
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
                counters.complete(done.as_ns(), inside, 1);
                if inside {
                    counters.time(done.since(begins).as_nanos() as u64);
                }
                failures = 0;
            }
            Err(error) => {
                counters.fail(1);
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
    setup: &'f TransactionSetup,
    connector: &'f Connector,
    buffers: TransactionBuffers,
}

impl Reconnecting<'_> {
    /// One transaction; returns when its response was complete.
    fn transact(&mut self, meter: &crate::counters::CounterWriter<'_>) -> Result<Mono, SockError> {
        let connection = self.connector.connect()?;
        set_send_timeout(&connection, Some(MESSAGE_TIMEOUT))?;
        set_recv_timeout(&connection, Some(MESSAGE_TIMEOUT))?;
        let preface = self.connector.preface();
        // One call for both, because a second segment would be a part of the result.
        let first = preface.len() + self.setup.request.min(self.buffers.outgoing.len());
        let mut opening = Vec::with_capacity(first);
        opening.extend_from_slice(preface);
        opening.extend_from_slice(&self.buffers.outgoing[..first - preface.len()]);
        send_all(&connection, &opening)?;
        let mut left = self.setup.request - (first - preface.len());
        while left > 0 {
            let part = left.min(self.buffers.outgoing.len());
            send_all(&connection, &self.buffers.outgoing[..part])?;
            left -= part;
        }
        meter.count(clock::now(), self.setup.request as u64);
        receive_all(&connection, &mut self.buffers.incoming, self.setup.response)?;
        let done = clock::now();
        // The peer closes first. If it does not, closing here costs a port for a minute and nothing else.
        if !self.flow.control.aborted() {
            let _ = recv(&connection, &mut self.buffers.incoming);
        }
        Ok(done)
    }
}

/// A message that did not get through in time.
fn too_slow(op: &'static str) -> SockError {
    SockError::new(op, std::io::ErrorKind::TimedOut.into())
}

fn send_all(connection: &TcpStream, mut bytes: &[u8]) -> Result<(), SockError> {
    while !bytes.is_empty() {
        match send(connection, bytes)? {
            Moved::Bytes(moved) => bytes = bytes.get(moved..).unwrap_or_default(),
            Moved::Pending | Moved::Closed => return Err(too_slow("send a request or response")),
        }
    }
    Ok(())
}

/// Receives exactly `left` bytes.
fn receive_all(connection: &TcpStream, buffer: &mut [u8], mut left: usize) -> Result<(), SockError> {
    while left > 0 {
        let room = left.min(buffer.len());
        match recv(connection, &mut buffer[..room])? {
            Moved::Bytes(moved) => left -= moved,
            Moved::Pending => return Err(too_slow("receive a request or response")),
            Moved::Closed => {
                let op = "receive a request or response";
                return Err(SockError::new(op, std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
    Ok(())
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
                if let Ok(now) = answer(&connection, setup, &mut buffers) {
                    if meter.is_new() && meter.begin(now, setup.request as u64) {
                        flow.control.notify_begun();
                    }
                    meter.count(now, setup.request as u64);
                    let measured = flow.part.opens()..=flow.part.closes();
                    counters.complete(now.as_ns(), measured.contains(&now), 1);
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
    connection: &TcpStream,
    setup: &TransactionSetup,
    buffers: &mut TransactionBuffers,
) -> Result<Mono, SockError> {
    set_nonblocking(connection, false)?;
    set_send_timeout(connection, Some(MESSAGE_TIMEOUT))?;
    set_recv_timeout(connection, Some(MESSAGE_TIMEOUT))?;
    receive_all(connection, &mut buffers.incoming, setup.request)?;
    let now = clock::now();
    let mut left = setup.response;
    while left > 0 {
        let part = left.min(buffers.outgoing.len());
        send_all(connection, &buffers.outgoing[..part])?;
        left -= part;
    }
    Ok(now)
}
