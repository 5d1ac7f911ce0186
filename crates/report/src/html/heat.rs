//! Matrices: goodput over two axes of a plan, or from host to host.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::{Direction, PlanRecord, PlanStart};
use maud::{Markup, html};

use super::summaries::{FlowWay, Summaries};
use crate::quantity::{ABSENT, in_unit};

/// Quantity of the matrices.
const QUANTITY: &str = "goodput";

/// Number of matrices that are not folded.
const MAX_OPEN: usize = 2;

/// A matrix of bit rates with heads. Cells that were not measured are absent.
#[derive(Debug)]
pub(crate) struct HeatMap {
    pub(crate) title: String,
    /// Meaning of the rows and the columns.
    pub(crate) corner: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    pub(crate) cells: BTreeMap<(usize, usize), f64>,
}

/// All matrices of a plan: over two axes, for each flow, direction and combination of the other axes; and from
/// sender to receiver, if the plan has flows between several hosts.
pub(super) fn matrices(plan: &Summaries<'_>) -> Vec<HeatMap> {
    over_axes(plan).into_iter().chain(between_hosts(plan)).collect()
}

pub(super) fn markup(plan: &Summaries<'_>) -> Markup {
    let matrices = matrices(plan);
    html! {
        @if !matrices.is_empty() {
            div #matrices {
                @for matrix in matrices.iter().take(MAX_OPEN) { (one(matrix)) }
                @if let Some(more) = matrices.get(MAX_OPEN..).filter(|more| !more.is_empty()) {
                    details {
                        summary { (more.len()) " more" }
                        @for matrix in more { (one(matrix)) }
                    }
                }
            }
        }
    }
}

fn one(matrix: &HeatMap) -> Markup {
    let values = || matrix.cells.values().copied().filter(|value| value.is_finite());
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let share = |value: f64| if high > 0.0 { (value / high * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    html! {
        figure.heat {
            figcaption { (matrix.title) ", from " (in_unit(Some("bit/s"), low)) " to " (in_unit(Some("bit/s"), high))
                "; a stronger colour means a higher value" }
            div.wide {
                table {
                    thead { tr {
                        th scope="col" { (matrix.corner) }
                        @for column in &matrix.columns { th scope="col" { (column) } }
                    } }
                    tbody {
                        @for (number, row) in matrix.rows.iter().enumerate() {
                            tr {
                                th scope="row" { (row) }
                                @for column in 0..matrix.columns.len() {
                                    @match matrix.cells.get(&(number, column)) {
                                        Some(value) => td.number style=(format!("--share:{:.1}%", share(*value))) {
                                            (in_unit(Some("bit/s"), *value))
                                        },
                                        None => td.number { (ABSENT) },
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn median(plan: &Summaries<'_>, point: &str, flow: FlowWay<'_>) -> Option<f64> {
    plan.find(point, flow, QUANTITY)?.median
}

/// The two axes with the most values, in the order of the plan; `None` if fewer than two have several values.
fn two_axes(start: &PlanStart) -> Option<(usize, usize)> {
    let mut several: Vec<(usize, usize)> =
        start.axes.iter().enumerate().map(|(number, axis)| (axis.values.len(), number)).collect();
    several.retain(|(values, _)| *values >= 2);
    several.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    match several.as_slice() {
        [(_, a), (_, b), ..] => Some((*a.min(b), *a.max(b))),
        _ => None,
    }
}

fn over_axes(plan: &Summaries<'_>) -> Vec<HeatMap> {
    let Some(start) = &plan.record.start else { return Vec::new() };
    let Some((rows, columns)) = two_axes(start) else { return Vec::new() };
    let heads = |axis: usize| start.axes[axis].values.iter().map(|value| value.label.to_string()).collect();
    let mut matrices: BTreeMap<(usize, Vec<usize>), HeatMap> = BTreeMap::new();
    for (number, flow) in plan.flows.iter().copied().enumerate() {
        for point in &start.points {
            let Some(median) = median(plan, &point.id, flow) else {
                continue;
            };
            let (Some(row), Some(column)) = (point.values.get(rows), point.values.get(columns)) else {
                continue;
            };
            let others: Vec<usize> = (0..point.values.len())
                .filter(|axis| *axis != rows && *axis != columns)
                .map(|axis| point.values[axis])
                .collect();
            let matrix = matrices.entry((number, others)).or_insert_with(|| HeatMap {
                title: title(plan.record, &point.id, flow, &[rows, columns]),
                corner: format!("{} / {}", start.axes[rows].name, start.axes[columns].name),
                rows: heads(rows),
                columns: heads(columns),
                cells: BTreeMap::new(),
            });
            matrix.cells.insert((*row, *column), median);
        }
    }
    matrices.into_values().collect()
}

/// The flow, and the values of the axes that the matrix does not show.
fn title(record: &PlanRecord, point: &str, flow: FlowWay<'_>, shown: &[usize]) -> String {
    let others = record.labels(point).into_iter().enumerate().filter(|(axis, _)| !shown.contains(axis));
    let others: Vec<String> = others.map(|(_, (axis, value))| format!(", {axis} {value}")).collect();
    format!("{QUANTITY}, {}, {}{}", flow.0, flow.1.name(), others.concat())
}

/// Matrices from sender to receiver, one per point. They have something to show if most pairs were measured: of a
/// few flows, and of flows to one host, the table says the same in less space.
fn between_hosts(plan: &Summaries<'_>) -> Vec<HeatMap> {
    let Some(start) = &plan.record.start else { return Vec::new() };
    let names: Vec<String> = start.hosts.iter().map(|host| host.name.to_string()).collect();
    let place = |name: &str| start.hosts.iter().position(|host| host.name == name);
    let mut matrices = Vec::new();
    for point in &start.points {
        let mut cells = BTreeMap::new();
        for (flow, direction) in plan.flows.iter().copied() {
            let Some(known) = start.flows.iter().find(|known| known.name == flow) else { continue };
            let ends = match direction {
                Direction::Upload => (place(&known.from), place(&known.to)),
                Direction::Download => (place(&known.to), place(&known.from)),
            };
            let median = median(plan, &point.id, (flow, direction));
            if let ((Some(from), Some(to)), Some(median)) = (ends, median) {
                *cells.entry((from, to)).or_insert(0.0) += median;
            }
        }
        let senders: BTreeSet<usize> = cells.keys().map(|(from, _)| *from).collect();
        let receivers: BTreeSet<usize> = cells.keys().map(|(_, to)| *to).collect();
        // A host that sends to itself is no pair.
        let pairs = senders.len() * receivers.len() - senders.intersection(&receivers).count();
        if senders.len() >= 2 && receivers.len() >= 2 && names.len() >= 3 && cells.len() * 2 > pairs {
            let labels: Vec<String> =
                plan.record.labels(&point.id).iter().map(|(a, v)| format!(", {a} {v}")).collect();
            matrices.push(HeatMap {
                title: format!(
                    "{QUANTITY} from host to host, summed over flows between the same two hosts{}",
                    labels.concat()
                ),
                corner: "from / to".to_owned(),
                rows: names.clone(),
                columns: names.clone(),
                cells,
            });
        }
    }
    matrices
}
