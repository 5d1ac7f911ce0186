//! Preparation before any host is contacted: the plan, an earlier run of it, and whether it may be run.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_archive::{Filter, SqliteArchive, Store};
use linerate_model::{Outcome, PlanFile, PlanRecord, World};
use linerate_plan::{Plan, Source, Surroundings, SurroundingsError, read};
use linerate_runner::find_plan;

use super::super::archived;
use super::super::measuring::file_error;
use super::super::plan::files::Files;
use super::super::plan::too_long;
use super::{RunArgs, RunError, WorldName};

/// Extensions of report files. A new format needs an extension here.
const REPORTS: &str = ".html, .json, .csv, .md, .txt or .svg";

/// A plan that may be run.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    /// All overrides, including `--topology`.
    pub(super) set: Vec<String>,
    pub(super) world: World,
    /// The record of the interrupted run to continue.
    pub(super) before: Option<PlanRecord>,
    /// Other plans that assertions refer to, by their names there.
    pub(super) others: BTreeMap<String, PlanRecord>,
}

/// Reads the plan and checks everything that can be checked locally.
pub(super) fn prepare(args: &RunArgs) -> Result<Prepared, RunError> {
    if let Some(trouble) = args.report.as_deref().and_then(|file| file_error("--report", file, REPORTS)) {
        return Err(RunError::usage(trouble));
    }
    // `--resume NAME` alone may refer to a plan.
    let (name, resume) = match (&args.plan, &args.resume) {
        (None, Some(resume)) if !is_run_name(resume) => (Some(resume.as_str()), Some("")),
        (plan, resume) => (plan.as_deref(), resume.as_deref()),
    };
    if name == Some("") {
        return Err(RunError::usage("--resume: name the plan, or the run to resume"));
    }
    let (source, named) = match (name, name.map(find_plan)) {
        // A plan whose file is elsewhere or deleted is still in the archive.
        (Some(name), Some(Err(_))) if args.plan.is_none() => (None, Some(newest_unfinished(args, name)?)),
        (_, found) => (found.transpose().map_err(RunError::usage)?, None),
    };
    let before = match resume {
        None | Some("") => named,
        Some(run) => Some(record_of(args, run)?),
    };
    let mut set = given_settings(args, before.as_ref());
    let (source, kept) = match (source, &before) {
        (Some(source), _) => (source, Vec::new()),
        (None, Some(record)) => from_log(record)?,
        (None, None) => return Err(RunError::usage("name a plan")),
    };
    let around = Around { kept };
    let mut plan = checked(&source, &set, &around)?;
    let before = match (before, resume) {
        (None, Some(_)) => {
            let record = newest_unfinished(args, &plan.name)?;
            set = given_settings(args, Some(&record));
            plan = checked(&source, &set, &around)?;
            Some(record)
        }
        (before, _) => before,
    };
    let estimate = plan.estimate().map_err(RunError::usage)?;
    if let Some(trouble) = too_long(&plan, &estimate, args.max_time) {
        return Err(RunError::usage(trouble));
    }
    let world = world(args, &plan, before.as_ref())?;
    let others = others(args, &plan)?;
    Ok(Prepared { plan, set, world, before, others })
}

fn checked(source: &Source, set: &[String], around: &Around) -> Result<Plan, RunError> {
    read(source.clone(), set, around).map_err(RunError::usage)
}

