//! The commands of users, as data: a command line and a page ask for the same things.

use std::path::PathBuf;

use linerate_archive::RunFilter;
use linerate_control::Token;
use linerate_model::TlsOptions;
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAnswer, UnixTime};
use linerate_runner::agent_trust;
use linerate_units::Span;

use crate::engines::EnginePaths;
use crate::enrollment::{BrokerOptions, coordinators_key};
use crate::error::FleetError;
use crate::fleet_calendar::{CancelTarget, FleetCalendar};
use crate::fleet_file;
use crate::recurrence::{parse_time, zone};
use crate::request::{PairRequest, ScheduleRequest};
use crate::service::{FleetBroker, FleetNotice, FleetServiceConfig};
use crate::tryout::{TryOut, is_up};

/// Runs of a list at most, unless another number is wanted.
const DEFAULT_RUNS: u32 = 20;

/// Fewest characters that stand for a run.
const MIN_RUN_CHARS: usize = 4;

/// What to do with the calendar.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
pub enum ScheduleCommand {
    /// Add a schedule: a test between two hosts of the fleet, and when to make it
    Add(Box<ScheduleRequest>),
    /// List the schedules, when they are due next, and what measures now
    List,
    /// List the newest runs that have ended, or those that come next
    Runs(RunsRequest),
    /// Do not measure this schedule until it is resumed; its coming runs are cancelled
    Pause(ScheduleName),
    /// Measure this schedule again
    Resume(ScheduleName),
    /// Remove a schedule and cancel its coming runs; its results stay
    Remove(ScheduleName),
    /// Cancel coming and active runs: one, those of a schedule, or all
    Cancel(CancelRequest),
    /// Say why a schedule does not measure now, and when it could
    Why(WhyRequest),
    /// Say when a test could be made at the earliest
    NextFree(Box<NextFreeRequest>),
}

/// What to do with a fleet.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Subcommand))]
pub enum FleetCommand {
    /// Check the file of a fleet, and show what it means
    Check(FleetFilePath),
    /// Carry out the calendar of a fleet with its agents: the coordinator. SIGHUP makes it read the file again
    Run(CoordinatorOptions),
    /// Show the hosts of the fleet, who coordinates it, and alarms
    Status,
    /// List the newest alarms
    Alarms(AlarmFilter),
    /// Start a fleet on this machine for trying out: a coordinator and three agents
    Up(TryOutOptions),
    /// End the fleet that `linerate fleet up` started
    Down,
}

/// The file of a fleet.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct FleetFilePath {
    /// The file of the fleet
    pub file: PathBuf,
}

/// What a coordinator needs.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct CoordinatorOptions {
    /// The file of the fleet
    pub file: PathBuf,
    /// File with the token of the hosts' agents (linerate serve --agent-token-file)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub agent_token_file: PathBuf,
    /// Whether and how the control connections are encrypted.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub tls: TlsOptions,
    /// Where the broker is, if agents carry out the calendar by themselves.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub broker: BrokerOptions,
    /// File with the secret key of the coordinators (linerate agent enroll makes it)
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE", requires = "brokers"))]
    pub fleet_key_file: Option<PathBuf>,
}

impl FleetCommand {
    /// The answer to a question about the fleet whose calendar is in a folder or an archive; absent for a command that
    /// does something.
    ///
    /// # Errors
    /// The file of the fleet has mistakes, or those of [`FleetCalendar`].
    pub fn answer(
        &self,
        place: &TryOutFolder,
        archive: Option<&str>,
        now: UnixTime,
    ) -> Result<Option<FleetAnswer>, FleetError> {
        let calendar = || FleetCalendar::open(place.archive(archive)?.as_deref());
        Ok(Some(match self {
            Self::Check(checked) => {
                FleetAnswer::Preview(Box::new(fleet_file::load(&checked.file)?.preview()))
            }
            Self::Status => FleetAnswer::Status(Box::new(calendar()?.status(now)?)),
            Self::Alarms(filter) => FleetAnswer::Alarms(calendar()?.alarms(filter.open)?),
            Self::Run(_) | Self::Up(_) | Self::Down => return Ok(None),
        }))
    }
}

