//! The tables of RFC 2544, from hand-made results.

use linerate_model::{Body, MethodCell, SearchEnd, SearchStep};
use serde_json::{Value, json};

use super::methods::{MethodLog, cell, close, flow, value};
use super::plan;

/// Frames of 1518 bytes at loads up to 1 Gb/s.
const THROUGHPUT: &str = "method = \"rfc2544\"\ntest = { udp = true, upload = true }\naxis.length = [1472]\n\
                          axis.rate = { from = 0, to = \"1G\", pass = \"loss == 0\" }\n";

fn step(number: f64, confirms: bool, passed: bool) -> Option<SearchStep> {
    Some(SearchStep { label: "".into(), number, confirms, passed })
}

/// A search at a point has found this number.
fn end(log: &mut MethodLog<'_>, point: usize, repeat: u32, number: f64) {
    let point = log.point(point).into();
    log.note(Body::SearchEnded(SearchEnd { point, repeat, found: None, number: Some(number) }));
}

fn datagrams(received: u64, lost: u64) -> [Value; 2] {
    let bitrate_bps = 1472 * 8 * received / 2;
    let tally = json!({ "bytes": 1472 * received, "elapsed_ns": 2_000_000_000_u64, "bitrate_bps": bitrate_bps,
        "udp": { "packets": received, "lost": lost } });
    [flow("upload"), json!({ "kind": "flow_ended", "flow": 0, "side": "receiver", "tally": tally })]
}

/// Frames of 1518 bytes at 1 Gb/s: 81274 per second (RFC 6349 section 4.1.1), 957.088 Mb/s of UDP payload.
#[test]
fn frames_per_second_are_next_to_the_most_that_the_line_takes() {
    let plan = plan(THROUGHPUT);
    let mut log = MethodLog::of(&plan);
    log.trial(0, 0, step(1e9, false, false), "a-b", &datagrams(150_000, 12_550));
    log.trial(0, 0, step(0.5e9, false, true), "a-b", &datagrams(84_918, 0));
    end(&mut log, 0, 0, 0.5e9);
    log.sum(0, "a-b", &[("goodput", 0.5e9), ("ceiling", 957.087_972e6), ("rtt_mean", 250_000.0)]);
    let tables = log.tables();
    let [throughput, loss] = &tables[..] else { panic!("two tables") };
    assert_eq!(*cell(throughput, 0, "frame size"), MethodCell::text("1518"));
    // 0.5e9 / (8 x 1472); 84,918 frames in two seconds, and x 8 x 1538 on the line.
    close(value(throughput, 0, "requested load"), 42_459.239_1);
    close(value(throughput, 0, "sent"), 42_459.0);
    close(value(throughput, 0, "throughput"), 42_459.0);
    close(value(throughput, 0, "theoretical maximum"), 81_274.385);
    close(value(throughput, 0, "of maximum"), 52.241_55);
    close(value(throughput, 0, "on the line"), 522.415_536e6);
    assert_eq!(value(throughput, 0, "round trip at throughput"), 250_000.0);
    // The highest load first: 12550 of 162550 in two seconds.
    close(value(loss, 0, "requested load"), 84_918.478);
    close(value(loss, 0, "sent"), 81_275.0);
    close(value(loss, 0, "frame loss rate"), 7.720_701_3);
    assert_eq!(value(loss, 1, "frame loss rate"), 0.0);
}

/// The host sent half of the requested 0.5e9, so the device carries at least that.
#[test]
fn a_load_that_the_host_could_not_send_is_not_claimed_of_the_device() {
    let plan = plan(THROUGHPUT);
    let mut log = MethodLog::of(&plan);
    end(&mut log, 0, 0, 0.5e9);
    log.sum(0, "a-b", &[("goodput", 0.25e9), ("ceiling", 957.087_972e6)]);
    let throughput = log.tables().remove(0);
    let found = cell(&throughput, 0, "throughput");
    assert!(found.at_least && cell(&throughput, 0, "of maximum").at_least);
    close(found.value.unwrap(), 21_229.619_6);
}

/// A gigabit requested on a line that carries 957 Mb/s of payload: the table shows what arrived, not the
/// smaller of two requested rates.
#[test]
fn frames_that_were_not_received_are_not_the_throughput() {
    let plan = plan(THROUGHPUT);
    let mut log = MethodLog::of(&plan);
    // 79,000 frames per second.
    log.trial(0, 0, step(1e9, false, true), "a-b", &datagrams(158_000, 0));
    end(&mut log, 0, 0, 1e9);
    log.sum(0, "a-b", &[("goodput", 930.3e6), ("ceiling", 957.087_972e6)]);
    let throughput = log.tables().remove(0);
    close(value(&throughput, 0, "requested load"), 84_918.478);
    close(value(&throughput, 0, "throughput"), 79_000.0);
    assert!(cell(&throughput, 0, "throughput").at_least, "the host sent 7 % less than was asked for");
    close(value(&throughput, 0, "of maximum"), 79_000.0 / 81_274.385 * 100.0);
}

