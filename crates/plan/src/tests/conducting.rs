//! Plans executed without a network: which trials run, how often, and their results.

use std::cell::RefCell;
use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::{
    Body, Direction, Event, FlowPlan, Outcome, PlanRecord, RunRecord, SearchEnd, Side, Tally, Transport,
    TrialEnd, TrialRun, World,
};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};
use proptest::prelude::*;

use super::plan;
use crate::{
    Plan, PlanHeaderFacts, PlanScheduler, RunMeasurements, Summed, TrialFigures, TrialResults, TrialTask,
    counts, judge_at, judgements,
};

/// Measurements of a run with this upload goodput.
fn figures(bps: f64) -> RunMeasurements {
    let plan = FlowPlan {
        flow: FlowId(0),
        name: "upload".into(),
        from: "a".into(),
        to: "b".into(),
        transport: Transport::Tcp,
        direction: Direction::Upload,
        streams: 1,
    };
    let tally = Tally {
        bitrate: Bitrate::from_bps(bps).unwrap(),
        bytes: Bytes::new((bps / 8.0) as u64),
        elapsed: Span::from_secs(1),
        ..Tally::default()
    };
    let bodies = [Body::FlowPlanned(plan), Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally }];
    let log: Vec<Event> = bodies
        .into_iter()
        .enumerate()
        .map(|(seq, body)| Event { run: "r".into(), host: 0, seq: seq as u64, at: Timestamp::START, body })
        .collect();
    RunMeasurements::of(&RunRecord::fold(&log))
}

/// A simulated network: gives the goodput of each trial and flow, or `None` for a run that fails. Keeps what
/// its runs measured, as an archive does.
pub(super) struct SimulatedNetwork<'f> {
    goodput: &'f dyn Fn(&TrialTask, usize) -> Option<f64>,
    kept: BTreeMap<String, RunMeasurements>,
    record: PlanRecord,
    seq: u64,
    flows: Vec<String>,
}

impl<'f> SimulatedNetwork<'f> {
    pub(super) fn new(plan: &Plan, goodput: &'f dyn Fn(&TrialTask, usize) -> Option<f64>) -> Self {
        let flows = plan.flows.iter().map(|flow| flow.name.clone()).collect();
        let mut network =
            Self { goodput, kept: BTreeMap::new(), record: PlanRecord::default(), seq: 0, flows };
        let opening = PlanHeaderFacts {
            started_at: String::new(),
            world: World::Lab,
            linerate: String::new(),
            set: Vec::new(),
        };
        network.note(Body::PlanStarted(Box::new(plan.open(opening).unwrap())));
        network
    }

    fn note(&mut self, body: Body) {
        let event = Event { run: "p".into(), host: 0, seq: self.seq, at: Timestamp::from_ns(self.seq), body };
        self.seq += 1;
        self.record.apply(&event);
    }

    /// Runs at most this number of trials. Returns the labels of the points, with the repeat.
    pub(super) fn carry_out(&mut self, scheduler: &mut PlanScheduler<'_>, most: usize) -> Vec<(String, u32)> {
        let mut seen = Vec::new();
        while seen.len() < most
            && let Some(task) = scheduler.next_task().unwrap()
        {
            seen.push((task.point.label(), task.repeat));
            let following = scheduler.following();
            let (mut runs, mut figures_of) = (Vec::new(), TrialFigures::new());
            for (number, flow) in self.flows.iter().enumerate() {
                let Some(test) = task.point.test_of(flow) else {
                    figures_of.push(None);
                    continue;
                };
                let measured = (self.goodput)(&task, number).map(figures);
                let run = format!("run-{}-{number}", self.seq);
                runs.push(TrialRun {
                    flow: test.flow.clone().into(),
                    run: run.clone().into(),
                    outcome: if measured.is_some() { Outcome::Completed } else { Outcome::Failed },
                    reason: None,
                    began: None,
                    start_error: None,
                    clock_error: None,
                });
                self.kept.extend(measured.clone().map(|measured| (run, measured)));
                figures_of.push(measured);
            }
            for body in scheduler.done(&task, runs, figures_of) {
                self.note(body);
            }
            if following.is_some() {
                assert_eq!(scheduler.next_task().unwrap(), following, "what is announced to follow does");
            }
        }
        seen
    }

