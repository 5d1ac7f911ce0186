//! When an agent says how it is.

use linerate_archive::{Calendar, CalendarTransaction};
use linerate_fleet::{
    AgentAction, AgentIdentity, CalendarAgent, ClockReading, FleetAction, FleetAgentMessage,
    FleetCoordinator, FleetKey, fleet_file,
};
use linerate_model::calendar::{FleetAgentState, UnixTime};
use linerate_units::Span;

use crate::simulated_agents::SimulatedDisk;

const START_MS: i64 = 1_800_000_000_000;

fn reading(ms: u64) -> ClockReading {
    ClockReading {
        running: Span::from_ms(ms),
        wall: UnixTime::from_ms(START_MS + ms as i64),
        wall_error: None,
    }
}

fn agent() -> CalendarAgent {
    identity_agent(SimulatedDisk::default(), "session")
}

fn identity_agent(disk: SimulatedDisk, session: &str) -> CalendarAgent {
    let identity = AgentIdentity {
        name: "a".to_owned(),
        key: FleetKey::from_bytes([1; 32]).unwrap(),
        centre: FleetKey::from_bytes([2; 32]).unwrap().public(),
        program: "1.2.3".to_owned(),
        session: session.into(),
    };
    CalendarAgent::open(identity, Box::new(disk), 7).unwrap()
}

fn reports(actions: &[AgentAction]) -> Vec<Vec<u8>> {
    let sent = actions.iter().filter_map(|action| match action {
        AgentAction::Send(bytes) => Some(bytes.clone()),
        _ => None,
    });
    sent.filter(|bytes| {
        let document = bytes.splitn(2, |byte| *byte == b'\n').nth(1).unwrap();
        matches!(serde_json::from_slice(document), Ok(FleetAgentMessage::Report(_)))
    })
    .collect()
}

/// When it reports, milliseconds from the start, until this time.
fn report_times(agent: &mut CalendarAgent, from_ms: u64, until_ms: u64) -> Vec<u64> {
    let times = (from_ms..until_ms).step_by(50);
    times.filter(|ms| !reports(&agent.tick(&reading(*ms))).is_empty()).collect()
}

fn coordinator(folder: &tempfile::TempDir) -> FleetCoordinator {
    let text = "[host.a]\naddress = \"a\"\n[host.b]\naddress = \"b\"\n";
    let source = fleet_file::Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let inventory = fleet_file::read(&source, &|_| Ok(Vec::new())).unwrap();
    let mut calendar = Calendar::open(folder.path().join("calendar.sqlite").to_str().unwrap()).unwrap();
    let key = FleetKey::from_bytes([1; 32]).unwrap().public();
    let enroll = |calendar: &mut CalendarTransaction<'_>| {
        calendar.enroll_agent("a", key.as_str(), UnixTime::from_ms(START_MS))
    };
    calendar.write(enroll).unwrap();
    let new_id = Box::new(|| Ok("id".to_owned()));
    FleetCoordinator::new(calendar, "c".to_owned(), inventory, new_id)
        .with_agents(FleetKey::from_bytes([2; 32]).unwrap())
}

/// The agent reports, and hears what the coordinator answers, unless that is lost. Whether it was refused.
fn converse(agent: &mut CalendarAgent, centre: &mut FleetCoordinator, ms: u64, is_heard: bool) -> bool {
    let reading = reading(ms);
    let mut refused = false;
    let mut said = agent.tick(&reading);
    assert!(!reports(&said).is_empty());
    centre.tick(reading.wall, &mut Vec::new()).unwrap();
    while !said.is_empty() {
        let mut answers = Vec::new();
        let messages: Vec<_> = reports(&said).into_iter().map(|bytes| ("a".to_owned(), bytes)).collect();
        centre.receive(&messages, reading.wall, &mut answers).unwrap();
        for answer in answers {
            if let (FleetAction::Send { message, .. }, true) = (answer, is_heard) {
                agent.receive(&message, &reading);
            }
        }
        said = agent.tick(&reading);
        refused |= said.iter().any(|one| matches!(one, AgentAction::Refused(why) if !why.is_empty()));
    }
    refused
}

#[test]
fn a_report_that_nobody_hears_is_repeated_soon_and_then_more_rarely() {
    let times = report_times(&mut agent(), 0, 120_000);
    let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
    assert!((3000..5000).contains(&gaps[0]), "{gaps:?}");
    assert!((6000..10_000).contains(&gaps[1]), "{gaps:?}");
    assert!(gaps[3..].iter().all(|gap| (23_000..37_000).contains(gap)), "{gaps:?}");
}

#[test]
fn after_an_answer_it_reports_once_in_half_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let (mut agent, mut centre) = (agent(), coordinator(&folder));
    assert!(!converse(&mut agent, &mut centre, 1000, true));
    let times = report_times(&mut agent, 1050, 30_000);
    assert!(times.first().is_none_or(|first| *first >= 24_000), "{times:?}");
}

#[test]
fn an_agent_that_was_restarted_twice_before_anybody_heard_it_is_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut centre) = (SimulatedDisk::default(), coordinator(&folder));
    assert!(!converse(&mut identity_agent(disk.clone(), "first"), &mut centre, 1000, true));
    // The coordinator hears it, and it does not hear the answer.
    assert!(!converse(&mut identity_agent(disk.clone(), "second"), &mut centre, 2000, false));
    drop(identity_agent(disk.clone(), "third"));
    assert!(!converse(&mut identity_agent(disk.clone(), "fourth"), &mut centre, 3000, true));
    // The database may lose that it was heard. One that knows nothing of the others is another one.
    assert!(!converse(&mut identity_agent(disk, "fifth"), &mut centre, 4000, true));
    let empty = SimulatedDisk::default();
    assert!(converse(&mut identity_agent(empty, "sixth"), &mut centre, 5000, true));
}

#[test]
fn an_agent_that_the_database_forgot_in_a_failover_is_no_other_one() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut centre) = (SimulatedDisk::default(), coordinator(&folder));
    assert!(!converse(&mut identity_agent(disk.clone(), "first"), &mut centre, 1000, true));
    let state = |calendar: &mut CalendarTransaction<'_>| calendar.agent("a");
    let before = centre.calendar().read(state).unwrap().unwrap();
    assert!(!converse(&mut identity_agent(disk.clone(), "second"), &mut centre, 2000, true));
    let lost = FleetAgentState { session: before.session, ..FleetAgentState::default() };
    let forget = |calendar: &mut CalendarTransaction<'_>| {
        calendar.note_agent("a", &lost, UnixTime::from_ms(START_MS + 2000))
    };
    centre.calendar().write(forget).unwrap();
    assert!(!converse(&mut identity_agent(disk, "third"), &mut centre, 3000, true));
}
