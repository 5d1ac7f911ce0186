//! What users do with a calendar: add, list, pause, cancel, and ask why.

use std::collections::BTreeMap;

use linerate_archive::{AgentRemoval, Calendar, CalendarError, CalendarTransaction, NewestRun, RunFilter};
use linerate_model::calendar::{
    Alarm, CalendarRun, CalendarRunState, FleetAgent, FleetHostState, FleetHostStatus, FleetStatus, Schedule,
    ScheduleState, UnixTime,
};
use linerate_runner::archive_to_read;
use linerate_units::Span;

use crate::coordinator::{CANCELLED_BY_USER, cancel_booked, due_again_from, why_no_runs};
use crate::error::FleetError;
use crate::inventory::{FleetHost, Inventory};
use crate::recurrence::DueTimes;
use crate::request::ScheduleRequest;

mod pages;
mod why;

pub use pages::{MeshPage, SchedulePage};

/// How far ahead a free time is looked for.
const SEARCH: Span = Span::from_secs(7 * 24 * 3600);
/// How long ago a run may have ended for the state of a fleet.
const RECENT: Span = Span::from_secs(24 * 3600);
/// Alarms that are listed at most.
const MAX_ALARMS: u32 = 1000;

/// The calendar of a fleet, for its users.
#[derive(Debug)]
pub struct FleetCalendar {
    calendar: Calendar,
}

/// What to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelTarget {
    /// The run with this name.
    Run(String),
    /// The only run whose name begins like this.
    RunBeginning(String),
    /// The coming and active runs of a schedule.
    Schedule(String),
    /// All coming and active runs.
    All,
}

impl FleetCalendar {
    /// Opens the calendar in the archive at a location, or in the default one of this user.
    ///
    /// # Errors
    /// No coordinator has described a fleet there yet, or the archive or the calendar cannot be used.
    pub fn open(location: Option<&str>) -> Result<Self, FleetError> {
        let archive = archive_to_read(location)?;
        let shown = archive.shown().to_owned();
        let calendar = Calendar::existing(archive)?.ok_or(FleetError::NoFleet(shown))?;
        Ok(Self { calendar })
    }

