//! Messages of the real programs: decoded and encoded again.

use std::fs;

use crate::iperf2::datagram::{Generation, ServerReport, last_number, number_of, opening_header};
use crate::iperf2::wire::{Ack, TestHeader, is_bounce_back};
use crate::iperf2::{IPERF2, sniff};
use crate::ttcp;
use linerate_model::sniff::Match;

/// The messages of one exchange: whether the client sent it, its full length, and the recorded bytes.
fn exchange(title: &str) -> Vec<(bool, usize, Vec<u8>)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/transcripts/iperf2/headers.txt");
    let text = fs::read_to_string(path).unwrap();
    let mut parts = text.split("\n## ").filter(|part| part.starts_with(title));
    let part = parts.next().unwrap_or_else(|| panic!("no exchange {title:?}"));
    part.lines()
        .skip(1)
        .filter(|line| line.contains(" bytes: "))
        .map(|line| {
            let (front, hex) = line.split_once(" bytes: ").unwrap();
            let length = front.rsplit(' ').next().unwrap().parse().unwrap();
            let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
            let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            (front.contains("client->server"), length, digits.chunks_exact(2).map(pair).collect())
        })
        .collect()
}

fn tcp(title: &str) -> (TestHeader, Vec<u8>) {
    let bytes = exchange(title).remove(0).2;
    let (header, length) = TestHeader::read_tcp(&bytes).unwrap().unwrap();
    assert_eq!(length, bytes.len());
    (header.unwrap(), bytes)
}

#[test]
fn headers_over_tcp_are_read_and_written_as_2_1_8_does() {
    for title in [
        "2.1.8 TCP plain",
        "2.1.8 TCP -n 5M",
        "2.1.8 TCP -d",
        "2.1.8 TCP -r",
        "2.1.8 TCP -R",
        "2.1.8 TCP --full-duplex",
        "2.1.8 TCP -X",
        "2.1.8 TCP --trip-times",
    ] {
        let (header, bytes) = tcp(title);
        assert_eq!(header.write_tcp(), bytes, "{title}");
        assert_eq!(sniff(&bytes), Match::Yes, "{title}");
    }
}

#[test]
fn what_a_header_asks_for_is_understood() {
    let (header, _) = tcp("2.1.8 TCP plain");
    assert_eq!((header.threads, header.port, header.length, header.amount), (1, 5001, 0, -300));
    assert_eq!(header.extension.unwrap().version_text().as_deref(), Some("2.1.8"));
    let (header, _) = tcp("2.1.8 TCP -n 5M");
    assert_eq!((header.length, header.amount), (8192, 5 << 20));
    let (header, _) = tcp("2.1.8 TCP -d");
    assert_eq!((header.back, header.at_once, header.port), (true, true, 5056));
    let (header, _) = tcp("2.1.8 TCP -r");
    assert_eq!((header.back, header.at_once, header.port), (true, false, 5055));
    assert!(tcp("2.1.8 TCP -R").0.extension.unwrap().reverse);
    assert!(tcp("2.1.8 TCP --full-duplex").0.extension.unwrap().full_duplex);
    assert!(tcp("2.1.8 TCP -X").0.extension.unwrap().peer_detect);
    let start = tcp("2.1.8 TCP --trip-times").0.extension.unwrap().start;
    assert_eq!(start, Some((0x6b01_ee99, 0x0002_4608)));
    // A later version: four more bytes, which are not needed here.
    let (header, bytes) = tcp("2.2.1 TCP plain");
    assert_eq!((bytes.len(), header.amount), (64, -200));
    assert_eq!(header.extension.unwrap().version_text().as_deref(), Some("2.2.1"));
    // An old version: only the base header.
    let (header, bytes) = tcp("2.0.6 TCP -d");
    assert_eq!((bytes.len(), header.back, header.at_once, header.port), (24, true, true, 5058));
    assert_eq!(header.write_tcp(), bytes);
}

#[test]
fn a_server_answers_in_28_bytes_or_52_with_times() {
    for (title, length) in [("2.1.8 TCP plain", 28), ("2.1.8 TCP -X", 28), ("2.1.8 TCP --trip-times", 52)] {
        let (from_client, length_field, bytes) = exchange(title).remove(1);
        assert!(!from_client);
        assert_eq!((length_field, bytes.len()), (length, length));
        let ack = Ack::decode(&bytes).unwrap();
        assert_eq!(ack.encode(), bytes);
        assert_eq!(ack.version, (0x0002_0001, 0x0008_0003));
        assert_eq!(Ack::decode(&bytes[..27]), None);
    }
}

