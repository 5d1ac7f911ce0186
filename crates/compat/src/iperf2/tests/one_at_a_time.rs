//! A server that serves one client at a time (-1).

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::settings;
use crate::iperf2::{Iperf2Client, Iperf2Server};
use crate::stand_in::{Input, Link, Opened, Output, RunId, StandIn};
use crate::virtual_hosts::{VirtualHosts, VirtualPath};

const TCP: Link = Link(0);

/// The header of a client that sends for a second over this number of connections, and what follows it.
fn header(threads: u8) -> Vec<u8> {
    let mut header = [&[0x40, 1, 0, 0x78, 0, 0, 0, threads, 0, 0, 0x13, 0x89][..], &[0; 48]].concat();
    header[20..24].copy_from_slice(&(-100_i32).to_be_bytes());
    header
}

/// Accepts a connection and passes its header; returns the outputs.
fn connect(server: &mut Iperf2Server, host: u8, link: u32, threads: u8) -> Vec<Output> {
    let remote = SocketAddr::from(([192, 0, 2, host], 40_000 + (link % 1000) as u16));
    let opened = Opened::new(SocketAddr::from(([192, 0, 2, 9], 5001)), Some(remote));
    server.input(Timestamp::START, Input::Accepted { listener: TCP, link: Link(link), opened });
    server.input(Timestamp::START, Input::Bytes { link: Link(link), bytes: &header(threads) });
    std::iter::from_fn(|| server.output()).collect()
}

fn has(outputs: &[Output], of: impl Fn(&Output) -> bool) -> bool {
    outputs.iter().any(of)
}

fn serving() -> Iperf2Server {
    let mut server = Iperf2Server::new(settings("-s -1"));
    server.input(Timestamp::START, Input::Begin);
    while server.output().is_some() {}
    server
}

#[test]
fn the_next_client_waits_for_its_turn_instead_of_being_refused() {
    let client = |line: &str| Some(Box::new(Iperf2Client::new(settings(line))) as Box<dyn StandIn>);
    let server = Some(Box::new(Iperf2Server::new(settings("-s -1"))) as Box<dyn StandIn>);
    let tools = vec![client("-c 10.0.0.2 -t 1"), server, client("-c 10.0.0.2 -t 3")];
    let mut hosts = VirtualHosts::on(VirtualPath::default(), 1, tools);
    hosts.run(20);
    let [first, server, second] = hosts.hosts.as_slice() else { panic!("three hosts") };
    for client in [first, second] {
        assert_eq!((client.exit, client.runs.as_slice()), (Some(0), &[None][..]), "{}", client.err);
    }
    assert_eq!((server.exit, server.plans.len(), server.runs.as_slice()), (None, 2, &[None, None][..]));
    let lines: Vec<&str> = server.out.lines().filter(|line| line.starts_with("[  1]")).collect();
    let [_, one, connected, other] = lines.as_slice() else { panic!("{}", server.out) };
    assert!(one.contains(" sec ") && connected.contains(" connected with 10.0.0.3 port "), "{}", server.out);
    // Everything that it sent is counted, in the time that it was served.
    let megabytes = |line: &str| line.split(" MBytes").next()?.split(' ').next_back()?.parse::<f64>().ok();
    let sent = second.out.lines().rev().find_map(megabytes).unwrap();
    assert!(sent > 30.0 && megabytes(other) == Some(sent), "{}{}", second.out, server.out);
}

#[test]
fn a_parallel_connection_of_the_first_client_does_not_wait() {
    let mut server = serving();
    let first = connect(&mut server, 1, 100_000, 2);
    assert!(!has(&first, |output| matches!(output, Output::Ask(_))), "a connection is missing");
    let other = connect(&mut server, 2, 100_001, 1);
    assert!(has(&other, |output| matches!(output, Output::Hold { link: Link(100_001) })), "{other:?}");
    let second = connect(&mut server, 1, 100_002, 2);
    let asked = |output: &Output| matches!(output, Output::Ask(planned) if planned.run == RunId(0));
    assert!(has(&second, asked) && !has(&second, |output| matches!(output, Output::Hold { .. })));
    // The run ends without a test, and the other client has its turn.
    let refused = Input::Refused { run: RunId(0), why: "busy".to_owned(), may_retry: true };
    server.input(Timestamp::START + Span::from_secs(1), refused);
    let next: Vec<Output> = std::iter::from_fn(|| server.output()).collect();
    let turn = |output: &Output| matches!(output, Output::Ask(planned) if planned.link == Link(100_001));
    assert!(has(&next, turn), "{next:?}");
}

#[test]
fn the_number_of_waiting_clients_is_bounded_and_a_broken_one_leaves() {
    let mut server = serving();
    connect(&mut server, 1, 100_000, 1);
    for number in 1..=128 {
        let outputs = connect(&mut server, 2, 100_000 + number, 1);
        assert!(!has(&outputs, |output| matches!(output, Output::Reset { .. })), "{number}");
    }
    let reset = |outputs: &[Output]| has(outputs, |output| matches!(output, Output::Reset { .. }));
    assert!(reset(&connect(&mut server, 2, 100_200, 1)));
    let reason =
        Some(crate::stand_in::SystemError { errno: 104, text: "Connection reset by peer".to_owned() });
    server.input(Timestamp::START, Input::Closed { link: Link(100_001), reason });
    while server.output().is_some() {}
    assert!(!reset(&connect(&mut server, 2, 100_201, 1)), "there is room again");
}
