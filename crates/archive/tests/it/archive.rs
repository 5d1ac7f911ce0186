//! The archive as a whole: what is written is read back, and failures are reported.
use std::path::Path;

use linerate_archive::{ArchiveError, Filter, Recorder, SqliteArchive, Store, open};
use linerate_model::flow::FlowId;
use linerate_model::metrics::{flow, host, port};
use linerate_model::{
    Body, Cause, Confidence, Direction, Event, EvidenceKey, Finding, FlowPlan, Outcome, PortSample, Readings,
    Rule, RunRecord, RunStart, Sample, Side, Tally, TestSpec, Transport, World,
};
use linerate_units::{Bitrate, Bytes, Ratio, Span, Timestamp};
use proptest::prelude::*;
use rusqlite::Connection;

use crate::folder::ArchiveTestFolder;

pub(crate) fn event(run: &str, seq: u64, at_ms: u64, body: Body) -> Event {
    Event { run: run.into(), host: 0, seq, at: Timestamp::START + Span::from_ms(at_ms), body }
}

fn started(run: &str, target: &str) -> Event {
    let start = RunStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-21T10:00:00Z".into(),
        world: World::Hosts,
        linerate: "0.1.0".into(),
        target: target.into(),
        spec: TestSpec::default(),
    };
    event(run, 0, 0, Body::RunStarted(start))
}

fn planned(run: &str, seq: u64) -> Event {
    let plan = FlowPlan {
        flow: FlowId(0),
        name: "download".into(),
        from: "server".into(),
        to: "laptop".into(),
        transport: Transport::Tcp,
        direction: Direction::Download,
        streams: 1,
    };
    event(run, seq, 1, Body::FlowPlanned(plan))
}

fn progress(run: &str, seq: u64, at_ms: u64, bytes: u64) -> Event {
    let body = Body::Progress {
        flow: FlowId(0),
        bytes: Bytes::new(bytes),
        elapsed: Span::from_ms(at_ms),
        srtt: None,
        retransmits: None,
    };
    event(run, seq, at_ms, body)
}

fn sample(run: &str, seq: u64, from_ms: u64, to_ms: u64, bytes: u64, busy: f64) -> Event {
    let mut readings = Readings::default();
    readings.put(flow::BYTES, Bytes::new(bytes));
    readings.put_some(host::BUSY, Ratio::new(busy));
    let instant = |ms| Timestamp::START + Span::from_ms(ms);
    let sample = Sample {
        side: Side::Receiver,
        start_ns: instant(from_ms),
        end_ns: instant(to_ms),
        outside: false,
        readings,
    };
    event(run, seq, to_ms, Body::Sample { flow: FlowId(0), sample })
}

/// Counts of the port `a>s` of an emulated network during the flow.
fn port(run: &str, seq: u64, from_ms: u64, to_ms: u64, dropped: u64, queue_max: u64) -> Event {
    let mut readings = Readings::default();
    readings.put(port::DROPPED, dropped);
    readings.put(port::QUEUE_MAX, Bytes::new(queue_max));
    readings.put_some(port::BUSY, Ratio::new(dropped as f64 / 10.0));
    let instant = |ms| Timestamp::START + Span::from_ms(ms);
    let (start_ns, end_ns) = (instant(from_ms), instant(to_ms));
    let sample = PortSample { start_ns, end_ns, outside: false, readings };
    event(run, seq, to_ms, Body::Port { flows: vec![FlowId(0)], port: "a>s".into(), sample })
}

/// A run from its start to its end: 3000 bytes in 2 s.
pub(crate) fn whole_run(run: &str, target: &str) -> Vec<Event> {
    let tally = Tally {
        bytes: Bytes::new(3000),
        total_bytes: Bytes::new(3000),
        elapsed: Span::from_secs(2),
        bitrate: Bitrate::from_bps(12_000.0).unwrap(),
        complete: true,
        ..Tally::default()
    };
    let verdict = Finding {
        cause: Cause::Link,
        rule: Rule::LinkFull,
        confidence: Confidence::Confirmed,
        share_of_time: None,
        text: "The link is full.".into(),
        evidence: [(EvidenceKey::RttNs, 1.5)].into(),
        remedy: None,
    };
    vec![
        started(run, target),
        planned(run, 1),
        sample(run, 2, 0, 500, 1000, 0.2),
        sample(run, 3, 500, 2000, 2000, 0.6),
        event(run, 4, 2000, Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally }),
        event(run, 5, 2000, Body::Verdict { flow: FlowId(0), verdict, also: Vec::new() }),
        event(run, 6, 2000, Body::RunEnded { outcome: Outcome::Completed, reason: None }),
    ]
}

