//! Tables of the methods, from hand-made results.

use std::collections::BTreeMap;

use linerate_model::{
    Body, Direction, Event, MethodCell, MethodTable, Outcome, PlanRecord, PointSummary, RunRecord,
    SearchStep, SummaryInterval, TrialEnd, TrialRun, World,
};
use linerate_units::Timestamp;
use serde_json::{Value, json};

use super::plan;
use crate::{Plan, PlanHeaderFacts, QUANTITIES, QuantityValue, tables};

/// A plan's log, as far as the tables use it.
pub(super) struct MethodLog<'p> {
    plan: &'p Plan,
    pub(super) record: PlanRecord,
    runs: BTreeMap<String, RunRecord>,
}

impl<'p> MethodLog<'p> {
    pub(super) fn of(plan: &'p Plan) -> Self {
        let opening = PlanHeaderFacts {
            started_at: String::new(),
            world: World::Lab,
            linerate: String::new(),
            set: Vec::new(),
        };
        let mut log = Self { plan, record: PlanRecord::default(), runs: BTreeMap::new() };
        log.note(Body::PlanStarted(Box::new(plan.open(opening).unwrap())));
        log
    }

    pub(super) fn note(&mut self, body: Body) {
        let seq = self.record.events;
        self.record.apply(&Event { run: "p".into(), host: 0, seq, at: Timestamp::START, body });
    }

    pub(super) fn point(&self, number: usize) -> String {
        self.plan.point(number).unwrap().id.to_string()
    }

    /// Adds medians of a flow's uploads at a point.
    pub(super) fn sum(&mut self, point: usize, flow: &str, medians: &[(&str, f64)]) {
        for (quantity, median) in medians {
            assert!(QUANTITIES.iter().any(|known| known.name == *quantity), "{quantity}");
            let interval = SummaryInterval { low: median - 1.0, high: median + 1.0, coverage: 0.97 };
            self.note(Body::PointSummed(PointSummary {
                point: self.point(point).into(),
                flow: flow.into(),
                direction: Direction::Upload,
                quantity: (*quantity).into(),
                unit: None,
                values: vec![*median],
                repeats: Vec::new(),
                median: Some(*median),
                interval: Some(interval),
                words: Vec::new(),
            }));
        }
    }

    /// Adds a trial of one flow, and its run.
    pub(super) fn trial(
        &mut self,
        point: usize,
        repeat: u32,
        step: Option<SearchStep>,
        flow: &str,
        bodies: &[Value],
    ) {
        let run = format!("{point}-{}", self.record.trials.len());
        let event = |(seq, body): (usize, &Value)| -> Event {
            serde_json::from_value(json!({ "run": run, "host": 0, "seq": seq, "at_ns": 0, "body": body }))
                .unwrap()
        };
        let events: Vec<Event> = bodies.iter().enumerate().map(event).collect();
        self.runs.insert(run.clone(), RunRecord::fold(&events));
        let runs = vec![TrialRun {
            flow: flow.into(),
            run: run.into(),
            outcome: Outcome::Completed,
            reason: None,
            began: None,
            start_error: None,
            clock_error: None,
        }];
        let value = step
            .as_ref()
            .zip(self.plan.search.as_ref())
            .map(|(step, search)| search.high.with_number(step.number));
        let content = self.plan.point_with(point, value.flatten().as_ref()).unwrap().content;
        self.note(Body::TrialEnded(TrialEnd {
            point: self.point(point).into(),
            repeat,
            content: format!("{content:016x}").into(),
            step,
            runs,
        }));
    }

    pub(super) fn tables(&self) -> Vec<MethodTable> {
        tables(self.plan, &self.record, &|run| self.runs.get(run).cloned())
    }
}

/// The cell of a row in a column.
pub(super) fn cell<'t>(table: &'t MethodTable, row: usize, head: &str) -> &'t MethodCell {
    let at = table.columns.iter().position(|column| column.name == head).unwrap_or_else(|| panic!("{head}"));
    &table.rows[row].cells[at]
}

pub(super) fn value(table: &MethodTable, row: usize, head: &str) -> f64 {
    cell(table, row, head).value.unwrap_or_else(|| panic!("{head} in row {row}"))
}

pub(super) fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found}, expected {expected}");
}

pub(super) fn flow(name: &str) -> Value {
    json!({ "kind": "flow_planned", "flow": 0, "name": name, "from": "a", "to": "b", "transport": "udp",
        "direction": "upload", "streams": 1 })
}