#[test]
fn a_burst_that_passed_at_the_end_of_the_range_is_at_least_that() {
    let plan = plan(
        "method = \"rfc2544\"\ntest = { udp = true, upload = true, rate = 0 }\naxis.length = [1472, 82]\n\
         axis.blocks = { from = 1, to = 1000, pass = \"loss == 0\" }\n",
    );
    let mut log = MethodLog::of(&plan);
    for (point, repeat, number) in [(0, 0, 1000.0), (1, 0, 500.0), (1, 1, 700.0)] {
        end(&mut log, point, repeat, number);
    }
    log.sum(0, "a-b", &[("goodput", 1e8), ("ceiling", 957.087_972e6)]);
    let [bursts] = &log.tables()[..] else { panic!("one table") };
    let found = cell(bursts, 0, "frames in the burst");
    assert_eq!((found.value, found.at_least), (Some(1000.0), true));
    // 1000 / 81274.385 s.
    close(value(bursts, 0, "time at the maximum rate"), 12.304e6);
    let found = cell(bursts, 1, "frames in the burst");
    assert_eq!(
        (found.value, found.low, found.high, found.at_least),
        (Some(600.0), Some(500.0), Some(700.0), false)
    );
    assert_eq!(*cell(bursts, 1, "time at the maximum rate"), MethodCell::default());
}

#[test]
fn every_search_has_the_figures_of_its_own_trial() {
    let plan = plan(&format!("repeats = 3\n{THROUGHPUT}"));
    let mut log = MethodLog::of(&plan);
    for (repeat, received) in (0..).zip([158_000, 159_000, 161_000]) {
        log.trial(0, repeat, step(1e9, false, true), "a-b", &datagrams(received, 0));
        end(&mut log, 0, repeat, 1e9);
    }
    log.sum(0, "a-b", &[("goodput", 930.3e6), ("ceiling", 957.087_972e6)]);
    let throughput = log.tables().remove(0);
    let found = cell(&throughput, 0, "throughput");
    let [value, low, high] = [found.value, found.low, found.high].map(Option::unwrap);
    close(value, 79_500.0);
    close(low, 79_000.0);
    close(high, 80_500.0);
}

/// A plan that is resumed with other settings measures again. What it measured before is in the log, but not in its
/// tables.
#[test]
fn trials_from_before_the_plan_was_changed_do_not_count() {
    let plan = plan(&format!("repeats = 2\n{THROUGHPUT}"));
    let mut log = MethodLog::of(&plan);
    for (repeat, received) in (0..).zip([100_000, 110_000]) {
        log.trial(0, repeat, step(1e9, false, false), "a-b", &datagrams(received, 50_000));
        log.trial(0, repeat, step(0.5e9, false, true), "a-b", &datagrams(80_000, 0));
        end(&mut log, 0, repeat, 0.5e9);
    }
    log.record.trials.iter_mut().for_each(|trial| trial.content = "0000000000000000".into());
    log.note(Body::PlanResumed);
    log.trial(0, 0, step(1e9, false, true), "a-b", &datagrams(158_000, 0));
    // The second search has not begun again.
    end(&mut log, 0, 0, 1e9);
    log.sum(0, "a-b", &[("goodput", 930.3e6), ("ceiling", 957.087_972e6)]);
    let tables = log.tables();
    let [throughput, loss] = &tables[..] else { panic!("two tables") };
    let asked = cell(throughput, 0, "requested load");
    close(asked.value.unwrap(), 84_918.478);
    assert_eq!((asked.low, asked.high), (None, None), "one search");
    close(value(throughput, 0, "throughput"), 79_000.0);
    assert_eq!(loss.rows.len(), 1);
    assert_eq!(value(loss, 0, "frame loss rate"), 0.0);
}

/// The condition was another one when the trial was logged, and the search goes on with one that it meets.
#[test]
fn a_trial_that_passes_only_by_a_later_condition_has_its_figures_in_the_tables() {
    let plan = plan(THROUGHPUT);
    let mut log = MethodLog::of(&plan);
    log.trial(0, 0, step(1e9, false, false), "a-b", &datagrams(158_000, 0));
    end(&mut log, 0, 0, 1e9);
    log.sum(0, "a-b", &[("goodput", 900e6), ("ceiling", 957.087_972e6)]);
    close(value(&log.tables()[0], 0, "throughput"), 79_000.0);
}

/// Of 1000 sent, 100 were lost, and each of the others came twice.
#[test]
fn a_duplicate_is_no_received_frame() {
    let plan = plan(THROUGHPUT);
    let mut log = MethodLog::of(&plan);
    let counted = |udp: &Value| {
        let tally = json!({ "bytes": 1472, "elapsed_ns": 2_000_000_000_u64, "bitrate_bps": 1e6, "udp": udp });
        [flow("upload"), json!({ "kind": "flow_ended", "flow": 0, "side": "receiver", "tally": tally })]
    };
    let doubled = json!({ "packets": 1800, "duplicates": 900, "lost": 100 });
    log.trial(0, 0, step(1e9, false, false), "a-b", &counted(&doubled));
    let absurd = json!({ "packets": u64::MAX, "lost": u64::MAX });
    log.trial(0, 0, step(0.5e9, false, false), "a-b", &counted(&absurd));
    log.sum(0, "a-b", &[("goodput", 0.5e9), ("ceiling", 957.087_972e6)]);
    let tables = log.tables();
    close(value(tables.last().unwrap(), 0, "frame loss rate"), 10.0);
}
