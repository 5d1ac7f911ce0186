//! Browsers and clients of ndt7, as their specifications describe them.

mod bodies;

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_model::flow::{ConnectionCounts, FrameKind, FrameReader};
use linerate_model::{BrowserNote, Direction, Side, SideSettings, Tally};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use serde_json::{Value, json};

use super::HttpServer;
use super::websocket::{MessageReader, WebSocketMessage};
use crate::EmbeddedServerConfig;
use crate::stand_in::{
    FlowCounts, FlowId, FlowTask, Input, Link, Output, PayloadFraming, Planned, RunId, StandIn, Stop,
    StreamCounts, SystemError,
};

const LISTENER: Link = Link(0);
const NDT7: &str = "net.measurementlab.ndt.v7";
const BROWSER: &str = "linerate.browser.1";
const TEST: &str = "0123456789abcdef0123456789abcdef";

/// A server, and everything that it has requested.
struct ServedHttp {
    server: HttpServer,
    now: Timestamp,
    next: u32,
    out: VecDeque<Output>,
}

impl ServedHttp {
    fn new() -> Self {
        let config = EmbeddedServerConfig {
            port: 5201,
            shared: false,
            seed: 7,
            wall: Span::ZERO,
            without: Vec::new(),
        };
        let mut served = Self {
            server: HttpServer::new(&config),
            now: Timestamp::from_ns(3_600_000_000_000),
            next: 1 << 16,
            out: VecDeque::new(),
        };
        served.give(Input::Begin);
        assert!(matches!(served.out.pop_front(), Some(Output::Listen { port: 5201, .. })));
        served
    }

    fn give(&mut self, input: Input<'_>) {
        self.server.input(self.now, input);
        self.out.extend(std::iter::from_fn(|| self.server.output()));
    }

    /// Advances the time, with a tick at each deadline.
    fn pass(&mut self, ms: u64) {
        let until = self.now + Span::from_ms(ms);
        while let Some(at) = self.server.deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.give(Input::Tick);
        }
        self.now = until;
    }

    fn connect(&mut self, from: &str) -> Link {
        let link = Link(self.next);
        self.next += 1;
        let opened =
            crate::virtual_hosts::opened(([192, 0, 2, 1], 5201), from.parse::<SocketAddr>().unwrap());
        self.give(Input::Accepted { listener: LISTENER, link, opened });
        link
    }

    /// Sends a request over a new connection.
    fn request(&mut self, from: &str, head: &str) -> Link {
        let link = self.connect(from);
        self.give(Input::Bytes { link, bytes: head.as_bytes() });
        link
    }

    /// Takes all bytes that were sent on a link.
    fn sent(&mut self, to: Link) -> Vec<u8> {
        let (own, others): (Vec<Output>, Vec<Output>) = std::mem::take(&mut self.out)
            .into_iter()
            .partition(|output| matches!(output, Output::Send { link, .. } if *link == to));
        self.out = others.into();
        own.into_iter()
            .flat_map(|output| if let Output::Send { bytes, .. } = output { bytes } else { Vec::new() })
            .collect()
    }

    /// The JSON messages sent on a link.
    fn told(&mut self, link: Link) -> Vec<Value> {
        texts(&self.sent(link))
    }

    fn take<T>(&mut self, mut of: impl FnMut(&Output) -> Option<T>) -> Option<T> {
        let at = self.out.iter().position(|output| of(output).is_some())?;
        self.out.remove(at).as_ref().and_then(of)
    }

    fn planned(&mut self) -> Box<Planned> {
        self.take(|output| if let Output::Ask(planned) = output { Some(planned.clone()) } else { None })
            .unwrap()
    }

    fn started(&mut self) -> Box<FlowTask> {
        self.take(|output| if let Output::Start(task) = output { Some(task.clone()) } else { None }).unwrap()
    }

    fn trouble(&mut self) -> Option<Option<String>> {
        self.take(
            |output| if let Output::RunOver { trouble, .. } = output { Some(trouble.clone()) } else { None },
        )
    }

    /// What the server says of the other end's counts.
    fn peer(&mut self) -> Box<Tally> {
        let of = |output: &Output| match output {
            Output::PeerCounted { tally, .. } => Some(tally.clone()),
            _ => None,
        };
        self.take(of).unwrap()
    }

    fn browser(&mut self) -> Box<BrowserNote> {
        self.take(|output| if let Output::Browser { note, .. } = output { Some(note.clone()) } else { None })
            .unwrap()
    }

    fn is_reset(&mut self, link: Link) -> bool {
        let of =
            |output: &Output| matches!(output, Output::Reset { link: reset } if *reset == link).then_some(());
        self.take(of).is_some()
    }

    fn counted(&mut self, side: Side, flow: FlowId, streams: &[u64], ms: u64) {
        let counts = counts(side, flow, streams, self.now, ms);
        self.give(Input::Counts { cpu: Default::default(), flows: &[counts] });
    }
}

