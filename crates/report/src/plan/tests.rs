//! Plans in every format.

use std::collections::BTreeMap;

use expect_test::expect;
use linerate_model::{
    Body, Direction, EVENT_SCHEMA, Event, Outcome, PlanAxis, PlanFile, PlanFlow, PlanJudgement, PlanPoint,
    PlanRecord, PlanStart, PlanValue, PointSummary, TrialEnd, TrialRun, World,
};
use linerate_units::{Span, Timestamp};

use super::*;
use crate::TextLayout;

fn axis(name: &str, values: &[f64]) -> PlanAxis {
    let value = |number: &f64| PlanValue { label: number.to_string().into(), number: Some(*number) };
    PlanAxis { name: name.into(), unit: Some("1".into()), values: values.iter().map(value).collect() }
}

fn flow(name: &str, from: &str, to: &str) -> PlanFlow {
    PlanFlow { name: name.into(), from: from.into(), to: to.into(), cross_traffic: false }
}

fn start() -> PlanStart {
    let point = |id: &str, values: &[usize]| PlanPoint { id: id.into(), values: values.to_vec() };
    PlanStart {
        schema: EVENT_SCHEMA.into(),
        started_at: "2026-11-22T10:00:00Z".into(),
        world: World::Lab,
        linerate: "0.1.0".into(),
        name: "matrix".into(),
        about: "segment sizes".into(),
        notes: BTreeMap::from([("switch".into(), "SW-1".into())]),
        files: vec![PlanFile { name: "matrix.toml".into(), text: "name = \"matrix\"\n\u{1b}[2J".into() }],
        set: vec!["repeats=2".into()],
        hosts: Vec::new(),
        topology: Some("gigabit-switch-4".into()),
        flows: vec![flow("ab", "a", "b"), flow("cd", "c", "d")],
        axes: vec![axis("mss", &[1460.0, 8960.0])],
        method: None,
        search: None,
        points: vec![point("000000000000000a", &[0]), point("000000000000000b", &[1])],
        repeats: 2,
        order: "interleaved".into(),
        seed: 1,
        estimate: Span::from_secs(60),
    }
}

fn summary(point: &str, flow: &str, quantity: &str, unit: &str, values: &[f64]) -> Body {
    Body::PointSummed(PointSummary {
        point: point.into(),
        flow: flow.into(),
        direction: Direction::Upload,
        quantity: quantity.into(),
        unit: Some(unit.into()),
        values: values.to_vec(),
        repeats: Vec::new(),
        median: Some(values.iter().sum::<f64>() / values.len() as f64),
        interval: None,
        words: Vec::new(),
    })
}

fn verdict(point: &str, flow: &str, words: &[&str]) -> Body {
    let Body::PointSummed(numbers) = summary(point, flow, "verdict", "1", &[1.0]) else { unreachable!() };
    Body::PointSummed(PointSummary {
        values: Vec::new(),
        median: None,
        unit: None,
        words: words.iter().map(|word| (*word).into()).collect(),
        ..numbers
    })
}

fn trial(point: &str, repeat: u32, outcome: Outcome) -> Body {
    let run = |flow: &str| TrialRun {
        flow: flow.into(),
        run: format!("{flow}{repeat}").into(),
        outcome,
        reason: (outcome == Outcome::Failed).then(|| "b: it is gone\u{7}".into()),
        began: None,
        start_error: None,
        clock_error: None,
    };
    Body::TrialEnded(TrialEnd {
        point: point.into(),
        repeat,
        content: "1".into(),
        step: None,
        runs: vec![run("ab"), run("cd")],
    })
}

