//! Finds a time for a run: the earliest one at which everything that it uses is free.
//!
//! This is arithmetic on reservations that the caller has read. The database that stores the result refuses double
//! bookings once more.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::calendar::{CalendarRunState, ResourceReservation, ResourceUse, UnixTime};
use linerate_units::Span;

/// What a run needs.
#[derive(Debug, Clone)]
pub(crate) struct BookingRequest<'r> {
    /// What it uses.
    pub(crate) uses: &'r [ResourceUse],
    /// When its reservations may start at the earliest.
    pub(crate) earliest: UnixTime,
    /// When they may start at the latest.
    pub(crate) latest: UnixTime,
    /// How long they are, set-up and settling included.
    pub(crate) length: Span,
}

/// A time for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BookingSlot {
    /// When its reservations start.
    pub(crate) starts: UnixTime,
    /// When they end.
    pub(crate) ends: UnixTime,
    /// The units that it gets of each resource, in the order of its uses: the first one, and how many.
    pub(crate) units: Vec<(u32, u32)>,
    /// Runs with a lower priority whose time it takes.
    pub(crate) preempts: BTreeSet<String>,
}

/// A time in which a run may not start: the first moment after it at which it may.
pub(crate) type ClosedUntil<'c> = dyn Fn(UnixTime, Span) -> Option<UnixTime> + 'c;

/// Reservations by resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    resources: BTreeMap<String, ResourceTimeline>,
}

#[derive(Debug, Clone, Default)]
struct ResourceTimeline {
    /// In the order of their starts.
    reservations: Vec<ResourceReservation>,
    /// The longest one there ever was, milliseconds: no earlier one can still last.
    longest_ms: i64,
}

impl ResourceTimeline {
    /// The reservations that last at some moment from `starts` to `ends`.
    fn during(&self, starts: UnixTime, ends: UnixTime) -> impl Iterator<Item = &ResourceReservation> {
        let oldest = starts.as_ms().saturating_sub(self.longest_ms);
        let first = self.reservations.partition_point(|one| one.starts.as_ms() < oldest);
        let last = self.reservations.partition_point(|one| one.starts < ends).max(first);
        self.reservations[first..last].iter().filter(move |one| one.ends > starts)
    }
}

impl Timeline {
    pub(crate) fn of(reservations: impl IntoIterator<Item = ResourceReservation>) -> Self {
        let mut timeline = Self::default();
        for reservation in reservations {
            let resource = timeline.resources.entry(reservation.resource.clone()).or_default();
            resource.longest_ms = resource.longest_ms.max(length_ms(&reservation));
            resource.reservations.push(reservation);
        }
        for resource in timeline.resources.values_mut() {
            resource.reservations.sort_by_key(|one| one.starts);
        }
        timeline
    }

    pub(crate) fn insert(&mut self, reservation: ResourceReservation) {
        let resource = self.resources.entry(reservation.resource.clone()).or_default();
        resource.longest_ms = resource.longest_ms.max(length_ms(&reservation));
        let at = resource.reservations.partition_point(|one| one.starts <= reservation.starts);
        resource.reservations.insert(at, reservation);
    }

    pub(crate) fn remove_run(&mut self, run: &str) {
        for resource in self.resources.values_mut() {
            resource.reservations.retain(|one| one.run != run);
        }
    }

    /// The earliest time at which everything is free.
    pub(crate) fn earliest(
        &self,
        request: &BookingRequest<'_>,
        closed: &ClosedUntil<'_>,
    ) -> Option<BookingSlot> {
        self.earliest_over(request, closed, &|_| false)
    }

    /// The same, over the time of runs with a lower priority that have not begun and that no agent has.
    pub(crate) fn earliest_preempting(
        &self,
        request: &BookingRequest<'_>,
        priority: u8,
        closed: &ClosedUntil<'_>,
    ) -> Option<BookingSlot> {
        self.earliest_over(request, closed, &|one| {
            one.state == CalendarRunState::Booked && one.priority < priority && !one.handed
        })
    }

