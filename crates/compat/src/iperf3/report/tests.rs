//! Compares the report with objects of the real program; its text is compared in `text`.

mod text;

use std::net::SocketAddr;

use linerate_units::Span;
use serde_json::Value;

use super::*;
use crate::iperf3::settings::Iperf3Settings;

/// Keys that 3.21 has in addition to those of 3.12.
const NEWER: &[&str] = &["timemillisecs", "fq_rate", "reorder", "interval", "gso", "gro", "bidir", "fqrate"];

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_default()
}

fn span(value: &Value, key: &str) -> Span {
    Span::from_secs_f64(value[key].as_f64().unwrap_or_default()).unwrap()
}

fn milliseconds(value: &Value, key: &str) -> Span {
    Span::from_secs_f64(value[key].as_f64().unwrap_or_default() / 1e3).unwrap()
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn settings_of(start: &Value) -> Iperf3Settings {
    let mut settings = Iperf3Settings::default();
    if start.get("accepted_connection").is_none() {
        settings.host = Some(text(&start["connecting_to"], "host"));
    }
    settings.common.json = true;
    settings
}

fn control_of(start: &Value) -> Iperf3Control {
    let peer = start.get("connecting_to").unwrap_or(&start["accepted_connection"]);
    Iperf3Control {
        host: text(peer, "host"),
        port: number(peer, "port") as u16,
        cookie: text(start, "cookie"),
        mss: number(start, "tcp_mss_default") as u32,
        unix_ms: match number(&start["timestamp"], "timemillisecs") {
            0 => number(&start["timestamp"], "timesecs") * 1000,
            ms => ms,
        },
    }
}

fn test_of(start: &Value, bidir: bool) -> Iperf3TestParameters {
    let test = &start["test_start"];
    Iperf3TestParameters {
        udp: test["protocol"] == "UDP",
        streams: number(test, "num_streams") as u32,
        block_bytes: number(test, "blksize"),
        omit: number(test, "omit") as u32,
        seconds: number(test, "duration") as u32,
        bytes: number(test, "bytes"),
        reverse: number(test, "reverse") == 1,
        bidir,
        bitrate: number(test, "target_bitrate"),
        ..Iperf3TestParameters::default()
    }
}

fn interval_of(record: &Value) -> StreamInterval {
    let micros = |key| record[key].as_u64().map(|us| Span::from_ns(us * 1000));
    StreamInterval {
        start: span(record, "start"),
        end: span(record, "end"),
        omitted: record["omitted"] == true,
        bytes: number(record, "bytes"),
        retransmits: record["retransmits"].as_u64(),
        snd_cwnd: record["snd_cwnd"].as_u64(),
        snd_wnd: record["snd_wnd"].as_u64(),
        rtt: micros("rtt"),
        rttvar: micros("rttvar"),
        pmtu: record["pmtu"].as_u64().map(|mtu| mtu as u32),
        reorder: record["reorder"].as_u64().map(|segments| segments as u32),
        packets: number(record, "packets"),
        lost: record["lost_packets"].as_i64().unwrap_or_default(),
        jitter: milliseconds(record, "jitter_ms"),
    }
}

/// When both ends send, iperf3 also reads the kernel's figures of receiving sockets, while our reports only
/// have those of senders. The interval gets the values of iperf3 so that the objects can be compared.
fn with_extremes_of_receivers(mut interval: StreamInterval, sender: &Value) -> StreamInterval {
    if interval.snd_cwnd.is_none() && number(sender, "max_snd_cwnd") > 0 {
        interval.snd_cwnd = sender["max_snd_cwnd"].as_u64();
        interval.snd_wnd = sender["max_snd_wnd"].as_u64();
        interval.rtt = sender["mean_rtt"].as_u64().map(|us| Span::from_ns(us * 1000));
    }
    interval
}

/// The counts of a stream. The received data of UDP streams at one end are known only as a sum, so the first
/// stream of a direction gets all of it.
fn end_of(stream: &Value, received_sum: Option<&Value>, server: bool) -> Iperf3StreamEnd {
    let Some(udp) = stream.get("udp") else {
        let side = |record: &Value| StreamEndCounts {
            bytes: number(record, "bytes"),
            duration: span(record, "end"),
            retransmits: record["retransmits"].as_u64(),
            ..StreamEndCounts::default()
        };
        let (sent, received) = (side(&stream["sender"]), side(&stream["receiver"]));
        let sends = stream["sender"]["sender"] == true;
        return Iperf3StreamEnd {
            sent: (!server || sends).then_some(sent),
            received: (!server || !sends).then_some(received),
        };
    };
    let sends = udp["sender"] == true;
    let sent = StreamEndCounts {
        bytes: number(udp, "bytes"),
        duration: span(udp, "end"),
        packets: number(udp, "packets"),
        ..StreamEndCounts::default()
    };
    let received = StreamEndCounts {
        bytes: received_sum.map(|sum| number(sum, "bytes")).unwrap_or_default(),
        duration: received_sum.map_or(sent.duration, |sum| span(sum, "end")),
        packets: if server && !sends {
            sent.packets
        } else {
            received_sum.map(|sum| number(sum, "packets")).unwrap_or_default()
        },
        lost: udp["lost_packets"].as_i64().unwrap_or_default(),
        out_of_order: number(udp, "out_of_order"),
        jitter: milliseconds(udp, "jitter_ms"),
        ..StreamEndCounts::default()
    };
    Iperf3StreamEnd {
        sent: (!server || sends).then_some(sent),
        received: (!server || !sends).then_some(received),
    }
}

fn ends_of(object: &Value, server: bool) -> Iperf3EndResults {
    let end = &object["end"];
    let cpu = |end: &Value, host: &str| {
        let share = |kind: &str| end["cpu_utilization_percent"][format!("{host}_{kind}")].as_f64().unwrap();
        CpuShare { total: share("total"), user: share("user"), system: share("system") }
    };
    let streams = end["streams"].as_array().unwrap();
    let flag = |stream: &Value| stream.get("udp").unwrap_or(&stream["sender"])["sender"] == true;
    let mut seen = Vec::new();
    let counted = streams.iter().map(|stream| {
        let sends = flag(stream);
        let sum = if sends == flag(&streams[0]) { "sum_received" } else { "sum_received_bidir_reverse" };
        let first = !seen.contains(&sends);
        seen.push(sends);
        end_of(stream, first.then(|| &end[sum]), server)
    });
    let streams = counted.collect();
    let local_sends = flag(&end["streams"][0]) || end.get("sum_sent_bidir_reverse").is_some();
    let name = |key: &str| end[key].as_str().map(str::to_owned);
    let (sender, receiver) = (name("sender_tcp_congestion"), name("receiver_tcp_congestion"));
    let (local_congestion, remote_congestion) =
        if local_sends { (sender, receiver) } else { (receiver, sender) };
    Iperf3EndResults {
        most_received: 0,
        duration: span(end["streams"][0].get("receiver").unwrap_or(&end["streams"][0]["udp"]), "seconds"),
        streams,
        local_cpu: cpu(end, "host"),
        remote_cpu: Some(cpu(end, "remote")),
        local_congestion,
        remote_congestion,
    }
}

/// Feeds a report with the content of a real object; returns its output.
fn replay(sample: &str, stream_json: bool) -> String {
    let object: Value = serde_json::from_str(sample).unwrap();
    let start = &object["start"];
    let mut settings = settings_of(start);
    settings.common.json_stream = stream_json;
    let mut report = Iperf3Report::new(&settings, &Iperf3SystemInfo { system: text(start, "system_info") });
    let bidir = object["end"].get("sum_sent_bidir_reverse").is_some();
    let mut printed = report.opening();
    printed += &report.connected(&control_of(start), test_of(start, bidir));
    let ends = object["end"]["streams"].as_array().unwrap();
    for (connected, end) in start["connected"].as_array().unwrap().iter().zip(ends) {
        let at = |host: &str, port: &str| -> SocketAddr {
            SocketAddr::new(text(connected, host).parse().unwrap(), number(connected, port) as u16)
        };
        printed += &report.stream(Iperf3Stream {
            socket: number(connected, "socket") as i32,
            local: at("local_host", "local_port"),
            remote: at("remote_host", "remote_port"),
            sends: end.get("udp").unwrap_or(&end["sender"])["sender"] == true,
            snd_buf: number(start, "sndbuf_actual"),
            rcv_buf: number(start, "rcvbuf_actual"),
        });
    }
    printed += &report.started();
    for interval in object["intervals"].as_array().unwrap() {
        let records = interval["streams"].as_array().unwrap().iter().map(interval_of);
        let records: Vec<_> =
            records.zip(ends).map(|(i, end)| with_extremes_of_receivers(i, &end["sender"])).collect();
        printed += &report.interval(&records);
    }
    printed += &report.summary(&ends_of(&object, !settings.is_client()));
    printed + &report.done().out
}

/// Compares line by line: layout, keys and their order must be equal, numbers approximately (iperf3 computes
/// durations in single precision).
fn assert_same<'a>(
    ours: impl Iterator<Item = &'a str>,
    theirs: impl Iterator<Item = &'a str>,
    tolerance: f64,
) {
    let (ours, theirs): (Vec<_>, Vec<_>) = (ours.collect(), theirs.collect());
    for (at, (our, their)) in ours.iter().zip(&theirs).enumerate() {
        let (our_key, our_value) = our.split_once(":\t").unwrap_or((our, ""));
        let (their_key, their_value) = their.split_once(":\t").unwrap_or((their, ""));
        assert_eq!(our_key, their_key, "line {at}: {our} instead of {their}");
        if our_key.ends_with("\"version\"") {
            continue;
        }
        let value = |text: &str| text.trim_end_matches(',').parse::<f64>();
        match (value(our_value), value(their_value)) {
            (Ok(ours), Ok(theirs)) => {
                let near = (ours - theirs).abs() <= tolerance * ours.abs().max(1.0).max(theirs.abs());
                assert!(near, "line {at}: {our} instead of {their}");
                assert_eq!(our_value.contains('.'), their_value.contains('.'), "line {at}: {our} / {their}");
            }
            _ => assert_eq!(our_value, their_value, "line {at}"),
        }
    }
    assert_eq!(ours.len(), theirs.len());
}

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../fixtures/transcripts/iperf3/", $name))
    };
}

