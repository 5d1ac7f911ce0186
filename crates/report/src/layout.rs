//! Words on a page: width, colour, wrapping, and names that cannot steer a terminal.

use anstyle::{AnsiColor, Style};

/// How a text shall look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Columns of the page.
    pub width: usize,
    /// Whether escape sequences for colour may be written.
    pub colour: bool,
    /// Name under which the archive keeps the run; absent when it is not kept.
    pub kept: Option<String>,
    /// Whether the whole ladder of ceilings is shown below each verdict.
    pub explain: bool,
}

impl Default for View {
    fn default() -> Self {
        Self { width: 100, colour: false, kept: None, explain: false }
    }
}

/// The narrowest page that is laid out for; a narrower one is written as if it were this wide.
const MIN_WIDTH: usize = 40;

/// What a piece of text is, from which follows how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    /// Running text.
    #[default]
    Plain,
    /// The figure that was asked for.
    Result,
    /// Labels and column heads.
    Faint,
    /// Nothing is wrong.
    Good,
    /// To be read before the figure is believed.
    Warning,
    /// A figure that cannot be.
    Struck,
}

impl Ink {
    const fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Result => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Struck => AnsiColor::Red.on_default().strikethrough(),
        }
    }
}

impl View {
    /// The columns that may be filled.
    pub(crate) fn columns(&self) -> usize {
        self.width.max(MIN_WIDTH)
    }

    /// `text` in the colour of its meaning, when colour is wanted.
    pub(crate) fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.colour || ink == Ink::Plain || text.is_empty() {
            return text.to_owned();
        }
        let style = ink.style();
        format!("{style}{text}{style:#}")
    }
}

/// Columns that `text` takes, one per character.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Units that are not torn from their number at the end of a line.
const UNITS: [&str; 15] =
    ["%", "s", "ms", "us", "ns", "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "B", "KiB", "MiB", "GiB", "TiB"];

/// The words of `text`; a number and its unit are one.
fn split_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([',', '.', ':', ';', ')']);
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// `text` broken between words into lines of at most `columns`; a longer word stands alone and is cut.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in split_words(text) {
        if !line.is_empty() && width(&line) + 1 + width(&word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&word);
        while width(&line) > columns {
            let rest: String = line.chars().skip(columns).collect();
            line = line.chars().take(columns).collect();
            lines.push(std::mem::replace(&mut line, rest));
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Pieces joined by three spaces into lines of at most `columns`; a piece is only broken when it fills a line.
pub(crate) fn flow_pieces(pieces: &[String], columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + 3 + width(piece) <= columns => {
                line.push_str("   ");
                line.push_str(piece);
            }
            _ => lines.extend(wrap(piece, columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(wrap("takes 12 ms, or 3 MiB.", 11), ["takes", "12 ms, or", "3 MiB."]);
    }

    proptest! {
        #[test]
        fn wrapping_loses_nothing_but_spaces(text in ".{0,200}", columns in 1_usize..60) {
            let lines = wrap(&text, columns);
            prop_assert!(lines.iter().all(|line| width(line) <= columns));
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