    fn resume<'p>(&self, plan: &'p Plan) -> PlanScheduler<'p> {
        let mut found = |trial: &TrialEnd| -> TrialFigures {
            let of = |run: &TrialRun| self.kept.get(run.run.as_str()).filter(|_| counts(run)).cloned();
            trial.runs.iter().map(of).collect()
        };
        PlanScheduler::resume(plan, &self.record, &mut found).unwrap()
    }
}

fn wanted(plan: &Plan) -> Vec<(String, u32)> {
    plan.trials().iter().map(|trial| (plan.point(trial.point).unwrap().label(), trial.repeat)).collect()
}

const SMALL: &str = "repeats = 2\ntest = { upload = true }\naxis.window = [1000, 2000, 3000]\n";

#[test]
fn what_follows_is_known_unless_results_decide_and_up_to_the_last_trial() {
    let plan = plan(SMALL);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    assert!(scheduler.next_task().unwrap().is_some());
    let following = scheduler.following().unwrap();
    assert_eq!((following.point.label(), following.repeat), wanted(&plan)[1]);
    let mut network = SimulatedNetwork::new(&plan, &|_, _| Some(1e9));
    network.carry_out(&mut scheduler, wanted(&plan).len() - 1);
    assert!(scheduler.next_task().unwrap().is_some() && scheduler.following().is_none());
    for decided in [SEARCH.to_owned(), format!("until = \"2%\"\nmax_repeats = 9\n{SMALL}")] {
        let plan = self::plan(&decided);
        let mut scheduler = PlanScheduler::new(&plan).unwrap();
        assert!(scheduler.next_task().unwrap().is_some() && scheduler.following().is_none(), "{decided}");
    }
}

/// A search for a rate with this limit; the goodput is the requested rate.
const SEARCH: &str = "repeats = 2\ntest = { udp = true, upload = true }\n[axis]\nlength = [100, 200]\n[axis.rate]\n\
                      from = 0\nto = \"1G\"\nresolution = 0.01\npass = \"goodput <= 690M\"\nconfirm = \"60s\"\n";

fn asked_rate(task: &TrialTask, _: usize) -> Option<f64> {
    task.step.as_ref().and_then(|step| step.value.number())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Wherever and however often it is interrupted, nothing is measured twice and nothing is left out.
    #[test]
    fn an_interrupted_plan_measures_every_trial_once(cuts in prop::collection::vec(0_usize..5, 0..6)) {
        let plan = plan(SMALL);
        let mut network = SimulatedNetwork::new(&plan, &|task, _| Some(1e6 * f64::from(task.repeat)));
        let mut seen = Vec::new();
        for cut in cuts {
            let mut scheduler = network.resume(&plan);
            seen.extend(network.carry_out(&mut scheduler, cut));
        }
        let mut scheduler = network.resume(&plan);
        seen.extend(network.carry_out(&mut scheduler, usize::MAX));
        prop_assert_eq!(seen, wanted(&plan));
        prop_assert!(!scheduler.is_missing_any());
        let whole = {
            let mut network = SimulatedNetwork::new(&plan, &|task, _| Some(1e6 * f64::from(task.repeat)));
            let mut scheduler = PlanScheduler::new(&plan).unwrap();
            network.carry_out(&mut scheduler, usize::MAX);
            scheduler.sum().unwrap()
        };
        prop_assert_eq!(scheduler.sum().unwrap(), whole);
    }

    /// The same for a search, whose next trial depends on the earlier ones.
    #[test]
    fn an_interrupted_search_goes_on_where_it_was(
        cuts in prop::collection::vec(0_usize..9, 0..6), confirms in any::<bool>(),
    ) {
        let plan = plan(if confirms { SEARCH } else { SEARCH.trim_end_matches("confirm = \"60s\"\n") });
        let found = |cuts: &[usize]| {
            let mut network = SimulatedNetwork::new(&plan, &asked_rate);
            let mut trials = 0;
            for cut in cuts {
                trials += network.carry_out(&mut network.resume(&plan), *cut).len();
            }
            let mut scheduler = network.resume(&plan);
            trials += network.carry_out(&mut scheduler, usize::MAX).len();
            let goodput = [goodputs(&scheduler), goodputs(&network.resume(&plan))].concat();
            (trials, network.record.found.clone(), scheduler.is_missing_any(), goodput)
        };
        let (whole, cut) = (found(&[]), found(&cuts));
        prop_assert_eq!(&whole, &cut);
        prop_assert_eq!(whole.1.len(), 4, "two lengths, twice each");
        for search in &whole.1 {
            let number = search.number.unwrap();
            prop_assert!(number <= 6.9e8 && 6.9e8 - number <= 1e7, "{}", number);
        }
        prop_assert!(!whole.2);
        // The result of a point is that of the value found, not of the last one tried.
        let mut numbers: Vec<f64> = whole.1.iter().chain(&whole.1).filter_map(|found| found.number).collect();
        let mut goodput = whole.3;
        numbers.sort_by(f64::total_cmp);
        goodput.sort_by(f64::total_cmp);
        prop_assert_eq!(numbers, goodput);
    }
}

