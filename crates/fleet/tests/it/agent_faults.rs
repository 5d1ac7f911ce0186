//! Agents that come back with an earlier key, an earlier calendar or nothing, and databases that lost what agents have.

use linerate_archive::Calendar;
use linerate_fleet::*;
use linerate_model::calendar::{CalendarRun, CalendarRunState};
use linerate_units::Span;
use serde_json::{Value, json};

use crate::played_fleet::{PlayedFleet, START, at, coordinator, inventory, reading, text};
use crate::simulated_agents::SimulatedDisk;

#[test]
fn after_a_loss_an_agent_that_was_never_there_does_not_block_booking_for_ever() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.tick(1);
    // What acquire_lease does when PostgreSQL shows another timeline.
    Calendar::open(&fleet.path).unwrap().write(|calendar| calendar.note_loss(at(2))).unwrap();
    let day = 24 * 3600;
    let mut s = 3;
    while s < 10 * day {
        fleet.tick(s);
        s += 60;
    }
    fleet.add("c-d", ("c", "d"), 10 * day + 120, |_| ());
    for s in 0..400 {
        fleet.tick(10 * day + s);
    }
    assert!(!fleet.runs().is_empty(), "ten days after the loss nothing is booked");
}

#[test]
fn a_calendar_of_many_runs_is_not_made_anew_at_each_look() {
    let mut fleet = PlayedFleet::new(&text("24h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("often", ("a", "b"), 60, |one| {
        one.at = None;
        one.every = Some(Span::from_secs(30));
        one.slip = Some(Span::from_secs(10));
    });
    let mut last = Vec::new();
    for s in 1..6 {
        let actions = fleet.tick(s);
        if PlayedFleet::calendar_of(&actions, "a").is_some() {
            last = actions;
        }
    }
    let calendar = PlayedFleet::calendar_of(&last, "a").unwrap();
    let bytes = PlayedFleet::raw_calendar(&last, "a").unwrap().len();
    fleet.confirm(&last, "a", 6);
    let mut handed = 0;
    for s in 7..37 {
        let actions = fleet.tick(s);
        if PlayedFleet::calendar_of(&actions, "a").is_some() {
            handed += 1;
            fleet.confirm(&actions, "a", s);
        }
    }
    assert!(
        handed <= 3,
        "{handed} calendars of {} runs ({bytes} bytes) in 30 looks without any change",
        calendar["runs"].as_array().unwrap().len()
    );
}

#[test]
fn a_run_that_the_coordinator_carries_out_is_not_handed_to_a_new_agent() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &[]);
    fleet.add("a-b", ("a", "b"), 10, |one| one.pair.spec.traffic.duration = Some(Span::from_secs(60)));
    fleet.tick(1);
    let started = fleet.tick(10);
    assert!(started.iter().any(|a| matches!(a, FleetAction::Start(_))), "{started:?}");
    let key = FleetKey::from_bytes([20; 32]).unwrap();
    fleet.users.enroll("a", key.public().as_str(), at(12)).unwrap();
    fleet.keys.insert("a".into(), key);
    fleet.report("a", &Value::Null, 13).unwrap();
    let actions = fleet.tick(14);
    let calendar = PlayedFleet::calendar_of(&actions, "a").unwrap();
    assert_eq!(
        calendar["runs"].as_array().unwrap().len(),
        0,
        "the agent got the run that is on the wire: it starts it again, or ends it as missed"
    );
}

#[test]
fn what_an_agent_with_the_earlier_key_has_counts_until_it_ends() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 1000, |_| ());
    let actions = fleet.tick(1);
    let actions = [actions, fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    let run = fleet.runs()[0].clone();
    assert_eq!((run.state, run.handed), (CalendarRunState::Booked, true));
    // The process with the first key is cut off from the broker; the host is enrolled again, with a new key.
    let key = FleetKey::from_bytes([77; 32]).unwrap();
    fleet.users.enroll("a", key.public().as_str(), at(100)).unwrap();
    fleet.keys.insert("a".into(), key);
    fleet.report("a", &Value::Null, 101).unwrap();
    let actions = fleet.tick(102);
    fleet.confirm(&actions, "a", 103);
    assert_eq!(fleet.runs()[0].state, CalendarRunState::Cancelled, "the new one does not have it");
    // The first process starts its run at its time; nothing else may have it.
    fleet.add("c-b", ("c", "b"), 1000, |_| ());
    fleet.tick(107);
    let other =
        fleet.runs().into_iter().find(|one| one.schedule == "c-b" && one.state == CalendarRunState::Booked);
    assert!(
        other.as_ref().is_none_or(|other| other.starts >= run.ends || other.ends <= run.starts),
        "{:?} {:?} over {:?}",
        other.as_ref().map(|o| o.starts),
        other.as_ref().map(|o| o.ends),
        (run.starts, run.ends)
    );
}