/// Whether a text is `latest` or has the format of a run id: hexadecimal digits only.
fn is_run_name(text: &str) -> bool {
    text == "latest" || (text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The overrides of the interrupted run, followed by the new ones: a continued run is the same measurement.
fn given_settings(args: &RunArgs, before: Option<&PlanRecord>) -> Vec<String> {
    let mut set: Vec<String> = before
        .and_then(|record| record.start.as_ref())
        .map(|start| start.set.iter().map(|set| set.as_str().to_owned()).collect())
        .unwrap_or_default();
    let topology = args.topology.as_ref().map(|topology| format!("lab.topology={}", from_here(topology)));
    for new in args.set.iter().cloned().chain(topology) {
        let key = new.split('=').next().unwrap_or_default().to_owned();
        set.retain(|old| old.split('=').next() != Some(key.as_str()));
        set.push(new);
    }
    set
}

/// The path of a topology on the command line is relative to the working directory; in plans it is relative to
/// the plan.
fn from_here(topology: &str) -> String {
    let comes_along = linerate_emu::topology::bundled().iter().any(|known| known.name == topology);
    let absolute = (!comes_along).then(|| std::path::absolute(topology).ok()).flatten();
    absolute.map_or_else(|| topology.to_owned(), |path| path.display().to_string())
}

/// The plan in a log, and the files that it includes.
fn from_log(record: &PlanRecord) -> Result<(Source, Vec<Source>), RunError> {
    let files = record.start.as_ref().map(|start| start.files.as_slice()).unwrap_or_default();
    let source =
        |file: &PlanFile| Source { name: file.name.to_string(), text: file.text.as_str().to_owned() };
    let Some((first, rest)) = files.split_first() else {
        return Err(RunError::usage(format!(
            "run {} is not a run of a plan, so it cannot be resumed",
            record.run
        )));
    };
    Ok((source(first), rest.iter().map(source).collect()))
}

/// Files next to a plan; preferably the copies in the log.
struct Around {
    kept: Vec<Source>,
}

impl Surroundings for Around {
    fn include(&self, name: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        let shown = Path::new(relative_to).parent().map_or_else(|| name.into(), |folder| folder.join(name));
        let kept = self.kept.iter().find(|file| Path::new(&file.name) == shown);
        kept.map_or_else(|| Files.include(name, relative_to), |file| Ok(file.clone()))
    }

    fn hosts(
        &self,
        topology: &str,
        set: &[(&str, &str)],
        relative_to: &str,
    ) -> Result<Vec<String>, SurroundingsError> {
        Files.hosts(topology, set, relative_to)
    }
}

fn archive(args: &RunArgs) -> Result<SqliteArchive, RunError> {
    archived::archive(&args.archive).map_err(RunError::failed)
}

/// The record of a plan's run.
fn record_of(args: &RunArgs, run: &str) -> Result<PlanRecord, RunError> {
    let record = PlanRecord::fold(&archive(args)?.events(run).map_err(RunError::usage)?);
    if record.start.is_none() {
        return Err(RunError::usage(format!(
            "run {run} is not a run of a plan; linerate history lists the \
                                            plans"
        )));
    }
    Ok(record)
}

fn newest_unfinished(args: &RunArgs, plan: &str) -> Result<PlanRecord, RunError> {
    let archive = archive(args)?;
    let filter = Filter { plan: Some(plan.to_owned()), ..Filter::default() };
    let runs = archive.runs(&filter).map_err(RunError::failed)?;
    let unfinished = runs.iter().find(|run| run.outcome != Some(Outcome::Completed));
    let Some(run) = unfinished else {
        let text =
            format!("the archive has no unfinished run of the plan {plan}; remove --resume to start one");
        return Err(RunError::usage(text));
    };
    Ok(PlanRecord::fold(&archive.events(&run.id).map_err(RunError::failed)?))
}

/// Where the plan is run.
fn world(args: &RunArgs, plan: &Plan, before: Option<&PlanRecord>) -> Result<World, RunError> {
    let nowhere = plan.used_hosts().find(|host| host.address.is_none());
    let began = before.and_then(|record| record.start.as_ref()).map(|start| start.world);
    let by_itself = || match nowhere {
        Some(_) if plan.lab.is_some() => World::Lab,
        _ => World::Hosts,
    };
    let asked = args.world.map(World::from).or(args.topology.is_some().then_some(World::Lab));
    let world = asked.or(began).unwrap_or_else(by_itself);
    if let Some(began) = began.filter(|began| *began != world) {
        let text =
            format!("the run was started with --world {} and can only be resumed with it", began.name());
        return Err(RunError::usage(text));
    }
    match world {
        World::Lab => {
            if plan.lab.is_none() {
                return Err(RunError::usage("the plan has no lab; name one with --topology"));
            }
            let absent = plan.used_hosts().find(|host| !host.in_lab);
            absent.map_or(Ok(()), |host| {
                Err(RunError::usage(format!("the topology has no host '{}', which a flow needs", host.name)))
            })?;
        }
        _ => {
            if let Some(host) = nowhere {
                let text = format!(
                    "host {} has no address; give --set host.{}.address=…, or run the plan in the lab with \
                     --world {}",
                    host.name,
                    host.name,
                    <WorldName as clap::ValueEnum>::to_possible_value(&WorldName::Lab)
                        .map(|value| value.get_name().to_owned())
                        .unwrap_or_default()
                );
                return Err(RunError::usage(text));
            }
            if let Some(axis) = lab_axis(plan) {
                let text = format!(
                    "axis '{axis}' changes the emulated network; use --world lab, or remove the axis"
                );
                return Err(RunError::usage(text));
            }
        }
    }
    Ok(world)
}

/// The name of an axis over a key of the lab, if there is one.
fn lab_axis(plan: &Plan) -> Option<&str> {
    let over_lab = |targets: &[linerate_plan::Target]| {
        targets.iter().any(|target| matches!(target, linerate_plan::Target::Lab(_)))
    };
    let axis = plan.axes.iter().find(|axis| over_lab(&axis.targets)).map(|axis| axis.name.as_str());
    axis.or_else(|| {
        plan.search.as_ref().filter(|search| over_lab(&search.targets)).map(|one| one.name.as_str())
    })
}

/// The plans that assertions refer to: by a prefix of their run id, or the newest completed one with that name.
fn others(args: &RunArgs, plan: &Plan) -> Result<BTreeMap<String, PlanRecord>, RunError> {
    let mut found = BTreeMap::new();
    for name in plan.assertions.iter().flat_map(|assertion| assertion.claim.runs()) {
        if found.contains_key(name) {
            continue;
        }
        let archive = archive(args)?;
        let filter = Filter { plan: Some(name.to_owned()), ..Filter::default() };
        let runs = archive.runs(&filter).map_err(RunError::failed)?;
        let newest = runs.into_iter().find(|run| run.outcome == Some(Outcome::Completed)).map(|run| run.id);
        let run = newest.unwrap_or_else(|| name.into());
        let record = PlanRecord::fold(
            &archive
                .events(&run)
                .map_err(|error| RunError::usage(format!("run(\"{name}\") of an assertion: {error}")))?,
        );
        if record.start.is_none() {
            return Err(RunError::usage(format!("run(\"{name}\") of an assertion is not a run of a plan")));
        }
        found.insert(name.to_owned(), record);
    }
    Ok(found)
}