fn record() -> PlanRecord {
    let (a, b) = ("000000000000000a", "000000000000000b");
    let mut bodies = vec![
        Body::PlanStarted(Box::new(start())),
        trial(a, 0, Outcome::Completed),
        trial(b, 0, Outcome::Completed),
        trial(b, 1, Outcome::Failed),
        trial(a, 1, Outcome::Failed),
        trial(a, 1, Outcome::Completed),
    ];
    for (point, rates, asked, segment) in
        [(a, &[941.4e6, 941.2e6][..], 1460.0, 1460.0), (b, &[940.0e6][..], 8960.0, 1448.0)]
    {
        for flow in ["ab", "cd"] {
            bodies.push(summary(point, flow, "goodput", "bit/s", rates));
            bodies.push(summary(point, flow, "segment", "bytes", &[segment]));
            bodies.push(summary(point, flow, "segment_asked", "bytes", &[asked]));
            bodies.push(summary(point, flow, "retransmits", "1", &[if flow == "ab" { 0.0 } else { 3.0 }]));
            bodies.push(summary(point, flow, "share", "1", &[0.9998]));
            bodies.push(summary(point, flow, "start_error", "ns", &[400_000.0]));
            bodies.push(verdict(point, flow, &["link", "link"]));
        }
    }
    let judged = |flow: &str, holds: bool| {
        Body::Judged(PlanJudgement {
            assertion: "goodput >= 941M".into(),
            point: b.into(),
            flow: flow.into(),
            direction: Direction::Upload,
            holds,
            found: (!holds)
                .then(|| "found 940.0 Mb/s, but required >= 941.0 Mb/s".to_owned())
                .map(Into::into),
        })
    };
    bodies.extend([judged("ab", true), judged("cd", false)]);
    bodies.push(Body::RunEnded {
        outcome: Outcome::Failed,
        reason: Some("some trials came to nothing".into()),
    });
    let event =
        |(seq, body)| Event { run: "f00d".into(), host: 0, seq: seq as u64, at: Timestamp::START, body };
    PlanRecord::fold(&bodies.into_iter().enumerate().map(event).collect::<Vec<_>>())
}

