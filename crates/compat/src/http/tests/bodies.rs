//! Clients of LibreSpeed and Cloudflare, which send requests without a dialogue.

use std::collections::BTreeSet;

use linerate_model::flow::{EndMark, StreamCounts};

use linerate_model::sniff::Match;

use super::super::test_request;
use super::*;
use crate::stand_in::CountedFlow;

const MIB: u64 = 1 << 20;

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn post(path: &str, bytes: u64, more: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {bytes}\r\n{more}\r\n")
}

/// Counts of a sender that has written `written` bytes, of which `acknowledged` have arrived.
fn sent(task: &FlowTask, at: Timestamp, written: u64, acknowledged: u64, is_over: bool) -> FlowCounts {
    let first = Timestamp::from_ns(3_600_000_000_000);
    let connection =
        Some(ConnectionCounts { bytes_acknowledged: 700 + acknowledged, ..ConnectionCounts::default() });
    let all_acknowledged = Some(is_over && written == acknowledged);
    let stream = StreamCounts { bytes: written, connection, all_acknowledged, ..StreamCounts::default() };
    let begun = (written > 0).then_some(first);
    FlowCounts {
        flow: task.flow,
        at,
        first_at: begun,
        last_at: begun,
        streams: vec![stream],
        ..FlowCounts::default()
    }
}

fn read(task: &FlowTask, first: Timestamp, last: Timestamp, bytes: u64) -> FlowCounts {
    let streams = vec![StreamCounts { bytes, ..StreamCounts::default() }];
    FlowCounts {
        flow: task.flow,
        at: last,
        first_at: Some(first),
        last_at: Some(last),
        streams,
        ..FlowCounts::default()
    }
}

impl ServedHttp {
    fn text(&mut self, link: Link) -> String {
        String::from_utf8(self.sent(link)).unwrap()
    }

    fn looked(&mut self, counts: FlowCounts) {
        self.give(Input::Counts { cpu: Default::default(), flows: &[counts] });
    }

    fn result(&mut self) -> Option<Box<CountedFlow>> {
        self.take(
            |output| if let Output::Counted { counted, .. } = output { Some(counted.clone()) } else { None },
        )
    }

    fn is_closed(&mut self, link: Link) -> bool {
        self.take(|output| matches!(output, Output::Close { link: closed } if *closed == link).then_some(()))
            .is_some()
    }

    fn stopped(&mut self) -> Option<Stop> {
        self.take(|output| if let Output::Stop { how, .. } = output { Some(*how) } else { None })
    }

    /// Starts a download, alone in its run.
    fn download(&mut self, target: &str) -> (Link, Box<FlowTask>) {
        let link = self.request("192.0.2.9:4000", &get(target));
        let run = self.planned().run;
        self.give(Input::Admitted { run });
        let task = self.started();
        self.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
        self.looked(sent(&task, self.now, 0, 0, false));
        (link, task)
    }

    /// Passes a download to its client, who takes `ms` for it.
    fn deliver(&mut self, task: &FlowTask, bytes: u64, ms: u64) {
        self.give(Input::Written { flow: task.flow });
        assert_eq!(self.stopped(), Some(Stop::AtOnce));
        self.give(Input::Ended { counts: &sent(task, self.now, bytes, 0, true) });
        self.pass(ms);
        assert!(self.take(|output| matches!(output, Output::Look).then_some(())).is_some());
        self.looked(sent(task, self.now, bytes, bytes, true));
    }
}

#[test]
fn short_requests_are_answered_over_a_connection_that_is_kept() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &get("/backend/getIP.php?isp=true"));
    assert!(served.text(link).ends_with("{\"processedString\":\"192.0.2.9\",\"rawIspInfo\":\"\"}"));
    for _ in 0..10 {
        served.give(Input::Bytes { link, bytes: get("/backend/empty.php?r=0.7").as_bytes() });
        let text = served.text(link);
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 0\r\n\r\n"), "{text}");
    }
    served.give(Input::Bytes { link, bytes: get("/__down?bytes=5").as_bytes() });
    let text = served.text(link);
    assert!(text.contains("\r\nServer-Timing: cfRequestDuration;dur=0.000\r\n"), "{text}");
    assert!(text.contains("Content-Length: 5\r\n\r\nZZZZZ"), "{text}");
    let preflight = "OPTIONS /__up HTTP/1.1\r\nHost: h\r\nOrigin: http://pages.example\r\n\r\n";
    served.give(Input::Bytes { link, bytes: preflight.as_bytes() });
    assert!(served.text(link).contains("\r\nAccess-Control-Allow-Methods: GET, POST, OPTIONS\r\n"));
    served.give(Input::Bytes { link, bytes: post("/empty", 3, "").as_bytes() });
    assert!(served.out.iter().all(|output| !matches!(output, Output::Send { .. })), "the body is missing");
    served.give(Input::Closed { link, reason: None });
    assert!(served.is_closed(link));
}

