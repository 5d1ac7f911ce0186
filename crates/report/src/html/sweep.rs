//! A plan's points as curves in one chart: quantities against one numeric axis, a line for each flow and combination
//! of the other axes.

use std::collections::BTreeMap;

use linerate_model::{PlanAxis, PlanStart, PlanValue, PointSummary};

use super::chart::{Chart, ChartAxis, ChartLine, LineStyle, Mark, Panel, Rounded, folded};
use super::summaries::{FlowWay, Summaries};
use crate::plan::{ends, shown_unit};
use crate::text_flow::plural;

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

/// Distance of a value that is not a number from the last one, as a part of the axis.
const WORD_GAP: f64 = 0.12;

/// Largest number of distinguishable lines in a panel.
const MAX_LINES: usize = 6;

/// Axes with at least this ratio of largest to smallest value are logarithmic.
const LOG_AXIS_RATIO: f64 = 16.0;

/// The axis of the curves: the one with the most numeric values, at least two.
pub(super) fn axis(start: &PlanStart) -> Option<(usize, &PlanAxis)> {
    let numbers = |axis: &PlanAxis| axis.values.iter().filter(|value| value.number.is_some()).count();
    let numeric = start.axes.iter().enumerate().filter(|(_, axis)| numbers(axis) >= 2);
    // The first one, if several axes have the same number.
    numeric.rev().max_by_key(|(_, axis)| numbers(axis))
}

/// One chart of all flows; `None` without a numeric axis. Cross traffic is not drawn.
pub(super) fn chart(plan: &Summaries<'_>) -> Option<Chart> {
    let start = plan.record.start.as_ref()?;
    let (number, axis) = axis(start)?;
    let is_cross = |name: &str| start.flows.iter().any(|flow| flow.name == name && flow.cross_traffic);
    let flows: Vec<FlowWay<'_>> = plan.flows.iter().copied().filter(|flow| !is_cross(flow.0)).collect();
    let (places, marks) = places(axis);
    let mut left_out = 0;
    let panels = PANELS.iter().filter_map(|(quantity, computed, words)| {
        let of = |quantity: &str, style| {
            let lines =
                flows.iter().flat_map(|flow| lines(plan, (number, &places), *flow, &flows, quantity, style));
            lines.collect::<Vec<ChartLine>>()
        };
        let mut measured = of(quantity, LineStyle::Points);
        left_out = measured.len().saturating_sub(MAX_LINES).max(left_out);
        measured.truncate(MAX_LINES);
        let unit = flows.iter().find_map(|flow| unit(plan, *flow, quantity))?;
        let drawn = measured.len();
        for name in computed.iter().filter(|_| drawn > 0) {
            measured.extend(computed_lines(of(name, LineStyle::Computed), name, drawn));
        }
        let y = ChartAxis::linear(*words, &unit);
        (drawn > 0).then(|| (Panel::of_lines(y, measured), format!("{}: 0 throughout.", capital(words))))
    });
    let (panels, mut notes) = folded(panels.collect());
    let words = plural(left_out as u64, "line");
    if left_out > 0 {
        notes.push(format!("Drawn are the first {MAX_LINES}: {words} more would not be distinguishable; the table has all points."));
    }
    let unit = shown_unit(&axis.name, axis.unit.as_deref()).unwrap_or("1").to_owned();
    let x = ChartAxis { log: is_wide(axis), marks, ..ChartAxis::linear(axis.name.to_string(), &unit) };
    let title = format!("by {}: median and range of the trials", axis.name);
    Chart::of_sweep(title, x, panels, notes)
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The place of each value on the axis: its number, or beyond the largest number a place of its own with its name.
fn places(axis: &PlanAxis) -> (Vec<f64>, Vec<Mark>) {
    let numbers = || axis.values.iter().filter_map(|value| value.number);
    let (low, high) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
    let is_log = is_wide(axis);
    let step = if is_log {
        (high / low).powf(WORD_GAP).max(2.0)
    } else {
        ((high - low) * WORD_GAP).max(f64::MIN_POSITIVE)
    };
    let mut next = high;
    let mut marks = Vec::new();
    let place = |value: &PlanValue| {
        let at = value.number.unwrap_or_else(|| {
            next = if is_log { next * step } else { next + step };
            next
        });
        marks.push(Mark { at: Rounded(at), label: value.label.to_string() });
        at
    };
    let places = axis.values.iter().map(place).collect();
    marks.sort_by(|one, other| one.at.0.total_cmp(&other.at.0));
    (places, marks)
}

fn is_wide(axis: &PlanAxis) -> bool {
    let numbers = || axis.values.iter().filter_map(|value| value.number);
    let (low, high) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max));
    low > 0.0 && high >= low * LOG_AXIS_RATIO
}