#[test]
fn a_plan_on_a_page() {
    let view = TextLayout { width: 120, kept: Some("f00d".to_owned()), ..TextLayout::default() };
    expect![[r#"
        matrix, linerate 0.1.0
        segment sizes
        switch: SW-1
        2026-11-22T10:00:00Z, lab gigabit-switch-4, 2 points, 5 trials, interleaved
        set: repeats=2

         mss   segment                            ab                            cd    retr   of ceiling   verdict   trials
        1460      1460   941.3 Mb/s (941.2 to 941.4)   941.3 Mb/s (941.2 to 941.4)   0 / 3      100.0 %   link
        8960      1448                    940.0 Mb/s                    940.0 Mb/s   0 / 3      100.0 %   link      1 failed

        Rates are medians of the trials, with the range of the trials in brackets.
        Segments were smaller than requested (8960 requested, 1448 used): jumbo frames were not in effect; raise the MTU of
        hosts and switch.
        Flows started at most 400 us late.

        Assertions
          FAILS: goodput >= 941M (1 of 2 hold)
          at mss=8960, cd upload: found 940.0 Mb/s, but required >= 941.0 Mb/s

        Missing
          mss=8960, trial 2: ab: b: it is gone?; cd: b: it is gone?

        This plan is not complete: some trials came to nothing.

        archived as f00d; show it again with: linerate show f00d; resume it with: linerate run --resume f00d
    "#]].assert_eq(&text(&record(), &view));
}

#[test]
fn a_narrow_page_has_a_row_for_each_flow() {
    let view = TextLayout { width: 100, ..TextLayout::default() };
    let page = text(&record(), &view);
    let rows: Vec<&str> =
        page.lines().filter(|line| line.contains("Mb/s") && !line.contains("found")).collect();
    expect![[r#"
        1460   ab        1460   941.3 Mb/s (941.2 to 941.4)      0      100.0 %   link
        1460   cd        1460   941.3 Mb/s (941.2 to 941.4)      3      100.0 %   link
        8960   ab        1448                    940.0 Mb/s      0      100.0 %   link      1 failed
        8960   cd        1448                    940.0 Mb/s      3      100.0 %   link      1 failed"#]]
    .assert_eq(&rows.join("\n"));
}

/// The matrix with flows that only run at the second point, and many of them, so that each has a row.
fn flows_at_points() -> PlanRecord {
    let (a, b) = ("000000000000000a", "000000000000000b");
    let names = ["ab", "cd", "ef", "gh"];
    let mut start = start();
    start.flows = names.map(|name| flow(name, "a", "b")).to_vec();
    let trial = |point: &str, flows: &[&str]| {
        let Body::TrialEnded(mut trial) = trial(point, 0, Outcome::Completed) else { unreachable!() };
        let run = trial.runs[0].clone();
        trial.runs = flows.iter().map(|name| TrialRun { flow: (*name).into(), ..run.clone() }).collect();
        Body::TrialEnded(trial)
    };
    let mut bodies = vec![Body::PlanStarted(Box::new(start)), trial(a, &names[..1]), trial(b, &names)];
    for (point, names) in [(a, &names[..1]), (b, &names[..3])] {
        for (quantity, unit, value) in [
            ("goodput", "bit/s", 941e6),
            ("loss", "1", 0.01),
            ("retransmits", "1", 7.0),
            ("ceiling", "bit/s", 942e6),
            ("share", "1", 0.99),
        ] {
            bodies.extend(names.iter().map(|flow| summary(point, flow, quantity, unit, &[value])));
        }
    }
    bodies.push(summary(b, "gh", "retransmits", "1", &[9.0]));
    let event =
        |(seq, body)| Event { run: "f00d".into(), host: 0, seq: seq as u64, at: Timestamp::START, body };
    PlanRecord::fold(&bodies.into_iter().enumerate().map(event).collect::<Vec<_>>())
}

#[test]
fn a_flow_that_does_not_run_at_a_point_is_not_missing_there() {
    let view = TextLayout { width: 100, ..TextLayout::default() };
    let page = text(&flows_at_points(), &view);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(['1', '8'])).collect();
    assert_eq!(rows.len(), 1 + 4, "{page}");
    assert_eq!(page.matches("missing").count(), 1, "gh ran at the second point and has no rate: {page}");
    let record = flows_at_points();
    let (_, rows) = in_sight(&record, 99).unwrap();
    assert_eq!(rows.len(), 1 + 4);
}

#[test]
fn a_narrow_page_keeps_rates_and_retransmissions_to_the_last() {
    let heads = |width: usize| {
        let page = text(&flows_at_points(), &TextLayout { width, ..TextLayout::default() });
        page.lines().find(|line| line.contains("flow")).unwrap().to_owned()
    };
    assert!(heads(100).contains("loss") && heads(100).contains("ceiling"), "{}", heads(100));
    let narrow = heads(40);
    assert!(narrow.contains("rate") && narrow.contains("retr"), "{narrow}");
    assert!(!narrow.contains("loss") && !narrow.contains("ceiling"), "{narrow}");
}

#[test]
fn a_plan_for_a_ticket_cannot_steer_a_terminal() {
    let page = markdown(&record());
    assert!(!page.contains(['\u{1b}', '\u{7}']), "{page}");
    assert!(page.contains("| 1460 | 1460 | 941.3 Mb/s (941.2 to 941.4) |"), "{page}");
    assert!(page.contains("    name = \"matrix\""), "{page}");
}

#[test]
fn a_plan_for_other_programs() {
    let mut out = Vec::new();
    csv(&record(), &mut out).unwrap();
    let table = String::from_utf8(out).unwrap();
    let lines: Vec<&str> =
        table.lines().filter(|line| line.contains("goodput") || line.contains("quantity")).collect();
    expect![[r#"
        point,mss,flow,direction,quantity,unit,trials,median,low,high,coverage,smallest,largest,words
        000000000000000a,1460,ab,upload,goodput,bit/s,2,941300000,,,,941200000,941400000,
        000000000000000a,1460,cd,upload,goodput,bit/s,2,941300000,,,,941200000,941400000,
        000000000000000b,8960,ab,upload,goodput,bit/s,1,940000000,,,,940000000,940000000,
        000000000000000b,8960,cd,upload,goodput,bit/s,1,940000000,,,,940000000,940000000,"#]]
    .assert_eq(&lines.join("\n"));
    let json = serde_json::to_value(document(&record())).unwrap();
    assert_eq!(json["schema"], PLAN_RESULT_SCHEMA);
    assert_eq!(json["points"][1]["values"][0]["number"], 8960.0);
    assert_eq!(json["points"][0]["summaries"].as_array().unwrap().len(), 14);
    assert!(json["points"][0].get("found").is_none(), "no search, no result of one");
}

#[test]
fn a_plan_without_beginning_is_shown_too() {
    let record = PlanRecord { run: "f00d".into(), ..PlanRecord::default() };
    assert!(text(&record, &TextLayout::default()).starts_with("plan f00d\n"));
    assert!(markdown(&record).starts_with("# plan f00d\n"));
}
