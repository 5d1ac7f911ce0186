//! What a page shows: runs of the archive, or a plan with its runs.

use linerate_archive::{ArchiveError, Store};
use linerate_model::{Event, ForeignText, PlanRecord, RunRecord};

use crate::selection::SelectedRuns;

/// Opens the archive of earlier runs, which is not always needed.
pub type OpenArchive<'a> = &'a dyn Fn() -> Result<Box<dyn Store>, ArchiveError>;

/// Most runs of a plan on one page.
const MAX_RUNS: usize = 200;
/// Most events of a plan's runs on one page: a few tens of megabytes.
const MAX_EVENTS: usize = 400_000;

/// The content of a page.
#[derive(Debug, Default)]
pub struct ReportSource {
    /// A plan, and its log.
    pub plan: Option<(PlanRecord, Vec<Event>)>,
    /// The runs, each with its log. Those of a plan are one of each point, then the repeats.
    pub runs: Vec<(RunRecord, Vec<Event>)>,
    /// Runs of the plan that do not fit, or were deleted from the archive.
    pub left_out: Vec<ForeignText>,
}

/// Why a page has no content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportSourceError {
    /// A plan is named besides other runs.
    #[error("a plan includes its own runs; give either the name of a plan or names of runs")]
    PlanAmongRuns,
    /// The archive cannot be read, or has no such run.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl ReportSource {
    /// Loads runs by their names, or a plan with as many of its runs as fit.
    ///
    /// # Errors
    /// A plan is named besides other runs, or a run is not found.
    pub fn load(archive: &dyn Store, names: &[String]) -> Result<Self, ReportSourceError> {
        let mut selected: Vec<String> = Vec::new();
        for name in names {
            let runs = match SelectedRuns::of(name, archive, None)? {
                SelectedRuns::Named(runs) => runs.into_iter().map(|run| run.id.into_string()).collect(),
                SelectedRuns::Id(run) => vec![run],
            };
            let fresh: Vec<String> = runs.into_iter().filter(|run| !selected.contains(run)).collect();
            selected.extend(fresh);
        }
        Self::of_logs(selected.iter().map(|run| archive.events(run)).collect::<Result<_, _>>()?, archive)
    }

    /// Loads one run, or a plan with as many of its runs as fit. A name that several runs share selects none of them.
    ///
    /// # Errors
    /// The run is not found.
    pub fn load_one(archive: &dyn Store, name: &str) -> Result<Self, ReportSourceError> {
        Self::of_logs(vec![archive.events(name)?], archive)
    }

    fn of_logs(mut logs: Vec<Vec<Event>>, archive: &dyn Store) -> Result<Self, ReportSourceError> {
        match (logs.iter().filter(|log| PlanRecord::is_plan(log)).count(), logs.len()) {
            (1, 1) => Ok(Self::of_plan(logs.remove(0), archive)?),
            (0, _) => {
                let runs = logs.into_iter().map(|log| (RunRecord::fold(&log), log)).collect();
                Ok(Self { runs, ..Self::default() })
            }
            _ => Err(ReportSourceError::PlanAmongRuns),
        }
    }

    fn of_plan(log: Vec<Event>, archive: &dyn Store) -> Result<Self, ArchiveError> {
        let plan = PlanRecord::fold(&log);
        let mut trials: Vec<_> = plan.trials.iter().collect();
        trials.sort_by_key(|trial| trial.repeat);
        let (mut runs, mut left_out, mut events) = (Vec::new(), Vec::new(), 0);
        for run in trials.iter().flat_map(|trial| &trial.runs) {
            // Do not load further runs after one that did not fit.
            let log = if left_out.len() < MAX_RUNS && runs.len() < MAX_RUNS && events < MAX_EVENTS {
                log_if_archived(archive, &run.run)?
            } else {
                None
            };
            match log.filter(|log| events + log.len() <= MAX_EVENTS) {
                Some(log) => {
                    events += log.len();
                    runs.push((RunRecord::fold(&log), log));
                }
                None => left_out.push(run.run.clone()),
            }
        }
        Ok(Self { plan: Some((plan, log)), runs, left_out })
    }
}

/// The log of a run; `None` if it was deleted from the archive.
///
/// # Errors
/// If the archive cannot be read.
pub fn log_if_archived(archive: &dyn Store, run: &str) -> Result<Option<Vec<Event>>, ArchiveError> {
    match archive.events(run) {
        Ok(log) => Ok(Some(log)),
        Err(ArchiveError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
