//! The ceiling of an emulated link.

use serde_json::json;

use crate::support::{LinkSide, Net, Process, ServeProcess, TIMEOUT, flow, test_json};

#[test]
#[ignore = "needs root and network namespaces"]
fn the_ceiling_of_an_emulated_line_is_what_its_rate_carries_and_both_ends_report_it() {
    let net = Net::pair();
    let tap =
        ["tuntap add tap0 mode tap", "link set tap0 alias linerate-lab", "address add 10.78.0.1/24 dev tap0"];
    for arguments in tap.iter().chain(&["link set tap0 up"]) {
        let ip = net.exec(LinkSide::A, "ip", &arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(Process::start(ip).finish(TIMEOUT).code, Some(0), "{arguments}");
    }
    let speed = net.exec(LinkSide::A, "ethtool", &["-s", "tap0", "speed", "1000", "duplex", "full"]);
    assert_eq!(Process::start(speed).finish(TIMEOUT).code, Some(0));
    let server = ServeProcess::start_in(&net, LinkSide::A, &["--one-off"]);
    // Both ends have the address of the link; nothing crosses it, as nothing reads its other end.
    let program = env!("CARGO_BIN_EXE_linerate");
    let port = server.port.to_string();
    let client = ["test", "10.78.0.1", "-p", &port, "-t", "1", "-b", "20M", "--download", "--json"];
    let document = test_json(net.exec(LinkSide::A, program, &[&client[..], &["--set-mss", "1460"]].concat()));
    for host in 0..2 {
        let link = &document["hosts"][host]["link"];
        assert_eq!((&link["kind"], link["speed_bps"].as_f64()), (&json!("tun"), Some(1e9)), "{link}");
    }
    let ceiling = &flow(&document, "download")["ceiling"];
    assert_eq!(ceiling["limit"], "link", "{ceiling}");
    // 1448 of every 1538 bytes.
    let bps = ceiling["bitrate_bps"].as_f64().unwrap();
    assert!((bps - 1e9 * 1448.0 / 1538.0).abs() < 1.0, "{ceiling}");
}
