//! What agents and coordinators of a fleet say to each other.

use std::fmt::Debug;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use linerate_model::TestSpec;
use linerate_model::calendar::{CalendarRunState, UnixTime};
use linerate_proto::fleet::{
    AgentCalendar, AgentReport, AgentRun, CentreAnswer, CentreMessage, FleetAgentMessage, FleetKey,
    HeldCalendar, MAX_BEGUN, MessageOrigin, ResultDigest, ResultDocument, ResultPart, StoredResult, open,
    seal, seal_document,
};
use linerate_units::Span;
use serde_json::json;

/// The start of time in scripts, milliseconds.
pub(crate) const START_MS: i64 = 1_800_000_000_000;

/// The first byte selects what the others are: a message, a document that is signed by an agent or by the coordinators,
/// or a result: the text of its parts, compressed, or as a document.
pub fn fleet_message(bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else { return };
    match first % 6 {
        0 => {
            opened_agent_message(rest);
            opened_centre_message(rest);
        }
        1 => opened_agent_message(&seal_document(MessageOrigin::Agent, &key(1), rest)),
        2 => opened_centre_message(&seal_document(MessageOrigin::Centre, &key(1), rest)),
        3 => result(ResultDocument::of(&String::from_utf8_lossy(rest))),
        4 => result(ResultDocument::of(&STANDARD_NO_PAD.encode(rest))),
        _ => result(ResultDocument::read(rest)),
    }
}

/// A key of this number.
pub(crate) fn key(number: u8) -> FleetKey {
    FleetKey::from_bytes([number; 32]).unwrap_or_else(|_| unreachable!("32 bytes are a key"))
}

/// What an agent says is the same when it is said again, and can be stored and looked up.
fn opened_agent_message(bytes: &[u8]) {
    let Some(message) = open::<FleetAgentMessage>(MessageOrigin::Agent, &key(1).public(), bytes) else {
        return;
    };
    let again = seal(MessageOrigin::Agent, &key(1), &message);
    let again: Option<FleetAgentMessage> = open(MessageOrigin::Agent, &key(1).public(), &again);
    same(again.as_ref(), &message);
    match &message {
        FleetAgentMessage::Report(report) => {
            assert!(is_file_name(&report.session) && report.previous.iter().all(|name| is_file_name(name)));
            assert!(report.previous.len() <= 64 && report.begun.len() <= MAX_BEGUN);
            assert!(report.begun.iter().all(|(run, _)| is_file_name(run)) && report.proof.len() <= 128);
        }
        FleetAgentMessage::Result(part) => {
            assert!(is_file_name(&part.run) && part.content.len() <= 256 << 10);
        }
    }
}

/// The same for coordinators. What an agent shows cannot steer its terminal.
fn opened_centre_message(bytes: &[u8]) {
    let Some(message) = open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), bytes) else {
        return;
    };
    // A specification may be longer than it came, because it is written with all that it has.
    let again = seal(MessageOrigin::Centre, &key(1), &message);
    if again.len() <= bytes.len() {
        let again: Option<CentreMessage> = open(MessageOrigin::Centre, &key(1).public(), &again);
        same(again.as_ref(), &message);
    }
    match &message {
        CentreMessage::Calendar(calendar) => {
            assert!(
                calendar.specs.len() <= 2048 && calendar.runs.len() <= 2048 && calendar.proof.len() <= 128
            );
            for run in &calendar.runs {
                let shown =
                    format!("{}{}{}{}{:?}", run.id, run.schedule, run.to, run.address, run.test_address);
                assert!(
                    is_file_name(&run.id) && !shown.chars().any(linerate_model::foreign_text::is_forbidden)
                );
            }
        }
        CentreMessage::Stored(stored) => assert!(is_file_name(&stored.run)),
        CentreMessage::Answer(_) => {}
    }
}

/// A result is the same when it is packed again, and no agent decides what is not its to decide.
fn result(document: Option<ResultDocument>) {
    let Some(document) = document else { return };
    let own = matches!(
        document.state,
        CalendarRunState::Finished
            | CalendarRunState::Failed
            | CalendarRunState::Cancelled
            | CalendarRunState::Missed
    );
    assert!(own, "{:?}", document.state);
    same(ResultDocument::of(&document.parts().concat()).as_ref(), &document);
}

fn same<T: PartialEq + Debug>(again: Option<&T>, first: &T) {
    assert_eq!(again, Some(first), "what was understood must be understood again");
}

fn is_file_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}

/// The time `ms` milliseconds after the start.
pub(crate) fn at(ms: i64) -> UnixTime {
    UnixTime::from_ms(START_MS.saturating_add(ms))
}

/// A run of an agent that measures at this time.
pub(crate) fn run(id: &str, starts: UnixTime, ends: UnixTime) -> AgentRun {
    AgentRun {
        id: id.into(),
        schedule: "mesh.a.b".into(),
        to: "b".into(),
        address: "b.example.net".into(),
        test_address: None,
        port: 5201,
        spec: 0,
        starts,
        ends,
    }
}

/// A calendar of agent a with these runs.
pub(crate) fn calendar(held: HeldCalendar, runs: Vec<AgentRun>) -> AgentCalendar {
    AgentCalendar {
        agent: "a".into(),
        epoch: held.epoch,
        version: held.version,
        proof: linerate_proto::fleet::proof(&key(2), "a", held),
        lost: false,
        until: at(3_600_000),
        set_up: Span::from_secs(3),
        settle: Span::from_secs(8),
        specs: vec![TestSpec::default()],
        runs,
    }
}

