//! The effects of options on links, wire and output.

use linerate_units::{Span, Timestamp};

use super::{hosts, settings, words};
use crate::iperf2::settings::Iperf2Amount;
use crate::iperf2::{Iperf2Client, Iperf2Server, parse};
use crate::stand_in::{Input, Link, LinkOptions, Output, StandIn, SystemError};
use crate::virtual_hosts::{VirtualHosts, WALL_SECONDS};

/// The connections that a client opens: destination and options.
fn connects(line: &str) -> Vec<(String, LinkOptions)> {
    let mut client = Iperf2Client::new(settings(line));
    client.input(Timestamp::START, Input::Begin);
    let connects = std::iter::from_fn(|| client.output()).filter_map(|output| match output {
        Output::Connect { port, to, options, .. } => {
            Some((to.map_or_else(|| format!("host:{port}"), |to| to.to_string()), options))
        }
        _ => None,
    });
    connects.collect()
}

#[test]
fn connections_may_differ_in_addresses_and_ports() {
    let to = |line: &str| connects(line).into_iter().map(|(to, _)| to).collect::<Vec<_>>();
    assert_eq!(to("-c h -P 2"), ["host:5001", "host:5001"]);
    assert_eq!(to("-c h -P 2 --incr-dstport"), ["host:5001", "host:5002"]);
    assert_eq!(
        to("-c 192.0.2.254 -P 3 --incr-dstip"),
        ["192.0.2.254:5001", "192.0.2.255:5001", "192.0.3.0:5001"]
    );
    let from: Vec<_> = connects("-c h -P 2 -B 192.0.2.1:6000 --incr-srcip")
        .into_iter()
        .map(|(_, options)| (options.local.unwrap().to_string(), options.local_port))
        .collect();
    assert_eq!(from, [("192.0.2.1".to_owned(), Some(6000)), ("192.0.2.2".to_owned(), Some(6001))]);
    assert!(parse(&words("-c name --incr-dstip")).unwrap_err().text.contains("needs the IP address"));
}

#[test]
fn packets_have_the_time_to_live_and_the_route_of_the_options() {
    let (_, options) = connects("-c h -T 5 --local-only").remove(0);
    assert_eq!((options.ttl, options.dont_route), (Some(5), true));
    let (_, options) = connects("-c h --local-only=0").remove(0);
    assert_eq!((options.ttl, options.dont_route), (None, false));
}

#[test]
fn a_refused_connection_is_tried_again() {
    let mut refused = hosts("-t 1 --connect-retries 2", "-p 5999");
    refused.run(10);
    let client = &refused.hosts[0];
    assert_eq!(
        (client.exit, client.err.as_str()),
        (Some(0), "tcp connect failed: Connection refused\n".repeat(3).as_str())
    );
    assert_eq!(client.out.matches("Client connecting").count(), 1, "{}", client.out);
    // The second attempt succeeds.
    let mut client = Iperf2Client::new(settings("-c 192.0.2.2 --connect-retries 1"));
    let reason = || SystemError { errno: 111, text: "Connection refused".to_owned() };
    client.input(Timestamp::START, Input::Begin);
    while client.output().is_some() {}
    client.input(Timestamp::START, Input::NotOpened { link: Link(0), reason: reason() });
    while client.output().is_some() {}
    let again = Timestamp::START + Span::from_ms(200);
    assert_eq!(client.deadline(), Some(again), "as far apart as in 2.1.8");
    client.input(again, Input::Tick);
    assert!(matches!(client.output(), Some(Output::Connect { link: Link(0), .. })));
}

#[test]
fn a_test_that_only_connects_opens_so_many_connections() {
    for (line, count) in
        [("--connect-only=3", 3), ("--connect-only", 10), ("--connect-only=0 -t 1 -i 0.3", 4)]
    {
        let mut hosts = hosts(line, "");
        hosts.run(20);
        let client = &hosts.hosts[0];
        assert_eq!(client.exit, Some(0), "{line}");
        assert!(client.out.contains("TCP three-way-handshake (3WHS) only\n"), "{}", client.out);
        assert_eq!(client.out.matches(" connected with ").count(), count, "{}", client.out);
        assert!(client.out.lines().last().unwrap().ends_with(" (UTC)"), "{}", client.out);
        assert!(client.tasks.is_empty() && client.sent.is_empty());
    }
}

/// The end of the last line about the connection, in seconds.
fn ends_at(text: &str) -> f64 {
    let line = text.lines().rfind(|line| line.contains(" sec ")).unwrap();
    let interval = line.split_whitespace().find(|word| word.starts_with("0.0000-")).unwrap();
    interval["0.0000-".len()..].parse().unwrap()
}

#[test]
fn data_may_begin_after_the_connection() {
    let mut hosts = hosts("-t 1 --txdelay-time 0.5", "-P 1");
    hosts.run(20);
    let [client, server] = hosts.pair();
    assert!(client.out.contains("[  1] Client traffic to start in 1 seconds at 20"), "{}", client.out);
    // As between two ends of 2.1.8, the server's time includes the delay.
    assert!(ends_at(&client.out) < 1.1 && ends_at(&server.out) > 1.4, "{}\n{}", client.out, server.out);
}

