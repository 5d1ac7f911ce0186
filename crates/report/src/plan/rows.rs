//! The table of a plan: its columns and cells.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::{Direction, PlanPoint, PlanRecord, PointSummary};

use super::cells::{middle, spread};
use super::missing;
use crate::layout::{TextLayout, TextRole};
use crate::quantity::ABSENT;
use crate::table::{Cell, Column, Table};

/// If there are more flows than this, each has its own row.
const MAX_FLOWS_PER_ROW: usize = 3;

/// Quantities after the rates, with the heads of their columns. Columns without any value are left out.
const EXTRA_QUANTITIES: &[(&str, &str)] = &[
    ("loss", "loss"),
    ("retransmits", "retr"),
    ("rtt", "rtt"),
    ("cpu_sender", "cpu out"),
    ("cpu_receiver", "cpu in"),
    ("fairness", "fairness"),
    ("ceiling", "ceiling"),
    ("share", "of ceiling"),
    ("verdict", "verdict"),
];

/// A flow in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowDirection {
    flow: String,
    direction: Direction,
    name: String,
}

/// One row: a point, and the flows and directions that it shows.
struct PointRow<'r> {
    point: &'r PlanPoint,
    ways: Vec<&'r FlowDirection>,
}

/// Columns that are left out on a narrow page, in this order.
const OPTIONAL_COLUMNS: &[&str] = &["fairness", "cpu in", "cpu out", "rtt"];

/// Columns that are left out next, in this order, if each flow has a row.
const LAST_COLUMNS: &[&str] = &["loss", "ceiling", "of ceiling", "retr", "segment"];

/// Columns that a page folds next, in this order, if it has more than it shows.
const FOLDED_COLUMNS: &[&str] = &["segment", "loss", "retr", "ceiling", "of ceiling"];

/// A row of the table in sight.
pub(crate) struct RowInSight<'r> {
    /// The point.
    pub(crate) point: &'r PlanPoint,
    /// The flows and directions in it.
    pub(crate) flows: Vec<(String, Direction)>,
}

/// The same table with at most `most` columns, and what each row is about; the verdict is always among the columns.
/// `None` without summaries.
pub(crate) fn in_sight(record: &PlanRecord, most: usize) -> Option<(Table, Vec<RowInSight<'_>>)> {
    let ways = flow_directions(record);
    // A few flows share one row, each with its own column. More of them get a row each.
    let side_by_side = ways.len() <= MAX_FLOWS_PER_ROW;
    let mut table = laid_out(record, side_by_side)?;
    for head in OPTIONAL_COLUMNS.iter().chain(FOLDED_COLUMNS) {
        if table.columns() > most {
            table = table.without(head);
        }
    }
    // A telephone has room for the first columns.
    let others: Vec<&str> = EXTRA_QUANTITIES.iter().map(|(_, head)| *head).collect();
    table = table.with_earlier("verdict", &others);
    let points = || record.start.iter().flat_map(|start| &start.points);
    let flows: Vec<(String, Direction)> = ways.iter().map(|way| (way.flow.clone(), way.direction)).collect();
    let rows: Vec<RowInSight<'_>> = if side_by_side {
        points().map(|point| RowInSight { point, flows: flows.clone() }).collect()
    } else {
        let pairs = points().flat_map(|point| flows.iter().map(move |flow| (point, flow)));
        let index = Index::new(record);
        let ran = pairs.filter(|(point, (flow, _))| !index.is_left_out(point, flow));
        ran.map(|(point, flow)| RowInSight { point, flows: vec![flow.clone()] }).collect()
    };
    if table.columns() > most {
        // The name of a point of many axes has all of its values.
        let cells = rows.iter().map(|row| Cell::plain(super::words(record, &row.point.id))).collect();
        let axes = record.start.as_ref().map_or(0, |start| start.axes.len());
        table = table.with_first(axes, Column::words("point", cells));
    }
    Some((table, rows))
}

/// The table of a plan, adapted to the page width, and whether columns were left out; `None` without summaries.
pub(super) fn fitting(record: &PlanRecord, view: &TextLayout) -> Option<(Table, bool)> {
    let side_by_side = flow_directions(record).len() <= MAX_FLOWS_PER_ROW;
    let mut narrowest = None;
    // Tries flows side by side, then one row per flow; each with fewer and fewer columns.
    for side_by_side in [true, false].into_iter().filter(|way| side_by_side || !way) {
        let mut table = laid_out(record, side_by_side)?;
        let mut left_out = false;
        // Flows side by side are worth more than these columns; a row per flow is the last resort.
        let folded = if side_by_side { &[] } else { LAST_COLUMNS };
        for head in std::iter::once("").chain(OPTIONAL_COLUMNS.iter().chain(folded).copied()) {
            let columns = table.columns();
            table = table.without(head);
            left_out |= table.columns() < columns;
            if table.fits(view) {
                return Some((table, left_out));
            }
        }
        narrowest.get_or_insert((table, left_out));
    }
    narrowest
}

