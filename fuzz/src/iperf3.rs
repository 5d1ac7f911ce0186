//! iperf3: its messages, and both roles against a peer, a host and a clock that misbehave.
//!
//! The bytes of a role are a script: each step is one byte that selects what happens, followed by its
//! arguments. Random bytes alone would end at the first message; a script also contains whole messages in any
//! order. The host honours the contract of `StandIn`: it answers only what it was asked, in any order and at
//! any time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use linerate_compat::iperf3::client::{Client, ClientConfig};
use linerate_compat::iperf3::params::{Limits, Params};
use linerate_compat::iperf3::report::Host as HostFacts;
use linerate_compat::iperf3::results::Results;
use linerate_compat::iperf3::server::{Server, ServerConfig};
use linerate_compat::iperf3::settings::{EndCondition, Settings};
use linerate_compat::iperf3::wire::{self, Cookie, take_message};
use linerate_compat::stand_in::{
    Cpu, FlowCounts, FlowId, FlowTask, Input, Link, Opened, Output, RunId, StandIn, StreamCounts, SystemError,
};
use linerate_units::{Span, Timestamp};

use crate::dialogue::frame;
use crate::script::Script;

/// Most outputs of a stand-in after one input: more is an endless loop.
const MAX_OUTPUTS: usize = 5_000;

/// Messages, states and cookies of which scripts are composed.
const WORDS: &[&[u8]] = &[
    COOKIE,
    b"{\"tcp\":true,\"time\":1,\"len\":4096}",
    b"{\"udp\":true,\"time\":1,\"len\":1000,\"parallel\":2,\"bidirectional\":true}",
    b"{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":0,\"sender_has_retransmits\":1,\"streams\":[{\"id\":1,\"bytes\":4096,\"retransmits\":0,\"jitter\":0,\"errors\":0,\"packets\":0}]}",
    b"{\"tcp\":true,\"num\":40000,\"time\":0,\"len\":4096,\"reverse\":true,\"omit\":1,\"get_server_output\":1}",
];
const COOKIE: &[u8] = b"abcdefghijklmnopqrstuvwxyz2345672345\0";

/// Parameters that decode encode to the same parameters again; those that pass the check are consistent.
pub fn iperf3_params(bytes: &[u8]) {
    let Some(params) = Params::read(bytes) else { return };
    assert_eq!(Params::read(&params.write()).as_ref(), Some(&params));
    let limits = Limits { bitrate: Some(1_000_000_000), seconds: Some(100), file: false };
    if params.check(&limits).is_ok() {
        assert!((1..=256).contains(&params.streams()));
        assert!(params.goal().is_none_or(|goal| goal % params.len as u64 == 0 || goal == u64::MAX));
    }
}

/// Results that decode encode to the same results again.
pub fn iperf3_results(bytes: &[u8]) {
    let own = Span::from_secs(1);
    if let Some(results) = Results::read(bytes, own) {
        let again = Results::read(&results.write(), own).expect("what we write can be read");
        assert_eq!(again.streams.len(), results.streams.len());
        assert_eq!(again.knows_retransmits, results.knows_retransmits);
        for stream in &results.streams {
            let _ = stream.half(true, results.knows_retransmits, stream.omitted.unwrap_or_default());
        }
    }
    let mut held = bytes.to_vec();
    while let Ok(Some(message)) = take_message(&mut held, wire::PARAMS_LIMIT) {
        assert!((1..=wire::PARAMS_LIMIT).contains(&message.len()));
    }
    if let Some((cookie, rest)) = Cookie::split(bytes) {
        assert_eq!([cookie.bytes(), rest.to_vec()].concat(), bytes);
        assert!(cookie.matches(&cookie));
    }
    let _ = (wire::read_server_error(bytes), wire::is_hello_reply(bytes));
}

/// The client; the first byte chooses its options.
pub fn iperf3_client(script: &[u8]) {
    if let Some((options, script)) = script.split_first() {
        Iperf3Host::new(client(*options)).play(script);
    }
}

/// The server; the first byte chooses its options.
pub fn iperf3_server(script: &[u8]) {
    if let Some((options, script)) = script.split_first() {
        Iperf3Host::new(server(*options)).play(script);
    }
}

