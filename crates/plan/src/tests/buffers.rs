//! The buffer of a bottleneck by each of its methods, with figures calculated by hand: a line of 10 Gb/s, of
//! which payload gets 9.9 Gb/s, and an RTT of 50 ms.

use linerate_model::flow::FlowId;
use linerate_model::metrics::{Sample, loss, tcp};
use linerate_model::{
    Body, Ceiling, Digest, Direction, EVENT_SCHEMA, Event, FlowPlan, LatencyInterval, LatencyReport, Limit,
    MethodCell, MethodTable, Outcome, PlanRecord, ProbePhase, ProbeTransport, Readings, RunRecord, RunStart,
    Side, Steady, Tally, TestSpec, Transport, TrialRun, UdpTally, World,
};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};

use super::plan;
use crate::{Plan, PlanHeaderFacts, PlanScheduler, RunMeasurements, TrialFigures, tables};

const MS: u64 = 1_000_000;

fn rate(bps: f64) -> Bitrate {
    Bitrate::from_bps(bps).unwrap()
}

fn latency(phase: ProbePhase, intervals: Vec<LatencyInterval>) -> LatencyReport {
    LatencyReport {
        phase,
        transport: ProbeTransport::Udp,
        sent: 9,
        lost: 0,
        rtt: Digest { count: 9, min_ns: 50 * MS, p50_ns: 50 * MS, ..Digest::default() },
        upload: None,
        download: None,
        offset_ns: None,
        offset_error_ns: None,
        kernel_timestamps: true,
        intervals,
        histogram: Vec::new(),
    }
}

/// Probes in intervals of 0.1 s from the start of the run, with these round trips, us.
fn intervals(rtt_us: &[u64]) -> Vec<LatencyInterval> {
    let interval = |(at, rtt): (u64, &u64)| LatencyInterval {
        start_ns: Timestamp::from_ns(at * 100 * MS),
        end_ns: Timestamp::from_ns((at + 1) * 100 * MS),
        count: 10,
        min_ns: rtt * 1000,
        high_ns: rtt * 1000,
        max_ns: 999 * MS,
        ..LatencyInterval::default()
    };
    (0..).zip(rtt_us).map(interval).collect()
}

/// One run: specification, transport, samples, probes and received rate, bit/s.
struct BufferRun {
    spec: TestSpec,
    transport: Transport,
    samples: Vec<(Side, bool, Readings)>,
    intervals: Vec<u64>,
    sender: Tally,
    receiver: Tally,
}

impl BufferRun {
    fn udp(offered: f64, received: f64, lost: u64) -> Self {
        let mut spec = TestSpec::default();
        spec.traffic.udp = true;
        spec.traffic.upload = true;
        let tally = |bps| Tally { bitrate: rate(bps), elapsed: Span::from_secs(2), ..Tally::default() };
        let udp = UdpTally { packets: 1000, lost, ..UdpTally::default() };
        Self {
            spec,
            transport: Transport::Udp,
            samples: Vec::new(),
            intervals: Vec::new(),
            sender: tally(offered),
            receiver: Tally { udp: Some(udp), ..tally(received) },
        }
    }

    fn record(&self) -> RunRecord {
        let mut spec = self.spec.clone();
        spec.host.link = Some(rate(10e9));
        let start = RunStart {
            schema: EVENT_SCHEMA.into(),
            started_at: "".into(),
            world: World::Lab,
            linerate: "".into(),
            target: "".into(),
            spec,
        };
        let flow = FlowPlan {
            flow: FlowId(0),
            name: "upload".into(),
            from: "a".into(),
            to: "b".into(),
            transport: self.transport,
            direction: Direction::Upload,
            streams: 2,
        };
        let first = Body::Progress {
            flow: FlowId(0),
            bytes: Bytes::new(1),
            elapsed: Span::ZERO,
            srtt: None,
            retransmits: None,
        };
        let ceiling = Ceiling { limit: Limit::Link, bitrate_bps: 9.9e9, because: "".into(), slack_bps: 0.0 };
        let loaded = latency(ProbePhase::Loaded, intervals(&self.intervals));
        let steady = Steady { ramp_ns: Span::ZERO, bitrate: self.receiver.bitrate, half_width: None };
        let mut bodies = vec![
            Body::RunStarted(Box::new(start)),
            Body::Latency { flow: None, report: latency(ProbePhase::Idle, Vec::new()) },
            Body::FlowPlanned(flow),
            first,
        ];
        let sample = |(at, (side, outside, readings)): (u64, &(Side, bool, Readings))| Body::Sample {
            flow: FlowId(0),
            sample: Sample {
                side: *side,
                start_ns: Timestamp::from_ns(at * 100 * MS),
                end_ns: Timestamp::from_ns((at + 1) * 100 * MS),
                outside: *outside,
                readings: readings.clone(),
            },
        };
        bodies.extend((0..).zip(&self.samples).map(sample));
        bodies.push(Body::Latency { flow: Some(FlowId(0)), report: loaded });
        if self.spec.traffic.no_latency {
            bodies.retain(|body| !matches!(body, Body::Latency { .. }));
        }
        bodies.extend([
            Body::FlowEnded { flow: FlowId(0), side: Side::Sender, tally: self.sender.clone() },
            Body::FlowEnded { flow: FlowId(0), side: Side::Receiver, tally: self.receiver.clone() },
            Body::Steady { flow: FlowId(0), steady },
            Body::Ceilings { flow: FlowId(0), ceilings: vec![ceiling], ceiling: None },
        ]);
        let event =
            |(seq, body): (u64, Body)| Event { run: "r".into(), host: 0, seq, at: Timestamp::START, body };
        RunRecord::fold(&(0..).zip(bodies).map(event).collect::<Vec<_>>())
    }
}

