//! A tool and its stand-in, on a host of the test.

use std::path::Path;
use std::process::Command;

use super::{Done, Netns, Process, TIMEOUT};

/// The implementation of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The real program.
    Real,
    /// Our stand-in for it.
    Ours,
}

/// The names of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolNames {
    /// Program name.
    pub(crate) program: &'static str,
    /// Name of the command in `linerate`.
    pub(crate) stand_in: &'static str,
}

pub(crate) const NUTTCP: ToolNames = ToolNames { program: "nuttcp", stand_in: "nuttcp" };
pub(crate) const NETPIPE: ToolNames = ToolNames { program: "NPtcp", stand_in: "netpipe" };
pub(crate) const TTCP: ToolNames = ToolNames { program: "ttcp", stand_in: "ttcp" };
pub(crate) const IPERF: ToolNames = ToolNames { program: "iperf", stand_in: "iperf" };
pub(crate) const NTTTCP: ToolNames = ToolNames { program: "ntttcp", stand_in: "ntttcp" };
pub(crate) const NETPERF: ToolNames = ToolNames { program: "netperf", stand_in: "netperf" };
pub(crate) const NETSERVER: ToolNames = ToolNames { program: "netserver", stand_in: "netserver" };

impl ToolNames {
    /// Whether the real program is in PATH.
    pub(crate) fn is_installed(self) -> bool {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(self.program).is_file())
    }

    /// Its command line.
    pub(crate) fn command(self, whose: Program, on: &Netns, args: &[&str]) -> Command {
        match whose {
            Program::Real => on.exec(self.program, args),
            Program::Ours => on.exec(env!("CARGO_BIN_EXE_linerate"), &[&[self.stand_in], args].concat()),
        }
    }

    pub(crate) fn start(self, whose: Program, on: &Netns, args: &[&str]) -> Process {
        Process::start(self.command(whose, on, args))
    }

    /// The same in a folder, for tools that write to the working directory.
    pub(crate) fn start_in(self, whose: Program, on: &Netns, folder: &Path, args: &[&str]) -> Process {
        let mut command = self.command(whose, on, args);
        command.current_dir(folder);
        Process::start(command)
    }

    /// Runs it to its end.
    pub(crate) fn ask(self, whose: Program, on: &Netns, args: &[&str]) -> Done {
        self.start(whose, on, args).finish(TIMEOUT)
    }
}

/// A text with every number replaced by `#` and white space merged.
pub(crate) fn form(text: &str) -> String {
    let mut form = String::new();
    for word in text.split_whitespace() {
        if !form.is_empty() {
            form.push(' ');
        }
        let mut in_number = false;
        for (at, letter) in word.char_indices() {
            let next_is_digit =
                word[at + letter.len_utf8()..].starts_with(|next: char| next.is_ascii_digit());
            // A dash is a sign before a number, and separates two numbers after one.
            let mark = if in_number { '.' } else { '-' };
            let numeric = letter.is_ascii_digit() || (letter == mark && next_is_digit);
            if !numeric {
                form.push(letter);
            } else if !in_number {
                form.push('#');
            }
            in_number = numeric;
        }
    }
    form
}

/// The number before a word of a line.
pub(crate) fn before(line: &str, word: &str) -> f64 {
    let (rest, _) = line.split_once(word).unwrap_or_else(|| panic!("no {word:?} in {line:?}"));
    let number = rest.rsplit([' ', '=', '\n']).find(|word| !word.is_empty()).unwrap_or_default();
    number.parse().unwrap_or_else(|error| panic!("{number:?} before {word:?}: {error}: {line:?}"))
}
