//! Books the runs of schedules that are due.

use std::collections::{BTreeMap, BTreeSet};

use linerate_archive::{CalendarError, CalendarTransaction};
use linerate_model::calendar::{
    CalendarRun, CalendarRunState, ResourceReservation, ResourceUse, Schedule, ScheduleState, UnixTime,
};
use linerate_units::Span;

use super::FleetCoordinator;
use crate::booking::{BookingRequest, BookingSlot, Timeline};
use crate::error::FleetError;
use crate::inventory::Inventory;
use crate::recurrence::{DueTimes, rfc3339};

/// Schedules that one transaction books. Others wait for it.
const SCHEDULES_AT_ONCE: u32 = 1000;
/// Times of one schedule that one transaction books.
const TIMES_AT_ONCE: usize = 400;

/// How far after a run is due its time is looked for at first, and then twice as far each time.
const READ_AHEAD: Span = Span::from_secs(15 * 60);

/// Makes names of runs.
pub(super) type NewId = Box<dyn FnMut() -> Result<String, FleetError> + Send>;

/// A schedule with what its bookings need.
struct BookableSchedule<'s> {
    schedule: &'s Schedule,
    due_times: DueTimes<'s>,
    uses: Vec<ResourceUse>,
    length: Span,
}

impl<'s> BookableSchedule<'s> {
    /// Absent if its hosts are gone, this host lacks its time zone, or nobody knows how long it takes.
    fn of(schedule: &'s Schedule, inventory: &Inventory) -> Option<Self> {
        Some(Self {
            schedule,
            due_times: DueTimes::of(schedule).ok()?,
            uses: inventory.uses(&schedule.from, &schedule.to, schedule.shared).ok()?,
            length: run_length(schedule, inventory)?,
        })
    }
}

impl FleetCoordinator {
    /// Books everything that is due before the horizon.
    pub(super) fn book_due(&mut self, epoch: u64, now: UnixTime) -> Result<(), FleetError> {
        let horizon = now.after(self.horizon);
        loop {
            let (inventory, new_id) = (&self.inventory, &mut self.new_id);
            let earliest = self.not_before.map_or(now, |not_before| not_before.max(now));
            let booked = self.calendar.write(|calendar| {
                calendar.check_epoch(epoch)?;
                let due = calendar.due_schedules(horizon, SCHEDULES_AT_ONCE)?;
                book(calendar, inventory, &due, (earliest, horizon), epoch, now, new_id)?;
                Ok(due.len())
            })?;
            if booked < SCHEDULES_AT_ONCE as usize {
                return Ok(());
            }
        }
    }
}

/// Books these schedules from `earliest` up to the horizon, the highest priority first, and sets when each of them is due next.
fn book(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    due: &[ScheduleState],
    (earliest, horizon): (UnixTime, UnixTime),
    epoch: u64,
    now: UnixTime,
    new_id: &mut NewId,
) -> Result<(), CalendarError> {
    let first = due.iter().filter_map(|state| state.next_due).min().unwrap_or(now);
    let names: Vec<&str> = due.iter().map(|state| state.schedule.name.as_str()).collect();
    let mut attempts = Attempts(calendar.attempts(&names, first)?);
    let bookable: Vec<_> =
        due.iter().map(|state| (state, BookableSchedule::of(&state.schedule, inventory))).collect();
    let mut occurrences = Vec::new();
    for (state, bookable) in &bookable {
        let mut no_run = |due, run_state, reason: String| {
            let attempt = attempts.next(&state.schedule.name, due);
            let run = new_run(&state.schedule, due, epoch, id(new_id)?);
            let run =
                CalendarRun { attempt, state: run_state, reason: reason.into(), ended: Some(now), ..run };
            let id = run.id.clone();
            calendar.insert_runs(&[run], &[])?;
            calendar.set_to_judge(&id, run_state == CalendarRunState::Missed)
        };
        let next = match bookable {
            None => {
                // It is paused by having no next time.
                let why = "the fleet has no such hosts any more, or this host does not know its time zone";
                no_run(state.next_due.unwrap_or(now), CalendarRunState::NotBooked, why.to_owned())?;
                None
            }
            Some(one) => {
                let DueUntil { missed, times, next } = times_until(one, state.next_due, horizon, now);
                if let Some(missed) = missed {
                    let why = format!("no coordinator was there from then until {}", rfc3339(now));
                    no_run(missed, CalendarRunState::Missed, why)?;
                }
                occurrences.extend(times.into_iter().map(|due| (one, due)));
                next
            }
        };
        calendar.set_next_due(&state.schedule.name, next)?;
    }
    occurrences.sort_by(|(a, a_due), (b, b_due)| {
        let (a, b) = (a.schedule, b.schedule);
        (b.priority, a_due, &a.name).cmp(&(a.priority, b_due, &b.name))
    });
    let uses = bookable.iter().filter_map(|(_, one)| one.as_ref()).flat_map(|one| &one.uses);
    let mut booking = Booking::open(uses, earliest, epoch, now);
    if let Some(last) = occurrences.iter().map(|(one, due)| due.max(&earliest).after(one.length)).max() {
        // At once, instead of for one after the other.
        booking.read_until(calendar, last.after(READ_AHEAD))?;
    }
    for (one, due) in occurrences {
        let attempt = attempts.next(&one.schedule.name, due);
        let run = CalendarRun { attempt, ..new_run(one.schedule, due, epoch, id(new_id)?) };
        booking.book(calendar, one, run, due.max(earliest), inventory)?;
    }
    booking.store(calendar, inventory, new_id)
}

