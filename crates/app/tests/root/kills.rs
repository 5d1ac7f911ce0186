//! SIGKILL to the coordinator of a plan, to the agents of its hosts, or to several of them, at random moments.
//!
//! Afterwards all settings of the hosts are restored, the archive is intact, and the plan continues with
//! `--resume` and measures every point exactly once. `LINERATE_KILLS` is the number of rounds,
//! `LINERATE_KILLS_SEED` the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::Command;
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use crate::support::{
    AgentPair, Done, Process, Rng, TIMEOUT, elements, eventually, kill, pause, repetitions,
};

/// Every point sets both hosts: an offload, buffers and a discipline are the same in all of them, the MTU
/// differs.
const PLAN: &str = "name = \"kills\"\npause = 0\nrepeats = 2\n\
    [test]\nduration = 0.2\nupload = true\nrate = \"20M\"\nno_latency = true\n\
    [host.a]\naddress = \"10.77.0.1\"\ntcp_rmem = \"8192 262144 8388608\"\ntso = false\n\
    [host.b]\naddress = \"10.77.0.2\"\ncongestion = \"reno\"\nqdisc = \"pfifo limit 900\"\n\
    [axis.mtu]\nkey = \"host.*.mtu\"\nvalues = [1500, 2000, 3000]\n";
const MTUS: [u64; 3] = [1500, 2000, 3000];
const REPEATS: usize = 2;
/// Headers of IPv4, and TCP with timestamps.
const HEADERS: u64 = 20 + 20 + 12;

/// Events of agents while a plan runs.
const NEWS: [&str; 6] = ["held", "settings_changed", "asked", "begun", "ended", "settings_restored"];
/// Longest time from an event to a kill: longer than applying or restoring the settings of a point takes.
const AFTER: Duration = Duration::from_millis(80);
/// Duration of a program's start.
const START: Duration = Duration::from_millis(60);
/// Most kills of a plan before it may finish.
const MAX_KILLS: usize = 3;

/// Processes to kill together.
const VICTIMS: [&[&str]; 6] =
    [&["coordinator"], &["a"], &["b"], &["a", "b"], &["coordinator", "b"], &["coordinator", "a", "b"]];

/// When to kill.
#[derive(Clone, Copy)]
enum Moment {
    /// Time since the coordinator's start.
    In(Duration),
    /// Time since an agent's event of this kind with this number.
    After { host: &'static str, news: &'static str, number: usize, then: Duration },
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(time) => write!(f, "{time:.0?}"),
            Self::After { host, news, number, then } => write!(f, "{news} {number} of {host} + {then:.1?}"),
        }
    }
}

/// An undisturbed run of the plan: its duration, and the number of events of each agent.
struct Undisturbed {
    took: Duration,
    events: BTreeMap<(&'static str, &'static str), usize>,
}

impl Undisturbed {
    fn measure() -> Self {
        let bench = KillTestBed::new();
        let done = bench.carry_out(&[]).finish(TIMEOUT);
        assert_eq!(done.code, Some(0), "{done:?}");
        bench.is_whole();
        let agents = &bench.pair.agents;
        let events = NEWS
            .iter()
            .flat_map(|news| agents.iter().map(|(host, agent)| ((*host, *news), agent.events(news).len())));
        Self { took: done.took, events: events.filter(|(_, count)| *count > 0).collect() }
    }

    /// Half of the moments are spread evenly over the plan and a little beyond. The others are near changes of
    /// settings, starts and ends of runs, and starts of programs: these moments are short and critical.
    fn moment(&self, rng: &mut Rng) -> Moment {
        match rng.below(10) {
            0 => Moment::In(rng.time(START)),
            1..5 => {
                let kinds: Vec<_> = self.events.iter().collect();
                let ((host, news), count) = rng.of(&kinds);
                Moment::After { host, news, number: 1 + rng.below(*count), then: rng.time(AFTER) }
            }
            _ => Moment::In(rng.time(self.took.mul_f64(1.1))),
        }
    }
}

/// Two hosts with agents, an archive, and the original settings.
struct KillTestBed {
    pair: AgentPair,
    before: Vec<String>,
}

