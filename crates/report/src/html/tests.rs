//! The page as users see it: its structure, its data, and resistance to foreign text.

use linerate_model::flow::FlowId;
use linerate_model::{Body, Caveat, CaveatKind, RunLabels};
use proptest::prelude::*;

use super::*;
use crate::ndjson;
use crate::samples_of_plans as plans;
use crate::samples_of_runs as runs;

const ASSETS: Assets<'_> = Assets { script: "draw()", style: "p{}" };

pub(super) fn page(plan: Option<&ReportedPlan<'_>>, logs: &[Vec<Event>], assets: &Assets<'_>) -> String {
    let records: Vec<RunRecord> = logs.iter().map(RunRecord::fold).collect();
    let runs: Vec<ReportedRun<'_>> =
        records.iter().zip(logs).map(|(record, events)| ReportedRun { record, events }).collect();
    let mut out = Vec::new();
    write(None, plan, &runs, assets, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn of(log: Vec<Event>) -> String {
    page(None, &[log], &ASSETS)
}

/// The text between two marks.
fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    page.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(inside, _)| inside).unwrap()
}

pub(super) fn data(page: &str) -> serde_json::Value {
    serde_json::from_str(between(page, "id=\"charts\">", "</script>")).unwrap()
}

fn position(page: &str, text: &str) -> usize {
    page.find(text).unwrap_or_else(|| panic!("{text:?} is not in the page"))
}

