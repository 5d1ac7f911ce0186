//! One client of a server: its control connection, and one test after another.

mod data;

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_model::ForeignText;
use linerate_units::{Span, Timestamp};

use super::cpu;
use super::terms::{check, grace, link_options, planned, response};
use super::transactions::Responder;
use super::wire::{
    MESSAGE_BYTES, NetperfMessage, NetperfProtocol, NetperfRequest, NetperfResults, flag, kind,
};
use crate::errno::{EADDRINUSE, EBUSY, EINVAL};
use crate::sessions::ToolSession;
use crate::stand_in::{FlowId, HostCounts, Input, Link, Opened, Output, RunId, Stop, SystemError};

/// Timeout for a client that requests nothing, and for data of tests without a duration.
const IDLE_TIMEOUT: Span = Span::from_secs(60);

/// How often a test without a duration is checked for data.
const POLL_INTERVAL: Span = Span::from_secs(5);

/// Timeout for a flow to end after it was stopped: unacknowledged data are still sent.
const FLOW_END_TIMEOUT: Span = Span::from_secs(60);

/// The error number of an unknown request, from netserver.
const UNKNOWN_REQUEST: i32 = 998;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetperfServerPhase {
    /// Waiting for a request.
    Waiting,
    /// Waiting for the driver's decision.
    Deciding,
    /// Opening the port for data.
    Opening,
    /// Waiting for a data connection.
    Accepting,
    /// The flow is running.
    Streaming,
    /// The flow was stopped.
    Stopping,
    /// Answering requests.
    Transacting,
    /// The client has left, and the flow has not ended yet.
    Draining,
    /// The client has left.
    Over,
}

/// Why a reading of this host's counters was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetperfServerCountsReason {
    Before,
    After,
}

/// A test.
#[derive(Debug)]
struct NetperfTest {
    request: NetperfRequest,
    /// When the response was sent.
    began: Timestamp,
    /// The port for data.
    opened: Option<Opened>,
    /// The data connection of a stream.
    data: Option<Link>,
    responder: Responder,
    cpu: Option<HostCounts>,
    results: NetperfResults,
    /// When data last arrived, and the bytes of the flow then.
    active: Timestamp,
    moved: u64,
    trouble: Option<String>,
}

/// One client of a server.
#[derive(Debug)]
pub(super) struct NetperfSession {
    control: Link,
    peer: Option<SocketAddr>,
    /// The link of its port for data.
    own: Link,
    flow: FlowId,
    run: RunId,
    run_step: u32,
    /// The passphrase that the client has to send first.
    passphrase: Option<ForeignText>,
    phase: NetperfServerPhase,
    buffer: Vec<u8>,
    test: Option<NetperfTest>,
    due: Option<Timestamp>,
    next_look: Option<Timestamp>,
    reading: Option<NetperfServerCountsReason>,
    out: VecDeque<Output>,
}

impl NetperfSession {
    /// A session with this number of at most `sessions`, whose data port has the link `own`.
    pub(super) fn new(
        now: Timestamp,
        control: Link,
        peer: Option<SocketAddr>,
        number: u16,
        sessions: u16,
        passphrase: Option<ForeignText>,
    ) -> Self {
        Self {
            control,
            peer,
            own: Link(1 + u32::from(number)),
            flow: FlowId(number),
            run: RunId(u32::from(number)),
            run_step: u32::from(sessions),
            passphrase,
            phase: NetperfServerPhase::Waiting,
            buffer: Vec::new(),
            test: None,
            due: Some(now + IDLE_TIMEOUT),
            next_look: None,
            reading: None,
            out: VecDeque::new(),
        }
    }

    fn is_streaming(&self) -> bool {
        matches!(self.phase, NetperfServerPhase::Streaming | NetperfServerPhase::Stopping)
    }

    /// Whether this is a connection with transactions of the test.
    fn answers(&self, link: Link) -> bool {
        self.test.as_ref().is_some_and(|test| test.responder.has(link))
    }

    fn send(&mut self, message: NetperfMessage) {
        self.out.push_back(Output::Send { link: self.control, bytes: message.into_bytes() });
    }

