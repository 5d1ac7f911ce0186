//! Executed plans, written by hand.

use std::collections::BTreeMap;

use linerate_model::{
    Body, Direction, Event, Outcome, PlanAxis, PlanFile, PlanFlow, PlanHost, PlanJudgement, PlanPoint,
    PlanRecord, PlanStart, PlanValue, PointSummary, SummaryInterval, TrialEnd, TrialRun, World,
};
use linerate_units::{Span, Timestamp};

use crate::samples_of_runs as runs;

fn log(bodies: Vec<Body>) -> (Vec<Event>, PlanRecord) {
    let numbered = bodies.into_iter().zip(0_u64..).map(|(body, seq)| Event {
        run: "91a0".into(),
        host: 0,
        seq,
        at: Timestamp::from_ns(seq * 1_000_000),
        body,
    });
    let log: Vec<Event> = numbered.collect();
    let record = PlanRecord::fold(&log);
    (log, record)
}

fn start(name: &str, axes: Vec<PlanAxis>, hosts: &[&str], flows: Vec<PlanFlow>) -> PlanStart {
    let mut points = vec![Vec::new()];
    for axis in &axes {
        points = points
            .iter()
            .flat_map(|point: &Vec<usize>| {
                (0..axis.values.len()).map(|value| [point.as_slice(), &[value]].concat())
            })
            .collect();
    }
    let points = points.into_iter().enumerate();
    PlanStart {
        schema: "linerate.event/2".into(),
        started_at: "2026-11-22T08:00:00Z".into(),
        world: World::Lab,
        linerate: "0.1.0".into(),
        name: name.into(),
        about: "How much window a long path needs.".into(),
        notes: BTreeMap::from([("tester".into(), "J. Doe".into())]),
        files: vec![PlanFile { name: "windows.toml".into(), text: "[plan]\nlength = \"60s\"\n".into() }],
        set: vec!["test.duration=5s".into()],
        hosts: hosts.iter().map(|name| PlanHost { name: (*name).into(), address: None }).collect(),
        topology: Some("long-line".into()),
        flows,
        axes,
        method: None,
        search: None,
        points: points.map(|(number, values)| PlanPoint { id: id(number).into(), values }).collect(),
        repeats: 7,
        order: "shuffled".into(),
        seed: 42,
        estimate: Span::from_secs(600),
    }
}

fn id(number: usize) -> String {
    format!("{number:016x}")
}

fn flow(name: &str, from: &str, to: &str) -> PlanFlow {
    PlanFlow { name: name.into(), from: from.into(), to: to.into(), cross_traffic: false }
}

fn axis(name: &str, unit: &str, values: &[(&str, Option<f64>)]) -> PlanAxis {
    let values = values.iter().map(|(label, number)| PlanValue { label: (*label).into(), number: *number });
    PlanAxis { name: name.into(), unit: Some(unit.into()), values: values.collect() }
}

fn summary(point: usize, flow: &str, quantity: &str, unit: &str, median: f64) -> Body {
    let ends = SummaryInterval { low: median * 0.9, high: median * 1.1, coverage: 0.984_375 };
    Body::PointSummed(PointSummary {
        point: id(point).into(),
        flow: flow.into(),
        direction: Direction::Upload,
        quantity: quantity.into(),
        unit: Some(unit.into()),
        values: vec![median; 7],
        repeats: Vec::new(),
        median: Some(median),
        interval: Some(ends),
        words: Vec::new(),
    })
}

/// The verdicts of the trials.
fn words(point: usize, flow: &str, words: &[&str]) -> Body {
    let mut verdict = summary(point, flow, "verdict", "1", 0.0);
    if let Body::PointSummed(verdict) = &mut verdict {
        verdict.words = words.iter().map(|word| (*word).into()).collect();
        (verdict.values, verdict.median, verdict.interval) = (Vec::new(), None, None);
    }
    verdict
}

