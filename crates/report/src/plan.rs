//! An executed plan: one table with a row for each point, the results of the assertions, and what is missing.
//!
//! The plan's log contains all results; this module only presents them.

mod cells;
mod csv;
mod document;
mod markdown;
pub(crate) mod method;
mod rows;
#[cfg(test)]
mod tests;
mod text;

pub use csv::csv;
pub use document::{PLAN_RESULT_SCHEMA, PlanDocument, document};
pub use markdown::markdown;
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

/// Axes and labels of a point, as text.
fn label(record: &PlanRecord, point: &str) -> String {
    let labels = record.labels(point);
    let parts: Vec<String> = labels.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
    if parts.is_empty() { "the only point".to_owned() } else { parts.join(" ") }
}
