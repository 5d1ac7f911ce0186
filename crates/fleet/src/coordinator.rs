//! The coordinator: books what is due, starts it when its time has come, and judges the results.
//!
//! It is a state machine with the calendar as its memory: time and results are passed in, what has to be done comes
//! out. A coordinator may die at any moment, and another one may take over, because nothing that matters is only here.

mod agents;
mod book;
mod description;
mod judge;
mod lead;
mod own_runs;
mod silence;

use std::collections::{BTreeMap, BTreeSet};

use linerate_archive::{Calendar, CalendarError, CalendarTransaction, Lease, RunFilter};
use linerate_model::calendar::{Alarm, CalendarRun, CalendarRunState, CellResult, Schedule, UnixTime};
use linerate_proto::fleet::{FleetKey, ResultDigest};
use linerate_units::Span;

use crate::error::FleetError;
use crate::inventory::Inventory;
use crate::recurrence::DueTimes;

pub use agents::AgentNotice;
pub(crate) use agents::why_no_runs;
pub(crate) use book::run_length;
pub(crate) use description::due_again_from;
use judge::AlarmJudge;
pub use lead::{ClockCheck, LEASE};
use own_runs::{active_runs, starting};

/// Why a run is stopped that a user cancelled.
pub(crate) const CANCELLED_BY_USER: &str = "a user cancelled it";
/// How far ahead runs are booked.
pub const HORIZON: Span = Span::from_secs(3600);
/// How often runs are removed that ended long ago.
const FORGET_INTERVAL: Span = Span::from_secs(3600);
/// Runs that are started, or judged, by one call at most.
const RUNS_AT_ONCE: u32 = 256;

/// Something that the coordinator wants to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetAction {
    /// Send this to an agent.
    Send {
        /// Its name.
        agent: String,
        /// The message.
        message: Vec<u8>,
    },
    /// Archive the log of a run that an agent carried out, and say so with [`FleetCoordinator::archived`].
    Archive {
        /// The agent.
        agent: String,
        /// The run.
        run: String,
        /// Its log, a JSON document on each line.
        log: String,
        /// Whether the calendar has the run. Of another one, only what the archive has not is archived.
        is_known: bool,
        /// By what the agent recognises the result.
        digest: ResultDigest,
    },
    /// Tell the users about an agent.
    Agent(AgentNotice),
    /// Carry out this run, and report its end with [`FleetCoordinator::ended`].
    Start(Box<CalendarRun>),
    /// Stop this run at once.
    Stop {
        /// Its name.
        run: String,
        /// Why.
        why: &'static str,
    },
    /// Tell the users about an alarm that was raised or cleared.
    Notify(Box<Alarm>),
    /// Tell the users that the calendar has the description of this coordinator now, instead of another one.
    Described,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// `Finished`, `Failed` or `Cancelled`.
    pub state: CalendarRunState,
    /// Why it failed; empty for one that finished.
    pub reason: String,
    /// What it measured.
    pub result: Option<CellResult>,
}

/// What there is to do in a calendar.
struct CalendarLook {
    active: Vec<CalendarRun>,
    /// Whether a run has ended that nobody has judged.
    to_judge: bool,
    /// Whether a run can no longer start in time.
    missed: bool,
    /// Whether a run starts now.
    starts: bool,
    /// Whether a schedule is due before the horizon.
    due: bool,
    /// Agents that need another version of their calendar.
    to_hand: Vec<String>,
    /// Agents that may have what this database knows nothing of.
    lost_agents: u64,
    /// Whether an agent has kept something longer than it can be in force.
    held_too_long: bool,
    /// Whether an agent did not say in time how a run ended.
    unreported: bool,
}

/// A coordinator of a fleet.
pub struct FleetCoordinator {
    calendar: Calendar,
    /// Its name among coordinators.
    holder: String,
    inventory: Inventory,
    /// How far ahead it books, if that was chosen.
    horizon: Option<Span>,
    /// The epoch of its lease; absent while another one leads.
    epoch: Option<u64>,
    /// When its lease ends.
    lease_until: UnixTime,
    /// The lease that it saw last, of whomever.
    seen_lease: Option<Lease>,
    /// The runs that it carries out, and when their reservations end.
    running: BTreeMap<String, UnixTime>,
    forgot: Option<UnixTime>,
    /// Whether the calendar has its description of the fleet.
    described: bool,
    /// Whether its clock is right.
    in_time: bool,
    /// Whether it was told that nothing is booked because of a loss.
    told_loss: bool,
    /// Schedules that wait for a time that agents have to give back.
    waited: BTreeSet<String>,
    /// Whether one call did not do everything.
    has_more: bool,
    /// How it speaks to agents; absent if it does not.
    centre: Option<agents::Centre>,
    /// Whether and since when it can hear them.
    hearing: silence::Hearing,
    new_id: book::NewId,
}

