//! Hosts with one tool each, a network between them, and simulated flows, all in virtual time: used by the tests
//! of tools.

mod engine;
mod flows;
mod host;
mod virtual_link;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_model::SideSettings;
use linerate_units::{Span, Timestamp};

use crate::stand_in::{
    CpuTime, FlowCounts, FlowId, Input, Link, LinkOptions, Opened, Output, RunId, StandIn, StreamCounts,
    SystemError, Transport,
};
pub(crate) use host::VirtualHost;
pub(crate) use virtual_link::opened;
use virtual_link::{VirtualLink, address, host_of};

/// One-way delay.
const DELAY: Span = Span::from_ms(1);

/// Rate of a stream without a requested rate, bits per second.
const RATE: f64 = 100e6;

/// Wall clock at the start of the virtual time, seconds since 1970.
pub(crate) const WALL_SECONDS: u64 = 1_800_000_000;

/// Decides for each datagram of a host whether it is lost.
type DatagramLoss = Box<dyn FnMut(usize, &[u8]) -> bool>;

/// The hosts.
pub(crate) struct VirtualHosts {
    pub(crate) now: Timestamp,
    pub(crate) hosts: Vec<VirtualHost>,
    /// The host that the others connect to.
    server: usize,
    /// Which datagrams are lost.
    pub(crate) loss: DatagramLoss,
    /// Which ports accept no connections at this time, although a tool listens.
    pub(crate) closed: fn(u16, Timestamp) -> bool,
    pub(crate) path: VirtualPath,
    queue: BTreeMap<(Timestamp, u64), (usize, HostEvent)>,
    order: u64,
}

/// The network between the hosts, and what a kernel and an engine do there.
#[derive(Clone)]
pub(crate) struct VirtualPath {
    /// One-way delay.
    pub(crate) delay: Span,
    /// Rate of a stream without a requested rate, bits per second.
    pub(crate) rate: f64,
    /// How long a sender and a receiver need to stop.
    pub(crate) stops: [Span; 2],
    /// What a kernel reports of a sender's TCP connection.
    pub(crate) tcp: StreamCounts,
    /// The line that carries what the tools send themselves over connections; absent for one without a limit.
    pub(crate) line: Option<VirtualLine>,
    /// Segments that its kernel retransmits after the flow, before the peer has acknowledged everything.
    pub(crate) late_retransmits: u64,
}

/// A line between the hosts, with a queue at each end.
#[derive(Clone, Copy)]
pub(crate) struct VirtualLine {
    /// Rate in each direction, bits per second.
    pub(crate) bps: f64,
    /// How long what a kernel has taken may wait for the line.
    pub(crate) queue: Span,
}

impl Default for VirtualPath {
    fn default() -> Self {
        let tcp = StreamCounts::default();
        Self { delay: DELAY, rate: RATE, stops: [Span::ZERO; 2], tcp, late_retransmits: 0, line: None }
    }
}

enum HostEvent {
    Opened(Link, Opened),
    NotOpened(Link, SystemError),
    Accepted { listener: Link, link: Link, opened: Opened },
    Bytes(Link, Vec<u8>),
    Datagram { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
    Fin(Link),
    Sent(Link),
    Admitted(RunId),
    Refused(RunId),
    Started(FlowId),
    Step(FlowId),
    Stopped(FlowId),
    Text,
}

impl VirtualHosts {
    /// A client on host 0 and its server on host 1.
    pub(crate) fn new(client: Box<dyn StandIn>, server: Box<dyn StandIn>) -> Self {
        Self::on(VirtualPath::default(), 1, vec![Some(client), Some(server)])
    }

    /// Tools on the hosts 0 and up, of which the server begins first. The test itself acts for a host without
    /// a tool.
    pub(crate) fn on(path: VirtualPath, server: usize, tools: Vec<Option<Box<dyn StandIn>>>) -> Self {
        let mut hosts = Self {
            now: Timestamp::START,
            hosts: tools.into_iter().map(VirtualHost::new).collect(),
            server,
            loss: Box::new(|_, _| false),
            closed: |_, _| false,
            path,
            queue: BTreeMap::new(),
            order: 0,
        };
        hosts.feed(server, Input::Begin);
        for host in (0..hosts.hosts.len()).filter(|host| *host != server) {
            hosts.feed(host, Input::Begin);
        }
        hosts
    }

