//! Preparation before any host is contacted: the plan, an earlier run of it, and whether it may be carried out.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use linerate_archive::{Filter, Store};
use linerate_model::{Outcome, PlanFile, PlanRecord, World};
use linerate_plan::{AxisTarget, Plan, Source, Surroundings, SurroundingsError, read};
use linerate_units::Span;

use super::error::{PlanRunError, ResumeError, TooLong, WorldError};
use super::files::{PlanFiles, resolve};
use crate::find_plan;
use crate::report_source::OpenArchive;

/// Which plan to carry out, and how.
#[derive(Clone, Copy, Default)]
pub struct PlanRequest<'a> {
    /// A bundled plan, or a plan file; absent for the plan of the run to resume.
    pub plan: Option<&'a str>,
    /// The interrupted run to continue; absent for a new one.
    pub resume: Option<Resume<'a>>,
    /// Where to carry it out; absent for the hosts if all of them have addresses, and the lab otherwise.
    pub world: Option<World>,
    /// The network to emulate instead of the plan's: a bundled topology, or a topology file.
    pub topology: Option<&'a str>,
    /// Settings of the plan such as `test.duration=5s`, which override its file.
    pub set: &'a [String],
    /// The longest estimated duration; absent for that of the plan.
    pub max_time: Option<Span>,
    /// The archive; absent if nothing is resumed, compared with other runs, or put into tables of a method.
    pub archive: Option<OpenArchive<'a>>,
}

/// The interrupted run to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume<'a> {
    /// The newest unfinished one of the plan.
    Newest,
    /// The run whose id begins like this, or `latest`.
    Run(&'a str),
    /// The newest unfinished one of this plan, which may exist only in the archive.
    NewestOf(&'a str),
}

impl<'a> Resume<'a> {
    /// What a text refers to: `latest` and hexadecimal digits are runs, other names are plans.
    #[must_use]
    pub fn named(text: &'a str) -> Self {
        let is_run = text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text == "latest" || is_run { Self::Run(text) } else { Self::NewestOf(text) }
    }
}

/// A plan that may be carried out.
pub struct PreparedPlan<'a> {
    pub(super) plan: Plan,
    /// All settings, including the topology.
    pub(super) set: Vec<String>,
    pub(super) world: World,
    /// The record of the interrupted run to continue.
    pub(super) before: Option<PlanRecord>,
    /// Other plans that assertions refer to, by their names there.
    pub(super) others: BTreeMap<String, PlanRecord>,
    pub(super) archive: Option<OpenArchive<'a>>,
    /// The id of a new run; absent for a random one.
    pub(super) run: Option<String>,
}

impl PreparedPlan<'_> {
    /// A plan that was read elsewhere, without an archive.
    ///
    /// # Errors
    /// It cannot be carried out there, or its assertions refer to other runs.
    pub fn new(plan: Plan, world: World) -> Result<Self, PlanRunError> {
        check_world(&plan, world)?;
        let others = PlanRequest::default().others(&plan)?;
        Ok(Self { plan, set: Vec::new(), world, before: None, others, archive: None, run: None })
    }

    /// The same plan, of which a new run gets this id, as [`crate::run_name`] makes them.
    #[must_use]
    pub fn named(self, run: String) -> Self {
        Self { run: Some(run), ..self }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where it is carried out.
    #[must_use]
    pub fn world(&self) -> World {
        self.world
    }
}

impl fmt::Debug for PreparedPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedPlan")
            .field("plan", &self.plan.name)
            .field("world", &self.world)
            .finish_non_exhaustive()
    }
}