#[test]
fn objects_of_clients_are_those_of_3_21() {
    for sample in [
        fixture!("tcp-upload-3.21.json"),
        fixture!("tcp-upload-P3-3.21.json"),
        fixture!("tcp-reverse-3.21.json"),
        fixture!("tcp-bidir-P2-3.21.json"),
        fixture!("udp-upload-loss-P2-3.21.json"),
        fixture!("udp-bidir-3.21.json"),
    ] {
        assert_same(replay(sample, false).lines(), sample.lines(), 1e-6);
    }
}

/// The start differs: 3.12 repeats some keys and uses another order.
#[test]
fn objects_of_3_12_are_the_same_but_for_newer_keys() {
    for sample in [
        fixture!("server-tcp-upload-P2-3.12.json"),
        fixture!("server-udp-reverse-3.12.json"),
        fixture!("server-udp-bidir-P2-3.12.json"),
        fixture!("server-tcp-bidir-omit-3.12.json"),
        fixture!("server-tcp-reverse-3.12.json"),
        fixture!("udp-reverse-omit-loss-3.12.json"),
    ] {
        let ours = replay(sample, false);
        let known = |line: &&str| {
            let key = line.trim().split('"').nth(1).unwrap_or_default();
            // The mean includes an interval that was too short to be printed.
            !NEWER.contains(&key) && !["title", "extra_data", "mean_rtt"].contains(&key)
        };
        let body = |text: &'static str| text.lines().skip_while(|line| !line.contains("intervals"));
        let ours: &'static str = ours.leak();
        let trimmed = |line: &'static str| line.trim_end_matches(',');
        // After an omitted part, 3.12 begins some microseconds late, but counts them.
        let tolerance = if sample.contains("\"omit\":	1") { 1e-4 } else { 1e-6 };
        let (ours, theirs) = (body(ours).filter(known), body(sample).filter(known));
        assert_same(ours.map(trimmed), theirs.map(trimmed), tolerance);
    }
}

