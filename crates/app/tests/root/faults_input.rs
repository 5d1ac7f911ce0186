//! A full disk.

use std::process::Command;
use std::time::Duration;

use crate::support::{Folder, Process, ServeProcess};

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
        command.args(args);
        let done = Process::start(command).finish(Duration::from_secs(10));
        assert_eq!(done.code, Some(0), "{size}: {done:?}");
        assert!(
            done.stderr.contains("warning:") && done.stderr.contains("not archived"),
            "{size}: {}",
            done.stderr
        );
        assert_eq!(done.json()["run"]["outcome"], "completed", "{size}");
    }
}