    /// The same, also over the time of runs that agents have in their calendars, and of ended ones that they have not given
    /// back. It is free once they have.
    pub(crate) fn earliest_to_give_back(
        &self,
        request: &BookingRequest<'_>,
        priority: u8,
        closed: &ClosedUntil<'_>,
    ) -> Option<BookingSlot> {
        self.earliest_over(request, closed, &|one| {
            one.state.is_end() || one.state == CalendarRunState::Booked && one.priority < priority
        })
    }

    /// What a run holds.
    pub(crate) fn of_run<'t>(
        &'t mut self,
        run: &'t str,
    ) -> impl Iterator<Item = &'t mut ResourceReservation> {
        let all = self.resources.values_mut().flat_map(|resource| &mut resource.reservations);
        all.filter(move |one| one.run == run)
    }

    fn earliest_over(
        &self,
        request: &BookingRequest<'_>,
        closed: &ClosedUntil<'_>,
        ignored: &dyn Fn(&ResourceReservation) -> bool,
    ) -> Option<BookingSlot> {
        let mut starts = request.earliest;
        loop {
            if starts > request.latest {
                return None;
            }
            if let Some(open) = closed(starts, request.length) {
                // Never backwards, so that the search ends.
                starts = open.max(UnixTime::from_ms(starts.as_ms().saturating_add(1)));
                continue;
            }
            let ends = starts.after(request.length);
            let mut units = Vec::with_capacity(request.uses.len());
            let mut preempts = BTreeSet::new();
            let mut next: Option<UnixTime> = None;
            for needed in request.uses {
                match self.room(needed, starts, ends, ignored) {
                    Ok((first, taken)) => {
                        units.push((first, needed.units()));
                        preempts.extend(taken);
                    }
                    // Until then everything that is in the way now is still there.
                    Err(free) => next = next.max(Some(free)),
                }
            }
            match next {
                None => return Some(BookingSlot { starts, ends, units, preempts }),
                Some(free) => starts = free,
            }
        }
    }

    /// The first of the units that a use gets, and the runs that it takes them from; otherwise the first moment at which
    /// one of those in the way has ended.
    fn room(
        &self,
        needed: &ResourceUse,
        starts: UnixTime,
        ends: UnixTime,
        ignored: &dyn Fn(&ResourceReservation) -> bool,
    ) -> Result<(u32, Vec<String>), UnixTime> {
        let Some(resource) = self.resources.get(&needed.resource) else { return Ok((0, Vec::new())) };
        let (soft, hard): (Vec<&ResourceReservation>, Vec<&ResourceReservation>) =
            resource.during(starts, ends).partition(|one| ignored(one));
        let units = needed.units();
        let takes = |one: &&&ResourceReservation, first: u32| {
            one.first_unit < first + units && first <= one.last_unit
        };
        let free = (0..=needed.capacity.saturating_sub(units))
            .filter(|first| !hard.iter().any(|one| takes(&one, *first)));
        // The units that are taken from the fewest others.
        let best = free
            .map(|first| (soft.iter().filter(|one| takes(one, first)).collect::<Vec<_>>(), first))
            .min_by_key(|(taken, first)| (taken.len(), *first));
        match best {
            Some((taken, first)) => Ok((first, taken.into_iter().map(|one| one.run.clone()).collect())),
            None => Err(hard.iter().map(|one| one.ends).min().unwrap_or(ends)),
        }
    }

    /// The reservations that keep a run from starting at a time, in the order of its uses.
    pub(crate) fn blockers(
        &self,
        uses: &[ResourceUse],
        starts: UnixTime,
        length: Span,
    ) -> Vec<ResourceReservation> {
        let ends = starts.after(length);
        let mut all = Vec::new();
        for needed in uses {
            if self.room(needed, starts, ends, &|_| false).is_err()
                && let Some(resource) = self.resources.get(&needed.resource)
            {
                all.extend(resource.during(starts, ends).cloned());
            }
        }
        all
    }
}