#[test]
fn a_connection_without_requests_is_closed_without_a_word() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &get("/empty"));
    served.sent(link);
    served.pass(16_000);
    assert!(served.sent(link).is_empty() && served.is_closed(link));
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn downloads_over_several_connections_are_one_result() {
    let mut served = ServedHttp::new();
    let (first, task) = served.download("/garbage.php?ckSize=1");
    assert_eq!(
        (task.side, task.bytes, task.length),
        (Side::Sender, Some(Bytes::new(MIB)), Bytes::new(65_536))
    );
    let head = served.text(first);
    assert!(head.ends_with("Content-Length: 1048576\r\n\r\n"), "{head}");

    // The second begins half a second later, and the client asks for a third when it has the first.
    served.pass(500);
    let second = served.request("192.0.2.9:4001", &get("/garbage.php?ckSize=1"));
    let other = served.started();
    assert_ne!(task.flow, other.flow);
    served.give(Input::Started { flow: other.flow, settings: &SideSettings::default() });
    served.looked(sent(&other, served.now, 0, 0, false));
    served.give(Input::Written { flow: task.flow });
    assert_eq!(served.stopped(), Some(Stop::AtOnce));
    served.give(Input::Ended { counts: &sent(&task, served.now, MIB, MIB / 2, true) });
    served.pass(500);
    served.give(Input::Bytes { link: first, bytes: get("/empty").as_bytes() });
    assert!(served.text(first).contains("200 OK"));
    served.deliver(&other, MIB, 1_000);
    assert!(served.result().is_none(), "the client may want more");
    served.pass(4_100);

    let result = served.result().unwrap();
    assert_eq!((result.direction, result.side), (Direction::Download, Side::Sender));
    assert_eq!((result.tally.bytes, result.tally.elapsed), (Bytes::new(2 * MIB), Span::from_secs(2)));
    assert_eq!(result.receiver.map(|tally| tally.bytes), Some(Bytes::new(2 * MIB)));
    assert_eq!(served.trouble(), Some(None));
    served.give(Input::Closed { link: second, reason: None });
    served.give(Input::Closed { link: first, reason: None });
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn a_length_that_is_no_multiple_of_a_block_is_sent_to_the_byte() {
    for bytes in [16_384, 65_537, 100_000, 131_073, 1_000_003, 250_000_001] {
        let mut served = ServedHttp::new();
        let (link, task) = served.download(&format!("/__down?bytes={bytes}"));
        let head = served.text(link);
        let (fields, rest) = head.split_once("\r\n\r\n").unwrap();
        assert!(fields.ends_with(&format!("Content-Length: {bytes}")), "{fields}");
        let moved = task.bytes.unwrap().get();
        assert_eq!((rest.len() as u64 + moved, moved % task.length.get()), (bytes, 0));
        assert!(task.length.get() <= 65_536);
    }
}

#[test]
fn an_upload_is_answered_when_all_of_it_was_read() {
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &(post("/backend/empty.php", 5 * MIB, "") + "0123456789"));
    assert!(served.take(|output| matches!(output, Output::Hold { .. }).then_some(())).is_some());
    let planned = served.planned();
    assert_eq!(planned.tool, "librespeed");
    served.give(Input::Admitted { run: planned.run });
    let task = served.started();
    assert_eq!((task.side, task.end_mark), (Side::Receiver, EndMark::Length(5 * MIB - 10)));
    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    let begun = served.now;
    served.pass(400);
    assert!(served.sent(link).is_empty(), "it is not complete");
    let last = begun + Span::from_ms(400);
    served.give(Input::Ended { counts: &read(&task, begun + Span::from_ms(1), last, 5 * MIB - 10) });
    assert!(served.text(link).ends_with("Content-Length: 0\r\n\r\n"));

    // Over the same connection, with permission.
    let expects = post("/backend/empty.php", MIB, "Expect: 100-continue\r\n");
    served.give(Input::Bytes { link, bytes: expects.as_bytes() });
    let task = served.started();
    assert_eq!(served.text(link), "HTTP/1.1 100 Continue\r\n\r\n");
    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    let begun = served.now;
    served.pass(100);
    served.give(Input::Ended { counts: &read(&task, begun, begun + Span::from_ms(100), MIB) });
    served.pass(4_000);
    let result = served.result().unwrap();
    assert_eq!((result.direction, result.side), (Direction::Upload, Side::Receiver));
    assert_eq!((result.tally.bytes, result.tally.elapsed), (Bytes::new(6 * MIB), Span::from_ms(500)));
    assert_eq!((result.receiver, served.trouble()), (None, Some(None)));
}

