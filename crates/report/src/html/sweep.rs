//! A plan's points as curves: quantities against one numeric axis, a line for each combination of the other
//! axes.

use std::collections::BTreeMap;

use linerate_model::{PlanAxis, PlanStart, PointSummary};

use super::chart::{Chart, ChartAxis, ChartKind, ChartLine, LineStyle, Panel, Rounded};
use super::summaries::{FlowWay, Summaries};

/// The panels, drawn if measured: the quantity, computed quantities for it, and a description.
const PANELS: [(&str, &[&str], &str); 7] = [
    ("goodput", &["ceiling", "window_rate"], "goodput"),
    ("rtt_p95", &[], "round-trip time under load, 95th percentile"),
    ("retransmits", &[], "retransmitted segments"),
    ("loss", &[], "share of lost datagrams"),
    ("jitter", &[], "jitter"),
    ("cpu_sender", &[], "busy share of the sending host"),
    ("cpu_receiver", &[], "busy share of the receiving host"),
];

/// Largest number of distinguishable lines in a panel.
pub(super) const MAX_LINES: usize = 6;

/// Axes with at least this ratio of largest to smallest value are logarithmic.
const LOG_AXIS_RATIO: f64 = 16.0;

/// The axis of the curves: the one with the most numeric values, at least two.
pub(super) fn axis(start: &PlanStart) -> Option<(usize, &PlanAxis)> {
    let numbers = |axis: &PlanAxis| axis.values.iter().filter(|value| value.number.is_some()).count();
    let numeric = start.axes.iter().enumerate().filter(|(_, axis)| numbers(axis) >= 2);
    // The first one, if several axes have the same number.
    numeric.rev().max_by_key(|(_, axis)| numbers(axis))
}

/// A chart for each flow and direction; none without a numeric axis.
pub(super) fn charts(plan: &Summaries<'_>) -> Vec<Chart> {
    let Some(start) = &plan.record.start else { return Vec::new() };
    let Some((number, axis)) = axis(start) else { return Vec::new() };
    let charts = plan.flows.iter().copied().filter_map(|flow| {
        let panels = PANELS.iter().filter_map(|(quantity, computed, words)| {
            let mut lines = lines(plan, number, flow, quantity, LineStyle::Points);
            let unit = unit(plan, flow, quantity)?;
            if !lines.is_empty() {
                lines.extend(computed.iter().flat_map(|name| lines_computed(plan, number, flow, name)));
            }
            let y = ChartAxis { label: (*words).to_owned(), unit, log: false };
            (!lines.is_empty()).then_some(Panel { y, lines, levels: Vec::new() })
        });
        let panels: Vec<Panel> = panels.collect();
        let unit = axis.unit.clone().unwrap_or_else(|| "1".into());
        let x = ChartAxis { label: axis.name.to_string(), unit: unit.into(), log: is_wide(axis) };
        let title = format!("{}, {}, over {}", flow.0, flow.1.name(), axis.name);
        let chart = Chart { kind: ChartKind::Sweep, title, x, panels, bands: Vec::new() };
        (!chart.panels.is_empty()).then_some(chart)
    });
    charts.collect()
}

fn is_wide(axis: &PlanAxis) -> bool {
    let numbers = || axis.values.iter().filter_map(|value| value.number);
    let (low, high) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max));
    low > 0.0 && high >= low * LOG_AXIS_RATIO
}

fn unit(plan: &Summaries<'_>, flow: FlowWay<'_>, quantity: &str) -> Option<String> {
    let start = plan.record.start.as_ref()?;
    let mut of = start.points.iter().filter_map(|point| plan.find(&point.id, flow, quantity));
    of.find_map(|summary| summary.unit.clone()).map(Into::into)
}

/// The computed curves; a single one if it is the same for all lines.
fn lines_computed(plan: &Summaries<'_>, axis: usize, flow: FlowWay<'_>, quantity: &str) -> Vec<ChartLine> {
    let mut lines = lines(plan, axis, flow, quantity, LineStyle::Computed);
    for line in &mut lines {
        (line.low, line.high) = (Vec::new(), Vec::new());
        line.label = format!("{quantity}, {}", line.label);
    }
    let same = lines.windows(2).all(|pair| (&pair[0].x, &pair[0].y) == (&pair[1].x, &pair[1].y));
    if same && !lines.is_empty() {
        lines.truncate(1);
        lines[0].label = format!("{quantity} (computed)");
    }
    lines
}

/// A line for each combination of the other axes, up to [`MAX_LINES`].
fn lines(
    plan: &Summaries<'_>,
    axis: usize,
    flow: FlowWay<'_>,
    quantity: &str,
    style: LineStyle,
) -> Vec<ChartLine> {
    let Some(start) = &plan.record.start else { return Vec::new() };
    let mut groups: BTreeMap<Vec<usize>, Vec<(f64, &PointSummary)>> = BTreeMap::new();
    for point in &start.points {
        let number = point.values.get(axis).and_then(|value| start.axes[axis].values.get(*value)?.number);
        let summary = plan.find(&point.id, flow, quantity);
        let mut others = point.values.clone();
        if axis < others.len() {
            others.remove(axis);
        }
        if let (Some(number), Some(summary)) = (number, summary) {
            groups.entry(others).or_default().push((number, summary));
        }
    }
    let lines = groups.into_iter().take(MAX_LINES).map(|(others, mut points)| {
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let label = label(start, axis, &others).unwrap_or_else(|| quantity.replace('_', " "));
        let mut line = ChartLine::of(label, style, points.iter().map(|(x, summary)| (*x, summary.median)));
        if points.iter().any(|(_, summary)| ends(summary).is_some()) {
            line.low = points.iter().map(|(_, s)| ends(s).map(|(low, _)| Rounded(low))).collect();
            line.high = points.iter().map(|(_, s)| ends(s).map(|(_, high)| Rounded(high))).collect();
        }
        line
    });
    lines.filter(|line| line.y.iter().any(Option::is_some)).collect()
}

/// The interval of a summary.
fn ends(summary: &PointSummary) -> Option<(f64, f64)> {
    summary.interval.map(|interval| (interval.low, interval.high))
}

/// The values of the other axes as text; `None` if there are no others.
fn label(start: &PlanStart, axis: usize, others: &[usize]) -> Option<String> {
    let axes = start.axes.iter().enumerate().filter(|(number, _)| *number != axis);
    let words: Vec<String> = axes
        .zip(others)
        .filter_map(|((_, axis), value)| Some(format!("{} {}", axis.name, axis.values.get(*value)?.label)))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}
