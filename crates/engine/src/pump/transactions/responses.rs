//! Responds to requests over the connections or sockets of the flow.

use std::net::{TcpStream, UdpSocket};

use linerate_sock::handle::{AsFd, BorrowedFd};
use linerate_sock::stream::{recv, send};
use linerate_sock::{Mono, Moved, SockError, clock, queues};

use super::wait::SocketWait;
use super::{MAX_CALLS_PER_TURN, SPINS_PER_LOOK, TransactionBuffers, ended, is_direct};
use crate::counters::{CounterWriter, DatagramCounts};
use crate::flow::FlowSide;
use crate::pump::datagram_recv::STOP_SILENCE;
use crate::pump::{PumpEnd, StreamEnd, StreamError};
use crate::stamp::{DatagramMeaning, DatagramReader};
use crate::transactions::{TransactionCounters, TransactionSetup};

/// The socket of a stream, and what is on its way.
enum ResponseSocket<'f> {
    Tcp {
        socket: &'f TcpStream,
        /// Bytes of the request that is arriving.
        received: usize,
        /// Bytes of responses that were not passed to the kernel.
        unsent: u64,
        /// Bytes of the response that is being sent.
        sent: u64,
    },
    Udp {
        socket: &'f UdpSocket,
        reader: DatagramReader,
        counts: DatagramCounts,
    },
}

struct ResponseStream<'f> {
    stream: usize,
    socket: ResponseSocket<'f>,
    meter: CounterWriter<'f>,
    /// Whether the stream waits to be writable.
    writes: bool,
    ended: Option<StreamEnd>,
}

/// What a stream needs to know about its flow.
struct ResponseTask<'f> {
    flow: &'f FlowSide,
    setup: &'f TransactionSetup,
    counters: &'f TransactionCounters,
    buffers: TransactionBuffers,
    last_arrival: Mono,
    /// The time, as last read.
    now: Mono,
}

impl ResponseSocket<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp { socket, .. } => socket.as_fd(),
            Self::Udp { socket, .. } => socket.as_fd(),
        }
    }
}

impl ResponseTask<'_> {
    /// Counts bytes of requests.
    #[inline]
    fn count(&mut self, meter: &CounterWriter<'_>, bytes: usize) {
        let now = self.now;
        if meter.is_new() && meter.begin(now, bytes as u64) {
            self.flow.control.notify_begun();
        }
        meter.count(now, bytes as u64);
        self.last_arrival = now;
    }

    /// Counts responses.
    #[inline]
    fn responded(&self, count: u64) {
        let (now, part) = (self.now, &self.flow.part);
        self.counters.complete(now.as_ns(), (part.opens()..=part.closes()).contains(&now), true, count);
    }
}

impl<'f> ResponseStream<'f> {
    fn new(flow: &'f FlowSide, setup: &TransactionSetup, stream: usize) -> Option<Self> {
        let socket = match (flow.sockets.tcp(stream), flow.sockets.udp(stream)) {
            (Some(socket), _) => ResponseSocket::Tcp { socket, received: 0, unsent: 0, sent: 0 },
            (None, Some(socket)) => ResponseSocket::Udp {
                socket,
                reader: DatagramReader::new(flow.setup.stamp, flow.setup.tag, setup.request),
                counts: DatagramCounts::default(),
            },
            (None, None) => return None,
        };
        Some(Self { stream, socket, meter: flow.meter(stream), writes: false, ended: None })
    }

    /// Receives once, and responds; true if the peer has closed.
    fn serve(&mut self, all: &mut ResponseTask<'_>) -> Result<bool, SockError> {
        match &mut self.socket {
            ResponseSocket::Tcp { socket, received, unsent, .. } => {
                match all.buffers.receive(socket)? {
                    Moved::Bytes(bytes) => {
                        all.now = clock::now();
                        all.count(&self.meter, bytes);
                        *received += bytes;
                        let requests = (*received / all.setup.request.max(1)) as u64;
                        *received %= all.setup.request.max(1);
                        *unsent = unsent.saturating_add(requests.saturating_mul(all.setup.response as u64));
                    }
                    Moved::Pending => {}
                    Moved::Closed => return Ok(true),
                }
                self.flush(all)?;
            }
            ResponseSocket::Udp { socket, reader, counts } => {
                let bytes = match recv(*socket, &mut all.buffers.incoming) {
                    Err(error) if all.flow.tolerates(&error) => return Ok(false),
                    moved => moved?.bytes(),
                };
                if bytes > 0 {
                    all.now = clock::now();
                }
                let request = all.buffers.incoming.get(..bytes).unwrap_or_default();
                let DatagramMeaning::Data(stamp) = reader.read(request) else {
                    counts.foreign += u64::from(bytes > 0);
                    return Ok(false);
                };
                // The header of a request is that of its response.
                let header = all.flow.setup.stamp.length;
                let Some(response) = all.buffers.outgoing.get_mut(..all.setup.response) else {
                    return Ok(false);
                };
                for (to, from) in response.iter_mut().zip(request.iter().take(header)) {
                    *to = *from;
                }
                counts.packets += 1;
                counts.highest = counts.highest.max(stamp.seq + 1);
                self.meter.show(counts);
                let sent = match send(*socket, response) {
                    Err(error) if all.flow.tolerates(&error) || error.is_out_of_buffers() => Moved::Pending,
                    moved => moved?,
                };
                all.counters.moved(sent.bytes() as u64);
                all.count(&self.meter, bytes);
                if sent.bytes() > 0 {
                    all.responded(1);
                }
            }
        }
        Ok(false)
    }

