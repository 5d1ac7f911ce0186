//! ttcp in virtual time, and its lines compared with real ones.

use linerate_units::Span;

use super::report::{TtcpResult, header, honest, result};
use super::*;
use crate::stand_in::Input;
use crate::stand_in::ResourceUsage;
use crate::virtual_hosts::VirtualHosts;

fn settings(line: &str) -> TtcpSettings {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse("ttcp", &words).unwrap()
}

fn refused(name: &str, line: &str) -> i32 {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(name, &words).unwrap_err().code
}

fn hosts(transmitter: &str, receiver: &str) -> VirtualHosts {
    VirtualHosts::new(Box::new(Ttcp::new(settings(transmitter))), Box::new(Ttcp::new(settings(receiver))))
}

fn line<'a>(text: &'a str, part: &str) -> &'a str {
    text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part:?} in\n{text}"))
}

#[test]
fn a_tcp_test_with_defaults_counts_alike_at_both_ends() {
    let mut hosts = hosts("-t -s 10.0.0.2", "-r -s");
    hosts.run(60);
    let [client, server] = hosts.pair();
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)));
    for (who, host) in [("ttcp-t", client), ("ttcp-r", server)] {
        assert!(line(&host.out, "bytes in").starts_with(&format!("{who}: 16777216 bytes in ")));
        assert_eq!(host.runs, [None]);
    }
    assert!(line(&client.out, "I/O").starts_with("ttcp-t: 2048 I/O calls, "));
    assert_eq!(client.err.lines().take(2).collect::<Vec<_>>(), ["ttcp-t: socket", "ttcp-t: connect"]);
    let steps = ["ttcp-r: socket", "ttcp-r: listen", "ttcp-r: accept from 10.0.0.1"];
    assert_eq!(server.err.lines().take(3).collect::<Vec<_>>(), steps);
    assert_eq!(client.tasks[0].payload.pattern, crate::stand_in::Pattern::Printable);
}

#[test]
fn lengths_of_both_ends_need_not_agree() {
    let mut hosts = hosts("-t -s -l 1000 -n 333 10.0.0.2", "-r -s");
    hosts.run(60);
    assert!(line(&hosts.hosts[1].out, "bytes in").starts_with("ttcp-r: 333000 bytes in "));
}

#[test]
fn udp_sends_one_start_and_five_end_marks() {
    let mut hosts = hosts("-t -u -s -l 1400 -n 500 10.0.0.2", "-r -s -u -f m");
    hosts.run(60);
    let [client, server] = hosts.pair();
    // In the same test the real transmitter counted 506 calls and the real receiver 502.
    assert!(line(&client.out, "I/O").starts_with("ttcp-t: 506 I/O calls, "));
    assert!(line(&server.out, "I/O").starts_with("ttcp-r: 502 I/O calls, "));
    assert!(line(&server.out, "bytes in").starts_with("ttcp-r: 700000 bytes in "));
    let marks: Vec<&[u8]> = client.sent.iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(marks, [[0x20, 0x21, 0x22, 0x23]; 6]);
    // The start mark began the test. The engine waits for one more mark, and not for an extra one.
    assert_eq!(server.tasks[0].end_mark, crate::stand_in::EndMark::Short { bytes: 4, nth: 1 });
    assert_eq!((client.exit, server.exit), (Some(0), Some(0)));
}

#[test]
fn a_lost_start_mark_does_not_keep_the_receiver() {
    let mut hosts = hosts("-t -u -s -n 10 10.0.0.2", "-r -s -u");
    let mut first = true;
    hosts.loss = Box::new(move |_, _| std::mem::replace(&mut first, false));
    hosts.run(5);
    assert_eq!(hosts.hosts[1].exit, Some(0));
    assert!(line(&hosts.hosts[1].out, "bytes in").starts_with("ttcp-r: 81920 bytes in "));
}

#[test]
fn without_any_end_mark_the_receiver_ends_and_says_so() {
    let mut hosts = hosts("-t -u -s -n 10 10.0.0.2", "-r -s -u");
    let mut seen = 0;
    hosts.loss = Box::new(move |_, bytes| {
        seen += u32::from(bytes.len() <= 4);
        bytes.len() <= 4 && seen > 1
    });
    hosts.run(90);
    let server = &hosts.hosts[1];
    assert_eq!(server.exit, Some(1));
    assert!(line(&server.out, "bytes in").starts_with("ttcp-r: 81920 bytes in "));
    assert!(server.err.contains("no data for 60 seconds"));
    assert!(server.runs[0].is_some());
}

