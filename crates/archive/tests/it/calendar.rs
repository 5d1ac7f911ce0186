//! The calendar of a fleet, in both databases.

use std::sync::atomic::{AtomicU32, Ordering};

use linerate_archive::{Calendar, CalendarError, DueLimits, RunFilter};
use linerate_model::calendar::{
    Alarm, AlarmKind, CalendarRun, CalendarRunState, CellResult, Recurrence, Resource, ResourceKind,
    ResourceReservation, Schedule, UnixTime,
};
use linerate_model::{Sweep, TestSpec};
use linerate_units::{Bitrate, Span};

use crate::place::{TestPlace, on_both_databases};

on_both_databases!(
    what_is_stored_comes_back,
    a_double_booking_is_refused_by_the_database,
    an_ended_run_frees_its_time,
    many_writers_never_book_the_same_time_twice,
    one_coordinator_leads_and_an_earlier_one_is_fenced_off,
    a_lease_of_somebody_whose_clock_was_ahead_counts_as_ended,
    the_clock_of_a_server_is_read_if_there_is_one,
    runs_are_selected_and_counted,
    the_last_run_of_each_schedule_is_found,
    alarms_are_open_once,
    old_runs_are_forgotten,
    long_specifications_are_stored_once,
    the_last_attempt_counts,
    a_calendar_and_an_archive_share_a_database,
);

/// All schedules before a time.
pub(crate) fn due(ms: i64) -> DueLimits {
    DueLimits { before: at(ms), soon: at(ms), seen_after: at(0) }
}

pub(crate) fn at(ms: i64) -> UnixTime {
    UnixTime::from_ms(ms)
}

pub(crate) fn calendar(place: &TestPlace) -> Calendar {
    let mut calendar = Calendar::open(&place.location()).unwrap();
    let resources = ["a", "b", "c"].map(|name| Resource::new(ResourceKind::Host, name, 2));
    calendar.write(|calendar| calendar.set_inventory("{}", &resources, at(1))).unwrap();
    calendar
}

pub(crate) fn schedule(name: &str) -> Schedule {
    Schedule {
        name: name.into(),
        mesh: Some("m".into()),
        from: "a".into(),
        to: "b".into(),
        spec: TestSpec::default(),
        recurrence: Recurrence::Every {
            period: Span::from_secs(60),
            jitter: Span::from_secs(1),
            anchor: at(5),
        },
        zone: "Europe/Berlin".into(),
        slip: Span::from_secs(30),
        quiet: vec!["Mon-Fri 08:00-18:00".parse().unwrap()],
        priority: 3,
        shared: true,
        until: Some(at(99)),
        alarm: Default::default(),
    }
}

pub(crate) fn run(id: &str, starts: i64, ends: i64) -> CalendarRun {
    CalendarRun {
        id: id.to_owned(),
        schedule: format!("s-{id}"),
        mesh: Some("m".to_owned()),
        from: "a".to_owned(),
        to: "b".to_owned(),
        spec: TestSpec::default(),
        confirms: None,
        due: at(starts),
        attempt: 0,
        latest: at(ends),
        starts: at(starts),
        ends: at(ends),
        set_up: Span::from_secs(3),
        settle: Span::from_ms(1500),
        priority: 3,
        state: CalendarRunState::Booked,
        reason: "".into(),
        epoch: 7,
        begun: None,
        ended: None,
        result: None,
        handed: false,
    }
}

pub(crate) fn hold(run: &CalendarRun, resource: &str, units: (u32, u32)) -> ResourceReservation {
    ResourceReservation {
        resource: format!("host.{resource}"),
        first_unit: units.0,
        last_unit: units.1,
        starts: run.starts,
        ends: run.ends,
        run: run.id.clone(),
        schedule: run.schedule.clone(),
        priority: run.priority,
        state: run.state,
        handed: false,
    }
}

