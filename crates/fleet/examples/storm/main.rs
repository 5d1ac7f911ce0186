//! Measures a storm: many agents lose the broker at once, and come back. `storm [AGENTS [PROCESSES]]`; `cargo xtask
//! bench --only storm` calls it.
//!
//! Everything is real but the tests: nats-server with a key for each agent, PostgreSQL, one coordinator as a process of its
//! own, and every agent with its own connection. Agents are spread over a few processes, and their folders are in memory.
//! All of them share the processors of this machine. Prints one JSON object.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that fails has no result")]

mod process_usage;
mod storm_agents;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use linerate_archive::Calendar;
use linerate_broker::users_file;
use linerate_control::Token;
use linerate_fleet::{
    BrokerOptions, EnginePaths, FleetBroker, FleetCoordinator, FleetError, FleetKey, FleetService,
    FleetServiceConfig, Inventory, LocalNats, LocalPostgres, RunEnd, fleet_file, now,
};
use linerate_model::calendar::CalendarRunState;
use linerate_runner::CancelToken;
use linerate_sock::process::{PidFd, Signal, end_with_parent};
use linerate_sock::thread::locked;
use linerate_sock::{clock, limits};
use linerate_units::Span;

use process_usage::StormUsage;
use storm_agents::StormState;

/// Agents of a full measurement, and the processes that they are spread over.
const AGENTS: usize = 10_000;
const PROCESSES: usize = 5;
/// How long the broker is down.
const OUTAGE: Duration = Duration::from_secs(2);
/// Limits that only a fleet reaches which never gets there.
const LIMIT: Duration = Duration::from_secs(600);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/nats-server");

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |at: usize, default: usize| words.get(at).map_or(default, |word| word.parse().unwrap());
    match words[..] {
        ["coordinator", folder] => coordinator(Path::new(folder)),
        ["agents", folder, first, count] => {
            storm_agents::run(Path::new(folder), first.parse().unwrap(), count.parse().unwrap());
        }
        _ => measure(number(0, AGENTS), number(1, PROCESSES)),
    }
}

/// The key of an agent, or of the coordinators.
fn key(number: Option<usize>) -> FleetKey {
    let mut secret = [7; 32];
    secret[..8].copy_from_slice(&number.map_or(u64::MAX, |number| number as u64).to_le_bytes());
    FleetKey::from_bytes(secret).unwrap()
}

/// Each host measures hourly to its neighbour, with its own agent.
fn fleet(hosts: usize) -> String {
    let mut text = String::from("name = \"storm\"\n");
    for host in 0..hosts {
        text += &format!("[host.h{host}]\naddress = \"h{host}\"\n");
    }
    let pairs: Vec<String> =
        (0..hosts).map(|host| format!("[\"h{host}\", \"h{}\"]", (host + 1) % hosts)).collect();
    text += &format!("[mesh.ring]\nevery = \"1h\"\ntemplate = \"pairs\"\npairs = [{}]\n", pairs.join(", "));
    text
}

fn read_fleet(folder: &Path) -> Inventory {
    fleet_file::load(&folder.join("fleet.toml")).unwrap()
}

/// Enrols everybody.
fn prepare(folder: &Path, url: &str, agents: usize) {
    fs::write(folder.join("fleet.toml"), fleet(agents)).unwrap();
    let inventory = read_fleet(folder);
    let keys: Vec<(String, String)> =
        (0..agents).map(|at| (format!("h{at}"), key(Some(at)).public().as_str().to_owned())).collect();
    let users: Vec<(&str, &str)> = keys.iter().map(|(host, key)| (&**host, &**key)).collect();
    fs::write(folder.join("users.conf"), users_file("storm", key(None).public().as_str(), &users).unwrap())
        .unwrap();
    let no_id = Box::new(|| Err(FleetError::NoRun("nothing is due yet".to_owned())));
    let calendar = Calendar::open(url).unwrap();
    let mut first = FleetCoordinator::new(calendar, "first".to_owned(), inventory, no_id);
    first = first.with_horizon(Span::ZERO);
    first.tick(now(), &mut Vec::new()).unwrap();
    first.stop(now()).unwrap();
    let enroll = |calendar: &mut linerate_archive::CalendarTransaction<'_>| {
        keys.iter().try_for_each(|(host, key)| calendar.enroll_agent(host, key, now()))
    };
    first.calendar().write(enroll).unwrap();
}

fn coordinator(folder: &Path) {
    end_with_parent(Signal::Kill).unwrap();
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let config = FleetServiceConfig {
        archive: Some(text("archive.url")),
        inventory: read_fleet(folder),
        token: Token::new("the token of a fleet that never measures").unwrap(),
        tls: None,
        broker: Some(FleetBroker {
            key: key(None).secret(),
            place: BrokerOptions { brokers: vec![text("broker.url")], ..BrokerOptions::default() },
        }),
        notify: |_| (),
    };
    let service = FleetService::open(config).unwrap().with_substitute(|_, _| {
        let reason = "it is not measured".to_owned();
        (RunEnd { state: CalendarRunState::Failed, reason, result: None }, String::new())
    });
    let mut service = service;
    let report = &mut |service: &mut FleetService| println!("{}", service.dropped_messages());
    service.run(&CancelToken::new(), report).unwrap();
}

