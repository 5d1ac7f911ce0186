//! Lists of runs in pages.

use linerate_archive::{Filter, RunCursor, Store};
use linerate_model::RunHead;

use crate::archive::whole_run;
use crate::place::{TestPlace, on_both_databases};

on_both_databases!(pages_follow_each_other_although_runs_come_and_go, filters_hold_on_every_page);

fn ids(runs: &[RunHead]) -> Vec<&str> {
    runs.iter().map(|run| run.id.as_str()).collect()
}

fn pages_follow_each_other_although_runs_come_and_go(place: &TestPlace) {
    for run in ["a1", "a2", "a3", "a4", "a5"] {
        place.record_all(&whole_run(run, "server"));
    }
    let mut archive = place.open();
    let all = Filter::default();
    let first = archive.page(&all, None, 2).unwrap();
    assert_eq!(ids(&first.runs), ["a5", "a4"]);
    // A newer run does not move the next page, and a deleted one leaves no gap in it.
    place.record_all(&whole_run("a6", "server"));
    archive.delete("a3").unwrap();
    archive.delete("a4").unwrap();
    let second = archive.page(&all, first.next, 2).unwrap();
    assert_eq!((ids(&second.runs), second.next), (vec!["a2", "a1"], None));
    assert_eq!(ids(&archive.page(&all, None, 10).unwrap().runs), ["a6", "a5", "a2", "a1"]);
    assert_eq!(archive.page(&all, Some(RunCursor(0)), 10).unwrap().runs, []);
    assert_eq!(archive.page(&all, Some(RunCursor(u64::MAX)), 10).unwrap().runs.len(), 4);
    // A page that is exactly full is the last one if nothing follows.
    assert_eq!(archive.page(&all, None, 4).unwrap().next, None);
}

fn filters_hold_on_every_page(place: &TestPlace) {
    for number in 0..6 {
        let target = if number % 2 == 0 { "even" } else { "odd" };
        place.record_all(&whole_run(&format!("b{number}"), target));
    }
    let archive = place.open();
    let even = Filter { name_or_target: Some("even".into()), ..Filter::default() };
    let first = archive.page(&even, None, 2).unwrap();
    let second = archive.page(&even, first.next, 2).unwrap();
    assert_eq!([ids(&first.runs), ids(&second.runs)], [vec!["b4", "b2"], vec!["b0"]]);
    let head = &archive.runs(&Filter::default()).unwrap()[0];
    let (started, cause) = (head.started_at.clone().unwrap(), head.flows[0].cause.clone());
    let count = |filter: Filter| archive.page(&filter, None, 10).unwrap().runs.len();
    assert_eq!(
        count(Filter { until: Some(started.to_string()), ..Filter::default() }),
        0,
        "until is excluded"
    );
    assert_eq!(count(Filter { since: Some(started.to_string()), ..Filter::default() }), 6);
    assert_eq!(count(Filter { until: Some("2999-01-01".into()), ..Filter::default() }), 6);
    let cause = cause.unwrap().to_string();
    assert_eq!(count(Filter { cause: Some(cause), ..Filter::default() }), 6);
    assert_eq!(count(Filter { cause: Some("duplex".into()), ..Filter::default() }), 0);
}
