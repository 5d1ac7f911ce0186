//! Network faults between two hosts: no route, one direction only, and links that fail.

use std::process::Command;
use std::time::Duration;

use linerate_sock::clock;

use crate::support::{
    self, Done, LinkSide, Net, Process, ServeProcess, TIMEOUT, cannot_measure, caveats, flow, test_json,
};

/// Timeout for an end to notice that the other one is unreachable.
const NOTICE: Duration = Duration::from_secs(30);

fn ends(command: Command) -> Done {
    Process::start(command).finish(NOTICE)
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_filtered_host_is_given_up_with_a_remedy() {
    let net = Net::pair();
    // A neighbour with a static entry that never answers, as behind a packet filter that drops.
    let filter =
        ["-n", &net.a, "neighbour", "add", "10.77.0.9", "lladdr", "02:00:00:00:00:09", "dev", "veth0"];
    assert!(Command::new("ip").args(filter).status().unwrap().success());
    let program = env!("CARGO_BIN_EXE_linerate");
    let command = net.exec(LinkSide::A, program, &["test", "10.77.0.9", "-t", "1"]);
    cannot_measure(command, &["10.77.0.9:5201", "a firewall may drop the packets"]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_host_without_a_route_there_says_so() {
    let net = Net::pair();
    let program = env!("CARGO_BIN_EXE_linerate");
    let command = net.exec(LinkSide::A, program, &["test", "192.0.2.1", "-t", "1"]);
    cannot_measure(command, &["192.0.2.1:5201", "no route"]);
    net.link(LinkSide::A, false);
    cannot_measure(net.test(LinkSide::A, 5201, &["-t", "1"]), &["10.77.0.2:5201", "no route"]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_host_that_does_not_answer_its_neighbours_says_so() {
    let net = Net::pair();
    // No host on the link has this address.
    let program = env!("CARGO_BIN_EXE_linerate");
    let command = net.exec(LinkSide::A, program, &["test", "10.77.0.77", "-t", "1"]);
    cannot_measure(command, &["10.77.0.77:5201", "could not reach the host"]);
}

/// Cuts the link in the middle of the first direction.
fn cut_in_the_middle(cut: LinkSide, args: &[&str]) {
    let net = Net::pair();
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let archive = support::Folder::new();
    let archive = archive.file("archive.sqlite");
    let all = [&["-t", "60", "-b", "20M", "--json-stream", "--archive", &archive], args].concat();
    let run = Process::start(net.test(LinkSide::A, server.port, &all));
    support::eventually("something was received and reported", || {
        run.stdout().lines().any(support::has_moved).then_some(())
    });
    net.link(cut, false);
    let pulled = clock::now();
    let done = run.finish(TIMEOUT);
    assert!(clock::now().since(pulled) < NOTICE, "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
    let mut show = support::linerate();
    show.args(["show", "--json", "--archive", &archive]);
    let document = ends(show).json();
    assert_eq!(document["run"]["outcome"], "failed");
    let first = &document["flows"][0];
    let received = first["receiver"]["bytes"].as_u64().or_else(|| first["progress"]["bytes"].as_u64());
    assert!(received > Some(0), "{document}");
    assert!(caveats(&document).contains(&"partial".to_owned()), "{document}");
    let ended = server.await_events("ended", 1);
    assert!(clock::now().since(pulled) < NOTICE, "{ended}");
    // The server continues to serve when the link is up again and the kernel has resolved its neighbour, which
    // the ends of the old connections were still trying to do.
    net.link(cut, true);
    support::eventually("the neighbour", || {
        let ping = Process::start(net.exec(LinkSide::A, "ping", &["-c", "1", "-W", "1", "10.77.0.2"]))
            .finish(TIMEOUT);
        (ping.code == Some(0)).then_some(())
    });
    test_json(net.test(LinkSide::A, server.port, &["-t", "1", "-b", "20M", "--json"]));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_cable_pulled_at_the_client_keeps_what_was_measured() {
    cut_in_the_middle(LinkSide::A, &[]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_cable_pulled_at_the_server_keeps_what_was_measured() {
    cut_in_the_middle(LinkSide::B, &["--upload"]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_cable_pulled_under_datagrams_keeps_what_was_measured() {
    cut_in_the_middle(LinkSide::B, &["-u"]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_path_slower_than_the_test_is_no_trouble() {
    let net = Net::pair();
    for side in [LinkSide::A, LinkSide::B] {
        net.tbf(side, "2mbit", "16kb", "300ms");
    }
    let server = ServeProcess::start_in(&net, LinkSide::B, &[]);
    let document = test_json(net.test(LinkSide::A, server.port, &["-t", "2", "--json"]));
    for name in ["download", "upload"] {
        let bitrate = flow(&document, name)["receiver"]["bitrate_bps"].as_f64().unwrap();
        // 2 Mb/s of Ethernet frames carry at most 1448/1514 as payload.
        assert!(bitrate < 2e6 && bitrate > 1e6, "{name}: {bitrate}");
    }
}