/// Two seconds of TCP at 7.92 Gb/s, half a second of them omitted. Segments are lost in the third tenth of a
/// second, when the RTT of the probes is `full_us`.
fn long_flow(full_us: u64, load: f64) -> BufferRun {
    let sample = |at: u64| {
        let mut readings = Readings::default();
        readings.put(tcp::BYTES_ACKED, Bytes::new(if at == 3 { 0 } else { 99_000_000 }));
        // 13,750 segments of 9000 bytes in 0.1 s are 9.9 Gb/s.
        readings.put(tcp::DELIVERED, (13_750.0 * load) as u64);
        readings.put(tcp::SND_MSS, Bytes::new(9000));
        readings.put(tcp::CWND, Bytes::new(55_440_000));
        readings.put(tcp::SRTT, Span::from_ms(51));
        readings.put(tcp::MIN_RTT, Span::from_ms(50));
        readings.put(tcp::RETRANSMITS, if at == 3 { 700 } else { 0 });
        (Side::Sender, at < 5, readings)
    };
    let mut run = BufferRun::udp(7.92e9, 7.92e9, 0);
    run.spec.traffic.udp = false;
    run.transport = Transport::Tcp;
    run.samples = (0..20).map(sample).collect();
    run.intervals = vec![50_500; 20];
    run.intervals[2] = full_us;
    run
}

/// The other load: 2 Gb/s of datagrams of 8192 bytes are offered, 1.98 Gb/s arrive, a fifth of the line's
/// payload rate.
fn noise() -> BufferRun {
    let mut run = BufferRun::udp(2e9, 1.98e9, 0);
    run.spec.traffic.rate = Some(rate(1e9));
    run.spec.traffic.length = Some(Bytes::new(8192));
    run
}

const PLAN: &str = "method = \"switch-buffer\"\ntest.upload = true\npause = 0\n\
    [flow.large]\nfrom = \"a\"\nto = \"b\"\n[flow.noise]\nfrom = \"a\"\nto = \"b\"\ncross_traffic = true\ntest = { udp = true }\n";

/// A plan with its trials: the summaries and the tables.
fn carry_out(plan: &Plan, trials: &[[BufferRun; 2]]) -> (PlanRecord, Vec<MethodTable>) {
    let opening = PlanHeaderFacts {
        started_at: String::new(),
        world: World::Lab,
        linerate: String::new(),
        set: Vec::new(),
    };
    let mut record = PlanRecord::default();
    let mut note = |body| {
        record.apply(&Event { run: "p".into(), host: 0, seq: 0, at: Timestamp::START, body });
    };
    note(Body::PlanStarted(Box::new(plan.open(opening).unwrap())));
    let mut scheduler = PlanScheduler::new(plan).unwrap();
    let mut kept: Vec<RunRecord> = Vec::new();
    for trial in trials {
        let task = scheduler.next_task().unwrap().unwrap();
        let records: Vec<RunRecord> = trial.iter().map(BufferRun::record).collect();
        let run = |(at, flow): (usize, &str)| TrialRun {
            flow: flow.into(),
            run: (kept.len() + at).to_string().into(),
            outcome: Outcome::Completed,
            reason: None,
            began: None,
            start_error: None,
            clock_error: None,
        };
        let runs = ["large", "noise"].into_iter().enumerate().map(run).collect();
        let figures: TrialFigures = records.iter().map(|record| Some(RunMeasurements::of(record))).collect();
        kept.extend(records);
        scheduler.done(&task, runs, figures).into_iter().for_each(&mut note);
    }
    scheduler.sum().unwrap().into_iter().for_each(|summary| note(Body::PointSummed(summary)));
    let tables = tables(plan, &record, &|run| kept.get(run.parse::<usize>().ok()?).cloned());
    (record, tables)
}