#[test]
fn a_plan_without_a_method_has_no_tables_and_one_without_results_neither() {
    let none = plan("test.upload = true\naxis.streams = [1, 4]\n");
    let mut log = MethodLog::of(&none);
    log.sum(0, "a-b", &[("goodput", 1e9), ("window_rate", 1e9)]);
    assert!(log.tables().is_empty());
    for method in ["rfc6349", "rfc2544", "window", "block-size"] {
        let text = format!(
            "method = \"{method}\"\n[test]\nudp = true\n[axis.rate]\nto = \"1G\"\nfrom = 0\npass = \"loss == 0\""
        );
        assert!(MethodLog::of(&plan(&text)).tables().is_empty(), "{method}");
    }
}

/// 64 KiB over 21 ms are 24.966 Mb/s; 1000 km of fibre take 9.80 ms there and back, 2.14 times less.
#[test]
fn a_window_is_next_to_what_it_allows_and_what_the_path_needs() {
    let plan =
        plan("method = \"window\"\ndistance = 1000\ntest.upload = true\naxis.window = [\"64K\", \"4M\"]\n");
    let mut log = MethodLog::of(&plan);
    let path = [("rtt_baseline", 21e6), ("ceiling", 941.482_445e6), ("bdp", 2_471_391.0)];
    log.sum(0, "a-b", &path);
    log.sum(1, "a-b", &path);
    log.sum(0, "a-b", &[("in_flight", 65_536.0), ("window_rate", 24.966e6), ("goodput", 24.5e6)]);
    log.sum(1, "a-b", &[("window_rate", 941.482_445e6), ("goodput", 941.482_445e6)]);
    let [table] = &log.tables()[..] else { panic!("one table") };
    assert_eq!(table.rows.len(), 2);
    assert_eq!(
        (&table.rows[0].point, cell(table, 0, "window")),
        (&Some(log.point(0).into()), &MethodCell::text("64K"))
    );
    assert_eq!((value(table, 0, "in flight"), value(table, 0, "RTT")), (65_536.0, 21e6));
    close(value(table, 0, "measured/computed"), 24.5 / 24.966);
    close(value(table, 1, "measured/computed"), 1.0);
    close(value(table, 1, "land speed"), 941.482_445e12);
    assert_eq!(cell(table, 0, "measured").low, Some(24.5e6 - 1.0));
    assert_eq!(*cell(table, 1, "in flight"), MethodCell::default(), "absent is not 0");
    assert!(
        table.notes[0].contains("needs a window of 2.36 MiB (2471391 bytes): 941.5 Mb/s over 21 ms"),
        "{:?}",
        table.notes
    );
    assert!(
        table.notes[1].contains("1000 km") && table.notes[1].contains("is 2.14 times that"),
        "{:?}",
        table.notes
    );
}

/// The example of RFC 6349 section 4.2: of 102,000 packets 2,000 were retransmitted.
#[test]
fn the_path_comes_before_the_tests_and_metrics_are_in_percent() {
    let plan = plan(
        "method = \"rfc6349\"\ntest.upload = true\n[flow.capacity]\nfrom = \"a\"\nto = \"b\"\ntest = { udp = true }\n\
         [flow.tcp]\nfrom = \"a\"\nto = \"b\"",
    );
    let mut log = MethodLog::of(&plan);
    log.sum(0, "capacity", &[("goodput", 500e6), ("loss", 0.0), ("transfer_time_ratio", 1.0)]);
    let tcp = [
        ("goodput", 330e6),
        ("rtt_baseline", 5e6),
        ("path_mtu", 1500.0),
        ("window_rate", 400e6),
        ("transfer_time_ratio", 1.5),
        ("tcp_efficiency", 100_000.0 / 102_000.0),
        ("buffer_delay", 0.28),
    ];
    log.sum(0, "tcp", &tcp);
    let tables = log.tables();
    let [path, tests] = &tables[..] else { panic!("two tables") };
    assert_eq!(*cell(path, 0, "size"), MethodCell::text("1500 B"));
    assert_eq!((value(path, 1, "time"), value(path, 2, "rate")), (5e6, 500e6));
    assert!(!cell(path, 2, "rate").at_least);
    // 500 Mb/s over 5 ms: table 3.3.1 of the RFC has 312.5 KBytes.
    assert_eq!(value(path, 3, "size"), 312_500.0);
    assert_eq!(tests.rows.len(), 1, "datagrams have no transfer time ratio");
    assert_eq!((value(tests, 0, "expected"), value(tests, 0, "achieved")), (400e6, 330e6));
    close(value(tests, 0, "achieved/expected"), 0.825);
    assert_eq!(value(tests, 0, "transfer time ratio"), 1.5);
    close(value(tests, 0, "TCP efficiency"), 98.039_215_7);
    close(value(tests, 0, "buffer delay"), 28.0);
}

