//! Faults of the other end: it dies, stops, is terminated, or is busy.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use crate::support::{
    self, Done, Folder, Process, Relay, ServeProcess, TIMEOUT, at_once, caveats, eventually, flow, has_moved,
    linerate, signal, signal_twice, test,
};

/// Timeout for the survivor to notice and to end.
const NOTICE: Duration = Duration::from_secs(30);

/// The messages of the dialogue, each of which marks a state: no message yet, idle probing, preparing, opening,
/// starting, running, draining, cutting the drain, and between two phases.
const STATES: [&str; 10] = [
    "hello",
    "welcome",
    "prepare",
    "prepared",
    "flows_ready",
    "start",
    "progress",
    "sender_done",
    "cut",
    "ended",
];

/// A small test of both directions.
const SMALL: [&str; 4] = ["-t", "1", "-b", "20M"];

/// The same with a reader so slow that the drain is cut.
const CUT: [&str; 4] = ["-t", "1", "--read-rate", "8M"];

fn measures(port: u16) {
    let done = Process::start(test("127.0.0.1", port, &SMALL)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "the next client: {done:?}");
}

fn archived_outcome(archive: &str) -> Value {
    let mut command = linerate();
    command.args(["history", "--json", "--archive", archive]);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()["runs"][0]["outcome"].clone()
}

#[test]
fn a_server_killed_in_any_state_ends_its_client() {
    at_once(STATES, |state| {
        let folder = Folder::new();
        let archive = folder.file("archive.sqlite");
        let server = ServeProcess::start(&[]);
        let pid = server.pid();
        let killed = Arc::new(OnceLock::new());
        let when = Arc::clone(&killed);
        let relay = Relay::watching(server.port, state, move || {
            let _ = when.set(clock::now());
            signal(pid, "KILL");
        });
        let args =
            [if state == "cut" { &CUT[..] } else { &SMALL }, &["--json", "--archive", &archive]].concat();
        let done = Process::start(test("127.0.0.1", relay.port, &args)).finish(TIMEOUT);
        let killed = killed.get().unwrap_or_else(|| panic!("{state} never came: {done:?}"));
        assert!(clock::now().since(*killed) < NOTICE, "{state}: {done:?}");
        assert_eq!(done.code, Some(1), "{state}: {done:?}");
        assert!(done.stderr.contains("error:"), "{state}: {done:?}");
        let document = done.json();
        assert_eq!(document["run"]["outcome"], "failed", "{state}");
        if ["progress", "sender_done", "cut", "ended"].contains(&state) {
            let bytes = flow(&document, "download")["receiver"]["bytes"].as_u64();
            assert!(bytes > Some(0), "{state}: {document}");
            assert!(caveats(&document).contains(&"partial".to_owned()), "{state}: {document}");
        }
        assert_eq!(archived_outcome(&archive), "failed", "{state}");
    });
}

#[test]
fn a_client_killed_in_any_state_leaves_its_server_ready_for_the_next_one() {
    at_once(STATES, |state| {
        let folder = Folder::new();
        let archive = folder.file("archive.sqlite");
        let server = ServeProcess::start(&[]);
        let client = Arc::new(OnceLock::new());
        let victim = Arc::clone(&client);
        let relay = Relay::watching(server.port, state, move || {
            signal(eventually("the client's name", || victim.get().copied()), "KILL");
        });
        let args = [if state == "cut" { &CUT[..] } else { &SMALL }, &["--archive", &archive]].concat();
        let run = Process::start(test("127.0.0.1", relay.port, &args));
        let _ = client.set(run.pid());
        let done = run.finish(TIMEOUT);
        assert_eq!(done.code, None, "{state}: {done:?}");
        let killed = clock::now();
        let ended = server.await_events("ended", 1);
        assert!(clock::now().since(killed) < NOTICE, "{state}: {ended}");
        assert!(ended["error"].is_string(), "{state}: {ended}");
        // What was written until then is readable.
        let mut show = linerate();
        show.args(["show", "--archive", &archive]);
        let shown = Process::start(show).finish(TIMEOUT);
        assert_eq!(shown.code, Some(0), "{state}: {shown:?}");
        measures(server.port);
    });
}

