//! The lines of iperf 2 and iperf3: `[ ID] begin-end sec  transfer  rate  more`.

use linerate_model::import::{Claim, Figure, Quantity};
use linerate_units::Span;

use super::line::NumberedLine;
use super::number::{Printed, is_no_number, number};
use super::parsed_test::{ParsedTest, figure};

/// The part of a line before the figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bracket<'a> {
    /// Number of the stream; absent for the sum.
    pub(crate) id: Option<u32>,
    /// iperf 2: the data of this connection flow in the reverse direction.
    pub(crate) star: bool,
    /// iperf3 with both directions at once: `TX-C` and the like.
    pub(crate) role: Option<&'a str>,
    /// Begin and end of the interval, seconds.
    pub(crate) from: Printed,
    pub(crate) to: Printed,
    /// Number of blanks before `sec`; iperf3 prints a column there.
    pub(crate) blanks: usize,
    /// What follows `sec`.
    pub(crate) rest: &'a str,
}

/// The number or sum in brackets at the start of a text, and the rest.
pub(crate) fn id(text: &str) -> Option<(Option<u32>, bool, &str)> {
    let inner = text.strip_prefix('[')?;
    // The content of these brackets is never longer.
    let end = inner.bytes().take(12).position(|byte| byte == b']')?;
    let (name, rest) = (inner[..end].trim(), &inner[end + 1..]);
    if name.starts_with("SUM") {
        return Some((None, name.starts_with("*SUM"), rest));
    }
    let (star, digits) = match name.strip_prefix('*') {
        Some(digits) => (true, digits),
        None => (false, name),
    };
    Some((Some(digits.parse().ok()?), star, rest))
}

/// The first bracketed number of a line whose rest is accepted by `fits`.
///
/// A logger may have put other brackets before it: `host iperf3[4711]: [ 5] ...`.
pub(crate) fn find<'a, T>(
    line: NumberedLine<'a>,
    fits: impl Fn(Option<u32>, bool, &'a str) -> Option<T>,
) -> Option<T> {
    let places = line.text.match_indices('[').take(16);
    places.filter_map(|(at, _)| id(&line.text[at..])).find_map(|(id, star, rest)| fits(id, star, rest))
}

impl<'a> Bracket<'a> {
    /// Parses the front of a line with figures; absent for every other line.
    pub(crate) fn of(line: NumberedLine<'a>) -> Option<Self> {
        if !line.text.contains("sec") {
            return None;
        }
        find(line, |id, star, rest| {
            let (role, rest) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
                Some((role, rest)) if role.len() == 4 => (Some(role), rest),
                _ => (None, rest),
            };
            let (from, rest) = rest.trim_start().split_once('-')?;
            let rest = rest.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
            let (to, rest) = rest.split_at(end);
            let after = rest.trim_start();
            let blanks = rest.len() - after.len();
            let rest = after.strip_prefix("sec").filter(|_| blanks > 0)?;
            let (from, to) = (number(from, true).ok()?, number(to, true).ok()?);
            Some(Self { id, star, role, from, to, blanks, rest })
        })
    }

    /// The program that wrote the line, if its form shows that: `2` or `3`.
    pub(crate) fn version(&self) -> Option<u8> {
        let tagged = ["sender", "receiver"].iter().any(|tag| self.rest.trim_end().ends_with(tag));
        match (self.role.is_some() || tagged, self.to.decimals) {
            (true, _) => Some(3),
            (false, 2) if self.blanks > 1 => Some(3),
            (false, 1 | 4) => Some(2),
            _ => None,
        }
    }

    /// Makes a claim with the interval, the bytes and the rate, and returns the rest of the line.
    ///
    /// Unreadable figures become remarks. Absent for lines without bytes, such as those about datagrams out of
    /// order.
    pub(crate) fn claim(&self, line: NumberedLine<'a>, parsed: &mut ParsedTest) -> Option<(Claim, &'a str)> {
        let mut words = self.rest.split_whitespace();
        let (amount, unit) = (words.next()?, words.next()?);
        let factor = byte_unit(unit)?;
        let mut claim = Claim {
            line: line.number,
            quote: line.quote(),
            stream: self.id,
            start: Span::from_secs_f64(self.from.value),
            end: Span::from_secs_f64(self.to.value),
            ..Claim::default()
        };
        let whole = self.to.value - self.from.value;
        if whole > 0.0 {
            let step = self.to.step * if self.from.value == 0.0 { 1.0 } else { 2.0 };
            let printed = Printed { value: whole, step, decimals: self.to.decimals };
            claim.figures.push(figure(Quantity::Seconds, printed, between(line, self.rest)));
        }
        if let Some(bytes) = parsed.number(line, amount, unit == "Bytes") {
            let bytes = if factor == 1.0 { bytes.exact() } else { bytes.times(factor) };
            claim.figures.push(figure(Quantity::Bytes, bytes, format!("{amount} {unit}")));
        }
        let rate = words.next().zip(words.next());
        let mut rest = unit;
        if let Some((amount, unit)) = rate
            && let Some(factor) = rate_unit(unit)
        {
            rest = unit;
            if let Some(rate) = parsed.number(line, amount, false) {
                claim.figures.push(figure(Quantity::Bitrate, rate.times(factor), format!("{amount} {unit}")));
            }
        }
        let at = line.column(rest).map_or(0, |_| rest.as_ptr() as usize - line.text.as_ptr() as usize);
        Some((claim, line.text.get(at + rest.len()..).unwrap_or_default()))
    }
}

