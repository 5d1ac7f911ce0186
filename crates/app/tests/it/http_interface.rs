//! The HTTP interface of `serve --web`, tried by programs of others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{Process, ServeProcess, TestDir, has_python_peers, linerate, python_peer, skipped};

/// Time for a program of others.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A server with pages and a run in its archive.
fn service(place: &TestDir) -> (ServeProcess, String) {
    let mut command = linerate();
    let archive = place.folder.file("archive.sqlite");
    command.env("XDG_DATA_HOME", place.folder.path()).args(["serve", "--json", "-p", "0", "-B", "127.0.0.1"]);
    // Tests that are started go nowhere else, and are short.
    command.args(["--web", "127.0.0.1:0", "--web-target", "127.0.0.1", "--limit-time", "5"]);
    command.args(["--archive", &archive]);
    let server = ServeProcess::from(command);
    let printed = server.stderr();
    let base = printed.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    let mut test = linerate();
    test.args(["test", &format!("127.0.0.1:{}", server.port), "-t", "0.3", "--no-latency", "-b", "50M"]);
    test.args(["--archive", &archive, "--quiet"]);
    let done = Process::start(test).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    (server, base)
}

#[test]
fn schemathesis_finds_nothing_that_its_description_does_not_say() {
    if !has_python_peers("schemathesis_finds_nothing_that_its_description_does_not_say") {
        return;
    }
    let place = TestDir::new();
    let (_server, base) = service(&place);
    let mut command = python_peer("schemathesis");
    command.current_dir(place.folder.path()).args(["--config-file"]);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/schemathesis.toml"));
    command.args(["run", &format!("{base}api/v1/openapi.json"), "--seed", "9097", "--max-examples", "15"]);
    command.args(["--continue-on-failure", "--no-color", "--warnings", "off"]);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{}\n{}", done.stdout, done.stderr);
    // It has tried every operation but the three streams.
    assert!(done.stdout.contains("Tested: 40"), "{}", done.stdout);
}

/// Reads metrics strictly, and prints the names of their families.
const READ_METRICS: &str = "
import sys
from prometheus_client.openmetrics.parser import text_fd_to_metric_families
print(*[family.name for family in text_fd_to_metric_families(open(sys.argv[1]))])
";

#[test]
fn prometheus_reads_the_metrics() {
    if !has_python_peers("prometheus_reads_the_metrics") {
        return;
    }
    let place = TestDir::new();
    let (_server, base) = service(&place);
    let body = scraped(&base);
    let file = place.folder.file("metrics.txt");
    std::fs::write(&file, &body).unwrap();
    let mut command = python_peer("python");
    command.args(["-c", READ_METRICS, &file]);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{}\n{body}", done.stderr);
    let families: Vec<&str> = done.stdout.split_whitespace().collect();
    for wanted in ["linerate_goodput_bytes_per_second", "linerate_verdict", "linerate_last_run_success"] {
        assert!(families.contains(&wanted), "{families:?}");
    }
}

/// The metrics of a server, as Prometheus asks for them.
fn scraped(base: &str) -> String {
    let address = base.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("application/openmetrics-text"), "{head}");
    assert!(!head.to_lowercase().contains("chunked"), "{head}");
    body.to_owned()
}

/// A lint of metrics fails too: promtool ends with 3 then.
#[test]
fn promtool_takes_the_metrics_and_the_alert_rules_hold_their_tests() {
    const PROMTOOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/promtool");
    const RULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/monitoring");
    if !Path::new(PROMTOOL).exists() {
        let test = "promtool_takes_the_metrics_and_the_alert_rules_hold_their_tests";
        return skipped(test, "there is no target/peers/promtool");
    }
    let place = TestDir::new();
    let (_server, base) = service(&place);
    let promtool = |arguments: &[&str], input: &str| {
        let mut command = Command::new(PROMTOOL);
        command.args(arguments).current_dir(RULES);
        let done = Process::start_with(command, input.as_bytes()).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "promtool {arguments:?}: {done:?}");
        done
    };
    let body = scraped(&base);
    assert!(body.contains("linerate_goodput_bytes_per_second{"), "{body}");
    promtool(&["check", "metrics"], &body);
    let rules = promtool(&["check", "rules", "linerate-alerts.yml"], "");
    assert!(rules.stdout.contains("SUCCESS: 6 rules found"), "{rules:?}");
    promtool(&["test", "rules", "linerate-alerts.test.yml"], "");
}