/// How often each time was tried. A time is tried again after its run was cancelled, for example with its schedule.
struct Attempts(BTreeMap<(String, UnixTime), u32>);

impl Attempts {
    fn next(&mut self, schedule: &str, due: UnixTime) -> u32 {
        let key = (schedule.to_owned(), due);
        let next = self.0.get(&key).map_or(0, |highest| highest.saturating_add(1));
        self.0.insert(key, next);
        next
    }
}

/// When a schedule is due.
struct DueUntil {
    /// The first of the times that passed while no coordinator was there, which become one run that was missed.
    missed: Option<UnixTime>,
    /// Those before the horizon that can still be kept.
    times: Vec<UnixTime>,
    /// The first one after those.
    next: Option<UnixTime>,
}

fn times_until(
    bookable: &BookableSchedule<'_>,
    next_due: Option<UnixTime>,
    horizon: UnixTime,
    now: UnixTime,
) -> DueUntil {
    let slip = bookable.schedule.slip;
    let next = |after: UnixTime| bookable.due_times.next(after).ok().flatten();
    let missed = next_due.filter(|due| due.after(slip) < now);
    let mut at = match missed {
        Some(_) => next(now.before(slip)),
        None => next_due,
    };
    let mut times = Vec::new();
    while let Some(due) = at.filter(|due| *due < horizon && times.len() < TIMES_AT_ONCE) {
        times.push(due);
        at = next(due);
    }
    DueUntil { missed, times, next: at }
}

/// How long the reservations of a run of this schedule are; absent if it depends on the network.
pub(crate) fn run_length(schedule: &Schedule, inventory: &Inventory) -> Option<Span> {
    Some(inventory.set_up + schedule.spec.expected_time()? + inventory.settle)
}

/// A run that has no time yet.
fn new_run(schedule: &Schedule, due: UnixTime, epoch: u64, id: String) -> CalendarRun {
    CalendarRun {
        id,
        schedule: schedule.name.to_string(),
        mesh: schedule.mesh.as_ref().map(ToString::to_string),
        from: schedule.from.to_string(),
        to: schedule.to.to_string(),
        spec: schedule.spec.clone(),
        confirms: None,
        due,
        attempt: 0,
        latest: due.after(schedule.slip),
        starts: due,
        ends: due,
        set_up: Span::ZERO,
        settle: Span::ZERO,
        priority: schedule.priority,
        state: CalendarRunState::NotBooked,
        reason: Default::default(),
        epoch,
        begun: None,
        ended: None,
        result: None,
    }
}

fn id(new_id: &mut NewId) -> Result<String, CalendarError> {
    new_id().map_err(|error| CalendarError::Content(error.to_string()))
}