    /// Ends the session.
    pub(super) fn end(&mut self, trouble: Option<&str>) {
        if matches!(self.phase, NetperfServerPhase::Draining | NetperfServerPhase::Over) {
            return;
        }
        let streams = self.is_streaming();
        if streams {
            self.out.push_back(Output::Stop { flow: self.flow, how: Stop::Abort });
        }
        self.end_test(trouble);
        self.out.push_back(Output::Close { link: self.control });
        // The number of a flow is free again when it has ended.
        self.phase = if streams { NetperfServerPhase::Draining } else { NetperfServerPhase::Over };
        (self.due, self.next_look) = (None, None);
    }

    fn drained(&mut self) {
        self.out.push_back(Output::Forget { flow: self.flow });
        self.phase = NetperfServerPhase::Over;
    }

    /// Ends the test, if there is one.
    fn end_test(&mut self, trouble: Option<&str>) {
        let Some(mut test) = self.test.take() else { return };
        test.responder.end(&mut self.out);
        if let Some(link) = test.data.take() {
            self.out.push_back(Output::Close { link });
        }
        // A port that carries data is closed only once.
        if self.phase != NetperfServerPhase::Deciding {
            self.out.push_back(Output::Close { link: self.own });
        }
        let trouble = trouble.map(str::to_owned).or(test.trouble);
        self.out.push_back(Output::RunOver { run: self.run, trouble });
        self.run = RunId(self.run.0.wrapping_add(self.run_step));
    }

    /// Answers a request with an error, and waits for the next one.
    fn fail(&mut self, now: Timestamp, errno: i32) {
        self.send(NetperfMessage::error(kind::TEST_RESPONSE, errno));
        self.wait(now);
    }

    fn wait(&mut self, now: Timestamp) {
        (self.phase, self.due, self.next_look) =
            (NetperfServerPhase::Waiting, Some(now + IDLE_TIMEOUT), None);
    }

    /// The system refuses what a test needs.
    fn cannot(&mut self, now: Timestamp, reason: &SystemError) {
        if matches!(
            self.phase,
            NetperfServerPhase::Waiting
                | NetperfServerPhase::Deciding
                | NetperfServerPhase::Draining
                | NetperfServerPhase::Over
        ) {
            return;
        }
        self.end_test(Some(&reason.text));
        self.fail(now, if reason.errno > 0 { reason.errno } else { EINVAL });
    }

    fn received(&mut self, now: Timestamp, bytes: &[u8]) {
        // A client waits for each answer, so there is never more than one request.
        if self.buffer.len() + bytes.len() > 2 * MESSAGE_BYTES {
            return self.end(Some("the client does not wait for answers"));
        }
        self.buffer.extend_from_slice(bytes);
        self.next_request(now);
    }

    fn next_request(&mut self, now: Timestamp) {
        while self.phase == NetperfServerPhase::Waiting
            && let Some(message) = NetperfMessage::take(&mut self.buffer)
        {
            self.requested(now, &message);
        }
    }

    fn requested(&mut self, now: Timestamp, message: &NetperfMessage) {
        self.due = Some(now + IDLE_TIMEOUT);
        if let Some(passphrase) = self.passphrase.take() {
            if message.kind() != kind::PASSPHRASE || message.data_text() != passphrase {
                self.end(Some("the client does not know the passphrase"));
            }
            return;
        }
        match message.kind() {
            kind::TEST => {
                let request = NetperfRequest::decode(message);
                match check(&request) {
                    Ok(()) => self.ask(now, request),
                    Err(errno) => self.fail(now, errno),
                }
            }
            kind::DEBUG_ON | kind::DEBUG_OFF => self.send(NetperfMessage::new(kind::DEBUG_OK)),
            kind::CPU_CALIBRATE => self.send(NetperfMessage::new(kind::CPU_CALIBRATE)),
            // 2.7 no longer tells what the system is.
            kind::SYSTEM => {
                let text = ",Deprecated,Deprecated,Deprecated,Deprecated";
                self.send(NetperfMessage::new(kind::SYSTEM_RESPONSE).with_text(text));
            }
            // netserver ignores a passphrase that it did not ask for.
            kind::PASSPHRASE => {}
            _ => self.fail(now, UNKNOWN_REQUEST),
        }
    }

