//! What an agent keeps over restarts and losses: its calendar, its results, and the time.

use linerate_fleet::*;
use linerate_model::calendar::{CalendarRunState, CellResult};
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
    one.tick(&reading(21_100));
    centre_says(&mut one, json!({"type":"stored","agent":"a","run":"x","epoch":1,"part":null}), 21_200);
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