/// Bookings of one transaction, which are stored together.
struct Booking {
    /// The resources that are used.
    names: Vec<String>,
    /// Their reservations that last after `from` and begin before `known_until`.
    timeline: Timeline,
    from: UnixTime,
    known_until: UnixTime,
    epoch: u64,
    now: UnixTime,
    runs: Vec<CalendarRun>,
    reservations: Vec<ResourceReservation>,
    /// Runs whose time was taken: the name of each, and why.
    preempted: BTreeMap<String, String>,
}

impl Booking {
    /// Bookings of what is used, from a time on.
    fn open<'u>(
        uses: impl IntoIterator<Item = &'u ResourceUse>,
        from: UnixTime,
        epoch: u64,
        now: UnixTime,
    ) -> Self {
        let names: BTreeSet<&str> = uses.into_iter().map(|one| one.resource.as_str()).collect();
        Self {
            names: names.into_iter().map(str::to_owned).collect(),
            timeline: Timeline::default(),
            from,
            known_until: from,
            epoch,
            now,
            runs: Vec::new(),
            reservations: Vec::new(),
            preempted: BTreeMap::new(),
        }
    }

    /// Reads the reservations that begin before a time.
    fn read_until(
        &mut self,
        calendar: &mut CalendarTransaction<'_>,
        until: UnixTime,
    ) -> Result<(), CalendarError> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let from = self.known_until;
        let is_first = from == self.from;
        for reservation in calendar.reservations(&names, from, until)? {
            // One that began before is known, or was taken from its run in the meantime.
            if is_first || reservation.starts >= from {
                self.timeline.insert(reservation);
            }
        }
        self.known_until = until;
        Ok(())
    }

    /// The earliest time for a run in its window, if need be that of runs with a lower priority. Most runs find one soon
    /// after they are due, so little is read at first.
    fn slot(
        &mut self,
        calendar: &mut CalendarTransaction<'_>,
        bookable: &BookableSchedule<'_>,
        earliest: UnixTime,
        (latest, priority): (UnixTime, u8),
    ) -> Result<Option<BookingSlot>, CalendarError> {
        let BookableSchedule { due_times, uses, length, .. } = bookable;
        let closed = |starts: UnixTime, length: Span| due_times.quiet_until(starts, length);
        let mut request = BookingRequest { uses, earliest, latest, length: *length };
        let all = latest.after(*length);
        let mut ahead = READ_AHEAD;
        loop {
            request.latest = latest.min(self.known_until.before(*length));
            if let Some(slot) = self.timeline.earliest(&request, &closed) {
                return Ok(Some(slot));
            }
            if self.known_until >= all {
                return Ok(self.timeline.earliest_preempting(&request, priority, &closed));
            }
            let until = earliest.after(*length).max(self.known_until).after(ahead);
            self.read_until(calendar, until.min(all))?;
            ahead = ahead + ahead;
        }
    }

    /// Gives a run a time. One without a time is stored with the reason; true if it has one.
    fn book(
        &mut self,
        calendar: &mut CalendarTransaction<'_>,
        bookable: &BookableSchedule<'_>,
        run: CalendarRun,
        earliest: UnixTime,
        inventory: &Inventory,
    ) -> Result<bool, CalendarError> {
        let BookableSchedule { uses, length, .. } = bookable;
        let slot = self.slot(calendar, bookable, earliest, (run.latest, run.priority))?;
        let Some(slot) = slot else {
            let why = self.why_no_time(uses, earliest, *length);
            self.runs.push(CalendarRun {
                state: CalendarRunState::NotBooked,
                reason: why.into(),
                ended: Some(self.now),
                ..run
            });
            return Ok(false);
        };
        self.take(run, uses, &slot, inventory);
        Ok(true)
    }

    fn take(&mut self, run: CalendarRun, uses: &[ResourceUse], slot: &BookingSlot, inventory: &Inventory) {
        let run = CalendarRun {
            starts: slot.starts,
            ends: slot.ends,
            set_up: inventory.set_up,
            settle: inventory.settle,
            state: CalendarRunState::Booked,
            epoch: self.epoch,
            ..run
        };
        for lower in &slot.preempts {
            self.timeline.remove_run(lower);
            let why =
                format!("run {} of '{}' with priority {} took its time", run.id, run.schedule, run.priority);
            self.preempted.insert(lower.clone(), why);
        }
        for (needed, (first, units)) in uses.iter().zip(&slot.units) {
            let reservation = ResourceReservation {
                resource: needed.resource.clone(),
                first_unit: *first,
                last_unit: (first + units).saturating_sub(1),
                starts: run.starts,
                ends: run.ends,
                run: run.id.clone(),
                schedule: run.schedule.clone(),
                priority: run.priority,
                state: CalendarRunState::Booked,
            };
            self.timeline.insert(reservation.clone());
            self.reservations.push(reservation);
        }
        self.runs.push(run);
    }

    fn why_no_time(&self, uses: &[ResourceUse], earliest: UnixTime, length: Span) -> String {
        match self.timeline.blockers(uses, earliest, length).first() {
            Some(one) => format!(
                "no time was free in its window: {} is in use by run {} of '{}' until {}",
                one.resource,
                one.run,
                one.schedule,
                rfc3339(one.ends)
            ),
            None => "its window has no time outside its quiet hours that is long enough".to_owned(),
        }
    }

    /// Stores everything, and books the runs again whose time was taken.
    fn store(
        mut self,
        calendar: &mut CalendarTransaction<'_>,
        inventory: &Inventory,
        new_id: &mut NewId,
    ) -> Result<(), CalendarError> {
        // Runs of this transaction that lost their time to a later one in the same transaction never had it.
        self.reservations.retain(|one| !self.preempted.contains_key(&one.run));
        let mut again = Vec::new();
        for run in &mut self.runs {
            if let Some(why) = self.preempted.remove(&run.id) {
                (run.state, run.reason, run.ended) =
                    (CalendarRunState::Preempted, why.into(), Some(self.now));
                again.push(run.clone());
            }
        }
        for (run, why) in &self.preempted {
            calendar.end_run(run, CalendarRunState::Preempted, why, None, self.now)?;
            again.extend(calendar.run(run)?);
        }
        calendar.insert_runs(&self.runs, &self.reservations)?;
        for run in again {
            self::again(calendar, inventory, &run, self.epoch, self.now, new_id)?;
        }
        Ok(())
    }
}

