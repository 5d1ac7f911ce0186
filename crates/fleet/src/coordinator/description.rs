//! Makes a calendar that of a description: its schedules, and bookings that suit it.

use std::collections::BTreeMap;

use linerate_archive::{CalendarError, CalendarTransaction, RunFilter};
use linerate_model::calendar::{CalendarRunState, Schedule, ScheduleState, UnixTime};

use linerate_units::Span;

use super::cancel_booked;
use super::own_runs::active_runs;
use crate::inventory::Inventory;
use crate::recurrence::DueTimes;

/// Why runs are cancelled that were booked by another description.
const DESCRIBED_ANEW: &str = "the fleet was described anew";

/// The furthest that any coordinator books ahead.
const MOST_AHEAD: Span = Span::from_secs(24 * 3600);

/// Makes the schedules of meshes those of a description, each with the time at which it is due first.
pub(super) fn set_meshes(
    calendar: &mut CalendarTransaction<'_>,
    wanted: &[(Schedule, Option<UnixTime>)],
    now: UnixTime,
) -> Result<(), CalendarError> {
    let all = calendar.schedules()?;
    let mut known: BTreeMap<&str, &ScheduleState> =
        all.iter().map(|state| (state.schedule.name.as_str(), state)).collect();
    for (schedule, first_due) in wanted {
        match known.remove(schedule.name.as_str()) {
            Some(state) if state.schedule == *schedule => {}
            Some(state) => {
                calendar.put_schedule(schedule, first_due.filter(|_| !state.paused))?;
                cancel_booked(calendar, &schedule.name, DESCRIBED_ANEW, now)?;
            }
            None => calendar.put_schedule(schedule, *first_due)?,
        }
    }
    for (name, _) in known.into_iter().filter(|(_, state)| state.schedule.mesh.is_some()) {
        calendar.remove_schedule(name, now)?;
        cancel_booked(calendar, name, "its mesh has no such pair any more", now)?;
    }
    Ok(())
}

/// Replaces another description: what uses something else by this one is booked anew, and nothing is booked before what is
/// not known to fit has ended or was given back.
pub(super) fn replace(
    calendar: &mut CalendarTransaction<'_>,
    earlier: Option<&Inventory>,
    present: &Inventory,
    now: UnixTime,
) -> Result<(), CalendarError> {
    cancel_changed(calendar, earlier, present, now)?;
    let parts = |of: &Inventory| {
        let hosts: Vec<_> = of.hosts.iter().map(|host| (host.name.clone(), host.capacity)).collect();
        (hosts, of.shared.clone(), of.set_up, of.settle)
    };
    if earlier.is_none_or(|earlier| parts(earlier) != parts(present)) {
        let active = calendar.runs(&active_runs())?;
        calendar.note_other_uses(active.iter().map(|run| run.ends).max())?;
    }
    // Addresses and ports may be others.
    calendar.hand_out_to_all()
}

/// Cancels the coming runs of schedules that use something else than before, or for another time, so that they are booked
/// anew.
fn cancel_changed(
    calendar: &mut CalendarTransaction<'_>,
    earlier: Option<&Inventory>,
    present: &Inventory,
    now: UnixTime,
) -> Result<(), CalendarError> {
    let uses = |of: &Inventory, schedule: &Schedule| {
        let uses = of.uses(&schedule.from, &schedule.to, schedule.shared).ok();
        (uses, of.set_up, of.settle)
    };
    let changed = |schedule: &Schedule| {
        earlier.is_none_or(|earlier| uses(earlier, schedule) != uses(present, schedule))
    };
    let schedules = calendar.schedules()?;
    let schedules: BTreeMap<&str, &ScheduleState> = schedules
        .iter()
        .filter(|state| changed(&state.schedule))
        .map(|state| (state.schedule.name.as_str(), state))
        .collect();
    let booked = RunFilter { states: vec![CalendarRunState::Booked], ..RunFilter::default() };
    let mut first_due: BTreeMap<&str, UnixTime> = BTreeMap::new();
    for run in calendar.runs(&booked)? {
        let Some((name, state)) = schedules.get_key_value(run.schedule.as_str()) else { continue };
        if !calendar.end_run(&run.id, CalendarRunState::Cancelled, DESCRIBED_ANEW, None, now)? {
            continue;
        }
        if !state.paused && run.confirms.is_none() {
            let first = first_due.entry(name).or_insert_with(|| state.next_due.unwrap_or(run.due));
            *first = run.due.min(*first);
        }
    }
    for (name, due) in first_due {
        calendar.set_next_due(name, Some(due))?;
    }
    Ok(())
}

/// Gives schedules a time that have none although they are due again, for example because their hosts are back, and those
/// that are due too late, because the clock of an earlier coordinator was ahead.
pub(super) fn mend_times(calendar: &mut CalendarTransaction<'_>, now: UnixTime) -> Result<(), CalendarError> {
    // No coordinator books further ahead.
    let horizon = now.after(MOST_AHEAD);
    for state in calendar.schedules()?.iter().filter(|state| !state.paused) {
        let name = &state.schedule.name;
        let Ok(due_times) = DueTimes::of(&state.schedule) else { continue };
        let next = |after: UnixTime| due_times.next(after).ok().flatten();
        let latest = next(horizon).unwrap_or(horizon);
        match state.next_due {
            None => {
                if let Some(due) = next(now) {
                    calendar.set_next_due(name, Some(due))?;
                }
            }
            Some(due) if due > latest => {
                cancel_booked(calendar, name, "the clock of a coordinator was ahead", now)?;
                calendar.set_next_due(name, next(now))?;
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Makes the schedules from a host due again for which an earlier agent of it had runs in its calendar.
pub(crate) fn due_again_from(
    calendar: &mut CalendarTransaction<'_>,
    host: &str,
    now: UnixTime,
) -> Result<(), CalendarError> {
    for state in calendar.schedules()? {
        if state.schedule.from.as_str() == host && !state.paused {
            // Of these times, those are not booked again that have a run or that a user cancelled.
            let due = DueTimes::of(&state.schedule).and_then(|times| times.next(now)).ok().flatten();
            calendar.set_next_due(&state.schedule.name, due)?;
        }
    }
    Ok(())
}
