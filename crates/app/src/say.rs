//! What goes to stderr: errors, and what a person should know beside the result.

use std::fmt::Display;

/// An error, in one line.
pub(crate) fn error(text: impl Display) {
    anstream::eprintln!("{}error:{} {text}", style(anstyle::AnsiColor::Red), anstyle::Reset.render());
}

/// Something to know that does not end the command.
pub(crate) fn warning(text: impl Display) {
    anstream::eprintln!("{}warning:{} {text}", style(anstyle::AnsiColor::Yellow), anstyle::Reset.render());
}

/// A plain line.
pub(crate) fn note(text: impl Display) {
    anstream::eprintln!("{text}");
}

fn style(colour: anstyle::AnsiColor) -> impl Display {
    anstyle::Style::new().bold().fg_color(Some(colour.into())).render().to_string()
}