/// The table of a plan; `None` without summaries.
pub(super) fn table(record: &PlanRecord) -> Option<Table> {
    laid_out(record, flow_directions(record).len() <= MAX_FLOWS_PER_ROW)
}

/// The table with flows side by side, or with one row per flow.
fn laid_out(record: &PlanRecord, side_by_side: bool) -> Option<Table> {
    let start = record.start.as_ref()?;
    let ways = flow_directions(record);
    if record.summaries.is_empty() {
        return None;
    }
    let index = Index::new(record);
    let rows = rows(record, &index, &ways, side_by_side);
    let mut columns: Vec<Column> =
        (0..start.axes.len()).map(|axis| axis_column(record, &rows, axis)).collect();
    if start.axes.is_empty() {
        let cells = rows.iter().map(|_| Cell::plain("all")).collect();
        columns.push(Column::words("point", cells));
    }
    if !side_by_side {
        let cells = rows.iter().map(|row| Cell::plain(row.ways[0].name.to_string())).collect();
        columns.push(Column::words("flow", cells));
    }
    columns.extend(segment_column(record, &index, &rows));
    columns.extend(found_column(record, &index, &rows));
    if side_by_side {
        columns.extend(ways.iter().map(|way| {
            let head = if ways.len() == 1 { "rate".to_owned() } else { way.name.to_string() };
            let cell = |row: &PointRow<'_>| rate(&index, row.point, way);
            Column::named(head, rows.iter().map(cell).collect(), true)
        }));
    } else {
        let cells = rows.iter().map(|row| rate(&index, row.point, row.ways[0])).collect();
        columns.push(Column::numbers("rate", cells));
    }
    columns
        .extend(EXTRA_QUANTITIES.iter().filter_map(|(quantity, head)| joined(&index, &rows, quantity, head)));
    columns.extend(trials_column(record, &rows));
    Some(Table::new(columns))
}

/// A row for each point, with its flows side by side, or one for each flow.
fn rows<'r>(
    record: &'r PlanRecord,
    index: &Index<'_>,
    ways: &'r [FlowDirection],
    side_by_side: bool,
) -> Vec<PointRow<'r>> {
    let points = record.start.iter().flat_map(|start| &start.points);
    if side_by_side {
        points.map(|point| PointRow { point, ways: ways.iter().collect() }).collect()
    } else {
        let of_point = |point: &'r PlanPoint| {
            let ran = ways.iter().filter(|way| !index.is_left_out(point, &way.flow));
            ran.map(move |way| PointRow { point, ways: vec![way] })
        };
        points.flat_map(of_point).collect()
    }
}

/// Every flow and direction that was measured, in the order of the plan.
fn flow_directions(record: &PlanRecord) -> Vec<FlowDirection> {
    let Some(start) = &record.start else { return Vec::new() };
    let mut ways = Vec::new();
    for flow in &start.flows {
        let measured = |direction| {
            let is = |one: &PointSummary| one.flow == flow.name && one.direction == direction;
            record.summaries.iter().any(is)
        };
        let both = measured(Direction::Upload) && measured(Direction::Download);
        for (direction, short) in [(Direction::Upload, "up"), (Direction::Download, "down")] {
            if measured(direction) {
                let name = if both { format!("{} {short}", flow.name) } else { flow.name.to_string() };
                ways.push(FlowDirection { flow: flow.name.to_string(), direction, name });
            }
        }
    }
    ways
}

/// What a plan has found, by point: there may be tens of thousands of points, and hundreds of thousands of summaries.
struct Index<'r> {
    /// By point, flow, direction and quantity.
    summaries: BTreeMap<(&'r str, &'r str, &'static str, &'r str), &'r PointSummary>,
    /// The flows that ran at a point.
    flows: BTreeMap<&'r str, BTreeSet<&'r str>>,
    /// The different results of the search at a point, in the order of the repeats.
    found: BTreeMap<&'r str, Vec<&'r str>>,
}

