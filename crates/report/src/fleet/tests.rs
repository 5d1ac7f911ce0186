//! Answers as a user sees them.

use expect_test::{Expect, expect};
use linerate_model::Cause;
use linerate_model::TestSpec;
use linerate_model::calendar::{
    AlarmKind, AlarmLimits, CellResult, FleetHostStatus, MeshCell, MeshGrid, Recurrence, ResourceReservation,
    Schedule, ScheduleObstacle, WhyAnswer,
};
use linerate_units::{Bitrate, Span};

use super::*;

const MINUTE: i64 = 60_000;

fn at(minute: i64) -> UnixTime {
    UnixTime::from_ms(1_795_737_600_000 + minute * MINUTE)
}

fn schedule(name: &str, recurrence: Recurrence) -> ScheduleState {
    let schedule = Schedule {
        name: name.into(),
        mesh: None,
        from: "berlin".into(),
        to: "rome".into(),
        spec: TestSpec::default(),
        recurrence,
        zone: "UTC".into(),
        slip: Span::from_secs(3600),
        quiet: Vec::new(),
        priority: 2,
        shared: false,
        until: None,
        alarm: AlarmLimits::default(),
    };
    ScheduleState { schedule, paused: false, next_due: Some(at(30)) }
}

fn hourly(name: &str) -> ScheduleState {
    schedule(
        name,
        Recurrence::Every { period: Span::from_secs(3600), jitter: Span::from_secs(300), anchor: at(0) },
    )
}

fn run(state: CalendarRunState) -> CalendarRun {
    CalendarRun {
        id: "00c0ffee00c0ffee".to_owned(),
        schedule: "nightly".to_owned(),
        mesh: None,
        from: "berlin".to_owned(),
        to: "rome".to_owned(),
        spec: TestSpec::default(),
        confirms: None,
        due: at(0),
        attempt: 0,
        latest: at(60),
        starts: at(0),
        ends: at(1),
        set_up: Span::from_secs(3),
        settle: Span::from_secs(2),
        priority: 0,
        state,
        reason: Default::default(),
        epoch: 1,
        begun: None,
        ended: None,
        result: None,
        handed: false,
    }
}

fn result(mbps: f64) -> CellResult {
    CellResult { goodput: Bitrate::from_bps(mbps * 1e6), cause: Some(Cause::Link), ..CellResult::default() }
}

fn alarm() -> Alarm {
    Alarm {
        since: at(-20),
        raised: at(-10),
        cleared: None,
        schedule: "core.rome.berlin".to_owned(),
        mesh: Some("core".to_owned()),
        from: "rome".to_owned(),
        to: "berlin".to_owned(),
        kind: AlarmKind::Goodput,
        text: "the goodput is 94.1 Mb/s, below 900 Mb/s".into(),
        first_run: "1".to_owned(),
        second_run: "2".to_owned(),
    }
}

fn check(answer: &FleetAnswer, expected: &Expect) {
    let view = TextLayout { width: 80, ..TextLayout::default() };
    let shown = text(answer, &TimeZone::UTC, &view);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    expected.assert_eq(&shown);
}

