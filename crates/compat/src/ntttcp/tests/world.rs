//! Stand-ins, an engine with a fixed rate, and the network between them, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_model::{Side, SideSettings};
use linerate_units::{Span, Timestamp};

use crate::stand_in::{
    CpuTime, FlowCounts, FlowId, FlowTask, HostCounts, Input, Link, Opened, Output, RunId, StandIn, Stop,
    StreamCounts, SystemError, Transport,
};

/// What a user or the peer sees of one end.
#[derive(Debug, Default)]
pub(crate) struct NtttcpObserved {
    pub(crate) printed: String,
    pub(crate) complained: String,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) exit: Option<i32>,
    pub(crate) exit_at: Timestamp,
    pub(crate) tasks: Vec<FlowTask>,
    pub(crate) stops: Vec<Stop>,
    /// Ports of listeners and connections, in order.
    pub(crate) ports: Vec<u16>,
    /// What was sent on connections without a flow: the peer's port, or the local one at a listener, and the
    /// bytes.
    pub(crate) sent: Vec<(u16, Vec<u8>)>,
}

struct NtttcpTestEnd {
    stand_in: Box<dyn StandIn>,
    begins: Timestamp,
    begun: bool,
    seen: NtttcpObserved,
    inbox: VecDeque<(Timestamp, NtttcpTestEvent)>,
    listeners: BTreeMap<Link, (u16, Transport)>,
    flows: BTreeMap<FlowId, NtttcpTestFlow>,
    accepted: u32,
}

struct NtttcpTestFlow {
    task: FlowTask,
    since: Timestamp,
    stopped: Option<Timestamp>,
    ended: bool,
}

#[derive(Debug)]
enum NtttcpTestEvent {
    Opened(Link, Opened),
    NotOpened(Link),
    Accepted(Link, Link, Opened),
    Bytes(Link, Vec<u8>),
    Closed(Link),
    Admitted(RunId),
    Started(FlowId),
    Ended(FlowId, bool),
    Written(FlowId),
}

/// A connection between two ends; absent links are closed.
struct NtttcpTestConnection {
    ends: [usize; 2],
    links: [Option<Link>; 2],
    /// The links before they were closed.
    were: [Link; 2],
    port: u16,
    /// Start and end of the sender's writing.
    written: Option<(Timestamp, Option<Timestamp>)>,
}

pub(crate) struct NtttcpWorld {
    now: Timestamp,
    ends: Vec<NtttcpTestEnd>,
    connections: Vec<NtttcpTestConnection>,
    delay: Span,
    /// Bytes per second of every stream of a sender.
    pub(crate) rate: u64,
    /// An end that vanishes, and when.
    pub(crate) dies: Option<(usize, Timestamp)>,
    /// The end that gets a signal, and when.
    pub(crate) signal: Option<(usize, Timestamp)>,
}

impl NtttcpWorld {
    pub(crate) fn new() -> Self {
        Self {
            now: Timestamp::START,
            ends: Vec::new(),
            connections: Vec::new(),
            delay: Span::from_ns(100_000),
            rate: 1_000_000,
            dies: None,
            signal: None,
        }
    }

    /// Adds an end that starts at this time.
    pub(crate) fn add(&mut self, stand_in: impl StandIn + 'static, begins: Timestamp) {
        self.ends.push(NtttcpTestEnd {
            stand_in: Box::new(stand_in),
            begins,
            begun: false,
            seen: NtttcpObserved::default(),
            inbox: VecDeque::new(),
            listeners: BTreeMap::new(),
            flows: BTreeMap::new(),
            accepted: Link::FIRST_ACCEPTED.0,
        });
    }

    /// Runs until nothing happens any more, at most for `longest`.
    pub(crate) fn run(mut self, longest: Span) -> Vec<NtttcpObserved> {
        for _ in 0..200_000 {
            let Some((at, time)) = self.next().filter(|(_, time)| *time <= Timestamp::START + longest) else {
                break;
            };
            self.now = self.now.max(time);
            self.act(at);
        }
        self.ends.into_iter().map(|end| end.seen).collect()
    }

