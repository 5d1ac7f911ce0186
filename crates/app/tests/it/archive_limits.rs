//! Runs of unknown clients in a server's archive: limited by its owner, and never at the cost of the owner's
//! own runs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Folder, Process, ServeProcess, TIMEOUT, eventually, linerate, test};

/// The runs of an archive, by their names.
fn kept(archive: &str) -> BTreeSet<String> {
    let mut history = linerate();
    history.args(["history", "--json", "--archive", archive]);
    let done = Process::start(history).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let name = |run: &Value| run["id"].as_str().unwrap().to_owned();
    done.json()["runs"].as_array().unwrap().iter().map(name).collect()
}

/// A client of another tool.
fn stranger(server: &ServeProcess) {
    let mut iperf3 = linerate();
    iperf3.args(["iperf3", "-c", "127.0.0.1", "-p", &server.port.to_string(), "-n", "64K"]);
    let done = Process::start(iperf3).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn strangers_runs_above_the_limit_go_oldest_first_and_the_owners_stay() {
    let folder = Folder::new();
    let archive = folder.file("archive.sqlite");
    let server = ServeProcess::start(&["--archive", &archive, "--limit-archive-runs", "2"]);
    let own = ["-n", "64K", "--upload", "--no-latency", "--archive", &archive];
    let done = Process::start(test("127.0.0.1", server.port, &own)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let own = kept(&archive);
    assert_eq!(own.len(), 1, "{own:?}");
    let (mut before, mut names) = (own.clone(), Vec::new());
    for number in 1..=4 {
        stranger(&server);
        server.await_events("ended", 1 + number);
        let now = eventually("the run is kept, and no more than two", || {
            let now = kept(&archive);
            (!now.is_subset(&before) && now.len() <= 3).then_some(now)
        });
        names.extend(now.difference(&before).cloned());
        before = now;
        assert_eq!(names.len(), number, "one came: {names:?}");
    }
    let newest: BTreeSet<String> = names[2..].iter().cloned().collect();
    assert_eq!(before, own.union(&newest).cloned().collect());
}

#[test]
fn of_strangers_runs_that_are_larger_than_the_limit_the_newest_alone_is_kept() {
    let folder = Folder::new();
    let archive = folder.file("archive.sqlite");
    let server = ServeProcess::start(&["--archive", &archive, "--limit-archive-bytes", "1"]);
    let mut before = BTreeSet::new();
    for number in 1..=3 {
        stranger(&server);
        server.await_events("ended", number);
        before = eventually("the newest run alone is kept", || {
            let now = kept(&archive);
            (now.len() == 1 && now.is_disjoint(&before)).then_some(now)
        });
    }
}

#[test]
fn a_server_that_may_not_store_addresses_stores_runs_without_them() {
    const CLIENT: &str = "127.0.0.9";
    let folder = Folder::new();
    for (number, option) in [&[][..], &["--no-store-addresses"]].iter().enumerate() {
        let archive = folder.file(&format!("{number}.sqlite"));
        let server = ServeProcess::start(&[&["--archive", &archive], *option].concat());
        let port = server.port.to_string();
        // One that is measured to its end, and one whose reason to fail may name its address.
        for (amount, code) in [("64K", 0), ("100G", 1)] {
            let mut iperf3 = linerate();
            iperf3.args(["iperf3", "-c", "127.0.0.1", "-B", CLIENT, "-p", &port, "-n", amount]);
            let client = Process::start(iperf3);
            if code == 0 {
                assert_eq!(client.finish(TIMEOUT).code, Some(0));
            } else {
                server.await_events("begun", 2);
                drop(client);
            }
        }
        server.await_events("ended", 2);
        let runs = eventually("both runs are kept", || Some(kept(&archive)).filter(|runs| runs.len() == 2));
        let stored: String = runs.iter().map(|run| log_of(&archive, run)).collect();
        assert_eq!(stored.contains(CLIENT), option.is_empty(), "{stored}");
        assert!(stored.contains("0.0.0.0") != option.is_empty() && stored.contains("run_ended"), "{stored}");
    }
}

fn log_of(archive: &str, run: &str) -> String {
    let mut export = linerate();
    export.args(["export", run, "--format", "jsonl", "--archive", archive]);
    let done = Process::start(export).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.stdout
}
