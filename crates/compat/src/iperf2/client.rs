//! The client.

mod back;
mod connects;
mod input;
mod requests;
mod start_time;

use requests::header_of;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::datagram::{Generation, number_of};
use super::direction::Iperf2Direction;
use super::output_queue::OutputQueue;
use super::report::{ConnectionDetails, Iperf2Addresses};
use super::settings::{Iperf2Amount, Iperf2Mode, Iperf2Settings};
use super::track::Iperf2Stream;
use super::wire::{Ack, Extension, TestHeader};
use crate::stand_in::{FlowId, Input, Link, Opened, Output, RunId, StandIn, SystemError};

/// The listener for reverse connections from the server.
const REVERSE_LISTENER: Link = Link(60_000);

/// The only run of a client.
const RUN: RunId = RunId(0);

/// How long to wait for the server's answer with -X: an old server never answers.
const DETECT_TIMEOUT: Span = Span::from_secs(2);

/// Interval and number of the datagrams that ask the server to send (UDP -R).
const CALL_INTERVAL: Span = Span::from_ms(250);
const MAX_CALLS: u32 = 12;

/// The state of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf2ClientState {
    /// Opening the listener for reverse connections, then the connections.
    Connecting,
    /// With -X: waiting for the server's answer.
    Detecting,
    /// UDP -R: waiting for the server's first datagram.
    Calling,
    /// Waiting for the time to start (--txdelay-time, --txstart-time).
    Delaying,
    Testing,
    /// Sending a file or standard input (-F, -I).
    Piping,
    /// The own test is over; waiting for the server's reverse connections.
    Waiting,
    Over,
}

/// The client.
#[derive(Debug)]
pub struct Iperf2Client {
    queue: OutputQueue,
    stage: Iperf2ClientState,
    opened: BTreeMap<u32, Opened>,
    streams: Vec<Iperf2Stream>,
    header: TestHeader,
    directions: Vec<Iperf2Direction>,
    /// Accepted reverse connections, and peers of received datagrams.
    back: Vec<Iperf2Stream>,
    back_generation: Generation,
    answers: BTreeMap<Link, Vec<u8>>,
    /// The version in the answers on the connections.
    peer: Option<String>,
    calls: u32,
    due: Option<Timestamp>,
    cut: bool,
    /// Connections to try again: when (absent while it is tried), and the attempts that are left.
    retries: BTreeMap<u32, (Option<Timestamp>, u32)>,
    connects: connects::ConnectOnly,
}

impl Iperf2Client {
    /// Creates a client with these settings.
    #[must_use]
    pub fn new(settings: Iperf2Settings) -> Self {
        let header = header_of(&settings);
        Self {
            queue: OutputQueue::new(settings),
            stage: Iperf2ClientState::Connecting,
            opened: BTreeMap::new(),
            streams: Vec::new(),
            header,
            directions: Vec::new(),
            back: Vec::new(),
            back_generation: Generation::New,
            answers: BTreeMap::new(),
            peer: None,
            calls: 0,
            due: None,
            cut: false,
            retries: BTreeMap::new(),
            connects: connects::ConnectOnly::default(),
        }
    }

    fn wanted(&self) -> u32 {
        self.queue.settings.parallel.unwrap_or(1).max(1)
    }

    fn goes_back(&self) -> bool {
        matches!(self.queue.settings.mode, Iperf2Mode::Dual | Iperf2Mode::Tradeoff)
    }

    fn begin(&mut self) {
        self.queue.warn();
        if self.goes_back() {
            let port = self.queue.settings.listen_port.unwrap_or(self.queue.settings.port);
            let options = self.queue.options(self.queue.settings.udp);
            self.queue.put(Output::Listen { link: REVERSE_LISTENER, port, options });
        } else {
            self.connect();
        }
    }

    fn opened(&mut self, now: Timestamp, link: Link, opened: Opened) {
        if link == REVERSE_LISTENER {
            let port = opened.local.port();
            let text = self.queue.report.listening(self.queue.settings.udp, port, opened.rcv_buf);
            self.queue.print(text);
            self.connect();
            return;
        }
        if self.queue.settings.connect_only.is_some() {
            self.connected_only(now, link, Some(&opened));
            return;
        }
        self.retries.remove(&link.0);
        if self.opened.is_empty() {
            // The granted send buffer.
            self.banner(Some(&opened));
        }
        self.opened.insert(link.0, opened);
        if self.opened.len() == self.wanted() as usize && self.stage == Iperf2ClientState::Connecting {
            self.go(now);
        }
    }

