//! Tests of the pages themselves, over a control connection and connections for data.

use super::*;

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
    let messages = served.messages(control);
    assert_eq!(messages, [json!({ "kind": "open", "phase": "download", "streams": 2 })]);
    let idle = served.take(|output| {
        if let Output::Latency { flow, probes, .. } = output { Some((*flow, probes.len())) } else { None }
    });
    assert_eq!(idle, Some((None, 10)));

    let first = served.request("192.0.2.9:4001", &download(1));
    assert!(served.sent(first).starts_with(b"HTTP/1.1 200 OK\r\n"));
    assert!(served.messages(control).is_empty(), "it waits for the other connection");
    let second = served.request("192.0.2.9:4002", &download(0));
    let task = served.started();
    assert_eq!((task.links.as_slice(), task.framing), (&[second, first][..], PayloadFraming::None));
    assert_eq!(task.time, Some(Span::from_secs(10)));
    assert_eq!(kinds(&served.messages(control)), ["go"]);

    served.counted(Side::Sender, task.flow, &[0, 0], 0);
    served.pass(250);
    served.counted(Side::Sender, task.flow, &[1_000_000, 500_000], 250);
    let progress = &served.messages(control)[0];
    assert_eq!((&progress["bytes"], &progress["bitrate_bps"]), (&json!(1_500_000), &json!(48e6)));
    served.pass(9_750);
    served.give(Input::Written { flow: task.flow });
    served.counted(Side::Sender, task.flow, &[40_000_000, 10_000_000], 10_000);
    let after = counts(Side::Sender, task.flow, &[50_000_000, 20_000_000], served.now, 10_020);
    served.give(Input::Ended { counts: &after });
    let ended = served.messages(control).pop().unwrap();
    assert_eq!((&ended["kind"], &ended["bitrate_bps"]), (&json!("ended"), &json!(40e6)));
    assert!(served.is_reset(first) && served.is_reset(second));

    // The page says nothing about the phase.
    served.pass(600);
    assert_eq!(served.peer().bytes, Bytes::new(50_000_000));
    assert_eq!(served.browser().starved_share, None);
    assert_eq!(kinds(&served.messages(control)), ["open"]);
    for stream in 0..2 {
        served.request("192.0.2.9:4003", &page(&format!("up?stream={stream}")));
    }
    let task = served.started();
    assert_eq!((task.side, task.framing, task.flow), (Side::Receiver, PayloadFraming::WebSocket, FlowId(1)));
    served.messages(control);
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
    assert_eq!(
        served.messages(control).pop().unwrap()["bitrate_bps"],
        20e6,
        "the measured part, not the tail"
    );
    let note = br#"{"kind":"note","phase":"upload","starved_share":0.5,"hidden":true}"#;
    served.give(Input::Bytes { link: control, bytes: &masked(0x81, note) });
    let browser = served.browser();
    assert_eq!((browser.starved_share, browser.hidden), (Ratio::new(0.5), true));
    assert_eq!(served.messages(control), [json!({ "kind": "finished", "run": "cafe" })]);
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
    served.messages(control);
    served.give(Input::Closed { link, reason: None });
    assert_eq!(kinds(&served.messages(control)), ["failed"]);
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
    served.messages(control);
    served.give(Input::Ended { counts: &end });
    assert_eq!(kinds(&served.messages(control)), ["failed"]);
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
        served.messages(control);
        let end = silent(flow, served.now, 10_000, silent_ms);
        served.give(Input::Ended { counts: &end });
        assert_eq!(kinds(&served.messages(control)), [told], "{silent_ms} ms");
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

/// Bytes of TCP for a record of TLS 1.3 with 16 KiB (RFC 8446, section 5.2): header, kind, authentication.
const RECORD: u64 = 5 + (16 << 10) + 1 + 16;

#[test]
fn of_an_encrypted_download_the_payload_counts_and_not_its_records() {
    let mut served = ServedHttp::new();
    let control = served.encrypted_request("192.0.2.9:4000", &page("control?streams=2&directions=download"));
    let run = served.planned().run;
    served.give(Input::Admitted { run });
    served.pass(300);
    let plain = served.request("192.0.2.9:4001", &download(0));
    let text = String::from_utf8(served.sent(plain)).unwrap();
    assert!(text.contains("all connections of a test are encrypted, or none"), "{text}");
    served.encrypted_request("192.0.2.9:4002", &download(0));
    served.encrypted_request("192.0.2.9:4003", &download(1));
    let task = served.started();
    served.counted(Side::Sender, task.flow, &[0, 0], 0);
    served.messages(control);
    served.pass(250);
    // Of the record that is not complete, nothing can be read yet.
    served.counted(Side::Sender, task.flow, &[4 * RECORD, 3 * RECORD + 9_000], 250);
    assert_eq!(served.messages(control)[0]["bytes"], 7 << 14);
    served.pass(9_750);
    served.give(Input::Written { flow: task.flow });
    served.counted(Side::Sender, task.flow, &[1_000 * RECORD, 1_001 * RECORD], 10_000);
    let after = counts(Side::Sender, task.flow, &[2_000 * RECORD; 2], served.now, 10_020);
    served.give(Input::Ended { counts: &after });
    served.pass(600);
    assert_eq!(served.peer().bytes, Bytes::new(2_001 << 14));
}
