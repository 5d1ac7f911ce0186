//! A long run as a Parquet table: the rate of writing, and its size.

use std::time::Duration;

use serde_json::Value;

use super::figure::{BenchGoal, FigureReadings};
use super::{BenchContext, BenchOutcome, report};
use crate::cargo;
use crate::process::ChildProcess;

/// Names of the figures.
pub(super) const NAMES: [&str; 2] = ["parquet-rate", "parquet-row-size"];

/// Rows of the table, and of that of a quick measurement.
const ROWS: u64 = 10_000_000;
const QUICK_ROWS: u64 = 1_000_000;

/// How often it is written.
const TIMES: u32 = 5;

/// Most of it is for compiling, and for making the run.
const TIMEOUT: Duration = Duration::from_secs(1200);

/// Rows a second that are written at least: 10 million in 5 s.
const LEAST_RATE: f64 = 2e6;
/// Bytes that a row may take.
const MOST_SIZE: f64 = 6.0;

/// Both figures.
pub(super) fn run(bed: &BenchContext) -> Result<BenchOutcome, String> {
    let rows = if bed.quick { QUICK_ROWS } else { ROWS };
    report::progress(&format!("a Parquet table of {rows} rows"));
    let arguments = [&*rows.to_string(), &*TIMES.to_string()];
    let command = cargo::release_example("linerate-report", "samples_table", &arguments);
    let output = ChildProcess::start(bed, &command)?.finish(TIMEOUT, |_| ())?;
    let found: Value =
        serde_json::from_slice(&output).map_err(|e| format!("the measurement printed no JSON: {e}"))?;
    let number = |value: &Value| value.as_f64().ok_or_else(|| format!("no number in {found}"));
    let (rows, bytes) = (number(&found["rows"])?, number(&found["bytes"])?);
    let seconds = found["seconds"].as_array().ok_or_else(|| format!("no seconds in {found}"))?;
    let rates = seconds.iter().map(|time| Ok(rows / number(time)?)).collect::<Result<Vec<f64>, String>>()?;
    let note = format!("{:.1} million rows, with the digest of the log", rows / 1e6);
    let rate = FigureReadings { all: rates, note: Some(note) };
    let size = FigureReadings::once(
        bytes / rows,
        "samples every 100 ms, whose readings vary by an eighth".to_owned(),
    );
    Ok(BenchOutcome::Measured(vec![
        rate.figure(NAMES[0], "rows/s", BenchGoal::AtLeast(LEAST_RATE))?,
        size.figure(NAMES[1], "bytes", BenchGoal::Below(MOST_SIZE))?,
    ]))
}