    fn ask(&mut self, now: Timestamp, request: NetperfRequest) {
        let planned = planned(&request, self.run, self.flow, self.control, false);
        let (ask, answer) = (request.request_size.unwrap_or(0), request.response_size.unwrap_or(0));
        self.test = Some(NetperfTest {
            responder: Responder::new(ask, answer, request.connects_each_time()),
            request,
            began: now,
            opened: None,
            data: None,
            cpu: None,
            results: NetperfResults::default(),
            active: now,
            moved: 0,
            trouble: None,
        });
        (self.phase, self.due) = (NetperfServerPhase::Deciding, None);
        self.out.push_back(Output::Ask(Box::new(planned)));
    }

    fn admitted(&mut self) {
        let Some(test) = self.test.as_ref().filter(|_| self.phase == NetperfServerPhase::Deciding) else {
            return;
        };
        self.phase = NetperfServerPhase::Opening;
        let (port, options) = (test.request.port, link_options(&test.request));
        self.out.push_back(Output::Listen { link: self.own, port, options });
    }

    fn opened(&mut self, now: Timestamp, opened: &Opened) {
        let Some(test) = self.test.as_mut().filter(|_| self.phase == NetperfServerPhase::Opening) else {
            return;
        };
        // A port that is shared with other protocols cannot carry the data of a test.
        if opened.descriptor < 0 {
            let text = "Address already in use".to_owned();
            return self.cannot(now, &SystemError { errno: EADDRINUSE, text });
        }
        test.opened = Some(opened.clone());
        if test.request.has(flag::MEASURE_CPU) {
            self.read_host(NetperfServerCountsReason::Before);
        } else {
            self.respond(now);
        }
    }

    fn read_host(&mut self, why: NetperfServerCountsReason) {
        self.reading = Some(why);
        self.out.push_back(Output::LookHost { interrupts: None, interface: None });
    }

    fn host_read(&mut self, now: Timestamp, counts: &HostCounts) {
        let Some(why) = self.reading.take() else { return };
        let Some(test) = &mut self.test else { return };
        match why {
            NetperfServerCountsReason::Before => {
                test.cpu = Some(counts.clone());
                self.respond(now);
            }
            NetperfServerCountsReason::After => {
                let spent = test.cpu.as_ref().and_then(|before| cpu::between(before, counts));
                if let Some((cpu, cores)) = spent {
                    (test.results.cpu, test.results.cores) = (Some(cpu), cores);
                }
                self.report(now);
            }
        }
    }

    /// Answers the request; the test begins.
    fn respond(&mut self, now: Timestamp) {
        let Some(test) = &mut self.test else { return };
        let Some(opened) = &test.opened else { return };
        let response = response(&test.request, opened);
        test.began = now;
        test.active = now;
        let (udp, length) = (test.request.protocol == NetperfProtocol::Udp, test.request.length);
        let transactions = test.request.roles.transactions();
        let grace = grace(&test.request);
        self.due = u64::try_from(length)
            .ok()
            .filter(|length| *length > 0)
            .map(|seconds| now + Span::from_secs(seconds) + grace);
        if self.due.is_none() {
            self.next_look = Some(now + POLL_INTERVAL);
        }
        self.send(response.encode());
        match (udp, transactions) {
            (true, false) => self.start(now, self.own),
            (true, true) => self.phase = NetperfServerPhase::Transacting,
            (false, _) => self.phase = NetperfServerPhase::Accepting,
        }
    }

    /// The test has ended, `beyond` its time.
    fn finish(&mut self, now: Timestamp, beyond: Span) {
        let Some(test) = &mut self.test else { return };
        let responder = &test.responder;
        let results = &mut test.results;
        if test.request.roles.transactions() {
            let count = u32::try_from(responder.transactions).unwrap_or(u32::MAX);
            (results.transactions, results.send_calls, results.receive_calls) = (count, count, count);
            (results.sent, results.received) = (responder.sent, responder.received);
        }
        results.elapsed = now.since(test.began).saturating_sub(beyond).as_secs_f64() as f32;
        if let Some(opened) = &test.opened {
            results.receive_buffer = u32::try_from(opened.rcv_buf).unwrap_or(u32::MAX);
            results.send_buffer = u32::try_from(opened.snd_buf).unwrap_or(u32::MAX);
            if test.request.has(flag::ROUTED) {
                results.congestion = ForeignText::new(opened.congestion.as_deref().unwrap_or_default());
            }
        }
        (self.due, self.next_look) = (None, None);
        if test.request.has(flag::MEASURE_CPU) && self.reading.is_none() {
            self.read_host(NetperfServerCountsReason::After);
        } else if self.reading.is_none() {
            self.report(now);
        }
    }