/// Window against delay: the goodput is the window per round trip, up to the line rate; it is too low at one
/// point.
pub(crate) fn two_axes() -> (Vec<Event>, PlanRecord) {
    let windows = [
        ("64 KiB", Some(65_536.0)),
        ("1 MiB", Some(1_048_576.0)),
        ("16 MiB", Some(16_777_216.0)),
        ("default", None),
    ];
    let delays = [("1 ms", Some(1e6)), ("50 ms", Some(5e7))];
    let axes = vec![axis("window", "bytes", &windows), axis("delay", "ns", &delays)];
    let start = start("windows", axes, &["a", "b"], vec![flow("ab", "a", "b")]);
    let goodput = [500e6, 10e6, 940e6, 160e6, 940e6, 900e6, 940e6, 800e6];
    let mut bodies = vec![Body::PlanStarted(Box::new(start))];
    for repeat in 0..2 {
        bodies.extend((0..goodput.len()).map(|point| {
            let runs = vec![TrialRun {
                flow: "ab".into(),
                run: if point == 0 && repeat == 0 {
                    "7f3a9c21".into()
                } else {
                    format!("{repeat}{point:07}").into()
                },
                outcome: if point == 1 { Outcome::Failed } else { Outcome::Completed },
                reason: (point == 1).then(|| "the server went away".into()),
                began: None,
                start_error: None,
                clock_error: None,
            }];
            Body::TrialEnded(TrialEnd {
                point: id(point).into(),
                repeat,
                content: id(99).into(),
                step: None,
                runs,
            })
        }));
    }
    for (point, goodput) in goodput.into_iter().enumerate() {
        bodies.push(summary(point, "ab", "goodput", "bit/s", goodput));
        let ceiling = if point % 2 == 0 { 941e6 } else { 941e6_f64.min(goodput * 1.05) };
        bodies.push(summary(point, "ab", "ceiling", "bit/s", ceiling));
        bodies.push(summary(point, "ab", "retransmits", "1", point as f64 * 3.0));
        bodies.push(summary(point, "ab", "rtt_p95", "ns", if point % 2 == 0 { 1.2e6 } else { 51e6 }));
        bodies.push(words(point, "ab", &["link", "link"]));
    }
    bodies.extend((0..8).map(|point| {
        Body::Judged(PlanJudgement {
            assertion: "full".into(),
            point: id(point).into(),
            flow: "ab".into(),
            direction: Direction::Upload,
            holds: point != 1,
            found: (point == 1).then(|| "goodput 10.00 Mb/s, not above 100.0 Mb/s".into()),
        })
    }));
    bodies.push(Body::RunEnded { outcome: Outcome::Completed, reason: None });
    log(bodies)
}

/// The summary of two trials.
fn of_two(point: usize, flow: &str, quantity: &str, unit: &str, ends: [f64; 2]) -> Body {
    let mut body = summary(point, flow, quantity, unit, ends[0].midpoint(ends[1]));
    if let Body::PointSummed(summary) = &mut body {
        (summary.values, summary.interval) = (ends.to_vec(), None);
    }
    body
}

/// Six windows, three delays, two trials of each, and more quantities than a page has columns.
pub(crate) fn eighteen() -> (Vec<Event>, PlanRecord) {
    let windows: Vec<(String, f64)> =
        (0..6).map(|power| (format!("{} KiB", 64 << power), f64::from(65_536 << power))).collect();
    let windows: Vec<(&str, Option<f64>)> =
        windows.iter().map(|(label, number)| (label.as_str(), Some(*number))).collect();
    let delays = [("1 ms", Some(1e6)), ("10 ms", Some(1e7)), ("50 ms", Some(5e7))];
    let axes = vec![axis("window", "bytes", &windows), axis("delay", "ns", &delays)];
    let mut start = start("eighteen", axes, &["a", "b"], vec![flow("ab", "a", "b")]);
    start.repeats = 2;
    let mut bodies = vec![Body::PlanStarted(Box::new(start))];
    for trial in 0..36 {
        let (point, repeat) = (trial / 2, (trial % 2) as u32);
        let run = TrialRun {
            flow: "ab".into(),
            run: run_name(trial).into(),
            outcome: Outcome::Completed,
            reason: None,
            began: None,
            start_error: None,
            clock_error: None,
        };
        let content = id(99).into();
        let trial = TrialEnd { point: id(point).into(), repeat, content, step: None, runs: vec![run] };
        bodies.push(Body::TrialEnded(trial));
    }
    for point in 0..18 {
        bodies.push(of_two(point, "ab", "goodput", "bit/s", [880e6, 920e6]));
        for (quantity, unit, value) in [
            ("ceiling", "bit/s", 941e6),
            ("share", "1", 0.956),
            ("segment", "bytes", 1448.0),
            ("segment_asked", "bytes", 1460.0),
            ("retransmits", "1", point as f64),
            ("loss", "1", 0.0),
            ("rtt", "ns", 1.2e6),
            ("rtt_p95", "ns", 1.9e6),
            ("cpu_sender", "1", 0.125),
            ("cpu_receiver", "1", 0.25),
            ("rcv_buf", "bytes", 65_536.0),
        ] {
            bodies.push(of_two(point, "ab", quantity, unit, [value, value]));
        }
        bodies.push(words(point, "ab", &["link", "link"]));
    }
    bodies.push(Body::RunEnded { outcome: Outcome::Completed, reason: None });
    log(bodies)
}

