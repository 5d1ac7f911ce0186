//! A stand-in against a peer and a clock that misbehave, on a host that honours the contract of `StandIn`: it
//! answers only what it was asked, in any order and at any time, with anything that a system can report.
//!
//! The bytes are a script: each step is one byte that selects what happens, followed by its arguments.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_compat::stand_in::{
    ConnectionCounts, CpuTime, Exchange, Exchanged, FlowCounts, FlowId, FlowTask, HostCounts, Input, Link,
    Opened, Output, RunId, StandIn, StreamCounts, SystemError, Transport,
};
use linerate_model::SideSettings;
use linerate_units::{Span, Timestamp};

use crate::script::Script;

/// Most requests to the host: a stand-in that makes more is in an endless loop.
const MAX_REQUESTS: usize = 20_000;

/// Runs a stand-in through a script until one of them ends; returns whether the stand-in or one of its runs was
/// completed.
pub(crate) fn play(stand_in: impl StandIn, script: &[u8]) -> bool {
    let host = run(stand_in, script);
    host.over || host.finished > 0
}

/// The same; returns the number of runs that were completed without an error.
pub(crate) fn completed(stand_in: impl StandIn, script: &[u8]) -> u32 {
    run(stand_in, script).untroubled
}

fn run<S: StandIn>(stand_in: S, script: &[u8]) -> NoisyHost<S> {
    let mut host = NoisyHost {
        stand_in,
        now: Timestamp::START,
        opening: Vec::new(),
        open: BTreeMap::new(),
        adopting: Vec::new(),
        accepted: Link::FIRST_ACCEPTED.0,
        exchanges: Vec::new(),
        asked: Vec::new(),
        starting: Vec::new(),
        running: BTreeMap::new(),
        reading: 0,
        moved: 0,
        finished: 0,
        untroubled: 0,
        over: false,
    };
    host.feed(Input::Begin);
    let mut script = Script { rest: script };
    while let Some(step) = script.byte().filter(|_| !host.over) {
        if host.step(step, &mut script).is_none() {
            break;
        }
    }
    host
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    listens: bool,
    udp: bool,
}

const CONNECTION: Kind = Kind { listens: false, udp: false };

struct NoisyHost<S> {
    stand_in: S,
    now: Timestamp,
    opening: Vec<(Link, Kind)>,
    open: BTreeMap<Link, Kind>,
    adopting: Vec<(Link, SocketAddr)>,
    accepted: u32,
    exchanges: Vec<Exchange>,
    asked: Vec<RunId>,
    starting: Vec<FlowTask>,
    running: BTreeMap<FlowId, FlowTask>,
    /// Number of requested blocks of standard input.
    reading: usize,
    /// Added to the counts of all flows.
    moved: u64,
    /// Ended runs, and those of them without an error.
    finished: u32,
    untroubled: u32,
    over: bool,
}

impl<S: StandIn> NoisyHost<S> {
    /// One step; `None` when the script has ended.
    fn step(&mut self, step: u8, script: &mut Script<'_>) -> Option<()> {
        match step % 16 {
            0 | 1 => self.opened(script.byte()?),
            2 => self.accept(script.byte()?),
            3 => self.bytes(script.byte()?, script.some()?),
            4 => self.close(script.byte()?),
            5 | 6 => self.exchanged(script.byte()?, script.some()?),
            7 => self.admit(script.byte()?),
            8 => self.flow(script.byte()?, script.byte()?),
            9 => self.pass(Span::from_ms(u64::from(script.byte()?) * 20)),
            10 => self.pass(Span::from_secs(u64::from(script.byte()?))),
            11 => self.interrupt(script.byte()?),
            12 => self.datagram(script.byte()?, script.some()?),
            13 => self.text(script.some()?),
            14 => self.sent(script.byte()?),
            _ => self.moved = self.moved.wrapping_add(1 << (script.byte()? % 64)),
        }
        Some(())
    }

    fn opened(&mut self, which: u8) {
        if let Some((listener, peer)) = pick(&mut self.adopting, which) {
            return self.accepted(listener, peer, true);
        }
        let Some((link, kind)) = pick(&mut self.opening, which) else {
            return;
        };
        if which >= 240 {
            self.open.remove(&link);
            return self.feed(Input::NotOpened { link, reason: reason(which) });
        }
        self.open.insert(link, kind);
        self.feed(Input::Opened { link, opened: opened(address(0), which) });
    }

    fn accept(&mut self, which: u8) {
        if let Some(listener) = self.nth(which, Kind { listens: true, udp: false }) {
            self.accepted(listener, address(which), false);
        }
    }

    fn accepted(&mut self, listener: Link, peer: SocketAddr, udp: bool) {
        let link = Link(self.accepted);
        self.accepted += 1;
        self.open.insert(link, Kind { listens: false, udp });
        self.feed(Input::Accepted { listener, link, opened: opened(peer, 0) });
    }