impl FleetCoordinator {
    /// A coordinator of a calendar. `holder` differs from the names of all others; `new_id` makes names of runs.
    #[must_use]
    pub fn new(
        calendar: Calendar,
        holder: String,
        inventory: Inventory,
        new_id: Box<dyn FnMut() -> Result<String, FleetError> + Send>,
    ) -> Self {
        Self {
            calendar,
            holder,
            inventory,
            horizon: None,
            epoch: None,
            lease_until: UnixTime::from_ms(0),
            seen_lease: None,
            running: BTreeMap::new(),
            forgot: None,
            described: false,
            in_time: true,
            told_loss: false,
            waited: BTreeSet::new(),
            has_more: false,
            centre: None,
            hearing: silence::Hearing::default(),
            new_id,
        }
    }

    /// Speaks to agents, which know it by this key.
    #[must_use]
    pub fn with_agents(mut self, key: FleetKey) -> Self {
        self.centre = Some(agents::Centre::new(key));
        self
    }

    /// Books this far ahead, instead of [`HORIZON`].
    #[must_use]
    pub fn with_horizon(mut self, horizon: Span) -> Self {
        self.horizon = Some(horizon);
        self
    }

    /// Whether it leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.epoch.is_some()
    }

    /// The epoch of its lease; absent while another one leads.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Whether there is so much to do that [`Self::tick`] should be called again at once.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.leads() && self.has_more
    }

    /// The fleet.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Describes the fleet anew. If this coordinator leads, its next look at the calendar makes the schedules of meshes
    /// those of the description: new pairs are added, those that are gone are removed with their coming runs, and paused
    /// ones stay paused. A coordinator that waits does that when it begins to lead.
    ///
    /// # Errors
    /// A mesh can never run. The earlier description stays in force.
    pub fn describe(&mut self, inventory: Inventory, now: UnixTime) -> Result<(), FleetError> {
        schedules_of_meshes(&inventory, now)?;
        self.inventory = inventory;
        self.described = false;
        Ok(())
    }

    /// Appends what has to be done now. Called about once a second.
    ///
    /// # Errors
    /// The calendar cannot be read or written. What was appended before that has to be done all the same: the calendar
    /// says already that it was.
    pub fn tick(&mut self, now: UnixTime, actions: &mut Vec<FleetAction>) -> Result<(), FleetError> {
        self.stop_overdue(now, actions);
        self.has_more = false;
        let Some(epoch) = self.lead(now)? else {
            // Only this coordinator can stop what it has started.
            if !self.running.is_empty() {
                let active = self.calendar.read(|calendar| calendar.runs(&active_runs()))?;
                self.stop_cancelled(&active, actions);
            }
            return Ok(());
        };
        match self.lead_on(epoch, now, actions) {
            // Its active runs go on: the one that leads now leaves them their time.
            Err(FleetError::Calendar(CalendarError::Superseded { .. })) => {
                self.epoch = None;
                Ok(())
            }
            done => done,
        }
    }

    fn lead_on(
        &mut self,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        self.store_description(epoch, now, actions)?;
        let silent_before = self.silent_before(now);
        let look = self.look(now)?;
        self.note_lost_agents(look.lost_agents, actions);
        if look.held_too_long || look.unreported {
            self.end_unreported(epoch, now)?;
        }
        self.watch_active(look.active, epoch, now, actions)?;
        if look.to_judge {
            self.judge_ended(silent_before, epoch, now, actions)?;
        }
        if look.missed {
            self.note_missed(look.lost_agents, epoch, now)?;
        }
        // An agent may measure at a time that the database has for another run.
        if look.starts && look.lost_agents == 0 {
            self.start_due(epoch, now, actions)?;
        }
        // Agents without a calendar come before what is booked for the next hours.
        let more_to_hand = look.to_hand.len() >= RUNS_AT_ONCE as usize;
        if look.due && !more_to_hand {
            self.book_due(epoch, now)?;
        }
        self.hand_out(&look.to_hand, epoch, now, actions)?;
        self.has_more |= more_to_hand;
        self.note_silent(silent_before, epoch, now, actions)?;
        self.forget(now)
    }

    /// Sees in one transaction what there is to do, which is little most of the time.
    fn look(&mut self, now: UnixTime) -> Result<CalendarLook, FleetError> {
        let (missed, starts, due) = (self.missed(now), starting(now), self.due_limits(now));
        let unreported = agents::unreported(now);
        let hands_out = self.centre.is_some();
        let look = self.calendar.read(|calendar| {
            Ok(CalendarLook {
                to_hand: if hands_out { calendar.agents_to_hand(now, RUNS_AT_ONCE)? } else { Vec::new() },
                lost_agents: calendar.lost_agents(now)?,
                held_too_long: calendar.is_held_too_long(now)?,
                unreported: !calendar.runs(&RunFilter { limit: Some(1), ..unreported })?.is_empty(),
                active: calendar.runs(&active_runs())?,
                to_judge: !calendar.runs_to_judge(1)?.is_empty(),
                missed: !calendar.runs(&RunFilter { limit: Some(1), ..missed })?.is_empty(),
                starts: !calendar.runs(&RunFilter { limit: Some(1), ..starts })?.is_empty(),
                due: !calendar.due_schedules(&due, 1)?.is_empty(),
            })
        })?;
        Ok(look)
    }

    /// Makes the calendar that of the description, when this coordinator begins to lead and when it is described anew.
    fn store_description(
        &mut self,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        if self.described {
            return Ok(());
        }
        let content = serde_json::to_string(&self.inventory)
            .map_err(|error| CalendarError::Content(error.to_string()))?;
        let inventory = &self.inventory;
        let wanted = schedules_of_meshes(inventory, now)?;
        let replaced = self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            let stored = calendar.inventory()?.map(|(stored, _)| stored);
            if stored.as_ref() != Some(&content) {
                calendar.set_inventory(&content, &inventory.resources(), now)?;
                description::set_meshes(calendar, &wanted, now)?;
            }
            let replaced = stored.filter(|stored| *stored != content);
            if let Some(stored) = &replaced {
                let earlier = serde_json::from_str(stored).ok();
                description::replace(calendar, earlier.as_ref(), inventory, now)?;
            }
            description::mend_times(calendar, now)?;
            Ok(replaced.is_some())
        })?;
        actions.extend(replaced.then_some(FleetAction::Described));
        self.described = true;
        Ok(())
    }

    /// Looks for alarms in results, also those of runs that another coordinator started.
    fn judge_ended(
        &mut self,
        silent_before: Option<UnixTime>,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        self.with_judge(silent_before, epoch, now, actions, |judge| {
            let mut alarms = Vec::new();
            for run in judge.calendar.runs_to_judge(RUNS_AT_ONCE)? {
                judge.calendar.set_to_judge(&run.id, false)?;
                alarms.extend(judge.judge(&run)?);
            }
            Ok(alarms)
        })
    }

    /// Looks for alarms within a transaction of the coordinator that leads, and tells of them.
    fn with_judge(
        &mut self,
        silent_before: Option<UnixTime>,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
        mut judge_runs: impl FnMut(&mut AlarmJudge<'_, '_>) -> Result<Vec<Alarm>, CalendarError>,
    ) -> Result<(), FleetError> {
        let (inventory, new_id) = (&self.inventory, &mut self.new_id);
        let alarms = self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            let new_id = &mut *new_id;
            judge_runs(&mut AlarmJudge { calendar, inventory, silent_before, epoch, now, new_id })
        })?;
        actions.extend(alarms.into_iter().map(|alarm| FleetAction::Notify(Box::new(alarm))));
        Ok(())
    }

    fn forget(&mut self, now: UnixTime) -> Result<(), FleetError> {
        if self.forgot.is_some_and(|last| now.since(last) < FORGET_INTERVAL) {
            return Ok(());
        }
        let days = u64::from(self.inventory.keep_days);
        let before = now.before(Span::from_secs(days * 24 * 3600));
        self.calendar.write(|calendar| calendar.forget_runs(before, now))?;
        self.forgot = Some(now);
        Ok(())
    }

    /// Gives up the lease, so that another coordinator can lead at once. Runs that are still active fail.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn stop(&mut self, now: UnixTime) -> Result<(), FleetError> {
        let Some(epoch) = self.epoch.take() else { return Ok(()) };
        let running = std::mem::take(&mut self.running);
        self.calendar.write(|calendar| {
            for run in running.keys() {
                let why = "the coordinator was stopped";
                calendar.end_run(run, CalendarRunState::Failed, why, None, now)?;
            }
            calendar.release_lease(epoch)
        })?;
        Ok(())
    }

    /// The calendar.
    pub fn calendar(&mut self) -> &mut Calendar {
        &mut self.calendar
    }
}

