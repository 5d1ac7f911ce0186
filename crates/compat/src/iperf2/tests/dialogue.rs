//! Client and server against each other, and against scripted peers.

use super::{hosts, settings};
use crate::iperf2::datagram::{Generation, ServerReport, last, number_of};
use crate::iperf2::{Iperf2Client, Iperf2Server};
use crate::stand_in::{Input, Link, Pattern};
use crate::virtual_hosts::VirtualHosts;
use linerate_units::{Bytes, Span};

/// The lines about a connection, or those of `[SUM]`.
fn lines<'a>(text: &'a str, label: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(label) && line.contains(" sec ")).collect()
}

/// The byte counts of all CSV lines.
fn csv_bytes(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.split(',').nth(7).unwrap().parse().unwrap()).collect()
}

#[test]
fn a_plain_test_counts_alike_and_sends_the_header_first() {
    let mut hosts = hosts("-t 3 -i 1", "-P 1 -i 1");
    hosts.run(30);
    let [client, server] = hosts.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)));
    let (_, header) = &client.sent[0];
    // The flags of 2.1.8 in a plain test, in 60 bytes altogether.
    assert_eq!((header.len(), &header[..4]), (60, &[0x40, 0x01, 0x00, 0x78][..]));
    assert_eq!(server.sent[0].1.len(), 28, "the answer that nobody waits for");
    let task = &client.tasks[0];
    assert_eq!(
        (task.length, task.payload.pattern, &task.payload.head),
        (Bytes::new(131_072), Pattern::Digits, header)
    );
    // The simulated engine sends a block of 128 KiB every 10.486 ms: 287 of them, 35.9 MiB.
    // The last of them arrives after 3 s, and has a line of its own at the receiver.
    for (host, expected) in [(client, 4), (server, 5)] {
        let rows = lines(&host.out, "[  1]");
        assert_eq!(rows.len(), expected, "{}", host.out);
        assert!(
            rows[0].starts_with("[  1] 0.0000-1.0000 sec  ")
                && rows[1].starts_with("[  1] 1.0000-2.0000 sec  ")
        );
        assert!(rows[expected - 1].contains(" sec  35.9 MBytes "), "{}", host.out);
    }
    assert_eq!((client.runs.len(), server.runs.len()), (1, 1));
}

#[test]
fn an_amount_in_bytes_is_exact_and_counts_the_header() {
    for (line, bytes) in [("-n 5M -l 8K", 5_242_880), ("-n 1000000 -l 64K -P 3", 3_000_000)] {
        let mut hosts = hosts(&format!("{line} -y C --sum-only"), "-P 3 -y C --sum-only -t 20");
        hosts.run(30);
        for host in &hosts.hosts {
            assert_eq!(csv_bytes(&host.out), [bytes], "{}", host.out);
        }
    }
    let mut hosts = hosts("-n 25000 -l 10000 -P 2 -y C", "-P 2 -y C");
    hosts.run(30);
    for host in &hosts.hosts {
        assert_eq!(csv_bytes(&host.out), [25_000, 25_000, 50_000], "{}", host.out);
    }
}

#[test]
fn parallel_connections_become_one_run_with_a_sum() {
    let mut hosts = hosts("-P 4 -t 2 -i 1 -f m", "-P 4 -f m");
    hosts.run(30);
    let [client, server] = hosts.pair();
    assert_eq!((client.exit, server.exit, server.plans.len(), server.tasks.len()), (Some(0), Some(0), 1, 1));
    assert_eq!(server.tasks[0].links.len(), 4);
    for host in [client, server] {
        let whole = |label: &str| {
            let last = lines(&host.out, label).pop().unwrap().to_owned();
            last.split_whitespace().nth_back(3).unwrap().parse::<f64>().unwrap()
        };
        let each: f64 = (1..=4).map(|id| whole(&format!("[  {id}]"))).sum();
        let sum = whole("[SUM]");
        assert!((each - sum).abs() < 1.0, "{each} of {sum} in\n{}", host.out);
    }
}

