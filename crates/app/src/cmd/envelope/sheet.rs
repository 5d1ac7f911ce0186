//! Rows with a number each, which several answers can share: then each shows its smallest and its largest.

use std::fmt;

use super::super::page::{Ink, Page};

/// Columns of the name, and the least of the value.
const NAME: usize = 22;
const VALUE: usize = 12;
/// What stands before the name of a ceiling that binds.
pub(super) const BINDS: &str = "> ";

/// A number as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown {
    number: f64,
    text: String,
}

impl Shown {
    /// A number, and how it is written.
    pub(super) fn new(number: f64, text: impl Into<String>) -> Self {
        Self { number, text: text.into() }
    }

    /// From the smallest to the largest of several, as one.
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
enum Part {
    Heading(String),
    Remark(usize, String),
    Row { ink: Ink, name: String, value: Shown, note: String },
}

/// What is to be printed.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet(Vec<Part>);

impl Sheet {
    pub(super) fn heading(&mut self, title: &str) {
        self.0.push(Part::Heading(title.to_owned()));
    }

    pub(super) fn remark(&mut self, indent: usize, text: &str) {
        self.0.push(Part::Remark(indent, text.to_owned()));
    }

    /// A name, a value, and what there is to say about it.
    pub(super) fn row(&mut self, name: &str, value: Shown, note: &str) {
        self.marked(Ink::Plain, name, value, note);
    }

    /// The same with the name in a colour.
    pub(super) fn marked(&mut self, ink: Ink, name: &str, value: Shown, note: &str) {
        self.0.push(Part::Row { ink, name: name.to_owned(), value, note: note.to_owned() });
    }

    /// One sheet of several: where values differ, from the smallest to the largest; what is said about a value only where
    /// all say the same.
    pub(super) fn merged(sheets: &[Self]) -> Self {
        let Some((first, others)) = sheets.split_first() else { return Self::default() };
        let mut headings = 0;
        let mut parts = Vec::new();
        for part in &first.0 {
            match part {
                Part::Heading(_) => {
                    headings += 1;
                    parts.push(part.clone());
                }
                Part::Remark(indent, text) => {
                    let said = |sheet: &Self| {
                        sheet.0.iter().any(|part| matches!(part, Part::Remark(_, other) if other == text))
                    };
                    parts.extend(others.iter().all(said).then(|| Part::Remark(*indent, text.clone())));
                }
                Part::Row { .. } => {
                    let mut rows = vec![part];
                    rows.extend(others.iter().filter_map(|other| other.find(headings, part)));
                    parts.extend(together(&rows));
                }
            }
        }
        Self(parts)
    }

    /// The row of the same name below the heading of that number.
    fn find(&self, heading: usize, row: &Part) -> Option<&Part> {
        let mut headings = 0;
        self.0.iter().find(|part| {
            headings += usize::from(matches!(part, Part::Heading(_)));
            headings == heading && bare(part).is_some() && bare(part) == bare(row)
        })
    }

    /// Writes it.
    pub(super) fn onto(&self, page: &mut Page) {
        let values = self.0.iter().filter_map(|part| match part {
            Part::Row { value, .. } => Some(value.text.chars().count()),
            _ => None,
        });
        let widths = [0, NAME, values.max().unwrap_or_default().max(VALUE)];
        for part in &self.0 {
            match part {
                Part::Heading(title) => page.heading(title),
                Part::Remark(indent, text) => page.remark(*indent, Ink::Plain, text),
                Part::Row { ink, name, value, note } => {
                    let cells = [
                        (Ink::Plain, ""),
                        (*ink, name.as_str()),
                        (Ink::Strong, &value.text),
                        (Ink::Faint, note),
                    ];
                    page.row(&cells, &widths);
                }
            }
        }
    }
}

/// The name of a row, whether it binds or not.
fn bare(part: &Part) -> Option<&str> {
    match part {
        Part::Row { name, .. } => Some(name.strip_prefix(BINDS).unwrap_or(name).trim_start()),
        _ => None,
    }
}

/// Rows of the same name as one.
fn together(rows: &[&Part]) -> Option<Part> {
    let parts: Vec<(Ink, &String, &Shown, &String)> = rows
        .iter()
        .filter_map(|part| match part {
            Part::Row { ink, name, value, note } => Some((*ink, name, value, note)),
            _ => None,
        })
        .collect();
    let value = Shown::over(parts.iter().map(|row| row.2.clone()));
    // A ceiling that binds at one of the ends is marked.
    let (ink, name, _, note) = *parts.iter().find(|row| row.1.starts_with(BINDS)).or(parts.first())?;
    let same = parts.iter().all(|row| row.3 == note);
    let note = if same { note.clone() } else { String::new() };
    Some(Part::Row { ink, name: name.clone(), value, note })
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