#[test]
fn schedules_say_when_they_are_due_next() {
    let paused = ScheduleState {
        paused: true,
        next_due: None,
        ..schedule("weekly", Recurrence::Cron("30 2 * * Sun".into()))
    };
    let over = ScheduleState { next_due: None, ..schedule("once", Recurrence::Once(at(-60))) };
    let answer =
        FleetAnswer::Schedules(vec![hourly("hourly"), paused, over], vec![run(CalendarRunState::Running)]);
    check(
        &answer,
        &expect![[r#"
            schedule  from    to    when                     priority  next
            hourly    berlin  rome  every 1 h, jitter 5 min  2         2026-11-27 00:30:00
            weekly    berlin  rome  30 2 * * Sun             2         paused
            once      berlin  rome  once, 2026-11-26 23:00   2         over

            run       starts            schedule  pair            state    goodput  note
            00c0ffee  2026-11-27 00:00  nightly   berlin to rome  running        -
        "#]],
    );
}

#[test]
fn runs_show_their_result_or_why_they_have_none() {
    let finished = CalendarRun { result: Some(result(941.0)), ..run(CalendarRunState::Finished) };
    let failed = CalendarRun { reason: "rome: connection refused".into(), ..run(CalendarRunState::Failed) };
    let second = CalendarRun { confirms: Some("c0ffee".to_owned()), ..run(CalendarRunState::Booked) };
    check(
        &FleetAnswer::Runs(vec![finished, failed, second]),
        &expect![[r#"
            run       starts            schedule  state        goodput  note
            00c0ffee  2026-11-27 00:00  nightly   finished  941.0 Mb/s  link
            00c0ffee  2026-11-27 00:00  nightly   failed             -  rome: connection r..
            00c0ffee  2026-11-27 00:00  nightly   booked             -  second test after ..
        "#]],
    );
}

fn every_obstacle() -> Vec<ScheduleObstacle> {
    let busy = ResourceReservation {
        resource: "link.uplink".to_owned(),
        first_unit: 0,
        last_unit: 0,
        starts: at(0),
        ends: at(1),
        run: "00c0ffee00c0ffee".to_owned(),
        schedule: "core.rome.berlin".to_owned(),
        priority: 5,
        state: CalendarRunState::Running,
        handed: false,
    };
    let held = ResourceReservation {
        run: "00decade00decade".to_owned(),
        state: CalendarRunState::Cancelled,
        ..busy.clone()
    };
    vec![
        ScheduleObstacle::NoCoordinator(None),
        ScheduleObstacle::Paused,
        ScheduleObstacle::NotDue(Some(at(30))),
        ScheduleObstacle::Quiet(at(90)),
        ScheduleObstacle::Busy(busy),
        ScheduleObstacle::Busy(held),
        ScheduleObstacle::Agent("the agent of rome was \u{1b}[2Jrevoked".into()),
        ScheduleObstacle::AfterLoss(at(91)),
        ScheduleObstacle::AfterChange(at(92)),
        ScheduleObstacle::Unsettled(at(93)),
    ]
}

#[test]
fn why_lists_every_obstacle_and_when_there_is_room() {
    let why = WhyAnswer {
        at: at(0),
        obstacles: every_obstacle(),
        next_free: Some(at(90)),
        active: None,
        next: None,
        last: Some(CalendarRun {
            reason: "no coordinator was there to start it".into(),
            ..run(CalendarRunState::Missed)
        }),
        state: hourly("hourly"),
    };
    let answer = FleetAnswer::Why(Box::new(why));
    let document = document(&answer);
    let kinds: Vec<&str> =
        document["obstacles"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    let general = ["no_coordinator", "paused", "not_due", "quiet_hours", "busy", "busy"];
    assert_eq!(kinds, [&general[..], &["agent", "after_loss", "after_change", "unsettled"]].concat());
    assert_eq!(document["obstacles"][5]["reservation"]["state"], "cancelled");
    check(
        &answer,
        &expect![[r#"
            hourly: berlin to rome, every 1 h, jitter 5 min
            At 2026-11-27 00:00:00 it does not begin, because:
              - no coordinator carries out the calendar; start `linerate fleet run FILE`
              - it is paused; `linerate schedule resume` ends that
              - it is not due before 2026-11-27 00:30:00
              - it would measure in its quiet hours, which last until 2026-11-27 01:30:00
              - link.uplink is in use by run 00c0ffee00c0ffee of 'core.rome.berlin'
                (priority 5) from 2026-11-27 00:00:00 until 2026-11-27 00:01:00
              - link.uplink is held for run 00decade00decade of 'core.rome.berlin'
                (cancelled), which an agent may still have in its calendar, from 2026-11-27
                00:00:00 until 2026-11-27 00:01:00
              - the agent of rome was ?[2Jrevoked; `linerate agent list` shows the agents
              - nothing is booked until all agents have confirmed new calendars, because the
                database lost what was written last; it goes on by 2026-11-27 01:31:00 at
                the latest
              - nothing is booked until agents have given back what was booked before the
                fleet was changed; it goes on by 2026-11-27 01:32:00 at the latest
              - nothing is booked before 2026-11-27 01:33:00, because a test of before a
                loss or a change of the fleet may still be on the wire
            Everything that it uses is free at 2026-11-27 01:30:00.
            Last run: 00c0ffee00c0ffee at 2026-11-27 00:00:00, missed: no coordinator was
            there to start it
        "#]],
    );
}

#[test]
fn a_grid_marks_alarms_and_old_results_and_says_why() {
    let cell = |from: &str, to: &str, mbps: f64| MeshCell {
        from: from.to_owned(),
        to: to.to_owned(),
        last: Some((CalendarRunState::Finished, at(-5))),
        reason: Default::default(),
        run: Some("r".to_owned()),
        result: Some((result(mbps), at(-5))),
        next: Some(at(55)),
        alarms: Vec::new(),
    };
    let names = ["berlin", "potsdam", "rome"];
    let mut cells = Vec::new();
    for from in names {
        cells.extend(names.iter().filter(|to| **to != from).map(|to| cell(from, to, 941.0)));
    }
    cells[4] = MeshCell { alarms: vec![alarm()], ..cell("rome", "berlin", 94.1) };
    cells[1].last = Some((CalendarRunState::Failed, at(-1)));
    cells[1].reason = "rome: connection refused".into();
    cells[3] = MeshCell { result: None, last: None, ..cells[3].clone() };
    let hosts = names.map(str::to_owned).to_vec();
    let grid = MeshGrid { name: "core".to_owned(), hosts, cells, left_out: 0 };
    check(
        &FleetAnswer::Grids(vec![grid]),
        &expect![[r#"
            core: goodput from the row's host to the column's
                      berlin   potsdam    rome
            berlin         .      941M   941M?
            potsdam     941M         .       -
            rome      94.1M!      941M       .

            needs attention:
              - berlin to rome: failed at 2026-11-26 23:59: rome: connection refused
              - rome to berlin: alarm since 2026-11-26 23:40: the goodput is 94.1 Mb/s,
                below 900 Mb/s
        "#]],
    );
}

#[test]
fn an_impossible_rate_is_not_shown_as_one() {
    // As an earlier version has stored it.
    let impossible = CellResult { cause: Some(Cause::Impossible), ..result(941.0) };
    let cell = |from: &str, to: &str, state| MeshCell {
        from: from.to_owned(),
        to: to.to_owned(),
        last: Some((state, at(-5))),
        reason: "rome: connection refused".into(),
        run: Some("r".to_owned()),
        result: Some((impossible.clone(), at(-5))),
        next: Some(at(55)),
        alarms: Vec::new(),
    };
    let cells = vec![
        cell("berlin", "rome", CalendarRunState::Finished),
        cell("rome", "berlin", CalendarRunState::Failed),
    ];
    let hosts = ["berlin", "rome"].map(str::to_owned).to_vec();
    let answer = FleetAnswer::Grids(vec![MeshGrid { name: "core".to_owned(), hosts, cells, left_out: 0 }]);
    assert!(document(&answer)["meshes"][0]["cells"][0]["short"].is_null());
    check(
        &answer,
        &expect![[r#"
            core: goodput from the row's host to the column's
                          berlin         rome
            berlin             .   impossible
            rome     impossible?            .

            needs attention:
              - rome to berlin: failed at 2026-11-26 23:55: rome: connection refused
        "#]],
    );
    let finished = CalendarRun { result: Some(impossible), ..run(CalendarRunState::Finished) };
    check(
        &FleetAnswer::Runs(vec![finished]),
        &expect![[r#"
            run        starts             schedule   state         goodput   note
            00c0ffee   2026-11-27 00:00   nightly    finished   impossible   impossible
        "#]],
    );
}

#[test]
fn the_state_of_a_fleet_says_who_leads_and_which_hosts_failed() {
    let host = |name: &str, state, reason: &str| FleetHostStatus {
        name: name.to_owned(),
        address: format!("{name}.example.net").into(),
        port: 5201,
        labels: Vec::new(),
        state,
        since: Some(at(-5)),
        reason: reason.into(),
    };
    let status = FleetStatus {
        name: "campus".to_owned(),
        applied: at(-600),
        coordinator: Some(("00c0ffee00c0ffee".into(), at(1))),
        epoch: 3,
        hosts: vec![
            host("berlin", FleetHostState::Ready, ""),
            host("rome", FleetHostState::Failed, "rome: connection refused"),
        ],
        schedules: (6, 1),
        runs: vec![(CalendarRunState::Booked, 5), (CalendarRunState::NotBooked, 1)],
        alarms: vec![alarm()],
    };
    let answer = FleetAnswer::Status(Box::new(status.clone()));
    let document = document(&answer);
    assert_eq!(
        (&document["schema"], &document["agents"][1]["state"]),
        (&"linerate.fleet/1".into(), &"failed".into())
    );
    check(
        &answer,
        &expect![[r#"
            campus: 2 hosts, 6 schedules (1 paused)
            coordinator 00c0ffee00c0ffee leads (epoch 3)
            runs of the last 24 hours and coming ones: 5 booked, 1 not booked

            host    agent              state   since                note
            berlin  berlin.example...  ready   2026-11-26 23:55:00
            rome    rome.example.ne..  failed  2026-11-26 23:55:00  rome: connection refused

            alarms:
              - rome to berlin, open since 2026-11-26 23:40: the goodput is 94.1 Mb/s, below
                900 Mb/s
        "#]],
    );
    let text = text(
        &FleetAnswer::Status(Box::new(FleetStatus { coordinator: None, ..status })),
        &TimeZone::UTC,
        &TextLayout::default(),
    );
    assert!(text.contains("no coordinator carries out the calendar"), "{text}");
}
