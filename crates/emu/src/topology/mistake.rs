//! The mistakes in a description, and their positions.

use std::fmt;

use linerate_config::Mistakes;
pub use linerate_config::{Mistake, SourcePosition};

/// A file that does not describe a valid network: every mistake found, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TopologyError {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// At least one mistake.
    pub mistakes: Vec<Mistake>,
}

impl TopologyError {
    pub(super) fn new(file: &str, mistakes: Mistakes) -> Self {
        Self { file: file.to_owned(), mistakes: mistakes.in_order() }
    }
}

impl fmt::Display for TopologyError {
    /// One line per mistake: `FILE:LINE:COLUMN: text`, or `--set KEY=VALUE: text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { place, text }) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match place {
                SourcePosition::File { line, column, .. } => {
                    write!(f, "{}:{line}:{column}: {text}", self.file)?
                }
                SourcePosition::Override(typed) => write!(f, "--set {typed}: {text}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_reported_in_the_order_of_the_file_and_once() {
        let mut mistakes = Mistakes::default();
        mistakes.add(&SourcePosition::Override("a=1".to_owned()), "late");
        mistakes.add(&SourcePosition::File { file: 0, line: 10, column: 1 }, "ten");
        mistakes.add(&SourcePosition::File { file: 0, line: 9, column: 7 }, "nine");
        mistakes.add(&SourcePosition::File { file: 0, line: 9, column: 7 }, "nine");
        let error = TopologyError::new("net.toml", mistakes);
        assert_eq!(error.to_string(), "net.toml:9:7: nine\nnet.toml:10:1: ten\n--set a=1: late");
    }
}