    fn report(&mut self, now: Timestamp) {
        let Some(results) = self.test.as_ref().map(|test| test.results.encode()) else { return };
        self.send(results);
        self.end_test(None);
        self.wait(now);
        self.next_request(now);
    }

    fn tick(&mut self, now: Timestamp) {
        if self.next_look.is_some_and(|at| now >= at) {
            self.next_look = Some(now + POLL_INTERVAL);
            match self.phase {
                NetperfServerPhase::Streaming => self.out.push_back(Output::Look),
                NetperfServerPhase::Accepting | NetperfServerPhase::Transacting => {
                    let active = self.test.as_ref().map_or(now, |test| test.active);
                    if now.since(active) >= IDLE_TIMEOUT {
                        self.time_out(now, Span::ZERO);
                    }
                }
                _ => {}
            }
        }
        if self.due.is_some_and(|at| now >= at) {
            self.due = None;
            match self.phase {
                NetperfServerPhase::Waiting => self.end(None),
                NetperfServerPhase::Streaming => self.stop(now, Stop::AtOnce),
                NetperfServerPhase::Stopping => {
                    self.out.push_back(Output::Stop { flow: self.flow, how: Stop::Abort })
                }
                NetperfServerPhase::Accepting | NetperfServerPhase::Transacting => {
                    let beyond = self.test.as_ref().map_or(Span::ZERO, |test| grace(&test.request));
                    self.time_out(now, beyond);
                }
                _ => {}
            }
        }
    }

    /// A test whose end was not announced.
    fn time_out(&mut self, now: Timestamp, beyond: Span) {
        if let (NetperfServerPhase::Accepting, Some(test)) = (self.phase, &mut self.test) {
            test.trouble = Some("the client did not open the data connection".to_owned());
        }
        self.finish(now, beyond);
    }
}

impl ToolSession for NetperfSession {
    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn is_over(&self) -> bool {
        self.phase == NetperfServerPhase::Over
    }

    fn deadline(&self) -> Option<Timestamp> {
        [self.due, self.next_look].into_iter().flatten().min()
    }

    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        match input {
            Input::Bytes { link, bytes } if *link == self.control => self.received(now, bytes),
            Input::Closed { link, reason } if *link == self.control => {
                let why = reason.as_ref().map_or("the client has left", |reason| reason.text.as_str());
                self.end(Some(why));
            }
            Input::Admitted { run } if *run == self.run => self.admitted(),
            Input::Refused { run, .. } if *run == self.run => {
                self.test = None;
                self.fail(now, EBUSY);
            }
            Input::Opened { link, opened } if *link == self.own => self.opened(now, opened),
            Input::NotOpened { link, reason } if *link == self.own => self.cannot(now, reason),
            Input::Accepted { listener, link, .. } if *listener == self.own => self.accepted(now, *link),
            Input::Bytes { link, bytes } if self.answers(*link) => self.request_bytes(now, *link, bytes),
            Input::Sent { link } if self.answers(*link) => {
                if let Some(test) = &mut self.test {
                    test.responder.sent(*link, &mut self.out);
                }
            }
            Input::Closed { link, .. } if self.answers(*link) => self.data_closed(now, *link),
            Input::Datagram { link, from, bytes } if *link == self.own => self.datagram(now, *from, bytes),
            Input::NotStarted { flow, .. }
                if *flow == self.flow && self.phase == NetperfServerPhase::Draining =>
            {
                self.drained();
            }
            Input::Ended { counts }
                if counts.flow == self.flow && self.phase == NetperfServerPhase::Draining =>
            {
                self.drained();
            }
            Input::NotStarted { flow, reason } if *flow == self.flow && self.is_streaming() => {
                self.cannot(now, reason);
            }
            Input::Written { flow } if *flow == self.flow => self.stop(now, Stop::Regularly),
            Input::Ended { counts } if counts.flow == self.flow && self.is_streaming() => {
                self.flow_ended(now, counts);
            }
            Input::Host(counts) if self.reading.is_some() => self.host_read(now, counts),
            Input::Counts { flows, .. } => {
                self.check_activity(now, flows);
                return false;
            }
            Input::Tick => {
                self.tick(now);
                return false;
            }
            _ => return false,
        }
        true
    }
}
