//! The probing end: a dedicated thread that sends at absolute times and collects the answers.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linerate_model::flow::FlowId;
use linerate_model::{LatencyReport, ProbePhase, ProbeTransport};
use linerate_proto::native::{ConnectionPurpose, DATAGRAM_BYTES, DatagramKind, Preface, ProbeDatagram};
use linerate_sock::batch::RecvBatch;
use linerate_sock::errqueue::{self, Notice, TimestampPoint};
use linerate_sock::open::{ConnectOptions, connect_tcp, connect_udp};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::sockopt::{Timestamping, set_timestamping};
use linerate_sock::{Mono, SocketOptions, clock, stream, thread};
use linerate_units::Span;

use super::digest::{ProbeCounts, ProbeExchange, evaluate};
use super::pace::ProbePace;
use super::{IntervalGrid, OffsetHistory, arrival};

/// Longest time between two checks of the interval and the stop flag.
const POLL_INTERVAL: Span = Span::from_ms(10);

/// How long to wait for the last answers, besides the longest round trip so far.
const LAST_ANSWER_TIMEOUT: Span = Span::from_ms(250);

/// Longest round trip that is waited for at the end of a phase.
const LONGEST_LAST_ROUND_TRIP: Span = Span::from_secs(5);

/// Without any answer for this long, UDP is considered blocked; on paths with a long delay, without any for two round
/// trips and [`LAST_ANSWER_TIMEOUT`].
const UDP_BLOCKED_TIMEOUT: Span = Span::from_ms(700);

/// Most answered probes of a phase that are kept: those of an hour and a half at the highest rate.
const MAX_EXCHANGES: usize = 1 << 19;

/// Most probes that wait for their answer.
const MAX_UNDER_WAY: usize = 1 << 16;

/// The running probes of one phase.
#[derive(Debug)]
pub(crate) struct Prober {
    stop: Arc<AtomicBool>,
    pace: Arc<ProbePace>,
    thread: Option<JoinHandle<Option<Probed>>>,
}

impl Drop for Prober {
    /// A run that fails in the middle must not go on probing. The thread ends by itself.
    fn drop(&mut self) {
        self.stop();
    }
}

/// The report of a phase, and the clock bounds that include its probes.
pub(crate) type Probed = (LatencyReport, OffsetHistory);

/// The configuration of a prober.
#[derive(Debug, Clone)]
pub(crate) struct ProberConfig {
    pub(crate) server: SocketAddr,
    pub(crate) options: SocketOptions,
    pub(crate) cookie: [u8; 16],
    pub(crate) phase: ProbePhase,
    /// Duration of the phase; absent if the caller stops it.
    pub(crate) length: Option<Span>,
    /// The transport that is known to get through; absent before the first probes.
    pub(crate) over: Option<ProbeTransport>,
    /// The clock bounds from the probes of earlier phases.
    pub(crate) known: OffsetHistory,
    /// Intervals by which round trips are reported as well.
    pub(crate) intervals: IntervalGrid,
    /// Round-trip time of the control connection.
    pub(crate) rtt: Span,
}

impl Prober {
    /// Starts probing; absent if this host refuses a thread.
    pub(crate) fn start(task: ProberConfig) -> Option<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let pace = Arc::new(match task.phase {
            ProbePhase::Idle => ProbePace::idle(),
            ProbePhase::Loaded => ProbePace::under_load(),
        });
        let thread_pace = Arc::clone(&pace);
        let thread = thread::spawn("probe", move || run(&task, &flag, &thread_pace)).ok()?;
        Some(Self { stop, pace, thread: Some(thread) })
    }

    pub(crate) fn finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Adapts the probe rate to a load of this rate, bit/s.
    pub(crate) fn follow(&self, path_bps: f64) {
        self.pace.follow(path_bps);
    }

    /// Stops sending. The report is ready after the last answers.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The report; absent if no probe was answered.
    pub(crate) fn report(mut self) -> Option<Probed> {
        self.stop();
        self.thread.take()?.join().ok().flatten()
    }
}

