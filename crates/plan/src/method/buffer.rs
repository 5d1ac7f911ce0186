//! The buffer of a bottleneck: the result of each point, each second of a typical trial, and recommended sizes.

mod seconds;

use linerate_model::{
    Direction, FlowRecord, MethodCell, MethodColumn, MethodRow, MethodTable, PlanPoint, PlanRecord,
    PointSummary, RunRecord, TrialEnd,
};
use linerate_theory::buffer::fits;
use linerate_theory::queueing::udp_wire_rate_bps;

use crate::cross_flow::{BufferResult, QueueObservation};
use crate::plan::{Flow, Plan};
use crate::progress::{is_complete, trial_of};

/// The tables of the method.
pub(super) fn tables(
    plan: &Plan,
    record: &PlanRecord,
    runs: &dyn Fn(&str) -> Option<RunRecord>,
) -> Vec<MethodTable> {
    let mut views = Vec::new();
    let points = record.start.iter().flat_map(|start| &start.points);
    for point in points {
        let trial = typical(plan, record, point);
        let trial: Vec<Option<RunRecord>> = match trial {
            Some(trial) => {
                let of = |flow: &Flow| runs(&trial.runs.iter().find(|run| run.flow == flow.name)?.run);
                plan.flows.iter().map(of).collect()
            }
            None => Vec::new(),
        };
        for (at, flow) in plan.flows.iter().enumerate().filter(|(_, flow)| !flow.cross_traffic) {
            let Some(Some(run)) = trial.get(at) else { continue };
            for measured in &run.flows {
                views.push(BufferFlow::new(plan, record, point, flow, &trial, run, measured));
            }
        }
    }
    let mut tables: Vec<MethodTable> = estimates(record, &views).into_iter().collect();
    tables.extend(sizes(&views));
    tables.extend(views.iter().filter_map(seconds::table));
    tables
}

/// A flow of a point in one direction, with a typical trial of it.
struct BufferFlow<'r> {
    record: &'r PlanRecord,
    point: &'r PlanPoint,
    /// The point for headings, with flow and direction if there are several.
    label: String,
    flow: &'r Flow,
    direction: Direction,
    measured: FlowRecord,
    queue: Option<QueueObservation>,
    known: Option<BufferResult>,
    /// Goodput that other traffic leaves of the line; absent if the rate of the other traffic is not fixed.
    expected_bps: Option<f64>,
    /// Share of the line that other traffic uses.
    others: f64,
}

impl<'r> BufferFlow<'r> {
    fn new(
        plan: &Plan,
        record: &'r PlanRecord,
        point: &'r PlanPoint,
        flow: &'r Flow,
        trial: &[Option<RunRecord>],
        run: &RunRecord,
        measured: &FlowRecord,
    ) -> Self {
        let direction = measured.plan.direction;
        let cross_runs = || {
            let cross_traffic = plan.flows.iter().zip(trial).filter(|(flow, _)| flow.cross_traffic);
            cross_traffic.filter_map(|(_, run)| run.as_ref())
        };
        let of = |run: &RunRecord| {
            let flow = run.flows.iter().find(|flow| flow.plan.direction == direction)?;
            QueueObservation::of(run, flow)
        };
        let others: Vec<QueueObservation> = cross_runs().filter_map(of).collect();
        let queue = QueueObservation::of(run, measured);
        let known = queue.as_ref().and_then(|one| one.known(&others.iter().collect::<Vec<_>>()));
        let taken: Option<f64> = cross_runs().map(|run| wire_rate_bps(run, direction)).sum();
        let expected_bps = queue.as_ref().zip(taken).and_then(|(queue, taken)| {
            let line = queue.line();
            (taken < line.drain_bps).then(|| line.alone_bps * (1.0 - taken / line.drain_bps))
        });
        let mut label = point_label(record, point);
        if run.flows.len() > 1 || plan.flows.iter().filter(|flow| !flow.cross_traffic).count() > 1 {
            label = format!("{label}, {} {}", flow.name, direction.name());
        }
        let others = others.iter().map(QueueObservation::share).sum();
        let measured = measured.clone();
        Self { record, point, label, flow, direction, measured, queue, known, expected_bps, others }
    }

    fn summary(&self, quantity: &str) -> Option<&'r PointSummary> {
        self.record.summaries.iter().find(|one| {
            one.point == self.point.id
                && one.flow == self.flow.name
                && one.direction == self.direction
                && one.quantity == quantity
        })
    }

    /// A figure of all trials, with the interval of its median.
    fn cell(&self, quantity: &str) -> MethodCell {
        let Some(summary) = self.summary(quantity) else { return MethodCell::default() };
        MethodCell {
            value: summary.median,
            low: summary.interval.map(|one| one.low),
            high: summary.interval.map(|one| one.high),
            ..MethodCell::default()
        }
    }
}

