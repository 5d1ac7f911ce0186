//! A test at the server.

mod requests;

use std::net::SocketAddr;
use std::ops::Range;

use linerate_model::Direction;
use linerate_units::{Bytes, Span, Timestamp};

use super::VERSION;
use super::arrival::Iperf2Arrival;
use super::datagram::{Generation, number_of};
use super::direction::Iperf2Direction;
use super::output_queue::OutputQueue;
use super::report::{ConnectionDetails, Iperf2Addresses};
use super::settings::{Iperf2Amount, Iperf2Mode};
use super::track::Iperf2Stream;
use super::wire::{Ack, TestHeader};
use crate::stand_in::{FlowCounts, FlowId, Link, LinkOptions, Opened, Output, Planned, RunId, SystemError};

/// Link numbers of reverse connections.
pub(super) const REVERSE_LINKS: Range<u32> = 16..60_000;

/// How long to wait for the remaining connections of a client.
const GATHER_TIMEOUT: Span = Span::from_ms(500);

/// The same if the client does not send their number, as versions from 2.0.10 to 2.0.13 and others with `-C`.
const GATHER_TIMEOUT_WITHOUT_COUNT: Span = Span::from_ms(20);

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Iperf2RunState {
    /// Waiting for connections.
    Gathering,
    /// Waiting for permission.
    Asking,
    Running,
    Over,
}

/// A test at the server.
#[derive(Debug)]
pub(super) struct Iperf2Run {
    number: RunId,
    /// The receiving flow, and the sending one.
    pub(super) flows: [FlowId; 2],
    udp: bool,
    host: std::net::IpAddr,
    header: Option<TestHeader>,
    generation: Generation,
    /// Number of connections; absent if the client does not tell it.
    threads: Option<usize>,
    accepted_at: Timestamp,
    stage: Iperf2RunState,
    streams: Vec<Iperf2Stream>,
    /// Number of connections so far.
    connections: usize,
    closed: Vec<Link>,
    directions: Vec<Iperf2Direction>,
    /// Requested reverse connections, and open ones.
    asked_back: Vec<Link>,
    back: Vec<Iperf2Stream>,
    /// Whether the reverse connections were requested, or cannot be opened.
    went_back: bool,
    due: Option<Timestamp>,
    trouble: Option<String>,
    end_reported: bool,
}

impl Iperf2Run {
    pub(super) fn new(
        queue: &mut OutputQueue,
        now: Timestamp,
        number: RunId,
        flows: [FlowId; 2],
        first: Iperf2Arrival,
    ) -> Self {
        let mut run = Self {
            number,
            flows,
            udp: first.udp,
            host: first.stream.ends.remote.ip(),
            header: first.header,
            generation: first.generation,
            threads: first.threads(),
            accepted_at: first.at,
            stage: Iperf2RunState::Gathering,
            streams: Vec::new(),
            connections: 0,
            closed: Vec::new(),
            directions: Vec::new(),
            asked_back: Vec::new(),
            back: Vec::new(),
            went_back: false,
            due: Some(
                now + if first.threads().is_some() { GATHER_TIMEOUT } else { GATHER_TIMEOUT_WITHOUT_COUNT },
            ),
            trouble: None,
            end_reported: false,
        };
        run.join(queue, first);
        run
    }

    /// Whether a connection belongs to this run: same host and header, and the run is not complete yet.
    pub(super) fn takes(&self, arrival: &Iperf2Arrival) -> bool {
        self.stage == Iperf2RunState::Gathering
            && self.udp == arrival.udp
            && self.host == arrival.stream.ends.remote.ip()
            && self.generation == arrival.generation
            && self.header.map(TestHeader::without_start) == arrival.header.map(TestHeader::without_start)
    }

    /// Whether further connections of this host may belong to this run.
    pub(super) fn gathers_from(&self, host: std::net::IpAddr) -> bool {
        self.stage == Iperf2RunState::Gathering && self.host == host
    }

    pub(super) fn join(&mut self, queue: &mut OutputQueue, arrival: Iperf2Arrival) {
        if arrival.closed {
            self.closed.push(arrival.stream.link);
        }
        self.streams.push(arrival.stream);
        self.connections += 1;
        if self.threads.is_some_and(|threads| self.streams.len() >= threads) {
            self.ask(queue);
        }
    }