    fn next(&self) -> Option<(usize, Timestamp)> {
        let due = |(at, end): (usize, &NtttcpTestEnd)| {
            if end.seen.exit.is_some() {
                return None;
            }
            if !end.begun {
                return Some((at, end.begins));
            }
            let mine =
                |event: Option<(usize, Timestamp)>| event.filter(|(who, _)| *who == at).map(|(_, time)| time);
            let news = end.inbox.iter().map(|(time, _)| *time).min();
            let times = [news, end.stand_in.deadline(), mine(self.dies), mine(self.signal)];
            Some((at, times.into_iter().flatten().min()?))
        };
        self.ends.iter().enumerate().filter_map(due).min_by_key(|(_, time)| *time)
    }

    fn act(&mut self, at: usize) {
        if !self.ends[at].begun {
            self.ends[at].begun = true;
            return self.feed(at, Input::Begin);
        }
        let now = self.now;
        if self.dies.is_some_and(|(who, time)| who == at && time <= now) {
            self.dies = None;
            return self.die(at);
        }
        if self.signal.is_some_and(|(who, time)| who == at && time <= now) {
            self.signal = None;
            return self.feed(at, Input::Signal(2));
        }
        let due = self.ends[at].inbox.iter().position(|(time, _)| *time <= now);
        match due.and_then(|due| self.ends[at].inbox.remove(due)) {
            Some((_, news)) => self.deliver(at, news),
            None => self.feed(at, Input::Tick),
        }
    }

    fn deliver(&mut self, at: usize, news: NtttcpTestEvent) {
        match news {
            NtttcpTestEvent::Opened(link, opened) => self.feed(at, Input::Opened { link, opened }),
            NtttcpTestEvent::NotOpened(link) => {
                let reason = SystemError { errno: 111, text: "Connection refused".to_owned() };
                self.feed(at, Input::NotOpened { link, reason });
            }
            NtttcpTestEvent::Accepted(listener, link, opened) => {
                self.feed(at, Input::Accepted { listener, link, opened });
            }
            NtttcpTestEvent::Bytes(link, bytes) => self.feed(at, Input::Bytes { link, bytes: &bytes }),
            NtttcpTestEvent::Closed(link) => {
                if self.flow_of(at, link).is_none() {
                    self.feed(at, Input::Closed { link, reason: None });
                }
            }
            NtttcpTestEvent::Admitted(run) => self.feed(at, Input::Admitted { run }),
            NtttcpTestEvent::Started(flow) => {
                self.feed(at, Input::Started { flow, settings: &SideSettings::default() });
            }
            NtttcpTestEvent::Written(flow) => self.feed(at, Input::Written { flow }),
            NtttcpTestEvent::Ended(flow, trouble) => {
                let Some(ended) = self.ends[at].flows.get_mut(&flow).filter(|flow| !flow.ended) else {
                    return;
                };
                ended.ended = true;
                let ended = &self.ends[at].flows[&flow];
                let reason = || SystemError { errno: 104, text: "Connection reset by peer".to_owned() };
                let counts = FlowCounts { trouble: trouble.then(reason), ..self.counts(at, ended) };
                self.feed(at, Input::Ended { counts: &counts });
            }
        }
    }

    fn feed(&mut self, at: usize, input: Input<'_>) {
        if self.ends[at].seen.exit.is_some() {
            return;
        }
        self.ends[at].stand_in.input(self.now, input);
        while let Some(output) = self.ends[at].stand_in.output() {
            self.carry_out(at, output);
        }
    }

    fn later(&mut self, at: usize, after: Span, news: NtttcpTestEvent) {
        let time = self.now + after;
        self.ends[at].inbox.push_back((time, news));
    }

