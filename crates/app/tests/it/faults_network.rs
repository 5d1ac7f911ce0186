//! Network faults: no host, no route, one direction only, and links that fail.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::Command;
use std::time::Duration;

use crate::support::{
    self, Done, Process, Relay, ServeProcess, cannot_measure, caveats, flow, test, test_json,
};

/// Timeout for an end to notice that the other one is unreachable.
const NOTICE: Duration = Duration::from_secs(10);

fn ends(command: Command) -> Done {
    Process::start(command).finish(NOTICE)
}

#[test]
fn an_unknown_host_is_named() {
    // RFC 6761 §6.4: this name never resolves.
    cannot_measure(test("no-such-host.invalid", 5201, &["-t", "1"]), &["no-such-host.invalid", "name"]);
}

#[test]
fn a_host_without_the_wanted_ip_version_is_named() {
    cannot_measure(test("127.0.0.1", 5201, &["-6"]), &["127.0.0.1", "no IPv6 address"]);
}

#[test]
fn a_refused_connection_comes_with_its_remedy() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let done = ends(test("127.0.0.1", free, &["-t", "1", "--json"]));
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains(&format!("127.0.0.1:{free}")), "{done:?}");
    assert!(done.stderr.contains("refused") && done.stderr.contains("linerate serve"), "{done:?}");
    assert!(done.took < Duration::from_secs(10), "{done:?}");
    assert_eq!(done.json()["run"]["outcome"], "failed");
}

#[test]
fn a_taken_port_comes_with_its_remedy() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = support::linerate();
    command.args(["serve", "-B", "127.0.0.1", "-p", &port]);
    cannot_measure(command, &[&port, "another program holds this port"]);
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut command = support::linerate();
    command.args(["serve", "-B", "127.0.0.1", "-p", &port]);
    cannot_measure(command, &[&port, "another program holds this port"]);
}

#[test]
fn an_address_that_is_not_ours_comes_with_its_remedy() {
    // RFC 5737: an address for documentation.
    let mut command = support::linerate();
    command.args(["serve", "-B", "192.0.2.1", "-p", "0"]);
    cannot_measure(command, &["192.0.2.1", "no interface of this host has that address"]);
    cannot_measure(test("127.0.0.1", 5201, &["-B", "192.0.2.1"]), &["no interface of this host"]);
}

#[test]
fn ipv6_loopback_is_measured() {
    let server = ServeProcess::start(&["-B", "::1"]);
    let document = test_json(test("::1", server.port, &["-t", "1", "-b", "20M", "--json"]));
    for name in ["download", "upload"] {
        assert!(flow(&document, name)["receiver"]["bytes"].as_u64() > Some(0));
    }
    assert_eq!(document["hosts"][1]["address"], "::1");
}

#[test]
fn where_udp_is_blocked_probes_take_tcp_and_the_result_says_so() {
    let server = ServeProcess::start(&[]);
    let relay = Relay::to(server.port);
    let document = test_json(test("127.0.0.1", relay.port, &["-t", "5", "-b", "20M", "--json"]));
    assert!(caveats(&document).contains(&"udp_blocked".to_owned()), "{document}");
    for kind in ["idle", "loaded"] {
        let latency = &flow(&document, "download")["latency"][kind];
        assert_eq!(latency["transport"], "tcp", "{kind}: {latency}");
        assert!(latency["p50_ns"].as_u64() > Some(0), "{kind}: {latency}");
    }
}

#[test]
fn where_udp_is_blocked_a_udp_test_says_so() {
    let server = ServeProcess::start(&[]);
    let relay = Relay::to(server.port);
    let port = relay.port.to_string();
    cannot_measure(
        test("127.0.0.1", relay.port, &["-t", "1", "-u"]),
        &["UDP port", &port, "a firewall may block UDP"],
    );
    assert!(server.await_events("ended", 1)["error"].as_str().unwrap().contains("UDP"));
}
