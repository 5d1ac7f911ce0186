//! The public exit codes.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done, whatever the figures.
    Done,
    /// 1: could not measure, or could not execute the command.
    Failed,
    /// 2: bad command line.
    Usage,
    /// 3: an assertion of a plan does not hold.
    Broken,
    /// 4: a checked figure is impossible.
    Impossible,
    /// 128 + the signal: interrupted; what was measured is printed.
    Interrupted(u8),
    /// The exit code of a stand-in or another program.
    Code(u8),
}

impl Exit {
    /// The codes of our own commands, and what they mean.
    pub(crate) const MEANINGS: &[(&str, &str)] = &[
        ("0", "measured, whatever the result"),
        ("1", "could not measure"),
        ("2", "bad command line or plan"),
        ("3", "an assertion of the plan failed"),
        ("4", "a checked figure is impossible"),
        ("130, 143", "interrupted: the partial result is printed and archived"),
    ];
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => Self::SUCCESS,
            Exit::Failed => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Broken => Self::from(3),
            Exit::Impossible => Self::from(4),
            Exit::Code(code) => Self::from(code),
            Exit::Interrupted(signal) => Self::from(128_u8.saturating_add(signal)),
        }
    }
}