    /// Adds a host without a tool.
    pub(crate) fn add_host(&mut self) -> usize {
        self.hosts.push(VirtualHost::new(None));
        self.hosts.len() - 1
    }

    /// The first two hosts.
    pub(crate) fn pair(&self) -> [&VirtualHost; 2] {
        [&self.hosts[0], &self.hosts[1]]
    }

    /// The host that a tool means that names no address.
    fn peer(&self, host: usize) -> usize {
        if host == self.server { usize::from(self.server == 0) } else { self.server }
    }

    /// Advances the virtual time until both tools have exited, or by at most `seconds`.
    pub(crate) fn run(&mut self, seconds: u64) {
        let until = self.now + Span::from_secs(seconds);
        while self.hosts.iter().any(|host| host.exit.is_none()) && self.step(until) {}
        if self.hosts.iter().any(|host| host.exit.is_none()) {
            self.now = until;
        }
    }

    fn step(&mut self, until: Timestamp) -> bool {
        let due = |(at, host): (usize, &VirtualHost)| Some((host.deadline()?, at));
        let tick = self.hosts.iter().enumerate().filter_map(due).min();
        let event = self.queue.first_key_value().map(|(key, _)| key.0);
        match (tick, event) {
            (Some((due, host)), event) if event.is_none_or(|event| due < event) => {
                if due > until {
                    return false;
                }
                self.now = self.now.max(due);
                self.feed(host, Input::Tick);
                let next = self.hosts[host].deadline();
                assert!(next.is_none_or(|next| next > self.now), "a tick must move the deadline");
            }
            (_, Some(event)) if event <= until => {
                self.now = self.now.max(event);
                if let Some((_, (host, event))) = self.queue.pop_first() {
                    self.deliver(host, event);
                }
            }
            _ => return false,
        }
        true
    }

    /// Passes an input to a host's tool and executes its outputs.
    pub(crate) fn feed(&mut self, host: usize, input: Input<'_>) {
        if self.hosts[host].exit.is_some() {
            return;
        }
        self.hosts[host].input(self.now, input);
        while let Some(output) = self.hosts[host].tool.as_mut().and_then(StandIn::output) {
            self.carry_out(host, output);
        }
    }

    /// Advances the virtual time by `span`, even if tools have exited.
    pub(crate) fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = until;
    }

    /// Adds a connection that the test made itself, as accepted by a listener.
    pub(crate) fn inject_connection(&mut self, host: usize, link: Link, listener: Link) {
        let (local, peer) = (address(host, 5001), address(self.peer(host), 45_000));
        let wire = VirtualLink::new(false, local, Some(peer));
        let opened = wire.opened();
        self.hosts[host].links.insert(link, wire);
        self.feed(host, Input::Accepted { listener, link, opened });
    }

    /// The host vanishes without closing its connections.
    pub(crate) fn kill(&mut self, host: usize) {
        self.hosts[host].exit = Some(137);
        self.hosts[host].flows.clear();
        self.hosts[host].links.clear();
    }

    /// Sends a datagram that the test made itself, from a port of a host.
    pub(crate) fn inject(&mut self, from: usize, port: u16, to_port: u16, bytes: &[u8]) {
        let host = self.peer(from);
        let (from, to) = (address(from, port), address(host, to_port));
        self.later(Span::ZERO, host, HostEvent::Datagram { from, to, bytes: bytes.to_vec() });
    }

    fn later(&mut self, wait: Span, host: usize, event: HostEvent) {
        self.order += 1;
        self.queue.insert((self.now + wait, self.order), (host, event));
    }

