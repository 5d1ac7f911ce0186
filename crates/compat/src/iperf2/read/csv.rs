//! `-y C`: one line of comma-separated values per interval.

use linerate_model::import::{Claim, ForeignResult, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Span;

use super::TotalLineFinder;
use crate::import::line::NumberedLine;
use crate::import::number::{is_no_number, number};
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// Parses lines of values.
#[derive(Debug)]
pub(crate) struct Csv {
    parsed: ParsedTest,
    totals: TotalLineFinder<String>,
    /// The addresses of the previous line's connection.
    ends: Option<String>,
}

impl Default for Csv {
    fn default() -> Self {
        Self { parsed: ParsedTest::new("iperf2"), totals: TotalLineFinder::default(), ends: None }
    }
}

/// Number of values in a line about a stream, and in one about datagrams.
const PLAIN: usize = 9;
const DATAGRAMS: usize = 14;

impl Csv {
    /// Parses a line; false if it is not one of these.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>) -> bool {
        let text = line.text.rsplit(char::is_whitespace).next().unwrap_or_default();
        let fields: Vec<&str> = text.split(',').take(DATAGRAMS + 8).collect();
        let stamp = fields[0].split('.').next().unwrap_or_default();
        if stamp.len() != 14 || !stamp.bytes().all(|byte| byte.is_ascii_digit()) || fields.len() < PLAIN {
            return false;
        }
        if ![PLAIN, DATAGRAMS].contains(&fields.len()) || !fields[6].contains('-') {
            let why = "9 or 14 values were expected; the locale may use decimal commas";
            self.parsed.unread(line.number, None, why);
            return true;
        }
        self.row(line, &fields);
        true
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    /// Ends the test.
    pub(crate) fn close(&mut self) {
        self.parsed.close();
        self.totals = TotalLineFinder::default();
        self.ends = None;
    }

    fn row(&mut self, line: NumberedLine<'_>, fields: &[&str]) {
        let interval = fields[6].split_once('-').map(|(from, to)| (number(from, false), number(to, false)));
        let Some((Ok(from), Ok(to))) = interval else {
            self.parsed.unread(
                line.number,
                line.column(fields[6]),
                "start and end of an interval were expected",
            );
            return;
        };
        // The sum has no ports of its own. A new connection after a total is a new test.
        let ends = fields[1..5].join(",");
        let sum = fields[5].starts_with('-');
        let parallel = self.ends.as_ref().is_none_or(|known| *known == ends) || sum;
        let begun = self.parsed.current().is_some_and(|test| {
            test.claims.last().is_some_and(|last| last.start == Some(Span::ZERO) && from.value == 0.0)
        });
        if !parallel && !begun {
            self.close();
        }
        let other = fields[3];
        let test = self.parsed.test();
        test.target.get_or_insert_with(|| other.into());
        test.spec.traffic.udp = fields.len() == DATAGRAMS;
        let at = test.claims.len();
        let key = format!("{ends},{}", fields[5]);
        let scope = self.totals.scope(test, key, from.value, at);
        self.ends = Some(ends);
        let mut claim = Claim {
            scope,
            stream: fields[5].parse().ok(),
            start: Span::from_secs_f64(from.value),
            end: Span::from_secs_f64(to.value),
            ..of_line(line)
        };
        let mut values = vec![(7, Quantity::Bytes, 1.0), (8, Quantity::Bitrate, 1.0)];
        if fields.len() == DATAGRAMS {
            values.extend([
                (9, Quantity::Jitter, 1e-3),
                (10, Quantity::Lost, 1.0),
                (11, Quantity::Packets, 1.0),
                (12, Quantity::LossRatio, 0.01),
                (13, Quantity::OutOfOrder, 1.0),
            ]);
        }
        // The client prints a total of -1 if it has no report of the receiver.
        let sender = fields.get(11).is_some_and(|total| total.starts_with('-'));
        for (at, quantity, factor) in values {
            let text = fields[at];
            let unknown = sender && at >= 9 || is_no_number(text);
            if unknown {
                continue;
            }
            if let Some(value) = self.parsed.number(line, text, true) {
                let value = if quantity == Quantity::Bitrate { value } else { value.exact() };
                claim.figures.push(figure(quantity, value.times(factor), text));
            }
        }
        if fields.len() == DATAGRAMS {
            claim.side = Some(if sender { Side::Sender } else { Side::Receiver });
        }
        if to.value > from.value && from.decimals == to.decimals {
            let mut length = to;
            length.value -= from.value;
            length.step *= if from.value == 0.0 { 1.0 } else { 2.0 };
            claim.figures.insert(0, figure(Quantity::Seconds, length, fields[6]));
        }
        self.parsed.claim(claim);
    }
}
