//! The archive in both databases: what is written is read back, found, changed and removed.

use linerate_archive::{Archive, ArchiveError, EventStore, Filter, Recorder, Store};
use linerate_model::{Body, Caveat, CaveatKind, Event, Outcome, RunRecord};
use proptest::test_runner::{Config, TestRunner};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::archive::{any_event, event, planned, port, progress, sample, started, whole_run};
use crate::place::{TestPlace, on_both_databases};

on_both_databases!(
    a_run_comes_back_as_it_was_written,
    lists_are_derived_from_the_log_again,
    what_the_ports_of_an_emulated_network_counted_comes_back,
    a_recorder_that_is_dropped_commits_what_waits,
    runs_are_found_by_a_unique_beginning,
    importing_a_log_twice_does_no_harm,
    two_writers_share_one_archive,
    a_log_read_back_folds_into_the_same_record,
    a_long_log_is_kept_in_few_parts_and_stays_exact,
    what_comes_late_finds_its_place,
    runs_have_tags,
    too_many_runs_are_removed_with_their_parts_and_tagged_ones_stay,
    a_copy_has_everything,
    a_deleted_plan_leaves_none_of_its_runs,
    a_long_log_of_large_events_is_merged_only_at_its_end,
);

fn a_run_comes_back_as_it_was_written(place: &TestPlace) {
    let log = whole_run("7f3a01", "server");
    place.record_all(&log);
    let archive = place.open();
    assert_eq!(archive.events("7f3a01").unwrap(), log);
    let runs = archive.runs(&Filter::default()).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].event_count, runs[0].outcome), (7, Some(Outcome::Completed)));
    assert_eq!(runs[0].started_at.as_deref(), Some("2026-11-21T10:00:00Z"));
    let head = &runs[0].flows[0];
    assert_eq!(
        (head.name.as_str(), head.direction.as_str(), head.transport.as_str()),
        ("download", "download", "tcp")
    );
    assert_eq!(head.bitrate.unwrap().bps(), 12_000.0);
    assert_eq!(head.cause.as_deref(), Some("link"));
}

fn lists_are_derived_from_the_log_again(place: &TestPlace) {
    place.record_all(&whole_run("r", "server"));
    place.execute("DELETE FROM flow; UPDATE run SET derived_at = 0;");
    let mut archive = place.open();
    // Before the rebuild, the list is derived from the log itself.
    assert_eq!(archive.runs(&Filter::default()).unwrap()[0].flows.len(), 1);
    assert_eq!(place.number("SELECT count(*) FROM flow"), 0.0);
    archive.rebuild("r").unwrap();
    assert_eq!(place.number("SELECT bitrate_bps FROM flow"), 12_000.0);
}

fn what_the_ports_of_an_emulated_network_counted_comes_back(place: &TestPlace) {
    let mut log = whole_run("r", "server");
    let end = log.len() - 1;
    log.splice(end..end, [port("r", 6, 0, 500, 1, 900), port("r", 7, 500, 2000, 5, 400)]);
    log[end + 2].seq = 8;
    place.record_all(&log);
    assert_eq!(place.open().events("r").unwrap(), log);
}

fn a_recorder_that_is_dropped_commits_what_waits(place: &TestPlace) {
    let mut recorder = Recorder::new(place.open());
    for event in [started("r", "server"), planned("r", 1), progress("r", 2, 10, 7)] {
        recorder.on(&event).unwrap();
    }
    drop(recorder);
    assert_eq!(place.open().events("r").unwrap().len(), 3);
}

fn runs_are_found_by_a_unique_beginning(place: &TestPlace) {
    for (run, target) in [("7f3a01", "a"), ("7f3a02", "b"), ("901234", "a"), ("7f3a", "c")] {
        place.record_all(&whole_run(run, target));
    }
    let mut archive = place.open();
    assert_eq!(archive.find("9").unwrap(), "901234");
    assert_eq!(archive.find("7f3a").unwrap(), "7f3a");
    assert_eq!(archive.find("latest").unwrap(), "7f3a");
    assert!(
        matches!(archive.find("7f3").unwrap_err(), ArchiveError::Ambiguous { examples, .. } if examples.len() == 3)
    );
    assert!(matches!(archive.find("%").unwrap_err(), ArchiveError::NotFound { .. }));
    assert_eq!(archive.short_name("7f3a02").unwrap(), "7f3a02");
    assert_eq!(archive.short_name("901234").unwrap(), "9012");
    let ids = |filter: &Filter| -> Vec<String> {
        archive.runs(filter).unwrap().into_iter().map(|head| head.id.into_string()).collect()
    };
    assert_eq!(ids(&Filter::default()), ["7f3a", "901234", "7f3a02", "7f3a01"]);
    assert_eq!(ids(&Filter { name_or_target: Some("a".into()), ..Filter::default() }), ["901234", "7f3a01"]);
    assert_eq!(ids(&Filter { limit: Some(1), ..Filter::default() }), ["7f3a"]);
    assert_eq!(ids(&Filter { world: Some("lab".into()), ..Filter::default() }), [""; 0]);
    assert_eq!(ids(&Filter { since: Some("2026-11-22".into()), ..Filter::default() }), [""; 0]);
    archive.delete("90").unwrap();
    assert!(matches!(archive.events("901234").unwrap_err(), ArchiveError::NotFound { .. }));
    assert_eq!(place.number("SELECT count(DISTINCT run) FROM log_part"), 3.0);
    assert_eq!(place.number("SELECT count(DISTINCT run) FROM flow"), 3.0);
}

