//! Several runs side by side: their results in one table, their rates in one diagram per direction.

use linerate_model::{FlowRecord, RunRecord};
use maud::{Markup, html};

use super::chart::{Chart, ChartAxis, ChartKind, Panel};
use super::parts::{PageCharts, plain_table};
use super::series;
use crate::figure::{FlowFigure, caveats};
use crate::quantity::or_absent;

/// Largest number of runs in one diagram.
const MAX_LINES: usize = 6;

/// The runs with their results, in the requested order.
pub(super) fn section(runs: &[&RunRecord], figures: &mut PageCharts) -> Markup {
    html! {
        section #together {
            h2 { "Side by side" }
            (plain_table(&rows(runs), "Every flow of every run"))
            @for chart in charts(runs) { (figures.place(Some(chart))) }
        }
    }
}

/// Name of a run on the page: the start of its full name.
pub(super) fn name(record: &RunRecord) -> String {
    record.run.chars().take(8).collect::<String>()
}

fn rows(runs: &[&RunRecord]) -> Vec<Vec<String>> {
    let heads =
        ["run", "flow", "bitrate", "of ceiling", "limited by", "retransmitted", "loaded p95", "caveats"];
    let rows = runs.iter().flat_map(|record| record.flows.iter().map(|flow| row(record, flow)));
    std::iter::once(heads.map(str::to_owned).to_vec()).chain(rows).collect()
}

fn row(record: &RunRecord, flow: &FlowRecord) -> Vec<String> {
    let figure = FlowFigure::of(flow);
    let rate = flow.bitrate().map(|rate| {
        let impossible = figure.is_some_and(|figure| figure.impossible);
        if impossible { format!("impossible: {rate}") } else { rate.to_string() }
    });
    let loaded = flow.loaded.as_ref().filter(|report| report.rtt.count > 0);
    vec![
        record
            .start
            .as_ref()
            .map_or_else(|| name(record), |start| format!("{}, {}", name(record), start.started_at)),
        flow.plan.name.to_string(),
        or_absent(rate),
        or_absent(figure.and_then(|figure| figure.share)),
        or_absent(flow.verdict.as_ref().map(|verdict| verdict.cause)),
        or_absent(flow.sender.as_ref().and_then(|tally| tally.retransmits)),
        or_absent(loaded.map(|report| linerate_units::Span::from_ns(report.rtt.p95_ns))),
        caveats(flow).len().to_string(),
    ]
}

fn charts(runs: &[&RunRecord]) -> Vec<Chart> {
    let mut names: Vec<&str> = Vec::new();
    for flow in runs.iter().flat_map(|record| &record.flows) {
        if !names.contains(&flow.plan.name.as_str()) {
            names.push(&flow.plan.name);
        }
    }
    let chart = |name: &str| {
        let of_name = runs.iter().filter_map(|record| {
            let flow = record.flows.iter().find(|flow| flow.plan.name == name)?;
            series::received(flow, format!("run {}", self::name(record)))
        });
        let lines: Vec<_> = of_name.take(MAX_LINES).collect();
        let y = ChartAxis::linear("bit rate of payload", "bit/s");
        (lines.len() > 1).then(|| Chart {
            kind: ChartKind::Time,
            title: format!("{name}: received by each run"),
            x: ChartAxis::linear("time since the receiver's first byte", "s"),
            panels: vec![Panel::of_lines(y, lines)],
            bands: Vec::new(),
            notes: Vec::new(),
        })
    };
    names.into_iter().filter_map(chart).collect()
}
