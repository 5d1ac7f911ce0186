//! `linerate test --file`: what arrives is what was sent, nothing is overwritten, and what cannot be is named.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Folder, Process, ServeProcess, TIMEOUT, linerate, test_json};

fn command(port: u16, file: &Path, args: &[&str]) -> Command {
    let mut command = linerate();
    command
        .args(["test", "127.0.0.1", "-p", &port.to_string(), "--no-latency", "--file"])
        .arg(file)
        .args(args);
    command
}

fn flow(port: u16, file: &Path, args: &[&str]) -> (Value, Value) {
    let args = [args, &["--json"]].concat();
    let result = test_json(command(port, file, &args));
    let flows = result["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 1, "{result}");
    (flows[0].clone(), result)
}

#[test]
fn a_file_is_sent_once_and_its_disk_is_a_ceiling() {
    let folder = Folder::new();
    let file = folder.path().join("image.bin");
    let bytes = 3_000_001;
    std::fs::write(&file, vec![7; bytes]).unwrap();
    let server = ServeProcess::start(&["--archive", "none"]);
    let (flow, result) = flow(server.port, &file, &["--upload"]);
    assert_eq!(flow["receiver"]["bytes"], json!(bytes), "{flow}");
    let told = &flow["settings"]["sender"]["file"];
    assert_eq!(told["name"], "image.bin", "{}", flow["settings"]);
    let alone = told["alone_bps"].as_f64().unwrap();
    let ceilings = flow["ceilings"].as_array().unwrap();
    let disk = ceilings.iter().find(|ceiling| ceiling["limit"] == "disk");
    // A disk that was slower alone than the flow is no ceiling.
    let rate = flow["receiver"]["bitrate_bps"].as_f64().unwrap();
    assert!(disk.is_some_and(|disk| disk["bitrate_bps"].as_f64() == Some(alone)) || rate > alone, "{flow}");
    // The folders of a file are nobody's business.
    let folders = folder.path().display().to_string();
    assert!(!result.to_string().contains(&folders), "{result}");
}

#[test]
fn what_arrives_is_written_to_a_new_file_and_an_old_one_stays() {
    let folder = Folder::new();
    let file = folder.path().join("received");
    let server = ServeProcess::start(&["--archive", "none"]);
    let (flow, _) = flow(server.port, &file, &["--download", "-n", "2000003"]);
    assert_eq!(flow["receiver"]["bytes"], 2_000_003, "{flow}");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 2_000_003);
    let before = std::fs::read(&file).unwrap();
    let done = Process::start(command(server.port, &file, &["--download"])).finish(TIMEOUT);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(
        done.stderr.contains("received cannot be written: it exists, and is not overwritten"),
        "{}",
        done.stderr
    );
    assert!(std::fs::read(&file).unwrap() == before);
}

#[test]
fn a_test_that_cannot_have_a_file_is_refused_before_it_begins() {
    let folder = Folder::new();
    let file = folder.path().join("file");
    std::fs::write(&file, "content").unwrap();
    let cases: [(&[&str], &str); 5] = [
        (&[], "--file: the direction is open; add --upload to send the file, or --download to write it"),
        (&["--bidir"], "--file: it cannot be combined with --bidir"),
        (&["--upload", "-P", "2"], "--file: it cannot be combined with --parallel"),
        (&["--upload", "-u"], "--file: it cannot be combined with --udp"),
        (&["--upload", "-Z"], "--file: it cannot be combined with --zerocopy"),
    ];
    for (args, expected) in cases {
        // Nobody listens there.
        let done = Process::start(command(1, &file, args)).finish(TIMEOUT);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
}