pub(crate) fn record_all(path: &Path, events: &[Event]) {
    let mut recorder = Recorder::new(SqliteArchive::open(path).unwrap());
    for event in events {
        recorder.on(event).unwrap();
    }
}

pub(crate) fn number(path: &Path, sql: &str) -> f64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(&format!("SELECT CAST(({sql}) AS REAL)"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_run_comes_back_as_it_was_written() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("new/folder/archive.sqlite");
    let log = whole_run("7f3a01", "server");
    record_all(&path, &log);
    let archive = SqliteArchive::open(&path).unwrap();
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

#[test]
fn derived_tables_are_rebuilt_from_the_log_by_the_kind_of_each_metric() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    record_all(&path, &whole_run("r", "server"));
    let wipe = "DELETE FROM flow; DELETE FROM summary; UPDATE run SET derived_at = 0;";
    Connection::open(&path).unwrap().execute_batch(wipe).unwrap();
    let mut archive = SqliteArchive::open(&path).unwrap();
    // Before the rebuild, the list is derived from the log itself.
    assert_eq!(archive.runs(&Filter::default()).unwrap()[0].flows.len(), 1);
    assert_eq!(number(&path, "SELECT count(*) FROM flow"), 0.0);
    archive.rebuild("r").unwrap();
    assert_eq!(number(&path, "SELECT bitrate_bps FROM flow"), 12_000.0);
    let summary = |metric: &str, statistic: &str| {
        number(
            &path,
            &format!("SELECT value FROM summary WHERE metric = '{metric}' AND statistic = '{statistic}'"),
        )
    };
    assert_eq!(summary("flow.bytes", "sum"), 3000.0);
    assert_eq!(summary("flow.bytes", "max"), 2000.0);
    // (0.2 * 0.5 s + 0.6 * 1.5 s) / 2 s
    assert!((summary("host.busy", "mean") - 0.5).abs() < 1e-12);
    assert_eq!(summary("host.busy", "last"), 0.6);
    let sums_of_gauges = "SELECT count(*) FROM summary WHERE metric = 'host.busy' AND statistic = 'sum'";
    assert_eq!(number(&path, sums_of_gauges), 0.0);
}

#[test]
fn what_the_ports_of_an_emulated_network_counted_comes_back_and_can_be_queried() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut log = whole_run("r", "server");
    let end = log.len() - 1;
    log.splice(end..end, [port("r", 6, 0, 500, 1, 900), port("r", 7, 500, 2000, 5, 400)]);
    log[end + 2].seq = 8;
    record_all(&path, &log);
    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.events("r").unwrap(), log);
    let summary = |metric: &str, statistic: &str| {
        let which = format!("side = 'a>s' AND metric = '{metric}' AND statistic = '{statistic}'");
        number(&path, &format!("SELECT value FROM summary WHERE flow = 0 AND {which}"))
    };
    assert_eq!((summary("port.dropped", "sum"), summary("port.queue_max", "max")), (6.0, 900.0));
    // (0.1 * 0.5 s + 0.5 * 1.5 s) / 2 s
    assert!((summary("port.busy", "mean") - 0.4).abs() < 1e-12);
    let means_of_peaks =
        "SELECT count(*) FROM summary WHERE metric = 'port.queue_max' AND statistic = 'mean'";
    assert_eq!(number(&path, means_of_peaks), 0.0);
}

