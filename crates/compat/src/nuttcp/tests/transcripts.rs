//! Our client against transcripts of real servers, and our server against requests of real clients.

use crate::stand_in::FlowId;
use linerate_units::{Span, Timestamp};

use crate::nuttcp::{
    NuttcpClient, NuttcpClientOptions, NuttcpInvocation, NuttcpServer, NuttcpServerOptions, invocation,
};
use crate::stand_in::{CpuTime, FlowCounts, FlowTask, Input, Link, Opened, Output, StandIn, StreamCounts};
use crate::virtual_hosts;

const DEFAULT: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v612-tx-default.txt");
const INTERVALS: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-tx-interval.txt");
const MIXED: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-client-v612-server.txt");
const UDP: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v612-udp-tx.txt");
const JITTER: &str = include_str!("../../../../../fixtures/transcripts/nuttcp/v822-udp-jitter-owd.txt");

fn client(line: &str) -> NuttcpClientOptions {
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    match invocation(&arguments) {
        (_, NuttcpInvocation::Client(options)) => *options,
        other => panic!("{other:?}"),
    }
}

/// What a scripted server received from our client, and the client's output.
#[derive(Default)]
struct NuttcpTranscript {
    sent: String,
    printed: String,
    exit: Option<i32>,
}

struct ScriptedServer {
    client: NuttcpClient,
    now: Timestamp,
    seen: NuttcpTranscript,
    task: Option<FlowTask>,
    sent: u64,
    /// What the client's kernel has retransmitted.
    retransmits: u64,
    /// What the client's kernel says of the acknowledgements.
    all_acknowledged: Option<bool>,
    /// Whether a data connection is closed.
    closed: bool,
}

impl ScriptedServer {
    fn give(&mut self, input: Input<'_>) {
        let mut outputs = Vec::new();
        self.client.input(self.now, input);
        outputs.extend(std::iter::from_fn(|| self.client.output()));
        let mut looks = 0;
        let mut open = Vec::new();
        for output in outputs {
            match output {
                Output::Send { link: Link(0), bytes } => self.seen.sent += &String::from_utf8(bytes).unwrap(),
                Output::Print(text) => self.seen.printed += &text,
                Output::Connect { link, .. } => open.push(link),
                Output::Start(task) => self.task = Some(*task),
                Output::Look => looks += 1,
                Output::Exit(code) => self.seen.exit = Some(code),
                Output::Close { link } if link != Link(0) => self.closed = true,
                _ => {}
            }
        }
        for link in open {
            self.give(Input::Opened { link, opened: opened() });
        }
        for _ in 0..looks {
            let flows = [self.counts()];
            self.give(Input::Counts { cpu: CpuTime::default(), flows: &flows });
        }
    }

    fn counts(&self) -> FlowCounts {
        let stream = StreamCounts {
            bytes: self.sent,
            retransmits: Some(self.retransmits),
            snd_cwnd: Some(247 * 1024),
            all_acknowledged: self.all_acknowledged,
            ..StreamCounts::default()
        };
        FlowCounts { streams: vec![stream], last_at: Some(self.now), ..FlowCounts::default() }
    }

    /// Advances the time with all its deadlines.
    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(next) = self.client.deadline().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.give(Input::Tick);
        }
        self.now = end;
    }

    fn send_line(&mut self, line: &str) {
        let bytes = format!("{line}\n").into_bytes();
        self.give(Input::Bytes { link: Link(0), bytes: &bytes });
    }
}

fn opened() -> Opened {
    let link = virtual_hosts::opened(([127, 0, 0, 1], 40_000), ([127, 0, 0, 1], 5000));
    Opened { handshake: Some(Span::from_ns(80_000)), snd_buf: 69_120, ..link }
}

/// Plays the beginning of a transcript: greeting and OK. The test has begun.
fn begin<'t>(
    arguments: &str,
    transcript: &'t str,
    sent: u64,
) -> (ScriptedServer, impl Iterator<Item = &'t str>) {
    let mut script = ScriptedServer {
        client: NuttcpClient::new(client(arguments)),
        now: Timestamp::START,
        seen: NuttcpTranscript::default(),
        task: None,
        sent,
        retransmits: 0,
        all_acknowledged: None,
        closed: false,
    };
    script.give(Input::Begin);
    let mut lines = transcript.lines().filter_map(|line| line.strip_prefix("S "));
    script.send_line(lines.next().unwrap());
    script.send_line(lines.next().unwrap());
    script.pass(Span::from_ms(400));
    assert!(script.task.is_some(), "the test has not begun");
    (script, lines)
}

