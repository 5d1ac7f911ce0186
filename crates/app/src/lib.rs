//! How fast a network really is, how fast it could be, and what holds it back.
//!
//! This room turns a command line into a specification, joins the rooms, and gives the exit code. The names below are
//! the public interface for programs that embed linerate.

mod args;
mod cmd;
mod exit;
mod say;
mod signals;
mod terminal;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

pub use linerate_archive::{SqliteArchive as Archive, Store};
pub use linerate_control::{ControlError as Error, Log, Request, Server, ServerConfig, Sink, measure};
pub use linerate_model::{CATALOGUE, Caveat, Event, Finding, RunRecord, Sample, TestSpec, metrics::Metric};
pub use linerate_units::{Bitrate, Bytes, Span, Timestamp};

/// Runs a command line; what `main` calls.
pub fn main(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    match args::Cli::try_parse_from(argv) {
        Ok(cli) => cmd::run(cli).into(),
        Err(error) => {
            // Help and version are no errors and go to stdout; clap knows which is which.
            let _ = error.print();
            if error.use_stderr() { exit::Exit::Usage.into() } else { ExitCode::SUCCESS }
        }
    }
}
