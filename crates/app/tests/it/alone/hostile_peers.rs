//! Servers and agents that send too much, too little, the impossible, and in any order, against our client,
//! coordinator and agent: an honest dialogue, one end of which a forwarder makes hostile.
//!
//! Every session is generated from a seed, with which it can be repeated: `make hostile SESSIONS=1
//! SEED=number`.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::absurd::HostileRole;
use crate::support::tampering::Tampering;
use crate::support::{
    self, Done, Process, Rng, ServeProcess, eventually, linerate, resident_bytes, signal, test, token_file,
};

/// Number of parallel programs under test.
const AT_ONCE: usize = 8;

/// Longer than all timeouts of a program in sequence: half a minute until everything is open, a minute and a
/// half for an agent's job, half a minute beyond a test's length, some seconds for each answer and the end. A
/// longer run hangs.
const END: Duration = Duration::from_secs(240);

/// Memory limit of a program beyond an honest test: what the other end may send at once, read and stored.
const MAX_BYTES: u64 = 256 << 20;

/// Command line of the program under test.
fn command(port: u16, rng: &mut Rng) -> Command {
    let mut command = if rng.percent(25) {
        let mut sweep = linerate();
        sweep.args(["sweep", "127.0.0.1", "-p", &port.to_string(), "--sizes", "1,64,4K", "-t", "0.3"]);
        sweep.args(rng.of(&[&[][..], &["--stream"], &["--bidir"]]));
        sweep
    } else {
        let mut short = test("127.0.0.1", port, &traffic(rng));
        short.args(rng.of(&[&[][..], &["--no-latency"], &["--no-latency"]]));
        short
    };
    command.args(rng.of(&[&[][..], &["--json"], &["--json"], &["--json-stream"]]));
    command
}

fn traffic(rng: &mut Rng) -> Vec<&'static str> {
    let length = rng.of(&[["-t", "0.2"], ["-t", "0.5"], ["-n", "1M"]]);
    let way = rng.of(&[&[][..], &["--upload"], &["--download"], &["--bidir"], &["-P", "3"], &["-u"]]);
    let mut all = length.to_vec();
    all.extend(way);
    all.extend(["-b", "20M"]);
    all
}

/// Waits for the end of the program under test, possibly interrupting it; returns its peak memory.
fn followed(mut process: Process, hostile: &Tampering, interrupt: bool) -> (Done, u64) {
    let mut most = 0;
    let mut interrupted = !interrupt;
    let mut rounds = 0;
    while process.running() && rounds < 20 * END.as_secs() {
        most = most.max(resident_bytes(process.pid()));
        if hostile.has_tampered() && !std::mem::replace(&mut interrupted, true) {
            signal(process.pid(), "INT");
        }
        support::pause(Duration::from_millis(50));
        rounds += 1;
    }
    (process.finish(Duration::from_secs(1)), most)
}

/// Checks how the program ended, whatever the other end sent.
fn check(done: &Done, most: u64, interrupt: bool, form: Option<&str>) {
    assert!(matches!(done.code, Some(0 | 1)) || interrupt && done.code == Some(130), "{done:?}");
    assert!(!done.stderr.contains("panicked"), "{done:?}");
    assert!(done.code != Some(1) || done.stderr.contains("error:"), "{done:?}");
    let steers =
        |c: char| c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202a}'..='\u{202e}');
    assert!(!done.stdout.contains(steers) && !done.stderr.contains(steers), "{done:?}");
    assert!(most <= MAX_BYTES, "{most} bytes: {done:?}");
    match form {
        Some("--json") => {
            let outcome = done.json()["run"]["outcome"].clone();
            let expected = match done.code {
                Some(0) => "completed",
                Some(1) => "failed",
                _ => "interrupted",
            };
            assert_eq!(outcome, expected, "{done:?}");
        }
        Some("--json-stream") => {
            for line in done.stdout.lines() {
                serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            }
        }
        _ => {}
    }
}

