//! A run, or an executed plan, as text, JSON, CSV, Markdown or a page with charts. Each format is one file.
//!
//! The documents of commands that show no run are modules of their own, such as [`check`], [`doctor`], [`envelope`]
//! and [`import`].
//!
//! All functions are pure: they turn a folded run or its events, or what another crate found, into a document. They
//! compute only changes of scale, merged intervals and quotients of sums. Text from another host is shown without
//! its control characters, so that no name can control a terminal.

mod answer;
mod archive_upkeep;
pub mod check;
pub mod compare;
pub mod csv;
pub mod doctor;
pub mod envelope;
mod export;
mod figure;
pub mod fleet;
pub mod format;
mod history;
pub mod html;
pub mod import;
pub mod intervals;
pub mod json;
pub mod lab_status;
mod layout;
pub mod live;
pub mod markdown;
pub mod message;
mod metrics_reference;
pub mod ndjson;
pub mod page;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod picture;
pub mod plan;
pub mod plan_preview;
mod plan_progress;
pub mod plot;
mod ports;
mod quantity;
mod responsiveness;
mod rows;
mod sizes;
mod streams;
mod table;
pub mod text;
mod text_flow;
mod transactions;

pub use answer::{answer, outcome};
pub use archive_upkeep::{PruneReport, archive_info};
pub use export::{ExportSource, export};
pub use format::{FORMATS, Format, FormatError};
pub use history::{
    HistoryConditions, HistoryDocument, RunEntry, RunKind, RunRow, empty_history, history_table,
};
pub use json::{RESULT_SCHEMA, ResultDocument, document};
pub use layout::TextLayout;
pub use live::Live;
pub use metrics_reference::metrics_reference;
pub use plan::{PLAN_RESULT_SCHEMA, PlanDocument};
pub use plan_progress::{EndedTrial, PlanFlowFrame, PlanFrame, PlanLive, PlanUpdate, TrialGoodput};
pub use rows::IntervalRows;
pub use text::text;
pub use text_flow::plural;

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
