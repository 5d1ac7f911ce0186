//! A run, or a plan that was carried out, as text, JSON, CSV, Markdown or a page with charts: one format, one file.
//!
//! Every function here is pure: a folded run or its events in, a document out. Nothing is computed but changes of
//! scale, the merging of adjacent intervals to the interval that is shown, and quotients of sums. Whatever comes from
//! another host is shown without its control characters, so that no name can steer a terminal.

pub mod csv;
mod figure;
mod history;
pub mod html;
pub mod intervals;
pub mod json;
mod layout;
pub mod live;
pub mod markdown;
pub mod ndjson;
pub mod picture;
pub mod plan;
pub mod plot;
mod ports;
mod quantity;
mod rows;
mod sizes;
mod table;
pub mod text;
mod text_flow;

pub use history::{RunRow, history_table};
pub use json::{RESULT_SCHEMA, ResultDocument, document};
pub use layout::View;
pub use live::Live;
pub use plan::{PLAN_RESULT_SCHEMA, PlanDocument};
pub use rows::IntervalRows;
pub use text::text;

#[cfg(feature = "schema")]
pub use json::result_schema;
#[cfg(test)]
mod every_format;
#[cfg(test)]
mod hostile_words;
#[cfg(test)]
mod samples_of_plans;
#[cfg(test)]
mod samples_of_runs;
#[cfg(test)]
mod shares;
