//! Groups of runs: when each begins and ends, what follows it, and what its log contains.

use std::sync::atomic::{AtomicBool, Ordering};

use linerate_control::{
    After, Coordinator, FlowJob, Log, RunEvent, RunGroup, ServerConfig, ServerEvent, Sink, SinkError,
    run_group,
};
use linerate_model::{Body, CaveatKind, Event, Outcome};
use linerate_units::{Span, Timestamp};

use super::hosts::{LoopbackAgent, carry_out, flow, group, test_bed, token, unknown_client};

#[test]
fn two_runs_to_one_exclusive_server_go_together_and_a_stranger_waits() {
    let (a, b, c) = (LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start());
    let group = group(vec![flow(0, 1, 4000), flow(2, 1, 4000)]);
    let test_bed = test_bed([&a, &b, &c]);
    let runs = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            b.wait_for(|event| matches!(event, ServerEvent::Held { .. }).then_some(()));
            let late = unknown_client(&b);
            let first = b.wait_for(|event| match event {
                ServerEvent::Waiting { .. } => Some("waited"),
                ServerEvent::Ended { .. } => Some("did not wait"),
                _ => None,
            });
            (late, first)
        });
        let runs = carry_out(test_bed, &group).unwrap();
        let (late, first) = waiting.join().unwrap();
        assert_eq!((late.outcome, first), (Some(Outcome::Completed), "waited"));
        runs
    });
    for (end, record) in &runs {
        assert_eq!((end.outcome, record.outcome), (Outcome::Completed, Some(Outcome::Completed)), "{end:?}");
        assert!(record.flows[0].bitrate().is_some() && record.hosts.len() == 2);
        let place = record.group.as_ref().unwrap();
        assert_eq!((place.group.as_str(), place.cross_traffic), ("together", false));
        let (start, noted) = (end.start.unwrap(), record.group_start.unwrap());
        assert_eq!((start.start_error, Some(start.clock_error)), (noted.start_error, noted.clock_error));
        eprintln!("start error {}, clock error {}", start.start_error, start.clock_error);
        assert!(start.start_error < Span::from_secs(1) && start.clock_error < Span::from_secs(1));
        assert!(!record.caveats.iter().any(|caveat| caveat.kind == CaveatKind::ConcurrentRun), "{record:?}");
    }
    assert_eq!(runs[0].0.start.unwrap().planned, runs[1].0.start.unwrap().planned);
}

#[test]
fn an_agent_measures_its_own_loopback() {
    let a = LoopbackAgent::start();
    let ends = carry_out(test_bed([&a]), &group(vec![flow(0, 0, 300)])).unwrap();
    assert_eq!(ends[0].0.outcome, Outcome::Completed, "{:?}", ends[0].0);
}

