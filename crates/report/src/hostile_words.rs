//! Tests that no format passes on a hostile text from a peer or file unchanged.
//!
//! The texts are found in the log itself: a hostile text replaces each string and each key of a sample log if
//! the event can still be parsed. So fields that are added later are tested too. No format cleans text:
//! decoding does.

use linerate_model::flow::FlowId;
use linerate_model::foreign_text::is_forbidden;
use linerate_model::{Body, Event, FlowHead, PlanRecord, RunLabels, RunRecord};
use serde_json::Value;

use crate::picture::Pictures;
use crate::{
    IntervalRows, Live, RunRow, TextLayout, csv, history_table, html, markdown, plan, plot, samples_of_plans,
    samples_of_runs as runs, text,
};

/// Clears the screen, ends the line, forges a line, changes the window title, reorders text, and starts as a
/// formula.
const HOSTILE: &str = "=cmd()\u{1b}[2J\r\nforged: line\t\u{9b}31m\u{7f}\u{1b}]0;title\u{7}\u{202e}txt\u{2066}\u{200f}\u{61c}\u{2028}\u{e0041}\u{0}";

/// The event with every free string replaced, and a hostile key added to each map with free keys. `tried`
/// counts them.
fn hostile(event: &Event, tried: &mut usize) -> Event {
    let mut whole = serde_json::to_value(event).unwrap();
    for path in maps(&whole, String::new()) {
        let kept = whole.clone();
        let map = whole.pointer_mut(&path).and_then(Value::as_object_mut).unwrap();
        let Some(value) = map.values().next().cloned() else { continue };
        map.insert(format!("{HOSTILE}key"), value);
        // Structs ignore an unknown key, so the key is kept only in maps.
        let read = serde_json::from_value::<Event>(whole.clone());
        let taken = read.ok().and_then(|event| serde_json::to_value(event).ok()).is_some_and(|read| {
            read.pointer(&path)
                .and_then(Value::as_object)
                .is_some_and(|map| map.keys().any(|key| key.ends_with("key")))
        });
        if taken { *tried += 1 } else { whole = kept }
    }
    for path in paths(&whole, String::new()) {
        let kept = whole.pointer_mut(&path).map(|found| std::mem::replace(found, HOSTILE.into())).unwrap();
        let good = serde_json::from_value::<Event>(whole.clone()).is_ok();
        // These names connect rows of the log, so a hostile log must keep them consistent.
        if good {
            *tried += 1;
        } else {
            *whole.pointer_mut(&path).unwrap() = kept;
        }
    }
    serde_json::from_value(whole).unwrap()
}

/// JSON pointers of the strings in a document (RFC 6901).
fn paths(document: &Value, at: String) -> Vec<String> {
    let below = |key: &str, value: &Value| {
        paths(value, format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")))
    };
    match document {
        Value::String(_) => vec![at],
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(number, value)| below(&number.to_string(), value)).collect()
        }
        Value::Object(members) => members.iter().flat_map(|(key, value)| below(key, value)).collect(),
        _ => Vec::new(),
    }
}

/// JSON pointers of the objects in a document.
fn maps(document: &Value, at: String) -> Vec<String> {
    let Value::Object(members) = document else { return Vec::new() };
    let below = members.iter().filter(|(key, _)| !key.contains(['~', '/']));
    let below = below.flat_map(|(key, value)| maps(value, format!("{at}/{key}"))).collect::<Vec<_>>();
    [at].into_iter().chain(below).collect()
}

fn all_hostile(log: &[Event]) -> Vec<Event> {
    let mut tried = 0;
    let log: Vec<Event> = log.iter().map(|event| hostile(event, &mut tried)).collect();
    assert!(tried > 3, "hardly a word was tried: {tried}");
    log
}

/// Findings, all shown at once.
#[derive(Default)]
struct HostileFindings(Vec<String>);

impl HostileFindings {
    fn check(&mut self, what: &str, output: &[u8]) {
        self.check_letters(what, output);
        if output.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"forged")) {
            self.0.push(format!("{what}: a forged line"));
        }
    }

    /// Checks documents whose line structure does not matter.
    fn check_letters(&mut self, what: &str, output: &[u8]) {
        let output = std::str::from_utf8(output).unwrap().replace("\r\n", "\n");
        for (at, c) in output.char_indices().filter(|(_, c)| is_forbidden(*c) && *c != '\n') {
            let from = output.floor_char_boundary(at.saturating_sub(60));
            self.0.push(format!("{what}: {c:?} after {:?}", &output[from..at]));
        }
    }

    fn check_table(&mut self, what: &str, output: &[u8]) {
        self.check(what, output);
        let mut rows = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(output);
        for row in rows.records().map(Result::unwrap) {
            let formulas = row.iter().filter(|cell| cell.trim_start().starts_with('='));
            self.0.extend(formulas.map(|cell| format!("{what}: the formula {cell}")));
        }
    }

    fn report(mut self) {
        self.0.dedup();
        self.0.truncate(40);
        assert!(self.0.is_empty(), "{:#?}", self.0);
    }
}

