//! Output to stderr: errors and notes besides the result.
//!
//! Write errors, such as a closed pipe or a full disk, are ignored.

use std::fmt::Display;
use std::io::Write;

use linerate_model::foreign_text;
use linerate_report::page::wrap;

use crate::terminal;

/// Prints an error on one line.
pub(crate) fn error(text: impl Display) {
    put("error:", anstyle::AnsiColor::Red, &text);
}

/// Prints a warning.
pub(crate) fn warning(text: impl Display) {
    put("warning:", anstyle::AnsiColor::Yellow, &text);
}

/// Prints a plain line.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", fitted(0, &text.to_string()));
}

fn put(head: &str, colour: anstyle::AnsiColor, text: &dyn Display) {
    let text = fitted(head.len() + 1, &text.to_string());
    let _ = writeln!(anstream::stderr().lock(), "{}{head}{} {text}", style(colour), anstyle::Reset.render());
}

/// Sanitizes a text for stderr, as it may contain file names and output of other programs. On a terminal, lines
/// are wrapped between words; elsewhere each stays on one line, so that it can be searched.
fn fitted(taken: usize, text: &str) -> String {
    let text = foreign_text::lines(text);
    if terminal::watched() { within(terminal::stderr_width(), taken, &text) } else { text }
}

/// Indentation of the continuation of a wrapped line.
const CONTINUATION_INDENT: &str = "  ";

/// Wraps `text` to `columns`, of which the first line has `taken` fewer. Indented lines stay as they are: they
/// are quotes with markers below them.
fn within(columns: usize, taken: usize, text: &str) -> String {
    let fits = |number: usize, line: &str| {
        line.starts_with(' ') || line.chars().count() + if number == 0 { taken } else { 0 } <= columns
    };
    let whole = text.lines().enumerate().flat_map(|(number, line)| {
        if fits(number, line) {
            return vec![line.to_owned()];
        }
        // A placeholder of that length reserves the taken columns of the first line.
        let stand_in = "x".repeat(if number == 0 { taken.saturating_sub(1) } else { 0 });
        let line = with_command_in_one_piece(line);
        let pieces = wrap(&format!("{stand_in} {line}"), columns.saturating_sub(CONTINUATION_INDENT.len()));
        let pieces = pieces.into_iter().enumerate().map(|(at, piece)| match at {
            0 => piece.strip_prefix(&stand_in).unwrap_or(&piece).trim_start().to_owned(),
            _ => format!("{CONTINUATION_INDENT}{piece}"),
        });
        pieces.collect()
    });
    whole.collect::<Vec<_>>().join("\n").replace(NO_BREAK, " ")
}

/// Placeholder for a non-breaking space. It cannot occur in the text, in which forbidden characters have been
/// replaced.
const NO_BREAK: &str = "\u{1}";

/// Keeps a command at the end of a line in one piece, for copying.
fn with_command_in_one_piece(line: &str) -> String {
    match line.rsplit_once(": linerate ") {
        Some((words, command)) => format!("{words}: linerate{NO_BREAK}{}", command.replace(' ', NO_BREAK)),
        None => line.to_owned(),
    }
}

/// Replaces the live line of a terminal; an empty text removes it.
pub(crate) fn live(line: &str) {
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "\r{line}\x1b[K").and_then(|()| out.flush());
}

fn style(colour: anstyle::AnsiColor) -> impl Display {
    anstyle::Style::new().bold().fg_color(Some(colour.into())).render().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_between_words_and_its_rest_is_indented() {
        let text = "the server refused: it has no place for a client that asks for so many streams at once";
        let broken = within(40, 7, text);
        assert_eq!(
            broken,
            "the server refused: it has no\n  place for a client that asks for so\n  many streams at once"
        );
        assert!(broken.lines().all(|line| line.len() <= 40));
        assert_eq!(within(100, 7, text), text);
        let listening = "listening on [::]:5733 (TCP and UDP); measure from another host with: linerate test HOST -p 5733";
        let (words, command) = listening.split_once(": linerate").unwrap();
        assert_eq!(within(80, 0, listening), format!("{words}:\n  linerate{command}"));
        let quoted = format!("plan.toml:1:1: wrong\n    {}\n    ^", "x".repeat(90));
        assert_eq!(within(80, 0, &quoted), quoted);
    }
}