/// The texts of a server's frames, which are not masked.
fn texts(mut bytes: &[u8]) -> Vec<Value> {
    if let Some(end) =
        bytes.windows(4).position(|part| part == b"\r\n\r\n").filter(|_| bytes.starts_with(b"HTTP"))
    {
        bytes = &bytes[end + 4..];
    }
    let mut found = Vec::new();
    while let [first, length, rest @ ..] = bytes {
        let (length, rest) = match length {
            126 => (usize::from(u16::from_be_bytes([rest[0], rest[1]])), &rest[2..]),
            length => (usize::from(*length), rest),
        };
        let (payload, after) = rest.split_at(length);
        if first & 0x0f == 1 {
            found.push(serde_json::from_slice(payload).unwrap());
        }
        bytes = after;
    }
    found
}

/// A frame of a client.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < 126);
    let mask = [1, 2, 3, 4];
    let mut frame = vec![first, 0x80 | payload.len() as u8];
    frame.extend(mask);
    frame.extend(payload.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

fn upgrade(path: &str, protocol: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: 192.0.2.1:5201\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: {protocol}\r\n{more}\r\n"
    )
}

fn page(part: &str) -> String {
    upgrade(&format!("/linerate/browser/{TEST}/{part}"), BROWSER, "Origin: http://192.0.2.1:8080\r\n")
}

fn download(stream: usize) -> String {
    format!("GET /linerate/browser/{TEST}/down?stream={stream} HTTP/1.1\r\nHost: 192.0.2.1:5201\r\n\r\n")
}

/// Counts of a flow that began `ms` before `now`: the bytes of each stream are moved, and acknowledged if sent.
fn counts(side: Side, flow: FlowId, streams: &[u64], now: Timestamp, ms: u64) -> FlowCounts {
    let stream = |bytes: &u64| StreamCounts {
        bytes: if side == Side::Sender { *bytes + 500_000 } else { *bytes },
        connection: Some(ConnectionCounts {
            bytes_acknowledged: 300 + bytes,
            bytes_retransmitted: 1448,
            ..ConnectionCounts::default()
        }),
        ..StreamCounts::default()
    };
    let first = Timestamp::from_ns(now.as_ns() - ms * 1_000_000);
    FlowCounts {
        flow,
        at: now,
        first_at: (ms > 0).then_some(first),
        last_at: (ms > 0).then_some(now),
        streams: streams.iter().map(stream).collect(),
        ..FlowCounts::default()
    }
}