/// A host whose UDP is slower than its TCP has not reached the bottleneck.
#[test]
fn a_capacity_that_the_host_could_not_reach_is_a_lower_bound() {
    let plan = plan(
        "method = \"rfc6349\"\ntest.upload = true\n[flow.capacity]\nfrom = \"a\"\nto = \"b\"\ntest = { udp = true }\n\
         [flow.tcp]\nfrom = \"a\"\nto = \"b\"",
    );
    let path = |loss: f64, tcp: f64| {
        let mut log = MethodLog::of(&plan);
        log.sum(0, "capacity", &[("goodput", 450e6), ("loss", loss), ("ceiling", 957e6)]);
        log.sum(0, "tcp", &[("goodput", tcp), ("rtt_baseline", 20e6), ("segment", 1448.0)]);
        let table = log.tables().remove(0);
        (value(&table, 2, "rate"), cell(&table, 3, "size").at_least)
    };
    assert_eq!(path(0.0, 900e6), (900e6, true));
    assert_eq!(path(0.0, 400e6), (450e6, true));
    assert_eq!(path(0.1, 900e6), (450e6, false), "what is lost has met the bottleneck");
}

#[test]
fn a_series_is_its_figures_and_a_curve_of_medians() {
    let plan = plan(
        "method = \"block-size\"\n[flow.loop]\nfrom = \"a\"\nto = \"a\"\nseries = { sizes = \"1,1K\" }\n\
         [flow.test]\nfrom = \"a\"\nto = \"b\"\nafter = \"loop\"",
    );
    let mut log = MethodLog::of(&plan);
    let size = |bytes: u64, ns: u64| {
        let point = json!({ "message_bytes": bytes, "best_one_way_ns": ns, "median_one_way_ns": ns,
            "bitrate_bps": bytes as f64 * 8e9 / ns as f64 });
        json!({ "kind": "size", "flow": 0, "point": point })
    };
    for (repeat, slower) in [(0, 0), (1, 200), (2, 100)] {
        let sizes = [flow("upload"), size(1, 1000 + slower), size(1024, 2000 + slower)];
        log.trial(0, repeat, None, "loop", &sizes);
    }
    // A repeat that was measured again counts once.
    log.trial(0, 2, None, "loop", &[flow("upload"), size(1, 1300), size(1024, 2300)]);
    log.sum(0, "loop", &[("message_latency", 1200.0), ("message_rate", 4e9), ("half_size", 512.0)]);
    log.sum(0, "test", &[("goodput", 1e9)]);
    let tables = log.tables();
    let [figures, curve] = &tables[..] else { panic!("two tables") };
    assert_eq!(*cell(figures, 0, "series"), MethodCell::text("loop (loopback of a)"));
    assert_eq!((value(figures, 0, "latency"), value(figures, 0, "highest rate")), (1200.0, 4e9));
    assert_eq!(*cell(figures, 0, "saturation size"), MethodCell::default());
    // 1000, 1200 and 1300; 2000, 2200 and 2300.
    assert_eq!((value(curve, 0, "message"), value(curve, 0, "one-way time")), (1.0, 1200.0));
    assert_eq!((value(curve, 1, "message"), value(curve, 1, "one-way time")), (1024.0, 2200.0));
    close(value(curve, 1, "rate"), 8.0 * 1024.0 / 2200e-9);
    assert_eq!(curve.rows.len(), 2);
}