#[test]
fn udp_numbers_from_one_and_prints_the_servers_report() {
    let mut hosts = hosts("-u -t 2 -i 1", "-u -i 1");
    hosts.run(10);
    let [client, server] = hosts.pair();
    assert_eq!((client.exit, server.exit), (Some(0), None));
    // As in the capture of 2.1.8: IPG 11215.21 us. Here there are 179 datagrams in 2 s, and the last one.
    assert!(client.out.contains("Sending 1470 byte datagrams, IPG target: 11215.21 us (kalman adjust)\n"));
    assert!(client.out.contains("[  1] Server Report:\n"));
    let report = lines(&client.out, "[  1]").pop().unwrap();
    let server_row = lines(&server.out, "[  1]").pop().unwrap();
    assert_eq!(report, server_row);
    assert!(report.ends_with(" ms 0/180 (0%)"), "{report}");
    assert!(client.out.contains("[  1] Sent 181 datagrams\n"));
    assert_eq!((client.runs.clone(), server.runs.clone()), (vec![None], vec![None]));
    // One answer of 128 bytes to a last datagram with the number -180.
    assert_eq!(server.sent.iter().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(), [128]);
    assert_eq!(number_of(&client.sent[0].1, Generation::New), Some(-180));
    assert_eq!(client.tasks[0].payload.head.len(), 76);
}

#[test]
fn datagrams_that_are_lost_are_counted_exactly() {
    let mut hosts = hosts("-u -t 2 -b 10m -y C", "-u -y C");
    let mut number = 0;
    // Every seventh datagram, including the very first and some of the last.
    hosts.loss = Box::new(move |host, bytes| {
        number += u32::from(host == 0);
        let last = bytes.len() > 12 && number_of(bytes, Generation::New).is_some_and(|number| number < 0);
        host == 0 && !last && (number % 7 == 3 || number > 1690)
    });
    hosts.run(10);
    let row: Vec<String> = hosts.hosts[1].out.trim().split(',').map(str::to_owned).collect();
    // 1701 datagrams of 1470 bytes at 10 Mbit/s in 2 s, and the last one. Lost are 242 of the first 1690
    // (k*7+3), and 11.
    assert_eq!((row[10].as_str(), row[11].as_str()), ("253", "1702"), "{row:?}");
    assert_eq!(row[7], ((1702 - 253) * 1470).to_string());
}

#[test]
fn a_lost_answer_is_asked_for_again_and_opens_no_second_test() {
    let mut hosts = hosts("-u -t 1", "-u");
    let mut answers = 0;
    hosts.loss = Box::new(move |host, _| {
        answers += u32::from(host == 1);
        host == 1 && answers <= 3
    });
    hosts.run(10);
    let [client, server] = hosts.pair();
    assert_eq!(client.exit, Some(0));
    let numbers: Vec<i64> =
        client.sent.iter().map(|(_, bytes)| number_of(bytes, Generation::New).unwrap()).collect();
    assert_eq!(numbers, [-91, -92, -93, -94], "each try counts on");
    assert_eq!((server.plans.len(), server.sent.len()), (1, 4));
}

#[test]
fn others_may_be_measured_while_the_last_datagram_is_still_answered() {
    let mut hosts = hosts("-u -t 1", "-u");
    // The test lasts 1 s and ends immediately, not after 250 ms of silence.
    hosts.pass(Span::from_ms(1100));
    let server = &hosts.hosts[1];
    assert_eq!((server.runs.clone(), server.sent.len()), (vec![None], 1));
    hosts.run(5);
    assert_eq!(hosts.hosts[1].runs, [None], "and once only");
}

#[test]
fn without_a_server_udp_ends_with_a_warning() {
    let mut hosts = hosts("-u -t 1", "-u -p 5999");
    hosts.run(10);
    let client = &hosts.hosts[0];
    assert_eq!(client.exit, Some(0), "as 2.1.8 ends");
    assert!(client.runs[0].is_some(), "the archive knows better");
    assert!(client.err.contains("[  1] WARNING: did not receive ack of last datagram after 10 tries.\n"));
    assert!(client.out.contains("[  1] Sent 92 datagrams\n"));
}

