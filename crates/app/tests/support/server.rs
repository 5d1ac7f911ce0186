//! A server of the test.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::{Done, LinkSide, Net, Process, eventually, linerate, resident_bytes, signal};

/// A running `linerate serve --json` on a free port, killed on drop.
pub(crate) struct ServeProcess {
    process: Process,
    pub(crate) port: u16,
}

impl ServeProcess {
    /// Starts one on this host.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut command = linerate();
        command.args(["serve", "-p", "0", "--json"]).args(args);
        Self::from(command)
    }

    /// Starts one on a side of a network.
    pub(crate) fn start_in(net: &Net, side: LinkSide, args: &[&str]) -> Self {
        let mut all = vec!["serve", "-p", "0", "--json"];
        all.extend(args);
        Self::from(net.exec(side, env!("CARGO_BIN_EXE_linerate"), &all))
    }

    /// Starts one with a complete command, which must include port 0 and `--json`.
    pub(crate) fn from(command: Command) -> Self {
        let mut process = Process::start(command);
        let listening = eventually("the server listens", || {
            assert!(process.running(), "the server ended: {}", process.stderr());
            events(&process, "listening").into_iter().next()
        });
        // What it says before that on stderr is read by another thread.
        eventually("it says where", || process.stderr().contains("listening on ").then_some(()));
        let port = u16::try_from(listening["port"].as_u64().unwrap()).unwrap();
        Self { process, port }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Its events with this name so far.
    pub(crate) fn events(&self, name: &str) -> Vec<Value> {
        events(&self.process, name)
    }

    /// Waits until it has printed `count` events with this name; returns the last of them.
    pub(crate) fn await_events(&self, name: &str, count: usize) -> Value {
        eventually(name, || self.events(name).into_iter().nth(count - 1))
    }

    pub(crate) fn stderr(&self) -> String {
        self.process.stderr()
    }

    pub(crate) fn running(&mut self) -> bool {
        self.process.running()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Resident memory, bytes (VmRSS).
    pub(crate) fn resident_bytes(&self) -> u64 {
        resident_bytes(self.pid())
    }

    /// Waits for its end.
    pub(crate) fn finish(self, limit: Duration) -> Done {
        self.process.finish(limit)
    }
}

/// The complete lines of a process that are events with this name.
fn events(process: &Process, name: &str) -> Vec<Value> {
    let output = process.stdout();
    let whole = output.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .filter(|event| event["event"] == name)
        .collect()
}
