//! The interface of an archive, whatever its storage.

use linerate_model::{Event, ForeignText, Outcome};
use linerate_units::Bitrate;

use crate::ArchiveError;

/// An archive of event logs.
pub trait Store {
    /// Adds events, all or none. An event whose run and number already exist is skipped: a log is never
    /// rewritten, and importing it twice does no harm. Events may belong to several runs.
    ///
    /// # Errors
    /// If they cannot be stored; then none of them is in the archive.
    fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError>;

    /// The runs that match, newest first.
    ///
    /// # Errors
    /// If the archive cannot be read.
    fn runs(&self, filter: &Filter) -> Result<Vec<RunHead>, ArchiveError>;

    /// The full name of the only run whose name starts with `prefix`, or for `latest` of the newest run that is
    /// not part of a plan.
    ///
    /// # Errors
    /// If no run or several runs match, or the archive cannot be read.
    fn find(&self, prefix: &str) -> Result<String, ArchiveError>;

    /// The log of the run that [`Store::find`] finds for `run`, in order.
    ///
    /// An event that this version cannot read is replaced by a caveat.
    ///
    /// # Errors
    /// As for [`Store::find`].
    fn events(&self, run: &str) -> Result<Vec<Event>, ArchiveError>;

    /// Derives the tables for queries from the log again.
    ///
    /// # Errors
    /// As for [`Store::find`], and if the archive cannot be written.
    fn rebuild(&mut self, run: &str) -> Result<(), ArchiveError>;

    /// Removes a run and everything derived from it.
    ///
    /// # Errors
    /// As for [`Store::find`], and if the archive cannot be written.
    fn delete(&mut self, run: &str) -> Result<(), ArchiveError>;
}

/// Which runs to list. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only runs against this server, as typed.
    pub target: Option<String>,
    /// Only runs in this world, by its name in results.
    pub world: Option<String>,
    /// Only runs that started at this RFC 3339 time in UTC or later; a date alone is its first second.
    pub since: Option<String>,
    /// Only runs that are not part of a plan.
    pub whole: bool,
    /// Only the parts of the plan whose run has this full name.
    pub part_of: Option<String>,
    /// Only plans with this name.
    pub plan: Option<String>,
    /// At most this number of runs, the newest.
    pub limit: Option<u32>,
}

/// Limits for runs of unknown clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRunLimits {
    /// Largest number of runs, including the new one.
    pub runs: u32,
    /// Largest size of their logs, bytes.
    pub bytes: u64,
    /// Older runs are removed: an RFC 3339 time in UTC.
    pub oldest: String,
    /// A run without an end that started later than this may be active, and is kept.
    pub under_way: String,
}

/// A run in a list.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RunHead {
    /// Its name.
    pub id: ForeignText,
    /// Wall-clock time of its start, RFC 3339; absent if the start of the log is lost.
    pub started_at: Option<ForeignText>,
    /// The server as typed; for a plan, its name.
    pub target: Option<ForeignText>,
    /// Whether this is an executed plan, whose trials are runs of their own.
    pub is_plan: bool,
    /// The plan's run that contains it.
    pub part_of: Option<ForeignText>,
    /// Where it ran.
    pub world: Option<ForeignText>,
    /// Version of linerate.
    pub linerate: Option<ForeignText>,
    /// How it ended; absent while it runs and if it was killed.
    pub outcome: Option<Outcome>,
    /// Number of events in its log.
    pub event_count: u64,
    /// Its flows.
    pub flows: Vec<FlowHead>,
}

/// A flow in a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FlowHead {
    /// Number of the flow in its run.
    pub flow: u16,
    /// Its name for users.
    pub name: ForeignText,
    /// Direction, seen from the client, by its name in results.
    pub direction: ForeignText,
    /// Transport, by its name in results.
    pub transport: ForeignText,
    /// Goodput at the receiver; absent if not measured.
    pub bitrate: Option<Bitrate>,
    /// Cause of the verdict, by its name in results; absent without a verdict.
    pub cause: Option<ForeignText>,
}