/// One stream, 21 ms: the sample outside does not count, and no more is in flight than was announced.
#[test]
fn the_window_in_effect_is_what_was_in_flight_on_average() {
    let sample = |outside: bool, in_flight: u64, announced: u64| {
        let readings =
            json!({ "tcp.unacked": in_flight, "tcp.snd_wnd": announced, "tcp.min_rtt": 21_000_000 });
        json!({ "kind": "sample", "flow": 0, "sample": { "side": "sender", "start_ns": 0, "end_ns": 1, "outside": outside,
            "readings": readings } })
    };
    let ceiling = json!({ "limit": "link", "bitrate_bps": 941.482_445e6, "because": "a gigabit" });
    let bodies = [
        flow("upload"),
        sample(true, 1_000_000, 2_000_000),
        sample(false, 70_000, 66_000),
        sample(false, 65_072, 80_000),
        json!({ "kind": "ceilings", "flow": 0, "ceilings": [ceiling], "ceiling": ceiling }),
        json!({ "kind": "flow_ended", "flow": 0, "side": "sender",
            "tally": { "readings": { "tcp.snd_mss": 1448 } } }),
    ];
    let event = |(seq, body): (usize, &Value)| -> Event {
        serde_json::from_value(json!({ "run": "r", "host": 0, "seq": seq, "at_ns": 0, "body": body }))
            .unwrap()
    };
    let events: Vec<Event> = bodies.iter().enumerate().map(event).collect();
    let record = RunRecord::fold(&events);
    let find = |name: &str| {
        let quantity = QUANTITIES.iter().find(|one| one.name == name).unwrap();
        match (quantity.of)(&record, &record.flows[0]) {
            Some(QuantityValue::Number(number)) => number,
            other => panic!("{name}: {other:?}"),
        }
    };
    // 66,000 and 65,072; the median of 66,000 and 80,000.
    assert_eq!((find("in_flight"), find("rwnd"), find("rtt_baseline")), (65_536.0, 73_000.0, 21e6));
    // 65,536 over 21 ms.
    close(find("window_rate"), 24.966_095_24e6);
    close(find("bdp"), 2_471_391.418);
}

/// 300 in the first half second and 500 in the other; samples outside do not count.
#[test]
fn interrupts_are_those_of_a_second() {
    let sample = |outside: bool, start: u64, count: u64| {
        let readings = json!({ "host.interrupts": count, "host.softirq": 0.25 });
        json!({ "kind": "sample", "flow": 0, "sample": { "side": "receiver", "start_ns": start, "end_ns": start + 500_000_000,
            "outside": outside, "readings": readings } })
    };
    let bodies = [
        flow("upload"),
        sample(true, 0, 9000),
        sample(false, 500_000_000, 300),
        sample(false, 1_000_000_000, 500),
    ];
    let event = |(seq, body): (usize, &Value)| -> Event {
        serde_json::from_value(json!({ "run": "r", "host": 0, "seq": seq, "at_ns": 0, "body": body }))
            .unwrap()
    };
    let events: Vec<Event> = bodies.iter().enumerate().map(event).collect();
    let record = RunRecord::fold(&events);
    let find = |name: &str| {
        let quantity = QUANTITIES.iter().find(|one| one.name == name).unwrap();
        (quantity.of)(&record, &record.flows[0])
    };
    assert_eq!(find("interrupts_receiver"), Some(QuantityValue::Number(800.0)));
    assert_eq!(find("softirq_receiver"), Some(QuantityValue::Number(0.25)));
    assert_eq!((find("interrupts_sender"), find("softirq_sender")), (None, None));
}

/// Two classes up, requests before and during the load.
const CLASSES: &str = "method = \"concurrent-flows\"\ntest = { duration = 10 }\n\
    [flow.idle]\nfrom = \"a\"\nto = \"b\"\ntest = { workload = \"rr\", udp = true, dscp = \"ef\", duration = 3 }\n\
    [flow.bk]\nfrom = \"a\"\nto = \"b\"\nafter = \"idle\"\ntest = { upload = true, dscp = \"cs1\" }\n\
    [flow.ef]\nfrom = \"a\"\nto = \"b\"\nafter = \"idle\"\ntest = { upload = true, dscp = 46 }\n\
    [flow.rr]\nfrom = \"a\"\nto = \"b\"\nafter = \"idle\"\ntest = { workload = \"rr\", udp = true, dscp = \"ef\" }\n";