fn what_is_stored_comes_back(place: &TestPlace) {
    let mut calendar = calendar(place);
    let (one, two) =
        (run("one", 10, 20), CalendarRun { confirms: Some("one".to_owned()), ..run("two", 30, 40) });
    let held = vec![hold(&one, "a", (0, 1)), hold(&one, "b", (0, 0))];
    calendar
        .write(|calendar| {
            calendar.put_schedule(&schedule("s"), Some(at(11)))?;
            calendar.insert_runs(&[one.clone(), two.clone()], &held)
        })
        .unwrap();
    // Another program sees the same.
    let mut other = Calendar::open(&place.location()).unwrap();
    other
        .read(|calendar| {
            assert_eq!(calendar.inventory()?, Some(("{}".to_owned(), at(1))));
            let state = calendar.schedule("s")?.unwrap();
            assert_eq!((state.schedule, state.paused, state.next_due), (schedule("s"), false, Some(at(11))));
            assert_eq!(calendar.runs(&RunFilter::default())?, [one.clone(), two.clone()]);
            assert_eq!(calendar.reservations(&["host.a", "host.b", "link.uplink"], at(0), at(100))?, held);
            assert_eq!(calendar.reservations(&["host.b"], at(19), at(20))?, held[1..]);
            assert_eq!(calendar.reservations(&["host.a", "host.b"], at(20), at(100))?, []);
            assert_eq!(calendar.due_schedules(&due(11), 9)?, []);
            assert_eq!(calendar.due_schedules(&due(12), 9)?.len(), 1);
            Ok(())
        })
        .unwrap();
    calendar
        .write(|calendar| {
            assert!(calendar.set_paused("s", true, None)?);
            assert!(!calendar.set_paused("t", true, None)?);
            assert!(calendar.begin_run("one", 8, at(12))?);
            assert!(!calendar.begin_run("one", 8, at(12))?);
            Ok(())
        })
        .unwrap();
    other
        .read(|calendar| {
            assert_eq!(calendar.due_schedules(&due(1000), 9)?, []);
            let begun = calendar.run("one")?.unwrap();
            assert_eq!((begun.state, begun.begun, begun.epoch), (CalendarRunState::Running, Some(at(12)), 8));
            assert_eq!(calendar.run("three")?, None);
            Ok(())
        })
        .unwrap();
    // The same times of a schedule cannot be booked twice.
    let again = calendar.write(|calendar| calendar.insert_runs(std::slice::from_ref(&one), &[]));
    assert!(matches!(again, Err(CalendarError::Conflict)), "{again:?}");
}

fn a_double_booking_is_refused_by_the_database(place: &TestPlace) {
    let mut calendar = calendar(place);
    let first = run("first", 0, 28_000);
    calendar
        .write(|calendar| calendar.insert_runs(std::slice::from_ref(&first), &[hold(&first, "a", (0, 0))]))
        .unwrap();
    let mut try_to_book = |id: &str, times: (i64, i64), resource: &str, units| {
        let second = run(id, times.0, times.1);
        let held = [hold(&second, resource, units)];
        calendar.write(|calendar| calendar.insert_runs(std::slice::from_ref(&second), &held))
    };
    // Two exclusive tests 81 ms apart.
    assert!(matches!(try_to_book("2", (81, 28_081), "a", (0, 0)), Err(CalendarError::Conflict)));
    assert!(matches!(try_to_book("3", (27_999, 28_001), "a", (0, 1)), Err(CalendarError::Conflict)));
    try_to_book("4", (81, 28_081), "a", (1, 1)).unwrap();
    try_to_book("5", (81, 28_081), "b", (0, 1)).unwrap();
    try_to_book("6", (28_000, 28_081), "a", (0, 0)).unwrap();
    // Nothing of a refused booking is left.
    assert_eq!(place.number("SELECT count(*) FROM fleet_run"), 4.0);
    assert_eq!(place.number("SELECT count(*) FROM fleet_reservation"), 4.0);
    // Neither can another program extend a reservation into another one.
    let extend = || place.execute("UPDATE fleet_reservation SET ends = 28050 WHERE run = 'first'");
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(extend)).is_err());
}

fn an_ended_run_frees_its_time(place: &TestPlace) {
    let mut calendar = calendar(place);
    let (first, second) = (run("first", 0, 100), run("second", 50, 150));
    let result = CellResult { goodput: Bitrate::from_bps(1e9), ..CellResult::default() };
    calendar
        .write(|calendar| {
            calendar.insert_runs(std::slice::from_ref(&first), &[hold(&first, "a", (0, 1))])?;
            assert!(calendar.end_run("first", CalendarRunState::Finished, "", Some(&result), at(40))?);
            // It keeps its first end.
            assert!(!calendar.end_run("first", CalendarRunState::Failed, "late", None, at(41))?);
            calendar.insert_runs(std::slice::from_ref(&second), &[hold(&second, "a", (0, 1))])
        })
        .unwrap();
    let ended = calendar.read(|calendar| calendar.run("first")).unwrap().unwrap();
    assert_eq!(
        (ended.state, ended.ended, ended.result),
        (CalendarRunState::Finished, Some(at(40)), Some(result))
    );
}

