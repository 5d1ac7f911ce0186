//! Two stand-ins, their exchanges and the path between them, in virtual time.

use std::collections::{BTreeMap, VecDeque};

use linerate_model::SizePoint;
use linerate_units::{Span, Timestamp};

use crate::stand_in::{Exchange, Exchanged, Input, Link, Output, StandIn, SystemError};

/// What a user sees of one end.
#[derive(Debug, Default)]
pub(super) struct NetpipeObserved {
    pub(super) printed: String,
    pub(super) complained: String,
    pub(super) files: BTreeMap<String, String>,
    pub(super) points: Vec<SizePoint>,
    pub(super) exit: Option<i32>,
    /// Lengths of the messages sent, in order.
    pub(super) sent: Vec<usize>,
    pub(super) connections: usize,
}

struct NetpipeTestEnd {
    stand_in: Box<dyn StandIn>,
    now: Timestamp,
    /// The running exchange, with its start and its progress.
    doing: Option<Doing>,
    seen: NetpipeObserved,
}

struct Doing {
    exchange: Exchange,
    since: Timestamp,
    left: u32,
    sent: bool,
    got: Vec<u8>,
    got_all: bool,
}

/// One direction of one connection.
#[derive(Default)]
struct NetpipeTestPipe {
    bytes: VecDeque<u8>,
    arrived: Timestamp,
    closed: bool,
}

/// A path with this one-way delay and rate.
pub(super) struct NetpipeWorld {
    ends: [NetpipeTestEnd; 2],
    pub(super) delay: Span,
    pub(super) ns_per_byte: u64,
    /// The link numbers of a connection at the two ends, and its directions by sender.
    connections: Vec<([Link; 2], [NetpipeTestPipe; 2])>,
    listening: bool,
    /// The connection that the receiver's host resets before anything is exchanged, counted from 1.
    pub(super) resets: Option<usize>,
    /// Number of messages after which the receiver vanishes.
    pub(super) dies_after: Option<usize>,
    /// The message of the receiver, counted from 1, whose first byte is changed.
    pub(super) damages: Option<usize>,
}

const TRANSMITTER: usize = 0;
const RECEIVER: usize = 1;

impl NetpipeWorld {
    pub(super) fn new(transmitter: impl StandIn + 'static, receiver: impl StandIn + 'static) -> Self {
        let end = |stand_in: Box<dyn StandIn>| NetpipeTestEnd {
            stand_in,
            now: Timestamp::START,
            doing: None,
            seen: NetpipeObserved::default(),
        };
        Self {
            ends: [end(Box::new(transmitter)), end(Box::new(receiver))],
            delay: Span::from_ns(2_000),
            ns_per_byte: 1,
            connections: Vec::new(),
            listening: false,
            resets: None,
            dies_after: None,
            damages: None,
        }
    }

    /// Runs both ends until nothing happens any more.
    pub(super) fn run(mut self) -> (NetpipeObserved, NetpipeObserved) {
        for at in [RECEIVER, TRANSMITTER] {
            self.feed(at, Input::Begin);
        }
        for _ in 0..10_000_000 {
            if !(self.exchange(TRANSMITTER) | self.exchange(RECEIVER)) && !self.wait() {
                let [transmitter, receiver] = self.ends;
                return (transmitter.seen, receiver.seen);
            }
        }
        panic!("the two ends never come to rest");
    }

    fn feed(&mut self, at: usize, input: Input<'_>) {
        let end = &mut self.ends[at];
        if end.seen.exit.is_some() {
            return;
        }
        end.stand_in.input(end.now, input);
        while let Some(output) = self.ends[at].stand_in.output() {
            self.carry_out(at, output);
        }
    }

    fn carry_out(&mut self, at: usize, output: Output) {
        let now = self.ends[at].now;
        let seen = &mut self.ends[at].seen;
        match output {
            Output::Print(text) => seen.printed.push_str(&text),
            Output::PrintError(text) => seen.complained.push_str(&text),
            Output::WriteFile { name, text, append } => {
                let file = seen.files.entry(name).or_default();
                *file = if append { format!("{file}{text}") } else { text };
            }
            Output::Point { point, .. } => seen.points.push(*point),
            Output::Exit(code) => seen.exit = Some(code),
            Output::Listen { link, .. } => {
                self.listening |= at == RECEIVER;
                self.feed(at, Input::Opened { link, opened: super::opened() });
            }
            Output::Connect { link, .. } => self.connect(link),
            Output::Ask(planned) => self.feed(at, Input::Admitted { run: planned.run }),
            Output::Close { link } | Output::Reset { link } => self.close(at, link),
            Output::Exchange(exchange) => {
                let left = exchange.repeats;
                self.ends[at].doing = Some(Doing {
                    exchange: *exchange,
                    since: now,
                    left,
                    sent: false,
                    got: Vec::new(),
                    got_all: false,
                });
            }
            _ => {}
        }
    }

