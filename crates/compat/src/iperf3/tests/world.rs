//! Stand-ins, a path with a delay between them, and an engine that computes the moved payload.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::Side;
use linerate_units::{Span, Timestamp};

use crate::iperf3::client::{Client, ClientConfig};
use crate::iperf3::report::Host;
use crate::iperf3::server::{Server, ServerConfig};
use crate::iperf3::settings::Settings;
use crate::stand_in::{
    Cpu, FlowCounts, FlowId, FlowTask, Input, Link, LinkOptions, Opened, Output, Planned, StandIn, Stop,
    StreamCounts,
};

/// One-way delay.
pub(super) const DELAY: Span = Span::from_ms(10);
/// Rate of a sender without a requested one, bit/s.
const RATE: f64 = 8e6;
/// Index of the server's end.
pub(super) const SERVER: usize = 0;

/// One stand-in, or a peer whose actions the test scripts.
#[derive(Default)]
pub(super) struct End {
    stand_in: Option<Box<dyn StandIn>>,
    flows: BTreeMap<FlowId, Flow>,
    listeners: BTreeMap<bool, Link>,
    pub(super) printed: String,
    pub(super) complained: String,
    pub(super) exit: Option<i32>,
    /// Bytes received by a scripted peer, by link, and its closed links.
    pub(super) heard: BTreeMap<Link, Vec<u8>>,
    pub(super) closed: Vec<Link>,
    pub(super) plans: Vec<Planned>,
    pub(super) tasks: Vec<FlowTask>,
    pub(super) tuned: Vec<LinkOptions>,
    pub(super) held_back: Vec<Link>,
    /// The errors of the ended runs.
    pub(super) over: Vec<Option<String>>,
    pub(super) peer_bytes: Vec<u64>,
}

struct Flow {
    task: FlowTask,
    since: Timestamp,
    until: Option<Timestamp>,
}

/// A connection, or the two sockets of a datagram stream.
struct VirtualLink {
    client: (usize, Link),
    server: Option<Link>,
    udp: bool,
}

enum Event {
    Opened(usize, Link),
    Accepted(usize, Link, Link),
    Bytes(usize, Link, Vec<u8>),
    Datagram(usize, Link, SocketAddr, Vec<u8>),
    Closed(usize, Link),
    Written(usize, FlowId),
    Ended(usize, FlowId),
}

pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) ends: Vec<End>,
    wires: Vec<VirtualLink>,
    events: BTreeMap<(Timestamp, u64), Event>,
    number: u64,
    accepted: u32,
    /// One datagram in this number is lost.
    pub(super) loses: Option<u64>,
    /// Whether runs are refused.
    pub(super) refuses: bool,
}

pub(super) fn client(settings: Settings) -> Box<dyn StandIn> {
    let host = Host::default();
    Box::new(Client::new(ClientConfig { settings, host, unix_ms: 0, seed: [7; 32], login: None }))
}

pub(super) fn server(settings: Settings) -> ServerConfig {
    ServerConfig { settings, host: Host::default(), unix_ms: 0, seed: [9; 32], gate: None, shared: false }
}

impl World {
    /// A server, and clients that start immediately.
    pub(super) fn new(server: ServerConfig, clients: Vec<Box<dyn StandIn>>) -> Self {
        let stand_ins: Vec<Box<dyn StandIn>> =
            [Box::new(Server::new(server)) as Box<dyn StandIn>].into_iter().chain(clients).collect();
        let ends = stand_ins.into_iter().map(|stand_in| End { stand_in: Some(stand_in), ..End::default() });
        let mut world = Self {
            now: Timestamp::from_ns(5_000_000_000),
            ends: ends.collect(),
            wires: Vec::new(),
            events: BTreeMap::new(),
            number: 0,
            accepted: Link::FIRST_ACCEPTED.0,
            loses: None,
            refuses: false,
        };
        for end in 0..world.ends.len() {
            world.feed(end, Input::Begin);
        }
        world
    }

    /// Adds a scripted peer; returns the index of its end.
    pub(super) fn raw_peer(&mut self) -> usize {
        self.ends.push(End::default());
        self.ends.len() - 1
    }

    /// Connects a scripted peer to the server.
    pub(super) fn connect(&mut self, end: usize, link: u32) {
        self.open(end, Link(link), false);
    }