fn client(options: u8) -> Box<dyn StandIn> {
    let mut settings = Settings::client("server");
    let has = |bit: u8| options & bit != 0;
    settings.client.udp = has(1);
    settings.client.reverse = has(2);
    settings.client.bidir = has(4) && !has(2);
    settings.client.parallel = if has(8) { 3 } else { 1 };
    settings.client.omit = u32::from(has(16));
    settings.client.end = if has(32) { EndCondition::Bytes(100_000) } else { EndCondition::Time(2) };
    settings.common.json = has(64);
    settings.common.interval = if has(128) { Span::ZERO } else { Span::from_secs(1) };
    let host = HostFacts::default();
    Box::new(Client::new(ClientConfig { settings, host, unix_ms: 0, seed: [1; 32], login: None }))
}

fn server(options: u8) -> Box<dyn StandIn> {
    let mut settings = Settings::default();
    let has = |bit: u8| options & bit != 0;
    settings.server.one_off = has(1);
    settings.server.idle_timeout = has(2).then(|| Span::from_secs(3));
    settings.server.bitrate_limit = has(4).then_some(1_000_000_000);
    settings.common.json = has(8);
    let (host, shared) = (HostFacts::default(), has(16));
    Box::new(Server::new(ServerConfig { settings, host, unix_ms: 0, seed: [1; 32], gate: None, shared }))
}

struct Iperf3Host {
    stand_in: Box<dyn StandIn>,
    now: Timestamp,
    opening: Vec<Link>,
    listeners: BTreeSet<Link>,
    /// Connections and datagram sockets.
    open: BTreeSet<Link>,
    adopting: Vec<(Link, SocketAddr)>,
    accepted: u32,
    asked: Vec<RunId>,
    flows: BTreeMap<FlowId, FlowTask>,
    bytes: u64,
    finished: u32,
    over: bool,
}

impl Iperf3Host {
    fn new(stand_in: Box<dyn StandIn>) -> Self {
        let (opening, listeners, open) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let (adopting, asked, flows) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (accepted, bytes, finished) = (Link::FIRST_ACCEPTED.0, 0, 0);
        let now = Timestamp::START;
        let mut stage = Self {
            stand_in,
            now,
            opening,
            listeners,
            open,
            adopting,
            accepted,
            asked,
            flows,
            bytes,
            finished,
            over: false,
        };
        stage.feed(Input::Begin);
        stage
    }

    /// Plays a script until it or the stand-in ends; returns the number of completed runs.
    fn play(mut self, script: &[u8]) -> u32 {
        let mut script = Script { rest: script };
        while let Some(step) = script.byte().filter(|_| !self.over) {
            if self.step(step, &mut script).is_none() {
                break;
            }
        }
        self.finished
    }

    fn step(&mut self, step: u8, script: &mut Script<'_>) -> Option<()> {
        match step % 12 {
            0 => self.opened(script.byte()?),
            1 => self.accept(script.byte()?),
            2 => self.say(script.byte()?, WORDS.first()?),
            3 => {
                let (which, word) = (script.byte()?, script.byte()?);
                self.say(which, &frame(WORDS.get(usize::from(word) % WORDS.len())?));
            }
            4 => self.say(script.byte()?, script.some()?),
            5 => self.datagram(script.byte()?, script.byte()?),
            6 => self.close(script.byte()?),
            7 => self.admit(script.byte()?),
            8 => self.end_flow(script.byte()?),
            9 => self.pass(Span::from_ms(u64::from(script.byte()?) * 20)),
            10 => self.bytes = self.bytes.wrapping_add(1 << (script.byte()? % 64)),
            _ => self.interrupt(script.byte()?),
        }
        Some(())
    }

    fn opened(&mut self, which: u8) {
        if let Some((listener, peer)) = pick(&mut self.adopting, which) {
            return self.accepted(listener, peer);
        }
        let Some(link) = pick(&mut self.opening, which) else { return };
        if which >= 240 {
            self.listeners.remove(&link);
            return self.feed(Input::NotOpened { link, reason: reason(which) });
        }
        if !self.listeners.contains(&link) {
            self.open.insert(link);
        }
        let opened = opened(address(0));
        self.feed(Input::Opened { link, opened });
    }

