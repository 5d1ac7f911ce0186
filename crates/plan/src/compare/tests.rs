//! Candidates made from records, and tables of them.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::{
    Body, Event, FlowPlan, HostInfo, Outcome, PlanAxis, PlanPoint, PlanRecord, PlanStart, PlanValue,
    PointSummary, RunRecord, SideSettings, Tally, TestFile, Transport, TrialEnd, TrialRun, World,
};
use linerate_theory::compare::ComparisonOutcome;
use linerate_units::{Bitrate, Span, Timestamp};

use super::*;

const POINTS: [(&str, [usize; 2]); 4] = [("a", [0, 0]), ("b", [0, 1]), ("c", [1, 0]), ("d", [1, 1])];

/// A plan over window and streams; each point has the rates of `rates`, in Mb/s.
fn plan(order: &str, rates: [&[f64]; 4]) -> PlanRecord {
    let axis = |name: &str, labels: [&str; 2]| PlanAxis {
        name: name.into(),
        unit: None,
        values: labels.map(|label| PlanValue { label: label.into(), number: None }).to_vec(),
    };
    let point = |(id, values): &(&str, [usize; 2])| PlanPoint { id: (*id).into(), values: values.to_vec() };
    let start = PlanStart {
        schema: "".into(),
        started_at: "".into(),
        world: World::Lab,
        linerate: "".into(),
        name: "sweep".into(),
        about: "".into(),
        notes: BTreeMap::new(),
        files: Vec::new(),
        set: Vec::new(),
        hosts: Vec::new(),
        topology: None,
        flows: Vec::new(),
        axes: vec![axis("window", ["64K", "1M"]), axis("streams", ["1", "5"])],
        method: None,
        search: None,
        points: POINTS.iter().map(point).collect(),
        repeats: 6,
        order: order.into(),
        seed: 0,
        estimate: Span::ZERO,
    };
    let summary = |((id, _), rates): (&(&str, [usize; 2]), &[f64])| PointSummary {
        point: (*id).into(),
        flow: "ab".into(),
        direction: Direction::Upload,
        quantity: "goodput".into(),
        unit: Some("bit/s".into()),
        values: rates.iter().map(|rate| rate * 1e6).collect(),
        repeats: (0..).take(rates.len()).collect(),
        median: None,
        interval: None,
        words: Vec::new(),
    };
    PlanRecord {
        run: "p".into(),
        start: Some(start),
        summaries: POINTS.iter().zip(rates).map(summary).collect(),
        ..PlanRecord::default()
    }
}

const SLOW: &[f64] = &[900.0, 901.0, 902.0, 903.0, 904.0, 905.0];
const FAST: &[f64] = &[940.0, 941.0, 942.0, 943.0, 944.0, 945.0];

fn goodput() -> Vec<&'static AssertionQuantity> {
    quantities(&["goodput".to_owned()]).unwrap()
}

