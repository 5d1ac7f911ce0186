//! Plan logs, folded and stored.

use super::*;

fn event(seq: u64, body: Body) -> Event {
    Event { run: "r".into(), host: 0, seq, at: Timestamp::from_ns(seq * 10), body }
}

fn start() -> PlanStart {
    let value = |label: &str, number| PlanValue { label: label.into(), number };
    PlanStart {
        schema: crate::EVENT_SCHEMA.into(),
        started_at: "2026-01-02T03:04:05Z".into(),
        world: World::Lab,
        linerate: "0.1.0".into(),
        name: "windows".into(),
        about: "".into(),
        notes: BTreeMap::new(),
        files: Vec::new(),
        set: Vec::new(),
        hosts: Vec::new(),
        topology: None,
        flows: Vec::new(),
        axes: vec![
            PlanAxis {
                name: "window".into(),
                unit: Some("bytes".into()),
                values: vec![value("64 KiB", Some(65_536.0)), value("default", None)],
            },
            PlanAxis { name: "streams".into(), unit: Some("1".into()), values: vec![value("5", Some(5.0))] },
        ],
        method: None,
        search: None,
        points: vec![PlanPoint { id: "00000000000000ff".into(), values: vec![1, 0] }],
        repeats: 1,
        order: "interleaved".into(),
        seed: 0,
        estimate: Span::from_secs(1),
    }
}

fn summary(values: Vec<f64>) -> PointSummary {
    PointSummary {
        point: "00000000000000ff".into(),
        flow: "ab".into(),
        direction: Direction::Upload,
        quantity: "goodput".into(),
        unit: Some("bit/s".into()),
        values,
        repeats: Vec::new(),
        median: None,
        interval: None,
        words: Vec::new(),
    }
}

#[test]
fn a_plan_that_goes_on_is_summed_up_anew() {
    let ended = || Body::RunEnded { outcome: Outcome::Interrupted, reason: Some("a signal".into()) };
    let mut log = vec![
        event(0, Body::PlanStarted(Box::new(start()))),
        event(1, Body::PointSummed(summary(vec![1.0]))),
        event(2, ended()),
    ];
    let record = PlanRecord::fold(&log);
    assert_eq!((record.outcome, record.summaries.len(), record.resumed), (Some(Outcome::Interrupted), 1, 0));
    assert_eq!((record.run.as_str(), record.events, record.last.as_ns()), ("r", 3, 20));
    log.push(event(3, Body::PlanResumed));
    log.push(event(4, Body::PointSummed(summary(vec![1.0, 2.0]))));
    let record = PlanRecord::fold(&log);
    assert_eq!((record.outcome, record.reason.as_deref(), record.resumed), (None, None, 1));
    let of = |flow| record.summaries.iter().find(|one| one.flow == flow).map(|one| one.values.len());
    assert_eq!((of("ab"), of("cd")), (Some(2), None));
}

/// A plan that is resumed with other settings searches again.
#[test]
fn a_search_has_one_result_for_each_repeat_and_none_while_it_goes_on() {
    let end = |repeat, number| {
        Body::SearchEnded(SearchEnd { point: "00000000000000ff".into(), repeat, found: None, number })
    };
    let step = |repeat| {
        Body::TrialEnded(TrialEnd {
            point: "00000000000000ff".into(),
            repeat,
            content: "0000000000000001".into(),
            step: Some(SearchStep { label: "1Gb/s".into(), number: 1e9, confirms: false, passed: true }),
            runs: Vec::new(),
        })
    };
    let bodies =
        [step(0), end(0, Some(1e9)), step(1), end(1, None), Body::PlanResumed, step(1), end(1, Some(2e9))];
    let log: Vec<Event> = (0..).zip(bodies).map(|(seq, body)| event(seq, body)).collect();
    let found = |events: &[Event]| -> Vec<(u32, Option<f64>)> {
        PlanRecord::fold(events).found.iter().map(|end| (end.repeat, end.number)).collect()
    };
    assert_eq!(found(&log[..5]), [(0, Some(1e9)), (1, None)]);
    assert_eq!(found(&log[..6]), [(0, Some(1e9))]);
    assert_eq!(found(&log), [(0, Some(1e9)), (1, Some(2e9))]);
    // An end without the steps before it, of which a log may have lost some.
    let again = [&log[..4], &[event(4, end(1, Some(3e9)))]].concat();
    assert_eq!(found(&again), [(0, Some(1e9)), (1, Some(3e9))]);
}

