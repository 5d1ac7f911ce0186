//! Rows for queries, derived from a folded run. Generic in metrics: the catalogue says how they add up.

use std::collections::BTreeMap;

use linerate_model::metrics::{self, Kind};
use linerate_model::{FlowRecord, RunRecord, Side};

use crate::FlowHead;

/// One number about one flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SummaryRow {
    pub(crate) flow: u16,
    pub(crate) side: &'static str,
    pub(crate) metric: String,
    pub(crate) statistic: &'static str,
    pub(crate) value: f64,
}

/// The flows as a list shows them.
pub(crate) fn flow_heads(record: &RunRecord) -> Vec<FlowHead> {
    let heads = record.flows.iter().map(|flow| FlowHead {
        flow: flow.plan.flow,
        name: flow.plan.name.clone(),
        direction: flow.plan.direction.name().to_owned(),
        transport: serialised_name(&flow.plan.transport),
        bitrate: flow.bitrate(),
        cause: flow.verdict.as_ref().map(|verdict| verdict.cause.name().to_owned()),
    });
    heads.collect()
}

/// The name that a unit variant has in results.
pub(crate) fn serialised_name<T: serde::Serialize>(value: &T) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// Statistics of every metric over the samples inside the window, and the readings of the whole window.
///
/// Counters: `sum`, `min` and `max` per interval. Gauges: `min`, `max`, `last` and `mean` over time. Both: `window`, the
/// tally's own reading, where there is one.
pub(crate) fn summary(record: &RunRecord) -> Vec<SummaryRow> {
    let mut rows = Vec::new();
    for flow in &record.flows {
        for (side, name) in [(Side::Sender, "sender"), (Side::Receiver, "receiver")] {
            let mut put = |metric: &str, statistic, value: f64| {
                if value.is_finite() {
                    let (flow, metric) = (flow.plan.flow, metric.to_owned());
                    rows.push(SummaryRow { flow, side: name, metric, statistic, value });
                }
            };
            for (metric, series) in series(flow, side) {
                for (statistic, value) in statistics(metric, &series) {
                    put(metric, statistic, value);
                }
            }
            for (metric, value) in flow.tally(side).iter().flat_map(|tally| tally.readings.iter()) {
                put(metric, "window", value.real());
            }
        }
    }
    rows
}

/// Seconds and value of each interval, by metric.
fn series(flow: &FlowRecord, side: Side) -> BTreeMap<&str, Vec<(f64, f64)>> {
    let mut series: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for sample in flow.samples_of(side).filter(|sample| !sample.outside) {
        for (metric, value) in sample.readings.iter() {
            series.entry(metric).or_default().push((sample.span().as_secs_f64(), value.real()));
        }
    }
    series
}

fn statistics(metric: &str, series: &[(f64, f64)]) -> Vec<(&'static str, f64)> {
    let values = || series.iter().map(|(_, value)| *value);
    let mut statistics =
        vec![("min", values().fold(f64::MAX, f64::min)), ("max", values().fold(f64::MIN, f64::max))];
    if metrics::find(metric).is_some_and(|entry| entry.kind == Kind::Counter) {
        statistics.push(("sum", values().sum()));
    } else {
        let time: f64 = series.iter().map(|(seconds, _)| seconds).sum();
        let weighted: f64 = series.iter().map(|(seconds, value)| seconds * value).sum();
        // Not finite, and so left out, when no time passed.
        statistics.push(("mean", weighted / time));
        statistics.extend(values().next_back().map(|last| ("last", last)));
    }
    statistics
}
