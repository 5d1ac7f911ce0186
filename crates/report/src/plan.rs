//! An executed plan: one table with a row for each point, the results of the assertions, and what is missing.
//!
//! The plan's log contains all results; this module only presents them.

mod cells;
mod csv;
mod document;
mod junit;
mod markdown;
pub(crate) mod method;
mod rows;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use cells::{ends, shown_unit, spread};
pub use csv::csv;
pub use document::{PLAN_RESULT_SCHEMA, PlanDocument, document};
pub use junit::junit;
pub use markdown::markdown;
pub(crate) use rows::{RowInSight, in_sight};
pub use text::text;

#[cfg(feature = "schema")]
pub use document::plan_result_schema;

use linerate_model::{Outcome, PlanRecord};

/// Trials with incomplete runs that were not repeated successfully, with the reason, in the order of time.
fn missing(record: &PlanRecord) -> Vec<(String, u32, Vec<String>)> {
    let mut found: Vec<(String, u32, Vec<String>)> = Vec::new();
    for trial in &record.trials {
        found.retain(|(point, repeat, _)| *point != trial.point || *repeat != trial.repeat);
        let failed = trial.runs.iter().filter(|run| run.outcome != Outcome::Completed);
        let reasons: Vec<String> = failed
            .map(|run| format!("{}: {}", run.flow, run.reason.as_deref().unwrap_or("it was not completed")))
            .collect();
        if !reasons.is_empty() {
            found.push((trial.point.to_string(), trial.repeat, reasons));
        }
    }
    found
}

/// The name of a point: its values on the axes that have several.
pub(crate) fn words(record: &PlanRecord, point: &str) -> String {
    let axes = record.start.iter().flat_map(|start| &start.axes);
    let several: Vec<bool> = axes.map(|axis| axis.values.len() > 1).collect();
    let labels = record.labels(point).into_iter().zip(several);
    let words: Vec<String> =
        labels.filter(|(_, several)| *several).map(|((axis, value), _)| format!("{axis} {value}")).collect();
    if words.is_empty() { "the only point".to_owned() } else { words.join(", ") }
}

/// Axes and labels of a point, as text.
fn label(record: &PlanRecord, point: &str) -> String {
    let labels = record.labels(point);
    let parts: Vec<String> = labels.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
    if parts.is_empty() { "the only point".to_owned() } else { parts.join(" ") }
}