    fn nth(&self, which: u8, wanted: Kind) -> Option<Link> {
        let links: Vec<Link> =
            self.open.iter().filter(|(_, kind)| **kind == wanted).map(|(link, _)| *link).collect();
        links.get(usize::from(which).checked_rem(links.len())?).copied()
    }

    /// A link that neither a flow nor an exchange uses.
    fn idle(&self, which: u8, kind: Kind) -> Option<Link> {
        let link = self.nth(which, kind)?;
        let flows = self.starting.iter().chain(self.running.values());
        let taken = flows.flat_map(|task| &task.links).any(|taken| *taken == link);
        (!taken && self.exchanges.iter().all(|exchange| exchange.link != link)).then_some(link)
    }

    fn bytes(&mut self, which: u8, bytes: &[u8]) {
        if let Some(link) = self.idle(which, CONNECTION) {
            self.feed(Input::Bytes { link, bytes });
        }
    }

    /// A datagram at a listener, or at a socket with a peer.
    fn datagram(&mut self, which: u8, bytes: &[u8]) {
        let kind = Kind { listens: which.is_multiple_of(2), udp: true };
        if let Some(link) = self.idle(which / 2, kind) {
            self.feed(Input::Datagram { link, from: address(which % 8), bytes });
        }
    }

    fn text(&mut self, block: &[u8]) {
        if self.reading > 0 {
            self.reading -= 1;
            self.feed(Input::Text((!block.is_empty()).then_some(block)));
        }
    }

    fn sent(&mut self, which: u8) {
        if let Some(link) = self.idle(which, CONNECTION) {
            self.feed(Input::Sent { link });
        }
    }

    fn close(&mut self, which: u8) {
        if let Some(link) = self.idle(which, CONNECTION) {
            self.feed(Input::Closed { link, reason: which.is_multiple_of(4).then(|| reason(which)) });
        }
    }

    /// A regular answer contains what was requested; the script makes it right or wrong.
    fn exchanged(&mut self, which: u8, bytes: &[u8]) {
        let Some(exchange) = pick(&mut self.exchanges, which) else {
            return;
        };
        let result = if which >= 240 {
            Err(reason(which))
        } else {
            let mut last = if bytes.is_empty() { exchange.head.clone() } else { bytes.to_vec() };
            last.resize(exchange.receive.get().min(1 << 20) as usize, 0);
            let elapsed = Span::from_ns(1 << (which % 40));
            self.now = self.now + elapsed;
            Ok(Exchanged { elapsed, last, ..Exchanged::default() })
        };
        self.feed(Input::Exchanged { link: exchange.link, result });
    }

    fn admit(&mut self, which: u8) {
        if let Some(run) = pick(&mut self.asked, which) {
            if which >= 240 {
                self.feed(Input::Refused { run, why: "busy".to_owned(), may_retry: which.is_multiple_of(2) });
            } else {
                self.feed(Input::Admitted { run });
            }
        }
    }

    fn flow(&mut self, what: u8, which: u8) {
        if let Some(task) = pick(&mut self.starting, which) {
            let flow = task.flow;
            if what >= 240 {
                self.lose(&task);
                return self.feed(Input::NotStarted { flow, reason: reason(what) });
            }
            self.running.insert(flow, task);
            return self.feed(Input::Started { flow, settings: &SideSettings::default() });
        }
        let flows: Vec<FlowId> = self.running.keys().copied().collect();
        let at = usize::from(which).checked_rem(flows.len());
        let Some(flow) = at.and_then(|at| flows.get(at)).copied() else {
            return;
        };
        if what.is_multiple_of(3) {
            self.feed(Input::Written { flow });
        } else if let Some(task) = self.running.remove(&flow) {
            let trouble = what.is_multiple_of(2).then(|| reason(what));
            let counts = FlowCounts { trouble, ..self.counts(&task, u64::from(which) << 20, which) };
            self.feed(Input::Ended { counts: &counts });
        }
    }

    fn lose(&mut self, task: &FlowTask) {
        for link in &task.links {
            self.open.remove(link);
        }
    }

    fn counts(&self, task: &FlowTask, bytes: u64, which: u8) -> FlowCounts {
        let bytes = self.moved.wrapping_add(bytes);
        let packets = (bytes / 7).max(1);
        let stream = StreamCounts {
            bytes,
            calls: packets,
            packets,
            highest: packets,
            lost: bytes % 5,
            jitter: Span::from_ns(bytes),
            retransmits: Some(bytes),
            snd_cwnd: Some(bytes),
            connection: Some(ConnectionCounts { bytes_acknowledged: bytes, ..ConnectionCounts::default() }),
            ended: which % 5 == 4,
            ..StreamCounts::default()
        };
        FlowCounts {
            flow: task.flow,
            at: self.now,
            first_at: (which % 8 != 3).then_some(Timestamp::START),
            last_at: (which % 8 != 5).then_some(self.now),
            streams: vec![stream; task.links.len()],
            marks: vec![Some(vec![0xff; usize::from(which % 40)]); task.links.len()],
            ..FlowCounts::default()
        }
    }