#[test]
fn a_shorter_ahead_cancels_nothing() {
    let mut fleet = PlayedFleet::new(&text("12h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 60, |one| {
        one.at = None;
        one.every = Some(Span::from_secs(1800));
        one.slip = Some(Span::from_secs(600));
    });
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    let before = fleet.runs().len();
    fleet.one.describe(inventory(&text("2h", "")), at(4)).unwrap();
    fleet.tick(5);
    let cancelled: Vec<CalendarRun> =
        fleet.runs().into_iter().filter(|run| run.state == CalendarRunState::Cancelled).collect();
    assert!(
        cancelled.is_empty(),
        "{} of {before} runs were cancelled: {}",
        cancelled.len(),
        cancelled[0].reason
    );
}

#[test]
fn a_coordinator_without_a_broker_cancels_nothing() {
    let mut fleet = PlayedFleet::new(&text("12h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 60, |one| {
        one.at = None;
        one.every = Some(Span::from_secs(1800));
        one.slip = Some(Span::from_secs(600));
    });
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    let before = fleet.runs().len();
    fleet.one.stop(at(4)).unwrap();
    let mut two = coordinator(&fleet.path, "two", &text("12h", ""), None);
    two.tick(at(5), &mut Vec::new()).unwrap();
    let cancelled: Vec<CalendarRun> =
        fleet.runs().into_iter().filter(|run| run.state == CalendarRunState::Cancelled).collect();
    assert!(
        cancelled.is_empty(),
        "{} of {before} runs were cancelled: {}",
        cancelled.len(),
        cancelled[0].reason
    );
}

#[test]
fn an_agent_that_is_restarted_twice_keeps_its_calendar() {
    let mut fleet = PlayedFleet::new(&text("6h", ""), &["a"]);
    let disk = SimulatedDisk::default();
    let open = |session: &str| {
        let identity = AgentIdentity {
            name: "a".into(),
            key: FleetKey::from_bytes([20; 32]).unwrap(),
            centre: FleetKey::from_bytes([7; 32]).unwrap().public(),
            program: "1".into(),
            session: session.into(),
        };
        CalendarAgent::open(identity, Box::new(disk.clone()), 1).unwrap()
    };
    let turn = |fleet: &mut PlayedFleet, agent: &mut CalendarAgent, seconds: i64| {
        let mut actions = fleet.tick(seconds);
        for action in agent.tick(&reading(seconds as u64 * 1000)) {
            if let AgentAction::Send(bytes) = action {
                fleet.one.receive(&[("a".to_owned(), bytes)], at(seconds), &mut actions).unwrap();
            }
        }
        for action in actions {
            if let FleetAction::Send { message, .. } = action {
                agent.receive(&message, &reading(seconds as u64 * 1000));
            }
        }
    };
    let mut one = open("first");
    for s in 0..60 {
        turn(&mut fleet, &mut one, s);
    }
    fleet.add("a-b", ("a", "b"), 7200, |_| ());
    for s in 60..120 {
        turn(&mut fleet, &mut one, s);
    }
    assert_eq!(one.calendar().unwrap().runs.len(), 1);
    drop(one);
    drop(open("second")); // ended before it was connected
    let mut three = open("third");
    let mut without = 0;
    for s in 121..1200 {
        turn(&mut fleet, &mut three, s);
        without += u64::from(three.calendar().is_none());
    }
    assert_eq!(without, 0, "seconds of 1079 without a calendar");
}

#[test]
fn a_take_over_still_waits_for_what_was_booked_by_another_description() {
    let link = "[link.x]\nhosts = [\"a\", \"c\"]\n";
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 1000, |_| ());
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    let old = fleet.runs()[0].clone();
    // a is away from now on, and will carry out its run. a and c share a link, as the new description says.
    fleet.one.describe(inventory(&text("1h", link)), at(10)).unwrap();
    fleet.tick(11);
    fleet.add("c-d", ("c", "d"), 1000, |_| ());
    fleet.tick(12);
    let booked = |fleet: &mut PlayedFleet| {
        fleet.runs().into_iter().find(|one| one.schedule == "c-d" && one.state == CalendarRunState::Booked)
    };
    assert!(booked(&mut fleet).is_none(), "the first coordinator waits");
    // It is killed, and another one takes over.
    let mut two = coordinator(&fleet.path, "two", &text("1h", link), Some(fleet.centre));
    for s in 25..40 {
        two.tick(at(s), &mut Vec::new()).unwrap();
    }
    let other = booked(&mut fleet);
    assert!(
        other.as_ref().is_none_or(|other| other.starts >= old.ends || other.ends <= old.starts),
        "{:?} over {:?}",
        other.map(|o| (o.starts, o.ends)),
        (old.starts, old.ends)
    );
}

