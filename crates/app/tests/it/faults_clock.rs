//! Clock faults: the wall clock is set during a run.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Folder, Process, ServeProcess, TIMEOUT, eventually, test};

/// The library that replaces a program's wall clock; the clock of this machine is not touched.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let library = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    library.expect("install the package faketime")
}

/// Steps the wall clock of a client by `step`, in faketime's syntax, in the middle of a download.
fn stepped(step: &str, text: &str) {
    let folder = Folder::new();
    let clock = folder.file("clock");
    std::fs::write(&clock, "+0").unwrap();
    let server = ServeProcess::start(&[]);
    let mut command =
        test("127.0.0.1", server.port, &["-t", "2", "-b", "20M", "--download", "--json-stream"]);
    command.env("LD_PRELOAD", faketime()).env("FAKETIME_TIMESTAMP_FILE", &clock);
    command
        .env("FAKETIME_NO_CACHE", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let run = Process::start(command);
    eventually("figures", || run.stdout().contains("\"sample\"").then_some(()));
    // Atomically, because the client reads it at every clock reading.
    std::fs::write(folder.file("new"), step).unwrap();
    std::fs::rename(folder.file("new"), &clock).unwrap();
    let done = run.finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let bodies = done.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone());
    let bodies: Vec<_> = bodies.collect();
    let caveat = bodies.iter().find(|body| body["caveat"]["kind"] == "clock_stepped").expect("a caveat");
    assert!(caveat["caveat"]["text"].as_str().unwrap().contains(text), "{caveat}");
    // The measurement uses the monotonic clock: two seconds must not become an hour or negative.
    let receiver = bodies.iter().find(|body| body["kind"] == "flow_ended" && body["side"] == "receiver");
    let tally = &receiver.expect("the receiver's word")["tally"];
    let seconds = tally["elapsed_ns"].as_f64().unwrap() / 1e9;
    assert!(seconds > 1.0 && seconds < 60.0, "{tally}");
}

#[test]
#[ignore = "needs faketime"]
fn a_clock_set_forward_is_noticed_and_does_not_stretch_the_result() {
    stepped("+3600", "+3600");
}

#[test]
#[ignore = "needs faketime"]
fn a_clock_set_back_is_noticed_and_does_not_shrink_the_result() {
    stepped("-3600", "-3600");
}