#[test]
fn a_refused_connection_is_reported() {
    let mut hosts = hosts("-t 1", "-p 5999");
    hosts.run(5);
    assert_eq!(hosts.hosts[0].err, "tcp connect failed: Connection refused\n");
    assert_eq!(hosts.hosts[0].exit, Some(0), "as 2.1.8 ends");
}

#[test]
fn tiny_datagrams_begin_with_one_that_holds_the_header() {
    let mut hosts = hosts("-u -t 1 -l 20 -b 8k -y C", "-u -y C");
    hosts.run(10);
    assert_eq!(hosts.hosts[0].tasks[0].payload.first_length, Some(Bytes::new(76)));
    // The capture has 53 datagrams with 1116 bytes; the simulated engine sends one less per second.
    let row: Vec<&str> = hosts.hosts[1].out.trim().split(',').collect();
    assert_eq!((row[7], row[10], row[11]), ("1076", "0", "51"));
}

#[test]
fn reverse_lets_the_server_send_for_the_time() {
    for (line, server) in [("-t 2 -R", "-P 1"), ("-u -t 2 -R -b 5m", "-u -P 1")] {
        let mut hosts = hosts(line, server);
        hosts.run(20);
        let [client, server] = hosts.pair();
        assert_eq!((client.exit, server.exit), (Some(0), Some(0)), "{line}\n{}\n{}", client.err, server.err);
        let row = lines(&client.out, "[ *1]").pop().unwrap();
        assert!(row.starts_with("[ *1] 0.0000-"), "{}", client.out);
        assert_eq!(client.runs, [None]);
        assert!(server.out.contains(" (reverse)"));
        assert!(!lines(&server.out, "[  1]").is_empty());
        assert_eq!(server.tasks[0].time, Some(Span::from_secs(2)));
        // TCP: no answer to the header, because it would be taken for data.
        assert!(server.sent.iter().all(|(_, bytes)| bytes.len() != 28));
    }
}

#[test]
fn full_duplex_moves_both_ways_on_one_connection() {
    for (line, server) in [("-t 2 --full-duplex", "-P 1"), ("-u -t 2 --full-duplex -b 5m", "-u -P 1")] {
        let mut hosts = hosts(line, server);
        hosts.run(20);
        for host in &hosts.hosts {
            assert_eq!(host.exit, Some(0), "{line}\n{}\n{}", host.out, host.err);
            assert_eq!(
                (lines(&host.out, "[  1]").len(), lines(&host.out, "[ *1]").len()),
                (1, 1),
                "{}",
                host.out
            );
            assert_eq!(host.tasks[0].links, host.tasks[1].links);
        }
    }
}

#[test]
fn dual_and_tradeoff_let_the_server_connect_back() {
    for line in ["-t 2 -d -L 5056", "-t 2 -r -L 5055", "-u -t 2 -d -L 5057", "-u -t 2 -r -L 5058 -P 2"] {
        let udp = if line.contains("-u") { "-u" } else { "" };
        let mut hosts = hosts(line, udp);
        hosts.run(30);
        let [client, server] = hosts.pair();
        assert_eq!(client.exit, Some(0), "{line}\n{}\n{}\n{}", client.out, client.err, server.out);
        assert_eq!((client.runs.clone(), server.runs.clone()), (vec![None], vec![None]), "{line}");
        assert_eq!(server.tasks.len(), 2, "{line}");
        assert!(server.out.contains("[ *2]") || server.out.contains("[ *3]"), "{}", server.out);
        let id = if line.contains("-P 2") { "[  3]" } else { "[  2]" };
        assert_eq!(lines(&client.out, id).len(), 1, "{line}\n{}", client.out);
    }
}

