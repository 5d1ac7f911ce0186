//! A fleet of agents on this host: schedules, a mesh, alarms, coordinators that die.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Done, Folder, Process, ServeProcess, TIMEOUT, elements, eventually, eventually_within, linerate, signal,
    token_file,
};

/// Timeout for a command that only reads or writes the calendar.
const AT_ONCE: Duration = Duration::from_secs(15);
/// Timeout for alarms and their ends: two tests of two pairs, one every 20 s.
const ALARMS: Duration = Duration::from_secs(180);

/// Two agents and the file of a fleet with them.
struct TestFleet {
    folder: Folder,
    token: String,
    agents: Vec<ServeProcess>,
}

impl TestFleet {
    /// `mesh` are the keys of the mesh between both hosts.
    fn new(mesh: &str) -> Self {
        let (folder, token) = token_file();
        let agents = vec![Self::agent(&token, 0), Self::agent(&token, 0)];
        let fleet = Self { folder, token, agents };
        fleet.describe(mesh);
        fleet
    }

    fn agent(token: &str, port: u16) -> ServeProcess {
        let mut command = linerate();
        command.args([
            "serve",
            "--bind",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "--json",
            "--agent-token-file",
            token,
        ]);
        ServeProcess::from(command)
    }

    fn describe(&self, mesh: &str) {
        let mut text = String::from("name = \"campus\"\nset_up = \"2s\"\nsettle = \"1s\"\n");
        for (name, agent) in ["one", "two"].iter().zip(&self.agents) {
            text += &format!("[host.{name}]\naddress = \"127.0.0.1\"\nport = {}\n", agent.port);
        }
        text += &format!(
            "[mesh.m]\ntest = {{ duration = \"0.3s\", rate = \"20M\", no_latency = true }}\n{mesh}\n"
        );
        std::fs::write(self.file(), text).unwrap();
    }

    fn file(&self) -> String {
        self.folder.file("campus.toml")
    }

    /// A command with the archive of the fleet.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = linerate();
        command.args(args).env("LINERATE_ARCHIVE", self.folder.file("archive.sqlite"));
        command
    }

    /// Starts a coordinator, and waits until it leads or waits.
    fn coordinator(&self) -> Process {
        let args = ["fleet", "run", &self.file(), "--agent-token-file", &self.token];
        let coordinator = Process::start(self.command(&args));
        eventually("the coordinator is there", || {
            let said = coordinator.stderr();
            (said.contains("this coordinator leads") || said.contains("this one waits")).then_some(())
        });
        coordinator
    }

    fn run(&self, args: &[&str]) -> Done {
        Process::start(self.command(args)).finish(AT_ONCE)
    }

    fn json(&self, args: &[&str]) -> Value {
        let done = self.run(&[args, &["--json"]].concat());
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.json()
    }

    fn text(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.stdout
    }

    /// The cells of the mesh that have a result.
    fn measured(&self) -> usize {
        let meshes = self.json(&["mesh"]);
        elements(&meshes["meshes"][0]["cells"]).iter().filter(|cell| cell["result"].is_object()).count()
    }
}

#[test]
fn a_mesh_is_measured_shown_and_archived() {
    let fleet = TestFleet::new("every = \"10s\"");
    let check = fleet.text(&["fleet", "check", &fleet.file()]);
    assert!(check.contains("campus: 2 hosts") && check.contains("exclusive"), "{check}");
    let coordinator = fleet.coordinator();
    eventually("both pairs are measured", || (fleet.measured() == 2).then_some(()));
    let grid = fleet.text(&["mesh", "m"]);
    assert!(grid.contains("one") && grid.contains("M") && !grid.contains("needs attention"), "{grid}");
    let history = fleet.json(&["mesh", "m", "--from", "one", "--to", "two"]);
    let finished = elements(&history["runs"]).iter().find(|run| run["state"] == "finished").unwrap();
    let rate = finished["result"]["goodput_bps"].as_f64().unwrap();
    // Paced at 20 Mb/s; on a busy machine the sender may be late.
    assert!((1e6..21e6).contains(&rate), "{finished}");
    // The run is in the archive under the same name, and named after its schedule.
    let shown = fleet.json(&["show", finished["run"].as_str().unwrap()]);
    assert_eq!((&shown["run"]["outcome"], &shown["run"]["name"]), (&"completed".into(), &"m.one.two".into()));
    assert_eq!(shown["flows"][0]["receiver"]["bitrate_bps"].as_f64(), Some(rate), "{shown}");
    let status = fleet.json(&["fleet", "status"]);
    assert_eq!((&status["schema"], &status["name"]), (&"linerate.fleet/1".into(), &"campus".into()));
    assert_eq!(elements(&status["agents"]).len(), 2);
    assert!(status["coordinator"]["epoch"].as_u64().unwrap() >= 1, "{status}");
    let text = fleet.text(&["fleet", "status"]);
    assert!(text.contains("campus: 2 hosts, 2 schedules (0 paused)") && text.contains("leads"), "{text}");
    signal(coordinator.pid(), "TERM");
    let done = coordinator.finish(TIMEOUT);
    assert_eq!(done.code, Some(143), "{done:?}");
    assert!(done.stderr.contains("this coordinator leads (epoch 1)"), "{done:?}");
    // Nothing is left that seems to measure.
    let active = fleet.json(&["schedule", "list"]);
    assert!(elements(&active["runs"]).iter().all(|run| run["state"] == "booked"), "{active}");
}