fn run_name(trial: usize) -> String {
    format!("e{trial:07}")
}

/// The runs of [`eighteen`].
pub(crate) fn eighteen_runs() -> Vec<Vec<Event>> {
    let renamed = |trial| {
        let mut log = runs::tcp_run();
        log.iter_mut().for_each(|event| event.run = run_name(trial).into());
        log
    };
    (0..36).map(renamed).collect()
}

/// Two flows between four hosts over segment sizes.
pub(crate) fn two_flows() -> (Vec<Event>, PlanRecord) {
    let axes = vec![axis("mss", "bytes", &[("536", Some(536.0)), ("1460", Some(1460.0))])];
    let flows = vec![flow("ab", "a", "b"), flow("cd", "c", "d")];
    let mut bodies = vec![Body::PlanStarted(Box::new(start("pairs", axes, &["a", "b", "c", "d"], flows)))];
    for (point, flow) in [(0, "ab"), (0, "cd"), (1, "ab"), (1, "cd")] {
        bodies.push(summary(point, flow, "goodput", "bit/s", 9e8));
    }
    bodies.push(Body::RunEnded { outcome: Outcome::Completed, reason: None });
    log(bodies)
}

/// Flows between all pairs of three hosts; the flows of the last sender get half.
pub(crate) fn all_pairs() -> (Vec<Event>, PlanRecord) {
    let hosts = ["a", "b", "c"];
    let pairs =
        || hosts.iter().flat_map(|from| hosts.iter().filter(move |to| *to != from).map(move |to| (from, to)));
    let flows = pairs().map(|(from, to)| flow(&format!("{from}{to}"), from, to)).collect();
    let mut bodies = vec![Body::PlanStarted(Box::new(start("matrix", Vec::new(), &hosts, flows)))];
    bodies.extend(pairs().map(|(from, to)| {
        let goodput = if *from == "c" { 5e8 } else { 1e9 };
        summary(0, &format!("{from}{to}"), "goodput", "bit/s", goodput)
    }));
    log(bodies)
}

/// The runs of the first plan that its page contains.
pub(crate) fn runs() -> Vec<Vec<Event>> {
    vec![runs::tcp_run()]
}

/// Two configurations with eight repeats each: `new` has 3 % more goodput.
pub(crate) fn compared() -> linerate_plan::Compared {
    use linerate_model::flow::FlowId;
    use linerate_model::{RunRecord, Side, Transport};
    use linerate_plan::{Candidate, Compared, compare_with_base, quantities};
    use linerate_theory::compare::Pairing;
    let configuration = |name: &str, bps: f64| {
        let run = |repeat: u32| {
            let mut bodies = runs::opening(linerate_model::TestSpec::default());
            bodies.push(runs::planned(0, Direction::Upload, Transport::Tcp));
            let tally = runs::tally(bps * (1.0 + 0.0005 * f64::from(repeat * 3 % 8)));
            bodies.extend(
                [Side::Sender, Side::Receiver].map(|side| runs::ended(FlowId(0), side, tally.clone())),
            );
            RunRecord::fold(&runs::log(bodies))
        };
        Candidate::of_runs(name.to_owned(), &(0..8).map(run).collect::<Vec<_>>())
    };
    let (base, others) = (configuration("old", 900e6), vec![configuration("new", 927e6)]);
    let table = compare_with_base(&base, &others, &quantities(&[]).unwrap(), Pairing::None);
    let left_out = vec![linerate_plan::LeftOutRuns { name: "new".to_owned(), runs: 1 }];
    Compared { base, others, table, left_out }
}