    fn accept(&mut self, which: u8) {
        if let Some(listener) = nth(&self.listeners, which) {
            self.accepted(listener, address(which));
        }
    }

    fn accepted(&mut self, listener: Link, peer: SocketAddr) {
        let link = Link(self.accepted);
        self.accepted += 1;
        self.open.insert(link);
        self.feed(Input::Accepted { listener, link, opened: opened(peer) });
    }

    /// A link without a flow.
    fn idle(&self, which: u8) -> Option<Link> {
        let link = nth(&self.open, which)?;
        (!self.flows.values().any(|task| task.links.contains(&link))).then_some(link)
    }

    fn say(&mut self, which: u8, bytes: &[u8]) {
        if let Some(link) = self.idle(which) {
            self.feed(Input::Bytes { link, bytes });
        }
    }

    fn datagram(&mut self, which: u8, what: u8) {
        let link =
            if which.is_multiple_of(2) { nth(&self.listeners, which / 2) } else { self.idle(which / 2) };
        let bytes: &[u8] = [&b"6789"[..], b"9876", b"", &[0; 1000]][usize::from(what % 4)];
        if let Some(link) = link {
            self.feed(Input::Datagram { link, from: address(what), bytes });
        }
    }

    fn close(&mut self, which: u8) {
        if let Some(link) = self.idle(which / 2) {
            self.feed(Input::Closed { link, reason: which.is_multiple_of(2).then(|| reason(which)) });
        }
    }

    fn admit(&mut self, which: u8) {
        let Some(run) = pick(&mut self.asked, which) else { return };
        if which >= 240 {
            self.feed(Input::Refused { run, why: "busy".to_owned() });
        } else {
            self.feed(Input::Admitted { run });
        }
    }

    fn end_flow(&mut self, which: u8) {
        let flows: Vec<FlowId> = self.flows.keys().copied().collect();
        let at = usize::from(which / 4).checked_rem(flows.len());
        let Some(flow) = at.and_then(|at| flows.get(at)).copied() else { return };
        match which % 4 {
            0 => self.feed(Input::Written { flow }),
            1 => {
                self.flows.remove(&flow);
                self.feed(Input::NotStarted { flow, reason: reason(which) });
            }
            _ => {
                let Some(task) = self.flows.remove(&flow) else { return };
                let trouble = which.is_multiple_of(8).then(|| reason(which));
                let counts = FlowCounts { trouble, ..self.counts(&task) };
                self.feed(Input::Ended { counts: &counts });
            }
        }
    }

    fn counts(&self, task: &FlowTask) -> FlowCounts {
        let (bytes, packets) = (self.bytes, self.bytes / 7);
        let stream =
            StreamCounts { bytes, packets, highest: packets, lost: bytes % 5, ..StreamCounts::default() };
        let streams = vec![stream; task.links.len()];
        FlowCounts {
            flow: task.flow,
            at: self.now,
            last_at: Some(self.now),
            streams,
            ..FlowCounts::default()
        }
    }

    fn interrupt(&mut self, which: u8) {
        match which % 8 {
            0 => self.feed(Input::Signal(i32::from(which))),
            1 => self.pass(Span::from_secs(u64::from(which))),
            _ => self.feed(Input::Tick),
        }
    }

