//! What agents may still have in their calendars, in both databases.

use std::slice::from_ref;

use linerate_archive::{
    AgentRemoval, Calendar, CalendarError, CalendarTransaction, HandedCalendar, ResultParts, RunFilter,
};
use linerate_model::calendar::{CalendarRun, CalendarRunState, FleetAgentState, UnixTime};

use crate::calendar::{at, calendar, due, hold, run, schedule};
use crate::place::{TestPlace, on_both_databases};

on_both_databases!(
    a_cancelled_run_is_not_free_until_its_agent_has_another_calendar,
    what_an_agent_has_is_free_when_it_can_no_longer_be_in_force,
    a_run_that_no_agent_has_is_free_at_once,
    an_agent_gets_another_calendar_when_something_in_it_changes,
    a_calendar_with_too_many_runs_ends_earlier,
    after_a_loss_every_agent_has_to_confirm_a_new_calendar,
    schedules_of_agents_that_take_no_runs_are_due_when_their_time_has_come,
    every_agent_has_a_key_of_its_own,
    an_agent_is_removed_when_nothing_of_it_is_in_force,
    parts_of_a_result_become_a_whole_in_any_order,
    unfinished_results_make_room_for_others,
    a_calendar_of_the_first_format_is_brought_up_to_date,
);

/// A calendar with an agent of host a and a run of it from 100 to 200.
fn with_agent(place: &TestPlace) -> Calendar {
    let mut calendar = calendar(place);
    let one = run("one", 100, 200);
    let held = hold(&one, "a", (0, 1));
    calendar
        .write(|calendar| {
            calendar.enroll_agent("a", "KEY-A", at(1))?;
            calendar.insert_runs(from_ref(&one), from_ref(&held))
        })
        .unwrap();
    calendar
}

fn hand_out(calendar: &mut Calendar, until: i64) -> HandedCalendar {
    calendar.write(|calendar| calendar.hand_out("a", (at(0), at(0), at(until)), true)).unwrap()
}

fn read_calm(calendar: &mut Calendar) -> UnixTime {
    let read = |calendar: &mut CalendarTransaction<'_>| calendar.calm_until();
    calendar.read(read).unwrap()
}

fn cancel(calendar: &mut Calendar, run: &str, now: i64) {
    let cancelled = |calendar: &mut CalendarTransaction<'_>| {
        calendar.end_run(run, CalendarRunState::Cancelled, "why", None, at(now))
    };
    assert!(calendar.write(cancelled).unwrap());
}

/// Whether all of host a is free from 100 to 200.
fn is_free(calendar: &mut Calendar) -> bool {
    calendar.read(|calendar| calendar.reservations(&["host.a"], at(100), at(200))).unwrap().is_empty()
}

fn a_cancelled_run_is_not_free_until_its_agent_has_another_calendar(place: &TestPlace) {
    let mut calendar = with_agent(place);
    let first = hand_out(&mut calendar, 1000);
    assert_eq!((first.version, first.runs.len()), (1, 1));
    cancel(&mut calendar, "one", 10);
    let held = calendar.read(|calendar| calendar.reservations(&["host.a"], at(0), at(300))).unwrap();
    assert_eq!((held.len(), held[0].state, held[0].handed), (1, CalendarRunState::Cancelled, true));
    // Booking it again is refused by the database too.
    let other = run("other", 150, 250);
    let again =
        calendar.write(|calendar| calendar.insert_runs(from_ref(&other), &[hold(&other, "a", (0, 0))]));
    assert!(matches!(again, Err(CalendarError::Conflict)), "{again:?}");
    let second = hand_out(&mut calendar, 1000);
    assert_eq!((second.version, second.runs.len()), (2, 0));
    // That it has the first one is known already, and says nothing of the second.
    calendar.write(|calendar| calendar.confirm_calendar("a", 1)).unwrap();
    assert!(!is_free(&mut calendar));
    calendar.write(|calendar| calendar.confirm_calendar("a", 2)).unwrap();
    assert!(is_free(&mut calendar));
    calendar.write(|calendar| calendar.insert_runs(from_ref(&other), &[hold(&other, "a", (0, 0))])).unwrap();
}