fn unit(plan: &Summaries<'_>, flow: FlowWay<'_>, quantity: &str) -> Option<String> {
    let start = plan.record.start.as_ref()?;
    let mut of = start.points.iter().filter_map(|point| plan.find(&point.id, flow, quantity));
    let unit = of.find_map(|summary| summary.unit.as_deref());
    shown_unit(quantity, unit).map(str::to_owned)
}

/// The computed curves; a single one if it is the same for all lines.
fn computed_lines(mut lines: Vec<ChartLine>, quantity: &str, most: usize) -> Vec<ChartLine> {
    lines.truncate(most);
    let quantity = quantity.replace('_', " ");
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

/// A line for each combination of the other axes. `axis` is the number of the axis and the place of each of its
/// values.
fn lines(
    plan: &Summaries<'_>,
    (axis, places): (usize, &[f64]),
    flow: FlowWay<'_>,
    flows: &[FlowWay<'_>],
    quantity: &str,
    style: LineStyle,
) -> Vec<ChartLine> {
    let Some(start) = &plan.record.start else { return Vec::new() };
    let mut groups: BTreeMap<Vec<usize>, Vec<(f64, bool, &PointSummary)>> = BTreeMap::new();
    for point in &start.points {
        let value =
            point.values.get(axis).and_then(|value| Some((*value, start.axes[axis].values.get(*value)?)));
        let mut others = point.values.clone();
        if axis < others.len() {
            others.remove(axis);
        }
        if let (Some((number, value)), Some(summary)) = (value, plan.find(&point.id, flow, quantity)) {
            let is_word = value.number.is_none();
            groups.entry(others).or_default().push((places[number], is_word, summary));
        }
    }
    let lines = groups.into_iter().map(|(others, mut points)| {
        points.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let label = label(start, axis, &others, flow, flows).unwrap_or_else(|| quantity.replace('_', " "));
        one_line(label, style, &points)
    });
    lines.filter(|line| line.y.iter().any(Option::is_some)).collect()
}

/// A word has no neighbours on the axis: nothing joins it to them.
fn one_line(label: String, style: LineStyle, points: &[(f64, bool, &PointSummary)]) -> ChartLine {
    let mut line = ChartLine::of(label, style, []);
    let mut last: Option<f64> = None;
    for (at, is_word, summary) in points {
        if let Some(last) = last.filter(|_| *is_word) {
            line.x.push(Rounded(last.midpoint(*at)));
            line.y.push(None);
            line.low.push(None);
            line.high.push(None);
        }
        let (low, high) = ends(summary).unzip();
        line.x.push(Rounded(*at));
        line.y.push(summary.median.filter(|median| median.is_finite()).map(Rounded));
        line.low.push(low.map(Rounded));
        line.high.push(high.map(Rounded));
        last = Some(*at);
    }
    if line.low.iter().all(Option::is_none) {
        (line.low, line.high) = (Vec::new(), Vec::new());
    }
    line
}

/// What differs between the lines: the flow, its direction, and the values of the other axes; `None` if nothing
/// does.
fn label(
    start: &PlanStart,
    axis: usize,
    others: &[usize],
    flow: FlowWay<'_>,
    flows: &[FlowWay<'_>],
) -> Option<String> {
    let mut words = Vec::new();
    if flows.iter().any(|other| other.0 != flow.0) {
        words.push(flow.0.to_owned());
    }
    if flows.iter().any(|other| other.1 != flow.1) {
        words.push(flow.1.name().to_owned());
    }
    let axes = start.axes.iter().enumerate().filter(|(number, _)| *number != axis);
    let several = axes.zip(others).filter(|((_, axis), _)| axis.values.len() > 1);
    words.extend(
        several.filter_map(|((_, axis), value)| {
            Some(format!("{} {}", axis.name, axis.values.get(*value)?.label))
        }),
    );
    (!words.is_empty()).then(|| words.join(", "))
}
