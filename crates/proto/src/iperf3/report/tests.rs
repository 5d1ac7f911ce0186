use std::net::SocketAddr;

use linerate_units::Span;
use serde_json::Value;

use super::*;
use crate::iperf3::settings::{EndCondition, Settings};

/// Keys that 3.21 has and 3.12 has not.
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

fn settings_of(start: &Value) -> Settings {
    let mut settings = Settings::default();
    if start.get("accepted_connection").is_none() {
        settings.host = Some(text(&start["connecting_to"], "host"));
    }
    settings.common.json = true;
    settings
}

fn control_of(start: &Value) -> Control {
    let peer = start.get("connecting_to").unwrap_or(&start["accepted_connection"]);
    Control {
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

fn test_of(start: &Value, bidir: bool) -> Test {
    let test = &start["test_start"];
    Test {
        udp: test["protocol"] == "UDP",
        streams: number(test, "num_streams") as u32,
        block_bytes: number(test, "blksize"),
        omit: number(test, "omit") as u32,
        seconds: number(test, "duration") as u32,
        bytes: number(test, "bytes"),
        reverse: number(test, "reverse") == 1,
        bidir,
        bitrate: number(test, "target_bitrate"),
        ..Test::default()
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

/// iperf3 looks at the kernel's figures of receiving sockets too when both ends send; ours are told only of senders.
/// So that the object can be compared, the interval is given what iperf3 saw.
fn with_extremes_of_receivers(mut interval: StreamInterval, sender: &Value) -> StreamInterval {
    if interval.snd_cwnd.is_none() && number(sender, "max_snd_cwnd") > 0 {
        interval.snd_cwnd = sender["max_snd_cwnd"].as_u64();
        interval.snd_wnd = sender["max_snd_wnd"].as_u64();
        interval.rtt = sender["mean_rtt"].as_u64().map(|us| Span::from_ns(us * 1000));
    }
    interval
}

/// The counts of a stream. What one end of a UDP stream received is known only as a sum: the first stream of a
/// direction is given all of it.
fn end_of(stream: &Value, received_sum: Option<&Value>, server: bool) -> StreamEnd {
    let Some(udp) = stream.get("udp") else {
        let half = |record: &Value| Half {
            bytes: number(record, "bytes"),
            duration: span(record, "end"),
            retransmits: record["retransmits"].as_u64(),
            ..Half::default()
        };
        let (sent, received) = (half(&stream["sender"]), half(&stream["receiver"]));
        let sends = stream["sender"]["sender"] == true;
        return StreamEnd {
            sent: (!server || sends).then_some(sent),
            received: (!server || !sends).then_some(received),
        };
    };
    let sends = udp["sender"] == true;
    let sent = Half {
        bytes: number(udp, "bytes"),
        duration: span(udp, "end"),
        packets: number(udp, "packets"),
        ..Half::default()
    };
    let received = Half {
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
        ..Half::default()
    };
    StreamEnd { sent: (!server || sends).then_some(sent), received: (!server || !sends).then_some(received) }
}

fn ends_of(object: &Value, server: bool) -> End {
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
    End {
        duration: span(end["streams"][0].get("receiver").unwrap_or(&end["streams"][0]["udp"]), "seconds"),
        streams,
        local_cpu: cpu(end, "host"),
        remote_cpu: Some(cpu(end, "remote")),
        local_congestion,
        remote_congestion,
    }
}

/// Tells a report what the object of the real program says, and returns all that it prints.
fn replay(sample: &str, stream_json: bool) -> String {
    let object: Value = serde_json::from_str(sample).unwrap();
    let start = &object["start"];
    let mut settings = settings_of(start);
    settings.common.json_stream = stream_json;
    let mut report = Report::new(&settings, &Host { system: text(start, "system_info") });
    let bidir = object["end"].get("sum_sent_bidir_reverse").is_some();
    let mut said = report.opening();
    said += &report.connected(&control_of(start), test_of(start, bidir));
    let ends = object["end"]["streams"].as_array().unwrap();
    for (connected, end) in start["connected"].as_array().unwrap().iter().zip(ends) {
        let at = |host: &str, port: &str| -> SocketAddr {
            SocketAddr::new(text(connected, host).parse().unwrap(), number(connected, port) as u16)
        };
        said += &report.stream(Stream {
            socket: number(connected, "socket") as i32,
            local: at("local_host", "local_port"),
            remote: at("remote_host", "remote_port"),
            sends: end.get("udp").unwrap_or(&end["sender"])["sender"] == true,
            snd_buf: number(start, "sndbuf_actual"),
            rcv_buf: number(start, "rcvbuf_actual"),
        });
    }
    said += &report.started();
    for interval in object["intervals"].as_array().unwrap() {
        let records = interval["streams"].as_array().unwrap().iter().map(interval_of);
        let records: Vec<_> =
            records.zip(ends).map(|(i, end)| with_extremes_of_receivers(i, &end["sender"])).collect();
        said += &report.interval(&records);
    }
    said += &report.summary(&ends_of(&object, !settings.is_client()));
    said + &report.done().out
}

/// Compares line by line: layout, keys and their order are the same, numbers nearly (iperf3 reckons lengths in
/// single precision).
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

/// The start differs: 3.12 writes some keys twice and in another order.
#[test]
fn objects_of_servers_are_those_of_3_12_but_for_newer_keys() {
    for sample in [
        fixture!("server-tcp-upload-P2-3.12.json"),
        fixture!("server-udp-reverse-3.12.json"),
        fixture!("server-udp-bidir-P2-3.12.json"),
        fixture!("server-tcp-bidir-omit-3.12.json"),
        fixture!("server-tcp-reverse-3.12.json"),
    ] {
        let ours = replay(sample, false);
        let known = |line: &&str| {
            let key = line.trim().split('"').nth(1).unwrap_or_default();
            // The mean has in it an interval that was too short to be printed.
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

/// Every line of the stream is a part of the object, so the pieces can be put into one and told again.
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

fn client() -> Settings {
    Settings::client("127.0.0.1")
}

fn host() -> Host {
    Host { system: "Linux host 6.18.44 #1 SMP PREEMPT_DYNAMIC x86_64".to_owned() }
}

fn stream(socket: i32, ports: (u16, u16), sends: bool) -> Stream {
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    Stream { socket, local: at(ports.0), remote: at(ports.1), sends, snd_buf: 16_384, rcv_buf: 131_072 }
}

/// From and to, in milliseconds.
fn between(from: u64, to: u64) -> StreamInterval {
    StreamInterval { start: Span::from_ms(from), end: Span::from_ms(to), ..StreamInterval::default() }
}

fn tcp(from: u64, to: u64, blocks: u64) -> StreamInterval {
    StreamInterval { bytes: blocks << 17, ..between(from, to) }
}

fn tcp_sender(from: u64, to: u64, blocks: u64, retransmits: u64) -> StreamInterval {
    let kernel = StreamInterval {
        retransmits: Some(retransmits),
        snd_cwnd: Some(1_178_694),
        ..StreamInterval::default()
    };
    StreamInterval { bytes: blocks << 17, start: Span::from_ms(from), end: Span::from_ms(to), ..kernel }
}

fn blocks(blocks: u64, ms: u64, retransmits: Option<u64>) -> Option<Half> {
    Some(Half { bytes: blocks << 17, duration: Span::from_ms(ms), retransmits, ..Half::default() })
}

/// As iperf3 3.12 printed it (`-c 127.0.0.1 -t 2 -b 20M -P 2 -V -T tit`), but for the prefix of `Control connection`,
/// the versions, and the column before `sender`, which 3.21 has moved by one.
#[test]
fn text_of_a_client_with_two_streams() {
    let mut settings = client();
    settings.common.verbose = true;
    settings.client.title = Some("tit".to_owned());
    settings.client.parallel = 2;
    settings.client.bitrate = 20_000_000;
    settings.client.end = EndCondition::Time(2);
    let mut report = Report::new(&settings, &host());
    let control = Control {
        host: "127.0.0.1".to_owned(),
        port: 24001,
        cookie: "cf2ewiiltcmcp2asvmpyag5vztzx5wtp5hkk".to_owned(),
        mss: 32_768,
        unix_ms: 1_795_316_403_000,
    };
    let mut said = report.opening();
    said += &report.connected(&control, Test::asked(&settings, 131_072));
    said += &report.stream(stream(5, (60566, 24001), true));
    said += &report.stream(stream(7, (60574, 24001), true));
    said += &report.started();
    said += &report.interval(&[tcp_sender(0, 1000, 20, 0), tcp_sender(0, 1000, 20, 0)]);
    said += &report.interval(&[tcp_sender(1000, 2000, 19, 0), tcp_sender(1000, 2000, 19, 0)]);
    let both = StreamEnd { sent: blocks(39, 2000, Some(0)), received: blocks(39, 2000, None) };
    said += &report.summary(&End {
        duration: Span::from_ms(2000),
        streams: vec![both, both],
        local_cpu: CpuShare { total: 2.2, user: 0.0, system: 2.2 },
        remote_cpu: Some(CpuShare { total: 0.2, user: 0.2, system: 0.0 }),
        local_congestion: Some("bbr".to_owned()),
        remote_congestion: Some("bbr".to_owned()),
    });
    let words = report.done();
    assert_eq!(words.err, "");
    said += &words.out;
    let expected = "\
tit:  iperf 3.21 (linerate VERSION)
tit:  Linux host 6.18.44 #1 SMP PREEMPT_DYNAMIC x86_64
tit:  Control connection MSS 32768
tit:  Time: Sun, 22 Nov 2026 03:00:03 GMT
tit:  Connecting to host 127.0.0.1, port 24001
tit:        Cookie: cf2ewiiltcmcp2asvmpyag5vztzx5wtp5hkk
tit:        TCP MSS: 32768 (default)
tit:        Target Bitrate: 20000000
tit:  [  5] local 127.0.0.1 port 60566 connected to 127.0.0.1 port 24001
tit:  [  7] local 127.0.0.1 port 60574 connected to 127.0.0.1 port 24001
tit:  Starting Test: protocol: TCP, 2 streams, 131072 byte blocks, omitting 0 seconds, 2 second test, tos 0
tit:  [ ID] Interval           Transfer     Bitrate         Retr  Cwnd
tit:  [  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0   1.12 MBytes       
tit:  [  7]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    0   1.12 MBytes       
tit:  [SUM]   0.00-1.00   sec  5.00 MBytes  41.9 Mbits/sec    0             
tit:  - - - - - - - - - - - - - - - - - - - - - - - - -
tit:  [  5]   1.00-2.00   sec  2.38 MBytes  19.9 Mbits/sec    0   1.12 MBytes       
tit:  [  7]   1.00-2.00   sec  2.38 MBytes  19.9 Mbits/sec    0   1.12 MBytes       
tit:  [SUM]   1.00-2.00   sec  4.75 MBytes  39.8 Mbits/sec    0             
tit:  - - - - - - - - - - - - - - - - - - - - - - - - -
tit:  Test Complete. Summary Results:
tit:  [ ID] Interval           Transfer     Bitrate         Retr
tit:  [  5]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec    0            sender
tit:  [  5]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec                  receiver
tit:  [  7]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec    0            sender
tit:  [  7]   0.00-2.00   sec  4.88 MBytes  20.4 Mbits/sec                  receiver
tit:  [SUM]   0.00-2.00   sec  9.75 MBytes  40.9 Mbits/sec    0             sender
tit:  [SUM]   0.00-2.00   sec  9.75 MBytes  40.9 Mbits/sec                  receiver
tit:  CPU Utilization: local/sender 2.2% (0.0%u/2.2%s), remote/receiver 0.2% (0.2%u/0.0%s)
tit:  snd_tcp_congestion bbr
tit:  rcv_tcp_congestion bbr
tit:  
tit:  iperf Done.
";
    assert_eq!(said, expected.replace("VERSION", env!("CARGO_PKG_VERSION")));
}

/// As iperf3 3.12 printed it (`-s -V`, asked for `--bidir -P 2 -b 20M -t 1`).
#[test]
fn text_of_a_server_when_both_send() {
    let mut settings = Settings::default();
    settings.common.verbose = true;
    settings.common.port = 24003;
    let mut report = Report::new(&settings, &host());
    let control = Control { host: "127.0.0.1".to_owned(), port: 46350, ..Control::default() };
    let test = Test {
        bidir: true,
        streams: 2,
        block_bytes: 131_072,
        seconds: 1,
        bitrate: 20_000_000,
        ..Test::default()
    };
    report.connected(&control, test);
    for (socket, port, sends) in [(5, 46356, false), (8, 46372, false), (11, 46386, true), (13, 46400, true)]
    {
        report.stream(stream(socket, (24003, port), sends));
    }
    report.started();
    let mut said = report.interval(&[
        tcp(0, 1001, 19),
        tcp(0, 1001, 19),
        tcp_sender(0, 1001, 20, 1),
        tcp_sender(0, 1001, 20, 1),
    ]);
    let received = StreamEnd { sent: None, received: blocks(20, 1008, None) };
    let sent = StreamEnd { sent: blocks(20, 1008, Some(1)), received: None };
    said += &report.summary(&End {
        duration: Span::from_ms(1008),
        streams: vec![received, received, sent, sent],
        local_cpu: CpuShare { total: 1.4, user: 1.4, system: 0.0 },
        local_congestion: Some("bbr".to_owned()),
        ..End::default()
    });
    said += &report.done().out;
    assert_eq!(
        said,
        "\
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][RX-S]   0.00-1.00   sec  2.38 MBytes  19.9 Mbits/sec                  
[  8][RX-S]   0.00-1.00   sec  2.38 MBytes  19.9 Mbits/sec                  
[SUM][RX-S]   0.00-1.00   sec  4.75 MBytes  39.8 Mbits/sec                  
[ 11][TX-S]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    1   1.12 MBytes       
[ 13][TX-S]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    1   1.12 MBytes       
[SUM][TX-S]   0.00-1.00   sec  5.00 MBytes  41.9 Mbits/sec    2             
- - - - - - - - - - - - - - - - - - - - - - - - -
Test Complete. Summary Results:
[ ID][Role] Interval           Transfer     Bitrate         Retr
[  5] (sender statistics not available)
[  5][RX-S]   0.00-1.01   sec  2.50 MBytes  20.8 Mbits/sec                  receiver
[  8] (sender statistics not available)
[  8][RX-S]   0.00-1.01   sec  2.50 MBytes  20.8 Mbits/sec                  receiver
[SUM] (sender statistics not available)
[SUM][RX-S]   0.00-1.01   sec  5.00 MBytes  41.6 Mbits/sec                  receiver
rcv_tcp_congestion bbr
[ 11][TX-S]   0.00-1.01   sec  2.50 MBytes  20.8 Mbits/sec    1            sender
[ 11] (receiver statistics not available)
[ 13][TX-S]   0.00-1.01   sec  2.50 MBytes  20.8 Mbits/sec    1            sender
[ 13] (receiver statistics not available)
[SUM][TX-S]   0.00-1.01   sec  5.00 MBytes  41.6 Mbits/sec    2             sender
[SUM] (receiver statistics not available)
CPU Utilization: local/sender 1.4% (1.4%u/0.0%s), remote/receiver 0.0% (0.0%u/0.0%s)
CPU Utilization: local/receiver 1.4% (1.4%u/0.0%s), remote/sender 0.0% (0.0%u/0.0%s)
snd_tcp_congestion bbr
"
    );
}

fn udp(from: u64, to: u64, packets: u64, lost: i64, jitter_us: u64) -> StreamInterval {
    let arrived = (packets as i64 - lost) as u64;
    let jitter = Span::from_ns(jitter_us * 1000);
    StreamInterval { bytes: arrived * 1000, packets, lost, jitter, ..between(from, to) }
}

/// As iperf3 3.12 printed it (`-u -b 2M -l 1000 -t 2 -R -P 2` through a relay that drops each 25th datagram and
/// turns some around).
#[test]
fn text_of_a_client_that_receives_datagrams() {
    let mut settings = client();
    settings.client.udp = true;
    settings.client.reverse = true;
    settings.client.parallel = 2;
    let mut report = Report::new(&settings, &host());
    let control = Control { host: "127.0.0.1".to_owned(), port: 24101, ..Control::default() };
    let mut said = report.connected(&control, Test::asked(&settings, 1000));
    said += &report.stream(stream(5, (45466, 24101), false));
    said += &report.stream(stream(7, (56940, 24101), false));
    said += &report.started();
    said += &report.interval(&[udp(0, 1006, 251, 10, 2923), udp(0, 1006, 251, 10, 2558)]);
    said += &report.interval(&[udp(1006, 2000, 249, 10, 325), udp(1006, 2000, 248, 9, 45)]);
    let sent = Half { bytes: 501_000, packets: 501, duration: Span::from_ms(2003), ..Half::default() };
    let half = |packets: u64, lost: i64, out_of_order, jitter_us: u64| Half {
        bytes: 480_000,
        packets,
        lost,
        out_of_order,
        jitter: Span::from_ns(jitter_us * 1000),
        duration: Span::from_ms(2000),
        ..Half::default()
    };
    said += &report.summary(&End {
        duration: Span::from_ms(2000),
        streams: vec![
            StreamEnd { sent: Some(sent), received: Some(half(500, 20, 25, 325)) },
            StreamEnd { sent: Some(sent), received: Some(half(499, 19, 0, 45)) },
        ],
        ..End::default()
    });
    said += &report.done().out;
    assert_eq!(
        said,
        "\
Connecting to host 127.0.0.1, port 24101
Reverse mode, remote host 127.0.0.1 is sending
[  5] local 127.0.0.1 port 45466 connected to 127.0.0.1 port 24101
[  7] local 127.0.0.1 port 56940 connected to 127.0.0.1 port 24101
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.01   sec   235 KBytes  1.92 Mbits/sec  2.923 ms  10/251 (4%)  
[  7]   0.00-1.01   sec   235 KBytes  1.92 Mbits/sec  2.558 ms  10/251 (4%)  
[SUM]   0.00-1.01   sec   471 KBytes  3.83 Mbits/sec  2.740 ms  20/502 (4%)  
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   1.01-2.00   sec   233 KBytes  1.92 Mbits/sec  0.325 ms  10/249 (4%)  
[  7]   1.01-2.00   sec   233 KBytes  1.92 Mbits/sec  0.045 ms  9/248 (3.6%)  
[SUM]   1.01-2.00   sec   467 KBytes  3.85 Mbits/sec  0.185 ms  19/497 (3.8%)  
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-2.00   sec   489 KBytes  2.00 Mbits/sec  0.000 ms  0/501 (0%)  sender
[SUM]  0.0- 2.0 sec  25 datagrams received out-of-order
[  5]   0.00-2.00   sec   469 KBytes  1.92 Mbits/sec  0.325 ms  20/500 (4%)  receiver
[  7]   0.00-2.00   sec   489 KBytes  2.00 Mbits/sec  0.000 ms  0/501 (0%)  sender
[  7]   0.00-2.00   sec   469 KBytes  1.92 Mbits/sec  0.045 ms  19/499 (3.8%)  receiver
[SUM]   0.00-2.00   sec   979 KBytes  4.00 Mbits/sec  0.000 ms  0/1002 (0%)  sender
[SUM]   0.00-2.00   sec   938 KBytes  3.84 Mbits/sec  0.185 ms  39/999 (3.9%)  receiver

iperf Done.
"
    );
}

/// As iperf3 3.12 printed them (`-u -b 4M -l 1000 -t 1 --bidir`; `-O 1 -R`).
#[test]
fn text_of_datagrams_both_ways_and_of_omitted_intervals() {
    let mut settings = client();
    settings.client.udp = true;
    settings.client.bidir = true;
    let mut report = Report::new(&settings, &host());
    report.connected(&Control::default(), Test::asked(&settings, 1000));
    report.stream(stream(5, (1, 2), true));
    report.stream(stream(7, (3, 2), false));
    report.started();
    let omitted = StreamInterval { omitted: true, ..udp(0, 1000, 501, 0, 3) };
    assert_eq!(
        report.interval(&[udp(0, 1000, 500, 0, 0), udp(0, 1000, 501, 0, 8)])
            + &report.interval(&[omitted, omitted]),
        "\
[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5][TX-C]   0.00-1.00   sec   488 KBytes  4.00 Mbits/sec            500  
[  7][RX-C]   0.00-1.00   sec   489 KBytes  4.01 Mbits/sec  0.008 ms  0/501 (0%)  
[  5][TX-C]   0.00-1.00   sec   489 KBytes  4.01 Mbits/sec            501  (omitted)
[  7][RX-C]   0.00-1.00   sec   489 KBytes  4.01 Mbits/sec  0.003 ms  0/501 (0%)  (omitted)
"
    );
}

/// As iperf3 3.12 printed it when it was interrupted at 1.51 s.
#[test]
fn a_broken_off_test_is_reported_with_what_is_known() {
    let settings = client();
    let mut report = Report::new(&settings, &host());
    report.connected(&Control::default(), Test::asked(&settings, 131_072));
    report.stream(stream(5, (36996, 24020), true));
    report.started();
    report.interval(&[tcp_sender(0, 1000, 1, 0)]);
    let said = report.summary(&End {
        duration: Span::from_ms(1510),
        streams: vec![StreamEnd { sent: blocks(2, 1510, Some(0)), received: None }],
        ..End::default()
    });
    assert_eq!(
        said,
        "\
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.51   sec   256 KBytes  1.39 Mbits/sec    0            sender
[  5]   0.00-1.51   sec  0.00 Bytes  0.00 bits/sec                  receiver
"
    );
    let words = report.interrupted(&Trouble::new(Number::CLIENT_TERM), 2);
    assert_eq!(words.out, "");
    assert_eq!(words.err, "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n");
}

#[test]
fn an_early_failure_is_an_object_or_a_line() {
    let trouble = Trouble::because(Number::CONNECT, 111, "Connection refused");
    let mut settings = client();
    let words = Report::new(&settings, &host()).failed(&trouble);
    assert_eq!(words.err, format!("iperf3: error - {trouble}\n"));
    assert_eq!(words.out, "");
    settings.common.json = true;
    let words = Report::new(&settings, &host()).failed(&trouble);
    assert_eq!(words.err, "");
    assert_same(words.out.lines(), fixture!("refused-3.21.json").lines(), 0.0);
    settings.common.json_stream = true;
    let words = Report::new(&settings, &host()).failed(&trouble);
    assert_eq!(
        words.out,
        format!("{{\"event\":\"error\",\"data\":\"{trouble}\"}}\n{{\"event\":\"end\",\"data\":{{}}}}\n")
    );
}

#[test]
fn what_the_server_reports_as_an_error_is_told_in_two_lines() {
    let busy = Trouble::new(Number::MAX_DURATION);
    let words = Report::new(&client(), &host()).server_error(&busy);
    assert_eq!(words.err, format!("iperf3: SERVER ERROR - {busy}\niperf3: error - {busy}\n"));
    let gone = Report::new(&Settings::default(), &host()).client_gone(false);
    assert_eq!(gone.err, "iperf3: the client has unexpectedly closed the connection\n");
}

#[test]
fn the_servers_report_reaches_the_client() {
    let mut server = Report::new(&Settings::default(), &host());
    assert_eq!(
        server.listening(1),
        "-----------------------------------------------------------\n\
         Server listening on 5201 (test #1)\n\
         -----------------------------------------------------------\n"
    );
    let test = Test { get_server_output: true, streams: 1, ..Test::default() };
    let control = Control { host: "127.0.0.1".to_owned(), port: 41404, ..Control::default() };
    let mut said = server.connected(&control, test);
    said += &server.stream(stream(5, (15308, 41406), false));
    said += &server.started();
    said += &server.interval(&[StreamInterval { bytes: 25_034_752, ..between(0, 1001) }]);
    let half = Half { bytes: 25_034_752, duration: Span::from_ms(1001), ..Half::default() };
    let streams = vec![StreamEnd { sent: None, received: Some(half) }];
    said += &server.summary(&End { duration: half.duration, streams, ..End::default() });
    assert_eq!(server.for_client(), ServerOutput::Text(said.clone()));
    assert!(
        said.starts_with("Accepted connection from 127.0.0.1, port 41404\n[  5] local 127.0.0.1"),
        "{said}"
    );

    let mut client = Report::new(&client(), &host());
    assert_eq!(client.server_output(server.for_client()), format!("\nServer output:\n{said}\n"));
}

#[test]
fn an_empty_rest_of_an_interval_is_left_out() {
    let settings = client();
    let mut report = Report::new(&settings, &host());
    report.connected(&Control::default(), Test::asked(&settings, 131_072));
    report.stream(stream(5, (1, 2), true));
    report.started();
    assert_eq!(report.interval(&[tcp_sender(1000, 1099, 0, 0)]), "");
    assert_ne!(report.interval(&[tcp_sender(1000, 1100, 0, 0)]), "", "a tenth is long enough");
    assert_ne!(report.interval(&[tcp_sender(1000, 1001, 1, 0)]), "", "something moved");
}

#[test]
fn a_report_without_streams_is_no_trouble() {
    for json in [false, true] {
        let mut settings = client();
        settings.common.json = json;
        let mut report = Report::new(&settings, &host());
        assert_eq!(report.interval(&[]), "");
        report.summary(&End::default());
        report.server_output(ServerOutput::Json(Value::Null));
        let words = report.done();
        assert!(!json || serde_json::from_str::<Value>(&words.out).is_ok(), "{}", words.out);
    }
}