#[test]
fn tiny_datagrams_are_made_longer_than_marks() {
    let mut hosts = hosts("-t -u -s -l 3 -n 10 10.0.0.2", "-r -s -u -l 3");
    hosts.run(5);
    let [client, server] = hosts.pair();
    // As in the capture of the real pair: 16 and 12 calls, 50 bytes.
    assert_eq!(
        line(&client.out, "buflen"),
        "ttcp-t: buflen=5, nbuf=10, align=16384/0, port=5001  udp  -> 10.0.0.2"
    );
    assert!(line(&client.out, "I/O").starts_with("ttcp-t: 16 I/O calls, "));
    assert!(line(&server.out, "I/O").starts_with("ttcp-r: 12 I/O calls, "));
    assert!(line(&server.out, "bytes in").starts_with("ttcp-r: 50 bytes in "));
}

#[test]
fn a_server_of_both_takes_one_test_after_another_and_ignores_spare_marks() {
    let client = Box::new(Ttcp::new(settings("-t -u -s -l 100 -n 20 10.0.0.2")));
    let mut hosts = VirtualHosts::new(client, Box::new(Ttcp::new(TtcpSettings::server(5001))));
    hosts.run(2);
    assert_eq!((hosts.hosts[1].plans.len(), hosts.hosts[1].runs.len(), hosts.hosts[1].exit), (1, 1, None));
    // The same peer again within a second, and then its extra marks.
    for bytes in [&b" !\"#"[..], &[0x20; 100], b" !\"#", b" !\"#", b" !\"#", b" !\"#", b" !\"#"] {
        hosts.inject(0, 40_500, 5001, bytes);
    }
    hosts.run(2);
    assert_eq!((hosts.hosts[1].plans.len(), hosts.hosts[1].runs.len(), hosts.hosts[1].exit), (2, 2, None));
    hosts.feed(1, Input::Signal(2));
    assert_eq!(hosts.hosts[1].exit, Some(130));
}

#[test]
fn a_server_that_is_busy_turns_a_connection_away() {
    let client = Box::new(Ttcp::new(settings("-t -s 10.0.0.2")));
    let mut hosts = VirtualHosts::new(client, Box::new(Ttcp::new(TtcpSettings::server(5001))));
    hosts.hosts[1].admits = false;
    hosts.run(2);
    assert_eq!((hosts.hosts[1].tasks.len(), hosts.hosts[1].exit), (0, None));
}

#[test]
fn the_receiver_can_connect_and_the_transmitter_listen() {
    let mut hosts = hosts("-r -C -s -f G 10.0.0.2", "-t -S -s -f g -n 500");
    hosts.run(60);
    let [receiver, transmitter] = hosts.pair();
    assert!(line(&transmitter.out, "bytes in").starts_with("ttcp-t: 4096000 bytes in "));
    assert!(line(&receiver.out, "bytes in").starts_with("ttcp-r: 4096000 bytes in "));
    assert_eq!(
        line(&receiver.out, "buflen"),
        "ttcp-r: buflen=8192, nbuf=2048, align=16384/0, port=5001  tcp  -> 10.0.0.2"
    );
    assert_eq!(line(&transmitter.out, "buflen"), "ttcp-t: buflen=8192, nbuf=500, align=16384/0, port=5001");
}

#[test]
fn a_pipe_over_tcp_keeps_the_content_and_writes_whole_blocks() {
    let mut hosts = hosts("-t -l 1000 10.0.0.2", "-r -B -l 512");
    let data: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    hosts.hosts[0].input = data.chunks(4096).map(<[u8]>::to_vec).collect();
    hosts.run(10);
    assert_eq!(hosts.hosts[1].written, data);
    assert_eq!((hosts.hosts[0].exit, hosts.hosts[1].exit), (Some(0), Some(0)));
    assert!(line(&hosts.hosts[0].out, "bytes in").starts_with("ttcp-t: 100000 bytes in "));
    // The receiver's own messages do not get into the data.
    assert_eq!(hosts.hosts[1].out, "");
}

