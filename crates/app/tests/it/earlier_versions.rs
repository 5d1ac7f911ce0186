//! Files that version 1 of the formats wrote, read by the program as a user runs it.

use serde_json::Value;

use crate::support::{TestDir, fixtures};

/// An archive of version 1.
fn archive() -> TestDir {
    let archive = TestDir::in_fixtures("v1");
    std::fs::copy(fixtures().join("v1/archive.sqlite"), archive.folder.file("archive.sqlite")).unwrap();
    archive
}

impl TestDir {
    fn text(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done.stdout
    }
}

fn kinds(document: &Value) -> Vec<&str> {
    document["caveats"].as_array().unwrap().iter().map(|caveat| caveat["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_run_of_an_archive_has_its_figures_under_their_new_names() {
    let archive = archive();
    let run = archive.json(&["show", "ba87", "--json"]);
    let flow = &run["flows"][0];
    assert_eq!((&run["schema"], &flow["verdict"]["cause"]), (&"linerate.result/2".into(), &"lag".into()));
    assert_eq!(flow["byte_accounting"]["written_bytes"], 123_504_264);
    assert_eq!(flow["byte_accounting"]["steps"][0]["point"], "sender_socket");
    assert_eq!(flow["ceilings"].as_array().unwrap().len(), 4);
    assert_eq!(run["run"]["group_start"]["start_error_ns"], 118_619);
    assert!(!kinds(&run).contains(&"events_dropped"), "{run:#}");
    let log = archive.text(&["export", "ba87", "--format", "jsonl"]);
    assert!(log.contains(r#""schema":"linerate.event/2""#) && !log.contains("linerate.event/1"));
}

#[test]
fn a_plan_of_an_archive_has_its_table() {
    let archive = archive();
    let plan = archive.json(&["show", "c6f4", "--json"]);
    assert_eq!(plan["schema"], "linerate.plan-result/2");
    assert_eq!(plan["plan"]["flows"][1]["cross_traffic"], true);
    assert!(plan["trials"][0]["runs"][0]["start_error_ns"].is_u64(), "{plan:#}");
    assert!(kinds(&plan).is_empty(), "{plan:#}");
    assert!(archive.text(&["history", "--all"]).contains("lag"));
}

#[test]
fn logs_are_imported_and_results_are_checked() {
    let archive = archive();
    archive.text(&["import", "tcp.jsonl"]);
    let flow = &archive.json(&["show", "e950", "--json"])["flows"][0];
    assert_eq!(flow["follow_ups"][0]["question"], "ports");
    let checked = archive.json(&["check", "--json", "result-no-sampling.json", "udp.jsonl"]);
    assert_eq!(checked["counts"]["impossible"], 0, "{checked:#}");
    assert!(checked["inputs"].as_array().unwrap().iter().all(|input| input.get("error").is_none()));
}