#[test]
fn a_share_above_1_is_left_out_with_its_repeat() {
    let share =
        PointSummary { quantity: "share".into(), repeats: vec![0, 2, 3], ..summary(vec![0.5, 1.5, 0.7]) };
    let record = PlanRecord::fold(&[event(0, Body::PointSummed(share))]);
    assert_eq!(
        (&record.summaries[0].values[..], &record.summaries[0].repeats[..]),
        (&[0.5, 0.7][..], &[0, 3][..])
    );
}

#[test]
fn points_are_named_by_their_values() {
    let record = PlanRecord::fold(&[event(0, Body::PlanStarted(Box::new(start())))]);
    assert_eq!(record.labels("00000000000000ff"), [("window", "default"), ("streams", "5")]);
    assert!(record.labels("0").is_empty());
    let summary = summary(vec![3.0, 1.0, 2.0]);
    assert_eq!((summary.smallest(), summary.largest()), (Some(1.0), Some(3.0)));
}

#[test]
fn events_of_a_plan_survive_the_archive() {
    let bodies = [
        Body::PlanStarted(Box::new(start())),
        Body::PlanResumed,
        Body::TrialEnded(TrialEnd {
            point: "00000000000000ff".into(),
            repeat: 2,
            content: "0000000000000001".into(),
            step: Some(SearchStep { label: "1Gb/s".into(), number: 1e9, confirms: false, passed: true }),
            runs: vec![TrialRun {
                flow: "ab".into(),
                run: "x".into(),
                outcome: Outcome::Failed,
                reason: Some("gone".into()),
                began: Some(Timestamp::from_ns(9)),
                start_error: Some(Span::from_ns(7)),
                clock_error: None,
            }],
        }),
        Body::PointSummed(summary(vec![1.5])),
    ];
    for body in bodies {
        let text = serde_json::to_string(&body).unwrap();
        assert_eq!(serde_json::from_str::<Body>(&text).unwrap(), body, "{text}");
    }
}

#[test]
fn points_are_selected_by_name_or_by_their_values() {
    let mut start = start();
    start.points = [("00000000000000ff", 1), ("0000000000000001", 0)]
        .map(|(id, window)| PlanPoint { id: id.into(), values: vec![window, 0] })
        .into();
    let record = PlanRecord { start: Some(start), ..PlanRecord::default() };
    let select = |selector| record.select_points(selector);
    assert_eq!(select("0000000000000001"), Ok(vec!["0000000000000001"]));
    assert_eq!(select("window=default"), Ok(vec!["00000000000000ff"]));
    assert_eq!(select("streams = 5, window=64 KiB"), Ok(vec!["0000000000000001"]));
    assert_eq!(select("streams=5"), Ok(vec!["00000000000000ff", "0000000000000001"]));
    for (selector, error) in [
        ("00ff", PointSelectorError::Form),
        ("", PointSelectorError::Form),
        ("window=default,5", PointSelectorError::Form),
        ("window=1K", PointSelectorError::NoSuchPoint),
        ("streams=5,window=5", PointSelectorError::NoSuchPoint),
        ("length=64K", PointSelectorError::NoSuchPoint),
    ] {
        assert_eq!(select(selector), Err(error), "{selector}");
    }
    assert_eq!(PlanRecord::default().select_points("streams=5"), Err(PointSelectorError::NoSuchPoint));
}