/// The goodput of each point and repeat.
fn goodputs(scheduler: &PlanScheduler<'_>) -> Vec<f64> {
    let sums = scheduler.sum().unwrap();
    sums.into_iter().filter(|one| one.quantity == "goodput").flat_map(|one| one.values).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The trials of a search stay what they are when its condition changes: the result is that of a new search.
    #[test]
    fn a_search_that_goes_on_with_another_condition_judges_its_trials_by_it(
        cut in 0_usize..40, limit in 1_u32..1100, confirms in any::<bool>(),
    ) {
        let text = if confirms { SEARCH } else { SEARCH.trim_end_matches("confirm = \"60s\"\n") };
        let (before, after) = (plan(text), plan(&text.replace("690M", &format!("{limit}M"))));
        let mut network = SimulatedNetwork::new(&before, &asked_rate);
        network.carry_out(&mut PlanScheduler::new(&before).unwrap(), cut);
        let found = |network: &mut SimulatedNetwork<'_>| {
            let mut scheduler = network.resume(&after);
            scheduler.corrections().into_iter().for_each(|body| network.note(body));
            let trials = network.carry_out(&mut scheduler, usize::MAX).len();
            let mut found = network.record.found.clone();
            let order = |one: &SearchEnd| (one.point.to_string(), one.repeat);
            found.sort_by_key(order);
            let mut goodput = goodputs(&scheduler);
            goodput.sort_by(f64::total_cmp);
            (found, goodput, trials)
        };
        let (again, anew) = (found(&mut network), found(&mut SimulatedNetwork::new(&after, &asked_rate)));
        prop_assert_eq!((&again.0, &again.1), (&anew.0, &anew.1));
        prop_assert_eq!(again.0.len(), 4, "two lengths, twice each");
        prop_assert!(again.2 <= anew.2, "{} > {}", again.2, anew.2);
        let mut settled = network.resume(&after);
        prop_assert!(settled.corrections().is_empty() && settled.next_task().unwrap().is_none());
    }
}

#[test]
fn without_the_measurements_of_a_search_its_verdicts_are_those_of_the_same_condition_only() {
    let before = plan(SEARCH);
    let mut network = SimulatedNetwork::new(&before, &asked_rate);
    network.carry_out(&mut PlanScheduler::new(&before).unwrap(), usize::MAX);
    network.kept.clear();
    assert_eq!(network.resume(&before).next_task().unwrap(), None);
    let after = plan(&SEARCH.replace("690M", "400M"));
    assert!(network.resume(&after).next_task().unwrap().is_some(), "measured again");
}

