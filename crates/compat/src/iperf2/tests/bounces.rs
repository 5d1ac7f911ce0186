//! Bounce-back clients at a server.

use linerate_units::Span;

use super::settings;
use crate::iperf2::{Iperf2Client, Iperf2Server};
use crate::stand_in::{Input, Link};
use crate::virtual_hosts::{VirtualHosts, WALL_SECONDS};

const LINK: Link = Link(Link::FIRST_ACCEPTED.0 + 5);

/// A server with these options, and the connection of a client that has not sent anything.
fn connected(server: &str) -> VirtualHosts {
    let client = Iperf2Client::new(settings("-c 10.0.0.2 -t 1 -p 5999"));
    let server = Iperf2Server::new(settings(&format!("-s {server}")));
    let mut hosts = VirtualHosts::new(Box::new(client), Box::new(server));
    hosts.inject_connection(1, LINK, Link(0));
    hosts
}

/// A request of 100 bytes.
fn message() -> [u8; 100] {
    let mut message = [0x5a; 100];
    message[..12].copy_from_slice(&[0, 0x80, 0, 0, 0, 0, 0, 100, 0, 0, 0, 1]);
    message[28..44].fill(0xff);
    message
}

fn request(hosts: &mut VirtualHosts) {
    hosts.feed(1, Input::Bytes { link: LINK, bytes: &message() });
    hosts.pass(Span::from_ms(1));
}

#[test]
fn messages_in_turn_come_back_with_the_servers_times() {
    let mut hosts = connected("");
    let message = message();
    hosts.feed(1, Input::Bytes { link: LINK, bytes: &message[..60] });
    hosts.feed(1, Input::Bytes { link: LINK, bytes: &message[60..] });
    hosts.pass(Span::from_ms(1));
    let answer = &hosts.hosts[1].sent[0].1;
    assert_eq!((answer.len(), &answer[..28]), (100, &message[..28]));
    assert_eq!(answer[28..32], (WALL_SECONDS as u32).to_be_bytes());
    assert_eq!(answer[44..], message[44..]);
    hosts.feed(1, Input::Closed { link: LINK, reason: None });
    let server = &hosts.hosts[1];
    assert_eq!(
        server.out.lines().filter(|line| line.starts_with("[  1]") && line.contains(" sec ")).count(),
        1
    );
    assert_eq!(server.runs, [None], "its place is free");
}

#[test]
fn a_client_that_has_no_place_gets_no_answer() {
    let mut hosts = connected("");
    hosts.hosts[1].admits = false;
    for _ in 0..2 {
        hosts.feed(1, Input::Bytes { link: LINK, bytes: &message() });
    }
    hosts.pass(Span::from_ms(1));
    let server = &hosts.hosts[1];
    assert_eq!((server.sent.len(), server.runs.len()), (0, 0));
}

#[test]
fn a_silent_client_leaves_after_a_minute_and_a_slow_one_does_not() {
    for server in ["-1", "-P 1", "-t 1"] {
        let mut hosts = connected(server);
        for answers in 1..=3 {
            request(&mut hosts);
            hosts.pass(Span::from_secs(50));
            let server = &hosts.hosts[1];
            assert_eq!((server.sent.len(), server.runs.len()), (answers, 0));
        }
        hosts.pass(Span::from_secs(11));
        assert_eq!(hosts.hosts[1].runs, [None], "{server}");
        let ends = server != "-1";
        assert_eq!(hosts.hosts[1].exit.is_some(), ends, "{server}");
    }
}