/// The command-line client of LibreSpeed does not know how much it will send.
#[test]
fn the_payload_of_chunks_counts_without_their_sizes() {
    let mut served = ServedHttp::new();
    let head = "POST /empty.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    let link = served.request("192.0.2.9:4000", &(head.clone() + "8000\r\n0123456789"));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    let task = served.started();
    assert_eq!(task.end_mark, EndMark::None);
    let PayloadFraming::Chunks(mut chunks) = task.framing else { panic!("{task:?}") };
    let rest = ["x".repeat(0x8000 - 10), "\r\n0\r\n\r\n".to_owned()].concat();
    assert_eq!(chunks.take(rest.as_bytes()), Ok((0x8000 - 10, rest.len())));
    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    let begun = served.now;
    served.pass(100);
    served.give(Input::Ended { counts: &read(&task, begun, begun + Span::from_ms(100), 0x8000 - 10) });
    assert!(served.text(link).starts_with("HTTP/1.1 200 OK"));
    // All of it with the request: it is answered, and does not count.
    served.give(Input::Bytes { link, bytes: (head.clone() + "3\r\nabc\r\n0\r\n\r\n").as_bytes() });
    assert!(served.text(link).starts_with("HTTP/1.1 200 OK"));
    served.pass(4_000);
    assert_eq!(served.result().unwrap().tally.bytes, Bytes::new(0x8000));
    for body in ["xyz\r\n", "0\r\n\r\nGET /"] {
        let link = served.request("192.0.2.9:4001", &(head.clone() + body));
        assert!(served.text(link).starts_with("HTTP/1.1 400 "), "{body}");
        assert!(served.is_closed(link));
    }
}

/// LibreSpeed's page gives its requests up at the end of its time.
#[test]
fn of_a_download_that_is_given_up_the_acknowledged_part_counts() {
    let mut served = ServedHttp::new();
    let (link, task) = served.download("/garbage.php?ckSize=100");
    served.pass(1_000);
    served.looked(sent(&task, served.now, 50 * MIB, 40 * MIB, false));
    served.pass(50);
    let reset = SystemError { errno: 104, text: "Connection reset by peer".to_owned() };
    let last = FlowCounts { trouble: Some(reset), ..sent(&task, served.now, 52 * MIB, 0, false) };
    served.give(Input::Ended { counts: &last });
    assert!(served.is_closed(link));
    served.pass(4_000);
    let tally = served.result().unwrap().tally;
    assert_eq!(
        (tally.bytes, tally.elapsed, tally.complete),
        (Bytes::new(40 * MIB), Span::from_secs(1), true)
    );
    assert_eq!(served.trouble(), Some(None));
}

#[test]
fn both_directions_of_a_client_are_one_run() {
    let mut served = ServedHttp::new();
    let (link, task) = served.download("/__down?bytes=1000000");
    served.deliver(&task, 1_000_000, 80);
    served.give(Input::Bytes { link, bytes: post("/__up?measId=1", 65_536, "").as_bytes() });
    let task = served.started();
    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    served.pass(200);
    let half = read(&task, served.now, served.now, 30_000);
    served.give(Input::Ended { counts: &half });
    assert!(served.is_closed(link), "the client has left in the middle");
    served.pass(4_000);
    let results = [served.result().unwrap(), served.result().unwrap()];
    assert_eq!(
        results.map(|result| (result.direction, result.tally.bytes.get())),
        [(Direction::Download, 1_000_000), (Direction::Upload, 30_000)]
    );
    assert_eq!(served.trouble(), Some(None));
}

