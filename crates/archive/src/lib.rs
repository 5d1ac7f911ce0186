//! The archive of runs: event logs in an SQLite file, or in a PostgreSQL database that a team shares.
//!
//! The log is written during the run, in short transactions, so that the log of a killed run is complete except
//! for its last half second. It is kept in compressed parts, and comes back exactly as it was written. Tables for
//! queries are derived from the log and can be rebuilt. This crate knows no metric and no knob by name.
//!
//! Both databases carry out the same statements; what differs between them is in `sqlite` and `postgres`.
//!
//! A failure of the archive never ends a measurement: every error names the file and the remedy, and the caller
//! continues without the archive.

mod archive;
mod calendar;
mod copy;
mod database;
mod derive;
mod error;
mod location;
mod log;
mod migrate;
mod part;
#[cfg(feature = "postgres")]
mod postgres;
mod recorder;
mod retention;
mod sqlite;
mod store;
mod tags;
mod value;

pub use archive::Archive;
pub use calendar::{
    AgentRemoval, Calendar, CalendarError, CalendarTransaction, DueLimits, HandedCalendar, LastAttempt,
    Lease, NewestRun, ResultParts, RunFilter,
};
pub use error::{ArchiveError, DatabaseFault};
pub use location::{data_file, default_path, open};
pub use recorder::Recorder;
pub use store::{EventStore, Filter, RetentionLimits, RunCursor, RunPage, Store};