#[test]
fn a_killed_run_can_be_read_up_to_its_last_commit() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut recorder = Recorder::new(SqliteArchive::open(&path).unwrap());
    recorder.on(&started("r", "server")).unwrap();
    recorder.on(&planned("r", 1)).unwrap();
    for tenth in 1..=11 {
        recorder.on(&progress("r", 1 + tenth, tenth * 100, tenth * 1000)).unwrap();
    }
    // A process that dies here leaves its files as they are now, without closing them.
    let copy = folder.file("copy.sqlite");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(path.with_extension("sqlite-wal"), copy.with_extension("sqlite-wal")).unwrap();
    let archive = SqliteArchive::open(&copy).unwrap();
    let record = RunRecord::fold(&archive.events("latest").unwrap());
    // The flow was planned at 1 ms, so the first event half a second later, that at 600 ms, caused a commit.
    // The next commit is due half a second after the event at 700 ms, the first one after it.
    assert_eq!(record.flows[0].progress, Some((Bytes::new(6_000), Span::from_ms(600))));
    assert_eq!(record.outcome, None);
    let runs = archive.runs(&Filter::default()).unwrap();
    assert_eq!(runs[0].outcome, None);
    assert_eq!(runs[0].flows[0].bitrate.unwrap().bps(), 80_000.0);
}

#[test]
fn a_recorder_that_is_dropped_commits_what_waits() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    record_all(&path, &[started("r", "server"), planned("r", 1), progress("r", 2, 10, 7)]);
    assert_eq!(SqliteArchive::open(&path).unwrap().events("r").unwrap().len(), 3);
}

#[test]
fn runs_are_found_by_a_unique_beginning() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    for (run, target) in [("7f3a01", "a"), ("7f3a02", "b"), ("901234", "a"), ("7f3a", "c")] {
        record_all(&path, &whole_run(run, target));
    }
    let mut archive = SqliteArchive::open(&path).unwrap();
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
    assert_eq!(number(&path, "SELECT count(DISTINCT run) FROM event"), 3.0);
    assert_eq!(number(&path, "SELECT count(DISTINCT run) FROM summary"), 3.0);
}

#[test]
fn importing_a_log_twice_does_no_harm() {
    let folder = ArchiveTestFolder::new();
    let mut archive = SqliteArchive::open(&folder.file("archive.sqlite")).unwrap();
    let log = whole_run("r", "server");
    archive.append(&log).unwrap();
    archive.append(&log).unwrap();
    assert_eq!(archive.events("r").unwrap(), log);
    assert_eq!(archive.runs(&Filter::default()).unwrap()[0].event_count, 7);
}

#[test]
fn an_event_of_a_later_version_does_not_hide_the_others() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    record_all(&path, &whole_run("r", "server"));
    let change = r#"UPDATE event SET body = '{"kind":"teleported"}' WHERE seq = 3"#;
    Connection::open(&path).unwrap().execute(change, []).unwrap();
    let events = SqliteArchive::open(&path).unwrap().events("r").unwrap();
    assert_eq!(events.len(), 7);
    let record = RunRecord::fold(&events);
    assert!(record.caveats[0].text.contains("event 3"), "{:?}", record.caveats);
    assert_eq!(record.outcome, Some(Outcome::Completed));
}

#[test]
fn two_writers_share_one_file() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    std::thread::scope(|scope| {
        for run in ["left", "right"] {
            let path = &path;
            scope.spawn(move || {
                let mut recorder = Recorder::new(SqliteArchive::open(path).unwrap());
                recorder.on(&started(run, "server")).unwrap();
                for seq in 1..600 {
                    recorder.on(&progress(run, seq, seq * 100, seq)).unwrap();
                }
                recorder.flush().unwrap();
            });
        }
    });
    let archive = SqliteArchive::open(&path).unwrap();
    for run in ["left", "right"] {
        let numbers: Vec<u64> = archive.events(run).unwrap().iter().map(|event| event.seq).collect();
        assert_eq!(numbers, (0..600).collect::<Vec<u64>>());
    }
}

#[test]
fn a_locked_archive_does_not_lose_the_run() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut recorder = Recorder::new(SqliteArchive::open(&path).unwrap());
    let blocker = Connection::open(&path).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = recorder.on(&started("r", "server")).unwrap_err();
    assert!(matches!(error, ArchiveError::Locked { .. }), "{error}");
    assert!(error.to_string().contains("archive.sqlite"));
    // Not urgent, so it waits without an error.
    recorder.on(&progress("r", 1, 900, 1)).unwrap();
    blocker.execute_batch("ROLLBACK").unwrap();
    recorder.flush().unwrap();
    assert_eq!(recorder.store().events("r").unwrap().len(), 2);
}

