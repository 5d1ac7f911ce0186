//! Pumps of requests and responses.
//!
//! A thread that serves one connection with one small request under way waits in the receive call itself, because each
//! further call would be a part of the result. All others wait with poll or epoll, or not at all if they spin.

mod last_responses;
mod reconnect;
mod requests;
mod responses;
mod schedule;
mod wait;

use std::net::TcpStream;

use linerate_model::Side;
use linerate_sock::stream::{recv, set_nonblocking, set_recv_timeout, set_send_timeout};
use linerate_sock::{Moved, SockError, sockopt};

use super::{PumpEnd, PumpGuard, StreamEnd, StreamError, payload};
use crate::flow::FlowSide;
use crate::transactions::{TransactionConnections, TransactionSetup};

/// Most bytes that are passed to the kernel or taken from it in one call.
const MAX_CALL_BYTES: usize = 256 << 10;

/// Messages for which a call has room even if fewer are under way: those of several streams use one buffer.
const MIN_PER_CALL: usize = 64;

/// Turns of a spinning pump in which nothing arrives, after which it reads the clock.
const SPINS_PER_LOOK: u32 = 64;

/// Most calls for one stream before the pump looks for orders and at its other streams.
const MAX_CALLS_PER_TURN: u32 = 64;

/// Most bytes of requests or responses under way with which a send never waits: the smallest default send buffer.
const MAX_DIRECT_BYTES: usize = 16 << 10;

/// Memory of a pump, allocated before it starts.
pub(crate) struct TransactionBuffers {
    /// What is sent, as often as needed.
    outgoing: Vec<u8>,
    /// Receives what arrives.
    incoming: Vec<u8>,
    /// Whether what was received is acknowledged at once.
    quick_ack: bool,
}

/// Memory of the buffers of a pump, bytes.
pub(crate) fn buffer_bytes(setup: &TransactionSetup) -> usize {
    let (outgoing, incoming) = lengths(setup, true);
    outgoing + incoming
}

/// Bytes that are sent and received in one call.
fn lengths(setup: &TransactionSetup, requests: bool) -> (usize, usize) {
    let several =
        |length: usize| length.saturating_mul(setup.pipeline.max(MIN_PER_CALL)).clamp(1, MAX_CALL_BYTES);
    let (request, response) = (several(setup.request), several(setup.response));
    if requests { (request, response) } else { (response, request) }
}

impl TransactionBuffers {
    pub(crate) fn new(flow: &FlowSide, setup: &TransactionSetup) -> Result<Self, SockError> {
        let (outgoing, incoming) = if flow.sockets.udp(0).is_some() {
            (setup.request.max(setup.response), setup.request.max(setup.response) + 1)
        } else {
            lengths(setup, flow.writes())
        };
        Ok(Self {
            outgoing: payload::block(&flow.setup.payload, outgoing)?,
            incoming: payload::allocate(incoming)?,
            quick_ack: flow.setup.socket.quick_ack && flow.sockets.udp(0).is_none(),
        })
    }

    /// Receives once into `incoming`, and acknowledges it if that was asked for.
    fn receive(&mut self, socket: &TcpStream) -> Result<Moved, SockError> {
        let moved = recv(socket, &mut self.incoming);
        if self.quick_ack {
            // Of a connection that has ended it does not matter.
            let _ = sockopt::set_quick_ack(socket, true);
        }
        moved
    }
}

/// Whether a pump waits in the receive call of its only connection.
fn is_direct(flow: &FlowSide, setup: &TransactionSetup) -> bool {
    let bytes = setup.request.max(setup.response).saturating_mul(setup.pipeline);
    flow.sockets.udp(0).is_none()
        && !flow.plan.shared()
        && !setup.spins()
        && bytes <= MAX_DIRECT_BYTES
        && (setup.per_second.is_none() || flow.setup.side == Side::Receiver)
}

/// Prepares the sockets of the flow. Those of a flow with a connection for each transaction only show its end.
pub(crate) fn prepare(flow: &FlowSide, setup: &TransactionSetup) -> Result<(), SockError> {
    let kept = matches!(setup.connections, TransactionConnections::Kept);
    let waits = !kept || is_direct(flow, setup);
    let timeout = Some(flow.control.max_wait());
    for socket in flow.sockets.iter() {
        set_nonblocking(&socket, !waits)?;
        set_recv_timeout(&socket, timeout)?;
        set_send_timeout(&socket, timeout)?;
    }
    Ok(())
}

/// The requests that one stream makes; the shares of all streams add up to the number that was asked for.
fn share(setup: &TransactionSetup, streams: usize, stream: usize) -> u64 {
    let Some(all) = setup.requests else { return u64::MAX };
    let (streams, stream) = (streams.max(1) as u64, stream as u64);
    all / streams + u64::from(stream < all % streams)
}

/// Makes requests.
pub(crate) fn request(
    flow: &FlowSide,
    pump: usize,
    guard: &mut PumpGuard<'_>,
    buffers: TransactionBuffers,
) -> PumpEnd {
    let Some(setup) = &flow.setup.transactions else { return PumpEnd::default() };
    match &setup.connections {
        TransactionConnections::Opened(connector) => {
            reconnect::request(flow, pump, guard, setup, connector, buffers)
        }
        _ => requests::run(flow, pump, guard, setup, buffers),
    }
}

/// Responds to requests.
pub(crate) fn respond(flow: &FlowSide, pump: usize, buffers: TransactionBuffers) -> PumpEnd {
    let Some(setup) = &flow.setup.transactions else { return PumpEnd::default() };
    match &setup.connections {
        TransactionConnections::Accepted(accepted) => {
            reconnect::respond(flow, pump, setup, accepted, buffers)
        }
        _ => responses::run(flow, pump, setup, buffers),
    }
}

/// The end of one stream, published.
fn ended(flow: &FlowSide, stream: usize, trouble: Option<StreamError>) -> StreamEnd {
    flow.stream_ended(&flow.meter(stream), trouble.as_ref());
    StreamEnd { stream, bytes: flow.counters[stream].read().total, trouble, ..StreamEnd::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(requests: u64) -> TransactionSetup {
        TransactionSetup {
            request: 1,
            response: 1,
            pipeline: 1,
            per_second: None,
            requests: Some(requests),
            spin: false,
            connections: TransactionConnections::Kept,
        }
    }

    #[test]
    fn the_shares_of_all_streams_add_up() {
        for (requests, streams) in [(10, 3), (2, 3), (1, 1), (1_000_001, 128)] {
            let all: u64 = (0..streams).map(|stream| share(&setup(requests), streams, stream)).sum();
            assert_eq!(all, requests);
        }
        assert_eq!(share(&TransactionSetup { requests: None, ..setup(0) }, 2, 0), u64::MAX);
    }

    #[test]
    fn many_small_messages_go_into_a_call_and_a_large_one_takes_several() {
        let mut setup = setup(1);
        assert_eq!(lengths(&setup, true), (64, 64));
        (setup.request, setup.response) = (1 << 20, 100);
        assert_eq!(lengths(&setup, true), (MAX_CALL_BYTES, 6400));
        assert_eq!(lengths(&setup, false), (6400, MAX_CALL_BYTES));
    }
}