    fn banner(&mut self, opened: Option<&Opened>) {
        let settings = &self.queue.settings;
        let host = settings.host.clone().unwrap_or_default();
        let pace = settings.offered().filter(|_| settings.udp).map(|rate| (settings.length_for(true), rate));
        let text = self.queue.report.connecting(&host, pace, settings.port, opened);
        self.queue.print(text);
    }

    fn not_opened(&mut self, now: Timestamp, link: Link, reason: &SystemError) {
        if link == REVERSE_LISTENER {
            self.queue.print_error(format!("listener bind failed: {}\n", reason.text));
        } else {
            if self.opened.is_empty() && self.retries.is_empty() && !self.connects.has_begun() {
                self.banner(None);
            }
            let transport = if self.queue.settings.udp { "udp" } else { "tcp" };
            self.queue.print_error(format!("{transport} connect failed: {}\n", reason.text));
            if self.try_again(now, link) {
                return;
            }
            if self.queue.settings.connect_only.is_some() {
                self.connected_only(now, link, None);
                return;
            }
        }
        self.stage = Iperf2ClientState::Over;
        self.queue.exit(0);
    }

    /// Starts the test when all connections are open.
    fn go(&mut self, now: Timestamp) {
        let details = |opened: &Opened| ConnectionDetails {
            no_udp_fin: self.header.extension.is_some_and(|extension| extension.no_udp_fin),
            trip_times: self.queue.settings.trip_times,
            descriptor: opened.descriptor,
            peer: None,
            mss: opened.mss.filter(|_| !self.queue.settings.udp),
            rtt: opened.rtt.filter(|_| !self.queue.settings.udp),
            handshake: opened.handshake.filter(|_| !self.queue.settings.udp),
            starts_later: self.header.extension.is_some_and(|extension| extension.starts_later),
            tos: u16::from(self.queue.settings.tos.unwrap_or(0)),
            opened_at: self.queue.settings.wall(now).0,
        };
        let mode = self.queue.settings.mode;
        let mut lines = Vec::new();
        for (number, opened) in &self.opened {
            let remote = opened.remote.unwrap_or(opened.local);
            let ends = Iperf2Addresses { local: opened.local, remote };
            self.streams.push(Iperf2Stream::new(number + 1, Link(*number), ends));
            lines.push((number + 1, ends, self.queue.report.notes(mode, &details(opened))));
        }
        for (id, ends, notes) in lines {
            let text = self.queue.report.connected(id, false, ends.local, ends.remote, &notes);
            self.queue.print(text);
        }
        if self.queue.settings.input.is_none() {
            self.plan();
        }
        let (udp, compatible) = (self.queue.settings.udp, self.queue.settings.compatible);
        if !udp && !compatible {
            let bytes = self.header.write_tcp();
            for at in 0..self.streams.len() {
                self.send_own(at, bytes.clone());
            }
        }
        if udp && mode == Iperf2Mode::Reverse {
            self.stage = Iperf2ClientState::Calling;
            self.call(now);
        } else if !udp && self.queue.settings.peer_detect {
            self.stage = Iperf2ClientState::Detecting;
            self.due = Some(now + DETECT_TIMEOUT);
        } else {
            self.start_when_due(now);
        }
    }

    /// Sends bytes that count as data but are not sent by the engine.
    fn send_own(&mut self, at: usize, bytes: Vec<u8>) {
        let receives = self.queue.settings.mode == Iperf2Mode::Reverse;
        if let Some(stream) = self.streams.get_mut(at) {
            if !receives {
                stream.own_bytes += bytes.len() as u64;
            }
            self.queue.put(Output::Send { link: stream.link, bytes });
        }
    }

    /// UDP -R: sends a datagram that tells the server what to send.
    fn call(&mut self, now: Timestamp) {
        let settings = &self.queue.settings;
        let length = (settings.length_for(true) as usize).max(self.header.write_udp().len());
        let bytes = super::datagram::last(&self.header.write_udp(), length, 1, settings.wall(now));
        for stream in &self.streams {
            self.queue.outputs.push_back(Output::Send { link: stream.link, bytes: bytes.clone() });
        }
        self.calls += 1;
        self.due = Some(now + CALL_INTERVAL);
    }

