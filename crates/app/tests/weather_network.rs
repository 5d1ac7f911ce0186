//! Bad weather on the network: what the path does to a run.

mod support;

use std::time::Duration;

use support::{Net, Process, Server, Side, caveats, flow, test, test_json};

#[test]
fn ipv6_loopback_is_measured() {
    let server = Server::start(&["-B", "::1"]);
    let document = test_json(test("::1", server.port, &["-t", "1", "-b", "20M", "--json"]));
    for name in ["download", "upload"] {
        assert!(flow(&document, name)["receiver"]["bytes"].as_u64().unwrap() > 0);
    }
    assert_eq!(document["hosts"][1]["address"], "::1");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_cable_pulled_in_the_middle_keeps_what_was_measured() {
    let net = Net::pair();
    let server = Server::start_in(&net, Side::B, &[]);
    let run = Process::start(net.test(Side::A, server.port, &["-t", "20", "-b", "20M", "--json"]));
    server.await_events("begun", 1);
    support::pause(Duration::from_millis(5500));
    net.link(Side::A, false);
    let cut = linerate_sock::clock::now();
    let done = run.finish(Duration::from_secs(20));
    assert!(linerate_sock::clock::now().since(cut) < Duration::from_secs(10), "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
    let document = done.json();
    assert!(flow(&document, "download")["receiver"]["bytes"].as_u64().unwrap() > 0, "{done:?}");
    assert!(caveats(&document).contains(&"partial".to_owned()), "{document}");
}
