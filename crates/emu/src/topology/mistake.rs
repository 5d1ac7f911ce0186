//! What is wrong with a description, and where.

use std::fmt;

/// Where a mistake stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the file.
    File {
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
    },
    /// In a setting of the command line, as typed.
    Override(String),
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to do about it.
    pub text: String,
}

/// A file that describes no network: everything that was found wrong with it, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct TopologyError {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// At least one mistake.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for TopologyError {
    /// One line a mistake: `FILE:LINE:COLUMN: text`, or `--set KEY=VALUE: text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { place, text }) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match place {
                Place::File { line, column } => write!(f, "{}:{line}:{column}: {text}", self.file)?,
                Place::Override(typed) => write!(f, "--set {typed}: {text}")?,
            }
        }
        Ok(())
    }
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Notes a mistake.
    pub(super) fn add(&mut self, place: &Place, text: impl Into<String>) {
        self.0.push(Mistake { place: place.clone(), text: text.into() });
    }

    /// The value if there were no mistakes, all mistakes otherwise.
    pub(super) fn or<T>(self, file: &str, value: T) -> Result<T, TopologyError> {
        if self.0.is_empty() { Ok(value) } else { Err(self.into_error(file)) }
    }

    /// All mistakes in the order of the file, those of the command line last.
    pub(super) fn into_error(self, file: &str) -> TopologyError {
        let mut mistakes = self.0;
        mistakes.sort();
        mistakes.dedup();
        TopologyError { file: file.to_owned(), mistakes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Finds line and column of a byte in a text.
pub(super) struct Lines<'t> {
    text: &'t str,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The place of byte `offset`.
    pub(super) fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Place::File { line, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_counted_from_one_and_in_characters() {
        let lines = Lines::new("ab\nü = 1\n");
        assert_eq!(lines.place(0), Place::File { line: 1, column: 1 });
        assert_eq!(lines.place(2), Place::File { line: 1, column: 3 }, "the end of a line");
        assert_eq!(lines.place(3), Place::File { line: 2, column: 1 });
        assert_eq!(lines.place(6), Place::File { line: 2, column: 3 }, "after a letter of two bytes");
        assert_eq!(lines.place(10), Place::File { line: 3, column: 1 }, "the end of the file");
    }

    #[test]
    fn mistakes_are_told_in_the_order_of_the_file_and_once() {
        let mut mistakes = Mistakes::default();
        mistakes.add(&Place::Override("a=1".to_owned()), "late");
        mistakes.add(&Place::File { line: 10, column: 1 }, "ten");
        mistakes.add(&Place::File { line: 9, column: 7 }, "nine");
        mistakes.add(&Place::File { line: 9, column: 7 }, "nine");
        let error = mistakes.or("net.toml", ()).unwrap_err();
        assert_eq!(error.to_string(), "net.toml:9:7: nine\nnet.toml:10:1: ten\n--set a=1: late");
    }
}
