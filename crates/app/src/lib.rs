//! How fast a network really is, how fast it could be, and what holds it back.
//!
//! This room turns a command line into a specification, joins the rooms, and gives the exit code. The names below are
//! the public interface for programs that embed linerate.

mod args;
mod cmd;
mod entry;
mod exit;
mod say;
mod signals;
mod terminal;

pub use entry::main;
pub use linerate_archive::{SqliteArchive as Archive, Store};
pub use linerate_control::{ControlError as Error, Log, Request, Server, ServerConfig, Sink, measure};
pub use linerate_model::{CATALOGUE, Caveat, Event, Finding, RunRecord, Sample, TestSpec, metrics::Metric};
pub use linerate_units::{Bitrate, Bytes, Span, Timestamp};