#[test]
fn users_add_pause_cancel_and_ask_why() {
    let fleet = TestFleet::new("every = \"1h\"");
    // Only a coordinator describes the fleet.
    let early = fleet.run(&["schedule", "add", "x", "--from", "one", "--to", "two", "--every", "1m"]);
    assert!(early.code == Some(2) && early.stderr.contains("linerate fleet run FILE"), "{early:?}");
    let coordinator = fleet.coordinator();
    eventually("it leads", || coordinator.stderr().contains("leads").then_some(()));
    let add = |name: &str, more: &[&str]| {
        let test = ["-t", "0.2", "-b", "10M", "--no-latency"];
        fleet.run(&[&["schedule", "add", name, "--from", "one", "--to", "two"], &test[..], more].concat())
    };
    for (args, words) in [
        (&["--every", "1s"][..], "a period of 1 s is not possible"),
        (&["--cron", "0 0 30 2 *"], "is never due"),
        (&["--cron", "0 3 * * *", "--quiet", "00:00-06:00"], "in its quiet hours"),
        (&["--at", "2001-01-01 00:00"], "in the past"),
        (&["--every", "1m", "--zone", "Mars/Base"], "no time zone 'Mars/Base'"),
        (&[], "--cron, --every and --at"),
    ] {
        let refused = add("never", args);
        assert!(refused.code == Some(2) && refused.stderr.contains(words), "{args:?}: {refused:?}");
    }
    assert_eq!(add("often", &["--every", "10s"]).code, Some(0));
    let twice = add("often", &["--every", "1m"]);
    assert!(twice.code == Some(2) && twice.stderr.contains("linerate schedule remove often"), "{twice:?}");
    let has = |args: &[&str], state: &str| {
        let runs = fleet.json(&[&["schedule", "runs", "often"], args].concat());
        elements(&runs["runs"]).iter().any(|run| run["state"] == state)
    };
    eventually("it was measured", || has(&[], "finished").then_some(()));
    let paused = fleet.text(&["schedule", "pause", "often"]);
    assert!(paused.starts_with("often paused; "), "{paused}");
    let why = fleet.json(&["schedule", "why", "often"]);
    assert!(elements(&why["obstacles"]).iter().any(|one| one["kind"] == "paused"), "{why}");
    let why = fleet.text(&["schedule", "why", "often"]);
    assert!(why.contains("it is paused") && why.contains("Last run: "), "{why}");
    let free = fleet.json(&["schedule", "next-free", "--from", "two", "--to", "one", "-t", "2"]);
    assert_eq!(elements(&free["times"]).len(), 3, "{free}");
    fleet.text(&["schedule", "resume", "often"]);
    eventually("it is booked again", || has(&["--coming"], "booked").then_some(()));
    let cancelled = fleet.text(&["schedule", "cancel", "--all"]);
    assert!(cancelled.contains("cancelled"), "{cancelled}");
    let removed = fleet.run(&["schedule", "remove", "often"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let gone = fleet.run(&["schedule", "why", "often"]);
    assert!(gone.code == Some(2) && gone.stderr.contains("no schedule 'often'"), "{gone:?}");
    let of_mesh = fleet.run(&["schedule", "remove", "m.one.two"]);
    assert!(of_mesh.code == Some(2) && of_mesh.stderr.contains("belongs to the mesh 'm'"), "{of_mesh:?}");
}

#[test]
fn another_coordinator_takes_over_within_seconds() {
    let fleet = TestFleet::new("every = \"10s\"");
    let first = fleet.coordinator();
    eventually("it leads", || first.stderr().contains("leads (epoch 1)").then_some(()));
    let second = fleet.coordinator();
    eventually("the other one waits", || second.stderr().contains("this one waits").then_some(()));
    signal(first.pid(), "KILL");
    eventually("the other one leads", || second.stderr().contains("leads (epoch 2)").then_some(()));
    eventually("the fleet is measured", || (fleet.measured() == 2).then_some(()));
    // One that stops gives up its lease.
    let third = fleet.coordinator();
    eventually("the third one waits", || third.stderr().contains("this one waits").then_some(()));
    signal(second.pid(), "TERM");
    eventually("the third one leads", || third.stderr().contains("leads (epoch 3)").then_some(()));
}

#[test]
fn an_agent_that_is_gone_raises_an_alarm_after_a_second_test_and_its_return_clears_it() {
    // With less time in between, none may be free for a second test.
    let mut fleet = TestFleet::new("every = \"20s\"\nslip = \"5s\"\nalarm = { failure = true }");
    let told = fleet.folder.file("told");
    let command = format!(
        "every = \"20s\"\nslip = \"5s\"\nalarm = {{ failure = true }}\n[notify]\ncommand = [\"sh\", \"-c\", \"cat >> {told}\"]"
    );
    fleet.describe(&command);
    let agent = fleet.agents.pop().unwrap();
    let port = agent.port;
    agent.signal("KILL");
    drop(agent);
    let coordinator = fleet.coordinator();
    let open = || elements(&fleet.json(&["fleet", "alarms", "--open"])["alarms"]).len();
    // Describing the fleet needs the port of the agent that is gone.
    eventually_within(ALARMS, "both pairs have an alarm", || (open() == 2).then_some(()));
    let alarms = fleet.text(&["fleet", "alarms"]);
    assert!(alarms.contains("no result (") && alarms.contains("open"), "{alarms}");
    let grid = fleet.text(&["mesh"]);
    assert!(grid.contains("needs attention") && grid.contains("alarm since"), "{grid}");
    let runs = fleet.json(&["schedule", "runs", "m.one.two", "--limit", "100"]);
    assert!(elements(&runs["runs"]).iter().any(|run| run["confirms"].is_string()), "{runs}");
    fleet.agents.push(TestFleet::agent(&fleet.token, port));
    eventually_within(ALARMS, "the alarms are cleared", || {
        (elements(&fleet.json(&["fleet", "alarms", "--open"])["alarms"]).is_empty()).then_some(())
    });
    // Whoever is told is told after the calendar knows it, in a process of its own.
    eventually("both alarms and their ends were told", || {
        let told = std::fs::read_to_string(&told).unwrap_or_default();
        let state = |line| Some(serde_json::from_str::<Value>(line).ok()?["state"].as_str()?.to_owned());
        let states: Vec<String> = told.lines().filter_map(state).collect();
        let of = |wanted: &str| states.iter().filter(|state| *state == wanted).count();
        (of("raised") >= 2 && of("cleared") >= 2).then_some(())
    });
    assert!(coordinator.stderr().contains("alarm: "), "{}", coordinator.stderr());
}

#[test]
fn a_hangup_makes_the_coordinator_read_its_file_again() {
    let fleet = TestFleet::new("every = \"1h\"");
    let coordinator = fleet.coordinator();
    eventually("it leads", || coordinator.stderr().contains("leads").then_some(()));
    fleet.describe("every = \"1x\"");
    signal(coordinator.pid(), "HUP");
    eventually("it says what is wrong", || coordinator.stderr().contains("campus.toml:").then_some(()));
    fleet.describe("every = \"1h\"\ntemplate = \"pairs\"\npairs = [[\"one\", \"two\"]]");
    signal(coordinator.pid(), "HUP");
    eventually("one pair is left", || {
        let schedules = fleet.json(&["schedule", "list"]);
        (elements(&schedules["schedules"]).len() == 1).then_some(())
    });
}
