//! `linerate report` and `export --format html`: archived runs on one page, or the error if there is none.

use linerate_archive::{Archive, EventStore};
use linerate_model::{Body, Event};
use linerate_units::Timestamp;
use serde_json::{Value, json};

use crate::support::{Done, TestDir, fixtures};

impl TestDir {
    /// Imports a file of results; returns the names of its runs.
    fn import(&self, file: &str) -> Vec<String> {
        let file = fixtures().join("results").join(file).display().to_string();
        let output = self.run(&["import", "--json", &file]);
        let document = output.json();
        document["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    }

    fn page(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.file(file)).unwrap()
    }
}

fn printed(done: &Done) -> String {
    format!("{}{}", done.stderr, done.stdout)
}

/// Whether the program was built with its front end; otherwise it reports that.
fn built(place: &TestDir) -> bool {
    let output = place.run(&["report", "-o", "probe.html"]);
    let missing = printed(&output).contains("make ui");
    assert_eq!(missing, !place.folder.path().join("probe.html").exists(), "{}", printed(&output));
    !missing
}

#[test]
fn a_run_is_a_page_or_the_remedy_is_printed() {
    let place = TestDir::new();
    let run = place.import("iperf3/v321-udp-loss.json").remove(0);
    if !built(&place) {
        let output = place.run(&["report", &run]);
        assert_eq!(output.code, Some(1), "{}", printed(&output));
        let refused = place.run(&["test", "127.0.0.1:1", "--report", "a.html"]);
        assert_eq!(refused.code, Some(2), "{}", printed(&refused));
        assert!(printed(&refused).contains("make ui"));
        return;
    }
    let output = place.run(&["report", &run]);
    assert_eq!(output.code, Some(0), "{}", printed(&output));
    let name = printed(&output).trim().strip_prefix("written: ").unwrap().to_owned();
    let page = place.page(&name);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("80/2002"), "the loss that the file tells");
    for other in ["page.md", "page.json"] {
        let refused = place.run(&["report", "-o", other, &run]);
        assert_eq!(refused.code, Some(2), "{}", printed(&refused));
        assert!(printed(&refused).contains("must end in .html"), "{}", printed(&refused));
        assert!(!place.folder.path().join(other).exists(), "{other}");
    }
    // The other command prints the same page to stdout.
    let exported = place.run(&["export", "--format", "html", &run]);
    assert_eq!(exported.stdout, page);
}

#[test]
#[ignore = "needs the built front end (make ui)"]
fn several_runs_are_one_page_in_the_order_in_which_they_are_named() {
    let place = TestDir::new();
    let first = place.import("iperf3/v321-udp-loss.json").remove(0);
    let second = place.import("ttcp/pcattcp-transmit.txt").remove(0);
    let output = place.run(&["report", &second, &first, "-o", "both.html"]);
    assert_eq!(output.code, Some(0), "{}", printed(&output));
    let page = place.page("both.html");
    let places = ["Side by side", "id=\"run-0\"", "780.3 Mb/s sent", "id=\"run-1\"", "80/2002"];
    let places: Vec<usize> = places.iter().map(|text| page.find(text).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
#[ignore = "needs the built front end (make ui)"]
fn what_is_not_there_is_named() {
    let place = TestDir::new();
    place.import("iperf3/v321-udp-loss.json");
    let output = place.run(&["report", "nowhere", "-o", "x.html"]);
    assert_eq!(output.code, Some(1));
    assert!(
        printed(&output).contains("nowhere") && !place.folder.path().join("x.html").exists(),
        "{}",
        printed(&output)
    );
    let output = place.run(&["report", "-o", "no/such/folder/x.html"]);
    let why = "no/such/folder/x.html: there is no folder no/such/folder";
    assert!(output.code == Some(2) && printed(&output).contains(why), "{}", printed(&output));
}

/// Events of a plan's log, which refers to two runs.
fn plan_log(runs: [&str; 2]) -> Vec<Event> {
    let point = "00000000000000aa";
    let trial = |repeat: usize| {
        let run = json!({ "flow": "ab", "run": runs[repeat], "outcome": "completed" });
        json!({ "kind": "trial_ended", "point": point, "repeat": repeat, "content": point, "runs": [run] })
    };
    let start = json!({
        "kind": "plan_started", "schema": "linerate.event/2", "started_at": "2026-01-02T03:04:05Z", "world": "hosts",
        "linerate": "0.1.0", "name": "windows", "about": "", "files": [{ "name": "a.toml", "text": "[plan]" }],
        "hosts": [], "flows": [], "axes": [], "points": [{ "id": point, "values": [] }], "repeats": 2,
        "order": "interleaved", "seed": 1, "estimate_ns": 1,
    });
    let bodies: Vec<Value> =
        vec![start, trial(0), trial(1), json!({ "kind": "run_ended", "outcome": "completed" })];
    let event = |(seq, body)| {
        let body: Body = serde_json::from_value(body).unwrap();
        Event { run: "plan-run".into(), host: 0, seq, at: Timestamp::from_ns(seq), body }
    };
    (0..).zip(bodies).map(event).collect()
}

#[test]
#[ignore = "needs the built front end (make ui)"]
fn a_plan_brings_its_runs_along_and_says_which_are_gone() {
    let place = TestDir::new();
    let run = place.import("iperf3/v321-udp-loss.json").remove(0);
    let mut archive = Archive::open(&place.folder.path().join("archive.sqlite")).unwrap();
    archive.append(&plan_log([&run, "gone-for-ever"])).unwrap();
    drop(archive);
    let output = place.run(&["report", "plan-run", "-o", "plan.html"]);
    assert_eq!(output.code, Some(0), "{}", printed(&output));
    let page = place.page("plan.html");
    let places = ["plan windows", "href=\"#run-0\"", "<code>gone-for-ever</code>", "id=\"run-0\"", "80/2002"];
    let places: Vec<usize> =
        places.iter().map(|text| page.find(text).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    let both = place.run(&["report", "plan-run", &run, "-o", "both.html"]);
    assert_eq!(both.code, Some(2), "{}", printed(&both));
    assert!(printed(&both).contains("give either the name of a plan"));
}
