//! iperf 2 over a path that drops and reorders datagrams, in all pairings: both ends report what the path did.

use crate::support::{Iperf2, Lossy, Netns, Process, TIMEOUT, eventually, rows, signal};

use Iperf2::{Ours, Real};

fn losses_are_exact(client: Iperf2, server: Iperf2) {
    let netns = Netns::new();
    // On the address behind the path, so that the path can use the same port.
    let serving = server.serve(&netns, &["-u", "-B", "127.0.0.1", "-f", "b"]);
    let path = Lossy::numbered(&netns, Iperf2::PORT, 0);
    // Few enough datagrams for any socket buffer.
    let args = ["-c", "127.0.0.2", "-u", "-t", "2", "-b", "100k", "-l", "200", "-f", "b"];
    let client = Process::start(client.command(&netns, &args)).finish(TIMEOUT);
    assert_eq!(client.code, Some(0), "{client:?}");
    let row = eventually("the server's line", || rows(&serving.stdout()).pop());
    signal(serving.pid(), "INT");
    let server = serving.finish(TIMEOUT);
    let passed = path.close(true);
    assert_eq!(passed.len(), 1, "{passed:?}");
    let passed = passed[0];
    // The last datagram counts too, and carries the number of those before it.
    let (sent, arrived) = (passed.sent + 1, passed.arrived + 1);
    assert!(sent - arrived >= 4 && passed.disordered >= 2, "{passed:?}");
    let lost = Some((sent - arrived, sent));
    assert_eq!((row.lost, row.bytes), (lost, arrived * 200), "{passed:?} {server:?}");
    let disordered = format!("{} datagrams received out-of-order", passed.disordered);
    assert!(server.stdout.contains(&disordered), "{disordered}: {server:?}");
    let report = rows(&client.stdout).pop().map(|row| (row.lost, row.bytes));
    assert_eq!(report, Some((lost, arrived * 200)), "{passed:?} {client:?}");
    assert!(client.stdout.contains("Server Report"), "{client:?}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn our_client_sends_to_the_real_server() {
    losses_are_exact(Ours, Real);
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn the_real_client_sends_to_our_server() {
    losses_are_exact(Real, Ours);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn our_client_sends_to_our_server() {
    losses_are_exact(Ours, Ours);
}
