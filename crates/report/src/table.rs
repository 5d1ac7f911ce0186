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
    /// Columns to which it may be shortened where there is no room.
    min_width: Option<usize>,
    /// Rank among the columns that may be left out where there is no room; the lowest goes first.
    importance: Option<u8>,
}

impl Column {
    pub(crate) const fn words(head: &'static str, cells: Vec<Cell>) -> Self {
        Self { head: Cow::Borrowed(head), cells, right: false, min_width: None, importance: None }
    }

    pub(crate) const fn numbers(head: &'static str, cells: Vec<Cell>) -> Self {
        Self { head: Cow::Borrowed(head), cells, right: true, min_width: None, importance: None }
    }

    /// A column with a dynamic head.
    pub(crate) const fn named(head: String, cells: Vec<Cell>, right: bool) -> Self {
        Self { head: Cow::Owned(head), cells, right, min_width: None, importance: None }
    }

    /// The column, which may be left out where there is no room: the one with the lowest importance first.
    pub(crate) fn of_importance(self, importance: u8) -> Self {
        Self { importance: Some(importance), ..self }
    }

    /// The column, whose cells may be cut to this width where there is no room.
    pub(crate) fn at_least(self, min_width: usize) -> Self {
        Self { min_width: Some(min_width), ..self }
    }

    /// The column with cells of at most `columns`.
    fn cut(&mut self, columns: usize) {
        for cell in self.cells.iter_mut().filter(|cell| width(&cell.text) > columns) {
            let kept: String = cell.text.chars().take(columns.saturating_sub(CUT_MARK.len())).collect();
            cell.text = kept + CUT_MARK;
        }
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
/// Spaces between columns where there is little room.
const NARROW_COLUMN_GAP: usize = 2;
/// End of a text that was cut.
const CUT_MARK: &str = "..";

impl Table {
    pub(crate) const fn new(columns: Vec<Column>) -> Self {
        Self(columns)
    }

    /// Whether the columns fit side by side.
    pub(crate) fn fits(&self, view: &TextLayout) -> bool {
        self.width(COLUMN_GAP) <= view.columns()
    }

    fn width(&self, gap: usize) -> usize {
        self.0.iter().map(Column::width).sum::<usize>() + gap * self.0.len().saturating_sub(1)
    }

    /// The table with the gap between its columns, at most `columns` wide: narrower gaps are tried first, then
    /// shorter cells, then fewer columns. The second value is whether it fits.
    fn fitted(&self, columns: usize) -> (Self, usize, bool) {
        let mut table = self.clone();
        loop {
            for gap in [COLUMN_GAP, NARROW_COLUMN_GAP] {
                if table.width(gap) <= columns {
                    return (table, gap, true);
                }
            }
            let mut short = table.clone();
            for at in 0..short.0.len() {
                let excess = short.width(NARROW_COLUMN_GAP).saturating_sub(columns);
                let column = &mut short.0[at];
                if let Some(min) = column.min_width {
                    column.cut(column.width().saturating_sub(excess).max(min));
                }
            }
            if short.width(NARROW_COLUMN_GAP) <= columns {
                return (short, NARROW_COLUMN_GAP, true);
            }
            let ranked = table.0.iter().enumerate().filter_map(|(at, column)| Some((column.importance?, at)));
            match ranked.min() {
                Some((_, least)) => drop(table.0.remove(least)),
                None => return (short, NARROW_COLUMN_GAP, false),
            }
        }
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

    /// The table with the column `head` before the first of `others`, if it is after it.
    pub(crate) fn with_earlier(mut self, head: &str, others: &[&str]) -> Self {
        let place = |is: &dyn Fn(&str) -> bool| self.0.iter().position(|column| is(&column.head));
        let from = place(&|known| known == head);
        let to = place(&|known| others.contains(&known));
        if let Some((from, to)) = from.zip(to).filter(|(from, to)| to < from) {
            let column = self.0.remove(from);
            self.0.insert(to, column);
        }
        self
    }

    /// The table with `column` instead of its first `count` ones.
    pub(crate) fn with_first(mut self, count: usize, column: Column) -> Self {
        self.0.splice(..count.min(self.0.len()), [column]);
        self
    }

    /// The lines of the table. Where there is no room, columns are left out or shortened as far as they may be;
    /// if that is not enough, they are stacked.
    pub(crate) fn lines(&self, view: &TextLayout) -> Vec<String> {
        match self.fitted(view.columns()) {
            (table, gap, true) => table.side_by_side(gap, view),
            _ => self.stacked(view),
        }
    }

    /// The lines of the table, one for each row however little room there is.
    pub(crate) fn one_line_rows(&self, view: &TextLayout) -> Vec<String> {
        let (mut table, gap, fits) = self.fitted(view.columns());
        while !fits && table.0.len() > 1 && table.width(gap) > view.columns() {
            table.0.pop();
        }
        table.side_by_side(gap, view)
    }

    fn side_by_side(&self, gap: usize, view: &TextLayout) -> Vec<String> {
        let widths: Vec<usize> = self.0.iter().map(Column::width).collect();
        let lines = self.rows().into_iter().map(|row| {
            let padded = self
                .0
                .iter()
                .zip(&row)
                .zip(&widths)
                .map(|((column, cell), wide)| column.padded(cell, *wide, view));
            padded.collect::<Vec<_>>().join(&" ".repeat(gap)).trim_end().to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let words = |head, text: &str| Column::words(head, vec![Cell::plain(text)]);
        Table::new(vec![
            words("run", "7f3a"),
            words("target", "a-host-with-a-long-name.example.org").at_least(12),
            words("outcome", "completed").of_importance(1),
            words("cause", "shaper").of_importance(2),
        ])
    }

    fn lines(width: usize) -> Vec<String> {
        table().one_line_rows(&TextLayout { width, ..TextLayout::default() })
    }

    #[test]
    fn columns_come_closer_then_shorter_then_fewer() {
        assert_eq!(lines(63)[1], "7f3a   a-host-with-a-long-name.example.org   completed   shaper");
        assert_eq!(lines(62)[1], "7f3a  a-host-with-a-long-name.example.org  completed  shaper");
        assert_eq!(lines(50)[1], "7f3a  a-host-with-a-long-name..  completed  shaper");
        let narrow: Vec<String> = table().0.into_iter().map(|column| column.head.into_owned()).collect();
        assert_eq!(narrow, ["run", "target", "outcome", "cause"]);
        let wide = |rows: Vec<String>| rows.iter().map(|row| row.chars().count()).max();
        for width in 40..70 {
            assert_eq!(lines(width).len(), 2, "one line a row at {width}");
            assert!(wide(lines(width)) <= Some(width), "{:?}", lines(width));
        }
    }

    #[test]
    fn the_least_important_column_is_left_out_first() {
        let words = |text: &str| Column::words("", vec![Cell::plain(text.repeat(15))]);
        let table = Table::new(vec![words("a"), words("b").of_importance(2), words("c").of_importance(1)]);
        let line = &table.lines(&TextLayout { width: 40, ..TextLayout::default() })[1];
        assert_eq!(*line, format!("{}   {}", "a".repeat(15), "b".repeat(15)));
    }
}
