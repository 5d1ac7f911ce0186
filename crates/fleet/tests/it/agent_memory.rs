//! What an agent keeps over restarts and losses: its calendar, its results, and the time.

use linerate_fleet::*;
use linerate_model::calendar::{CalendarRun, CalendarRunState, CellResult};
use linerate_units::Span;
use serde_json::{Value, json};

use crate::played_fleet::{PlayedFleet, START, at, at_ms, body, proof, reading, seal, text};
use crate::simulated_agents::SimulatedDisk;

fn agent(disk: &SimulatedDisk, session: &str) -> CalendarAgent {
    let identity = AgentIdentity {
        name: "a".into(),
        key: FleetKey::from_bytes([9; 32]).unwrap(),
        centre: FleetKey::from_bytes([7; 32]).unwrap().public(),
        program: "1".into(),
        session: session.into(),
    };
    CalendarAgent::open(identity, Box::new(disk.clone()), 1).unwrap()
}

fn centre_says(agent: &mut CalendarAgent, message: impl std::borrow::Borrow<Value>, ms: u64) {
    agent.receive(&seal("centre", &FleetKey::from_bytes([7; 32]).unwrap(), message.borrow()), &reading(ms));
}

fn calendar(version: u64, lost: bool, runs: &[(&str, i64)]) -> Value {
    let runs: Vec<Value> = runs.iter().map(|(id, starts)| json!({"id":id,"schedule":"x","to":"b","address":"b","port":5201,"spec":0,"starts":at_ms(*starts).as_ms(),"ends":at_ms(*starts + 15_000).as_ms()})).collect();
    json!({"type":"calendar","agent":"a","epoch":1,"version":version,"proof":"","lost":lost,"until":at(100_000).as_ms(),
        "set_up_ns":3_000_000_000u64,"settle_ns":2_000_000_000u64,"specs":[linerate_model::TestSpec::default()],"runs":runs})
}

fn sent(actions: &[AgentAction]) -> Vec<Value> {
    actions
        .iter()
        .filter_map(|one| match one {
            AgentAction::Send(bytes) => Some(body(bytes)),
            _ => None,
        })
        .collect()
}

/// The agent learns that its running clock is the fleet's time since START.
fn teach(agent: &mut CalendarAgent, session: &str, ms: u64) -> Vec<AgentAction> {
    let actions = agent.tick(&reading(ms));
    let nonce = sent(&actions).iter().find(|one| one["type"] == "report").unwrap()["nonce"].clone();
    centre_says(
        agent,
        json!({"type":"answer","agent":"a","session":session,"nonce":nonce,"epoch":1,"now":at_ms(ms as i64).as_ms(),"refused":""}),
        ms,
    );
    actions
}