#[test]
fn a_search_with_a_longer_confirmation_confirms_again_and_measures_nothing_else() {
    let before = plan(SEARCH);
    let mut network = SimulatedNetwork::new(&before, &asked_rate);
    network.carry_out(&mut PlanScheduler::new(&before).unwrap(), usize::MAX);
    let longer = plan(&SEARCH.replace("60s", "90s"));
    let confirms = RefCell::new(Vec::new());
    let goodput = |task: &TrialTask, flow: usize| {
        let length = task.point.tests[flow].spec.traffic.duration;
        confirms.borrow_mut().push((task.step.as_ref()?.confirm, length));
        asked_rate(task, flow)
    };
    let mut scheduler = network.resume(&longer);
    let mut network = SimulatedNetwork { goodput: &goodput, ..network };
    network.carry_out(&mut scheduler, usize::MAX);
    // Two lengths, twice each.
    assert_eq!(*confirms.borrow(), [(true, Some(Span::from_secs(90))); 4]);
}

/// The largest value passes at first, and then every confirmation fails, down to the smallest value, but not to 0:
/// a rate of 0 has no limit. What passed by chance is not the result.
#[test]
fn a_search_whose_confirmations_all_fail_ends_without_a_result() {
    let rate = "test = { udp = true, upload = true }\nassert = \"goodput >= 1k\"\n[axis.rate]\nfrom = 0\n\
                to = \"1G\"\nresolution = \"50%\"\n";
    let window = "test = { upload = true }\nassert = \"goodput >= 1k\"\n[axis.window]\nfrom = 1000\n\
                  to = 1002\nresolution = 0\n";
    for (text, wanted) in [(rate, vec![1e9, 1e9, 0.5e9]), (window, vec![1002.0, 1002.0, 1001.0, 1000.0])] {
        let plan = plan(&format!("{text}pass = \"goodput <= 1G\"\nconfirm = \"60s\"\n"));
        let tried = RefCell::new(Vec::new());
        let goodput = |task: &TrialTask, _: usize| {
            let step = task.step.as_ref()?;
            tried.borrow_mut().push(step.value.number()?);
            Some(if step.confirm { 2e9 } else { 1e6 })
        };
        let mut network = SimulatedNetwork::new(&plan, &goodput);
        let mut scheduler = PlanScheduler::new(&plan).unwrap();
        network.carry_out(&mut scheduler, 20);
        assert_eq!(*tried.borrow(), wanted);
        assert!(!scheduler.is_missing_any());
        let found: Vec<Option<f64>> = network.record.found.iter().map(|found| found.number).collect();
        assert_eq!(found, [None]);
        for scheduler in [scheduler, network.resume(&plan)] {
            let sums = scheduler.sum().unwrap();
            assert!(sums.is_empty(), "{sums:?}");
            let judged = judgements(&plan, &sums, &BTreeMap::new());
            let reason = judged[0].found.as_deref().unwrap_or_default();
            assert!(!judged[0].holds && reason.starts_with("not measured: goodput"), "{judged:?}");
        }
    }
}

/// 100 and 90 do not pass, 80 and 70 do, and 85 does not.
#[test]
fn the_result_of_a_search_is_that_of_the_value_found_and_not_of_the_last_one_that_passed() {
    let plan = plan(
        "test = { udp = true, upload = true }\n[axis.rate]\nfrom = 0\nto = \"1G\"\ndescend = \"10%\"\n\
         resolution = \"5%\"\npass = \"goodput <= 800M\"\n",
    );
    let mut network = SimulatedNetwork::new(&plan, &asked_rate);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    network.carry_out(&mut scheduler, 4);
    assert!(goodputs(&scheduler).is_empty(), "the search has not ended");
    let mut scheduler = network.resume(&plan);
    assert_eq!(network.carry_out(&mut scheduler, 20).len(), 1);
    assert_eq!(network.record.found[0].number, Some(0.8e9));
    assert_eq!(goodputs(&scheduler), [0.8e9]);
    assert_eq!(goodputs(&network.resume(&plan)), [0.8e9]);
}

