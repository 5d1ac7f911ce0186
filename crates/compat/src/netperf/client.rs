//! The client: agrees on a test with the server, moves or answers its data, and prints the result.

mod ending;
mod iteration;
mod request;
mod transactions;

use std::collections::VecDeque;
use std::net::IpAddr;

use linerate_model::foreign_text::without_error_numbers;
use linerate_units::{Span, Timestamp};

use super::confidence::IterationStatistics;
use super::cpu;
use super::figures::Buffer;
use super::options::{Length, NetperfClientOptions, NetperfFamily};
use super::report::{self, InterimResult};
use super::wire::{MESSAGE_BYTES, NetperfMessage, NetperfResults, Response, kind};
use crate::errno::ECONNREFUSED;
use crate::stand_in::{
    FlowCounts, FlowId, HostCounts, Input, Link, LinkOptions, Opened, Output, RunId, StandIn, Stop,
    SystemError,
};
use iteration::Iteration;
use transactions::Requests;

/// The control connection.
const CONTROL: Link = Link(0);

/// A port that is opened and closed again, to read the sizes of socket buffers before the kernel adapts them.
const SIZES: Link = Link(1);

/// The first data link. Transactions with their own connections use the numbers from here on.
const DATA: Link = Link(2);

const FLOW: FlowId = FlowId(0);

/// Timeout for answers of the server, as in netperf.
const SERVER_TIMEOUT: Span = Span::from_secs(120);

/// Timeout for the unacknowledged data of a sender that has stopped.
const FLOW_END_TIMEOUT: Span = Span::from_secs(60);

/// Number of empty datagrams that end a test over UDP.
const END_DATAGRAMS: usize = 3;

/// netperf's exit codes: of most errors, and of those that it reports as -1.
const FAILED: i32 = 1;
const REFUSED: i32 = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetperfClientPhase {
    Connecting,
    /// Reading the sizes of socket buffers.
    Sizing,
    /// Waiting for the server's agreement.
    Agreeing,
    /// Waiting before the data (`-s`).
    Pausing,
    /// Opening the data link.
    Opening,
    /// The flow is running.
    Streaming,
    /// The flow was stopped.
    Stopping,
    /// Requests are under way.
    Transacting,
    /// The data have been moved; the server still closes the connection or reports.
    Ending,
    Done,
}

/// Why a reading of this host's counters was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetperfClientCountsReason {
    Before,
    After,
}

/// netperf.
#[derive(Debug)]
pub struct NetperfClient {
    options: NetperfClientOptions,
    phase: NetperfClientPhase,
    buffer: Vec<u8>,
    out: VecDeque<Output>,
    due: Option<Timestamp>,
    next_interim: Option<Timestamp>,
    reading: Option<NetperfClientCountsReason>,
    server: Option<IpAddr>,
    iteration: Iteration,
    confidence: IterationStatistics,
    run: RunId,
    planned: bool,
    control_open: bool,
    /// The data link of now.
    data: Link,
    interims: u32,
}

impl NetperfClient {
    /// Creates a client for a command line.
    #[must_use]
    pub fn new(options: NetperfClientOptions) -> Self {
        Self {
            options,
            phase: NetperfClientPhase::Connecting,
            buffer: Vec::new(),
            out: VecDeque::new(),
            due: None,
            next_interim: None,
            reading: None,
            server: None,
            iteration: Iteration::new(Timestamp::START),
            confidence: IterationStatistics::default(),
            run: RunId(0),
            planned: false,
            control_open: false,
            data: DATA,
            interims: 0,
        }
    }

    fn connected(&mut self, now: Timestamp, opened: &Opened) {
        self.control_open = true;
        self.server = opened.remote.map(|remote| remote.ip());
        if let Some(passphrase) = &self.options.passphrase {
            let message = NetperfMessage::request(kind::PASSPHRASE).with_text(passphrase);
            self.out.push_back(Output::Send { link: CONTROL, bytes: message.into_bytes() });
        }
        if self.options.headings {
            let to = self.options.data_address.or(self.server).unwrap_or(IpAddr::from([0; 4]));
            self.out.push_back(Output::Print(report::banner(&self.options, to)));
        }
        self.begin_iteration(now);
    }

