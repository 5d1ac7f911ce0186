//! `linerate test --multicast` with one receiver, over loopback. Several receivers need namespaces.

use std::net::{IpAddr, Ipv4Addr};

use linerate_sock::multicast::MulticastPath;
use linerate_sock::{SocketOptions, iface};
use serde_json::Value;

use crate::support::{Process, ServeProcess, TIMEOUT, flow, retried_when_busy, test, test_json};

fn measured(host: &str, port: u16, group: &str, args: &[&str]) -> Value {
    let to_the_group = ["-u", "--multicast", group, "-t", "0.5", "-b", "5M", "--no-latency", "--json"];
    test_json(test(host, port, &[&to_the_group[..], args].concat()))
}

#[test]
fn datagrams_to_a_group_arrive_at_a_server_that_was_asked_to_join_it() {
    retried_when_busy(|| {
        let server = ServeProcess::start(&[]);
        // Loopback has no route for groups of IPv6. The kernel gives no port below 32768 to the sockets of other tests.
        let cases: [(&str, &str, &[&str]); 3] = [
            ("127.0.0.1", "239.1.2.3", &[]),
            ("127.0.0.1", "232.1.2.3", &["-P", "3", "--ttl", "5"]),
            ("127.0.0.1", "239.1.2.3", &["--upload", "-l", "200", "--cport", "23210"]),
        ];
        for (host, group, args) in cases {
            let result = measured(host, server.port, group, args);
            assert_eq!(result["run"]["spec"]["traffic"]["multicast"], group);
            let flow = flow(&result, "multicast");
            let sent = flow["sender"]["packets"].as_u64().unwrap();
            assert!(sent > 100, "{group} {args:?}: {sent} datagrams");
            assert_eq!(
                (&flow["udp"]["packets"], &flow["udp"]["lost"]),
                (&sent.into(), &0.into()),
                "{group} {args:?}"
            );
            let to = flow["settings"]["sender"]["remote"].as_str().unwrap();
            assert!(to.trim_start_matches('[').starts_with(group), "{to}");
        }
    });
}

/// The receiver accepts datagrams of this client only, and of this run.
#[test]
fn others_that_send_to_the_group_are_not_counted() {
    let server = ServeProcess::start(&[]);
    let others = std::net::UdpSocket::bind("127.0.0.2:0").unwrap();
    others.set_multicast_loop_v4(true).unwrap();
    let port = 23_213;
    let client = test(
        "127.0.0.1",
        server.port,
        &[
            "-u",
            "--multicast",
            "239.1.2.4",
            "-t",
            "1",
            "-b",
            "1M",
            "--no-latency",
            "--cport",
            "23213",
            "--json",
        ],
    );
    let client = Process::start(client);
    let begun = linerate_sock::clock::now();
    while linerate_sock::clock::now().since(begun).as_millis() < 1500 {
        others.send_to(&[0; 300], ("239.1.2.4", port)).unwrap();
        crate::support::pause(std::time::Duration::from_millis(5));
    }
    let result = client.finish(TIMEOUT).json();
    let flow = flow(&result, "multicast");
    assert_eq!(flow["udp"]["packets"], flow["sender"]["packets"]);
    assert_eq!(flow["receiver"]["total_bytes"], flow["sender"]["bytes"]);
}

/// Otherwise each receiver would count the datagrams of both.
#[test]
fn two_senders_cannot_have_one_port() {
    let server = ServeProcess::start(&[]);
    let (group, source) = ("239.1.2.5", IpAddr::V4(Ipv4Addr::LOCALHOST));
    let interface = iface::of_local_address(source).unwrap().index;
    let path = MulticastPath { group: group.parse().unwrap(), source, interface };
    let first = path.sender(None, None, &SocketOptions::default()).unwrap();
    let port = first.local.port().to_string();
    let second = ["-u", "--multicast", group, "--cport", &port, "-t", "0.1", "--no-latency"];
    let done = Process::start(test("127.0.0.1", server.port, &second)).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    let why = format!("127.0.0.1:{port} failed: Address already in use");
    assert!(done.stderr.contains(&why), "{done:?}");
}

#[test]
fn a_group_of_the_other_version_of_ip_is_refused_by_name() {
    let server = ServeProcess::start(&[]);
    let run = |args: &[&str]| {
        Process::start(test("127.0.0.1", server.port, &[&["-u", "-t", "0.2"][..], args].concat()))
            .finish(TIMEOUT)
    };
    let done = run(&["--multicast", "ff15::1"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("\"127.0.0.1\" has no IPv6 address"), "{}", done.stderr);
    let done = run(&["-4", "--multicast", "ff15::1"]);
    assert!(
        done.stderr.contains("the group ff15::1 has receivers at IPv6 addresses only"),
        "{}",
        done.stderr
    );
}