    fn carry_out(&mut self, at: usize, output: Output) {
        let none = Span::ZERO;
        match output {
            Output::Print(text) => self.ends[at].seen.printed.push_str(&text),
            Output::PrintError(text) => self.ends[at].seen.complained.push_str(&text),
            Output::WriteFile { name, text, append } => {
                let file = self.ends[at].seen.files.entry(name).or_default();
                *file = if append { format!("{file}{text}") } else { text };
            }
            Output::Exit(code) => {
                self.ends[at].seen.exit = Some(code);
                self.ends[at].seen.exit_at = self.now;
            }
            Output::Listen { link, port, options } => {
                self.ends[at].seen.ports.push(port);
                self.ends[at].listeners.insert(link, (port, options.transport));
                self.later(at, none, NtttcpTestEvent::Opened(link, opened(port, None)));
            }
            Output::Connect { link, port, options, .. } => self.connect(at, link, port, options.transport),
            Output::Send { link, bytes } => self.send(at, link, bytes),
            Output::Close { link } | Output::Reset { link } => self.close(at, link),
            Output::Ask(planned) => self.later(at, none, NtttcpTestEvent::Admitted(planned.run)),
            Output::Reserve { run, .. } => self.later(at, none, NtttcpTestEvent::Admitted(run)),
            Output::Start(task) => self.start(at, *task),
            Output::Stop { flow, how } => {
                self.ends[at].seen.stops.push(how);
                self.stop(at, flow);
                self.later(at, none, NtttcpTestEvent::Ended(flow, false));
            }
            Output::Forget { flow } => drop(self.ends[at].flows.remove(&flow)),
            Output::Look => self.look(at),
            Output::LookHost { .. } => {
                let seconds = self.now.as_ns() / 1_000_000_000;
                let host = HostCounts {
                    cpu: Some([seconds * 50, 0, seconds * 50, seconds * 100, 0, 0, 0, 0]),
                    cores: Some(2),
                    mhz: Some(2000.0),
                    retransmits: Some(seconds),
                    ..HostCounts::default()
                };
                self.ends[at].stand_in.input(self.now, Input::Host(&host));
            }
            _ => {}
        }
    }

    fn look(&mut self, at: usize) {
        let flows: Vec<FlowCounts> = self.ends[at].flows.values().map(|flow| self.counts(at, flow)).collect();
        let elapsed = self.now - Timestamp::START;
        let cpu =
            CpuTime { elapsed, user: Span::from_ns(elapsed.as_ns() / 10), system: Span::ZERO, usage: None };
        self.ends[at].stand_in.input(self.now, Input::Counts { cpu, flows: &flows });
    }

    fn connect(&mut self, at: usize, link: Link, port: u16, transport: Transport) {
        self.ends[at].seen.ports.push(port);
        let wanted = (port, transport);
        let listens = |(other, end): (usize, &NtttcpTestEnd)| {
            let found = end.listeners.iter().find(|(_, listens)| **listens == wanted);
            found.filter(|_| other != at && end.seen.exit.is_none()).map(|(listener, _)| (other, *listener))
        };
        let Some((other, listener)) = self.ends.iter().enumerate().find_map(listens) else {
            if transport == Transport::Udp {
                return self.later(at, Span::ZERO, NtttcpTestEvent::Opened(link, opened(40_000, Some(port))));
            }
            return self.later(at, self.delay, NtttcpTestEvent::NotOpened(link));
        };
        if transport == Transport::Udp {
            self.join([at, other], [link, listener], port);
            return self.later(at, Span::ZERO, NtttcpTestEvent::Opened(link, opened(40_000, Some(port))));
        }
        let theirs = Link(self.ends[other].accepted);
        self.ends[other].accepted += 1;
        self.join([at, other], [link, theirs], port);
        self.later(at, self.delay, NtttcpTestEvent::Opened(link, opened(40_000, Some(port))));
        self.later(
            other,
            self.delay,
            NtttcpTestEvent::Accepted(listener, theirs, opened(port, Some(40_000))),
        );
    }

    fn join(&mut self, ends: [usize; 2], were: [Link; 2], port: u16) {
        self.connections.push(NtttcpTestConnection {
            ends,
            links: were.map(Some),
            were,
            port,
            written: None,
        });
    }

    fn stop(&mut self, at: usize, id: FlowId) {
        let now = self.now;
        let Some(flow) = self.ends[at].flows.get_mut(&id) else {
            return;
        };
        flow.stopped = flow.stopped.or(Some(now));
        let writes = flow.task.side == Side::Sender;
        let links = flow.task.links.clone();
        for connection in self.connections.iter_mut().filter(|_| writes) {
            if connection.ends[0] == at && links.contains(&connection.were[0]) {
                connection.written = connection.written.map(|(from, to)| (from, to.or(Some(now))));
            }
        }
    }

    /// The index and link of the other end, and the port.
    fn peer(&self, at: usize, link: Link) -> Option<(usize, Link, u16)> {
        self.connections.iter().rev().find_map(|connection| {
            let side =
                (0..2).find(|side| connection.ends[*side] == at && connection.links[*side] == Some(link))?;
            Some((connection.ends[1 - side], connection.links[1 - side]?, connection.port))
        })
    }

