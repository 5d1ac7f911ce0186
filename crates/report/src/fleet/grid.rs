//! A mesh as a grid: who sees whom how well.

use linerate_model::Cause;
use linerate_model::calendar::{CalendarRunState, CellResult, MeshCell, MeshGrid};
use linerate_units::Bitrate;

use super::{LocalTimes, marked_lines};
use crate::layout::{TextLayout, TextRole};
use crate::table::{Cell, Column, Table};

/// Cells that are explained in words at most.
const MAX_EXPLAINED: usize = 20;

/// The lines of a grid: goodputs from the host of the row to that of the column, then what needs attention.
pub(super) fn lines(grid: &MeshGrid, times: LocalTimes<'_>, view: &TextLayout) -> Vec<String> {
    let mut lines = vec![format!("{}: goodput from the row's host to the column's", grid.name)];
    let matrix = matrix(grid);
    if matrix.fits(view) {
        lines.extend(matrix.lines(view));
    } else {
        lines.extend(list(grid, times).lines(view));
    }
    let attention: Vec<&MeshCell> = grid.cells.iter().filter(|cell| needs_attention(cell)).collect();
    if !attention.is_empty() {
        lines.extend([String::new(), "needs attention:".to_owned()]);
        let shown = attention.iter().take(MAX_EXPLAINED);
        lines.extend(marked_lines(shown.map(|cell| (TextRole::Warning, explained(cell, times))), view));
        if attention.len() > MAX_EXPLAINED {
            lines.push(format!("and {} more", attention.len() - MAX_EXPLAINED));
        }
    }
    lines
}

fn needs_attention(cell: &MeshCell) -> bool {
    !cell.alarms.is_empty() || cell.last.is_some_and(|(state, _)| state != CalendarRunState::Finished)
}

fn matrix(grid: &MeshGrid) -> Table {
    let names = grid.hosts.iter().map(|host| Cell::new(TextRole::Faint, host.clone()));
    let mut columns = vec![Column::words("", names.collect())];
    for to in &grid.hosts {
        let cells = grid.hosts.iter().map(|from| {
            let found = grid.cells.iter().find(|cell| cell.from == *from && cell.to == *to);
            found.map_or_else(|| Cell::new(TextRole::Faint, "."), shown)
        });
        columns.push(Column::named(to.clone(), cells.collect(), true));
    }
    Table::new(columns)
}

/// The goodput of a cell. `!` marks an alarm and `?` a result that is older than the newest run, which has none.
fn shown(cell: &MeshCell) -> Cell {
    let result = cell.result.as_ref().map(|(result, _)| result);
    let failed = cell.last.is_some_and(|(state, _)| state != CalendarRunState::Finished);
    let mark = match (cell.alarms.is_empty(), failed) {
        (false, _) => "!",
        (true, true) => "?",
        (true, false) => "",
    };
    if result.is_some_and(CellResult::is_impossible) {
        return Cell::new(TextRole::Struck, format!("{}{mark}", Cause::Impossible.name()));
    }
    let rate = result.and_then(|result| result.goodput);
    let ink = if mark.is_empty() { TextRole::Result } else { TextRole::Warning };
    Cell::new(ink, format!("{}{mark}", rate.map_or_else(|| "-".to_owned(), compact_rate)))
}

/// A rate in few letters: `941M`, `9.41G`.
#[must_use]
pub fn compact_rate(rate: Bitrate) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (size, unit) = units.into_iter().find(|(size, _)| rate.bps() >= *size).unwrap_or((1.0, ""));
    let number = rate.bps() / size;
    let decimals = match number {
        _ if unit.is_empty() || number >= 99.95 => 0,
        _ if number >= 9.995 => 1,
        _ => 2,
    };
    format!("{number:.decimals$}{unit}")
}

/// The cells one below the other, for meshes that are wider than the page.
fn list(grid: &MeshGrid, times: LocalTimes<'_>) -> Table {
    let words = |head, text: &dyn Fn(&MeshCell) -> String| {
        Column::words(head, grid.cells.iter().map(|cell| Cell::plain(text(cell))).collect())
    };
    Table::new(vec![
        words("from", &|cell| cell.from.clone()),
        words("to", &|cell| cell.to.clone()),
        Column::numbers("goodput", grid.cells.iter().map(shown).collect()),
        words("measured", &|cell| times.or_dash(cell.result.as_ref().map(|(_, at)| *at))).of_importance(1),
        words("verdict", &verdict).at_least(12).of_importance(2),
    ])
}

fn verdict(cell: &MeshCell) -> String {
    let cause = cell.result.as_ref().and_then(|(result, _)| result.cause);
    cause.map(|cause| cause.name().to_owned()).unwrap_or_default()
}

fn explained(cell: &MeshCell, times: LocalTimes<'_>) -> String {
    let why = match cell.alarms.first() {
        Some(alarm) => format!("alarm since {}: {}", times.minute(alarm.since), alarm.text),
        None => {
            let state = cell
                .last
                .map(|(state, at)| format!("{} at {}", state.name().replace('_', " "), times.minute(at)));
            format!("{}: {}", state.unwrap_or_default(), cell.reason)
        }
    };
    format!("{} to {}: {why}", cell.from, cell.to)
}