fn run(task: &ProberConfig, stop: &AtomicBool, pace: &ProbePace) -> Option<Probed> {
    let _ = clock::set_timer_slack_ns(1);
    if task.over != Some(ProbeTransport::Tcp) {
        let mut series = ProbeSeries::new(task, ProbeSocket::udp(task)?);
        if series.run(stop, pace, task.over.is_none()) {
            return series.report(task);
        }
    }
    let mut series = ProbeSeries::new(task, ProbeSocket::tcp(task)?);
    series.run(stop, pace, false);
    series.report(task)
}

/// The transport of the probes.
enum ProbeSocket {
    Udp(UdpSocket, Box<RecvBatch>),
    Tcp(TcpStream),
}

impl ProbeSocket {
    fn udp(task: &ProberConfig) -> Option<Self> {
        let options = SocketOptions { local_port: None, ..task.options.clone() };
        let socket = connect_udp(task.server, &options).ok()?.socket;
        // Without kernel timestamps the program takes its own. The report states which were used.
        let _ =
            set_timestamping(&socket, Timestamping { receive: true, send: true, ..Timestamping::default() });
        stream::set_nonblocking(&socket, true).ok()?;
        Some(Self::Udp(socket, Box::new(RecvBatch::new(8, 2 * DATAGRAM_BYTES))))
    }

    fn tcp(task: &ProberConfig) -> Option<Self> {
        let socket = SocketOptions { no_delay: true, local_port: None, mptcp: false, ..task.options.clone() };
        let deadline = clock::now() + std::time::Duration::from_secs(3);
        let mut stream =
            connect_tcp(&ConnectOptions { addresses: vec![task.server], socket, deadline }).ok()?.stream;
        let preface =
            Preface { connection: ConnectionPurpose::Probe, flow: FlowId(0), stream: 0, cookie: task.cookie };
        stream.write_all(&preface.encode()).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Self::Tcp(stream))
    }

    fn send(&mut self, probe: &ProbeDatagram) -> io::Result<usize> {
        match self {
            Self::Udp(socket, _) => socket.send(&probe.encode()),
            Self::Tcp(stream) => stream.write(&probe.encode()),
        }
    }
}

/// The departure of a probe.
#[derive(Debug, Clone, Copy)]
struct Departure {
    /// T1.
    sent: u64,
    /// When the driver took it; absent until the kernel reports it.
    left: Option<u64>,
}

/// The answered probes of a phase: all of them, or evenly one of several.
struct KeptExchanges {
    kept: Vec<ProbeExchange>,
    most: usize,
    /// One exchange in this number is kept.
    one_of: u64,
    answered: u64,
}

impl KeptExchanges {
    fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most, one_of: 1, answered: 0 }
    }

    fn push(&mut self, exchange: ProbeExchange) {
        if self.answered.is_multiple_of(self.one_of) {
            if self.kept.len() >= self.most {
                let mut is_even = false;
                self.kept.retain(|_| {
                    is_even = !is_even;
                    is_even
                });
                self.one_of *= 2;
            }
            if self.answered.is_multiple_of(self.one_of) {
                self.kept.push(exchange);
            }
        }
        self.answered += 1;
    }
}

/// The probes of one phase over one transport.
struct ProbeSeries {
    line: ProbeSocket,
    cookie: [u8; 16],
    length: Option<Span>,
    /// Number of the next probe. The kernel numbers those that it sends in the same way.
    number: u64,
    /// Probes that could not be sent. They count as lost: a full queue is a finding.
    unsent: u64,
    under_way: BTreeMap<u64, Departure>,
    intervals: IntervalGrid,
    back: KeptExchanges,
    /// The longest round trip so far.
    longest: Span,
    partial: Vec<u8>,
    stamped: bool,
}

impl ProbeSeries {
    fn new(task: &ProberConfig, line: ProbeSocket) -> Self {
        let stamped = matches!(line, ProbeSocket::Udp(..));
        Self {
            line,
            cookie: task.cookie,
            length: task.length,
            number: 0,
            unsent: 0,
            under_way: BTreeMap::new(),
            intervals: task.intervals,
            back: KeptExchanges::new(MAX_EXCHANGES),
            longest: task.rtt,
            partial: Vec::new(),
            stamped,
        }
    }

