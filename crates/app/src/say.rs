//! What goes to stderr: errors, and what a person should know beside the result.
//!
//! Nobody may be listening, or the disk behind it may be full: that ends nothing.

use std::fmt::Display;
use std::io::Write;

/// An error, in one line.
pub(crate) fn error(text: impl Display) {
    note(format_args!("{}error:{} {text}", style(anstyle::AnsiColor::Red), anstyle::Reset.render()));
}

/// Something to know that does not end the command.
pub(crate) fn warning(text: impl Display) {
    note(format_args!("{}warning:{} {text}", style(anstyle::AnsiColor::Yellow), anstyle::Reset.render()));
}

/// A plain line.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// The moving line of a terminal, in the place of the last one; an empty one takes it away.
pub(crate) fn live(line: &str) {
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "\r{line}\x1b[K").and_then(|()| out.flush());
}

fn style(colour: anstyle::AnsiColor) -> impl Display {
    anstyle::Style::new().bold().fg_color(Some(colour.into())).render().to_string()
}
