//! What an archive can do, whatever keeps it.

use linerate_model::{Event, ForeignText, Outcome};
use linerate_units::Bitrate;

use crate::ArchiveError;

/// An archive of event logs.
pub trait Store {
    /// Adds events, all or none. An event whose run and number are there already is passed over: a log is never
    /// rewritten, and importing it twice does no harm. Events may belong to several runs.
    ///
    /// # Errors
    /// When they cannot be kept; nothing of them is then in the archive.
    fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError>;

    /// The runs that match, newest first.
    ///
    /// # Errors
    /// When the archive cannot be read.
    fn runs(&self, filter: &Filter) -> Result<Vec<RunHead>, ArchiveError>;

    /// The full name of the one run whose name begins with `prefix`, or for `latest` of the newest that is no part of
    /// a plan.
    ///
    /// # Errors
    /// When no run or more than one matches, or the archive cannot be read.
    fn find(&self, prefix: &str) -> Result<String, ArchiveError>;

    /// The log of the run that [`Store::find`] finds for `run`, in order.
    ///
    /// An event that this version cannot read stands in it as a caveat that says so.
    ///
    /// # Errors
    /// As for [`Store::find`].
    fn events(&self, run: &str) -> Result<Vec<Event>, ArchiveError>;

    /// Derives the tables for queries from the log once more.
    ///
    /// # Errors
    /// As for [`Store::find`], and when the archive cannot be written.
    fn rebuild(&mut self, run: &str) -> Result<(), ArchiveError>;

    /// Removes a run and everything derived from it.
    ///
    /// # Errors
    /// As for [`Store::find`], and when the archive cannot be written.
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
    /// Only runs that are no part of a plan.
    pub whole: bool,
    /// Only the parts of the plan whose run has this full name.
    pub part_of: Option<String>,
    /// Only plans of this name.
    pub plan: Option<String>,
    /// Not more than so many, the newest.
    pub limit: Option<u32>,
}

/// How many runs of strangers an archive keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangerLimits {
    /// Most runs, the new one among them.
    pub runs: u32,
    /// Most bytes of their logs.
    pub bytes: u64,
    /// Older ones go: an RFC 3339 time in UTC.
    pub oldest: String,
    /// A run without an end that started later than this may be under way, and stays.
    pub under_way: String,
}

/// A run as a list shows it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RunHead {
    /// Its name.
    pub id: ForeignText,
    /// Wall-clock time of its start, RFC 3339; absent when the beginning of the log is lost.
    pub started_at: Option<ForeignText>,
    /// The server as typed; of a plan its name.
    pub target: Option<ForeignText>,
    /// True for a plan that is carried out, whose trials are runs of their own.
    pub is_plan: bool,
    /// The plan's run that it is a part of.
    pub part_of: Option<ForeignText>,
    /// Where it ran.
    pub world: Option<ForeignText>,
    /// Version of linerate.
    pub linerate: Option<ForeignText>,
    /// How it ended; absent while it runs and when it was killed.
    pub outcome: Option<Outcome>,
    /// Number of events in its log.
    pub event_count: u64,
    /// Its flows.
    pub flows: Vec<FlowHead>,
}

/// A flow as a list shows it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FlowHead {
    /// Number of the flow in its run.
    pub flow: u16,
    /// Its name, for people.
    pub name: ForeignText,
    /// Which way, seen from the client, by its name in results.
    pub direction: ForeignText,
    /// What carried the data, by its name in results.
    pub transport: ForeignText,
    /// Goodput at the receiver; absent when none was measured.
    pub bitrate: Option<Bitrate>,
    /// Cause of the verdict, by its name in results; absent when there is none.
    pub cause: Option<ForeignText>,
}
