//! What a network may measure in 24 hours, whichever tool its hosts use.

use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Folder, LinkSide, Net, Process, ServeProcess, TIMEOUT, eventually, pause, test_json};

/// What the server says to a test that it refuses.
fn refusal(net: &Net, port: u16, args: &[&str]) -> String {
    let args = [&["--upload", "--no-latency", "--json"], args].concat();
    let done = Process::start(net.test(LinkSide::A, port, &args)).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    done.json()["run"]["reason"].as_str().unwrap_or_default().to_owned()
}

fn iperf3(net: &Net, port: u16, args: &[&str]) -> Output {
    let (port, address) = (port.to_string(), LinkSide::B.address().to_string());
    let head = ["-c", &address, "-p", &port, "-J"];
    net.exec(LinkSide::A, "iperf3", &[&head[..], args].concat()).output().unwrap()
}

#[test]
#[ignore = "needs root and network namespaces"]
fn tests_of_a_network_are_counted_over_all_tools() {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &["--limit-daily-tests", "2"]);
    let own = net.test(LinkSide::A, server.port, &["--upload", "--no-latency", "--json", "-t", "0.5"]);
    assert_eq!(test_json(own)["run"]["outcome"], "completed");
    let theirs = iperf3(&net, server.port, &["-t", "1"]);
    assert!(theirs.status.success(), "{theirs:?}");
    let why = refusal(&net, server.port, &["-t", "0.5"]);
    assert!(why.contains("/24 has made the 2 tests") && why.contains("try again in 2"), "{why}");
    let theirs = iperf3(&net, server.port, &["-t", "1"]);
    let said: Value = serde_json::from_slice(&theirs.stdout).unwrap();
    assert_eq!(said["error"], json!("the server is busy running a test. try again later"), "{said}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_server_that_is_public_until_its_restart_keeps_the_quotas_of_one() {
    let (net, folder) = (Net::pair(), Folder::new());
    let config = folder.file("linerate.toml");
    std::fs::write(&config, "web = \"127.0.0.1:0\"\npublic = true\n").unwrap();
    let server = ServeProcess::start_in(&net, LinkSide::B, &["--config", &config]);
    // Strangers may measure for 20 minutes a day.
    let refuses_as_a_public_one = || {
        let why = refusal(&net, server.port, &["-t", "1300"]);
        assert!(why.contains("of the 1200 s that this server allows"), "{why}");
    };
    refuses_as_a_public_one();
    std::fs::write(&config, "web = \"127.0.0.1:0\"\nlimit-clients = 5\n").unwrap();
    server.signal("HUP");
    let words = "changed: limit-clients; changes after a restart: public";
    eventually("it was read again", || server.stderr().contains(words).then_some(()));
    refuses_as_a_public_one();
}

#[test]
#[ignore = "needs root and network namespaces"]
fn bytes_count_also_of_tests_that_were_broken_off() {
    let net = Net::pair();
    net.tbf(LinkSide::A, "200mbit", "64kb", "50ms");
    let server = ServeProcess::start_in(&net, LinkSide::B, &["--limit-daily-bytes", "4M"]);
    // Well below the quota.
    let small = net.test(LinkSide::A, server.port, &["--upload", "--no-latency", "--json", "-n", "1M"]);
    assert_eq!(test_json(small)["run"]["outcome"], "completed");
    // A client that is killed has no results.
    let killed =
        Process::start(net.test(LinkSide::A, server.port, &["--upload", "--no-latency", "-t", "20"]));
    pause(Duration::from_secs(2));
    drop(killed);
    let another = || {
        let args = ["--upload", "--no-latency", "--json", "-t", "0.2"];
        Process::start(net.test(LinkSide::A, server.port, &args)).finish(TIMEOUT)
    };
    let refused = eventually("the quota is used up", || Some(another()).filter(|done| done.code == Some(1)));
    let why = refused.json()["run"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(why.contains("/24 has moved"), "{why}");
}
