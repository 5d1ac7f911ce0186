//! Makes requests over the connections or sockets of the flow, and counts how long the responses take.

use std::collections::VecDeque;
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use linerate_sock::handle::{AsFd, BorrowedFd};
use linerate_sock::stream::{recv, send, set_nonblocking, set_recv_timeout};
use linerate_sock::{Mono, Moved, SockError, clock, queues};

use super::last_responses::last_response;
use super::schedule::{RequestSchedule, TIMER_SLACK_NS};
use super::wait::SocketWait;
use super::{MAX_CALLS_PER_TURN, SPINS_PER_LOOK, TransactionBuffers, ended, is_direct, share};
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::pump::{PumpEnd, PumpGuard, StreamEnd, StreamError};
use crate::stamp::{self, DatagramMeaning, DatagramReader, Stamp};
use crate::transactions::{TransactionCounters, TransactionSetup};

/// A datagram that was not answered within this time is lost.
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(1);
/// Most requests under way on all streams of a flow with a request rate: what is due after them waits, and its time
/// counts.
const MAX_UNDER_WAY: usize = 1 << 16;
/// The same on each of very many streams.
const MIN_UNDER_WAY: usize = 16;
/// How often all streams are looked at, for datagrams that were not answered in time.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The socket of a stream, and what is on its way.
enum RequestSocket<'f> {
    Tcp {
        socket: &'f TcpStream,
        /// Bytes of begun requests that were not passed to the kernel.
        unsent: usize,
        /// Bytes of the response that is arriving.
        received: usize,
        /// When the requests under way began, oldest first.
        under_way: VecDeque<Mono>,
    },
    Udp {
        socket: &'f UdpSocket,
        reader: DatagramReader,
        /// The requests under way, oldest first.
        under_way: VecDeque<RequestDatagram>,
    },
}

/// A request whose response has not arrived.
struct RequestDatagram {
    number: u64,
    /// When it began, or was due.
    begins: Mono,
    /// When it was sent.
    sent: Mono,
}

struct RequestStream<'f> {
    stream: usize,
    socket: RequestSocket<'f>,
    meter: CounterWriter<'f>,
    schedule: Option<RequestSchedule>,
    /// Most requests under way.
    depth: usize,
    begun: u64,
    left: u64,
    /// Whether the stream waits to be writable.
    writes: bool,
    ended: Option<StreamEnd>,
}

/// What a stream needs to know about its flow.
struct RequestTask<'f> {
    flow: &'f FlowSide,
    setup: &'f TransactionSetup,
    counters: &'f TransactionCounters,
    buffers: TransactionBuffers,
    until: Mono,
    /// The time, as last read.
    now: Mono,
    /// Whether something has arrived in this turn of the loop.
    received: bool,
    last_arrival: Mono,
    /// When the last request had begun; absent while requests may begin.
    closed: Option<Mono>,
}

impl RequestTask<'_> {
    /// Whether a new request may begin.
    fn may_begin(&self) -> bool {
        self.now < self.until && self.flow.control.may_write()
    }

    /// Something has arrived just now.
    #[inline]
    fn arrived(&mut self) {
        self.now = clock::now();
        (self.last_arrival, self.received) = (self.now, true);
    }

    /// Whether a transaction that began at this time is in the measured part.
    fn is_inside(&self, begun: Mono) -> bool {
        begun >= self.flow.part.opens()
    }

    /// Whether the wait for the last responses is over.
    fn has_waited_enough(&self) -> bool {
        self.closed.is_some_and(|closed| self.now >= last_response(closed, self.until, self.last_arrival))
    }

    /// Counts a transaction that began at `begun` and is complete now.
    #[inline]
    fn complete(&self, begun: Mono) {
        let now = self.now;
        let inside = self.is_inside(begun);
        self.counters.complete(now.as_ns(), inside, now <= self.until, 1);
        if inside {
            self.counters.time(now.since(begun).as_nanos() as u64);
        }
    }
}

