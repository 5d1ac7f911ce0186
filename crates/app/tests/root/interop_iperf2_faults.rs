//! iperf 2 with faults: invalid command lines, no server, peers that disappear, and the server on shared ports.

use std::time::Duration;

use crate::support::{self, Done, Iperf2, Netns, Process, TIMEOUT, eventually, retried_when_busy, rows};

use Iperf2::{Ours, Real};

/// Timeout for a client to notice that its server is gone.
const NOTICE: Duration = Duration::from_secs(30);

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn wrong_arguments_have_the_text_and_code_of_the_real_one() {
    let netns = Netns::new();
    let wrong: [&[&str]; 15] = [
        &[],
        &["-t", "3"],
        &["-Q"],
        &["--nonsense"],
        &["-c"],
        &["--client"],
        &["-c", "127.0.0.1", "-b"],
        &["-c", "127.0.0.1", "-i", "abc"],
        &["-c", "127.0.0.1", "-t", "abc"],
        &["-c", "127.0.0.1", "-n", "x"],
        &["-c", "127.0.0.1", "-d", "-R"],
        &["-c", "127.0.0.1", "-C", "-R"],
        &["-c", "127.0.0.1", "-C", "--trip-times"],
        &["-c", "127.0.0.1", "-b", "1m"],
        &["-c", "127.0.0.1", "-t", "1", "extra"],
    ];
    for args in wrong {
        let [ours, real] = [Ours, Real].map(|who| {
            let done = Process::start(who.command(&netns, args)).finish(TIMEOUT);
            (done.stderr.lines().next().map(str::to_owned), done.code)
        });
        assert_eq!(ours, real, "{args:?}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn a_refused_connection_ends_as_with_the_real_one() {
    let netns = Netns::new();
    let [ours, real] = [Ours, Real].map(|who| who.ask(&netns, &["-t", "1"]));
    for done in [&ours, &real] {
        assert_eq!((done.code, done.stderr.as_str()), (Some(0), "tcp connect failed: Connection refused\n"));
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn datagrams_to_nobody_end_as_with_the_real_one() {
    let netns = Netns::new();
    for who in [Ours, Real] {
        let done = who.ask(&netns, &["-u", "-t", "1", "-b", "1m"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let warning = "WARNING: did not receive ack of last datagram after 10 tries.";
        // The real one prints it to stdout or stderr, depending on whether stdout is read.
        assert!((done.stdout.clone() + &done.stderr).contains(warning), "{done:?}");
        assert!(done.stderr.contains("read failed: Connection refused"), "{done:?}");
    }
}

/// A client whose server is killed during the test.
fn abandoned(client: Iperf2, server: Iperf2, args: &[&str]) -> Done {
    let netns = Netns::new();
    let transport: &[&str] = if args.contains(&"-u") { &["-u"] } else { &[] };
    let serving = server.serve(&netns, transport);
    let client =
        client.start(&netns, &[&["-t", "4", "-i", "1", "-b", "1m", "-l", "1000", "-f", "b"], args].concat());
    eventually("an interval is over", || (!rows(&client.stdout()).is_empty()).then_some(()));
    drop(serving);
    client.finish(NOTICE)
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn a_vanished_server_is_noticed_and_what_was_measured_is_reported() {
    for (client, server) in [(Ours, Real), (Real, Ours), (Ours, Ours)] {
        for args in [&[][..], &["-R"], &["--full-duplex"], &["-u"]] {
            let done = abandoned(client, server, args);
            assert_eq!(done.code, Some(0), "{done:?}");
            let whole = rows(&done.stdout).into_iter().rfind(support::Iperf2OutputLine::is_whole);
            assert!(whole.is_some_and(|row| row.bytes > 10_000), "{args:?} {done:?}");
        }
        let done = abandoned(client, server, &[]);
        // For the real client too: EPIPE or ECONNRESET, depending on which write fails first.
        assert!(done.stderr.contains("write failed: "), "{done:?}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn a_server_outlives_clients_that_vanish() {
    for server in [Ours, Real] {
        let netns = Netns::new();
        let serving = server.serve(&netns, &["-f", "b"]);
        let client = (if server == Ours { Real } else { Ours })
            .start(&netns, &["-t", "30", "-i", "1", "-b", "1m", "-l", "1000", "-f", "b"]);
        eventually("an interval is over", || (!rows(&client.stdout()).is_empty()).then_some(()));
        drop(client);
        eventually("the server tells of it", || rows(&serving.stdout()).into_iter().next());
        let next = Ours.ask(&netns, &["-n", "100000", "-f", "b"]);
        assert_eq!(next.code, Some(0), "{next:?}");
        eventually("the next test", || rows(&serving.stdout()).into_iter().find(|row| row.bytes == 100_000));
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn a_second_server_on_the_port_ends_as_the_real_one() {
    let netns = Netns::new();
    let _first = Real.serve(&netns, &[]);
    for who in [Ours, Real] {
        let done = Process::start(who.command(&netns, &["-s"])).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.stderr.contains("bind failed: Address already in use"), "{done:?}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf"]
fn real_clients_are_served_at_the_classic_port() {
    retried_when_busy(|| {
        let netns = Netns::new();
        let program = env!("CARGO_BIN_EXE_linerate");
        let serving = Process::start(netns.exec(program, &["serve", "--classic", "--json"]));
        netns.await_listener(Iperf2::PORT);
        for args in [
            &["-n", "100000", "-l", "1000"][..],
            &["-t", "1", "-b", "1m", "-l", "1000", "-R"],
            &["-t", "1", "-b", "1m", "-l", "1000", "--full-duplex"],
            &["-t", "1", "-b", "1m", "-l", "1000", "-r", "-L", "5055"],
            &["-t", "1", "-b", "1m", "-l", "1000", "--trip-times"],
            &["-u", "-t", "1", "-b", "100k", "-l", "200"],
            &["-u", "-t", "1", "-b", "100k", "-l", "200", "--trip-times"],
        ] {
            let done = Real.ask(&netns, &[args, &["-f", "b"]].concat());
            assert_eq!((done.code, done.stderr.contains("failed")), (Some(0), false), "{args:?} {done:?}");
            let rows = rows(&done.stdout);
            assert!(rows.iter().any(|row| row.bytes >= 10_000), "{args:?} {done:?}");
            if args.contains(&"-u") {
                assert_eq!(rows.last().and_then(|row| row.lost).map(|(lost, _)| lost), Some(0), "{done:?}");
            }
        }
        // Load is not sent to an address that may be spoofed.
        let refused = Real.start(&netns, &["-u", "-t", "1", "-b", "100k", "-l", "200", "-R", "-f", "b"]);
        let done = refused.finish(TIMEOUT);
        assert!(rows(&done.stdout).iter().all(|row| row.bytes == 0), "{done:?}");
        drop(serving);
    });
}
