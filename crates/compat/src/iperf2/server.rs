//! The server: groups connections and datagrams of one client into a run, by the number of connections in its
//! header.

mod bounces;
mod waiting;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_units::Timestamp;

use super::arrival::{Iperf2Arrival, Iperf2FirstBytes};
use super::bounce::Bounce;
use super::datagram::{Generation, number_of, opening_header};
use super::output_queue::OutputQueue;
use super::report::{ConnectionDetails, Iperf2Addresses};
use super::run::{Iperf2Run, REVERSE_LINKS};
use super::settings::{Iperf2Mode, Iperf2Settings};
use crate::EmbeddedServerConfig;
use crate::stand_in::{FlowId, Input, Link, Opened, Output, RunId, StandIn, SystemError};

/// The listeners.
const TCP: Link = Link(0);
const UDP: Link = Link(1);

/// Most connections whose header is missing, and most runs; further ones are refused.
const MAX_ARRIVALS: usize = 1024;
const MAX_RUNS: usize = 256;

/// The server.
#[derive(Debug)]
pub struct Iperf2Server {
    queue: OutputQueue,
    /// Connections whose header is missing, and senders of datagrams without their own socket.
    arrivals: Vec<Iperf2Arrival>,
    runs: BTreeMap<RunId, Iperf2Run>,
    bounces: BTreeMap<Link, Bounce>,
    /// Connections of further clients, the first one first, while one client is served at a time.
    waiting: VecDeque<Iperf2Arrival>,
    next_run: RunId,
    next_id: u32,
    /// Number of connections served so far.
    served: u32,
    /// When it stops listening (-t).
    ends_at: Option<Timestamp>,
}

impl Iperf2Server {
    /// Creates a server with these settings.
    #[must_use]
    pub fn new(settings: Iperf2Settings) -> Self {
        Self {
            queue: OutputQueue::new(settings),
            arrivals: Vec::new(),
            runs: BTreeMap::new(),
            bounces: BTreeMap::new(),
            waiting: VecDeque::new(),
            next_run: RunId(0),
            next_id: 1,
            served: 0,
            ends_at: None,
        }
    }

