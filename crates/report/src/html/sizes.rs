//! A series over message sizes as two diagrams: rate and time over size, with the fitted line.

use linerate_model::{FlowRecord, RunRecord, SizeFit, SizePoint};

use super::chart::{Chart, ChartAxis, ChartKind, ChartLine, LineStyle, Panel, Rounded};
use crate::sizes::time_words;

/// The curves of a series; `None` with fewer than two sizes.
pub(super) fn chart(record: &RunRecord, flow: &FlowRecord) -> Option<Chart> {
    // Both axes are logarithmic and cannot show 0.
    let points: Vec<&SizePoint> = flow
        .sizes
        .iter()
        .filter(|point| point.message_bytes.get() > 0 && point.one_way().as_ns() > 0)
        .collect();
    if points.len() < 2 {
        return None;
    }
    let fit = flow.curve.as_ref().and_then(|curve| curve.fit).filter(|fit| fit.asymptotic.bps() > 0.0);
    let size = |point: &SizePoint| point.message_bytes.get() as f64;
    let rates = points
        .iter()
        .map(|point| (size(point), point.bitrate.map(linerate_units::Bitrate::bps).filter(|bps| *bps > 0.0)));
    let mut rates = vec![ChartLine::of("measured", LineStyle::Points, rates)];
    let mut times = vec![timed(&points)];
    if let Some(fit) = fit {
        let computed = |value: &dyn Fn(f64) -> f64| {
            ChartLine::of(
                "computed",
                LineStyle::Computed,
                points.iter().map(|p| (size(p), Some(value(size(p))))),
            )
        };
        rates.push(computed(&|bytes| bytes * 8e9 / one_way_ns(&fit, bytes)));
        times.push(computed(&|bytes| one_way_ns(&fit, bytes)));
    }
    let x = ChartAxis::logarithmic("message size", "bytes");
    let panel = |label: &str, unit: &str, lines| Panel::of_lines(ChartAxis::logarithmic(label, unit), lines);
    let panels = vec![panel("bit rate of payload", "bit/s", rates), panel(time_words(record), "ns", times)];
    let title = format!("{} over message size", flow.plan.name);
    Some(Chart { kind: ChartKind::Sweep, title, x, panels, bands: Vec::new(), notes: Vec::new() })
}

fn timed(points: &[&SizePoint]) -> ChartLine {
    let times = points.iter().map(|p| (p.message_bytes.get() as f64, Some(p.one_way().as_ns() as f64)));
    let mut line = ChartLine::of("measured", LineStyle::Points, times);
    if points.iter().any(|point| point.interval.is_some()) {
        let end = |end: fn(&linerate_model::TimeInterval) -> u64| {
            let ends =
                points.iter().map(|point| point.interval.as_ref().map(|i| Rounded(end(i).max(1) as f64)));
            ends.collect()
        };
        line.low = end(|interval| interval.low.as_ns());
        line.high = end(|interval| interval.high.as_ns());
    }
    line
}

/// The fitted line from the run's log: start-up time, and size over the asymptotic rate (Hockney).
fn one_way_ns(fit: &SizeFit, bytes: f64) -> f64 {
    fit.startup.as_ns() as f64 + bytes * 8e9 / fit.asymptotic.bps()
}
