//! Whether output goes to a terminal, and its width.

use std::io::IsTerminal;

use linerate_report::TextLayout;
use linerate_report::format::PLAN_WIDTH;
use linerate_report::page::Page;

/// The view for stdout: colour and the terminal's width, or plain and of fixed width if it is not a terminal.
pub(crate) fn stdout_view() -> TextLayout {
    let terminal = std::io::stdout().is_terminal();
    let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|_| terminal);
    // `anstream` respects NO_COLOR, CLICOLOR and TERM=dumb.
    let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
    TextLayout {
        width: width.unwrap_or(100),
        colour: colour && terminal,
        kept: None,
        explain: false,
        all_streams: false,
    }
}

/// The view of a plan for stdout. Tables may be wide in a file or another program.
pub(crate) fn plan_view() -> TextLayout {
    let view = stdout_view();
    if printed() { view } else { TextLayout { width: PLAN_WIDTH, ..view } }
}

/// An empty page for stdout.
pub(crate) fn stdout_page() -> Page {
    let view = stdout_view();
    Page::new(view.width, view.colour)
}

/// Whether stdout is a terminal.
pub(crate) fn printed() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stderr is a terminal, which is required for progress output.
pub(crate) fn watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Width of the terminal on stderr; 80 if unknown.
pub(crate) fn stderr_width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}