impl RequestSocket<'_> {
    fn under_way(&self) -> usize {
        match self {
            Self::Tcp { under_way, .. } => under_way.len(),
            Self::Udp { under_way, .. } => under_way.len(),
        }
    }

    /// When each request under way began.
    fn begun(&self) -> impl Iterator<Item = Mono> {
        let (tcp, udp) = match self {
            Self::Tcp { under_way, .. } => (Some(under_way), None),
            Self::Udp { under_way, .. } => (None, Some(under_way)),
        };
        let datagrams = udp.into_iter().flatten().map(|request| request.begins);
        tcp.into_iter().flatten().copied().chain(datagrams)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp { socket, .. } => socket.as_fd(),
            Self::Udp { socket, .. } => socket.as_fd(),
        }
    }
}

impl<'f> RequestStream<'f> {
    fn new(flow: &'f FlowSide, setup: &TransactionSetup, stream: usize) -> Option<Self> {
        let each = (MAX_UNDER_WAY / flow.plan.streams.max(1)).max(MIN_UNDER_WAY);
        let depth = if setup.per_second.is_some() { each } else { setup.pipeline };
        let socket = match (flow.sockets.tcp(stream), flow.sockets.udp(stream)) {
            (Some(socket), _) => RequestSocket::Tcp {
                socket,
                unsent: 0,
                received: 0,
                under_way: VecDeque::with_capacity(depth),
            },
            (None, Some(socket)) => RequestSocket::Udp {
                socket,
                reader: DatagramReader::new(flow.setup.stamp, flow.setup.tag, setup.request),
                under_way: VecDeque::with_capacity(depth),
            },
            (None, None) => return None,
        };
        Some(Self {
            stream,
            socket,
            meter: flow.meter(stream),
            schedule: None,
            depth,
            begun: 0,
            left: share(setup, flow.plan.streams, stream),
            writes: false,
            ended: None,
        })
    }

    /// When the next request is due; [`Mono::FAR`] if it waits for a response.
    fn next_due(&self) -> Mono {
        match &self.schedule {
            // A full send buffer wakes the pump when it has room.
            _ if self.writes && matches!(self.socket, RequestSocket::Udp { .. }) => Mono::FAR,
            Some(schedule)
                if self.left > 0 && self.ended.is_none() && self.socket.under_way() < self.depth =>
            {
                schedule.due(self.begun)
            }
            _ => Mono::FAR,
        }
    }

    /// When a request that may begin now counts as begun; absent if none may.
    #[inline]
    fn next(&self, all: &RequestTask<'_>) -> Option<Mono> {
        if self.left == 0 || !all.may_begin() {
            return None;
        }
        match &self.schedule {
            _ if self.socket.under_way() >= self.depth => None,
            None => Some(all.now),
            Some(schedule) => {
                let due = schedule.due(self.begun);
                (due <= all.now && due < all.until).then_some(due)
            }
        }
    }

    /// Begins the requests that may begin now, and passes them to the kernel.
    fn begin(&mut self, all: &mut RequestTask<'_>) -> Result<(), SockError> {
        while let Some(begins) = self.next(all) {
            match &mut self.socket {
                RequestSocket::Tcp { unsent, under_way, .. } => {
                    under_way.push_back(begins);
                    *unsent += all.setup.request;
                }
                RequestSocket::Udp { socket, under_way, .. } => {
                    let number = self.begun;
                    let Some(datagram) = all.buffers.outgoing.get_mut(..all.setup.request) else { break };
                    let layout = &all.flow.setup.stamp;
                    stamp::write_tag(datagram, layout, all.flow.setup.tag);
                    stamp::write(
                        datagram,
                        layout,
                        self.stream as u32,
                        Stamp { seq: number, sent_ns: all.now.as_ns() },
                    );
                    let moved = match send(*socket, datagram) {
                        // A refusal is that of an earlier datagram; this one was not sent.
                        Err(error) if all.flow.tolerates(&error) || error.is_out_of_buffers() => {
                            return Ok(());
                        }
                        moved => moved?,
                    };
                    if moved.bytes() == 0 {
                        self.writes = true;
                        return Ok(());
                    }
                    under_way.push_back(RequestDatagram { number, begins, sent: all.now });
                    self.meter.sent(1, 0);
                    self.meter.count(all.now, datagram.len() as u64);
                }
            }
            self.begun += 1;
            self.left = self.left.saturating_sub(1);
        }
        self.flush(all)
    }

