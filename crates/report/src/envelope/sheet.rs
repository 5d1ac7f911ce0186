//! Rows with one number each. Several answers can be merged, and then each row shows its smallest and its
//! largest value.

use std::fmt;

use crate::page::{Page, TextStyle};

/// Width of the name column, and the minimum width of the value column.
const NAME: usize = 22;
const VALUE: usize = 12;
/// Suffix of the note of a binding ceiling.
pub(super) const BINDING: &str = " (binds)";
/// Prefix of the name of a binding ceiling.
pub(super) const BINDS: &str = "> ";

/// A number with its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    number: f64,
    text: String,
}

impl Shown {
    /// A number and its text.
    pub(super) fn new(number: f64, text: impl Into<String>) -> Self {
        Self { number, text: text.into() }
    }

    /// Merges several values to a range from the smallest to the largest.
    pub(super) fn over(all: impl Iterator<Item = Self>) -> Self {
        let mut all: Vec<Self> = all.collect();
        all.sort_by(|a, b| a.number.total_cmp(&b.number));
        match (all.first(), all.last()) {
            (Some(low), Some(high)) if low.text != high.text => {
                Self::new(low.number, format!("{low} .. {high}"))
            }
            (Some(low), _) => low.clone(),
            (None, _) => Self::new(f64::NAN, "-"),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

#[derive(Debug, Clone)]
enum SheetItem {
    Heading(String),
    Remark(usize, String),
    Row { ink: TextStyle, name: String, value: Shown, note: String },
}

/// The content to print.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet(Vec<SheetItem>);

impl Sheet {
    pub(super) fn heading(&mut self, title: &str) {
        self.0.push(SheetItem::Heading(title.to_owned()));
    }

    pub(super) fn remark(&mut self, indent: usize, text: &str) {
        self.0.push(SheetItem::Remark(indent, text.to_owned()));
    }

    /// A name, a value, and a note.
    pub(super) fn row(&mut self, name: &str, value: Shown, note: &str) {
        self.marked(TextStyle::Plain, name, value, note);
    }

    /// The same with a coloured name.
    pub(super) fn marked(&mut self, ink: TextStyle, name: &str, value: Shown, note: &str) {
        self.0.push(SheetItem::Row { ink, name: name.to_owned(), value, note: note.to_owned() });
    }

    /// Merges several sheets: values that differ become ranges, and notes remain only if they are the same in
    /// all sheets. A row that some sheets lack gets the range end "none".
    pub(super) fn merged(sheets: &[Self]) -> Self {
        let mut titles: Vec<&str> = Vec::new();
        for (title, _) in sheets.iter().flat_map(Self::sections) {
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
        let section = |title: &str| {
            let parts = |sheet: &'_ Self| {
                let mut all = sheet.sections();
                all.find(|(known, _)| *known == title).map_or(Vec::new(), |(_, parts)| parts.to_vec())
            };
            let all: Vec<Vec<SheetItem>> = sheets.iter().map(parts).collect();
            merged(&all.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let mut parts = Vec::new();
        for title in titles {
            parts.extend((!title.is_empty()).then(|| SheetItem::Heading(title.to_owned())));
            parts.extend(section(title));
        }
        Self(parts)
    }

    /// Headings with the parts below each; without a title for parts before the first heading.
    fn sections(&self) -> impl Iterator<Item = (&str, &[SheetItem])> {
        let first = matches!(self.0.first(), Some(SheetItem::Heading(_)));
        let pieces = self.0.split(|part| matches!(part, SheetItem::Heading(_)));
        let titles = self.0.iter().filter_map(|part| match part {
            SheetItem::Heading(title) => Some(title.as_str()),
            _ => None,
        });
        // The piece before the first heading has no title, and is empty if the sheet starts with a heading.
        std::iter::once("").chain(titles).zip(pieces).skip(usize::from(first))
    }

    /// Prints the sheet.
    pub(super) fn onto(&self, page: &mut Page) {
        let values = self.0.iter().filter_map(|part| match part {
            SheetItem::Row { value, .. } => Some(value.text.chars().count()),
            _ => None,
        });
        let widths = [0, NAME, values.max().unwrap_or_default().max(VALUE)];
        for part in &self.0 {
            match part {
                SheetItem::Heading(title) => page.heading(title),
                SheetItem::Remark(indent, text) => page.remark(*indent, TextStyle::Plain, text),
                SheetItem::Row { ink, name, value, note } => {
                    let cells = [
                        (TextStyle::Plain, ""),
                        (*ink, name.as_str()),
                        (TextStyle::Strong, &value.text),
                        (TextStyle::Faint, note),
                    ];
                    page.row(&cells, &widths);
                }
            }
        }
    }
}

/// Merges the same section of several sheets.
fn merged(sheets: &[&[SheetItem]]) -> Vec<SheetItem> {
    let mut parts: Vec<SheetItem> = Vec::new();
    for (number, sheet) in sheets.iter().enumerate() {
        let mut after = 0;
        for part in *sheet {
            let found = match part {
                SheetItem::Row { .. } => {
                    parts.iter().position(|known| bare(known).is_some() && bare(known) == bare(part))
                }
                _ => parts.iter().position(|known| known.is_remark(part)),
            };
            let Some(at) = found else {
                let one = match part {
                    SheetItem::Row { .. } => merge_rows(part, sheets),
                    // Remarks remain only if all sheets contain them; take them from the first.
                    _ if number == 0
                        && sheets.iter().all(|other| other.iter().any(|one| one.is_remark(part))) =>
                    {
                        Some(part.clone())
                    }
                    _ => None,
                };
                if let Some(one) = one {
                    parts.insert(after, one);
                    after += 1;
                }
                continue;
            };
            after = at + 1;
        }
    }
    parts
}

impl SheetItem {
    /// Whether both are the same remark.
    fn is_remark(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Remark(_, one), Self::Remark(_, other)) if one == other)
    }
}

/// The name of a row without the mark for a binding ceiling.
fn bare(part: &SheetItem) -> Option<&str> {
    match part {
        SheetItem::Row { name, .. } => Some(name.strip_prefix(BINDS).unwrap_or(name).trim_start()),
        _ => None,
    }
}

/// Merges the rows with this name from all sheets.
fn merge_rows(row: &SheetItem, sheets: &[&[SheetItem]]) -> Option<SheetItem> {
    let of_sheet = |sheet: &&'_ [SheetItem]| sheet.iter().find(|part| bare(part) == bare(row)).cloned();
    let rows: Vec<SheetItem> = sheets.iter().filter_map(of_sheet).collect();
    let parts: Vec<(TextStyle, &String, &Shown, &String)> = rows
        .iter()
        .filter_map(|part| match part {
            SheetItem::Row { ink, name, value, note } => Some((*ink, name, value, note)),
            _ => None,
        })
        .collect();
    let mut value = Shown::over(parts.iter().map(|row| row.2.clone()));
    if rows.len() < sheets.len() {
        value.text = format!("{} .. none", value.text);
    }
    // A ceiling that binds at one of the ends is marked.
    let (ink, name, _, note) = *parts.iter().find(|row| row.1.starts_with(BINDS)).or(parts.first())?;
    let same = parts.iter().all(|row| row.3.trim_end_matches(BINDING) == note.trim_end_matches(BINDING));
    let note = match (same, rows.len() == sheets.len()) {
        (true, true) if parts.iter().all(|row| row.3 == note) => note.clone(),
        (true, _) => note.trim_end_matches(BINDING).to_owned(),
        (false, _) => String::new(),
    };
    Some(SheetItem::Row { ink, name: name.clone(), value, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(rate: f64, binds: bool) -> Sheet {
        let mut sheet = Sheet::default();
        sheet.heading("Ceilings");
        let name = if binds { "> link" } else { "  link" };
        sheet.row(
            name,
            Shown::new(rate, format!("{rate} Mb/s")),
            if binds { "here (binds)" } else { "here" },
        );
        sheet.row("  window", Shown::new(7.0, "7 Mb/s"), "the same everywhere");
        sheet.heading("Windows");
        sheet.row("link", Shown::new(-1.0, "another one"), "");
        sheet.remark(2, &format!("only at {rate}"));
        sheet.remark(2, "always");
        sheet
    }

    #[test]
    fn a_row_that_only_some_have_is_not_lost() {
        let mut lossless = Sheet::default();
        lossless.heading("Ceilings");
        lossless.row("link", Shown::new(9.0, "9 Mb/s"), "wire");
        let mut lossy = Sheet::default();
        lossy.heading("Ceilings");
        lossy.row("loss", Shown::new(3.0, "3 Mb/s"), "cubic");
        lossy.row("link", Shown::new(9.0, "9 Mb/s"), "wire");
        lossy.heading("Models");
        lossy.row("Mathis", Shown::new(3.0, "3 Mb/s"), "reno");
        for sheets in [[lossless.clone(), lossy.clone()], [lossy, lossless]] {
            let mut page = Page::new(80, false);
            Sheet::merged(&sheets).onto(&mut page);
            let text = page.into_text();
            let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
            assert!(at("3 Mb/s .. none") < at("9 Mb/s"), "{text}");
            assert!(at("Models") < at("Mathis"), "{text}");
        }
    }

    #[test]
    fn values_that_differ_become_ranges_and_what_is_not_true_of_all_is_left_out() {
        let mut page = Page::new(80, false);
        Sheet::merged(&[sheet(20.0, false), sheet(9.0, true), sheet(100.0, false)]).onto(&mut page);
        let text = page.into_text();
        assert!(text.contains("> link                  9 Mb/s .. 100 Mb/s"), "{text}");
        assert!(
            text.contains("  window                7 Mb/s") && text.contains("the same everywhere"),
            "{text}"
        );
        assert!(text.contains("another one"), "the heading tells rows of one name apart: {text}");
        assert!(!text.contains("(binds)") && !text.contains("only at") && text.contains("always"), "{text}");
    }
}