#[test]
fn points_of_two_plans_are_next_to_each_other() {
    let before = Candidate::of_plan("before".to_owned(), &plan("shuffled", [SLOW; 4]), &[]);
    let after = Candidate::of_plan("after".to_owned(), &plan("shuffled", [SLOW, FAST, SLOW, &[]]), &[]);
    let table = compare_with_base(&before, std::slice::from_ref(&after), &goodput(), Pairing::None);
    let outcomes: Vec<ComparisonOutcome> = table.rows.iter().map(|row| row.comparison.outcome).collect();
    assert_eq!(
        outcomes,
        [ComparisonOutcome::NotShown, ComparisonOutcome::Higher, ComparisonOutcome::NotShown]
    );
    let label = |place: &Subject| {
        place.point.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(label(&table.rows[1].place), "window=64K streams=5");
    assert_eq!(table.missing.len(), 1);
    assert_eq!(label(&table.missing[0].1), "window=1M streams=5");
}

#[test]
fn values_of_an_axis_are_compared_in_turn_where_they_were_measured_in_turn() {
    let record = plan("interleaved", [SLOW, SLOW, FAST, SLOW]);
    let (values, pairing) = values_of_axis(&record, "window").unwrap();
    let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
    assert_eq!((names, pairing), (vec!["window=64K", "window=1M"], Pairing::InTurn));
    let table = compare_with_base(&values[0], &values[1..], &goodput(), pairing);
    let found: Vec<_> = table
        .rows
        .iter()
        .map(|row| (row.place.point[0].1.as_str(), row.comparison.outcome, row.comparison.pairs))
        .collect();
    // Two comparisons with p = 0.03 and 1: the clearer one would need p below 0.025.
    assert_eq!(
        found,
        [("1", ComparisonOutcome::NotShown, Some(6)), ("5", ComparisonOutcome::NotShown, Some(6))]
    );
    let (_, pairing) = values_of_axis(&plan("sequential", [SLOW; 4]), "window").unwrap();
    assert_eq!(pairing, Pairing::None);
}

/// A plan whose rates drift by 1 Mb/s from repeat to repeat, whatever the configuration. In it, these repeats of the two
/// windows failed, at one stream.
fn drifting(repeats: u32, failed: [u32; 2]) -> PlanRecord {
    let kept = failed.map(|failed| (0..repeats).filter(|repeat| *repeat != failed).collect::<Vec<_>>());
    let rates = [0, 1].map(|at| kept[at].iter().map(|repeat| 900.0 + f64::from(*repeat)).collect::<Vec<_>>());
    let mut record = plan("interleaved", [rates[0].as_slice(), &[], rates[1].as_slice(), &[]]);
    record.start.as_mut().unwrap().repeats = repeats;
    for (point, at) in [("a", 0), ("c", 1)] {
        let trials = (0..repeats).map(|repeat| {
            let outcome = if repeat == failed[at] { Outcome::Failed } else { Outcome::Completed };
            trial(point, repeat, outcome)
        });
        record.trials.extend(trials);
        let summary = record.summaries.iter_mut().find(|summary| summary.point == point).unwrap();
        summary.repeats.clone_from(&kept[at]);
    }
    record
}

fn trial(point: &str, repeat: u32, outcome: Outcome) -> TrialEnd {
    let run = TrialRun {
        flow: "ab".into(),
        run: format!("{point}{repeat}").into(),
        outcome,
        reason: None,
        began: None,
        start_error: None,
        clock_error: None,
    };
    TrialEnd { point: point.into(), repeat, content: "".into(), step: None, runs: vec![run] }
}

/// The pairs of the only comparison, and its outcome.
fn of_windows(record: &PlanRecord) -> (Option<usize>, ComparisonOutcome) {
    let (values, pairing) = values_of_axis(record, "window").unwrap();
    let table = compare_with_base(&values[0], &values[1..], &goodput(), pairing);
    let [row] = &table.rows[..] else { panic!("{:?}", table.rows) };
    (row.comparison.pairs, row.comparison.outcome)
}

/// Each repeat of one configuration would be paired with the next one of the other: all nine differ by the drift.
#[test]
fn repeats_are_not_paired_with_others_where_different_ones_failed() {
    let mut record = drifting(10, [0, 9]);
    assert_eq!(of_windows(&record), (None, ComparisonOutcome::NotShown));
    // Earlier versions did not write which repeats have values, but which trials failed.
    let forget = |record: &mut PlanRecord| record.summaries.iter_mut().for_each(|one| one.repeats.clear());
    forget(&mut record);
    assert_eq!(of_windows(&record), (None, ComparisonOutcome::NotShown));
    record.trials.clear();
    assert_eq!(of_windows(&record), (None, ComparisonOutcome::NotShown), "nothing is known of the repeats");
    let mut record = drifting(10, [4, 4]);
    assert_eq!(of_windows(&record).0, Some(9), "the same one failed");
    forget(&mut record);
    assert_eq!(of_windows(&record).0, Some(9));
    record.summaries[0].repeats = vec![1, 2];
    assert_eq!(of_windows(&record).0, None, "not as many repeats as values");
}

#[test]
fn a_wrong_axis_is_named_with_what_was_meant() {
    let record = plan("interleaved", [SLOW; 4]);
    let error = values_of_axis(&record, "widnow").unwrap_err().to_string();
    assert!(error.contains("'widnow'") && error.contains("window"), "{error}");
    let none = values_of_axis(&PlanRecord::default(), "window").unwrap_err();
    assert!(matches!(none, AxisError::NoPlan(_)));
    let mut one = record;
    one.start.as_mut().unwrap().axes[0].values.truncate(1);
    assert_eq!(values_of_axis(&one, "window").unwrap_err(), AxisError::OneValue("window".to_owned()));
}

const OLD: &str = "Linux 6.1";

/// A run of one flow at `rate` Mb/s on a host with a kernel.
fn run(rate: f64, kernel: &str) -> RunRecord {
    let host = HostInfo { kernel: kernel.into(), ..HostInfo::default() };
    let flow = FlowPlan {
        flow: FlowId(0),
        name: "upload".into(),
        from: "".into(),
        to: "".into(),
        transport: Transport::Tcp,
        direction: Direction::Upload,
        streams: 1,
    };
    let seconds = Span::from_secs(1);
    let bitrate = Bitrate::from_bps(rate * 1e6).unwrap();
    let tally = Tally { elapsed: seconds, bitrate, ..Tally::default() };
    let mut settings = SideSettings { local: format!("192.0.2.1:{rate}").into(), ..SideSettings::default() };
    settings.congestion.effective = Some(if kernel == OLD { "cubic" } else { "bbr" }.into());
    let sender = linerate_model::Side::Sender;
    let bodies = [
        Body::Host { info: host },
        Body::FlowPlanned(flow),
        Body::FlowOpened { flow: FlowId(0), side: sender, settings },
        Body::FlowEnded { flow: FlowId(0), side: linerate_model::Side::Receiver, tally },
    ];
    let event = |(seq, body)| Event { run: "r".into(), host: 0, seq, at: Timestamp::START, body };
    RunRecord::fold(&(0..).zip(bodies).map(event).collect::<Vec<_>>())
}

#[test]
fn a_file_on_one_side_is_a_difference_and_the_rate_of_its_disk_is_none() {
    let with_file = |rate: f64, disk: f64| {
        let mut run = run(rate, OLD);
        let file = TestFile { name: "image".into(), alone_bps: Bitrate::from_bps(disk) };
        run.flows[0].sender_settings.as_mut().unwrap().file = Some(file);
        run
    };
    let files = |rates: &[f64], disk| rates.iter().map(|rate| with_file(*rate, disk)).collect::<Vec<_>>();
    let memory: Vec<_> = FAST.iter().map(|rate| run(*rate, OLD)).collect();
    let base = Candidate::of_runs("file".to_owned(), &files(SLOW, 1e9));
    let others = [
        Candidate::of_runs("memory".to_owned(), &memory),
        Candidate::of_runs("other file".to_owned(), &files(FAST, 2e9)),
    ];
    let table = compare_with_base(&base, &others, &quantities(&[]).unwrap(), Pairing::None);
    let difference = Difference {
        candidate: 0,
        what: "data of the sender".to_owned(),
        base: "file image".to_owned(),
        other: "in memory".to_owned(),
    };
    assert_eq!(table.differences, [difference]);
}

#[test]
fn runs_are_repeats_and_other_differences_are_reported() {
    let runs = |rates: &[f64], kernel| rates.iter().map(|rate| run(*rate, kernel)).collect::<Vec<_>>();
    let base = Candidate::of_runs("old".to_owned(), &runs(SLOW, OLD));
    let other = Candidate::of_runs("new".to_owned(), &runs(FAST, "Linux 6.18"));
    let table =
        compare_with_base(&base, std::slice::from_ref(&other), &quantities(&[]).unwrap(), Pairing::None);
    let [row] = &table.rows[..] else { panic!("{:?}", table.rows) };
    assert_eq!(
        (row.quantity, row.better, row.comparison.outcome),
        ("goodput", Better::Higher, ComparisonOutcome::Higher)
    );
    assert!((row.comparison.shift - 40e6).abs() < 1.0);
    let difference = |what: &str, base: &str, other: &str| Difference {
        candidate: 0,
        what: what.to_owned(),
        base: base.to_owned(),
        other: other.to_owned(),
    };
    let congestion = difference("congestion.effective of the sender", "cubic", "bbr");
    assert_eq!(table.differences, [congestion, difference("kernel of the client", OLD, "Linux 6.18")]);
}

#[test]
fn quantities_are_asked_for_by_name() {
    let error = |name: &str| quantities(&[name.to_owned()]).unwrap_err().to_string();
    assert!(error("godput").contains("'goodput'"), "{}", error("godput"));
    assert!(error("verdict").contains("word"), "{}", error("verdict"));
    assert_eq!(
        quantities(&[]).unwrap().len(),
        DEFAULT_QUANTITIES.len(),
        "every name of the list is a quantity"
    );
}
