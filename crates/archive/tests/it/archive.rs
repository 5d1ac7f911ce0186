//! The archive as a whole: what is written is read back, and failures are reported.
use std::path::Path;

use linerate_archive::{Archive, ArchiveError, EventStore, Filter, Recorder, Store};
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

pub(crate) fn started(run: &str, target: &str) -> Event {
    let start = RunStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-21T10:00:00Z".into(),
        world: World::Hosts,
        linerate: "0.1.0".into(),
        target: target.into(),
        spec: TestSpec::default(),
    };
    event(run, 0, 0, Body::RunStarted(Box::new(start)))
}

pub(crate) fn planned(run: &str, seq: u64) -> Event {
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

pub(crate) fn progress(run: &str, seq: u64, at_ms: u64, bytes: u64) -> Event {
    let body = Body::Progress {
        flow: FlowId(0),
        bytes: Bytes::new(bytes),
        elapsed: Span::from_ms(at_ms),
        srtt: None,
        retransmits: None,
    };
    event(run, seq, at_ms, body)
}

pub(crate) fn sample(run: &str, seq: u64, from_ms: u64, to_ms: u64, bytes: u64, busy: f64) -> Event {
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
pub(crate) fn port(run: &str, seq: u64, from_ms: u64, to_ms: u64, dropped: u64, queue_max: u64) -> Event {
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
    let mut recorder = Recorder::new(Archive::open(path).unwrap());
    for event in events {
        recorder.on(event).unwrap();
    }
}

pub(crate) fn number(path: &Path, sql: &str) -> f64 {
    let connection = Connection::open(path).unwrap();
    connection.query_row(&format!("SELECT CAST(({sql}) AS REAL)"), [], |row| row.get(0)).unwrap()
}

#[test]
fn a_killed_run_can_be_read_up_to_its_last_commit() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut recorder = Recorder::new(Archive::open(&path).unwrap());
    recorder.on(&started("r", "server")).unwrap();
    recorder.on(&planned("r", 1)).unwrap();
    for tenth in 1..=11 {
        recorder.on(&progress("r", 1 + tenth, tenth * 100, tenth * 1000)).unwrap();
    }
    // A process that dies here leaves its files as they are now, without closing them.
    let copy = folder.file("copy.sqlite");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::copy(path.with_extension("sqlite-wal"), copy.with_extension("sqlite-wal")).unwrap();
    let archive = Archive::open(&copy).unwrap();
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
fn a_locked_archive_does_not_lose_the_run() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut recorder = Recorder::new(Archive::open(&path).unwrap());
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

/// Whoever closes a file last holds it for a moment, which is long on a busy machine.
#[test]
fn readers_wait_for_a_file_that_another_program_holds() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    record_all(&path, &whole_run("r", "server"));
    let holder = Connection::open(&path).unwrap();
    holder
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; UPDATE run SET small_parts = 0")
        .unwrap();
    let (send, held) = std::sync::mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        // Longer than writers wait.
        let _ = held.recv_timeout(std::time::Duration::from_millis(700));
        holder.execute_batch("COMMIT").unwrap();
    });
    assert_eq!(Archive::open(&path).unwrap().runs(&Filter::default()).unwrap().len(), 1);
    holder.join().unwrap();
    drop(send);
}

#[test]
fn a_failed_append_leaves_nothing_behind() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("archive.sqlite");
    let mut archive = Archive::open(&path).unwrap();
    // A trigger simulates a failure in the middle of a batch.
    let refuse = "CREATE TRIGGER refuse BEFORE UPDATE OF outcome ON run
                  BEGIN SELECT RAISE(ABORT, 'refused'); END;";
    Connection::open(&path).unwrap().execute_batch(refuse).unwrap();
    let error = archive.append(&whole_run("r", "server")).unwrap_err();
    assert!(matches!(error, ArchiveError::Failed { .. }), "{error}");
    assert_eq!(archive.runs(&Filter::default()).unwrap(), []);
}

#[test]
fn what_cannot_be_opened_says_why_and_what_to_do() {
    let folder = ArchiveTestFolder::new();
    let fail = |path: &Path| Archive::open(path).unwrap_err();

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
    drop(Archive::open(&newer).unwrap());
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    assert!(matches!(fail(&newer), ArchiveError::Newer { found: 99, known: 6, .. }));

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
    let error = Archive::open(&path).and_then(|archive| archive.runs(&Filter::default())).unwrap_err();
    assert!(matches!(error, ArchiveError::Corrupt { .. }), "{error}");
}

/// Waits for a moment; false.
#[expect(clippy::disallowed_methods, reason = "this crate has no clock; a test waits for a medium")]
fn waited() -> bool {
    std::thread::sleep(std::time::Duration::from_millis(100));
    false
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
    // A child that another test has just started may still have a file open for writing.
    let remount = || {
        let mut command = std::process::Command::new("mount");
        command.args(["-o", "remount,ro"]).arg(&disk).stderr(std::process::Stdio::null());
        command.status().unwrap().success()
    };
    assert!((0..100).any(|_| remount() || waited()), "the medium does not become read-only");
    let written = Archive::open(&path).map(drop);
    let read = Archive::open_to_read(&path).and_then(|mut archive| {
        Ok((archive.events("7f3a01")?.len(), archive.append(&[progress("r", 0, 0, 0)])))
    });
    // A child that another test has just started may still have its files.
    mount("umount", &["--lazy"]);
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
    let mut archive = Archive::open(&path).unwrap();
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
    // A child that another test has just started may still have its files.
    mount("umount", &["--lazy"]);
    assert!(matches!(error, ArchiveError::Full { .. }), "{error:?}");
    assert_eq!(read.unwrap(), kept);
}

pub(crate) fn any_event() -> impl Strategy<Value = Body> {
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
                let mut archive = Archive::open(Path::new(path)).unwrap();
                for seq in 0..20 {
                    let mut one = started(&run, "server");
                    one.seq = seq;
                    archive.append(&[one]).unwrap();
                }
            });
        }
    });
    let archive = Archive::open(Path::new(&path)).unwrap();
    for run in (0..RUNS).map(|run| format!("{run:08x}")) {
        assert_eq!(archive.events(&run).unwrap().len(), 20, "{run}");
    }
}
