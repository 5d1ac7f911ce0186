//! The latest result of each server.

use std::collections::BTreeSet;

use linerate_archive::{ArchiveError, Filter, Store};
use linerate_model::RunHead;

/// Runs that are searched.
const MAX_SEARCHED: u32 = 1000;

/// The last run of each server that has ended, newest first.
pub(crate) fn latest_runs(archive: &dyn Store) -> Result<Vec<RunHead>, ArchiveError> {
    let filter = Filter { whole: true, ..Filter::default() };
    let mut servers = BTreeSet::new();
    let runs = archive.page(&filter, None, MAX_SEARCHED)?.runs.into_iter();
    let ended = runs.filter(|run| !run.is_plan && run.outcome.is_some());
    Ok(ended.filter(|run| run.target.clone().is_some_and(|server| servers.insert(server))).collect())
}