impl<'a> PlanRequest<'a> {
    /// Reads the plan and checks everything that can be checked on this machine.
    ///
    /// # Errors
    /// The plan, the run to resume, or a run that an assertion refers to is not found or is invalid.
    pub fn prepare(&self) -> Result<PreparedPlan<'a>, PlanRunError> {
        let name = match self.resume {
            Some(Resume::NewestOf(name)) if self.plan.is_none() => Some(name),
            _ => self.plan,
        };
        let (source, named) = match (name, name.map(find_plan)) {
            // A plan whose file is elsewhere or deleted is still in the archive.
            (Some(name), Some(Err(_))) if self.plan.is_none() => (None, Some(self.newest_unfinished(name)?)),
            (_, found) => (found.transpose()?, None),
        };
        let before = match self.resume {
            Some(Resume::Run(run)) => Some(self.record_of(run)?),
            _ => named,
        };
        let mut set = self.settings(before.as_ref());
        let (source, kept) = match (source, &before) {
            (Some(source), _) => (source, Vec::new()),
            (None, Some(record)) => from_log(record)?,
            (None, None) => return Err(PlanRunError::NoPlan),
        };
        let around = PlanSurroundings { kept };
        let mut plan = read(source.clone(), &set, &around)?;
        let before = match (before, self.resume) {
            (None, Some(_)) => {
                let record = self.newest_unfinished(&plan.name)?;
                set = self.settings(Some(&record));
                plan = read(source, &set, &around)?;
                Some(record)
            }
            (before, _) => before,
        };
        self.complete(plan, set, before)
    }

    /// As [`Self::prepare`], for a new run of a plan that was already read with the settings of this request. Its name
    /// and the topology here are ignored.
    ///
    /// # Errors
    /// The plan would take too long or cannot be carried out there, or a run that an assertion refers to is not found.
    pub fn prepare_read(&self, plan: Plan) -> Result<PreparedPlan<'a>, PlanRunError> {
        self.complete(plan, self.set.to_vec(), None)
    }

    fn complete(
        &self,
        plan: Plan,
        set: Vec<String>,
        before: Option<PlanRecord>,
    ) -> Result<PreparedPlan<'a>, PlanRunError> {
        TooLong::check(&plan, &plan.estimate()?, self.max_time)?;
        let world = self.choose_world(&plan, before.as_ref())?;
        let others = self.others(&plan)?;
        Ok(PreparedPlan { plan, set, world, before, others, archive: self.archive, run: None })
    }

    /// The settings of the interrupted run, followed by the new ones: a continued run is the same measurement.
    fn settings(&self, before: Option<&PlanRecord>) -> Vec<String> {
        let mut set: Vec<String> = before
            .and_then(|record| record.start.as_ref())
            .map(|start| start.set.iter().map(|set| set.as_str().to_owned()).collect())
            .unwrap_or_default();
        let topology = self.topology.map(|topology| format!("lab.topology={}", from_here(topology)));
        for new in self.set.iter().cloned().chain(topology) {
            let key = new.split('=').next().unwrap_or_default().to_owned();
            set.retain(|old| old.split('=').next() != Some(key.as_str()));
            set.push(new);
        }
        set
    }

    fn archive(&self) -> Result<Box<dyn Store>, PlanRunError> {
        let open = self.archive.ok_or(PlanRunError::NoArchive)?;
        open().map_err(PlanRunError::Archive)
    }

    /// The record of a plan's run.
    fn record_of(&self, run: &str) -> Result<PlanRecord, PlanRunError> {
        let events = self.archive()?.events(run).map_err(ResumeError::NotFound)?;
        let record = PlanRecord::fold(&events);
        if record.start.is_none() {
            return Err(ResumeError::NotPlan(run.to_owned()).into());
        }
        Ok(record)
    }

    fn newest_unfinished(&self, plan: &str) -> Result<PlanRecord, PlanRunError> {
        let archive = self.archive()?;
        let filter = Filter { plan: Some(plan.to_owned()), ..Filter::default() };
        let runs = archive.runs(&filter).map_err(PlanRunError::Archive)?;
        let unfinished = runs.iter().find(|run| run.outcome != Some(Outcome::Completed));
        let Some(run) = unfinished else { return Err(ResumeError::NoneUnfinished(plan.to_owned()).into()) };
        Ok(PlanRecord::fold(&archive.events(&run.id).map_err(PlanRunError::Archive)?))
    }

    /// Where the plan is carried out.
    fn choose_world(&self, plan: &Plan, before: Option<&PlanRecord>) -> Result<World, WorldError> {
        let began = before.and_then(|record| record.start.as_ref()).map(|start| start.world);
        let asked = self.world.or(self.topology.is_some().then_some(World::Lab));
        let world = asked.or(began).unwrap_or_else(|| usual_world(plan));
        if let Some(began) = began.filter(|began| *began != world) {
            return Err(WorldError::Began(began));
        }
        check_world(plan, world)?;
        Ok(world)
    }

    /// The plans that assertions refer to: by a prefix of their run id, or the newest completed one with that name.
    fn others(&self, plan: &Plan) -> Result<BTreeMap<String, PlanRecord>, PlanRunError> {
        let mut found = BTreeMap::new();
        for name in plan.assertions.iter().flat_map(|assertion| assertion.relation.runs()) {
            if found.contains_key(name) {
                continue;
            }
            let archive = self.archive()?;
            let filter = Filter { plan: Some(name.to_owned()), ..Filter::default() };
            let runs = archive.runs(&filter).map_err(PlanRunError::Archive)?;
            let newest =
                runs.into_iter().find(|run| run.outcome == Some(Outcome::Completed)).map(|run| run.id);
            let run = newest.unwrap_or_else(|| name.into());
            let events = archive
                .events(&run)
                .map_err(|error| PlanRunError::OtherRun { name: name.to_owned(), error })?;
            let record = PlanRecord::fold(&events);
            if record.start.is_none() {
                return Err(PlanRunError::OtherRunNotPlan(name.to_owned()));
            }
            found.insert(name.to_owned(), record);
        }
        Ok(found)
    }
}

