//! Mistakes in a file, with their positions.

use std::fmt;

/// Position of a mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourcePosition {
    /// In a file.
    File {
        /// Index among the files that were read together, from 0.
        file: usize,
        /// Line number, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// In a setting of the command line, as typed.
    Override(String),
}

impl SourcePosition {
    /// The start of the first file, for mistakes without a better position.
    pub const START: Self = Self::File { file: 0, line: 1, column: 1 };
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Position.
    pub place: SourcePosition,
    /// What is wrong, and how to correct it.
    pub text: String,
}

/// The mistakes found so far.
///
/// A file can be wrong in every line. The first [`Mistakes::MAX_KEPT`] are kept as texts, all are counted.
#[derive(Debug, Default)]
pub struct Mistakes {
    kept: Vec<Mistake>,
    count: usize,
}

impl Mistakes {
    /// Further mistakes are only counted: nobody reads that many at once.
    pub const MAX_KEPT: usize = 50;

    /// Adds a mistake.
    pub fn add(&mut self, place: &SourcePosition, text: impl Into<String>) {
        self.add_with(place, || text.into());
    }

    /// Adds a mistake whose text is expensive to create, such as the search for a similar name.
    pub fn add_with(&mut self, place: &SourcePosition, text: impl FnOnce() -> String) {
        self.count += 1;
        if !self.is_full() {
            self.kept.push(Mistake { place: place.clone(), text: text() });
        }
    }

    /// Adds the mistakes of `others`.
    pub fn append(&mut self, others: Self) {
        self.count += others.count;
        let room = Self::MAX_KEPT.saturating_sub(self.kept.len());
        self.kept.extend(others.kept.into_iter().take(room));
    }

    /// Whether there are no mistakes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Number of mistakes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether further mistakes are only counted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kept.len() >= Self::MAX_KEPT
    }

    /// The kept mistakes, without duplicates, in the order of the files, those of the command line last. If
    /// others were only counted, a last entry gives their number.
    #[must_use]
    pub fn in_order(self) -> Vec<Mistake> {
        let left_out = self.count - self.kept.len();
        let mut mistakes = self.kept;
        mistakes.sort();
        mistakes.dedup();
        if let Some(last) = mistakes.last().filter(|_| left_out > 0) {
            let text = format!("and {} more mistakes; correct these first", grouped(left_out));
            mistakes.push(Mistake { place: last.place.clone(), text });
        }
        mistakes
    }
}

/// A file that cannot be used: every mistake found, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileMistakes {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// At least one mistake.
    pub mistakes: Vec<Mistake>,
}

impl FileMistakes {
    /// The mistakes in the file with this name.
    #[must_use]
    pub fn new(file: &str, mistakes: Mistakes) -> Self {
        Self { file: file.to_owned(), mistakes: mistakes.in_order() }
    }
}

impl fmt::Display for FileMistakes {
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

/// Formats a number with separators, such as `29,980`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Finds line and column of a byte offset in a text.
#[derive(Debug)]
pub struct LineIndex<'t> {
    text: &'t str,
    file: usize,
    /// Byte offset of the start of each line.
    starts: Vec<usize>,
    /// Characters before every [`STRIDE`]th byte, so that columns of long lines are found quickly.
    counts: Vec<usize>,
}

/// Bytes between two entries of `counts`.
const STRIDE: usize = 256;

impl<'t> LineIndex<'t> {
    /// The lines of the text of the file with index `file`.
    #[must_use]
    pub fn new(text: &'t str, file: usize) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let mut counts = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut count = 0;
        for block in text.as_bytes().chunks(STRIDE) {
            counts.push(count);
            count += characters(block);
        }
        Self { text, file, starts, counts }
    }

    /// The position of the byte `offset`.
    #[must_use]
    pub fn place(&self, offset: usize) -> SourcePosition {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let column = self.characters_before(offset).saturating_sub(self.characters_before(start)) + 1;
        SourcePosition::File { file: self.file, line, column }
    }

    /// Number of characters that start before the byte `offset`. Counts at most [`STRIDE`] bytes.
    fn characters_before(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        let block = offset / STRIDE;
        let (Some(before), Some(rest)) =
            (self.counts.get(block), self.text.as_bytes().get(block * STRIDE..offset))
        else {
            // The end of a text that fills its last block.
            return self.text.chars().count();
        };
        before + characters(rest)
    }
}

/// Number of characters that start in some bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: usize, column: usize) -> SourcePosition {
        SourcePosition::File { file: 0, line, column }
    }

    #[test]
    fn lines_and_columns_are_counted_from_one_and_in_characters() {
        let lines = LineIndex::new("ab\nü = 1\n", 0);
        assert_eq!(lines.place(0), place(1, 1));
        assert_eq!(lines.place(2), place(1, 3), "the end of a line");
        assert_eq!(lines.place(3), place(2, 1));
        assert_eq!(lines.place(6), place(2, 3), "after a letter of two bytes");
        assert_eq!(lines.place(10), place(3, 1), "the end of the file");
    }

    #[test]
    fn a_column_of_a_long_line_is_the_same_as_when_it_is_counted_from_its_start() {
        let text = format!("first\n{}end", "aü€🙂".repeat(400));
        let lines = LineIndex::new(&text, 0);
        for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let before = &text[..offset];
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            let expected = place(before.matches('\n').count() + 1, before[start..].chars().count() + 1);
            assert_eq!(lines.place(offset), expected, "byte {offset}");
        }
        let full = "x".repeat(2 * STRIDE);
        assert_eq!(LineIndex::new(&full, 0).place(full.len()), place(1, 2 * STRIDE + 1));
    }

    #[test]
    fn of_thirty_thousand_mistakes_the_first_are_reported_and_the_others_counted() {
        let mut mistakes = Mistakes::default();
        let mut texts = 0;
        for line in 1..=30_000 {
            mistakes.add_with(&place(line, 1), || {
                texts += 1;
                "unknown key".to_owned()
            });
        }
        assert_eq!((texts, mistakes.len()), (Mistakes::MAX_KEPT, 30_000));
        let mut more = Mistakes::default();
        more.add(&place(1, 1), "another");
        more.append(mistakes);
        let ordered = more.in_order();
        assert_eq!(ordered.len(), Mistakes::MAX_KEPT + 1);
        assert_eq!(ordered.last().unwrap().text, "and 29,951 more mistakes; correct these first");
    }

    #[test]
    fn mistakes_are_reported_in_the_order_of_the_files_and_once() {
        let mut mistakes = Mistakes::default();
        mistakes.add(&SourcePosition::Override("a=1".to_owned()), "late");
        mistakes.add(&SourcePosition::File { file: 1, line: 1, column: 1 }, "other");
        mistakes.add(&place(10, 1), "ten");
        mistakes.add(&place(9, 7), "nine");
        mistakes.add(&place(9, 7), "nine");
        let texts: Vec<String> = mistakes.in_order().into_iter().map(|mistake| mistake.text).collect();
        assert_eq!(texts, ["nine", "ten", "other", "late"]);
    }

    #[test]
    fn a_file_reports_its_mistakes_with_file_line_and_column() {
        let mut mistakes = Mistakes::default();
        mistakes.add(&SourcePosition::Override("a=1".to_owned()), "late");
        mistakes.add(&place(10, 1), "ten");
        mistakes.add(&place(9, 7), "nine");
        let error = FileMistakes::new("net.toml", mistakes);
        assert_eq!(error.to_string(), "net.toml:9:7: nine\nnet.toml:10:1: ten\n--set a=1: late");
    }
}