#[test]
fn the_stop_flag_ends_everything_and_keeps_what_was_measured() {
    let (a, b) = (LoopbackAgent::start(), LoopbackAgent::start());
    let stop = AtomicBool::new(false);
    let mut logs = [Log::new("1".to_owned(), Vec::new())];
    let mut on = |event: &RunEvent<'_>| {
        if matches!(event.body, Body::Progress { .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let ends =
        run_group(test_bed([&a, &b]), &group(vec![flow(0, 1, 60_000)]), &mut logs, &stop, &mut on).unwrap();
    assert_eq!(ends[0].outcome, Outcome::Interrupted, "{ends:?}");
    assert!(logs[0].record().flows[0].receiver.is_some());
}

#[test]
fn cross_traffic_ends_with_the_others_and_who_starts_later_starts_later() {
    let (a, b, c, d) =
        (LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start());
    let cross_traffic = FlowJob { cross_traffic: true, ..flow(0, 1, 60_000) };
    let later = FlowJob { start_after: Span::from_ms(700), ..flow(2, 3, 500) };
    let runs = carry_out(test_bed([&a, &b, &c, &d]), &group(vec![cross_traffic, later])).unwrap();
    let [(under, under_record), (over, _)] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((under.outcome, over.outcome), (Outcome::Completed, Outcome::Completed), "{runs:?}");
    let (first, second) = (under.start.unwrap().planned, over.start.unwrap().planned);
    assert_eq!(second.since(first), Span::from_ms(700));
    let (_, elapsed) = under_record.flows[0].received().unwrap();
    assert!(elapsed < Span::from_secs(30), "{elapsed}");
}

#[test]
fn cross_traffic_that_ends_before_the_others_has_failed() {
    let (a, b, c, d) =
        (LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start());
    let cross_traffic = FlowJob { cross_traffic: true, ..flow(0, 1, 200) };
    let runs = carry_out(test_bed([&a, &b, &c, &d]), &group(vec![cross_traffic, flow(2, 3, 4000)])).unwrap();
    let [(under, under_record), (over, _)] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((under.outcome, over.outcome), (Outcome::Failed, Outcome::Completed), "{runs:?}");
    let reason = under.reason.as_deref().unwrap();
    assert!(reason.contains("ended before the runs that it belongs to"), "{reason}");
    assert_eq!(under_record.outcome, Some(Outcome::Failed), "its log says so too");
}

#[test]
fn a_waiting_run_begins_after_the_real_end_of_the_others_and_its_lateness_is_its_own() {
    let (a, b, c, d) =
        (LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start());
    let after = |flows: Vec<usize>, ms| Some(After { flows, pause: Span::from_ms(ms) });
    // By the estimate alone it would begin in ten minutes.
    let second = FlowJob { start_after: Span::from_secs(600), after: after(vec![0], 0), ..flow(2, 3, 600) };
    let third = FlowJob { after: after(vec![0, 1], 200), ..second.clone() };
    let runs =
        carry_out(test_bed([&a, &b, &c, &d]), &group(vec![flow(0, 1, 800), second.clone(), third])).unwrap();
    let starts: Vec<_> = runs.iter().map(|(end, _)| end.start.unwrap()).collect();
    for ((end, record), start) in runs.iter().zip(&starts) {
        assert_eq!(end.outcome, Outcome::Completed, "{end:?}");
        let noted = record.group_start.unwrap();
        assert_eq!(noted.start_error, start.start_error, "the log says the same");
    }
    let began = |at: usize| starts[at].planned + starts[at].start_error;
    assert!(starts[1].planned >= began(0) + Span::from_ms(800), "{starts:?}");
    assert!(starts[2].planned >= began(1) + Span::from_ms(800), "{starts:?}");
    assert!(began(2).since(began(0)) < Span::from_secs(60), "not by the estimate: {starts:?}");
    // It was prepared after the other had ended, and that time is part of its start error.
    assert!(starts[1].start_error > Span::ZERO, "{starts:?}");
    assert_eq!(runs[1].1.group_start.unwrap().planned, Timestamp::START, "before it was there itself");

    // A flow that could never begin is refused.
    for wrong in [vec![7], vec![1]] {
        let waits = FlowJob { after: after(wrong, 0), ..second.clone() };
        let troubles =
            carry_out(test_bed([&a, &b, &c, &d]), &group(vec![flow(0, 1, 100), waits])).unwrap_err();
        assert!(troubles[0].to_string().starts_with("flow 2: it waits for a run"), "{troubles:?}");
    }
    let cross_traffic = FlowJob { cross_traffic: true, ..flow(0, 1, 100) };
    let troubles = carry_out(test_bed([&a, &b, &c, &d]), &group(vec![cross_traffic, second])).unwrap_err();
    assert!(troubles[0].to_string().contains("cross traffic"), "{troubles:?}");
}

#[test]
fn the_next_group_is_prepared_while_this_one_is_judged_and_another_one_may_follow() {
    let (a, b) = (LoopbackAgent::start(), LoopbackAgent::start());
    let (first, second) = (group(vec![flow(0, 1, 200)]), group(vec![flow(0, 1, 150)]));
    let stop = AtomicBool::new(false);
    let mut coordinator = Coordinator::connect(test_bed([&a, &b]), &stop).unwrap();
    let mut begun = Vec::new();
    let mut run = |group: &RunGroup, next: Option<&RunGroup>| {
        let mut logs = [Log::new("run".to_owned(), Vec::new())];
        let mut on =
            |event: &RunEvent<'_>| begun.extend(matches!(event.body, Body::Started(_)).then_some(event.at));
        let end = coordinator.run_before(group, next, &mut logs, &stop, &mut on).unwrap().remove(0);
        let [log] = logs;
        let record = log.into_record();
        assert_eq!((end.outcome, record.outcome), (Outcome::Completed, Some(Outcome::Completed)), "{end:?}");
        let measured = record.start.unwrap().spec.traffic.duration;
        assert_eq!(
            (measured, record.hosts.len(), record.flows.len()),
            (group.flows[0].spec.traffic.duration, 2, 1)
        );
        assert!(end.start.unwrap().start_error < Span::from_secs(1) && record.group_start.is_some());
    };
    let asked = || a.wait_for(|event| matches!(event, ServerEvent::Asked { .. }).then_some(()));
    run(&first, Some(&second));
    asked();
    asked();
    run(&second, Some(&first));
    // The group that follows is not the prepared one.
    run(&second, None);
    run(&first, Some(&second));
    coordinator.finish();
    assert_eq!(begun.len(), 4);
    assert!(begun.is_sorted(), "nothing begins before the one before it is over: {begun:?}");
    // The last prepared group blocks nobody.
    assert_eq!(unknown_client(&b).outcome, Some(Outcome::Completed));
    drop(a);
    drop(b);
}

#[test]
fn events_of_all_runs_come_with_the_time_of_the_coordinator() {
    let (mut a, b, c, d) =
        (LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start(), LoopbackAgent::start());
    // Two groups, so that the runs of the second begin long after the coordinator's time origin. In between one
    // agent is restarted, so its clock begins anew.
    let groups = [group(vec![flow(0, 1, 1500)]), group(vec![flow(0, 1, 300), flow(2, 3, 300)])];
    let mut logs = [Log::new("1".to_owned(), Vec::new()), Log::new("2".to_owned(), Vec::new())];
    let mut began: Vec<(usize, Timestamp, Span)> = Vec::new();
    let mut on = |event: &RunEvent<'_>| {
        if let Body::Started(start) = event.body {
            began.push((event.flow, event.at, start.start_error));
        }
    };
    let mut coordinator = Coordinator::connect(test_bed([&a, &b, &c, &d]), &AtomicBool::new(false)).unwrap();
    let error = coordinator.host_states().into_iter().map(|s| s.unwrap().offset_error).max().unwrap();
    let stop = AtomicBool::new(false);
    let mut first = [Log::new("0".to_owned(), Vec::new())];
    coordinator.run_group(&groups[0], &mut first, &stop, &mut |_| ()).unwrap();
    let address = a.address;
    drop(a);
    a = LoopbackAgent::at(address, ServerConfig { agent_token: Some(token()), ..ServerConfig::default() });
    let ends = coordinator.run_group(&groups[1], &mut logs, &stop, &mut on).unwrap();
    coordinator.finish();
    assert!(ends.iter().all(|end| end.outcome == Outcome::Completed) && began.len() == 2, "{ends:?}");
    drop(a);
    for (flow, at, late) in began {
        let start = ends[flow].start.unwrap();
        // The event was logged right after the start, and all hosts share one clock. The difference is the
        // error of the offsets and a few instructions.
        let deviation = at.as_ns().abs_diff((start.planned + late).as_ns());
        eprintln!("flow {flow}: {deviation} ns from plan and lateness, offset error {error}");
        assert!(Span::from_ns(deviation) < Span::from_secs(1), "{deviation} ns");
    }
}

/// A sink that records sequence numbers and times.
#[derive(Default)]
struct OrderSink(Vec<(u64, Timestamp)>);

impl Sink for OrderSink {
    fn on(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.push((event.seq, event.at));
        Ok(())
    }
}

#[test]
fn the_log_of_a_run_is_one_without_gaps_and_in_order() {
    let (a, b) = (LoopbackAgent::start(), LoopbackAgent::start());
    let mut order = OrderSink::default();
    let mut logs = [Log::new("1".to_owned(), vec![&mut order])];
    let group = group(vec![flow(0, 1, 300)]);
    run_group(test_bed([&a, &b]), &group, &mut logs, &AtomicBool::new(false), &mut |_| ()).unwrap();
    drop(logs);
    assert!(order.0.iter().enumerate().all(|(at, (seq, _))| at as u64 == *seq));
    // Events from before the agent began the run have no time of their own.
    assert!(order.0[..2].iter().all(|(_, at)| *at == Timestamp::START), "{:?}", order.0);
    assert!(order.0.is_sorted_by_key(|(_, at)| *at), "{:?}", order.0);
}
