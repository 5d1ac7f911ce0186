//! Why a schedule measures or not, and when a test could be made.

use linerate_archive::{CalendarError, CalendarTransaction, RunFilter};
use linerate_model::calendar::{CalendarRunState, FreeTime, ScheduleObstacle, UnixTime, WhyAnswer};

use super::{FleetCalendar, SEARCH};
use crate::booking::{BookingRequest, Timeline};
use crate::coordinator::{run_length, why_no_runs};
use crate::error::FleetError;
use crate::recurrence::DueTimes;
use crate::request::PairRequest;

impl FleetCalendar {
    /// Why a schedule measures at a time or not, and when it could.
    ///
    /// # Errors
    /// There is no such schedule, its hosts are gone, or the calendar cannot be read.
    pub fn why(&mut self, name: &str, at: UnixTime, now: UnixTime) -> Result<WhyAnswer, FleetError> {
        let state = self.schedule(name)?;
        let inventory = self.inventory()?;
        let schedule = &state.schedule;
        let refused = |why| FleetError::Recurrence { name: name.to_owned(), why };
        let due = DueTimes::of(schedule).map_err(refused)?;
        let length = run_length(schedule, &inventory).ok_or(FleetError::NoLength)?;
        let uses = inventory.uses(&schedule.from, &schedule.to, schedule.shared)?;
        let names: Vec<&str> = uses.iter().map(|one| one.resource.as_str()).collect();
        let of = |states: Vec<CalendarRunState>, newest_first| RunFilter {
            schedule: Some(name.to_owned()),
            states,
            newest_first,
            limit: Some(1),
            ..RunFilter::default()
        };
        let ended: Vec<CalendarRunState> =
            CalendarRunState::ALL.into_iter().filter(|one| one.is_end()).collect();
        let (agent, closed, reservations, lease, activity, active, next, last) =
            self.calendar.read(|calendar| {
                Ok((
                    calendar.agent(&schedule.from)?,
                    closed(calendar, now)?,
                    calendar.reservations(&names, at.min(now), at.after(SEARCH))?,
                    calendar.lease()?,
                    calendar.last_activity()?,
                    calendar.runs(&of(vec![CalendarRunState::Running], false))?.pop(),
                    calendar.runs(&of(vec![CalendarRunState::Booked], false))?.pop(),
                    calendar.runs(&RunFilter { starts_before: Some(now), ..of(ended.clone(), true) })?.pop(),
                ))
            })?;
        // Its own runs are not in its way.
        let timeline = Timeline::of(reservations.into_iter().filter(|one| one.schedule != name));
        // One whose time is over has no coordinator any more.
        let active = active.filter(|run| run.ends > now);
        let mut obstacles = Vec::new();
        if lease.is_none_or(|lease| lease.until <= now) {
            obstacles.push(ScheduleObstacle::NoCoordinator(activity));
        }
        if state.paused {
            obstacles.push(ScheduleObstacle::Paused);
        } else if active.is_none() {
            let booked = next.as_ref().map(|run| run.due);
            let next_due = booked.into_iter().chain(state.next_due).min();
            if next_due.is_none_or(|due| due > at) {
                obstacles.push(ScheduleObstacle::NotDue(next_due));
            }
        }
        let refusal = agent.and_then(|agent| why_no_runs(&agent, now.before(inventory.ahead)));
        obstacles.extend(refusal.map(|why| ScheduleObstacle::Agent(why.into())));
        let open_at = closed.as_ref().map_or(at, |(_, until)| at.max(*until));
        obstacles.extend(closed.filter(|(_, until)| at < *until).map(|(obstacle, _)| obstacle));
        if let Some(until) = due.quiet_until(at, length) {
            obstacles.push(ScheduleObstacle::Quiet(until));
        }
        obstacles.extend(timeline.blockers(&uses, at, length).into_iter().map(ScheduleObstacle::Busy));
        let request = BookingRequest { uses: &uses, earliest: open_at, latest: at.after(SEARCH), length };
        let slot = timeline.earliest(&request, &|starts, length| due.quiet_until(starts, length));
        Ok(WhyAnswer { at, obstacles, next_free: slot.map(|slot| slot.starts), active, next, last, state })
    }

    /// The next times at which a test could be made.
    ///
    /// # Errors
    /// The test or its hosts are wrong, or the calendar cannot be read.
    pub fn next_free(
        &mut self,
        pair: &PairRequest,
        count: usize,
        now: UnixTime,
    ) -> Result<Vec<FreeTime>, FleetError> {
        let inventory = self.inventory()?;
        let spec = pair.checked_spec(&inventory)?;
        let time = spec.expected_time().ok_or(FleetError::NoLength)?;
        let length = inventory.set_up + time + inventory.settle;
        let uses = inventory.uses(&pair.from, &pair.to, pair.shared)?;
        let names: Vec<&str> = uses.iter().map(|one| one.resource.as_str()).collect();
        let (reservations, closed) = self.calendar.read(|calendar| {
            Ok((calendar.reservations(&names, now, now.after(SEARCH))?, closed(calendar, now)?))
        })?;
        let timeline = Timeline::of(reservations);
        let mut times = Vec::new();
        let mut earliest = closed.map_or(now, |(_, until)| until);
        while times.len() < count {
            let request = BookingRequest { uses: &uses, earliest, latest: now.after(SEARCH), length };
            let Some(slot) = timeline.earliest(&request, &|_, _| None) else { break };
            times.push(FreeTime { starts: slot.starts, ends: slot.ends });
            // The next one begins after something else that holds a part.
            let after = slot.ends;
            earliest = after;
        }
        Ok(times)
    }
}

/// What keeps the coordinators from booking anything, and until when at the latest.
fn closed(
    calendar: &mut CalendarTransaction<'_>,
    now: UnixTime,
) -> Result<Option<(ScheduleObstacle, UnixTime)>, CalendarError> {
    let (lost, calm) = (calendar.lost_until()?, calendar.calm_until()?);
    let (obstacle, until) = if lost > now {
        (ScheduleObstacle::AfterLoss(lost), lost)
    } else if let Some(change) = calendar.other_uses_until()? {
        (ScheduleObstacle::AfterChange(change), change)
    } else {
        (ScheduleObstacle::Unsettled(calm), calm)
    };
    let until = until.max(calm);
    Ok((until > now).then_some((obstacle, until)))
}
