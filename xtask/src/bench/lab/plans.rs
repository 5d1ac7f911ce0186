//! Overhead of a plan in addition to its measuring time, and how precisely its flows start.

use std::time::Duration;

use linerate_sock::clock;
use serde_json::Value;

use super::super::BenchContext;
use super::super::figure::FigureReadings;
use super::super::tools::TIMEOUT;
use crate::process::ChildProcess;
use crate::temp_folder::TempFolder;

/// Duration of each trial of the plan with many points, seconds.
const TRIAL_S: f64 = 0.01;

/// Runs a plan in the lab; returns its result, and the duration of the whole command.
fn carried_out(bed: &BenchContext, words: &[&str], longest: Duration) -> Result<(Value, Duration), String> {
    let linerate = bed.linerate.display().to_string();
    let words = ["run", "--world", "lab", "--quiet", "--json"].iter().chain(words);
    let command: Vec<String> =
        std::iter::once(linerate).chain(words.map(|word| (*word).to_owned())).collect();
    let start = clock::now();
    let output = ChildProcess::start(bed, &command)?.finish(longest + TIMEOUT, |_| ())?;
    let whole = clock::now().since(start);
    let document =
        serde_json::from_slice(&output).map_err(|error| format!("linerate run printed no JSON: {error}"))?;
    Ok((document, whole))
}

/// The runs of all trials, in chronological order.
fn runs(document: &Value) -> impl Iterator<Item = &Value> {
    let trials = document["trials"].as_array().into_iter().flatten();
    trials.flat_map(|trial| trial["runs"].as_array().into_iter().flatten())
}

/// Time from one start of a measurement to the next, in units of the measured time. Excludes creating and
/// removing the network. The small window limits the data in the sender's buffer at the end, which is received
/// and measured after the time.
pub(super) fn overhead(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let points: u32 = if bed.quick { 100 } else { 1000 };
    let folder = TempFolder::create("bench-plan")?;
    // The points differ by a length that makes no difference.
    let lengths: Vec<String> = (0..points).map(|point| (65_536 + 64 * point).to_string()).collect();
    let plan = format!(
        "name = \"short\"\npause = 0\n[lab]\ntopology = \"pair\"\n[test]\nduration = {TRIAL_S}\nupload = true\n\
         no_latency = true\nwindow = \"64K\"\n[axis]\nlength = [{}]\n",
        lengths.join(", ")
    );
    let file = folder.file("short.toml").display().to_string();
    std::fs::write(&file, plan).map_err(|error| format!("{file}: {error}"))?;
    let archive = folder.file("archive.sqlite").display().to_string();
    let longest = Duration::from_millis(200) * points;
    let (document, whole) = carried_out(bed, &[&file, "--archive", &archive], longest)?;
    let note = format!("{points} points of 10 ms; the whole command {:.1} s", whole.as_secs_f64());
    Ok(vec![FigureReadings::once(period(&document, points)? / TRIAL_S, note)])
}

/// Mean time between two starts, seconds.
fn period(document: &Value, points: u32) -> Result<f64, String> {
    let began: Option<Vec<f64>> = runs(document).map(|run| run["began_ns"].as_f64()).collect();
    let began = began.ok_or("a trial did not begin")?;
    match began.as_slice() {
        [first, .., last] if began.len() == points as usize => {
            Ok((last - first) / 1e9 / f64::from(points - 1))
        }
        _ => Err(format!("{} trials of {points}", began.len())),
    }
}

/// Start error of the flows of two pairs that should start together.
pub(super) fn start_error(bed: &BenchContext) -> Result<Vec<FigureReadings>, String> {
    let folder = TempFolder::create("bench-plan")?;
    let archive = folder.file("archive.sqlite").display().to_string();
    let repeats = if bed.quick { 10 } else { 40 };
    // Two pairs at once, and no assertions: their rates are another figure.
    let plan = format!(
        "name = \"starts\"\nrepeats = {repeats}\npause = 0.2\n[lab]\ntopology = \"gigabit-switch-4\"\n\
         [flow.ab]\nfrom = \"a\"\nto = \"b\"\n[flow.cd]\nfrom = \"c\"\nto = \"d\"\n\
         [test]\nduration = 1\nupload = true\n"
    );
    let file = folder.file("starts.toml").display().to_string();
    std::fs::write(&file, plan).map_err(|error| format!("{file}: {error}"))?;
    let (document, _) = carried_out(bed, &[&file, "--archive", &archive], Duration::from_secs(300))?;
    let all = start_errors(&document)?;
    let note = format!("{} starts of two pairs; the worst is the figure's upper end", all.len());
    Ok(vec![FigureReadings { all, note: Some(note) }])
}

/// Start errors of all flows of a plan, milliseconds.
fn start_errors(document: &Value) -> Result<Vec<f64>, String> {
    let error = |run: &Value| {
        let error =
            run["start_error_ns"].as_f64().ok_or_else(|| format!("a flow has no start error: {run}"))?;
        Ok(error / 1e6)
    };
    runs(document).map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The name is that of the schema, so that a renamed field does not go unnoticed until the next whole run.
    #[test]
    fn start_errors_are_read_as_the_schema_names_them() {
        let schema = include_str!("../../../../docs/reference/plan-result.schema.json");
        assert!(schema.contains("\"start_error_ns\""));
        let document =
            json!({ "trials": [{ "runs": [{ "start_error_ns": 2e6 }, { "start_error_ns": 5e5 }] }] });
        assert_eq!(start_errors(&document).unwrap(), [2.0, 0.5]);
        let failed = json!({ "trials": [{ "runs": [{ "outcome": "failed" }] }] });
        assert!(start_errors(&failed).unwrap_err().contains("failed"));
    }

    #[test]
    fn the_period_is_that_between_beginnings_and_needs_all_of_them() {
        let trial = |began: Value| json!({ "runs": [{ "began_ns": began }] });
        let document = json!({ "trials": [trial(5e9.into()), trial(5.02e9.into()), trial(5.06e9.into())] });
        assert!((period(&document, 3).unwrap() - 0.03).abs() < 1e-9);
        assert!(period(&document, 4).is_err());
        let failed = json!({ "trials": [trial(5e9.into()), trial(Value::Null)] });
        assert!(period(&failed, 2).is_err());
        assert!(period(&json!({}), 2).is_err());
    }
}