    /// Passes bytes of begun requests to the kernel.
    fn flush(&mut self, all: &RequestTask<'_>) -> Result<(), SockError> {
        let RequestSocket::Tcp { socket, unsent, .. } = &mut self.socket else {
            self.writes = false;
            return Ok(());
        };
        for _ in 0..MAX_CALLS_PER_TURN {
            if *unsent == 0 {
                break;
            }
            let most = (*unsent).min(all.buffers.outgoing.len());
            let moved = send(*socket, &all.buffers.outgoing[..most])?.bytes();
            if moved == 0 {
                break;
            }
            *unsent -= moved;
            self.meter.count(all.now, moved as u64);
            if moved < most {
                break;
            }
        }
        self.writes = *unsent > 0;
        Ok(())
    }

    /// Receives once and counts the responses that are complete; true if the peer has closed.
    fn receive(&mut self, all: &mut RequestTask<'_>) -> Result<bool, StreamError> {
        match &mut self.socket {
            RequestSocket::Tcp { socket, received, under_way, .. } => {
                let bytes = match all.buffers.receive(socket)? {
                    Moved::Bytes(bytes) => bytes,
                    Moved::Pending => return Ok(false),
                    Moved::Closed => return Ok(true),
                };
                all.arrived();
                *received += bytes;
                while *received >= all.setup.response {
                    *received -= all.setup.response;
                    let Some(begun) = under_way.pop_front() else { return Err(unasked()) };
                    all.complete(begun);
                }
                if *received > 0 && under_way.is_empty() {
                    return Err(unasked());
                }
            }
            RequestSocket::Udp { socket, reader, under_way, .. } => {
                let bytes = match recv(*socket, &mut all.buffers.incoming) {
                    Err(error) if all.flow.tolerates(&error) => return Ok(false),
                    moved => moved?.bytes(),
                };
                if bytes > 0 {
                    all.arrived();
                }
                let Some(datagram) = all.buffers.incoming.get(..bytes) else { return Ok(false) };
                // A response to a request that was given up, or a second one, counts for nothing.
                if datagram.len() == all.setup.response
                    && let DatagramMeaning::Data(stamp) = reader.read(datagram)
                    && let Ok(place) = under_way.binary_search_by_key(&stamp.seq, |request| request.number)
                    && let Some(request) = under_way.remove(place)
                {
                    all.complete(request.begins);
                }
            }
        }
        Ok(false)
    }

    /// Gives up datagrams that were not answered in time.
    fn give_up(&mut self, all: &RequestTask<'_>) {
        let RequestSocket::Udp { under_way, .. } = &mut self.socket else { return };
        while let Some(request) =
            under_way.pop_front_if(|request| all.now.since(request.sent) >= DATAGRAM_TIMEOUT)
        {
            all.counters.fail(all.is_inside(request.begins));
        }
    }

    /// Whether the stream has nothing more to do.
    fn is_done(&self, all: &RequestTask<'_>) -> bool {
        self.socket.under_way() == 0 && (self.left == 0 || !all.may_begin())
    }

