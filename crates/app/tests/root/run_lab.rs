//! `linerate run --world lab`: creates an emulated network for a plan, and removes all of it.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    PlanDir, Process, TIMEOUT, elements, eventually, files_below, kill, parent_of, pause, retried_when_busy,
    signal, switches, world,
};

impl PlanDir {
    /// The remains of labs that this test created.
    fn traces(&self, run: &str) -> Vec<String> {
        let name = format!("plan-{}", &run[..8]);
        world().into_iter().filter(|thing| thing.contains(&name)).collect()
    }
}

/// Process id of the agent of a host in a plan's lab.
///
/// The process that restores the settings of the host is in the same namespace, and process ids that
/// wrap around may list it first: the agent is the one whose parent is elsewhere.
fn agent_of(run: &str, host: &str) -> u32 {
    let space = format!("linerate-plan-{}-{host}", &run[..8]);
    let pids = Command::new("ip").args(["netns", "pids", &space]).output().unwrap();
    let pids: Vec<u32> =
        String::from_utf8(pids.stdout).unwrap().split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    let started_elsewhere = |pid: &&u32| parent_of(**pid).is_some_and(|parent| !pids.contains(&parent));
    *pids.iter().find(started_elsewhere).unwrap_or_else(|| panic!("no agent of {host} among {pids:?}"))
}

/// The median of a quantity at a point, by its index.
pub(crate) fn median(document: &Value, point: usize, flow: &str, quantity: &str) -> f64 {
    let summaries = elements(&document["points"][point]["summaries"]);
    let is = |one: &&Value| one["flow"] == flow && one["quantity"] == quantity;
    let found = summaries.iter().find(is);
    found.and_then(|one| one["median"].as_f64()).unwrap_or_else(|| panic!("no {quantity} in {summaries:?}"))
}

/// A key of a link that can be changed while it runs, and a parameter that requires a new network.
const KEYS: &str = "name = \"keys\"\npause = 0\n\
    assert = [\"rtt_idle >= 4ms\", { that = \"segment == 8948\", at = { mtu = 9000 } }]\n\
    [lab]\ntopology = \"gigabit-switch-4\"\n\
    [test]\nduration = 1\nupload = true\nrate = \"20M\"\n\
    [flow.ab]\nfrom = \"a\"\nto = \"b\"\n[flow.cd]\nfrom = \"c\"\nto = \"d\"\n\
    [axis.delay]\nkey = [\"lab.link.a.delay\", \"lab.link.c.delay\"]\nvalues = [\"2ms\", \"5ms\"]\n\
    [axis.mtu]\nkey = [\"lab.link.a.mtu\", \"lab.link.b.mtu\", \"lab.link.c.mtu\", \"lab.link.d.mtu\"]\nvalues = [1500, 9000]\n\
    [axis.buffer]\nkey = \"lab.buffer\"\nvalues = [\"512KiB\", \"1MiB\"]\n";