/// A report of agent a.
pub(crate) fn report() -> AgentReport {
    AgentReport {
        agent: "a".into(),
        session: "5e55".into(),
        previous: vec!["0ld".into()],
        nonce: 1,
        program: "1.2.3".into(),
        holds: Some(HeldCalendar { epoch: 1, version: 1 }),
        newest: Some(HeldCalendar { epoch: 1, version: 1 }),
        proof: linerate_proto::fleet::proof(&key(2), "a", HeldCalendar { epoch: 1, version: 1 }),
        full: "".into(),
        waiting: 1,
        begun: vec![("r1".into(), at(10_000))],
    }
}

/// A result of a run that measured something.
pub(crate) fn measured() -> ResultDocument {
    let log = json!({"run": "r1", "host": 0, "seq": 0, "at_ns": 0,
        "body": {"kind": "queued", "position": 1, "wait_ns": 5}});
    ResultDocument {
        state: CalendarRunState::Finished,
        reason: "".into(),
        result: None,
        begun: Some(at(10_000)),
        ended: at(20_000),
        log: format!("{log}\n").into(),
    }
}

/// What agent a says.
pub(crate) fn agent_messages() -> Vec<FleetAgentMessage> {
    let part = |part: u32, parts: u32, content: String| {
        let (agent, run) = ("a".into(), "r1".into());
        FleetAgentMessage::Result(ResultPart { agent, run, part, parts, content: content.into() })
    };
    let whole = measured().parts().concat();
    let (first, second) = whole.split_at(whole.len() / 2);
    vec![
        FleetAgentMessage::Report(report()),
        part(0, 1, whole.clone()),
        part(0, 2, first.to_owned()),
        part(1, 2, second.to_owned()),
    ]
}

/// What the coordinators say to agent a.
pub(crate) fn centre_messages() -> Vec<CentreMessage> {
    let held = HeldCalendar { epoch: 1, version: 1 };
    let runs = vec![run("r1", at(10_000), at(20_000)), run("r2", at(30_000), at(40_000))];
    let stored = |part: Option<u32>| {
        let digest = ResultDigest::of([]);
        CentreMessage::Stored(StoredResult { agent: "a".into(), run: "r1".into(), epoch: 1, part, digest })
    };
    let answer = CentreAnswer {
        agent: "a".into(),
        session: "s0".into(),
        nonce: 1,
        epoch: 1,
        now: at(0),
        refused: "".into(),
    };
    vec![
        CentreMessage::Calendar(calendar(held, runs)),
        CentreMessage::Answer(answer),
        stored(Some(0)),
        stored(None),
    ]
}

/// Documents as bytes.
pub(crate) fn documents<T: serde::Serialize>(messages: &[T]) -> Vec<Vec<u8>> {
    messages.iter().filter_map(|message| serde_json::to_vec(message).ok()).collect()
}

/// These documents with names of which no file can be made, with texts that steer a terminal, and with long lists.
fn hostile(documents: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let texts: Vec<String> =
        documents.iter().map(|document| String::from_utf8_lossy(document).into_owned()).collect();
    let long = |item: &str, count: usize| vec![item; count].join(",");
    let changes = [
        ("\"r1\"", "\"../memory\"".to_owned()),
        ("\"s0\"", "\"\"".to_owned()),
        ("\"5e55\"", "\"\\u001b[2J\"".to_owned()),
        ("\"0ld\"", "\"a\\u0000\"".to_owned()),
        ("\"0ld\"", long("\"0ld\"", 65)),
        ("[\"r1\",1800000010000]", long("[\"r1\",1800000010000]", 65)),
        ("mesh.a.b", "mesh\\u001b]0;b\\r\\n\\u202e".to_owned()),
        ("\"specs\":[", format!("\"specs\":[{},", long("{}", 2048))),
        ("\"content\":\"", format!("\"content\":\"{}", "A".repeat(256 << 10))),
    ];
    let changed = texts.iter().flat_map(|text| {
        let with = changes.iter().filter(|(from, _)| text.contains(from));
        with.map(|(from, to)| text.replace(from, to).into_bytes())
    });
    changed.collect()
}

/// Inputs of `fleet_message`.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let with = |first: u8, rest: &[u8]| [&[first], rest].concat();
    let agent = documents(&agent_messages());
    let centre = documents(&centre_messages());
    let text = measured().parts().concat();
    let packed = STANDARD_NO_PAD.decode(&text).unwrap_or_default();
    let mut seeds = vec![
        with(0, &seal(MessageOrigin::Agent, &key(1), &agent_messages()[0])),
        with(0, &seal(MessageOrigin::Centre, &key(1), &centre_messages()[0])),
        with(3, text.as_bytes()),
        with(4, &packed),
        with(5, &serde_json::to_vec(&measured()).unwrap_or_default()),
    ];
    seeds.extend(hostile(&agent).iter().map(|document| with(1, document)));
    seeds.extend(hostile(&centre).iter().map(|document| with(2, document)));
    seeds.extend(agent.iter().map(|document| with(1, document)));
    seeds.extend(centre.iter().map(|document| with(2, document)));
    seeds
}
