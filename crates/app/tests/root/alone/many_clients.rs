//! Two hundred parallel clients of several tools at one server.

use serde_json::Value;

use crate::support::{self, Done, Folder, Netns, Process, TIMEOUT, linerate, signal};

/// Number of clients of each tool.
const EACH: usize = 50;

/// The command line of client `k` of a tool.
fn client(tool: &str, k: usize) -> Vec<String> {
    let line = match tool {
        "iperf3" => "-c 127.0.0.1 -t 1 -b 1M".to_owned(),
        // Longer than the server needs to start all runs, 3 s here: without a dialogue, a client ends by its own clock, and
        // resets the connection if the server has not read from it by then.
        "iperf" => "-c 127.0.0.1 -t 8 -b 1M".to_owned(),
        "ttcp" => "-t -s -n 64 -p 5001 127.0.0.1".to_owned(),
        // The client chooses the data port; two runs cannot use the same one.
        _ => format!("-p {} -T1 -R1M 127.0.0.1", 6000 + k),
    };
    std::iter::once(tool).chain(line.split(' ')).map(str::to_owned).collect()
}

const TOOLS: [&str; 4] = ["iperf3", "iperf", "ttcp", "nuttcp"];

/// Starts all clients, then a native one; returns their results by tool, and the runs that the server archived.
fn start_all(policy: &str) -> (Vec<(&'static str, Done)>, Vec<Value>) {
    let (netns, folder) = (Netns::new(), Folder::new());
    let program = env!("CARGO_BIN_EXE_linerate");
    let archive = folder.file("archive.sqlite");
    let serve = ["serve", "--classic", "--policy", policy, "--archive", &archive];
    let mut server = Process::start(netns.exec(program, &serve));
    [5000, 5001, 5201].into_iter().for_each(|port| netns.await_listener(port));
    let start = |(tool, k): (&'static str, usize)| {
        let arguments = client(tool, k);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        (tool, Process::start(netns.exec(program, &arguments)))
    };
    let all = (0..EACH).flat_map(|k| TOOLS.map(|tool| (tool, k)));
    let running: Vec<_> = all.map(start).collect();
    let done = running.into_iter().map(|(tool, process)| (tool, process.finish(TIMEOUT))).collect();
    assert!(server.running(), "{}", server.stderr());
    let native = netns.exec(program, &["test", "127.0.0.1", "-t", "1", "--download", "--json"]);
    let native = Process::start(native).finish(TIMEOUT);
    assert_eq!(native.code, Some(0), "{native:?}");
    signal(server.pid(), "INT");
    assert_eq!(server.finish(TIMEOUT).code, Some(130));
    let mut history = linerate();
    history.args(["history", "--json", "-n", "1000", "--archive", &archive]);
    let runs = Process::start(history).finish(TIMEOUT).json();
    (done, runs["runs"].as_array().unwrap().clone())
}

#[test]
#[ignore = "needs root and network namespaces"]
fn two_hundred_clients_of_four_tools_are_measured_at_once() {
    support::when_idle("two_hundred_clients_of_four_tools_are_measured_at_once", || {
        let (done, runs) = start_all("shared");
        for (tool, done) in &done {
            assert_eq!(done.code, Some(0), "{tool}: {done:?}");
        }
        for tool in ["(iperf3)", "(iperf2)", "(ttcp)", "(nuttcp)"] {
            let of_tool = |run: &&Value| run["target"].as_str().unwrap().ends_with(tool);
            assert_eq!(runs.iter().filter(of_tool).count(), EACH, "{tool}");
        }
        assert!(runs.iter().all(|run| run["outcome"] == "completed"), "{runs:?}");
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn one_of_two_hundred_clients_is_measured_at_a_time_and_the_others_are_informed() {
    let (done, runs) = start_all("exclusive");
    // iperf3 has a protocol message for it, nuttcp an error line.
    let refused_or_ran = |tool: &str, words: &str| {
        let of_tool = || done.iter().filter(|(name, _)| *name == tool);
        let refused = of_tool().filter(|(_, done)| done.stderr.contains(words)).count();
        assert!(refused + runs.len() >= EACH, "{tool}: {refused} of {EACH} were refused, {} ran", runs.len());
        assert!(of_tool().all(|(_, done)| done.code == Some(0) || done.stderr.contains(words)), "{tool}");
    };
    refused_or_ran("iperf3", "the server is busy running a test");
    refused_or_ran("nuttcp", "error from server");
    assert!(!runs.is_empty() && runs.len() < 2 * EACH, "{} runs", runs.len());
}