#[test]
fn a_download_of_ndt7_counts_what_was_acknowledged() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &upgrade("/ndt/v7/download?client_name=x", NDT7, ""));
    let planned = served.planned();
    assert_eq!((planned.tool, planned.flows[0].1), ("ndt7", Direction::Download));
    assert!(served.sent(link).is_empty(), "nothing is answered before there is a place");
    served.give(Input::Admitted { run: planned.run });
    let task = served.started();
    // A message of 64 KiB in a frame of its own.
    assert_eq!(
        (task.side, task.framing, task.length),
        (Side::Sender, PayloadFraming::WebSocket, Bytes::new(65_546))
    );
    assert_eq!(task.payload.head, [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    let opening = served.sent(link);
    let text = String::from_utf8_lossy(&opening);
    // The example of RFC 6455 §1.3.
    assert!(text.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{text}");
    assert!(text.contains("Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n"));
    let about = &texts(&opening)[0];
    assert_eq!((&about["Origin"], &about["Test"]), (&json!("server"), &json!("download")));
    assert_eq!(about["ConnectionInfo"]["Client"], "192.0.2.9:4000");

    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    served.counted(Side::Sender, task.flow, &[0], 0);
    served.pass(300);
    assert!(served.take(|output| matches!(output, Output::Look).then_some(())).is_some());
    served.counted(Side::Sender, task.flow, &[65_546 * 10 + 17], 200);
    let inserted = served.take(|output| match output {
        Output::Insert { bytes, .. } => Some(bytes.clone()),
        _ => None,
    });
    let inserted = inserted.unwrap();
    let message = &texts(&inserted)[0];
    // Ten whole messages, and seven bytes of the next.
    assert_eq!(message["AppInfo"], json!({ "ElapsedTime": 200_000, "NumBytes": 655_367 }));
    assert_eq!(message["TCPInfo"]["BytesRetrans"], 1448);
    // Counts that another test has requested cause no message.
    served.counted(Side::Sender, task.flow, &[65_546 * 11], 210);
    assert!(!served.out.iter().any(|output| matches!(output, Output::Insert { .. })));

    served.pass(9700);
    served.give(Input::Written { flow: task.flow });
    // The message between the blocks is no payload.
    served.counted(Side::Sender, task.flow, &[65_546 * 20 + inserted.len() as u64], 10_000);
    let stop = |output: &Output| if let Output::Stop { how, .. } = output { Some(*how) } else { None };
    assert_eq!(served.take(stop), Some(Stop::AtOnce));
    // What was acknowledged after the end does not count.
    let after = counts(Side::Sender, task.flow, &[65_546 * 30], served.now, 10_100);
    served.give(Input::Ended { counts: &after });
    let tally = served.peer();
    assert_eq!((tally.bytes, tally.elapsed), (Bytes::new(65_536 * 20), Span::from_secs(10)));
    assert!((tally.bitrate.bps() - 65_536.0 * 20.0 * 0.8).abs() < 1e-6);
    assert_eq!(served.trouble(), Some(None));
    served.give(Input::Bytes { link, bytes: &masked(0x88, &[3, 232]) });
    assert!(served.take(|output| matches!(output, Output::Close { .. }).then_some(())).is_some());
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn an_upload_of_ndt7_is_told_what_the_server_has_read() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &upgrade("/ndt/v7/upload", NDT7, ""));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    let task = served.started();
    assert_eq!(
        (task.side, task.framing, task.time),
        (Side::Receiver, PayloadFraming::WebSocket, Some(Span::from_secs(10)))
    );
    served.sent(link);
    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    served.counted(Side::Receiver, task.flow, &[1_000_000], 100);
    assert_eq!(served.told(link)[0]["AppInfo"], json!({ "ElapsedTime": 100_000, "NumBytes": 1_000_000 }));
    // A client that does not end is ended.
    served.pass(13_100);
    assert!(
        served
            .take(|output| matches!(output, Output::Stop { how: Stop::AtOnce, .. }).then_some(()))
            .is_some()
    );
    let end = counts(Side::Receiver, task.flow, &[9_000_000], served.now, 13_000);
    served.give(Input::Ended { counts: &end });
    assert_eq!(served.trouble(), Some(None));
}

#[test]
fn a_protocol_that_is_switched_off_is_named() {
    for (without, gone, stays) in
        [("ndt7", "/ndt/v7/download", None), ("browser", "", Some("/ndt/v7/download"))]
    {
        let mut served = ServedHttp::new();
        let without = vec![without.to_owned()];
        let config = EmbeddedServerConfig { port: 5201, shared: false, seed: 7, wall: Span::ZERO, without };
        served.server = HttpServer::new(&config);
        let of = |path: &str| if path.is_empty() { page("control") } else { upgrade(path, NDT7, "") };
        let link = served.request("192.0.2.9:4000", &of(gone));
        let text = String::from_utf8(served.sent(link)).unwrap();
        assert!(text.starts_with("HTTP/1.1 404 ") && text.contains("does not serve"), "{text}");
        served.request("192.0.2.9:4001", &of(stays.unwrap_or_default()));
        served.planned();
    }
}

/// A quota, or a test that would take too long: coming again soon does not help.
#[test]
fn a_client_that_may_not_measure_is_not_asked_to_come_again() {
    const WHY: &str = "192.0.2.0/24 has made 40 tests";
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &upgrade("/ndt/v7/download", NDT7, ""));
    let run = served.planned().run;
    served.give(Input::Refused { run, why: WHY.to_owned(), may_retry: false });
    let text = String::from_utf8(served.sent(link)).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 429 ") && text.contains(WHY) && !text.contains("Retry-After"),
        "{text}"
    );

    let control = served.request("192.0.2.9:4001", &page("control"));
    let run = served.planned().run;
    served.sent(control);
    served.give(Input::Refused { run, why: WHY.to_owned(), may_retry: false });
    assert_eq!(served.told(control), [json!({ "kind": "failed", "why": WHY })]);
}

