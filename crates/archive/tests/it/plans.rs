//! Plans in the archive: runs with parts.
use linerate_archive::{Archive, EventStore, Filter, Store};
use linerate_model::{Body, Event, GroupPlace, Outcome, PlanPlace, PlanStart, RunStart, TestSpec, World};
use linerate_units::{Span, Timestamp};
use rusqlite::Connection;

use crate::folder::ArchiveTestFolder;
use crate::place::{TestPlace, on_both_databases};

fn event(run: &str, seq: u64, at_ms: u64, body: Body) -> Event {
    Event { run: run.into(), host: 0, seq, at: Timestamp::START + Span::from_ms(at_ms), body }
}

fn started(run: &str, target: &str) -> Event {
    let start = RunStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-22T09:00:00Z".into(),
        world: World::Hosts,
        linerate: "0.1.0".into(),
        target: target.into(),
        spec: TestSpec::default(),
    };
    event(run, 0, 0, Body::RunStarted(Box::new(start)))
}

on_both_databases!(a_plan_is_listed_and_its_parts_only_when_asked_for);

fn a_plan_is_listed_and_its_parts_only_when_asked_for(place: &TestPlace) {
    let mut archive = place.open();
    let plan = PlanStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-22T10:00:00Z".into(),
        world: World::Lab,
        linerate: "0.1.0".into(),
        name: "windows".into(),
        about: "".into(),
        notes: std::collections::BTreeMap::new(),
        files: Vec::new(),
        set: Vec::new(),
        hosts: Vec::new(),
        topology: None,
        flows: Vec::new(),
        axes: Vec::new(),
        method: None,
        search: None,
        points: Vec::new(),
        repeats: 1,
        order: "interleaved".into(),
        seed: 1,
        estimate: Span::ZERO,
    };
    let place = PlanPlace { run: "aaaa".into(), point: "0".into(), repeat: 0, flow: "f".into() };
    let grouped = GroupPlace {
        group: "windows".into(),
        start_after: Span::ZERO,
        cross_traffic: false,
        plan: Some(place),
    };
    let ended = |seq, outcome| event("aaaa", seq, seq, Body::RunEnded { outcome, reason: None });
    archive.append(&[started("cccc", "server")]).unwrap();
    archive.append(&[event("aaaa", 0, 0, Body::PlanStarted(Box::new(plan)))]).unwrap();
    // Killed after its first event: it is a part of the plan nevertheless.
    archive.append(&[event("bbbb", 0, 0, Body::Grouped(grouped))]).unwrap();
    archive.append(&[ended(1, Outcome::Interrupted)]).unwrap();
    let ids = |archive: &Archive, filter: &Filter| -> Vec<String> {
        archive.runs(filter).unwrap().into_iter().map(|run| run.id.into_string()).collect()
    };
    assert_eq!(ids(&archive, &Filter::default()), ["bbbb", "aaaa", "cccc"]);
    assert_eq!(ids(&archive, &Filter { whole: true, ..Filter::default() }), ["aaaa", "cccc"]);
    assert_eq!(ids(&archive, &Filter { part_of: Some("aaaa".into()), ..Filter::default() }), ["bbbb"]);
    assert_eq!(ids(&archive, &Filter { plan: Some("windows".into()), ..Filter::default() }), ["aaaa"]);
    assert_eq!(ids(&archive, &Filter { plan: Some("server".into()), ..Filter::default() }), [""; 0]);
    assert_eq!(archive.find("latest").unwrap(), "aaaa", "the newest that is no part");
    let head = |archive: &Archive| {
        archive.runs(&Filter { plan: Some("windows".into()), ..Filter::default() }).unwrap().remove(0)
    };
    assert!(head(&archive).is_plan && head(&archive).outcome == Some(Outcome::Interrupted));
    archive.append(&[event("aaaa", 2, 2, Body::PlanResumed)]).unwrap();
    assert_eq!(head(&archive).outcome, None, "it goes on");
    archive.append(&[ended(3, Outcome::Completed)]).unwrap();
    assert_eq!(head(&archive).outcome, Some(Outcome::Completed));
}

#[test]
fn an_archive_of_the_first_format_is_brought_to_this_one() {
    let folder = ArchiveTestFolder::new();
    let path = folder.file("old.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../../schema/0001_runs.sql")).unwrap();
    old.execute_batch("PRAGMA application_id = 1819177588; PRAGMA user_version = 1;").unwrap();
    old.execute_batch("INSERT INTO run (id, target) VALUES ('dddd', 'server')").unwrap();
    drop(old);
    let archive = Archive::open(&path).unwrap();
    let run = archive.runs(&Filter::default()).unwrap().remove(0);
    assert_eq!((run.id.as_str(), run.is_plan, run.part_of), ("dddd", false, None));
}
