//! A reading while it is written down, test by test.

use linerate_model::ForeignText;
use linerate_model::import::{Claim, Figure, ForeignTest, Quantity, Reading, Scope, Unread};

use super::line::Line;
use super::number::Printed;

/// Most remarks about what could not be read; the last one says that there are more.
const MAX_REMARKS: usize = 200;

/// Most intervals that are kept of one file: a day at one a second. Its totals are kept all the same.
pub(crate) const MAX_INTERVALS: usize = 100_000;

/// Most tests of one file.
pub(crate) const MAX_TESTS: usize = 10_000;

/// What a reader has understood so far.
#[derive(Debug, Default)]
pub(crate) struct ParsedTest {
    reading: Reading,
    open: Option<ForeignTest>,
    /// Interval claims so far.
    intervals: usize,
    tests_left_out: bool,
}

impl ParsedTest {
    pub(crate) fn new(tool: &str) -> Self {
        Self { reading: Reading { tool: tool.into(), ..Reading::default() }, ..Self::default() }
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
            if self.reading.tests.len() < MAX_TESTS {
                self.reading.tests.push(test);
            } else {
                if !std::mem::replace(&mut self.tests_left_out, true) {
                    let line = test.claims.first().map_or(0, |claim| claim.line);
                    let why = format!("at most {MAX_TESTS} tests of a file are read, not those from here on");
                    self.unread(line, None, format!("{why}; cut it into pieces"));
                }
            }
        }
    }

    /// A whole test.
    pub(crate) fn add(&mut self, test: ForeignTest) {
        self.open = Some(test);
        self.close();
    }

    pub(crate) fn version(&mut self, version: &str) {
        if self.reading.version.is_none() {
            self.reading.version = Some(version.into());
        }
    }

    /// Notes what a line says; a line without a figure says nothing.
    pub(crate) fn claim(&mut self, claim: Claim) {
        if claim.figures.is_empty() {
            return;
        }
        if claim.scope == Scope::Interval {
            self.intervals += 1;
            if self.intervals > MAX_INTERVALS {
                if self.intervals == MAX_INTERVALS + 1 {
                    let why = format!(
                        "at most {MAX_INTERVALS} intervals of a file are read, not those from here on"
                    );
                    self.unread(claim.line, None, format!("{why}; cut it into pieces"));
                }
                return;
            }
        }
        self.test().claims.push(claim);
    }

    pub(crate) fn unread(&mut self, line: u32, column: Option<u32>, why: impl Into<ForeignText>) {
        let remarks = &mut self.reading.unread;
        if remarks.len() < MAX_REMARKS {
            remarks.push(Unread { line, column, why: why.into() });
        } else if remarks.len() == MAX_REMARKS {
            remarks.push(Unread { line, column, why: "from here on more could not be read".into() });
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
pub(crate) fn figure(quantity: Quantity, printed: Printed, words: impl Into<ForeignText>) -> Figure {
    Figure { quantity, value: printed.value, step: printed.step, printed: words.into() }
}

/// A claim about a line.
pub(crate) fn of_line(line: Line<'_>) -> Claim {
    Claim { line: line.number, quote: line.quote(), ..Claim::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(line: u32, scope: Scope) -> Claim {
        let figures = vec![Figure { quantity: Quantity::Bytes, value: 1.0, step: 0.0, printed: "1".into() }];
        Claim { line, scope, figures, ..Claim::default() }
    }

    #[test]
    fn of_too_many_intervals_the_first_are_kept_and_every_total() {
        let mut parsed = ParsedTest::new("iperf3");
        for line in 0..MAX_INTERVALS as u32 + 3 {
            parsed.claim(claim(line, Scope::Interval));
        }
        parsed.claim(claim(7, Scope::Total));
        let reading = parsed.finish().unwrap();
        assert_eq!(reading.tests[0].claims.len(), MAX_INTERVALS + 1);
        assert_eq!(reading.tests[0].claims.last().unwrap().scope, Scope::Total);
        assert_eq!(reading.unread.len(), 1);
        assert!(reading.unread[0].why.contains("at most 100000 intervals"), "{:?}", reading.unread[0]);
    }

    #[test]
    fn of_too_many_tests_the_first_are_kept() {
        let mut parsed = ParsedTest::new("linerate");
        for line in 0..MAX_TESTS as u32 + 3 {
            parsed.add(ForeignTest { claims: vec![claim(line, Scope::Total)], ..ForeignTest::default() });
        }
        let reading = parsed.finish().unwrap();
        assert_eq!((reading.tests.len(), reading.unread.len()), (MAX_TESTS, 1));
    }
}
