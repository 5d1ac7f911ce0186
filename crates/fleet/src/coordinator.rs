//! The coordinator: books what is due, starts it when its time has come, and judges the results.
//!
//! It is a state machine with the calendar as its memory: time and results are passed in, what has to be done comes
//! out. A coordinator may die at any moment, and another one may take over, because nothing that matters is only here.

mod book;
mod judge;

use std::collections::BTreeMap;

use linerate_archive::{Calendar, CalendarError, CalendarTransaction, RunFilter};
use linerate_model::calendar::{Alarm, CalendarRun, CalendarRunState, CellResult, UnixTime};
use linerate_units::Span;

use crate::error::FleetError;
use crate::inventory::Inventory;
use crate::recurrence::DueTimes;

pub(crate) use book::{quiet_until, run_length};

/// How long a lease lasts without being renewed. Another coordinator takes over after that.
pub const LEASE: Span = Span::from_secs(8);
/// How long before its end a lease is renewed.
const RENEW_BEFORE: Span = Span::from_secs(5);
/// Why a run is stopped that a user cancelled.
pub(crate) const CANCELLED_BY_USER: &str = "a user cancelled it";
/// How far ahead runs are booked.
pub const HORIZON: Span = Span::from_secs(3600);
/// How often runs are removed that ended long ago.
const FORGET_INTERVAL: Span = Span::from_secs(3600);
/// Runs that are started by one call at most.
const STARTS_AT_ONCE: u32 = 256;

/// Something that the coordinator wants to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum FleetAction {
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