    fn ask(&mut self, queue: &mut OutputQueue) {
        self.stage = Iperf2RunState::Asking;
        self.due = None;
        let amount = self.amount(queue).filter(|amount| *amount != Iperf2Amount::Bytes(0));
        let mut spec = queue.spec(self.udp, self.streams.len(), self.offered(queue).filter(|_| self.udp));
        spec.traffic.length = Some(Bytes::new(u64::from(self.length(queue))));
        match amount {
            Some(Iperf2Amount::Time(_)) => {
                spec.traffic.duration = amount.and_then(Iperf2Amount::limited_time);
            }
            Some(Iperf2Amount::Bytes(each)) => {
                spec.traffic.bytes = Some(Bytes::new(each.saturating_mul(self.streams.len() as u64)));
            }
            None => {}
        }
        let [receive, send] = self.flows;
        let (up, down) = ((receive, Direction::Upload), (send, Direction::Download));
        let mode = self.mode();
        spec.traffic.upload = mode == Iperf2Mode::Plain;
        spec.traffic.download = mode == Iperf2Mode::Reverse;
        spec.traffic.bidir = matches!(mode, Iperf2Mode::Dual | Iperf2Mode::FullDuplex);
        let version = self.header.and_then(|header| header.extension?.version_text());
        let planned = Planned {
            run: self.number,
            tool: "iperf2",
            peer: version.map(|version| format!("iperf {version}")),
            link: self.streams.first().map_or(Link(0), |stream| stream.link),
            client: false,
            spec,
            flows: match mode {
                Iperf2Mode::Plain => vec![up],
                Iperf2Mode::Reverse => vec![down],
                _ => vec![up, down],
            },
            expected: amount
                .and_then(Iperf2Amount::limited_time)
                .map(|time| time.saturating_mul(if mode == Iperf2Mode::Tradeoff { 2 } else { 1 })),
        };
        queue.put(Output::Ask(Box::new(planned)));
    }

    pub(super) fn admitted(&mut self, queue: &mut OutputQueue, now: Timestamp, links: &mut Vec<Link>) {
        if self.stage != Iperf2RunState::Asking {
            return;
        }
        self.stage = Iperf2RunState::Running;
        self.acknowledge(queue, now);
        let mode = self.mode();
        let shared = mode == Iperf2Mode::FullDuplex;
        let streams = self.streams.clone();
        let gone = !self.udp && streams.iter().all(|stream| self.closed.contains(&stream.link));
        if mode != Iperf2Mode::Reverse {
            let load = self.load(queue, false, false, shared);
            self.directions.push(if gone {
                Iperf2Direction::completed_before_engine(queue, now, self.accepted_at, load, streams.clone())
            } else {
                let mut direction = Iperf2Direction::start(queue, now, load, streams.clone());
                direction.has_begun(queue, self.began_at(queue));
                direction
            });
        }
        if matches!(mode, Iperf2Mode::Reverse | Iperf2Mode::FullDuplex) && !gone {
            let load = self.load(queue, true, shared, shared);
            let mut own = streams;
            // The received bytes belong to the other direction.
            for stream in &mut own {
                *stream = Iperf2Stream::new(stream.id, stream.link, stream.ends);
                if let Some(header) = self.echo().filter(|_| !self.udp) {
                    let bytes = header.write_tcp();
                    stream.own_bytes = bytes.len() as u64;
                    queue.put(Output::Send { link: stream.link, bytes });
                }
            }
            self.directions.push(Iperf2Direction::start(queue, now, load, own));
        }
        if mode == Iperf2Mode::Dual || mode == Iperf2Mode::Tradeoff && gone {
            self.connect_back(queue, links);
        }
    }

    /// When the test began at this end: with the connection, or at the start time that its client announced.
    fn began_at(&self, queue: &OutputQueue) -> Timestamp {
        let extension = self.header.and_then(|header| header.extension);
        let start =
            extension.filter(|extension| extension.starts_later).and_then(|extension| extension.start);
        let wall = |(seconds, micros): (u32, u32)| {
            Span::from_secs(u64::from(seconds)) + Span::from_ns(u64::from(micros) * 1000)
        };
        // A clock that differs by more is wrong.
        let latest = self.accepted_at + Span::from_secs(600);
        let start = start.map(|start| queue.settings.at_wall(wall(start)));
        start.filter(|start| (self.accepted_at..latest).contains(start)).unwrap_or(self.accepted_at)
    }

    /// Answers a header, unless the client expects data without an answer.
    fn acknowledge(&self, queue: &mut OutputQueue, now: Timestamp) {
        let Some(extension) = self.header.and_then(|header| header.extension).filter(|_| !self.udp) else {
            return;
        };
        if (extension.reverse || extension.full_duplex) && !extension.peer_detect {
            return;
        }
        let (accepted, sent) = (queue.settings.wall(self.accepted_at), queue.settings.wall(now));
        let start = extension.start.filter(|_| extension.trip_times);
        let ack = Ack { version: VERSION, times: start.map(|start| [start, accepted, sent]) };
        for stream in self.streams.iter().filter(|stream| !self.closed.contains(&stream.link)) {
            queue.put(Output::Send { link: stream.link, bytes: ack.encode() });
        }
    }

