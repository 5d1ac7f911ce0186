//! `linerate run` on real hosts: agents on this machine, each on its own port.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    AgentPair, Done, PlanDir, Process, ServeProcess, TIMEOUT, again_when_busy, elements, linerate, pause,
    retried_when_busy, signal,
};

/// A folder with a token, an archive and a plan, and agents with the token.
struct PlanTestBed {
    dir: PlanDir,
    agents: Vec<ServeProcess>,
}

impl Deref for PlanTestBed {
    type Target = PlanDir;

    fn deref(&self) -> &PlanDir {
        &self.dir
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl PlanTestBed {
    /// A plan with definitions of `hosts` hosts before its own text.
    fn new(hosts: usize, plan: &str) -> Self {
        let dir = PlanDir::new("");
        let token = dir.folder.file("token");
        std::fs::write(&token, AgentPair::SECRET).unwrap();
        let agents: Vec<ServeProcess> =
            (0..hosts).map(|_| ServeProcess::start(&["--agent-token-file", &token])).collect();
        let mut text = format!("{plan}\n");
        for (number, agent) in agents.iter().enumerate() {
            text += &format!("[host.{}]\naddress = \"127.0.0.1\"\nport = {}\n", name(number), agent.port);
        }
        std::fs::write(dir.folder.file("plan.toml"), text).unwrap();
        Self { dir, agents }
    }

    fn run_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&["run", &self.folder.file("plan.toml")]);
        command.args(["--agent-token-file", &self.folder.file("token")]).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        Process::start(self.run_command(args)).finish(TIMEOUT)
    }
}

fn name(number: usize) -> String {
    NAMES.get(number).map_or_else(|| format!("h{number}"), |name| (*name).to_owned())
}

/// Point, repeat and completeness of every trial, in chronological order.
fn trials(document: &Value) -> Vec<(String, u64, bool)> {
    let trial = |trial: &Value| {
        let complete = elements(&trial["runs"]).iter().all(|run| run["outcome"] == "completed");
        (trial["point"].as_str().unwrap().to_owned(), trial["repeat"].as_u64().unwrap(), complete)
    };
    elements(&document["trials"]).iter().map(trial).collect()
}

/// Two pairs, and a paced upload of a fifth of a second.
const PAIRS: &str = "name = \"pairs\"\npause = 0\nrepeats = 2\n\
    [test]\nduration = 0.2\nupload = true\nrate = \"20M\"\nno_latency = true\n\
    [flow.ab]\nfrom = \"a\"\nto = \"b\"\n[flow.cd]\nfrom = \"c\"\nto = \"d\"\n\
    [axis]\nlength = [\"4K\", \"16K\"]\n";

