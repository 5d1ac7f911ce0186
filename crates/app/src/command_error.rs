//! Why a command ends early.

use std::error::Error;
use std::fmt::Display;

use linerate_archive::ArchiveError;

use crate::exit::Exit;
use crate::print;

/// An error message, and the exit code.
#[derive(Debug)]
pub(crate) struct CommandError {
    text: String,
    exit: Exit,
}

impl CommandError {
    /// The command line, or a file that it names, has to be corrected.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self { text: text.to_string(), exit: Exit::Usage }
    }

    /// The command cannot be executed.
    pub(crate) fn failed(text: impl Display) -> Self {
        Self { text: text.to_string(), exit: Exit::Failed }
    }

    /// One of both.
    pub(crate) fn of(needs_correction: bool, text: impl Display) -> Self {
        if needs_correction { Self::usage(text) } else { Self::failed(text) }
    }

    /// The message alone, to pass it to another process.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Prints the message, and returns the exit code. A file may have several errors, one per line; lines quoted
    /// from it follow their message.
    pub(crate) fn report(self) -> Exit {
        for line in self.text.lines() {
            if line.starts_with("    ") { print::note(line) } else { print::error(line) }
        }
        self.exit
    }
}

/// An error that was already printed.
impl From<Exit> for CommandError {
    fn from(exit: Exit) -> Self {
        Self { text: String::new(), exit }
    }
}

#[cfg(feature = "full")]
impl From<linerate_fleet::FleetError> for CommandError {
    fn from(error: linerate_fleet::FleetError) -> Self {
        let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
        Self::of(error.needs_correction(), format!("{error}{cause}"))
    }
}

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        let cause = error.source().map(|cause| format!(" ({cause})")).unwrap_or_default();
        Self::failed(format!("{error}{cause}"))
    }
}