    /// Executes an output of a host's tool.
    pub(crate) fn carry_out(&mut self, host: usize, output: Output) {
        let here = &mut self.hosts[host];
        match output {
            Output::Connect { link, port, to, options } => self.connect(host, link, port, to, &options),
            Output::Listen { link, port, options } => self.listen(host, link, port, &options),
            Output::Adopt { listener, peer, .. } => {
                let local = here.links[&listener].local;
                let wire = VirtualLink::new(true, local, Some(peer));
                let opened = wire.opened();
                let link = here.accept(wire);
                self.later(Span::ZERO, host, HostEvent::Accepted { listener, link, opened });
            }
            Output::Send { link, bytes } => self.send(host, link, bytes),
            Output::SendTo { link, to, bytes } => {
                here.note_sent(self.now, link, &bytes);
                let from = here.links[&link].local;
                self.datagram(host, from, to, bytes);
            }
            Output::Urgent { byte, .. } => here.urgent.push(byte),
            Output::Tune { link, options } => {
                let wire = here.links.get_mut(&link).expect("a link that is open");
                wire.tune(&options);
                here.tuned.push(options);
                let opened = wire.opened();
                self.later(Span::ZERO, host, HostEvent::Opened(link, opened));
            }
            Output::Hold { link } => {
                here.held_back.push(link);
                here.links.get_mut(&link).expect("a link that is open").holds = true;
            }
            Output::FinishWriting { link } => self.fin(host, link),
            Output::Close { link } | Output::Reset { link } => {
                self.fin(host, link);
                self.hosts[host].links.remove(&link);
            }
            Output::Ask(planned) => {
                let event = if here.admits { HostEvent::Admitted } else { HostEvent::Refused };
                let run = planned.run;
                here.plans.push(*planned);
                self.later(Span::ZERO, host, event(run));
            }
            Output::Reserve { run, .. } => {
                let event = if self.hosts[host].admits { HostEvent::Admitted } else { HostEvent::Refused };
                self.later(Span::ZERO, host, event(run));
            }
            Output::Plan(planned) => here.plans.push(*planned),
            Output::Start(task) => self.start(host, *task),
            Output::Stop { flow, how } => self.stop(host, flow, how),
            Output::Forget { flow } => drop(here.flows.remove(&flow)),
            Output::Look => self.look(host),
            Output::LookLink { link } => here.look_at(self.now, link),
            Output::Counted { counted, .. } => here.counted.push(*counted),
            Output::Responsiveness { report, .. } => here.responsiveness.push(*report),
            Output::Latency { flow, probes, .. } => here.latencies.push((flow, probes)),
            Output::LookHost { .. } => here.look_at_host(self.now),
            Output::PeerCounted { tally, .. } => here.peer_counted.push(*tally),
            Output::RunOver { trouble, .. } => here.runs.push(trouble),
            Output::Print(text) => here.out.push_str(&text),
            Output::PrintError(text) => here.err.push_str(&text),
            Output::Read => self.later(Span::ZERO, host, HostEvent::Text),
            Output::Write(bytes) => here.written.extend(bytes),
            Output::Exit(code) => self.exit(host, code),
            _ => {}
        }
    }

    fn listen(&mut self, host: usize, link: Link, port: u16, options: &LinkOptions) {
        let here = &mut self.hosts[host];
        let udp = options.transport == Transport::Udp;
        let port = if port == 0 { here.free_port() } else { port };
        let local = address(host, port);
        let taken = here.links.values().any(|wire| wire.listens && wire.udp == udp && wire.local == local);
        assert!(!taken, "port {port} is in use");
        let mut wire = VirtualLink { listens: true, ..VirtualLink::new(udp, local, None) };
        wire.tune(options);
        let opened = wire.opened();
        here.links.insert(link, wire);
        self.later(Span::ZERO, host, HostEvent::Opened(link, opened));
    }

    /// Closes the connections of a program that exits, as the kernel does.
    fn exit(&mut self, host: usize, code: i32) {
        self.hosts[host].exit.get_or_insert(code);
        let links: Vec<Link> = self.hosts[host].links.keys().copied().collect();
        for link in links {
            self.fin(host, link);
        }
    }

