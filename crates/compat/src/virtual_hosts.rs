//! Two hosts with one tool each, a network between them, and simulated flows, all in virtual time: used by the
//! tests of tools.

mod engine;
mod flows;
mod virtual_link;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_model::{Side, SideSettings};
use linerate_units::{Span, Timestamp};

use crate::stand_in::{
    Cpu, FlowCounts, FlowId, FlowTask, HostCounts, Input, Link, LinkOptions, Opened, Output, StandIn,
    SystemError, Transport,
};
use engine::Flow;
use virtual_link::{VirtualLink, address, opened};

/// One-way delay.
const DELAY: Span = Span::from_ms(1);

/// Rate of a stream without a requested rate, bits per second.
const RATE: f64 = 100e6;

/// Wall clock at the start of the virtual time, seconds since 1970.
pub(crate) const WALL_SECONDS: u64 = 1_800_000_000;

/// Decides for each datagram of a host whether it is lost.
type Loss = Box<dyn FnMut(usize, &[u8]) -> bool>;

/// The two hosts.
pub(crate) struct VirtualHosts {
    pub(crate) now: Timestamp,
    pub(crate) hosts: [Host; 2],
    /// Which datagrams are lost.
    pub(crate) loss: Loss,
    queue: BTreeMap<(Timestamp, u64), (usize, HostEvent)>,
    order: u64,
}

/// A host with one tool.
pub(crate) struct Host {
    tool: Box<dyn StandIn>,
    /// Standard output, standard error, and bytes written with [`Output::Write`].
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) written: Vec<u8>,
    pub(crate) exit: Option<i32>,
    /// Bytes that the tool sent itself, with their link.
    pub(crate) sent: Vec<(Link, Vec<u8>)>,
    /// The flows that the tool requested.
    pub(crate) tasks: Vec<FlowTask>,
    /// The errors of the finished runs.
    pub(crate) runs: Vec<Option<String>>,
    /// Number of runs that were planned or requested.
    pub(crate) planned: usize,
    /// Remaining blocks of standard input.
    pub(crate) input: VecDeque<Vec<u8>>,
    /// Whether the server admits runs.
    pub(crate) admits: bool,
    links: BTreeMap<Link, VirtualLink>,
    flows: BTreeMap<FlowId, Flow>,
    next_accepted: u32,
    next_port: u16,
}

enum HostEvent {
    Opened(Link, Opened),
    NotOpened(Link, SystemError),
    Accepted { listener: Link, link: Link, opened: Opened },
    Bytes(Link, Vec<u8>),
    Datagram { from: SocketAddr, to: SocketAddr, bytes: Vec<u8> },
    Fin(Link),
    Sent(Link),
    Admitted(u32),
    Refused(u32),
    Started(FlowId),
    Step(FlowId),
    Text,
}

