//! The archive of runs: event logs in one SQLite file.
//!
//! The log is written during the run, in short transactions, so that the log of a killed run is complete except
//! for its last half second. Tables for queries are derived from the log and can be rebuilt. This crate knows
//! no metric and no knob by name.
//!
//! A failure of the archive never ends a measurement: every error names the file and the remedy, and the caller
//! continues without the archive.

mod derive;
mod error;
mod location;
mod migrate;
mod recorder;
mod sqlite;
mod store;

pub use error::ArchiveError;
pub use location::{default_path, open};
pub use recorder::Recorder;
pub use sqlite::SqliteArchive;
pub use store::{Filter, ForeignRunLimits, RunCursor, RunPage, Store};
