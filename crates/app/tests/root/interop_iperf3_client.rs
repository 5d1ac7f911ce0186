//! Our iperf3 client against the real iperf3 as a server.

use std::time::Duration;

use serde_json::Value;

use crate::support::bursts::{omitting, tcp_all, udp_all, unlimited};
use crate::support::{Iperf3, Netns, Process, TIMEOUT, both, both_json, eventually, number, signal};

use Iperf3::{Ours, Real};

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn tcp_counts_are_those_of_the_server_to_the_byte() {
    tcp_all(Ours, Real);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn udp_counts_are_those_of_the_server_to_the_datagram() {
    udp_all(Ours, Real);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn an_unlimited_test_reports_what_the_server_counted() {
    unlimited(Ours, Real);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn goals_are_met_exactly_and_end_the_test() {
    let (near, _) = both_json(Ours, &["-n", "10M"], Real);
    assert_eq!(number(&near, "/end/sum_sent/bytes"), 10 << 20, "{near}");
    let seconds = near["end"]["sum_sent"]["seconds"].as_f64().unwrap();
    assert!(seconds < 60.0, "it does not last until a timer: {near}");
    let (near, _) = both_json(Ours, &["-k", "100", "-u", "-l", "1000", "-b", "1M"], Real);
    assert_eq!(number(&near, "/end/sum_sent/packets"), 100, "{near}");
    assert_eq!(number(&near, "/end/sum_sent/bytes"), 100_000, "{near}");
    let (near, far) = both_json(Ours, &["-n", "1M", "-R", "-i", "0"], Real);
    assert!(number(&near, "/end/sum_received/bytes") >= 1 << 20, "{near}");
    assert!(number(&far, "/end/sum_sent/bytes") >= 1 << 20, "{far}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn omitted_seconds_count_at_neither_end() {
    omitting(Ours, Real);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_busy_server_is_named_and_its_test_unharmed() {
    let netns = Netns::new();
    let _server = Real.serve(&netns, &["--forceflush"]);
    let first = Real.start(&netns, &["-t", "12", "-b", "1M", "--forceflush"]);
    eventually("the first test runs", || first.stdout().contains("connected to").then_some(()));
    let second = Ours.ask(&netns, &["-J"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    let document = second.json();
    let error = document["error"].as_str().unwrap();
    assert!(error.contains("the server is busy running a test. try again later"), "{document}");
    let plain = Ours.ask(&netns, &[]);
    assert_eq!(plain.code, Some(1), "{plain:?}");
    assert!(
        plain.stderr.contains("iperf3: error - the server is busy running a test. try again later"),
        "{plain:?}"
    );
    let first = first.finish(TIMEOUT);
    assert_eq!(first.code, Some(0), "{first:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_refused_connection_has_the_error_text_in_the_object() {
    let netns = Netns::new();
    let done = Ours.ask(&netns, &["-p", "5999", "-J"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    let document = done.json();
    let error = document["error"].as_str().unwrap();
    assert!(error.contains("unable to connect to server"), "{error}");
    assert!(error.contains("Connection refused"), "{error}");
    assert_eq!(document["intervals"], Value::Array(Vec::new()), "{document}");
    let done = Ours.ask(&netns, &["-p", "5999"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.starts_with("iperf3: error - unable to connect to server"), "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn wrong_arguments_have_the_texts_of_the_real_one() {
    let netns = Netns::new();
    let wrong: [&[&str]; 8] = [
        &["-c", "127.0.0.1", "-s"],
        &[],
        &["-s", "-t", "3"],
        &["-c", "127.0.0.1", "-1"],
        &["-c", "127.0.0.1", "-t", "1", "-n", "1M"],
        &["-c", "127.0.0.1", "-R", "--bidir"],
        &["-c", "127.0.0.1", "-i", "0.01"],
        &["-c", "127.0.0.1", "-l", "2M"],
    ];
    let parameter_error = |who: Iperf3, args: &[&str]| {
        let done = Process::start(who.command(&netns, args)).finish(TIMEOUT);
        assert_eq!(done.code, Some(1), "{done:?}");
        let line = done.stderr.lines().find(|line| line.contains("parameter error"));
        line.unwrap_or_else(|| panic!("no parameter error: {done:?}")).to_owned()
    };
    for args in wrong {
        assert_eq!(parameter_error(Ours, args), parameter_error(Real, args), "{args:?}");
    }
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_server_that_is_terminated_leaves_a_summary() {
    let netns = Netns::new();
    let server = Real.serve(&netns, &[]);
    let client = Ours.start(&netns, &["-t", "30", "-b", "1M", "--forceflush"]);
    eventually("an interval is over", || client.stdout().contains("   sec  ").then_some(()));
    signal(server.pid(), "TERM");
    let client = client.finish(TIMEOUT);
    assert_eq!(client.code, Some(1), "{client:?}");
    assert!(client.stderr.contains("the server has terminated"), "{client:?}");
    assert!(client.stdout.lines().any(|line| line.ends_with("sender")), "{client:?}");
    assert_eq!(server.finish(TIMEOUT).code, Some(1), "as version 3.12 ends");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn an_interrupted_client_informs_the_server_which_serves_the_next_one() {
    let netns = Netns::new();
    let server = Real.serve(&netns, &["--forceflush"]);
    let client = Ours.start(&netns, &["-t", "30", "-b", "1M", "--forceflush"]);
    eventually("an interval is over", || client.stdout().contains("   sec  ").then_some(()));
    signal(client.pid(), "INT");
    let client = client.finish(TIMEOUT);
    assert_eq!(client.code, Some(0), "as versions from 3.19 on end: {client:?}");
    assert!(
        client.stderr.contains("interrupt - the client has terminated by signal Interrupt(2)"),
        "{client:?}"
    );
    assert!(client.stdout.lines().any(|line| line.ends_with("sender")), "{client:?}");
    for _ in 0..2 {
        let next = Ours.ask(&netns, &["-t", "1", "-b", "1M"]);
        assert_eq!(next.code, Some(0), "{next:?}");
    }
    let output = eventually("three tests", || {
        let (out, err) = (server.stdout(), server.stderr());
        out.contains("(test #4)").then_some(out + &err)
    });
    assert!(output.contains("the client has terminated"), "{output}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn the_servers_own_output_comes_along() {
    let client = ["-t", "1", "-b", "5M", "--get-server-output"];
    let text = both(Ours, &client, Real, &[]).client;
    assert!(text.stdout.contains("Server output:"), "{text:?}");
    assert!(text.stdout.contains("Accepted connection from 127.0.0.1"), "{text:?}");
    let json = [&client[..], &["-J"]].concat();
    let document = both(Ours, &json, Real, &[]).client.json();
    assert!(document["server_output_text"].as_str().unwrap().contains("receiver"), "{document}");
    let document = both(Ours, &json, Real, &["-J"]).client.json();
    assert!(number(&document, "/server_output_json/end/sum_received/bytes") > 0, "{document}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_stream_of_json_has_a_line_for_each_event() {
    let client = ["-t", "2", "-b", "20M", "--json-stream"];
    let events = |more: &[&str]| {
        let done = both(Ours, &[&client[..], more].concat(), Real, &["-J"]).client;
        let lines = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.collect::<Vec<_>>()
    };
    let names = |events: &[Value]| {
        let mut names: Vec<String> =
            events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        // A late end makes a short third interval.
        if names.len() > 3 && names[1..4].iter().all(|name| name == "interval") {
            names.remove(3);
        }
        names
    };
    let plain = events(&[]);
    assert_eq!(names(&plain), ["start", "interval", "interval", "end"]);
    assert!(number(plain.last().unwrap(), "/data/sum_received/bytes") > 0);
    let full = events(&["--get-server-output"]);
    assert_eq!(names(&full), ["start", "interval", "interval", "server_output_json", "end"]);
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn multipath_tcp_runs_with_a_server_that_has_it_not() {
    let done = both(Ours, &["-m", "-t", "1", "-b", "5M", "-J"], Real, &[]).client;
    assert!(number(&done.json(), "/end/sum_received/bytes") > 0, "{done:?}");
}

#[test]
#[ignore = "needs root and network namespaces, iperf3"]
fn a_server_whose_process_is_gone_is_noticed() {
    let netns = Netns::new();
    let server = Real.serve(&netns, &[]);
    let client = Ours.start(&netns, &["-t", "30", "-b", "1M", "--forceflush"]);
    eventually("an interval is over", || client.stdout().contains("   sec  ").then_some(()));
    drop(server);
    let client = client.finish(Duration::from_secs(20));
    assert_eq!(client.code, Some(1), "{client:?}");
    assert!(client.stderr.contains("control socket has closed unexpectedly"), "{client:?}");
}