#[test]
fn a_failed_append_leaves_nothing_behind() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut archive = SqliteArchive::open(&path).unwrap();
    // A trigger simulates a failure in the middle of a batch.
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON event WHEN NEW.seq = 4
                  BEGIN SELECT RAISE(ABORT, 'refused'); END;";
    Connection::open(&path).unwrap().execute_batch(refuse).unwrap();
    let error = archive.append(&whole_run("r", "server")).unwrap_err();
    assert!(matches!(error, ArchiveError::Sqlite { .. }), "{error}");
    assert_eq!(archive.runs(&Filter::default()).unwrap(), []);
}

#[test]
fn what_cannot_be_opened_says_why_and_what_to_do() {
    let folder = ArchiveTestFolder::new();
    let fail = |path: &Path| SqliteArchive::open(path).unwrap_err();

    let text = folder.file("notes.txt");
    std::fs::write(&text, "these are notes, not a database, and long enough to be looked at ".repeat(20))
        .unwrap();
    let error = fail(&text);
    assert!(matches!(error, ArchiveError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("notes.txt"));
    assert!(std::fs::read_to_string(&text).unwrap().starts_with("these are notes"));

    let foreign = folder.file("foreign.sqlite");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE bookmark (url TEXT)").unwrap();
    assert!(matches!(fail(&foreign), ArchiveError::Foreign { .. }));

    let newer = folder.file("newer.sqlite");
    drop(SqliteArchive::open(&newer).unwrap());
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(matches!(fail(&newer), ArchiveError::Newer { found: 99, known: 5, .. }));

    assert!(matches!(fail(&text.join("below/archive.sqlite")), ArchiveError::Folder { .. }));
    assert!(matches!(fail(&folder.file("")), ArchiveError::Open { .. }));
}

#[test]
fn a_damaged_page_is_named_as_damage() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    record_all(&path, &whole_run("r", "server"));
    Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    // Page 1 holds the schema; everything after it is overwritten.
    for byte in bytes.iter_mut().skip(4096) {
        *byte = 0xa5;
    }
    std::fs::write(&path, bytes).unwrap();
    let error = SqliteArchive::open(&path).and_then(|archive| archive.runs(&Filter::default())).unwrap_err();
    assert!(matches!(error, ArchiveError::Corrupt { .. }), "{error}");
}

#[test]
fn a_server_is_refused_without_showing_its_password() {
    let error = open("postgres://me:secret@db.example/linerate").unwrap_err().to_string();
    assert!(
        error.contains("postgres://db.example/linerate") && error.contains("this build does not support"),
        "{error}"
    );
    assert!(!error.contains("secret"), "{error}");
}

#[test]
#[ignore = "needs root to mount a small tmpfs"]
fn an_archive_on_a_read_only_medium_is_read_and_not_written() {
    let folder = ArchiveTestFolder::new();
    let disk = folder.file("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        assert!(std::process::Command::new(program).args(arguments).arg(&disk).status().unwrap().success());
    };
    mount("mount", &["-t", "tmpfs", "-o", "size=4m", "tmpfs"]);
    let path = disk.join("archive.sqlite");
    record_all(&path, &whole_run("7f3a01", "server"));
    mount("mount", &["-o", "remount,ro"]);
    let written = SqliteArchive::open(&path).map(drop);
    let read = SqliteArchive::open_to_read(&path).and_then(|mut archive| {
        Ok((archive.events("7f3a01")?.len(), archive.append(&[progress("r", 0, 0, 0)])))
    });
    mount("umount", &[]);
    assert!(matches!(written, Err(ArchiveError::ReadOnly { .. } | ArchiveError::Open { .. })), "{written:?}");
    let (events, appended) = read.unwrap();
    assert_eq!(events, whole_run("7f3a01", "server").len());
    assert!(matches!(appended, Err(ArchiveError::ReadOnly { .. })), "{appended:?}");
}

