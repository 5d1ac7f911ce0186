//! The events of `serve --json`, by their published schema.

use std::io::Write;
use std::net::TcpStream;

use crate::support::{
    Folder, Process, ServeProcess, TIMEOUT, eventually, has_python_peers, linerate, python_peer, signal,
};

/// Prints for each line of a file whether it is valid.
const VALIDATE: &str = "
import json, sys, jsonschema_rs
schema = jsonschema_rs.validator_for(json.load(open(sys.argv[1])))
for line in open(sys.argv[2]):
    print('valid' if schema.is_valid(json.loads(line)) else 'invalid')
";

const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/serve-event.schema.json");

#[test]
fn what_a_server_prints_is_as_its_schema_says() {
    if !has_python_peers("what_a_server_prints_is_as_its_schema_says") {
        return;
    }
    let (server, folder) =
        (ServeProcess::start(&["-B", "127.0.0.1", "--archive", ":memory:"]), Folder::new());
    let host = format!("127.0.0.1:{}", server.port);
    let test = |time: &str| {
        let mut test = linerate();
        let options = ["--no-latency", "--upload", "-b", "10M", "-q", "--archive", ":memory:"];
        test.args(["test", &host, "-t", time]).args(options);
        Process::start(test)
    };
    let first = test("60");
    server.await_events("begun", 1);
    let second = test("0.2");
    server.await_events("waiting", 1);
    signal(first.pid(), "INT");
    assert_eq!(first.finish(TIMEOUT).code, Some(130));
    assert_eq!(second.finish(TIMEOUT).code, Some(0));
    TcpStream::connect(&host).unwrap().write_all(b"this is nothing that is served\r\n").unwrap();
    server.await_events("foreign", 1);
    eventually("both tests are reported", || (server.events("ended").len() == 2).then_some(()));
    let names = ["listening", "begun", "waiting", "measured", "ended", "foreign"];
    let seen = names.map(|name| (name, server.events(name)));
    assert!(seen.iter().all(|(_, events)| !events.is_empty()), "{seen:?}");
    let mut events: Vec<_> = seen.into_iter().flat_map(|(_, events)| events).collect();
    let real = events.len();
    // What the schema must refuse: an unknown event, one without its client, a port that is none.
    events.push(serde_json::json!({ "event": "nonsense" }));
    events.push(serde_json::json!({ "event": "ended", "error": null }));
    events.push(serde_json::json!({ "event": "listening", "address": "::", "port": -1 }));
    let file = folder.file("events.jsonl");
    let lines: Vec<String> = events.iter().map(ToString::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let mut python = python_peer("python");
    python.args(["-c", VALIDATE, SCHEMA, &file]);
    let done = Process::start(python).finish(TIMEOUT);
    let expected = ["valid\n".repeat(real), "invalid\n".repeat(events.len() - real)].concat();
    assert_eq!(done.stdout, expected, "{events:?} {done:?}");
}