impl KillTestBed {
    fn new() -> Self {
        let pair = AgentPair::new();
        std::fs::write(pair.folder.file("plan.toml"), PLAN).unwrap();
        let before = pair.state();
        Self { pair, before }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.pair.command("a", args);
        command.env("LINERATE_ARCHIVE", self.pair.folder.file("archive.sqlite"));
        command
    }

    fn done(&self, args: &[&str]) -> Done {
        Process::start(self.command(args)).finish(TIMEOUT)
    }

    fn carry_out(&self, args: &[&str]) -> Process {
        let (plan, token) = (self.pair.folder.file("plan.toml"), self.pair.folder.file("token"));
        let run = ["run", &plan, "--agent-token-file", &token, "--json"];
        Process::start(self.command(&[&run[..], args].concat()))
    }

    /// The plans in the archive.
    fn plans(&self) -> usize {
        let done = self.done(&["history", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        elements(&done.json()["runs"]).len()
    }

    /// Starts the plan, or continues it if there is one.
    fn begin_or_go_on(&self) -> Process {
        self.carry_out(if self.plans() == 0 { &[] } else { &["--resume"] })
    }

    /// Kills at a moment; returns the phase at that time. Restarts what was killed, except for the coordinator.
    fn kill_at(&mut self, moment: Moment, victims: &[&str], rng: &mut Rng) -> &'static str {
        let mut coordinator = self.begin_or_go_on();
        let lives = self.await_moment(moment, &mut coordinator);
        let phase = self.phase(lives);
        let killed = lives && victims.contains(&"coordinator");
        let mut pids: Vec<u32> = killed.then(|| coordinator.pid()).into_iter().collect();
        let hosts: Vec<&'static str> = ["a", "b"].into_iter().filter(|host| victims.contains(host)).collect();
        pids.extend(hosts.iter().map(|host| self.pair.agents[host].pid()));
        kill(&pids);
        for host in hosts {
            self.pair.agents.remove(host).unwrap().finish(TIMEOUT);
            // The new one may be killed while it restores what the old one left.
            while rng.percent(30) {
                let starting = Process::start(self.pair.serve(host));
                pause(rng.time(START));
                kill(&[starting.pid()]);
                starting.finish(TIMEOUT);
            }
            self.pair.start(host);
        }
        let ended = coordinator.finish(TIMEOUT);
        assert!(killed || matches!(ended.code, Some(0..=2)), "{ended:?}");
        phase
    }

    /// Waits for the moment, at most until the coordinator ends; returns whether it still runs.
    fn await_moment(&self, moment: Moment, coordinator: &mut Process) -> bool {
        let mut due = match moment {
            Moment::In(time) => Some(clock::now() + time),
            Moment::After { .. } => None,
        };
        let count = |moment| match moment {
            Moment::After { host, news, .. } => self.pair.agents[host].events(news).len(),
            Moment::In(_) => 0,
        };
        let known = count(moment);
        while coordinator.running() {
            if due.is_some_and(clock::Mono::has_passed) {
                return true;
            }
            if let (None, Moment::After { number, then, .. }) = (due, moment)
                && count(moment) >= known + number
            {
                due = Some(clock::now() + then);
            }
            pause(Duration::from_millis(1));
        }
        false
    }

    /// The current phase, as far as it is visible from outside.
    fn phase(&self, lives: bool) -> &'static str {
        let events = |news| self.pair.agents["b"].events(news).len();
        match (lives, self.pair.is_clean(), events("begun") > events("ended")) {
            (false, ..) => "after the end",
            (true, _, true) => "measuring",
            (true, false, false) => "settings made",
            (true, true, false) => "no settings",
        }
    }

    /// Checks that all settings are restored and no journal is left within a limit; returns the time it took.
    fn is_as_before(&self) -> Duration {
        let began = clock::now();
        let differs = || {
            let now = self.pair.state();
            let pairs = self.before.iter().zip(&now).filter(|(before, now)| before != now);
            pairs.map(|(before, now)| format!("{now}, before {before}")).collect::<Vec<_>>()
        };
        let as_before = || (differs().is_empty() && self.pair.is_clean()).then_some(());
        eventually("the settings are as before", as_before);
        clock::now().since(began)
    }

