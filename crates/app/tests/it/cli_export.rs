//! `linerate export`: how the format is chosen, and tables of samples in the programs that analysts read them with.

use std::process::Command;

use linerate_archive::Store;
use serde_json::{Value, json};

use crate::support::{
    AgentPair, Done, PlanDir, Process, ServeProcess, TIMEOUT, TestDir, elements, fixtures, has_python_peers,
    python_peer,
};

/// Reads a table with both programs, and compares it with the event logs it is made from.
fn read(table: &str, logs: &[String]) -> Value {
    let mut command = python_peer("python");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/read_parquet.py")).arg(table).args(logs);
    let done = Process::start(command).finish(TIMEOUT);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    done.json()
}

fn assert_done(done: &Done) {
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn analysts_read_the_samples_of_a_run() {
    if !has_python_peers("analysts_read_the_samples_of_a_run") {
        return;
    }
    let (place, server) = (TestDir::new(), ServeProcess::start(&[]));
    let target = format!("127.0.0.1:{}", server.port);
    assert_done(&place.run(&["test", &target, "-t", "1", "--no-latency", "--report", "report.parquet"]));
    assert_done(&place.run(&["export", "-o", "log.jsonl"]));
    assert_done(&place.run(&["export", "-o", "export.parquet"]));
    let [log, report, exported] =
        ["log.jsonl", "report.parquet", "export.parquet"].map(|name| place.folder.file(name));
    let found = read(&exported, std::slice::from_ref(&log));
    // Two flows of a second have ten samples at either side, with many metrics.
    assert!(found["rows"].as_u64().unwrap() > 200, "{found}");
    let shown = place.json(&["show", "--json"]);
    let metadata = &found["metadata"];
    assert_eq!(metadata["linerate.run"], shown["run"]["id"], "{found}");
    assert_eq!(
        (&metadata["linerate.schema"], &metadata["linerate.target"]),
        (&json!("linerate.samples/1"), &shown["run"]["target"])
    );
    assert_eq!((&found["points"], &found["trials"]), (&json!([]), &json!([])));
    let types =
        ["metric", "value", "t_ns", "outside", "trial"].map(|name| found["columns"][name].as_str().unwrap());
    assert_eq!(types, ["string", "double", "int64", "bool", "int64"]);
    assert_eq!(std::fs::read(report).unwrap(), std::fs::read(exported).unwrap(), "--report writes the same");
}

#[test]
fn analysts_read_the_samples_of_a_plan_with_all_its_runs() {
    if !has_python_peers("analysts_read_the_samples_of_a_plan_with_all_its_runs") {
        return;
    }
    let agent_token = PlanDir::new("");
    let token = agent_token.folder.file("token");
    std::fs::write(&token, AgentPair::SECRET).unwrap();
    let agents = ["a", "b"].map(|host| (host, ServeProcess::start(&["--agent-token-file", &token])));
    let mut plan = "name = \"tables\"\npause = 0\nrepeats = 2\n\
        [test]\nduration = 0.3\nupload = true\nrate = \"20M\"\nno_latency = true\n\
        [flow.ab]\nfrom = \"a\"\nto = \"b\"\n[axis]\nlength = [\"4K\", \"16K\"]\n"
        .to_owned();
    for (host, agent) in &agents {
        plan += &format!("[host.{host}]\naddress = \"127.0.0.1\"\nport = {}\n", agent.port);
    }
    let dir = PlanDir::new(&plan);
    let [plan, table, log] = ["plan.toml", "table.parquet", "plan.jsonl"].map(|name| dir.folder.file(name));
    assert_done(&dir.done(&["run", &plan, "--agent-token-file", &token, "--report", &table]));
    assert_done(&dir.done(&["export", "-o", &log]));
    let shown = dir.shown();
    let runs: Vec<&str> = elements(&shown["trials"])
        .iter()
        .flat_map(|trial| elements(&trial["runs"]))
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(runs.len(), 4, "{shown}");
    let mut logs = vec![log];
    for run in &runs {
        logs.push(dir.folder.file(&format!("{run}.jsonl")));
        assert_done(&dir.done(&["export", run, "-o", logs.last().unwrap()]));
    }
    let found = read(&table, &logs);
    assert_eq!(found["metadata"]["linerate.plan"], "tables");
    assert_eq!((&found["plan_flows"], &found["trials"]), (&json!(["ab"]), &json!([0, 1])));
    assert_eq!(elements(&found["points"]).len(), 2, "{found}");

    // A run that was deleted is left out, and named.
    let gone = runs[0];
    let mut archive = linerate_archive::open(&dir.folder.file("archive.sqlite")).unwrap();
    archive.delete(gone).unwrap();
    let done = dir.done(&["export", "-o", &table]);
    assert_done(&done);
    assert!(done.stderr.contains(gone) && done.stderr.contains("left out"), "{done:?}");
    logs.remove(1);
    assert_eq!(read(&table, &logs)["metadata"]["linerate.missing_runs"], gone);
}

#[test]
fn the_name_of_the_file_selects_the_format() {
    let place = TestDir::new();
    let file = fixtures().join("results/iperf3/v321-udp-loss.json").display().to_string();
    assert_done(&place.run(&["import", &file]));
    let begins = |file: &str, args: &[&str]| {
        assert_done(&place.run(&[&["export", "-o", file], args].concat()));
        let bytes = std::fs::read(place.folder.file(file)).unwrap();
        String::from_utf8_lossy(&bytes[..4]).into_owned()
    };
    assert_eq!(begins("a.parquet", &[]), "PAR1");
    assert_eq!(begins("a.csv", &[]), "run,");
    assert_eq!(begins("a.log", &[]), "{\"ru");
    assert_eq!(begins("a", &[]), "{\"ru");
    assert_eq!(begins("a.csv", &["-f", "parquet"]), "PAR1", "a flag is more than a name");
    let printed = place.run(&["export", "-f", "parquet", "-o", "-"]).stdout;
    assert!(printed.starts_with("PAR1") && !place.folder.path().join("-").exists(), "{printed:?}");
    // What a format cannot contain is an error of the command line.
    let junit = place.run(&["export", "-f", "junit"]);
    assert!(junit.code == Some(2) && junit.stderr.contains("a single run has no assertions"), "{junit:?}");
    let chart = place.run(&["export", "-f", "svg", "--chart", "99"]);
    assert!(chart.code == Some(2) && chart.stderr.contains("no chart 99"), "{chart:?}");
}

#[test]
fn no_terminal_gets_a_binary_table() {
    let place = TestDir::new();
    let file = fixtures().join("results/iperf3/v321-udp-loss.json").display().to_string();
    assert_done(&place.run(&["import", &file]));
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command"]);
    command.arg(format!("{} export --format parquet", env!("CARGO_BIN_EXE_linerate"))).arg("/dev/null");
    command.env("LINERATE_ARCHIVE", place.folder.file("archive.sqlite"));
    let done = Process::start(command).finish(TIMEOUT);
    assert!(done.code == Some(2) && !done.stdout.contains("PAR1"), "{done:?}");
    assert!(done.stdout.contains("stdout is a terminal; give --output FILE"), "{done:?}");
}