impl CoordinatorOptions {
    /// What the service of the coordinator needs.
    ///
    /// # Errors
    /// The file of the fleet or an option has mistakes.
    pub fn config(
        &self,
        token: Token,
        archive: Option<String>,
        notify: fn(&FleetNotice),
    ) -> Result<FleetServiceConfig, FleetError> {
        Ok(FleetServiceConfig {
            archive,
            inventory: fleet_file::load(&self.file)?,
            token,
            tls: agent_trust(&self.tls)?,
            broker: self.fleet_broker()?,
            notify,
        })
    }

    /// How the coordinator reaches agents that carry out the calendar by themselves; absent if there is no broker.
    ///
    /// # Errors
    /// The key of the coordinators cannot be read.
    fn fleet_broker(&self) -> Result<Option<FleetBroker>, FleetError> {
        if self.broker.brokers.is_empty() {
            return Ok(None);
        }
        let path = self.fleet_key_file.as_deref().ok_or(FleetError::NoFleetKey)?;
        let key = coordinators_key(path)?;
        Ok(Some(FleetBroker { key: key.secret(), place: self.broker.clone() }))
    }
}

/// Which alarms to list.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct AlarmFilter {
    /// Only those that are not cleared
    #[cfg_attr(feature = "clap", arg(long))]
    pub open: bool,
}

/// How to start a fleet for trying out.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TryOutOptions {
    /// Continue in the background
    #[cfg_attr(feature = "clap", arg(long))]
    pub detach: bool,
    /// Without PostgreSQL and NATS: the calendar is an SQLite file, and the coordinator reaches the hosts itself
    #[cfg_attr(feature = "clap", arg(long, conflicts_with_all = ["postgres_bin", "nats_server"]))]
    pub simple: bool,
    /// Folder with the programs of PostgreSQL [default: in PATH or /usr/lib/postgresql]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER"))]
    pub postgres_bin: Option<PathBuf>,
    /// The program nats-server [default: in PATH]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub nats_server: Option<PathBuf>,
}

impl TryOutOptions {
    /// Where the programs of PostgreSQL and NATS are; absent for a fleet without both.
    #[must_use]
    pub fn engines(&self) -> Option<EnginePaths> {
        let paths =
            EnginePaths { postgres_bin: self.postgres_bin.clone(), nats_server: self.nats_server.clone() };
        (!self.simple).then_some(paths)
    }
}

/// Where a fleet for trying out is.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct TryOutFolder {
    /// Folder of a fleet for trying out, whose calendar is used [default: linerate/fleet in the user's data directory,
    /// /var/lib/linerate-fleet for root]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FOLDER", global = true))]
    pub dir: Option<PathBuf>,
}

impl TryOutFolder {
    /// The folder.
    ///
    /// # Errors
    /// None is given, and this user has no home directory.
    pub fn folder(&self) -> Result<PathBuf, FleetError> {
        self.dir.clone().map_or_else(TryOut::default_folder, Ok)
    }

    /// The archive with the calendar: that of a fleet for trying out if its folder is given, or if one is up and there is
    /// no other archive.
    ///
    /// # Errors
    /// The fleet whose folder is given is not up, and its calendar cannot be used without that.
    pub fn archive(&self, given: Option<&str>) -> Result<Option<String>, FleetError> {
        if self.dir.is_some() {
            return self.given_archive(given);
        }
        let tried = || TryOut::default_folder().ok().filter(|folder| is_up(folder));
        Ok(given.map(str::to_owned).or_else(|| TryOut::archive(&tried()?)))
    }

    /// The archive in which a coordinator keeps its calendar: that of a fleet for trying out only if its folder is given.
    ///
    /// # Errors
    /// The fleet whose folder is given is not up, and its calendar cannot be used without that.
    pub fn given_archive(&self, given: Option<&str>) -> Result<Option<String>, FleetError> {
        let Some(folder) = &self.dir else { return Ok(given.map(str::to_owned)) };
        let archive = TryOut::archive(folder).filter(|archive| !archive.contains("://") || is_up(folder));
        archive.map(Some).ok_or_else(|| FleetError::TryOutDown(folder.clone()))
    }
}

