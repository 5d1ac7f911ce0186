//! Lines of intervals: the last one, delayed ones, and the counts of the kernel after the last write.

use linerate_units::{Span, Timestamp};

use super::{hosts, settings};
use crate::iperf2::Iperf2Client;
use crate::stand_in::{FlowCounts, FlowId, Input, Link, Opened, Output, StandIn, StreamCounts};

/// The intervals and bytes of the lines of CSV.
fn intervals(text: &str) -> Vec<(String, u64)> {
    let of = |line: &str| {
        let columns: Vec<&str> = line.split(',').collect();
        (columns[6].to_owned(), columns[7].parse().unwrap())
    };
    text.lines().map(of).collect()
}

#[test]
fn what_was_moved_after_the_last_whole_interval_has_its_line() {
    let mut hosts = hosts("-t 2.5 -i 1 -y C", "-P 1 -i 1 -y C");
    hosts.run(20);
    for host in &hosts.hosts {
        let lines = intervals(&host.out);
        assert_eq!(lines.len(), 4, "{}", host.out);
        assert!(lines[2].0.starts_with("2.0-2.5"), "{}", host.out);
        let (parts, whole) = (lines[..3].iter().map(|(_, bytes)| bytes).sum::<u64>(), lines[3].1);
        assert_eq!(parts, whole, "{}", host.out);
    }
}

#[test]
fn as_in_the_tool_some_ends_have_no_line_of_a_part() {
    // 2.1.8: a sender of datagrams never has one, a TCP test shorter than an interval has none either.
    for (client, server, lines) in
        [("-u -t 1.5 -i 1", "-u -i 1", [3, 3]), ("-n 100000 -i 1", "-P 1 -i 1", [1, 1])]
    {
        let mut hosts = hosts(client, server);
        hosts.run(20);
        for (host, lines) in hosts.hosts.iter().zip(lines) {
            assert_eq!(host.out.matches(" sec ").count(), lines, "{client}\n{}", host.out);
        }
    }
}

#[test]
fn segments_that_are_retransmitted_after_the_last_write_are_counted() {
    let mut hosts = hosts("-t 1 -e", "-P 1");
    hosts.path.tcp.retransmits = Some(3);
    hosts.path.late_retransmits = 4;
    hosts.run(20);
    let last = hosts.hosts[0].out.lines().last().unwrap();
    let columns: Vec<&str> = last.split_whitespace().collect();
    let calls = columns.iter().position(|column| column.ends_with("/0")).unwrap();
    assert_eq!(columns[calls + 1], "7", "{last}");
}

/// Output of a client with `-i 1` whose counts are read at these times, in milliseconds, with a byte each.
fn read_at(times: &[u64]) -> String {
    let mut client = Iperf2Client::new(settings("-c 10.0.0.2 -t 9 -i 1 -y C -C"));
    let opened = Opened::new("10.0.0.1:40000".parse().unwrap(), "10.0.0.2:5001".parse().ok());
    let now = |ms| Timestamp::START + Span::from_ms(ms);
    client.input(now(0), Input::Begin);
    client.input(now(0), Input::Opened { link: Link(0), opened });
    for (time, bytes) in times.iter().zip(1..) {
        client.input(now(*time), Input::Tick);
        let streams = vec![StreamCounts { bytes, ..StreamCounts::default() }];
        let counts = FlowCounts { flow: FlowId(0), streams, ..FlowCounts::default() };
        client.input(now(*time), Input::Counts { cpu: Default::default(), flows: &[counts] });
    }
    let printed = std::iter::from_fn(|| client.output()).filter_map(|output| match output {
        Output::Print(text) => Some(text),
        _ => None,
    });
    printed.collect()
}

#[test]
fn on_a_busy_machine_a_delayed_line_is_about_the_whole_time_since_the_last_one() {
    // The counts of the second and the third second are read late, at 3.4 s.
    let lines = intervals(&read_at(&[1001, 3400, 4003]));
    let expected = [("0.0-1.0", 1), ("1.0-3.0", 1), ("3.0-4.0", 1)];
    assert_eq!(lines, expected.map(|(interval, bytes)| (interval.to_owned(), bytes)));
}