/// Plays the server of a transcript: greeting and OK, the test, the report.
fn play(arguments: &str, transcript: &str, sent: u64) -> NuttcpTranscript {
    let (mut script, lines) = begin(arguments, transcript, sent);
    let rest: Vec<&str> = lines.collect();
    let live = rest.iter().position(|line| *line == "DONE").map_or(0, |at| at + 1);
    for line in &rest[..live] {
        script.send_line(line);
    }
    script.give(Input::Written { flow: FlowId(0) });
    let counts = script.counts();
    script.give(Input::Ended { counts: &counts });
    for line in &rest[live..] {
        script.send_line(line);
    }
    script.pass(Span::from_secs(3));
    script.give(Input::Closed { link: Link(0), reason: None });
    script.seen
}

/// The server has everything before our client's next look at its kernel.
#[test]
fn what_was_retransmitted_before_the_server_reported_is_counted() {
    let (mut script, lines) = begin("-T3 127.0.0.1", DEFAULT, 1);
    script.all_acknowledged = Some(false);
    script.give(Input::Written { flow: FlowId(0) });
    let counts = script.counts();
    script.give(Input::Ended { counts: &counts });
    script.pass(Span::from_ms(5));
    (script.retransmits, script.all_acknowledged) = (7, Some(true));
    for line in lines {
        script.send_line(line);
    }
    script.give(Input::Closed { link: Link(0), reason: None });
    assert!(script.seen.printed.contains(" 7 retrans "), "{}", script.seen.printed);
    assert_eq!(script.seen.exit, Some(0));
}

/// A client that transmits, when its flow has ended and the peer's kernel has not acknowledged everything.
fn unacknowledged() -> ScriptedServer {
    let (mut script, _) = begin("-T3 127.0.0.1", DEFAULT, 1);
    script.all_acknowledged = Some(false);
    script.give(Input::Written { flow: FlowId(0) });
    let counts = script.counts();
    script.give(Input::Ended { counts: &counts });
    assert!(!script.closed);
    script
}

#[test]
fn a_peer_that_acknowledges_nothing_is_given_up() {
    let mut script = unacknowledged();
    script.pass(Span::from_secs(59));
    assert!(!script.closed);
    script.pass(Span::from_secs(2));
    assert!(script.closed);
}

#[test]
fn a_peer_that_has_gone_is_not_waited_for() {
    let mut script = unacknowledged();
    let link = script.task.as_ref().unwrap().links[0];
    script.give(Input::Closed { link, reason: None });
    assert!(script.closed);
}

#[test]
fn a_peer_that_stopped_reading_is_not_waited_for_twice() {
    let (mut script, _) = begin("-T3 127.0.0.1", DEFAULT, 1);
    script.all_acknowledged = Some(false);
    script.give(Input::Written { flow: FlowId(0) });
    script.pass(Span::from_secs(61));
    let counts = script.counts();
    script.give(Input::Ended { counts: &counts });
    assert!(script.closed);
}