/// Which schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct ScheduleName {
    /// Name of the schedule; those of a mesh are MESH.FROM.TO
    #[cfg_attr(feature = "clap", arg(value_name = "SCHEDULE"))]
    pub name: String,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct RunsRequest {
    /// Only runs of this schedule
    #[cfg_attr(feature = "clap", arg(value_name = "SCHEDULE"))]
    pub schedule: Option<String>,
    /// Only runs from this host; give --to as well
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST", requires = "to"))]
    pub from: Option<String>,
    /// Only runs to this host
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST", requires = "from"))]
    pub to: Option<String>,
    /// List those that come next, the first one first
    #[cfg_attr(feature = "clap", arg(long))]
    pub coming: bool,
    /// Number of runs [default: 20]
    #[cfg_attr(feature = "clap", arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..=100_000)))]
    pub limit: Option<u32>,
}

/// What to cancel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", group(required = true, multiple = false))]
pub struct CancelRequest {
    /// Name of a run, or of a schedule
    #[cfg_attr(feature = "clap", arg(value_name = "RUN|SCHEDULE"))]
    pub what: Option<String>,
    /// Everything: the queue is empty then
    #[cfg_attr(feature = "clap", arg(long))]
    pub all: bool,
}

/// The question why a schedule does not measure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct WhyRequest {
    /// Name of the schedule
    #[cfg_attr(feature = "clap", arg(value_name = "SCHEDULE"))]
    pub name: String,
    /// At a time like "2026-12-24 03:00", in the time zone of the fleet, instead of now
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIME"))]
    pub at: Option<String>,
}

/// The question when a test could be made.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct NextFreeRequest {
    /// The hosts and the test.
    #[cfg_attr(feature = "clap", command(flatten))]
    pub pair: PairRequest,
    /// Number of times
    #[cfg_attr(feature = "clap", arg(long, value_name = "TIMES", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100)))]
    pub count: u32,
}

/// The question who sees whom how well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct MeshRequest {
    /// Name of the mesh; all of them if omitted
    #[cfg_attr(feature = "clap", arg(value_name = "MESH"))]
    pub mesh: Option<String>,
    /// List the newest runs from this host, as the history of one cell; give --to as well
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST", requires_all = ["to", "mesh"]))]
    pub from: Option<String>,
    /// List the newest runs to this host
    #[cfg_attr(feature = "clap", arg(long, value_name = "HOST", requires_all = ["from", "mesh"]))]
    pub to: Option<String>,
}

impl ScheduleCommand {
    /// Does it.
    ///
    /// # Errors
    /// Those of [`FleetCalendar`].
    pub fn execute(&self, calendar: &mut FleetCalendar, now: UnixTime) -> Result<FleetAnswer, FleetError> {
        let changed = |one: &ScheduleName, done, cancelled| FleetAnswer::Changed {
            schedule: one.name.clone(),
            done,
            cancelled,
        };
        Ok(match self {
            Self::Add(request) => FleetAnswer::Added(Box::new(calendar.add(request, now)?)),
            Self::List => {
                let states = vec![CalendarRunState::Running, CalendarRunState::Booked];
                let active = calendar.runs(&RunFilter { states, ..RunFilter::default() })?;
                FleetAnswer::Schedules(calendar.schedules()?, active)
            }
            Self::Runs(request) => FleetAnswer::Runs(request.runs(calendar, None, now)?),
            Self::Pause(one) => changed(one, "paused", calendar.set_paused(&one.name, true, now)?),
            Self::Resume(one) => changed(one, "resumed", calendar.set_paused(&one.name, false, now)?),
            Self::Remove(one) => changed(one, "removed", calendar.remove(&one.name, now)?),
            Self::Cancel(request) => FleetAnswer::Cancelled(request.cancel(calendar, now)?),
            Self::Why(request) => {
                let at = match &request.at {
                    None => now,
                    Some(text) => {
                        let zone = zone(&calendar.inventory()?.zone).unwrap_or(jiff::tz::TimeZone::UTC);
                        let wrong = || FleetError::Time { option: "--at", text: text.clone() };
                        parse_time(text, &zone).ok_or_else(wrong)?
                    }
                };
                FleetAnswer::Why(Box::new(calendar.why(&request.name, at, now)?))
            }
            Self::NextFree(request) => {
                FleetAnswer::FreeTimes(calendar.next_free(&request.pair, request.count as usize, now)?)
            }
        })
    }
}

