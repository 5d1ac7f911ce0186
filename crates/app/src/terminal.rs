//! Whether somebody watches, and how wide their window is.

use std::io::IsTerminal;

use linerate_report::View;

/// How text on stdout shall look: colour and the window's width on a terminal, plain and of fixed width elsewhere.
pub(crate) fn stdout_view() -> View {
    let terminal = std::io::stdout().is_terminal();
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|_| terminal);
    // The choice of `anstream` honours NO_COLOR, CLICOLOR and TERM=dumb.
    let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    View { width: width.unwrap_or(100), colour: colour && terminal, kept: None, explain: false }
}

/// Whether stdout is a terminal.
pub(crate) fn printed() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stderr is a terminal: progress is shown only there.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Width of the terminal that stderr is.
pub(crate) fn stderr_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}