fn importing_a_log_twice_does_no_harm(place: &TestPlace) {
    let mut archive = place.open();
    let log = whole_run("r", "server");
    archive.append(&log).unwrap();
    archive.append(&log).unwrap();
    assert_eq!(archive.events("r").unwrap(), log);
    assert_eq!(archive.runs(&Filter::default()).unwrap()[0].event_count, 7);
}

fn two_writers_share_one_archive(place: &TestPlace) {
    std::thread::scope(|scope| {
        for run in ["left", "right"] {
            scope.spawn(move || {
                let mut recorder = Recorder::new(place.open());
                recorder.on(&started(run, "server")).unwrap();
                for seq in 1..600 {
                    recorder.on(&progress(run, seq, seq * 100, seq)).unwrap();
                }
                recorder.flush().unwrap();
            });
        }
    });
    let archive = place.open();
    for run in ["left", "right"] {
        let numbers: Vec<u64> = archive.events(run).unwrap().iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (0..600).collect::<Vec<u64>>());
    }
}

fn a_log_read_back_folds_into_the_same_record(place: &TestPlace) {
    let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
    let bodies = proptest::collection::vec(any_event(), 0..40);
    TestRunner::new(config)
        .run(&bodies, |bodies| {
            let mut log = vec![started("r", "server"), planned("r", 1)];
            log.extend(bodies.into_iter().zip(2..).map(|(body, seq)| event("r", seq, seq * 50, body)));
            place.record_all(&log);
            let mut archive = place.open();
            let back = archive.events("r").unwrap();
            archive.delete("r").unwrap();
            proptest::prop_assert_eq!(RunRecord::fold(&back), RunRecord::fold(&log));
            proptest::prop_assert_eq!(back, log);
            Ok(())
        })
        .unwrap();
}

/// A log with this number of samples between its start and its end.
fn long_run(run: &str, samples: u64) -> Vec<Event> {
    let mut log = whole_run(run, "server");
    let end = log.split_off(2);
    log.extend((2..samples + 2).map(|seq| sample(run, seq, seq * 100, seq * 100 + 100, seq * 31 % 977, 0.5)));
    log.extend(end.into_iter().zip(samples + 2..).map(|(event, seq)| Event { seq, ..event }));
    log
}

fn a_long_log_is_kept_in_few_parts_and_stays_exact(place: &TestPlace) {
    let log = long_run("r", 9_000);
    let mut archive = place.open();
    // Ten events at a time, as in a run of a quarter of an hour.
    for events in log[..8_000].chunks(10) {
        archive.append(events).unwrap();
    }
    let parts = "SELECT count(*) FROM log_part";
    assert!(place.number(parts) < 130.0, "while it runs: {}", place.number(parts));
    assert_eq!(archive.events("r").unwrap(), log[..8_000]);
    archive.append(&log[8_000..]).unwrap();
    assert_eq!(place.number(parts), 3.0);
    assert_eq!(archive.events("r").unwrap(), log);
    assert_eq!(archive.runs(&Filter::default()).unwrap()[0].event_count, log.len() as u64);
    assert_eq!(
        place.number("SELECT bytes FROM run"),
        place.number("SELECT sum(length(content)) FROM log_part")
    );
    let text: usize = log.iter().map(|event| serde_json::to_string(&event.body).unwrap().len()).sum();
    assert!(place.number("SELECT bytes FROM run") < text as f64 / 8.0);
}