/// The cell of a column in a row.
fn cell<'t>(table: &'t MethodTable, row: usize, column: &str) -> &'t MethodCell {
    let at = table.columns.iter().position(|one| one.name == column).unwrap_or_else(|| panic!("no {column}"));
    &table.rows[row].cells[at]
}

fn near(cell: &MethodCell, expected: f64) {
    let value = cell.value.unwrap_or_else(|| panic!("no {expected}: {cell:?}"));
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} instead of {expected}");
}

#[test]
fn a_drop_in_the_omitted_start_shows_the_buffer() {
    // 12.8 ms at 10 Gb/s are 16 MB; shares of 0.8 and 0.2 fill the line.
    let plan = plan(PLAN);
    let (record, tables) = carry_out(&plan, &[[long_flow(62_800, 0.8), noise()]]);
    let table = &tables[0];
    assert_eq!(cell(table, 0, "method").text.as_deref(), Some("A: round trip at drops"));
    near(cell(table, 0, "buffer"), 16e6);
    near(cell(table, 0, "at the line rate"), 12.8e6);
    assert_eq!(cell(table, 0, "kind").text.as_deref(), Some("estimate"));
    assert!(!cell(table, 0, "buffer").at_least);
    near(cell(table, 0, "load at drop"), 1.0);
    near(cell(table, 0, "rate"), 7.92e9);
    // 2 Gb/s in datagrams of 8192 bytes, each 8258 on the line, take 2.01611 of 10 Gb/s; 9.9 Gb/s are shared.
    near(cell(table, 0, "rate expected"), 9.9e9 * (1.0 - 0.2 * 8258.0 / 8192.0));
    let summed = record.summaries.iter().find(|one| one.quantity == "buffer").and_then(|one| one.median);
    assert!(summed.is_some_and(|bytes| (bytes / 16e6 - 1.0).abs() < 1e-6), "{summed:?}");
}

#[test]
fn the_estimate_of_several_trials_has_the_interval_of_its_median() {
    let plan = plan(&format!("repeats = 6\n{PLAN}"));
    let trials: Vec<[BufferRun; 2]> =
        [62_800, 62_400, 63_200, 62_000, 62_800, 63_600].map(|full| [long_flow(full, 0.8), noise()]).into();
    let (_, tables) = carry_out(&plan, &trials);
    let buffer = cell(&tables[0], 0, "buffer");
    near(buffer, 16e6);
    // With six values the interval is from the smallest to the largest: 12.0 and 13.6 ms.
    assert_eq!((buffer.low.map(f64::round), buffer.high.map(f64::round)), (Some(15e6), Some(17e6)));
}

#[test]
fn losses_at_a_line_with_room_are_called_that() {
    let (_, tables) = carry_out(&plan(PLAN), &[[long_flow(62_800, 0.5), noise()]]);
    assert_eq!(cell(&tables[0], 0, "kind").text.as_deref(), Some("loss not caused by a full queue"));
    assert_eq!(*cell(&tables[0], 0, "buffer"), MethodCell::default());
    near(cell(&tables[0], 0, "load at drop"), 0.7);
    let mut quiet = long_flow(62_800, 0.8);
    quiet.samples[3].2.put(tcp::RETRANSMITS, 0);
    let (_, tables) = carry_out(&plan(PLAN), &[[quiet, noise()]]);
    near(cell(&tables[0], 0, "buffer"), 16e6);
    assert!(cell(&tables[0], 0, "buffer").at_least);
    assert_eq!(cell(&tables[0], 0, "kind").text.as_deref(), Some("lower bound: no drop at a full queue"));
}

#[test]
fn a_buffer_that_most_trials_did_not_find_is_not_shown() {
    let plan = plan(&format!("repeats = 3\n{PLAN}"));
    let trial = |load| [long_flow(62_800, load), noise()];
    let (_, tables) = carry_out(&plan, &[trial(0.8), trial(0.5), trial(0.5)]);
    assert_eq!(*cell(&tables[0], 0, "buffer"), MethodCell::default());
    let kinds = cell(&tables[0], 0, "kind").text.clone();
    assert_eq!(kinds.as_deref(), Some("estimate x1, loss not caused by a full queue x2"));
    let (_, tables) = carry_out(&plan, &[trial(0.8), trial(0.5), trial(0.8)]);
    near(cell(&tables[0], 0, "buffer"), 16e6);
}

