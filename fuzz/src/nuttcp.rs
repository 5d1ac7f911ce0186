//! nuttcp: its lines, and both stand-ins against a peer and a clock that misbehave.
//!
//! As in `dialogue`, the bytes are a script: each step is one byte that selects what happens, followed by its
//! arguments. The host honours the contract of `StandIn`: it answers only what it was asked, in any order and
//! at any time.

use std::net::SocketAddr;

use linerate_compat::nuttcp::{
    Invocation, Lines, NuttcpClient, NuttcpServer, Request, Results, ServerOptions, Version, invocation,
};
use linerate_compat::stand_in::{
    Cpu, FlowCounts, FlowId, Input, Link, Opened, Output, RunId, StandIn, StreamCounts, SystemError,
};
use linerate_model::SideSettings;
use linerate_units::{Span, Timestamp};

/// More outputs than this after one input, or ticks at one time, are an endless loop.
const MAX_OUTPUTS: usize = 5_000;

const TRANSCRIPTS: [&str; 6] = [
    include_str!("../../fixtures/transcripts/nuttcp/v612-tx-default.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v612-tx-interval.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v612-udp-tx.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v822-client-v612-server.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v822-tx-interval.txt"),
    include_str!("../../fixtures/transcripts/nuttcp/v822-udp-jitter-owd.txt"),
];

const COMMANDS: [&str; 10] = [
    "-T3 -i1 -v h",
    "-r -i1 h",
    "-u -R5m -i1 -fparse h",
    "-u -r -N3 h",
    "-s h",
    "-r -s h",
    "-N4 -n100 -F h",
    "-r -F -fxmitstats -frunningtotal -a h",
    "-S",
    "-1 -s",
];

/// Lines of real peers, from both ends.
fn real_lines() -> impl Iterator<Item = &'static str> {
    TRANSCRIPTS.iter().flat_map(|text| text.lines()).filter_map(|line| line.get(2..))
}

/// Input is split into the same lines however it arrives; a request that decodes encodes to the same request
/// again, and every report can be read.
pub fn nuttcp_lines(bytes: &[u8]) {
    let cut = |piece: usize| {
        let mut lines = Lines::default();
        let mut all = Vec::new();
        for piece in bytes.chunks(piece) {
            lines.push(piece);
            all.extend(std::iter::from_fn(|| lines.pull()));
        }
        (all, lines.rest())
    };
    let whole = cut(bytes.len().max(1));
    assert_eq!(cut(1), whole);
    let mut results = Results::default();
    for line in &whole.0 {
        results.line(line);
        let _ = results.bytes();
        if let Some(version) = Version::parse_greeting(line) {
            assert!(!version.greeting().is_empty());
        }
        if let Some(mut request) = Request::decode(line) {
            // Times are encoded with six decimals.
            request.timeout = Span::from_secs(request.timeout.as_ns() % 1_000);
            request.interval = Span::from_secs(request.interval.as_ns() % 1_000);
            request.third_party = false;
            let written = request.encode(Version::REPORTED);
            let read = Request::decode(String::from_utf8_lossy(&written).trim_end());
            assert_eq!(read, Some(request));
        }
    }
}

/// Any command line is either parsed or rejected with a message.
pub fn nuttcp_argv(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
    let (_, said) = invocation(&arguments);
    if let Invocation::Client(options) = said {
        assert!(options.request(None).buflen > 0);
    }
}

/// A client, with a command line that the first byte selects.
pub fn nuttcp_client(script: &[u8]) {
    let _ = play(script, &COMMANDS[..8]);
}

/// A server.
pub fn nuttcp_server(script: &[u8]) {
    let _ = play(script, &COMMANDS[8..]);
}

fn play(script: &[u8], commands: &[&str]) -> Option<Host> {
    let (choice, script) = script.split_first()?;
    let command = commands[usize::from(*choice) % commands.len()];
    let arguments: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let stand_in: Box<dyn StandIn> = match invocation(&arguments).1 {
        Invocation::Client(options) => Box::new(NuttcpClient::new(*options)),
        Invocation::Server(options) => Box::new(NuttcpServer::new(options)),
        _ => Box::new(NuttcpServer::new(ServerOptions::default())),
    };
    let mut host = Host::new(stand_in);
    host.give(Input::Begin);
    let mut script = script.iter().copied();
    while let Some(step) = script.next() {
        let (a, b) = (script.next().unwrap_or(0), script.next().unwrap_or(0));
        host.step(step, a, b);
        if host.over {
            break;
        }
    }
    Some(host)
}

struct Host {
    stand_in: Box<dyn StandIn>,
    now: Timestamp,
    over: bool,
    asked: Vec<Link>,
    open: Vec<Link>,
    flows: Vec<FlowId>,
    /// A flow has started and ended.
    measured: bool,
    runs: Vec<RunId>,
    looks: usize,
    reads: usize,
    next: u32,
}