fn what_comes_late_finds_its_place(place: &TestPlace) {
    let log = long_run("r", 30);
    let mut archive = place.open();
    // The end first, then every third one, then all: what is there already is not replaced.
    archive.append(&log[30..]).unwrap();
    archive.append(&log.iter().step_by(3).cloned().collect::<Vec<_>>()).unwrap();
    let other: Vec<Event> = log.iter().map(|event| Event { host: 7, ..event.clone() }).collect();
    archive.append(&other).unwrap();
    let back = archive.events("r").unwrap();
    assert_eq!(
        back.iter().map(|event| event.seq).collect::<Vec<_>>(),
        (0..log.len() as u64).collect::<Vec<_>>()
    );
    for event in &back {
        let late = event.seq < 30 && event.seq % 3 != 0;
        assert_eq!(event.host, if late { 7 } else { 0 }, "{}", event.seq);
    }
    archive.vacuum().unwrap();
    assert_eq!(archive.events("r").unwrap(), back);
    assert_eq!(place.number("SELECT event_count FROM run"), log.len() as f64);
}

fn runs_have_tags(place: &TestPlace) {
    for run in ["a1", "a2", "a3"] {
        place.record_all(&whole_run(run, "server"));
    }
    let mut archive = place.open();
    for (run, tag) in [("a1", "keep"), ("a1", "keep"), ("a3", "keep"), ("a3", "before-upgrade")] {
        archive.tag(run, tag).unwrap();
    }
    let tagged = |archive: &Archive, tag: &str| -> Vec<String> {
        let filter = Filter { tag: Some(tag.into()), ..Filter::default() };
        archive.runs(&filter).unwrap().into_iter().map(|head| head.id.into_string()).collect()
    };
    assert_eq!(tagged(&archive, "keep"), ["a3", "a1"]);
    assert_eq!(archive.runs(&Filter::default()).unwrap()[0].tags, ["before-upgrade", "keep"]);
    assert!(archive.untag("a3", "keep").unwrap());
    assert!(!archive.untag("a3", "keep").unwrap());
    assert_eq!(tagged(&archive, "keep"), ["a1"]);
    for bad in ["", "two words", "a,b", "\u{1b}[2J", &"x".repeat(65)] {
        assert!(matches!(archive.tag("a1", bad), Err(ArchiveError::BadTag { .. })), "{bad:?}");
    }
    assert!(matches!(archive.tag("nobody", "x"), Err(ArchiveError::NotFound { .. })));
    // Importing the log again, and deriving its rows again, keeps what users said.
    archive.append(&whole_run("a1", "server")).unwrap();
    archive.rebuild("a1").unwrap();
    assert_eq!(tagged(&archive, "keep"), ["a1"]);
}

fn too_many_runs_are_removed_with_their_parts_and_tagged_ones_stay(place: &TestPlace) {
    use linerate_archive::RetentionLimits;
    for run in ["a1", "a2", "a3", "a4", "a5"] {
        place.record_all(&whole_run(run, "server"));
    }
    // Killed while it ran.
    place.record_all(&[started("b1", "server"), planned("b1", 1)]);
    let mut archive = place.open();
    archive.tag("a1", "keep").unwrap();
    place.execute("UPDATE run SET part_of = 'a2' WHERE id = 'a3'");
    let active = RetentionLimits { under_way: "2026-11-21T09:00:00Z".into(), ..RetentionLimits::default() };
    let ids = |heads: Vec<linerate_model::RunHead>| -> Vec<String> {
        heads.into_iter().map(|head| head.id.into_string()).collect()
    };
    let excess = |archive: &Archive, limits: &RetentionLimits| ids(archive.excess(limits).unwrap());
    assert_eq!(excess(&archive, &active), [""; 0], "no limit, no excess");
    let two = RetentionLimits { runs: Some(2), ..active.clone() };
    assert_eq!(excess(&archive, &two), ["a4", "a2"], "a1 has a tag, and a3 is a part of a2");
    archive.tag("a3", "keep").unwrap();
    assert_eq!(excess(&archive, &two), ["a4"], "a plan stays with a run that has a tag");
    assert!(archive.untag("a3", "keep").unwrap());
    let bytes = place.number("SELECT max(bytes) FROM run WHERE id LIKE 'a%'") as u64;
    let size = |runs: u64| RetentionLimits { bytes: Some(bytes * runs + bytes / 2), ..active.clone() };
    assert_eq!(excess(&archive, &size(3)), ["a2"], "a plan counts with its runs");
    assert_eq!(excess(&archive, &size(5)), [""; 0]);
    let old = RetentionLimits { oldest: Some("2026-11-22".into()), ..active };
    assert_eq!(excess(&archive, &old), ["a5", "a4", "a2"], "b1 may be active");
    let later = RetentionLimits { under_way: "2026-11-22T10:00:00Z".into(), ..old };
    assert_eq!(excess(&archive, &later), ["b1", "a5", "a4", "a2"]);
    assert_eq!(archive.prune(&two).unwrap(), 3);
    assert_eq!(ids(archive.runs(&Filter::default()).unwrap()), ["b1", "a5", "a1"]);
    assert_eq!(place.number("SELECT count(DISTINCT run) FROM log_part"), 3.0);
    archive.vacuum().unwrap();
    assert_eq!(archive.events("a5").unwrap(), whole_run("a5", "server"));
    assert_eq!((archive.count(&Filter::default()).unwrap(), archive.size_bytes().unwrap() > 8192), (3, true));
}

