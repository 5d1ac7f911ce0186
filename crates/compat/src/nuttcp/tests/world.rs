//! Two stand-ins, a path without delay and an engine that counts, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use linerate_model::{Side, SideSettings, Tally};
use linerate_units::{Bitrate, Span, Timestamp};

use crate::stand_in::{
    Cpu, EndMark, FlowCounts, FlowId, FlowTask, Input, Link, Opened, Output, Planned, StandIn, Stop,
    StreamCounts, SystemError, Transport,
};

/// Rate of a stream without pacing, bit/s.
const LINE_RATE: f64 = 200e6;

#[derive(Debug)]
pub(super) enum Completion {
    Opened(Link),
    Refused(Link),
    Accepted(Link, Link),
    Bytes(Link, Vec<u8>),
    Datagram(Link, Vec<u8>),
    Closed(Link),
    Sent(Link),
    Counts,
    Written(FlowId),
    Ended(FlowId),
    Text(Option<Vec<u8>>),
    Admitted(u32),
}

/// The destination of a link, and the other end's link.
#[derive(Debug, Clone, PartialEq)]
enum Held {
    Listener(u16, Transport),
    Joined(Link),
    Datagrams(u16),
}

#[derive(Debug)]
struct Running {
    task: FlowTask,
    since: Timestamp,
    ended: Option<Timestamp>,
    marks: BTreeMap<Link, u32>,
}

#[derive(Default)]
pub(super) struct End {
    pub(super) stand_in: Option<Box<dyn StandIn>>,
    links: BTreeMap<Link, Held>,
    flows: BTreeMap<FlowId, Running>,
    next: u32,
    events: VecDeque<Completion>,
    pub(super) printed: String,
    pub(super) complained: String,
    pub(super) written: Vec<u8>,
    pub(super) input: VecDeque<Vec<u8>>,
    pub(super) exit: Option<i32>,
    pub(super) said: String,
    pub(super) urgent: Vec<u8>,
    pub(super) asked: Vec<Planned>,
    pub(super) tasks: Vec<FlowTask>,
    pub(super) peer_counted: Vec<Tally>,
    pub(super) datagrams: Vec<(u64, Vec<u8>)>,
    pub(super) troubles: Vec<Option<String>>,
}

/// End 0 is the client, end 1 the server.
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) ends: [End; 2],
    /// One datagram in this number is lost; 0 for none.
    pub(super) lose_every: u64,
    /// Datagrams that begin with these bytes are lost.
    pub(super) lose: Option<&'static [u8]>,
    /// No data connection arrives before this time.
    pub(super) no_data_before: Timestamp,
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn opened() -> Opened {
    Opened {
        local: address(40_000),
        remote: Some(address(50_000)),
        mss: Some(1448),
        handshake: Some(Span::from_ns(90_000)),
        snd_buf: 69_120,
        rcv_buf: 131_072,
        congestion: None,
        descriptor: 5,
    }
}

impl World {
    pub(super) fn new(client: Option<Box<dyn StandIn>>, server: Option<Box<dyn StandIn>>) -> Self {
        let ends = [client, server].map(|stand_in| End { stand_in, next: 1 << 16, ..End::default() });
        Self { now: Timestamp::START, ends, lose_every: 0, lose: None, no_data_before: Timestamp::START }
    }

    /// Runs until nothing happens any more, at most until this second.
    pub(super) fn run(&mut self, until_s: u64) {
        for side in [1, 0] {
            self.give(side, Input::Begin);
            self.settle();
        }
        self.run_on(until_s);
    }