    fn not_connected(&mut self, reason: &SystemError) {
        let host = self.options.host();
        let text = if reason.errno == 0 {
            format!("Netperf could not resolve {host} as a host name\n")
        } else {
            let control = &self.options.control;
            // netperf knows the version of IP of a name after it has resolved it.
            let family = control.family.or(host.parse().map_or(NetperfFamily::V4, NetperfFamily::of));
            let local = control.local_family.or(family).any_address();
            let local = control.local.map_or_else(|| local.to_owned(), |local| local.to_string());
            let (port, from) = (control.port, control.local_port);
            let (own, their) = (control.local_family.name(), family.name());
            format!(
                "establish control: are you sure there is a netserver listening on {host} at port {port}?\n\
                 establish_control could not establish the control connection from {local} port {from} \
                 address family {own} to {host} port {port} address family {their}\n"
            )
        };
        self.out.push_back(Output::Print(text));
        self.exit(REFUSED, Some(&reason.text));
    }

    /// Reads the sizes of socket buffers first, from which the sizes of messages follow.
    fn begin_iteration(&mut self, now: Timestamp) {
        self.iteration = Iteration::new(now);
        (self.phase, self.due) = (NetperfClientPhase::Sizing, Some(now + SERVER_TIMEOUT));
        let options = LinkOptions {
            local: Some(IpAddr::from([127, 0, 0, 1])),
            backlog: Some(1),
            ..request::buffer_options(&self.options)
        };
        self.out.push_back(Output::Listen { link: SIZES, port: 0, options });
    }

    fn sized(&mut self, now: Timestamp, opened: &Opened) {
        if self.phase != NetperfClientPhase::Sizing {
            return;
        }
        self.out.push_back(Output::Close { link: SIZES });
        let figures = &mut self.iteration.figures;
        figures.send_buffer = Buffer { initial: opened.snd_buf, last: opened.snd_buf };
        figures.receive_buffer = Buffer { initial: opened.rcv_buf, last: opened.rcv_buf };
        figures.sizes = request::sizes(&self.options, opened);
        let host = self.options.data_address.or(self.server);
        let family = self.options.data.family.or(host.map_or(NetperfFamily::Any, NetperfFamily::of));
        figures.family = family;
        let request = request::request(&self.options, &figures.sizes, family);
        (self.phase, self.due) = (NetperfClientPhase::Agreeing, Some(now + SERVER_TIMEOUT));
        self.out.push_back(Output::Send { link: CONTROL, bytes: request.encode().into_bytes() });
    }

    fn received(&mut self, now: Timestamp, bytes: &[u8]) {
        // A server sends one message at a time: its agreement, then its counts.
        if self.buffer.len() + bytes.len() > 2 * MESSAGE_BYTES {
            return self.fail("netperf: the server sends more than it was asked for\n");
        }
        self.buffer.extend_from_slice(bytes);
        while let Some(message) = NetperfMessage::take(&mut self.buffer) {
            if self.phase == NetperfClientPhase::Done {
                return;
            }
            self.answered(now, &message);
        }
    }

    fn answered(&mut self, now: Timestamp, message: &NetperfMessage) {
        if message.errno() != 0 {
            return self.refused(message.errno());
        }
        match self.phase {
            NetperfClientPhase::Agreeing => self.agreed(now, Response::decode(message)),
            NetperfClientPhase::Connecting | NetperfClientPhase::Sizing | NetperfClientPhase::Done => {}
            _ if self.iteration.results.is_none() => {
                self.iteration.results = Some(NetperfResults::decode(message));
                self.finish_if_complete(now);
            }
            _ => self.fail("netperf: the server sends more than it was asked for\n"),
        }
    }

    /// The server reports an error of its system.
    fn refused(&mut self, errno: i32) {
        self.out.push_back(Output::Print(format!("netperf: remote error {errno}")));
        let error = std::io::Error::from_raw_os_error(errno).to_string();
        let text = without_error_numbers(&error);
        self.out.push_back(Output::PrintError(format!("{text}\n")));
        self.exit(REFUSED, Some(&text));
    }

