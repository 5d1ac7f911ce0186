//! Common parts of the tests of the whole program: servers, clients, networks and folders.
#![allow(dead_code, unused_imports, reason = "each test program uses its own part of this module")]

pub(crate) mod absurd;
mod agent_pair;
pub(crate) mod bursts;
mod cgroup;
mod idle;
mod idle_server;
mod iperf2;
mod iperf3;
mod lab;
mod lab_bed;
mod lossy;
mod net;
mod netns;
mod option_matrix;
mod packet_filter;
mod peer;
mod plan_dir;
mod process;
mod python_peers;
pub(crate) mod raw_iperf3;
mod relay;
mod rng;
mod server;
mod shape;
mod skipped;
pub(crate) mod tampering;
mod test_dir;
mod tool;
mod turn;

pub(crate) use agent_pair::{AgentPair, token_file};
pub(crate) use cgroup::Cgroup;
pub(crate) use idle::{again_when_busy, is_busy, retried_when_busy, when_idle};
pub(crate) use idle_server::{await_idle, files_of, threads};
pub(crate) use iperf2::{Iperf2, Iperf2OutputLine, Iperf2Outputs, await_server, pair, pair_on, rows};
pub(crate) use iperf3::{Both, Iperf3, PORT, both, both_json, both_json_on, both_on, list, number};
pub(crate) use lab::{RunningLab, files_below, switches, world};
pub(crate) use lab_bed::LabBed;
pub(crate) use lossy::{ExpectedCounts, Lossy};
pub(crate) use net::{LinkSide, Net};
pub(crate) use netns::Netns;
pub(crate) use option_matrix::{
    OutputShape, assert_known, assert_no_differences, form_without_units, options_in_help,
};
pub(crate) use packet_filter::{NEAR, PacketFilter, SERVER_PORT};
pub(crate) use peer::{Peer, framed, hello, prepare};
pub(crate) use plan_dir::PlanDir;
pub(crate) use process::{
    Done, Process, cannot_measure, kill, linerate, parent_of, resident_bytes, run, signal, signal_twice,
    started_by, thread_names, threads_of,
};
pub(crate) use python_peers::{has_python_peers, python_peer};
pub(crate) use relay::Relay;
pub(crate) use rng::{Rng, repetitions};
pub(crate) use server::ServeProcess;
pub(crate) use shape::shape;
pub(crate) use skipped::skipped;
pub(crate) use test_dir::{TestDir, fixtures};
pub(crate) use tool::{
    IPERF, NETPERF, NETPIPE, NETSERVER, NTTTCP, NUTTCP, Program, TTCP, ToolNames, before, form,
};
pub(crate) use turn::{at_once, take_turn};

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

/// Timeout after which a test considers anything hung.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A unique name among all tests on this machine.
pub(crate) fn unique() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    take_turn();
    format!("lr{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed))
}

/// An empty folder, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(unique());
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }

    /// A path inside it, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `linerate test HOST -p PORT` with more arguments.
pub(crate) fn test(host: &str, port: u16, args: &[&str]) -> Command {
    let mut command = linerate();
    command.args(["test", host, "-p", &port.to_string()]).args(args);
    command
}

/// Runs a `linerate test … --json` that must succeed; returns its document.
pub(crate) fn test_json(command: Command) -> Value {
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    done.json()
}

/// The flow of this name in a result document.
pub(crate) fn flow<'a>(document: &'a Value, name: &str) -> &'a Value {
    let flows = document["flows"].as_array().unwrap();
    flows.iter().find(|flow| flow["name"] == name).unwrap_or_else(|| panic!("no flow {name} in {document}"))
}

/// The elements of a list in a document; empty if there is no list.
pub(crate) fn elements(of: &Value) -> &[Value] {
    of.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The kinds of all caveats in a result document, of the run and its flows.
pub(crate) fn caveats(document: &Value) -> Vec<String> {
    let flows = document["flows"].as_array().map_or(&[][..], Vec::as_slice);
    let all = std::iter::once(document).chain(flows).filter_map(|part| part["caveats"].as_array()).flatten();
    all.map(|caveat| caveat["kind"].as_str().unwrap().to_owned()).collect()
}

/// Whether a line of a log says that bytes were received.
pub(crate) fn has_moved(line: &str) -> bool {
    let body = serde_json::from_str::<Value>(line).unwrap_or_default()["body"].clone();
    body["kind"] == "progress" && body["bytes"].as_u64() > Some(0)
}

/// Sleeps where there is no event to wait for.
pub(crate) fn pause(length: Duration) {
    clock::sleep_until(clock::now() + length);
}

/// Repeats `look` until it returns something; fails after a timeout.
pub(crate) fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    eventually_within(TIMEOUT, what, look)
}

/// As [`eventually`], for what takes long on an idle machine too.
pub(crate) fn eventually_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now() + limit;
    while !deadline.has_passed() {
        if let Some(found) = look() {
            return found;
        }
        pause(Duration::from_millis(10));
    }
    panic!("{what}: not within {limit:?}")
}