    fn connect(&mut self, link: Link) {
        let count = self.ends[TRANSMITTER].seen.connections + 1;
        if !self.listening || self.ends[RECEIVER].seen.exit.is_some() {
            let reason = SystemError { errno: 111, text: "Connection refused".to_owned() };
            return self.feed(TRANSMITTER, Input::NotOpened { link, reason });
        }
        self.ends[TRANSMITTER].seen.connections = count;
        let theirs = Link(Link::FIRST_ACCEPTED.0 + count as u32);
        let mut pipes = [NetpipeTestPipe::default(), NetpipeTestPipe::default()];
        if self.resets == Some(count) {
            pipes[RECEIVER].closed = true;
            self.connections.push(([link, Link(u32::MAX)], pipes));
        } else {
            self.connections.push(([link, theirs], pipes));
            self.ends[RECEIVER].now = self.ends[RECEIVER].now.max(self.ends[TRANSMITTER].now);
            let opened = super::opened();
            self.feed(RECEIVER, Input::Accepted { listener: Link(0), link: theirs, opened });
        }
        self.feed(TRANSMITTER, Input::Opened { link, opened: super::opened() });
    }

    fn close(&mut self, at: usize, link: Link) {
        for (links, pipes) in &mut self.connections {
            if links[at] == link {
                pipes[at].closed = true;
                links[at] = Link(u32::MAX);
            }
        }
    }

    /// Moves all bytes that can be moved; true if there were any.
    fn exchange(&mut self, at: usize) -> bool {
        let Some(mut doing) = self.ends[at].doing.take() else {
            return false;
        };
        if self.ends[at].seen.exit.is_some() {
            return false;
        }
        let Some((_, pipes)) =
            self.connections.iter_mut().rev().find(|(links, _)| links[at] == doing.exchange.link)
        else {
            panic!("an exchange on a link that is not open");
        };
        let [first, second] = pipes;
        let (out, into) = if at == TRANSMITTER { (first, second) } else { (second, first) };
        let end = &mut self.ends[at];
        let begun = (doing.left, doing.sent, doing.got.len(), doing.got_all);
        let may_send = doing.exchange.sends_first || doing.got_all || doing.exchange.receive.get() == 0;
        let length = doing.exchange.send.get() as usize;
        if !doing.sent && may_send && length > 0 {
            let mut message = doing.exchange.head.clone();
            message.resize(length, 0);
            end.seen.sent.push(length);
            if at == RECEIVER && self.damages == Some(end.seen.sent.len()) {
                message[0] ^= 0x40;
            }
            out.bytes.extend(message);
            let transmission = Span::from_ns(length as u64 * self.ns_per_byte);
            out.arrived = out.arrived.max(end.now) + transmission;
            end.now = end.now + transmission;
        }
        doing.sent |= may_send || length == 0;
        let wanted = doing.exchange.receive.get() as usize;
        if !doing.got_all && (doing.sent || !doing.exchange.sends_first) {
            let more = into.bytes.len().min(wanted - doing.got.len());
            doing.got.extend(into.bytes.drain(..more));
            doing.got_all = doing.got.len() == wanted;
            if doing.got_all && wanted > 0 {
                end.now = end.now.max(into.arrived + self.delay);
            }
        }
        let dead = !doing.got_all && into.closed && into.bytes.is_empty();
        let moved = begun != (doing.left, doing.sent, doing.got.len(), doing.got_all);
        if doing.sent && doing.got_all {
            doing.left -= 1;
            if doing.left == 0 {
                return self.exchanged(at, doing);
            }
            (doing.sent, doing.got_all) = (false, false);
            doing.got.clear();
        }
        if at == RECEIVER && self.dies_after.is_some_and(|after| self.ends[at].seen.sent.len() >= after) {
            self.ends[at].seen.exit = Some(-9);
            let link = doing.exchange.link;
            self.close(at, link);
            return true;
        }
        if dead {
            let reason = SystemError { errno: 104, text: "Connection reset by peer".to_owned() };
            self.feed(at, Input::Exchanged { link: doing.exchange.link, result: Err(reason) });
            return true;
        }
        self.ends[at].doing = Some(doing);
        moved
    }

    fn exchanged(&mut self, at: usize, doing: Doing) -> bool {
        let elapsed = self.ends[at].now - doing.since;
        let result = Ok(Exchanged { elapsed, last: doing.got, ..Exchanged::default() });
        self.feed(at, Input::Exchanged { link: doing.exchange.link, result });
        true
    }

    /// Advances to the next deadline; false if there is none.
    fn wait(&mut self) -> bool {
        let end_of = |end: &NetpipeTestEnd| {
            let given_up = end.doing.as_ref().map(|doing| doing.since + doing.exchange.timeout);
            let due = [given_up, end.stand_in.deadline()].into_iter().flatten().min();
            due.filter(|_| end.seen.exit.is_none())
        };
        let due = [end_of(&self.ends[0]), end_of(&self.ends[1])];
        let at = if due[1].is_some() && (due[0].is_none() || due[1] < due[0]) { 1 } else { 0 };
        let Some(due) = due[at] else {
            return false;
        };
        self.ends[at].now = self.ends[at].now.max(due);
        if self.ends[at].stand_in.deadline().is_some_and(|deadline| deadline <= due) {
            self.feed(at, Input::Tick);
        } else if let Some(doing) = self.ends[at].doing.take() {
            let reason = SystemError { errno: 110, text: "Connection timed out".to_owned() };
            self.feed(at, Input::Exchanged { link: doing.exchange.link, result: Err(reason) });
        }
        true
    }
}