    pub(super) fn refused(&mut self, queue: &mut OutputQueue, why: &str) {
        self.trouble = Some(why.to_owned());
        self.stage = Iperf2RunState::Over;
        if !self.udp {
            for stream in self.streams.drain(..) {
                queue.put(Output::Reset { link: stream.link });
            }
        }
    }

    /// Connects to the client's port.
    fn connect_back(&mut self, queue: &mut OutputQueue, links: &mut Vec<Link>) {
        self.went_back = true;
        let port = self.header.and_then(|header| u16::try_from(header.port).ok()).filter(|port| *port > 0);
        let wanted = self.connections;
        let Some(port) = port.filter(|_| links.len() >= wanted) else {
            self.trouble = Some("the client names no port to connect back to".to_owned());
            return;
        };
        for link in links.drain(..wanted) {
            self.asked_back.push(link);
            let options = LinkOptions { local: None, ..queue.options(self.udp) };
            let to = Some(SocketAddr::new(self.host, port));
            queue.put(Output::Connect { link, port, to, options });
        }
    }

    pub(super) fn asked_for(&self, link: Link) -> bool {
        self.asked_back.contains(&link)
    }

    pub(super) fn connected_back(
        &mut self,
        queue: &mut OutputQueue,
        now: Timestamp,
        link: Link,
        opened: &Opened,
        id: u32,
    ) {
        self.asked_back.retain(|asked| *asked != link);
        let remote = opened.remote.unwrap_or(opened.local);
        let ends = Iperf2Addresses { local: opened.local, remote };
        if self.back.is_empty() {
            let host = self.host.to_string();
            let pace = self.offered(queue).filter(|_| self.udp).map(|rate| (self.length(queue), rate));
            let text = queue.report.connecting(&host, pace, remote.port(), Some(opened));
            queue.print(text);
        }
        let details = ConnectionDetails {
            descriptor: opened.descriptor,
            mss: opened.mss.filter(|_| !self.udp),
            rtt: opened.rtt.filter(|_| !self.udp),
            handshake: opened.handshake.filter(|_| !self.udp),
            opened_at: queue.settings.wall(now).0,
            ..ConnectionDetails::default()
        };
        let notes = queue.report.notes(Iperf2Mode::Reverse, &details);
        let text = queue.report.connected(id, true, ends.local, ends.remote, &notes);
        queue.print(text);
        self.back.push(Iperf2Stream::new(id, link, ends));
        self.start_back(queue, now);
    }

    fn start_back(&mut self, queue: &mut OutputQueue, now: Timestamp) {
        if self.asked_back.is_empty() && !self.back.is_empty() && self.stage == Iperf2RunState::Running {
            let load = self.load(queue, true, true, false);
            self.directions.push(Iperf2Direction::start(queue, now, load, self.back.clone()));
        }
    }

    pub(super) fn cannot_connect_back(&mut self, queue: &mut OutputQueue, link: Link, reason: &SystemError) {
        self.asked_back.retain(|asked| *asked != link);
        self.trouble = Some(reason.text.clone());
        for stream in self.back.drain(..) {
            queue.put(Output::Close { link: stream.link });
        }
        for link in self.asked_back.drain(..) {
            queue.put(Output::Close { link });
        }
    }

    pub(super) fn has(&self, link: Link) -> bool {
        self.streams.iter().chain(&self.back).any(|stream| stream.link == link)
    }

    /// The socket of a datagram sender.
    pub(super) fn link_of(&self, peer: SocketAddr) -> Option<Link> {
        let own = self.streams.iter().find(|stream| self.udp && stream.ends.remote == peer);
        own.map(|stream| stream.link)
    }

