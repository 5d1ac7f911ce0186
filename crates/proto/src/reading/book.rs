//! A reading while it is written down, test by test.

use linerate_model::reading::{Claim, Figure, ForeignTest, Quantity, Reading, Unread};

use super::line::Line;
use super::number::Printed;

/// Most remarks about what could not be read; the last one says that there are more.
const MOST_REMARKS: usize = 200;

/// What a reader has understood so far.
#[derive(Debug, Default)]
pub(crate) struct Book {
    reading: Reading,
    open: Option<ForeignTest>,
}

impl Book {
    pub(crate) fn new(tool: &str) -> Self {
        Self { reading: Reading { tool: tool.to_owned(), ..Reading::default() }, open: None }
    }

    /// The test that is being read; the first figure of a file may come without a beginning.
    pub(crate) fn test(&mut self) -> &mut ForeignTest {
        self.open.get_or_insert_default()
    }

    /// The test that is being read, if there is one.
    pub(crate) fn current(&self) -> Option<&ForeignTest> {
        self.open.as_ref()
    }

    /// Whether the open test has claimed anything.
    pub(crate) fn has_claims(&self) -> bool {
        self.open.as_ref().is_some_and(|test| !test.claims.is_empty())
    }

    /// The open test is over; without a claim or an error it was none.
    pub(crate) fn close(&mut self) {
        if let Some(test) = self.open.take().filter(|test| !test.claims.is_empty() || test.error.is_some()) {
            self.reading.tests.push(test);
        }
    }

    /// A whole test.
    pub(crate) fn add(&mut self, test: ForeignTest) {
        self.open = Some(test);
        self.close();
    }

    pub(crate) fn version(&mut self, version: &str) {
        if self.reading.version.is_none() {
            self.reading.version = Some(version.to_owned());
        }
    }

    /// Notes what a line says; a line without a figure says nothing.
    pub(crate) fn claim(&mut self, claim: Claim) {
        if !claim.figures.is_empty() {
            self.test().claims.push(claim);
        }
    }

    pub(crate) fn unread(&mut self, line: u32, column: Option<u32>, why: impl Into<String>) {
        let remarks = &mut self.reading.unread;
        if remarks.len() < MOST_REMARKS {
            remarks.push(Unread { line, column, why: why.into() });
        } else if remarks.len() == MOST_REMARKS {
            remarks.push(Unread { line, column, why: "from here on more could not be read".to_owned() });
        }
    }

    /// The number of a part of a line, or a remark about it.
    pub(crate) fn number(&mut self, line: Line<'_>, part: &str, three: bool) -> Option<Printed> {
        match super::number::number(part, three) {
            Ok(printed) => Some(printed),
            Err(why) => {
                self.unread(line.number, line.column(part), why);
                None
            }
        }
    }

    /// What was read; absent when that is nothing.
    pub(crate) fn finish(&mut self) -> Option<Reading> {
        self.close();
        let fresh = Self::new(&self.reading.tool);
        let reading = std::mem::replace(self, fresh).reading;
        (!reading.tests.is_empty() || !reading.unread.is_empty()).then_some(reading)
    }
}

/// A figure as printed.
pub(crate) fn figure(quantity: Quantity, printed: Printed, words: impl Into<String>) -> Figure {
    Figure { quantity, value: printed.value, step: printed.step, printed: words.into() }
}

/// A claim about a line.
pub(crate) fn of_line(line: Line<'_>) -> Claim {
    Claim { line: line.number, quote: line.quote(), ..Claim::default() }
}