#[test]
fn concurrent_flows_have_totals_classes_and_the_latency_that_they_cause() {
    let plan = plan(CLASSES);
    let mut log = MethodLog::of(&plan);
    log.sum(0, "bk", &[("goodput", 5e6), ("total", 20e6), ("fairness", 0.8), ("rtt", 9e7)]);
    log.sum(0, "ef", &[("goodput", 15e6), ("total", 20e6), ("fairness", 0.8), ("rtt", 9e7)]);
    log.sum(0, "idle", &[("transaction_p50", 2e7), ("transaction_p99", 3e7)]);
    log.sum(0, "rr", &[("transaction_p50", 8e7), ("transaction_max", 9e7), ("transactions_failed", 4.0)]);
    let tables = log.tables();
    let titles: Vec<&str> = tables.iter().map(|table| table.title.as_str()).collect();
    assert_eq!(titles, ["All flows together", "Goodput of each class", "Latency under load"]);
    let [totals, classes, latency] = &tables[..] else { panic!("{titles:?}") };
    assert_eq!(totals.rows.len(), 1);
    assert_eq!(cell(totals, 0, "total up").value, Some(20e6));
    assert_eq!(cell(totals, 0, "fairness up").value, Some(0.8));
    assert_eq!(cell(totals, 0, "total down").value, None);
    let texts = |table: &MethodTable, head: &str| -> Vec<Option<String>> {
        (0..table.rows.len())
            .map(|row| cell(table, row, head).text.as_ref().map(ToString::to_string))
            .collect()
    };
    let some = |texts: [&str; 2]| texts.map(|text| Some(text.to_owned())).to_vec();
    assert_eq!((texts(classes, "flow"), texts(classes, "class")), (some(["bk", "ef"]), some(["cs1", "ef"])));
    assert_eq!([0, 1].map(|row| cell(classes, row, "of total").value), [Some(25.0), Some(75.0)]);
    // The requests before the load share the row of those during it. Where there are requests, probes have no row.
    assert_eq!(texts(latency, "flow"), [Some("rr".to_owned())]);
    let figures = ["idle", "loaded", "p99", "max", "unanswered"].map(|head| cell(latency, 0, head).value);
    assert_eq!(figures, [Some(2e7), Some(8e7), None, Some(9e7), Some(4.0)]);
}

#[test]
fn without_requests_the_latency_is_that_of_the_probes() {
    let plan = plan("method = \"concurrent-flows\"\ntest = { upload = true }\n");
    let mut log = MethodLog::of(&plan);
    log.sum(0, "a-b", &[("goodput", 5e6), ("rtt_idle", 2e7), ("rtt", 3e7), ("rtt_max", 5e7)]);
    let tables = log.tables();
    assert_eq!(tables.len(), 1, "one flow has no total, no class and no port: {tables:?}");
    let figures = ["idle", "loaded", "max"].map(|head| cell(&tables[0], 0, head).value);
    assert_eq!(figures, [Some(2e7), Some(3e7), Some(5e7)]);
    assert!(tables[0].columns.iter().all(|column| column.name != "class"), "{tables:?}");
}

#[test]
fn ports_that_were_full_or_dropped_packets_are_named() {
    let plan = plan("method = \"concurrent-flows\"\nrepeats = 3\ntest = { upload = true }\n");
    let mut log = MethodLog::of(&plan);
    log.sum(0, "a-b", &[("goodput", 5e6)]);
    let port = |name: &str, outside: bool, busy: f64, dropped: u64, queue: u64| {
        let readings = json!({ "port.busy": busy, "port.packets": 10, "port.dropped": dropped, "port.queue_max": queue });
        let sample =
            json!({ "start_ns": 0, "end_ns": 1_000_000_000, "outside": outside, "readings": readings });
        json!({ "kind": "port", "flows": [0], "port": name, "sample": sample })
    };
    for (repeat, dropped) in [(0, 1), (1, 5), (2, 3)] {
        let bodies = [
            port("s>b", true, 0.1, 900, 9000),
            port("s>b", false, 1.0, dropped, 2000),
            port("s>b", false, 0.9, 0, 3000),
            port("a>s", false, 0.5, 0, 100),
            port("b>s", false, 0.1, u64::from(repeat == 1), 10),
        ];
        log.trial(0, repeat, None, "a-b", &bodies);
    }
    let tables = log.tables();
    let [ports] = &tables[..] else { panic!("{tables:?}") };
    let names: Vec<_> =
        (0..ports.rows.len()).map(|row| cell(ports, row, "port").text.clone().unwrap()).collect();
    assert_eq!(names, ["s>b", "b>s"], "one that was half busy and dropped nothing limits nothing");
    let figures = ["busy", "packets", "dropped", "largest queue"].map(|head| cell(ports, 0, head).value);
    // Medians of three trials, without what was outside the measured part.
    assert_eq!(figures, [Some(95.0), Some(20.0), Some(3.0), Some(3000.0)]);
    assert_eq!(cell(ports, 1, "dropped").value, Some(0.0));
}
