//! Output to stderr: errors and notes besides the result.
//!
//! Write errors, such as a closed pipe or a full disk, are ignored.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::sync::OnceLock;

use clap::builder::StyledStr;
use linerate_model::foreign_text;
use linerate_report::message::wrap_message;
use linerate_runner::ServiceManager;
use tracing_subscriber::EnvFilter;

use crate::terminal;

/// Prints an error on one line.
pub(crate) fn error(text: impl Display) {
    put("error:", anstyle::AnsiColor::Red, ERROR, &text);
}

/// Prints an error of the parser, which repeats what was typed. Typed control sequences cannot be told from the
/// parser's own, so with them, the text has no styles.
pub(crate) fn usage_error(text: &StyledStr, typed: &[OsString]) {
    let is_safe = |word: &OsString| foreign_text::one_line(&word.to_string_lossy()) == word.to_string_lossy();
    let _ = match typed.iter().all(is_safe) {
        true => write!(anstream::stderr().lock(), "{}", text.ansi()),
        false => write!(anstream::stderr().lock(), "{}", foreign_text::lines(&text.to_string())),
    };
}

/// Prints a warning.
pub(crate) fn warning(text: impl Display) {
    put("warning:", anstyle::AnsiColor::Yellow, WARNING, &text);
}

/// Prints a plain line.
pub(crate) fn note(text: impl Display) {
    let text = with_priority(INFORMATION, fitted(0, &text.to_string()));
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Priorities of syslog(3).
const ERROR: u8 = 3;
const WARNING: u8 = 4;
const INFORMATION: u8 = 6;

/// The text with its priority at the start of each line, if it goes to a journal.
fn with_priority(priority: u8, text: String) -> String {
    static JOURNAL: OnceLock<bool> = OnceLock::new();
    match *JOURNAL.get_or_init(|| ServiceManager.keeps_a_journal()) {
        true => text.lines().map(|line| format!("<{priority}>{line}")).collect::<Vec<_>>().join("\n"),
        false => text,
    }
}

fn put(head: &str, colour: anstyle::AnsiColor, level: u8, text: &dyn Display) {
    let text = fitted(head.len() + 1, &text.to_string());
    let text = format!("{}{head}{} {text}", style(colour), anstyle::Reset.render());
    let _ = writeln!(anstream::stderr().lock(), "{}", with_priority(level, text));
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
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time();
    // Another one is there already in tests.
    let _ = log.with_target(false).with_ansi(false).try_init();
}