fn requests(transcript: &str) -> String {
    transcript
        .lines()
        .filter_map(|line| line.strip_prefix("C "))
        .fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn our_client_says_what_the_real_one_says_and_prints_what_it_prints() {
    let seen = play("-i1 -T3 127.0.0.1", INTERVALS, 1);
    assert_eq!(seen.sent, requests(INTERVALS));
    // The congestion windows of the intervals come from our own kernel, which always reports 247 KB here.
    let real = [
        "   22.5000 MB /   1.00 sec =  188.7399 Mbps     0 retrans    247 KB-cwnd",
        "   22.5625 MB /   1.00 sec =  189.2674 Mbps     0 retrans    247 KB-cwnd",
        "   22.5000 MB /   1.00 sec =  188.7446 Mbps     0 retrans    247 KB-cwnd",
        "",
        "   69.6362 MB /   3.09 sec =  188.9152 Mbps 0 %TX 4 %RX 0 retrans 247 KB-cwnd 0.08 msRTT",
    ];
    assert_eq!(seen.printed.lines().collect::<Vec<_>>(), real);
    assert_eq!(seen.exit, Some(0));
}

#[test]
fn an_old_server_is_not_sent_what_it_does_not_know() {
    assert_eq!(play("-i1 -T2 127.0.0.1", MIXED, 1).sent, requests(MIXED));
    let seen = play("-T3 127.0.0.1", DEFAULT, 1);
    let real = "   68.8905 MB /   3.06 sec =  188.9408 Mbps 0 %TX 8 %RX 0 retrans 247 KB-cwnd 0.08 msRTT\n";
    assert_eq!(seen.printed, real);
}

#[test]
fn losses_are_the_difference_of_both_ends() {
    let real = "    3.5771 MB /   3.00 sec =    9.9994 Mbps 0 %TX 0 %RX ";
    let seen = play("-u -R10M -i1 -T3 127.0.0.1", UDP, 3663 * 1024);
    assert!(seen.printed.ends_with(&format!("\n\n{real}0 / 3663 drop/pkt 0.00 %loss\n")), "{}", seen.printed);
    let seen = play("-u -R10M -i1 -T3 127.0.0.1", UDP, 3700 * 1024);
    assert!(
        seen.printed.ends_with(&format!("\n\n{real}37 / 3700 drop/pkt 1.00 %loss\n")),
        "{}",
        seen.printed
    );
    let seen = play("-u -Ri5m -j -o -i1 -T3 127.0.0.1", JITTER, 1828 * 1024);
    assert_eq!(seen.sent, requests(JITTER));
    assert!(
        seen.printed.ends_with("0 / 1828 drop/pkt 0.00 %loss 3.8576 msMaxJitter 0.0491 msAvgOWD\n"),
        "{}",
        seen.printed
    );
}

#[test]
fn a_verbose_client_prints_both_reports() {
    let seen = play("-v -T3 127.0.0.1", DEFAULT, 68 << 20);
    let (ours, theirs) = seen.printed.split_once("\n\n").unwrap();
    assert!(ours.starts_with(
        "nuttcp-t: v8.2.2: socket\nnuttcp-t: buflen=65536, nstream=1, port=5101 tcp -> 127.0.0.1\n"
    ));
    assert!(ours.contains("\nnuttcp-t: retrans = 0 cwnd = 247 KB\n"), "{ours}");
    let real: Vec<&str> = DEFAULT.lines().filter_map(|line| line.strip_prefix("S ")).skip(2).collect();
    let without_cpu: Vec<&str> = real.into_iter().filter(|line| !line.contains("KB/cpu sec")).collect();
    assert_eq!(theirs.lines().collect::<Vec<_>>(), without_cpu);
    let named = play("-v -Iwest -T3 127.0.0.1", DEFAULT, 1).printed;
    assert!(named.lines().filter(|line| !line.is_empty()).all(|line| line.contains("-west: ")), "{named}");
}

/// The answer of our server to these bytes of a client.
fn answer(bytes: &[u8]) -> String {
    let mut server = NuttcpServer::new(NuttcpServerOptions::default());
    let link = Link(1 << 16);
    let inputs = [
        Input::Begin,
        Input::Opened { link: Link(0), opened: opened() },
        Input::Accepted { listener: Link(0), link, opened: opened() },
        Input::Bytes { link, bytes },
    ];
    let mut sent = String::new();
    for input in inputs {
        server.input(Timestamp::START, input);
        while let Some(output) = server.output() {
            match output {
                Output::Send { bytes, .. } => sent += &String::from_utf8(bytes).unwrap(),
                Output::Ask(_) => sent += "(asked)",
                _ => {}
            }
        }
    }
    sent
}

/// The requests are probes that were sent to 8.2.2.
#[test]
fn a_bad_request_gets_the_answer_of_the_real_server() {
    let request = requests(DEFAULT);
    let hello = "HELO nuttcp v8.2.2\n";
    let changed = |from: &str, to: &str| answer(request.replace(from, to).as_bytes());
    let ko = |words: &str| format!("{hello}KO\n{words}\nKO\n");
    assert_eq!(
        answer(b"HELO nuttcp v6.1.2\ngarbage\n"),
        ko(
            "nuttcp-t: v8.2.2: error scanning parameters\nmay be using older client version than server\ngarbage"
        )
    );
    assert_eq!(changed("nstream = 1", "nstream = 0"), ko("nuttcp-r: v8.2.2: invalid nstream\nnstream = 0"));
    assert_eq!(changed("5001", "1000"), ko("nuttcp-r: v8.2.2: invalid port/nstream\nport/nstream = 1000/1"));
    assert_eq!(
        changed("5001", "65536"),
        ko("nuttcp-r: v8.2.2: invalid port/nstream\nport/nstream = 65536/1")
    );
    assert_eq!(
        changed("5001", "5000"),
        ko("nuttcp-r: v8.2.2: ctlport overlaps port/nstream\nctlport = 5000, port/nstream = 5000/1")
    );
    assert_eq!(changed("5001", "4000"), format!("{hello}(asked)"));
    assert_eq!(changed("buflen = 65536", "buflen = 0"), ko("nuttcp-r: v8.2.2: invalid buflen\nbuflen = 0"));
    assert_eq!(changed("_NULL_", "-T1;host"), ko("doesn't allow 3rd party nuttcp"));
    assert_eq!(changed("traceroute = 0", "traceroute = 1"), ko("doesn't allow traceroute"));
    assert_eq!(answer(b"GET / HTTP/1.1\n"), "KO\nno nuttcp HELO message\nKO\n");
    assert_eq!(answer(request.as_bytes()), format!("{hello}(asked)"));
}
