//! A fleet for trying out, with and without PostgreSQL and NATS: it comes up, measures, and leaves nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Done, Folder, Process, elements, eventually, linerate, signal};

/// A limit that only a command that is stuck reaches. PostgreSQL makes its data at the first start.
const PATIENT: Duration = Duration::from_secs(240);
/// How long a fleet may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/nats-server");

/// The folder of a fleet, which every user may enter. Its fleet ends at the end of the test.
struct TryOutDir {
    _folder: Folder,
    dir: String,
}

impl TryOutDir {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { dir: folder.file("fleet"), _folder: folder }
    }

    fn start(&self, args: &[&str]) -> Process {
        let mut command = linerate();
        command.env_remove("LINERATE_ARCHIVE").args(args).args(["--dir", &self.dir]);
        Process::start(command)
    }

    fn run(&self, args: &[&str]) -> Done {
        self.start(args).finish(PATIENT)
    }

    fn json(&self, args: &[&str]) -> Value {
        let done = self.run(&[args, &["--json"]].concat());
        assert_eq!(done.code, Some(0), "{done:?}");
        done.json()
    }

    fn up(&self, args: &[&str]) {
        let up = self.run(&[&["fleet", "up", "--detach"], args].concat());
        assert_eq!(up.code, Some(0), "{up:?} {}", self.read("fleet.log"));
    }

    fn down(&self) {
        let down = self.run(&["fleet", "down"]);
        assert_eq!(down.code, Some(0), "{down:?}");
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(Path::new(&self.dir).join(file)).unwrap_or_default()
    }

    fn processes(&self) -> Value {
        serde_json::from_str(&self.read("processes.json")).unwrap()
    }

    /// All processes of the fleet, the coordinator first.
    fn numbers(&self) -> Vec<u32> {
        let processes = self.processes();
        let one = |name: &str| processes[name].as_u64();
        let all =
            |name: &str| elements(&processes[name]).iter().filter_map(Value::as_u64).collect::<Vec<_>>();
        let numbers = one("coordinator").into_iter().chain(all("servers")).chain(all("agents"));
        let numbers = numbers.chain(one("postgres")).chain(one("nats"));
        numbers.map(|number| number.try_into().unwrap()).collect()
    }

    /// Waits until all agents are heard and have their calendars.
    fn agents_have_calendars(&self) -> Vec<Value> {
        eventually("all agents have calendars", || {
            let agents = self.json(&["agent", "list"]);
            let agents = elements(&agents["agents"]);
            let ready = agents.iter().filter(|agent| agent["state"] == "ready").count();
            (ready == 3).then(|| agents.to_vec())
        })
    }
}

impl Drop for TryOutDir {
    fn drop(&mut self) {
        // A test that fails leaves it.
        self.run(&["fleet", "down"]);
    }
}

fn is_alive(number: &u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The options for nats-server where scripts/nats-server.sh puts it.
fn nats() -> Vec<&'static str> {
    if Path::new(PEER).exists() { vec!["--nats-server", PEER] } else { Vec::new() }
}

#[test]
fn a_fleet_for_trying_out_comes_up_and_leaves_nothing() {
    let fleet = TryOutDir::new();
    for before in [&["fleet", "down"][..], &["fleet", "status"], &["mesh"]] {
        let down = fleet.run(before);
        assert!(down.code == Some(1) && down.stderr.contains("linerate fleet up"), "{down:?}");
    }
    fleet.up(&["--simple"]);
    let status = fleet.json(&["fleet", "status"]);
    let names: Vec<&str> =
        elements(&status["agents"]).iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two", "three"]);
    for again in [&["fleet", "up", "--simple"][..], &["fleet", "up", "--simple", "--detach"]] {
        let twice = fleet.run(again);
        assert!(twice.code == Some(1) && twice.stderr.contains("is up already"), "{twice:?}");
    }
    let numbers = fleet.numbers();
    assert_eq!(numbers.iter().filter(|number| is_alive(number)).count(), 4);
    // A coordinator that is killed leaves its agents, which the next `down` ends.
    signal(numbers[0], "KILL");
    eventually("it is gone", || (!is_alive(&numbers[0])).then_some(()));
    let name = format!("{}/../fleet", fleet.dir);
    let mut command = linerate();
    command.env_remove("LINERATE_ARCHIVE").args(["fleet", "down", "--dir", &name]);
    let down = Process::start(command).finish(PATIENT);
    assert_eq!(down.code, Some(0), "{down:?}");
    assert_eq!(numbers.iter().find(|number| is_alive(number)), None);
    // The calendar can be read without the fleet, and the next start has the ports of this one.
    let description = fleet.read("fleet.toml");
    assert_eq!(elements(&fleet.json(&["schedule", "list"])["schedules"]).len(), 6);
    fleet.up(&["--simple"]);
    assert_eq!(fleet.read("fleet.toml"), description);
}

