//! The archive of runs: event logs in SQLite.
