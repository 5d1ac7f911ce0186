//! `linerate sweep` against `linerate serve`: every size is measured in every mode, invalid lists are refused,
//! limits are applied, interrupted sweeps are archived, as are NetPIPE's runs.

use std::process::Command;

use serde_json::Value;

use crate::support::{self, Folder, Process, ServeProcess, TIMEOUT, caveats, linerate, signal, test_json};

/// A short sweep.
const SHORT: [&str; 4] = ["--sizes", "1,64,1K,64K,1M", "-t", "1"];

fn sweep(port: u16, args: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["sweep", "127.0.0.1", "-p", &port.to_string()]).args(args);
    command
}

fn sizes(flow: &Value) -> Vec<u64> {
    let sizes = flow["sizes"].as_array().unwrap();
    sizes.iter().map(|point| point["message_bytes"].as_u64().unwrap()).collect()
}

#[test]
fn every_size_is_measured_in_every_mode_and_all_bytes_are_accounted() {
    let server = ServeProcess::start(&[]);
    for (mode, name) in [(None, "ping-pong"), (Some("--stream"), "stream"), (Some("--bidir"), "bidir")] {
        let args: Vec<&str> = SHORT.into_iter().chain(mode).chain(["--json"]).collect();
        let result = test_json(sweep(server.port, &args));
        let flow = &result["flows"][0];
        assert_eq!(flow["name"], name);
        assert_eq!(sizes(flow), [1, 64, 1024, 65_536, 1 << 20]);
        for point in flow["sizes"].as_array().unwrap() {
            let number = |key: &str| point[key].as_u64().unwrap();
            let (bytes, best, median) =
                (number("message_bytes"), number("best_one_way_ns"), number("median_one_way_ns"));
            assert!(0 < best && best <= median, "{point}");
            assert_eq!(point.get("interval").is_some(), number("trials") >= 6, "{point}");
            // The rate is that of the median, which is printed in nanoseconds; if the directions differ, that
            // of the slower one.
            let messages = if name == "bidir" { 2.0 } else { 1.0 };
            let time = messages * bytes as f64 * 8.0 / point["bitrate_bps"].as_f64().unwrap() * 1e9;
            let slower = name == "ping-pong" && time > median as f64;
            assert!(slower || (time - median as f64).abs() <= 0.51, "{point}: {time}");
        }
        let accounting = &flow["byte_accounting"];
        assert!(accounting["written_bytes"].as_u64().unwrap() > 1 << 20, "{accounting}");
        assert_eq!(accounting["written_bytes"], accounting["delivered_bytes"]);
        assert_eq!(flow["curve"]["smallest_bytes"], 1);
        assert!(flow.get("verdict").is_none() && flow.get("receiver").is_none(), "{flow}");
        assert_eq!(flow["settings"]["no_delay"], true);
    }
    server.await_events("ended", 3);
}

#[test]
fn settings_are_requested_granted_and_reported_for_both_ends() {
    let server = ServeProcess::start(&[]);
    let knobs = ["-w", "64K", "-M", "1000", "--dscp", "af41", "-4", "-B", "127.0.0.1", "--trials", "2"];
    let args: Vec<&str> = SHORT.into_iter().chain(knobs).chain(["--json"]).collect();
    let result = test_json(sweep(server.port, &args));
    let settings = &result["flows"][0]["settings"];
    for side in ["sender", "receiver"] {
        // The kernel doubles what it grants.
        assert_eq!(settings[side]["snd_buf_bytes"], 131_072, "{settings}");
        assert_eq!(settings[side]["tos"]["effective"], 34 << 2, "{settings}");
    }
    // RFC 9293 §3.7.1: timestamps take 12 bytes of each segment.
    assert_eq!(settings["mss"]["effective_bytes"], 988, "{settings}");
    for point in result["flows"][0]["sizes"].as_array().unwrap() {
        // On a busy machine, one trial may use up a size's share of the time.
        assert!((1..=2).contains(&point["trials"].as_u64().unwrap()), "{point}");
        assert!(point.get("interval").is_none(), "{point}");
    }
}