#[test]
fn every_second_has_what_its_window_and_rate_imply() {
    let (_, tables) = carry_out(&plan(PLAN), &[[long_flow(62_800, 0.8), noise()]]);
    let table = tables.last().unwrap();
    assert_eq!(table.rows.len(), 2);
    // 0.1 s of the first second has nothing acknowledged: 9 times 99 MB.
    near(cell(table, 0, "rate"), 7.128e9);
    near(cell(table, 1, "rate"), 7.92e9);
    near(cell(table, 0, "retransmits"), 700.0);
    assert_eq!(cell(table, 0, "implied round trip").value, None, "nothing is known of the window before");
    // 55.44 MB at 7.92 Gb/s are 56 ms: 6 ms of queue at 10 Gb/s.
    near(cell(table, 1, "implied round trip"), 56e6);
    near(cell(table, 1, "queue"), 7.5e6);
    near(cell(table, 0, "probes' largest"), 62.8e6);
}

#[test]
fn the_sizes_that_would_suit_are_those_of_the_path() {
    let (_, tables) = carry_out(&plan(PLAN), &[[long_flow(62_800, 0.8), noise()]]);
    // 10 Gb/s times 50 ms; divided by the root of two; 3/7 of it.
    [62.5e6, 62.5e6 / 2f64.sqrt(), 62.5e6 * 3.0 / 7.0]
        .into_iter()
        .enumerate()
        .for_each(|(row, bytes)| near(cell(&tables[1], row, "buffer"), bytes));
}

#[test]
fn the_longest_burst_without_a_loss_leaves_the_buffer_waiting() {
    let text = PLAN.replace("test.upload = true", "test.upload = true\ntest.udp = true")
        + "[axis.bytes]\nkey = \"flow.large.bytes\"\nfrom = \"1M\"\nto = \"64M\"\nresolution = \"50%\"\npass = \"loss == 0\"\n";
    let plan = plan(&text);
    // As fast as the line; with another 0.2, a sixth of all waits. 49.5 MB of payload are 50 MB on the line: 10
    // MB.
    let burst = |lost| {
        let mut run = BufferRun::udp(12e9, 9.9e9, lost);
        run.spec.traffic.bytes = Some(Bytes::new(49_500_000));
        run.sender.total_bytes = Bytes::new(49_500_000);
        let mut noise = BufferRun::udp(1.98e9, 1.98e9, 0);
        // No RTT is needed for that.
        (run.spec.traffic.no_latency, noise.spec.traffic.no_latency) = (true, true);
        [run, noise]
    };
    let (record, tables) = carry_out(&plan, &[burst(3), burst(0)]);
    near(cell(&tables[0], 0, "buffer"), 10e6);
    assert_eq!(cell(&tables[0], 0, "kind").text.as_deref(), Some("estimate"));
    assert!(!cell(&tables[0], 0, "buffer").at_least, "the search has tried more");
    assert!(record.found.iter().all(|found| found.number == Some(32.5 * 1_048_576.0)), "{:?}", record.found);
}

#[test]
fn a_step_of_load_shows_the_buffer_as_a_plateau() {
    let plan = plan(&PLAN.replace("test.upload = true", "test.upload = true\ntest.udp = true"));
    // 1.1 times the line: the delay rises by 10 ms per 0.1 s, up to 40 ms, which are 50 MB.
    let mut step = BufferRun::udp(8.91e9, 7.92e9, 500);
    let sample = |at: u64| {
        let mut readings = Readings::default();
        readings.put(loss::LOST, if at >= 4 { 50 } else { 0 });
        (Side::Receiver, false, readings)
    };
    step.samples = (0..20).map(sample).collect();
    step.intervals = (0..20).map(|at: u64| 50_000 + (at * 10_000 + 5_000).min(40_000)).collect();
    let (_, tables) = carry_out(&plan, &[[step, BufferRun::udp(1.98e9, 1.98e9, 0)]]);
    near(cell(&tables[0], 0, "buffer"), 50e6);
    assert_eq!(cell(&tables[0], 0, "method").text.as_deref(), Some("C: step of load"));
    near(cell(&tables[0], 0, "load at drop"), 1.1);
    assert_eq!(tables[0].notes, [""; 0], "the delay rose as fast as it should");
}
