//! An emulated network of the test.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{Done, Folder, Process, linerate, unique};

/// Timeout for starting and stopping a lab.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A running lab, removed on drop. It has its own state folder, so that other tests do not see it.
pub(crate) struct RunningLab {
    pub(crate) name: String,
    pub(crate) folder: Folder,
}

impl RunningLab {
    /// Brings up a bundled topology, or one from a file.
    pub(crate) fn up(topology: &str, set: &[&str]) -> Self {
        let lab = Self::named(&unique());
        let done = lab.try_up(topology, set);
        assert_eq!(done.code, Some(0), "{done:?}");
        lab
    }

    /// A lab that is not running yet.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), folder: Folder::new() }
    }

    pub(crate) fn try_up(&self, topology: &str, set: &[&str]) -> Done {
        let mut command = self.lab(&["up", topology, "--name", &self.name, "--json"]);
        for change in set {
            command.args(["--set", change]);
        }
        Process::start(command).finish(TIMEOUT)
    }

    /// `linerate lab` with arguments, with this lab's folder.
    pub(crate) fn lab(&self, args: &[&str]) -> Command {
        let mut command = linerate();
        command.env("LINERATE_RUN", self.folder.path()).arg("lab").args(args);
        command
    }

    /// A program on a host.
    pub(crate) fn exec(&self, host: &str, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
        let mut command = self.lab(&["exec", "--lab", &self.name, host, "--"]);
        command.arg(program).args(args);
        command
    }

    /// Runs a program on a host to its end.
    pub(crate) fn done(&self, host: &str, program: &str, args: &[&str]) -> Done {
        Process::start(self.exec(host, program, args)).finish(super::TIMEOUT)
    }

    /// linerate on a host.
    pub(crate) fn linerate(&self, host: &str, args: &[&str]) -> Command {
        self.exec(host, env!("CARGO_BIN_EXE_linerate"), args)
    }

    pub(crate) fn status(&self) -> Value {
        let done = Process::start(self.lab(&["status", &self.name, "--json"])).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    }

    /// The counters of a port, such as `s>b`.
    pub(crate) fn port(&self, name: &str) -> Value {
        let status = self.status();
        let ports = status["ports"].as_array().cloned().unwrap_or_default();
        let found = ports.into_iter().find(|port| port["name"] == name);
        assert!(found.is_some(), "no port {name} in {status}");
        found.unwrap_or_default()
    }

    pub(crate) fn set(&self, target: &str, changes: &[&str]) -> Done {
        let mut command = self.lab(&["set", "--lab", &self.name, target]);
        command.args(changes);
        Process::start(command).finish(TIMEOUT)
    }

    pub(crate) fn down(&self) -> Done {
        Process::start(self.lab(&["down", &self.name])).finish(TIMEOUT)
    }

    /// All remains of the lab; empty after it was removed.
    pub(crate) fn traces(&self) -> Vec<String> {
        // With delimiters, as another lab's name may start with this one's.
        let ours = format!("linerate-{}-", self.name);
        let mut found: Vec<String> = world().into_iter().filter(|thing| thing.contains(&ours)).collect();
        found.extend(files_below(self.folder.path()).into_iter().filter(|file| file.contains(&self.name)));
        found.extend(switches(&self.name).iter().map(|pid| format!("process {pid}")));
        found
    }

    /// Process id of its switch.
    pub(crate) fn pid(&self) -> u32 {
        self.status()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default()
    }
}

/// Namespaces, interfaces and mounts of this machine.
pub(crate) fn world() -> BTreeSet<String> {
    let ip = |args: &[&str]| {
        let output = Command::new("ip").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let first_words = |text: String| {
        let words = text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned));
        words.collect::<Vec<_>>()
    };
    let mut found: BTreeSet<String> = first_words(ip(&["netns", "list"])).into_iter().collect();
    found.extend(first_words(ip(&["-brief", "link"])));
    found.extend(files_below(Path::new("/run/netns")));
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    found.extend(mounts.lines().filter(|line| line.contains("/netns/")).map(str::to_owned));
    found
}

/// Files and folders below a folder, which may not exist.
pub(crate) fn files_below(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        found.push(path.display().to_string());
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_below(&path));
        }
    }
    found
}

/// Process ids of the switch of the lab with this name.
pub(crate) fn switches(name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if words.contains(&b"switch".as_slice()) && words.contains(&name.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

impl Drop for RunningLab {
    fn drop(&mut self) {
        let _ = self.lab(&["down", "--all"]).output();
    }
}