    /// Sends probes until stopped. Returns false if nothing was answered and another transport should be tried.
    fn run(&mut self, stop: &AtomicBool, pace: &ProbePace, may_give_up: bool) -> bool {
        let start = clock::now();
        let timeout = UDP_BLOCKED_TIMEOUT.max(self.longest + self.longest + LAST_ANSWER_TIMEOUT);
        let end = self.length.map(|length| start + length.as_duration());
        let mut last = start;
        let mut first = true;
        loop {
            let now = clock::now();
            let next = if first { start } else { last + pace.gap().as_duration() };
            if stop.load(Ordering::Relaxed) || end.is_some_and(|end| now >= end) {
                break;
            }
            if may_give_up && self.back.answered == 0 && now.since(start) >= timeout.as_duration() {
                return false;
            }
            if now >= next {
                self.send(now);
                first = false;
                // After a pause of the host, do not catch up with a burst.
                last = if next + pace.gap().as_duration() < now { now } else { next };
            }
            let next = last + pace.gap().as_duration();
            self.receive_until(next.min(now + POLL_INTERVAL.as_duration()));
        }
        let last = self.longest.min(LONGEST_LAST_ROUND_TRIP) + LAST_ANSWER_TIMEOUT;
        let last = clock::now() + last.as_duration();
        while !self.under_way.is_empty() && !last.has_passed() {
            self.receive_until(last);
        }
        self.back.answered > 0 || !may_give_up
    }

    fn send(&mut self, now: Mono) {
        let probe = ProbeDatagram {
            kind: DatagramKind::Probe,
            flow: FlowId(0),
            stream: 0,
            cookie: self.cookie,
            number: self.number,
            times: [now.0, 0, 0],
        };
        if self.line.send(&probe).is_err() {
            self.unsent += 1;
            return;
        }
        self.under_way.insert(self.number, Departure { sent: now.0, left: None });
        self.number += 1;
        if self.under_way.len() > MAX_UNDER_WAY {
            self.under_way.pop_first();
        }
    }

    fn receive_until(&mut self, deadline: Mono) {
        let ready = match &self.line {
            ProbeSocket::Udp(socket, _) => wait_for(socket, Interest::READ, deadline),
            ProbeSocket::Tcp(stream) => wait_for(stream, Interest::READ, deadline),
        };
        if !ready.unwrap_or(false) {
            return;
        }
        self.take_departures();
        let mut replies = Vec::new();
        match &mut self.line {
            ProbeSocket::Udp(socket, batch) => {
                // An error here is an ICMP answer to an earlier probe, which counts as lost.
                let _ = batch.recv(socket);
                for datagram in batch.iter() {
                    let (at, stamped) = arrival(datagram.ancillary.arrived_at_ns);
                    self.stamped &= stamped;
                    replies.extend(ProbeDatagram::decode(datagram.bytes).map(|reply| (reply, at)));
                }
            }
            ProbeSocket::Tcp(stream) => {
                let mut bytes = [0; 1024];
                match stream.read(&mut bytes) {
                    Ok(count) if count > 0 => self.partial.extend_from_slice(&bytes[..count]),
                    // A closed connection is always ready to read, so wait for the deadline instead.
                    _ => clock::sleep_until(deadline),
                }
                let at = clock::now();
                while self.partial.len() >= DATAGRAM_BYTES {
                    let rest = self.partial.split_off(DATAGRAM_BYTES);
                    replies.extend(ProbeDatagram::decode(&self.partial).map(|reply| (reply, at)));
                    self.partial = rest;
                }
            }
        }
        for (reply, at) in replies {
            self.take(&reply, at);
        }
    }

    fn take(&mut self, reply: &ProbeDatagram, at: Mono) {
        if reply.kind != DatagramKind::Reply || reply.cookie != self.cookie {
            return;
        }
        // Answers to unknown or already answered probes are ignored.
        if let Some(Departure { sent, left }) = self.under_way.remove(&reply.number) {
            let [_, reflector_in, reflector_out] = reply.times;
            let left = left.filter(|left| (sent..=at.0).contains(left)).unwrap_or(sent);
            self.longest = self.longest.max(Span::from_ns(at.0.saturating_sub(sent)));
            self.back.push(ProbeExchange { sent, left, reflector_in, reflector_out, back: at.0 });
        }
    }

