//! An aligned table, with or without colours.

use std::borrow::Cow;

use crate::layout::{TextLayout, TextRole, width, wrap};

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    ink: TextRole,
}

impl Cell {
    pub(crate) fn new(ink: TextRole, text: impl Into<String>) -> Self {
        Self { text: text.into(), ink }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(TextRole::Plain, text)
    }
}

/// One column: text is left-aligned, numbers are right-aligned.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    head: Cow<'static, str>,
    cells: Vec<Cell>,
    right: bool,
}

impl Column {
    pub(crate) const fn words(head: &'static str, cells: Vec<Cell>) -> Self {
        Self { head: Cow::Borrowed(head), cells, right: false }
    }

    pub(crate) const fn numbers(head: &'static str, cells: Vec<Cell>) -> Self {
        Self { head: Cow::Borrowed(head), cells, right: true }
    }

    /// A column with a dynamic head.
    pub(crate) const fn named(head: String, cells: Vec<Cell>, right: bool) -> Self {
        Self { head: Cow::Owned(head), cells, right }
    }

    fn width(&self) -> usize {
        let texts = self.cells.iter().map(|cell| width(&cell.text));
        texts.chain([width(&self.head)]).max().unwrap_or_default()
    }

    /// A cell of this column, padded.
    fn padded(&self, cell: &Cell, wide: usize, view: &TextLayout) -> String {
        let space = " ".repeat(wide.saturating_sub(width(&cell.text)));
        let text = view.ink(cell.ink, &cell.text);
        if self.right { space + &text } else { text + &space }
    }
}

/// Columns of equal length; the first one names the rows.
#[derive(Debug, Clone)]
pub(crate) struct Table(Vec<Column>);

/// Spaces between columns.
const COLUMN_GAP: usize = 3;

impl Table {
    pub(crate) const fn new(columns: Vec<Column>) -> Self {
        Self(columns)
    }

    /// Whether the columns fit side by side.
    pub(crate) fn fits(&self, view: &TextLayout) -> bool {
        let widths: usize = self.0.iter().map(Column::width).sum();
        widths + COLUMN_GAP * self.0.len().saturating_sub(1) <= view.columns()
    }

    /// Number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.0.len()
    }

    /// The table without the columns with this head.
    pub(crate) fn without(mut self, head: &str) -> Self {
        self.0.retain(|column| column.head != head);
        self
    }

    /// The lines of the table; columns are stacked if they do not fit side by side.
    pub(crate) fn lines(&self, view: &TextLayout) -> Vec<String> {
        let widths: Vec<usize> = self.0.iter().map(Column::width).collect();
        if widths.iter().sum::<usize>() + COLUMN_GAP * widths.len().saturating_sub(1) > view.columns() {
            return self.stacked(view);
        }
        let lines = self.rows().into_iter().map(|row| {
            let padded = self
                .0
                .iter()
                .zip(&row)
                .zip(&widths)
                .map(|((column, cell), wide)| column.padded(cell, *wide, view));
            padded.collect::<Vec<_>>().join(&" ".repeat(COLUMN_GAP)).trim_end().to_owned()
        });
        lines.collect()
    }

    /// Heads, and whether their columns hold numbers, for a page.
    pub(crate) fn heads(&self) -> Vec<(&str, bool)> {
        self.0.iter().map(|column| (column.head.as_ref(), column.right)).collect()
    }

    /// Rows without the heads, with the meaning of each cell, for a page.
    pub(crate) fn marked(&self) -> Vec<Vec<(TextRole, String)>> {
        let marked = |row: Vec<Cell>| row.into_iter().map(|cell| (cell.ink, cell.text)).collect();
        self.rows().into_iter().skip(1).map(marked).collect()
    }

    /// Heads and cells as plain text, for another form of table.
    pub(crate) fn texts(&self) -> Vec<Vec<String>> {
        let bare = |row: Vec<Cell>| row.into_iter().map(|cell| cell.text).collect();
        self.rows().into_iter().map(bare).collect()
    }

    /// The heads, then the cells, row by row.
    fn rows(&self) -> Vec<Vec<Cell>> {
        let heads = self.0.iter().map(|column| Cell::new(TextRole::Faint, column.head.clone())).collect();
        let count = self.0.iter().map(|column| column.cells.len()).max().unwrap_or_default();
        let row = |at: usize| {
            self.0.iter().map(|column| column.cells.get(at).cloned().unwrap_or_default()).collect()
        };
        std::iter::once(heads).chain((0..count).map(row)).collect()
    }

    fn stacked(&self, view: &TextLayout) -> Vec<String> {
        let labels = self.0.iter().skip(1).map(|column| width(&column.head)).max().unwrap_or_default();
        let room = view.columns().saturating_sub(labels + 4);
        let mut lines = Vec::new();
        for row in self.rows().iter().skip(1) {
            let names = row.first().map(|name| wrap(&name.text, view.columns()));
            lines.extend(names.into_iter().flatten());
            for (column, cell) in self.0.iter().zip(row).skip(1) {
                for (number, part) in wrap(&cell.text, room).iter().enumerate() {
                    let label = if number == 0 { &*column.head } else { "" };
                    let label = view.ink(TextRole::Faint, &format!("{label:labels$}"));
                    lines.push(format!("  {label}  {}", view.ink(cell.ink, part)).trim_end().to_owned());
                }
            }
        }
        lines
    }
}