impl fmt::Debug for PlanRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanRequest")
            .field("plan", &self.plan)
            .field("resume", &self.resume)
            .field("world", &self.world)
            .field("topology", &self.topology)
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

/// The path of a topology in a request is relative to the working directory; in plans it is relative to the plan.
fn from_here(topology: &str) -> String {
    let comes_along = linerate_emu::topology::bundled().iter().any(|known| known.name == topology);
    let absolute = (!comes_along).then(|| std::path::absolute(topology).ok()).flatten();
    absolute.map_or_else(|| topology.to_owned(), |path| path.display().to_string())
}

/// The plan in a log, and the files that it includes.
fn from_log(record: &PlanRecord) -> Result<(Source, Vec<Source>), ResumeError> {
    let files = record.start.as_ref().map(|start| start.files.as_slice()).unwrap_or_default();
    let source =
        |file: &PlanFile| Source { name: file.name.to_string(), text: file.text.as_str().to_owned() };
    let Some((first, rest)) = files.split_first() else {
        return Err(ResumeError::NoFiles(record.run.to_string()));
    };
    Ok((source(first), rest.iter().map(source).collect()))
}

/// Files next to a plan; preferably the copies in the log.
struct PlanSurroundings {
    kept: Vec<Source>,
}

impl Surroundings for PlanSurroundings {
    fn include(&self, name: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        let shown = resolve(name, relative_to);
        let kept = self.kept.iter().find(|file| Path::new(&file.name) == shown);
        kept.map_or_else(|| PlanFiles.include(name, relative_to), |file| Ok(file.clone()))
    }

    fn topology(&self, topology: &str, relative_to: &str) -> Result<Source, SurroundingsError> {
        PlanFiles.topology(topology, relative_to)
    }

    fn hosts(
        &self,
        topology: &str,
        set: &[(&str, &str)],
        relative_to: &str,
    ) -> Result<Vec<String>, SurroundingsError> {
        PlanFiles.hosts(topology, set, relative_to)
    }
}

/// Where a plan is carried out: where the user says, otherwise on its hosts if all of them have addresses, and in its
/// lab if not.
///
/// # Errors
/// It cannot be carried out there.
pub fn world_of(plan: &Plan, asked: Option<World>) -> Result<World, WorldError> {
    let world = asked.unwrap_or_else(|| usual_world(plan));
    check_world(plan, world).map(|()| world)
}