#[test]
fn a_pipe_over_udp_ends_at_the_second_mark_and_keeps_marks_out_of_the_data() {
    let mut hosts = hosts("-t -u -l 1000 10.0.0.2", "-r -u -l 2000");
    hosts.hosts[0].input = (0..5).map(|_| vec![0; 1000]).collect();
    hosts.run(5);
    assert_eq!(hosts.hosts[1].written, vec![0; 5000]);
    assert_eq!(hosts.hosts[1].exit, Some(0));
    // The real transmitter: 9 calls.
    assert!(line(&hosts.hosts[0].out, "I/O").starts_with("ttcp-t: 9 I/O calls, "));
}

#[test]
fn a_refused_connection_is_reported_as_by_the_tool() {
    let mut hosts = hosts("-t -s 10.0.0.2", "-r -s -p 5999");
    hosts.run(5);
    let client = &hosts.hosts[0];
    assert_eq!(client.err, "ttcp-t: socket\nttcp-t: connect: Connection refused\nerrno=111\n");
    assert_eq!(client.out, "ttcp-t: buflen=8192, nbuf=2048, align=16384/0, port=5001  tcp  -> 10.0.0.2\n");
    assert_eq!(client.exit, Some(1));
}

#[test]
fn a_dead_transmitter_ends_the_test_with_what_came() {
    let mut hosts = hosts("-t -s -n 1000000 10.0.0.2", "-r -s");
    hosts.run(2);
    hosts.kill(0);
    hosts.run(80);
    let server = &hosts.hosts[1];
    assert_eq!(server.exit, Some(1));
    assert!(server.err.contains("no data for 60 seconds"));
    assert!(!line(&server.out, "bytes in").starts_with("ttcp-r: 0 bytes"));
}

/// Two lines of the captures, computed from their numbers.
#[test]
fn the_arithmetic_is_that_of_the_real_lines() {
    let outcome = |bytes, calls, ns| TtcpResult {
        bytes,
        calls,
        elapsed: Span::from_ns(ns),
        user: Span::ZERO,
        system: Span::from_ns(11_190_000),
        usage: Some(ResourceUsage {
            max_resident_kib: 14_168,
            minor_faults: 2,
            voluntary_switches: 2229,
            ..ResourceUsage::default()
        }),
    };
    // sgi-tcp-verbose-mbit: 4096000 bytes take 0.17220 s at 181.47 Mbit/s, and 0.01119 s at 2793.17 Mbit per
    // CPU second.
    let mut settings = settings("-r -s -v -f m");
    let text = result(&settings, &outcome(4_096_000, 2311, 172_203_000), None);
    let real = "ttcp-r: 4096000 bytes in 0.17 real seconds = 181.47 Mbit/sec +++\n\
        ttcp-r: 4096000 bytes in 0.01 CPU seconds = 2792.67 Mbit/cpu sec\n\
        ttcp-r: 2311 I/O calls, msec/call = 0.08, calls/sec = 13420.21\n\
        ttcp-r: 0.0user 0.0sys 0:00real 5% 0i+0d 7084maxrss 0+2pf 2229+0csw\n";
    assert_eq!(text, real);
    assert_eq!(
        honest(&settings, &outcome(4_096_000, 2311, 172_203_000)),
        "linerate: received 190.29 Mb/s (10^6 bit/s); ttcp's Mbit is 2^20 bit\n"
    );
    // What a sender wrote may still be in its socket.
    let sender = TtcpSettings { transmit: true, ..settings.clone() };
    assert_eq!(
        honest(&sender, &outcome(4_096_000, 2311, 172_203_000)),
        "linerate: wrote to its socket 190.29 Mb/s (10^6 bit/s); ttcp's Mbit is 2^20 bit\n"
    );
    // The example of the specification: 2048 calls in 12.84 s print 6.42, because a second has 1024 ms here.
    settings.verbose = false;
    assert!(result(&settings, &outcome(1, 2048, 12_840_000_000), None).contains("msec/call = 6.42,"));
}

#[test]
fn the_oldest_line_prints_its_numbers_as_printf_g() {
    let settings = settings("--like brl -r -s");
    assert_eq!(header(&settings), "ttcp-r: nbuf=1024, buflen=1024, port=2000\n");
    let outcome = TtcpResult {
        bytes: 4_194_304,
        calls: 1,
        elapsed: Span::from_ns(175_787_000),
        user: Span::from_ns(10_150_000),
        system: Span::ZERO,
        usage: None,
    };
    let text = result(&settings, &outcome, None);
    // brl1987-tcp, without the page faults, which were not counted here.
    let real = "ttcp-r: 0.0user 0.0sys 0:00real 5%\n\
        ttcp-r: 4194304 bytes processed\n\
        ttcp-r:   0.01015 CPU sec  =    403547 KB/cpu sec,  3.22837e+06 Kbits/cpu sec\n\
        ttcp-r:  0.175787 real sec =   23300.9 KB/real sec,    186407 Kbits/sec\n";
    assert_eq!(text, real);
}