fn what_an_agent_has_is_free_when_it_can_no_longer_be_in_force(place: &TestPlace) {
    let mut calendar = with_agent(place);
    hand_out(&mut calendar, 1000);
    cancel(&mut calendar, "one", 10);
    calendar.write(|calendar| calendar.free_held(at(199))).unwrap();
    assert!(!is_free(&mut calendar));
    assert!(calendar.read(|calendar| calendar.is_held_too_long(at(200))).unwrap());
    calendar.write(|calendar| calendar.free_held(at(200))).unwrap();
    assert!(is_free(&mut calendar));
    assert!(!calendar.read(|calendar| calendar.is_held_too_long(at(200))).unwrap());
}

fn a_run_that_no_agent_has_is_free_at_once(place: &TestPlace) {
    let mut calendar = with_agent(place);
    // A calendar that ends before the run does not have it.
    assert_eq!(hand_out(&mut calendar, 199).runs, []);
    cancel(&mut calendar, "one", 10);
    assert!(is_free(&mut calendar));
}

fn an_agent_gets_another_calendar_when_something_in_it_changes(place: &TestPlace) {
    let mut calendar = with_agent(place);
    let to_hand = |calendar: &mut Calendar, renew: i64| {
        calendar.read(|calendar| calendar.agents_to_hand(at(renew), 9)).unwrap()
    };
    assert_eq!(to_hand(&mut calendar, 0), ["a"]);
    hand_out(&mut calendar, 1000);
    assert!(to_hand(&mut calendar, 249).is_empty());
    assert_eq!(to_hand(&mut calendar, 250), ["a"], "a quarter of its time has passed");
    // A run of another host is not its concern.
    let foreign = CalendarRun { from: "b".to_owned(), ..run("foreign", 300, 400) };
    calendar.write(|calendar| calendar.insert_runs(from_ref(&foreign), &[])).unwrap();
    assert!(to_hand(&mut calendar, 0).is_empty());
    calendar.write(|calendar| calendar.insert_runs(&[run("two", 300, 400)], &[])).unwrap();
    assert_eq!(to_hand(&mut calendar, 0), ["a"]);
    assert_eq!(hand_out(&mut calendar, 1000).runs.len(), 2);
    calendar.write(|calendar| calendar.begin_run("two", 7, at(300))).unwrap();
    assert!(to_hand(&mut calendar, 0).is_empty());
    assert!(calendar.write(|calendar| calendar.ask_to_stop("two", "enough")).unwrap());
    assert_eq!(to_hand(&mut calendar, 0), ["a"]);
    assert_eq!(hand_out(&mut calendar, 1000).runs.len(), 1, "it is to be stopped");
    assert!(calendar.write(|calendar| calendar.revoke_agent("a", at(5))).unwrap());
    assert!(to_hand(&mut calendar, 9999).is_empty());
    let left = calendar.read(|calendar| calendar.run("one")).unwrap().unwrap();
    assert_eq!(left.state, CalendarRunState::Cancelled);
    assert!(!is_free(&mut calendar), "it may carry it out");
    assert!(!calendar.write(|calendar| calendar.revoke_agent("a", at(6))).unwrap());
}

fn a_calendar_with_too_many_runs_ends_earlier(place: &TestPlace) {
    let mut calendar = with_agent(place);
    let many: Vec<_> =
        (0..1200).map(|at| run(&format!("many-{at:04}"), 1000 + 10 * at, 1005 + 10 * at)).collect();
    calendar.write(|calendar| calendar.insert_runs(&many, &[])).unwrap();
    let handed = hand_out(&mut calendar, 1_000_000);
    // The run at 100 and the first 999 of the others.
    assert_eq!(handed.runs.len(), 1000);
    assert_eq!(handed.until, at(1000 + 10 * 999));
    assert!(handed.runs.iter().all(|run| run.ends <= handed.until));
}

