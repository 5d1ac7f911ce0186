//! Books the runs of schedules that are due.

mod transaction;

use std::collections::{BTreeMap, BTreeSet};

use linerate_archive::{CalendarError, CalendarTransaction, DueLimits, LastAttempt};
use linerate_model::calendar::{
    CalendarRun, CalendarRunState, ResourceUse, Schedule, ScheduleState, UnixTime,
};
use linerate_units::Span;

use self::transaction::{Booking, BookingOutcome, READ_AHEAD};
use super::{CANCELLED_BY_USER, FleetCoordinator, why_no_runs};
use crate::error::FleetError;
use crate::inventory::Inventory;
use crate::recurrence::{DueTimes, rfc3339};

/// Schedules that one transaction books. Others wait for it.
const SCHEDULES_AT_ONCE: u32 = 1000;
/// The same for a coordinator of agents: they wait for answers in the meantime, and take the time from them.
const SCHEDULES_BETWEEN_ANSWERS: u32 = 100;
/// Times of one schedule that one transaction books.
const TIMES_AT_ONCE: usize = 400;

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
    /// Books everything that is due before the horizon; where agents wait, a part of it.
    pub(super) fn book_due(&mut self, epoch: u64, now: UnixTime) -> Result<(), FleetError> {
        let limits = self.due_limits(now);
        let has_agents = self.centre.is_some();
        let most = if has_agents { SCHEDULES_BETWEEN_ANSWERS } else { SCHEDULES_AT_ONCE };
        loop {
            let (inventory, new_id, waited) = (&self.inventory, &mut self.new_id, &self.waited);
            let booked = self.calendar.write(|calendar| {
                calendar.check_epoch(epoch)?;
                let Some(earliest) = earliest(calendar, now, now)? else {
                    return Ok(Booked { schedules: 0, waits: waited.clone(), closed: true });
                };
                let due = calendar.due_schedules(&limits, most)?;
                let waits =
                    book(calendar, inventory, (&due, waited), (earliest, &limits), epoch, now, new_id)?;
                Ok(Booked { schedules: due.len(), waits, closed: false })
            })?;
            // What waits for an agent is looked at again at the next call.
            let waits = booked.closed || !booked.waits.is_empty();
            self.waited = booked.waits;
            if waits || booked.schedules < most as usize {
                return Ok(());
            }
            if has_agents {
                self.has_more = true;
                return Ok(());
            }
        }
    }
}

/// When something may be booked, not before `wanted`; absent while agents may have what this database knows nothing of, or
/// what has reserved less than it uses.
fn earliest(
    calendar: &mut CalendarTransaction<'_>,
    wanted: UnixTime,
    now: UnixTime,
) -> Result<Option<UnixTime>, CalendarError> {
    if calendar.lost_agents(now)? > 0 || calendar.other_uses_until()?.is_some() {
        return Ok(None);
    }
    Ok(Some(wanted.max(now).max(calendar.calm_until()?)))
}

/// What one transaction booked.
struct Booked {
    schedules: usize,
    /// Schedules that wait for a time that an agent has to give back.
    waits: BTreeSet<String>,
    /// Whether nothing may be booked at present.
    closed: bool,
}