    /// Creates the server for a port that is shared with other protocols.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        Box::new(Self::new(Iperf2Settings {
            epoch: config.wall,
            among_strangers: true,
            ..Iperf2Settings::server(config.port)
        }))
    }

    fn begin(&mut self, now: Timestamp) {
        self.queue.warn();
        let (port, udp, both) = (self.queue.settings.port, self.queue.settings.udp, self.queue.settings.both);
        self.ends_at = self.queue.settings.listen_for.map(|time| now + time);
        if !udp || both {
            let options = self.queue.options(false);
            self.queue.put(Output::Listen { link: TCP, port, options });
        }
        if udp || both {
            let options = self.queue.options(true);
            self.queue.put(Output::Listen { link: UDP, port, options });
        }
    }

    fn opened(&mut self, now: Timestamp, link: Link, opened: &Opened) {
        if link == TCP || link == UDP {
            let text = self.queue.report.listening(link == UDP, opened.local.port(), opened.rcv_buf);
            self.queue.print(text);
            return;
        }
        let Some((run, id)) =
            self.runs.values_mut().find(|run| run.asked_for(link)).map(|run| (run, self.next_id))
        else {
            return self.queue.put(Output::Close { link });
        };
        self.next_id += 1;
        run.connected_back(&mut self.queue, now, link, opened, id);
    }

    fn not_opened(&mut self, link: Link, reason: &SystemError) {
        if link != TCP && link != UDP {
            self.queue.print_error(format!("tcp connect failed: {}\n", reason.text));
            if let Some(run) = self.runs.values_mut().find(|run| run.asked_for(link)) {
                run.cannot_connect_back(&mut self.queue, link, reason);
            }
            self.remove_finished();
            return;
        }
        let adopting = self.arrivals.iter().any(|arrival| arrival.udp && arrival.link.is_none());
        if link == UDP && adopting {
            self.arrivals.retain(|arrival| !arrival.udp || arrival.link.is_some());
            return;
        }
        self.queue.print_error(format!("bind failed: {}\n", reason.text));
        // The other port is still served.
        if link == TCP || !self.queue.settings.both {
            self.queue.exit(0);
        }
    }

    /// Whether no further connection or datagram sender is accepted.
    fn is_full(&self) -> bool {
        self.arrivals.len() >= MAX_ARRIVALS || self.runs.len() >= MAX_RUNS
    }

    fn accepted(&mut self, now: Timestamp, listener: Link, link: Link, opened: &Opened) {
        let remote = opened.remote.unwrap_or(opened.local);
        let ends = Iperf2Addresses { local: opened.local, remote };
        if listener == UDP {
            let found = self.arrivals.iter_mut().position(|arrival| arrival.is_from(remote));
            let Some(at) = found else { return self.queue.put(Output::Close { link }) };
            let mut arrival = self.arrivals.remove(at);
            arrival.link = Some(link);
            arrival.stream.link = link;
            arrival.stream.ends = ends;
            arrival.descriptor = opened.descriptor;
            self.join_or_wait(now, arrival);
        } else if self.is_full() {
            self.queue.put(Output::Reset { link });
        } else {
            self.arrivals.push(Iperf2Arrival::connection(now, link, ends, opened));
        }
    }

    fn bytes(&mut self, now: Timestamp, link: Link, bytes: &[u8]) {
        if let Some(bounce) = self.bounces.get_mut(&link) {
            bounce.bytes(&mut self.queue, now, link, bytes);
            return;
        }
        let Some(at) = self.arrivals.iter().position(|arrival| arrival.link == Some(link)) else {
            if let Some(run) = self.runs.values_mut().find(|run| run.has(link)) {
                run.early_bytes(link, bytes.len());
            }
            self.waiting_bytes(link, bytes.len());
            return;
        };
        let first_bytes =
            self.arrivals.get_mut(at).map_or(Iperf2FirstBytes::More, |arrival| arrival.receive(bytes));
        match first_bytes {
            Iperf2FirstBytes::More => {}
            Iperf2FirstBytes::Wrong => {
                self.arrivals.remove(at);
                self.queue.put(Output::Reset { link });
            }
            Iperf2FirstBytes::Header => {
                let arrival = self.arrivals.remove(at);
                let extension = arrival.header.and_then(|header| header.extension);
                if extension.is_some_and(|extension| extension.trip_times) {
                    // The engine has to see every timestamped byte.
                    self.queue.put(Output::Hold { link });
                }
                self.join_or_wait(now, arrival);
            }
            Iperf2FirstBytes::Bounce(start) => {
                let arrival = self.arrivals.remove(at);
                self.begin_bounce(now, link, arrival.stream.ends, start);
            }
        }
    }

    /// An unused number of a run.
    fn take_run(&mut self) -> RunId {
        let is_used =
            |run| self.runs.contains_key(&run) || self.bounces.values().any(|bounce| bounce.run == run);
        let mut run = self.next_run;
        while is_used(run) {
            run = run.next();
        }
        self.next_run = run.next();
        run
    }

    fn take_id(&mut self) -> u32 {
        if self.runs.is_empty() && self.bounces.is_empty() {
            self.next_id = 1;
        }
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    /// Handles a datagram on a socket without a flow.
    fn datagram(&mut self, now: Timestamp, link: Link, from: SocketAddr, bytes: &[u8]) {
        let own = |run: &Iperf2Run| {
            if link == UDP { run.link_of(from) } else { Some(link).filter(|link| run.has(*link)) }
        };
        if let Some((run, link)) = self.runs.values_mut().find_map(|run| own(run).map(|link| (run, link))) {
            run.datagram(&mut self.queue, now, link, bytes);
            self.remove_finished();
            return;
        }
        if let Some(arrival) = self.arrivals.iter_mut().find(|arrival| arrival.is_from(from)) {
            arrival.add_datagram(bytes);
            return;
        }
        let (generation, header) = opening_header(bytes);
        // Datagrams left over from an earlier test have negative numbers.
        let number = number_of(bytes, generation).filter(|number| *number >= 0);
        let gathers = || self.runs.values().any(|run| run.gathers_from(from.ip()));
        let full = self.is_full() || self.is_busy() && !gathers();
        let Some(number) = number.filter(|_| link == UDP && !full) else { return };
        // With a forged source address the load would be sent to a third party.
        if self.queue.settings.among_strangers && header.is_some_and(|header| header.wants_data()) {
            return;
        }
        self.arrivals.push(Iperf2Arrival::datagram(now, from, generation, header, number, bytes.len()));
        let options = self.queue.options(true);
        self.queue.put(Output::Adopt { listener: UDP, peer: from, options });
    }

    /// Adds a connection with a known header to a run.
    fn join(&mut self, now: Timestamp, mut arrival: Iperf2Arrival) {
        arrival.stream.id = self.take_id();
        let id = arrival.stream.id;
        self.served += 1;
        let extension = arrival.header.and_then(|header| header.extension);
        let mode = match extension {
            Some(extension) if extension.full_duplex => Iperf2Mode::FullDuplex,
            Some(extension) if extension.reverse => Iperf2Mode::Reverse,
            _ => Iperf2Mode::Plain,
        };
        let details = ConnectionDetails {
            no_udp_fin: arrival.udp && extension.is_some_and(|e| e.no_udp_fin || e.reverse || e.full_duplex),
            trip_times: extension.is_some_and(|extension| extension.trip_times),
            descriptor: arrival.descriptor,
            peer: extension.and_then(|extension| extension.version_text()),
            mss: arrival.mss.filter(|_| !arrival.udp),
            rtt: arrival.rtt.filter(|_| !arrival.udp),
            handshake: None,
            starts_later: extension.is_some_and(|extension| extension.starts_later),
            tos: extension.map_or(0, |extension| extension.tos),
            opened_at: self.queue.settings.wall(now).0,
        };
        let notes = self.queue.report.notes(mode, &details);
        let ends = arrival.stream.ends;
        let text = self.queue.report.connected(id, false, ends.local, ends.remote, &notes);
        self.queue.print(text);
        if let Some(run) = self.runs.values_mut().find(|run| run.takes(&arrival)) {
            run.join(&mut self.queue, arrival);
            return;
        }
        let used = |flow: FlowId| self.runs.values().any(|run| run.flows.contains(&flow));
        let mut free = (0..u16::MAX).map(FlowId).filter(|flow| !used(*flow));
        let (Some(receive), Some(send)) = (free.next(), free.next()) else { return };
        let run = self.take_run();
        let made = Iperf2Run::new(&mut self.queue, now, run, [receive, send], arrival);
        self.runs.insert(run, made);
    }

    fn closed(&mut self, now: Timestamp, link: Link, reason: Option<&SystemError>) {
        if self.bounces.contains_key(&link) {
            self.end_bounce(now, link);
        } else if let Some(at) = self.arrivals.iter().position(|arrival| arrival.link == Some(link)) {
            let mut arrival = self.arrivals.remove(at);
            // Fewer bytes than one word: data nevertheless, if there are any.
            if arrival.stream.own_bytes > 0 && arrival.is_data_only() {
                arrival.closed = true;
                self.join_or_wait(now, arrival);
            } else {
                self.queue.put(Output::Close { link });
            }
        } else if let Some(run) = self.runs.values_mut().find(|run| run.has(link)) {
            run.closed(&mut self.queue, now, link, reason);
        } else {
            self.waiting_closed(link, reason);
        }
        self.remove_finished();
    }

    fn tick(&mut self, now: Timestamp) {
        for arrival in std::mem::take(&mut self.arrivals) {
            if arrival.due > now {
                self.arrivals.push(arrival);
            } else if let Some(link) = arrival.link {
                // Data without a header that are shorter than one and then pause: counted like any other data.
                if arrival.stream.own_bytes > 0 && arrival.is_data_only() {
                    self.join_or_wait(now, arrival);
                } else {
                    self.queue.put(Output::Reset { link });
                }
            }
        }
        self.end_silent_bounces(now);
        let mut back_links = self.free_back_links();
        for run in self.runs.values_mut() {
            run.tick(&mut self.queue, now, &mut back_links);
        }
        self.remove_finished();
        if self.ends_at.is_some_and(|at| at <= now) {
            self.ends_at = None;
            self.leave_if_done(true);
        }
    }

    /// Unused link numbers for reverse connections.
    fn free_back_links(&self) -> Vec<Link> {
        let used = |link: &Link| self.runs.values().any(|run| run.has(*link) || run.asked_for(*link));
        REVERSE_LINKS.map(Link).filter(|link| !used(link)).take(4096).collect()
    }

    /// Passes an input to a run, which may then open reverse connections.
    fn with_run(&mut self, run: RunId, act: impl FnOnce(&mut Iperf2Run, &mut OutputQueue, &mut Vec<Link>)) {
        let mut links = self.free_back_links();
        if let Some(run) = self.runs.get_mut(&run) {
            act(run, &mut self.queue, &mut links);
        }
        self.remove_finished();
    }

    fn run_of(&self, flow: FlowId) -> Option<RunId> {
        self.runs.iter().find(|(_, run)| run.flows.contains(&flow)).map(|(number, _)| *number)
    }

    /// Removes finished runs, and exits if nothing is left to serve.
    fn remove_finished(&mut self) {
        for run in self.runs.values_mut() {
            run.report_measured(&mut self.queue);
        }
        let over: Vec<RunId> =
            self.runs.iter().filter(|(_, run)| run.is_over()).map(|(number, _)| *number).collect();
        for number in &over {
            if let Some(run) = self.runs.remove(number) {
                run.leave(&mut self.queue);
            }
        }
        let limit = self.queue.settings.parallel.is_some_and(|most| self.served >= most);
        if limit {
            self.leave_if_done(false);
        } else if self.ends_at.is_none() && self.queue.settings.listen_for.is_some() {
            self.leave_if_done(true);
        }
    }

    fn leave_if_done(&mut self, late: bool) {
        let waiting = !late && !self.arrivals.is_empty();
        if self.runs.is_empty() && self.bounces.is_empty() && !waiting {
            self.queue.exit(0);
        }
    }

    fn interrupted(&mut self, now: Timestamp) {
        if self.ends_at.is_none() && self.queue.settings.listen_for.is_some() || self.runs.is_empty() {
            self.queue.exit(0);
            return;
        }
        // Running tests print their results before the end.
        self.queue.settings.listen_for = Some(linerate_units::Span::ZERO);
        self.ends_at = None;
        for run in self.runs.values_mut() {
            run.stop(&mut self.queue, now);
        }
        self.remove_finished();
    }
}