#[test]
fn a_server_that_falls_silent_ends_its_client() {
    let server = ServeProcess::start(&[]);
    let args = ["-t", "30", "-b", "20M", "--download"];
    let run = Process::start(test("127.0.0.1", server.port, &args));
    eventually("a row of figures", || run.stdout().contains("download").then_some(()));
    server.signal("STOP");
    let stopped = clock::now();
    let done = run.finish(TIMEOUT);
    assert!(clock::now().since(stopped) < NOTICE, "{done:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("no answer from the peer for 6 s"), "{done:?}");
    // Prints what was measured, and that it is incomplete.
    assert!(done.stdout.contains("Verdict") && done.stdout.contains("was cut short"), "{done:?}");
}

/// Interrupts a client in the middle of its first direction.
fn interrupted_client(name: &str, code: i32) {
    let folder = Folder::new();
    let archive = folder.file("archive.sqlite");
    let server = ServeProcess::start(&[]);
    let args = ["-t", "10", "-b", "20M", "--archive", &archive];
    let run = Process::start(test("127.0.0.1", server.port, &args));
    eventually("a row of figures", || run.stdout().contains("download").then_some(()));
    signal_twice(run.pid(), name);
    let asked = clock::now();
    let done = run.finish(TIMEOUT);
    assert!(clock::now().since(asked) < NOTICE, "{done:?}");
    assert_eq!(done.code, Some(code), "{done:?}");
    assert!(done.stdout.contains("Verdict"), "{done:?}");
    let ended = server.await_events("ended", 1);
    assert_eq!(ended["error"], Value::Null, "an early end is a regular one");
    assert_eq!(archived_outcome(&archive), "interrupted");
    let mut show = linerate();
    show.args(["show", "--json", "--archive", &archive]);
    let document = Process::start(show).finish(TIMEOUT).json();
    let download = flow(&document, "download");
    assert!(download["receiver"]["bytes"].as_u64() > Some(0), "{document}");
    assert!(download["receiver"]["seconds"].as_f64() < Some(9.0), "{document}");
    measures(server.port);
}

#[test]
fn an_interrupted_client_keeps_and_prints_what_it_has() {
    interrupted_client("INT", 130);
}

#[test]
fn a_terminated_client_keeps_and_prints_what_it_has() {
    interrupted_client("TERM", 143);
}

#[test]
fn a_client_whose_terminal_goes_away_keeps_and_prints_what_it_has() {
    interrupted_client("HUP", 129);
}

/// Interrupts a client with these options at this message.
fn interrupted_with(state: &'static str, options: &[&str], archive: &str) -> Done {
    let server = ServeProcess::start(&[]);
    let client = Arc::new(OnceLock::new());
    let victim = Arc::clone(&client);
    let relay = Relay::watching(server.port, state, move || {
        signal(eventually("the client's name", || victim.get().copied()), "INT");
        // The client checks its flag before the message arrives.
        support::pause(Duration::from_millis(300));
    });
    let args = [options, &["-t", "8", "-b", "20M", "--archive", archive]].concat();
    let run = Process::start(test("127.0.0.1", relay.port, &args));
    let _ = client.set(run.pid());
    let done = run.finish(TIMEOUT);
    assert_eq!(done.code, Some(130), "{state}: {done:?}");
    // Idle latency over TCP precedes the opening; the measurement itself would take 16 s.
    assert!(done.took < NOTICE, "{state}: {done:?}");
    assert_eq!(archived_outcome(archive), "interrupted", "{state}");
    done
}

fn interrupted_at(state: &'static str) {
    let folder = Folder::new();
    let done = interrupted_with(state, &["--json"], &folder.file("archive.sqlite"));
    assert_eq!(done.json()["run"]["outcome"], "interrupted", "{state}");
}

#[test]
fn an_interrupt_before_the_first_byte_is_said_with_the_name_of_the_run() {
    let folder = Folder::new();
    let done = interrupted_with("prepare", &[], &folder.file("archive.sqlite"));
    assert!(done.stdout.contains("interrupted") && done.stdout.contains("archived as"), "{done:?}");
}

#[test]
fn an_interrupt_before_the_first_byte_is_not_forgotten() {
    at_once(["hello", "welcome", "prepare", "prepared", "flows_ready", "start"], interrupted_at);
}

/// Ends a server in the middle of a run.
fn interrupted_server(name: &str, code: i32) {
    let (server, folder) = (ServeProcess::start(&[]), Folder::new());
    let archive = folder.file("archive.sqlite");
    let args = ["-t", "60", "-b", "20M", "--json-stream", "--archive", &archive];
    let run = Process::start(test("127.0.0.1", server.port, &args));
    eventually("something was received and reported", || run.stdout().lines().any(has_moved).then_some(()));
    server.signal(name);
    let asked = clock::now();
    let ended = server.finish(TIMEOUT);
    let done = run.finish(TIMEOUT);
    assert!(clock::now().since(asked) < NOTICE, "{done:?}");
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("the server was stopped"), "{done:?}");
    let mut show = linerate();
    show.args(["show", "--json", "--archive", &archive]);
    let document = support::test_json(show);
    assert!(flow(&document, "download")["receiver"]["bytes"].as_u64() > Some(0), "{document}");
    assert!(caveats(&document).contains(&"partial".to_owned()), "{document}");
}