#[test]
#[ignore = "needs root to mount a small tmpfs"]
fn a_full_disk_is_named_and_what_was_written_stays() {
    let folder = ArchiveTestFolder::new();
    let disk = folder.file("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = |program: &str, arguments: &[&str]| {
        assert!(std::process::Command::new(program).args(arguments).arg(&disk).status().unwrap().success());
    };
    mount("mount", &["-t", "tmpfs", "-o", "size=256k", "tmpfs"]);
    let path = disk.join("archive.sqlite");
    let mut archive = SqliteArchive::open(&path).unwrap();
    let mut kept = 0;
    let error = loop {
        let seq = kept as u64;
        match archive.append(&[sample("r", seq, seq, seq + 1, seq, 0.5)]) {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    let read = archive.events("r").map(|events| events.len());
    drop(archive);
    mount("umount", &[]);
    assert!(matches!(error, ArchiveError::Full { .. }), "{error:?}");
    assert_eq!(read.unwrap(), kept);
}

fn any_event() -> impl Strategy<Value = Body> {
    let span = any::<u32>().prop_map(|ms| Span::from_ms(u64::from(ms)));
    prop_oneof![
        (any::<u64>(), span.clone(), proptest::option::of(span), proptest::option::of(any::<u64>()))
            .prop_map(|(bytes, elapsed, srtt, retransmits)| Body::Progress {
                flow: FlowId(0),
                bytes: Bytes::new(bytes),
                elapsed,
                srtt,
                retransmits
            }),
        (any::<u64>(), 0.0..1.0_f64, any::<u32>(), any::<u16>()).prop_map(|(bytes, busy, start, length)| {
            let (start, end) = (u64::from(start), u64::from(start) + u64::from(length));
            sample("r", 0, start, end, bytes, busy).body
        }),
        (any::<u32>(), any::<u16>(), any::<u64>(), any::<u64>()).prop_map(
            |(start, length, dropped, queue)| {
                let (start, end) = (u64::from(start), u64::from(start) + u64::from(length));
                port("r", 0, start, end, dropped, queue).body
            }
        ),
        (".*", any::<f64>().prop_filter("finite", |f| f.is_finite())).prop_map(|(text, value)| {
            let finding = Finding {
                cause: Cause::Unknown,
                rule: Rule::Unexplained,
                confidence: Confidence::Unexplained,
                share_of_time: None,
                text: text.into(),
                evidence: [(EvidenceKey::GoodputBps, value)].into(),
                remedy: None,
            };
            Body::Verdict { flow: FlowId(0), verdict: finding, also: Vec::new() }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_log_read_back_folds_into_the_same_record(bodies in proptest::collection::vec(any_event(), 0..40)) {
        let mut log = vec![started("r", "server"), planned("r", 1)];
        log.extend(bodies.into_iter().zip(2..).map(|(body, seq)| event("r", seq, seq * 50, body)));
        let folder = ArchiveTestFolder::new();
        let path = folder.file("archive.sqlite");
        record_all(&path, &log);
        let back = SqliteArchive::open(&path).unwrap().events("r").unwrap();
        prop_assert_eq!(RunRecord::fold(&back), RunRecord::fold(&log));
        prop_assert_eq!(back, log);
    }
}

#[test]
fn of_hundreds_of_runs_that_write_at_one_moment_each_gets_its_turn() {
    const RUNS: usize = 300;
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let together = std::sync::Barrier::new(RUNS);
    std::thread::scope(|scope| {
        for run in 0..RUNS {
            let (together, path, run) = (&together, &path, format!("{run:08x}"));
            scope.spawn(move || {
                together.wait();
                let mut archive = SqliteArchive::open(Path::new(path)).unwrap();
                for seq in 0..20 {
                    let mut one = started(&run, "server");
                    one.seq = seq;
                    archive.append(&[one]).unwrap();
                }
            });
        }
    });
    let archive = SqliteArchive::open(Path::new(&path)).unwrap();
    for run in (0..RUNS).map(|run| format!("{run:08x}")) {
        assert_eq!(archive.events(&run).unwrap().len(), 20, "{run}");
    }
}