#[test]
fn the_verdict_comes_first_and_is_readable_without_the_script() {
    let page = of(runs::tcp_run());
    let order = [
        "941.4 Mb/s</strong>",
        "100.0 % of the ceiling: 1000BASE-T, MTU 1500, IPv4, TCP timestamps",
        "Round-trip time 210 us idle, 900 us under load (medians).",
        "The link is full: this is the maximum of 1000BASE-T at MTU 1500.",
        "limited by: link, rule V02, confirmed",
        "Raise net.ipv4.tcp_wmem",
        "caveat: </strong>bbr was asked for",
        "Results, counted at the receiver",
        "data-chart=\"0\"",
        "All known limits",
        "Linux 6.1.0",
        "id=\"charts\"",
        "id=\"log-0\"",
    ];
    let places: Vec<usize> = order.iter().map(|text| position(&page, text)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</body></html>\n"));
}

#[test]
fn an_impossible_figure_is_struck_out() {
    let page = of(runs::impossible_run());
    assert!(page.contains("<s>1.200 Gb/s</s> impossible"), "{page}");
    assert!(page.contains("verdict bad"));
}

#[test]
fn a_killed_run_says_so() {
    let page = of(runs::killed_run());
    assert!(page.contains("not finished") && page.contains("Not judged"));
    assert!(page.contains("800.0 Mb/s"), "250 MB in 2.5 s");
}

#[test]
fn a_flow_that_was_not_measured_has_no_sizes_in_the_list_of_runs() {
    let killed = RunRecord::fold(&runs::killed_run());
    assert_eq!(super::runs::results(&killed), "download 800.0 Mb/s · upload not measured");
    let sweep = RunRecord::fold(&runs::sweep_run());
    let sizes = sweep.flows[0].sizes.len();
    assert!(sizes > 1 && super::runs::results(&sweep).contains(&format!(" {sizes} sizes")));
}

#[test]
fn nothing_in_the_page_is_loaded_from_elsewhere() {
    let page = of(runs::tcp_run());
    assert!(page.contains("default-src 'none'"));
    for loads in ["src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn the_chart_has_every_panel_that_was_measured_with_unit_ceiling_and_caveat() {
    let mut log = runs::tcp_run();
    let sample = runs::sample(1, linerate_model::Side::Sender, 500, 1000, 9_000).1;
    log.push(Event { body: sample, ..log[0].clone() });
    let data = data(&of(log));
    let upload = &data["charts"][1];
    let axes: Vec<(&str, &str)> = upload["panels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|panel| (panel["y"]["label"].as_str().unwrap(), panel["y"]["unit"].as_str().unwrap()))
        .collect();
    assert_eq!(
        axes,
        [
            ("bit rate of payload", "bit/s"),
            ("round-trip time of probes, median and range", "ns"),
            ("retransmitted segments in an interval", "1"),
            ("windows", "bytes"),
            ("round-trip time and jitter", "ns"),
            ("busy share of the CPUs", "ratio"),
        ]
    );
    let rate = &upload["panels"][0];
    // 58 837 500 bytes in half a second, three times; a step needs its start too.
    assert_eq!(
        rate["lines"][0]["y"],
        serde_json::json!([941_400_000, 941_400_000, 941_400_000, 941_400_000])
    );
    assert_eq!(rate["lines"][0]["x"], serde_json::json!([0, 0.5, 1, 1.5]));
    assert_eq!(rate["levels"][0]["label"], "ceiling (link)");
    assert_eq!(upload["bands"][0]["caveat"], true);
    let names: Vec<&str> =
        data["catalogue"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"tcp.srtt") && !names.contains(&"udp.jitter"), "{names:?}");
}

#[test]
fn queues_of_the_emulated_network_stand_below_the_rate() {
    let data = data(&of(runs::lab_run()));
    let panel = &data["charts"][0]["panels"][0];
    assert_eq!(panel["y"]["label"], "waiting data");
    // The port that carried nothing has no queue to show.
    let labels: Vec<&str> =
        panel["lines"].as_array().unwrap().iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["largest queue at port s>b", "largest queue at port s>a"]);
}

#[test]
fn a_series_over_sizes_has_its_intervals_and_the_computed_line() {
    let data = data(&of(runs::sweep_run()));
    let [rates, times] = [&data["charts"][0]["panels"][0], &data["charts"][0]["panels"][1]];
    assert_eq!((&rates["y"]["log"], &data["charts"][0]["x"]["log"]), (&true.into(), &true.into()));
    assert_eq!(
        (&times["lines"][0]["low"][0], &times["lines"][0]["high"][0]),
        (&19_001.into(), &22_001.into())
    );
    // 20 us, and 4096 bytes at 8 Gb/s.
    assert_eq!(
        (&times["lines"][1]["style"], &times["lines"][1]["y"][6]),
        (&"computed".into(), &24_096.into())
    );
}

#[test]
fn the_log_inside_can_be_read_again() {
    use base64::Engine as _;
    use std::io::Read as _;
    let page = of(runs::udp_run());
    let letters = between(&page, "id=\"log-0\">", "</script>");
    let packed = base64::engine::general_purpose::STANDARD.decode(letters).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    assert_eq!(ndjson::read(&text).unwrap(), runs::udp_run());
}

#[test]
fn several_runs_stand_side_by_side_before_each_of_them() {
    let mut other = runs::tcp_run();
    for event in &mut other {
        event.run = "0badcafe".into();
    }
    let page = page(None, &[runs::tcp_run(), other], &ASSETS);
    let places = ["2 runs", "Side by side", "id=\"run-0\"", "id=\"run-1\"", "id=\"log-1\""];
    assert!(places.map(|text| position(&page, text)).is_sorted());
    let chart = &data(&page)["charts"][0];
    assert_eq!(
        (&chart["panels"][0]["lines"][0]["label"], &chart["panels"][0]["lines"][1]["label"]),
        (&"run 7f3a9c21".into(), &"run 0badcafe".into())
    );
}

#[test]
fn a_plan_says_first_what_does_not_hold_and_links_to_its_runs() {
    let (events, record) = plans::two_axes();
    let left_out = ["gone".to_owned()];
    let plan = ReportedPlan { record: &record, events: &events, left_out: &left_out.map(Into::into) };
    let page = page(Some(&plan), &plans::runs(), &ASSETS);
    let order = [
        "1 of 8 judgements do not hold",
        "<th scope=\"row\">full</th>",
        "window 64 KiB, delay 50 ms",
        "Median of the trials",
        "data-chart=\"0\"",
        "goodput, ab, upload, from 10.00 Mb/s to 940.0 Mb/s",
        "href=\"#run-0\">7f3a9c21<",
        "length = &quot;60s&quot;",
        "1 run is not in this page",
        "id=\"run-0\"",
    ];
    let places: Vec<usize> = order.iter().map(|text| position(&page, text)).collect();
    assert!(places.is_sorted(), "{places:?}");
    // The failing point was judged by its goodput.
    assert!(page.contains("goodput 10.00 Mb/s, not above 100.0 Mb/s"));
}

#[test]
fn a_plan_has_the_tables_of_its_method_with_their_intervals_and_notes() {
    let (events, mut record) = plans::two_axes();
    record.tables.push(crate::plan::method::tests::frames());
    let plan = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let page = page(Some(&plan), &[], &ASSETS);
    let order = [
        "Median of the trials",
        "<h3>Throughput (26.1)</h3>",
        "<th class=\"number\" scope=\"col\">carries</th>",
        "81274 frames/s (81000 to 81274)",
        "at least 64 KiB",
        "<li>A host with software sends.</li>",
        "data-chart=\"0\"",
    ];
    let places: Vec<usize> = order.iter().map(|text| position(&page, text)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(!page.contains("never measured"), "an empty column is left out");
}

#[test]
fn a_table_of_sizes_that_ascend_is_drawn_as_a_curve_and_others_are_not() {
    use linerate_model::{MethodCell, MethodColumn, MethodRow, MethodTable};
    let (events, mut record) = plans::two_axes();
    let column = |name: &str, unit: &str| MethodColumn { name: name.into(), unit: Some(unit.into()) };
    let cells =
        |size: f64, rate: MethodCell| MethodRow { point: None, cells: vec![MethodCell::number(size), rate] };
    let known =
        |rate: f64| MethodCell { low: Some(rate - 1.0), high: Some(rate + 1.0), ..MethodCell::number(rate) };
    let curve = MethodTable {
        title: "Curve of loop".into(),
        columns: vec![column("message", "bytes"), column("rate", "bit/s")],
        rows: vec![cells(1.0, known(8e6)), cells(64.0, MethodCell::default()), cells(4096.0, known(9e9))],
        ..MethodTable::default()
    };
    let mut falls = curve.clone();
    falls.rows.reverse();
    record.tables = vec![falls, crate::plan::method::tests::frames(), curve];
    let plan = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let charts = &data(&page(Some(&plan), &[], &ASSETS))["charts"];
    let drawn: Vec<&str> =
        charts.as_array().unwrap().iter().filter_map(|chart| chart["title"].as_str()).collect();
    assert_eq!(drawn, ["Curve of loop", "by window: median and range of the trials"]);
    let line = &charts[0]["panels"][0]["lines"][0];
    assert_eq!((&charts[0]["x"]["log"], &line["x"]), (&true.into(), &serde_json::json!([1, 64, 4096])));
    assert_eq!(line["y"], serde_json::json!([8_000_000, null, 9_000_000_000_u64]));
    assert_eq!(line["low"], serde_json::json!([7_999_999, null, 8_999_999_999_u64]));
}

#[test]
fn a_plan_has_a_line_for_each_value_of_the_other_axis_with_intervals_and_what_was_computed() {
    let (events, record) = plans::two_axes();
    let plan = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let chart = &data(&page(Some(&plan), &[], &ASSETS))["charts"][0];
    assert_eq!(
        (&chart["x"]["label"], &chart["x"]["unit"], &chart["x"]["log"]),
        (&"window".into(), &"bytes".into(), &true.into())
    );
    let lines = chart["panels"][0]["lines"].as_array().unwrap();
    let labels: Vec<&str> = lines.iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["delay 1 ms", "delay 50 ms", "ceiling, delay 1 ms", "ceiling, delay 50 ms"]);
    // A value that is not a number has a place beyond the last number, and nothing joins the two.
    assert_eq!(lines[1]["x"], serde_json::json!([65_536, 1_048_576, 16_777_216, 25_165_824, 33_554_432]));
    assert_eq!(lines[1]["y"], serde_json::json!([10_000_000, 160_000_000, 900_000_000, null, 800_000_000]));
    // The axis names what was measured.
    let marks = chart["x"]["marks"].as_array().unwrap();
    assert_eq!((marks.len(), &marks[0]), (4, &serde_json::json!({ "at": 65_536, "label": "64 KiB" })));
    assert_eq!(marks[3], serde_json::json!({ "at": 33_554_432, "label": "default" }));
    assert_eq!((&lines[1]["low"][0], &lines[1]["high"][0]), (&9_000_000.into(), &11_000_000.into()));
}

#[test]
fn a_matrix_shows_each_pair_of_hosts_and_the_share_of_its_largest() {
    let (events, record) = plans::all_pairs();
    let plan = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let page = page(Some(&plan), &[], &ASSETS);
    let matrix = between(&page, "goodput from host to host", "</figure>");
    assert!(matrix.contains("--share:100.0%\">1.000 Gb/s") && matrix.contains("--share:50.0%\">500.0 Mb/s"));
    // No host sends to itself.
    assert_eq!(matrix.matches("<td class=\"number\">-</td>").count(), 3);
}

#[test]
fn what_others_wrote_stays_text() {
    let evil = "</script></style><script>alert(1)</script>&\"'<!--";
    let mut log = runs::tcp_run();
    for event in &mut log {
        event.run = evil.into();
        match &mut event.body {
            Body::Host { info } => info.name = evil.into(),
            Body::FlowPlanned(plan) => plan.name = evil.into(),
            _ => {}
        }
    }
    let caveat = Caveat { kind: CaveatKind::ConcurrentRun, text: evil.into() };
    log.push(Event { body: Body::Caveat { flow: Some(FlowId(0)), caveat }, ..log[0].clone() });
    let page = of(log);
    assert!(!page.contains("alert(1)</script>") && !page.contains("<script>alert"), "{page}");
    // Our own scripts: data, program, log.
    assert_eq!(page.matches("<script").count(), 3);
    assert_eq!(page.matches("</script>").count(), 3);
    assert!(data(&page)["charts"][0]["title"].as_str().unwrap().contains("</script>"));
}

proptest! {
    #[test]
    fn any_name_is_one_text_and_the_data_stays_json(name in ".{0,40}") {
        let mut log = runs::tcp_run();
        for event in &mut log {
            if let Body::FlowPlanned(plan) = &mut event.body {
                plan.name = name.as_str().into();
            }
        }
        let page = of(log);
        prop_assert_eq!(page.matches("<script").count(), 3);
        data(&page);
    }
}

#[test]
fn latency_is_a_distribution_of_every_probe_and_not_of_five_quantiles() {
    let data_of = |log| data(&of(log))["charts"].clone();
    let charts = data_of(runs::tcp_run());
    let chart = charts.as_array().unwrap().iter().find(|chart| chart["kind"] == "cdf").unwrap();
    let line = &chart["panels"][0]["lines"][0];
    assert_eq!((&line["label"], &line["style"]), (&"before the load".into(), &"steps_after".into()));
    // 200 probes: 50 took 105 us, 60 more 210 us, and so on; nothing was faster.
    assert_eq!(line["x"], serde_json::json!([105_000, 210_000, 420_000, 630_000, 840_000]));
    assert_eq!(line["y"], serde_json::json!([0.25, 0.55, 0.95, 0.99, 1]));
    let mut older = runs::tcp_run();
    for event in &mut older {
        if let Body::Latency { report, .. } = &mut event.body {
            report.histogram.clear();
        }
    }
    assert!(data_of(older.clone()).as_array().unwrap().iter().all(|chart| chart["kind"] != "cdf"));
    assert!(of(older).contains("Latency of probes"), "the table has the quantiles");
}

#[test]
fn a_panel_in_which_everything_is_zero_is_a_sentence() {
    // In the samples the number of retransmissions is that of the tenths of a second before.
    let with_sender = |from_ms| {
        let mut log = runs::tcp_run();
        let sample = runs::sample(1, linerate_model::Side::Sender, from_ms, from_ms + 500, 9_000).1;
        log.push(Event { body: sample, ..log[0].clone() });
        of(log)
    };
    let (none, some) = (with_sender(0), with_sender(500));
    assert!(none.contains("No segment was retransmitted."));
    assert!(!none.contains("retransmitted segments in an interval"), "no panel, and no data for one");
    assert!(!some.contains("No segment was retransmitted."));
    assert!(some.contains("retransmitted segments in an interval"));
}

/// The page of a plan without its log and runs.
fn page_of(record: &PlanRecord) -> String {
    page(Some(&ReportedPlan { record, events: &[], left_out: &[] }), &[], &ASSETS)
}

#[test]
fn a_plan_has_at_most_eight_columns_in_sight_with_the_verdict_and_the_rest_below_each_row() {
    let (_, record) = plans::eighteen();
    let page = page_of(&record);
    let results = between(&page, "id=\"results\"", "</table>");
    let heads: Vec<&str> = between(results, "<thead>", "</thead>")
        .split("</th>")
        .filter_map(|head| head.split('>').next_back())
        .filter(|head| !head.is_empty())
        .collect();
    assert!(heads.len() <= 8, "{heads:?}");
    // A telephone has room for the first ones.
    assert_eq!(heads[..4], ["window", "delay", "rate", "verdict"]);
    assert_eq!(results.matches("<tr class=\"more\">").count(), 18);
    // What is folded is there: quantities without a column, in bytes and percent.
    for text in [
        "cpu sender <b>12.5\u{a0}%",
        "segment <b>1448\u{a0}B",
        "loss <b>0.0\u{a0}%",
        "rcv buf <b>64\u{a0}KiB",
    ] {
        assert!(results.contains(text), "{text}: {results}");
    }
}

#[test]
fn a_plan_of_two_trials_has_ranges_in_table_and_chart() {
    let (_, record) = plans::eighteen();
    let page = page_of(&record);
    assert!(page.contains("900.0\u{a0}Mb/s (880.0\u{a0}to\u{a0}920.0)"), "{page}");
    let line = &data(&page)["charts"][0]["panels"][0]["lines"][0];
    assert_eq!((&line["low"][0], &line["high"][0]), (&880_000_000.into(), &920_000_000.into()));
}

#[test]
fn all_curves_of_a_sweep_are_one_chart_with_a_line_for_each_flow() {
    let (_, record) = plans::two_flows();
    let data = data(&page_of(&record));
    let charts = data["charts"].as_array().unwrap();
    assert_eq!(charts.len(), 1);
    let labels: Vec<&str> = charts[0]["panels"][0]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["ab", "cd"]);
    assert_eq!((&charts[0]["x"]["label"], &charts[0]["x"]["unit"]), (&"mss".into(), &"octets".into()));
}