/// Books these schedules from `earliest` up to the horizon, the highest priority first, without the times that are
/// [decided](DecidedTimes), and sets when each of them is due next. Those that wait for a time that agents have to give
/// back; `waited` did so before.
fn book(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    (due, waited): (&[ScheduleState], &BTreeSet<String>),
    (earliest, limits): (UnixTime, &DueLimits),
    epoch: u64,
    now: UnixTime,
    new_id: &mut NewId,
) -> Result<BTreeSet<String>, CalendarError> {
    let refusals = refusals(calendar, due, limits)?;
    let first = due.iter().filter_map(|state| state.next_due).min().unwrap_or(now);
    let names: Vec<&str> = due.iter().map(|state| state.schedule.name.as_str()).collect();
    let known = calendar.attempts(&names, first)?;
    let (decided, mut attempts) = (DecidedTimes::of(&known), Attempts::of(&known));
    let bookable: Vec<_> =
        due.iter().map(|state| (state, BookableSchedule::of(&state.schedule, inventory))).collect();
    let mut occurrences = Vec::new();
    for (state, bookable) in &bookable {
        let mut no_run = |due, run_state, reason: String, is_failure| {
            let attempt = attempts.next(&state.schedule.name, due);
            let run = new_run(&state.schedule, due, epoch, id(new_id)?);
            let run =
                CalendarRun { attempt, state: run_state, reason: reason.into(), ended: Some(now), ..run };
            let id = run.id.clone();
            calendar.insert_runs(&[run], &[])?;
            calendar.set_to_judge(&id, is_failure)
        };
        let next = match bookable {
            None => {
                // It is paused by having no next time.
                let why = "the fleet has no such hosts any more, or this host does not know its time zone";
                no_run(state.next_due.unwrap_or(now), CalendarRunState::NotBooked, why.to_owned(), false)?;
                None
            }
            Some(one) => {
                let refusal = refusals.get(one.schedule.from.as_str());
                let horizon = if refusal.is_some() { limits.soon } else { limits.before };
                let DueUntil { missed, times, next } =
                    times_until(one, &decided, state.next_due, (horizon, now));
                if let Some(missed) = missed {
                    let why = if waited.contains(state.schedule.name.as_str()) {
                        "the agents that had its time did not give it back".to_owned()
                    } else {
                        format!("no coordinator was there from then until {}", rfc3339(now))
                    };
                    no_run(missed, CalendarRunState::Missed, why, true)?;
                }
                match refusal {
                    None => occurrences.extend(times.into_iter().map(|due| (one, due))),
                    Some(refusal) => {
                        for due in times {
                            let why = refusal.why.clone();
                            no_run(due, CalendarRunState::NotBooked, why, refusal.is_full)?;
                        }
                    }
                }
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
    booking.may_wait = true;
    if let Some(last) = occurrences.iter().map(|(one, due)| due.max(&earliest).after(one.length)).max() {
        // At once, instead of for one after the other.
        booking.read_until(calendar, last.after(READ_AHEAD))?;
    }
    let waits = book_each(calendar, inventory, &mut booking, occurrences, &mut attempts, earliest, new_id)?;
    booking.store(calendar, inventory, new_id)?;
    Ok(waits)
}

/// Books these times one after the other. The schedules that wait for a time that agents have to give back.
fn book_each(
    calendar: &mut CalendarTransaction<'_>,
    inventory: &Inventory,
    booking: &mut Booking,
    occurrences: Vec<(&BookableSchedule<'_>, UnixTime)>,
    attempts: &mut Attempts,
    earliest: UnixTime,
    new_id: &mut NewId,
) -> Result<BTreeSet<String>, CalendarError> {
    let mut waits: BTreeMap<&str, UnixTime> = BTreeMap::new();
    for (one, due) in occurrences {
        // One after another: what comes after it waits too.
        if waits.contains_key(one.schedule.name.as_str()) {
            continue;
        }
        let attempt = attempts.next(&one.schedule.name, due);
        let run = CalendarRun { attempt, ..new_run(one.schedule, due, booking.epoch(), id(new_id)?) };
        if booking.book(calendar, one, run, due.max(earliest), inventory)? == BookingOutcome::Waits {
            waits.insert(&one.schedule.name, due);
        }
    }
    for (name, due) in &waits {
        calendar.set_next_due(name, Some(*due))?;
    }
    Ok(waits.into_keys().map(str::to_owned).collect())
}

/// Why an agent takes no runs.
struct Refusal {
    why: String,
    /// Whether it is there, and has no room for results. Silence is looked for [by itself](FleetCoordinator::note_silent),
    /// and a user has revoked what is revoked.
    is_full: bool,
}

/// The hosts of these schedules whose agents take no runs at present, and why.
fn refusals(
    calendar: &mut CalendarTransaction<'_>,
    due: &[ScheduleState],
    limits: &DueLimits,
) -> Result<BTreeMap<String, Refusal>, CalendarError> {
    let hosts: BTreeSet<&str> = due.iter().map(|state| state.schedule.from.as_str()).collect();
    let hosts: Vec<&str> = hosts.into_iter().collect();
    let agents = calendar.agents_named(&hosts)?.into_iter();
    Ok(agents
        .filter_map(|agent| {
            let why = why_no_runs(&agent, limits.seen_after)?;
            let is_full = agent.revoked.is_none() && !agent.note.is_empty();
            Some((agent.name, Refusal { why, is_full }))
        })
        .collect())
}

/// How often each time was tried. A time is tried again after its run was cancelled, for example with its schedule.
struct Attempts(BTreeMap<(String, UnixTime), u32>);

impl Attempts {
    fn of(known: &BTreeMap<(String, UnixTime), LastAttempt>) -> Self {
        Self(known.iter().map(|(time, last)| (time.clone(), last.number)).collect())
    }

    fn next(&mut self, schedule: &str, due: UnixTime) -> u32 {
        let key = (schedule.to_owned(), due);
        let next = self.0.get(&key).map_or(0, |highest| highest.saturating_add(1));
        self.0.insert(key, next);
        next
    }
}

/// Times at which nothing more is booked: those with a run that is booked or active, or that a user cancelled.
struct DecidedTimes<'k>(BTreeSet<(&'k str, UnixTime)>);

impl<'k> DecidedTimes<'k> {
    fn of(known: &'k BTreeMap<(String, UnixTime), LastAttempt>) -> Self {
        let is_decided = |last: &LastAttempt| match last.state {
            CalendarRunState::Booked | CalendarRunState::Running => true,
            CalendarRunState::Cancelled => last.reason == CANCELLED_BY_USER,
            _ => false,
        };
        let decided = known.iter().filter(|(_, last)| is_decided(last));
        Self(decided.map(|((schedule, due), _)| (schedule.as_str(), *due)).collect())
    }

    fn has(&self, schedule: &str, due: UnixTime) -> bool {
        self.0.contains(&(schedule, due))
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
    decided: &DecidedTimes<'_>,
    next_due: Option<UnixTime>,
    (horizon, now): (UnixTime, UnixTime),
) -> DueUntil {
    let BookableSchedule { schedule, due_times, .. } = bookable;
    let next = |after: UnixTime| due_times.next(after).ok().flatten();
    let is_decided = |due: UnixTime| decided.has(&schedule.name, due);
    let mut first = next_due;
    while let Some(due) = first.filter(|due| is_decided(*due)) {
        first = next(due);
    }
    let missed = first.filter(|due| due.after(schedule.slip) < now);
    let mut at = match missed {
        Some(_) => next(now.before(schedule.slip)),
        None => first,
    };
    let mut times = Vec::new();
    while let Some(due) = at.filter(|due| *due < horizon && times.len() < TIMES_AT_ONCE) {
        if !is_decided(due) {
            times.push(due);
        }
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
        handed: false,
    }
}

fn id(new_id: &mut NewId) -> Result<String, CalendarError> {
    new_id().map_err(|error| CalendarError::Content(error.to_string()))
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
    let last = attempts.get(&(lost.schedule.clone(), lost.due));
    let tried_later = lost.confirms.is_none() && last.is_some_and(|last| last.number > lost.attempt);
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
    let Some(earliest) = self::earliest(calendar, earliest, now)? else { return Ok(false) };
    let mut booking = Booking::open(&bookable.uses, earliest, run.epoch, now);
    let booked = booking.book(calendar, &bookable, run, earliest, inventory)?;
    booking.store(calendar, inventory, new_id)?;
    Ok(booked == BookingOutcome::Booked)
}

/// A run of a schedule that confirms the result of another one.
pub(super) fn confirming(
    schedule: &Schedule,
    first: &CalendarRun,
    within: (UnixTime, UnixTime),
    epoch: u64,
    new_id: &mut NewId,
) -> Result<CalendarRun, CalendarError> {
    Ok(CalendarRun {
        confirms: Some(first.id.clone()),
        latest: within.1,
        // Before what is due anyway, but not in its place.
        ..new_run(schedule, within.0, epoch, id(new_id)?)
    })
}
