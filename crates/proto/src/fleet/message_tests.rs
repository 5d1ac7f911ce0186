//! Messages that are opened, and those that are refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use linerate_model::calendar::{CalendarRunState, UnixTime};
use proptest::prelude::*;
use serde::de::DeserializeOwned;

use super::bounds::MAX_RUNS;
use super::message::{MAX_RESULT_BYTES, MAX_WINDOW_LOG};
use super::*;

/// SHA-256 of nothing.
const EMPTY: &str = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";

fn key(first: u8) -> FleetKey {
    FleetKey::from_bytes([first; 32]).unwrap()
}

fn stored(run: &str) -> CentreMessage {
    let digest = ResultDigest::of([]);
    CentreMessage::Stored(StoredResult { agent: "a".into(), run: run.into(), epoch: 1, part: None, digest })
}

fn document(log: String) -> ResultDocument {
    ResultDocument {
        state: CalendarRunState::Failed,
        reason: "why".into(),
        result: None,
        begun: Some(UnixTime::from_ms(1)),
        ended: UnixTime::from_ms(2),
        log: log.into(),
    }
}

#[test]
fn a_message_is_opened_by_whom_it_is_for_and_by_nobody_else() {
    let bytes = seal(MessageOrigin::Centre, &key(1), &stored("r"));
    let open_as = |origin, first, bytes: &[u8]| open::<CentreMessage>(origin, &key(first).public(), bytes);
    assert_eq!(open_as(MessageOrigin::Centre, 1, &bytes), Some(stored("r")));
    assert_eq!(open_as(MessageOrigin::Centre, 2, &bytes), None, "another key");
    // An agent whose key is that of a coordinator cannot play back what it said.
    assert_eq!(open_as(MessageOrigin::Agent, 1, &bytes), None, "another origin");
    let text = String::from_utf8(bytes.clone()).unwrap();
    let later = text.replacen("linerate-fleet 1", "linerate-fleet 2", 1);
    assert_eq!(open_as(MessageOrigin::Centre, 1, later.as_bytes()), None, "another protocol");
    let changed = text.replace("\"r\"", "\"s\"");
    assert_eq!(open_as(MessageOrigin::Centre, 1, changed.as_bytes()), None, "another document");
}

#[test]
fn members_of_later_versions_are_ignored() {
    let later = serde_json::json!({"type": "stored", "agent": "a", "run": "r", "epoch": 1, "part": null, "digest": EMPTY, "new": [1]});
    let bytes = seal(MessageOrigin::Centre, &key(1), &later);
    assert_eq!(open(MessageOrigin::Centre, &key(1).public(), &bytes), Some(stored("r")));
    let unknown = seal(MessageOrigin::Centre, &key(1), &serde_json::json!({"type": "later"}));
    assert_eq!(open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), &unknown), None);
}

/// A report, a part of a result and messages of coordinators whose names are all `name`.
fn with_name(name: &str) -> [Option<String>; 7] {
    let report = |session: &str, previous: &str, begun: &str| {
        let report = serde_json::json!({"type": "report", "agent": "a", "session": session, "previous": [previous],
            "nonce": 1, "program": "1", "holds": null, "newest": null, "proof": "", "full": "", "waiting": 0,
            "begun": [[begun, 0]]});
        reopened::<FleetAgentMessage>(MessageOrigin::Agent, &report)
    };
    let part = serde_json::json!({"type": "result", "agent": "a", "run": name, "part": 0, "parts": 1, "content": ""});
    let stored = serde_json::json!({"type": "stored", "agent": "a", "run": name, "epoch": 1, "part": null, "digest": EMPTY});
    let mut with_run = calendar(1, 1);
    with_run["runs"][0]["id"] = name.into();
    let mut with_proof = calendar(1, 1);
    with_proof["proof"] = name.into();
    [
        report(name, "p", "b"),
        report("s", name, "b"),
        report("s", "p", name),
        reopened::<FleetAgentMessage>(MessageOrigin::Agent, &part),
        reopened::<CentreMessage>(MessageOrigin::Centre, &stored),
        reopened::<CentreMessage>(MessageOrigin::Centre, &with_run),
        reopened::<CentreMessage>(MessageOrigin::Centre, &with_proof),
    ]
}

/// What is in a message once it was opened; absent if it is refused.
fn reopened<T: DeserializeOwned + std::fmt::Debug>(
    origin: MessageOrigin,
    message: &serde_json::Value,
) -> Option<String> {
    let opened: Option<T> = open(origin, &key(1).public(), &seal(origin, &key(1), message));
    opened.map(|message| format!("{message:?}"))
}

/// A calendar with these numbers of specifications and runs.
fn calendar(specs: usize, runs: usize) -> serde_json::Value {
    let run = serde_json::json!({"id": "r", "schedule": "s\u{1b}[2J", "to": "b\r\n", "address": "\u{9b}b",
        "test_address": "\u{202e}", "port": 1, "spec": 0, "starts": 1, "ends": 2});
    serde_json::json!({"type": "calendar", "agent": "a", "epoch": 1, "version": 1, "proof": "", "until": 9,
        "set_up_ns": 1, "settle_ns": 1, "specs": vec![serde_json::json!({}); specs], "runs": vec![run; runs]})
}