#[test]
fn what_is_missing_is_named_with_the_way_that_needs_nothing() {
    let fleet = TryOutDir::new();
    for detach in [&[][..], &["--detach"]] {
        let missing = ["fleet", "up", "--postgres-bin", "/no/bin", "--nats-server", "/no/nats"];
        let up = fleet.run(&[&missing[..], detach].concat());
        assert_eq!(up.code, Some(1), "{up:?}");
        for word in ["/no/bin", "postgresql", "/no/nats", "nats.io", "linerate fleet up --simple"] {
            assert!(up.stderr.contains(word), "{word}: {up:?}");
        }
        assert!(!Path::new(&fleet.dir).exists(), "nothing is made");
    }
}

#[test]
#[ignore = "needs PostgreSQL and nats-server"]
fn agents_of_a_fleet_for_trying_out_carry_out_its_calendar_in_postgres() {
    let fleet = TryOutDir::new();
    fleet.up(&nats());
    assert!(fleet.read("archive").starts_with("postgres://"));
    let numbers = fleet.numbers();
    assert_eq!(numbers.iter().filter(|number| is_alive(number)).count(), 9, "{}", fleet.processes());
    let enrolled = fleet.agents_have_calendars();
    let add = ["schedule", "add", "often", "--from", "one", "--to", "two", "--every", "30s", "-t", "1"];
    let added = fleet.run(&add);
    assert_eq!(added.code, Some(0), "{added:?}");
    eventually("an agent has measured", || {
        let runs = fleet.json(&["schedule", "runs", "often"]);
        elements(&runs["runs"]).iter().find(|run| run["state"] == "finished").map(|_| ())
    });
    assert!(
        fleet.read("agent-one.log").contains("started: to two (often)"),
        "{}",
        fleet.read("agent-one.log")
    );
    assert_eq!(elements(&fleet.json(&["mesh"])["meshes"]).len(), 1);
    // What a killed coordinator has left is ended by the next start, which knows the agents again.
    signal(numbers[0], "KILL");
    eventually("it is gone", || (!is_alive(&numbers[0])).then_some(()));
    assert_eq!(numbers.iter().filter(|number| is_alive(number)).count(), 8);
    // Its threads may end after it.
    eventually("no fleet is up", || {
        let status = fleet.run(&["fleet", "status"]);
        (status.code == Some(1) && status.stderr.contains("no fleet is up")).then_some(())
    });
    let description = fleet.read("fleet.toml");
    fleet.up(&nats());
    assert_eq!(numbers.iter().find(|number| is_alive(number)), None);
    assert_eq!(fleet.read("fleet.toml"), description);
    let keys = |agents: &[Value]| agents.iter().map(|agent| agent["key"].clone()).collect::<Vec<_>>();
    assert_eq!(keys(&fleet.agents_have_calendars()), keys(&enrolled));
    let runs = fleet.json(&["schedule", "runs", "often"]);
    assert!(elements(&runs["runs"]).iter().any(|run| run["state"] == "finished"), "{runs}");
    let numbers = fleet.numbers();
    signal(numbers[0], "KILL");
    fleet.down();
    assert_eq!(numbers.iter().find(|number| is_alive(number)), None);
}

#[test]
#[ignore = "needs PostgreSQL and nats-server"]
fn a_fleet_for_trying_out_says_what_has_ended_and_ends_soon() {
    let fleet = TryOutDir::new();
    let coordinator = fleet.start(&[&["fleet", "up"], &nats()[..]].concat());
    eventually("it is up", || coordinator.stderr().contains("are up in").then_some(()));
    fleet.agents_have_calendars();
    // The broker forgets an agent that is revoked, by itself.
    let [users, key] = ["users.conf", "fleet.key"].map(|file| format!("{}/{file}", fleet.dir));
    let files = ["--users-file", &users, "--fleet-key-file", &key];
    let revoked = fleet.run(&[&["agent", "revoke", "three"], &files[..]].concat());
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    let reloaded = "Reloaded server configuration";
    eventually("the broker has its users", || {
        (fleet.read("nats.log").matches(reloaded).count() >= 2).then_some(())
    });
    let processes = fleet.processes();
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let killed = [&processes["agents"][1], &processes["servers"][0], &processes["nats"]];
    killed.iter().for_each(|process| signal(number(process), "KILL"));
    for name in ["the agent of two", "the server of one", "nats-server"] {
        let warning = format!("{name} has ended");
        eventually(&warning, || coordinator.stderr().contains(&warning).then_some(()));
    }
    let numbers = fleet.numbers();
    signal(coordinator.pid(), "TERM");
    let done = coordinator.finish(ENDS_WITHIN);
    assert_eq!(done.stderr.matches("the agent of two has ended").count(), 1, "{done:?}");
    assert_eq!(numbers.iter().find(|number| is_alive(number)), None);
    let state = Path::new(&fleet.dir).join("processes.json");
    assert!(!state.exists());
}