    fn agreed(&mut self, now: Timestamp, response: Response) {
        if response.port == 0 {
            return self.fail("netperf: the server has no port for data\n");
        }
        self.iteration.figures.response = response;
        let flows = if self.options.transactions() { Vec::new() } else { vec![FLOW] };
        let planned =
            request::planned(&self.options, self.run, CONTROL, &flows, &self.iteration.figures.sizes);
        self.out.push_back(Output::Plan(Box::new(planned)));
        self.planned = true;
        if self.options.wait > Span::ZERO {
            (self.phase, self.due) = (NetperfClientPhase::Pausing, Some(now + self.options.wait));
        } else {
            self.begin_data(now);
        }
    }

    /// The data begin: their time runs from here.
    fn begin_data(&mut self, now: Timestamp) {
        let iteration = &mut self.iteration;
        (iteration.began, iteration.interim_end) = (now, now);
        iteration.until = match self.options.length {
            Length::Seconds(seconds) => Some(now + Span::from_secs(u64::from(seconds))),
            Length::Units(_) | Length::Endless => None,
        };
        if self.options.transactions() {
            let ask = self.options.payload(self.options.request_size.unwrap_or(1));
            let most = if self.options.connects_each_time { 1 } else { self.options.burst.saturating_add(1) };
            let answer = self.options.response_size.unwrap_or(1);
            let requests = Requests::new(ask, answer, most, self.options.udp());
            iteration.requests = Some(requests.with(self.options.timeout, self.options.statistics));
        }
        (self.phase, self.due) = (NetperfClientPhase::Opening, iteration.until);
        if self.options.cpu.local {
            self.read_host(NetperfClientCountsReason::Before);
        }
        self.open_data(now);
    }

    fn read_host(&mut self, why: NetperfClientCountsReason) {
        self.reading = Some(why);
        self.out.push_back(Output::LookHost { interrupts: None, interface: None });
    }

    fn host_read(&mut self, now: Timestamp, counts: &HostCounts) {
        match self.reading.take() {
            Some(NetperfClientCountsReason::Before) => self.iteration.before = Some(counts.clone()),
            Some(NetperfClientCountsReason::After) => {
                let spent = self.iteration.before.as_ref().and_then(|before| cpu::between(before, counts));
                if let Some((cpu, cores)) = spent {
                    (self.iteration.figures.cpu.local, self.iteration.figures.cores) = (Some(cpu), cores);
                }
                self.finish_if_complete(now);
            }
            None => {}
        }
    }

    fn open_data(&mut self, now: Timestamp) {
        (self.iteration.opening_at, self.iteration.open) = (now, false);
        let output =
            request::data_link(&self.options, self.data, self.iteration.figures.response.port, self.server);
        self.out.push_back(output);
    }

    /// The data link is open, or its properties were read again.
    fn data_opened(&mut self, now: Timestamp, opened: &Opened) {
        let figures = &mut self.iteration.figures;
        if !self.options.udp() {
            let buffers = [
                (self.options.send_buffer.local, &mut figures.send_buffer, opened.snd_buf),
                (self.options.receive_buffer.local, &mut figures.receive_buffer, opened.rcv_buf),
            ];
            // Buffers of a size that was asked for stay as they are.
            for (_, buffer, bytes) in buffers.into_iter().filter(|(asked, ..)| asked.is_none()) {
                buffer.last = bytes;
            }
            figures.mss = opened.mss;
            figures.congestion = opened.congestion.clone().unwrap_or_default();
        }
        if std::mem::replace(&mut self.iteration.open, true) {
            return;
        }
        if self.phase == NetperfClientPhase::Ending {
            self.out.push_back(Output::FinishWriting { link: self.data });
        } else if self.options.transactions() {
            self.phase = NetperfClientPhase::Transacting;
            self.ask(now);
        } else {
            self.start_flow(now);
        }
    }