    /// Reads the kernel's transmit timestamps, which show how long probes waited in this host's own queue.
    fn take_departures(&mut self) {
        let ProbeSocket::Udp(socket, _) = &self.line else { return };
        // One notification per probe; a notification of another kind does not end the loop.
        for _ in 0..=self.under_way.len() {
            match errqueue::take(socket) {
                Ok(Some(Notice::Timestamp { id, at_ns, stage: TimestampPoint::Sent })) => {
                    let (at, credible) = arrival(Some(at_ns));
                    if let Some(departure) = self.under_way.get_mut(&u64::from(id)).filter(|_| credible) {
                        departure.left = Some(at.0);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn report(&self, task: &ProberConfig) -> Option<Probed> {
        let over = match self.line {
            ProbeSocket::Udp(..) => ProbeTransport::Udp,
            ProbeSocket::Tcp(_) => ProbeTransport::Tcp,
        };
        let counts = ProbeCounts { sent: self.number + self.unsent, answered: self.back.answered };
        let (back, known) = (&self.back.kept, &task.known);
        let report = evaluate(task.phase, over, counts, back, self.stamped, known, self.intervals)?;
        let mut known = task.known.clone();
        known.learn(back);
        Some((report, known))
    }
}

#[cfg(test)]
mod tests {
    use linerate_sock::open::bind_udp;

    use super::*;

    /// Probes under a load.
    fn probes_to(server: SocketAddr) -> ProberConfig {
        ProberConfig {
            server,
            options: SocketOptions::default(),
            cookie: [7; 16],
            phase: ProbePhase::Loaded,
            length: None,
            over: Some(ProbeTransport::Udp),
            known: OffsetHistory::default(),
            intervals: IntervalGrid { epoch: clock::now(), tick: Span::from_ms(100) },
            rtt: Span::ZERO,
        }
    }

    #[test]
    fn of_very_many_answers_evenly_some_are_kept_and_all_are_counted() {
        let at =
            |sent: u64| ProbeExchange { sent, left: sent, reflector_in: 0, reflector_out: 0, back: sent };
        let mut some = KeptExchanges::new(100);
        (0..10_000).for_each(|number| some.push(at(number)));
        assert_eq!(some.answered, 10_000);
        assert!((50..=100).contains(&some.kept.len()), "{}", some.kept.len());
        let evenly = (0..).map(|number| number * some.one_of).take(some.kept.len());
        assert!(some.kept.iter().map(|exchange| exchange.sent).eq(evenly));
        assert!(some.kept.last().unwrap().sent + some.one_of >= 10_000);
    }

    /// Regression: the kernel numbers the datagrams that it sends, and its times went to the wrong probes after one that
    /// it refused.
    #[test]
    fn a_probe_that_cannot_be_sent_has_no_number_and_is_lost() {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap();
        let task = probes_to(port.local_addr().unwrap());
        let mut series = ProbeSeries::new(&task, ProbeSocket::udp(&task).unwrap());
        drop(port);
        // Nobody listens: the kernel learns so from the answer to the first, and refuses the next one.
        let limit = clock::now() + std::time::Duration::from_secs(20);
        while series.unsent == 0 {
            assert!(!limit.has_passed(), "all of {} are sent", series.number);
            series.send(clock::now());
        }
        assert_eq!(series.under_way.len() as u64, series.number);
        assert!(series.under_way.keys().copied().eq(0..series.number));
    }

    #[test]
    fn a_prober_that_is_given_up_stops() {
        let server = bind_udp("127.0.0.1:0".parse().unwrap(), &SocketOptions::default()).unwrap();
        let prober = Prober::start(probes_to(server.local)).unwrap();
        server.socket.recv(&mut [0; DATAGRAM_BYTES]).unwrap();
        let stop = Arc::clone(&prober.stop);
        drop(prober);
        // Its thread gives up its reference when it ends.
        let limit = clock::now() + std::time::Duration::from_secs(20);
        while Arc::strong_count(&stop) > 1 {
            assert!(!limit.has_passed(), "it goes on");
            clock::sleep_until(clock::now() + std::time::Duration::from_millis(5));
        }
    }
}
