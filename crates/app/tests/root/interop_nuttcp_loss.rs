//! nuttcp over a path that drops datagrams, in all pairings: the ends report what the path dropped.

use crate::support::{Done, NEAR, NUTTCP, Netns, PacketFilter, Program, SERVER_PORT, TIMEOUT, before, form};

use Program::{Ours, Real};

/// 200 datagrams in 3.2 s.
const ARGS: [&str; 5] = ["-u", "-n200", "-l1000", "-R500k", NEAR];
const SENT: u64 = 200;

/// One test over the path: the client's output, and the number of sent and dropped datagrams.
fn over(
    client: Program,
    server: Program,
    more: &[&str],
    keeps: fn(u64, bool) -> bool,
) -> (Done, Done, (u64, u64)) {
    let netns = Netns::new();
    let serving = NUTTCP.start(server, &netns, &["-1", &format!("-P{SERVER_PORT}")]);
    netns.await_listener(SERVER_PORT);
    let path = PacketFilter::open(&netns, !more.contains(&"-r"), keeps);
    // 6.1.2 would use another port.
    let args = [more, &["-p5101"], &ARGS].concat();
    let done = NUTTCP.ask(client, &netns, &args);
    assert_eq!(done.code, Some(0), "{done:?}");
    let served = serving.finish(TIMEOUT);
    assert_eq!(served.code, Some(0), "{served:?}");
    (done, served, path.close())
}

/// Drops every 25th datagram, including the last one.
fn each_25th(number: u64, is_data: bool) -> bool {
    !is_data || !number.is_multiple_of(25)
}

fn losses_are_exact(client: Program, server: Program, more: &[&str]) {
    let (done, _, passed) = over(client, server, more, each_25th);
    assert_eq!(passed, (SENT, 8), "{done:?}");
    let last = done.stdout.lines().last().unwrap_or_default();
    // The real client computes the percentage from megabytes with four decimals.
    let drops = if client == Ours { " 8 / 200 drop/pkt 4.00 %loss" } else { " 8 / 200 drop/pkt " };
    assert!(last.contains(drops), "{done:?}");
    // 192,000 bytes.
    assert_eq!(format!("{:.4}", before(last, " MB /")), "0.1831", "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn what_our_client_sends_to_the_real_server() {
    losses_are_exact(Ours, Real, &[]);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn what_our_client_receives_from_the_real_server() {
    losses_are_exact(Ours, Real, &["-r"]);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn what_the_real_client_sends_to_our_server() {
    losses_are_exact(Real, Ours, &[]);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn what_the_real_client_receives_from_our_server() {
    losses_are_exact(Real, Ours, &["-r"]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_our_client_sends_to_our_server() {
    losses_are_exact(Ours, Ours, &[]);
}

/// The part after the rate: `     3 /    88 ~drop/pkt …`.
fn between(line: &str) -> &str {
    line.split_once(" Mbps").map_or("", |(_, rest)| rest)
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn losses_are_seen_while_they_happen() {
    for (client, server) in [(Ours, Real), (Real, Ours)] {
        for more in [&["-i1"][..], &["-i1", "-r"]] {
            let (done, _, passed) = over(client, server, more, each_25th);
            assert_eq!(passed, (SENT, 8), "{done:?}");
            let intervals: Vec<&str> = done.stdout.lines().filter(|line| line.contains("~drop")).collect();
            assert!(intervals.len() >= 2, "{client:?} {more:?} {done:?}");
            for line in &intervals {
                assert_eq!(form(line), "# MB / # sec = # Mbps # / # ~drop/pkt # ~%loss", "{done:?}");
            }
            // 125 datagrams are sent in 2 s, five of them dropped; a busy machine may have fewer, and never
            // more than all eight.
            let loss: f64 = intervals[..2].iter().map(|line| before(between(line), " /")).sum();
            assert!((1.0..=8.0).contains(&loss), "{loss}: {client:?} {more:?} {done:?}");
        }
    }
}

/// Drops all datagrams that end a test.
fn without_ends(number: u64, is_data: bool) -> bool {
    is_data || number <= 2
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn a_receiver_that_hears_of_no_end_ends_all_the_same() {
    for client in [Real, Ours] {
        let (done, _, passed) = over(client, Ours, &[], without_ends);
        assert_eq!(passed, (SENT, 0), "{done:?}");
        assert!(done.stdout.contains(" 0 / 200 drop/pkt 0.00 %loss"), "{done:?}");
    }
}
