//! Text layout: width, colour, wrapping, and names that cannot control a terminal.

use anstyle::{AnsiColor, Style};

/// How to lay out a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLayout {
    /// Columns of the page.
    pub width: usize,
    /// Whether escape sequences for colour may be written.
    pub colour: bool,
    /// Name of the run in the archive; absent if it is not archived.
    pub kept: Option<String>,
    /// Whether all ceilings are shown below each verdict.
    pub explain: bool,
    /// Whether every stream is listed, however many there are.
    pub all_streams: bool,
}

impl Default for TextLayout {
    fn default() -> Self {
        Self { width: 100, colour: false, kept: None, explain: false, all_streams: false }
    }
}

/// Narrower pages are laid out with this width.
const MIN_WIDTH: usize = 40;

/// The meaning of a piece of text, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TextRole {
    /// Running text.
    #[default]
    Plain,
    /// The requested result.
    Result,
    /// Labels and column heads.
    Faint,
    /// Everything is in order.
    Good,
    /// Important for the interpretation of a result.
    Warning,
    /// An impossible result.
    Struck,
}

impl TextRole {
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

impl TextLayout {
    /// Usable columns.
    pub(crate) fn columns(&self) -> usize {
        self.width.max(MIN_WIDTH)
    }

    /// `text` in the colour of its meaning, if colour is enabled.
    pub(crate) fn ink(&self, ink: TextRole, text: &str) -> String {
        if !self.colour || ink == TextRole::Plain || text.is_empty() {
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

/// Units that are not separated from their number at the end of a line.
const UNITS: [&str; 15] =
    ["%", "s", "ms", "us", "ns", "b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s", "B", "KiB", "MiB", "GiB", "TiB"];

/// The words of `text`; a number and its unit are one word.
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

/// `text` broken between words into lines of at most `columns`. A longer word gets its own line and is cut.
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

/// Pieces joined by three spaces into lines of at most `columns`. A piece is broken only if it exceeds a line.
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
