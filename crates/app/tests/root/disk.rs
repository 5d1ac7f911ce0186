//! `linerate test --file` from and to a slow disk: the block layer's own limit of a group of processes makes one.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{Cgroup, Folder, ServeProcess, again_when_busy, skipped, test_json};

/// A group of processes for which a disk is slow.
struct SlowDisk {
    group: Cgroup,
    /// Bytes per second.
    rate: u64,
}

impl SlowDisk {
    /// The disk of this folder; absent where the kernel has no such limits, or the folder is on no disk.
    fn of(folder: &Path, rate: u64) -> Option<Self> {
        let number = Command::new("stat").args(["-c", "%Hd:%Ld"]).arg(folder).output().unwrap();
        let disk = String::from_utf8(number.stdout).unwrap().trim().to_owned();
        let limit = |way| (way, format!("{disk} {rate}"));
        let limits = ["blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"].map(limit);
        Some(Self { group: Cgroup::with_limits("blkio", &limits)?, rate })
    }

    /// `linerate test` in the group.
    fn test(&self, port: u16, file: &Path, args: &[&str]) -> Value {
        let mut command = self.group.command(env!("CARGO_BIN_EXE_linerate"));
        command.args(["test", "127.0.0.1", "--json", "-p", &port.to_string(), "--no-latency", "--file"]);
        command.arg(file).args(args);
        test_json(command)
    }
}

/// Runs a test with a slow disk, or says that there is none.
fn with_slow_disk(test: &str, rate: u64, body: impl FnOnce(&SlowDisk, &Folder)) {
    let folder = Folder::new();
    match SlowDisk::of(folder.path(), rate) {
        Some(disk) => body(&disk, &folder),
        None => skipped(test, "the kernel limits no disk for groups of processes here"),
    }
}

/// The verdict on the only flow, whose file alone was as slow as the disk.
fn verdict(disk: &SlowDisk, result: &Value, end: &str) -> (String, String) {
    let flow = &result["flows"][0];
    let alone = flow["settings"][end]["file"]["alone_bps"].as_f64().unwrap();
    assert!((alone / (disk.rate as f64 * 8.0) - 1.0).abs() < 0.3, "alone at {alone}: {flow}");
    let words = |key: &str| flow["verdict"][key].as_str().unwrap_or_else(|| panic!("{flow}")).to_owned();
    (words("rule"), words("confidence"))
}

#[test]
#[ignore = "needs root and cgroup v1 with blkio"]
fn a_slow_disk_that_is_read_is_named() {
    with_slow_disk("a_slow_disk_that_is_read_is_named", 60_000_000, |disk, folder| {
        let file = folder.file("image");
        fs::write(&file, vec![0x3c; 4 * disk.rate as usize]).unwrap();
        let server = ServeProcess::start(&["--archive", "none"]);
        let expected = ("V03".to_owned(), "confirmed".to_owned());
        // Where other programs take turns with the sender, its waits may be theirs.
        let result = again_when_busy(
            || disk.test(server.port, Path::new(&file), &["--upload", "-t", "4"]),
            |result| verdict(disk, result, "sender") == expected,
        );
        assert_eq!(verdict(disk, &result, "sender"), expected, "{result}");
    });
}

#[test]
#[ignore = "needs root and cgroup v1 with blkio"]
fn a_received_file_that_is_written_later_is_a_caveat() {
    with_slow_disk("a_received_file_that_is_written_later_is_a_caveat", 20_000_000, |disk, folder| {
        let file = folder.file("received");
        let server = ServeProcess::start(&["--archive", "none"]);
        let result = disk.test(server.port, Path::new(&file), &["--download", "-n", "60M", "-b", "400M"]);
        let caveats = result["flows"][0]["caveats"].as_array().unwrap();
        let late = caveats.iter().find(|caveat| caveat["kind"] == "file_written_late");
        let text = late.unwrap_or_else(|| panic!("{caveats:?}"))["text"].as_str().unwrap();
        assert!(text.contains("writing to the disk what was still in memory took"), "{text}");
    });
}
