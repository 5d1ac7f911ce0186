//! Parts of a calendar that is read page by page, and what was due at silent agents, in both databases.

use linerate_archive::{CalendarTransaction, NewestRun};
use linerate_model::calendar::{Alarm, AlarmKind, CalendarRun, CalendarRunState, FleetAgentState, Schedule};

use crate::calendar::{at, calendar, run, schedule};
use crate::place::{TestPlace, on_both_databases};

on_both_databases!(
    schedules_come_page_by_page,
    the_next_run_of_a_schedule_is_over_later,
    the_newest_run_of_a_schedule_is_active_or_was_made,
    what_was_due_at_a_silent_agent_is_found,
);

fn schedules_come_page_by_page(place: &TestPlace) {
    let mut calendar = calendar(place);
    let names = ["alone", "b", "m.a.b", "m.b.a", "other-one"];
    calendar
        .write(|calendar| {
            for name in names {
                let mesh = name.starts_with("m.").then(|| "m".into());
                calendar.put_schedule(&Schedule { mesh, ..schedule(name) }, Some(at(7)))?;
            }
            calendar.set_paused("b", true, None)
        })
        .unwrap();
    for size in 1..=6 {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = calendar.read(|calendar| calendar.schedules_after(after.as_deref(), size)).unwrap();
            assert!(page.len() <= size as usize);
            let Some(last) = page.last() else { break };
            after = Some(last.schedule.name.to_string());
            found.extend(page.into_iter().map(|state| state.schedule.name.to_string()));
        }
        // Databases may order hyphens and dots differently.
        found.sort_unstable();
        assert_eq!(found, names, "pages of {size}");
    }
    let (alone, count) = calendar.read(|calendar| calendar.schedules_without_mesh(2)).unwrap();
    assert_eq!((alone.len(), count), (2, 3));
    let counts = |calendar: &mut CalendarTransaction<'_>| calendar.schedule_counts();
    assert_eq!(calendar.read(counts).unwrap(), (5, 1));
    let due = calendar.read(|calendar| calendar.next_due(&["alone", "b", "gone"])).unwrap();
    assert_eq!(due.into_iter().collect::<Vec<_>>(), [("alone".to_owned(), at(7))]);
}

/// A run of a schedule, due when it starts.
fn of(id: &str, schedule: &str, starts: i64) -> CalendarRun {
    CalendarRun { schedule: schedule.to_owned(), ..run(id, starts, starts + 10) }
}

