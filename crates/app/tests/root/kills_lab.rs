//! SIGKILL to the coordinator of a plan in an emulated network, to the switch, to agents, or to several of
//! them, at random moments: nothing of the network remains, and the plan continues.
//!
//! `LINERATE_KILLS` is the number of rounds, `LINERATE_KILLS_SEED` the first seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use crate::support::{
    PlanDir, Process, Rng, TIMEOUT, elements, files_below, kill, pause, repetitions, world,
};

/// Settings of hosts, and a key that requires a new network.
const PLAN: &str = "name = \"lab-kills\"\npause = 0\n\
    [lab]\ntopology = \"pair\"\nset = { \"link.a.mtu\" = 9000, \"link.b.mtu\" = 9000 }\n\
    [test]\nduration = 0.2\nupload = true\nrate = \"20M\"\nno_latency = true\n\
    [axis.network]\nkey = [\"lab.link.a.mtu\", \"lab.link.b.mtu\"]\nvalues = [8000, 9000]\n\
    [axis.mtu]\nkey = \"host.*.mtu\"\nvalues = [1500, 3000]\n";
const POINTS: usize = 4;
const MAX_KILLS: usize = 2;
/// Timeout for programs to end that ignore SIGTERM.
const GONE: Duration = Duration::from_secs(20);

/// Processes to kill together.
const VICTIMS: [&[&str]; 6] = [
    &["coordinator"],
    &["coordinator"],
    &["switch"],
    &["agent"],
    &["coordinator", "switch"],
    &["coordinator", "switch", "agent"],
];

impl PlanDir {
    fn plans(&self) -> usize {
        let done = self.done(&["history", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        elements(&done.json()["runs"]).len()
    }

    fn begin_or_go_on(&self) -> Process {
        let resume: &[&str] = if self.plans() > 0 { &["--resume"] } else { &[] };
        Process::start(self.run_command(&[&["--json"], resume].concat()))
    }

    /// The processes that use this test's folder, with their command lines.
    fn processes(&self) -> Vec<(u32, String)> {
        let mark = format!("LINERATE_RUN={}", self.folder.file("run"));
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let around = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if around.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()) {
                let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
        found
    }

    /// The labs that have a folder.
    fn labs(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("run/labs")).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// What remains of labs with these names.
    fn remains(&self, labs: &BTreeSet<String>) -> Vec<String> {
        let mut found: Vec<String> = self.processes().into_iter().map(|(_, line)| line).collect();
        let ours = |thing: &String| labs.iter().any(|lab| thing.contains(&format!("linerate-{lab}-")));
        found.extend(world().into_iter().filter(ours));
        let files = files_below(&self.folder.path().join("run"));
        found.extend(files.into_iter().filter(|file| !std::path::Path::new(file).is_dir()));
        found
    }

    /// Kills at a moment, and checks that nothing remains.
    fn kill_after(&self, time: Duration, victims: &[&str]) {
        let mut coordinator = self.begin_or_go_on();
        let due = clock::now() + time;
        let mut labs = BTreeSet::new();
        let mut lives = true;
        while !due.has_passed() && lives {
            labs.extend(self.labs());
            pause(Duration::from_millis(1));
            lives = coordinator.running();
        }
        let processes = self.processes();
        let of = |word: &str| {
            let words = format!(" {word} ");
            processes.iter().filter(move |(_, line)| line.contains(&words)).map(|(pid, _)| *pid)
        };
        let mut pids: Vec<u32> = Vec::new();
        let orphaned = lives && victims.contains(&"coordinator");
        pids.extend(orphaned.then(|| coordinator.pid()));
        pids.extend(victims.contains(&"switch").then(|| of("switch")).into_iter().flatten());
        pids.extend(victims.contains(&"agent").then(|| of("serve")).into_iter().flatten());
        kill(&pids);
        labs.extend(self.labs());
        let ended = coordinator.finish(TIMEOUT);
        assert!(orphaned || matches!(ended.code, Some(0..=2)), "{ended:?}");
        // A killed switch cannot remove its network; a living coordinator does it.
        if orphaned && victims.contains(&"switch") {
            let down = self.done(&["lab", "down", "--all"]);
            assert_eq!(down.code, Some(0), "{down:?}");
        }
        let deadline = clock::now() + GONE;
        let left = loop {
            let left = self.remains(&labs);
            if left.is_empty() || deadline.has_passed() {
                break left;
            }
            pause(Duration::from_millis(10));
        };
        assert_eq!(left, [""; 0]);
    }

    fn is_whole(&self) {
        assert_eq!(self.plans(), 1);
        let document = self.shown();
        assert_eq!(document["outcome"], "completed", "{document}");
        let points = elements(&document["points"]);
        assert_eq!(points.len(), POINTS, "{document}");
        for point in points {
            let axis = elements(&point["values"]).iter().find(|value| value["axis"] == "mtu").unwrap();
            let mtu: f64 = axis["label"].as_str().unwrap().parse().unwrap();
            let of = |quantity: &str| {
                let all: Vec<&Value> =
                    elements(&point["summaries"]).iter().filter(|one| one["quantity"] == quantity).collect();
                assert_eq!(all.len(), 1, "{quantity} at {point}");
                elements(&all[0]["values"]).iter().filter_map(Value::as_f64).collect::<Vec<_>>()
            };
            // MTU minus the headers of IPv4 and TCP with timestamps.
            assert_eq!((of("segment"), of("delivered").len()), (vec![mtu - 52.0], 1), "{point}");
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces"]
fn whoever_is_killed_and_whenever_nothing_is_left_of_the_network_and_the_plan_goes_on() {
    let sample = PlanDir::new(PLAN);
    let undisturbed = sample.begin_or_go_on().finish(TIMEOUT);
    assert_eq!(undisturbed.code, Some(0), "{undisturbed:?}");
    sample.is_whole();
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for seed in repetitions(6) {
        let mut rng = Rng::new(seed);
        let bench = PlanDir::new(PLAN);
        for _ in 0..MAX_KILLS {
            let (victims, time) = (rng.of(&VICTIMS), rng.time(undisturbed.took.mul_f64(1.05)));
            eprintln!("seed {seed}: {} after {time:.0?}", victims.join(" "));
            bench.kill_after(time, victims);
            *counts.entry(victims.join(" ")).or_default() += 1;
            if rng.percent(60) {
                break;
            }
        }
        let done = bench.begin_or_go_on().finish(TIMEOUT);
        let over = done.code == Some(2) && done.stderr.contains("no unfinished run");
        assert!(done.code == Some(0) || over, "seed {seed}: {done:?}");
        bench.is_whole();
        assert_eq!(bench.remains(&BTreeSet::new()), [""; 0]);
    }
    eprintln!("kills by victim: {counts:#?}");
}