    fn look(&mut self, host: usize) {
        let elapsed = self.now.since(Timestamp::START);
        let cpu =
            CpuTime { elapsed, user: Span::from_ns(elapsed.as_ns() / 100), system: Span::ZERO, usage: None };
        let now = self.now;
        let path = &self.path;
        let flows: Vec<FlowCounts> = self.hosts[host]
            .flows
            .values_mut()
            .map(|flow| {
                flow.count_acknowledged(now, path);
                flow.counts.at = now;
                flow.counts.clone()
            })
            .collect();
        self.hosts[host].input(now, Input::Counts { cpu, flows: &flows });
    }

    fn connect(&mut self, host: usize, link: Link, port: u16, to: Option<SocketAddr>, options: &LinkOptions) {
        let udp = options.transport == Transport::Udp;
        let peer = to.unwrap_or_else(|| address(self.peer(host), port));
        let peer_host = host_of(peer);
        let local = address(host, options.local_port.unwrap_or_else(|| self.hosts[host].free_port()));
        let mut wire = VirtualLink::new(udp, local, Some(peer));
        wire.tune(options);
        let here = wire.opened();
        self.hosts[host].links.insert(link, wire);
        if udp {
            return self.later(Span::ZERO, host, HostEvent::Opened(link, here));
        }
        let listener = self.hosts[peer_host]
            .links
            .iter()
            .find(|(_, wire)| wire.listens && !wire.udp && wire.local.port() == peer.port())
            .map(|(link, _)| *link);
        let open = self.hosts[peer_host].exit.is_none() && !(self.closed)(peer.port(), self.now);
        let delay = self.path.delay;
        let Some(listener) = listener.filter(|_| open) else {
            let reason = SystemError { errno: 111, text: "Connection refused".to_owned() };
            return self.later(delay, host, HostEvent::NotOpened(link, reason));
        };
        let wire = VirtualLink { peer_link: Some(link), ..VirtualLink::new(false, peer, Some(local)) };
        let there = wire.opened();
        let accepted = self.hosts[peer_host].accept(wire);
        if let Some(wire) = self.hosts[host].links.get_mut(&link) {
            wire.peer_link = Some(accepted);
        }
        let (out, back) = (self.occupy(host, 0), self.occupy(peer_host, 0));
        let handshake = out + delay + back + delay;
        let here = Opened { handshake: self.path.line.map_or(here.handshake, |_| Some(handshake)), ..here };
        self.later(out + delay, peer_host, HostEvent::Accepted { listener, link: accepted, opened: there });
        self.later(handshake, host, HostEvent::Opened(link, here));
    }

    fn send(&mut self, host: usize, link: Link, bytes: Vec<u8>) {
        self.hosts[host].note_sent(self.now, link, &bytes);
        let wait = self.occupy(host, bytes.len());
        self.transmit(host, link, bytes, wait);
        let queue = self.path.line.map_or(Span::ZERO, |line| line.queue);
        let taken = Span::from_ns(wait.as_ns().saturating_sub(queue.as_ns()));
        self.later(taken, host, HostEvent::Sent(link));
    }

    /// The time until the line of a host has carried this many further bytes.
    fn occupy(&mut self, host: usize, bytes: usize) -> Span {
        let Some(line) = self.path.line else { return Span::ZERO };
        let time = Span::from_secs_f64(bytes as f64 * 8.0 / line.bps).unwrap();
        let free = self.hosts[host].line_free.max(self.now) + time;
        self.hosts[host].line_free = free;
        free - self.now
    }

    fn transmit(&mut self, host: usize, link: Link, bytes: Vec<u8>, wait: Span) {
        let wire = self.hosts[host].links.get(&link).expect("a link that is open");
        let Some(to) = wire.peer else { return };
        let from = wire.local;
        if wire.udp {
            self.datagram(host, from, to, bytes);
        } else if let Some(peer_link) = wire.peer_link {
            self.later(wait + self.path.delay, host_of(to), HostEvent::Bytes(peer_link, bytes));
        }
    }

    fn datagram(&mut self, host: usize, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        if !(self.loss)(host, &bytes) {
            self.later(self.path.delay, host_of(to), HostEvent::Datagram { from, to, bytes });
        }
    }

