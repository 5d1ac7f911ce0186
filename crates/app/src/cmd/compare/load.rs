//! Loads configurations from the archive and from files.

use std::path::Path;

use linerate_archive::{ArchiveError, SqliteArchive, Store};
use linerate_model::{Event, PlanRecord, RunRecord};
use linerate_plan::Candidate;

use crate::cmd::import;

/// Why nothing can be compared.
pub(super) enum LoadError {
    /// An invalid command line.
    Usage(String),
    /// Unusable input.
    Input(String),
    /// An archive error.
    Archive(ArchiveError),
}

/// Opens the archive only when a run needs it: results in files do not.
pub(super) struct Loader<F: Fn() -> Result<SqliteArchive, ArchiveError>> {
    open: F,
    archive: Option<SqliteArchive>,
}

impl<F: Fn() -> Result<SqliteArchive, ArchiveError>> Loader<F> {
    pub(super) fn new(open: F) -> Self {
        Self { open, archive: None }
    }

    fn archive(&mut self) -> Result<&SqliteArchive, LoadError> {
        let archive = match self.archive.take() {
            Some(archive) => archive,
            None => (self.open)().map_err(LoadError::Archive)?,
        };
        Ok(self.archive.insert(archive))
    }

    /// The plan that was run under that name.
    pub(super) fn plan(&mut self, name: &str) -> Result<PlanRecord, LoadError> {
        Ok(PlanRecord::fold(&self.archive()?.events(name).map_err(LoadError::Archive)?))
    }

    /// Parses and loads one configuration.
    pub(super) fn candidate(&mut self, typed: &str) -> Result<Candidate, LoadError> {
        let (name, list) = match typed.split_once('=') {
            Some((name, list)) if !name.contains(['/', ',']) => (name, list),
            _ => (typed, typed),
        };
        let mut logs: Vec<Vec<Event>> = Vec::new();
        for one in list.split(',').map(str::trim).filter(|one| !one.is_empty()) {
            if Path::new(one).is_file() {
                logs.extend(
                    import::logs(Path::new(one)).map_err(|why| LoadError::Input(format!("{one}: {why}")))?,
                );
            } else {
                logs.push(self.archive()?.events(one).map_err(LoadError::Archive)?);
            }
        }
        let plans: Vec<PlanRecord> =
            logs.iter().map(|log| PlanRecord::fold(log)).filter(|plan| plan.start.is_some()).collect();
        match &plans[..] {
            [] => {
                let runs: Vec<RunRecord> = logs.iter().map(Vec::as_slice).map(RunRecord::fold).collect();
                Ok(Candidate::of_runs(name.to_owned(), &runs))
            }
            [plan] if logs.len() == 1 => {
                let runs = self.samples(plan)?;
                Ok(Candidate::of_plan(name.to_owned(), plan, &runs))
            }
            _ => Err(LoadError::Usage(format!(
                "{typed}: a run of a plan already contains its repeats; name it alone"
            ))),
        }
    }

    /// One run for each flow, for the properties of hosts and settings.
    fn samples(&mut self, plan: &PlanRecord) -> Result<Vec<RunRecord>, LoadError> {
        let Some(trial) = plan.trials.last() else { return Ok(Vec::new()) };
        let archive = self.archive()?;
        // A run that was deleted from the archive is skipped; the figures are in the plan's own log.
        let logs = trial.runs.iter().filter_map(|run| archive.events(&run.run).ok());
        Ok(logs.map(|log| RunRecord::fold(&log)).collect())
    }
}