    /// Continues a world that was stopped.
    pub(super) fn run_on(&mut self, until_s: u64) {
        let end = Timestamp::START + Span::from_secs(until_s);
        while let Some(next) = self.next_time().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            for side in [0, 1] {
                self.engine(side);
                if self.ends[side]
                    .stand_in
                    .as_ref()
                    .and_then(|s| s.deadline())
                    .is_some_and(|at| at <= self.now)
                {
                    self.give(side, Input::Tick);
                }
                self.settle();
            }
        }
    }

    /// Delivers a signal to one end at the present time.
    pub(super) fn signal(&mut self, side: usize, number: i32) {
        self.give(side, Input::Signal(number));
        self.settle();
    }

    fn next_time(&self) -> Option<Timestamp> {
        let of = |end: &End| {
            let flows = end.flows.values().filter(|flow| flow.ended.is_none()).filter_map(written_at);
            let deadline = end.exit.is_none().then(|| end.stand_in.as_ref()?.deadline()).flatten();
            flows.filter(|at| *at > self.now).chain(deadline).min()
        };
        self.ends.iter().filter_map(of).min()
    }

    fn settle(&mut self) {
        while let Some(side) = (0..2).find(|side| !self.ends[*side].events.is_empty()) {
            let Some(events) = self.ends[side].events.pop_front() else { continue };
            let opened = opened();
            let flows: Vec<FlowCounts> =
                self.ends[side].flows.keys().map(|flow| self.counts(side, *flow)).collect();
            let cpu = Cpu {
                elapsed: self.now.since(Timestamp::START),
                user: Span::ZERO,
                system: self.now.since(Timestamp::START),
                usage: None,
            };
            let reason = SystemError { errno: 111, text: "Connection refused".to_owned() };
            match &events {
                Completion::Opened(link) => self.give(side, Input::Opened { link: *link, opened }),
                Completion::Refused(link) => self.give(side, Input::NotOpened { link: *link, reason }),
                Completion::Accepted(listener, link) => {
                    self.give(side, Input::Accepted { listener: *listener, link: *link, opened });
                }
                Completion::Bytes(link, bytes) => self.give(side, Input::Bytes { link: *link, bytes }),
                Completion::Datagram(link, bytes) => {
                    self.give(side, Input::Datagram { link: *link, from: address(1), bytes });
                }
                Completion::Closed(link) => self.give(side, Input::Closed { link: *link, reason: None }),
                Completion::Sent(link) => self.give(side, Input::Sent { link: *link }),
                Completion::Counts => self.give(side, Input::Counts { cpu: cpu_half(cpu), flows: &flows }),
                Completion::Written(flow) => self.give(side, Input::Written { flow: *flow }),
                Completion::Ended(flow) => {
                    let counts = self.counts(side, *flow);
                    self.give(side, Input::Ended { counts: &counts });
                }
                Completion::Text(block) => self.give(side, Input::Text(block.as_deref())),
                Completion::Admitted(run) => self.give(side, Input::Admitted { run: *run }),
            }
        }
    }

    fn give(&mut self, side: usize, input: Input<'_>) {
        let Some(mut stand_in) = self.ends[side].stand_in.take().filter(|_| self.ends[side].exit.is_none())
        else {
            return;
        };
        stand_in.input(self.now, input);
        while let Some(output) = stand_in.output() {
            self.execute(side, output);
        }
        self.ends[side].stand_in = Some(stand_in);
    }

    fn execute(&mut self, side: usize, output: Output) {
        let end = &mut self.ends[side];
        match output {
            Output::Connect { link, port, options, .. } => self.connect(side, link, port, options.transport),
            Output::Listen { link, port, options } => {
                let held = match options.transport {
                    Transport::Udp => Held::Datagrams(port),
                    transport => Held::Listener(port, transport),
                };
                end.links.insert(link, held);
                end.events.push_back(Completion::Opened(link));
            }
            Output::Send { link, bytes } => self.send(side, link, bytes),
            Output::Urgent { byte, .. } => end.urgent.push(byte),
            Output::FinishWriting { link } => {
                if let Some(Held::Joined(other)) = end.links.get(&link).cloned() {
                    self.ends[1 - side].events.push_back(Completion::Closed(other));
                }
            }
            Output::Close { link } | Output::Reset { link } => self.close(side, link),
            Output::Ask(planned) => {
                end.events.push_back(Completion::Admitted(planned.run));
                end.asked.push(*planned);
            }
            Output::Plan(planned) => end.asked.push(*planned),
            Output::Start(task) => self.start(side, *task),
            Output::Stop { flow, how } => self.stop(side, flow, how),
            // The counts of a sender are kept, because those of its receiver are computed from them.
            Output::Forget { .. } => {}
            Output::Look => end.events.push_back(Completion::Counts),
            Output::PeerCounted { tally, .. } => end.peer_counted.push(*tally),
            Output::RunOver { trouble, .. } => end.troubles.push(trouble),
            Output::Print(text) => end.printed += &text,
            Output::Complain(text) => end.complained += &text,
            Output::Read => {
                let block = end.input.pop_front();
                end.events.push_back(Completion::Text(block));
            }
            Output::Write(bytes) => end.written.extend(bytes),
            Output::Exit(code) => end.exit = Some(code),
            other => panic!("not expected: {other:?}"),
        }
    }

    fn connect(&mut self, side: usize, link: Link, port: u16, transport: Transport) {
        if transport == Transport::Udp {
            self.ends[side].links.insert(link, Held::Datagrams(port));
            self.ends[side].events.push_back(Completion::Opened(link));
            return;
        }
        let wanted = Held::Listener(port, Transport::Tcp);
        let listener =
            self.ends[1 - side].links.iter().find(|(_, held)| **held == wanted).map(|(link, _)| *link);
        let data = port != 5000;
        let Some(listener) = listener.filter(|_| !(data && self.now < self.no_data_before)) else {
            self.ends[side].events.push_back(Completion::Refused(link));
            return;
        };
        let other = &mut self.ends[1 - side];
        let accepted = Link(other.next);
        other.next += 1;
        other.links.insert(accepted, Held::Joined(link));
        other.events.push_back(Completion::Accepted(listener, accepted));
        self.ends[side].links.insert(link, Held::Joined(accepted));
        self.ends[side].events.push_back(Completion::Opened(link));
    }

    fn send(&mut self, side: usize, link: Link, bytes: Vec<u8>) {
        match self.ends[side].links.get(&link).cloned() {
            Some(Held::Joined(other)) => {
                self.ends[side].said += &String::from_utf8_lossy(&bytes);
                self.ends[side].events.push_back(Completion::Sent(link));
                self.ends[1 - side].events.push_back(Completion::Bytes(other, bytes));
            }
            Some(Held::Datagrams(port)) => {
                let at = self.now.since(Timestamp::START).as_ns() / 1_000_000;
                self.ends[side].datagrams.push((at, bytes.clone()));
                if self.lose.is_some_and(|start| bytes.starts_with(start)) {
                    return;
                }
                let other = &mut self.ends[1 - side];
                let to = other.links.iter().find(|(_, held)| **held == Held::Datagrams(port));
                let Some(to) = to.map(|(link, _)| *link) else { return };
                let lent = other
                    .flows
                    .iter_mut()
                    .find(|(_, flow)| flow.ended.is_none() && flow.task.links.contains(&to));
                let Some((number, flow)) = lent else {
                    return other.events.push_back(Completion::Datagram(to, bytes));
                };
                let marks = flow.marks.entry(to).or_default();
                *marks += 1;
                let EndMark::Short { nth, .. } = flow.task.end_mark else { return };
                if *marks == nth && flow.task.links.len() == 1 {
                    flow.ended = Some(self.now);
                    other.events.push_back(Completion::Ended(*number));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, side: usize, link: Link) {
        let Some(Held::Joined(other)) = self.ends[side].links.remove(&link) else { return };
        if self.ends[1 - side].links.contains_key(&other) {
            self.ends[1 - side].events.push_back(Completion::Closed(other));
        }
    }

    fn start(&mut self, side: usize, task: FlowTask) {
        let end = &mut self.ends[side];
        let flow = task.flow;
        end.tasks.push(task.clone());
        end.flows.insert(flow, Running { task, since: self.now, ended: None, marks: BTreeMap::new() });
        let settings = SideSettings::default();
        // The real driver delivers this as a separate input; here it is sufficient to deliver it now.
        if let Some(stand_in) = &mut self.ends[side].stand_in {
            stand_in.input(self.now, Input::Started { flow, settings: &settings });
        }
    }

    fn stop(&mut self, side: usize, flow: FlowId, how: Stop) {
        let now = self.now;
        let end = &mut self.ends[side];
        let Some(running) = end.flows.get_mut(&flow).filter(|flow| flow.ended.is_none()) else { return };
        running.ended = Some(now);
        end.events.push_back(Completion::Ended(flow));
        let tcp = running.task.transport == Transport::Tcp;
        if tcp && how != Stop::AtOnce {
            let partner = self.partner(side, flow);
            let other = &mut self.ends[1 - side];
            let theirs = partner.and_then(|flow| other.flows.get_mut(&flow));
            if let Some(running) = theirs.filter(|running| running.ended.is_none()) {
                running.ended = Some(now);
                other.events.extend(partner.map(Completion::Ended));
            }
        }
    }

    /// Reports senders that have written everything.
    fn engine(&mut self, side: usize) {
        let now = self.now;
        let end = &mut self.ends[side];
        let done = end.flows.iter().filter(|(_, flow)| flow.ended.is_none() && written_at(flow) == Some(now));
        let done: Vec<FlowId> = done.map(|(flow, _)| *flow).collect();
        end.events.extend(done.into_iter().map(Completion::Written));
    }

    /// The flow at the other end of this one.
    fn partner(&self, side: usize, flow: FlowId) -> Option<FlowId> {
        let task = &self.ends[side].flows.get(&flow)?.task;
        if task.transport == Transport::Udp {
            return self.ends[1 - side].flows.keys().next().copied();
        }
        let Held::Joined(other) = self.ends[side].links.get(task.links.first()?)? else { return None };
        let flows = &self.ends[1 - side].flows;
        flows.iter().find(|(_, flow)| flow.task.links.contains(other)).map(|(number, _)| *number)
    }

    fn counts(&self, side: usize, flow: FlowId) -> FlowCounts {
        let running = &self.ends[side].flows[&flow];
        let sender = if running.task.side == Side::Sender {
            Some(running)
        } else {
            self.ends[1 - side].flows.values().find(|flow| flow.task.side == Side::Sender)
        };
        let until = running.ended.unwrap_or(self.now);
        let blocks = sender.map_or(0, |sender| blocks_at(sender, until.min(sender.ended.unwrap_or(until))));
        let length = running.task.length.get();
        let receives = running.task.side == Side::Receiver;
        let lost = if receives && self.lose_every > 0 { blocks / self.lose_every } else { 0 };
        let stream = StreamCounts {
            bytes: (blocks - lost) * length,
            calls: blocks - lost,
            packets: blocks - lost,
            highest: blocks,
            lost,
            retransmits: (!receives).then_some(3),
            snd_cwnd: (!receives).then_some(247 * 1024),
            ended: running.marks.values().any(|marks| *marks >= 2),
            ..StreamCounts::default()
        };
        let last = sender.and_then(written_at).map_or(until, |at| at.min(until));
        FlowCounts {
            flow,
            at: self.now,
            first_at: Some(running.since),
            last_at: (blocks > 0).then_some(last),
            streams: vec![stream; running.task.links.len()],
            ..FlowCounts::default()
        }
    }
}

fn cpu_half(cpu: Cpu) -> Cpu {
    Cpu { system: Span::from_ns(cpu.system.as_ns() / 2), ..cpu }
}

fn rate(task: &FlowTask) -> f64 {
    task.offered.map_or(LINE_RATE, Bitrate::bps)
}

/// Number of blocks that each stream has sent by this time.
fn blocks_at(flow: &Running, at: Timestamp) -> u64 {
    let at = written_at(flow).map_or(at, |end| at.min(end));
    let sent = at.since(flow.since).as_secs_f64() * rate(&flow.task) / 8.0 / flow.task.length.get() as f64;
    (sent + 1e-6) as u64
}

/// When the sender stops by itself.
fn written_at(flow: &Running) -> Option<Timestamp> {
    if flow.task.side == Side::Receiver {
        return None;
    }
    let streams = flow.task.links.len() as f64;
    let bytes = flow.task.bytes.map(|bytes| bytes.get() as f64 / streams * 8.0 / rate(&flow.task));
    let by_bytes = bytes.and_then(Span::from_secs_f64);
    match (by_bytes, flow.task.time) {
        (Some(a), Some(b)) => Some(flow.since + a.min(b)),
        (a, b) => a.or(b).map(|span| flow.since + span),
    }
}
