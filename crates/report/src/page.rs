//! Text of documents other than runs: headings, aligned rows, wrapped remarks.

use anstyle::{AnsiColor, Style};
use linerate_model::foreign_text::one_line;

/// Style of a text, if colour is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextStyle {
    /// The terminal's own style.
    Plain,
    /// Bold.
    Strong,
    /// Dimmed.
    Faint,
    /// Green.
    Good,
    /// Yellow.
    Warning,
    /// Bold red.
    Bad,
}

impl TextStyle {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

/// A text under construction.
#[derive(Debug)]
pub struct Page {
    columns: usize,
    colour: bool,
    text: String,
}

/// Spaces between columns of a row.
const COLUMN_GAP: usize = 2;

impl Page {
    /// An empty page, at least 40 columns wide.
    #[must_use]
    pub fn new(columns: usize, colour: bool) -> Self {
        Self { columns: columns.max(40), colour, text: String::new() }
    }

    /// A heading, with an empty line before it except at the start.
    pub fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let title = self.ink(TextStyle::Strong, title);
        self.line(&title);
    }

    /// A row: cells padded to `widths`; the last one is wrapped and indented.
    pub fn row(&mut self, cells: &[(TextStyle, &str)], widths: &[usize]) {
        let Some(((last_ink, last), first)) = cells.split_last() else { return };
        let mut line = String::new();
        let mut column = 0;
        for ((ink, cell), width) in first.iter().zip(widths) {
            let wide = cell.chars().count();
            line.push_str(&self.ink(*ink, cell));
            line.push_str(&" ".repeat(width.saturating_sub(wide) + COLUMN_GAP));
            column += wide.max(*width) + COLUMN_GAP;
        }
        // If little space is left, the last cell starts on the next line, slightly indented.
        let crowded = self.columns < column + 24 && column + last.chars().count() > self.columns;
        let indent = if crowded { 6 } else { column };
        let pieces = wrap(last, self.columns.saturating_sub(indent));
        for (number, piece) in pieces.iter().enumerate() {
            if number > 0 || crowded {
                self.line(line.trim_end());
                line = " ".repeat(indent);
            }
            line.push_str(&self.ink(*last_ink, piece));
        }
        self.line(line.trim_end());
    }

    /// A wrapped text with an indentation.
    pub fn remark(&mut self, indent: usize, ink: TextStyle, text: &str) {
        for piece in wrap(text, self.columns.saturating_sub(indent)) {
            let piece = self.ink(ink, &piece);
            self.line(&format!("{}{piece}", " ".repeat(indent)));
        }
    }

    /// A text that must stay on one line for copying, such as a command.
    pub fn verbatim(&mut self, indent: usize, text: &str) {
        self.line(&format!("{}{}", " ".repeat(indent), one_line(text)));
    }

    /// The finished text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    /// All text of a page passes here and is sanitized, as some of it comes from other hosts and files.
    fn ink(&self, ink: TextStyle, text: &str) -> String {
        let text = one_line(text);
        if !self.colour || ink == TextStyle::Plain || text.is_empty() {
            return text;
        }
        let style = ink.style();
        format!("{style}{text}{style:#}")
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Units that stay on the same line as their number.
const UNITS: [&str; 14] =
    ["%", "s", "ms", "us", "ns", "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "B", "KiB", "MiB", "GiB"];

/// The words of `text`; a number and its unit are one word.
fn split_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ':', ';', ')']));
        match words.last_mut() {
            Some(number) if unit && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Wraps `text` to lines of at most `columns`; words are never split.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in split_words(text) {
        let Some(line) = lines.last_mut() else { continue };
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cell_wraps_under_itself() {
        let mut page = Page::new(40, false);
        page.row(
            &[(TextStyle::Plain, "name"), (TextStyle::Good, "one two three four five six seven eight")],
            &[6],
        );
        assert_eq!(page.into_text(), "name    one two three four five six\n        seven eight\n");
    }

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(wrap("takes 12 ms, or 3 MiB.", 11), ["takes", "12 ms, or", "3 MiB."]);
    }

    #[test]
    fn a_crowded_row_continues_below() {
        let mut page = Page::new(40, false);
        page.row(
            &[(TextStyle::Plain, "a long name that leaves no room"), (TextStyle::Plain, "what it says")],
            &[6],
        );
        assert_eq!(page.into_text(), "a long name that leaves no room\n      what it says\n");
    }

    #[test]
    fn colour_is_written_only_where_it_is_allowed() {
        let heading = |colour| {
            let mut page = Page::new(80, colour);
            page.heading("Clock");
            page.into_text()
        };
        assert_eq!(heading(false), "Clock\n");
        assert!(heading(true).starts_with('\u{1b}'));
    }
}