    /// Checks that the archive is readable and consistent.
    fn is_sound(&self) {
        let file = self.pair.folder.file("archive.sqlite");
        if std::path::Path::new(&file).exists() {
            let mut command = Command::new("sqlite3");
            command.args([&file, "PRAGMA integrity_check; PRAGMA foreign_key_check;"]);
            let done = Process::start(command).finish(TIMEOUT);
            assert_eq!((done.code, done.stdout.as_str()), (Some(0), "ok\n"), "{done:?}");
        }
        assert!(self.plans() <= 1);
    }

    /// Checks that every point was measured the required number of times under its own settings, and that
    /// nothing is counted twice.
    fn is_whole(&self) {
        assert_eq!(self.plans(), 1);
        let document = self.done(&["show", "--json"]).json();
        assert_eq!(document["outcome"], "completed", "{document}");
        let points = elements(&document["points"]);
        assert_eq!(points.len(), MTUS.len(), "{document}");
        for (point, mtu) in points.iter().zip(MTUS) {
            let summary = |quantity: &str| {
                let all: Vec<&Value> =
                    elements(&point["summaries"]).iter().filter(|one| one["quantity"] == quantity).collect();
                assert_eq!(all.len(), 1, "{quantity} at {point}");
                all[0]
            };
            // The rate may be absent if a busy machine stalled for a whole interval; the delivered bytes are
            // not.
            assert_eq!(elements(&summary("delivered")["values"]).len(), REPEATS, "{point}");
            let segments = elements(&summary("segment")["values"]);
            let expected = (mtu - HEADERS) as f64;
            let is_expected = |value: &Value| value.as_f64() == Some(expected);
            assert!(segments.len() == REPEATS && segments.iter().all(is_expected), "MTU {mtu}: {point}");
        }
        let trials = elements(&document["trials"]);
        let whole = |trial: &&Value| elements(&trial["runs"]).iter().all(|run| run["outcome"] == "completed");
        let places: Vec<String> = trials
            .iter()
            .filter(whole)
            .map(|trial| format!("{} {}", trial["point"], trial["repeat"]))
            .collect();
        let each: BTreeSet<&String> = places.iter().collect();
        assert_eq!((places.len(), each.len()), (6, 6), "{places:?}");
        let runs: Vec<&str> = trials
            .iter()
            .flat_map(|trial| elements(&trial["runs"]))
            .map(|run| run["run"].as_str().unwrap())
            .collect();
        assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len(), "{runs:?}");
        let archived = self.done(&["history", "--all", "--json"]).json();
        let archived: BTreeSet<&str> =
            elements(&archived["runs"]).iter().filter_map(|run| run["id"].as_str()).collect();
        assert!(runs.iter().all(|run| archived.contains(run)), "{runs:?} in {archived:?}");
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn whoever_is_killed_and_whenever_settings_come_back_and_the_plan_goes_on() {
    let undisturbed = Undisturbed::measure();
    let mut counts: BTreeMap<(String, &str), u32> = BTreeMap::new();
    let mut slowest = Duration::ZERO;
    for seed in repetitions(6) {
        let mut rng = Rng::new(seed);
        let mut bench = KillTestBed::new();
        for _ in 0..MAX_KILLS {
            let (victims, moment) = (rng.of(&VICTIMS), undisturbed.moment(&mut rng));
            eprint!("seed {seed}: {} at {moment}: ", victims.join(" "));
            let phase = bench.kill_at(moment, victims, &mut rng);
            eprint!("{phase}; ");
            let took = bench.is_as_before();
            eprintln!("as before in {took:.0?}");
            bench.is_sound();
            *counts.entry((victims.join(" "), phase)).or_default() += 1;
            slowest = slowest.max(took);
            if rng.percent(60) {
                break;
            }
        }
        let done = bench.begin_or_go_on().finish(TIMEOUT);
        let over = done.code == Some(2) && done.stderr.contains("no unfinished run");
        assert!(done.code == Some(0) || over, "seed {seed}: {done:?}");
        bench.is_whole();
        bench.is_as_before();
        bench.is_sound();
    }
    eprintln!("as before at the latest {slowest:.0?} after a kill; kills by victim and phase:");
    for ((victims, phase), count) in counts {
        eprintln!("  {victims:<20} {phase:<14} {count:>4}");
    }
}