/// The interval as printed in the line.
fn between(line: NumberedLine<'_>, rest: &str) -> String {
    let front = line.text.strip_suffix(rest).unwrap_or_default();
    let interval = front.rsplit(']').next().unwrap_or_default();
    interval.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Bytes in one unit: prefixes are powers of 1024.
pub(crate) fn byte_unit(unit: &str) -> Option<f64> {
    let prefix = unit.strip_suffix('s').unwrap_or(unit).strip_suffix("Byte")?;
    power(prefix).map(|power| 1024_f64.powi(power))
}

/// Bits per second in one unit: prefixes of bits are powers of 1000, those of bytes powers of 1024.
pub(crate) fn rate_unit(unit: &str) -> Option<f64> {
    let amount = unit.strip_suffix("/sec")?;
    match amount.strip_suffix("bits").or_else(|| amount.strip_suffix("bit")) {
        Some(prefix) => power(prefix).map(|power| 1000_f64.powi(power)),
        None => byte_unit(amount).map(|bytes| bytes * 8.0),
    }
}

fn power(prefix: &str) -> Option<i32> {
    ["", "K", "M", "G", "T", "P"]
        .iter()
        .zip(0..)
        .find_map(|(known, power)| (*known == prefix).then_some(power))
}

/// Jitter, lost and total datagrams: `0.012 ms 0/ 851 (0.12%)`; the sum of iperf 2 has no jitter.
pub(crate) fn datagrams(line: NumberedLine<'_>, tail: &str, parsed: &mut ParsedTest) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut counts = tail;
    if let Some((jitter, rest)) = tail.split_once(" ms ") {
        let jitter = jitter.trim();
        if let Some(printed) = parsed.number(line, jitter, true) {
            figures.push(figure(Quantity::Jitter, printed.times(1e-3), format!("{jitter} ms")));
        }
        counts = rest;
    }
    let Some((lost, rest)) = counts.split_once('/') else { return figures };
    let rest = rest.trim_start();
    let end = rest.find([' ', '(']).unwrap_or(rest.len());
    let (total, rest) = rest.split_at(end);
    for (quantity, text) in [(Quantity::Lost, lost.trim()), (Quantity::Packets, total)] {
        // Some versions print impossible counts: a client of 2.1.8 prints a total of -1.
        if text.starts_with('-') {
            continue;
        }
        if let Some(printed) = parsed.number(line, text, false) {
            figures.push(figure(quantity, printed.exact(), text));
        }
    }
    if let Some((share, _)) = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once("%)"))
        && !is_no_number(share)
        && let Some(printed) = parsed.number(line, share, false)
    {
        // Printed with two significant digits (%.2g).
        let printed = printed.significant(2).times(0.01);
        figures.push(figure(Quantity::LossRatio, printed, format!("{share}%")));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> Option<(Option<u32>, f64, f64, Option<u8>)> {
        let bracket = Bracket::of(NumberedLine { number: 1, text })?;
        Some((bracket.id, bracket.from.value, bracket.to.value, bracket.version()))
    }

    #[test]
    fn beginnings_of_all_versions_are_distinguished() {
        let lines = [
            ("[  5]   0.00-1.00   sec  2.39 MBytes  20.0 Mbits/sec", (Some(5), 0.0, 1.0, Some(3))),
            ("[SUM]   9.00-10.00  sec  2.39 MBytes  20.0 Mbits/sec", (None, 9.0, 10.0, Some(3))),
            ("[  5][TX-C] 100.00-110.00 sec  1 Bytes", (Some(5), 100.0, 110.0, Some(3))),
            ("[  3]  0.0- 2.0 sec  46.1 MBytes   193 Mbits/sec", (Some(3), 0.0, 2.0, Some(2))),
            ("[ *1] 0.0000-2.0446 sec  46.1 MBytes", (Some(1), 0.0, 2.0446, Some(2))),
            ("[  1] 0,0000-2,0446 sec  46,1 MBytes", (Some(1), 0.0, 2.0446, Some(2))),
            ("[  1] 0.00-2.06 sec  46.4 MBytes", (Some(1), 0.0, 2.06, None)),
            ("Nov 22 06:00:01 a iperf3[77]: [  5]   0.00-1.00   sec  1", (Some(5), 0.0, 1.0, Some(3))),
        ];
        for (line, expected) in lines {
            assert_eq!(front(line), Some(expected), "{line}");
        }
        for other in ["[ ID] Interval           Transfer     Bitrate", "[  5] local 1 port 2", "[5] 1 sec"] {
            assert_eq!(front(other), None, "{other}");
        }
    }

    #[test]
    fn figures_carry_their_units_and_their_last_digit() {
        let line = NumberedLine {
            number: 4,
            text: "[  5]   0.00-2.00   sec   978 KBytes  4.00 MBytes/sec  rest of it",
        };
        let mut parsed = ParsedTest::new("x");
        let (claim, tail) = Bracket::of(line).unwrap().claim(line, &mut parsed).unwrap();
        assert_eq!(tail.trim(), "rest of it");
        let bytes = claim.figure(Quantity::Bytes).unwrap();
        assert_eq!((bytes.value, bytes.step, bytes.printed.as_str()), (1_001_472.0, 1024.0, "978 KBytes"));
        let rate = claim.figure(Quantity::Bitrate).unwrap();
        assert_eq!(rate.value, 4.0 * 1_048_576.0 * 8.0);
        assert_eq!(claim.figure(Quantity::Seconds).unwrap().printed, "0.00-2.00 sec");
    }

    #[test]
    fn a_figure_that_cannot_be_read_is_named_and_the_others_are_kept() {
        let line = NumberedLine { number: 9, text: "[  5] 0.0-1.0 sec  1,234 MBytes  4.00 Mbits/sec" };
        let mut parsed = ParsedTest::new("x");
        let (claim, _) = Bracket::of(line).unwrap().claim(line, &mut parsed).unwrap();
        assert_eq!(claim.figure(Quantity::Bytes), None);
        assert_eq!(claim.figure(Quantity::Bitrate).unwrap().value, 4e6);
        parsed.claim(claim);
        let unread = parsed.finish().unwrap().unread;
        assert_eq!((unread[0].line, unread[0].column), (9, Some(20)));
    }

    #[test]
    fn datagrams_are_counted_as_printed() {
        let mut parsed = ParsedTest::new("x");
        let line = NumberedLine { number: 1, text: "" };
        let figures = datagrams(line, "  0.012 ms    0/  851 (1e+02%)", &mut parsed);
        let values: Vec<_> = figures.iter().map(|f| (f.quantity, f.value)).collect();
        let expected = [
            (Quantity::Jitter, 12e-6),
            (Quantity::Lost, 0.0),
            (Quantity::Packets, 851.0),
            (Quantity::LossRatio, 1.0),
        ];
        assert_eq!(values, expected);
        let figures = datagrams(line, "  6131.073 ms 0/0 (-nan%)", &mut parsed);
        assert_eq!(figures.len(), 3);
        assert!(parsed.finish().is_none());
    }
}