fn after_a_loss_every_agent_has_to_confirm_a_new_calendar(place: &TestPlace) {
    let mut calendar = with_agent(place);
    calendar.write(|calendar| calendar.acquire_lease("c", at(1), at(9), None)).unwrap();
    hand_out(&mut calendar, 1000);
    calendar.write(|calendar| calendar.confirm_calendar("a", 1)).unwrap();
    assert_eq!(calendar.read(|calendar| calendar.lost_agents(at(10))).unwrap(), 0);
    calendar.write(|calendar| calendar.note_loss(at(10))).unwrap();
    assert_eq!(calendar.read(|calendar| calendar.lost_agents(at(10))).unwrap(), 1);
    // Something may be on the wire that nobody knows of, for as long as the longest reservation.
    assert_eq!(read_calm(&mut calendar), at(110));
    let one = calendar.read(|calendar| calendar.run("one")).unwrap().unwrap();
    assert_eq!(one.state, CalendarRunState::Missed);
    assert!(!is_free(&mut calendar), "its agent may carry it out");
    // A version from before, also one that was lost, confirms nothing.
    calendar.write(|calendar| calendar.confirm_calendar("a", 17)).unwrap();
    assert_eq!(calendar.read(|calendar| calendar.lost_agents(at(10))).unwrap(), 1);
    let handed = hand_out(&mut calendar, 1000);
    assert!(handed.lost && handed.version > 1_000_000, "{handed:?}");
    calendar.write(|calendar| calendar.confirm_calendar("a", handed.version)).unwrap();
    assert_eq!(calendar.read(|calendar| calendar.lost_agents(at(10))).unwrap(), 0);
    assert!(!hand_out(&mut calendar, 1000).lost);
    assert!(is_free(&mut calendar));
    // An agent that is never heard again: the longest calendar ends after a day.
    calendar.write(|calendar| calendar.note_loss(at(10))).unwrap();
    let day = 24 * 3600 * 1000;
    // What is waited for longer than that anyway is not forgotten.
    calendar.write(|calendar| calendar.note_other_uses(Some(at(900)))).unwrap();
    calendar.write(|calendar| calendar.note_loss(at(10))).unwrap();
    assert_eq!(read_calm(&mut calendar), at(900));
    assert_eq!(calendar.read(|calendar| calendar.lost_agents(at(9 + day))).unwrap(), 1);
    assert_eq!(calendar.read(|calendar| calendar.lost_agents(at(10 + day))).unwrap(), 0);
}

fn schedules_of_agents_that_take_no_runs_are_due_when_their_time_has_come(place: &TestPlace) {
    let mut calendar = with_agent(place);
    calendar.write(|calendar| calendar.put_schedule(&schedule("s"), Some(at(500)))).unwrap();
    let is_due = |calendar: &mut Calendar, soon: i64| {
        let limits = linerate_archive::DueLimits { soon: at(soon), seen_after: at(5), ..due(1000) };
        !calendar.read(|calendar| calendar.due_schedules(&limits, 9)).unwrap().is_empty()
    };
    assert!(!is_due(&mut calendar, 100), "it was never heard");
    assert!(is_due(&mut calendar, 501));
    let state = |note: &str| FleetAgentState {
        session: "p".to_owned(),
        note: note.into(),
        ..FleetAgentState::default()
    };
    calendar.write(|calendar| calendar.note_agent("a", &state(""), at(5))).unwrap();
    assert!(is_due(&mut calendar, 100));
    calendar.write(|calendar| calendar.note_agent("a", &state("its disk is full"), at(6))).unwrap();
    assert!(!is_due(&mut calendar, 100));
    calendar.write(|calendar| calendar.note_agent("a", &state(""), at(4))).unwrap();
    assert!(!is_due(&mut calendar, 100), "it was not heard for too long");
    calendar.write(|calendar| calendar.note_agent("a", &state(""), at(7))).unwrap();
    calendar.write(|calendar| calendar.revoke_agent("a", at(8)).map(drop)).unwrap();
    assert!(!is_due(&mut calendar, 100));
}