impl RunsRequest {
    fn runs(
        &self,
        calendar: &mut FleetCalendar,
        mesh: Option<&str>,
        now: UnixTime,
    ) -> Result<Vec<CalendarRun>, FleetError> {
        let runs = calendar.runs(&self.filter(mesh, now))?;
        if runs.is_empty() {
            // A mistyped name has no runs either.
            if let Some(schedule) = &self.schedule {
                calendar.schedule(schedule)?;
            }
            let inventory = calendar.inventory()?;
            for host in [&self.from, &self.to].into_iter().flatten() {
                inventory.host(host)?;
            }
        }
        Ok(runs)
    }

    fn filter(&self, mesh: Option<&str>, now: UnixTime) -> RunFilter {
        let coming = |state: &CalendarRunState| {
            matches!(state, CalendarRunState::Running | CalendarRunState::Booked) == self.coming
        };
        let states = CalendarRunState::ALL.into_iter().filter(coming).collect();
        RunFilter {
            schedule: self.schedule.clone(),
            mesh: mesh.map(str::to_owned),
            pair: self.from.clone().zip(self.to.clone()),
            states,
            newest_first: !self.coming,
            // Those that were cancelled before their time would hide the others.
            starts_before: Some(now.after(Span::from_ms(1))).filter(|_| !self.coming),
            limit: Some(self.limit.unwrap_or(DEFAULT_RUNS)),
            ..RunFilter::default()
        }
    }
}

impl CancelRequest {
    fn cancel(&self, calendar: &mut FleetCalendar, now: UnixTime) -> Result<u64, FleetError> {
        let Some(what) = self.what.clone().filter(|_| !self.all) else {
            return calendar.cancel(&CancelTarget::All, now);
        };
        // A name of a schedule may also be the beginning of that of a run.
        match calendar.cancel(&CancelTarget::Schedule(what.clone()), now) {
            Err(FleetError::NoSchedule { .. }) if is_run(&what) => {
                calendar.cancel(&CancelTarget::RunBeginning(what), now)
            }
            other => other,
        }
    }
}

/// Whether a text may be the beginning of the name of a run.
fn is_run(text: &str) -> bool {
    text.len() >= MIN_RUN_CHARS && text.chars().all(|c| c.is_ascii_hexdigit())
}

impl MeshRequest {
    /// The grids, or the history of a cell.
    ///
    /// # Errors
    /// Those of [`FleetCalendar`].
    pub fn execute(&self, calendar: &mut FleetCalendar, now: UnixTime) -> Result<FleetAnswer, FleetError> {
        if let (Some(mesh), Some(from), Some(to)) = (&self.mesh, &self.from, &self.to) {
            let inventory = calendar.inventory()?;
            inventory.mesh(mesh)?;
            for host in [from, to] {
                inventory.host(host)?;
            }
            let cell =
                RunsRequest { from: Some(from.clone()), to: Some(to.clone()), ..RunsRequest::default() };
            return Ok(FleetAnswer::Runs(cell.runs(calendar, Some(mesh), now)?));
        }
        let names: Vec<String> = match &self.mesh {
            Some(mesh) => vec![mesh.clone()],
            None => calendar.inventory()?.meshes.iter().map(|mesh| mesh.name.clone()).collect(),
        };
        let grids = names.iter().map(|name| calendar.grid(name, now)).collect::<Result<_, _>>()?;
        Ok(FleetAnswer::Grids(grids))
    }
}
