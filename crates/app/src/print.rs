//! Output to stderr: errors and notes besides the result.
//!
//! Write errors, such as a closed pipe or a full disk, are ignored.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;

use clap::builder::StyledStr;
use linerate_model::foreign_text;
use linerate_report::message::wrap_message;
use linerate_runner::{JournalPriority, PriorityWriter};
use tracing::Level;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;

use crate::terminal;

/// Prints an error on one line.
pub(crate) fn error(text: impl Display) {
    put("error:", anstyle::AnsiColor::Red, JournalPriority::Error, &text);
}

/// Prints an error of the parser, which repeats what was typed. Typed control sequences cannot be told from the
/// parser's own, so with them, the text has no styles.
pub(crate) fn usage_error(text: &StyledStr, typed: &[OsString]) {
    let is_safe = |word: &OsString| foreign_text::one_line(&word.to_string_lossy()) == word.to_string_lossy();
    let text = match typed.iter().all(is_safe) {
        true => text.ansi().to_string(),
        false => foreign_text::lines(&text.to_string()),
    };
    let _ = write!(anstream::stderr().lock(), "{}", JournalPriority::Error.on_stderr(text));
}

/// Prints a warning.
pub(crate) fn warning(text: impl Display) {
    put("warning:", anstyle::AnsiColor::Yellow, JournalPriority::Warning, &text);
}

/// Prints a plain line.
pub(crate) fn note(text: impl Display) {
    let text = JournalPriority::Information.on_stderr(fitted(0, &text.to_string()));
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

fn put(head: &str, colour: anstyle::AnsiColor, priority: JournalPriority, text: &dyn Display) {
    let text = fitted(head.len() + 1, &text.to_string());
    let text = format!("{}{head}{} {text}", style(colour), anstyle::Reset.render());
    let _ = writeln!(anstream::stderr().lock(), "{}", priority.on_stderr(text));
}

/// Sanitizes a text for stderr, as it may contain file names and output of other programs. On a terminal, lines
/// are wrapped between words; elsewhere each stays on one line, so that it can be searched.
fn fitted(taken: usize, text: &str) -> String {
    let text = foreign_text::lines(text);
    if terminal::watched() { wrap_message(&text, terminal::stderr_width(), taken) } else { text }
}

/// Replaces the live line of a terminal; an empty text removes it.
pub(crate) fn live(line: &str) {
    let mut out = anstream::stderr().lock();
    let _ = write!(out, "\r{line}\x1b[K").and_then(|()| out.flush());
}

fn style(colour: anstyle::AnsiColor) -> impl Display {
    anstyle::Style::new().bold().fg_color(Some(colour.into())).render().to_string()
}

/// Prints the warnings of all parts of the program on stderr from now on; `LINERATE_LOG` selects others, such as `debug`.
pub(crate) fn developers_log() {
    let filter = EnvFilter::try_from_env("LINERATE_LOG").unwrap_or_else(|_| "warn,async_nats=off".into());
    let with = |priority| move || PriorityWriter { stderr: std::io::stderr(), priority };
    let errors = with(JournalPriority::Error).with_max_level(Level::ERROR);
    let warnings = with(JournalPriority::Warning).with_max_level(Level::WARN);
    let writer = errors.or_else(warnings.or_else(with(JournalPriority::Information)));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).without_time();
    // Another one is there already in tests.
    let _ = log.with_target(false).with_ansi(false).try_init();
}