#[test]
fn a_plan_ends_with_tables_and_stays_in_the_archive() {
    retried_when_busy(|| {
        let bed = PlanTestBed::new(
            4,
            &PAIRS.replace("pause = 0", "pause = 0\nassert = [\"goodput > 0\", \"fairness > 0\"]"),
        );
        let report = bed.folder.file("report.md");
        let done = bed.run(&["--json", "--report", &report]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let document = done.json();
        assert_eq!(
            (&document["schema"], &document["outcome"]),
            (&"linerate.plan-result/2".into(), &"completed".into())
        );
        let points = elements(&document["points"]);
        assert_eq!(points.len(), 2);
        for point in points {
            for flow in ["ab", "cd"] {
                let is = |one: &&Value| one["flow"] == flow && one["quantity"] == "goodput";
                let goodput = elements(&point["summaries"]).iter().find(is).unwrap();
                assert_eq!((elements(&goodput["values"]).len(), &goodput["unit"]), (2, &"bit/s".into()));
                let median = goodput["median"].as_f64().unwrap();
                assert!((5e6..60e6).contains(&median), "{goodput}");
            }
        }
        assert_eq!(trials(&document).len(), 4);
        let judged = elements(&document["assertions"]);
        assert!(judged.len() == 8 && judged.iter().all(|one| one["holds"] == true), "{judged:?}");
        // All events of all runs share one time line, and the runs of a trial started together.
        for trial in elements(&document["trials"]) {
            let began = |run: &Value| run["began_ns"].as_u64().unwrap();
            let runs = elements(&trial["runs"]);
            assert!(began(&runs[0]).abs_diff(began(&runs[1])) < 1_000_000_000, "{trial}");
            assert!(
                runs.iter().all(|run| run["start_error_ns"].is_u64() && run["clock_error_ns"].is_u64()),
                "{trial}"
            );
        }
        let markdown = std::fs::read_to_string(report).unwrap();
        assert!(markdown.contains("| length |") && markdown.contains("holds: goodput > 0"), "{markdown}");

        assert_eq!(bed.shown(), document, "the archive says the same");
        let history = bed.done(&["history", "--json"]).json();
        let runs = elements(&history["runs"]);
        assert!(runs.len() == 1 && runs[0]["kind"] == "plan" && runs[0]["target"] == "pairs", "{history}");
        let run = document["run"].as_str().unwrap();
        let all = bed.done(&["history", "--all", "--json"]).json();
        let parts = bed.done(&["history", "--plan", run, "--json"]).json();
        assert_eq!((elements(&all["runs"]).len(), elements(&parts["runs"]).len()), (9, 8));
        let point = bed.done(&["show", run, "--point", "length=4K", "--json"]).json();
        assert_eq!(elements(&point["runs"]).len(), 4, "two trials of two flows");
        assert!(bed.done(&["show", run]).stdout.contains("Assertions"));
        let csv = bed.done(&["export", run, "--format", "csv"]).stdout;
        assert!(
            csv.starts_with("point,length,flow,direction,quantity") && csv.contains(",goodput,bit/s,2,"),
            "{csv}"
        );
        let unknown = bed.done(&["show", run, "--point", "length=5K"]);
        assert!(unknown.code == Some(2) && unknown.stderr.contains("no point"), "{unknown:?}");
    });
}

#[test]
fn a_failed_assertion_is_reported_with_what_was_found_and_ends_with_3() {
    let bed = PlanTestBed::new(
        2,
        "name = \"fast\"\nassert = [\"goodput >= 1G\"]\n[test]\nduration = 0.2\nupload = true\nrate = \"10M\"\n",
    );
    let done = bed.run(&[]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(
        done.stdout.contains("FAILS: goodput >= 1G") && done.stdout.contains("but required >= 1.000 Gb/s"),
        "{done:?}"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_measured() {
    let bed = PlanTestBed::new(2, "name = \"pair\"\n[test]\nduration = 0.2\nupload = true\n");
    let silent = {
        let gone = ServeProcess::start(&[]);
        gone.port.to_string()
    };
    let wrong = "host.b.port=".to_owned() + &silent;
    for (args, words) in [
        (["--set", &wrong].as_slice(), "b: "),
        (&["--set", "test.congestion=nonesuch"], "does not have the congestion control 'nonesuch'"),
        (&["--max-time", "1"], "--max-time"),
        (&["--set", "host.a.congestion=nonesuch"], "nonesuch"),
        (&["--world", "lab"], "--topology"),
        (&["--set", "test.widnow=1"], "did you mean"),
        (&["--report", "report.pdf"], ".md"),
        (&["--resume"], "no unfinished run"),
    ] {
        let done = bed.run(args);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{args:?}: {done:?}");
    }
    let mut command = bed.command(&["run", &bed.folder.file("plan.toml")]);
    command.args(["--world", "hosts"]);
    let tokenless = Process::start(command).finish(TIMEOUT);
    assert!(tokenless.code == Some(2) && tokenless.stderr.contains("--agent-token-file"), "{tokenless:?}");
    let history = bed.done(&["history", "--all", "--json"]).json();
    assert_eq!(elements(&history["runs"]).len(), 0, "{history}");
    assert!(bed.agents.iter().all(|agent| agent.events("begun").is_empty()));
}

#[test]
fn a_host_that_dies_marks_its_points_and_the_others_go_on() {
    let mut bed = PlanTestBed::new(4, &PAIRS.replace("repeats = 2", "repeats = 4"));
    let running = Process::start(bed.run_command(&[]));
    bed.agents[1].await_events("begun", 2);
    let dead = bed.agents.remove(1);
    dead.signal("KILL");
    let (token, port) = (bed.folder.file("token"), dead.port.to_string());
    let done = running.finish(TIMEOUT);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains("failed") && done.stdout.contains("Missing"), "{done:?}");
    let document = bed.shown();
    assert_eq!(document["outcome"], "failed");
    assert_eq!(elements(&document["trials"]).len(), 8, "every trial was tried");
    let completed = |flow: &str| {
        let runs = elements(&document["trials"]).iter().flat_map(|trial| elements(&trial["runs"]));
        runs.filter(|run| run["flow"] == flow && run["outcome"] == "completed").count()
    };
    assert_eq!(completed("cd"), 8, "the other pair goes on");
    assert!((1..8).contains(&completed("ab")), "{document}");

    // The host is back: only what is missing is measured.
    drop(dead);
    let mut command = linerate();
    command.args(["serve", "--json", "--agent-token-file", &token, "--port", &port]);
    let again = ServeProcess::from(command);
    let done = bed.run(&["--resume"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = bed.shown();
    assert_eq!((&document["outcome"], &document["resumed"]), (&"completed".into(), &1.into()));
    let complete: Vec<_> = trials(&document).into_iter().filter(|(.., complete)| *complete).collect();
    let once: BTreeSet<_> = complete.iter().cloned().collect();
    assert_eq!((complete.len(), once.len()), (8, 8));
    drop(again);
}

#[test]
fn a_coordinator_killed_at_any_moment_goes_on_without_measuring_twice() {
    let bed = PlanTestBed::new(4, &PAIRS.replace("repeats = 2", "repeats = 3"));
    let mut begun = 0;
    for (number, wait_ms) in [10, 250, 600].into_iter().enumerate() {
        let resume: &[&str] = if number == 0 { &[] } else { &["--resume"] };
        let running = Process::start(bed.run_command(resume));
        let so_far = bed.agents[1].events("begun").len();
        begun = begun.max(so_far);
        bed.agents[1].await_events("begun", so_far + 1);
        pause(Duration::from_millis(wait_ms));
        signal(running.pid(), "KILL");
        drop(running);
    }
    let killed = bed.shown();
    assert!(killed["outcome"].is_null(), "the archive is readable: {killed}");
    let done = bed.run(&["--resume"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = bed.shown();
    assert_eq!((&document["outcome"], &document["run"]), (&"completed".into(), &killed["run"]));
    let all = trials(&document);
    let once: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), once.len()), (6, 6), "two points, three times, each once: {all:?}");
    let goodput = |point: &Value| {
        let is = |one: &&Value| one["flow"] == "ab" && one["quantity"] == "goodput";
        elements(&point["summaries"]).iter().find(is).map(|one| elements(&one["values"]).len())
    };
    assert_eq!(elements(&document["points"]).iter().map(goodput).collect::<Vec<_>>(), [Some(3), Some(3)]);
    assert!(bed.run(&["--resume"]).stderr.contains("no unfinished run"));
}

#[test]
fn an_interrupted_plan_prints_what_it_has_and_goes_on_by_its_name_alone() {
    let bed = PlanTestBed::new(4, &PAIRS.replace("repeats = 2", "repeats = 9"));
    let running = Process::start(bed.run_command(&["--set", "test.duration=0.4"]));
    bed.agents[1].await_events("begun", 2);
    let second = bed.run(&["--resume"]);
    assert!(second.code == Some(2) && second.stderr.contains("in another process"), "{second:?}");
    signal(running.pid(), "INT");
    let done = running.finish(TIMEOUT);
    assert_eq!(done.code, Some(130), "{done:?}");
    assert!(done.stdout.contains("interrupted") && done.stdout.contains("--resume"), "{done:?}");
    let run = bed.shown()["run"].as_str().unwrap().to_owned();
    // The plan and the overrides are in the archive.
    std::fs::remove_file(bed.folder.file("plan.toml")).unwrap();
    let token = bed.folder.file("token");
    let unknown = bed.done(&["run", "--resume", "nonesuch", "--agent-token-file", &token]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("plan nonesuch"), "{unknown:?}");
    let done = bed.done(&["run", "--resume", "pairs", "--agent-token-file", &token, "--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    assert_eq!((&document["outcome"], document["run"].as_str()), (&"completed".into(), Some(run.as_str())));
    let complete: Vec<_> = trials(&document).into_iter().filter(|(.., complete)| *complete).collect();
    let once: BTreeSet<_> = complete.iter().cloned().collect();
    assert_eq!((complete.len(), once.len()), (18, 18));
    let spec = bed.done(&["show", &run, "--point", "length=4K", "--json"]).json();
    let one = elements(&spec["runs"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        bed.done(&["show", &one, "--json"]).json()["run"]["spec"]["traffic"]["duration_ns"],
        400_000_000
    );
}

#[test]
fn a_search_ends_at_the_largest_value_that_passes() {
    let bed = PlanTestBed::new(
        2,
        "name = \"search\"\npause = 0\n[test]\nupload = true\nudp = true\nduration = 1\nno_latency = true\nlength = 1000\n\
         [axis.rate]\nfrom = \"1M\"\nto = \"9M\"\nresolution = \"20%\"\npass = \"goodput <= 4M\"\n",
    );
    let done = bed.run(&["--json"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    let found = elements(&document["points"][0]["found"]);
    assert_eq!(found.len(), 1, "{document}");
    let number = found[0]["number"].as_f64().unwrap();
    assert!((1e6..5e6).contains(&number), "{found:?}");
    let steps = elements(&document["trials"]);
    assert!(steps.len() >= 3 && steps.iter().all(|trial| trial["step"]["number"].is_f64()), "{steps:?}");
}

#[test]
fn the_stream_has_the_log_of_the_plan_and_of_its_runs() {
    let bed =
        PlanTestBed::new(2, "name = \"stream\"\n[test]\nduration = 0.2\nupload = true\nrate = \"10M\"\n");
    let done = bed.run(&["--json-stream"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let events: Vec<Value> = done.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let runs: BTreeSet<&str> = events.iter().map(|event| event["run"].as_str().unwrap()).collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let numbers: Vec<u64> = events
            .iter()
            .filter(|event| event["run"] == run)
            .map(|event| event["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "{run} has gaps");
    }
    let kinds = |kind: &str| events.iter().filter(|event| event["body"]["kind"] == kind).count();
    assert_eq!((kinds("plan_started"), kinds("trial_ended"), kinds("run_started")), (1, 1, 1));
}

#[test]
#[ignore = "needs the time and the memory of 64 servers"]
fn sixty_four_hosts_are_measured_in_pairs_at_once() {
    let mut plan = "name = \"crowd\"\npause = 0\n[test]\nduration = 1\nupload = true\nrate = \"1M\"\nno_latency = true\n".to_owned();
    for pair in 0..32 {
        plan += &format!("[flow.f{pair}]\nfrom = \"{}\"\nto = \"{}\"\n", name(2 * pair), name(2 * pair + 1));
    }
    let bed = PlanTestBed::new(64, &plan);
    let done = Process::start(bed.run_command(&["--json"])).finish(3 * TIMEOUT);
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    let runs = elements(&document["trials"][0]["runs"]);
    assert!(runs.len() == 32 && runs.iter().all(|run| run["outcome"] == "completed"), "{runs:?}");
    let began: Vec<u64> = runs.iter().map(|run| run["start_error_ns"].as_u64().unwrap()).collect();
    eprintln!("64 hosts: start errors up to {} us", began.iter().max().unwrap() / 1000);
}

#[test]
fn what_is_requested_can_be_varied_and_what_it_took_can_be_asserted() {
    let plan = "name = \"requests\"\npause = 0\n\
        assert = [\"transactions > 1\", \"transaction_p999 < 60s\", \"transactions_failed == 0\"]\n\
        [test]\nduration = 0.2\nworkload = \"rr\"\n\
        [flow.ab]\nfrom = \"a\"\nto = \"b\"\n\
        [axis]\nresponse_size = [\"1\", \"10K\"]\n";
    let bed = PlanTestBed::new(2, plan);
    // A response has two seconds, which a busy host may need for something else.
    let done = again_when_busy(|| bed.run(&["--json"]), |done| done.code == Some(0));
    assert_eq!(done.code, Some(0), "{done:?}");
    let document = done.json();
    assert_eq!(elements(&document["points"]).len(), 2);
    assert!(done.stdout.contains("transaction_p99"), "{}", done.stdout);
}
