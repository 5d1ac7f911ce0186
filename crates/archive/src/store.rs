//! The interface of an archive, whatever its storage.

use linerate_model::{Event, RunHead};

use crate::ArchiveError;

/// Where events are stored.
pub trait EventStore {
    /// Adds events, all or none. An event whose run and number already exist is skipped: a log is never
    /// rewritten, and importing it twice does no harm. Events may belong to several runs.
    ///
    /// # Errors
    /// If they cannot be stored; then none of them is in the archive.
    fn append(&mut self, events: &[Event]) -> Result<(), ArchiveError>;
}

/// An archive of event logs.
pub trait Store: EventStore {
    /// The runs that match, newest first.
    ///
    /// # Errors
    /// If the archive cannot be read.
    fn runs(&self, filter: &Filter) -> Result<Vec<RunHead>, ArchiveError>;

    /// The runs that match, newest first, a page of at most `size`. The cursor of one page gives the next one; runs
    /// that are added or removed in between neither repeat nor hide others. `limit` of the filter has no effect.
    ///
    /// # Errors
    /// If the archive cannot be read.
    fn page(&self, filter: &Filter, after: Option<RunCursor>, size: u32) -> Result<RunPage, ArchiveError>;

    /// The id of the only run with the name `prefix`, of the only run whose id starts with it, or for `latest` of the
    /// newest run that is not part of a plan.
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

    /// Removes a run and everything derived from it; a plan with its runs.
    ///
    /// # Errors
    /// As for [`Store::find`], and if the archive cannot be written.
    fn delete(&mut self, run: &str) -> Result<(), ArchiveError>;
}

/// The end of a page of runs: the next page begins after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCursor(pub u64);

/// A page of a list of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    /// Its runs.
    pub runs: Vec<RunHead>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<RunCursor>,
}

/// Which runs to list. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only runs against this server, as typed, or with this name.
    pub name_or_target: Option<String>,
    /// Only runs with this name.
    pub name: Option<String>,
    /// Only runs in this world, by its name in results.
    pub world: Option<String>,
    /// Only runs that started at this RFC 3339 time in UTC or later; a date alone is its first second.
    pub since: Option<String>,
    /// Only runs that started before this RFC 3339 time in UTC; a date alone is its first second.
    pub until: Option<String>,
    /// Only runs with a flow whose verdict has this cause, by its name in results.
    pub cause: Option<String>,
    /// Only runs with this tag.
    pub tag: Option<String>,
    /// Only runs that are not part of a plan.
    pub whole: bool,
    /// Only the parts of the plan whose run has this full name.
    pub part_of: Option<String>,
    /// Only plans with this name.
    pub plan: Option<String>,
    /// At most this number of runs, the newest.
    pub limit: Option<u32>,
}

/// What is too much: the newest runs stay. A limit that is absent does not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Largest number of runs.
    pub runs: Option<u32>,
    /// Largest size of their logs as stored, bytes.
    pub bytes: Option<u64>,
    /// Older runs are too much: an RFC 3339 time in UTC.
    pub oldest: Option<String>,
    /// A run without an end that started later than this may be active, and is kept.
    pub under_way: String,
}