#[test]
fn a_client_without_a_place_is_told_to_come_again() {
    let mut served = ServedHttp::new();
    let links = [
        served.request("192.0.2.9:4000", &get("/garbage")),
        served.request("192.0.2.9:4001", &get("/garbage")),
        served.request("192.0.2.9:4002", &post("/empty", MIB, "")),
    ];
    let run = served.planned().run;
    served.give(Input::Refused { run, why: "another test is in progress".to_owned(), may_retry: true });
    for link in links {
        let text = served.text(link);
        assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("Retry-After: 5"), "{text}");
        assert!(served.is_closed(link));
    }
    assert_eq!(served.server.deadline(), None);
    let link = served.request("192.0.2.9:4000", &get("/__down?bytes=100000"));
    let run = served.planned().run;
    served.give(Input::Refused { run, why: "another test is in progress".to_owned(), may_retry: true });
    let text = served.text(link);
    assert!(text.starts_with("HTTP/1.1 429 ") && text.contains("Retry-After: 5"), "{text}");
}

#[test]
fn clients_of_other_addresses_and_tools_have_runs_of_their_own() {
    let mut served = ServedHttp::new();
    for (from, target) in [
        ("192.0.2.9:4000", "/garbage"),
        ("192.0.2.8:4000", "/garbage"),
        ("192.0.2.9:4001", "/__down?bytes=99999"),
    ] {
        served.request(from, &get(target));
    }
    served.request("192.0.2.9:4002", "GET /garbage HTTP/1.1\r\nUser-Agent: another\r\n\r\n");
    let runs = [served.planned(), served.planned(), served.planned(), served.planned()];
    let tools = runs.each_ref().map(|run| run.tool);
    assert_eq!(tools, ["librespeed", "librespeed", "cloudflare", "librespeed"]);
    runs.iter().for_each(|planned| served.give(Input::Admitted { run: planned.run }));
    let flows: BTreeSet<FlowId> = runs.iter().map(|_| served.started().flow).collect();
    assert_eq!(flows.len(), 4);
}

#[test]
fn the_bodies_of_one_client_in_transit_are_limited() {
    let mut served = ServedHttp::new();
    for n in 0..32 {
        let link = served.request(&format!("192.0.2.9:{}", 4000 + n), &get("/garbage"));
        assert!(served.sent(link).is_empty());
    }
    let link = served.request("192.0.2.9:5000", &get("/garbage"));
    assert!(served.text(link).starts_with("HTTP/1.1 503 "));
    assert!(served.is_closed(link));
}

#[test]
fn nothing_may_follow_a_request_before_its_response() {
    for request in [
        get("/garbage") + "x",
        post("/empty", 3, "") + "0123",
        get("/empty").repeat(2_000),
        get("/getIP") + "G",
        get("/empty").replace("\r\n\r\n", "\r\nContent-Length: 9\r\n\r\n"),
        get("/garbage").replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "OPTIONS /__up HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n".to_owned(),
    ] {
        let mut served = ServedHttp::new();
        let link = served.request("192.0.2.9:4000", &request);
        assert!(served.text(link).starts_with("HTTP/1.1 400 "), "{}", request.len());
        assert!(served.is_closed(link));
    }
    let mut served = ServedHttp::new();
    let link = served.request("192.0.2.9:4000", &get("/garbage"));
    served.give(Input::Bytes { link, bytes: b"GET /garbage" });
    assert!(served.is_closed(link), "while it waits for its place");
}

#[test]
fn a_run_that_the_server_ends_has_failed() {
    let mut served = ServedHttp::new();
    let (link, task) = served.download("/garbage.php?ckSize=1024");
    served.pass(100);
    served.looked(sent(&task, served.now, 9 * MIB, 8 * MIB, false));
    let reason = SystemError { errno: 0, text: "the run took longer than this server allows".to_owned() };
    served.give(Input::Closed { link, reason: Some(reason) });
    assert_eq!(served.stopped(), Some(Stop::Abort));
    let more = served.request("192.0.2.9:4001", &get("/garbage"));
    assert!(served.text(more).starts_with("HTTP/1.1 503 "), "until its flows have ended");
    let reset = SystemError { errno: 104, text: "Connection reset by peer".to_owned() };
    let last = FlowCounts { trouble: Some(reset), ..sent(&task, served.now, 9 * MIB, 8 * MIB, false) };
    assert_eq!(served.result(), None);
    served.give(Input::Ended { counts: &last });
    assert_eq!(served.result().map(|result| result.tally.bytes.get()), Some(8 * MIB));
    assert_eq!(served.trouble(), Some(Some("the run took longer than this server allows".to_owned())));
    assert_eq!(served.server.deadline(), None);
}

