//! Clients that disappear silently because their link is cut: a server that serves one client at a time becomes
//! free within seconds.

use std::time::Duration;

use linerate_sock::clock;

use crate::support::{LinkSide, Net, Process, ServeProcess, TIMEOUT, at_once, pause, signal};

/// Timeout for the server to notice; it formerly took 98 s for iperf3.
const NOTICE: Duration = Duration::from_secs(40);

/// A client on side B that is being measured by a server on side A; `PORT` in its arguments is the server's own.
fn measured(program: &str, args: &[&str]) -> (Net, ServeProcess, Process) {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::A, &["--classic"]);
    let port = server.port.to_string();
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "PORT" { port.as_str() } else { arg }).collect();
    let client = Process::start(net.exec(LinkSide::B, program, &args));
    server.await_events("begun", 1);
    (net, server, client)
}

/// Cuts the link of a client during its test, and checks that the next one is served.
fn cut_link(program: &str, args: &[&str]) {
    let (net, server, client) = measured(program, args);
    pause(Duration::from_millis(500));
    net.link(LinkSide::B, false);
    let cut = clock::now();
    server.await_events("ended", 1);
    let took = clock::now().since(cut);
    assert!(took < NOTICE, "{program} {args:?}: {took:?}");
    drop(client);
    net.link(LinkSide::B, true);
    let next = net.test(LinkSide::B, server.port, &["-t", "1", "-b", "20M", "--upload"]);
    let done = Process::start(next).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "after {program} {args:?}: {done:?}");
}

#[test]
#[ignore = "needs root, network namespaces and iperf3"]
fn an_iperf3_client_whose_link_is_cut_does_not_hold_the_server() {
    let address = LinkSide::A.address();
    let upload = ["-c", address, "-p", "PORT", "-t", "60", "-b", "20M"];
    at_once([&[][..], &["-R"], &["-u"], &["-u", "-R"]], |more| cut_link("iperf3", &[&upload, more].concat()));
}

#[test]
#[ignore = "needs root, network namespaces, iperf and nuttcp"]
fn an_older_client_whose_link_is_cut_does_not_hold_the_server() {
    let address = LinkSide::A.address();
    let iperf = ["-c", address, "-t", "60", "-b", "20M"];
    let clients: [(&str, &[&str]); 5] = [
        ("iperf", &iperf),
        ("iperf", &[&iperf[..], &["-u"]].concat()),
        ("iperf", &[&iperf[..], &["-R"]].concat()),
        ("nuttcp", &["-T60", "-R20M", "-p5101", address]),
        ("NPtcp", &["-h", address, "-l", "1000", "-u", "1000000", "-o", "/dev/null"]),
    ];
    at_once(clients, |(program, args)| cut_link(program, args));
}

/// Leaves a silent client connected while another host waits, which runs a test from the server's host.
fn leave_silent(program: &str, args: &[&str]) {
    let (net, server, client) = measured(program, args);
    signal(client.pid(), "STOP");
    let port = server.port.to_string();
    let waiting = ["test", LinkSide::A.address(), "-p", &port, "-t", "1", "-b", "20M", "--upload"];
    let next = net.exec(LinkSide::A, env!("CARGO_BIN_EXE_linerate"), &waiting);
    let done = Process::start(next).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "after {program} {args:?}: {done:?}, {}", server.stderr());
    let ended = server.await_events("ended", 1);
    assert!(
        ended["error"].as_str().unwrap_or_default().contains("other clients are waiting"),
        "{program} {args:?}: {ended}"
    );
}

#[test]
#[ignore = "needs root, network namespaces and iperf3"]
fn a_silent_client_makes_room_for_another_host() {
    let address = LinkSide::A.address();
    // Clients of ttcp, and of old versions of iperf, start with their data.
    let after =
        |start: &str| format!("exec 3<>/dev/tcp/{address}/5001; printf '{start}' >&3; exec sleep 100");
    let (ttcp, iperf) =
        (after(r"\x20\x21\x22\x23\x24\x25\x26\x27"), after("0123456789012345678901234567890123456789"));
    let clients: [(&str, &[&str]); 3] = [
        ("iperf3", &["-c", address, "-p", "PORT", "-t", "5", "-b", "20M"]),
        ("bash", &["-c", &ttcp]),
        ("bash", &["-c", &iperf]),
    ];
    at_once(clients, |(program, args)| leave_silent(program, args));
}
