//! Compares configurations that are in the archive or in result files.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;

use linerate_archive::{ArchiveError, Store};
use linerate_model::{Event, Outcome, PlanRecord, RunRecord};
use linerate_plan::{
    AxisError, Candidate, Compared, LeftOutRuns, Pairing, QuantityError, compare_with_base, quantities,
    values_of_axis,
};

use crate::report_source::OpenArchive;
use crate::selection::SelectedRuns;

/// The event logs of the runs in a result file.
pub type ResultFileLogs = Result<Vec<Vec<Event>>, Box<dyn Error + Send + Sync>>;

/// Which configurations to compare, and by which quantities.
pub struct CompareRequest<'a> {
    /// Runs in the archive, or result files. The first one is the base. Repeats of one configuration are
    /// separated by commas and may have a name, such as `new=3f2a,77b1`; a name that several runs have means
    /// all of them.
    pub runs: &'a [String],
    /// The axis whose values are compared instead, within the only run of `runs`.
    pub axis: Option<&'a str>,
    /// Names of quantities; empty for the default ones.
    pub quantities: &'a [String],
    /// Opens the archive. It is called only if a run is needed, as results in files need none.
    pub archive: OpenArchive<'a>,
    /// Reads a file with results; absent if only the archive is searched.
    pub read_file: Option<&'a dyn Fn(&Path) -> ResultFileLogs>,
}

/// Why nothing is compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// The name of no comparable quantity.
    #[error("--quantity: {0}")]
    Quantity(#[from] QuantityError),
    /// The plan has no such axis.
    #[error("--axis: {0}")]
    Axis(#[from] AxisError),
    /// An axis is given with several runs.
    #[error("--axis compares the values of an axis within one run of a plan; name one run")]
    AxisOfSeveralRuns,
    /// There is nothing to compare the base with.
    #[error("a comparison needs at least two configurations; name two, or give --axis of a plan")]
    OnlyOne,
    /// A plan is given as a repeat of something else.
    #[error("{0}: a run of a plan already contains its repeats; name it alone")]
    PlanAmongRepeats(String),
    /// A file cannot be read.
    #[error("{name}: {error}")]
    File {
        /// Its name.
        name: String,
        /// Why.
        error: Box<dyn Error + Send + Sync>,
    },
    /// A run is a repeat of both configurations.
    #[error("{run} is a run of both {base} and {other}; a run cannot be compared with itself")]
    OnBothSides {
        /// Id of the run.
        run: String,
        /// One configuration.
        base: String,
        /// The other one.
        other: String,
    },
    /// None of the runs with a name was completed.
    #[error(
        "none of the runs with the name '{0}' was completed; give the id of one to compare it nevertheless"
    )]
    NotCompleted(String),
    /// No run is given for a configuration.
    #[error("'{0}' names no run; give one or more runs after the =")]
    NoRun(String),
    /// Nothing was measured with a configuration.
    #[error("{0}: the run has no results")]
    NoResults(String),
    /// The configurations measured different things.
    #[error("{0} and the other configuration have no quantity in common: their flows or points differ")]
    NothingInCommon(String),
    /// The archive cannot be read, or has no such run.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl CompareError {
    /// Whether the request has to be corrected; otherwise its input is not usable.
    #[must_use]
    pub fn needs_correction(&self) -> bool {
        match self {
            Self::Quantity(_)
            | Self::Axis(_)
            | Self::AxisOfSeveralRuns
            | Self::OnlyOne
            | Self::OnBothSides { .. }
            | Self::NoRun(_)
            | Self::PlanAmongRepeats(_) => true,
            Self::File { .. }
            | Self::NotCompleted(_)
            | Self::NoResults(_)
            | Self::NothingInCommon(_)
            | Self::Archive(_) => false,
        }
    }
}

impl CompareRequest<'_> {
    /// Loads the configurations and compares them.
    ///
    /// # Errors
    /// The request is wrong, or a configuration cannot be loaded or has no results.
    pub fn compare(&self) -> Result<Compared, CompareError> {
        let wanted = quantities(self.quantities)?;
        let mut loader = Loader { request: self, archive: None, sides: Vec::new(), left_out: Vec::new() };
        let (mut all, pairing) = match self.axis {
            Some(axis) => {
                let [plan] = self.runs else { return Err(CompareError::AxisOfSeveralRuns) };
                let record = PlanRecord::fold(&loader.archive()?.events(plan)?);
                values_of_axis(&record, axis)?
            }
            None => {
                let all =
                    self.runs.iter().map(|typed| loader.candidate(typed)).collect::<Result<Vec<_>, _>>()?;
                (all, Pairing::None)
            }
        };
        if all.len() < 2 {
            return Err(CompareError::OnlyOne);
        }
        if let Some(empty) = all.iter().find(|one| one.is_empty()) {
            return Err(CompareError::NoResults(empty.name.clone()));
        }
        let base = all.remove(0);
        let table = compare_with_base(&base, &all, &wanted, pairing);
        if table.rows.is_empty() {
            return Err(CompareError::NothingInCommon(base.name));
        }
        Ok(Compared { base, others: all, table, left_out: loader.left_out })
    }
}