fn opened() -> Opened {
    let address: SocketAddr = ([192, 0, 2, 1], 5000).into();
    Opened {
        local: address,
        remote: Some(address),
        mss: Some(1448),
        handshake: Some(Span::from_ms(1)),
        snd_buf: u64::MAX,
        rcv_buf: 1,
        congestion: None,
        descriptor: 3,
    }
}

fn counts(flow: FlowId, at: Timestamp, number: u64) -> FlowCounts {
    let stream = StreamCounts {
        bytes: number,
        calls: number,
        packets: number / 2,
        highest: number,
        retransmits: Some(number),
        snd_cwnd: Some(number),
        ended: number.is_multiple_of(5),
        ..StreamCounts::default()
    };
    FlowCounts { flow, at, last_at: Some(at), streams: vec![stream; 3], ..FlowCounts::default() }
}

fn of<T: Copy>(all: &[T], choice: u8) -> Option<T> {
    all.get(usize::from(choice).checked_rem(all.len())?).copied()
}

impl Host {
    fn new(stand_in: Box<dyn StandIn>) -> Self {
        Self {
            stand_in,
            now: Timestamp::START,
            over: false,
            asked: Vec::new(),
            open: Vec::new(),
            flows: Vec::new(),
            measured: false,
            runs: Vec::new(),
            looks: 0,
            reads: 0,
            next: 0,
        }
    }

    fn give(&mut self, input: Input<'_>) {
        if self.over {
            return;
        }
        self.stand_in.input(self.now, input);
        self.drain();
        while self.looks > 0 && !self.over {
            self.looks -= 1;
            let flows: Vec<FlowCounts> = self.flows.iter().map(|flow| counts(*flow, self.now, 7)).collect();
            self.stand_in.input(self.now, Input::Counts { cpu: Cpu::default(), flows: &flows });
            self.drain();
        }
    }

    fn drain(&mut self) {
        for number in 0.. {
            assert!(number < MAX_OUTPUTS, "it never stops wanting");
            match self.stand_in.output() {
                None => return,
                Some(Output::Connect { link, .. } | Output::Listen { link, .. }) => self.asked.push(link),
                Some(Output::Close { link }) => {
                    self.asked.retain(|held| *held != link);
                    self.open.retain(|held| *held != link);
                }
                Some(Output::Start(task)) => self.flows.push(task.flow),
                Some(Output::Ask(planned)) => self.runs.push(planned.run),
                Some(Output::Look) => self.looks += 1,
                Some(Output::Read) => self.reads += 1,
                Some(Output::Exit(_)) => self.over = true,
                Some(_) => {}
            }
        }
    }

    fn step(&mut self, step: u8, a: u8, b: u8) {
        match step % 12 {
            0 => self.say(a, b),
            1 => {
                if let Some(link) = of(&self.open, a) {
                    self.give(Input::Bytes { link, bytes: &[b; 300] });
                }
            }
            2 | 3 => self.answer(step % 12 == 2, a),
            4 => {
                if let Some(listener) = of(&self.open, a) {
                    let link = Link(Link::FIRST_ACCEPTED.0 + self.next);
                    self.next += 1;
                    self.open.push(link);
                    self.give(Input::Accepted { listener, link, opened: opened() });
                }
            }
            5 => {
                if let Some(link) = of(&self.open, a) {
                    let mark = if b < 128 { *b"BOD0" } else { *b"EOD0" };
                    let bytes = [&mark[..3], &[b], &[b; 4][..]].concat();
                    let length = usize::from(b % 9).min(bytes.len());
                    self.give(Input::Datagram {
                        link,
                        from: ([192, 0, 2, 9], 9).into(),
                        bytes: &bytes[..length],
                    });
                }
            }
            6 => self.pass(Span::from_ms(u64::from(a) * 20)),
            7 | 8 => self.flow(step % 12 == 7, a, b),
            9 => {
                if let Some(link) = of(&self.open, a) {
                    self.open.retain(|held| *held != link);
                    self.give(Input::Closed { link, reason: None });
                }
            }
            10 => self.decide(a, b),
            _ => self.give(Input::Signal(i32::from(a % 3))),
        }
    }

    /// A line of a real peer, on any link.
    fn say(&mut self, which: u8, line: u8) {
        let all: Vec<&str> = real_lines().collect();
        if let (Some(link), Some(line)) = (of(&self.open, which), of(&all, line)) {
            let bytes = format!("{line}\n").into_bytes();
            self.give(Input::Bytes { link, bytes: &bytes });
        }
    }