#[test]
fn a_result_that_was_acknowledged_is_not_replaced_after_a_loss() {
    let disk = SimulatedDisk::default();
    let mut one = agent(&disk, "s");
    teach(&mut one, "s", 0);
    centre_says(&mut one, calendar(1, false, &[("x", 10_000)]), 100);
    let actions = one.tick(&reading(10_500));
    assert!(actions.iter().any(|a| matches!(a, AgentAction::Start { .. })), "{actions:?}");
    let result = Some(CellResult::default());
    one.ended(
        "x",
        RunEnd { state: CalendarRunState::Finished, reason: String::new(), result },
        "log\n".into(),
        &reading(21_000),
    );
    let results = sent(&one.tick(&reading(21_100)));
    let content = results.iter().find_map(|message| message["content"].as_str()).unwrap();
    let digest = ResultDigest::of([content]);
    centre_says(
        &mut one,
        json!({"type":"stored","agent":"a","run":"x","epoch":1,"part":null,"digest":digest}),
        21_200,
    );
    assert_eq!(one.waiting(), 0);
    // The next calendar has no such run any more.
    centre_says(&mut one, calendar(2, false, &[]), 22_000);
    one.tick(&reading(22_100));
    // The database loses the end of x; to it, x is still booked, as in hand_out().
    centre_says(&mut one, calendar(1_000_003, true, &[("x", 10_000)]), 60_000);
    let results: Vec<Value> =
        sent(&one.tick(&reading(60_100))).into_iter().filter(|m| m["type"] == "result").collect();
    let document = ResultDocument::of(results[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(document.state, CalendarRunState::Finished, "{}", document.reason);
}

#[test]
fn an_answer_that_contradicts_the_known_time_counts() {
    let mut clock = AgentClock::default();
    clock.learn(Span::from_ms(0), at_ms(0), &reading(2));
    // The virtual machine is paused for 5 s, which no clock of it shows; every answer takes 200 ms.
    for n in 1..=20u64 {
        let asked = n * 30_000;
        clock.learn(Span::from_ms(asked), at_ms(asked as i64 + 5100), &reading(asked + 200));
    }
    let (time, error) = clock.now(&reading(600_200)).unwrap();
    let off = (605_200 - (time.as_ms() - START.as_ms())).abs();
    assert!(
        Span::from_ms(off as u64) <= error,
        "after 20 answers in 10 minutes it is {off} ms off, and claims {error}"
    );
}

#[test]
fn an_agent_without_a_calendar_does_not_refuse_all_of_a_new_database() {
    let disk = SimulatedDisk::default();
    let mut one = agent(&disk, "s");
    teach(&mut one, "s", 0);
    centre_says(
        &mut one,
        {
            let mut c = calendar(500, false, &[]);
            c["epoch"] = json!(7);
            c["proof"] = json!(proof(7, 500));
            c
        },
        100,
    );
    // It is revoked, and its folder loses the calendar.
    let actions = one.tick(&reading(40_000));
    let nonce = sent(&actions).iter().find(|m| m["type"] == "report").unwrap()["nonce"].clone();
    centre_says(
        &mut one,
        json!({"type":"answer","agent":"a","session":"s","nonce":nonce,"epoch":7,"now":at(40).as_ms(),"refused":"revoked"}),
        40_001,
    );
    // The archive is restored from a backup or made anew, and the agent is enrolled there.
    let mut fleet = PlayedFleet::new(&text("1h", ""), &[]);
    fleet.users.enroll("a", FleetKey::from_bytes([9; 32]).unwrap().public().as_str(), at(41)).unwrap();
    for s in 42..3600 {
        let mut actions = fleet.tick(s);
        for action in one.tick(&reading(s as u64 * 1000)) {
            if let AgentAction::Send(bytes) = action {
                fleet.one.receive(&[("a".into(), bytes)], at(s), &mut actions).unwrap();
            }
        }
        for action in actions {
            if let FleetAction::Send { message, .. } = action {
                one.receive(&message, &reading(s as u64 * 1000));
            }
        }
    }
    let present = one.calendar().unwrap();
    assert!(present.version > 500 && present.epoch > 7, "{present:?}");
}

/// Whether it starts a run.
fn starts(actions: &[AgentAction]) -> bool {
    actions.iter().any(|action| matches!(action, AgentAction::Start { .. }))
}

#[test]
fn a_copy_of_a_folder_is_not_the_next_process_and_carries_nothing_out() {
    let disk = SimulatedDisk::default();
    let mut first = agent(&disk, "first");
    teach(&mut first, "first", 0);
    centre_says(&mut first, calendar(1, false, &[("x", 10_000), ("y", 40_000)]), 100);
    assert!(starts(&first.tick(&reading(10_500))));
    let copied = disk.copy();
    let report_of = |agent: &mut CalendarAgent, session, ms| {
        let actions = teach(agent, session, ms);
        sent(&actions).into_iter().find(|one| one["type"] == "report").unwrap()
    };
    // The copy, and a later process in its folder.
    for (session, ms) in [("copy", 11_000), ("copy-2", 50_000)] {
        let mut copy = agent(&copied, session);
        copy.note_broken_off(&reading(ms));
        let report = report_of(&mut copy, session, ms);
        let previous = report["previous"].as_array().unwrap();
        assert!(!previous.contains(&"first".into()), "{previous:?}");
        assert_eq!(report["holds"], Value::Null);
        // What the first process began is not its own to end.
        assert_eq!(copy.waiting(), 0);
        assert!(!starts(&copy.tick(&reading(40_500))), "it carries out the calendar of the first one");
    }
    // The next process in the first folder goes on.
    let mut next = agent(&disk, "next");
    assert_eq!(report_of(&mut next, "next", 12_000)["previous"], json!(["first"]));
    assert!(starts(&next.tick(&reading(40_500))));
}

#[test]
fn a_process_takes_calendars_only_while_it_is_accepted() {
    let disk = SimulatedDisk::default();
    let mut one = agent(&disk, "s");
    // A calendar is sent to all that have the key, and this one may be for another process.
    centre_says(&mut one, calendar(1, false, &[("x", 10_000)]), 0);
    assert_eq!(one.calendar(), None);
    teach(&mut one, "s", 100);
    centre_says(&mut one, calendar(1, false, &[("x", 10_000)]), 200);
    assert!(one.calendar().is_some());
    // Others get its times when it is refused, and it may be accepted again.
    let nonce = sent(&one.tick(&reading(40_000))).iter().find_map(|one| one["nonce"].as_u64()).unwrap();
    let refused = json!({"type":"answer","agent":"a","session":"s","nonce":nonce,"epoch":1,"now":at(40).as_ms(),"refused":"why"});
    centre_says(&mut one, refused, 40_100);
    assert_eq!(one.calendar(), None);
    assert_eq!(agent(&disk, "next").calendar(), None);
    centre_says(&mut one, calendar(2, false, &[]), 40_200);
    assert_eq!(one.calendar(), None);
    teach(&mut one, "s", 80_000);
    // The same one is taken again, which it does not have any more.
    centre_says(&mut one, calendar(1, false, &[("x", 90_000)]), 80_100);
    assert!(one.calendar().is_some());
}

#[test]
fn results_are_sent_by_a_process_that_is_accepted() {
    let disk = SimulatedDisk::default();
    let mut one = agent(&disk, "s");
    teach(&mut one, "s", 0);
    centre_says(&mut one, calendar(1, false, &[("x", 10_000)]), 100);
    assert!(starts(&one.tick(&reading(10_500))));
    let end = RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: None };
    one.ended("x", end, "log\n".into(), &reading(21_000));
    let results = |agent: &mut CalendarAgent, ms| {
        sent(&agent.tick(&reading(ms))).iter().filter(|one| one["type"] == "result").count()
    };
    let mut next = agent(&disk, "next");
    // Whether it may take part is not known, and what is stored may be that of another process.
    assert_eq!(results(&mut next, 22_000), 0);
    let content =
        ResultDocument::parts(&serde_json::from_slice(&disk.clone().read_one("result-x").unwrap()).unwrap());
    let digest = ResultDigest::of([content[0].as_str()]);
    centre_says(
        &mut next,
        json!({"type":"stored","agent":"a","run":"x","epoch":1,"part":null,"digest":digest}),
        22_100,
    );
    assert_eq!(next.waiting(), 1);
    teach(&mut next, "next", 60_000);
    assert_eq!(results(&mut next, 60_100), 1);
}

#[test]
fn what_a_silent_process_may_do_is_held_although_another_one_takes_its_place() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 1000, |_| ());
    let actions = [fleet.tick(1), fleet.tick(2)].concat();
    fleet.confirm(&actions, "a", 3);
    let run = fleet.runs()[0].clone();
    assert!(run.handed);
    // Another process with its key, from nowhere: it is refused until the first one was silent for 90 s.
    let other = |fleet: &mut PlayedFleet, holds: &Value, seconds| {
        fleet.nonce += 1;
        let message = json!({"type":"report","agent":"a","session":"other","previous":[],"newest":holds,"proof":"",
            "nonce":fleet.nonce,"program":"1","holds":holds,"full":"","waiting":0,"begun":[]});
        fleet.receive("a", &message, seconds).unwrap()
    };
    let refused = other(&mut fleet, &Value::Null, 60);
    assert!(PlayedFleet::calendar_of(&refused, "a").is_none());
    other(&mut fleet, &Value::Null, 200);
    let actions = [fleet.tick(201), fleet.tick(202)].concat();
    let calendar = PlayedFleet::calendar_of(&actions, "a").unwrap();
    other(&mut fleet, &json!({"epoch": calendar["epoch"], "version": calendar["version"]}), 203);
    // The first process may begin its run; nothing else has that time, although the new one keeps to another calendar.
    for second in 204..210 {
        fleet.tick(second);
    }
    let all = fleet.runs();
    assert_eq!(all.iter().find(|one| one.id == run.id).unwrap().state, CalendarRunState::Cancelled);
    let others: Vec<&CalendarRun> =
        all.iter().filter(|one| one.id != run.id && one.state == CalendarRunState::Booked).collect();
    assert!(!others.is_empty(), "it is booked anew");
    assert!(others.iter().all(|one| one.starts >= run.ends || one.ends <= run.starts), "{others:?}");
}