#[test]
fn a_trial_that_failed_is_missing_and_comes_again_when_the_plan_goes_on() {
    let plan = plan(SMALL);
    let fails =
        |task: &TrialTask, _: usize| (task.point.label() != "window=2000" || task.repeat != 1).then_some(1e6);
    let mut network = SimulatedNetwork::new(&plan, &fails);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    assert_eq!(network.carry_out(&mut scheduler, usize::MAX), wanted(&plan), "the others go on");
    assert!(scheduler.is_missing_any());
    let goodput = |scheduler: &PlanScheduler<'_>| -> Vec<usize> {
        let sums = scheduler.sum().unwrap();
        sums.iter().filter(|one| one.quantity == "goodput").map(|one| one.values.len()).collect()
    };
    assert_eq!(goodput(&scheduler), [2, 1, 2]);
    let sums = scheduler.sum().unwrap();
    let repeats: Vec<&[u32]> =
        sums.iter().filter(|one| one.quantity == "goodput").map(|one| one.repeats.as_slice()).collect();
    assert_eq!(repeats, [&[0, 1][..], &[1], &[0, 1]]);
    let works = |_: &TrialTask, _: usize| Some(1e6);
    let mut network = SimulatedNetwork { goodput: &works, ..network };
    let mut scheduler = network.resume(&plan);
    assert_eq!(network.carry_out(&mut scheduler, usize::MAX), [("window=2000".to_owned(), 1)]);
    assert!(!scheduler.is_missing_any());
    assert_eq!(goodput(&scheduler), [2, 2, 2]);
}

#[test]
fn what_has_changed_since_is_measured_again() {
    let before = plan(SMALL);
    let mut network = SimulatedNetwork::new(&before, &|_, _| Some(1e6));
    network.carry_out(&mut PlanScheduler::new(&before).unwrap(), usize::MAX);
    let longer = plan(&SMALL.replace("upload = true", "upload = true, duration = 3"));
    let mut scheduler = network.resume(&longer);
    assert_eq!(network.carry_out(&mut scheduler, usize::MAX), wanted(&longer));
    let more = plan(&SMALL.replace("3000]", "3000, 4000]"));
    let mut scheduler =
        SimulatedNetwork { goodput: &|_, _| Some(1e6), kept: BTreeMap::new(), ..network }.resume(&more);
    let labels: Vec<String> = std::iter::from_fn(|| {
        let task = scheduler.next_task().unwrap()?;
        let runs = vec![TrialRun {
            flow: "a-b".into(),
            run: "x".into(),
            outcome: Outcome::Completed,
            reason: None,
            began: None,
            start_error: None,
            clock_error: None,
        }];
        scheduler.done(&task, runs, vec![None]);
        Some(task.point.label())
    })
    .filter(|label| label == "window=4000")
    .collect();
    assert_eq!(labels.len(), 2);
}

#[test]
fn points_are_repeated_until_they_are_known_well_enough() {
    let text = "until = \"1%\"\nmax_repeats = 9\ntest = { upload = true }\naxis.window = [1000, 2000]\n";
    let plan = plan(text);
    assert_eq!((plan.least_repeats(), plan.largest_repeats()), (6, 9));
    let noisy = |task: &TrialTask, _: usize| {
        Some(if task.point.label() == "window=1000" { 1e6 } else { 1e6 + 4e3 * f64::from(task.repeat) })
    };
    let mut network = SimulatedNetwork::new(&plan, &noisy);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    let seen = network.carry_out(&mut scheduler, usize::MAX);
    let count = |label: &str| seen.iter().filter(|(of, _)| of == label).count();
    assert_eq!((count("window=1000"), count("window=2000")), (6, 9));
    assert!(!scheduler.is_missing_any());
    let sums = scheduler.sum().unwrap();
    let goodput: Vec<_> = sums.iter().filter(|one| one.quantity == "goodput").collect();
    assert_eq!(goodput[1].median, Some(1.02e6));
    // Ranks 2 and 8 of 9: 1 - 2 x (1 + 9) / 512.
    let interval = goodput[1].interval.unwrap();
    assert_eq!((interval.low, interval.high), (1.008e6, 1.032e6));
    assert!((interval.coverage - 0.960_937_5).abs() < 1e-9, "{interval:?}");
}

