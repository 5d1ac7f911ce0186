//! An archive with many runs, in both databases: the rate of writing, its size, and how long questions take.

use std::time::Duration;

use serde_json::Value;

use super::figure::{BenchFigure, BenchGoal, FigureReadings};
use super::spread::Spread;
use super::{BenchContext, BenchOutcome, report};
use crate::cargo;
use crate::process::ChildProcess;

/// Names of the figures, in the order in which they are measured.
pub(super) const NAMES: [&str; 7] = [
    "archive-ingest",
    "archive-size",
    "archive-list-time",
    "archive-compare-time",
    "archive-postgres-ingest",
    "archive-postgres-list-time",
    "archive-postgres-compare-time",
];

/// Runs in the archive of a full measurement: about 56 million readings.
const RUNS: u32 = 100_000;
/// Runs of a quick one.
const QUICK_RUNS: u32 = 2_000;

/// Timeout of one database; most of it is for making the events.
const TIMEOUT: Duration = Duration::from_secs(1800);

/// Readings a second that an archive has to take at least.
const LEAST_INGEST: f64 = 200_000.0;
/// Share of the logs' text that an archive may take, in percent.
const MOST_SIZE: f64 = 25.0;
/// Milliseconds that the slowest list may take, and a comparison of ten runs.
const MOST_LIST: f64 = 50.0;
const MOST_COMPARE: f64 = 200.0;
/// How many times slower than the file a server may take readings.
const MOST_SLOWER: f64 = 3.0;

/// All figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let runs = if bed.quick { QUICK_RUNS } else { RUNS };
    let file = measure(bed, "sqlite", runs)?;
    let readings = number(&file, "readings")?;
    let of_runs = |what: &str| Some(format!("{what}; {runs} runs, {:.1} million readings", readings / 1e6));
    let rate = readings / number(&file, "ingest_seconds")?;
    let size = number(&file, "archive_bytes")? / number(&file, "text_bytes")? * 100.0;
    let figure = |name, unit, goal, value: f64, note| {
        FigureReadings { all: vec![value], note: of_runs(note) }.figure(name, unit, goal)
    };
    let mut figures = vec![
        figure(NAMES[0], "readings/s", BenchGoal::AtLeast(LEAST_INGEST), rate, "SQLite")?,
        figure(
            NAMES[1],
            "% of the text",
            BenchGoal::Below(MOST_SIZE),
            size,
            "SQLite, next to the logs as JSON",
        )?,
    ];
    figures.extend(questions(&file, [NAMES[2], NAMES[3]])?);
    let server = measure(bed, "postgres", runs)?;
    let slower = rate / (number(&server, "readings")? / number(&server, "ingest_seconds")?);
    let note = "time compared with that of SQLite; a server on this host, over a Unix socket";
    figures.push(figure(NAMES[4], "x", BenchGoal::Below(MOST_SLOWER), slower, note)?);
    figures.extend(questions(&server, [NAMES[5], NAMES[6]])?);
    Ok(BenchOutcome::Measured(figures))
}

/// The slowest list, and a comparison.
fn questions(found: &Value, [list, compare]: [&'static str; 2]) -> Result<[BenchFigure; 2], String> {
    let times = |value: &Value| -> Option<Vec<f64>> { value.as_array()?.iter().map(Value::as_f64).collect() };
    let lists = found["list_ms"].as_object().ok_or("no lists were measured")?;
    let slowest = lists.iter().filter_map(|(name, all)| Some((name, times(all)?)));
    let median = |all: &[f64]| Spread::of(all.to_vec()).map_or(f64::INFINITY, |all| all.median());
    let slowest = slowest.max_by(|(_, a), (_, b)| median(a).total_cmp(&median(b)));
    let (name, all) = slowest.ok_or("no list has times")?;
    let note = Some(format!("the slowest of {} lists: {name}", lists.len()));
    let list = FigureReadings { all, note }.figure(list, "ms", BenchGoal::Below(MOST_LIST))?;
    let all = times(&found["compare_ms"]).ok_or("no comparison was measured")?;
    let note = Some("ten runs".to_owned());
    Ok([list, FigureReadings { all, note }.figure(compare, "ms", BenchGoal::Below(MOST_COMPARE))?])
}

fn number(found: &Value, name: &str) -> Result<f64, String> {
    found[name].as_f64().ok_or_else(|| format!("no {name} in {found}"))
}

/// What the example of the archive prints.
fn measure(bed: &BenchContext, database: &str, runs: u32) -> Result<Value, String> {
    report::progress(&format!("archive: {runs} runs in {database}"));
    let command = cargo::release_example("linerate-archive", "measure", &[database, &runs.to_string()]);
    let output = ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?;
    serde_json::from_slice(&output).map_err(|e| format!("the measurement printed no JSON: {e}"))
}