#[test]
fn a_series_is_kept_shown_and_exported_in_every_format() {
    let (server, folder) = (ServeProcess::start(&[]), Folder::new());
    let (archive, picture, report) = (folder.file("a.sqlite"), folder.file("c.svg"), folder.file("r.md"));
    let files = ["--archive", &archive, "--svg", &picture, "--report", &report, "--order", "interleaved"];
    let args: Vec<&str> = SHORT.into_iter().chain(files).collect();
    let done = Process::start(sweep(server.port, &args)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("1048576") && !done.stdout.contains("⠤"), "{}", done.stdout);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("message size"));
    assert!(std::fs::read_to_string(&report).unwrap().contains("| bytes | trials |"));
    let run = |args: &[&str]| {
        let mut command = linerate();
        command.args(args).args(["--archive", &archive]);
        let done = Process::start(command).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.stdout
    };
    assert!(run(&["show"]).contains("65536"));
    let csv = run(&["export", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 6, "{csv}");
    assert!(csv.starts_with("run,flow,message_bytes,trials,repeats,best_one_way_ns,"), "{csv}");
    assert!(run(&["export", "--format", "svg"]).starts_with("<svg"));
    assert!(run(&["export", "--format", "svg", "--chart", "1"]).contains("over message size"));
    for (wrong, message) in
        [(&["--format", "svg", "--chart", "9"][..], "1 is "), (&["--chart", "1"], "--format svg")]
    {
        let mut command = linerate();
        command.arg("export").args(wrong).args(["--archive", &archive]);
        let done = Process::start(command).finish(TIMEOUT);
        assert!(done.code == Some(2) && done.stderr.contains(message), "{wrong:?}: {done:?}");
    }
    let log = run(&["export"]);
    assert_eq!(log.matches(r#""kind":"size""#).count(), 5, "{log}");
    assert_eq!(log.matches(r#""kind":"curve""#).count(), 1, "{log}");
    assert!(run(&["history"]).contains("ping-pong"));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anybody_is_asked() {
    for (args, message) in [
        (&["--sizes", "0"][..], "1 byte to 64M"),
        (&["--sizes", "65M"], "64M"),
        (&["--sizes", "2..1"], "smaller one first"),
        (&["--sizes", "1", "--from", "2"], "--from"),
        (&["--stream", "--bidir"], "--bidir"),
        (&["--from", "2", "--to", "1"], "--to"),
        (&["--trials", "0"], "--trials"),
        (&["-t", "0"], "--time"),
        (&["--zerocopy"], "copied"),
        (&["--svg", "x.png"], ".svg"),
        (&["--report", "/no/such/folder/x.md"], "no folder"),
    ] {
        // Port 1 has no listener: connecting would end with code 1.
        let done = Process::start(sweep(1, args)).finish(TIMEOUT);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.stderr.contains(message), "{args:?}: {}", done.stderr);
    }
}

#[test]
fn a_server_that_allows_less_says_what_to_give() {
    let server = ServeProcess::start(&["--limit-time", "10"]);
    let done = Process::start(sweep(server.port, &["-t", "5"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("shorter -t"), "{}", done.stderr);
    let done = Process::start(sweep(server.port, &SHORT)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_second_series_waits_for_the_first_and_is_measured_alone() {
    let server = ServeProcess::start(&[]);
    let first = Process::start(sweep(server.port, &["--sizes", "64", "-t", "60", "--trials", "500"]));
    server.await_events("begun", 1);
    let args: Vec<&str> = SHORT.into_iter().chain(["--json-stream"]).collect();
    let second = Process::start(sweep(server.port, &args));
    support::eventually("its place", || second.stdout().contains(r#""kind":"queued""#).then_some(()));
    assert_eq!(server.events("begun").len(), 1, "it is not measured meanwhile");
    signal(first.pid(), "INT");
    assert_eq!(first.finish(TIMEOUT).code, Some(130));
    let second = second.finish(TIMEOUT);
    assert_eq!(second.code, Some(0), "{second:?}");
}

#[test]
fn an_interrupted_series_prints_and_keeps_what_was_measured_and_the_server_goes_on() {
    let (server, folder) = (ServeProcess::start(&[]), Folder::new());
    let archive = folder.file("a.sqlite");
    let args =
        ["--sizes", "1,64,16M,32M", "-t", "120", "--trials", "6", "--archive", &archive, "--json-stream"];
    let client = Process::start(sweep(server.port, &args));
    support::eventually("a size", || client.stdout().contains(r#""kind":"size""#).then_some(()));
    signal(client.pid(), "INT");
    let done = client.finish(TIMEOUT);
    assert_eq!(done.code, Some(130), "{done:?}");
    let mut command = linerate();
    command.args(["show", "--json", "--archive", &archive]);
    let kept = test_json(command);
    assert_eq!(kept["run"]["outcome"], "interrupted");
    assert_eq!(sizes(&kept["flows"][0])[0], 1);
    assert!(caveats(&kept).contains(&"partial".to_owned()), "{kept}");
    let done = Process::start(sweep(server.port, &SHORT)).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "the next client: {done:?}");
}

#[test]
fn a_server_that_dies_ends_the_series_and_what_was_measured_is_kept() {
    let (server, folder) = (ServeProcess::start(&[]), Folder::new());
    let archive = folder.file("a.sqlite");
    let args = ["--sizes", "1,64,16M", "-t", "120", "--trials", "6", "--archive", &archive, "--json-stream"];
    let client = Process::start(sweep(server.port, &args));
    support::eventually("a size", || client.stdout().contains(r#""kind":"size""#).then_some(()));
    server.signal("KILL");
    let done = client.finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    let mut command = linerate();
    command.args(["show", "--json", "--archive", &archive]);
    let kept = test_json(command);
    assert_eq!(kept["run"]["outcome"], "failed");
    assert_eq!(sizes(&kept["flows"][0])[0], 1);
}