    /// Ends the stream.
    fn end(&mut self, all: &RequestTask<'_>, trouble: Option<StreamError>) {
        if self.ended.is_some() {
            return;
        }
        self.socket.begun().for_each(|begun| all.counters.fail(all.is_inside(begun)));
        if let Some(schedule) = &self.schedule {
            let until = all.until.min(all.closed.unwrap_or(all.now));
            let due = schedule.due_before(until).min(self.begun.saturating_add(self.left));
            all.counters.leave_unsent(due.saturating_sub(self.begun));
        }
        self.ended = Some(ended(all.flow, self.stream, trouble));
    }
}

/// A response to nothing.
fn unasked() -> StreamError {
    let text = "the peer sent more than the responses".to_owned();
    StreamError::Failed { reason: linerate_model::flow::SystemError { errno: 0, text: text.clone() }, text }
}

/// Makes requests until the limit, waits for their responses, half-closes, and waits until the peer closes too.
pub(super) fn run(
    flow: &FlowSide,
    pump: usize,
    guard: &mut PumpGuard<'_>,
    setup: &TransactionSetup,
    buffers: TransactionBuffers,
) -> PumpEnd {
    let Some(counters) = flow.transactions.get(pump) else { return PumpEnd::default() };
    let mut streams: Vec<RequestStream<'_>> =
        flow.plan.streams_of(pump).filter_map(|stream| RequestStream::new(flow, setup, stream)).collect();
    let start = clock::now();
    for stream in &mut streams {
        if stream.meter.begin(start, 0) {
            flow.control.notify_begun();
        }
        stream.schedule = setup
            .per_second
            .map(|per_second| RequestSchedule::new(start, per_second, flow.plan.streams, stream.stream));
    }
    let until = if setup.requests.is_some() { Mono::FAR } else { flow.write_until() };
    let mut all = RequestTask {
        flow,
        setup,
        counters,
        buffers,
        until,
        now: start,
        received: false,
        last_arrival: start,
        closed: None,
    };
    let result = serve(&mut all, &mut streams);
    for stream in &mut streams {
        let trouble = match &result {
            Err(error) => Some(error.clone()),
            Ok(()) if flow.control.aborted() => Some(StreamError::Aborted),
            Ok(()) => None,
        };
        if trouble.is_some() {
            stream.end(&all, trouble);
        }
    }
    guard.written();
    // All at once, as each takes a round trip.
    let closing: Vec<_> = streams.iter().map(|stream| half_close(flow, stream)).collect();
    for (stream, closing) in streams.iter_mut().zip(closing) {
        if stream.ended.is_none() {
            let closed = closing.and_then(|()| await_close(flow, &stream.socket));
            stream.end(&all, closed.err());
        }
    }
    PumpEnd { streams: streams.into_iter().filter_map(|stream| stream.ended).collect(), ..PumpEnd::default() }
}

/// The pump's loop: returns when every stream has had its responses, or has ended.
fn serve(all: &mut RequestTask<'_>, streams: &mut [RequestStream<'_>]) -> Result<(), StreamError> {
    let at_a_rate = all.setup.per_second.is_some();
    if at_a_rate {
        // No current kernel refuses. If it did, requests would be up to 50 us late, and their times as much longer.
        let _ = clock::set_timer_slack_ns(TIMER_SLACK_NS);
    }
    let mut waiting = {
        let sockets: Vec<BorrowedFd<'_>> = streams.iter().map(|stream| stream.socket.fd()).collect();
        SocketWait::new(is_direct(all.flow, all.setup), all.setup.spins(), &sockets)?
    };
    let spins = matches!(waiting, SocketWait::Spin) && !at_a_rate;
    let mut ready = Vec::with_capacity(streams.len());
    let (mut looked_at_all, mut idle_turns) = (all.now, 0);
    (0..streams.len()).for_each(|index| step(all, streams, &waiting, index, false));
    while !all.flow.control.aborted() {
        if idle_turns == 0 {
            if streams.iter().all(|stream| stream.ended.is_some() || stream.is_done(all)) {
                return Ok(());
            }
            let begins = |stream: &RequestStream<'_>| stream.left > 0 && stream.ended.is_none();
            if all.closed.is_none() && !(all.may_begin() && streams.iter().any(begins)) {
                all.closed = Some(all.now);
            }
            if all.has_waited_enough() {
                return Ok(());
            }
        }
        let deadline = if spins { all.now } else { next_look(all, streams) };
        let Some(first) = streams.first() else { return Ok(()) };
        waiting.wait(&first.socket.fd(), first.writes, deadline, &mut ready, streams.len())?;
        // Where each turn is short, the clock would be most of it: it is read when something has arrived, and now and
        // then.
        let direct = matches!(waiting, SocketWait::Direct);
        if !spins && !direct {
            all.now = clock::now();
        }
        all.received = false;
        for index in ready.iter().copied() {
            step(all, streams, &waiting, index, true);
        }
        idle_turns = if all.received || !spins { 0 } else { (idle_turns + 1) % SPINS_PER_LOOK };
        if !all.received && idle_turns == 0 {
            all.now = clock::now();
        }
        if at_a_rate || all.now.since(looked_at_all) >= LOOK_INTERVAL {
            looked_at_all = all.now;
            (0..streams.len()).for_each(|index| step(all, streams, &waiting, index, false));
        }
    }
    Ok(())
}

