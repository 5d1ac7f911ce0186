//! Clients that disappear silently because their link is cut: a server that serves one client at a time becomes
//! free within seconds.

use std::time::Duration;

use linerate_sock::clock;

use crate::support::{Net, Process, Server, Side, TIMEOUT, pause, signal, take_turn};

/// Timeout for the server to notice; it formerly took 98 s for iperf3.
const NOTICE: Duration = Duration::from_secs(40);

/// Cuts the link of a client during its test, and checks that the next one is served.
fn cut_link(program: &str, args: &[&str]) {
    let net = Net::pair();
    let server = Server::start_in(&net, Side::A, &["--classic"]);
    // The tests' port is not the tools' default.
    let port = server.port.to_string();
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "PORT" { port.as_str() } else { arg }).collect();
    let client = Process::start(net.exec(Side::B, program, &args));
    server.await_events("begun", 1);
    pause(Duration::from_millis(500));
    net.link(Side::B, false);
    let cut = clock::now();
    server.await_events("ended", 1);
    let took = clock::now().since(cut);
    assert!(took < NOTICE, "{program} {args:?}: {took:?}");
    drop(client);
    net.link(Side::B, true);
    let next = net.test(Side::B, server.port, &["-t", "1", "-b", "20M", "--upload"]);
    let done = Process::start(next).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "after {program} {args:?}: {done:?}");
}

#[test]
#[ignore = "needs root, network namespaces and iperf3"]
fn an_iperf3_client_whose_link_is_cut_does_not_hold_the_server() {
    take_turn();
    let address = Side::A.address();
    let upload = ["-c", address, "-p", "PORT", "-t", "60", "-b", "20M"];
    std::thread::scope(|scope| {
        for more in [&[][..], &["-R"], &["-u"], &["-u", "-R"]] {
            let args = [&upload, more].concat();
            scope.spawn(move || cut_link("iperf3", &args));
        }
    });
}

#[test]
#[ignore = "needs root, network namespaces, iperf and nuttcp"]
fn an_older_client_whose_link_is_cut_does_not_hold_the_server() {
    take_turn();
    let address = Side::A.address();
    let upload = ["-c", address, "-t", "60", "-b", "20M"];
    std::thread::scope(|scope| {
        for more in [&[][..], &["-u"], &["-R"]] {
            let args = [&upload, more].concat();
            scope.spawn(move || cut_link("iperf", &args));
        }
        scope.spawn(|| cut_link("nuttcp", &["-T60", "-R20M", "-p5101", address]));
        scope.spawn(|| cut_link("NPtcp", &["-h", address, "-l", "1000", "-u", "1000000", "-o", "/dev/null"]));
    });
}

/// Leaves a silent client connected while another host waits, which runs a test from the server's host.
fn leave_silent(program: &str, args: &[&str]) {
    let net = Net::pair();
    let server = Server::start_in(&net, Side::A, &["--classic"]);
    let port = server.port.to_string();
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "PORT" { port.as_str() } else { arg }).collect();
    let client = Process::start(net.exec(Side::B, program, &args));
    server.await_events("begun", 1);
    signal(client.pid(), "STOP");
    let waiting = ["test", Side::A.address(), "-p", &port, "-t", "1", "-b", "20M", "--upload"];
    let next = net.exec(Side::A, env!("CARGO_BIN_EXE_linerate"), &waiting);
    let done = Process::start(next).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "after {program} {args:?}: {done:?}, {}", server.stderr());
    let ended = server.await_events("ended", 1);
    assert!(
        ended["error"].as_str().unwrap_or_default().contains("others wait"),
        "{program} {args:?}: {ended}"
    );
}

#[test]
#[ignore = "needs root, network namespaces and iperf3"]
fn a_client_that_lives_and_says_nothing_makes_room_for_another_host() {
    take_turn();
    let address = Side::A.address();
    // Clients of ttcp, and of old versions of iperf, start with their data.
    let after =
        |start: &str| format!("exec 3<>/dev/tcp/{address}/5001; printf '{start}' >&3; exec sleep 100");
    let (ttcp, iperf) =
        (after(r"\x20\x21\x22\x23\x24\x25\x26\x27"), after("0123456789012345678901234567890123456789"));
    std::thread::scope(|scope| {
        scope.spawn(|| leave_silent("iperf3", &["-c", address, "-p", "PORT", "-t", "5", "-b", "20M"]));
        scope.spawn(|| leave_silent("bash", &["-c", &ttcp]));
        scope.spawn(|| leave_silent("bash", &["-c", &iperf]));
    });
}