/// A coordinator of a fleet.
pub struct FleetCoordinator {
    calendar: Calendar,
    /// Its name among coordinators.
    holder: String,
    inventory: Inventory,
    horizon: Span,
    /// The epoch of its lease; absent while another one leads.
    epoch: Option<u64>,
    /// When its lease ends.
    lease_until: UnixTime,
    /// The runs that it carries out, and when their reservations end.
    running: BTreeMap<String, UnixTime>,
    forgot: Option<UnixTime>,
    new_id: Box<dyn FnMut() -> Result<String, FleetError> + Send>,
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
            horizon: HORIZON,
            epoch: None,
            lease_until: UnixTime::from_ms(0),
            running: BTreeMap::new(),
            forgot: None,
            new_id,
        }
    }

    /// Books this far ahead, instead of [`HORIZON`].
    #[must_use]
    pub fn with_horizon(mut self, horizon: Span) -> Self {
        self.horizon = horizon;
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

    /// The fleet.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Stores the description of the fleet, and makes the schedules of its meshes those of the description: new pairs are
    /// added, those that are gone are removed with their coming runs. Paused ones stay paused.
    ///
    /// # Errors
    /// The calendar cannot be written.
    pub fn apply(&mut self, inventory: Inventory, now: UnixTime) -> Result<(), FleetError> {
        let wanted = inventory.mesh_schedules();
        let mut first = Vec::with_capacity(wanted.len());
        for schedule in &wanted {
            let due = DueTimes::of(schedule).and_then(|due| due.next(now));
            first.push(due.map_err(|why| FleetError::Recurrence { name: schedule.name.to_string(), why })?);
        }
        let content =
            serde_json::to_string(&inventory).map_err(|error| CalendarError::Content(error.to_string()))?;
        let resources = inventory.resources();
        self.calendar.write(|calendar| {
            calendar.set_inventory(&content, &resources, now)?;
            let known: BTreeMap<String, _> = calendar
                .schedules()?
                .into_iter()
                .map(|state| (state.schedule.name.to_string(), state))
                .collect();
            for (schedule, first) in wanted.iter().zip(&first) {
                match known.get(schedule.name.as_str()) {
                    Some(state) if state.schedule == *schedule => {}
                    Some(state) => {
                        calendar.put_schedule(schedule, first.filter(|_| !state.paused))?;
                        cancel_booked(calendar, &schedule.name, "the fleet was described anew", now)?;
                    }
                    None => calendar.put_schedule(schedule, *first)?,
                }
            }
            for state in known.values().filter(|state| state.schedule.mesh.is_some()) {
                let name = &state.schedule.name;
                if !wanted.iter().any(|schedule| schedule.name == *name) {
                    calendar.remove_schedule(name, now)?;
                    cancel_booked(calendar, name, "its mesh has no such pair any more", now)?;
                }
            }
            Ok(())
        })?;
        self.inventory = inventory;
        Ok(())
    }

    /// What has to be done now. Called about once a second.
    ///
    /// # Errors
    /// The calendar cannot be read or written. Runs that are active continue, and nothing is started.
    pub fn tick(&mut self, now: UnixTime) -> Result<Vec<FleetAction>, FleetError> {
        let mut actions = self.stop_overdue(now);
        let Some(epoch) = self.lead(now)? else { return Ok(actions) };
        match self.lead_on(epoch, now, &mut actions) {
            // Its active runs go on: the one that leads now leaves them their time.
            Err(FleetError::Calendar(CalendarError::Superseded { .. })) => {
                self.epoch = None;
                Ok(actions)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(actions),
        }
    }

    fn lead_on(
        &mut self,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        self.stop_cancelled(actions)?;
        self.give_up_lost(epoch, now)?;
        self.note_missed(epoch, now)?;
        self.start_due(epoch, now, actions)?;
        self.book_due(epoch, now)?;
        self.forget(now)
    }

    /// Runs whose time is over, whether or not this coordinator still leads. No calendar is needed for that.
    fn stop_overdue(&mut self, now: UnixTime) -> Vec<FleetAction> {
        let over = self.running.iter().filter(|(_, ends)| **ends <= now);
        over.map(|(run, _)| FleetAction::Stop { run: run.clone(), why: "its time was over" }).collect()
    }

    /// Takes or renews the lease; its epoch, if this coordinator leads.
    fn lead(&mut self, now: UnixTime) -> Result<Option<u64>, FleetError> {
        if self.epoch.is_some() && now.after(RENEW_BEFORE) < self.lease_until {
            return Ok(self.epoch);
        }
        let holder = self.holder.clone();
        let lease = self.calendar.write(|calendar| calendar.acquire_lease(&holder, now, now.after(LEASE)))?;
        self.epoch = Some(lease.epoch).filter(|_| lease.holder == self.holder);
        self.lease_until = lease.until;
        Ok(self.epoch)
    }

    /// Runs that a user wants to be stopped while they are active.
    fn stop_cancelled(&mut self, actions: &mut Vec<FleetAction>) -> Result<(), FleetError> {
        if self.running.is_empty() {
            return Ok(());
        }
        let active = RunFilter { states: vec![CalendarRunState::Running], ..RunFilter::default() };
        let active = self.calendar.read(|calendar| calendar.runs(&active))?;
        for run in active.iter().filter(|run| !run.reason.is_empty() && self.running.contains_key(&run.id)) {
            actions.push(FleetAction::Stop { run: run.id.clone(), why: CANCELLED_BY_USER });
        }
        Ok(())
    }

    /// Ends runs that a coordinator started that is gone. Until the end of its reservation, such a run may still be on
    /// the wire.
    fn give_up_lost(&mut self, epoch: u64, now: UnixTime) -> Result<(), FleetError> {
        let running = &self.running;
        self.calendar.write(|calendar| {
            let active = RunFilter { states: vec![CalendarRunState::Running], ..RunFilter::default() };
            let lost: Vec<CalendarRun> = calendar
                .runs(&active)?
                .into_iter()
                .filter(|run| run.ends <= now && !running.contains_key(&run.id))
                .collect();
            if !lost.is_empty() {
                calendar.check_epoch(epoch)?;
            }
            for run in lost {
                let why = "the coordinator that started it stopped";
                calendar.end_run(&run.id, CalendarRunState::Failed, why, None, now)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Ends runs that can no longer start in time. Those whose window is still open are booked again.
    fn note_missed(&mut self, epoch: u64, now: UnixTime) -> Result<(), FleetError> {
        // One that starts later than its set-up allows would not end in its time.
        let set_up = self.inventory.set_up;
        let filter = RunFilter {
            states: vec![CalendarRunState::Booked],
            starts_before: Some(now.before(set_up)),
            ..RunFilter::default()
        };
        if self.calendar.read(|calendar| calendar.runs(&filter))?.is_empty() {
            return Ok(());
        }
        let (inventory, new_id) = (&self.inventory, &mut self.new_id);
        self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            for run in calendar.runs(&filter)? {
                let why = "no coordinator was there to start it";
                calendar.end_run(&run.id, CalendarRunState::Missed, why, None, now)?;
                book::again(calendar, inventory, &run, epoch, now, new_id)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    fn start_due(
        &mut self,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        let filter = RunFilter {
            states: vec![CalendarRunState::Booked],
            starts_before: Some(now.after(Span::from_ms(1))),
            limit: Some(STARTS_AT_ONCE),
            ..RunFilter::default()
        };
        if self.calendar.read(|calendar| calendar.runs(&filter))?.is_empty() {
            return Ok(());
        }
        let begun = self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            let mut begun = Vec::new();
            for run in calendar.runs(&filter)? {
                if calendar.begin_run(&run.id, epoch, now)? {
                    begun.push(CalendarRun {
                        state: CalendarRunState::Running,
                        begun: Some(now),
                        epoch,
                        ..run
                    });
                }
            }
            Ok(begun)
        })?;
        for run in begun {
            self.running.insert(run.id.clone(), run.ends);
            actions.push(FleetAction::Start(Box::new(run)));
        }
        Ok(())
    }

    fn forget(&mut self, now: UnixTime) -> Result<(), FleetError> {
        if self.forgot.is_some_and(|last| now.since(last) < FORGET_INTERVAL) {
            return Ok(());
        }
        let days = u64::from(self.inventory.keep_days);
        let before = now.before(Span::from_secs(days * 24 * 3600));
        self.calendar.write(|calendar| calendar.forget_runs(before))?;
        self.forgot = Some(now);
        Ok(())
    }

    /// A run has ended. Its result is stored and, if this coordinator still leads, judged.
    ///
    /// # Errors
    /// The calendar cannot be written. The run stays in the calendar as one that is active; call again later.
    pub fn ended(&mut self, run: &str, end: &RunEnd, now: UnixTime) -> Result<Vec<FleetAction>, FleetError> {
        let (inventory, new_id, leading) = (&self.inventory, &mut self.new_id, self.epoch);
        let alarms = self.calendar.write(|calendar| {
            if !calendar.end_run(run, end.state, &end.reason, end.result.as_ref(), now)? {
                // Its end is in the calendar already.
                return Ok(Vec::new());
            }
            match (calendar.run(run)?, leading) {
                (Some(ended), Some(epoch)) => judge::judge(calendar, inventory, &ended, epoch, now, new_id),
                _ => Ok(Vec::new()),
            }
        })?;
        self.running.remove(run);
        Ok(alarms.into_iter().map(|alarm| FleetAction::Notify(Box::new(alarm))).collect())
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