#[test]
fn a_start_at_a_time_is_sent_to_the_server() {
    let start = format!("{}.250000", WALL_SECONDS + 2);
    let mut hosts = hosts(&format!("-t 1 --txstart-time {start}"), "-P 1");
    hosts.run(20);
    let [client, server] = hosts.pair();
    let header = &client.sent[0].1;
    let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
    // As captured of 2.1.8: 80 bytes, the flag, and seconds and microseconds.
    assert_eq!((header.len(), word(0), word(32)), (80, 0x4001_00a0, 0x1000_0000));
    assert_eq!((u64::from(word(64)), word(68)), (WALL_SECONDS + 2, 250_000));
    assert!(server.out.contains(" (epoch-start)"), "{}", server.out);
    assert!(ends_at(&server.out) < 1.1, "{}", server.out);
    assert!(client.out.contains("Write/Err"), "more columns, as in 2.1.8: {}", client.out);
}

#[test]
fn a_pacing_rate_is_sent_in_bytes_and_holds_at_the_end_that_sends() {
    for (line, bits) in [("-R --fq-rate 10m", 10_000_000_u64), ("--fq-rate 10M", 80_000_000)] {
        let mut hosts = hosts(&format!("-t 1 {line}"), "-P 1");
        hosts.run(20);
        let [client, server] = hosts.pair();
        let header = &client.sent[0].1;
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap());
        // As captured of 2.1.8: 80 bytes, and the low word before the high one.
        assert_eq!((header.len(), u64::from(word(72)), word(76)), (80, bits / 8, 0), "{line}");
        let sender = if line.contains("-R") { server } else { client };
        assert_eq!(sender.tasks[0].fq_rate.unwrap().bps(), bits as f64, "{line}");
    }
    let wide = Iperf2Client::new(settings("-c 10.0.0.2 --fq-rate 80g"));
    let mut hosts = VirtualHosts::new(Box::new(wide), Box::new(Iperf2Server::new(settings("-s"))));
    hosts.run(1);
    let header = &hosts.hosts[0].sent[0].1;
    assert_eq!(header[72..], 10_000_000_000_u64.rotate_left(32).to_be_bytes(), "as captured of 2.1.8");
}

#[test]
fn a_file_is_sent_and_its_bytes_are_counted_with_the_header() {
    for (line, bytes) in [("-I", 60 + 70_000), ("-I -n 10060", 10_060), ("-I -C", 70_000)] {
        let mut hosts = hosts(&format!("{line} -y C"), "-P 1 -y C");
        hosts.hosts[0].input = [vec![b'a'; 65_000], vec![b'b'; 5_000]].into();
        hosts.run(20);
        for host in &hosts.hosts {
            assert_eq!(host.exit, Some(0), "{line}");
            assert_eq!(host.out.trim().split(',').nth(7), Some(bytes.to_string().as_str()), "{}", host.out);
        }
    }
}

#[test]
fn addresses_can_be_hidden() {
    let mut hosts = hosts("-t 1 --hide-ips", "-P 1 --hide-ips");
    hosts.run(20);
    let [client, server] = hosts.pair();
    for host in [client, server] {
        assert!(!host.out.contains("10.0."), "{}", host.out);
        assert!(host.out.contains(" local *.*.*."), "{}", host.out);
    }
    assert!(client.out.contains("Client connecting to (**hidden**), TCP port 5001\n"), "{}", client.out);
}

#[test]
fn only_sums_are_printed_even_of_one_connection() {
    for (count, line) in [(1, "-t 1 --sum-only"), (2, "-t 1 --sum-only -P 2")] {
        let mut hosts = hosts(line, &format!("-P {count} --sum-only"));
        hosts.run(20);
        for host in &hosts.hosts {
            assert!(host.out.contains("[SUM-cnt] Interval"), "{}", host.out);
            assert!(host.out.contains(&format!("[SUM-{count}] 0.0000-")), "{}", host.out);
            assert!(!host.out.contains("[  1]") && !host.out.contains("[ ID]"), "{}", host.out);
        }
    }
}

#[test]
fn the_segment_size_is_printed() {
    let mut hosts = hosts("-t 1 -m", "-P 1 -m");
    hosts.run(20);
    for host in &hosts.hosts {
        assert!(host.out.contains("\nMSS size "), "{}", host.out);
    }
}

#[test]
fn what_a_server_does_not_use_is_a_warning() {
    assert_eq!(settings("-s -F x").warnings, "WARNING: option --fileinput is not valid for server mode\n");
    for line in ["-s -b 1m", "-c h -F x -u", "-c h --txdelay-time 1 -R", "-c h -b 5pps", "-c h -D"] {
        assert!(parse(&words(line)).is_err(), "{line}");
    }
}

#[test]
fn a_test_may_take_longer_than_a_day_at_both_ends() {
    let (longest, days) = (i32::MAX as u64 * 10, Span::from_secs(200_000));
    let mut hosts = hosts("-R -t 200000", "");
    hosts.run(1);
    let [client, server] = hosts.pair();
    assert_eq!((client.plans[0].expected, server.tasks[0].time), (Some(days), Some(days)));
    assert_eq!(client.plans[0].spec.traffic.duration, Some(days));
    // Until the end of the input, or of an interrupt.
    for line in ["-c h -I", "-c h -t 0"] {
        assert_eq!(settings(line).amount, Iperf2Amount::Time(Span::from_ms(longest)), "{line}");
    }
    assert!(settings("-c h -t 21474836").amount.limited_time().is_some());
    for line in ["-c h -t 21474837", "-s -t 1e12", "-c h --txdelay-time 1e12"] {
        assert!(parse(&words(line)).unwrap_err().text.contains("; give 0.005 to "), "{line}");
    }
}
