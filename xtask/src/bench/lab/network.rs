//! A lab of the benchmark: brought up, used, and removed in any case.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use super::super::BenchContext;
use super::super::bench_network::BenchNetwork;
use super::super::tools::{BenchTool, TIMEOUT};
use super::result::UploadResult;
use crate::process::ChildProcess;

/// A running emulated network, removed on drop.
pub(super) struct LabNetwork<'a> {
    bed: &'a BenchContext,
    name: String,
    /// State of the lab, separate from those of others on this machine.
    folder: PathBuf,
    /// Process id of the switch.
    pub(super) switch: u32,
    /// Time to bring it up.
    pub(super) up_time: Duration,
}

/// One upload of TCP or UDP.
pub(super) struct Upload<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) length: Duration,
    /// Options of `linerate test`.
    pub(super) options: &'a [&'a str],
}

impl<'a> LabNetwork<'a> {
    /// Brings up a topology with `--set` for each of `changes`.
    pub(super) fn up(bed: &'a BenchContext, topology: &str, changes: &[&str]) -> Result<Self, String> {
        let own = std::process::id();
        // The folder contains sockets, whose paths have a length limit.
        let folder = std::env::temp_dir().join(format!("linerate-bench-{own}"));
        // The guard exists before the lab, so that a failure removes what has been created.
        let mut network =
            Self { bed, name: format!("bench-{own}"), folder, switch: 0, up_time: Duration::ZERO };
        let mut words = vec!["up", topology, "--name", &network.name, "--json"];
        words.extend(changes.iter().flat_map(|change| ["--set", change]));
        let command = network.lab(&words);
        let start = clock::now();
        let status = json(&ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?)?;
        network.up_time = clock::now().since(start);
        network.switch = status["pid"].as_u64().and_then(|pid| pid.try_into().ok()).ok_or("no switch")?;
        Ok(network)
    }

    /// `linerate lab` with arguments, on this lab's state.
    fn lab(&self, words: &[&str]) -> Vec<String> {
        // `env` is replaced by the command through exec.
        let state = format!("LINERATE_RUN={}", self.folder.display());
        let head = ["env".to_owned(), state, self.bed.linerate.display().to_string(), "lab".to_owned()];
        head.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect()
    }

    /// From one host to another: the client runs on the first, the server on the second.
    pub(super) fn between(&self, from: &str, to: &str) -> BenchNetwork {
        // `lab exec` is replaced by the command too, so the process id is that of the program.
        let on = |host: &str| self.lab(&["exec", "--lab", &self.name, host, "--"]);
        BenchNetwork::at(to, on(to), on(from))
    }

    /// One transfer of linerate; `look` is called while it runs.
    pub(super) fn upload(&self, upload: &Upload, mut look: impl FnMut()) -> Result<UploadResult, String> {
        let place = self.between(upload.from, upload.to);
        let server = BenchTool::Linerate.serve(self.bed, &place)?;
        // Latency probes would add packets; a name may have two addresses.
        let options = [&["--no-latency", "-4"], upload.options].concat();
        let command = BenchTool::Linerate.client(self.bed, &place, &server, upload.length, &options);
        let client = ChildProcess::start(self.bed, &command)?;
        let output = client.finish(upload.length * 2 + TIMEOUT, |_| look())?;
        UploadResult::read(&output)
    }

    /// `linerate lab set` on the running lab.
    pub(super) fn set(&self, part: &str, change: &str) -> Result<(), String> {
        let command = self.lab(&["set", "--lab", &self.name, part, change]);
        ChildProcess::start(self.bed, &command)?.finish(TIMEOUT, |_| ()).map(drop)
    }

    /// `linerate lab status --json`.
    pub(super) fn status(&self) -> Result<Value, String> {
        let command = self.lab(&["status", &self.name, "--json"]);
        json(&ChildProcess::start(self.bed, &command)?.finish(TIMEOUT, |_| ())?)
    }

    /// Removes the lab; returns the duration.
    pub(super) fn down(self) -> Result<Duration, String> {
        let start = clock::now();
        ChildProcess::start(self.bed, &self.lab(&["down", &self.name]))?.finish(TIMEOUT, |_| ())?;
        Ok(clock::now().since(start))
    }
}

impl Drop for LabNetwork<'_> {
    fn drop(&mut self) {
        // Not as a process of the benchmark, which an interrupt would end. Fails if the lab is already down.
        let words = self.lab(&["down", "--all"]);
        let _ =
            Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The counters of a port, such as `s>b`.
pub(super) fn port<'s>(status: &'s Value, name: &str) -> Result<&'s Value, String> {
    ports(status).find(|port| port["name"] == name).ok_or_else(|| format!("the lab has no port {name}"))
}

/// The counters of all ports.
pub(super) fn ports(status: &Value) -> impl Iterator<Item = &Value> {
    status["ports"].as_array().into_iter().flatten()
}

/// A count; a missing one is an error, not 0.
pub(super) fn count(of: &Value, key: &str) -> Result<u64, String> {
    of[key].as_u64().ok_or_else(|| format!("the lab's status has no {key}"))
}

fn json(output: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(output).map_err(|e| format!("linerate lab printed no JSON: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_port_is_found_by_its_name_and_what_is_missing_is_no_0() {
        let status = json!({ "ports": [{ "name": "a>s", "dropped": 7 }, { "name": "s>b", "dropped": 0 }] });
        assert_eq!(count(port(&status, "a>s").unwrap(), "dropped"), Ok(7));
        assert!(port(&status, "b>s").is_err());
        assert!(count(port(&status, "s>b").unwrap(), "packets").is_err());
        assert_eq!(ports(&status).count(), 2);
        assert_eq!(ports(&json!({})).count(), 0);
    }
}
