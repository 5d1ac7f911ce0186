//! 10,000 agents that lose the broker at once and come back, and that get their first calendars.

use std::time::Duration;

use serde_json::Value;

use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::{BenchContext, BenchOutcome, report};
use crate::cargo;
use crate::process::ChildProcess;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 5] = [
    "storm-answers",
    "storm-lag",
    "storm-first-calendars",
    "storm-coordinator-cpu",
    "storm-coordinator-memory",
];

/// Agents of a full measurement, and of a quick one.
const AGENTS: u32 = 10_000;
const QUICK_AGENTS: u32 = 500;
/// Processes that the agents are spread over: each of them has several files open.
const PROCESSES: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(1200);
/// Seconds until all agents have an answer again.
const MOST_SECONDS: f64 = 60.0;

/// All figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let agents = if bed.quick { QUICK_AGENTS } else { AGENTS };
    report::progress(&format!("storm: {agents} agents with nats-server and PostgreSQL"));
    let [agents, processes] = [agents, PROCESSES].map(|number| number.to_string());
    let command = cargo::release_example("linerate-fleet", "storm", &[&agents, &processes]);
    let output = ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?;
    let found: Value =
        serde_json::from_slice(&output).map_err(|e| format!("the measurement printed no JSON: {e}"))?;
    let number = |name: &str| found[name].as_f64().ok_or_else(|| format!("no {name} in {found}"));
    let [answers, lag, calendars, cpu, memory] = NAMES;
    Ok(BenchOutcome::Measured(vec![
        figure(
            answers,
            ("s", BenchGoal::Below(MOST_SECONDS)),
            number("storm_seconds")?,
            format!(
                "from the start of a killed broker until all {agents} agents had an answer; {} messages were dropped",
                number("dropped_messages")?
            ),
        )?,
        figure(
            lag,
            ("s", BenchGoal::Nothing),
            number("storm_lag_seconds")?,
            "the longest time from a first report after that to an answer".to_owned(),
        )?,
        figure(
            calendars,
            ("s", BenchGoal::Nothing),
            number("first_calendar_seconds")?,
            format!(
                "from the start of everything; with the runs of 12 h that are booked meanwhile {:.1} s",
                number("first_runs_seconds")?
            ),
        )?,
        figure(
            cpu,
            ("s", BenchGoal::Nothing),
            number("storm_cpu_seconds")?,
            format!("processor time for the storm; otherwise {:.1} % of a core", number("idle_cpu_percent")?),
        )?,
        figure(memory, ("MB", BenchGoal::Nothing), number("coordinator_peak_mb")?, "at most".to_owned())?,
    ]))
}

fn figure(
    name: &'static str,
    (unit, goal): (&'static str, BenchGoal),
    value: f64,
    note: String,
) -> Result<BenchFigure, String> {
    FigureReadings { all: vec![value], note: Some(note) }.figure(name, unit, goal)
}