fn an_agent_is_removed_when_nothing_of_it_is_in_force(place: &TestPlace) {
    let mut calendar = with_agent(place);
    let remove = |calendar: &mut Calendar, now: i64| {
        calendar.write(|calendar| calendar.remove_agent("a", at(now))).unwrap()
    };
    hand_out(&mut calendar, 300);
    assert_eq!(remove(&mut calendar, 10), AgentRemoval::NotRevoked);
    // A process with the earlier key may have the run for longer than the newest calendar is in force.
    calendar.write(|calendar| calendar.enroll_agent("a", "KEY-C", at(20))).unwrap();
    let version = hand_out(&mut calendar, 150).version;
    calendar.write(|calendar| calendar.confirm_calendar("a", version)).unwrap();
    calendar.write(|calendar| calendar.revoke_agent("a", at(30))).unwrap();
    assert_eq!(remove(&mut calendar, 160), AgentRemoval::InForce(at(200)));
    assert!(!is_free(&mut calendar));
    calendar
        .write(|calendar| {
            calendar.add_result_part(("a", "one"), (0, 2), "half", at(170))?;
            calendar.note_other_uses(None)
        })
        .unwrap();
    let waits = |calendar: &mut CalendarTransaction<'_>| calendar.other_uses_until();
    assert_eq!(calendar.read(waits).unwrap(), Some(at(200)));
    assert_eq!(remove(&mut calendar, 200), AgentRemoval::Removed);
    assert_eq!(calendar.read(waits).unwrap(), None);
    assert!(is_free(&mut calendar));
    let agents = |calendar: &mut CalendarTransaction<'_>| calendar.agents();
    assert_eq!(calendar.read(agents).unwrap(), []);
    assert_eq!(remove(&mut calendar, 201), AgentRemoval::NoAgent);
    // Its key may be enrolled again, also for another host.
    calendar.write(|calendar| calendar.enroll_agent("b", "KEY-C", at(202))).unwrap();
}

fn every_agent_has_a_key_of_its_own(place: &TestPlace) {
    let mut calendar = with_agent(place);
    let taken = calendar.write(|calendar| calendar.enroll_agent("b", "KEY-A", at(3)));
    assert!(matches!(&taken, Err(CalendarError::KeyTaken(name)) if name == "a"), "{taken:?}");
    hand_out(&mut calendar, 1000);
    calendar.write(|calendar| calendar.revoke_agent("a", at(3)).map(drop)).unwrap();
    calendar.write(|calendar| calendar.enroll_agent("a", "KEY-B", at(4))).unwrap();
    let agent = calendar.read(|calendar| calendar.agent("a")).unwrap().unwrap();
    assert_eq!((agent.key.as_str(), agent.revoked, agent.version), ("KEY-B", None, 1));
    assert_eq!(agent.lease_until, at(1000), "what was handed out counts");
    // The process with the earlier key cannot be heard: no confirmation of the new one frees what it has.
    let next = hand_out(&mut calendar, 1000);
    calendar.write(|calendar| calendar.confirm_calendar("a", next.version)).unwrap();
    assert!(!is_free(&mut calendar));
    calendar.write(|calendar| calendar.free_held(at(200))).unwrap();
    assert!(is_free(&mut calendar));
}