    fn answer(&mut self, well: bool, which: u8) {
        let Some(link) = of(&self.asked, which) else { return };
        self.asked.retain(|held| *held != link);
        if well {
            self.open.push(link);
            self.give(Input::Opened { link, opened: opened() });
        } else {
            let reason =
                SystemError { errno: i32::from(which.is_multiple_of(2)) * 111, text: "refused".to_owned() };
            self.give(Input::NotOpened { link, reason });
        }
    }

    fn flow(&mut self, ends: bool, which: u8, number: u8) {
        let Some(flow) = of(&self.flows, which) else { return };
        match (ends, number % 4) {
            (true, _) => {
                self.measured = true;
                self.flows.retain(|held| *held != flow);
                let number = u64::MAX >> (number % 64);
                self.give(Input::Ended { counts: &counts(flow, self.now, number) });
            }
            (false, 0) => self.give(Input::Started { flow, settings: &SideSettings::default() }),
            (false, 1) => {
                self.flows.retain(|held| *held != flow);
                let reason = SystemError { errno: 12, text: "no memory".to_owned() };
                self.give(Input::NotStarted { flow, reason });
            }
            _ => self.give(Input::Written { flow }),
        }
    }

    fn decide(&mut self, which: u8, how: u8) {
        if let Some(run) = of(&self.runs, which) {
            self.runs.retain(|held| *held != run);
            if how.is_multiple_of(3) {
                self.give(Input::Refused { run, why: "busy".to_owned() });
            } else {
                self.give(Input::Admitted { run });
            }
        } else if self.reads > 0 {
            self.reads -= 1;
            self.give(Input::Text(Some(&[how; 100]).filter(|_| how > 9).map(|block| &block[..])));
        }
    }

    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        for number in 0.. {
            let Some(next) = self.stand_in.deadline().filter(|next| *next <= end && !self.over) else {
                break;
            };
            assert!(number < MAX_OUTPUTS, "it never stops waking");
            self.now = self.now.max(next);
            self.give(Input::Tick);
        }
        self.now = self.now.max(end);
    }
}

pub(crate) fn line_seeds() -> Vec<Vec<u8>> {
    TRANSCRIPTS.iter().map(|text| text.replace("\nC ", "\n").replace("\nS ", "\n").into_bytes()).collect()
}

pub(crate) fn argv_seeds() -> Vec<Vec<u8>> {
    let more =
        ["-w4m -ws64 -wb -c32t -M1000 -D -Ri10m/5 -R500p -Iwest h", "-N200 -p5000 a/192.0.2.1", "-u -l3 h"];
    COMMANDS.iter().chain(&more).map(|line| line.as_bytes().to_vec()).collect()
}

/// Regular runs: over TCP, with intervals, over UDP. Line 0 is the greeting, 2 the request, 3 the agreement.
pub(crate) fn client_seeds() -> Vec<Vec<u8>> {
    let place = |wanted: &str| real_lines().position(|line| line.starts_with(wanted)).unwrap_or(0) as u8;
    let (hello, ok, done, rate) =
        (place("HELO"), place("OK"), place("DONE"), place("nuttcp-r: 68.8905 MB in 3.06 real"));
    let begin = [2, 0, 0, 0, 0, hello, 0, 0, ok, 6, 5, 0, 2, 0, 0, 6, 20, 0];
    let end = [8, 0, 2, 7, 0, 30, 0, 0, done, 0, 0, rate, 6, 200, 0, 9, 0, 0];
    (0..8).map(|command| [&[command][..], &begin, &end].concat()).collect()
}

pub(crate) fn server_seeds() -> Vec<Vec<u8>> {
    let place = |wanted: &str| real_lines().position(|line| line.starts_with(wanted)).unwrap_or(0) as u8;
    let (hello, tcp, udp) = (
        place("HELO"),
        place("buflen = 65536"),
        place("buflen = 1024, nbuf = 2147483647, win = 0, nstream = 1"),
    );
    let of = |request: u8, command: u8| {
        let ask = [command, 2, 0, 0, 4, 0, 0, 0, 1, hello, 0, 1, request, 10, 0, 1, 2, 0, 0];
        let test = [4, 2, 0, 5, 2, 49, 6, 60, 0, 7, 0, 30, 6, 60, 0];
        [&ask[..], &test].concat()
    };
    vec![of(tcp, 0), of(udp, 0), of(tcp, 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_whole_tests() {
        let clients: Vec<Host> =
            client_seeds().iter().filter_map(|seed| play(seed, &COMMANDS[..8])).collect();
        // Those that transmit over one connection and end, as reported by their servers.
        assert!(clients[0].measured && clients[0].over);
        let servers: Vec<Host> =
            server_seeds().iter().filter_map(|seed| play(seed, &COMMANDS[8..])).collect();
        assert!(servers[0].measured, "TCP");
        assert!(servers[1].measured, "UDP");
    }
}
