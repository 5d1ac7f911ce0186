//! iperf3 over a path that drops and reorders datagrams, in all pairings: both ends report what the path did.

use serde_json::Value;

use crate::support::{
    ExpectedCounts, Iperf3, Lossy, Netns, PORT, Process, TIMEOUT, list, number, retried_when_busy,
};

use Iperf3::{Ours, Real};

/// Five bursts of 30 datagrams, 0.65 s apart, on each of two streams: both fit into any socket buffer, and
/// nothing is in flight when the test ends.
const ARGS: [&str; 12] =
    ["-c", "127.0.0.2", "-u", "-t", "3", "-l", "1000", "-b", "369231/30", "-P", "2", "-J"];
const SENT: u64 = 2 * 5 * 30;

/// The documents of client and server over a lossy path, and what the path did.
fn spoiled(client: Iperf3, server: Iperf3, reverse: bool) -> (Value, Value, Vec<ExpectedCounts>) {
    let netns = Netns::new();
    // On the address behind the path, so that the path can use the same port.
    let serving = server.serve(&netns, &["-1", "-J", "-B", "127.0.0.1"]);
    let path = Lossy::open(&netns, PORT);
    let more: &[&str] = if reverse { &["-R"] } else { &[] };
    let client = Process::start(client.command(&netns, &[&ARGS[..], more].concat())).finish(TIMEOUT);
    assert_eq!(client.code, Some(0), "{client:?}");
    let server = serving.finish(TIMEOUT);
    assert_eq!(server.code, Some(0), "{server:?}");
    (client.json(), server.json(), path.close(!reverse))
}

fn out_of_order(document: &Value) -> u64 {
    list(document, "/end/streams").iter().map(|stream| number(stream, "/udp/out_of_order")).sum()
}

/// Lost datagrams, datagrams and bytes of the receiver in a document.
fn received(document: &Value) -> [u64; 3] {
    ["lost_packets", "packets", "bytes"].map(|what| number(document, &format!("/end/sum_received/{what}")))
}

fn losses_are_exact(client: Iperf3, server: Iperf3, reverse: bool) {
    retried_when_busy(|| check_losses(client, server, reverse));
}

fn check_losses(client: Iperf3, server: Iperf3, reverse: bool) {
    let (near, far, passed) = spoiled(client, server, reverse);
    let sum = |of: fn(&ExpectedCounts) -> u64| passed.iter().map(of).sum::<u64>();
    assert_eq!(sum(|flow| flow.sent), SENT, "{passed:?}");
    assert!(sum(|flow| flow.lost()) >= 10 && sum(|flow| flow.disordered) >= 4, "{passed:?}");
    let expected = [sum(|flow| flow.lost()), sum(|flow| flow.highest), sum(|flow| flow.arrived) * 1000];
    assert_eq!(received(&near), expected, "{passed:?} {near}");
    let (receiver, sender) = if reverse { (&near, &far) } else { (&far, &near) };
    assert_eq!(received(receiver), expected, "{passed:?} {receiver}");
    assert_eq!(out_of_order(receiver), sum(|flow| flow.disordered), "{receiver}");
    assert_eq!(out_of_order(sender), 0, "only the receiver can know: {sender}");
    assert_eq!(number(&near, "/end/sum_sent/packets"), SENT, "{near}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn our_client_sends_to_the_real_server() {
    losses_are_exact(Ours, Real, false);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn our_client_receives_from_the_real_server() {
    losses_are_exact(Ours, Real, true);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_real_client_sends_to_our_server() {
    losses_are_exact(Real, Ours, false);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_real_client_receives_from_our_server() {
    losses_are_exact(Real, Ours, true);
}