#[test]
fn a_matrix_of_hosts_is_only_there_if_most_pairs_were_measured() {
    assert!(!page_of(&plans::two_flows().1).contains("from host to host"));
    assert!(page_of(&plans::all_pairs().1).contains("from host to host"));
}

#[test]
fn what_was_not_measured_is_only_spoken_of_where_something_is_missing() {
    let sentence = "What was not measured does not hold.";
    let (_, mut record) = plans::two_axes();
    assert!(!page_of(&record).contains(sentence));
    record.judgements[1].found = Some("not measured: loss".into());
    assert!(page_of(&record).contains(sentence));
    record.judgements.retain(|judgement| judgement.holds);
    assert!(!page_of(&record).contains(sentence));
}

#[test]
fn a_run_of_a_plan_is_titled_by_its_point_and_folded_and_the_contents_have_it() {
    let (events, record) = plans::two_axes();
    let plan = ReportedPlan { record: &record, events: &events, left_out: &[] };
    let page = page(Some(&plan), &plans::runs(), &ASSETS);
    let name = "window 64 KiB, delay 1 ms, trial 1";
    let contents = between(&page, "<nav class=\"contents\"", "</nav>");
    for text in [
        &format!("<a href=\"#run-0\">{name}</a>"),
        "href=\"#results\"",
        "href=\"#curves\"",
        "href=\"#trials\"",
    ] {
        assert!(contents.contains(text), "{text}: {contents}");
    }
    let trials = between(&page, "<details id=\"trials\">", "</details>");
    assert!(trials.contains("<td class=\"number\">1</td>"), "as in the name: {trials}");
    assert!(!trials.contains("<td class=\"number\">0</td>"), "{trials}");
    let run = between(&page, "<details class=\"run\" id=\"run-0\">", "</summary>");
    assert!(run.contains(&format!("<h3>{name}</h3>")) && run.contains("941.4 Mb/s"), "{run}");
    assert!(!run.contains("10.0.0.1"), "an address is no title: {run}");
}

