//! Browsers and clients of ndt7, as their specifications describe them.

mod bodies;
mod page;
#[cfg(feature = "http2")]
mod responsiveness;
#[cfg(feature = "http2")]
mod responsiveness_test;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use linerate_model::flow::{ConnectionCounts, FrameKind, FrameReader};
use linerate_model::{BrowserNote, Direction, Side, SideSettings, Tally};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use serde_json::{Value, json};

use super::HttpServer;
use super::websocket::{MessageReader, WebSocketMessage};
use crate::stand_in::{
    FlowCounts, FlowId, FlowTask, Input, Link, Opened, Output, PayloadFraming, Planned, RunId, StandIn, Stop,
    StreamCounts, SystemError,
};
use crate::{EmbeddedServerConfig, StartCheck};

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
        let config = EmbeddedServerConfig { seed: 7, ..EmbeddedServerConfig::at(5201) };
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
        self.accept(from, false)
    }

    fn accept(&mut self, from: &str, encrypted: bool) -> Link {
        let link = Link(self.next);
        self.next += 1;
        let opened =
            crate::virtual_hosts::opened(([192, 0, 2, 1], 5201), from.parse::<SocketAddr>().unwrap());
        let opened = Opened { encrypted, ..opened };
        self.give(Input::Accepted { listener: LISTENER, link, opened });
        link
    }

    /// Sends a request over a new connection.
    fn request(&mut self, from: &str, head: &str) -> Link {
        let link = self.connect(from);
        self.give(Input::Bytes { link, bytes: head.as_bytes() });
        link
    }

    /// Sends a request over a new connection with TLS.
    fn encrypted_request(&mut self, from: &str, head: &str) -> Link {
        let link = self.accept(from, true);
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
    fn messages(&mut self, link: Link) -> Vec<Value> {
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
    assert_eq!(served.messages(link)[0]["AppInfo"], json!({ "ElapsedTime": 100_000, "NumBytes": 1_000_000 }));
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
        let config = EmbeddedServerConfig { seed: 7, without, ..EmbeddedServerConfig::at(5201) };
        served.server = HttpServer::new(&config);
        let of = |path: &str| if path.is_empty() { page("control") } else { upgrade(path, NDT7, "") };
        let link = served.request("192.0.2.9:4000", &of(gone));
        let text = String::from_utf8(served.sent(link)).unwrap();
        assert!(text.starts_with("HTTP/1.1 404 ") && text.contains("does not serve"), "{text}");
        served.request("192.0.2.9:4001", &of(stays.unwrap_or_default()));
        served.planned();
    }
}

#[test]
fn a_test_of_a_page_starts_only_with_a_ticket_and_keeps_its_connections() {
    let mut served = ServedHttp::new();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, answers) = (Arc::clone(&asked), [false, true]);
    let start_check = StartCheck::new(move |ticket, client| {
        let mut seen = seen.lock().unwrap();
        seen.push((ticket.to_owned(), client));
        answers[seen.len() - 1]
    });
    let config = EmbeddedServerConfig { start_check: Some(start_check), ..EmbeddedServerConfig::at(5201) };
    served.server = HttpServer::new(&config);
    let link = served.request("192.0.2.9:4000", &page("control?streams=1&seconds=1&directions=download"));
    let text = String::from_utf8(served.sent(link)).unwrap();
    assert!(text.starts_with("HTTP/1.1 403 ") && text.contains("needs a ticket"), "{text}");
    served.request("192.0.2.9:4001", &page("control?streams=1&seconds=1&directions=download"));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    served.request("192.0.2.9:4002", &download(0));
    // ndt7 and the other programs have no page that could get one.
    served.request("192.0.2.9:4003", &upgrade("/ndt/v7/download", NDT7, ""));
    served.planned();
    let client = "192.0.2.9".parse().ok();
    assert_eq!(*asked.lock().unwrap(), [(TEST.to_owned(), client), (TEST.to_owned(), client)]);
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
    assert_eq!(served.messages(control), [json!({ "kind": "failed", "why": WHY })]);
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
