//! nuttcp with faults: invalid command lines, missing or unwilling servers, peers that die.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use crate::support::{Done, NUTTCP, Netns, Process, Program, TIMEOUT, eventually, signal};

use Program::{Ours, Real};

const HOST: &str = "127.0.0.1";
const CONTROL: u16 = 5000;

/// Compares both programs with the same arguments and without a peer: same output and exit code.
fn alike(netns: &Netns, args: &[&str]) {
    let [real, ours] = [Real, Ours].map(|whose| NUTTCP.ask(whose, netns, args));
    let bare = |done: &Done| done.stderr.replace("v6.1.2", "vX").replace("v8.2.2", "vX");
    assert_eq!((ours.code, bare(&ours)), (real.code, bare(&real)), "{args:?}\n{ours:?}\n{real:?}");
    assert_eq!(ours.stdout.is_empty(), real.stdout.is_empty(), "{args:?}\n{ours:?}\n{real:?}");
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn without_a_server_the_words_and_the_code_are_those_of_the_real_client() {
    let netns = Netns::new();
    let tests: [&[&str]; 8] = [
        &["-T1"],
        &["-u", "-T1"],
        &["-i1", "-T2"],
        &["-F", "-T1"],
        &["-r", "-T1"],
        &["-r", "-u", "-T1"],
        &["-r", "-i1", "-T2"],
        &["-r", "-F", "-T1"],
    ];
    for args in tests {
        alike(&netns, &[args, &[HOST]].concat());
    }
    alike(&netns, &["no-such-host.invalid"]);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn mistakes_are_reported_in_the_words_of_the_real_client() {
    let netns = Netns::new();
    let mistakes = [
        "-N0", "-N-1", "-N200", "-l0", "-l-5", "-c64", "-c300t", "-fbogus", "-P0", "-p80", "-Z", "-h",
        "-ul70000", "-i0",
    ];
    for mistake in mistakes {
        alike(&netns, &[mistake, "-T1", HOST]);
    }
    alike(&netns, &["-u", "-l3", HOST]);
    alike(&netns, &["-u", "-l0", HOST]);
    alike(&netns, &["-u", "-l70000", HOST]);
    alike(&netns, &["-i5", "-T2", HOST]);
    alike(&netns, &[]);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn tests_for_third_parties_and_traceroutes_are_refused() {
    let netns = Netns::new();
    let mut server = NUTTCP.start(Ours, &netns, &["-S"]);
    netns.await_listener(CONTROL);
    let third = NUTTCP.ask(Real, &netns, &["-T1", HOST, "127.0.0.2"]);
    let output = third.stdout.clone() + &third.stderr;
    assert!(output.contains("doesn't allow 3rd party nuttcp"), "{third:?}");
    let route = NUTTCP.ask(Real, &netns, &["-xt", HOST]);
    let output = route.stdout.clone() + &route.stderr;
    assert!(output.contains("doesn't allow traceroute"), "{route:?}");
    assert!(server.running(), "{}", server.stderr());
    let ours = NUTTCP.ask(Ours, &netns, &["-T1", HOST, "127.0.0.2"]);
    assert_eq!(ours.code, Some(1), "{ours:?}");
    assert!(ours.stderr.contains("third party"), "{ours:?}");
}

/// Checks that the server serves the next client.
fn still_serves(netns: &Netns, server: &mut Process) {
    let done = NUTTCP.ask(Real, netns, &["-n16", "-l8k", HOST]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("0.1250 MB"), "{done:?}");
    assert!(server.running(), "{}", server.stderr());
}

/// A client in the middle of a ten-second test.
fn amid(client: Program, netns: &Netns, more: &[&str]) -> Process {
    let process = NUTTCP.start(client, netns, &[more, &["-i0.2", "-T10", "-R8m", "-l8k", HOST]].concat());
    eventually("the test runs", || process.stdout().contains(" Mbps").then_some(()));
    process
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn clients_that_are_killed_leave_a_server_that_serves() {
    let netns = Netns::new();
    let mut server = NUTTCP.start(Ours, &netns, &["-S"]);
    netns.await_listener(CONTROL);
    for more in [&[][..], &["-r"], &["-u", "-l1000"], &["-r", "-u", "-l1000"]] {
        // The real client buffers its output to a pipe; ours prints each line at once.
        let client = amid(Ours, &netns, more);
        signal(client.pid(), "KILL");
        drop(client);
        still_serves(&netns, &mut server);
    }
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn a_client_whose_server_is_killed_ends_with_a_message() {
    for server in [Real, Ours] {
        for more in [&[][..], &["-r"]] {
            let netns = Netns::new();
            // Otherwise the real one runs the test in a child process.
            let serving = NUTTCP.start(server, &netns, &["-1", "--nofork"]);
            netns.await_listener(CONTROL);
            let client = amid(Ours, &netns, more);
            signal(serving.pid(), "KILL");
            let done = client.finish(TIMEOUT);
            assert_eq!(done.code, Some(1), "{server:?} {more:?} {done:?}");
            assert!(done.stderr.contains("Error: not receiving server info"), "{server:?} {more:?} {done:?}");
        }
    }
}

const REQUEST: &str = "buflen = 65536, nbuf = 2147483647, win = 0, nstream = 1, rate = 4294967295, port = 5001, \
trans = 1, braindead = 0, timeout = 3.000000, udp = 0, vers = 6.1.2, interval = 0.000000, reverse = 0, \
format = 2048, traceroute = 0, irate = 0, thirdparty = _NULL_ , multicast = 0 , datamss = 0 , tos = 0 , \
nbuf_bytes = 0 , rate_pps = 0 , nodelay = 0\n";

/// Everything that the server on this host answers to these messages, until it closes.
fn answers(words: &[&str]) -> String {
    let mut control = TcpStream::connect((Ipv4Addr::LOCALHOST, CONTROL)).unwrap();
    control.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut received = Vec::new();
    for word in words {
        control.write_all(word.as_bytes()).unwrap();
        let mut piece = [0; 4096];
        let count = control.read(&mut piece).unwrap();
        received.extend_from_slice(&piece[..count]);
    }
    control.read_to_end(&mut received).unwrap();
    String::from_utf8(received).unwrap()
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn requests_that_cannot_be_are_refused_with_a_reason() {
    let netns = Netns::new();
    let mut server = NUTTCP.start(Ours, &netns, &["-S"]);
    netns.await_listener(CONTROL);
    let greeting = "HELO nuttcp v6.1.2\n";
    let cases = [
        ("nstream = 1", "nstream = 0", "invalid nstream\nnstream = 0\nKO\n"),
        ("port = 5001", "port = 80", "invalid port/nstream"),
        (
            "nstream = 1, rate = 4294967295, port = 5001",
            "nstream = 9, rate = 1, port = 4995",
            "ctlport overlaps port/nstream",
        ),
        ("buflen = 65536", "buflen = 0", "invalid buflen"),
        (
            "buflen = 65536",
            "buflen = many",
            "error scanning parameters\nmay be using older client version than server\n",
        ),
        ("thirdparty = _NULL_", "thirdparty = 192.0.2.1", "KO\ndoesn't allow 3rd party nuttcp\nKO\n"),
    ];
    netns.inside(|| {
        for (is, becomes, expected) in cases {
            let reply = answers(&[greeting, &REQUEST.replace(is, becomes)]);
            assert!(
                reply.starts_with("HELO nuttcp v8.2.2\nKO\n") && reply.ends_with("\nKO\n"),
                "{becomes}: {reply}"
            );
            assert!(reply.contains(expected), "{becomes}: {reply}");
        }
        assert_eq!(answers(&["GET / HTTP/1.1\r\n"]), "KO\nno nuttcp HELO message\nKO\n");
    });
    still_serves(&netns, &mut server);
}

#[test]
#[ignore = "needs root and network namespaces, nuttcp"]
fn a_client_without_a_data_connection_gets_an_error_and_the_next_is_served() {
    let netns = Netns::new();
    let mut server = NUTTCP.start(Ours, &netns, &["-S"]);
    netns.await_listener(CONTROL);
    let reply = netns.inside(|| answers(&["HELO nuttcp v6.1.2\n", REQUEST]));
    assert_eq!(reply, "HELO nuttcp v8.2.2\nOK v8.2.2\nnuttcp-r: v8.2.2: Error: no data connection\n");
    still_serves(&netns, &mut server);
}
