//! Latency as a distribution: cumulative shares of probes over their RTT, idle and under load.

use linerate_model::{DelayBucket, Digest, FlowRecord, LatencyReport, RunRecord};
use linerate_units::Span;

use crate::transactions;

use super::chart::{Chart, ChartAxis, ChartKind, ChartLine, Hue, LineStyle, Panel};

/// Latency reports with replies: their names, and the flow that was the load.
type NamedReports<'r> = Vec<(String, &'r LatencyReport, Option<&'r FlowRecord>)>;

/// Every latency report of a run with replies: first before the load, then under the load of each flow.
fn reports(record: &RunRecord) -> NamedReports<'_> {
    let idle = record.idle.iter().map(|report| ("before the load".to_owned(), report, None));
    let loaded = record
        .flows
        .iter()
        .filter_map(|flow| Some((format!("during {}", flow.plan.name), flow.loaded.as_ref()?, Some(flow))));
    idle.chain(loaded).filter(|(_, report, _)| report.rtt.count > 0).collect()
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

/// The distributions of a run in one diagram; `None` if the log has none. Five quantiles, as in logs of earlier
/// versions, are not a distribution: the table shows them.
pub(super) fn chart(record: &RunRecord) -> Option<Chart> {
    let reports = reports(record).into_iter().filter(|(_, report, _)| !report.histogram.is_empty());
    let lines: Vec<ChartLine> = reports
        .map(|(label, report, flow)| {
            line(label, &report.histogram, (report.rtt.min_ns, report.rtt.max_ns), flow)
        })
        .collect();
    distributions(
        "latency as a distribution, idle and under load",
        "round-trip time of probes",
        "probes",
        lines,
    )
}

/// The distributions of the times of transactions; `None` without any.
pub(super) fn of_transactions(record: &RunRecord) -> Option<Chart> {
    let lines = record.flows.iter().filter_map(|flow| {
        let made = transactions::of(flow)?;
        let times = made.times?;
        Some(line(flow.plan.name.to_string(), &made.histogram, (times.min_ns, times.max_ns), Some(flow)))
    });
    let title = "the times of transactions as a distribution";
    distributions(title, "time of a transaction", "transactions", lines.collect())
}

/// Cumulative shares of `what`; `None` without lines.
fn distributions(title: &str, x: &str, what: &str, lines: Vec<ChartLine>) -> Option<Chart> {
    let y = ChartAxis::linear(format!("share of {what} that took at most this time"), "ratio");
    let panel = Panel::of_lines(y, lines);
    (!panel.lines.is_empty()).then(|| Chart {
        kind: ChartKind::Cdf,
        title: title.to_owned(),
        x: ChartAxis::logarithmic(x, "ns"),
        panels: vec![panel],
        bands: Vec::new(),
        notes: Vec::new(),
    })
}

/// The cumulative share at the end of each bucket, from nothing at the smallest time to all at the largest.
fn line(
    label: String,
    histogram: &[DelayBucket],
    (smallest, largest): (u64, u64),
    flow: Option<&FlowRecord>,
) -> ChartLine {
    let all = histogram.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.count));
    let mut sum = 0_u64;
    let shares = histogram.iter().map(|bucket| {
        sum = sum.saturating_add(bucket.count);
        (bucket.up_to_ns.min(largest), sum as f64 / all.max(1) as f64)
    });
    let start = std::iter::once((smallest, 0.0));
    // The axis is logarithmic: values below a nanosecond are drawn at one.
    let points = start.chain(shares).map(|(ns, share)| (ns.max(1) as f64, Some(share)));
    let mut points: Vec<(f64, Option<f64>)> = points.collect();
    // At one time there is one share, the later one.
    points.reverse();
    points.dedup_by_key(|(ns, _)| *ns);
    let hue = flow.map(|flow| Hue::from(flow.plan.direction));
    ChartLine { hue, ..ChartLine::of(label, LineStyle::StepsAfter, points) }
}

/// The distributions as heads and rows of a table.
pub(super) fn table(record: &RunRecord) -> Option<Vec<Vec<String>>> {
    let rows = reports(record);
    let heads = ["round-trip time", "smallest", "p50", "p95", "p99", "largest", "probes", "lost"];
    let body = rows.iter().map(|(label, report, _)| {
        let times = kept(&report.rtt).map(|(_, ns)| Span::from_ns(ns).to_string());
        let counts = [report.sent.to_string(), report.lost.to_string()];
        std::iter::once(label.clone()).chain(times).chain(counts).collect()
    });
    (!rows.is_empty()).then(|| std::iter::once(heads.map(str::to_owned).to_vec()).chain(body).collect())
}