#[test]
fn a_server_names_whom_it_accepted_before_the_cookie() {
    let ours = replay(fixture!("server-tcp-reverse-3.12.json"), false);
    let keys: Vec<_> = ours
        .lines()
        .filter(|line| line.starts_with("\t\t\"") && !line.starts_with("\t\t\t"))
        .filter_map(|line| line.trim().split('"').nth(1))
        .collect();
    assert_eq!(
        keys[..12],
        [
            "connected",
            "version",
            "system_info",
            "timestamp",
            "accepted_connection",
            "cookie",
            "tcp_mss_default",
            "target_bitrate",
            "fq_rate",
            "sock_bufsize",
            "sndbuf_actual",
            "rcvbuf_actual",
        ]
    );
}

/// Every line of the stream is a part of the object, so the object can be assembled from them and replayed.
#[test]
fn lines_of_a_stream_are_those_of_3_21() {
    let sample = fixture!("json-stream-3.21.ndjson");
    let lines: Vec<Value> = sample.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| {
        lines
            .iter()
            .filter(|line| line["event"] == event)
            .map(|line| line["data"].clone())
            .collect::<Vec<_>>()
    };
    let object =
        serde_json::json!({ "start": of("start")[0], "intervals": of("interval"), "end": of("end")[0] });
    let ours = replay(&object.to_string(), true);
    let theirs = sample.lines().filter(|line| !line.contains("server_output_text"));
    let pieces = |text: String| text.replace(",\"", ",\n\"").replace("\":", "\":\t");
    let ours = pieces(ours);
    let theirs = pieces(theirs.collect::<Vec<_>>().join("\n"));
    assert_same(ours.lines(), theirs.lines(), 1e-6);
}

fn client() -> Iperf3Settings {
    Iperf3Settings::client("127.0.0.1")
}

fn host() -> Iperf3SystemInfo {
    Iperf3SystemInfo { system: "Linux host 6.18.44 #1 SMP PREEMPT_DYNAMIC x86_64".to_owned() }
}

#[test]
fn an_early_failure_is_an_object_or_a_line() {
    let trouble = Iperf3Error::because(Iperf3ErrorNumber::CONNECT, 111, "Connection refused");
    let mut settings = client();
    let words = Iperf3Report::new(&settings, &host()).failed(&trouble);
    assert_eq!(words.err, format!("iperf3: error - {trouble}\n"));
    assert_eq!(words.out, "");
    settings.common.json = true;
    let words = Iperf3Report::new(&settings, &host()).failed(&trouble);
    assert_eq!(words.err, "");
    assert_same(words.out.lines(), fixture!("refused-3.21.json").lines(), 0.0);
    settings.common.json_stream = true;
    let words = Iperf3Report::new(&settings, &host()).failed(&trouble);
    assert_eq!(
        words.out,
        format!("{{\"event\":\"error\",\"data\":\"{trouble}\"}}\n{{\"event\":\"end\",\"data\":{{}}}}\n")
    );
}
