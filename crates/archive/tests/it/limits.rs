//! Limits for runs that clients of a server started.

use linerate_archive::{Archive, ArchiveError, EventStore, Filter, RetentionLimits, Store};
use linerate_model::{Body, Caveat, CaveatKind, Event, Outcome, RunLabels, RunStart, TestSpec, World};
use linerate_units::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::place::{TestPlace, on_both_databases};

on_both_databases!(
    the_oldest_runs_of_foreign_clients_make_room_and_those_of_ones_own_stay,
    foreign_clients_are_held_to_bytes_and_days_too_and_a_run_under_way_is_left_alone,
    a_log_with_long_foreign_texts_is_kept_and_found,
);

fn start() -> RunStart {
    RunStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-21T10:00:00Z".into(),
        world: World::Hosts,
        linerate: "0.1.0".into(),
        target: "server".into(),
        spec: TestSpec::default(),
    }
}

fn numbered(run: &str, log: Vec<Body>) -> Vec<Event> {
    let event = |(seq, body)| Event { run: run.into(), host: 0, seq, at: Timestamp::from_ns(seq), body };
    (0..).zip(log).map(event).collect()
}

fn limits(runs: u32, bytes: u64, oldest: &str) -> RetentionLimits {
    RetentionLimits {
        runs: Some(runs),
        bytes: Some(bytes),
        oldest: Some(oldest.into()),
        under_way: "2026-11-21T09:00:00Z".into(),
    }
}

/// A thousand letters that do not repeat: three quarters of a byte of information each.
fn incompressible(seed: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = StdRng::seed_from_u64(seed as u64);
    (0..1000).map(|_| char::from(LETTERS[random.random_range(0..64)])).collect()
}

/// A whole run with a log of some length; `of_foreign_client` if a client of the server started it.
fn keep(archive: &mut Archive, run: &str, of_foreign_client: Option<&RetentionLimits>, padding: usize) {
    if let Some(limits) = of_foreign_client {
        archive.admit_unknown_client(run, limits).unwrap();
    }
    let mut log = vec![Body::RunStarted(Box::new(start()))];
    log.extend((0..padding / 1000).map(|seed| {
        let caveat = Caveat { kind: CaveatKind::Partial, text: incompressible(seed).into() };
        Body::Caveat { flow: None, caveat }
    }));
    log.push(Body::RunEnded { outcome: Outcome::Completed, reason: None });
    archive.append(&numbered(run, log)).unwrap();
}

fn names(archive: &Archive) -> Vec<String> {
    archive.runs(&Filter::default()).unwrap().into_iter().map(|run| run.id.into_string()).collect()
}

fn the_oldest_runs_of_foreign_clients_make_room_and_those_of_ones_own_stay(place: &TestPlace) {
    let mut archive = place.open();
    keep(&mut archive, "own-1", None, 0);
    let all = limits(3, u64::MAX / 2, "2026-01-01T00:00:00Z");
    for run in ["a", "b", "c", "d", "e"] {
        keep(&mut archive, run, Some(&all), 0);
    }
    keep(&mut archive, "own-2", None, 100_000);
    assert_eq!(names(&archive), ["own-2", "e", "d", "c", "own-1"]);
    assert!(archive.events("a").is_err() && archive.events("c").unwrap().len() == 2);
}

fn foreign_clients_are_held_to_bytes_and_days_too_and_a_run_under_way_is_left_alone(place: &TestPlace) {
    let mut archive = place.open();
    let bytes = limits(1000, 18_000, "2026-01-01T00:00:00Z");
    for run in ["a", "b", "c", "d"] {
        keep(&mut archive, run, Some(&bytes), 9_000);
    }
    keep(&mut archive, "e", Some(&bytes), 0);
    // The two newest fit, each with some 7,000 bytes; the third does not.
    assert_eq!(names(&archive), ["e", "d", "c"]);
    archive.admit_unknown_client("f", &bytes).unwrap();
    archive.append(&numbered("f", vec![Body::RunStarted(Box::new(start()))])).unwrap();
    // All of them started earlier than this.
    archive.admit_unknown_client("g", &limits(1000, 18_000, "2026-12-01T00:00:00Z")).unwrap();
    assert_eq!(names(&archive), ["g", "f"], "f has no end yet");
    let late = RetentionLimits {
        under_way: "2026-11-30T00:00:00Z".into(),
        ..limits(1000, 18_000, "2026-12-01T00:00:00Z")
    };
    archive.admit_unknown_client("h", &late).unwrap();
    assert_eq!(names(&archive), ["h", "g"], "f was killed long ago, and g has not begun");
    assert!(archive.contains("h").unwrap() && !archive.contains("f").unwrap());
}

/// Two thousand characters of three bytes each that do not repeat, as a log from elsewhere may have them.
fn long_text(seed: u64) -> String {
    let mut random = StdRng::seed_from_u64(seed);
    (0..2000).map(|_| random.random_range('\u{4e00}'..'\u{9fa5}')).collect()
}

fn a_log_with_long_foreign_texts_is_kept_and_found(place: &TestPlace) {
    let mut archive = place.open();
    let (target, name) = (long_text(1), long_text(2));
    let labels = RunLabels { name: Some(name.as_str().into()), ..RunLabels::default() };
    let started = RunStart { target: target.as_str().into(), started_at: long_text(3).into(), ..start() };
    let log = numbered(
        "r",
        vec![
            Body::RunStarted(Box::new(started)),
            Body::Labelled(labels),
            Body::RunEnded { outcome: Outcome::Completed, reason: None },
        ],
    );
    archive.append(&log).unwrap();
    assert_eq!(archive.events("r").unwrap(), log);
    for text in [target, name] {
        let filter = Filter { name_or_target: Some(text), ..Filter::default() };
        assert_eq!(archive.runs(&filter).unwrap().len(), 1);
    }
    let long_id = numbered(&long_text(4), vec![Body::RunEnded { outcome: Outcome::Completed, reason: None }]);
    let refused = archive.append(&long_id);
    assert!(matches!(refused, Err(ArchiveError::LongId { .. })), "{refused:?}");
}
