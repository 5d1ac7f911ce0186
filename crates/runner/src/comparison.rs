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

/// How much may be read for a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparisonLimits {
    /// Most runs of one configuration, also those with its name that were not completed.
    pub runs: u32,
    /// Most events of all runs together. The run that exceeds it is read first.
    pub events: usize,
}

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
    /// A configuration has too many runs. One name may select all runs of a schedule since its first day.
    #[error(
        "'{name}' selects more than {limit} runs; give the ids of at most {limit} runs, such as the newest"
    )]
    TooManyRuns {
        /// Its name.
        name: String,
        /// Most runs that it may have.
        limit: u32,
    },
    /// The logs of the runs are too long.
    #[error("the logs of these runs have more than {limit} events; compare fewer runs, or shorter ones")]
    TooManyEvents {
        /// Most events that they may have together.
        limit: usize,
    },
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
            | Self::TooManyRuns { .. }
            | Self::TooManyEvents { .. }
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
        self.compare_up_to(None)
    }

    /// The same for somebody who may not have everything read.
    ///
    /// # Errors
    /// As for [`Self::compare`], and if the request exceeds the limits.
    pub fn compare_within(&self, limits: ComparisonLimits) -> Result<Compared, CompareError> {
        self.compare_up_to(Some(limits))
    }

    fn compare_up_to(&self, limits: Option<ComparisonLimits>) -> Result<Compared, CompareError> {
        let wanted = quantities(self.quantities)?;
        let mut loader = Loader {
            request: self,
            limits,
            archive: None,
            events_read: 0,
            sides: Vec::new(),
            left_out: Vec::new(),
        };
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
    limits: Option<ComparisonLimits>,
    archive: Option<Box<dyn Store>>,
    /// Events of the archived runs so far.
    events_read: usize,
    /// The configurations so far: their names, and the ids of their runs.
    sides: Vec<(String, BTreeSet<String>)>,
    left_out: Vec<LeftOutRuns>,
}

/// A configuration that is being loaded. Logs are long, so each is dropped before the next one is read.
struct LoadedSide {
    candidate: Candidate,
    /// The plan among the logs, if there is one.
    plan: Option<PlanRecord>,
    /// Number of logs.
    logs: usize,
    /// The archived runs.
    ids: BTreeSet<String>,
}

impl LoadedSide {
    fn new(name: &str) -> Self {
        let candidate = Candidate::without_runs(name.to_owned());
        Self { candidate, plan: None, logs: 0, ids: BTreeSet::new() }
    }