#[test]
fn a_client_without_a_place_or_with_a_wrong_request_reads_why() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &upgrade("/ndt/v7/download", NDT7, ""));
    let run = served.planned().run;
    served.give(Input::Refused { run, why: "another run is in progress".to_owned(), may_retry: true });
    let text = String::from_utf8(served.sent(link)).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 503 ")
            && text.contains("Retry-After: ")
            && text.ends_with("in progress\n")
    );
    let foreign = page("control").replace("http://192.0.2.1:8080", "https://evil.example");
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(9000));
    for (head, status) in [
        (upgrade("/ndt/v7/download?early_exit=100", NDT7, ""), "400"),
        (upgrade("/ndt/v7/download", "chat", ""), "400"),
        ("GET /ndt/v7/upload HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "426"),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "404"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n".to_owned(), "400"),
        ("GET /\u{0} HTTP/1.1\r\n\r\n".to_owned(), "400"),
        (foreign, "403"),
        (page("control").replace(BROWSER, "other"), "400"),
        (page("control?streams=17"), "400"),
        (page("control?seconds=0"), "400"),
        (page("control?directions=sideways"), "400"),
        (page("up?stream=0"), "404"),
        (download(0), "404"),
        (long, "431"),
    ] {
        let link = served.request("192.0.2.9:4001", &head);
        let text = String::from_utf8(served.sent(link)).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {text}");
        assert!(
            served.take(|output| matches!(output, Output::Close { .. }).then_some(())).is_some(),
            "{head}"
        );
    }
    assert!(served.out.iter().all(|output| !matches!(output, Output::Ask(_))));
}

#[test]
fn a_request_that_does_not_end_is_given_up() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", "GET / HTTP/1.1\r\nHo");
    served.pass(9_000);
    assert!(served.sent(link).is_empty());
    served.pass(1_100);
    assert!(served.sent(link).starts_with(b"HTTP/1.1 408 "));
    assert_eq!(served.server.deadline(), None);
}

/// Opens a page's test and brings it to its first phase.
fn opened(served: &mut ServedHttp, part: &str) -> (Link, RunId) {
    let control = served.request("192.0.2.9:4000", &page(part));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    served.give(Input::Logged { run, id: "cafe" });
    (control, run)
}