#[test]
fn headers_of_datagrams_are_read_and_written_as_2_1_8_does() {
    for (title, length) in [
        ("2.1.8 UDP default", 76),
        ("2.1.8 UDP --trip-times", 128),
        ("2.1.8 UDP -R", 76),
        ("2.1.8 UDP --full-duplex", 76),
        ("2.1.8 UDP -l 20", 76),
    ] {
        let (_, _, bytes) = exchange(title).remove(0);
        let (generation, header) = opening_header(&bytes);
        assert_eq!(generation, Generation::New, "{title}");
        assert_eq!(number_of(&bytes, generation), Some(1));
        let written = header.unwrap().write_udp();
        assert_eq!(written.len(), length);
        assert_eq!(written[16..], bytes[16..length], "{title}");
    }
}

#[test]
fn generations_of_datagrams_are_distinguished() {
    // The old generation begins at 0 and has its header four bytes earlier.
    let old = exchange("2.0.6 UDP");
    let (generation, header) = opening_header(&old[0].2);
    assert_eq!((generation, number_of(&old[0].2, generation)), (Generation::Old, Some(0)));
    let header = header.unwrap();
    assert_eq!(
        (header.threads, header.port, header.window_or_rate, header.amount),
        (1, 5001, 5_000_000, -200)
    );
    // -C: the pattern instead of the header; one of its bits looks like trip times.
    let plain = exchange("2.1.8 UDP -C");
    assert_eq!(opening_header(&plain[0].2), (Generation::New, None));
    // The last datagram of each.
    for (title, number) in [("2.1.8 UDP default", -182), ("2.1.8 UDP -C", -92)] {
        let last = exchange(title).into_iter().rfind(|(from_client, ..)| *from_client).unwrap().2;
        assert_eq!(number_of(&last, Generation::New), Some(number), "{title}");
    }
    let last = old.iter().rfind(|(from_client, ..)| *from_client).unwrap();
    assert_eq!(number_of(&last.2, Generation::Old), Some(-850));
}

#[test]
fn datagrams_of_2_0_10_to_2_0_13_are_numbered_by_their_low_half() {
    let narrow = Generation::Between { wide: false };
    let wide = Generation::Between { wide: true };
    for (title, generation, numbers) in [
        ("2.0.10 UDP default", narrow, [0, 1, 18, -19]),
        ("2.0.10 UDP -C", narrow, [0, 1, 18, -19]),
        ("2.0.13 UDP default", narrow, [0, 1, 17, -18]),
        ("2.0.13 UDP --udp-counters-64bit", wide, [0, 1, 17, -18]),
        // Its header has 12 bytes, but nothing shows that before the last datagram.
        ("2.0.9 UDP -C", narrow, [0, 1, 18, -19]),
    ] {
        let sent: Vec<Vec<u8>> =
            exchange(title).into_iter().filter(|(client, ..)| *client).map(|(_, _, bytes)| bytes).collect();
        assert_eq!(opening_header(&sent[0]), (generation, None), "{title}");
        let read: Vec<i64> = sent.iter().map(|bytes| number_of(bytes, generation).unwrap()).collect();
        assert_eq!(read, numbers, "{title}");
        assert!(sent.iter().all(|bytes| sniff(bytes) == Match::Yes), "{title}");
        let answered = if title.starts_with("2.0.9") { Generation::Old } else { generation };
        let count = numbers[3].unsigned_abs();
        assert_eq!(last_number(&sent[3], generation), Some((count, answered)), "{title}");
        assert_eq!(last_number(&sent[2], generation), None, "{title}");
    }
}

#[test]
fn a_report_to_2_0_10_to_2_0_13_has_their_eleven_words() {
    for title in
        ["2.0.10 UDP default", "2.0.13 UDP default", "2.0.13 UDP --udp-counters-64bit", "2.0.9 UDP -C"]
    {
        let all = exchange(title);
        let opened = opening_header(&all[0].2).0;
        let last = all.iter().rfind(|(client, ..)| *client).unwrap().2.clone();
        let real = all.into_iter().rfind(|(client, ..)| !*client).unwrap().2;
        let (count, generation) = last_number(&last, opened).unwrap();
        // The counts in the real server's answer, by the names of its source: after `datagrams` follows its high
        // half, except in 2.0.9.
        let at = generation.header_bytes();
        let word = |number: usize| {
            u32::from_be_bytes(real[at + number * 4..at + number * 4 + 4].try_into().unwrap())
        };
        let jitter_at = if title.starts_with("2.0.9") { 8 } else { 9 };
        let report = ServerReport {
            bytes: count * 1470,
            duration: (word(3), word(4)),
            datagrams: count,
            jitter: (0, word(jitter_at + 1)),
            ..ServerReport::default()
        };
        let ours = report.encode(generation, &last);
        let end = at + (jitter_at + 2) * 4;
        assert_eq!(ours[at..end], real[at..end], "{title}");
        // A client reads no report that is shorter than number, time, 11 words and 15 of transit times.
        assert!(title.starts_with("2.0.9") || ours.len() >= 16 + 11 * 4 + 15 * 4, "{title}");
    }
}

