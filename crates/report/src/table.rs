//! A table that lines up, whatever the colours in it.

use crate::layout::{Ink, View, width};

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    ink: Ink,
}

impl Cell {
    pub(crate) fn new(ink: Ink, text: impl Into<String>) -> Self {
        Self { text: text.into(), ink }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(Ink::Plain, text)
    }
}

/// A table: the first column is a name and stands left, all others stand right.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// Spaces between columns.
const GAP: usize = 3;

impl Table {
    /// A table of columns that each have a head and one cell for every row.
    pub(crate) fn of_columns(columns: Vec<(&'static str, Vec<Cell>)>) -> Self {
        let mut table = Self::default();
        let rows = columns.iter().map(|(_, cells)| cells.len()).max().unwrap_or_default();
        table.rows.resize_with(rows, Vec::new);
        for (head, cells) in columns {
            table.heads.push(head);
            let padded = cells.into_iter().chain(std::iter::repeat_with(Cell::default));
            for (row, cell) in table.rows.iter_mut().zip(padded) {
                row.push(cell);
            }
        }
        table
    }

    /// The lines of the table; one column below the other where they do not fit side by side.
    pub(crate) fn lines(&self, view: &View) -> Vec<String> {
        let widths: Vec<usize> = (0..self.heads.len()).map(|column| self.width_of(column)).collect();
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if total > view.columns() {
            return self.stacked(view);
        }
        let heads = self.heads.iter().map(|head| Cell::new(Ink::Faint, *head)).collect();
        std::iter::once(&heads).chain(&self.rows).map(|row| line(row, &widths, view)).collect()
    }

    /// Heads and cells as bare texts, for another form of table.
    pub(crate) fn texts(&self) -> Vec<Vec<String>> {
        let heads = self.heads.iter().map(|head| (*head).to_owned()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| cell.text.clone()).collect());
        std::iter::once(heads).chain(rows).collect()
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(&cell.text));
        cells.chain(self.heads.get(column).map(|head| width(head))).max().unwrap_or_default()
    }

    fn stacked(&self, view: &View) -> Vec<String> {
        let labels = self.heads.iter().skip(1).map(|head| width(head)).max().unwrap_or_default();
        let mut lines = Vec::new();
        for row in &self.rows {
            lines.extend(row.first().map(|name| view.ink(name.ink, name.text.trim_end())));
            for (head, cell) in self.heads.iter().zip(row).skip(1) {
                let label = view.ink(Ink::Faint, &format!("{head:labels$}"));
                lines.push(format!("  {label}  {}", view.ink(cell.ink, &cell.text)));
            }
        }
        lines
    }
}

fn line(row: &[Cell], widths: &[usize], view: &View) -> String {
    let mut line = String::new();
    for (column, (cell, wide)) in row.iter().zip(widths).enumerate() {
        let space = " ".repeat(wide.saturating_sub(width(&cell.text)));
        let text = view.ink(cell.ink, &cell.text);
        if column == 0 {
            line.push_str(&text);
            line.push_str(&space);
        } else {
            line.push_str(&" ".repeat(GAP));
            line.push_str(&space);
            line.push_str(&text);
        }
    }
    line.trim_end().to_owned()
}