    /// Opens a datagram stream of a scripted peer.
    pub(super) fn hello(&mut self, end: usize, link: u32) {
        self.open(end, Link(link), true);
        self.send(end, Link(link), b"9876".to_vec());
    }

    /// Sends bytes of a scripted peer.
    pub(super) fn send_as(&mut self, end: usize, link: u32, bytes: &[u8]) {
        self.send(end, Link(link), bytes.to_vec());
    }

    /// Closes a connection of a scripted peer.
    pub(super) fn close(&mut self, end: usize, link: u32) {
        self.shut(end, Link(link));
    }

    /// The bytes that a scripted peer has received.
    pub(super) fn received(&self, end: usize, link: u32) -> &[u8] {
        self.ends[end].heard.get(&Link(link)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn signal(&mut self, end: usize, signal: i32) {
        self.feed(end, Input::Signal(signal));
    }

    /// Advances the time.
    pub(super) fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(next) = self.next().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = until;
    }

    fn next(&self) -> Option<Timestamp> {
        let event = self.events.keys().next().map(|(at, _)| *at);
        let timers = self.ends.iter().filter(|end| end.exit.is_none());
        let timer = timers.filter_map(|end| end.stand_in.as_ref()?.deadline()).min();
        [event, timer].into_iter().flatten().min()
    }

    fn step(&mut self) {
        if let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let event = entry.remove();
            return self.happen(event);
        }
        for end in 0..self.ends.len() {
            let due = self.ends[end].stand_in.as_ref().and_then(|stand_in| stand_in.deadline());
            if self.ends[end].exit.is_none() && due.is_some_and(|due| due <= self.now) {
                self.feed(end, Input::Tick);
                let next = self.ends[end].stand_in.as_ref().and_then(|stand_in| stand_in.deadline());
                assert!(next.is_none_or(|next| next > self.now), "a tick must move the deadline");
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Opened(end, link) => {
                let opened = self.opened(end, link);
                self.feed(end, Input::Opened { link, opened });
            }
            Event::Accepted(end, listener, link) => {
                let opened = self.opened(end, link);
                self.feed(end, Input::Accepted { listener, link, opened });
            }
            Event::Bytes(end, link, bytes) => {
                self.ends[end].heard.entry(link).or_default().extend(&bytes);
                self.feed(end, Input::Bytes { link, bytes: &bytes });
            }
            Event::Datagram(end, link, from, bytes) => {
                self.feed(end, Input::Datagram { link, from, bytes: &bytes });
            }
            Event::Closed(end, link) => {
                self.ends[end].closed.push(link);
                self.feed(end, Input::Closed { link, reason: None });
            }
            Event::Written(end, flow) => self.feed(end, Input::Written { flow }),
            Event::Ended(end, flow) => {
                let counts = self.counts(end, flow);
                self.feed(end, Input::Ended { counts: &counts });
            }
        }
    }

    fn feed(&mut self, end: usize, input: Input<'_>) {
        let now = self.now;
        if self.ends[end].exit.is_none()
            && let Some(stand_in) = &mut self.ends[end].stand_in
        {
            stand_in.input(now, input);
        }
        while let Some(output) = self.ends[end].stand_in.as_mut().and_then(|stand_in| stand_in.output()) {
            self.execute(end, output);
        }
    }

    fn execute(&mut self, end: usize, output: Output) {
        match output {
            Output::Connect { link, options, .. } => {
                self.open(end, link, options.transport == crate::stand_in::Transport::Udp);
            }
            Output::Listen { link, options, .. } => {
                let udp = options.transport == crate::stand_in::Transport::Udp;
                self.ends[end].listeners.insert(udp, link);
                self.later(Span::ZERO, Event::Opened(end, link));
            }
            Output::Adopt { listener, peer, .. } => {
                let link = self.fresh();
                let wire = self.wires.iter().position(|wire| address(wire.client) == peer).unwrap();
                self.wires[wire].server = Some(link);
                self.later(Span::ZERO, Event::Accepted(end, listener, link));
            }
            Output::Send { link, bytes } => self.send(end, link, bytes),
            Output::FinishWriting { link } | Output::Reset { link } => self.shut(end, link),
            Output::Close { link } => {
                self.ends[end].listeners.retain(|_, listener| *listener != link);
                self.shut(end, link);
            }
            Output::Ask(planned) => {
                let run = planned.run;
                self.ends[end].plans.push(*planned);
                if self.refuses {
                    self.feed(end, Input::Refused { run, why: "no".to_owned() });
                } else {
                    self.feed(end, Input::Admitted { run });
                }
            }
            Output::Plan(planned) => self.ends[end].plans.push(*planned),
            Output::Start(task) => self.start(end, *task),
            Output::Stop { flow, how } => self.stop(end, flow, how),
            Output::Look => {
                let flows: Vec<FlowId> = self.ends[end].flows.keys().copied().collect();
                let flows: Vec<FlowCounts> = flows.iter().map(|flow| self.counts(end, *flow)).collect();
                let cpu = Cpu { elapsed: self.now.since(Timestamp::START), ..Cpu::default() };
                self.feed(end, Input::Counts { cpu, flows: &flows });
            }
            Output::Forget { flow } => drop(self.ends[end].flows.remove(&flow)),
            Output::PeerCounted { tally, .. } => self.ends[end].peer_bytes.push(tally.bytes.get()),
            Output::RunOver { trouble, .. } => self.ends[end].over.push(trouble),
            Output::Print(text) => self.ends[end].printed.push_str(&text),
            Output::Complain(text) => self.ends[end].complained.push_str(&text),
            Output::Exit(code) => self.ends[end].exit = Some(code),
            Output::Tune { link, options } => {
                self.ends[end].tuned.push(options);
                self.later(Span::ZERO, Event::Opened(end, link));
            }
            Output::Hold { link } => self.ends[end].held_back.push(link),
            Output::Discard { .. } => {}
            other => panic!("iperf3 has no use for {other:?}"),
        }
    }

    fn start(&mut self, end: usize, task: FlowTask) {
        let (flow, since) = (task.flow, self.now);
        self.ends[end].tasks.push(task.clone());
        if let (Side::Sender, Some(goal)) = (task.side, task.bytes) {
            let each = goal.get().div_ceil(task.length.get()).div_ceil(task.links.len() as u64);
            let span = Span::from_secs_f64((each - 1) as f64 * block_seconds(&task)).unwrap();
            self.later(span, Event::Written(end, flow));
        }
        self.ends[end].flows.insert(flow, Flow { task, since, until: None });
    }

    fn stop(&mut self, end: usize, flow: FlowId, how: Stop) {
        let now = self.now;
        if let Some(running) = self.ends[end].flows.get_mut(&flow).filter(|running| running.until.is_none()) {
            running.until = Some(now);
            assert_ne!(how, Stop::Regularly, "iperf3 does not half-close its streams");
            let slow = if running.task.side == Side::Receiver { 30 } else { 1 };
            self.later(Span::from_ms(slow), Event::Ended(end, flow));
        }
    }

    fn counts(&self, end: usize, flow: FlowId) -> FlowCounts {
        let Some(own) = self.ends[end].flows.get(&flow) else { return FlowCounts::default() };
        let streams = (0..own.task.links.len()).map(|at| self.stream(end, own, at)).collect();
        let heard = own.task.side == Side::Receiver && self.sender(end, own, 0).is_some();
        FlowCounts {
            flow,
            at: self.now,
            last_at: heard.then_some(self.now),
            streams,
            ..FlowCounts::default()
        }
    }

    /// The counts of one stream, from what its sender has sent by now (or one delay ago).
    fn stream(&self, end: usize, own: &Flow, at: usize) -> StreamCounts {
        let until = own.until.unwrap_or(self.now);
        if own.task.side == Side::Sender {
            let blocks = blocks(own, at, until);
            let bytes = blocks * own.task.length.get();
            return StreamCounts { bytes, packets: blocks, retransmits: Some(3), ..StreamCounts::default() };
        }
        let Some((sender, place)) = self.sender(end, own, at) else { return StreamCounts::default() };
        let then = Timestamp::from_ns(until.as_ns().saturating_sub(DELAY.as_ns()));
        let sent = blocks(sender, place, then.min(sender.until.unwrap_or(then)));
        let lost =
            self.loses.filter(|_| own.task.stamp.length > 0 && self.is_udp(own)).map_or(0, |of| sent / of);
        let bytes = (sent - lost) * own.task.length.get();
        StreamCounts { bytes, packets: sent - lost, highest: sent, lost, ..StreamCounts::default() }
    }

    fn is_udp(&self, flow: &Flow) -> bool {
        flow.task.transport == crate::stand_in::Transport::Udp
    }

    /// The sender's flow of a stream, and the index of the stream there.
    fn sender(&self, end: usize, own: &Flow, at: usize) -> Option<(&Flow, usize)> {
        let (peer, link) = self.other(end, *own.task.links.get(at)?)?;
        let flows = self.ends[peer].flows.values();
        flows.filter(|flow| flow.task.side == Side::Sender).find_map(|flow| {
            flow.task.links.iter().position(|other| *other == link).map(|place| (flow, place))
        })
    }

    fn other(&self, end: usize, link: Link) -> Option<(usize, Link)> {
        self.wires.iter().find_map(|wire| {
            if wire.client == (end, link) {
                Some((SERVER, wire.server?))
            } else {
                (end == SERVER && wire.server == Some(link)).then_some(wire.client)
            }
        })
    }

    fn open(&mut self, end: usize, link: Link, udp: bool) {
        if udp {
            self.wires.push(VirtualLink { client: (end, link), server: None, udp });
            return self.later(Span::ZERO, Event::Opened(end, link));
        }
        let (listener, server) = (self.ends[SERVER].listeners[&false], self.fresh());
        self.wires.push(VirtualLink { client: (end, link), server: Some(server), udp });
        self.later(DELAY, Event::Accepted(SERVER, listener, server));
        self.later(DELAY + DELAY, Event::Opened(end, link));
    }

    fn send(&mut self, end: usize, link: Link, bytes: Vec<u8>) {
        let wire = self.wires.iter().find(|wire| wire.client == (end, link) || wire.server == Some(link));
        let udp = wire.is_some_and(|wire| wire.udp);
        match self.other(end, link) {
            Some((peer, at)) if udp => {
                self.later(DELAY, Event::Datagram(peer, at, address((end, link)), bytes));
            }
            Some((peer, at)) => self.later(DELAY, Event::Bytes(peer, at, bytes)),
            None if udp => {
                let door = self.ends[SERVER].listeners[&true];
                self.later(DELAY, Event::Datagram(SERVER, door, address((end, link)), bytes));
            }
            None => {}
        }
    }

    fn shut(&mut self, end: usize, link: Link) {
        if let Some((peer, at)) =
            self.other(end, link).filter(|(peer, at)| !self.ends[*peer].closed.contains(at))
        {
            self.later(DELAY, Event::Closed(peer, at));
        }
    }

    fn opened(&self, end: usize, link: Link) -> Opened {
        let wire = self.wires.iter().find(|wire| wire.client == (end, link) || wire.server == Some(link));
        let client = wire.map(|wire| address(wire.client));
        let here = "10.0.0.1:5201".parse().unwrap();
        let (local, remote) =
            if end == SERVER { (here, client) } else { (client.unwrap_or(here), Some(here)) };
        Opened {
            local,
            remote,
            mss: Some(1448),
            handshake: None,
            snd_buf: 1 << 20,
            rcv_buf: 1 << 20,
            congestion: Some("cubic".to_owned()),
            descriptor: 5,
        }
    }

    fn fresh(&mut self) -> Link {
        self.accepted += 1;
        Link(self.accepted)
    }

    fn later(&mut self, span: Span, event: Event) {
        self.number += 1;
        self.events.insert((self.now + span, self.number), event);
    }
}

/// Every client has its own address, and a port per link.
fn address((end, link): (usize, Link)) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 10 + end as u8], 40_000 + link.0 as u16))
}

fn block_seconds(task: &FlowTask) -> f64 {
    task.length.get() as f64 * 8.0 / task.offered.map_or(RATE, linerate_units::Bitrate::bps)
}

/// Number of blocks that one stream of a sender has written by `until`: the first immediately, the others at
/// their rate.
fn blocks(flow: &Flow, at: usize, until: Timestamp) -> u64 {
    if until < flow.since {
        return 0;
    }
    let written = (until.since(flow.since).as_secs_f64() / block_seconds(&flow.task) + 1e-9) as u64 + 1;
    flow.task.bytes.map_or(written, |goal| {
        // The goal is distributed over the streams in turn.
        let all = goal.get().div_ceil(flow.task.length.get());
        let streams = flow.task.links.len() as u64;
        written.min((all + streams - 1 - at as u64) / streams)
    })
}

/// A message with its length.
pub(super) fn message(json: &str) -> Vec<u8> {
    crate::iperf3::wire::frame(json.as_bytes())
}
