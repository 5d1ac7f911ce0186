//! Throughput and latency against the size of a message.

use std::collections::BTreeMap;

use linerate_model::{
    MethodCell, MethodRow, MethodTable, Outcome, PlanPoint, PlanRecord, RunRecord, TrialEnd,
};
use linerate_theory::stats::order::{median, median_interval};

use super::points::{FlowAtPoint, Points, numbers, text_column};

/// Smallest coverage of a median's interval.
const CONFIDENCE: f64 = 0.95;

/// Rates of a size in every trial, and its one-way times in ns.
type BlockSizeTrials = (Vec<f64>, Vec<f64>);

/// The results of each series, then its curve.
pub(super) fn tables(record: &PlanRecord, runs: &dyn Fn(&str) -> Option<RunRecord>) -> Vec<MethodTable> {
    let Some(points) = Points::of(record) else { return Vec::new() };
    let ways = points.flows_with("message_rate");
    let curves = ways.iter().map(|way| curve(record, &points, way, runs));
    figures(&points, &ways).into_iter().chain(curves.flatten().collect::<Vec<_>>()).collect()
}

fn figures(points: &Points<'_>, ways: &[FlowAtPoint<'_>]) -> Option<MethodTable> {
    if ways.is_empty() {
        return None;
    }
    let mut columns = vec![text_column("series")];
    columns.extend(points.start.axes.iter().map(|axis| text_column(&axis.name)));
    columns.extend([
        numbers("latency", "ns"),
        numbers("highest rate", "bit/s"),
        numbers("saturation size", "bytes"),
        numbers("half-performance size", "bytes"),
    ]);
    let rows = ways.iter().map(|way| {
        let mut cells = vec![MethodCell::text(path_of(points, way))];
        let labels = (0..points.start.axes.len()).map(|axis| points.label(way.point, axis));
        cells.extend(labels.map(|label| label.map_or_else(MethodCell::default, MethodCell::text)));
        let quantities = ["message_latency", "message_rate", "saturation_size", "half_size"];
        cells.extend(quantities.map(|quantity| points.cell(way, quantity)));
        MethodRow { point: Some(way.point.id.clone()), cells }
    });
    Some(MethodTable {
        title: "Series over message sizes".into(),
        about: "Latency is the one-way time of the smallest message. From the saturation size on, all sizes \
                reach 90 % of the highest rate. The half-performance size (n½) is the start-up time times \
                the asymptotic rate (Hockney, NetPIPE)."
            .into(),
        columns,
        rows: rows.collect(),
        notes: Vec::new(),
    })
}

/// The name of the flow and its hosts.
fn path_of(points: &Points<'_>, way: &FlowAtPoint<'_>) -> String {
    let flow = points.start.flows.iter().find(|flow| flow.name == way.flow);
    flow.map_or_else(
        || way.flow.to_owned(),
        |flow| match flow.from == flow.to {
            true => format!("{} (loopback of {})", flow.name, flow.from),
            false => format!("{} ({} to {})", flow.name, flow.from, flow.to),
        },
    )
}

/// The sizes of a series with their medians over the trials.
fn curve(
    record: &PlanRecord,
    points: &Points<'_>,
    way: &FlowAtPoint<'_>,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Option<MethodTable> {
    let mut sizes: BTreeMap<u64, BlockSizeTrials> = BTreeMap::new();
    for run in runs_of(record, way.point, way.flow).into_iter().filter_map(runs) {
        for point in run.flows.iter().flat_map(|flow| &flow.sizes) {
            let (rates, times) = sizes.entry(point.message_bytes.get()).or_default();
            rates.extend(point.bitrate.map(linerate_units::Bitrate::bps));
            times.push(point.one_way().as_ns() as f64);
        }
    }
    if sizes.is_empty() {
        return None;
    }
    let rows = sizes.into_iter().map(|(size, (rates, times))| MethodRow {
        point: Some(way.point.id.clone()),
        cells: vec![MethodCell::number(size as f64), middle(&rates), middle(&times)],
    });
    let labels = points.start.axes.iter().enumerate();
    let labels =
        labels.filter_map(|(axis, known)| Some(format!("{} {}", known.name, points.label(way.point, axis)?)));
    let place: Vec<String> = std::iter::once(path_of(points, way)).chain(labels).collect();
    Some(MethodTable {
        title: format!("Curve of {}", place.join(", ")).into(),
        about:
            "Payload rate and one-way time of a message, for each size: medians over the trials of the plan."
                .into(),
        columns: vec![numbers("message", "bytes"), numbers("rate", "bit/s"), numbers("one-way time", "ns")],
        rows: rows.collect(),
        notes: Vec::new(),
    })
}

/// Completed runs of a flow at a point. If a repeat was measured again, the last run counts.
fn runs_of<'r>(record: &'r PlanRecord, point: &PlanPoint, flow: &str) -> Vec<&'r str> {
    let of_point = record.trials.iter().filter(|trial| trial.point == point.id);
    let mut last: BTreeMap<u32, &'r str> = BTreeMap::new();
    for trial in of_point {
        let run = |trial: &'r TrialEnd| {
            trial.runs.iter().find(|run| run.flow == flow && run.outcome == Outcome::Completed)
        };
        if let Some(run) = run(trial) {
            last.insert(trial.repeat, &run.run);
        }
    }
    last.into_values().collect()
}

fn middle(values: &[f64]) -> MethodCell {
    let ends = median_interval(values, CONFIDENCE);
    MethodCell {
        low: ends.as_ref().map(|ends| ends.low),
        high: ends.as_ref().map(|ends| ends.high),
        ..MethodCell::number(median(values))
    }
}
