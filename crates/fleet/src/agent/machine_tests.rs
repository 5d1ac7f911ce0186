//! What an agent keeps when a database forgets.

use std::path::Path;

use linerate_model::TestSpec;
use linerate_model::calendar::{CalendarRunState, UnixTime};
use linerate_proto::fleet::{
    AgentCalendar, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey, MessageOrigin,
    ResultDigest, ResultDocument, ResultPartText, StoredResult, open, seal,
};
use linerate_units::Span;

use super::{AgentAction, AgentIdentity, CalendarAgent, ClockReading, DiskFolder};
use crate::coordinator::RunEnd;

const START: UnixTime = UnixTime::from_ms(1_800_000_000_000);

fn reading(seconds: u64) -> ClockReading {
    let running = Span::from_secs(seconds);
    ClockReading { running, wall: START.after(running), wall_error: None }
}

fn centre() -> FleetKey {
    FleetKey::from_bytes([2; 32]).unwrap()
}

fn agent(folder: &Path) -> CalendarAgent {
    let identity = AgentIdentity {
        name: "a".to_owned(),
        key: FleetKey::from_bytes([1; 32]).unwrap(),
        centre: centre().public(),
        program: "1.2.3".to_owned(),
        session: "s".into(),
    };
    CalendarAgent::open(identity, Box::new(DiskFolder::open(folder).unwrap()), 7).unwrap()
}

fn say(agent: &mut CalendarAgent, seconds: u64, message: &CentreMessage) {
    agent.receive(&seal(MessageOrigin::Centre, &centre(), message), &reading(seconds));
}

/// A calendar with the run `one`, from the second 10 to 20, or without any.
fn calendar(version: u64, has_run: bool, lost: bool) -> CentreMessage {
    let run = AgentRun {
        id: "one".into(),
        schedule: "m.a.b".into(),
        to: "b".into(),
        address: "b".into(),
        test_address: None,
        port: 1,
        spec: 0,
        starts: START.after(Span::from_secs(10)),
        ends: START.after(Span::from_secs(20)),
    };
    CentreMessage::Calendar(AgentCalendar {
        agent: "a".into(),
        epoch: 1,
        version,
        proof: "".into(),
        lost,
        until: START.after(Span::from_secs(3600)),
        set_up: Span::from_secs(2),
        settle: Span::from_secs(2),
        specs: vec![TestSpec::default()],
        runs: if has_run { vec![run] } else { Vec::new() },
    })
}

/// An agent that knows the time and may take part.
fn accepted(folder: &Path) -> CalendarAgent {
    let mut agent = agent(folder);
    assert_eq!(agent.tick(&reading(1)).len(), 1, "a report");
    let answer = CentreAnswer {
        agent: "a".into(),
        session: "s".into(),
        nonce: 1,
        epoch: 1,
        now: START.after(Span::from_secs(1)),
        refused: "".into(),
    };
    say(&mut agent, 1, &CentreMessage::Answer(answer));
    agent
}

/// An agent that measured `one`, was told that the result is stored, and has a calendar without it since.
fn with_stored_result(folder: &Path) -> CalendarAgent {
    let mut agent = accepted(folder);
    say(&mut agent, 1, &calendar(1, true, false));
    let started = agent.tick(&reading(10));
    assert!(started.iter().any(|action| matches!(action, AgentAction::Start { .. })), "{started:?}");
    let end = RunEnd { state: CalendarRunState::Finished, reason: String::new(), result: None };
    agent.ended("one", end, "{}\n".to_owned(), &reading(15));
    let key = FleetKey::from_bytes([1; 32]).unwrap().public();
    let parts = agent.tick(&reading(15)).into_iter().filter_map(|action| match action {
        AgentAction::Send(bytes) => match open(MessageOrigin::Agent, &key, &bytes) {
            Some(FleetAgentMessage::Result(part)) => Some(part.content),
            _ => None,
        },
        _ => None,
    });
    let digest = ResultDigest::of(parts.collect::<Vec<_>>().iter().map(ResultPartText::as_str));
    let stored = StoredResult { agent: "a".into(), run: "one".into(), epoch: 1, part: None, digest };
    say(&mut agent, 16, &CentreMessage::Stored(stored));
    say(&mut agent, 17, &calendar(2, false, false));
    assert_eq!(agent.waiting(), 0);
    agent
}

#[test]
fn a_result_that_the_database_lost_is_sent_again_and_not_replaced_by_a_missed_run() {
    for lost in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut agent = with_stored_result(folder.path());
        // A copy of the database from before the run.
        say(&mut agent, 30, &calendar(1_000_003, true, lost));
        let actions = agent.tick(&reading(31));
        assert!(!actions.iter().any(|action| matches!(action, AgentAction::Start { .. })), "{actions:?}");
        assert_eq!(agent.waiting(), 1);
        let content = std::fs::read(folder.path().join("result-one")).unwrap();
        let document: ResultDocument = serde_json::from_slice(&content).unwrap();
        assert_eq!((document.state, document.log.as_str()), (CalendarRunState::Finished, "{}\n"));
    }
}

#[test]
fn after_a_loss_only_runs_that_it_had_before_are_carried_out() {
    for had_it in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut agent = accepted(folder.path());
        say(&mut agent, 1, &calendar(1, had_it, false));
        // Twice, because the first one may not arrive.
        for version in [1_000_002, 1_000_003] {
            say(&mut agent, 5, &calendar(version, true, true));
        }
        let actions = agent.tick(&reading(10));
        let starts = actions.iter().any(|action| matches!(action, AgentAction::Start { .. }));
        assert_eq!((starts, agent.waiting()), (had_it, u64::from(!had_it)), "{actions:?}");
        let result = std::fs::read(folder.path().join("result-one")).ok();
        let document = result.map(|content| serde_json::from_slice::<ResultDocument>(&content).unwrap());
        let state = document.as_ref().map(|document| document.state);
        assert_eq!(state, (!had_it).then_some(CalendarRunState::Missed), "{document:?}");
    }
}