#[test]
fn a_comparison_says_first_in_words_what_it_found_and_shows_every_repeat() {
    let mut out = Vec::new();
    write_comparison(None, &plans::compared(), &ASSETS, &mut out).unwrap();
    let page = String::from_utf8(out).unwrap();
    let order =
        ["new compared with old", "new is 3.0 % faster than old (2.", "data-chart=\"0\"", ">better</td>"];
    let places: Vec<usize> = order.iter().map(|text| position(&page, text)).collect();
    assert!(places.is_sorted(), "{places:?}");
    let chart = &data(&page)["charts"][0];
    let lines = chart["panels"][0]["lines"].as_array().unwrap();
    let labels: Vec<&str> = lines.iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["old", "new", "old, median", "new, median"]);
    assert_eq!(lines[0]["y"].as_array().unwrap().len(), 8, "every repeat");
    assert_eq!(chart["x"]["marks"][1], serde_json::json!({ "at": 2, "label": "new" }));
    // The interval of the median of eight repeats is there, around the median.
    let [low, median, high] = ["low", "y", "high"].map(|end| lines[3][end][0].as_f64().unwrap());
    assert!(low < median && median < high, "{low} {median} {high}");
}

#[test]
fn a_chosen_title_is_above_what_the_page_contains() {
    let title = ForeignText::new("Acceptance <of> line 7");
    let log = runs::tcp_run();
    let record = RunRecord::fold(&log);
    let run = ReportedRun { record: &record, events: &[] };
    let pages = [(vec![run], "<p class=\"about\">laptop"), (vec![run, run], "<p class=\"about\">2 runs</p>")];
    for (runs, below) in pages {
        let mut out = Vec::new();
        write(Some(&title), None, &runs, &ASSETS, &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert!(page.contains("<title>Acceptance &lt;of&gt; line 7</title>"), "{page}");
        assert_eq!(page.matches("<h1").count(), 1, "{page}");
        assert!(position(&page, "<h1>Acceptance &lt;of&gt; line 7</h1>") < position(&page, below), "{page}");
    }
    let mut out = Vec::new();
    write_comparison(Some(&title), &plans::compared(), &ASSETS, &mut out).unwrap();
    assert!(
        String::from_utf8(out).unwrap().contains("line 7</h1><p class=\"about\">new compared with old</p>")
    );
}

#[test]
fn the_name_and_notes_of_a_run_are_on_its_page() {
    let mut log = runs::tcp_run();
    let labels = RunLabels { name: Some("before".into()), notes: [("switch".into(), "SG350".into())].into() };
    let last = log.last().unwrap();
    log.push(Event { seq: last.seq + 1, body: Body::Labelled(labels), ..last.clone() });
    let page = of(log);
    assert!(page.contains("<title>linerate: before</title>") && page.contains("<h1>before</h1>"), "{page}");
    let origin = between(&page, "id=\"origin\"", "</dl>");
    assert!(origin.contains("<dt>switch</dt><dd>SG350</dd>"), "{origin}");
}

#[test]
fn several_caveats_do_not_push_the_next_flow_out_of_sight() {
    let mut log = runs::tcp_run();
    let one = of(log.clone());
    assert!(one.contains("<ul class=\"caveats\">") && !one.contains("2 caveats"));
    let caveat = Caveat { kind: CaveatKind::ConcurrentRun, text: "Another test ran.".into() };
    let body = Body::Caveat { flow: Some(FlowId(1)), caveat };
    log.push(Event { body, ..log[0].clone() });
    let two = of(log);
    let folded = between(&two, "2 caveats</summary>", "</details>");
    assert!(folded.contains("Another test ran.") && folded.contains("bbr was asked for"), "{folded}");
}