impl StandIn for Iperf2Server {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.queue.over {
            return;
        }
        match input {
            Input::Begin => self.begin(now),
            Input::Opened { link, opened } => self.opened(now, link, &opened),
            Input::NotOpened { link, reason } => self.not_opened(link, &reason),
            Input::Accepted { listener, link, opened } => self.accepted(now, listener, link, &opened),
            Input::Bytes { link, bytes } => self.bytes(now, link, bytes),
            Input::Datagram { link, from, bytes } => self.datagram(now, link, from, bytes),
            Input::Closed { link, reason } => self.closed(now, link, reason.as_ref()),
            Input::Admitted { run } => {
                self.admit_bounce(now, run);
                self.with_run(run, |run, queue, links| run.admitted(queue, now, links));
            }
            Input::Refused { run, why, .. } => {
                self.refuse_bounce(run);
                self.with_run(run, |run, queue, _| run.refused(queue, &why));
            }
            Input::Written { flow } => {
                if let Some(run) = self.run_of(flow).and_then(|run| self.runs.get(&run)) {
                    run.written(&mut self.queue, flow);
                }
            }
            Input::NotStarted { flow, reason } => {
                if let Some(number) = self.run_of(flow) {
                    self.with_run(number, |run, _, _| run.not_started(flow, &reason));
                }
            }
            Input::Counts { flows, .. } => {
                for run in self.runs.values_mut() {
                    run.counts(&mut self.queue, now, flows);
                }
                self.remove_finished();
            }
            Input::Ended { counts } => {
                if let Some(number) = self.run_of(counts.flow) {
                    self.with_run(number, |run, queue, links| run.ended(queue, now, counts, links));
                }
            }
            Input::Tick => self.tick(now),
            Input::Signal(_) => self.interrupted(now),
            _ => {}
        }
        self.serve_waiting(now);
    }

    fn output(&mut self) -> Option<Output> {
        self.queue.outputs.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let arrivals = self.arrivals.iter().map(|arrival| arrival.due);
        let runs = self.runs.values().filter_map(Iperf2Run::due);
        let bounces = self.bounces.values().map(Bounce::due);
        arrivals.chain(runs).chain(bounces).chain(self.ends_at).min().filter(|_| !self.queue.over)
    }
}