    /// Advances the clock, with a tick at every deadline on the way.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while let Some(deadline) = self.stand_in.deadline().filter(|due| *due <= until && !self.over) {
            self.now = self.now.max(deadline);
            self.feed(Input::Tick);
            let next = self.stand_in.deadline();
            assert!(self.over || next.is_none_or(|next| next > self.now), "a tick must move the deadline");
        }
        self.now = self.now.max(until);
    }

    fn feed(&mut self, input: Input<'_>) {
        self.stand_in.input(self.now, input);
        for _ in 0..MAX_OUTPUTS {
            match self.stand_in.output() {
                Some(output) => self.carry_out(output),
                None => return,
            }
        }
        panic!("a stand-in never stops asking");
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Connect { link, .. } | Output::Listen { link, .. } => {
                let free = !self.open.contains(&link) && !self.listeners.contains(&link);
                assert!(link < Link::FIRST_ACCEPTED && free, "a link's number must be free");
                if matches!(output, Output::Listen { .. }) {
                    self.listeners.insert(link);
                }
                self.opening.push(link);
            }
            Output::Adopt { listener, peer, .. } => self.adopting.push((listener, peer)),
            Output::Close { link } | Output::Reset { link } | Output::Discard { link } => {
                self.opening.retain(|other| *other != link);
                self.adopting.retain(|(listener, _)| *listener != link);
                self.listeners.remove(&link);
                self.open.remove(&link);
            }
            Output::Tune { link, .. } => self.opening.push(link),
            Output::Ask(planned) => self.asked.push(planned.run),
            Output::Start(task) => {
                assert!(!self.flows.contains_key(&task.flow), "a flow's number must be free");
                assert!(!task.links.is_empty() && task.length.get() > 0);
                self.flows.insert(task.flow, *task);
            }
            Output::Look => {
                let flows: Vec<FlowCounts> = self.flows.values().map(|task| self.counts(task)).collect();
                self.stand_in.input(self.now, Input::Counts { cpu: Cpu::default(), flows: &flows });
            }
            Output::RunOver { trouble, .. } => self.finished += u32::from(trouble.is_none()),
            Output::Exit(_) => self.over = true,
            _ => {}
        }
    }
}

fn nth(links: &BTreeSet<Link>, which: u8) -> Option<Link> {
    links.iter().nth(usize::from(which).checked_rem(links.len())?).copied()
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

fn opened(peer: SocketAddr) -> Opened {
    Opened {
        local: address(0),
        remote: Some(peer),
        mss: Some(1448),
        handshake: None,
        snd_buf: 1 << 20,
        rcv_buf: 1 << 20,
        congestion: None,
        descriptor: 3,
    }
}

/// The messages.
pub(crate) fn messages() -> Vec<Vec<u8>> {
    let words = WORDS.iter().skip(1).map(|word| word.to_vec());
    words.chain([frame(WORDS[1]), COOKIE.to_vec()]).collect()
}

/// Whole tests of a client: an upload, a download with omitted seconds, bidirectional UDP, a byte limit.
pub(crate) fn client_scripts() -> Vec<Vec<u8>> {
    let agree = [0, 0, 4, 0, 1, 9, 4, 0, 1, 10];
    let finish = [8, 2, 4, 0, 1, 13, 3, 0, 3, 4, 0, 1, 14, 6, 1];
    let run = [4, 0, 2, 1, 2, 10, 15, 9, 200, 10, 16];
    let tcp = |options: u8| [&[options], &agree[..], &[0, 0], &run, &finish].concat();
    let goal = [&[32], &agree[..], &[0, 0], &run[..5], &[10, 17, 8, 0], &finish].concat();
    let hello = [0, 0, 5, 3, 0];
    let udp = [&[1 + 4], &agree[..], &hello, &hello, &run, &finish].concat();
    vec![tcp(0), tcp(64 + 16 + 2), goal, udp]
}

/// Whole tests of a server.
pub(crate) fn server_scripts() -> Vec<Vec<u8>> {
    let begin = |params: u8| [0, 0, 1, 9, 2, 0, 3, 0, params, 7, 0];
    let finish = [4, 0, 1, 4, 8, 2, 3, 0, 3, 4, 0, 1, 16, 6, 1];
    let tcp = |options: u8| [&[options], &begin(1)[..], &[1, 9, 2, 1, 10, 15, 9, 60], &finish].concat();
    let goal = [&[16], &begin(4)[..], &[1, 9, 2, 1, 10, 15, 9, 60], &finish].concat();
    let hello = |from: u8| [5, 2, from, 0, 0];
    let hellos = [hello(1), hello(2), hello(3), hello(4)].concat();
    let udp = [&[0], &begin(2)[..], &[0, 0], &hellos, &[9, 60], &finish].concat();
    vec![tcp(0), tcp(1 + 8), goal, udp]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_seeds_are_whole_runs() {
        for script in &client_scripts()[..3] {
            assert_eq!(Iperf3Host::new(client(script[0])).play(&script[1..]), 1, "{script:?}");
        }
        for script in &server_scripts()[..3] {
            assert_eq!(Iperf3Host::new(server(script[0])).play(&script[1..]), 1, "{script:?}");
        }
    }
}