/// When the pump has to look at its streams again even if nothing arrives.
fn next_look(all: &RequestTask<'_>, streams: &[RequestStream<'_>]) -> Mono {
    let due = streams.iter().map(RequestStream::next_due).min().unwrap_or(Mono::FAR);
    let latest = all.now + all.flow.control.max_wait();
    if all.may_begin() { due.min(all.until).min(latest) } else { latest }
}

/// Serves one stream: receives if it is `readable`, and begins the requests that may begin.
fn step(
    all: &mut RequestTask<'_>,
    streams: &mut [RequestStream<'_>],
    waiting: &SocketWait,
    index: usize,
    readable: bool,
) {
    let Some(stream) = streams.get_mut(index).filter(|stream| stream.ended.is_none()) else { return };
    let wrote = stream.writes;
    let received = if readable { stream.receive(all) } else { Ok(false) };
    stream.give_up(all);
    let result = match received {
        Ok(false) => stream.begin(all).map_err(StreamError::from).map(|()| false),
        other => other,
    };
    match result {
        Ok(false) => {
            if stream.writes != wrote {
                // Fails only for a socket that is not registered.
                let _ = waiting.watch(index, &stream.socket.fd(), stream.writes);
            }
        }
        Ok(true) => {
            let text = "the peer closed the connection before the end".to_owned();
            let reason = linerate_model::flow::SystemError { errno: 0, text: text.clone() };
            waiting.forget(&stream.socket.fd());
            stream.end(all, Some(StreamError::Failed { reason, text }));
        }
        Err(error) => {
            waiting.forget(&stream.socket.fd());
            stream.end(all, Some(error));
        }
    }
}

/// Half-closes the connection of a stream that has not ended.
fn half_close(flow: &FlowSide, stream: &RequestStream<'_>) -> Result<(), StreamError> {
    let RequestSocket::Tcp { socket, .. } = &stream.socket else { return Ok(()) };
    if stream.ended.is_none() {
        set_nonblocking(*socket, false)?;
        set_recv_timeout(*socket, Some(flow.control.max_wait()))?;
        queues::finish_writing(socket)?;
    }
    Ok(())
}

/// Waits for the peer's FIN, which shows that it has read everything.
fn await_close(flow: &FlowSide, socket: &RequestSocket<'_>) -> Result<(), StreamError> {
    let RequestSocket::Tcp { socket, .. } = socket else { return Ok(()) };
    let mut ignored = [0; 4096];
    while !flow.control.aborted() {
        if recv(*socket, &mut ignored)? == Moved::Closed {
            return Ok(());
        }
    }
    Err(StreamError::Aborted)
}