#[test]
#[ignore = "needs root and network namespaces"]
fn a_plan_in_the_lab_sets_links_as_its_points_want_and_leaves_nothing() {
    retried_when_busy(|| {
        let bench = PlanDir::new(KEYS);
        let done = bench.run(&["--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let document = done.json();
        assert_eq!((&document["outcome"], &document["plan"]["world"]), (&"completed".into(), &"lab".into()));
        let points = elements(&document["points"]);
        assert_eq!(points.len(), 8);
        for (number, point) in points.iter().enumerate() {
            let value = |axis: &str| {
                let found = elements(&point["values"]).iter().find(|value| value["axis"] == axis);
                found.and_then(|value| value["label"].as_str()).unwrap().to_owned()
            };
            let (low, high) = if value("delay") == "2ms" { (4e6, 9.9e6) } else { (10e6, 100e6) };
            for flow in ["ab", "cd"] {
                let rtt = median(&document, number, flow, "rtt_idle");
                assert!((low..high).contains(&rtt), "{flow} at {point}: {rtt}");
                let expected = if value("mtu") == "1500" { 1448.0 } else { 8948.0 };
                assert_eq!(median(&document, number, flow, "segment"), expected, "{point}");
            }
        }
        assert_eq!(bench.traces(document["run"].as_str().unwrap()), [""; 0]);
    });
}

#[test]
#[ignore = "needs root and network namespaces"]
fn the_lab_of_a_killed_coordinator_goes_and_the_plan_goes_on() {
    let bench = PlanDir::new(
        "name = \"killed\"\npause = 0\nrepeats = 6\n[lab]\ntopology = \"pair\"\n\
         [test]\nduration = 1.5\nupload = true\nrate = \"10M\"\nno_latency = true\n",
    );
    let running = Process::start(bench.command(&["run", &bench.folder.file("plan.toml")]));
    let run = eventually("two trials are archived", || {
        let document = Process::start(bench.command(&["show", "--json"])).finish(TIMEOUT);
        let document: Value = serde_json::from_str(&document.stdout).ok()?;
        (elements(&document["trials"]).len() >= 2).then(|| document["run"].as_str().unwrap().to_owned())
    });
    assert!(!bench.traces(&run).is_empty(), "the lab is up");
    signal(running.pid(), "KILL");
    eventually("the lab goes with its coordinator", || bench.traces(&run).is_empty().then_some(()));
    let done = bench.run(&["--resume", "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    assert_eq!(document["run"].as_str(), Some(run.as_str()));
    let trials = elements(&document["trials"]);
    let repeats: BTreeSet<u64> = trials.iter().map(|trial| trial["repeat"].as_u64().unwrap()).collect();
    assert_eq!((trials.len(), repeats.len()), (6, 6), "{trials:?}");
    assert_eq!(bench.traces(&run), [""; 0]);
}

/// Regression: every plan left an empty file in the folder of labs, and one with a killed switch its
/// namespaces.
#[test]
#[ignore = "needs root and network namespaces"]
fn a_plan_whose_switch_is_killed_leaves_as_little_as_any_other() {
    let bench = PlanDir::new(
        "name = \"switchless\"\npause = 0\nrepeats = 3\n[lab]\ntopology = \"pair\"\n\
         [test]\nduration = 0.8\nupload = true\nrate = \"10M\"\nno_latency = true\n[host.a]\nmtu = 1400\n",
    );
    let run_dir = bench.folder.path().join("run");
    let files = || {
        let found = files_below(&run_dir).into_iter();
        found.filter(|file| !std::path::Path::new(file).is_dir()).collect::<Vec<_>>()
    };
    assert_eq!(bench.run(&["--quiet"]).code, Some(0));
    assert_eq!(files(), [""; 0], "of one that nobody disturbed");

    let running = Process::start(bench.run_command(&[]));
    let lab = eventually("a host has settings", || {
        let files = files();
        // A killed coordinator could not remove it.
        assert!(!files.iter().any(|file| file.ends_with(".token")), "no file has the token of the agents");
        let journal = files.into_iter().find(|file| file.ends_with(".journal"))?;
        journal.split('/').find(|part| part.starts_with("plan-")).map(str::to_owned)
    });
    kill(&switches(&lab));
    let done = running.finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!((bench.traces(lab.trim_start_matches("plan-")), files()), (vec![], vec![]));
    assert_eq!(bench.run(&["--resume"]).code, Some(0));
}

#[test]
#[ignore = "needs root and network namespaces"]
fn a_signal_takes_the_lab_down_and_a_dead_agent_only_its_own_flows() {
    let plan = "name = \"signal\"\npause = 0\nrepeats = 20\n[lab]\ntopology = \"gigabit-switch-4\"\n\
         [flow.ab]\nfrom = \"a\"\nto = \"b\"\n[flow.cd]\nfrom = \"c\"\nto = \"d\"\n\
         [test]\nduration = 0.5\nupload = true\nrate = \"10M\"\nno_latency = true\n";
    let bench = PlanDir::new(plan);
    let running = Process::start(bench.command(&["run", &bench.folder.file("plan.toml")]));
    let trials = |at_least: usize| {
        eventually("trials are archived", || {
            let document = Process::start(bench.command(&["show", "--json"])).finish(TIMEOUT);
            let document: Value = serde_json::from_str(&document.stdout).ok()?;
            (elements(&document["trials"]).len() >= at_least).then_some(document)
        })
    };
    let run = trials(1)["run"].as_str().unwrap().to_owned();
    signal(agent_of(&run, "b"), "KILL");
    let document = trials(7);
    let last = elements(&document["trials"]).last().unwrap();
    let outcome = |flow: &str| {
        let run = elements(&last["runs"]).iter().find(|run| run["flow"] == flow).unwrap();
        run["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!((outcome("ab"), outcome("cd")), ("failed".to_owned(), "completed".to_owned()), "{last}");
    pause(Duration::from_millis(200));
    signal(running.pid(), "TERM");
    let done = running.finish(TIMEOUT);
    assert_eq!(done.code, Some(143), "{done:?}");
    assert_eq!(bench.shown()["outcome"], "interrupted");
    assert_eq!(bench.traces(&run), [""; 0]);
}

#[test]
#[ignore = "needs root and network namespaces"]
fn plans_that_come_along_run_in_the_lab() {
    retried_when_busy(|| {
        let bench = PlanDir::new("");
        for (plan, settings) in [
            ("switch-matrix", &["axis.window=64K", "axis.mss=536,1460", "test.duration=1s"][..]),
            ("window-sweep", &["axis.window=64K,default", "test.duration=1s", "test.omit=0.2s"]),
            ("bufferbloat", &["axis.streams=1", "test.duration=1s", "test.omit=0s"]),
            (
                "rfc6349",
                &[
                    "axis.window=656250,5250000",
                    "axis.streams=1",
                    "test.duration=1s",
                    "test.omit=0.2s",
                    "flow.capacity.test.duration=1s",
                    "flow.capacity.test.omit=0s",
                ],
            ),
            (
                "rfc2544",
                &[
                    "axis.length=1472",
                    // At a higher load, a host that is paused for a moment drops frames, and no load may be without loss.
                    "axis.rate.to=10M",
                    "axis.rate.descend=50%",
                    "axis.rate.resolution=30%",
                    "axis.rate.confirm=1s",
                    "test.duration=1s",
                ],
            ),
            ("rfc2544-bursts", &["axis.length=1472", "axis.blocks.to=200", "axis.blocks.resolution=40%"]),
            ("switch-buffer", &["axis.buffer=64MB", "test.duration=2s", "test.omit=0.5s"]),
            ("buffer-burst", &["axis.buffer=256KiB", "axis.bytes.resolution=10%"]),
            ("buffer-step", &["axis.buffer=512KiB", "test.duration=1s"]),
            ("rrul", &["test.duration=1s"]),
            ("fan-in", &["axis.streams=2", "test.duration=1s", "test.omit=0s"]),
            ("fan-out", &["axis.streams=2", "test.duration=1s", "test.omit=0s"]),
            ("multicast", &["axis.rate=10M", "test.duration=1s"]),
        ] {
            let mut command = bench.command(&["run", plan, "--world", "lab", "--json"]);
            for setting in settings.iter().chain(&["repeats=1", "pause=0"]) {
                command.args(["--set", setting]);
            }
            let done = Process::start(command).finish(3 * TIMEOUT);
            // Whether the network is fast enough for the assertions is not tested here.
            assert!(matches!(done.code, Some(0 | 3)), "{plan}: {done:?}");
            let document = done.json();
            assert_eq!(document["outcome"], "completed", "{plan}");
            for point in elements(&document["points"]) {
                let measured = elements(&point["summaries"]).iter().any(|one| one["quantity"] == "goodput");
                assert!(measured, "{plan}: nothing was measured at {point}");
            }
            let method = document["plan"]["method"].is_string();
            let tables = elements(&document["tables"]);
            let has_tables =
                !tables.is_empty() && tables.iter().all(|table| !elements(&table["rows"]).is_empty());
            assert_eq!(has_tables, method, "{plan}: {tables:?}");
        }
    });
}

/// All that is sent waits in front of a slow line, without end.
const DEEP: &str = "name = \"deep\"\n[lab]\ntopology = \"pair\"\n\
    set = { \"link.a.rate\" = \"1T\", \"link.b.rate\" = \"1M\", \"link.b.nic\" = \"false\", \"link.b.buffer\" = \"1T\" }\n\
    [test]\nduration = 600\nudp = true\nupload = true\nrate = \"4G\"\nno_latency = true\n";

#[test]
#[ignore = "needs root and network namespaces"]
fn a_network_whose_packets_take_too_much_memory_ends_and_says_why() {
    let bench = PlanDir::new(DEEP);
    let mut command = bench.command(&["run", &bench.folder.file("plan.toml"), "--json"]);
    command.env("LINERATE_LAB_MEMORY", "150M");
    let done = Process::start(command).finish(3 * TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    let reason = done.json()["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("has ended: the packets in transit take"), "{done:?}");
    assert!(reason.contains("a lab may take 150 MiB"), "{reason}");
}

/// Every point sets all four hosts.
const SET: &str = "name = \"set\"\npause = 0\nrepeats = 4\n[lab]\ntopology = \"gigabit-switch-4\"\n\
    [flow.ab]\nfrom = \"a\"\nto = \"b\"\n[flow.cd]\nfrom = \"c\"\nto = \"d\"\n\
    [test]\nduration = 0.5\nupload = true\nrate = \"10M\"\nno_latency = true\n\
    [axis.mtu]\nkey = \"host.*.mtu\"\nvalues = [1400, 1500]\n";

#[test]
#[ignore = "needs root and network namespaces"]
fn a_host_that_can_be_set_no_more_fails_its_own_flows_and_the_plan_goes_on() {
    let bench = PlanDir::new(SET);
    let running = Process::start(bench.command(&["run", &bench.folder.file("plan.toml")]));
    let run = eventually("a trial is archived", || {
        let document = Process::start(bench.command(&["show", "--json"])).finish(TIMEOUT);
        let document: Value = serde_json::from_str(&document.stdout).ok()?;
        (!elements(&document["trials"]).is_empty()).then(|| document["run"].as_str().unwrap().to_owned())
    });
    signal(agent_of(&run, "b"), "KILL");
    let done = running.finish(3 * TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    let document = bench.shown();
    let trials = elements(&document["trials"]);
    assert_eq!(
        (&document["outcome"], trials.len()),
        (&"failed".into(), 8),
        "every trial was tried: {document}"
    );
    let runs = |flow: &str| {
        let all = trials.iter().flat_map(|trial| elements(&trial["runs"]));
        all.filter(|run| run["flow"] == flow).cloned().collect::<Vec<_>>()
    };
    let completed = |run: &Value| run["outcome"] == "completed";
    assert!(runs("cd").iter().all(completed), "the other pair goes on, under its settings: {document}");
    let lost: Vec<Value> = runs("ab").into_iter().filter(|run| !completed(run)).collect();
    assert!((1..8).contains(&lost.len()), "{lost:?}");
    let named = |run: &Value| run["reason"].as_str().is_some_and(|reason| reason.contains("b: "));
    assert!(lost.iter().skip(1).all(named), "{lost:?}");
    let segment = |at: usize| median(&document, at, "cd", "segment");
    assert_eq!([segment(0), segment(1)], [1348.0, 1448.0], "{document}");
    assert_eq!(bench.traces(&run), [""; 0]);
}

/// A flow that is a sweep over message sizes, on loopback and then on the link, together with a test.
const SERIES: &str = "method = \"block-size\"\npause = 0\nassert = [\"message_rate >= 1M\"]\n\
    [lab]\ntopology = \"pair\"\n\
    [flow.loop]\nfrom = \"a\"\nto = \"a\"\nseries = { sizes = \"1,1K,64K\", trials = 2, time = \"0.5s\" }\n\
    [flow.line]\nfrom = \"a\"\nto = \"b\"\nafter = \"loop\"\nseries = { stream = true, sizes = \"8K..32K\", trials = 2, time = \"0.5s\" }\n";

#[test]
#[ignore = "needs root and network namespaces"]
fn a_flow_of_a_plan_is_a_series_on_loopback_and_on_the_line() {
    let bench = PlanDir::new(SERIES);
    let done = bench.run(&["--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    let sizes = |at: usize| -> Vec<f64> {
        let rows = elements(&document["tables"][at]["rows"]).iter();
        rows.filter_map(|row| row["cells"][0]["value"].as_f64()).collect()
    };
    assert_eq!(elements(&document["tables"]).len(), 3, "{document}");
    assert_eq!((sizes(1), sizes(2)), (vec![1.0, 1024.0, 65_536.0], vec![8192.0, 16_384.0, 32_768.0]));
    assert!(median(&document, 0, "line", "message_rate") < 1e9, "the line is one of 1 Gb/s");
    let judged = elements(&document["assertions"]);
    assert_eq!(judged.len(), 2, "both series are judged, in their only direction: {judged:?}");
}

#[test]
#[ignore = "needs root and network namespaces"]
fn settings_of_hosts_hold_at_their_points() {
    let bench = PlanDir::new("");
    let mut command = bench.command(&["run", "nic-roundup", "--world", "lab", "--json"]);
    for setting in [
        "axis.mtu=1500,9000",
        "axis.congestion=cubic",
        "flow.blocks.series.time=0.5s",
        "test.duration=1s",
        "repeats=1",
        "pause=0",
    ] {
        command.args(["--set", setting]);
    }
    let done = Process::start(command).finish(3 * TIMEOUT);
    assert!(matches!(done.code, Some(0 | 3)), "{done:?}");
    let document = done.json();
    let segment = |mtu: &str| {
        let points = elements(&document["points"]);
        let has = |point: &&Value| {
            elements(&point["values"]).iter().any(|one| one["axis"] == "mtu" && one["label"] == mtu)
        };
        let point = points.iter().find(has).unwrap();
        let summaries = elements(&point["summaries"]);
        let is = |one: &&Value| one["quantity"] == "segment" && one["flow"] == "bulk";
        let found = summaries.iter().find(is).unwrap();
        found["median"].as_f64().unwrap()
    };
    assert_eq!((segment("1500"), segment("9000")), (1448.0, 8948.0), "{document}");
}
