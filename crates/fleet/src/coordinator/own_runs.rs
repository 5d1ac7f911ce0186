//! Runs that a coordinator carries out itself, because their hosts have no agents: their beginnings and ends.

use linerate_archive::RunFilter;
use linerate_model::calendar::{CalendarRun, CalendarRunState, UnixTime};
use linerate_units::Span;

use super::{CANCELLED_BY_USER, FleetAction, FleetCoordinator, RUNS_AT_ONCE, RunEnd, book};
use crate::error::FleetError;

impl FleetCoordinator {
    /// Runs that can no longer start in time: one that starts later than its set-up allows would not end in its time.
    pub(super) fn missed(&self, now: UnixTime) -> RunFilter {
        RunFilter {
            states: vec![CalendarRunState::Booked],
            starts_before: Some(now.before(self.inventory.set_up)),
            by_agents: Some(false),
            ..RunFilter::default()
        }
    }

    /// Runs whose time is over, whether or not this coordinator still leads. No calendar is needed for that.
    pub(super) fn stop_overdue(&mut self, now: UnixTime, actions: &mut Vec<FleetAction>) {
        let over = self.running.iter().filter(|(_, ends)| **ends <= now);
        actions.extend(over.map(|(run, _)| FleetAction::Stop { run: run.clone(), why: "its time was over" }));
    }

    /// Stops active runs that a user cancels, and ends those of coordinators that are gone.
    pub(super) fn watch_active(
        &mut self,
        active: Vec<CalendarRun>,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        self.stop_cancelled(&active, actions);
        // Until the end of its reservation, the run of a coordinator that is gone may still be on the wire.
        let is_lost =
            |run: &CalendarRun| run.ends <= now && !run.handed && !self.running.contains_key(&run.id);
        let lost: Vec<CalendarRun> = active.into_iter().filter(is_lost).collect();
        if lost.is_empty() {
            return Ok(());
        }
        self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            for run in &lost {
                let why = "the coordinator that started it stopped";
                calendar.store_end(&run.id, CalendarRunState::Failed, why, None, now)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    pub(super) fn stop_cancelled(&self, active: &[CalendarRun], actions: &mut Vec<FleetAction>) {
        let own = active.iter().filter(|run| self.running.contains_key(&run.id));
        let cancelled = own.filter(|run| !run.reason.is_empty());
        actions
            .extend(cancelled.map(|run| FleetAction::Stop { run: run.id.clone(), why: CANCELLED_BY_USER }));
    }

    /// Ends runs that can no longer start in time. Those whose window is still open are booked again.
    pub(super) fn note_missed(
        &mut self,
        lost_agents: u64,
        epoch: u64,
        now: UnixTime,
    ) -> Result<(), FleetError> {
        let filter = self.missed(now);
        let (inventory, new_id) = (&self.inventory, &mut self.new_id);
        self.calendar.write(|calendar| {
            calendar.check_epoch(epoch)?;
            let why = match lost_agents {
                0 => "no coordinator was there to start it",
                _ => "the database lost what was written last",
            };
            for run in calendar.runs(&filter)? {
                if calendar.store_end(&run.id, CalendarRunState::Missed, why, None, now)? {
                    book::again(calendar, inventory, &run, epoch, now, new_id)?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    pub(super) fn start_due(
        &mut self,
        epoch: u64,
        now: UnixTime,
        actions: &mut Vec<FleetAction>,
    ) -> Result<(), FleetError> {
        let filter = starting(now);
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

    /// A run has ended. Its result is stored, for the coordinator that leads to judge it.
    ///
    /// # Errors
    /// The calendar cannot be written. The run stays in the calendar as one that is active; call again later.
    pub fn ended(&mut self, run: &str, end: &RunEnd, now: UnixTime) -> Result<(), FleetError> {
        // False if its end is in the calendar already.
        self.calendar
            .write(|calendar| calendar.store_end(run, end.state, &end.reason, end.result.as_ref(), now))?;
        self.running.remove(run);
        Ok(())
    }
}

pub(super) fn active_runs() -> RunFilter {
    RunFilter { states: vec![CalendarRunState::Running], ..RunFilter::default() }
}

/// Runs that start now.
pub(super) fn starting(now: UnixTime) -> RunFilter {
    RunFilter {
        states: vec![CalendarRunState::Booked],
        starts_before: Some(now.after(Span::from_ms(1))),
        limit: Some(RUNS_AT_ONCE),
        by_agents: Some(false),
        ..RunFilter::default()
    }
}