#[test]
fn pcattcp_has_its_own_words_and_begins_with_its_own_name() {
    let words: Vec<String> = ["-t", "-n", "100", "10.0.0.2"].map(str::to_owned).to_vec();
    let client = parse("C:\\tools\\pcattcp.exe", &words).unwrap();
    assert!(!client.stdio, "-s is on at the start");
    let server = TtcpSettings { port: 5001, ..settings("--like pcattcp -r") };
    let mut hosts = VirtualHosts::new(Box::new(Ttcp::new(client)), Box::new(Ttcp::new(server)));
    hosts.run(20);
    let [client, server] = hosts.pair();
    assert_eq!(client.out, "");
    for text in [
        "TCP Transmit Test\n",
        "  Transmit    : TCP -> 10.0.0.2:5001\n",
        "  Buffer Size : 8192; Alignment: 16384/0\n",
        "  TCP_NODELAY : DISABLED (0)\n",
        "  Connect     : Connected to 10.0.0.2:5001\n",
        "  Send Mode   : Send Pattern; Number of Buffers: 100\n",
        "  Statistics  : TCP -> 10.0.0.2:5001\n819200 bytes in ",
        "numCalls: 100; msec/call: ",
    ] {
        assert!(client.err.contains(text), "{text:?} in\n{}", client.err);
    }
    assert!(server.err.contains("  Receive Mode: Sinking (discarding) Data\n"));
    assert!(client.tasks[0].payload.head.starts_with(b"PCAUSA PCATTCP Pattern"));
}

#[test]
fn command_lines_are_read_as_the_lines_read_them() {
    let given = settings("-tusl1400 -n 500 -fm -b65536 host");
    assert!(given.transmit && given.udp && !given.stdio);
    assert_eq!((given.length, given.count, given.buffer), (1400, 500, Some(65_536)));
    assert_eq!((given.unit, given.host.as_deref()), (RateUnit::Megabits, Some("host")));
    // -s toggles, except in the oldest variant.
    assert!(settings("-t -s -s host").stdio);
    assert!(!settings("--like brl -t -s -s host").stdio);
    assert!(settings("--like=pcattcp -t -s host").stdio);
    assert_eq!(settings("--like ohio -t host").unit, RateUnit::Megabits);
    assert_eq!(refused("ttcp", ""), 1);
    assert_eq!(refused("pcattcp", ""), 0);
    for wrong in
        ["-t", "-t -x host", "-t -l 0 host", "-t -n x host", "-t -p 70000 host", "-l", "--like x -t h"]
    {
        assert_eq!(refused("ttcp", wrong), 1, "{wrong}");
    }
}

#[test]
fn sink_mode_is_recognised_by_its_first_bytes() {
    assert_eq!(sniff(b""), Match::More);
    assert_eq!(sniff(b" !\""), Match::More);
    assert_eq!(sniff(b" !\"#"), Match::Yes);
    assert_eq!(sniff(b"PCAUSA PCATTCP Pattern !"), Match::Yes);
    assert_eq!(sniff(b"0123"), Match::No);
    assert_eq!(sniff(&[0x40, 1, 0, 0x78]), Match::No);
}

#[test]
fn a_transmitter_with_pauses_of_its_own_and_its_receiver_wait_for_each_other() {
    // A datagram in 6 s, and one in 90 s; the second is too slow for a receiver that cannot know the pause.
    for (pause_ms, receives) in [(6_000, true), (90_000, false)] {
        let mut hosts =
            hosts(&format!("--like pcattcp -t -u -n 4 -w {pause_ms} 10.0.0.2"), "--like pcattcp -r -u");
        hosts.run(500);
        let [client, server] = hosts.pair();
        assert_eq!((client.exit, &client.runs[..]), (Some(0), &[None][..]), "{}", client.err);
        assert_eq!(server.runs[0].is_none(), receives, "{}", server.err);
    }
}
