//! Messages of agents that say what cannot be, are too large, come again, or are of another version.

use base64::Engine as _;
use linerate_fleet::*;
use linerate_model::calendar::{CalendarRunState, CellResult, UnixTime};
use serde_json::{Value, json};

use crate::played_fleet::{PlayedFleet, START, at, seal, text};

#[test]
fn a_hostile_version_does_not_stop_the_fleet() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a", "b"]);
    fleet.tick(1);
    fleet.report("a", &json!({"epoch": 1, "version": u64::MAX}), 2).unwrap();
    let mut failed = Vec::new();
    for s in 3..40 {
        let mut actions = Vec::new();
        if let Err(error) = fleet.one.tick(at(s), &mut actions) {
            failed.push(format!(
                "{s}: {error} {:?}",
                std::error::Error::source(&error).map(ToString::to_string)
            ));
        }
    }
    let other = fleet.report("b", &Value::Null, 41).map(|_| ()).map_err(|e| e.to_string());
    assert!(
        failed.is_empty() && other.is_ok(),
        "{} of 37 looks failed, last {:?}; the other agent: {other:?}",
        failed.len(),
        failed.last()
    );
}

#[test]
fn one_agent_cannot_stop_booking_for_all() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a", "b"]);
    let actions = fleet.tick(1);
    fleet.confirm(&actions, "b", 2);
    fleet.confirm(&actions, "a", 2);
    fleet.report("a", &json!({"epoch": 1, "version": 4_000}), 3).unwrap();
    fleet.add("c-d", ("c", "d"), 60, |_| ());
    for s in 4..300 {
        fleet.tick(s);
    }
    assert!(!fleet.runs().is_empty(), "nothing was booked between hosts without agents");
}

#[test]
fn small_messages_do_not_become_gigabytes() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.tick(1);
    let document = ResultDocument {
        state: CalendarRunState::Finished,
        reason: "".into(),
        result: None,
        begun: Some(START),
        ended: START,
        log: "x".repeat(60 << 20).into(),
    };
    let content = document.parts().concat();
    let messages: Vec<_> = (0..4).map(|n| {
        let part = json!({"type":"result","agent":"a","run":format!("unknown{n}"),"part":0,"parts":1,"content":content});
        ("a".to_owned(), seal("agent", &fleet.keys["a"], &part))
    }).collect();
    let bytes: usize = messages.iter().map(|m| m.1.len()).sum();
    let mut actions = Vec::new();
    fleet.one.receive(&messages, at(2), &mut actions).unwrap();
    let logs: usize = actions
        .iter()
        .map(|a| match a {
            FleetAction::Archive { log, .. } => log.len(),
            _ => 0,
        })
        .sum();
    assert!(logs <= 64 << 20, "{bytes} bytes of messages hold {} MiB at once", logs >> 20);
}

#[test]
fn results_full_of_what_nobody_knows_are_not_read_one_after_the_other_in_one_transaction() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.tick(1);
    let document = json!({"state":"finished","reason":"","result":null,"begun":0,"ended":0,"log":"","x":"x".repeat(30 << 20)});
    let packed = zstd::bulk::compress(&serde_json::to_vec(&document).unwrap(), 3).unwrap();
    let content = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&packed);
    let message = |n: u32| {
        let part = json!({"type":"result","agent":"a","run":format!("unknown{n}"),"part":0,"parts":1,"content":content});
        ("a".to_owned(), seal("agent", &fleet.keys["a"], &part))
    };
    let messages: Vec<_> = (0..4).map(message).collect();
    let mut actions = Vec::new();
    fleet.one.receive(&messages, at(2), &mut actions).unwrap();
    assert_eq!(actions.len(), 1, "each of them holds the calendar for as long as 30 MiB take");
}

#[test]
fn parts_of_results_that_never_become_whole_are_bounded() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.tick(1);
    let mut send = |n: i64, part: u32| {
        let part = json!({"type":"result","agent":"a","run":format!("unknown{n}"),"part":part,"parts":2,"content":"x".repeat(256 << 10)});
        fleet.receive("a", &part, 2 + n).unwrap().len()
    };
    // That a part is stored is said, and a whole result that nobody can read is dropped.
    assert_eq!((0..50).map(|n| send(n, 0)).sum::<usize>(), 50, "the newest ones are always taken");
    assert_eq!(
        (46..50).map(|n| send(n, 1)).sum::<usize>(),
        0,
        "four unfinished results of an agent are kept"
    );
    assert_eq!((0..46).map(|n| send(n, 1)).sum::<usize>(), 46, "the others made room for them");
}

