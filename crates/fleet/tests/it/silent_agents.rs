//! Alarms about agents that are not heard although something was due, and what is no reason for one.

use linerate_fleet::{FleetAction, ResultDocument, ScheduleRequest};
use linerate_model::calendar::{Alarm, AlarmKind, CalendarRun, CalendarRunState, CellResult, UnixTime};
use linerate_units::{Bitrate, Span};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::played_fleet::{PlayedFleet, START, at, text};

/// How often the coordinator looks; its lease lasts longer.
const STEP: i64 = 5;
/// How long an agent must be silent.
const SILENCE: i64 = 15 * 60;

/// A fleet whose agent is heard at 3 s for the last time, with a test every ten minutes from it.
fn watched(ahead: &str, change: impl FnOnce(&mut ScheduleRequest)) -> PlayedFleet {
    let mut fleet = PlayedFleet::new(&text(ahead, ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 0, |one| {
        (one.at, one.every) = (None, Some(Span::from_secs(600)));
        one.alarm.alarm_failure = true;
        change(one);
    });
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    fleet
}

fn alarms(actions: Vec<FleetAction>) -> impl Iterator<Item = Alarm> {
    actions.into_iter().filter_map(|action| match action {
        FleetAction::Notify(alarm) => Some(*alarm),
        _ => None,
    })
}

/// What users are told while the coordinator looks at the calendar.
fn pass(fleet: &mut PlayedFleet, from: i64, until: i64) -> Vec<Alarm> {
    let steps = (from..until).step_by(STEP as usize);
    steps.flat_map(|seconds| alarms(fleet.tick(seconds))).collect()
}

/// The agent says how a run ended.
fn tell(fleet: &mut PlayedFleet, run: &CalendarRun, mbps: Option<f64>, seconds: i64) {
    let result =
        mbps.map(|mbps| CellResult { goodput: Bitrate::from_bps(mbps * 1e6), ..CellResult::default() });
    let (state, reason) = match &result {
        Some(_) => (CalendarRunState::Finished, ""),
        None => (CalendarRunState::Missed, "the agent was not there"),
    };
    let begun = result.is_some().then_some(run.starts);
    let document =
        ResultDocument { state, reason: reason.into(), result, begun, ended: run.ends, log: "{}\n".into() };
    let content = &document.parts()[0];
    let part = json!({"type":"result","agent":"a","run":run.id,"part":0,"parts":1,"content":content});
    fleet.receive("a", &part, seconds).unwrap();
}

/// The runs that are over at a time and of which nobody has told the end.
fn untold(fleet: &mut PlayedFleet, seconds: i64) -> Vec<CalendarRun> {
    let open = |run: &CalendarRun| !run.state.is_end() && run.ends <= at(seconds);
    fleet.runs().into_iter().filter(open).collect()
}

fn open_alarms(fleet: &mut PlayedFleet) -> usize {
    fleet.users.alarms(true).unwrap().len()
}

#[test]
fn an_agent_that_is_dead_raises_one_alarm_soon_that_names_it() {
    let mut fleet = watched("12h", |_| ());
    let told = pass(&mut fleet, 5, 2 * 3600);
    let [alarm] = &told[..] else { panic!("{told:?}") };
    assert_eq!((alarm.kind, &alarm.cleared), (AlarmKind::Failure, &None));
    assert!(alarm.raised >= at(3 + SILENCE) && alarm.raised <= at(3 + SILENCE + 60), "{alarm:?}");
    assert_eq!(
        alarm.text.as_str(),
        "no result of the test that was due at 2027-01-15T08:10:00Z: the agent of a was not heard since \
         2027-01-15T08:00:03Z"
    );
    let run = fleet.runs().remove(0);
    assert_eq!((alarm.since, &alarm.first_run, &alarm.second_run), (run.ends, &run.id, &run.id));
    // No second test is booked that nobody would make, and it stays one alarm when times are not booked any more.
    let days = (2 * 3600..100 * 3600).step_by(1800);
    let later: Vec<Alarm> = days.flat_map(|seconds| alarms(fleet.tick(seconds))).collect();
    assert_eq!(later, []);
    assert!(fleet.runs().iter().all(|run| run.confirms.is_none()));
    assert!(fleet.runs().iter().any(|run| run.state == CalendarRunState::NotBooked));
}

#[test]
fn an_agent_that_was_enrolled_and_never_came_raises_an_alarm() {
    let mut fleet = PlayedFleet::new(&text("12h", ""), &["a"]);
    fleet.add("a-b", ("a", "b"), 60, |one| one.alarm.alarm_failure = true);
    fleet.add("a-c", ("a", "c"), 60, |_| ());
    fleet.add("a-d", ("a", "d"), 9000, |one| one.alarm.alarm_failure = true);
    fleet.users.set_paused("a-d", true, at(1)).unwrap();
    let told = pass(&mut fleet, 5, 2 * 3600);
    let [alarm] = &told[..] else { panic!("{told:?}") };
    assert!(alarm.schedule == "a-b" && alarm.raised > at(SILENCE), "{alarm:?}");
    assert!(alarm.text.contains("the agent of a was never there"), "{alarm:?}");
}

/// The agent is cut off and measures all the same: its results arrive when it is back.
#[test]
fn an_outage_of_any_length_leaves_no_alarm_once_the_results_have_arrived() {
    let mut rng = StdRng::seed_from_u64(3);
    for case in 0..8 {
        let mut fleet = watched("12h", |_| ());
        let mut told = Vec::new();
        let begins = 5 + STEP * rng.random_range(0..120);
        let ends = begins + STEP * rng.random_range(0..2 * SILENCE / STEP);
        let mut second = 5;
        while second < ends + 700 {
            let is_away = (begins..ends).contains(&second);
            if !is_away && second % 30 < STEP {
                fleet.report("a", &Value::Null, second).unwrap();
            }
            if !is_away {
                for run in untold(&mut fleet, second) {
                    tell(&mut fleet, &run, Some(900.0), second);
                }
            }
            told.extend(alarms(fleet.tick(second)));
            second += STEP;
        }
        let heard = fleet.runs().iter().filter(|run| run.state == CalendarRunState::Finished).count();
        assert!(heard > 0 && told.len() <= 2, "case {case}: {heard} {told:?}");
        assert_eq!(open_alarms(&mut fleet), 0, "case {case}: away from {begins} to {ends}: {told:?}");
        // It is heard twice a minute.
        if ends - begins < SILENCE - 60 {
            assert_eq!(told, [], "case {case}: away for {} s", ends - begins);
        }
    }
}

#[test]
fn an_agent_that_is_back_is_tested_at_once_and_ends_its_alarm() {
    let mut fleet = watched("12h", |one| one.every = Some(Span::from_secs(6 * 3600)));
    let first = fleet.runs()[0].starts.since(START).as_ns() as i64 / 1_000_000_000;
    fleet.report("a", &Value::Null, first - 60).unwrap();
    for seconds in [first - 55, first - 50] {
        assert_eq!(alarms(fleet.tick(seconds)).count(), 0);
    }
    let told = pass(&mut fleet, first - 45, first + 1800);
    assert_eq!(told.len(), 1, "{told:?}");
    // The host had no power: its agent says that it missed the test.
    let back = first + 1800;
    fleet.report("a", &Value::Null, back).unwrap();
    let missed = untold(&mut fleet, back).remove(0);
    tell(&mut fleet, &missed, None, back);
    assert_eq!(pass(&mut fleet, back, back + 20), []);
    let second = fleet.runs().into_iter().find(|run| run.confirms.is_some()).unwrap();
    assert_eq!((second.confirms.as_deref(), second.state), (Some(&*missed.id), CalendarRunState::Booked));
    assert!(second.starts < at(back + SILENCE), "{second:?}");
    tell(&mut fleet, &second, Some(900.0), back + 60);
    let cleared = pass(&mut fleet, back + 60, back + 70);
    assert!(matches!(&cleared[..], [alarm] if alarm.cleared.is_some()), "{cleared:?}");
    assert_eq!(open_alarms(&mut fleet), 0);
}

#[test]
fn a_coordinator_that_was_away_itself_blames_no_agent() {
    let mut fleet = watched("12h", |_| ());
    assert_eq!(pass(&mut fleet, 5, 60), []);
    // It is back after an hour, in which agents spoke to nobody.
    assert_eq!(pass(&mut fleet, 3600, 3600 + SILENCE - STEP), []);
    fleet.report("a", &Value::Null, 3600 + SILENCE - STEP).unwrap();
    assert_eq!(pass(&mut fleet, 3600 + SILENCE - STEP, 3600 + 2 * SILENCE - 30), []);
}

#[test]
fn a_coordinator_without_a_broker_blames_it_when_calendars_are_over() {
    let mut fleet = watched("1h", |_| ());
    fleet.one.set_deaf(true);
    assert_eq!(pass(&mut fleet, 5, 3600), []);
    let told = pass(&mut fleet, 3600, 3600 + 60);
    assert!(matches!(&told[..], [alarm] if alarm.text.contains("the coordinator has no broker")), "{told:?}");
    let mut short = watched("12h", |_| ());
    short.one.set_deaf(true);
    assert_eq!(pass(&mut short, 5, 3600), []);
    short.one.set_deaf(false);
    assert_eq!(pass(&mut short, 3600, 3600 + SILENCE - STEP), []);
}

#[test]
fn an_agent_that_has_no_room_for_results_raises_an_alarm() {
    let mut fleet = PlayedFleet::new(&text("12h", ""), &["a"]);
    let full = json!({"type":"report","agent":"a","session":"s-a","previous":[],"newest":null,"proof":"","nonce":1,
        "program":"1","holds":null,"full":"its disk is full","waiting":9,"begun":[]});
    fleet.receive("a", &full, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 30, |one| one.alarm.alarm_failure = true);
    let told = pass(&mut fleet, 5, 60);
    let [alarm] = &told[..] else { panic!("{told:?}") };
    let text = alarm.text.as_str();
    assert!(
        text.contains("takes no further runs: its disk is full") && text.contains("no second test"),
        "{text}"
    );
}

#[test]
fn a_silent_agent_gets_no_second_test() {
    let mut fleet = watched("12h", |one| {
        one.alarm.alarm_failure = false;
        one.alarm.alarm_below = Bitrate::from_bps(800e6);
    });
    let first: UnixTime = fleet.runs()[0].starts;
    assert_eq!(pass(&mut fleet, 5, 1200), []);
    let run = fleet.runs().into_iter().find(|run| run.starts == first).unwrap();
    // Its reports are lost, its result is not.
    tell(&mut fleet, &run, Some(100.0), 1200);
    let told = pass(&mut fleet, 1200, 1230);
    let [alarm] = &told[..] else { panic!("{told:?}") };
    assert!(alarm.text.contains("its agent takes no second test"), "{alarm:?}");
    assert!(fleet.runs().iter().all(|run| run.confirms.is_none()));
}
