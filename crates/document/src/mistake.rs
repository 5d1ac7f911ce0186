//! What is wrong with a file, and where.

/// Where a mistake stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a file.
    File {
        /// Which file of those that were read together, counted from 0.
        file: usize,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters.
        column: usize,
    },
    /// In a setting of the command line, as typed.
    Override(String),
}

impl Place {
    /// The beginning of the first file: where a mistake stands that has no better place.
    pub const START: Self = Self::File { file: 0, line: 1, column: 1 };
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to do about it.
    pub text: String,
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// Notes a mistake.
    pub fn add(&mut self, place: &Place, text: impl Into<String>) {
        self.0.push(Mistake { place: place.clone(), text: text.into() });
    }

    /// Adds those found elsewhere.
    pub fn append(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// True as long as nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// All of them once, in the order of the files, those of the command line last.
    #[must_use]
    pub fn in_order(self) -> Vec<Mistake> {
        let mut mistakes = self.0;
        mistakes.sort();
        mistakes.dedup();
        mistakes
    }
}

/// Finds line and column of a byte in a text.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    file: usize,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// The lines of the text of file number `file`.
    #[must_use]
    pub fn new(text: &'t str, file: usize) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, file, starts }
    }

    /// The place of byte `offset`.
    #[must_use]
    pub fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Place::File { file: self.file, line, column: before.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(line: usize, column: usize) -> Place {
        Place::File { file: 0, line, column }
    }

    #[test]
    fn lines_and_columns_are_counted_from_one_and_in_characters() {
        let lines = Lines::new("ab\nü = 1\n", 0);
        assert_eq!(lines.place(0), place(1, 1));
        assert_eq!(lines.place(2), place(1, 3), "the end of a line");
        assert_eq!(lines.place(3), place(2, 1));
        assert_eq!(lines.place(6), place(2, 3), "after a letter of two bytes");
        assert_eq!(lines.place(10), place(3, 1), "the end of the file");
    }

    #[test]
    fn mistakes_are_told_in_the_order_of_the_files_and_once() {
        let mut mistakes = Mistakes::default();
        mistakes.add(&Place::Override("a=1".to_owned()), "late");
        mistakes.add(&Place::File { file: 1, line: 1, column: 1 }, "other");
        mistakes.add(&place(10, 1), "ten");
        mistakes.add(&place(9, 7), "nine");
        mistakes.add(&place(9, 7), "nine");
        let texts: Vec<String> = mistakes.in_order().into_iter().map(|mistake| mistake.text).collect();
        assert_eq!(texts, ["nine", "ten", "other", "late"]);
    }
}
