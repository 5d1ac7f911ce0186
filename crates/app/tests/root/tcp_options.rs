//! Socket options whose effect is on the wire: packets are counted where they pass.

use serde_json::Value;

use crate::support::{LinkSide, Net, Process, ServeProcess, TIMEOUT};

/// Packets that a side has sent so far.
fn packets(net: &Net, side: LinkSide) -> u64 {
    let counter = ["/sys/class/net/veth0/statistics/tx_packets"];
    let read = Process::start(net.exec(side, "cat", &counter)).finish(TIMEOUT);
    read.stdout.trim().parse().unwrap()
}

/// The only flow of a test from A to B.
fn measured(net: &Net, port: u16, args: &[&str]) -> Value {
    let args = [args, &["--no-latency", "--json"]].concat();
    let done = Process::start(net.test(LinkSide::A, port, &args)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
    done.json()["flows"][0].clone()
}

#[test]
#[ignore = "needs root and ip for network namespaces"]
fn with_quick_ack_each_message_is_acknowledged_by_a_packet_of_its_own() {
    const REQUESTS: u64 = 2000;
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let packets_of_server = |args: &[&str]| {
        let before = packets(&net, LinkSide::B);
        let requests = REQUESTS.to_string();
        let flow =
            measured(&net, server.port, &[&["--workload", "rr", "--requests", &requests], args].concat());
        assert_eq!(flow["transactions"]["completed"], REQUESTS);
        packets(&net, LinkSide::B) - before
    };
    // Otherwise a response is the acknowledgement of its request.
    let (usual, quick) = (packets_of_server(&[]), packets_of_server(&["--quick-ack"]));
    assert!((REQUESTS..REQUESTS * 3 / 2).contains(&usual), "{usual} packets for {REQUESTS} requests");
    assert!(quick > REQUESTS * 7 / 4, "{quick} packets for {REQUESTS} requests, usually {usual}");
}

#[test]
#[ignore = "needs root and ip for network namespaces"]
fn fast_open_acts_where_both_hosts_allow_it_and_is_doubted_elsewhere() {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let opened = || {
        let flow = measured(&net, server.port, &["--upload", "-t", "0.2", "--fast-open"]);
        let doubted = flow["caveats"].as_array().unwrap().iter().any(|caveat| {
            caveat["kind"] == "setting_ineffective" && caveat["text"].as_str().unwrap().contains("SYN")
        });
        (flow["settings"]["sender"]["fast_open"]["effective"].as_bool().unwrap(), doubted)
    };
    assert_eq!(opened(), (false, true));
    for side in [LinkSide::A, LinkSide::B] {
        let done =
            Process::start(net.exec(side, "sysctl", &["-w", "net.ipv4.tcp_fastopen=3"])).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    // The first connection fetches the cookie.
    opened();
    assert_eq!(opened(), (true, false));
    // Each transaction saves a round trip for its connection, and what both ends count stays the same.
    let flow = measured(&net, server.port, &["--workload", "crr", "--requests", "200", "--fast-open"]);
    assert_eq!(
        (&flow["transactions"]["completed"], &flow["transactions"]["failed"]),
        (&200.into(), &0.into())
    );
}