impl<'r> Index<'r> {
    fn new(record: &'r PlanRecord) -> Self {
        let row = |one: &'r PointSummary| {
            ((one.point.as_str(), one.flow.as_str(), one.direction.name(), one.quantity.as_str()), one)
        };
        let mut flows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for trial in &record.trials {
            flows.entry(&trial.point).or_default().extend(trial.runs.iter().map(|run| run.flow.as_str()));
        }
        let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for end in &record.found {
            found.entry(&end.point).or_default().push(end.found.as_deref().unwrap_or("none passed"));
        }
        found.values_mut().for_each(Vec::dedup);
        Self { summaries: record.summaries.iter().map(row).collect(), flows, found }
    }

    /// Whether a flow does not run at a point: an axis over flows leaves it out.
    fn is_left_out(&self, point: &PlanPoint, flow: &str) -> bool {
        let ran = self.flows.get(point.id.as_str());
        ran.is_some_and(|ran| !ran.is_empty() && !ran.contains(flow))
    }

    fn find(&self, point: &PlanPoint, way: &FlowDirection, quantity: &str) -> Option<&'r PointSummary> {
        self.summaries.get(&(point.id.as_str(), way.flow.as_str(), way.direction.name(), quantity)).copied()
    }
}

fn axis_column(record: &PlanRecord, rows: &[PointRow<'_>], axis: usize) -> Column {
    let axes = record.start.as_ref().map(|start| start.axes.as_slice()).unwrap_or_default();
    let label = |row: &PointRow<'_>| {
        let value = axes.get(axis)?.values.get(*row.point.values.get(axis)?)?;
        Some(value.label.to_string())
    };
    let cells = rows.iter().map(|row| Cell::plain(label(row).unwrap_or_default())).collect();
    let numbers = axes.get(axis).is_some_and(|axis| axis.unit.is_some());
    Column::named(axes.get(axis).map(|axis| axis.name.to_string()).unwrap_or_default(), cells, numbers)
}

/// The effective segment size, if one was requested or if it differs.
fn segment_column(record: &PlanRecord, index: &Index<'_>, rows: &[PointRow<'_>]) -> Option<Column> {
    let of = |quantity| record.summaries.iter().filter(move |one| one.quantity == quantity);
    let mut all = of("segment").flat_map(|one| &one.values);
    let first = all.next()?;
    let asked = of("segment_asked").next().is_some();
    (asked || all.any(|other| other != first)).then(|| joined(index, rows, "segment", "segment"))?
}

fn rate(index: &Index<'_>, point: &PlanPoint, way: &FlowDirection) -> Cell {
    if index.is_left_out(point, &way.flow) {
        return Cell::plain(ABSENT);
    }
    let found = index.find(point, way, "goodput").map(spread);
    found.map_or_else(|| Cell::new(TextRole::Warning, "missing"), |text| Cell::new(TextRole::Result, text))
}

/// A column with the values of all flows in one cell; equal values appear once.
fn joined(index: &Index<'_>, rows: &[PointRow<'_>], quantity: &str, head: &'static str) -> Option<Column> {
    let cell = |row: &PointRow<'_>| {
        let shown: Vec<Option<String>> =
            row.ways.iter().map(|way| index.find(row.point, way, quantity).map(middle)).collect();
        if shown.iter().all(Option::is_none) {
            return None;
        }
        if shown.windows(2).all(|pair| pair[0] == pair[1]) {
            return shown.into_iter().next().flatten();
        }
        let shown: Vec<String> =
            shown.into_iter().map(|one| one.unwrap_or_else(|| ABSENT.to_owned())).collect();
        Some(shown.join(" / "))
    };
    let cells: Vec<Option<String>> = rows.iter().map(cell).collect();
    if cells.iter().all(Option::is_none) {
        return None;
    }
    let cells =
        cells.into_iter().map(|text| Cell::plain(text.unwrap_or_else(|| ABSENT.to_owned()))).collect();
    Some(if quantity == "verdict" { Column::words(head, cells) } else { Column::numbers(head, cells) })
}

/// The result of a search at each point.
fn found_column(record: &PlanRecord, index: &Index<'_>, rows: &[PointRow<'_>]) -> Option<Column> {
    record.start.as_ref()?.search.as_ref()?;
    let cell = |row: &PointRow<'_>| match index.found.get(row.point.id.as_str()) {
        None => Cell::new(TextRole::Warning, "missing"),
        Some(found) => Cell::new(TextRole::Result, found.join(", ")),
    };
    Some(Column::numbers("found", rows.iter().map(cell).collect()))
}

/// Number of failed trials per point, if there are any.
fn trials_column(record: &PlanRecord, rows: &[PointRow<'_>]) -> Option<Column> {
    let missing = missing(record);
    if missing.is_empty() {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (point, ..) in &missing {
        *counts.entry(point).or_default() += 1;
    }
    let cell = |row: &PointRow<'_>| match counts.get(row.point.id.as_str()) {
        None => Cell::plain(""),
        Some(count) => Cell::new(TextRole::Warning, format!("{count} failed")),
    };
    Some(Column::words("trials", rows.iter().map(cell).collect()))
}
