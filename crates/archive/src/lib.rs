//! The archive of runs: event logs in one SQLite file.
//!
//! The log is written while it happens, in short transactions, so that a killed run can be read up to its last half
//! second. Tables for queries derive from the log and can be rebuilt. No metric and no knob is known here by name.
//!
//! An archive that fails never takes a measurement with it: every error says which file is at fault and what to do,
//! and the caller goes on without it.

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
pub use store::{Filter, FlowHead, RunHead, Store, StrangerLimits};