    fn start(&mut self, now: Timestamp) {
        self.stage = Iperf2ClientState::Testing;
        self.due = None;
        if self.queue.settings.input.is_some() {
            self.start_input(now);
            return;
        }
        let mode = self.queue.settings.mode;
        if mode != Iperf2Mode::Reverse {
            let load = self.load(true, false);
            let direction = Iperf2Direction::start(&mut self.queue, now, load, self.streams.clone());
            self.directions.push(direction);
        }
        if matches!(mode, Iperf2Mode::Reverse | Iperf2Mode::FullDuplex) {
            let load = self.load(false, true);
            let mut streams = self.streams.clone();
            if mode == Iperf2Mode::FullDuplex {
                streams.iter_mut().for_each(|stream| stream.own_bytes = 0);
            }
            let direction = Iperf2Direction::start(&mut self.queue, now, load, streams);
            self.directions.push(direction);
        }
        if mode == Iperf2Mode::Dual {
            self.start_back(now);
        }
    }

    fn datagram(&mut self, now: Timestamp, link: Link, from: SocketAddr, bytes: &[u8]) {
        if link == REVERSE_LISTENER {
            self.back_datagram(from, bytes);
            return;
        }
        if self.stage == Iperf2ClientState::Calling {
            let number = number_of(bytes, Generation::New).filter(|number| *number >= 0);
            if let (Some(stream), Some(number)) =
                (self.streams.iter_mut().find(|stream| stream.link == link), number)
            {
                stream.add_datagram(bytes.len(), number, Generation::New);
                self.start(now);
            }
            return;
        }
        for direction in &mut self.directions {
            direction.datagram(&mut self.queue, now, link, bytes);
        }
        self.check_finished(now);
    }

    fn bytes(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        if let Some(stream) = self.back.iter_mut().find(|stream| stream.link == link) {
            stream.own_bytes = stream.own_bytes.saturating_add(bytes.len() as u64);
            return;
        }
        if self.stage != Iperf2ClientState::Detecting {
            // A plain client does not wait for this answer.
            return;
        }
        let answer = self.answers.entry(link).or_default();
        answer.extend_from_slice(bytes.get(..bytes.len().min(256)).unwrap_or(bytes));
        if let Some(ack) = Ack::decode(answer) {
            let extension = Extension { version: ack.version, ..Extension::default() };
            self.peer = extension.version_text().map(|version| format!("iperf {version}"));
        }
        let all = self.streams.iter().all(|stream| {
            self.answers
                .get(&stream.link)
                .is_some_and(|answer| answer.len() >= 256 || Ack::decode(answer).is_some())
        });
        if all {
            self.start_when_due(now);
        }
    }

    fn closed(&mut self, now: Timestamp, link: Link, reason: Option<&SystemError>) {
        if matches!(self.stage, Iperf2ClientState::Detecting | Iperf2ClientState::Delaying) {
            self.queue.print_error("the server closed the connection before the test\n".to_owned());
            self.end(Some("the server closed the connection".to_owned()));
            return;
        }
        for direction in &mut self.directions {
            direction.closed(&mut self.queue, now, link, reason);
        }
        self.check_finished(now);
    }