#[test]
fn peer_detection_waits_for_the_answer_and_not_for_ever() {
    let mut detected = hosts("-t 1 -X", "-P 1");
    detected.run(10);
    assert_eq!((detected.hosts[0].exit, detected.hosts[0].err.as_str()), (Some(0), ""));
    // A server that reads but never answers.
    let client = Iperf2Client::new(settings("-c 10.0.0.2 -t 1 -X -y C"));
    let sink = crate::ttcp::TtcpSettings::server(5001);
    let mut hosts = VirtualHosts::new(Box::new(client), Box::new(crate::ttcp::Ttcp::new(sink)));
    hosts.run(20);
    assert_eq!(hosts.hosts[0].exit, Some(0));
    assert!(hosts.hosts[0].err.contains("does not answer the peer detection"));
}

#[test]
fn trip_times_over_tcp_are_acknowledged_with_52_bytes() {
    // Our client does not stamp every write, so the header is a real one, with the start at the test's own
    // clock.
    let client = Iperf2Client::new(settings("-c 10.0.0.2 -t 1 -C"));
    let mut hosts = VirtualHosts::new(Box::new(client), Box::new(Iperf2Server::new(settings("-s"))));
    hosts.run(5);
    let header = [
        &[0x40, 1, 0, 0xa0, 0, 0, 0, 1, 0, 0, 0x13, 0x89][..],
        &[0; 8],
        &[0xff, 0xff, 0xff, 0x38],
        &[0; 8],
        &[0, 0x10, 0, 0, 0, 2, 0, 1, 0, 8, 0, 3],
        &[0; 20],
        &[0x6b, 0x01, 0xee, 0x99, 0, 2, 0x46, 8],
        &[0; 8],
    ]
    .concat();
    assert_eq!(header.len(), 80);
    let before = hosts.hosts[1].sent.len();
    let link = Link(Link::FIRST_ACCEPTED.0 + 77);
    hosts.inject_connection(1, link, Link(0));
    hosts.feed(1, Input::Bytes { link, bytes: &header });
    hosts.run(1);
    let answer = &hosts.hosts[1].sent[before].1;
    assert_eq!(answer.len(), 52);
    assert_eq!(answer[28..36], [0x6b, 0x01, 0xee, 0x99, 0, 2, 0x46, 8], "the client's start comes back");
}

#[test]
fn a_client_that_sends_no_header_is_just_counted() {
    let mut tcp = hosts("-n 1M -C -y C", "-P 1 -y C");
    tcp.run(10);
    assert_eq!(csv_bytes(&tcp.hosts[1].out), [1 << 20]);
    assert!(tcp.hosts[1].sent.is_empty());
    let mut udp = hosts("-u -t 1 -C", "-u");
    udp.run(10);
    let [client, server] = udp.pair();
    assert_eq!(client.exit, Some(0));
    assert!(client.tasks[0].payload.head.is_empty());
    assert!(!server.out.contains("trip-times"), "the pattern is no flags");
    assert!(lines(&server.out, "[  1]")[0].ends_with("0/91 (0%)"), "{}", server.out);
}