/// The numbering of a run's datagrams if its connections do not tell it.
pub(super) const DEFAULT_GENERATION: Generation = Generation::New;

#[cfg(test)]
mod tests {
    use linerate_units::Span;

    use super::*;
    use crate::stand_in::{FlowCounts, StreamCounts};

    /// The first datagram of a client: number 1, and a header of 76 bytes with these flags.
    fn datagram(flags: u32, upper: u16) -> Vec<u8> {
        let mut bytes = vec![0; 1470];
        bytes[3] = 1;
        bytes[16..20].copy_from_slice(&flags.to_be_bytes());
        bytes[23] = 1;
        bytes[48..50].copy_from_slice(&upper.to_be_bytes());
        bytes
    }

    fn opens(mut server: Box<dyn StandIn>, bytes: &[u8]) -> bool {
        let from = SocketAddr::from(([192, 0, 2, 1], 40_000));
        server.input(Timestamp::START, Input::Begin);
        server.input(Timestamp::START, Input::Datagram { link: UDP, from, bytes });
        std::iter::from_fn(|| server.output()).any(|output| matches!(output, Output::Adopt { .. }))
    }

    /// The number of bytes sent to a client from which `received` bytes came, including the last datagram of 16
    /// bytes, when that arrives three times.
    fn bytes_answered(received: u64) -> usize {
        let config = EmbeddedServerConfig::at(5001);
        let mut server = Iperf2Server::embedded_server(&config);
        let (from, own) = (Link(100_000), SocketAddr::from(([192, 0, 2, 2], 5001)));
        let remote = SocketAddr::from(([192, 0, 2, 1], 40_000));
        let now = |ms| Timestamp::START + Span::from_ms(ms);
        let mut first = [0; 16];
        first[3] = 1;
        let last: Vec<u8> = (-2_i32).to_be_bytes().into_iter().chain([0; 8]).chain([0xff; 4]).collect();
        let opened = Opened::new(own, Some(remote));
        server.input(now(0), Input::Begin);
        server.input(now(0), Input::Datagram { link: UDP, from: remote, bytes: &first });
        server.input(now(1), Input::Accepted { listener: UDP, link: from, opened });
        server.input(now(600), Input::Tick);
        server.input(now(600), Input::Admitted { run: RunId(0) });
        let started = std::iter::from_fn(|| server.output());
        let flow = started.filter_map(|output| match output {
            Output::Start(task) => Some(task.flow),
            _ => None,
        });
        let flow = flow.last().unwrap();
        let streams = vec![StreamCounts { bytes: received - 32, packets: 1, ..StreamCounts::default() }];
        let counts = FlowCounts { flow, streams, marks: vec![Some(last.clone())], ..FlowCounts::default() };
        server.input(now(700), Input::Ended { counts: &counts });
        for _ in 0..2 {
            server.input(now(701), Input::Datagram { link: from, from: remote, bytes: &last });
        }
        let sent = std::iter::from_fn(|| server.output()).map(|output| match output {
            Output::Send { bytes, .. } => bytes.len(),
            _ => 0,
        });
        sent.sum()
    }

