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
    /// What a word selects. A plan is one run, as plans with one name are not repeats of each other.
    pub(crate) fn of(typed: &str, archive: &dyn Store) -> Result<Self, ArchiveError> {
        let mut named = archive.runs(&Filter { name: Some(typed.to_owned()), ..Filter::default() })?;
        if named.is_empty() {
            return Ok(Self::Id(archive.find(typed)?));
        }
        named.reverse();
        Ok(Self::Named(named))
    }
}
