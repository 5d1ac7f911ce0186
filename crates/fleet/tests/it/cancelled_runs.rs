//! What a user cancelled stays cancelled, and nothing else is left out because of it.

use std::collections::BTreeMap;

use linerate_fleet::{CancelTarget, FleetError};
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgentState, UnixTime};
use linerate_units::Span;

use crate::coordinator::{CAMPUS, Campus, at, described};

/// A fleet with a schedule that is due every five minutes, its times for an hour, and the one whose run a user cancelled.
fn with_cancelled(which: usize) -> (Campus, Vec<UnixTime>, UnixTime) {
    let mut campus = Campus::new();
    campus.add("often", ("a", "c"), 60, |request| {
        (request.at, request.every) = (None, Some(Span::from_secs(300)));
    });
    campus.tick(1);
    let runs = last_runs(&mut campus);
    let times: Vec<UnixTime> = runs.keys().copied().collect();
    assert!(times.len() > 10, "{times:?}");
    let cancelled = times[which];
    campus.users.cancel(&CancelTarget::Run(runs[&cancelled].id.clone()), at(2)).unwrap();
    (campus, times, cancelled)
}

/// The last run for each time of the schedule.
fn last_runs(campus: &mut Campus) -> BTreeMap<UnixTime, CalendarRun> {
    campus.runs("often").into_iter().map(|run| (run.due, run)).collect()
}

/// The agent of host a says how it is.
fn receive(campus: &mut Campus, seconds: u64) {
    let calendar = campus.coordinator.calendar();
    calendar.write(|calendar| calendar.note_agent("a", &FleetAgentState::default(), at(seconds))).unwrap();
}

/// Host a gets an agent, and then another one in its place, which ends what the first one has in its calendar.
fn enroll_anew(campus: &mut Campus) {
    for key in ["KEY-1", "KEY-2"] {
        campus.users.enroll("a", key, at(3)).unwrap();
    }
    assert!(last_runs(campus).values().all(|run| run.state == CalendarRunState::Cancelled));
}

/// Every time has one run that is booked, except the one whose run a user cancelled.
fn assert_booked(campus: &mut Campus, times: &[UnixTime], cancelled: UnixTime) {
    let runs = last_runs(campus);
    for due in times {
        let run = &runs[due];
        if *due == cancelled {
            assert_eq!((run.attempt, run.state), (0, CalendarRunState::Cancelled), "{run:?}");
            assert_eq!(run.reason.as_str(), "a user cancelled it");
        } else {
            assert_eq!((run.attempt, run.state), (1, CalendarRunState::Booked), "{run:?}");
        }
    }
}

#[test]
fn a_host_that_is_enrolled_anew_is_measured_before_a_run_that_a_user_cancelled() {
    let (mut campus, times, cancelled) = with_cancelled(9);
    enroll_anew(&mut campus);
    receive(&mut campus, 4);
    campus.tick(4);
    assert_booked(&mut campus, &times, cancelled);
}

#[test]
fn a_run_that_a_user_cancelled_is_not_booked_again_when_the_fleet_is_described_anew() {
    let (mut campus, times, cancelled) = with_cancelled(3);
    described(&mut campus, &CAMPUS.replace("set_up = \"3s\"", "set_up = \"4s\""), 10);
    campus.tick(11);
    assert_booked(&mut campus, &times, cancelled);
}

#[test]
fn a_run_that_a_user_cancelled_is_not_booked_again_with_its_schedule() {
    let (mut campus, times, cancelled) = with_cancelled(3);
    campus.users.set_paused("often", true, at(10)).unwrap();
    campus.users.set_paused("often", false, at(11)).unwrap();
    campus.tick(12);
    assert_booked(&mut campus, &times, cancelled);
}

#[test]
fn a_run_that_a_user_cancelled_was_not_missed() {
    let (mut campus, times, cancelled) = with_cancelled(0);
    enroll_anew(&mut campus);
    // No coordinator is there for three hours.
    receive(&mut campus, 3 * 3600);
    campus.tick(3 * 3600);
    let missed = campus.runs("often").into_iter().filter(|run| run.state == CalendarRunState::Missed);
    assert_eq!(missed.map(|run| run.due).collect::<Vec<_>>(), [times[1]]);
    assert_eq!(last_runs(&mut campus)[&cancelled].state, CalendarRunState::Cancelled);
}

#[test]
fn a_schedule_that_is_removed_and_added_again_is_measured_at_a_time_that_was_cancelled() {
    let mut campus = Campus::new();
    campus.add("once", ("a", "c"), 600, |_| ());
    campus.tick(1);
    campus.users.cancel(&CancelTarget::Schedule("once".to_owned()), at(2)).unwrap();
    campus.users.remove("once", at(3)).unwrap();
    campus.add("once", ("a", "c"), 600, |_| ());
    campus.tick(4);
    let runs = campus.runs("once");
    let states: Vec<CalendarRunState> = runs.iter().map(|run| run.state).collect();
    assert_eq!(states, [CalendarRunState::Cancelled, CalendarRunState::Booked]);
    assert_eq!(runs[0].reason.as_str(), "a user cancelled it, and later its schedule was removed");
}

#[test]
fn only_the_whole_name_of_a_run_stands_for_it_and_a_beginning_where_one_is_asked_for() {
    let mut campus = Campus::new();
    for (name, pair) in [("first", ("a", "c")), ("second", ("b", "d"))] {
        campus.add(name, pair, 60, |_| ());
    }
    campus.tick(1);
    let [first, second] = ["first", "second"].map(|name| campus.runs(name).remove(0));
    for beginning in ["r", "", &first.id[..first.id.len() - 1]] {
        let one = campus.users.cancel(&CancelTarget::Run(beginning.to_owned()), at(2)).unwrap_err();
        assert!(matches!(one, FleetError::NoRun(_)), "'{beginning}': {one}");
        let any = campus.users.cancel(&CancelTarget::RunBeginning(beginning.to_owned()), at(2)).unwrap_err();
        assert!(matches!(any, FleetError::Ambiguous(_)), "'{beginning}': {any}");
    }
    assert_eq!(campus.users.cancel(&CancelTarget::Run(first.id.clone()), at(2)).unwrap(), 1);
    assert_eq!(campus.users.cancel(&CancelTarget::RunBeginning(second.id.clone()), at(2)).unwrap(), 1);
    let again = campus.users.cancel(&CancelTarget::Run(first.id), at(3)).unwrap_err();
    assert!(matches!(again, FleetError::Ended { .. }), "{again}");
}