    /// The fleet.
    ///
    /// # Errors
    /// No coordinator has described one yet, or the calendar cannot be read.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough in its lifetime"
    )]
    pub fn inventory(&mut self) -> Result<Inventory, FleetError> {
        let shown = self.calendar.shown().to_owned();
        let found = self.calendar.read(|calendar| calendar.inventory())?;
        let (content, _) = found.ok_or(FleetError::NoFleet(shown))?;
        Ok(serde_json::from_str(&content).map_err(|error| CalendarError::Content(error.to_string()))?)
    }

    /// Adds a schedule; it is due from now on.
    ///
    /// # Errors
    /// It can never run, its name is taken, or the calendar cannot be written.
    pub fn add(&mut self, request: &ScheduleRequest, now: UnixTime) -> Result<ScheduleState, FleetError> {
        let inventory = self.inventory()?;
        let schedule = request.schedule(&inventory, now)?;
        let next_due = next_due(&schedule, now)?;
        let added = self.calendar.write(|calendar| {
            calendar.lock()?;
            if calendar.schedule(&schedule.name)?.is_some() {
                return Ok(false);
            }
            calendar.put_schedule(&schedule, next_due)?;
            Ok(true)
        })?;
        if added {
            Ok(ScheduleState { schedule, paused: false, next_due })
        } else {
            Err(FleetError::Exists(request.name.clone()))
        }
    }

    /// All schedules, by name.
    ///
    /// # Errors
    /// The calendar cannot be read.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general enough in its lifetime"
    )]
    pub fn schedules(&mut self) -> Result<Vec<ScheduleState>, FleetError> {
        Ok(self.calendar.read(|calendar| calendar.schedules())?)
    }

    /// The schedule with this name.
    ///
    /// # Errors
    /// There is none; the error has the most similar name.
    pub fn schedule(&mut self, name: &str) -> Result<ScheduleState, FleetError> {
        let found = self.calendar.read(|calendar| calendar.schedule(name))?;
        match found {
            Some(state) => Ok(state),
            None => {
                let all = self.schedules()?;
                let hint = linerate_plan::hint(name, all.iter().map(|state| state.schedule.name.as_str()));
                Err(FleetError::NoSchedule { name: name.to_owned(), hint })
            }
        }
    }

    /// Pauses a schedule and cancels its coming runs, or resumes it; how many runs were cancelled.
    ///
    /// # Errors
    /// There is no such schedule, or the calendar cannot be written.
    pub fn set_paused(&mut self, name: &str, paused: bool, now: UnixTime) -> Result<u64, FleetError> {
        let state = self.schedule(name)?;
        if state.paused == paused && (paused || state.next_due.is_some()) {
            return Ok(0);
        }
        // What is booked already, or was cancelled by a user, is not booked again.
        let next_due = if paused { None } else { next_due(&state.schedule, now)? };
        Ok(self.calendar.write(|calendar| {
            calendar.lock()?;
            calendar.set_paused(name, paused, next_due)?;
            if paused { cancel_booked(calendar, name, "its schedule was paused", now) } else { Ok(0) }
        })?)
    }

    /// Removes a schedule and cancels its coming runs; how many there were. Results stay.
    ///
    /// # Errors
    /// There is no such schedule, it belongs to a mesh, or the calendar cannot be written.
    pub fn remove(&mut self, name: &str, now: UnixTime) -> Result<u64, FleetError> {
        let state = self.schedule(name)?;
        if let Some(mesh) = state.schedule.mesh {
            return Err(FleetError::OfMesh { schedule: name.to_owned(), mesh: mesh.to_string() });
        }
        Ok(self.calendar.write(|calendar| {
            calendar.lock()?;
            calendar.remove_schedule(name, now)?;
            // Another schedule may have its name and its times later.
            let reasons = (CANCELLED_BY_USER, "a user cancelled it, and later its schedule was removed");
            calendar.change_cancellations(name, reasons, now)?;
            cancel_booked(calendar, name, "its schedule was removed", now)
        })?)
    }

    /// Cancels runs that have not ended; how many. Active ones are stopped by the coordinator within seconds.
    ///
    /// # Errors
    /// There is no such run or schedule, the run has ended, or the calendar cannot be written.
    pub fn cancel(&mut self, target: &CancelTarget, now: UnixTime) -> Result<u64, FleetError> {
        let schedule = match target {
            CancelTarget::Run(id) => {
                return self.cancel_run(&|calendar| Ok(calendar.run(id)?.into_iter().collect()), id, now);
            }
            CancelTarget::RunBeginning(id) => {
                return self.cancel_run(&|calendar| calendar.runs_named(id), id, now);
            }
            CancelTarget::Schedule(name) => Some(self.schedule(name)?.schedule.name.into_string()),
            CancelTarget::All => None,
        };
        let states = vec![CalendarRunState::Booked, CalendarRunState::Running];
        let wanted = RunFilter { schedule, states, ..RunFilter::default() };
        Ok(self.calendar.write(|calendar| {
            calendar.lock()?;
            let mut cancelled = 0;
            for run in calendar.runs(&wanted)? {
                cancelled += u64::from(cancel_one(calendar, &run, now)?);
            }
            Ok(cancelled)
        })?)
    }

    /// Cancels the run that `find` finds for what a user has typed.
    fn cancel_run(
        &mut self,
        find: &dyn Fn(&mut CalendarTransaction<'_>) -> Result<Vec<CalendarRun>, CalendarError>,
        typed: &str,
        now: UnixTime,
    ) -> Result<u64, FleetError> {
        // In one transaction: the run that was found is the one that is cancelled.
        self.calendar.write(|calendar| {
            calendar.lock()?;
            let found = find(calendar)?;
            let run = match &found[..] {
                [] => return Ok(Err(FleetError::NoRun(typed.to_owned()))),
                [run] => run,
                _ => return Ok(Err(FleetError::Ambiguous(typed.to_owned()))),
            };
            if run.state.is_end() {
                return Ok(Err(FleetError::Ended { run: run.id.clone(), state: run.state.name() }));
            }
            Ok(Ok(u64::from(cancel_one(calendar, run, now)?)))
        })?
    }

    /// The runs that a filter selects.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn runs(&mut self, filter: &RunFilter) -> Result<Vec<CalendarRun>, FleetError> {
        Ok(self.calendar.read(|calendar| calendar.runs(filter))?)
    }

    /// Whether a run with this name is in the calendar.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn has_run(&mut self, run: &str) -> Result<bool, FleetError> {
        Ok(self.calendar.read(|calendar| calendar.run(run))?.is_some())
    }

    /// The agents of hosts, by name.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn agents(&mut self) -> Result<Vec<FleetAgent>, FleetError> {
        let agents = |calendar: &mut CalendarTransaction<'_>| calendar.agents();
        Ok(self.calendar.read(agents)?)
    }

    /// Enrols the agent of a host with its public key, in place of an earlier one.
    ///
    /// # Errors
    /// Another agent has the key, or the calendar cannot be written.
    pub fn enroll(&mut self, host: &str, key: &str, now: UnixTime) -> Result<(), FleetError> {
        Ok(self.calendar.write(|calendar| {
            calendar.lock()?;
            calendar.enroll_agent(host, key, now)?;
            due_again_from(calendar, host, now)
        })?)
    }

    /// Revokes the agent of a host; false if it has none, or it was revoked before.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn revoke(&mut self, host: &str, now: UnixTime) -> Result<bool, FleetError> {
        Ok(self.calendar.write(|calendar| {
            calendar.lock()?;
            calendar.revoke_agent(host, now)
        })?)
    }

    /// Removes the agent of a host, which was revoked.
    ///
    /// # Errors
    /// There is none, it is not revoked or has something in hand, or the calendar cannot be written.
    pub fn remove_agent(&mut self, host: &str, now: UnixTime) -> Result<(), FleetError> {
        let removal = self.calendar.write(|calendar| {
            calendar.lock()?;
            let removal = calendar.remove_agent(host, now)?;
            if removal == AgentRemoval::Removed {
                due_again_from(calendar, host, now)?;
            }
            Ok(removal)
        })?;
        let host = host.to_owned();
        match removal {
            AgentRemoval::Removed => Ok(()),
            AgentRemoval::NoAgent => Err(FleetError::NoAgent(host)),
            AgentRemoval::NotRevoked => Err(FleetError::NotRevoked(host)),
            AgentRemoval::InForce(until) => Err(FleetError::StillInForce { host, until }),
        }
    }

    /// The newest alarms, or those that are not cleared.
    ///
    /// # Errors
    /// The calendar cannot be read.
    pub fn alarms(&mut self, open: bool) -> Result<Vec<Alarm>, FleetError> {
        Ok(self.calendar.read(|calendar| calendar.alarms(open, MAX_ALARMS))?)
    }

    /// The state of the fleet.
    ///
    /// # Errors
    /// No coordinator has described it yet, or the calendar cannot be read.
    pub fn status(&mut self, now: UnixTime) -> Result<FleetStatus, FleetError> {
        let inventory = self.inventory()?;
        let since = now.before(RECENT);
        let (agents, lease, applied, runs, counts, schedules, alarms) = self.calendar.read(|calendar| {
            Ok((
                calendar.agents()?,
                calendar.lease()?,
                calendar.inventory()?.map(|(_, applied)| applied).unwrap_or_default(),
                calendar.newest_runs(since, now)?,
                calendar.run_counts(since)?,
                calendar.schedule_counts()?,
                calendar.alarms(true, MAX_ALARMS)?,
            ))
        })?;
        let mut newest: BTreeMap<&str, &NewestRun> = BTreeMap::new();
        let rank = |run: &NewestRun| (run.state == CalendarRunState::Running, run.ended);
        for run in &runs {
            for host in [run.from.as_str(), run.to.as_str()] {
                let known = newest.entry(host).or_insert(run);
                if rank(run) > rank(known) {
                    *known = run;
                }
            }
        }
        let agents: BTreeMap<&str, &FleetAgent> =
            agents.iter().map(|agent| (agent.name.as_str(), agent)).collect();
        let hosts = inventory.hosts.iter().map(|host| {
            let name = host.name.as_str();
            host_status(host, newest.get(name).copied(), agents.get(name).copied(), now)
        });
        Ok(FleetStatus {
            name: inventory.name.clone(),
            applied,
            coordinator: lease
                .as_ref()
                .filter(|lease| lease.until > now)
                .map(|lease| (lease.holder.as_str().into(), lease.until)),
            epoch: lease.map_or(0, |lease| lease.epoch),
            hosts: hosts.collect(),
            schedules,
            runs: counts,
            alarms,
        })
    }
}

