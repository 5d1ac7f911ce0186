//! The result of a parser while it is built, test by test.

use linerate_model::ForeignText;
use linerate_model::import::{Claim, ClaimScope, Figure, ForeignResult, ForeignTest, Quantity, Unread};

use super::line::NumberedLine;
use super::number::Printed;

/// Most remarks about unreadable parts. The last one states that there are more.
const MAX_REMARKS: usize = 200;

/// Most intervals kept of one file: a day with one per second. Its totals are kept in any case.
pub(crate) const MAX_INTERVALS: usize = 100_000;

/// Most tests of one file.
pub(crate) const MAX_TESTS: usize = 10_000;

/// What a parser has understood so far.
#[derive(Debug, Default)]
pub(crate) struct ParsedTest {
    reading: ForeignResult,
    open: Option<ForeignTest>,
    /// Number of interval claims so far.
    intervals: usize,
    tests_left_out: bool,
}

impl ParsedTest {
    pub(crate) fn new(tool: &str) -> Self {
        Self { reading: ForeignResult { tool: tool.into(), ..ForeignResult::default() }, ..Self::default() }
    }

    /// The current test. The first figure of a file may come without a header, so a test is created if there is
    /// none.
    pub(crate) fn test(&mut self) -> &mut ForeignTest {
        self.open.get_or_insert_default()
    }

    /// The current test, if there is one.
    pub(crate) fn current(&self) -> Option<&ForeignTest> {
        self.open.as_ref()
    }

    /// Whether the current test has claims.
    pub(crate) fn has_claims(&self) -> bool {
        self.open.as_ref().is_some_and(|test| !test.claims.is_empty())
    }

    /// Ends the current test. It is discarded if it has neither a claim nor an error.
    pub(crate) fn close(&mut self) {
        if let Some(test) = self.open.take().filter(|test| !test.claims.is_empty() || test.error.is_some()) {
            if self.reading.tests.len() < MAX_TESTS {
                self.reading.tests.push(test);
            } else {
                if !std::mem::replace(&mut self.tests_left_out, true) {
                    let line = test.claims.first().map_or(0, |claim| claim.line);
                    let why = format!(
                        "only the first {MAX_TESTS} tests of a file are read; the rest from \
                                       here on is ignored"
                    );
                    self.unread(line, None, format!("{why}; split the file"));
                }
            }
        }
    }

    /// Adds a complete test.
    pub(crate) fn add(&mut self, test: ForeignTest) {
        self.open = Some(test);
        self.close();
    }

    pub(crate) fn version(&mut self, version: &str) {
        if self.reading.version.is_none() {
            self.reading.version = Some(version.into());
        }
    }

    /// Adds a claim, unless it has no figures.
    pub(crate) fn claim(&mut self, claim: Claim) {
        if claim.figures.is_empty() {
            return;
        }
        if claim.scope == ClaimScope::Interval {
            self.intervals += 1;
            if self.intervals > MAX_INTERVALS {
                if self.intervals == MAX_INTERVALS + 1 {
                    let why = format!(
                        "only the first {MAX_INTERVALS} intervals of a file are read; the rest from here on \
                         is ignored"
                    );
                    self.unread(claim.line, None, format!("{why}; split the file"));
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
            remarks.push(Unread { line, column, why: "further lines from here on could not be read".into() });
        }
    }

    /// Parses a number in a part of a line; adds a remark if that fails.
    pub(crate) fn number(&mut self, line: NumberedLine<'_>, part: &str, three: bool) -> Option<Printed> {
        match super::number::number(part, three) {
            Ok(printed) => Some(printed),
            Err(why) => {
                self.unread(line.number, line.column(part), why);
                None
            }
        }
    }

    /// Returns the result; absent if nothing was parsed.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        self.close();
        let fresh = Self::new(&self.reading.tool);
        let reading = std::mem::replace(self, fresh).reading;
        (!reading.tests.is_empty() || !reading.unread.is_empty()).then_some(reading)
    }
}

/// Makes a figure with its printed text.
pub(crate) fn figure(quantity: Quantity, printed: Printed, words: impl Into<ForeignText>) -> Figure {
    Figure { quantity, value: printed.value, step: printed.step, printed: words.into() }
}

/// Makes a claim that quotes a line.
pub(crate) fn of_line(line: NumberedLine<'_>) -> Claim {
    Claim { line: line.number, quote: line.quote(), ..Claim::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(line: u32, scope: ClaimScope) -> Claim {
        let figures = vec![Figure { quantity: Quantity::Bytes, value: 1.0, step: 0.0, printed: "1".into() }];
        Claim { line, scope, figures, ..Claim::default() }
    }

    #[test]
    fn of_too_many_intervals_the_first_are_kept_and_every_total() {
        let mut parsed = ParsedTest::new("iperf3");
        for line in 0..MAX_INTERVALS as u32 + 3 {
            parsed.claim(claim(line, ClaimScope::Interval));
        }
        parsed.claim(claim(7, ClaimScope::Total));
        let reading = parsed.finish().unwrap();
        assert_eq!(reading.tests[0].claims.len(), MAX_INTERVALS + 1);
        assert_eq!(reading.tests[0].claims.last().unwrap().scope, ClaimScope::Total);
        assert_eq!(reading.unread.len(), 1);
        assert!(reading.unread[0].why.contains("only the first 100000 intervals"), "{:?}", reading.unread[0]);
    }

    #[test]
    fn of_too_many_tests_the_first_are_kept() {
        let mut parsed = ParsedTest::new("linerate");
        for line in 0..MAX_TESTS as u32 + 3 {
            parsed
                .add(ForeignTest { claims: vec![claim(line, ClaimScope::Total)], ..ForeignTest::default() });
        }
        let reading = parsed.finish().unwrap();
        assert_eq!((reading.tests.len(), reading.unread.len()), (MAX_TESTS, 1));
    }
}