struct Loader<'a> {
    request: &'a CompareRequest<'a>,
    archive: Option<Box<dyn Store>>,
    /// The configurations so far: their names, and the ids of their runs.
    sides: Vec<(String, BTreeSet<String>)>,
    left_out: Vec<LeftOutRuns>,
}

impl Loader<'_> {
    fn archive(&mut self) -> Result<&dyn Store, ArchiveError> {
        let archive = match self.archive.take() {
            Some(archive) => archive,
            None => (self.request.archive)()?,
        };
        Ok(&**self.archive.insert(archive))
    }

    fn candidate(&mut self, typed: &str) -> Result<Candidate, CompareError> {
        let (name, list) = match typed.split_once('=') {
            Some((name, list)) if !name.contains(['/', ',']) => (name, list),
            _ => (typed, typed),
        };
        let mut logs: Vec<Vec<Event>> = Vec::new();
        let mut ids = BTreeSet::new();
        for one in list.split(',').map(str::trim).filter(|one| !one.is_empty()) {
            if let Some(read_file) = self.request.read_file
                && Path::new(one).is_file()
            {
                let read = read_file(Path::new(one));
                logs.extend(read.map_err(|error| CompareError::File { name: one.to_owned(), error })?);
            } else {
                logs.extend(self.archived(one, &mut ids)?);
            }
        }
        if list.split(',').all(|one| one.trim().is_empty()) {
            return Err(CompareError::NoRun(typed.to_owned()));
        }
        for (other, known) in &self.sides {
            if let Some(run) = ids.intersection(known).next() {
                let (run, base) = (run.clone(), other.clone());
                return Err(CompareError::OnBothSides { run, base, other: name.to_owned() });
            }
        }
        self.sides.push((name.to_owned(), ids));
        let plans: Vec<PlanRecord> = logs.iter().filter_map(|log| PlanRecord::of_log(log)).collect();
        match &plans[..] {
            [] => {
                let runs: Vec<RunRecord> = logs.iter().map(Vec::as_slice).map(RunRecord::fold).collect();
                Ok(Candidate::of_runs(name.to_owned(), &runs))
            }
            [plan] if logs.len() == 1 => {
                let runs = self.samples(plan)?;
                Ok(Candidate::of_plan(name.to_owned(), plan, &runs))
            }
            _ => Err(CompareError::PlanAmongRepeats(typed.to_owned())),
        }
    }

    /// The logs of the runs that a word selects, in the order in which they were measured, which the test for
    /// independence needs. Of runs that share a name only those that were completed are repeats. Each run is a repeat
    /// once, however often it is named.
    fn archived(&mut self, typed: &str, ids: &mut BTreeSet<String>) -> Result<Vec<Vec<Event>>, CompareError> {
        let archive = self.archive()?;
        let selected = match SelectedRuns::of(typed, archive)? {
            SelectedRuns::Id(run) => vec![run],
            SelectedRuns::Named(runs) => {
                let all = runs.len();
                let completed = runs.into_iter().filter(|run| run.outcome == Some(Outcome::Completed));
                let completed: Vec<String> = completed.map(|run| run.id.into_string()).collect();
                if completed.is_empty() {
                    return Err(CompareError::NotCompleted(typed.to_owned()));
                }
                if completed.len() < all {
                    let runs = all - completed.len();
                    self.left_out.push(LeftOutRuns { name: typed.to_owned(), runs });
                }
                completed
            }
        };
        let archive = self.archive()?;
        let fresh = selected.into_iter().filter(|run| ids.insert(run.clone()));
        Ok(fresh.map(|run| archive.events(&run)).collect::<Result<_, _>>()?)
    }

    /// One run for each flow, for the properties of hosts and settings.
    fn samples(&mut self, plan: &PlanRecord) -> Result<Vec<RunRecord>, ArchiveError> {
        let Some(trial) = plan.trials.last() else { return Ok(Vec::new()) };
        let archive = self.archive()?;
        // A run that was deleted from the archive is skipped; the figures are in the plan's own log.
        let logs = trial.runs.iter().filter_map(|run| archive.events(&run.run).ok());
        Ok(logs.map(|log| RunRecord::fold(&log)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(runs: &[&str], axis: Option<&str>, quantities: &[&str]) -> CompareError {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let request = CompareRequest {
            runs: &owned(runs),
            axis,
            quantities: &owned(quantities),
            archive: &|| crate::archive_at(Some(":memory:")).map(|found| Box::new(found) as Box<dyn Store>),
            read_file: Some(&|_| Err("not a result".into())),
        };
        request.compare().unwrap_err()
    }

    #[test]
    fn a_wrong_request_is_distinguished_from_unusable_input() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let wrong = [
            compare(&["a", "b"], None, &["nonsense"]),
            compare(&["a", "b"], Some("window"), &[]),
            compare(&[], None, &[]),
        ];
        assert!(matches!(
            wrong,
            [CompareError::Quantity(_), CompareError::AxisOfSeveralRuns, CompareError::OnlyOne]
        ));
        assert!(wrong.iter().all(CompareError::needs_correction));
        let unusable = [compare(&["a", "b"], None, &[]), compare(&[file, file], None, &[])];
        assert!(matches!(unusable, [CompareError::Archive(_), CompareError::File { .. }]));
        assert!(!unusable.iter().any(CompareError::needs_correction));
    }
}