/// The line rate that a UDP load uses; `None` for TCP, which backs off, and for a load without a set rate.
fn wire_rate_bps(run: &RunRecord, direction: Direction) -> Option<f64> {
    let traffic = &run.start.as_ref()?.spec.traffic;
    let flow = run.flows.iter().find(|flow| flow.plan.direction == direction);
    let Some(flow) = flow else { return Some(0.0) };
    let (rate, length) = (traffic.offered().filter(|_| traffic.udp)?, traffic.length?);
    udp_wire_rate_bps(rate.bps() * f64::from(flow.plan.streams), length.get() as f64)
}

/// The trial of a point whose goodput is nearest to the median; for a search, one at the value that it found.
fn typical<'r>(plan: &Plan, record: &'r PlanRecord, point: &PlanPoint) -> Option<&'r TrialEnd> {
    let plain = record.trials.iter().filter(|trial| trial.step.is_none() && is_complete(trial));
    let found = record.found.iter().filter_map(|found| trial_of(record, found));
    let trials: Vec<&TrialEnd> = plain.chain(found).filter(|trial| trial.point == point.id).collect();
    let judged = plan.flows.iter().find(|flow| !flow.cross_traffic)?;
    let goodput = record
        .summaries
        .iter()
        .find(|one| one.point == point.id && one.flow == judged.name && one.quantity == "goodput");
    // If a repeat was measured twice, the later trial counts, as in the summary.
    let latest = |repeat: u32| trials.iter().rev().find(|trial| trial.repeat == repeat).copied();
    let mut repeats: Vec<u32> = trials.iter().map(|trial| trial.repeat).collect();
    repeats.sort_unstable();
    repeats.dedup();
    let Some((goodput, median)) = goodput.and_then(|one| Some((one, one.median?))) else {
        return trials.last().copied();
    };
    let repeats = if goodput.repeats.is_empty() { repeats } else { goodput.repeats.clone() };
    if goodput.values.len() != repeats.len() {
        return trials.last().copied();
    }
    let mut ranked: Vec<(f64, u32)> =
        goodput.values.iter().map(|value| (value - median).abs()).zip(repeats).collect();
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
    latest(ranked.first()?.1)
}

/// The values of a point as text.
fn point_label(record: &PlanRecord, point: &PlanPoint) -> String {
    let axes = record.start.as_ref().map(|start| start.axes.as_slice()).unwrap_or_default();
    let value = |(axis, value): (&linerate_model::PlanAxis, &usize)| {
        Some(format!("{}={}", axis.name, axis.values.get(*value)?.label))
    };
    let values: Vec<String> = axes.iter().zip(&point.values).filter_map(value).collect();
    if values.is_empty() { "the only point".to_owned() } else { values.join(" ") }
}

pub(super) fn column(name: &str, unit: Option<&str>) -> MethodColumn {
    MethodColumn { name: name.into(), unit: unit.map(Into::into) }
}

/// The buffer at each point, with rates.
fn estimates(record: &PlanRecord, views: &[BufferFlow<'_>]) -> Option<MethodTable> {
    if views.is_empty() {
        return None;
    }
    let searched = record.start.as_ref().is_some_and(|start| start.search.is_some());
    let row = |view: &BufferFlow<'_>| {
        let buffer = buffer_cell(view, searched);
        let drain = view.queue.as_ref().map(|queue| queue.line().drain_bps);
        let as_time = |bytes: Option<f64>| Some(bytes? * 8.0 / drain? * 1e9);
        let delay = MethodCell {
            value: as_time(buffer.value),
            low: as_time(buffer.low),
            high: as_time(buffer.high),
            ..buffer.clone()
        };
        let rate = view.cell("steady");
        let rate = if rate.value.is_some() { rate } else { view.cell("goodput") };
        let method =
            view.known.as_ref().map_or_else(MethodCell::default, |known| MethodCell::text(known.method));
        let share = rate.value.zip(view.expected_bps).map(|(rate, expected)| rate / expected);
        MethodRow {
            point: Some(view.point.id.clone()),
            cells: vec![
                MethodCell::text(view.label.clone()),
                method,
                buffer,
                delay,
                MethodCell::text(kinds(view, searched)),
                view.cell("buffer_load"),
                MethodCell::number(Some(view.others)),
                rate,
                MethodCell::number(view.expected_bps),
                MethodCell::number(share),
            ],
        }
    };
    Some(MethodTable {
        title: "Buffer size at each point".into(),
        about: "A: RTT increase just before a drop on the full line, times the line rate. B: bytes that the \
                longest burst without loss leaves in the queue, L(1 - out/in). C: delay plateau while the \
                load exceeds the line rate. Bytes are counted on the line. The expected rate is the line \
                rate minus the cross traffic."
            .into(),
        columns: vec![
            column("point", None),
            column("method", None),
            column("buffer", Some("bytes")),
            column("at the line rate", Some("ns")),
            column("kind", None),
            column("load at drop", Some("1")),
            column("other load", Some("1")),
            column("rate", Some("bit/s")),
            column("rate expected", Some("bit/s")),
            column("of expected", Some("1")),
        ],
        rows: views.iter().map(row).collect(),
        notes: notes(views, searched).into_iter().map(Into::into).collect(),
    })
}

