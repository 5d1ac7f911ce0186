//! The real iperf3 as a client against our server.

use serde_json::Value;

use crate::support::bursts::{BurstDirection, omitting, tcp, tcp_all, udp, udp_all, unlimited};
use crate::support::{
    self, Folder, Iperf3, Netns, Process, TIMEOUT, both, both_json, eventually, linerate, list, number,
    retried_when_busy, signal,
};

use Iperf3::{Ours, Real};

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn tcp_counts_are_those_of_the_client_to_the_byte() {
    tcp_all(Real, Ours);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn udp_counts_are_those_of_the_client_to_the_datagram() {
    udp_all(Real, Ours);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn both_ends_of_ours_agree_as_well() {
    retried_when_busy(|| {
        tcp(Ours, Ours, BurstDirection::Up, 2);
        tcp(Ours, Ours, BurstDirection::Both, 2);
        udp(Ours, Ours, BurstDirection::Down, 2, &[]);
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn an_unlimited_test_is_reported_to_the_client_as_counted() {
    unlimited(Real, Ours);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_reversed_goal_is_reached_and_ends_the_test() {
    let (near, far) = both_json(Real, &["-n", "10M", "-R"], Ours);
    assert!(number(&near, "/end/sum_received/bytes") >= 10 << 20, "{near}");
    assert!(number(&far, "/end/sum_sent/bytes") >= 10 << 20, "{far}");
    let (_, far) = both_json(Real, &["-k", "50", "-u", "-R", "-l", "1000", "-b", "1M"], Ours);
    assert!(number(&far, "/end/sum_sent/packets") >= 50, "{far}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn omitted_seconds_count_at_neither_end() {
    omitting(Real, Ours);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_text_of_a_reversed_udp_test_has_the_senders_total() {
    retried_when_busy(|| {
        let text =
            both(Real, &["-u", "-R", "-t", "2", "-l", "1000", "-b", "250k/25"], Ours, &[]).client.stdout;
        let sender = text.lines().find(|line| line.ends_with("sender")).unwrap();
        assert!(sender.contains("0/75 (0%)"), "{text}");
    });
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_busy_server_says_so_to_everybody_and_goes_on() {
    let netns = Netns::new();
    let server = Ours.serve(&netns, &["-1"]);
    let first = Real.start(&netns, &["-t", "6", "-l", "1000", "-b", "1M/100", "-J"]);
    eventually("the first test runs", || server.stdout().contains("connected to").then_some(()));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let done = Real.ask(&netns, &[]);
                assert_eq!(done.code, Some(1), "{done:?}");
                assert!(
                    done.stderr.contains("error - the server is busy running a test. try again later"),
                    "{done:?}"
                );
            });
        }
    });
    let first = first.finish(TIMEOUT);
    assert_eq!(first.code, Some(0), "{first:?}");
    // Bursts at 0, 0.8, … 5.6 s: the last one is near the end of the test and may be missing.
    let sent = number(&first.json(), "/end/sum_sent/bytes");
    assert!(sent >= 700_000, "{first:?}");
    assert_eq!(server.finish(TIMEOUT).code, Some(0));
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_terminated_server_informs_its_client() {
    let netns = Netns::new();
    let server = Ours.serve(&netns, &["--forceflush"]);
    let client = Real.start(&netns, &["-t", "30", "-b", "1M", "--forceflush"]);
    eventually("an interval is over", || client.stdout().contains("   sec  ").then_some(()));
    signal(server.pid(), "TERM");
    let client = client.finish(TIMEOUT);
    assert_eq!(client.code, Some(1), "{client:?}");
    assert!(client.stderr.contains("the server has terminated"), "{client:?}");
    let server = server.finish(TIMEOUT);
    assert_eq!(server.code, Some(0), "as versions from 3.19 on end: {server:?}");
    assert!(server.stdout.lines().any(|line| line.ends_with("receiver")), "{server:?}");
    assert!(
        server.stderr.contains("interrupt - the server has terminated by signal Terminated(15)"),
        "{server:?}"
    );
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn clients_that_leave_in_the_middle_leave_a_server_that_serves() {
    let netns = Netns::new();
    let mut server = Ours.serve(&netns, &["--forceflush"]);
    for (round, (name, message)) in
        [("INT", "the client has terminated"), ("KILL", "the client has unexpectedly closed the connection")]
            .into_iter()
            .enumerate()
    {
        let client = Real.start(&netns, &["-t", "30", "-b", "1M", "--forceflush"]);
        eventually("an interval is over", || client.stdout().contains("   sec  ").then_some(()));
        signal(client.pid(), name);
        client.finish(TIMEOUT);
        eventually("the server tells it", || server.stderr().contains(message).then_some(()));
        let waiting = format!("Server listening on 5201 (test #{})", round + 2);
        eventually("it listens again", || server.stdout().contains(&waiting).then_some(()));
    }
    let next = Real.ask(&netns, &["-t", "1", "-b", "1M"]);
    assert_eq!(next.code, Some(0), "{next:?}");
    assert!(server.running(), "{}", server.stderr());
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_client_may_have_our_output() {
    let client = ["-t", "1", "-b", "5M", "--get-server-output", "-J"];
    let document = both(Real, &client, Ours, &[]).client.json();
    let text = document["server_output_text"].as_str().unwrap();
    assert!(text.contains("Accepted connection from 127.0.0.1, port"), "{text}");
    assert!(text.lines().any(|line| line.ends_with("receiver")), "{text}");
    let document = both(Real, &client, Ours, &["-J"]).client.json();
    assert!(number(&document, "/server_output_json/end/sum_received/bytes") > 0, "{document}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn limits_refuse_with_the_text_of_their_number() {
    let refused = |server: &[&str], client: &[&str], text: &str| {
        let netns = Netns::new();
        let mut server = Ours.serve(&netns, server);
        let done = Real.ask(&netns, client);
        assert_eq!(done.code, Some(1), "{done:?}");
        // The real client, version 3.12, has no text for error 37 yet.
        assert!(done.stderr.contains(text) || done.stderr.contains("int_errno=37"), "{done:?}");
        assert!(server.running(), "{}", server.stderr());
        eventually("the server tells it, too", || server.stderr().contains(text).then_some(()));
        let fitting = Real.ask(&netns, &["-t", "1", "-b", "500k", "-l", "1000"]);
        assert_eq!(fitting.code, Some(0), "{fitting:?}");
    };
    let bitrate = "total required bandwidth is larger than server limit";
    refused(&["--server-bitrate-limit", "1M"], &["-b", "2M", "-t", "1"], bitrate);
    refused(&["--server-bitrate-limit", "1M/1"], &["-t", "20"], bitrate);
    let duration = "client's requested duration exceeds the server's maximum permitted limit";
    refused(&["--server-max-duration", "3"], &["-t", "4"], duration);
    refused(&["--server-max-duration", "3"], &["-n", "1M"], duration);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_client_that_falls_silent_is_given_up() {
    let netns = Netns::new();
    let server = Ours.serve(&netns, &["-1", "--rcv-timeout", "1500", "--forceflush"]);
    // Short blocks: one of the default length leaves a second of silence before the next.
    let client = Real.start(&netns, &["-t", "9", "-b", "1M", "-l", "1K"]);
    eventually("an interval is over", || server.stdout().contains("   sec  ").then_some(()));
    signal(client.pid(), "STOP");
    let server = server.finish(TIMEOUT);
    signal(client.pid(), "CONT");
    assert_eq!(server.code, Some(0), "one run, whatever became of it: {server:?}");
    assert!(server.stderr.contains("idle timeout for receiving data"), "{server:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn an_idle_server_of_one_run_ends_without_it() {
    let netns = Netns::new();
    let server = Ours.serve(&netns, &["-1", "--idle-timeout", "2"]).finish(TIMEOUT);
    assert_eq!(server.code, Some(0), "{server:?}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_server_answers_the_ip_versions_that_it_was_asked_for() {
    for (flags, versions) in
        [(&[][..], &["127.0.0.1", "::1"][..]), (&["-4"], &["127.0.0.1"]), (&["-6"], &["::1"])]
    {
        let netns = Netns::new();
        let server = Ours.serve(&netns, flags);
        for host in ["127.0.0.1", "::1"] {
            let client = Process::start(Real.command(&netns, &["-c", host, "-t", "1", "-b", "1M"]));
            let done = client.finish(TIMEOUT);
            assert_eq!(done.code == Some(0), versions.contains(&host), "{flags:?} {host}: {done:?}");
        }
        for host in versions {
            let accepted = format!("Accepted connection from {host}, port");
            assert!(server.stdout().contains(&accepted), "{}", server.stdout());
        }
        assert!(!server.stdout().contains("::ffff"), "{}", server.stdout());
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_port_in_use_is_reported_as_by_the_real_one() {
    let netns = Netns::new();
    let _server = Real.serve(&netns, &[]);
    let done = Process::start(Ours.command(&netns, &["-s"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    let real = Process::start(Real.command(&netns, &["-s"])).finish(TIMEOUT);
    assert_eq!(done.stderr, real.stderr);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_run_of_a_stranger_is_archived_with_a_verdict() {
    let (netns, folder) = (Netns::new(), Folder::new());
    let archive = folder.file("archive.sqlite");
    let server = Ours.serve_with(&netns, &["-1"], &[("LINERATE_ARCHIVE", archive.as_str())]);
    let client = Real.ask(&netns, &["-t", "2", "-b", "20M"]);
    assert_eq!(client.code, Some(0), "{client:?}");
    assert_eq!(server.finish(TIMEOUT).code, Some(0));
    let ask = |args: &[&str]| {
        let mut command = linerate();
        command.args(args).arg("--json").env("LINERATE_ARCHIVE", &archive);
        let done = Process::start(command).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    };
    let history = ask(&["history"]);
    let runs = history.as_array().or_else(|| history["runs"].as_array()).unwrap();
    assert_eq!(runs.len(), 1, "{history}");
    let document = ask(&["show"]);
    let flow = &list(&document, "/flows")[0];
    assert!(flow["verdict"]["cause"].is_string(), "{document}");
    assert!(number(flow, "/receiver/bytes") > 0, "{document}");
    let caveats = support::caveats(&document);
    assert!(caveats.iter().any(|kind| kind == "foreign_peer"), "{document}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_link_of_that_name_is_the_tool() {
    let (netns, folder) = (Netns::new(), Folder::new());
    let mut install = linerate();
    install.args(["install-links", folder.path().to_str().unwrap(), "iperf3"]);
    assert_eq!(Process::start(install).finish(TIMEOUT).code, Some(0));
    let _server = Real.serve(&netns, &["-1"]);
    let done =
        Process::start(netns.exec(&folder.file("iperf3"), &["-c", "127.0.0.1", "-t", "1", "-b", "1M", "-J"]))
            .finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document: Value = done.json();
    assert!(number(&document, "/end/sum_received/bytes") > 0, "{document}");
    let version = Process::start(netns.exec(&folder.file("iperf3"), &["--version"])).finish(TIMEOUT);
    assert!(version.stdout.starts_with("iperf 3."), "{version:?}");
}