/// A datagram of 2.0.6: number, time, and the base header without flags.
fn old_datagram(number: i32) -> Vec<u8> {
    let mut bytes = vec![b'0'; 1470];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes[4..12].fill(1);
    for (at, word) in [0_u32, 1, 5001, 0, 5_000_000, -200_i32 as u32].into_iter().enumerate() {
        bytes[12 + at * 4..16 + at * 4].copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

#[test]
fn an_old_client_gets_its_own_layout_back() {
    let client = Iperf2Client::new(settings("-c 10.0.0.2 -t 1 -p 5999"));
    let mut hosts = VirtualHosts::new(Box::new(client), Box::new(Iperf2Server::new(settings("-s -u"))));
    for number in (0..100).chain([-100]) {
        hosts.inject(0, 41_000, 5001, &old_datagram(number));
        hosts.pass(Span::from_ms(2));
    }
    let server = &hosts.hosts[1];
    assert!(lines(&server.out, "[  1]")[0].ends_with("0/100 (0%)"), "{}", server.out);
    let (_, answer) = &server.sent[0];
    assert_eq!((answer.len(), &answer[..4]), (1470, &(-100_i32).to_be_bytes()[..]));
    let report = ServerReport::decode(answer).unwrap();
    assert_eq!((report.bytes, report.lost, report.datagrams), (147_000, 0, 100));
}

#[test]
fn what_is_left_of_an_earlier_test_begins_none() {
    let client = Iperf2Client::new(settings("-c 10.0.0.2 -t 1 -p 5999"));
    let mut hosts = VirtualHosts::new(Box::new(client), Box::new(Iperf2Server::new(settings("-s -u"))));
    let bytes = last(&[0; 16], 1470, -183, (1, 1));
    hosts.inject(0, 41_000, 5001, &bytes);
    hosts.inject(0, 41_001, 5001, b"x");
    hosts.run(2);
    assert_eq!((hosts.hosts[1].plans.len(), hosts.hosts[1].sent.len()), (0, 0));
}

#[test]
fn a_server_that_must_not_serves_nobody_and_lives_on() {
    let mut hosts = hosts("-t 1", "");
    hosts.hosts[1].admits = false;
    hosts.run(20);
    let server = &hosts.hosts[1];
    assert_eq!((server.exit, server.tasks.len(), server.plans.len()), (None, 0, 1));
}

#[test]
fn a_client_that_vanishes_ends_only_its_own_test() {
    for (line, server) in [("-t 60", "-i 1"), ("-u -t 60", "-u -i 1")] {
        let mut hosts = hosts(line, server);
        hosts.run(3);
        hosts.kill(0);
        hosts.run(100);
        let server = &hosts.hosts[1];
        assert_eq!(server.exit, None);
        assert_eq!(server.runs.len(), 1);
        assert!(server.runs[0].is_some(), "{line}");
    }
}

#[test]
fn a_client_that_is_slow_by_its_own_options_ends_by_itself() {
    // A datagram in 11.8 s, and one in 118 s.
    for line in ["-u -b 1k -t 30", "-u -b 100 -t 300"] {
        let mut hosts = hosts(line, "-u");
        hosts.run(400);
        let client = &hosts.hosts[0];
        assert!(!client.err.contains("disappeared"), "{line}: {}", client.err);
        assert_eq!(client.exit, Some(0), "{line}");
    }
}

#[test]
fn a_path_that_is_interrupted_for_half_a_minute_loses_datagrams_and_not_the_test() {
    let mut hosts = hosts("-u -b 100k -t 60", "-u");
    // 8.5 datagrams in a second.
    let mut sent = 0;
    hosts.loss = Box::new(move |_, bytes| {
        sent += u32::from(bytes.len() == 1470);
        bytes.len() == 1470 && (85..340).contains(&sent)
    });
    hosts.run(100);
    let server = &hosts.hosts[1];
    assert_eq!(server.runs, [None]);
    let last = lines(&server.out, "[  1]").pop().unwrap();
    assert!(last.contains(" 255/51") && last.ends_with(" (50%)"), "{last}");
}

#[test]
fn a_client_that_vanished_holds_a_server_for_others_only_for_a_while() {
    let client = Iperf2Client::new(settings("-c 10.0.0.2 -t 1 -p 5999"));
    let server = Iperf2Server::embedded_server(&crate::EmbeddedServerConfig::at(5001));
    let mut hosts = VirtualHosts::new(Box::new(client), server);
    for number in 0..3 {
        hosts.inject(0, 41_000, 5001, &old_datagram(number));
        // As with -b 1k.
        hosts.pass(Span::from_secs(12));
    }
    assert_eq!((hosts.hosts[1].plans.len(), hosts.hosts[1].runs.len()), (1, 0));
    hosts.pass(Span::from_secs(5));
    assert_eq!(hosts.hosts[1].runs.len(), 1);
}
