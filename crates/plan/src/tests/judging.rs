//! Checks assertions against results.

use std::collections::BTreeMap;

use linerate_model::{Direction, Event, RunRecord};
use serde_json::{Value, json};

use super::{plan, try_plan};
use crate::{
    AssertionOutcome, AssertionQuantity, Measurements, Plan, QUANTITIES, QuantityScope, QuantityValue, judge,
};

/// Results by the label of the point and the name of the quantity; those of the run `old` start with `old `.
struct ResultsTable<'p> {
    plan: &'p Plan,
    rows: BTreeMap<(String, &'static str), QuantityValue>,
}

impl Measurements for ResultsTable<'_> {
    fn measured(&self, scope: QuantityScope<'_>, quantity: &AssertionQuantity) -> Option<QuantityValue> {
        let points = (0..self.plan.grid.len()).map(|number| self.plan.point(number).unwrap());
        let label = points.filter(|point| point.id == scope.point).map(|point| point.label()).next()?;
        let label = scope.run.map(|run| format!("{run} ")).unwrap_or_default() + &label;
        self.rows.get(&(label, quantity.name)).cloned()
    }
}

/// The outcomes of one assertion at the points of a sweep over 1 and 4 streams, for uploads.
fn outcomes(assertion: &str, rows: &[(&str, &'static str, f64)]) -> Vec<AssertionOutcome> {
    let plan = plan(&format!("assert = [{assertion}]\ntest.upload = true\naxis.streams = [1, 4]\n"));
    let rows = rows
        .iter()
        .map(|(label, name, number)| (((*label).to_owned(), *name), QuantityValue::Number(*number)));
    judge(&plan, &ResultsTable { plan: &plan, rows: rows.collect() })
        .into_iter()
        .map(|one| one.outcome)
        .collect()
}

const ONE: &str = "streams=1";
const FOUR: &str = "streams=4";

#[test]
fn a_claim_is_judged_at_every_point() {
    let rows =
        [(ONE, "goodput", 9.5e8), (ONE, "ceiling", 9.4e8), (FOUR, "goodput", 9e8), (FOUR, "ceiling", 9.4e8)];
    let fails = AssertionOutcome::Fails("found 900.0 Mb/s, but required >= 921.2 Mb/s".to_owned());
    assert_eq!(outcomes("\"goodput >= 0.98 ceiling\"", &rows), [AssertionOutcome::Holds, fails.clone()]);
    assert_eq!(outcomes("\"goodput >= 0.98 * ceiling\"", &rows), [AssertionOutcome::Holds, fails.clone()]);
    assert_eq!(outcomes("\"goodput / ceiling >= 98%\"", &rows)[0], AssertionOutcome::Holds);
    let at = "{ that = \"goodput >= 0.98 ceiling\", at = { streams = 4 } }";
    assert_eq!(outcomes(at, &rows), [fails]);
    assert_eq!(
        outcomes("\"goodput - 5M < 2 (ceiling + 1G)\"", &rows),
        [AssertionOutcome::Holds, AssertionOutcome::Holds]
    );
}

#[test]
fn each_comparison_has_its_edge() {
    let rows = [(ONE, "retransmits", 3.0), (FOUR, "retransmits", 4.0)];
    for (sign, holds) in [
        (">=", [true, true]),
        (">", [false, true]),
        ("<=", [true, false]),
        ("<", [false, false]),
        ("==", [true, false]),
        ("!=", [false, true]),
    ] {
        let found: Vec<bool> = outcomes(&format!("\"retransmits {sign} 3\""), &rows)
            .iter()
            .map(AssertionOutcome::holds)
            .collect();
        assert_eq!(found, holds, "{sign}");
    }
}

#[test]
fn points_and_runs_are_compared_with_each_other() {
    let rows = [(ONE, "goodput", 9e8), (FOUR, "goodput", 8e8), ("old streams=1", "goodput", 9.3e8)];
    let across = outcomes("\"goodput >= 0.95 point(streams=1).goodput\"", &rows);
    assert_eq!(across[0], AssertionOutcome::Holds);
    assert_eq!(across[1], AssertionOutcome::Fails("found 800.0 Mb/s, but required >= 855.0 Mb/s".to_owned()));
    let difference = outcomes("\"point(streams=1).goodput - point(streams=4).goodput <= 50M\"", &rows);
    assert_eq!(
        difference[0],
        AssertionOutcome::Fails("found 100.0 Mb/s, but required <= 50.00 Mb/s".to_owned())
    );
    let regression = outcomes("\"goodput >= 0.95 run('old').goodput\"", &rows);
    assert_eq!(regression[0], AssertionOutcome::Holds);
    assert_eq!(
        regression[1],
        AssertionOutcome::NotMeasured("goodput of a-b upload at streams=4 in the run 'old'".to_owned())
    );
}

#[test]
fn what_was_not_measured_never_passes() {
    for claim in ["loss <= 1", "loss != 5", "loss == loss", "verdict != link"] {
        for outcome in outcomes(&format!("\"{claim}\""), &[]) {
            let quantity = claim.split(' ').next().unwrap();
            assert!(
                matches!(&outcome, AssertionOutcome::NotMeasured(what) if what.starts_with(quantity)),
                "{outcome:?}"
            );
        }
    }
    let nothing =
        outcomes("\"retransmits / (retransmits - retransmits) >= 0\"", &[(ONE, "retransmits", 1.0)]);
    assert_eq!(nothing[0], AssertionOutcome::NotMeasured("a quotient with divisor 0".to_owned()));
    let text = "assert = [\"goodput >= point(streams=1).goodput\"]\nexclude = [{ streams = 1, window = 2000 }]\n\
                axis.streams = [1, 4]\naxis.window = [1000, 2000]\ntest.upload = true\n";
    let plan = plan(text);
    let row = |label: &str| ((label.to_owned(), "goodput"), QuantityValue::Number(1.0));
    let rows = ["streams=1 window=1000", "streams=4 window=1000", "streams=4 window=2000"].map(row);
    let judged = judge(&plan, &ResultsTable { plan: &plan, rows: rows.into_iter().collect() });
    let last = &judged.last().unwrap().outcome;
    assert_eq!(
        *last,
        AssertionOutcome::NotMeasured("the point streams=1 window=2000, which the plan excludes".to_owned())
    );
}

#[test]
fn words_are_those_of_the_results() {
    let plan = plan("assert = [\"verdict != unknown\", \"verdict == link\"]\ntest.upload = true\n");
    let rows = [(("the only point".to_owned(), "verdict"), QuantityValue::Word("sender_window".to_owned()))];
    let judged = judge(&plan, &ResultsTable { plan: &plan, rows: rows.into_iter().collect() });
    assert_eq!(judged[0].outcome, AssertionOutcome::Holds);
    assert_eq!(
        judged[1].outcome,
        AssertionOutcome::Fails("found sender_window, but required == link".to_owned())
    );
}

#[test]
fn flows_and_directions_are_judged_one_by_one() {
    let ends = "from = \"a\"\nto = \"b\"\n";
    let text = format!(
        "assert = [\"goodput > 0\", {{ that = \"loss < 1\", flow = \"noise\", direction = \"download\" }}]\n[flow.x]\n{ends}[flow.noise]\n{ends}cross_traffic = true\n"
    );
    let plan = plan(&text);
    let judged = judge(&plan, &ResultsTable { plan: &plan, rows: BTreeMap::new() });
    let rows: Vec<(&str, Direction)> = judged.iter().map(|one| (one.flow.as_str(), one.direction)).collect();
    assert_eq!(rows, [("x", Direction::Download), ("x", Direction::Upload), ("noise", Direction::Download)]);
    assert!(try_plan(&text.replace("\"noise\", dir", "\"nose\", dir"), &[]).is_err());
}

/// The log of one UDP upload: its plan, then everything that was counted.
fn log() -> Vec<Event> {
    let latency = |phase: &str, min: u64, p50: u64, mean: u64, p95: u64| {
        let rtt = json!({ "count": 9, "min_ns": min, "mean_ns": mean, "p50_ns": p50, "p95_ns": p95, "p99_ns": 950_000, "max_ns": 990_000 });
        json!({ "phase": phase, "transport": "udp", "sent": 9, "lost": 0, "rtt": rtt, "kernel_timestamps": true })
    };
    let ceiling = json!({ "limit": "link", "bitrate_bps": 9.5e8, "because": "a gigabit" });
    let finding =
        json!({ "cause": "link", "rule": "V10", "confidence": "confirmed", "text": "full", "evidence": {} });
    let received = json!({ "bytes": 4000, "elapsed_ns": 1000, "bitrate_bps": 9.4e8, "host_busy": 0.5,
        "udp": { "packets": 3, "lost": 1, "jitter_ns": 1500 } });
    let bodies = [
        json!({ "kind": "flow_planned", "flow": 0, "name": "upload", "from": "a", "to": "b", "transport": "udp",
            "direction": "upload", "streams": 1 }),
        json!({ "kind": "latency", "report": latency("idle", 100_000, 200_000, 210_000, 300_000) }),
        json!({ "kind": "latency", "flow": 0, "report": latency("loaded", 100_000, 400_000, 500_000, 900_000) }),
        json!({ "kind": "flow_ended", "flow": 0, "side": "receiver", "tally": received }),
        json!({ "kind": "ceilings", "flow": 0, "ceilings": [ceiling], "ceiling": ceiling }),
        json!({ "kind": "verdict", "flow": 0, "verdict": finding, "also": [] }),
        json!({ "kind": "caveat", "flow": 0, "caveat": { "kind": "partial", "text": "cut" } }),
    ];
    let event = |(seq, body): (usize, &Value)| {
        let event = json!({ "run": "r", "host": 0, "seq": seq, "at_ns": 0, "body": body });
        serde_json::from_value(event).unwrap()
    };
    bodies.iter().enumerate().map(event).collect()
}

/// Every quantity is found if it was measured, and absent otherwise.
#[test]
fn quantities_stand_in_the_record() {
    let events = log();
    let record = RunRecord::fold(&events);
    let find = |name: &str| {
        let quantity = QUANTITIES.iter().find(|one| one.name == name).unwrap();
        (quantity.of)(&record, &record.flows[0])
    };
    let number = |number: f64| Some(QuantityValue::Number(number));
    assert_eq!(find("goodput"), number(9.4e8));
    assert_eq!(find("ceiling"), number(9.5e8));
    assert_eq!(find("delivered"), number(4000.0));
    assert_eq!(find("loss"), number(0.25), "one of four");
    assert_eq!(find("jitter"), number(1500.0));
    assert_eq!(find("rtt_idle"), number(200_000.0));
    assert_eq!(find("rtt"), number(400_000.0));
    assert_eq!(find("rtt_p95"), number(900_000.0));
    // Mean 500 us under load, smallest 100 us before it.
    assert_eq!(find("buffer_delay"), number(4.0));
    assert_eq!(find("cpu_receiver"), number(0.5));
    assert_eq!(find("verdict"), Some(QuantityValue::Word("link".to_owned())));
    assert_eq!(find("confidence"), Some(QuantityValue::Word("confirmed".to_owned())));
    assert_eq!(find("caveats"), number(1.0));
    for absent in ["retransmits", "cpu_sender", "steady", "unaccounted"] {
        assert_eq!(find(absent), None, "{absent}");
    }
    let empty = RunRecord::fold(&events[..1]);
    for quantity in QUANTITIES.iter().filter(|quantity| quantity.name != "caveats") {
        assert_eq!((quantity.of)(&empty, &empty.flows[0]), None, "{}", quantity.name);
    }
}

#[test]
fn loss_is_a_share_of_what_was_sent_though_datagrams_arrive_twice() {
    let loss = |packets: u64, duplicates: u64, lost: u64| {
        let mut record = RunRecord::fold(&log());
        let udp = record.flows[0].receiver.as_mut().unwrap().udp.as_mut().unwrap();
        (udp.packets, udp.duplicates, udp.lost) = (packets, duplicates, lost);
        let quantity = QUANTITIES.iter().find(|one| one.name == "loss").unwrap();
        (quantity.of)(&record, &record.flows[0])
    };
    assert_eq!(loss(1800, 900, 100), Some(QuantityValue::Number(0.1)));
    assert_eq!(loss(0, 0, 7), Some(QuantityValue::Number(1.0)));
    assert_eq!(loss(0, 0, 0), None);
    assert!(loss(u64::MAX, 0, 1).is_some(), "counts of a peer may be anything");
}