    fn add(&mut self, log: &[Event]) {
        self.logs += 1;
        match PlanRecord::of_log(log) {
            Some(plan) => self.plan = Some(plan),
            None => self.candidate.add_run(&RunRecord::fold(log)),
        }
    }
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
        let mut side = LoadedSide::new(name);
        for one in list.split(',').map(str::trim).filter(|one| !one.is_empty()) {
            if let Some(read_file) = self.request.read_file
                && Path::new(one).is_file()
            {
                let read = read_file(Path::new(one));
                let logs = read.map_err(|error| CompareError::File { name: one.to_owned(), error })?;
                logs.iter().for_each(|log| side.add(log));
            } else {
                self.add_archived(one, &mut side)?;
            }
        }
        if list.split(',').all(|one| one.trim().is_empty()) {
            return Err(CompareError::NoRun(typed.to_owned()));
        }
        for (other, known) in &self.sides {
            if let Some(run) = side.ids.intersection(known).next() {
                let (run, base) = (run.clone(), other.clone());
                return Err(CompareError::OnBothSides { run, base, other: name.to_owned() });
            }
        }
        self.sides.push((name.to_owned(), side.ids));
        match side.plan {
            None => Ok(side.candidate),
            Some(plan) if side.logs == 1 => {
                let runs = self.samples(&plan)?;
                Ok(Candidate::of_plan(name.to_owned(), &plan, &runs))
            }
            Some(_) => Err(CompareError::PlanAmongRepeats(typed.to_owned())),
        }
    }

    /// Adds the runs that a word selects, in the order in which they were measured, which the test for independence
    /// needs. Of runs that share a name only those that were completed are repeats. Each run is a repeat once, however
    /// often it is named.
    fn add_archived(&mut self, typed: &str, side: &mut LoadedSide) -> Result<(), CompareError> {
        let limits = self.limits;
        let check_number = |name: &str, runs: usize| match limits {
            Some(ComparisonLimits { runs: limit, .. }) if runs > limit as usize => {
                Err(CompareError::TooManyRuns { name: name.to_owned(), limit })
            }
            _ => Ok(()),
        };
        // One more than the limit shows that there are too many.
        let newest = limits.map(|limits| limits.runs.saturating_add(1));
        let selected = match SelectedRuns::of(typed, self.archive()?, newest)? {
            SelectedRuns::Id(run) => vec![run],
            SelectedRuns::Named(runs) => {
                let all = runs.len();
                check_number(typed, all)?;
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
        let fresh: Vec<String> = selected.into_iter().filter(|run| side.ids.insert(run.clone())).collect();
        check_number(&side.candidate.name, side.ids.len())?;
        for run in fresh {
            let log = self.archive()?.events(&run)?;
            self.events_read = self.events_read.saturating_add(log.len());
            if let Some(limit) = limits.map(|limits| limits.events).filter(|limit| self.events_read > *limit)
            {
                return Err(CompareError::TooManyEvents { limit });
            }
            side.add(&log);
        }
        Ok(())
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
    use linerate_archive::{Archive, EventStore};
    use linerate_model::flow::FlowId;
    use linerate_model::{Body, Direction, FlowPlan, RunLabels, Side, Tally, Transport};
    use linerate_units::{Bitrate, Timestamp};

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

    /// Events of each run that [`archive_runs`] makes.
    const EVENTS: usize = 4;

    /// Archives runs that share a name, whose ids are the name and a number.
    fn archive_runs(archive: &mut Archive, name: &str, outcomes: &[Outcome]) {
        for (number, outcome) in outcomes.iter().enumerate() {
            let flow = FlowId(0);
            let plan = FlowPlan {
                flow,
                name: "upload".into(),
                from: "a".into(),
                to: "b".into(),
                transport: Transport::Tcp,
                direction: Direction::Upload,
                streams: 1,
            };
            let tally = Tally { bitrate: Bitrate::from_bps(1e9).unwrap(), ..Tally::default() };
            let bodies: [Body; EVENTS] = [
                Body::Labelled(RunLabels { name: Some(name.into()), ..RunLabels::default() }),
                Body::FlowPlanned(plan),
                Body::FlowEnded { flow, side: Side::Receiver, tally },
                Body::RunEnded { outcome: *outcome, reason: None },
            ];
            let run = format!("{name}-{number}");
            let event =
                |(seq, body)| Event { run: run.as_str().into(), host: 0, seq, at: Timestamp::START, body };
            archive.append(&(0..).zip(bodies).map(event).collect::<Vec<_>>()).unwrap();
        }
    }

    #[test]
    fn a_name_that_selects_more_runs_than_permitted_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("runs.db");
        let mut archive = Archive::open(&location).unwrap();
        let (done, failed) = (Outcome::Completed, Outcome::Failed);
        archive_runs(&mut archive, "often", &[done, failed, done, failed]);
        archive_runs(&mut archive, "few", &[done; 3]);
        archive_runs(&mut archive, "other", &[failed, done, done]);
        let compare = |runs: [&str; 2], limits| {
            let open = || Archive::open(&location).map(|found| Box::new(found) as Box<dyn Store>);
            let runs = runs.map(str::to_owned);
            let (quantities, archive) = (&[][..], &open);
            let request = CompareRequest { runs: &runs, axis: None, quantities, archive, read_file: None };
            request.compare_up_to(limits)
        };
        let limits = |runs, events| Some(ComparisonLimits { runs, events });
        // Runs that were not completed count too: older ones may be hidden behind them.
        let error = compare(["few", "often"], limits(3, 1000)).unwrap_err();
        assert!(matches!(&error, CompareError::TooManyRuns { name, limit: 3 } if name == "often"), "{error}");
        assert!(error.needs_correction() && error.to_string().contains("at most 3"), "{error}");
        let many = "x=few-0,few-1,other-1,other-2";
        let error = compare(["often-0", many], limits(3, 1000)).unwrap_err();
        assert!(matches!(&error, CompareError::TooManyRuns { name, limit: 3 } if name == "x"), "{error}");
        let all = 5 * EVENTS;
        let error = compare(["few", "other"], limits(3, all - 1)).unwrap_err();
        assert!(matches!(error, CompareError::TooManyEvents { limit } if limit == all - 1), "{error}");
        let compared = compare(["few", "other"], limits(3, all)).unwrap();
        assert_eq!(compared.left_out, [LeftOutRuns { name: "other".to_owned(), runs: 1 }]);
        assert!(compare(["few", "often"], None).is_ok());
    }
}
