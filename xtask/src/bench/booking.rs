//! A calendar with 10,000 hosts, in both databases: how fast it books a day of tests at once, and single ones.

use std::time::Duration;

use linerate_theory::stats::order::percentile;
use serde_json::Value;

use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::{BenchContext, BenchOutcome, report};
use crate::cargo;
use crate::process::ChildProcess;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 6] = [
    "booking-rate",
    "booking-p99",
    "booking-day",
    "booking-postgres-rate",
    "booking-postgres-p99",
    "booking-postgres-day",
];

/// Hosts of a full measurement, each of which measures hourly.
const HOSTS: u32 = 10_000;
/// Hosts of a quick one.
const QUICK_HOSTS: u32 = 500;
/// Tests that are added one after the other.
const SINGLE: u32 = 2_000;

/// Timeout of one database.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Runs a second that a calendar has to book at least.
const LEAST_RATE: f64 = 500.0;
/// Milliseconds that all but one in a hundred bookings of a single test may take.
const MOST_SINGLE: f64 = 20.0;
/// Seconds that the day may take.
const MOST_DAY: f64 = 60.0;

/// All figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let hosts = if bed.quick { QUICK_HOSTS } else { HOSTS };
    let [one, two, three, four, five, six] = NAMES;
    let mut figures = measure(bed, "sqlite", hosts, [one, two, three])?;
    figures.extend(measure(bed, "postgres", hosts, [four, five, six])?);
    Ok(BenchOutcome::Measured(figures))
}

/// What the example of the fleet prints.
fn measure(
    bed: &BenchContext,
    database: &str,
    hosts: u32,
    [rate, p99, day]: [&'static str; 3],
) -> Result<Vec<BenchFigure>, String> {
    report::progress(&format!("booking: {hosts} hosts in {database}"));
    let [hosts, single] = [hosts, SINGLE].map(|number| number.to_string());
    let command = cargo::release_example("linerate-fleet", "booking", &[database, &hosts, &single]);
    let output = ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?;
    let found: Value =
        serde_json::from_slice(&output).map_err(|e| format!("the measurement printed no JSON: {e}"))?;
    let number = |name: &str| found[name].as_f64().ok_or_else(|| format!("no {name} in {found}"));
    let single: Option<Vec<f64>> =
        found["single_ms"].as_array().and_then(|all| all.iter().map(Value::as_f64).collect());
    let single = single.unwrap_or_default();
    let quantile = |share: f64| percentile(&single, share).ok_or("no single test was booked");
    let (runs, seconds) = (number("day_runs")?, number("day_seconds")?);
    let figure = |name, unit, goal, value: f64, note: String| {
        FigureReadings { all: vec![value], note: Some(note) }.figure(name, unit, goal)
    };
    Ok(vec![
        figure(
            rate,
            "runs/s",
            BenchGoal::AtLeast(LEAST_RATE),
            runs / seconds,
            format!("the day of {hosts} hosts"),
        )?,
        figure(
            p99,
            "ms",
            BenchGoal::Below(MOST_SINGLE),
            quantile(0.99)?,
            format!("of {SINGLE} tests that a user adds, each booked alone; median {:.2} ms", quantile(0.5)?),
        )?,
        figure(
            day,
            "s",
            BenchGoal::Below(MOST_DAY),
            seconds,
            format!(
                "{runs} runs of {hosts} hosts, each hourly, with groups of 100 of which half may measure"
            ),
        )?,
    ])
}