impl std::fmt::Debug for FleetCoordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetCoordinator")
            .field("holder", &self.holder)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

/// The schedules of all meshes, and when each of them is due for the first time after `now`.
fn schedules_of_meshes(
    inventory: &Inventory,
    now: UnixTime,
) -> Result<Vec<(Schedule, Option<UnixTime>)>, FleetError> {
    let first_due = |schedule: Schedule| {
        let due = DueTimes::of(&schedule).and_then(|due| due.next(now));
        match due {
            Ok(due) => Ok((schedule, due)),
            Err(why) => Err(FleetError::Recurrence { name: schedule.name.to_string(), why }),
        }
    };
    inventory.mesh_schedules().into_iter().map(first_due).collect()
}

/// Cancels the coming runs of a schedule; how many there were.
pub(crate) fn cancel_booked(
    calendar: &mut CalendarTransaction<'_>,
    schedule: &str,
    why: &str,
    now: UnixTime,
) -> Result<u64, CalendarError> {
    let booked = RunFilter {
        schedule: Some(schedule.to_owned()),
        states: vec![CalendarRunState::Booked],
        ..RunFilter::default()
    };
    let mut cancelled = 0;
    for run in calendar.runs(&booked)? {
        cancelled += u64::from(calendar.end_run(&run.id, CalendarRunState::Cancelled, why, None, now)?);
    }
    Ok(cancelled)
}