/// The processes, and what they said last.
struct StormProcesses {
    folder: PathBuf,
    coordinator: Option<(Child, Arc<Mutex<String>>)>,
    agent_processes: Vec<(Child, Arc<Mutex<String>>)>,
}

impl StormProcesses {
    fn start(&self, words: &[&str]) -> (Child, Arc<Mutex<String>>) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(words[0]).arg(&self.folder).args(&words[1..]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (lines, last) = (BufReader::new(child.stdout.take().unwrap()).lines(), said.clone());
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| *locked(&last) = line));
        (child, said)
    }

    fn states(&self) -> StormState {
        let states = self.agent_processes.iter().map(|(_, said)| StormState::read(&locked(said)));
        states.fold(StormState::default(), StormState::plus)
    }

    /// Seconds until it is so, from `begun`.
    fn wait(&self, begun: clock::Mono, what: &str, is_so: impl Fn(&StormState) -> bool) -> f64 {
        loop {
            let state = self.states();
            if is_so(&state) {
                return clock::now().since(begun).as_secs_f64();
            }
            assert!(clock::now().since(begun) < LIMIT, "{what}: {state:?}");
            clock::sleep_until(clock::now() + POLL_INTERVAL);
        }
    }

    fn usage(&self) -> StormUsage {
        StormUsage::of(self.coordinator.as_ref().unwrap().0.id())
    }
}

impl Drop for StormProcesses {
    fn drop(&mut self) {
        for (child, _) in self.agent_processes.iter_mut().chain(&mut self.coordinator) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn measure(agents: usize, processes: usize) {
    let _ = limits::raise_open_files(agents as u64 + 1000);
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let peer = std::env::var_os("LINERATE_NATS_SERVER").map(PathBuf::from);
    let peer = peer.or_else(|| Some(PathBuf::from(PEER)).filter(|peer| peer.exists()));
    let paths = EnginePaths { postgres_bin: None, nats_server: peer };
    let postgres = LocalPostgres::start(folder.path(), &paths).unwrap();
    prepare(folder.path(), &postgres.url(), agents);
    let start_nats = || LocalNats::start(folder.path(), &paths, Some(&folder.path().join("users.conf")));
    let nats = start_nats().unwrap();
    fs::write(folder.path().join("archive.url"), postgres.url()).unwrap();
    fs::write(folder.path().join("broker.url"), nats.url()).unwrap();
    let mut all =
        StormProcesses { folder: folder.path().to_owned(), coordinator: None, agent_processes: Vec::new() };
    let begun = clock::now();
    all.coordinator = Some(all.start(&["coordinator"]));
    let each = agents.div_ceil(processes);
    for first in (0..agents).step_by(each) {
        let count = each.min(agents - first);
        all.agent_processes.push(all.start(&["agents", &first.to_string(), &count.to_string()]));
    }
    let all_there = |state: &StormState| state.agents == agents;
    let answered_seconds = all.wait(begun, "first answers", |s| all_there(s) && s.answered == agents);
    let calendar_seconds = all.wait(begun, "first calendars", |s| s.with_calendar == agents);
    let runs_seconds = all.wait(begun, "calendars with runs", |s| s.with_runs == agents);
    eprintln!("answers {answered_seconds:.1} s, calendars {calendar_seconds:.1} s, runs {runs_seconds:.1} s");
    let first = all.usage();
    // The work of the start must be over.
    clock::sleep_until(clock::now() + Duration::from_secs(40));
    let before = all.usage();
    let idle = before.since(&first);
    let process: u32 = fs::read_to_string(folder.path().join("nats.pid")).unwrap().trim().parse().unwrap();
    let server = PidFd::open(process).unwrap();
    server.signal(Signal::Kill).unwrap();
    assert!(server.wait(clock::now() + LIMIT).unwrap());
    drop(nats);
    clock::sleep_until(clock::now() + OUTAGE);
    let _nats = start_nats().unwrap();
    let restarted = clock::now();
    let again_seconds =
        all.wait(restarted, "answers after the storm", |s| s.disconnected == agents && s.answered == agents);
    let usage = all.usage();
    let state = all.states();
    let dropped = locked(&all.coordinator.as_ref().unwrap().1).parse::<u64>().unwrap();
    println!(
        "{}",
        serde_json::json!({
            "agents": agents,
            "connections": agents,
            "processes": processes,
            "first_answer_seconds": answered_seconds,
            "first_calendar_seconds": calendar_seconds,
            "first_runs_seconds": runs_seconds,
            "storm_seconds": again_seconds,
            "storm_lag_seconds": state.lag_ms as f64 / 1e3,
            "storm_cpu_seconds": usage.cpu_seconds - before.cpu_seconds,
            "idle_cpu_percent": idle * 100.0,
            "start_cpu_seconds": first.cpu_seconds,
            "coordinator_peak_mb": usage.peak_bytes as f64 / 1e6,
            "dropped_messages": dropped,
        })
    );
}