    fn fin(&mut self, host: usize, link: Link) {
        let wire = self.hosts[host].links.get(&link).filter(|wire| !wire.udp);
        if let Some((peer_link, to)) = wire.and_then(|wire| wire.peer_link.zip(wire.peer)) {
            let wait = self.occupy(host, 0);
            self.later(wait + self.path.delay, host_of(to), HostEvent::Fin(peer_link));
        }
    }

    fn deliver(&mut self, host: usize, event: HostEvent) {
        match event {
            HostEvent::Opened(link, opened) => self.feed(host, Input::Opened { link, opened }),
            HostEvent::NotOpened(link, reason) => self.feed(host, Input::NotOpened { link, reason }),
            HostEvent::Accepted { listener, link, opened } => {
                self.feed(host, Input::Accepted { listener, link, opened });
            }
            HostEvent::Bytes(link, bytes) => {
                let now = self.now;
                self.acknowledge(host, link, bytes.len());
                if let Some((running, at)) = self.hosts[host].receiver_of(link) {
                    running.read(now, at, &bytes);
                } else if let Some(wire) = self.hosts[host].links.get_mut(&link) {
                    if !wire.is_held() {
                        self.hosts[host].received.entry(link).or_default().extend(&bytes);
                        self.feed(host, Input::Bytes { link, bytes: &bytes });
                    } else {
                        let from = wire.local;
                        wire.held.push((from, bytes));
                    }
                }
            }
            HostEvent::Datagram { from, to, bytes } => self.arrive(host, from, to, &bytes),
            HostEvent::Fin(link) => {
                let Some(wire) = self.hosts[host].links.get_mut(&link) else { return };
                if std::mem::replace(&mut wire.peer_closed, true) {
                    return;
                }
                let flows = wire.flows.clone();
                if flows.is_empty() {
                    self.feed(host, Input::Closed { link, reason: None });
                }
                for flow in flows {
                    self.end_if_closed(host, flow);
                }
            }
            HostEvent::Sent(link) => self.feed(host, Input::Sent { link }),
            HostEvent::Admitted(run) => self.feed(host, Input::Admitted { run }),
            HostEvent::Refused(run) => {
                self.feed(host, Input::Refused { run, why: "busy".to_owned(), may_retry: true })
            }
            HostEvent::Started(flow) => {
                let settings = SideSettings::default();
                self.feed(host, Input::Started { flow, settings: &settings });
            }
            HostEvent::Step(flow) => self.send_blocks(host, flow),
            HostEvent::Stopped(flow) => self.end(host, flow),
            HostEvent::Text => {
                let block = self.hosts[host].input.pop_front();
                self.feed(host, Input::Text(block.as_deref()));
            }
        }
    }

    /// The kernel of the sender counts what has arrived at a link.
    fn acknowledge(&mut self, host: usize, link: Link, bytes: usize) {
        let sender = self.hosts[host].links.get(&link).and_then(|wire| wire.peer);
        let Some(sender) = sender else { return };
        let wires = self.hosts[host_of(sender)].links.values_mut();
        for wire in wires.filter(|wire| wire.peer_link == Some(link) && wire.local == sender) {
            wire.acknowledged += bytes as u64;
        }
    }

    fn arrive(&mut self, host: usize, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let now = self.now;
        let here = |wire: &VirtualLink| wire.udp && wire.local.port() == to.port();
        let links = &self.hosts[host].links;
        let connected = links.iter().find(|(_, wire)| here(wire) && wire.peer == Some(from));
        let found = connected.or_else(|| links.iter().find(|(_, wire)| here(wire) && wire.peer.is_none()));
        let Some(link) = found.map(|(link, _)| *link) else { return };
        if let Some((running, at)) = self.hosts[host].receiver_of(link) {
            if running.read_datagram(now, at, bytes) {
                let flow = running.task.flow;
                self.end(host, flow);
            }
        } else if let Some(wire) = self.hosts[host].links.get_mut(&link).filter(|wire| wire.is_held()) {
            wire.held.push((from, bytes.to_vec()));
        } else {
            self.feed(host, Input::Datagram { link, from, bytes });
        }
    }
}