    fn data_not_opened(&mut self, reason: &SystemError) {
        // The server does not need another connection to know that the time is over.
        if self.phase == NetperfClientPhase::Ending {
            return;
        }
        let text = &reason.text;
        self.out.push_back(Output::PrintError(format!(
            "netperf: send_omni: connect_data_socket failed: {text}\n"
        )));
        self.exit(FAILED, Some(text));
    }

    fn start_flow(&mut self, now: Timestamp) {
        let left = self.iteration.until.map(|until| until.since(now).max(Span::from_ms(1)));
        let task =
            request::task(&self.options, FLOW, self.run, self.data, &self.iteration.figures.sizes, left);
        self.phase = NetperfClientPhase::Streaming;
        // A sender stops by itself and says so.
        self.due = match (self.options.roles.sends, self.iteration.until) {
            (true, Some(until)) => Some(until + FLOW_END_TIMEOUT),
            (_, until) => until,
        };
        self.next_interim = self.options.interim.map(|interval| self.iteration.began + interval);
        self.out.push_back(Output::Start(Box::new(task)));
    }

    fn stop(&mut self, now: Timestamp, how: Stop) {
        if self.phase == NetperfClientPhase::Streaming {
            (self.phase, self.due, self.next_interim) =
                (NetperfClientPhase::Stopping, Some(now + FLOW_END_TIMEOUT), None);
            self.out.push_back(Output::Stop { flow: FLOW, how });
        }
    }

    /// Interim results of a stream.
    fn counted(&mut self, flows: &[FlowCounts]) {
        let Some(counts) = flows.iter().find(|counts| counts.flow == FLOW) else { return };
        if self.phase == NetperfClientPhase::Streaming {
            self.interim(counts.at, counts.total(|stream| stream.bytes));
        }
    }

    /// Prints an interim result if anything was moved since the last one; `total` has what was moved until now.
    fn interim(&mut self, now: Timestamp, total: u64) {
        let iteration = &mut self.iteration;
        let units = total.saturating_sub(iteration.interim_units);
        let length = now.since(iteration.interim_end);
        if self.options.interim.is_none() || units == 0 || length == Span::ZERO {
            return;
        }
        (iteration.interim_units, iteration.interim_end) = (total, now);
        let interim = InterimResult { units, length, end: now, number: self.interims };
        self.interims = self.interims.saturating_add(1);
        self.out.push_back(Output::Print(report::interim(&self.options, interim)));
    }