    fn tick(&mut self, now: Timestamp) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            match self.stage {
                Iperf2ClientState::Detecting => {
                    self.queue.print_error(
                        "the server does not answer the peer detection; continuing\n".to_owned(),
                    );
                    self.start_when_due(now);
                }
                Iperf2ClientState::Delaying => self.start(now),
                Iperf2ClientState::Calling if self.calls < MAX_CALLS => self.call(now),
                Iperf2ClientState::Calling => {
                    self.queue.print_error("the server does not send: it may be too old for -R\n".to_owned());
                    self.end(Some("no datagram came".to_owned()));
                }
                Iperf2ClientState::Waiting => {
                    self.queue.print_error("ERROR: expected reverse connect did not occur\n".to_owned());
                    self.end(Some("the server did not connect back".to_owned()));
                }
                Iperf2ClientState::Piping => {
                    if let Some(direction) = self.directions.first_mut() {
                        direction.end_of_input(&mut self.queue, now);
                    }
                }
                Iperf2ClientState::Connecting => self.next_connects(now),
                Iperf2ClientState::Testing | Iperf2ClientState::Over => {}
            }
        }
        self.retry(now);
        for direction in &mut self.directions {
            direction.tick(&mut self.queue, now);
        }
        self.check_finished(now);
    }

    /// Ends the test if everything is over, or waits for its second half.
    fn check_finished(&mut self, now: Timestamp) {
        let testing = matches!(self.stage, Iperf2ClientState::Testing | Iperf2ClientState::Piping);
        if !testing || !self.directions.iter().all(Iperf2Direction::is_over) {
            return;
        }
        let trouble = self.directions.iter().find_map(|direction| direction.trouble.clone());
        let back_missing =
            self.goes_back() && !self.directions.iter().any(|direction| direction.load.flow == FlowId(1));
        if back_missing && trouble.is_none() && !self.cut {
            let wait = match self.queue.settings.amount {
                Iperf2Amount::Time(time) => time,
                Iperf2Amount::Bytes(_) => Span::from_secs(10),
            };
            self.stage = Iperf2ClientState::Waiting;
            self.due = Some(now + wait + Span::from_secs(2));
            self.start_back(now);
            return;
        }
        self.end(trouble);
    }

    fn end(&mut self, trouble: Option<String>) {
        if self.stage == Iperf2ClientState::Over {
            return;
        }
        self.stage = Iperf2ClientState::Over;
        for stream in
            self.streams.iter().chain(self.back.iter().filter(|stream| stream.link != REVERSE_LISTENER))
        {
            self.queue.outputs.push_back(Output::Close { link: stream.link });
        }
        self.queue.put(Output::RunOver { run: RUN, trouble });
        // The tool exits with 0 after any error in a test.
        self.queue.exit(0);
    }

    fn interrupted(&mut self, now: Timestamp) {
        if std::mem::replace(&mut self.cut, true) || self.directions.is_empty() {
            self.queue.exit(130);
            return;
        }
        for direction in &mut self.directions {
            direction.stop(&mut self.queue);
        }
        self.check_finished(now);
    }
}

impl StandIn for Iperf2Client {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.queue.over {
            return;
        }
        match input {
            Input::Begin => self.begin(),
            Input::Opened { link, opened } => self.opened(now, link, opened),
            Input::NotOpened { link, reason } => self.not_opened(now, link, &reason),
            Input::Accepted { link, opened, .. } => self.accepted(now, link, &opened),
            Input::Bytes { link, bytes } => self.bytes(now, link, bytes),
            Input::Datagram { link, from, bytes } => self.datagram(now, link, from, bytes),
            Input::Closed { link, reason } => self.closed(now, link, reason.as_ref()),
            Input::Written { flow } => {
                if let Some(direction) = self.directions.iter().find(|direction| direction.load.flow == flow)
                {
                    direction.written(&mut self.queue);
                }
            }
            Input::NotStarted { flow, reason } => {
                if let Some(direction) =
                    self.directions.iter_mut().find(|direction| direction.load.flow == flow)
                {
                    direction.not_started(&reason);
                }
                self.check_finished(now);
            }
            Input::Counts { flows, .. } => {
                for direction in &mut self.directions {
                    direction.counts(&mut self.queue, now, flows);
                }
                self.check_finished(now);
            }
            Input::Ended { counts } => {
                if let Some(direction) =
                    self.directions.iter_mut().find(|direction| direction.load.flow == counts.flow)
                {
                    direction.ended(&mut self.queue, now, counts);
                }
                self.check_finished(now);
            }
            Input::Text(block) => self.input_block(now, block),
            Input::Sent { .. } => self.input_sent(),
            Input::Tick => self.tick(now),
            Input::Signal(_) => self.interrupted(now),
            _ => {}
        }
    }

    fn output(&mut self) -> Option<Output> {
        self.queue.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let directions = self.directions.iter().filter_map(|direction| direction.due);
        let retries = self.retries.values().filter_map(|(at, _)| *at);
        directions.chain(retries).chain(self.due).min().filter(|_| !self.queue.over)
    }
}