    /// Passes bytes of responses to the kernel.
    fn flush(&mut self, all: &ResponseTask<'_>) -> Result<(), SockError> {
        let ResponseSocket::Tcp { socket, unsent, sent, .. } = &mut self.socket else { return Ok(()) };
        for _ in 0..MAX_CALLS_PER_TURN {
            if *unsent == 0 {
                break;
            }
            let most = usize::try_from(*unsent).unwrap_or(usize::MAX).min(all.buffers.outgoing.len());
            let moved = send(*socket, &all.buffers.outgoing[..most])?.bytes() as u64;
            if moved == 0 {
                break;
            }
            all.counters.moved(moved);
            *unsent -= moved;
            *sent += moved;
            let responses = *sent / all.setup.response.max(1) as u64;
            *sent %= all.setup.response.max(1) as u64;
            if responses > 0 {
                all.responded(responses);
            }
            if moved < most as u64 {
                break;
            }
        }
        self.writes = *unsent > 0;
        Ok(())
    }

    fn end(&mut self, flow: &FlowSide, trouble: Option<StreamError>) {
        if self.ended.is_none() {
            if trouble.is_none()
                && let ResponseSocket::Tcp { socket, .. } = &self.socket
            {
                // Fails only if the peer has already closed the connection.
                let _ = queues::finish_writing(socket);
            }
            self.ended = Some(ended(flow, self.stream, trouble));
        }
    }
}

/// Responds until the peer has closed each connection, or, for datagrams, until an order to stop and nothing arrives
/// any more.
pub(super) fn run(
    flow: &FlowSide,
    pump: usize,
    setup: &TransactionSetup,
    buffers: TransactionBuffers,
) -> PumpEnd {
    let Some(counters) = flow.transactions.get(pump) else { return PumpEnd::default() };
    let mut streams: Vec<ResponseStream<'_>> =
        flow.plan.streams_of(pump).filter_map(|stream| ResponseStream::new(flow, setup, stream)).collect();
    let mut all =
        ResponseTask { flow, setup, counters, buffers, last_arrival: Mono::default(), now: clock::now() };
    let result = serve(&mut all, &mut streams);
    for stream in &mut streams {
        let udp = matches!(stream.socket, ResponseSocket::Udp { .. });
        let trouble = match &result {
            Err(error) => Some(error.clone()),
            Ok(()) if udp && !flow.control.aborted() => None,
            Ok(()) => flow.stop_result().err(),
        };
        stream.end(flow, trouble);
    }
    PumpEnd { streams: streams.into_iter().filter_map(|stream| stream.ended).collect(), ..PumpEnd::default() }
}

/// The pump's loop: returns when every stream has ended, or by an order.
fn serve(all: &mut ResponseTask<'_>, streams: &mut [ResponseStream<'_>]) -> Result<(), StreamError> {
    let mut waiting = {
        let sockets: Vec<BorrowedFd<'_>> = streams.iter().map(|stream| stream.socket.fd()).collect();
        SocketWait::new(is_direct(all.flow, all.setup), all.setup.spins(), &sockets)?
    };
    let mut ready = Vec::with_capacity(streams.len());
    let mut open = streams.len();
    let mut stop_noticed = None;
    let mut turns: u32 = 0;
    while open > 0 {
        // A spinning pump reads the clock when something has arrived, and now and then.
        turns = (turns + 1) % SPINS_PER_LOOK;
        if turns == 0 || !matches!(waiting, SocketWait::Spin) {
            all.now = clock::now();
        }
        let now = all.now;
        if !all.flow.control.may_read(now) {
            return Ok(());
        }
        if all.flow.control.reads_out() && all.flow.sockets.udp(0).is_some() {
            let noticed = *stop_noticed.get_or_insert(now);
            if now.since(noticed.max(all.last_arrival)) >= STOP_SILENCE {
                return Ok(());
            }
        }
        let Some(first) = streams.first() else { return Ok(()) };
        let deadline = now + all.flow.control.max_wait();
        waiting.wait(&first.socket.fd(), first.writes, deadline, &mut ready, streams.len())?;
        for index in ready.iter().copied() {
            let Some(stream) = streams.get_mut(index).filter(|stream| stream.ended.is_none()) else {
                continue;
            };
            let wrote = stream.writes;
            let closed = stream.serve(all);
            if stream.writes != wrote {
                waiting.watch(index, &stream.socket.fd(), stream.writes)?;
            }
            let trouble = match closed {
                Ok(false) => continue,
                Ok(true) => None,
                Err(error) => Some(StreamError::from(error)),
            };
            waiting.forget(&stream.socket.fd());
            stream.end(all.flow, trouble);
            open -= 1;
        }
    }
    Ok(())
}