fn form(command: &Command) -> Option<String> {
    let forms = command.get_args().filter_map(|arg| arg.to_str()).filter(|arg| arg.starts_with("--json"));
    forms.last().map(str::to_owned)
}

#[test]
fn ctrl_c_ends_a_client_whose_server_says_only_that_it_lives() {
    let server = ServeProcess::start(&["--policy", "shared"]);
    std::thread::scope(|scope| {
        for word in ["welcome", "prepared", "flows_ready", "progress", "ended"] {
            let port = server.port;
            scope.spawn(move || {
                let hostile = Tampering::holding_back(port, word);
                let args = ["-t", "60", "-b", "5M", "--upload", "--no-latency", "--json"];
                let args = if word == "ended" { &["-n", "10K", "--upload", "--json"][..] } else { &args };
                let client = Process::start(test("127.0.0.1", hostile.port, args));
                eventually(word, || hostile.has_tampered().then_some(()));
                signal(client.pid(), "INT");
                let done = client.finish(END);
                assert_eq!(done.code, Some(130), "{word}: {done:?}");
                assert_eq!(done.json()["run"]["outcome"], "interrupted", "{word}: {done:?}");
            });
        }
    });
}

/// Starts the program under test and checks how it ends.
fn session(command: Command, hostile: &Tampering, interrupt: bool) {
    let (form, shown) = (form(&command), format!("{command:?}"));
    let (done, most) = followed(Process::start(command), hostile, interrupt);
    let last_line = done.stderr.lines().last().unwrap_or_default();
    println!("{}: {:?} after {:?} with {most} bytes: {last_line}", hostile.plan(), done.code, done.took);
    let checked = std::panic::catch_unwind(|| check(&done, most, interrupt, form.as_deref()));
    assert!(checked.is_ok(), "{shown} with {}, interrupted: {interrupt}", hostile.plan());
}

#[test]
fn hostile_sessions_of_servers_end_and_leave_their_client_whole() {
    let sessions = HostileRole::Server.sessions();
    let mut server = ServeProcess::start(&["--policy", "shared"]);
    sessions.run(AT_ONCE, |seed| {
        let rng = &mut Rng::new(seed);
        let hostile = Tampering::to(server.port, false, seed);
        session(command(hostile.port, rng), &hostile, rng.percent(25));
    });
    assert!(server.running(), "{sessions}: the server is gone: {}", server.stderr());
}

#[test]
fn hostile_sessions_of_agents_and_coordinators_end_and_leave_the_other_one_whole() {
    let sessions = HostileRole::Agent.sessions();
    let (_folder, token) = token_file();
    // A number of bytes that is replaced may be an honest order all the same, of half an hour.
    let mut target = ServeProcess::start(&["--policy", "shared", "--limit-time", "30"]);
    let mut agent = ServeProcess::start(&["--policy", "shared", "--agent-token-file", &token]);
    sessions.run(AT_ONCE, |seed| {
        let rng = &mut Rng::new(seed);
        let hostile = Tampering::to(agent.port, rng.percent(50), seed);
        let target = format!("127.0.0.1:{}", target.port);
        let mut from = linerate();
        from.args(["test", &target, "--from", &format!("127.0.0.1:{}", hostile.port)]);
        from.args(["--agent-token-file", &token]).args(traffic(rng)).arg("--json");
        session(from, &hostile, rng.percent(25));
    });
    for server in [&mut agent, &mut target] {
        assert!(server.running(), "{sessions}: a server is gone: {}", server.stderr());
        let work = |name: &String| ["job", "agent", "run"].iter().any(|thread| name.starts_with(thread));
        eventually("no thread of a session is left", || {
            let names = support::thread_names(server.pid());
            (!names.iter().any(work)).then_some(())
        });
        let held = resident_bytes(server.pid());
        assert!(held <= MAX_BYTES, "{sessions}: {held} bytes");
    }
}