fn length_ms(reservation: &ResourceReservation) -> i64 {
    reservation.ends.as_ms().saturating_sub(reservation.starts.as_ms())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exclusive(resource: &str) -> ResourceUse {
        ResourceUse { resource: resource.to_owned(), capacity: 1, exclusive: true }
    }

    fn reservation(
        resource: &str,
        units: (u32, u32),
        times: (i64, i64),
        priority: u8,
    ) -> ResourceReservation {
        ResourceReservation {
            resource: resource.to_owned(),
            first_unit: units.0,
            last_unit: units.1,
            starts: UnixTime::from_ms(times.0),
            ends: UnixTime::from_ms(times.1),
            run: format!("{resource}{}", times.0),
            schedule: "s".to_owned(),
            priority,
            state: CalendarRunState::Booked,
            handed: false,
        }
    }

    fn request<'r>(uses: &'r [ResourceUse], window: (i64, i64), length_ms: u64) -> BookingRequest<'r> {
        BookingRequest {
            uses,
            earliest: UnixTime::from_ms(window.0),
            latest: UnixTime::from_ms(window.1),
            length: Span::from_ms(length_ms),
        }
    }

    fn open(_: UnixTime, _: Span) -> Option<UnixTime> {
        None
    }

    #[test]
    fn two_exclusive_runs_that_are_due_81_ms_apart_follow_each_other() {
        let uses = [exclusive("host.a")];
        let mut timeline = Timeline::default();
        let first = timeline.earliest(&request(&uses, (0, 60_000), 28_000), &open).unwrap();
        assert_eq!(first.starts.as_ms(), 0);
        timeline.insert(reservation("host.a", (0, 0), (0, 28_000), 0));
        let second = timeline.earliest(&request(&uses, (81, 60_000), 28_000), &open).unwrap();
        assert_eq!(second.starts.as_ms(), 28_000);
    }

    #[test]
    fn a_higher_priority_takes_time_only_if_there_is_no_other() {
        let uses = [exclusive("host.a")];
        let timeline = Timeline::of([reservation("host.a", (0, 0), (0, 10), 3)]);
        let wanted = request(&uses, (0, 5), 10);
        assert_eq!(timeline.earliest(&wanted, &open), None);
        assert_eq!(timeline.earliest_preempting(&wanted, 3, &open), None);
        let slot = timeline.earliest_preempting(&wanted, 4, &open).unwrap();
        assert_eq!((slot.starts.as_ms(), slot.preempts.len()), (0, 1));
        let mut running = reservation("host.a", (0, 0), (0, 10), 3);
        running.state = CalendarRunState::Running;
        assert_eq!(Timeline::of([running]).earliest_preempting(&wanted, 9, &open), None);
    }

    #[test]
    fn shared_runs_get_units_side_by_side_and_an_exclusive_one_waits_for_all() {
        let shared = [ResourceUse { resource: "link.up".to_owned(), capacity: 3, exclusive: false }];
        let alone = [ResourceUse { exclusive: true, ..shared[0].clone() }];
        let mut timeline = Timeline::default();
        for expected in 0..3 {
            let slot = timeline.earliest(&request(&shared, (0, 100), 10), &open).unwrap();
            assert_eq!((slot.starts.as_ms(), slot.units[0]), (0, (expected, 1)));
            timeline.insert(reservation("link.up", (expected, expected), (0, 10 + i64::from(expected)), 0));
        }
        let fourth = timeline.earliest(&request(&shared, (0, 100), 10), &open).unwrap();
        assert_eq!((fourth.starts.as_ms(), fourth.units[0]), (10, (0, 1)));
        let slot = timeline.earliest(&request(&alone, (0, 100), 10), &open).unwrap();
        assert_eq!((slot.starts.as_ms(), slot.units[0]), (12, (0, 3)));
        assert_eq!(timeline.blockers(&alone, UnixTime::from_ms(0), Span::from_ms(10)).len(), 3);
    }

    #[test]
    fn closed_times_are_left_out() {
        let uses = [exclusive("host.a")];
        let closed = |starts: UnixTime, length: Span| {
            let ends = starts.after(length).as_ms();
            (ends > 100 && starts.as_ms() < 200).then(|| UnixTime::from_ms(200))
        };
        let timeline = Timeline::of([reservation("host.a", (0, 0), (0, 95), 0)]);
        let slot = timeline.earliest(&request(&uses, (0, 1000), 10), &closed).unwrap();
        assert_eq!(slot.starts.as_ms(), 200);
        assert_eq!(timeline.earliest(&request(&uses, (0, 199), 10), &closed), None);
    }

    /// Up to 4 resources of capacity 1 to 3, and runs with random uses, windows and priorities.
    /// What a run uses and whether alone, when it is due, its slip, its length and its priority.
    type RandomRun = (Vec<(usize, bool)>, i64, i64, u64, u8);

    fn worlds() -> impl Strategy<Value = Vec<RandomRun>> {
        let uses = proptest::collection::btree_map(0_usize..4, any::<bool>(), 1..4);
        let run = (uses, 0_i64..60, 0_i64..40, 1_u64..20, 0_u8..4);
        proptest::collection::vec(
            run.prop_map(|(uses, due, window, length, priority)| {
                (uses.into_iter().collect(), due, window, length, priority)
            }),
            1..25,
        )
    }

    proptest! {
        /// Every slot is free, in its window, and the earliest: no earlier millisecond would do. With capacities the units
        /// of two reservations never overlap.
        #[test]
        fn slots_are_free_and_the_earliest(world in worlds()) {
            let mut timeline = Timeline::default();
            let mut stored: Vec<ResourceReservation> = Vec::new();
            for (number, (uses, due, window, length, priority)) in world.iter().enumerate() {
                let uses: Vec<ResourceUse> = uses
                    .iter()
                    .map(|(at, exclusive)| ResourceUse {
                        resource: format!("r{at}"), capacity: 1 + *at as u32 % 3, exclusive: *exclusive,
                    })
                    .collect();
                let wanted = request(&uses, (*due, due + window), *length);
                let slot = timeline.earliest(&wanted, &open);
                let room = |starts: i64| timeline.blockers(&uses, UnixTime::from_ms(starts), wanted.length).is_empty();
                let brute = (*due..=due + window).find(|starts| room(*starts));
                prop_assert_eq!(slot.as_ref().map(|slot| slot.starts.as_ms()), brute);
                let over = timeline.earliest_preempting(&wanted, *priority, &open);
                if let (Some(slot), Some(over)) = (&slot, &over) {
                    prop_assert!(over.starts <= slot.starts);
                }
                let Some(slot) = slot.or(over) else { continue };
                for run in &slot.preempts {
                    let lower = stored.iter().find(|one| one.run == *run).unwrap();
                    prop_assert!(lower.priority < *priority);
                    timeline.remove_run(run);
                }
                stored.retain(|one| !slot.preempts.contains(&one.run));
                for (needed, (first, units)) in uses.iter().zip(&slot.units) {
                    prop_assert!(first + units <= needed.capacity);
                    let own = ResourceReservation {
                        resource: needed.resource.clone(),
                        first_unit: *first,
                        last_unit: first + units - 1,
                        starts: slot.starts,
                        ends: slot.ends,
                        run: format!("run{number}"),
                        schedule: String::new(),
                        priority: *priority,
                        state: CalendarRunState::Booked,
                        handed: false,
                    };
                    prop_assert!(!stored.iter().any(|one| one.overlaps(&own)), "{own:?}\n{stored:#?}");
                    timeline.insert(own.clone());
                    stored.push(own);
                }
            }
        }
    }
}
