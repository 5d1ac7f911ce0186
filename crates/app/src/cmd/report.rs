//! `linerate report`: archived runs, or a plan with its runs, as one page.

use std::io;
use std::path::{Path, PathBuf};

use linerate_archive::{ArchiveError, SqliteArchive, Store};
use linerate_model::{Body, Event, ForeignText, PlanRecord, RunRecord};
use linerate_report::html;

use super::archived::{archive, failed};
use super::format::whole_file;
use super::page;
use crate::args::ReportArgs;
use crate::exit::Exit;
use crate::{front_end, print};

/// Most runs of a plan on one page.
const MAX_RUNS: usize = 200;
/// Most events of a plan's runs on one page: a few tens of megabytes.
const MAX_EVENTS: usize = 400_000;

/// A run with its log.
type Loaded = (RunRecord, Vec<Event>);

pub(crate) fn run(args: &ReportArgs) -> Exit {
    let Some(assets) = front_end::assets() else {
        print::error(front_end::MISSING);
        return Exit::Failed;
    };
    let loaded = archive(&args.archive).and_then(|archive| {
        let logs = args.runs.iter().map(|run| archive.events(run)).collect::<Result<Vec<_>, _>>()?;
        let plans = logs.iter().filter(|log| is_plan(log)).count();
        let short = archive.short_name(&archive.find(&args.runs[0])?)?;
        match (plans, logs.len()) {
            (1, 1) => Ok(Some((short, of_plan(logs, &archive)?))),
            (0, _) => Ok(Some((short, of_runs(logs)))),
            _ => Ok(None),
        }
    });
    let (short, page) = match loaded {
        Ok(Some(loaded)) => loaded,
        Ok(None) => {
            print::error("a plan includes its own runs; give either the name of a plan or names of runs");
            return Exit::Usage;
        }
        Err(error) => return failed(&error),
    };
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("linerate-{short}.html")));
    // Freeing a million samples takes a while, and the program ends here.
    let page = std::mem::ManuallyDrop::new(page);
    finish(&path, args.output.is_none(), |out| page.write(&assets, out))
}

/// Content of a page.
struct Page {
    plan: Option<(PlanRecord, Vec<Event>)>,
    runs: Vec<Loaded>,
    left_out: Vec<ForeignText>,
}

impl Page {
    fn write(&self, assets: &html::Assets<'_>, out: &mut dyn io::Write) -> io::Result<()> {
        let runs: Vec<html::ReportedRun<'_>> =
            self.runs.iter().map(|(record, events)| html::ReportedRun { record, events }).collect();
        let plan = self.plan.as_ref();
        let plan =
            plan.map(|(record, events)| html::ReportedPlan { record, events, left_out: &self.left_out });
        html::write(plan.as_ref(), &runs, assets, out)
    }
}

fn is_plan(log: &[Event]) -> bool {
    log.iter().any(|event| matches!(event.body, Body::PlanStarted(_)))
}

fn of_runs(logs: Vec<Vec<Event>>) -> Page {
    let runs = logs.into_iter().map(|log| (RunRecord::fold(&log), log)).collect();
    Page { plan: None, runs, left_out: Vec::new() }
}

/// The plan with as many of its runs as fit: first one run of each point, then the repeats. Runs that were
/// deleted from the archive count as left out.
fn of_plan(logs: Vec<Vec<Event>>, archive: &SqliteArchive) -> Result<Page, ArchiveError> {
    let log = logs.into_iter().next().unwrap_or_default();
    let plan = PlanRecord::fold(&log);
    let mut trials: Vec<_> = plan.trials.iter().collect();
    trials.sort_by_key(|trial| trial.repeat);
    let (mut runs, mut left_out, mut events) = (Vec::new(), Vec::new(), 0);
    for run in trials.iter().flat_map(|trial| &trial.runs) {
        // Do not load further runs after one that did not fit.
        let log = if left_out.len() < MAX_RUNS && runs.len() < MAX_RUNS && events < MAX_EVENTS {
            found(archive, &run.run)?
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
    Ok(Page { plan: Some((plan, log)), runs, left_out })
}

fn found(archive: &SqliteArchive, run: &str) -> Result<Option<Vec<Event>>, ArchiveError> {
    match archive.events(run) {
        Ok(log) => Ok(Some(log)),
        Err(ArchiveError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes to a file, or to stdout for `-`; prints the path if the user did not choose it.
fn finish(path: &Path, say_where: bool, write: impl Fn(&mut dyn io::Write) -> io::Result<()>) -> Exit {
    if path.as_os_str() == "-" {
        let mut out = Vec::new();
        return match write(&mut out) {
            Ok(()) => page::print(&out),
            Err(error) => {
                print::error(format!("the page could not be printed: {error}"));
                Exit::Failed
            }
        };
    }
    match whole_file(path, write) {
        Ok(()) => {
            if say_where {
                page::print(format!("written: {}\n", path.display()).as_bytes())
            } else {
                Exit::Done
            }
        }
        Err(error) => {
            print::error(format!("{} could not be written: {error}", path.display()));
            Exit::Failed
        }
    }
}