/// The buffer over all trials; for a single trial, with the interval over its drops. Empty if less than half of
/// the trials found one.
fn buffer_cell(view: &BufferFlow<'_>, searched: bool) -> MethodCell {
    let mut cell = view.cell("buffer");
    let words = view.summary("buffer_kind").map(|one| one.words.as_slice()).unwrap_or_default();
    let found = view.summary("buffer").map_or(0, |one| one.values.len());
    // A number that most trials do not support is not one of this point.
    if !searched && 2 * found < words.len() {
        return MethodCell::default();
    }
    cell.at_least = cell.value.is_some() && !searched && words.iter().any(|word| word == "lower_bound");
    if found == 1
        && let Some(interval) = view.known.as_ref().and_then(|known| known.interval)
    {
        (cell.low, cell.high) = (Some(interval.low), Some(interval.high));
    }
    cell
}

/// The kind of result for the buffer in words. If trials differ, each kind with its count.
fn kinds(view: &BufferFlow<'_>, searched: bool) -> String {
    let words = view.summary("buffer_kind").map(|one| one.words.as_slice()).unwrap_or_default();
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for word in words {
        let description = match word.as_str() {
            "lower_bound" if searched => "estimate",
            "lower_bound" => "lower bound: no drop at a full queue",
            "out_of_reach" => "out of reach: the probes vary by more than a tenth of the buffer",
            "other_loss" => "loss not caused by a full queue",
            other => other,
        };
        match counted.iter_mut().find(|(known, _)| *known == description) {
            Some((_, count)) => *count += 1,
            None => counted.push((description, 1)),
        }
    }
    match counted.as_slice() {
        [] => "no queue was observed".to_owned(),
        [(only, _)] => (*only).to_owned(),
        several => {
            several.iter().map(|(word, count)| format!("{word} x{count}")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// If the slope of the delay deviates by more than this, the load was not as expected.
const SLOPE_TOLERANCE: f64 = 0.25;

fn notes(views: &[BufferFlow<'_>], searched: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if searched {
        notes
            .push("A buffer size from bursts is a lower bound with the resolution of the search.".to_owned());
    }
    for view in views {
        let slope = view.known.as_ref().and_then(|known| known.slope);
        if let Some(slope) = slope.filter(|slope| (slope - 1.0).abs() > SLOPE_TOLERANCE) {
            notes.push(format!(
                "{}: the delay rose {slope:.2} times as fast as expected from the load; the line drains at \
                 another rate, or the load was not steady.",
                view.label
            ));
        }
    }
    notes
}

/// Recommended sizes for the path.
fn sizes(views: &[BufferFlow<'_>]) -> Option<MethodTable> {
    let path = |view: &BufferFlow<'_>| {
        let path = view.queue.as_ref()?.path()?;
        Some((path.drain_bps, path.base_rtt_s, f64::from(view.measured.plan.streams)))
    };
    // The path is the same for the whole plan: buffers do not change its rate and its smallest RTT.
    let (drain, rtt, streams) = views.iter().find_map(path)?;
    let row = |fit: linerate_theory::buffer::Fit| MethodRow {
        point: None,
        cells: vec![
            MethodCell::text(fit.requirement),
            MethodCell::number(Some(fit.bytes)),
            MethodCell::number(Some(fit.bytes * 8.0 / drain * 1e9)),
        ],
    };
    Some(MethodTable {
        title: "Recommended buffer sizes for this path".into(),
        about: format!(
            "For {:.4} Gb/s, a round trip of {:.3} ms and {streams} streams. Rate times round trip: \
             Villamizar and Song 1994. Divided by the square root of the number of flows: Appenzeller, \
             Keslassy and McKeown 2004, for many flows. The others keep the line full during one back-off.",
            drain / 1e9,
            rtt * 1e3
        )
        .into(),
        columns: vec![column("so that", None), column("buffer", Some("bytes")), column("delay", Some("ns"))],
        rows: fits(drain, rtt, streams).into_iter().map(row).collect(),
        notes: Vec::new(),
    })
}