fn a_deleted_plan_leaves_none_of_its_runs(place: &TestPlace) {
    for run in ["a1", "a2", "a3"] {
        place.record_all(&whole_run(run, "server"));
    }
    place.execute("UPDATE run SET part_of = 'a1' WHERE id = 'a2'");
    let mut archive = place.open();
    archive.delete("a1").unwrap();
    assert_eq!(archive.count(&Filter::default()).unwrap(), 1);
    assert!(archive.events("a2").is_err() && archive.events("a3").is_ok());
}

/// What was merged into a full part is not read and written again with each later merge.
fn a_long_log_of_large_events_is_merged_only_at_its_end(place: &TestPlace) {
    // Letters that do not repeat, so that the size of a part is that of its text.
    let large = |seq: u64| {
        let mut random = StdRng::seed_from_u64(seq);
        let text: String = (0..1500).map(|_| char::from(random.random_range(b'0'..=b'z'))).collect();
        let caveat = Caveat { kind: CaveatKind::Partial, text: text.into() };
        event("r", seq, seq, Body::Caveat { flow: None, caveat })
    };
    let mut archive = place.open();
    // Bytes of the parts when they are removed.
    place.execute(match place {
        TestPlace::File(_) => {
            "CREATE TABLE removed (bytes INTEGER);
             CREATE TRIGGER removal AFTER DELETE ON log_part
             BEGIN INSERT INTO removed VALUES (length(OLD.content)); END"
        }
        TestPlace::Server(_) => {
            "CREATE TABLE removed (bytes BIGINT);
             CREATE FUNCTION removal() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN INSERT INTO removed VALUES (length(OLD.content)); RETURN OLD; END';
             CREATE TRIGGER removal AFTER DELETE ON log_part FOR EACH ROW EXECUTE FUNCTION removal()"
        }
    });
    let log: Vec<Event> = (0..12_800).map(large).collect();
    for events in log.chunks(10) {
        archive.append(events).unwrap();
    }
    assert_eq!(archive.events("r").unwrap(), log);
    let (removed, stored) =
        (place.number("SELECT sum(bytes) FROM removed"), place.number("SELECT bytes FROM run"));
    assert!(removed < stored * 4.0, "{removed} bytes were removed for {stored} that are there");
}

fn a_copy_has_everything(place: &TestPlace) {
    for run in ["a1", "a2"] {
        place.record_all(&whole_run(run, "server"));
    }
    let mut archive = place.open();
    archive.tag("a1", "keep").unwrap();
    place.record_all(&whole_run("a3", "server")[..4]);
    let heads = archive.runs(&Filter::default()).unwrap();
    let there = TestPlace::file();
    let TestPlace::File(folder) = &there else { unreachable!() };
    let file = folder.file("copy.sqlite");
    archive.backup(&file).unwrap();
    let mut copy = Archive::open(&file).unwrap();
    assert_eq!(copy.runs(&Filter::default()).unwrap(), heads);
    assert_eq!(copy.events("a3").unwrap(), archive.events("a3").unwrap());
    let error = archive.backup(&file).unwrap_err();
    assert!(
        matches!(error, ArchiveError::Exists { .. }) && error.to_string().contains("copy.sqlite"),
        "{error}"
    );
    // Back, into an archive that has one run more and the beginning of another.
    place.execute("DELETE FROM run WHERE id = 'a2'");
    copy.append(&whole_run("a3", "server")).unwrap();
    place.record_all(&whole_run("a4", "server"));
    assert_eq!(copy.copy_to(&mut archive).unwrap(), 1);
    assert_eq!(archive.events("a3").unwrap(), whole_run("a3", "server"));
    assert_eq!(archive.events("a2").unwrap(), whole_run("a2", "server"));
    assert_eq!(archive.count(&Filter::default()).unwrap(), 4);
    assert_eq!(archive.runs(&Filter { tag: Some("keep".into()), ..Filter::default() }).unwrap().len(), 1);
}