/// A page without its packed logs.
fn without_data(page: &str) -> String {
    let mut rest = page;
    let mut shown = String::new();
    while let Some((before, script)) = rest.split_once("<script") {
        shown += before;
        rest = script.split_once("</script>").map_or("", |(_, after)| after);
    }
    shown + rest
}

fn sample_logs() -> Vec<Vec<Event>> {
    let logs = [
        runs::tcp_run(),
        runs::udp_run(),
        runs::lab_run(),
        runs::killed_run(),
        runs::impossible_run(),
        runs::sweep_run(),
    ];
    let labels = RunLabels { name: Some("n".into()), notes: [("key".into(), "note".into())].into() };
    let labelled = |log: &Vec<Event>| {
        let mut log = log.clone();
        let last = log.last().unwrap();
        log.push(Event { seq: last.seq + 1, body: Body::Labelled(labels.clone()), ..last.clone() });
        all_hostile(&log)
    };
    logs.iter().map(labelled).collect()
}

#[test]
fn no_format_of_a_run_hands_on_what_a_terminal_obeys() {
    let mut found = HostileFindings::default();
    for log in sample_logs() {
        let record = RunRecord::fold(&log);
        let view = TextLayout { explain: true, ..TextLayout::default() };
        found.check("text", text(&record, &view).as_bytes());
        found.check("markdown", markdown::report(&record).as_bytes());
        found.check("plot", plot::terminal(&record, &view).as_bytes());
        if let Some(picture) = Pictures::of_run(&record).svg(None) {
            found.check_letters("svg", picture.as_bytes());
        }
        let mut out = Vec::new();
        csv::samples(&record, &mut out).unwrap();
        found.check_table("csv", &out);
        out.clear();
        csv::summary(&record, &mut out).unwrap();
        found.check_table("summary-csv", &out);
        out.clear();
        csv::sizes(&record, &mut out).unwrap();
        found.check_table("csv of sizes", &out);
        out.clear();
        let assets = html::Assets { script: "", style: "" };
        html::write(None, None, &[html::ReportedRun { record: &record, events: &log }], &assets, &mut out)
            .unwrap();
        found.check_letters("page", without_data(std::str::from_utf8(&out).unwrap()).as_bytes());
        let (mut live, mut rows) = (Live::new(), IntervalRows::default());
        for event in &log {
            found.check("rows", rows.on(event).join("\n").as_bytes());
            live.on(event);
            found.check("live line", live.line(&view).as_bytes());
        }
    }
    found.report();
}

#[test]
fn no_format_of_a_plan_hands_on_what_a_terminal_obeys() {
    let mut found = HostileFindings::default();
    for (log, _) in [samples_of_plans::two_axes(), samples_of_plans::all_pairs()] {
        let log = all_hostile(&log);
        let record = PlanRecord::fold(&log);
        found.check("plan as text", plan::text(&record, &TextLayout::default()).as_bytes());
        found.check("plan as markdown", plan::markdown(&record).as_bytes());
        let mut out = Vec::new();
        plan::csv(&record, &mut out).unwrap();
        found.check_table("plan as csv", &out);
        out.clear();
        let assets = html::Assets { script: "", style: "" };
        let plan = html::ReportedPlan { record: &record, events: &log, left_out: &[HOSTILE.into()] };
        html::write(None, Some(&plan), &[], &assets, &mut out).unwrap();
        // Only the files of the plan have tabs, as they were written.
        found.check_letters(
            "page of a plan",
            without_data(std::str::from_utf8(&out).unwrap()).replace('\t', " ").as_bytes(),
        );
    }
    found.report();
}

#[test]
fn the_list_of_runs_hands_on_nothing_either() {
    let row = RunRow {
        run: HOSTILE.into(),
        name: HOSTILE.into(),
        started_at: HOSTILE.into(),
        target: HOSTILE.into(),
        flows: vec![FlowHead {
            flow: FlowId(0),
            name: HOSTILE.into(),
            direction: HOSTILE.into(),
            transport: HOSTILE.into(),
            bitrate: None,
            cause: Some(HOSTILE.into()),
        }],
        outcome: None,
        tags: vec![HOSTILE.into()],
    };
    let mut found = HostileFindings::default();
    found.check("history", history_table(&[row], &TextLayout::default()).as_bytes());
    found.report();
}
