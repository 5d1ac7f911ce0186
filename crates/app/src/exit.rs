//! The exit codes, which are public.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done, whatever the figures.
    Done,
    /// 1: could not measure, or could not do what was asked.
    Failed,
    /// 2: bad command line.
    Usage,
    /// 3: an assertion of a plan does not hold.
    Broken,
    /// 4: a figure that was checked cannot be true.
    Impossible,
    /// 128 + the signal: interrupted, what was measured is printed.
    Interrupted(u8),
    /// What a program that took the place of this one would have ended with.
    Code(u8),
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