#[test]
fn a_run_whose_first_connection_is_idle_is_ended_too() {
    let mut served = ServedHttp::new();
    let (link, task) = served.download("/garbage.php?ckSize=1");
    served.deliver(&task, MIB, 10);
    let other = served.request("192.0.2.9:4001", &get("/garbage.php?ckSize=1024"));
    let second = served.started();
    served.give(Input::Started { flow: second.flow, settings: &SideSettings::default() });
    let reason = SystemError { errno: 0, text: "the run took longer than this server allows".to_owned() };
    served.give(Input::Closed { link, reason: Some(reason) });
    assert!(served.is_closed(link));
    assert_eq!(served.stopped(), Some(Stop::Abort), "the download over the other connection");
    served.give(Input::Ended { counts: &sent(&second, served.now, 0, 0, true) });
    assert!(served.is_closed(other));
    assert_eq!(served.trouble(), Some(Some("the run took longer than this server allows".to_owned())));
}

#[test]
fn either_is_switched_off_by_its_name() {
    for (without, target) in
        [("librespeed", "/garbage"), ("librespeed", "/getIP"), ("cloudflare", "/__down?bytes=9")]
    {
        let mut served = ServedHttp::new();
        let without = vec![without.to_owned()];
        let config = EmbeddedServerConfig { seed: 7, without, ..EmbeddedServerConfig::at(5201) };
        served.server = HttpServer::new(&config);
        let link = served.request("192.0.2.9:4000", &get(target));
        let text = served.text(link);
        assert!(text.starts_with("HTTP/1.1 404 ") && text.contains("does not serve"), "{text}");
    }
}

#[test]
fn a_request_of_a_test_is_known_by_its_path() {
    let yes = [
        "GET /ndt/v7/download?x=1 HTTP/1.1\r\n",
        "POST /backend/empty.php HTTP/1.1",
        "OPTIONS /__up?",
        "GET /getIP ",
        "GET /linerate/browser/0123/down?stream=1",
    ];
    for start in yes {
        assert_eq!(test_request(start.as_bytes()), Match::Yes, "{start}");
        let shorter = &start[..start.find('/').unwrap_or(0) + 3];
        assert_eq!(test_request(shorter.as_bytes()), Match::More, "{shorter}");
    }
    let long = "GET /".to_owned() + &"a".repeat(300);
    let no = [
        "GET / HTTP/1.1\r\n",
        "GET /api/v1/runs?x",
        "PUT /__up HTTP",
        "\x16\x03\x01",
        "GET /empty\r\n",
        &long,
    ];
    for start in no {
        assert_eq!(test_request(start.as_bytes()), Match::No, "{start}");
    }
    assert_eq!(test_request(b""), Match::More);
}

#[test]
fn of_an_encrypted_download_that_is_given_up_the_payload_counts() {
    let mut served = ServedHttp::new();
    let link = served.encrypted_request("192.0.2.9:4000", &get("/garbage.php?ckSize=1"));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    let task = served.started();
    served.give(Input::Started { flow: task.flow, settings: &SideSettings::default() });
    served.looked(sent(&task, served.now, 0, 0, false));
    served.pass(1_000);
    // Ten records of 16 KiB and a part of the next.
    let encrypted = 10 * (5 + (16 << 10) + 1 + 16) + 300;
    served.looked(sent(&task, served.now, 20 << 14, encrypted, false));
    let reset = SystemError { errno: 104, text: "Connection reset by peer".to_owned() };
    let last = FlowCounts { trouble: Some(reset), ..sent(&task, served.now, 20 << 14, 0, false) };
    served.give(Input::Ended { counts: &last });
    assert!(served.is_closed(link));
    served.pass(4_000);
    assert_eq!(served.result().unwrap().tally.bytes, Bytes::new(10 << 14));
}