#[test]
fn a_name_of_which_no_file_can_be_made_or_that_steers_a_terminal_is_refused() {
    assert!(with_name("5e7f-A_z").iter().all(Option::is_some));
    for name in ["../memory", "a/b", "a.b", "a b", "\u{1b}[2J", "a\nb", "\0", "é", &"a".repeat(129)] {
        assert_eq!(with_name(name), [const { None }; 7], "{name:?}");
    }
    // No proof is a proof of nothing.
    let [names @ .., proof] = with_name("");
    assert!(names.iter().all(Option::is_none) && proof.is_some());
}

#[test]
fn what_an_agent_says_of_a_run_that_starts_cannot_steer_a_terminal() {
    let bytes = seal(MessageOrigin::Centre, &key(1), &calendar(1, 1));
    let opened = open(MessageOrigin::Centre, &key(1).public(), &bytes);
    let Some(CentreMessage::Calendar(calendar)) = opened else { unreachable!("{opened:?}") };
    let AgentRun { schedule, to, address, test_address, .. } = &calendar.runs[0];
    let shown = [schedule.as_ref(), to.as_ref(), address.as_ref(), test_address.as_deref().unwrap()];
    assert_eq!(shown, ["s?[2J", "b  ", "?b", "?"]);
}

#[test]
fn a_list_that_is_too_long_is_refused_before_it_is_in_memory() {
    let taken = |message: &serde_json::Value| {
        let agent = reopened::<FleetAgentMessage>(MessageOrigin::Agent, message);
        agent.or(reopened::<CentreMessage>(MessageOrigin::Centre, message)).is_some()
    };
    assert!(taken(&calendar(MAX_RUNS, 1)) && !taken(&calendar(MAX_RUNS + 1, 1)));
    assert!(taken(&calendar(1, 1100)) && !taken(&calendar(1, MAX_RUNS + 1)));
    let report = |previous: usize, begun: usize| {
        serde_json::json!({"type": "report", "agent": "a", "session": "s", "previous": vec!["p"; previous],
            "nonce": 1, "program": "1", "holds": null, "newest": null, "proof": "", "full": "", "waiting": 0,
            "begun": vec![("r", 0); begun]})
    };
    assert!(taken(&report(16, 64)) && !taken(&report(65, 64)) && !taken(&report(16, 65)));
    let part = |content: &str| serde_json::json!({"type": "result", "agent": "a", "run": "r", "part": 0, "parts": 1, "content": content});
    let longest = "A".repeat(ResultPartText::MAX_CHARS);
    assert!(taken(&part(&longest)) && !taken(&part(&format!("{longest}A"))) && !taken(&part("\0")));
}

#[test]
fn a_small_result_that_asks_for_much_memory_is_refused() {
    use std::io::Write;
    let text = serde_json::to_vec(&document(String::new())).unwrap();
    let packed = |window: u32| {
        let mut frame = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        frame.window_log(window).unwrap();
        // Its length is not known when the window is chosen.
        frame.write_all(&text).and_then(|()| frame.flush()).unwrap();
        STANDARD_NO_PAD.encode(frame.finish().unwrap())
    };
    assert!(ResultDocument::of(&packed(MAX_WINDOW_LOG)).is_some());
    assert_eq!(ResultDocument::of(&packed(27)), None, "128 MiB for {} characters", packed(27).len());
}

#[test]
fn a_long_result_comes_in_parts_and_whole_again() {
    // Text that does not compress well.
    let log: String =
        (0..600_000u64).map(|at| format!("{:x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).collect();
    let whole = document(log);
    let parts = whole.parts();
    assert!(parts.len() > 2, "{}", parts.len());
    assert!(parts.iter().all(|part| part.len() <= ResultPartText::MAX_CHARS));
    assert_eq!(ResultDocument::of(&parts.concat()), Some(whole));
    assert_eq!(ResultDocument::of(&parts[..parts.len() - 1].concat()), None);
}

#[test]
fn a_result_that_becomes_too_long_or_has_no_end_is_refused() {
    let bomb = zstd::bulk::compress(&vec![b' '; MAX_RESULT_BYTES as usize + 10], 3).unwrap();
    assert_eq!(ResultDocument::of(&STANDARD_NO_PAD.encode(bomb)), None);
    let open = ResultDocument { state: CalendarRunState::Running, ..document(String::new()) };
    assert_eq!(ResultDocument::of(&open.parts().concat()), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_no_message(bytes: Vec<u8>, text in "[A-Za-z0-9+/]{0,400}") {
        prop_assert_eq!(open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), &bytes), None);
        prop_assert_eq!(ResultDocument::of(&text), None);
    }

    #[test]
    fn a_changed_byte_is_noticed(at: prop::sample::Index, to: u8) {
        let bytes = seal(MessageOrigin::Centre, &key(1), &stored("r"));
        let mut changed = bytes.clone();
        let at = at.index(bytes.len());
        prop_assume!(changed[at] != to);
        changed[at] = to;
        prop_assert_eq!(open::<CentreMessage>(MessageOrigin::Centre, &key(1).public(), &changed), None);
    }
}