    fn interrupt(&mut self, which: u8) {
        match which {
            0 => self.feed(Input::Signal(2)),
            30..60 => self.feed(Input::Signal(i32::from(which % 16))),
            1..30 => self.feed(Input::NotWritten { name: "a file".to_owned(), reason: reason(which) }),
            _ => self.feed(Input::Tick),
        }
    }

    /// Advances the clock, with a tick at every deadline on the way.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(deadline) =
            self.stand_in.deadline().filter(|deadline| *deadline <= until && !self.over)
        {
            self.now = self.now.max(deadline);
            self.feed(Input::Tick);
            let next = self.stand_in.deadline();
            assert!(
                self.over || next.is_none_or(|next| next > self.now),
                "a tick at its deadline must move the deadline"
            );
        }
        self.now = self.now.max(until);
    }

    fn feed(&mut self, input: Input<'_>) {
        self.stand_in.input(self.now, input);
        for _ in 0..MAX_REQUESTS {
            match self.stand_in.output() {
                Some(output) => self.carry_out(output),
                None => return,
            }
        }
        panic!("a stand-in never stops asking");
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Connect { link, options, .. } => self.open_link(link, false, options.transport),
            Output::Listen { link, options, .. } => self.open_link(link, true, options.transport),
            Output::Adopt { listener, peer, .. } => self.adopting.push((listener, peer)),
            Output::Tune { link, .. } => self.opening.extend(self.open.get(&link).map(|kind| (link, *kind))),
            Output::Close { link } | Output::Reset { link } | Output::Discard { link } => {
                self.opening.retain(|(other, _)| *other != link);
                self.adopting.retain(|(listener, _)| *listener != link);
                self.exchanges.retain(|exchange| exchange.link != link);
                self.open.remove(&link);
            }
            Output::Reserve { run, .. } => self.asked.push(run),
            Output::Ask(planned) => self.asked.push(planned.run),
            Output::Exchange(exchange) => {
                assert_eq!(self.open.get(&exchange.link), Some(&CONNECTION), "it must be open");
                let busy = self.exchanges.iter().any(|other| other.link == exchange.link);
                assert!(!busy, "one exchange at a time");
                self.exchanges.push(*exchange);
            }
            Output::Start(task) => {
                assert!(!self.running.contains_key(&task.flow), "a flow's number must be free");
                assert!(!task.links.is_empty(), "a flow needs links");
                self.starting.push(*task);
            }
            Output::Look => {
                let running = self.running.values();
                let flows: Vec<FlowCounts> = running.map(|task| self.counts(task, 1 << 30, 0)).collect();
                self.stand_in.input(self.now, Input::Counts { cpu: CpuTime::default(), flows: &flows });
            }
            Output::LookLink { link } => {
                let connection =
                    ConnectionCounts { bytes_acknowledged: self.moved, ..ConnectionCounts::default() };
                let counts = StreamCounts { connection: Some(connection), ..StreamCounts::default() };
                let counts = self.open.contains_key(&link).then_some(&counts);
                self.stand_in.input(self.now, Input::LinkCounts { link, counts });
            }
            Output::LookHost { .. } => self.stand_in.input(self.now, Input::Host(&HostCounts::default())),
            Output::Read => self.reading += 1,
            Output::RunOver { trouble, .. } => {
                self.finished += 1;
                self.untroubled += u32::from(trouble.is_none());
            }
            Output::Exit(_) => self.over = true,
            _ => {}
        }
    }

    fn open_link(&mut self, link: Link, listens: bool, transport: Transport) {
        assert!(
            link < Link::FIRST_ACCEPTED && !self.open.contains_key(&link),
            "a link's number must be free"
        );
        self.opening.push((link, Kind { listens, udp: transport == Transport::Udp }));
    }
}

fn pick<T>(from: &mut Vec<T>, which: u8) -> Option<T> {
    let at = usize::from(which).checked_rem(from.len())?;
    Some(from.remove(at))
}

fn reason(which: u8) -> SystemError {
    let errno = [0, 2, 32, 104, 110, 111].get(usize::from(which) % 6).copied().unwrap_or(0);
    SystemError { errno, text: "trouble".to_owned() }
}

fn address(which: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, which / 128], 4_000 + u16::from(which)))
}

fn opened(peer: SocketAddr, which: u8) -> Opened {
    let (snd_buf, rcv_buf) =
        [(100, 200), (0, u64::MAX), (u64::MAX, 1), (1 << 20, 1 << 20)][usize::from(which % 4)];
    Opened { mss: Some(1448), snd_buf, rcv_buf, descriptor: 3, ..Opened::new(address(0), Some(peer)) }
}

/// Steps in which a connection receives these bytes, in pieces of the longest length that a step has.
pub(crate) fn received(which: u8, bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(255).flat_map(|piece| [&[3, which, piece.len() as u8], piece].concat()).collect()
}