impl VirtualHosts {
    pub(crate) fn new(client: Box<dyn StandIn>, server: Box<dyn StandIn>) -> Self {
        let mut hosts = Self {
            now: Timestamp::START,
            hosts: [Host::new(client), Host::new(server)],
            loss: Box::new(|_, _| false),
            queue: BTreeMap::new(),
            order: 0,
        };
        hosts.feed(1, Input::Begin);
        hosts.feed(0, Input::Begin);
        hosts
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
        let deadline = |host: &Host| host.tool.deadline().filter(|_| host.exit.is_none());
        let tick = (0..2).filter_map(|at| Some((deadline(&self.hosts[at])?, at))).min();
        let event = self.queue.first_key_value().map(|(key, _)| key.0);
        match (tick, event) {
            (Some((due, host)), event) if event.is_none_or(|event| due < event) => {
                if due > until {
                    return false;
                }
                self.now = self.now.max(due);
                self.feed(host, Input::Tick);
                let next = self.hosts[host].tool.deadline();
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
        self.hosts[host].tool.input(self.now, input);
        while let Some(output) = self.hosts[host].tool.output() {
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
        let (local, peer) = (address(host, 5001), address(1 - host, 45_000));
        self.hosts[host].links.insert(link, VirtualLink::new(false, local, Some(peer)));
        self.feed(host, Input::Accepted { listener, link, opened: opened(local, Some(peer)) });
    }

    /// The host vanishes without closing its connections.
    pub(crate) fn kill(&mut self, host: usize) {
        self.hosts[host].exit = Some(137);
        self.hosts[host].flows.clear();
        self.hosts[host].links.clear();
    }

    /// Sends a datagram that the test made itself, from a port of a host.
    pub(crate) fn inject(&mut self, from: usize, port: u16, to_port: u16, bytes: &[u8]) {
        let (from, to) = (address(from, port), address(1 - from, to_port));
        let host = usize::from(to.ip() == address(1, 0).ip());
        self.later(Span::ZERO, host, HostEvent::Datagram { from, to, bytes: bytes.to_vec() });
    }

    fn later(&mut self, wait: Span, host: usize, event: HostEvent) {
        self.order += 1;
        self.queue.insert((self.now + wait, self.order), (host, event));
    }

    fn carry_out(&mut self, host: usize, output: Output) {
        match output {
            Output::Connect { link, port, to, options } => self.connect(host, link, port, to, &options),
            Output::Listen { link, port, options } => {
                let udp = options.transport == Transport::Udp;
                let port = if port == 0 { self.hosts[host].free_port() } else { port };
                let local = address(host, port);
                let taken =
                    self.hosts[host].links.values().any(|wire| wire.udp == udp && wire.local == local);
                assert!(!taken, "port {port} is in use");
                self.hosts[host]
                    .links
                    .insert(link, VirtualLink { listens: true, ..VirtualLink::new(udp, local, None) });
                self.later(Span::ZERO, host, HostEvent::Opened(link, opened(local, None)));
            }
            Output::Adopt { listener, peer, .. } => {
                let local = self.hosts[host].links[&listener].local;
                let link = self.hosts[host].accept(VirtualLink::new(true, local, Some(peer)));
                self.later(
                    Span::ZERO,
                    host,
                    HostEvent::Accepted { listener, link, opened: opened(local, Some(peer)) },
                );
            }
            Output::Send { link, bytes } => {
                self.hosts[host].sent.push((link, bytes.clone()));
                self.transmit(host, link, bytes);
                self.later(Span::ZERO, host, HostEvent::Sent(link));
            }
            Output::SendTo { link, to, bytes } => {
                self.hosts[host].sent.push((link, bytes.clone()));
                let from = self.hosts[host].links[&link].local;
                self.datagram(host, from, to, bytes);
            }
            Output::FinishWriting { link } => self.fin(host, link),
            Output::Close { link } | Output::Reset { link } => {
                self.fin(host, link);
                self.hosts[host].links.remove(&link);
            }
            Output::Ask(planned) => {
                self.hosts[host].planned += 1;
                let admits = self.hosts[host].admits;
                let event = if admits { HostEvent::Admitted } else { HostEvent::Refused };
                self.later(Span::ZERO, host, event(planned.run));
            }
            Output::Plan(_) => self.hosts[host].planned += 1,
            Output::Start(task) => self.start(host, *task),
            Output::Stop { flow, how } => self.stop(host, flow, how),
            Output::Forget { flow } => drop(self.hosts[host].flows.remove(&flow)),
            Output::Look => self.look(host),
            Output::LookHost { .. } => {
                // Half of the time of four cores is used.
                let used = self.now.as_ns() / 1_000_000;
                let cpu = Some([used, 0, used, 2 * used, 0, 0, 0, 0]);
                let counts = HostCounts { cpu, cores: Some(4), ..HostCounts::default() };
                self.hosts[host].tool.input(self.now, Input::Host(&counts));
            }
            Output::RunOver { trouble, .. } => self.hosts[host].runs.push(trouble),
            Output::Print(text) => self.hosts[host].out.push_str(&text),
            Output::Complain(text) => self.hosts[host].err.push_str(&text),
            Output::Read => self.later(Span::ZERO, host, HostEvent::Text),
            Output::Write(bytes) => self.hosts[host].written.extend(bytes),
            Output::Exit(code) => self.exit(host, code),
            _ => {}
        }
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
            Cpu { elapsed, user: Span::from_ns(elapsed.as_ns() / 100), system: Span::ZERO, usage: None };
        let now = self.now;
        let flows: Vec<FlowCounts> = self.hosts[host]
            .flows
            .values_mut()
            .map(|flow| {
                flow.counts.at = now;
                flow.counts.clone()
            })
            .collect();
        self.hosts[host].tool.input(now, Input::Counts { cpu, flows: &flows });
    }

    fn connect(&mut self, host: usize, link: Link, port: u16, to: Option<SocketAddr>, options: &LinkOptions) {
        let udp = options.transport == Transport::Udp;
        let peer = to.unwrap_or_else(|| address(1 - host, port));
        let peer_host = usize::from(peer.ip() == address(1, 0).ip());
        let local = address(host, options.local_port.unwrap_or_else(|| self.hosts[host].free_port()));
        self.hosts[host].links.insert(link, VirtualLink::new(udp, local, Some(peer)));
        if udp {
            return self.later(Span::ZERO, host, HostEvent::Opened(link, opened(local, Some(peer))));
        }
        let listener = self.hosts[peer_host]
            .links
            .iter()
            .find(|(_, wire)| wire.listens && !wire.udp && wire.local.port() == peer.port())
            .map(|(link, _)| *link);
        let Some(listener) = listener.filter(|_| self.hosts[peer_host].exit.is_none()) else {
            let reason = SystemError { errno: 111, text: "Connection refused".to_owned() };
            return self.later(DELAY, host, HostEvent::NotOpened(link, reason));
        };
        let accepted = self.hosts[peer_host]
            .accept(VirtualLink { peer_link: Some(link), ..VirtualLink::new(false, peer, Some(local)) });
        if let Some(wire) = self.hosts[host].links.get_mut(&link) {
            wire.peer_link = Some(accepted);
        }
        let there = opened(peer, Some(local));
        self.later(DELAY, peer_host, HostEvent::Accepted { listener, link: accepted, opened: there });
        self.later(DELAY + DELAY, host, HostEvent::Opened(link, opened(local, Some(peer))));
    }

    fn transmit(&mut self, host: usize, link: Link, bytes: Vec<u8>) {
        let wire = self.hosts[host].links.get(&link).expect("a link that is open");
        if let (true, Some(to)) = (wire.udp, wire.peer) {
            let from = wire.local;
            self.datagram(host, from, to, bytes);
        } else if let Some(peer_link) = wire.peer_link {
            self.later(DELAY, 1 - host, HostEvent::Bytes(peer_link, bytes));
        }
    }

    fn datagram(&mut self, host: usize, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        if !(self.loss)(host, &bytes) {
            self.later(DELAY, 1 - host, HostEvent::Datagram { from, to, bytes });
        }
    }

    fn fin(&mut self, host: usize, link: Link) {
        let peer =
            self.hosts[host].links.get_mut(&link).and_then(|wire| wire.peer_link.filter(|_| !wire.udp));
        if let Some(peer_link) = peer {
            self.later(DELAY, 1 - host, HostEvent::Fin(peer_link));
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
                if let Some((running, at)) = self.hosts[host].receiver_of(link) {
                    running.read(now, at, &bytes);
                } else if let Some(wire) = self.hosts[host].links.get_mut(&link) {
                    if wire.flows.is_empty() {
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
            HostEvent::Refused(run) => self.feed(host, Input::Refused { run, why: "busy".to_owned() }),
            HostEvent::Started(flow) => {
                let settings = SideSettings::default();
                self.feed(host, Input::Started { flow, settings: &settings });
            }
            HostEvent::Step(flow) => self.send_blocks(host, flow),
            HostEvent::Text => {
                let block = self.hosts[host].input.pop_front();
                self.feed(host, Input::Text(block.as_deref()));
            }
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
        } else if let Some(wire) = self.hosts[host].links.get_mut(&link).filter(|wire| !wire.flows.is_empty())
        {
            wire.held.push((from, bytes.to_vec()));
        } else {
            self.feed(host, Input::Datagram { link, from, bytes });
        }
    }
}

impl Host {
    fn new(tool: Box<dyn StandIn>) -> Self {
        Self {
            tool,
            out: String::new(),
            err: String::new(),
            written: Vec::new(),
            exit: None,
            sent: Vec::new(),
            tasks: Vec::new(),
            runs: Vec::new(),
            planned: 0,
            input: VecDeque::new(),
            admits: true,
            links: BTreeMap::new(),
            flows: BTreeMap::new(),
            next_accepted: Link::FIRST_ACCEPTED.0,
            next_port: 40_000,
        }
    }

    fn free_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port += 1;
        port
    }

    fn accept(&mut self, wire: VirtualLink) -> Link {
        let link = Link(self.next_accepted);
        self.next_accepted += 1;
        self.links.insert(link, wire);
        link
    }

    /// The running flow that reads from a link, and the index of the stream.
    fn receiver_of(&mut self, link: Link) -> Option<(&mut Flow, usize)> {
        let receives = |flow: &&FlowId| self.flows[flow].task.side == Side::Receiver;
        let flow = self.links.get(&link)?.flows.iter().find(receives).copied()?;
        let running = self.flows.get_mut(&flow)?;
        let at = running.task.links.iter().position(|own| *own == link)?;
        Some((running, at))
    }
}