fn kinds(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_page_measures_both_directions_and_reads_the_servers_figures() {
    let mut served = ServedHttp::new();
    let (control, _) = opened(&mut served, "control?streams=2&seconds=10");
    served.pass(300);
    let messages = served.told(control);
    assert_eq!(messages, [json!({ "kind": "open", "phase": "download", "streams": 2 })]);
    let idle = served.take(|output| {
        if let Output::Latency { flow, probes, .. } = output { Some((*flow, probes.len())) } else { None }
    });
    assert_eq!(idle, Some((None, 10)));

    let first = served.request("192.0.2.9:4001", &download(1));
    assert!(served.sent(first).starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(served.told(control).is_empty(), "it waits for the other connection");
    let second = served.request("192.0.2.9:4002", &download(0));
    let task = served.started();
    assert_eq!((task.links.as_slice(), task.framing), (&[second, first][..], PayloadFraming::None));
    assert_eq!(task.time, Some(Span::from_secs(10)));
    assert_eq!(kinds(&served.told(control)), ["go"]);

    served.counted(Side::Sender, task.flow, &[0, 0], 0);
    served.pass(250);
    served.counted(Side::Sender, task.flow, &[1_000_000, 500_000], 250);
    let progress = &served.told(control)[0];
    assert_eq!((&progress["bytes"], &progress["bitrate_bps"]), (&json!(1_500_000), &json!(48e6)));
    served.pass(9_750);
    served.give(Input::Written { flow: task.flow });
    served.counted(Side::Sender, task.flow, &[40_000_000, 10_000_000], 10_000);
    let after = counts(Side::Sender, task.flow, &[50_000_000, 20_000_000], served.now, 10_020);
    served.give(Input::Ended { counts: &after });
    let ended = served.told(control).pop().unwrap();
    assert_eq!((&ended["kind"], &ended["bitrate_bps"]), (&json!("ended"), &json!(40e6)));
    assert!(served.is_reset(first) && served.is_reset(second));

    // The page says nothing about the phase.
    served.pass(600);
    assert_eq!(served.peer().bytes, Bytes::new(50_000_000));
    assert_eq!(served.browser().starved_share, None);
    assert_eq!(kinds(&served.told(control)), ["open"]);
    for stream in 0..2 {
        served.request("192.0.2.9:4003", &page(&format!("up?stream={stream}")));
    }
    let task = served.started();
    assert_eq!((task.side, task.framing, task.flow), (Side::Receiver, PayloadFraming::WebSocket, FlowId(1)));
    served.told(control);
    served.pass(10_250);
    served.counted(Side::Receiver, task.flow, &[30_000_000, 0], 10_200);
    assert!(
        served
            .take(|output| matches!(output, Output::Stop { how: Stop::AtOnce, .. }).then_some(()))
            .is_some()
    );
    let tally = Tally {
        bytes: Bytes::new(25_000_000),
        elapsed: Span::from_secs(10),
        bitrate: Bitrate::from_bps(20e6).unwrap(),
        ..Tally::default()
    };
    let end = counts(Side::Receiver, task.flow, &[30_000_000, 0], served.now, 10_200);
    let end = FlowCounts { tally: Some(Box::new(tally)), ..end };
    served.give(Input::Ended { counts: &end });
    assert_eq!(served.told(control).pop().unwrap()["bitrate_bps"], 20e6, "the measured part, not the tail");
    let note = br#"{"kind":"note","phase":"upload","starved_share":0.5,"hidden":true}"#;
    served.give(Input::Bytes { link: control, bytes: &masked(0x81, note) });
    let browser = served.browser();
    assert_eq!((browser.starved_share, browser.hidden), (Ratio::new(0.5), true));
    assert_eq!(served.told(control), [json!({ "kind": "finished", "run": "cafe" })]);
    assert_eq!(served.trouble(), Some(None));
    served.give(Input::Bytes { link: control, bytes: &masked(0x88, &[3, 232]) });
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn pings_measure_the_round_trip_and_late_answers_do_not_count() {
    let mut served = ServedHttp::new();
    let (control, run) = opened(&mut served, "control");
    served.pass(3);
    let pong = |number: u64| masked(0x8a, &number.to_be_bytes());
    served.give(Input::Bytes { link: control, bytes: &pong(0) });
    served.give(Input::Bytes { link: control, bytes: &pong(700) });
    served.pass(300);
    let probes = served.take(|output| match output {
        Output::Latency { run: of, probes, .. } if *of == run => Some(probes.clone()),
        _ => None,
    });
    let rtts: Vec<Option<Span>> = probes.unwrap().into_iter().map(|(_, rtt)| rtt).collect();
    assert_eq!((rtts[0], rtts[1..].iter().flatten().count()), (Some(Span::from_ms(3)), 0));
    served.give(Input::Bytes { link: control, bytes: &pong(1) });
}

/// What a page does to its own test.
type Leave = fn(&mut ServedHttp, Link);

#[test]
fn a_page_that_leaves_or_breaks_the_rules_ends_its_own_test() {
    let leave: [(&str, Leave); 4] = [
        ("the page has left", |served, link| served.give(Input::Closed { link, reason: None })),
        ("cancelled on the page", |served, link| {
            served.give(Input::Bytes { link, bytes: &masked(0x81, br#"{"kind":"cancel"}"#) });
        }),
        ("a WebSocket frame without a mask", |served, link| {
            served.give(Input::Bytes { link, bytes: &[0x81, 0x01, b'x'] });
        }),
        ("the page did not open the connections of the test", |served, _| served.pass(10_000)),
    ];
    for (why, act) in leave {
        let mut served = ServedHttp::new();
        let (control, _) = opened(&mut served, "control?streams=2");
        served.pass(300);
        served.request("192.0.2.9:4001", &download(0));
        act(&mut served, control);
        assert_eq!(served.trouble(), Some(Some(why.to_owned())));
        served.pass(3_000);
        assert_eq!(served.server.deadline(), None, "{why}");
    }
}

#[test]
fn connections_of_another_host_or_of_no_phase_do_not_join() {
    let mut served = ServedHttp::new();
    opened(&mut served, "control?streams=2");
    for (from, head, status) in [
        ("192.0.2.9:1", download(0), "409"),
        ("198.51.100.7:1", download(0), "404"),
        ("192.0.2.9:2", page("control"), "404"),
    ] {
        let link = served.request(from, &head);
        let text = String::from_utf8(served.sent(link)).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {text}");
    }
    served.pass(300);
    for (head, status) in
        [(download(2), "409"), (page("up?stream=0"), "409"), (download(0), "200"), (download(0), "409")]
    {
        let link = served.request("192.0.2.9:3", &head);
        let text = String::from_utf8_lossy(&served.sent(link)).into_owned();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {text}");
    }
}

#[test]
fn a_download_that_closes_before_the_load_ends_the_test() {
    let mut served = ServedHttp::new();
    let (control, _) = opened(&mut served, "control?streams=2");
    served.pass(300);
    let link = served.request("192.0.2.9:4001", &download(0));
    let held = |output: &Output| matches!(output, Output::Hold { .. }).then_some(());
    assert!(served.take(held).is_none(), "a held link does not tell that it closes");
    served.told(control);
    served.give(Input::Closed { link, reason: None });
    assert_eq!(kinds(&served.told(control)), ["failed"]);
    assert_eq!(served.trouble(), Some(Some("the page closed a connection of the test".to_owned())));
}

#[test]
fn an_upload_that_ends_before_its_time_is_no_result() {
    let mut served = ServedHttp::new();
    let (control, _) = opened(&mut served, "control?streams=1&directions=upload");
    served.pass(300);
    served.request("192.0.2.9:4003", &page("up?stream=0"));
    let task = served.started();
    let end = counts(Side::Receiver, task.flow, &[30_000_000], served.now, 200);
    served.told(control);
    served.give(Input::Ended { counts: &end });
    assert_eq!(kinds(&served.told(control)), ["failed"]);
    assert_eq!(served.trouble(), Some(Some("the connections of the test ended early".to_owned())));
}

/// Counts of an upload whose last byte came `silent_ms` before `now`.
fn silent(flow: FlowId, now: Timestamp, ms: u64, silent_ms: u64) -> FlowCounts {
    let last = Timestamp::from_ns(now.as_ns() - silent_ms * 1_000_000);
    FlowCounts { last_at: Some(last), ..counts(Side::Receiver, flow, &[1_000_000], now, ms) }
}

/// A page's upload of ten seconds over one connection, at its end: the server, the control connection and the flow.
fn uploading() -> (ServedHttp, Link, FlowId) {
    let mut served = ServedHttp::new();
    let (control, _) = opened(&mut served, "control?streams=1&seconds=10&directions=upload");
    served.pass(300);
    served.request("192.0.2.9:4003", &page("up?stream=0"));
    let flow = served.started().flow;
    served.pass(10_250);
    served.counted(Side::Receiver, flow, &[1_000_000], 10_000);
    (served, control, flow)
}

#[test]
fn silence_at_the_end_of_an_upload_is_no_result() {
    for (silent_ms, told) in [(900, "ended"), (1_100, "failed")] {
        let (mut served, control, flow) = uploading();
        served.told(control);
        let end = silent(flow, served.now, 10_000, silent_ms);
        served.give(Input::Ended { counts: &end });
        assert_eq!(kinds(&served.told(control)), [told], "{silent_ms} ms");
    }
    let mut served = ServedHttp::new();
    served.request("192.0.2.9:4000", &upgrade("/ndt/v7/upload", NDT7, ""));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    let task = served.started();
    served.pass(13_100);
    let end = silent(task.flow, served.now, 13_000, 12_999);
    served.give(Input::Ended { counts: &end });
    let why = "the client sent nothing at the end of the test".to_owned();
    assert_eq!(served.trouble(), Some(Some(why)));
}

#[test]
fn a_connection_of_ndt7_that_breaks_fails_its_run() {
    let mut served = ServedHttp::new();
    served.request("192.0.2.9:4000", &upgrade("/ndt/v7/download", NDT7, ""));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    let task = served.started();
    served.pass(500);
    let trouble = Some(SystemError { errno: 104, text: "Connection reset by peer".to_owned() });
    let end = FlowCounts { trouble, ..counts(Side::Sender, task.flow, &[9_000_000], served.now, 400) };
    served.give(Input::Ended { counts: &end });
    assert_eq!(served.trouble(), Some(Some("Connection reset by peer".to_owned())));
}

#[test]
fn what_a_page_says_is_taken_only_where_it_is_possible() {
    let notes = [
        (r#""starved_share":1.5,"longest_lag_ns":1.5e9"#, None, Some(Span::from_ms(1_500))),
        (r#""starved_share":1e308,"longest_lag_ns":18446744073709551615"#, None, None),
        (r#""starved_share":"much","longest_lag_ns":-1"#, None, None),
        (r#""starved_share":0.25"#, Ratio::new(0.25), None),
    ];
    for (fields, starved_share, longest_lag) in notes {
        let (mut served, control, flow) = uploading();
        let end = silent(flow, served.now, 10_000, 0);
        served.give(Input::Ended { counts: &end });
        let note = format!(r#"{{"kind":"note","phase":"upload",{fields},"hidden":true}}"#);
        served.give(Input::Bytes { link: control, bytes: &masked(0x81, note.as_bytes()) });
        let browser = served.browser();
        assert_eq!((browser.starved_share, browser.longest_lag), (starved_share, longest_lag), "{fields}");
        assert!(browser.hidden, "{fields}");
    }
}

#[test]
fn texts_may_be_divided_and_pings_may_come_between() {
    let mut reader = MessageReader::default();
    let stream =
        [masked(0x01, b"ab"), masked(0x89, b"p"), masked(0x80, b"cd"), masked(0x82, b"xyz")].concat();
    let mut found = Vec::new();
    for byte in stream {
        found.extend(reader.read(&[byte]).unwrap());
    }
    let expected = [WebSocketMessage::Ping(b"p".to_vec()), WebSocketMessage::Text(b"abcd".to_vec())];
    assert_eq!(found, expected);
    assert!(FrameReader::default().next(&mut &[0x81, 0x05][..]).is_err());
    assert_eq!(super::websocket::frame(FrameKind::Text, b"hi"), [0x81, 2, b'h', b'i']);
}
