//! Pictures are reproducible, contain everything that the page has, and are empty without data.

use linerate_model::{PlanRecord, RunRecord, StreamCounting, StreamProgress};
use linerate_units::{Bytes, Span, Timestamp};

use super::*;
use crate::{samples_of_plans as plans, samples_of_runs as runs};

fn sweep() -> RunRecord {
    RunRecord::fold(&runs::sweep_run())
}

#[test]
fn the_picture_names_its_axes_and_draws_every_size_once_in_each_curve() {
    let record = sweep();
    let pictures = Pictures::of_run(&record);
    let picture = pictures.svg(Some(0)).unwrap();
    assert_eq!(Pictures::of_run(&record).svg(Some(0)).unwrap(), picture);
    for text in [
        "message size",
        "bit rate of payload",
        "half the round trip of one message",
        "laptop (10.0.0.1)",
        "64 KiB",
        "100 Mb/s",
        "10 us",
    ] {
        assert!(picture.contains(text), "{text}: {picture}");
    }
    let sizes = record.flows[0].sizes.len();
    assert_eq!(picture.matches("<circle").count(), 2 * sizes);
    let lines = |picture: &str| picture.matches("<polyline").count();
    let mut without = record;
    let mut whiskers = 0;
    for point in &mut without.flows[0].sizes {
        whiskers += usize::from(point.interval.take().is_some());
    }
    // The largest size has too few trials for an interval.
    assert_eq!(whiskers, sizes - 1);
    let plain = Pictures::of_run(&without).svg(Some(0)).unwrap();
    assert_eq!(lines(&picture) - lines(&plain), whiskers);
}

#[test]
fn each_stream_of_a_flow_has_a_row_of_cells() {
    let mut record = RunRecord::fold(&runs::tcp_run());
    let first = Timestamp::START + Span::from_secs(1);
    record.flows[0].first_read = Some(first);
    record.flows[0].streams = [[0, 0], [1_000_000, 0], [3_000_000, 500_000]]
        .into_iter()
        .zip(1..)
        .map(|(bytes, seconds)| StreamProgress {
            at: first + Span::from_secs(seconds),
            counted: StreamCounting::Received,
            bytes: bytes.map(Bytes::new).to_vec(),
        })
        .collect();
    let cells = Pictures::of_run(&record).svg(Some(0)).unwrap();
    assert!(cells.contains("full colour 16"), "2 MB in a second: {cells}");
    record.flows[0].streams.clear();
    let without = Pictures::of_run(&record).svg(Some(0)).unwrap();
    let filled = |picture: &str| picture.matches("<rect").count();
    // Three columns, as many streams that moved something in one, and the band that each panel has.
    assert_eq!(filled(&cells) - filled(&without), 7);
}

#[test]
fn a_run_has_its_rates_over_time_and_its_latency_together_or_one_by_one() {
    let record = RunRecord::fold(&runs::tcp_run());
    let pictures = Pictures::of_run(&record);
    let titles: Vec<&str> = pictures.titles().collect();
    assert!(titles.len() >= 2 && titles.iter().any(|title| title.starts_with("latency")), "{titles:?}");
    let all = pictures.svg(None).unwrap();
    for (number, title) in titles.iter().enumerate() {
        assert!(all.contains(title), "{title}");
        let one = pictures.svg(Some(number)).unwrap();
        let there: Vec<&&str> = titles.iter().filter(|title| one.contains(**title)).collect();
        assert_eq!(there, [title]);
    }
    assert!(all.contains("received") && all.contains("busy share of the CPUs"), "{all}");
    assert_eq!(pictures.svg(Some(titles.len())), None);
}

#[test]
fn a_plan_has_its_curves_and_its_matrices() {
    let (_, record) = plans::two_axes();
    let pictures = Pictures::of_plan(&record);
    let (charts, matrices) = html::figures_of_plan(&record);
    assert_eq!(pictures.titles().len(), charts.len() + matrices.len());
    let picture = pictures.svg(Some(charts.len())).unwrap();
    for text in matrices[0].rows.iter().chain(&matrices[0].columns) {
        assert!(picture.contains(text.as_str()), "{text}");
    }
    let cells = matrices[0].rows.len() * matrices[0].columns.len();
    // One more is the cross_traffic.
    assert_eq!(picture.matches("<rect").count(), cells + 1);
}

#[test]
fn names_from_others_are_no_markup() {
    let mut log = runs::sweep_run();
    for event in &mut log {
        if let linerate_model::Body::Host { info } = &mut event.body {
            info.name = "<script>&\u{1b}".into();
        }
    }
    let picture = Pictures::of_run(&RunRecord::fold(&log)).svg(None).unwrap();
    assert!(!picture.contains("<script>") && !picture.contains('\u{1b}'), "{picture}");
}

#[test]
fn nothing_is_drawn_of_nothing() {
    let nothing = Pictures::of_run(&RunRecord::default());
    assert_eq!((nothing.titles().len(), nothing.svg(None)), (0, None));
    let nothing = Pictures::of_plan(&PlanRecord::default());
    assert_eq!((nothing.titles().len(), nothing.svg(None)), (0, None));
}