fn many_writers_never_book_the_same_time_twice(place: &TestPlace) {
    drop(calendar(place));
    let booked = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for writer in 0..4_i64 {
            let booked = &booked;
            scope.spawn(move || {
                let mut calendar = Calendar::open(&place.location()).unwrap();
                for number in 0..25_i64 {
                    // Each asks for one of ten times, without looking first.
                    let starts = (writer * 7 + number * 3) % 10 * 100;
                    let own = run(&format!("{writer}-{number}"), starts, starts + 100);
                    let held = [hold(&own, "a", (0, 1)), hold(&own, "b", (0, 1))];
                    match calendar.write(|calendar| calendar.insert_runs(std::slice::from_ref(&own), &held)) {
                        Ok(()) => drop(booked.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert!(matches!(error, CalendarError::Conflict), "{error:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(booked.into_inner(), 10);
    assert_eq!(place.number("SELECT count(*) FROM fleet_reservation"), 20.0);
}

fn one_coordinator_leads_and_an_earlier_one_is_fenced_off(place: &TestPlace) {
    let mut calendar = calendar(place);
    let mut take = |holder: &str, now| {
        calendar.write(|calendar| calendar.acquire_lease(holder, at(now), at(now + 8000), None)).unwrap()
    };
    assert_eq!((take("one", 0).epoch, take("one", 5000).epoch), (1, 1));
    let held = take("two", 12_999);
    assert_eq!((held.holder.as_str(), held.epoch), ("one", 1));
    let taken = take("two", 13_000);
    assert_eq!((taken.holder.as_str(), taken.epoch), ("two", 2));
    // Nobody led in between, so a lease that ended is renewed without a new epoch.
    assert_eq!(take("two", 60_000).epoch, 2);
    let late = calendar.write(|calendar| calendar.check_epoch(1));
    assert!(matches!(late, Err(CalendarError::Superseded { own: 1, found: 2 })), "{late:?}");
    calendar.write(|calendar| calendar.check_epoch(2)).unwrap();
    calendar.write(|calendar| calendar.release_lease(2)).unwrap();
    let next =
        calendar.write(|calendar| calendar.acquire_lease("three", at(60_001), at(70_000), None)).unwrap();
    assert_eq!((next.holder.as_str(), next.epoch), ("three", 3));
}

fn a_lease_of_somebody_whose_clock_was_ahead_counts_as_ended(place: &TestPlace) {
    let mut calendar = calendar(place);
    let mut take = |holder: &str, now| {
        calendar.write(|calendar| calendar.acquire_lease(holder, at(now), at(now + 8000), None)).unwrap()
    };
    assert_eq!(take("ahead", 86_400_000).epoch, 1);
    let a_little = take("other", 86_400_000 - 50_000);
    assert_eq!((a_little.holder.as_str(), a_little.epoch), ("ahead", 1));
    assert_eq!((take("other", 100_000).holder.as_str(), take("other", 100_000).epoch), ("other", 2));
}

fn the_clock_of_a_server_is_read_if_there_is_one(place: &TestPlace) {
    let clock = calendar(place).server_clock().unwrap();
    let is_server = place.location().starts_with("postgres");
    assert_eq!(clock.is_some(), is_server);
    // Milliseconds, in this century.
    assert!(clock.is_none_or(|clock| (at(1_700_000_000_000)..at(4_100_000_000_000)).contains(&clock)));
}

fn runs_are_selected_and_counted(place: &TestPlace) {
    let mut calendar = calendar(place);
    let runs = [run("1", 10, 20), run("2", 30, 40), CalendarRun { mesh: None, ..run("3", 50, 60) }];
    calendar.write(|calendar| calendar.insert_runs(&runs, &[])).unwrap();
    calendar.write(|calendar| calendar.end_run("2", CalendarRunState::Missed, "late", None, at(35))).unwrap();
    let mut ids = |filter: RunFilter| -> Vec<String> {
        calendar.read(|calendar| calendar.runs(&filter)).unwrap().into_iter().map(|run| run.id).collect()
    };
    assert_eq!(ids(RunFilter { mesh: Some("m".into()), ..RunFilter::default() }), ["1", "2"]);
    assert_eq!(ids(RunFilter { schedule: Some("s-3".into()), ..RunFilter::default() }), ["3"]);
    assert_eq!(ids(RunFilter { states: vec![CalendarRunState::Booked], ..RunFilter::default() }), ["1", "3"]);
    assert_eq!(ids(RunFilter { newest_first: true, limit: Some(2), ..RunFilter::default() }), ["3", "2"]);
    assert_eq!(
        ids(RunFilter { ends_after: Some(at(20)), starts_before: Some(at(50)), ..RunFilter::default() }),
        ["2"]
    );
    assert_eq!(ids(RunFilter { pair: Some(("a".into(), "c".into())), ..RunFilter::default() }), [""; 0]);
    calendar
        .read(|calendar| {
            let counts = calendar.run_counts(at(0))?;
            assert_eq!(counts, [(CalendarRunState::Booked, 2), (CalendarRunState::Missed, 1)]);
            assert_eq!(calendar.last_activity()?, Some(at(35)));
            Ok(())
        })
        .unwrap();
}

fn the_last_run_of_each_schedule_is_found(place: &TestPlace) {
    let mut calendar = calendar(place);
    let of = |id: &str, schedule: &str, starts: i64| CalendarRun {
        schedule: schedule.to_owned(),
        ..run(id, starts, starts + 10)
    };
    let runs = [of("1", "x", 10), of("2", "x", 30), of("3", "x", 50), of("4", "y", 20), of("5", "gone", 20)];
    let result = CellResult { verdict: Some("link".into()), ..CellResult::default() };
    calendar
        .write(|calendar| {
            for name in ["x", "y", "never"] {
                calendar.put_schedule(&schedule(name), None)?;
            }
            calendar.insert_runs(&runs, &[])?;
            for (id, state, result) in [
                ("1", CalendarRunState::Finished, Some(&result)),
                ("2", CalendarRunState::Failed, None),
                ("3", CalendarRunState::Cancelled, None),
                ("4", CalendarRunState::NotBooked, None),
                ("5", CalendarRunState::Finished, Some(&result)),
            ] {
                calendar.end_run(id, state, "", result, at(60))?;
            }
            Ok(())
        })
        .unwrap();
    let mut last = |with_result| -> Vec<String> {
        let schedules = ["x", "y", "never", "gone"];
        let runs = calendar.read(|calendar| calendar.last_runs(&schedules, with_result)).unwrap();
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!((last(false), last(true)), (vec!["2".to_owned()], vec!["1".to_owned()]));
}

fn alarms_are_open_once(place: &TestPlace) {
    let mut calendar = calendar(place);
    let alarm = Alarm {
        since: at(1),
        raised: at(2),
        cleared: None,
        schedule: "s".to_owned(),
        mesh: None,
        from: "a".to_owned(),
        to: "b".to_owned(),
        kind: AlarmKind::Goodput,
        text: "slow".into(),
        first_run: "1".to_owned(),
        second_run: "2".to_owned(),
    };
    calendar
        .write(|calendar| {
            assert!(calendar.raise_alarm(&alarm)?);
            assert!(!calendar.raise_alarm(&alarm)?);
            assert!(calendar.raise_alarm(&Alarm { kind: AlarmKind::Loss, since: at(9), ..alarm.clone() })?);
            assert_eq!(calendar.open_alarms_of("s")?.len(), 2);
            assert!(calendar.clear_alarm("s", AlarmKind::Goodput, at(5))?);
            assert!(!calendar.clear_alarm("s", AlarmKind::Goodput, at(6))?);
            assert!(calendar.raise_alarm(&Alarm { raised: at(7), ..alarm.clone() })?);
            assert_eq!(calendar.alarms(true, 9)?.len(), 2);
            let all = calendar.alarms(false, 9)?;
            assert_eq!(all.iter().filter(|one| one.cleared == Some(at(5))).count(), 1);
            assert_eq!(all[0].raised, at(7));
            assert_eq!(calendar.last_alarm_since("s", AlarmKind::Loss)?, Some(at(9)));
            assert_eq!(calendar.last_alarm_since("s", AlarmKind::Change)?, None);
            Ok(())
        })
        .unwrap();
}

fn old_runs_are_forgotten(place: &TestPlace) {
    let mut calendar = calendar(place);
    let old = CalendarRun { ended: Some(at(20)), state: CalendarRunState::Failed, ..run("old", 10, 20) };
    let young = run("young", 30, 40);
    let held = [hold(&old, "a", (0, 0)), hold(&young, "a", (0, 0))];
    calendar.write(|calendar| calendar.insert_runs(&[old.clone(), young.clone()], &held)).unwrap();
    assert_eq!(calendar.write(|calendar| calendar.forget_runs(at(20), at(20))).unwrap(), 0);
    assert_eq!(calendar.write(|calendar| calendar.forget_runs(at(21), at(21))).unwrap(), 1);
    assert_eq!(calendar.read(|calendar| calendar.runs(&RunFilter::default())).unwrap(), [young]);
    assert_eq!(place.number("SELECT count(*) FROM fleet_reservation"), 1.0);
    assert_eq!(place.number("SELECT count(*) FROM fleet_spec"), 1.0);
}

/// A sweep of as many message sizes as there may be.
pub(crate) fn long_spec() -> TestSpec {
    // Sizes that do not repeat, because the database compresses texts.
    let sizes: Vec<String> = (1..=2000_u64).map(|n| (n * 7919 * 7919 % 60_000_000 + 1).to_string()).collect();
    let sizes = Some(sizes.join(",").parse().unwrap());
    TestSpec { sweep: Some(Sweep { sizes, ..Sweep::default() }), ..TestSpec::default() }
}

fn long_specifications_are_stored_once(place: &TestPlace) {
    let mut calendar = calendar(place);
    let long = |id: &str, at: i64| CalendarRun { spec: long_spec(), ..run(id, at, at + 10) };
    let runs = [long("1", 10), run("2", 30, 40), long("3", 50)];
    assert!(serde_json::to_string(&runs[0].spec).unwrap().len() > 15_000);
    for one in &runs {
        calendar.write(|calendar| calendar.insert_runs(std::slice::from_ref(one), &[])).unwrap();
    }
    assert_eq!(calendar.read(|calendar| calendar.runs(&RunFilter::default())).unwrap(), runs);
    assert_eq!(place.number("SELECT count(*) FROM fleet_spec"), 2.0);
    // Neither can another program store one of them twice.
    let twice = || place.execute("INSERT INTO fleet_spec (content) SELECT content FROM fleet_spec");
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(twice)).is_err());
}

fn the_last_attempt_counts(place: &TestPlace) {
    let mut calendar = calendar(place);
    let of = |id: &str, attempt: u32| CalendarRun { schedule: "s".to_owned(), attempt, ..run(id, 10, 20) };
    let confirming = CalendarRun { confirms: Some("2".to_owned()), ..of("4", 5) };
    let cancel = |calendar: &mut Calendar, id: &str| {
        let end = |calendar: &mut linerate_archive::CalendarTransaction<'_>| {
            calendar.end_run(id, CalendarRunState::Cancelled, "enough", None, at(5))
        };
        assert!(calendar.write(end).unwrap());
    };
    let last = |calendar: &mut Calendar| {
        calendar
            .read(|calendar| calendar.attempts(&["s", "t"], at(10)))
            .unwrap()
            .remove(&("s".to_owned(), at(10)))
    };
    calendar
        .write(|calendar| calendar.insert_runs(&[of("1", 0), of("2", 1), confirming.clone()], &[]))
        .unwrap();
    cancel(&mut calendar, "2");
    let found = last(&mut calendar).unwrap();
    assert_eq!(
        (found.number, found.state, found.reason.as_str()),
        (1, CalendarRunState::Cancelled, "enough")
    );
    calendar.write(|calendar| calendar.change_cancellations("s", ("enough", "gone"), at(10))).unwrap();
    assert_eq!(last(&mut calendar).unwrap().reason, "enough", "it is not due later than that");
    calendar.write(|calendar| calendar.change_cancellations("s", ("enough", "gone"), at(9))).unwrap();
    assert_eq!(last(&mut calendar).unwrap().reason, "gone");
    calendar.write(|calendar| calendar.insert_runs(&[of("3", 2)], &[])).unwrap();
    assert_eq!(last(&mut calendar).unwrap().state, CalendarRunState::Booked);
    assert_eq!(calendar.read(|calendar| calendar.attempts(&["s"], at(11))).unwrap().len(), 0);
}

fn a_calendar_and_an_archive_share_a_database(place: &TestPlace) {
    place.record_all(&crate::archive::whole_run("r", "server"));
    drop(calendar(place));
    assert_eq!(place.open().count(&Default::default()).unwrap(), 1);
    place.execute("UPDATE fleet_calendar SET format = 4");
    let newer = Calendar::open(&place.location()).unwrap_err();
    assert!(matches!(newer, CalendarError::Newer { found: 4, .. }), "{newer:?}");
    assert_eq!(place.open().count(&Default::default()).unwrap(), 1);
}
