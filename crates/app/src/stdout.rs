//! Documents on stdout.

use std::io::{self, ErrorKind, Write};

use crate::exit::Exit;
use crate::print;

/// Clears the terminal before the next page; elsewhere pages follow one another.
pub(crate) fn clear() {
    use std::io::IsTerminal;
    if io::stdout().is_terminal() {
        let _ = io::stdout().write_all(b"\x1b[H\x1b[2J");
    }
}

/// Writes to stdout; a closed pipe is not an error.
pub(crate) fn print(text: &[u8]) -> Exit {
    let mut out = io::stdout().lock();
    printed(out.write_all(text).and_then(|()| out.flush()))
}

/// What it means that stdout was written or not.
pub(crate) fn printed(written: io::Result<()>) -> Exit {
    match written {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => {
            print::error(format!("the output could not be printed: {error}"));
            Exit::Failed
        }
    }
}

/// Writes a JSON document to stdout, as [`print`] does.
pub(crate) fn print_json(document: &impl serde::Serialize) -> Exit {
    print_json_text(serde_json::to_string_pretty(document))
}

/// The same on one line.
pub(crate) fn print_json_line(document: &impl serde::Serialize) -> Exit {
    print_json_text(serde_json::to_string(document))
}

fn print_json_text(text: serde_json::Result<String>) -> Exit {
    match text {
        Ok(text) => print(format!("{text}\n").as_bytes()),
        Err(error) => {
            print::error(format!("the document could not be written as JSON: {error}"));
            Exit::Failed
        }
    }
}