fn usual_world(plan: &Plan) -> World {
    let has_addresses = plan.used_hosts().all(|host| host.address.is_some());
    if plan.lab.is_some() && !has_addresses { World::Lab } else { World::Hosts }
}

fn check_world(plan: &Plan, world: World) -> Result<(), WorldError> {
    if world == World::Lab {
        if plan.lab.is_none() {
            return Err(WorldError::NoLab);
        }
        let absent = plan.used_hosts().find(|host| !host.in_lab);
        return absent.map_or(Ok(()), |host| Err(WorldError::NotInLab(host.name.clone())));
    }
    if let Some(host) = plan.used_hosts().find(|host| host.address.is_none()) {
        return Err(WorldError::NoAddress(host.name.clone()));
    }
    lab_axis(plan).map_or(Ok(()), |axis| Err(WorldError::LabAxis(axis.to_owned())))
}

/// The name of an axis over a key of the lab, if there is one.
fn lab_axis(plan: &Plan) -> Option<&str> {
    let over_lab = |targets: &[AxisTarget]| targets.iter().any(|target| matches!(target, AxisTarget::Lab(_)));
    let axis = plan.axes.iter().find(|axis| over_lab(&axis.targets)).map(|axis| axis.name.as_str());
    axis.or_else(|| {
        plan.search.as_ref().filter(|search| over_lab(&search.targets)).map(|one| one.name.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan with two hosts in a lab; the text says what they are.
    fn plan(hosts: &str) -> Plan {
        let text = format!("{hosts}\nflow.x = {{ from = \"a\", to = \"b\" }}\n[lab]\ntopology = \"pair\"\n");
        let source = Source { name: "here.toml".to_owned(), text };
        read(source, &[], &PlanFiles).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_plan_takes_place_where_its_hosts_are_unless_it_is_asked_for_elsewhere() {
        let anywhere = PlanRequest::default();
        let real = PlanRequest { world: Some(World::Hosts), ..anywhere };
        let emulated = PlanRequest { topology: Some("pair"), ..anywhere };
        let in_lab = plan("host.a = {}\nhost.b = {}");
        assert_eq!(anywhere.choose_world(&in_lab, None), Ok(World::Lab));
        assert_eq!(real.choose_world(&in_lab, None), Err(WorldError::NoAddress("a".to_owned())));
        let reached = plan("host.a.address = \"192.0.2.1\"\nhost.b.address = \"192.0.2.2\"");
        assert_eq!(anywhere.choose_world(&reached, None), Ok(World::Hosts));
        assert_eq!(emulated.choose_world(&reached, None), Ok(World::Lab));
    }

    #[test]
    fn without_an_archive_nothing_is_resumed() {
        let plan = PlanRequest { plan: Some("window-sweep"), ..PlanRequest::default() };
        for resume in [Resume::Newest, Resume::Run("latest"), Resume::NewestOf("window-sweep")] {
            let refused = PlanRequest { resume: Some(resume), ..plan }.prepare().unwrap_err();
            assert!(matches!(refused, PlanRunError::NoArchive), "{resume:?}: {refused}");
        }
        assert!(matches!(PlanRequest::default().prepare(), Err(PlanRunError::NoPlan)));
    }

    #[test]
    fn a_plan_that_would_take_longer_than_allowed_is_refused() {
        let brief = PlanRequest {
            plan: Some("window-sweep"),
            max_time: Some(Span::from_secs(1)),
            ..PlanRequest::default()
        };
        let refused = brief.prepare().unwrap_err();
        let PlanRunError::TooLong(found) = &refused else { panic!("{refused}") };
        assert!(!found.by_plan && found.estimate.time > found.limit && refused.needs_correction());
    }

    #[test]
    fn names_of_runs_and_of_plans_are_distinguished() {
        assert_eq!(Resume::named("latest"), Resume::Run("latest"));
        assert_eq!(Resume::named("c0ffee"), Resume::Run("c0ffee"));
        assert_eq!(Resume::named("cab"), Resume::NewestOf("cab"));
        assert_eq!(Resume::named("window-sweep"), Resume::NewestOf("window-sweep"));
    }
}
