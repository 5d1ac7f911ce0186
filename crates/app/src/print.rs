//! What goes to stderr: errors, and what a person should know beside the result.
//!
//! Nobody may be listening, or the disk behind it may be full: that ends nothing.

use std::fmt::Display;
use std::io::Write;

use linerate_model::foreign_text;

use crate::cmd::wrap;
use crate::terminal;

/// An error, in one line.
pub(crate) fn error(text: impl Display) {
    put("error:", anstyle::AnsiColor::Red, &text);
}

/// Something to know that does not end the command.
pub(crate) fn warning(text: impl Display) {
    put("warning:", anstyle::AnsiColor::Yellow, &text);
}

/// A plain line.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", fitted(0, &text.to_string()));
}

fn put(head: &str, colour: anstyle::AnsiColor, text: &dyn Display) {
    let text = fitted(head.len() + 1, &text.to_string());
    let _ = writeln!(anstream::stderr().lock(), "{}{head}{} {text}", style(colour), anstyle::Reset.render());
}

/// A text as it may be written: file names and what programs say are in it, and none of that reaches the terminal as it
/// is. On a terminal a line breaks between words; elsewhere it stays one line, to be searched.
fn fitted(taken: usize, text: &str) -> String {
    let text = foreign_text::lines(text);
    if terminal::watched() { within(terminal::stderr_width(), taken, &text) } else { text }
}

/// What follows in a broken line is to be seen as its rest.
const CONTINUATION_INDENT: &str = "  ";

/// `text` in lines of at most `columns`, `taken` of which are taken in the first. Lines that are indented stay as they are:
/// they are quoted, with marks below them.
fn within(columns: usize, taken: usize, text: &str) -> String {
    let fits = |number: usize, line: &str| {
        line.starts_with(' ') || line.chars().count() + if number == 0 { taken } else { 0 } <= columns
    };
    let whole = text.lines().enumerate().flat_map(|(number, line)| {
        if fits(number, line) {
            return vec![line.to_owned()];
        }
        // What is taken of the first line is kept free by a word of that length.
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

/// Stands for a space at which no line breaks. No text has it: forbidden characters are replaced before.
const NO_BREAK: &str = "\u{1}";

/// A command at the end of a line is to be copied.
fn with_command_in_one_piece(line: &str) -> String {
    match line.rsplit_once(": linerate ") {
        Some((words, command)) => format!("{words}: linerate{NO_BREAK}{}", command.replace(' ', NO_BREAK)),
        None => line.to_owned(),
    }
}

/// The moving line of a terminal, in the place of the last one; an empty one takes it away.
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
