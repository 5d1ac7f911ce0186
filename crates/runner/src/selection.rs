//! The runs that a word selects: those with a name, which several may share, or the one with an id.

use linerate_archive::{ArchiveError, Filter, Store};
use linerate_model::RunHead;

/// The runs that a user named, in the order in which they were measured.
pub(crate) enum SelectedRuns {
    /// Runs that share a name.
    Named(Vec<RunHead>),
    /// The id of a run.
    Id(String),
}

impl SelectedRuns {
    /// What a word selects, of runs that share a name the newest ones. A plan is one run, as plans with one name are
    /// not repeats of each other.
    pub(crate) fn of(typed: &str, archive: &dyn Store, newest: Option<u32>) -> Result<Self, ArchiveError> {
        let name = Some(typed.to_owned());
        let mut named = archive.runs(&Filter { name, limit: newest, ..Filter::default() })?;
        if named.is_empty() {
            return Ok(Self::Id(archive.find(typed)?));
        }
        named.reverse();
        Ok(Self::Named(named))
    }
}