#[test]
fn a_tcp_test_of_2_0_13_is_recognised_and_contains_no_number_of_connections() {
    let plain = exchange("2.0.13 TCP plain").remove(0).2;
    assert_eq!(sniff(&plain), Match::Yes);
    assert_eq!(sniff(&plain[..7]), Match::More);
    let (header, bytes) = tcp("2.0.13 TCP -X");
    assert_eq!(sniff(&bytes), Match::Yes);
    assert_eq!(header.extension.unwrap().version, (0x0002_0000, 0x000d_0000));
    assert_eq!((header.threads, header.port, header.amount), (0, 0, 0), "the pattern is no number");
}

#[test]
fn a_servers_report_is_read_in_both_layouts() {
    let answer = |title| exchange(title).into_iter().rfind(|(from_client, ..)| !*from_client).unwrap();
    let new = ServerReport::decode(&answer("2.1.8 UDP default").2).unwrap();
    assert_eq!((new.bytes, new.duration, new.lost, new.datagrams), (267_540, (2, 19_032), 0, 182));
    assert_eq!((new.out_of_order, new.jitter, new.transit), (0, (0, 5), None));
    let old = ServerReport::decode(&answer("2.1.8 client, 2.0.6 server").2).unwrap();
    assert_eq!((old.bytes, old.duration, old.lost, old.datagrams), (1_253_910, (2, 3476), 1, 854));
    // With transit times: 0.009/0.002/0.067/0.006 ms and 426 pps in the client's own output of the same test.
    let times = ServerReport::decode(&answer("2.1.8 UDP --trip-times").2).unwrap().transit.unwrap();
    assert_eq!((times.mean_us, times.min_us, times.max_us, times.stdev_us), (9, 2, 67, 6));
    assert_eq!(times.packets_per_second, 426);
}

#[test]
fn a_servers_report_is_written_in_both_layouts() {
    let report = |title: &str| {
        let all = exchange(title);
        let last = all.iter().rfind(|(from_client, ..)| *from_client).unwrap().2.clone();
        let (_, length, answer) = all.into_iter().rfind(|(from_client, ..)| !*from_client).unwrap();
        (last, length, answer)
    };
    let (last, length, real) = report("2.1.8 UDP default");
    let ours = ServerReport::decode(&real).unwrap().encode(Generation::New, &last);
    assert_eq!((ours.len(), &ours[..56], &ours[116..]), (length, &real[..56], &real[116..]));
    let (mut last, length, real) = report("2.1.8 client, 2.0.6 server");
    last.resize(1470, 0);
    let ours = ServerReport::decode(&real).unwrap().encode(Generation::Old, &last);
    // Number and time of the last datagram are returned, then 40 bytes of counts.
    assert_eq!((ours.len(), &ours[..52]), (length, &real[..52]));
}

#[test]
fn first_bytes_tell_iperf_from_ttcp_and_others() {
    assert_eq!(sniff(b"0123456789"), Match::Yes);
    assert_eq!(sniff(b"01"), Match::More);
    assert_eq!(
        (sniff(b" !\"#$%"), sniff(b"GET / HTTP/1.1"), sniff(b"LINERATE")),
        (Match::No, Match::No, Match::No)
    );
    for title in ["2.1.8 UDP default", "2.1.8 UDP -C", "2.0.6 UDP"] {
        for (_, _, bytes) in exchange(title).iter().filter(|(from_client, ..)| *from_client) {
            assert_eq!(sniff(bytes), Match::Yes, "{title}");
        }
    }
    let bounce = exchange("2.1.8 TCP --bounceback").remove(0).2;
    assert!(is_bounce_back(&bounce));
    assert_eq!(sniff(&bounce), Match::Yes);
    // A plain test of 2.0.6: no flags, one connection, port 5001.
    let old = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x13, 0x89];
    assert_eq!(sniff(&old), Match::Yes);
    assert_eq!(sniff(&old[..7]), Match::More);
    assert_eq!(sniff(&[0; 12]), Match::No);
    assert_eq!((ttcp::TTCP.sniff)(&bounce), Match::No);
    assert_eq!(IPERF2.default_port, 5001);
}
