//! Archives that earlier versions wrote.
use linerate_archive::{Archive, Filter, Store};
use linerate_model::{Cause, CaveatKind, PlanRecord, RunRecord};

use crate::folder::ArchiveTestFolder;

const PLAN: &str = "c6f4d01d38064767";

/// The archive of format 3 in `fixtures/v1`: a plan, and the two runs of its first trial.
fn version_1(folder: &ArchiveTestFolder) -> Archive {
    let path = folder.file("archive.sqlite");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/v1/archive.sqlite");
    std::fs::copy(fixture, &path).unwrap();
    Archive::open(&path).unwrap()
}

#[test]
fn runs_are_listed_with_the_names_of_today() {
    let folder = ArchiveTestFolder::new();
    let archive = version_1(&folder);
    let parts = archive.runs(&Filter { part_of: Some(PLAN.to_owned()), ..Filter::default() }).unwrap();
    let flows = parts.iter().flat_map(|run| &run.flows);
    let mut causes: Vec<&str> = flows.filter_map(|flow| flow.cause.as_deref()).collect();
    causes.sort_unstable();
    assert_eq!(causes, ["lag", "unknown"]);
}

#[test]
fn logs_are_read_as_if_this_version_had_written_them() {
    let folder = ArchiveTestFolder::new();
    let mut archive = version_1(&folder);
    let run = RunRecord::fold(&archive.events("ba87a43f2672d01e").unwrap());
    let flow = &run.flows[0];
    let all = [&run.caveats[..], &flow.caveats].concat();
    assert!(all.iter().all(|caveat| caveat.kind != CaveatKind::EventsDropped), "{all:?}");
    assert_eq!(flow.verdict.as_ref().unwrap().cause, Cause::Lag);
    assert_eq!(flow.receiver.as_ref().unwrap().total_bytes.get(), 123_504_264);
    assert_eq!(flow.byte_accounting.as_ref().unwrap().written_bytes.get(), 123_504_264);
    assert!(!run.group.unwrap().cross_traffic);

    let plan = PlanRecord::fold(&archive.events(PLAN).unwrap());
    let causes: Vec<&str> = plan.summaries.iter().flat_map(|one| &one.words).map(|word| &**word).collect();
    assert_eq!(causes.iter().filter(|cause| **cause == "lag").count(), 4, "{causes:?}");

    archive.rebuild("ba87a43f2672d01e").unwrap();
    assert_eq!(archive.runs(&Filter::default()).unwrap().len(), 3);
}
