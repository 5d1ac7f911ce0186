//! Derives rows for queries from a folded run. It is generic in metrics: the catalogue defines how each is
//! aggregated.

use std::collections::BTreeMap;

use linerate_model::flow::FlowId;
use linerate_model::metrics::{self, MetricKind};
use linerate_model::{FlowHead, Readings, RunRecord, Side};
use linerate_units::Span;

/// One number about one flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SummaryRow {
    pub(crate) flow: FlowId,
    /// `sender` or `receiver`, or the port of an emulated network that saw the flow.
    pub(crate) side: String,
    pub(crate) metric: String,
    pub(crate) statistic: &'static str,
    pub(crate) value: f64,
}

/// The flows for lists of runs.
pub(crate) fn flow_heads(record: &RunRecord) -> Vec<FlowHead> {
    let heads = record.flows.iter().map(|flow| FlowHead {
        flow: flow.plan.flow,
        name: flow.plan.name.to_string().into(),
        direction: flow.plan.direction.name().into(),
        transport: serialised_name(&flow.plan.transport).into(),
        bitrate: flow.bitrate(),
        cause: flow.verdict.as_ref().map(|verdict| verdict.cause.name().into()),
    });
    heads.collect()
}

/// The name of a unit variant in results.
pub(crate) fn serialised_name<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// Statistics of every metric over the samples in the measured window, and the readings of the whole window.
///
/// Counters: `sum`, `min` and `max` per interval. Gauges and means: `min`, `max`, `last` and `mean` over time.
/// Largest values: `min` and `max`. All: `window`, the tally's own reading, if there is one. The counts of a
/// port are stored with the first of the flows that ran at that time.
pub(crate) fn summary(record: &RunRecord) -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    for flow in &record.flows {
        for (side, name) in [(Side::Sender, "sender"), (Side::Receiver, "receiver")] {
            let inside = flow.measured_samples_of(side);
            let series = series(inside.map(|sample| (sample.span(), &sample.readings)));
            let window = flow.tally(side).into_iter().flat_map(|tally| tally.readings.iter());
            let window = window.map(|(metric, value)| (metric, "window", value.real()));
            rows.extend(of_side(flow.plan.flow, name, series.chain(window)));
        }
    }
    for port in &record.ports {
        let Some(flow) = port.flows.first() else { continue };
        let inside = port.samples.iter().filter(|sample| !sample.outside);
        rows.extend(of_side(
            *flow,
            &port.port,
            series(inside.map(|sample| (sample.span(), &sample.readings))),
        ));
    }
    rows
}

/// Rows of metric, statistic and value; values that are not finite are left out.
fn of_side<'a>(
    flow: FlowId,
    side: &str,
    numbers: impl Iterator<Item = (&'a str, &'static str, f64)>,
) -> impl Iterator<Item = SummaryRow> {
    numbers.filter(|(_, _, value)| value.is_finite()).map(move |(metric, statistic, value)| SummaryRow {
        flow,
        side: side.to_owned(),
        metric: metric.to_owned(),
        statistic,
        value,
    })
}

/// Every statistic of every metric over intervals.
fn series<'a>(
    intervals: impl Iterator<Item = (Span, &'a Readings)>,
) -> impl Iterator<Item = (&'a str, &'static str, f64)> {
    let mut series: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for (span, readings) in intervals {
        for (metric, value) in readings.iter() {
            series.entry(metric).or_default().push((span.as_secs_f64(), value.real()));
        }
    }
    series.into_iter().flat_map(|(metric, values)| {
        statistics(metric, &values).into_iter().map(move |(statistic, value)| (metric, statistic, value))
    })
}

fn statistics(metric: &str, series: &[(f64, f64)]) -> Vec<(&'static str, f64)> {
    let values = || series.iter().map(|(_, value)| *value);
    let mut statistics =
        vec![("min", values().fold(f64::MAX, f64::min)), ("max", values().fold(f64::MIN, f64::max))];
    match metrics::find(metric).map(|entry| entry.kind) {
        Some(MetricKind::Counter) => statistics.push(("sum", values().sum())),
        Some(MetricKind::Peak) => {}
        Some(MetricKind::Gauge | MetricKind::Mean) | None => {
            let time: f64 = series.iter().map(|(seconds, _)| seconds).sum();
            let weighted: f64 = series.iter().map(|(seconds, value)| seconds * value).sum();
            // Not finite, and therefore left out, if no time passed.
            statistics.push(("mean", weighted / time));
            statistics.extend(values().next_back().map(|last| ("last", last)));
        }
    }
    statistics
}
