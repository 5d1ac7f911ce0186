//! `linerate test --workload rr|crr`: both ends agree on every transaction, what does not go together is refused, and
//! a server takes connections of single transactions only from the client of a run that makes them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use linerate_model::flow::FlowId;
use linerate_proto::native::{ConnectionPurpose, Preface};
use serde_json::Value;

use crate::support::{
    Folder, Process, ServeProcess, TIMEOUT, again_when_busy, linerate, pause, signal, test_json,
};

fn command(port: u16, args: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["test", "127.0.0.1", "-p", &port.to_string()]).args(args);
    command
}

/// The only flow of a test with transactions, which are complete and add up.
fn flow(port: u16, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    // A response has two seconds, which a busy host may need for something else.
    let result = again_when_busy(
        || test_json(command(port, &args)),
        |result| result["flows"][0]["transactions"]["failed"] == 0,
    );
    let flows = result["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 1, "{args:?}");
    let flow = flows[0].clone();
    let made = &flow["transactions"];
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(number(&made["completed"]) > 0 && made["failed"] == 0, "{args:?}: {made}");
    let histogram = made["histogram"].as_array().unwrap();
    let counted: u64 = histogram.iter().map(|bucket| number(&bucket["count"])).sum();
    assert_eq!(counted, number(&made["completed"]), "{args:?}");
    let order = ["min", "p50", "p90", "p95", "p99", "p999", "p9999", "max"];
    let times: Vec<u64> = order.iter().map(|name| number(&made["times"][format!("{name}_ns")])).collect();
    assert!(times.is_sorted() && times[0] > 0, "{args:?}: {times:?}");
    flow
}

#[test]
fn every_kind_of_transaction_is_made_and_counted() {
    let server = ServeProcess::start(&[]);
    let short = ["-t", "0.3"];
    let cases: [(&str, &[&str], u64); 9] = [
        ("rr", &[], 1),
        ("rr", &["-P", "3", "--request-size", "100", "--response-size", "4K"], 100),
        ("rr", &["-P", "40", "--pipeline", "4"], 1),
        ("rr", &["--request-size", "1M", "--response-size", "2M", "--pipeline", "3"], 1 << 20),
        ("rr", &["-u"], 32),
        ("rr", &["-u", "-P", "20", "--response-size", "1400"], 32),
        ("rr", &["--request-rate", "300", "-P", "2"], 1),
        ("crr", &["-P", "3"], 1),
        ("crr", &["--response-size", "100K"], 1),
    ];
    let total = cases.len();
    for (workload, args, request) in cases {
        let args: Vec<&str> =
            ["--workload", workload].into_iter().chain(args.iter().copied()).chain(short).collect();
        let flow = flow(server.port, &args);
        assert_eq!(flow["name"], workload);
        assert!(flow.get("verdict").is_none() && flow["settings"]["no_delay"] == true, "{flow}");
        let whole = flow["receiver"]["total_bytes"].as_u64().unwrap();
        assert_eq!(whole % request, 0, "{args:?}: {whole}");
        if workload == "rr" && !args.contains(&"-u") {
            let accounting = &flow["byte_accounting"];
            assert_eq!(accounting["written_bytes"], accounting["delivered_bytes"], "{args:?}");
        }
    }
    server.await_events("ended", total);
}

#[test]
fn a_number_of_requests_ends_the_test() {
    let server = ServeProcess::start(&[]);
    for workload in ["rr", "crr"] {
        let flow = flow(server.port, &["--workload", workload, "--requests", "251", "-P", "4"]);
        assert_eq!(flow["transactions"]["completed"], 251, "{workload}");
    }
}

#[test]
fn a_test_is_shown_archived_and_exported_in_every_format() {
    let (server, folder) = (ServeProcess::start(&[]), Folder::new());
    let archive = folder.file("archive.sqlite");
    let mut test = command(server.port, &["--workload", "rr", "-t", "0.5", "--archive", &archive]);
    test.args(["--report", &folder.file("report.html")]);
    let done = Process::start(test).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    for wanted in ["requests of 1 B and responses of 1 B, one connection", "p99.9", "transactions/s, p50"] {
        assert!(done.stdout.contains(wanted), "{wanted}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("not judged") && !done.stdout.contains("Verdict"), "{}", done.stdout);
    let page = std::fs::read_to_string(folder.file("report.html")).unwrap();
    assert!(page.contains("time of a transaction") && !page.contains("Not judged"));
    for (format, wanted) in [
        ("json", r#""p9999_ns""#),
        ("jsonl", r#""transactions""#),
        ("csv", "flow.transactions"),
        ("markdown", "requests of 1 B"),
        ("text", "transactions/s, p50"),
    ] {
        let mut export = linerate();
        export.args(["export", "latest", "--archive", &archive, "--format", format]);
        let done = Process::start(export).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{format}: {done:?}");
        assert!(done.stdout.contains(wanted), "{format}: {}", done.stdout);
    }
}

#[test]
fn what_does_not_go_together_is_refused_before_anybody_is_asked() {
    let cases: [(&[&str], &str); 6] = [
        (&["--workload", "rr", "-R"], "--download"),
        (&["--workload", "rr", "-l", "100"], "--length"),
        (&["--workload", "crr", "-u"], "--workload"),
        (&["--workload", "crr", "-P", "129"], "--parallel"),
        (&["--pipeline", "2"], "--pipeline"),
        (&["--workload", "rr", "-u", "--response-size", "31"], "--response-size"),
    ];
    for (args, knob) in cases {
        let done = Process::start(command(9, args)).finish(TIMEOUT);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.stderr.contains(knob), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_connection_of_a_stranger_gets_no_response() {
    let server = ServeProcess::start(&[]);
    let running = Process::start(command(server.port, &["--workload", "crr", "-t", "1", "--json"]));
    server.await_events("begun", 1);
    for number in 0..50_u8 {
        let mut stranger = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        stranger.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (connection, flow) = (ConnectionPurpose::Transaction, FlowId(0));
        let preface = Preface { connection, flow, stream: 0, cookie: [number; 16] };
        stranger.write_all(&preface.encode()).unwrap();
        // What was sent may have been refused meanwhile.
        let _ = stranger.write_all(b"request");
        let mut answer = [0; 8];
        assert!(matches!(stranger.read(&mut answer), Ok(0) | Err(_)), "{answer:?}");
    }
    let done = running.finish(TIMEOUT);
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(result["flows"][0]["transactions"]["failed"], 0, "{done:?}");
}

#[test]
fn a_client_that_is_killed_leaves_the_server_free() {
    let server = ServeProcess::start(&[]);
    for workload in ["rr", "crr"] {
        let running = Process::start(command(server.port, &["--workload", workload, "-t", "60", "-P", "4"]));
        pause(Duration::from_millis(500));
        signal(running.pid(), "KILL");
        running.finish(TIMEOUT);
        let flow = flow(server.port, &["--workload", workload, "-t", "0.1"]);
        assert_eq!(flow["name"], workload);
    }
}
