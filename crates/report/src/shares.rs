//! No format prints more than 100 % of a ceiling, for series and plans, whatever a log contains.

use linerate_model::flow::FlowId;
use linerate_model::{
    Body, Ceiling, Direction, Event, Limit, PlanRecord, PointSummary, RunRecord, Side, SizeCurve, SizePoint,
    SummaryInterval, Tally, TestSpec, Transport,
};
use linerate_units::{Bitrate, Bytes, Span, Timestamp};
use proptest::prelude::*;

use crate::samples_of_plans::two_axes;
use crate::samples_of_runs as runs;
use crate::{TextLayout, csv, document, html, markdown, plan, text};

/// Checks that no number before a percent sign is above 100.
fn check_text(text: &str) -> Result<(), TestCaseError> {
    for (at, _) in text.match_indices(" %") {
        let number = text[..at].rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or("");
        prop_assert!(number.parse::<f64>().is_ok_and(|percent| percent <= 100.0), "{} % in {}", number, text);
    }
    Ok(())
}

fn page(plan: Option<&html::ReportedPlan<'_>>, runs: &[html::ReportedRun<'_>]) -> String {
    let mut page = Vec::new();
    html::write(None, plan, runs, &html::Assets { script: "", style: "" }, &mut page).unwrap();
    // The text of the page only: data of its charts and the log follow after it.
    let page = String::from_utf8_lossy(&page).into_owned();
    page.split("<script").next().unwrap_or_default().to_owned()
}

/// A series whose only unbuffered size has this `rate`, under a ceiling.
fn series(rate: f64, buffered: f64, ceiling: Ceiling) -> Vec<Event> {
    let mut bodies = runs::opening(TestSpec::default());
    bodies.push(runs::planned(0, Direction::Upload, Transport::Tcp));
    for (message, rate) in [(1 << 10, buffered), (1 << 20, rate)] {
        let (message_bytes, bitrate) = (Bytes::new(message), Bitrate::from_bps(rate));
        let point = SizePoint {
            message_bytes,
            trials: Some(7),
            repeats: Some(1),
            best: Span::from_ms(1),
            median: None,
            interval: None,
            bitrate,
            buffered: false,
        };
        bodies.push((0, Body::Size { flow: FlowId(0), point }));
    }
    bodies.push(runs::ended(FlowId(0), Side::Receiver, Tally { complete: true, ..runs::tally(rate) }));
    let curve = SizeCurve {
        smallest_bytes: Bytes::new(1 << 10),
        smallest_one_way: Span::from_ms(1),
        peak_bytes: Bytes::new(1 << 20),
        peak: Bitrate::from_bps(rate).unwrap(),
        saturation_bytes: None,
        sustained: Bitrate::from_bps(rate),
        fit: None,
    };
    bodies.push((0, Body::Curve { flow: FlowId(0), curve }));
    bodies.push((
        0,
        Body::Ceilings { flow: FlowId(0), ceilings: vec![ceiling.clone()], ceiling: Some(ceiling) },
    ));
    runs::log(bodies)
}

/// A plan whose log contains these shares of its first point, as older versions wrote them.
fn plan_with(shares: &[f64]) -> (Vec<Event>, PlanRecord) {
    let (mut log, record) = two_axes();
    let point = record.start.unwrap().points[0].id.clone();
    let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shares.iter().copied().fold(0.0, f64::max);
    let summary = PointSummary {
        point,
        flow: "ab".into(),
        direction: Direction::Upload,
        quantity: "share".into(),
        unit: Some("1".into()),
        values: shares.to_vec(),
        repeats: Vec::new(),
        median: Some(shares[shares.len() / 2]),
        interval: Some(SummaryInterval { low, high, coverage: 0.95 }),
        words: Vec::new(),
    };
    let (run, at) = (log[0].run.clone(), Timestamp::from_ns(1));
    log.push(Event { run, host: 0, seq: log.len() as u64, at, body: Body::PointSummed(summary) });
    let record = PlanRecord::fold(&log);
    (log, record)
}