#[test]
fn an_interrupted_server_informs_its_client() {
    interrupted_server("INT", 130);
}

#[test]
fn a_terminated_server_informs_its_client() {
    interrupted_server("TERM", 143);
}

#[test]
fn an_idle_server_ends_when_asked() {
    let server = ServeProcess::start(&[]);
    server.signal("INT");
    assert_eq!(server.finish(NOTICE).code, Some(130));
}

#[test]
fn the_second_client_of_an_exclusive_server_sees_its_place_and_is_measured_then() {
    let server = ServeProcess::start(&[]);
    let first = Process::start(test("127.0.0.1", server.port, &["-t", "2", "-b", "20M", "--json"]));
    server.await_events("begun", 1);
    let second = Process::start(test("127.0.0.1", server.port, &["-t", "1", "-b", "20M", "--json-stream"]));
    let waiting = server.await_events("waiting", 1);
    assert_eq!(waiting["position"], 1);
    let queued = eventually("its place", || {
        second.stdout().lines().find(|line| line.contains("queued")).map(str::to_owned)
    });
    assert!(queued.contains(r#""position":1"#), "{queued}");
    let first = first.finish(TIMEOUT);
    let second = second.finish(TIMEOUT);
    assert_eq!((first.code, second.code), (Some(0), Some(0)), "{first:?} {second:?}");
    assert!(!caveats(&first.json()).contains(&"concurrent_run".to_owned()), "nobody ran at the same time");
    assert_eq!(server.events("begun").len(), 2);
}

#[test]
fn clients_of_a_shared_server_know_of_each_other() {
    let server = ServeProcess::start(&["--policy", "shared"]);
    let args = ["-t", "6", "--upload", "-b", "20M", "--json"];
    let first = Process::start(test("127.0.0.1", server.port, &args));
    server.await_events("begun", 1);
    let second = Process::start(test("127.0.0.1", server.port, &args));
    for done in [first.finish(TIMEOUT), second.finish(TIMEOUT)] {
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(caveats(&done.json()).contains(&"concurrent_run".to_owned()), "{done:?}");
    }
    assert!(server.events("waiting").is_empty());
}

#[test]
fn a_one_off_server_ends_after_its_run() {
    let server = ServeProcess::start(&["--one-off"]);
    measures(server.port);
    assert_eq!(server.finish(NOTICE).code, Some(0));
}

#[test]
fn a_one_off_server_is_not_used_up_by_strangers() {
    let mut server = ServeProcess::start(&["--one-off"]);
    drop(std::net::TcpStream::connect(("127.0.0.1", server.port)));
    server.await_events("foreign", 1);
    assert!(server.running());
    measures(server.port);
    assert_eq!(server.finish(NOTICE).code, Some(0));
}

#[test]
fn a_run_longer_than_the_server_allows_is_refused_with_both_times() {
    let server = ServeProcess::start(&["--limit-time", "10"]);
    let done = Process::start(test("127.0.0.1", server.port, &["-t", "30"])).finish(NOTICE);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("this server allows 10 s") && done.stderr.contains("-t"), "{done:?}");
    measures(server.port);
}

#[test]
fn one_client_too_many_is_refused() {
    let server = ServeProcess::start(&["--limit-clients", "1"]);
    let first = Process::start(test("127.0.0.1", server.port, &["-t", "60", "-b", "20M"]));
    server.await_events("begun", 1);
    let second = Process::start(test("127.0.0.1", server.port, &SMALL)).finish(NOTICE);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("the server refused") && second.stderr.contains("later"), "{second:?}");
    signal(first.pid(), "INT");
    assert_eq!(first.finish(TIMEOUT).code, Some(130));
    server.await_events("ended", 1);
    measures(server.port);
}
