//! A full disk.

use std::process::Command;
use std::time::Duration;

use linerate_model::{Body, Event};

use crate::support::{Folder, Process, ServeProcess, linerate};

#[test]
#[ignore = "needs root and mount namespaces"]
fn a_full_disk_does_not_cost_the_result() {
    // The smaller disk is full before the first event, the larger one in the middle.
    for size in ["64k", "200k"] {
        let folder = Folder::new();
        let server = ServeProcess::start(&[]);
        let disk = folder.file("disk");
        std::fs::create_dir(&disk).unwrap();
        // Mounted in a new namespace, the disk disappears with the program.
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs -o size={size} tmpfs {disk} && exec \"$@\"");
        let program = env!("CARGO_BIN_EXE_linerate");
        command.args(["-m", "sh", "-c", &script, "sh", program, "test", "127.0.0.1"]);
        let port = server.port.to_string();
        let archive = format!("{disk}/archive.sqlite");
        let args = ["-p", &port, "-t", "2", "-i", "0.01", "-b", "20M", "--json", "--archive", &archive];
        let data = folder.file("data");
        command.args(args).env("XDG_DATA_HOME", &data);
        let done = Process::start(command).finish(Duration::from_secs(60));
        assert_eq!(done.code, Some(0), "{size}: {done:?}");
        assert!(
            done.stderr.contains("warning:") && done.stderr.contains("not in the archive yet"),
            "{size}: {}",
            done.stderr
        );
        let result = done.json();
        assert_eq!(result["run"]["outcome"], "completed", "{size}");
        // The disk is gone, and a larger one in its place: what waits is written, of the first one the whole log.
        let mut export = linerate();
        export.args(["export", "--archive", &archive]).env("XDG_DATA_HOME", &data);
        let log = Process::start(export).finish(Duration::from_secs(60)).stdout;
        let events: Vec<Event> = log.lines().map(|line| Event::read(line).unwrap()).collect();
        assert_eq!(*events[0].run, *result["run"]["id"].as_str().unwrap(), "{size}");
        let (first, last) = (events[0].seq, events.last().unwrap().seq);
        assert_eq!(events.len() as u64, last - first + 1, "{size}: nothing is missing in between");
        assert_eq!(first == 0, size == "64k", "{size}: from {first}");
        assert!(matches!(events.last().unwrap().body, Body::RunEnded { .. }), "{size}");
    }
}