#[test]
fn a_removed_schedule_is_waited_for_as_well() {
    // The same description removes the pair from its mesh and says that a and c share a link.
    let mesh = |hosts: &str| format!("[mesh.m]\nhosts = {hosts}\nevery = \"15m\"\ntest.duration = \"10s\"\n");
    let first = text("1h", &mesh("[\"a\", \"b\"]"));
    let second = text("1h", &format!("[link.x]\nhosts = [\"a\", \"c\"]\n{}", mesh("[\"b\", \"d\"]")));
    let mut fleet = PlayedFleet::new(&first, &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    let old: Vec<CalendarRun> =
        fleet.runs().into_iter().filter(|run| run.from == "a" && run.handed && run.starts > at(60)).collect();
    assert!(!old.is_empty());
    fleet.one.describe(inventory(&second), at(10)).unwrap();
    fleet.tick(11);
    let due = (old[0].starts.as_ms() - START.as_ms()) / 1000;
    fleet.add("c-d", ("c", "d"), due, |one| one.slip = Some(Span::from_secs(60)));
    for s in 12..20 {
        fleet.tick(s);
    }
    let other =
        fleet.runs().into_iter().find(|one| one.schedule == "c-d" && one.state == CalendarRunState::Booked);
    assert!(
        other.as_ref().is_none_or(|other| other.starts >= old[0].ends || other.ends <= old[0].starts),
        "{:?} over {:?}",
        other.map(|o| (o.starts, o.ends)),
        (old[0].starts, old[0].ends)
    );
}

#[test]
fn runs_of_a_revoked_agent_do_not_hold_their_time() {
    let mut fleet = PlayedFleet::new(&text("6h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 3600, |_| ());
    fleet.one.tick(at(1), &mut Vec::new()).unwrap();
    fleet.users.revoke("a", at(2)).unwrap();
    let mut s = 3;
    while s < 24 * 3600 {
        fleet.tick(s);
        s += 30;
    }
    let run = fleet.runs()[0].clone();
    assert!(
        run.state.is_end(),
        "a day later: {:?}, due {:?} s after the start",
        run.state,
        (run.starts.as_ms() - START.as_ms()) / 1000
    );
}

#[test]
fn a_new_address_of_a_host_reaches_the_agents() {
    let mut fleet = PlayedFleet::new(&text("12h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 3600, |_| ());
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    fleet
        .one
        .describe(inventory(&text("12h", "").replace("address = \"b\"", "address = \"elsewhere\"")), at(4))
        .unwrap();
    let mut got = None;
    for s in 5..65 {
        got = got.or(PlayedFleet::calendar_of(&fleet.tick(s), "a"));
    }
    assert!(got.is_some(), "a minute later the agent still has the earlier address");
}

#[test]
fn runs_that_nobody_reported_do_not_push_out_those_to_come() {
    let mut fleet = PlayedFleet::new(&text("24h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("often", ("a", "b"), 60, |one| {
        one.at = None;
        one.every = Some(Span::from_secs(60));
        one.slip = Some(Span::from_secs(10));
    });
    let actions = [fleet.tick(1), fleet.tick(2), fleet.tick(3), fleet.tick(4)].concat();
    fleet.confirm(&actions, "a", 5);
    // Nothing is heard of it for 18 hours.
    let mut s = 60;
    while s < 18 * 3600 {
        fleet.tick(s);
        s += 600;
    }
    let now = 18 * 3600;
    fleet.report("a", &Value::Null, now).unwrap();
    let mut calendar = Value::Null;
    for n in 1..5 {
        if let Some(one) = PlayedFleet::calendar_of(&fleet.tick(now + n), "a") {
            calendar = one;
        }
    }
    let until = calendar["until"].as_i64().unwrap() - START.as_ms();
    assert!(
        until > now * 1000,
        "it comes back at {now} s and gets a calendar that ended at {} s",
        until / 1000
    );
}

#[test]
fn a_result_is_taken_although_the_database_lost_that_its_agent_had_the_run() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &[]);
    fleet.add("a-b", ("a", "b"), 1000, |_| ());
    fleet.tick(1);
    fleet.tick(2);
    let run = fleet.runs()[0].clone();
    let key = FleetKey::from_bytes([20; 32]).unwrap();
    fleet.users.enroll("a", key.public().as_str(), at(3)).unwrap();
    fleet.keys.insert("a".to_owned(), key);
    // So it looks when the last commits are lost: booked, and handed out to nobody.
    assert_eq!((run.state, run.handed), (CalendarRunState::Booked, false));
    let document = ResultDocument {
        state: CalendarRunState::Finished,
        reason: "".into(),
        result: None,
        begun: Some(run.starts),
        ended: run.ends,
        log: "{}\n".into(),
    };
    let part =
        json!({"type":"result","agent":"a","run":run.id,"part":0,"parts":1,"content":document.parts()[0]});
    let actions = fleet.receive("a", &part, 1100).unwrap();
    let archived = actions.iter().any(|one| matches!(one, FleetAction::Archive { is_known: true, .. }));
    assert!(archived, "{actions:?}");
    assert_eq!(fleet.runs()[0].state, CalendarRunState::Finished);
}
