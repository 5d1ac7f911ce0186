//! A model of the booking: every interleaving of two coordinators that book and start two runs on one resource, are
//! stopped at any moment and continue later, and take over from each other.
//!
//! The model has what the real coordinators rely on: a lease with an epoch that each transaction checks, reservations
//! that the database does not let overlap, and the latest time at which traffic may begin. Without any one of these it
//! finds a counterexample, as the last test shows.

use stateright::{Checker, Model, Property};

const RUNS: usize = 2;
const COORDINATORS: usize = 2;
/// Time units.
const END: u8 = 7;
/// Changes of the coordinator that leads.
const MAX_EPOCH: u8 = 3;
const LEASE: u8 = 2;
/// A reservation: traffic may begin in its first unit, and lasts two.
const RESERVED: u8 = 3;
const TRAFFIC: u8 = 2;

/// What the model does without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Neither is the epoch checked when a booking is stored, nor does the database refuse overlaps.
    EpochAndConstraint,
    /// Traffic may begin at any time after its run was started.
    LatestStart,
    /// The time of a run that is lost is free at once.
    WaitForLostRuns,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ModelRun {
    New,
    Booked(u8),
    Running(u8),
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct ModelCoordinator {
    /// The epoch that it believes to have.
    epoch: u8,
    /// The run that it has started in the calendar, and whose traffic has not begun.
    pending: Option<(usize, u8)>,
    /// The run that it has found a time for, which is not stored yet.
    found: Option<(usize, u8)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ModelCalendar {
    now: u8,
    /// Holder, epoch, and when it ends.
    lease: (usize, u8, u8),
    coordinators: [ModelCoordinator; COORDINATORS],
    runs: [ModelRun; RUNS],
    /// When the traffic of each run begins.
    traffic: [Option<u8>; RUNS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Time,
    Lead(usize),
    Find(usize, usize),
    Book(usize),
    Start(usize, usize),
    Send(usize),
    Finish(usize, usize),
    GiveUp(usize, usize),
}

struct BookingModel(Without);

impl BookingModel {
    /// Whether the resource is free from a time on.
    fn is_free(calendar: &ModelCalendar, starts: u8) -> bool {
        let held = |run: &ModelRun| match run {
            ModelRun::Booked(starts) | ModelRun::Running(starts) => Some(*starts),
            ModelRun::New | ModelRun::Ended => None,
        };
        !calendar
            .runs
            .iter()
            .filter_map(held)
            .any(|other| starts < other + RESERVED && other < starts + RESERVED)
    }

    /// The earliest time at which the resource is free.
    fn free_time(calendar: &ModelCalendar) -> u8 {
        (calendar.now..).find(|starts| Self::is_free(calendar, *starts)).unwrap_or(END)
    }
}

impl Model for BookingModel {
    type State = ModelCalendar;
    type Action = Step;

    fn init_states(&self) -> Vec<ModelCalendar> {
        vec![ModelCalendar {
            now: 0,
            lease: (0, 0, 0),
            coordinators: Default::default(),
            runs: [ModelRun::New; RUNS],
            traffic: [None; RUNS],
        }]
    }

    /// Any coordinator may act at any time, or not at all: one that is stopped only acts late.
    fn actions(&self, calendar: &ModelCalendar, actions: &mut Vec<Step>) {
        if calendar.now < END {
            actions.push(Step::Time);
        }
        for who in 0..COORDINATORS {
            actions.push(Step::Lead(who));
            actions.extend([Step::Send(who), Step::Book(who)]);
            for run in 0..RUNS {
                actions.extend([
                    Step::Find(who, run),
                    Step::Start(who, run),
                    Step::Finish(who, run),
                    Step::GiveUp(who, run),
                ]);
            }
        }
    }

    fn next_state(&self, before: &ModelCalendar, step: Step) -> Option<ModelCalendar> {
        let mut next = before.clone();
        let leads = |who: usize| before.coordinators[who].epoch == before.lease.1 && before.lease.1 > 0;
        let now = before.now;
        match step {
            Step::Time => next.now += 1,
            Step::Lead(who) => {
                let (holder, epoch, until) = before.lease;
                if holder != who && until > now {
                    return None;
                }
                let epoch = if holder == who && epoch > 0 { epoch } else { epoch + 1 };
                if epoch > MAX_EPOCH {
                    return None;
                }
                next.lease = (who, epoch, now + LEASE);
                next.coordinators[who].epoch = epoch;
            }
            Step::Find(who, run) => {
                if before.runs[run] != ModelRun::New || before.coordinators[who].epoch == 0 {
                    return None;
                }
                next.coordinators[who].found = Some((run, Self::free_time(before)));
            }
            Step::Book(who) => {
                let (run, starts) = next.coordinators[who].found.take()?;
                let checked = leads(who) && Self::is_free(before, starts);
                if before.runs[run] != ModelRun::New || !(checked || self.0 == Without::EpochAndConstraint) {
                    return None;
                }
                next.runs[run] = ModelRun::Booked(starts);
            }
            Step::Start(who, run) => {
                let ModelRun::Booked(starts) = before.runs[run] else { return None };
                if !leads(who) || now != starts || before.coordinators[who].pending.is_some() {
                    return None;
                }
                next.runs[run] = ModelRun::Running(starts);
                next.coordinators[who].pending = Some((run, starts));
            }
            Step::Send(who) => {
                let (run, starts) = next.coordinators[who].pending.take()?;
                let in_time = now <= starts + RESERVED - TRAFFIC;
                if in_time || self.0 == Without::LatestStart {
                    next.traffic[run] = Some(now);
                }
            }
            Step::Finish(_, run) => {
                let (ModelRun::Running(_), Some(begun)) = (before.runs[run], before.traffic[run]) else {
                    return None;
                };
                if begun + TRAFFIC > now {
                    return None;
                }
                next.runs[run] = ModelRun::Ended;
            }
            Step::GiveUp(who, run) if leads(who) => {
                let ModelRun::Running(starts) = before.runs[run] else { return None };
                if starts + RESERVED > now && self.0 != Without::WaitForLostRuns {
                    return None;
                }
                next.runs[run] = ModelRun::Ended;
            }
            Step::GiveUp(..) => return None,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no two runs send at the same time", |_, calendar: &ModelCalendar| {
                let sent: Vec<u8> = calendar.traffic.iter().flatten().copied().collect();
                let overlap = |a: u8, b: u8| a < b + TRAFFIC && b < a + TRAFFIC;
                !(0..sent.len()).any(|one| (0..one).any(|other| overlap(sent[one], sent[other])))
            }),
            Property::sometimes("all runs are measured", |_, calendar: &ModelCalendar| {
                calendar.runs.iter().all(|run| *run == ModelRun::Ended)
                    && calendar.traffic.iter().all(Option::is_some)
            }),
            Property::sometimes("both coordinators measure", |_, calendar: &ModelCalendar| {
                calendar.lease.1 >= 2 && calendar.traffic.iter().all(Option::is_some)
            }),
        ]
    }
}

#[test]
fn no_interleaving_books_twice_and_every_run_can_be_measured() {
    BookingModel(Without::Nothing).checker().spawn_bfs().join().assert_properties();
}

#[test]
fn each_safeguard_is_needed() {
    for without in [Without::EpochAndConstraint, Without::LatestStart, Without::WaitForLostRuns] {
        let checked = BookingModel(without).checker().spawn_bfs().join();
        let found = checked.discovery("no two runs send at the same time");
        assert!(found.is_some(), "{without:?} is not needed, so the model does not show anything");
    }
}