    fn data_closed(&mut self, now: Timestamp, reason: Option<&SystemError>) {
        match (self.phase, reason) {
            // The empty datagrams at the end may meet a port that is closed already.
            (NetperfClientPhase::Transacting | NetperfClientPhase::Ending, Some(reason))
                if self.options.udp() && reason.errno == ECONNREFUSED => {}
            (NetperfClientPhase::Transacting, Some(reason)) => {
                let text = reason.text.clone();
                self.out
                    .push_back(Output::PrintError(format!("netperf: send_omni: recv_data failed: {text}\n")));
                self.exit(FAILED, Some(&text));
            }
            (NetperfClientPhase::Transacting, None) if self.options.connects_each_time => {
                self.connection_over(now)
            }
            (NetperfClientPhase::Transacting, None) => self.end_transactions(now),
            (NetperfClientPhase::Ending, _) => self.data_over(now),
            _ => {}
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if let (Some(at), Some(interval)) = (self.next_interim, self.options.interim)
            && now >= at
        {
            // Those that are late are left out.
            let late = now.since(at).as_ns() / interval.as_ns().max(1);
            self.next_interim = Some(at + Span::from_ns(interval.as_ns().saturating_mul(late + 1)));
            self.out.push_back(Output::Look);
        }
        if self.due.is_some_and(|due| now >= due) {
            self.due = None;
            self.time_out(now);
        }
        self.expire_responses(now);
    }

    fn time_out(&mut self, now: Timestamp) {
        match self.phase {
            NetperfClientPhase::Pausing => self.begin_data(now),
            NetperfClientPhase::Opening => self.end_transactions(now),
            NetperfClientPhase::Streaming if self.options.roles.sends => self.stop(now, Stop::Abort),
            NetperfClientPhase::Streaming => self.stop(now, Stop::AtOnce),
            NetperfClientPhase::Stopping => self.out.push_back(Output::Stop { flow: FLOW, how: Stop::Abort }),
            NetperfClientPhase::Transacting => self.end_transactions(now),
            NetperfClientPhase::Sizing | NetperfClientPhase::Agreeing | NetperfClientPhase::Ending => {
                self.fail("netperf: no response received from the server\n");
            }
            NetperfClientPhase::Connecting | NetperfClientPhase::Done => {}
        }
    }

    fn signal(&mut self, now: Timestamp, number: i32) {
        // A test without an end is ended by the first interrupt, and its result is printed.
        let endless = number == 2 && self.options.length == Length::Endless;
        match self.phase {
            NetperfClientPhase::Streaming if endless && self.options.roles.sends => {
                self.stop(now, Stop::Regularly)
            }
            NetperfClientPhase::Streaming if endless => self.stop(now, Stop::AtOnce),
            NetperfClientPhase::Transacting if endless => self.end_transactions(now),
            _ => self.exit(128 + number, Some("interrupted")),
        }
    }

    fn fail(&mut self, text: &str) {
        self.out.push_back(Output::PrintError(text.to_owned()));
        self.exit(FAILED, Some(text.trim_end()));
    }

    fn exit(&mut self, code: i32, trouble: Option<&str>) {
        if matches!(self.phase, NetperfClientPhase::Streaming | NetperfClientPhase::Stopping) {
            self.out.push_back(Output::Stop { flow: FLOW, how: Stop::Abort });
        }
        if std::mem::take(&mut self.planned) {
            self.out.push_back(Output::RunOver { run: self.run, trouble: trouble.map(str::to_owned) });
        }
        if std::mem::take(&mut self.control_open) {
            self.out.push_back(Output::Close { link: CONTROL });
        }
        self.out.push_back(Output::Exit(code));
        (self.phase, self.due, self.next_interim) = (NetperfClientPhase::Done, None, None);
    }
}

impl StandIn for NetperfClient {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.phase == NetperfClientPhase::Done {
            return;
        }
        let data = self.data;
        match &input {
            Input::Begin => self.out.push_back(request::control_link(&self.options, CONTROL)),
            Input::Opened { link: CONTROL, opened } => self.connected(now, opened),
            Input::NotOpened { link: CONTROL, reason } => self.not_connected(reason),
            Input::Opened { link: SIZES, opened } => self.sized(now, opened),
            Input::NotOpened { link: SIZES, reason } => {
                self.fail(&format!("netperf: send_omni: unable to create data socket: {}\n", reason.text));
            }
            Input::Bytes { link: CONTROL, bytes } => self.received(now, bytes),
            Input::Closed { link: CONTROL, reason } => self.control_closed(reason.as_ref()),
            Input::Opened { link, opened } if *link == data => self.data_opened(now, opened),
            Input::NotOpened { link, reason } if *link == data => self.data_not_opened(reason),
            Input::Bytes { link, bytes } if *link == data => self.data_bytes(now, bytes.len()),
            Input::Datagram { link, bytes, .. } if *link == data => self.data_bytes(now, bytes.len()),
            Input::Closed { link, reason } if *link == data => self.data_closed(now, reason.as_ref()),
            Input::NotStarted { flow: FLOW, reason } => {
                self.fail(&format!("netperf: send_omni: unable to create data socket: {}\n", reason.text));
            }
            Input::Written { flow: FLOW } => self.stop(now, Stop::Regularly),
            Input::Ended { counts } if counts.flow == FLOW => self.flow_ended(now, counts),
            Input::Counts { flows, .. } => self.counted(flows),
            Input::Host(counts) => self.host_read(now, counts),
            Input::Tick => self.tick(now),
            Input::Signal(number) => self.signal(now, *number),
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let lost = self.iteration.requests.as_ref().and_then(|requests| requests.lost_at);
        let lost = lost.filter(|_| self.phase == NetperfClientPhase::Transacting);
        [self.due, self.next_interim, lost].into_iter().flatten().min()
    }
}