fn parts_of_a_result_become_a_whole_in_any_order(place: &TestPlace) {
    let mut calendar = calendar(place);
    let mut add = |part: (u32, u32), content: &str| {
        calendar.write(|calendar| calendar.add_result_part(("a", "r"), part, content, at(1))).unwrap()
    };
    assert_eq!(add((0, 1), "whole"), ResultParts::Whole("whole".to_owned()));
    assert_eq!(add((2, 3), "C"), ResultParts::Kept);
    assert_eq!(add((0, 3), "x"), ResultParts::Kept);
    assert_eq!(add((0, 3), "A"), ResultParts::Kept, "one that is sent again replaces the first");
    assert_eq!(add((1, 3), "B"), ResultParts::Whole("ABC".to_owned()));
    calendar.write(|calendar| calendar.remove_result_parts("r")).unwrap();
    assert_eq!(place.number("SELECT count(*) FROM fleet_result_part"), 0.0);
}

fn unfinished_results_make_room_for_others(place: &TestPlace) {
    let mut calendar = calendar(place);
    let mut add = |run: &str, part: u32, now: i64| {
        let one = |calendar: &mut CalendarTransaction<'_>| {
            calendar.add_result_part(("a", run), (part, 3), &format!("{run}{part}"), at(now))
        };
        calendar.write(one).unwrap()
    };
    for (run, now) in [("9", 1), ("8", 2), ("7", 3), ("6", 4)] {
        assert_eq!(add(run, 0, now), ResultParts::Kept);
    }
    assert_eq!(add("9", 1, 5), ResultParts::Kept);
    // In the place of 8, which was not continued for the longest time.
    assert_eq!(add("5", 0, 6), ResultParts::Kept);
    assert_eq!(add("9", 2, 7), ResultParts::Whole("909192".to_owned()));
    assert_eq!(place.number("SELECT count(*) FROM fleet_result_part WHERE run = '8'"), 0.0);
    assert_eq!(place.number("SELECT count(DISTINCT run) FROM fleet_result_part"), 4.0);
    // Those of another agent do not count.
    let other =
        |calendar: &mut CalendarTransaction<'_>| calendar.add_result_part(("b", "1"), (0, 3), "half", at(8));
    calendar.write(other).unwrap();
    assert_eq!(place.number("SELECT count(DISTINCT run) FROM fleet_result_part"), 5.0);
}

fn a_calendar_of_the_first_format_is_brought_up_to_date(place: &TestPlace) {
    // The tables of a calendar are in the database of an archive.
    drop(place.open());
    place.execute(match place {
        TestPlace::File(_) => include_str!("../../schema/calendar/sqlite.sql"),
        TestPlace::Server(_) => include_str!("../../schema/calendar/postgres.sql"),
    });
    let content = serde_json::to_string(&schedule("s")).unwrap();
    place.execute(&format!(
        "INSERT INTO fleet_schedule (name, next_due, content) VALUES ('s', 500, '{content}')"
    ));
    let spec = serde_json::to_string(&linerate_model::TestSpec::default()).unwrap();
    place.execute(&format!("INSERT INTO fleet_spec (content) VALUES ('{spec}')"));
    let existing = Calendar::existing(place.open()).unwrap().map(drop);
    assert_eq!(existing, Some(()));
    let mut calendar = Calendar::open(&place.location()).unwrap();
    calendar.write(|calendar| calendar.enroll_agent("a", "KEY-A", at(1))).unwrap();
    let limits = linerate_archive::DueLimits { soon: at(0), seen_after: at(1), ..due(1000) };
    // Its host was taken from its content: the agent was never heard.
    assert!(calendar.read(|calendar| calendar.due_schedules(&limits, 9)).unwrap().is_empty());
    assert_eq!(calendar.read(|calendar| calendar.runs(&RunFilter::default())).unwrap(), []);
    // Specifications may be longer than before, and those that are there are used.
    let long = CalendarRun { spec: crate::calendar::long_spec(), ..run("2", 30, 40) };
    calendar.write(|calendar| calendar.insert_runs(&[run("1", 10, 20), long.clone()], &[])).unwrap();
    assert_eq!(place.number("SELECT count(*) FROM fleet_spec"), 2.0);
}