#[test]
fn a_log_of_a_run_that_the_calendar_does_not_know_touches_no_other() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.tick(1);
    let document = ResultDocument {
        state: CalendarRunState::Finished,
        reason: "".into(),
        result: None,
        begun: None,
        ended: at(0),
        log: "{}\n".into(),
    };
    let part = json!({"type":"result","agent":"a","run":"a-run-of-somebody-else","part":0,"parts":1,"content":document.parts()[0]});
    let actions = fleet.receive("a", &part, 2).unwrap();
    // The database may have lost the run: what the archive has not is archived, and nothing else is touched.
    assert!(actions.iter().all(|a| !matches!(a, FleetAction::Archive { is_known: true, .. })), "{actions:?}");
}

#[test]
fn a_time_that_an_agent_invents_does_not_become_that_of_the_run() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 100, |_| ());
    fleet.tick(1);
    fleet.tick(2);
    let run = fleet.runs()[0].clone();
    let document = ResultDocument {
        state: CalendarRunState::Finished,
        reason: "".into(),
        result: Some(CellResult::default()),
        begun: Some(UnixTime::from_ms(i64::MIN)),
        ended: UnixTime::MAX,
        log: String::new().into(),
    };
    let part =
        json!({"type":"result","agent":"a","run":run.id,"part":0,"parts":1,"content":document.parts()[0]});
    fleet.receive("a", &part, 3).unwrap();
    let after = fleet.runs()[0].clone();
    assert!(
        after.ended.is_none_or(|ended| ended <= at(200)),
        "{:?} {:?} {:?}, before its time",
        after.state,
        after.begun,
        after.ended
    );
}

#[test]
fn a_revoked_key_cannot_end_runs_or_archive() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    fleet.report("a", &Value::Null, 0).unwrap();
    fleet.add("a-b", ("a", "b"), 1000, |_| ());
    fleet.tick(1);
    fleet.tick(2);
    let run = fleet.runs()[0].clone();
    fleet.users.revoke("a", at(3)).unwrap();
    let document = ResultDocument {
        state: CalendarRunState::Finished,
        reason: "".into(),
        result: Some(CellResult::default()),
        begun: Some(at(1)),
        ended: at(2),
        log: "{}".into(),
    };
    let part =
        json!({"type":"result","agent":"a","run":run.id,"part":0,"parts":1,"content":document.parts()[0]});
    let actions = fleet.receive("a", &part, 10).unwrap();
    assert!(actions.is_empty(), "{actions:?}");
    assert_eq!(fleet.runs()[0].state, CalendarRunState::Cancelled, "by its revocation");
}

#[test]
fn a_report_that_is_replayed_changes_nothing() {
    let mut fleet = PlayedFleet::new(&text("1h", ""), &["a"]);
    let full = json!({"type":"report","agent":"a","session":"s-a","previous":[],"newest":null,"proof":"","nonce":1,"program":"1","holds":null,"full":"disk full","waiting":0,"begun":[]});
    fleet.receive("a", &full, 1).unwrap();
    fleet.nonce = 1;
    fleet.report("a", &Value::Null, 31).unwrap();
    assert_eq!(fleet.users.agents().unwrap()[0].note.as_str(), "");
    fleet.receive("a", &full, 32).unwrap();
    assert_eq!(
        fleet.users.agents().unwrap()[0].note.as_str(),
        "",
        "the agent takes no further runs, because of a message that somebody sent again"
    );
}

#[test]
fn a_message_that_postgresql_refuses_does_not_take_others_with_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let server =
        LocalPostgres::start(folder.path(), &EnginePaths { postgres_bin: None, nats_server: None }).unwrap();
    let mut fleet = PlayedFleet::on(folder, server.url(), &text("1h", ""), &["a", "b"]);
    fleet.tick(1);
    let bad = json!({"type":"report","agent":"a","session":"s","previous":[],"newest":null,"proof":"","nonce":1,"program":"1","holds":null,"full":"","waiting":0,"begun":[["\u{0}", 0]]});
    let good = json!({"type":"report","agent":"b","session":"s","previous":[],"newest":null,"proof":"","nonce":1,"program":"1","holds":null,"full":"","waiting":0,"begun":[]});
    let messages = [
        ("a".to_owned(), seal("agent", &fleet.keys["a"], &bad)),
        ("b".to_owned(), seal("agent", &fleet.keys["b"], &good)),
    ];
    let mut actions = Vec::new();
    let done = fleet.one.receive(&messages, at(2), &mut actions).map_err(|e| e.to_string());
    assert!(!actions.is_empty(), "b gets no answer: {done:?}");
}