    fn send(&mut self, at: usize, link: Link, bytes: Vec<u8>) {
        if let Some((other, theirs, port)) = self.peer(at, link) {
            self.ends[at].seen.sent.push((port, bytes.clone()));
            self.later(other, self.delay, NtttcpTestEvent::Bytes(theirs, bytes));
        }
    }

    fn close(&mut self, at: usize, link: Link) {
        self.ends[at].listeners.remove(&link);
        let peer = self.peer(at, link);
        for connection in &mut self.connections {
            for side in 0..2 {
                if connection.ends[side] == at && connection.links[side] == Some(link) {
                    connection.links[side] = None;
                }
            }
        }
        if let Some((other, theirs, _)) = peer {
            self.gone(other, theirs);
        }
    }

    /// A link of an end was closed by its peer.
    fn gone(&mut self, at: usize, link: Link) {
        if let Some(id) = self.flow_of(at, link) {
            if self.ends[at].flows[&id].task.transport == Transport::Tcp {
                self.stop(at, id);
                self.later(at, self.delay, NtttcpTestEvent::Ended(id, true));
            }
        } else {
            self.later(at, self.delay, NtttcpTestEvent::Closed(link));
        }
    }

    fn flow_of(&self, at: usize, link: Link) -> Option<FlowId> {
        let has = |(id, flow): (&FlowId, &NtttcpTestFlow)| flow.task.links.contains(&link).then_some(*id);
        self.ends[at].flows.iter().find_map(has)
    }

    fn start(&mut self, at: usize, task: FlowTask) {
        self.ends[at].seen.tasks.push(task.clone());
        let id = task.flow;
        if let Some(bytes) = task.bytes {
            let each = bytes.get() / task.links.len() as u64;
            self.later(at, Span::from_ns(each * 1_000_000_000 / self.rate), NtttcpTestEvent::Written(id));
        }
        let now = self.now;
        let writes = task.side == Side::Sender;
        for connection in self.connections.iter_mut().filter(|_| writes) {
            if connection.ends[0] == at && task.links.contains(&connection.were[0]) {
                connection.written = Some((now, None));
            }
        }
        self.ends[at].flows.insert(id, NtttcpTestFlow { task, since: now, stopped: None, ended: false });
        self.later(at, Span::ZERO, NtttcpTestEvent::Started(id));
    }

    fn moved(&self, from: Timestamp, to: Timestamp) -> u64 {
        (u128::from(to.since(from).as_ns()) * u128::from(self.rate) / 1_000_000_000) as u64
    }

    /// The counts of a flow; a receiver has counted what its peer has written since it started to read.
    fn counts(&self, at: usize, flow: &NtttcpTestFlow) -> FlowCounts {
        let until = flow.stopped.unwrap_or(self.now);
        let received = |link: Link| {
            let mine = self.connections.iter().rev();
            let mine = mine.filter(|connection| connection.ends[1] == at && connection.were[1] == link);
            let written = mine.filter_map(|connection| connection.written);
            written.map(|(from, to)| self.moved(from.max(flow.since), until.min(to.unwrap_or(until)))).sum()
        };
        let bytes = |link: &Link| match flow.task.side {
            Side::Sender => self.moved(flow.since, until),
            Side::Receiver => received(*link),
        };
        let stream = |link| StreamCounts {
            bytes: bytes(link),
            rtt: Some(Span::from_ns(150_000)),
            ..Default::default()
        };
        let streams = flow.task.links.iter().map(stream).collect();
        FlowCounts { flow: flow.task.flow, at: self.now, streams, ..FlowCounts::default() }
    }

    fn die(&mut self, at: usize) {
        self.ends[at].seen.exit = Some(-9);
        let flows: Vec<FlowId> = self.ends[at].flows.keys().copied().collect();
        for flow in flows {
            self.stop(at, flow);
        }
        let links: Vec<Link> = self
            .connections
            .iter()
            .flat_map(|connection| {
                (0..2).filter(|side| connection.ends[*side] == at).filter_map(|side| connection.links[side])
            })
            .collect();
        for link in links {
            self.close(at, link);
        }
    }
}

fn opened(port: u16, remote: Option<u16>) -> Opened {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let link = Opened::new(address(port), remote.map(address));
    Opened { snd_buf: 16_384, rcv_buf: 131_072, ..link }
}