#[test]
fn five_trials_have_no_interval_and_flows_at_once_have_a_fairness() {
    let flows = "[flow.x]\nfrom = \"a\"\nto = \"b\"\n[flow.y]\nfrom = \"b\"\nto = \"a\"\n[flow.noise]\nfrom = \"a\"\nto = \"b\"\ncross_traffic = true\n";
    let plan = plan(&format!("repeats = 5\ntest = {{ upload = true }}\n{flows}"));
    let mut network = SimulatedNetwork::new(&plan, &|_, flow| Some([3e6, 1e6, 9e9][flow]));
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    network.carry_out(&mut scheduler, usize::MAX);
    let sums = scheduler.sum().unwrap();
    let of =
        |flow: &str, quantity: &str| sums.iter().find(|one| one.flow == flow && one.quantity == quantity);
    assert_eq!(of("x", "goodput").unwrap().interval, None);
    // (3 + 1)^2 / (2 (9 + 1)), without the cross traffic.
    assert_eq!(of("x", "fairness").unwrap().median, Some(0.8));
    assert_eq!(of("y", "fairness").unwrap().values.len(), 5);
    assert!(of("noise", "fairness").is_none() && of("noise", "goodput").is_some());
}

#[test]
fn assertions_see_the_median_of_the_trials_and_other_plans_by_name() {
    let text = "repeats = 3\ntest = { upload = true }\naxis.window = [1000, 2000]\nassert = [\n\"goodput >= 2M\",\n\
                \"goodput >= 0.9 run(\\\"old\\\").goodput\",\n\"loss == 0\",\n]\n";
    let plan = plan(text);
    let measured = |task: &TrialTask, _: usize| {
        let base = if task.point.label() == "window=1000" { 1e6 } else { 2e6 };
        Some(base * [0.5, 1.0, 100.0][task.repeat as usize - 1])
    };
    let mut network = SimulatedNetwork::new(&plan, &measured);
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    network.carry_out(&mut scheduler, usize::MAX);
    let sums = scheduler.sum().unwrap();
    let old = PlanRecord { summaries: sums.clone(), ..PlanRecord::default() };
    let verdicts = |others: BTreeMap<String, PlanRecord>| -> Vec<bool> {
        judgements(&plan, &sums, &others).iter().map(|one| one.holds).collect()
    };
    let named = BTreeMap::from([("old".to_owned(), old)]);
    assert_eq!(verdicts(named), [false, true, true, true, false, false]);
    assert_eq!(verdicts(BTreeMap::new()), [false, true, false, false, false, false]);
    let all = judgements(&plan, &sums, &BTreeMap::new());
    assert_eq!(all[0].found.as_deref(), Some("found 1.000 Mb/s, but required >= 2.000 Mb/s"));
    assert!(all[4].found.as_deref().unwrap().starts_with("not measured: loss"), "{:?}", all[4]);
    let results = TrialResults::default();
    let point = plan.point(0).unwrap();
    let nothing = results.sum(&plan, &point);
    let none = BTreeMap::new();
    let outcomes = judge_at(&plan, &plan.assertions[0].relation, &point, &Summed::new(&nothing, &none));
    assert!(outcomes.len() == 1 && !outcomes[0].holds());
}

#[test]
fn the_standing_counts_down() {
    let plan = plan(SMALL);
    let mut network = SimulatedNetwork::new(&plan, &|_, _| Some(1e6));
    let mut scheduler = PlanScheduler::new(&plan).unwrap();
    let all = scheduler.progress();
    assert_eq!((all.done, all.of, all.completed_time), (0, 6, Span::ZERO));
    network.carry_out(&mut scheduler, 4);
    let now = scheduler.progress();
    assert_eq!((now.done, now.completed_time + now.left), (4, all.left));
    network.carry_out(&mut scheduler, 9);
    assert_eq!(scheduler.progress().left, Span::ZERO);
}
