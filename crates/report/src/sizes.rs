//! A series over message sizes, as text and as a table.

use linerate_model::{
    CeilingShare, FlowRecord, MessageMode, RunRecord, SizeCurve, SizePoint, Sweep, TimeInterval,
};
use linerate_units::Bitrate;

use crate::layout::{TextLayout, TextRole};
use crate::quantity::{ABSENT, or_absent, percent};
use crate::table::{Cell, Column, Table};
use crate::text::labelled;
use crate::text_flow::details;

/// The flows of a run that are series.
pub(crate) fn series(record: &RunRecord) -> impl Iterator<Item = &FlowRecord> {
    record.flows.iter().filter(|flow| !flow.sizes.is_empty())
}

/// Whether a series was requested, or the run has one.
pub(crate) fn is_series(record: &RunRecord) -> bool {
    let asked = record.start.as_ref().is_some_and(|start| start.spec.sweep.is_some());
    asked || series(record).next().is_some()
}

/// The meaning of a point's time, as text.
pub(crate) fn time_words(record: &RunRecord) -> &'static str {
    let sweep = record.start.as_ref().and_then(|start| start.spec.sweep.as_ref());
    match sweep.map(Sweep::mode) {
        Some(MessageMode::Stream) => "time of one message at the receiver",
        Some(MessageMode::Both) => "time of one message each way",
        Some(MessageMode::PingPong) => "half the round trip of one message",
        None => "time of one message, as counted by the program",
    }
}

/// The series for a person: its summary, then a row per size.
pub(crate) fn lines(record: &RunRecord, view: &TextLayout) -> Vec<String> {
    let mut lines = Vec::new();
    for flow in &record.flows {
        lines.push(String::new());
        let name = flow.plan.name.to_string();
        if flow.sizes.is_empty() {
            lines.extend(labelled(&name, "no size was measured", TextRole::Plain, view));
            continue;
        }
        lines.extend(labelled(&name, &extent(record, flow), TextRole::Plain, view));
        for (label, text) in facts(flow) {
            lines.extend(labelled(label, &text, ink_of(label), view));
        }
        lines.push(String::new());
        lines.extend(table(flow).lines(view));
    }
    lines
}

fn ink_of(label: &str) -> TextRole {
    if matches!(label, "latency" | "highest") { TextRole::Result } else { TextRole::Plain }
}

/// The measured sizes, and the meaning of their times.
fn extent(record: &RunRecord, flow: &FlowRecord) -> String {
    let ends = flow.sizes.first().zip(flow.sizes.last());
    let ends = ends.map(|(first, last)| format!(" from {} to {}", first.message_bytes, last.message_bytes));
    format!("{} sizes{}; times: {}", flow.sizes.len(), ends.unwrap_or_default(), time_words(record))
}

/// Summary of a series, as label and text.
pub(crate) fn facts(flow: &FlowRecord) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(curve) = &flow.curve {
        facts.extend(curve_facts(curve));
        facts.extend(ceiling_fact(flow, curve));
    }
    facts.extend(buffered_fact(flow));
    if flow.sizes.iter().any(|point| point.median.is_some() && point.interval.is_none()) {
        let text = "none for sizes with fewer than six trials: their median has no 95 % interval";
        facts.push(("interval", text.to_owned()));
    }
    facts.extend(details(flow));
    facts
}

fn curve_facts(curve: &SizeCurve) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("latency", format!("{} for {}", curve.smallest_one_way, curve.smallest_bytes)),
        ("highest", format!("{} at {}", curve.peak, curve.peak_bytes)),
    ];
    if let Some(size) = curve.saturation_bytes {
        facts.push(("saturated", format!("from {size} on: all larger sizes reach 90 % of the highest rate")));
    }
    if let Some(fit) = &curve.fit {
        let text = format!(
            "start-up {}, then {}; half of that rate at {} (Hockney; largest deviation of a size {})",
            fit.startup,
            fit.asymptotic,
            fit.half_performance_bytes,
            percent(fit.largest_error)
        );
        facts.push(("line", text));
    }
    facts
}

/// The ceiling of the link, and the share that the series reached.
fn ceiling_fact(flow: &FlowRecord, curve: &SizeCurve) -> Option<(&'static str, String)> {
    let ceiling = flow.ceiling.as_ref()?;
    let rate = Bitrate::from_bps(ceiling.bitrate_bps)?;
    let share = CeilingShare::of(curve.peak, ceiling).map_or_else(
        || "; the highest rate is above it, so one of the two is wrong".to_owned(),
        |share| format!("; the highest rate is {share} of it"),
    );
    Some(("ceiling", format!("{rate}: {}{share}", ceiling.because)))
}

/// Sizes that were faster than the path, because buffers took them.
fn buffered_fact(flow: &FlowRecord) -> Option<(&'static str, String)> {
    let buffered = || flow.sizes.iter().filter(|point| point.buffered);
    let (first, last) = (buffered().next()?, buffered().next_back()?);
    let sizes = match buffered().count() {
        1 => format!("1 size, {},", first.message_bytes),
        count => format!("{count} sizes from {} to {}", first.message_bytes, last.message_bytes),
    };
    let text = format!(
        "{sizes} exceeded the sustained rate of the path: a buffer or a cache on the path absorbed the \
         messages, so these are not rates of the path"
    );
    Some(("buffered", text))
}

/// One row per size. Columns without any value are left out.
pub(crate) fn table(flow: &FlowRecord) -> Table {
    let points = &flow.sizes;
    let column = |head, cell: &dyn Fn(&SizePoint) -> Option<String>| {
        let cells: Vec<Option<String>> = points.iter().map(cell).collect();
        let known = cells.iter().any(Option::is_some);
        let filled = cells.into_iter().map(|cell| Cell::plain(cell.unwrap_or_else(|| ABSENT.to_owned())));
        known.then(|| Column::numbers(head, filled.collect()))
    };
    let sizes = points.iter().map(|point| Cell::plain(point.message_bytes.get().to_string())).collect();
    let mut columns = vec![Column::numbers("bytes", sizes)];
    columns.extend(column("trials", &|point| Some(format!("{} x {}", point.trials?, point.repeats?))));
    columns.extend(column("best", &|point| Some(point.best.to_string())));
    columns.extend(column("median", &|point| Some(point.median?.to_string())));
    columns.extend(column("95 % interval", &|point| Some(interval(&point.interval?))));
    let rates = points.iter().map(|point| Cell::new(TextRole::Result, or_absent(point.bitrate))).collect();
    columns.push(Column::numbers("bitrate", rates));
    columns.extend(column("rate of", &|point| point.buffered.then(|| "a buffer".to_owned())));
    Table::new(columns)
}

fn interval(interval: &TimeInterval) -> String {
    format!("{} .. {}", interval.low, interval.high)
}
