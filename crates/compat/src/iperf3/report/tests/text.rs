//! Compares the lines of the report with those of the real program.

use std::net::SocketAddr;

use linerate_units::Span;
use serde_json::Value;

use super::{client, host, number};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::report::*;
use crate::iperf3::settings::{EndCondition, Iperf3Settings};

fn stream(socket: i32, ports: (u16, u16), sends: bool) -> Iperf3Stream {
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    Iperf3Stream { socket, local: at(ports.0), remote: at(ports.1), sends, snd_buf: 16_384, rcv_buf: 131_072 }
}

/// An interval from `from` to `to`, in milliseconds.
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

fn blocks(blocks: u64, ms: u64, retransmits: Option<u64>) -> Option<StreamEndCounts> {
    Some(StreamEndCounts {
        bytes: blocks << 17,
        duration: Span::from_ms(ms),
        retransmits,
        ..StreamEndCounts::default()
    })
}

/// As iperf3 3.12 printed it (`-c 127.0.0.1 -t 2 -b 20M -P 2 -V -T tit`), except for the prefix of `Control
/// connection`, the versions, and the column before `sender`, which 3.21 has moved by one.
#[test]
fn text_of_a_client_with_two_streams() {
    let mut settings = client();
    settings.common.verbose = true;
    settings.client.title = Some("tit".to_owned());
    settings.client.parallel = 2;
    settings.client.bitrate = 20_000_000;
    settings.client.end = EndCondition::Time(2);
    let mut report = Iperf3Report::new(&settings, &host());
    let control = Iperf3Control {
        host: "127.0.0.1".to_owned(),
        port: 24001,
        cookie: "cf2ewiiltcmcp2asvmpyag5vztzx5wtp5hkk".to_owned(),
        mss: 32_768,
        unix_ms: 1_795_316_403_000,
    };
    let mut output = report.opening();
    output += &report.connected(&control, Iperf3TestParameters::asked(&settings, 131_072));
    output += &report.stream(stream(5, (60566, 24001), true));
    output += &report.stream(stream(7, (60574, 24001), true));
    output += &report.started();
    output += &report.interval(&[tcp_sender(0, 1000, 20, 0), tcp_sender(0, 1000, 20, 0)]);
    output += &report.interval(&[tcp_sender(1000, 2000, 19, 0), tcp_sender(1000, 2000, 19, 0)]);
    let both = Iperf3StreamEnd { sent: blocks(39, 2000, Some(0)), received: blocks(39, 2000, None) };
    output += &report.summary(&Iperf3EndResults {
        most_received: 0,
        duration: Span::from_ms(2000),
        streams: vec![both, both],
        local_cpu: CpuShare { total: 2.2, user: 0.0, system: 2.2 },
        remote_cpu: Some(CpuShare { total: 0.2, user: 0.2, system: 0.0 }),
        local_congestion: Some("bbr".to_owned()),
        remote_congestion: Some("bbr".to_owned()),
    });
    let words = report.done();
    assert_eq!(words.err, "");
    output += &words.out;
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
    assert_eq!(output, expected.replace("VERSION", env!("CARGO_PKG_VERSION")));
}