proptest! {
    #[test]
    fn no_series_is_more_than_the_whole_of_its_ceiling(
        rate in 1e4_f64..1e11,
        buffered in 1.0_f64..100.0,
        factor in prop_oneof![Just(1.0), 0.9998_f64..1.0003, 0.001_f64..50.0],
        slack in prop_oneof![Just(0.0), 0.0_f64..0.5],
        limit in prop_oneof![Just(Limit::Link), Just(Limit::Qdisc), Just(Limit::LinkInferred)],
    ) {
        let bitrate_bps = rate / factor;
        let ceiling = Ceiling { limit, bitrate_bps, because: "given".into(), slack_bps: slack * bitrate_bps };
        let log = series(rate, buffered * rate, ceiling);
        let record = RunRecord::fold(&log);
        prop_assert_eq!(record.flows[0].bitrate(), Bitrate::from_bps(rate), "a buffer's rate is none of the path");
        let view = TextLayout { width: 100, colour: false, kept: None, explain: true, all_streams: false };
        let shown = text(&record, &view);
        if factor < 0.9999 || (factor > 1.0003 && factor < 1.0 + slack) {
            prop_assert!(shown.contains(" % of it"), "{}", shown);
        } else if factor > 1.0003 + slack * 1.0003 {
            prop_assert!(!shown.contains(" % of it"), "{}", shown);
        }
        for text in [shown, markdown::report(&record), page(None, &[html::ReportedRun { record: &record, events: &log }])] {
            // The head of a column and the name of an interval are not shares.
            check_text(&text)?;
        }
        let json = serde_json::to_value(document(&record)).unwrap();
        let share = json.pointer("/flows/0/ceiling/share").and_then(serde_json::Value::as_f64);
        prop_assert!(share.is_none_or(|share| share <= 1.0));
        let mut table = Vec::new();
        csv::summary(&record, &mut table).unwrap();
        let mut rows = ::csv::Reader::from_reader(&table[..]);
        let column = rows.headers().unwrap().iter().position(|head| head == "share").unwrap();
        let cell = rows.records().next().unwrap().unwrap()[column].to_owned();
        prop_assert!(cell.is_empty() || cell.parse::<f64>().unwrap() <= 1.0, "{}", cell);
    }

    #[test]
    fn no_plan_reports_a_share_above_the_whole(
        shares in proptest::collection::vec(prop_oneof![0.0_f64..1.0, Just(1.0), 1.0_f64..120.0], 1..9),
        width in 60_usize..200,
    ) {
        let (log, record) = plan_with(&shares);
        let view = TextLayout { width, colour: false, kept: None, explain: true, all_streams: false };
        let whole = html::ReportedPlan { record: &record, events: &log, left_out: &[] };
        for text in [plan::text(&record, &view), plan::markdown(&record), page(Some(&whole), &[])] {
            check_text(&text)?;
        }
        let document = plan::document(&record);
        let shares = document.points.iter().flat_map(|point| &point.summaries).filter(|one| one.quantity == "share");
        for one in shares {
            let ends = one.interval.iter().flat_map(|interval| [interval.low, interval.high]);
            for number in one.values.iter().copied().chain(one.median).chain(ends) {
                prop_assert!(number <= 1.0, "{:?}", one);
            }
        }
        let mut table = Vec::new();
        plan::csv(&record, &mut table).unwrap();
        let mut rows = ::csv::Reader::from_reader(&table[..]);
        let heads = rows.headers().unwrap().clone();
        let quantity = heads.iter().position(|head| head == "quantity").unwrap();
        for row in rows.records().map(Result::unwrap).filter(|row| &row[quantity] == "share") {
            for cell in ["smallest", "largest", "median", "low", "high"].iter().filter_map(|name| heads.iter().position(|head| head == *name)) {
                prop_assert!(row[cell].is_empty() || row[cell].parse::<f64>().unwrap() <= 1.0, "{:?}", row);
            }
        }
    }
}