    #[test]
    fn an_address_that_may_be_forged_is_never_sent_more_than_came_from_it() {
        for received in [32, 64, 200, 1_000_000] {
            let answered = bytes_answered(received);
            assert!(answered > 0, "its last datagram is acknowledged");
            assert!(answered as u64 <= received + 32, "{answered} bytes for {received}");
        }
        assert_eq!(bytes_answered(1_000_000), 3 * 128, "an honest one has the whole report each time");
    }

    #[test]
    fn nobody_has_a_load_sent_to_an_address_that_he_forged() {
        let config = EmbeddedServerConfig::at(5001);
        // A plain test; then reverse, full duplex and the older reverse mode, as captured from 2.1.8.
        let plain = datagram(0x4801_0098, 0);
        let two_ways =
            [datagram(0x6c01_0098, 0x0400), datagram(0x6c01_0098, 0x0808), datagram(0xc801_0099, 0)];
        assert!(opens(Iperf2Server::embedded_server(&config), &plain));
        for bytes in two_ways {
            assert!(!opens(Iperf2Server::embedded_server(&config), &bytes));
            let own = Iperf2Server::new(Iperf2Settings { udp: true, ..Iperf2Settings::server(5001) });
            assert!(opens(Box::new(own), &bytes), "whoever starts a server of his own knows his clients");
        }
    }
}