/// Books a run again that was missed or lost its time, if its window is still open.
pub(super) fn again(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    lost: &CalendarRun,
    epoch: u64,
    now: UnixTime,
    new_id: &mut NewId,
) -> Result<(), CalendarError> {
    if lost.latest < now {
        return Ok(());
    }
    let Some(state) = calendar.schedule(&lost.schedule)? else { return Ok(()) };
    let attempts = calendar.attempts(&[&lost.schedule], lost.due)?;
    let highest = attempts.get(&(lost.schedule.clone(), lost.due)).copied();
    let tried_later = lost.confirms.is_none() && highest.is_some_and(|highest| highest > lost.attempt);
    if state.paused || tried_later {
        return Ok(());
    }
    let next = CalendarRun {
        attempt: lost.attempt.saturating_add(1),
        confirms: lost.confirms.clone(),
        latest: lost.latest,
        priority: lost.priority,
        ..new_run(&state.schedule, lost.due, epoch, id(new_id)?)
    };
    book_one(calendar, inventory, &state.schedule, next, lost.due.max(now), now, new_id).map(drop)
}

/// Books one run, not before `earliest`; true if it has a time.
pub(super) fn book_one(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    schedule: &Schedule,
    run: CalendarRun,
    earliest: UnixTime,
    now: UnixTime,
    new_id: &mut NewId,
) -> Result<bool, CalendarError> {
    let Some(bookable) = BookableSchedule::of(schedule, inventory) else { return Ok(false) };
    let mut booking = Booking::open(&bookable.uses, earliest, run.epoch, now);
    let booked = booking.book(calendar, &bookable, run, earliest, inventory)?;
    booking.store(calendar, inventory, new_id)?;
    Ok(booked)
}

/// A run of a schedule that confirms the result of another one.
pub(super) fn confirming(
    schedule: &Schedule,
    first: &CalendarRun,
    window: (UnixTime, UnixTime),
    epoch: u64,
    new_id: &mut NewId,
) -> Result<CalendarRun, CalendarError> {
    Ok(CalendarRun {
        confirms: Some(first.id.clone()),
        latest: window.1,
        // Before what is due anyway, but not in its place.
        ..new_run(schedule, window.0, epoch, id(new_id)?)
    })
}
