//! Latency as a distribution: shares of probes over their RTT, without load and under load.

use linerate_model::{Digest, LatencyReport, RunRecord};
use linerate_units::Span;

use super::chart::{Chart, ChartAxis, ChartKind, ChartLine, LineStyle, Panel, Rounded};

/// Every latency report of a run with replies: first without load, then under the load of each flow.
pub(super) fn reports(record: &RunRecord) -> Vec<(String, &LatencyReport)> {
    let idle = record.idle.iter().map(|report| ("idle".to_owned(), report));
    let loaded = record
        .flows
        .iter()
        .filter_map(|flow| Some((format!("beside {}", flow.plan.name), flow.loaded.as_ref()?)));
    idle.chain(loaded).filter(|(_, report)| report.rtt.count > 0).collect()
}

/// The quantiles of a digest, as share and nanoseconds.
pub(super) fn kept(digest: &Digest) -> [(f64, u64); 5] {
    [
        (0.0, digest.min_ns),
        (0.5, digest.p50_ns),
        (0.95, digest.p95_ns),
        (0.99, digest.p99_ns),
        (1.0, digest.max_ns),
    ]
}

/// The distributions of a run in one diagram; `None` if there are none.
pub(super) fn chart(record: &RunRecord) -> Option<Chart> {
    let lines: Vec<ChartLine> =
        reports(record).into_iter().map(|(label, report)| line(label, report)).collect();
    let x = ChartAxis { label: "round-trip time of probes".to_owned(), unit: "ns".to_owned(), log: true };
    let y = ChartAxis {
        label: "share of probes that took at most this time".to_owned(),
        unit: "ratio".to_owned(),
        log: false,
    };
    let panel = Panel { y, lines, levels: Vec::new() };
    (!panel.lines.is_empty()).then(|| Chart {
        kind: ChartKind::Cdf,
        title: "latency: smallest, median, 95th and 99th percentile, largest".to_owned(),
        x,
        panels: vec![panel],
        bands: Vec::new(),
    })
}

fn line(label: String, report: &LatencyReport) -> ChartLine {
    // The axis is logarithmic: values below a nanosecond are drawn at one.
    let points = kept(&report.rtt).map(|(share, ns)| (ns.max(1) as f64, Some(share)));
    let mut line = ChartLine::of(label, LineStyle::Points, []);
    line.x = points.iter().map(|(x, _)| Rounded(*x)).collect();
    line.y = points.iter().map(|(_, y)| y.map(Rounded)).collect();
    line
}

/// The distributions as heads and rows of a table.
pub(super) fn table(record: &RunRecord) -> Option<Vec<Vec<String>>> {
    let rows = reports(record);
    let heads = ["round-trip time", "smallest", "p50", "p95", "p99", "largest", "probes", "lost"];
    let body = rows.iter().map(|(label, report)| {
        let times = kept(&report.rtt).map(|(_, ns)| Span::from_ns(ns).to_string());
        let counts = [report.sent.to_string(), report.lost.to_string()];
        std::iter::once(label.clone()).chain(times).chain(counts).collect()
    });
    (!rows.is_empty()).then(|| std::iter::once(heads.map(str::to_owned).to_vec()).chain(body).collect())
}
