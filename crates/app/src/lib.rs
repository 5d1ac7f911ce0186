//! How fast a network really is, how fast it could be, and what holds it back.
//!
//! This crate turns a command line into a specification, connects the other crates and returns the exit code. For
//! programs that embed linerate, it exports seventeen names; other types are reached through their fields.
//!
//! ```no_run
//! let mut spec = linerate::TestSpec::default();
//! spec.traffic.streams = 4;
//! let cancel = linerate::CancelToken::new();
//! let record = linerate::run("server.example", &spec, &cancel, &mut |_event| ())?;
//! for flow in &record.flows {
//!     println!("{}: {:?}, {:?}", flow.plan.name, flow.bitrate(), flow.verdict);
//! }
//! # Ok::<(), linerate::Error>(())
//! ```
//!
//! The methods that read an [`Archive`] belong to a trait, which `use linerate::*` brings along:
//!
//! ```no_run
//! use linerate::*;
//!
//! # fn show(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
//! let record = RunRecord::fold(&Archive::open(path)?.events("latest")?);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(
    not(feature = "full"),
    expect(dead_code, reason = "the small build lacks the only callers of some shared functions")
)]

mod agent_token;
mod archive;
mod args;
mod calibration;
mod cli;
mod cmd;
mod command_error;
mod config_file;
mod core_build;
mod entry;
mod exit;
mod front_end;
mod mistyped;
mod output_format;
mod print;
mod signals;
mod stdout;
mod terminal;

#[doc(hidden)]
pub use entry::{command, main};
pub use linerate_archive::{Archive, Store as _};
pub use linerate_model::{CATALOGUE, Caveat, Event, Finding, RunRecord, Sample, TestSpec, metrics::Metric};
pub use linerate_runner::{CancelToken, RunnerError as Error, run, serve};
pub use linerate_units::{Bitrate, Bytes, Span, Timestamp};
