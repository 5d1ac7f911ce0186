//! The latest result of each server, and of each pair of a fleet.

use std::collections::BTreeSet;

use linerate_archive::{ArchiveError, Filter, Store};
use linerate_model::RunHead;

/// Runs that are searched.
const MAX_SEARCHED: u32 = 1000;

/// The last run of each server that has ended, newest first, without those that `left_out` is true for.
pub(crate) fn latest_runs(
    archive: &dyn Store,
    left_out: &mut dyn FnMut(&RunHead) -> bool,
) -> Result<Vec<RunHead>, ArchiveError> {
    let filter = Filter { whole: true, ..Filter::default() };
    let mut servers = BTreeSet::new();
    let runs = archive.page(&filter, None, MAX_SEARCHED)?.runs.into_iter();
    let ended = runs.filter(|run| !run.is_plan && run.outcome.is_some() && !left_out(run));
    Ok(ended.filter(|run| run.target.clone().is_some_and(|server| servers.insert(server))).collect())
}