fn the_next_run_of_a_schedule_is_over_later(place: &TestPlace) {
    let mut calendar = calendar(place);
    let runs = [of("1", "x", 10), of("2", "x", 30), of("3", "x", 50), of("4", "y", 30), of("5", "gone", 30)];
    calendar
        .write(|calendar| {
            for name in ["x", "y", "never"] {
                calendar.put_schedule(&schedule(name), None)?;
            }
            calendar.insert_runs(&runs, &[])?;
            calendar.begin_run("2", 1, at(31))
        })
        .unwrap();
    let mut next = |with_active, now| -> Vec<String> {
        let names = ["x", "y", "never", "gone"];
        let runs = calendar.read(|calendar| calendar.next_runs(&names, with_active, at(now))).unwrap();
        let mut ids: Vec<String> = runs.into_iter().map(|run| run.id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(next(false, 5), ["1", "4"]);
    // Nobody has told how the first one ended.
    assert_eq!(next(false, 35), ["3", "4"]);
    assert_eq!(next(true, 35), ["2", "4"]);
    assert_eq!(next(true, 55), ["3"]);
    assert_eq!(next(true, 60), [""; 0]);
}

fn the_newest_run_of_a_schedule_is_active_or_was_made(place: &TestPlace) {
    let mut calendar = calendar(place);
    let runs = [of("1", "x", 10), of("2", "x", 30), of("3", "x", 50), of("4", "y", 30), of("5", "z", 10)];
    calendar
        .write(|calendar| {
            for name in ["x", "y", "z"] {
                calendar.put_schedule(&schedule(name), None)?;
            }
            calendar.insert_runs(&runs, &[])?;
            calendar.end_run("1", CalendarRunState::Finished, "", None, at(20))?;
            calendar.end_run("2", CalendarRunState::Failed, "refused", None, at(39))?;
            calendar.end_run("3", CalendarRunState::Cancelled, "by a user", None, at(45))?;
            calendar.begin_run("4", 1, at(31))?;
            calendar.end_run("5", CalendarRunState::Finished, "", None, at(20))
        })
        .unwrap();
    let mut newest = |since, now| -> Vec<NewestRun> {
        let mut runs = calendar.read(|calendar| calendar.newest_runs(at(since), at(now))).unwrap();
        runs.sort_by_key(|run| run.ended);
        runs
    };
    let found = newest(20, 35);
    assert_eq!(found.len(), 2, "{found:?}");
    let (running, failed) = (&found[0], &found[1]);
    assert_eq!((running.state, running.ended), (CalendarRunState::Running, None));
    assert_eq!(
        (&*failed.from, &*failed.to, failed.state, failed.ended, failed.reason.as_str()),
        ("a", "b", CalendarRunState::Failed, Some(at(39)), "refused")
    );
    // The time of the active one is over.
    assert_eq!(newest(20, 45).len(), 1);
    assert_eq!(newest(19, 45).len(), 2);
    assert_eq!(newest(40, 45), []);
}

fn what_was_due_at_a_silent_agent_is_found(place: &TestPlace) {
    let mut calendar = calendar(place);
    let not_booked = CalendarRun { state: CalendarRunState::NotBooked, ..of("4", "x", 300) };
    let runs = [of("1", "x", 80), of("2", "x", 110), of("3", "x", 200), not_booked];
    calendar
        .write(|calendar| {
            for name in ["x", "y"] {
                calendar.put_schedule(&schedule(name), None)?;
            }
            calendar.put_schedule(&Schedule { from: "b".into(), ..schedule("other") }, None)?;
            calendar.set_paused("y", true, None)?;
            calendar.enroll_agent("a", "KEY-A", at(90))?;
            calendar.insert_runs(&runs, &[])
        })
        .unwrap();
    macro_rules! silent {
        ($before:expr) => {{
            let found = |calendar: &mut CalendarTransaction<'_>| {
                calendar.schedules_of_silent_agents(at($before), AlarmKind::Failure)
            };
            let found = calendar.read(found).unwrap().into_iter();
            found.map(|state| state.schedule.name.to_string()).collect::<Vec<_>>()
        }};
    }
    // It was never heard since it was enrolled.
    assert_eq!((silent!(90), silent!(91)), (vec![], vec!["x".to_owned()]));
    let state = FleetAgentState::default();
    calendar.write(|calendar| calendar.note_agent("a", &state, at(100))).unwrap();
    assert_eq!((silent!(100), silent!(101)), (vec![], vec!["x".to_owned()]));
    for (now, first) in [(120, None), (121, Some("2")), (500, Some("2"))] {
        let found = calendar.read(|calendar| calendar.first_unreported("x", (at(100), at(now)))).unwrap();
        assert_eq!(found.map(|run| run.id).as_deref(), first, "at {now}");
    }
    for (ended, first) in [("2", Some("3")), ("3", Some("4")), ("1", Some("4"))] {
        let end = |calendar: &mut CalendarTransaction<'_>| {
            calendar.end_run(ended, CalendarRunState::Finished, "", None, at(400))
        };
        calendar.write(end).unwrap();
        let found = calendar.read(|calendar| calendar.first_unreported("x", (at(100), at(500)))).unwrap();
        assert_eq!(found.map(|run| run.id).as_deref(), first, "after {ended}");
    }
    let alarm = |kind| Alarm {
        since: at(1),
        raised: at(2),
        cleared: None,
        schedule: "x".to_owned(),
        mesh: None,
        from: "a".to_owned(),
        to: "b".to_owned(),
        kind,
        text: "".into(),
        first_run: "1".to_owned(),
        second_run: "1".to_owned(),
    };
    calendar.write(|calendar| calendar.raise_alarm(&alarm(AlarmKind::Goodput))).unwrap();
    assert_eq!(silent!(101).len(), 1);
    calendar.write(|calendar| calendar.raise_alarm(&alarm(AlarmKind::Failure))).unwrap();
    assert_eq!(silent!(101).len(), 0);
    calendar.write(|calendar| calendar.clear_alarm("x", AlarmKind::Failure, at(3))).unwrap();
    assert_eq!(silent!(101).len(), 1);
    calendar.write(|calendar| calendar.revoke_agent("a", at(500))).unwrap();
    assert_eq!(silent!(101).len(), 0);
}