/// As iperf3 3.12 printed it (`-s -V`, with a client's `--bidir -P 2 -b 20M -t 1`).
#[test]
fn text_of_a_server_when_both_send() {
    let mut settings = Iperf3Settings::default();
    settings.common.verbose = true;
    settings.common.port = 24003;
    let mut report = Iperf3Report::new(&settings, &host());
    let control = Iperf3Control { host: "127.0.0.1".to_owned(), port: 46350, ..Iperf3Control::default() };
    let test = Iperf3TestParameters {
        bidir: true,
        streams: 2,
        block_bytes: 131_072,
        seconds: 1,
        bitrate: 20_000_000,
        ..Iperf3TestParameters::default()
    };
    report.connected(&control, test);
    for (socket, port, sends) in [(5, 46356, false), (8, 46372, false), (11, 46386, true), (13, 46400, true)]
    {
        report.stream(stream(socket, (24003, port), sends));
    }
    report.started();
    let mut output = report.interval(&[
        tcp(0, 1001, 19),
        tcp(0, 1001, 19),
        tcp_sender(0, 1001, 20, 1),
        tcp_sender(0, 1001, 20, 1),
    ]);
    let received = Iperf3StreamEnd { sent: None, received: blocks(20, 1008, None) };
    let sent = Iperf3StreamEnd { sent: blocks(20, 1008, Some(1)), received: None };
    output += &report.summary(&Iperf3EndResults {
        duration: Span::from_ms(1008),
        streams: vec![received, received, sent, sent],
        local_cpu: CpuShare { total: 1.4, user: 1.4, system: 0.0 },
        local_congestion: Some("bbr".to_owned()),
        ..Iperf3EndResults::default()
    });
    output += &report.done().out;
    assert_eq!(
        output,
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

/// As iperf3 3.12 printed it (`-u -b 2M -l 1000 -t 2 -R -P 2` through a relay that drops every 25th datagram
/// and reorders some).
#[test]
fn text_of_a_client_that_receives_datagrams() {
    let mut settings = client();
    settings.client.udp = true;
    settings.client.reverse = true;
    settings.client.parallel = 2;
    let mut report = Iperf3Report::new(&settings, &host());
    let control = Iperf3Control { host: "127.0.0.1".to_owned(), port: 24101, ..Iperf3Control::default() };
    let mut output = report.connected(&control, Iperf3TestParameters::asked(&settings, 1000));
    output += &report.stream(stream(5, (45466, 24101), false));
    output += &report.stream(stream(7, (56940, 24101), false));
    output += &report.started();
    output += &report.interval(&[udp(0, 1006, 251, 10, 2923), udp(0, 1006, 251, 10, 2558)]);
    output += &report.interval(&[udp(1006, 2000, 249, 10, 325), udp(1006, 2000, 248, 9, 45)]);
    let sent = StreamEndCounts {
        bytes: 501_000,
        packets: 501,
        duration: Span::from_ms(2003),
        ..StreamEndCounts::default()
    };
    let side = |packets: u64, lost: i64, out_of_order, jitter_us: u64| StreamEndCounts {
        bytes: 480_000,
        packets,
        lost,
        out_of_order,
        jitter: Span::from_ns(jitter_us * 1000),
        duration: Span::from_ms(2000),
        ..StreamEndCounts::default()
    };
    output += &report.summary(&Iperf3EndResults {
        duration: Span::from_ms(2000),
        streams: vec![
            Iperf3StreamEnd { sent: Some(sent), received: Some(side(500, 20, 25, 325)) },
            Iperf3StreamEnd { sent: Some(sent), received: Some(side(499, 19, 0, 45)) },
        ],
        ..Iperf3EndResults::default()
    });
    output += &report.done().out;
    assert_eq!(
        output,
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
    let mut report = Iperf3Report::new(&settings, &host());
    report.connected(&Iperf3Control::default(), Iperf3TestParameters::asked(&settings, 1000));
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
    let mut report = Iperf3Report::new(&settings, &host());
    report.connected(&Iperf3Control::default(), Iperf3TestParameters::asked(&settings, 131_072));
    report.stream(stream(5, (36996, 24020), true));
    report.started();
    report.interval(&[tcp_sender(0, 1000, 1, 0)]);
    let output = report.summary(&Iperf3EndResults {
        duration: Span::from_ms(1510),
        streams: vec![Iperf3StreamEnd { sent: blocks(2, 1510, Some(0)), received: None }],
        ..Iperf3EndResults::default()
    });
    assert_eq!(
        output,
        "\
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.51   sec   256 KBytes  1.39 Mbits/sec    0            sender
[  5]   0.00-1.51   sec  0.00 Bytes  0.00 bits/sec                  receiver
"
    );
    let words = report.interrupted(&Iperf3Error::new(Iperf3ErrorNumber::CLIENT_TERM), 2);
    assert_eq!(words.out, "");
    assert_eq!(words.err, "iperf3: interrupt - the client has terminated by signal Interrupt(2)\n");
}

#[test]
fn an_error_of_the_server_is_printed_in_two_lines() {
    let busy = Iperf3Error::new(Iperf3ErrorNumber::MAX_DURATION);
    let words = Iperf3Report::new(&client(), &host()).server_error(&busy);
    assert_eq!(words.err, format!("iperf3: SERVER ERROR - {busy}\niperf3: error - {busy}\n"));
    let gone = Iperf3Report::new(&Iperf3Settings::default(), &host()).client_gone(false);
    assert_eq!(gone.err, "iperf3: the client has unexpectedly closed the connection\n");
}

#[test]
fn the_servers_report_reaches_the_client() {
    let mut server = Iperf3Report::new(&Iperf3Settings::default(), &host());
    assert_eq!(
        server.listening(1).out,
        "-----------------------------------------------------------\n\
         Server listening on 5201 (test #1)\n\
         -----------------------------------------------------------\n"
    );
    let test =
        Iperf3TestParameters { get_server_output: true, streams: 1, ..Iperf3TestParameters::default() };
    let control = Iperf3Control { host: "127.0.0.1".to_owned(), port: 41404, ..Iperf3Control::default() };
    let mut output = server.connected(&control, test);
    output += &server.stream(stream(5, (15308, 41406), false));
    output += &server.started();
    output += &server.interval(&[StreamInterval { bytes: 25_034_752, ..between(0, 1001) }]);
    let side =
        StreamEndCounts { bytes: 25_034_752, duration: Span::from_ms(1001), ..StreamEndCounts::default() };
    let streams = vec![Iperf3StreamEnd { sent: None, received: Some(side) }];
    output += &server.summary(&Iperf3EndResults {
        duration: side.duration,
        streams,
        ..Iperf3EndResults::default()
    });
    assert_eq!(server.for_client(), ServerOutput::Text(output.clone()));
    assert!(
        output.starts_with("Accepted connection from 127.0.0.1, port 41404\n[  5] local 127.0.0.1"),
        "{output}"
    );

    let mut client = Iperf3Report::new(&client(), &host());
    assert_eq!(client.server_output(server.for_client()), format!("\nServer output:\n{output}\n"));
}

#[test]
fn a_segment_size_is_the_kernels_or_the_users_and_none_of_udp() {
    let start = |udp, mss| {
        let mut settings = client();
        settings.common.json = true;
        settings.client.udp = udp;
        settings.client.mss = mss;
        let mut report = Iperf3Report::new(&settings, &host());
        report.connected(
            &Iperf3Control { mss: 1448, ..Iperf3Control::default() },
            Iperf3TestParameters::asked(&settings, 1000),
        );
        let object: Value = serde_json::from_str(&report.done().out).unwrap();
        (object["start"]["tcp_mss"].as_u64(), object["start"]["tcp_mss_default"].as_u64())
    };
    assert_eq!(start(false, None), (None, Some(1448)));
    assert_eq!(start(false, Some(900)), (Some(900), None));
    assert_eq!(start(true, Some(900)), (None, None));
    assert_eq!(start(true, None), (None, None));
}

#[test]
fn the_least_round_trip_time_is_none_that_was_not_measured() {
    let mut settings = client();
    settings.common.json = true;
    let mut report = Iperf3Report::new(&settings, &host());
    report.connected(&Iperf3Control::default(), Iperf3TestParameters::asked(&settings, 131_072));
    report.stream(stream(5, (1, 2), true));
    for us in [0, 9, 7, 0] {
        let rtt = Some(Span::from_ns(us * 1000));
        report.interval(&[StreamInterval { rtt, ..tcp_sender(0, 1000, 1, 0) }]);
    }
    let streams = vec![Iperf3StreamEnd { sent: blocks(4, 1000, Some(0)), received: None }];
    report.summary(&Iperf3EndResults { streams, ..Iperf3EndResults::default() });
    let object: Value = serde_json::from_str(&report.done().out).unwrap();
    let sender = &object["end"]["streams"][0]["sender"];
    assert_eq!((number(sender, "min_rtt"), number(sender, "max_rtt"), number(sender, "mean_rtt")), (7, 9, 4));
}

#[test]
fn an_empty_rest_of_an_interval_is_left_out() {
    let settings = client();
    let mut report = Iperf3Report::new(&settings, &host());
    report.connected(&Iperf3Control::default(), Iperf3TestParameters::asked(&settings, 131_072));
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
        let mut report = Iperf3Report::new(&settings, &host());
        assert_eq!(report.interval(&[]), "");
        report.summary(&Iperf3EndResults::default());
        report.server_output(ServerOutput::Json(Value::Null));
        let words = report.done();
        assert!(!json || serde_json::from_str::<Value>(&words.out).is_ok(), "{}", words.out);
    }
}