/// Cancels a run that has not ended; false if it has in the meantime.
fn cancel_one(
    calendar: &mut CalendarTransaction<'_>,
    run: &CalendarRun,
    now: UnixTime,
) -> Result<bool, CalendarError> {
    match run.state {
        CalendarRunState::Booked => {
            calendar.end_run(&run.id, CalendarRunState::Cancelled, CANCELLED_BY_USER, None, now)
        }
        _ => calendar.ask_to_stop(&run.id, CANCELLED_BY_USER),
    }
}

/// How a host is, by its newest run and by its agent.
fn host_status(
    host: &FleetHost,
    newest: Option<&NewestRun>,
    agent: Option<&FleetAgent>,
    now: UnixTime,
) -> FleetHostStatus {
    let trouble = agent.and_then(|agent| why_no_runs(agent, now.before(FleetAgent::SILENT_AFTER)));
    let by_run = match newest.map(|run| run.state) {
        None => FleetHostState::Unknown,
        Some(CalendarRunState::Running) => FleetHostState::Measuring,
        Some(CalendarRunState::Finished) => FleetHostState::Ready,
        Some(_) => FleetHostState::Failed,
    };
    let (state, since, reason) = match trouble {
        Some(why) => {
            (FleetHostState::Failed, agent.and_then(|agent| agent.revoked.or(agent.seen)), why.into())
        }
        None => (
            by_run,
            newest.and_then(|run| run.ended),
            newest.map(|run| run.reason.clone()).unwrap_or_default(),
        ),
    };
    FleetHostStatus {
        name: host.name.clone(),
        address: host.address.as_str().into(),
        port: host.port,
        labels: host.labels.iter().map(|label| label.as_str().into()).collect(),
        state,
        since,
        reason,
    }
}

fn next_due(schedule: &Schedule, now: UnixTime) -> Result<Option<UnixTime>, FleetError> {
    let due = DueTimes::of(schedule).and_then(|due| due.next(now));
    due.map_err(|why| FleetError::Recurrence { name: schedule.name.to_string(), why })
}
