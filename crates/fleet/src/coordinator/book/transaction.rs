//! Bookings of one transaction.

use std::collections::{BTreeMap, BTreeSet};

use linerate_archive::{CalendarError, CalendarTransaction};
use linerate_model::calendar::{CalendarRun, CalendarRunState, ResourceReservation, ResourceUse, UnixTime};
use linerate_units::Span;

use super::{BookableSchedule, NewId};
use crate::booking::{BookingRequest, BookingSlot, Timeline};
use crate::inventory::Inventory;
use crate::recurrence::rfc3339;

/// How far after a run is due its time is looked for at first, and then twice as far each time.
pub(super) const READ_AHEAD: Span = Span::from_secs(15 * 60);

/// What became of the booking of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BookingOutcome {
    /// It has a time.
    Booked,
    /// There is no time for it.
    NoTime,
    /// Agents have to give its time back first.
    Waits,
}

/// Bookings of one transaction, which are stored together.
pub(super) struct Booking {
    /// The resources that are used.
    names: Vec<String>,
    /// Their reservations that last after `from` and begin before `known_until`.
    timeline: Timeline,
    from: UnixTime,
    known_until: UnixTime,
    /// Whether a run may wait for a time that agents have to give back.
    pub(super) may_wait: bool,
    epoch: u64,
    now: UnixTime,
    runs: Vec<CalendarRun>,
    reservations: Vec<ResourceReservation>,
    /// Runs whose time was taken: the name of each, and why.
    preempted: BTreeMap<String, String>,
}

impl Booking {
    /// Bookings of what is used, from a time on.
    pub(super) fn open<'u>(
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
            may_wait: false,
            epoch,
            now,
            runs: Vec::new(),
            reservations: Vec::new(),
            preempted: BTreeMap::new(),
        }
    }

    /// The epoch of the coordinator that books.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Reads the reservations that begin before a time.
    pub(super) fn read_until(
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
                let slot = self.timeline.earliest_preempting(&request, priority, &closed);
                let to_give_back = || {
                    self.may_wait
                        .then(|| self.timeline.earliest_to_give_back(&request, priority, &closed))
                        .flatten()
                };
                return Ok(slot.or_else(to_give_back));
            }
            let until = earliest.after(*length).max(self.known_until).after(ahead);
            self.read_until(calendar, until.min(all))?;
            ahead = ahead + ahead;
        }
    }

    /// Gives a run a time. One without a time is stored with the reason. If agents may carry out what is in its place,
    /// that is ended and asked back.
    pub(super) fn book(
        &mut self,
        calendar: &mut CalendarTransaction<'_>,
        bookable: &BookableSchedule<'_>,
        run: CalendarRun,
        earliest: UnixTime,
        inventory: &Inventory,
    ) -> Result<BookingOutcome, CalendarError> {
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
            return Ok(BookingOutcome::NoTime);
        };
        if self.asks_back(&run, &slot) {
            return Ok(BookingOutcome::Waits);
        }
        self.take(run, uses, &slot, inventory);
        Ok(BookingOutcome::Booked)
    }

    /// Ends the runs in the place of another one, if agents may carry some of them out; false if none may.
    fn asks_back(&mut self, run: &CalendarRun, slot: &BookingSlot) -> bool {
        let handed = |lower: &String, timeline: &mut Timeline| timeline.of_run(lower).any(|one| one.handed);
        if !slot.preempts.iter().any(|lower| handed(lower, &mut self.timeline)) {
            return false;
        }
        for lower in &slot.preempts {
            for one in self.timeline.of_run(lower).filter(|one| !one.state.is_end()) {
                one.state = CalendarRunState::Preempted;
                self.preempted.entry(lower.clone()).or_insert_with(|| preempted_by(run));
            }
        }
        true
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
            self.preempted.insert(lower.clone(), preempted_by(&run));
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
                handed: false,
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
    pub(super) fn store(
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
            super::again(calendar, inventory, &run, self.epoch, self.now, new_id)?;
        }
        Ok(())
    }
}

fn preempted_by(run: &CalendarRun) -> String {
    format!("run {} of '{}' with priority {} took its time", run.id, run.schedule, run.priority)
}
