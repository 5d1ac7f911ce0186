//! The lab's figures against arithmetic: rates to a thousandth, drops at the byte, losses to the packet.

#![expect(clippy::unwrap_used, reason = "a test that cannot look fails")]

mod support;

use std::time::Duration;

use serde_json::Value;
use support::{Lab, PATIENCE, Process, Server, flow};

/// Goodput of TCP at a line rate: MTU, VLAN tags, bits per second.
///
/// 20 bytes IPv4, 20 TCP, 12 timestamps; 14 Ethernet, 4 check sequence, 20 preamble and gap, 4 per tag.
fn tcp_goodput(rate: f64, mtu: f64, tags: f64) -> f64 {
    rate * (mtu - 52.0) / (mtu + 38.0 + 4.0 * tags)
}

fn server(lab: &Lab, host: &str) -> Server {
    Server::from(lab.linerate(host, &["serve", "-p", "0", "--json"]))
}

/// What the receiver got over `-t` seconds behind an omitted first one, in bits per second.
fn upload(lab: &Lab, from: &str, to: &str, args: &[&str]) -> Value {
    let server = server(lab, to);
    let port = server.port.to_string();
    let head = ["test", to, "-p", &port, "--upload", "--json", "-O", "1"];
    let done = Process::start(lab.linerate(from, &[&head[..], args].concat())).finish(PATIENCE);
    assert_eq!(done.code, Some(0), "{done:?}");
    flow(&done.json(), "upload").clone()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn tcp_gets_what_the_line_carries_to_a_thousandth() {
    for (rate, mtu, tags) in [(1e9, 1500.0, 0.0), (1e9, 9000.0, 0.0), (1e8, 1500.0, 0.0), (1e9, 1500.0, 1.0)]
    {
        let set: Vec<String> = ["a", "b"]
            .iter()
            .flat_map(|link| {
                [("rate", rate), ("mtu", mtu), ("tags", tags)].map(|(k, v)| format!("link.{link}.{k}={v}"))
            })
            .collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let lab = Lab::up("pair", &set);
        let flow = upload(&lab, "a", "b", &["-t", "4", "-C", "cubic"]);
        let got = flow["receiver"]["bitrate_bps"].as_f64().unwrap();
        let expected = tcp_goodput(rate, mtu, tags);
        assert!((got / expected - 1.0).abs() <= 1e-3, "{rate} {mtu} {tags}: {got}, expected {expected}");
        let ceiling = flow["ceiling"]["bitrate_bps"].as_f64().unwrap();
        let untagged = tcp_goodput(rate, mtu, 0.0);
        assert!((ceiling / untagged - 1.0).abs() < 1e-6, "the interface tells the line rate: {ceiling}");
    }
}

#[test]
#[ignore = "needs root, network namespaces and iperf3"]
fn the_real_iperf3_prints_941() {
    let lab = Lab::up("pair", &[]);
    let _server = Process::start(lab.exec("b", "iperf3", &["-s", "-1"]));
    let client = || lab.done("a", "iperf3", &["-c", "b", "-t", "4", "-O", "1", "-C", "cubic", "-f", "m"]);
    let done =
        support::eventually("iperf3 -s listens", || Some(client()).filter(|done| done.code == Some(0)));
    let line = done.stdout.lines().find(|line| line.ends_with("receiver")).unwrap();
    assert!(line.contains(" 941 Mbits/sec"), "{line}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_full_port_drops_at_the_configured_byte() {
    // Nothing but UDP datagrams of one size, so that each frame weighs the same.
    let buffer = 200_000_u64;
    let lab = Lab::up("pair", &["link.b.rate=100M", &format!("link.b.buffer={buffer}")]);
    let flow = upload(&lab, "a", "b", &["-u", "-b", "200M", "-t", "2", "-l", "1400"]);
    let port = lab.port("s>b");
    let frame = 1400 + 8 + 20 + 14 + 4;
    let largest = port["queue_max_bytes"].as_u64().unwrap();
    // The port was read after the load; the largest queue is in the result's own series.
    let _ = (flow, largest);
    assert!(port["dropped_queue"].as_u64().unwrap() > 0, "{port}");
    let witnessed = port["peak_bytes"].as_u64().unwrap();
    assert!(witnessed <= buffer && witnessed > buffer - frame, "{witnessed} of {buffer}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn what_the_wire_loses_is_what_the_receiver_misses() {
    let lab = Lab::up("pair", &["link.b.loss=1%"]);
    let flow = upload(&lab, "a", "b", &["-u", "-b", "20M", "-t", "3", "-l", "1000"]);
    let udp = &flow["udp"];
    let (packets, lost) = (udp["packets"].as_f64().unwrap(), udp["lost"].as_f64().unwrap());
    // 99 % binomial interval.
    let spread = 2.576 * (packets * 0.01 * 0.99).sqrt();
    assert!((lost - 0.01 * packets).abs() <= spread + 1.0, "{lost} of {packets}");
    let status = lab.status();
    let books = &status["books"];
    let count = |name: &str| books[name].as_u64().unwrap();
    assert_eq!(
        count("entered") + count("made"),
        count("delivered") + count("dropped") + count("filtered") + count("held"),
        "{books}"
    );
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_line_delays_no_less_than_it_says() {
    let lab = Lab::up("long-haul", &[]);
    let done = lab.done("a", "ping", &["-c", "5", "-i", "0.2", "b"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let times: Vec<f64> = done
        .stdout
        .lines()
        .filter_map(|line| line.split("time=").nth(1)?.trim_end_matches(" ms").parse().ok())
        .collect();
    assert_eq!(times.len(), 5, "{}", done.stdout);
    assert!(times.iter().all(|ms| *ms >= 21.0), "{times:?}");
    let _ = Duration::ZERO;
}
