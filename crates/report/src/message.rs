//! Messages on a terminal, wrapped between words.

use crate::page::wrap;

/// Indentation of the continuation of a wrapped line.
const CONTINUATION_INDENT: &str = "  ";

/// Wraps `text` to `columns`, of which the first line has `taken` fewer. Indented lines stay as they are: they are
/// quotes with markers below them.
#[must_use]
pub fn wrap_message(text: &str, columns: usize, taken: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_breaks_between_words_and_its_rest_is_indented() {
        let text = "the server refused: it has no place for a client that asks for so many streams at once";
        let broken = wrap_message(text, 40, 7);
        assert_eq!(
            broken,
            "the server refused: it has no\n  place for a client that asks for so\n  many streams at once"
        );
        assert!(broken.lines().all(|line| line.len() <= 40));
        assert_eq!(wrap_message(text, 100, 7), text);
        let listening = "listening on [::]:5733 (TCP and UDP); measure from another host with: linerate test HOST -p 5733";
        let (words, command) = listening.split_once(": linerate").unwrap();
        assert_eq!(wrap_message(listening, 80, 0), format!("{words}:\n  linerate{command}"));
        let quoted = format!("plan.toml:1:1: wrong\n    {}\n    ^", "x".repeat(90));
        assert_eq!(wrap_message(&quoted, 80, 0), quoted);
    }
}