    /// Counts bytes that arrive before the engine uses the connection.
    pub(super) fn early_bytes(&mut self, link: Link, bytes: usize) {
        if !matches!(self.stage, Iperf2RunState::Gathering | Iperf2RunState::Asking) {
            return;
        }
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.link == link) {
            stream.own_bytes = stream.own_bytes.saturating_add(bytes as u64);
        }
    }

    pub(super) fn datagram(&mut self, queue: &mut OutputQueue, now: Timestamp, link: Link, bytes: &[u8]) {
        if self.stage == Iperf2RunState::Running {
            for direction in &mut self.directions {
                direction.late_datagram(link, bytes);
                direction.datagram(queue, now, link, bytes);
            }
            return;
        }
        let number = number_of(bytes, self.generation).filter(|number| *number >= 0);
        let stream = self.streams.iter_mut().find(|stream| stream.link == link);
        if let (Some(number), Some(stream)) = (number, stream) {
            stream.add_datagram(bytes.len(), number, self.generation);
        }
    }

    pub(super) fn closed(
        &mut self,
        queue: &mut OutputQueue,
        now: Timestamp,
        link: Link,
        reason: Option<&SystemError>,
    ) {
        self.closed.push(link);
        for direction in &mut self.directions {
            direction.closed(queue, now, link, reason);
        }
    }

    pub(super) fn written(&self, queue: &mut OutputQueue, flow: FlowId) {
        if let Some(direction) = self.directions.iter().find(|direction| direction.load.flow == flow) {
            direction.written(queue);
        }
    }

    pub(super) fn not_started(&mut self, flow: FlowId, reason: &SystemError) {
        if let Some(direction) = self.directions.iter_mut().find(|direction| direction.load.flow == flow) {
            direction.not_started(reason);
        }
    }

    pub(super) fn counts(&mut self, queue: &mut OutputQueue, now: Timestamp, flows: &[FlowCounts]) {
        for direction in &mut self.directions {
            direction.counts(queue, now, flows);
        }
    }

    pub(super) fn ended(
        &mut self,
        queue: &mut OutputQueue,
        now: Timestamp,
        counts: &FlowCounts,
        links: &mut Vec<Link>,
    ) {
        if let Some(direction) =
            self.directions.iter_mut().find(|direction| direction.load.flow == counts.flow)
        {
            direction.ended(queue, now, counts);
            // The client's measurement lasts until its connections are closed.
            if !direction.load.sends && !direction.load.shared && !direction.load.udp {
                for stream in self.streams.drain(..) {
                    queue.put(Output::Close { link: stream.link });
                }
            }
        }
        self.go_back_when_due(queue, links);
    }

    /// With -r the reverse test begins after the client's test.
    fn go_back_when_due(&mut self, queue: &mut OutputQueue, links: &mut Vec<Link>) {
        let received = self.directions.iter().any(Iperf2Direction::is_over);
        if self.mode() == Iperf2Mode::Tradeoff && received && !self.went_back && self.error().is_none() {
            self.connect_back(queue, links);
        }
    }

    pub(super) fn tick(&mut self, queue: &mut OutputQueue, now: Timestamp, links: &mut Vec<Link>) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            if self.stage == Iperf2RunState::Gathering {
                // The remaining connections do not arrive; the test uses the present ones.
                self.ask(queue);
            }
        }
        for direction in &mut self.directions {
            direction.tick(queue, now);
        }
        self.go_back_when_due(queue, links);
    }

    pub(super) fn stop(&mut self, queue: &mut OutputQueue, _now: Timestamp) {
        self.went_back = true;
        for direction in &mut self.directions {
            direction.stop(queue);
        }
        if self.stage != Iperf2RunState::Running {
            self.stage = Iperf2RunState::Over;
        }
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        self.directions.iter().filter_map(|direction| direction.due).chain(self.due).min()
    }

    pub(super) fn error(&self) -> Option<&String> {
        self.trouble
            .as_ref()
            .or_else(|| self.directions.iter().find_map(|direction| direction.trouble.as_ref()))
    }

    pub(super) fn is_over(&self) -> bool {
        let back_missing = match self.mode() {
            Iperf2Mode::Tradeoff => !self.went_back && self.error().is_none(),
            _ => false,
        };
        let opening = !self.asked_back.is_empty();
        match self.stage {
            Iperf2RunState::Gathering | Iperf2RunState::Asking => false,
            Iperf2RunState::Running => {
                !opening && !back_missing && self.directions.iter().all(Iperf2Direction::is_over)
            }
            Iperf2RunState::Over => true,
        }
    }

    /// Releases the place: others may be measured while the last datagram is still being answered.
    pub(super) fn report_measured(&mut self, queue: &mut OutputQueue) {
        let waits = self.mode() == Iperf2Mode::Tradeoff && !self.went_back || !self.asked_back.is_empty();
        let measured =
            !self.directions.is_empty() && self.directions.iter().all(Iperf2Direction::is_measured);
        if self.stage == Iperf2RunState::Running && measured && !waits {
            self.report_over(queue);
        }
    }

    fn report_over(&mut self, queue: &mut OutputQueue) {
        if !std::mem::replace(&mut self.end_reported, true) {
            let trouble = self.error().cloned();
            queue.put(Output::RunOver { run: self.number, trouble });
        }
    }

    /// Closes all connections.
    pub(super) fn leave(mut self, queue: &mut OutputQueue) {
        for stream in self.streams.iter().chain(&self.back) {
            queue.put(Output::Close { link: stream.link });
        }
        self.report_over(queue);
    }
}
