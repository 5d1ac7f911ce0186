//! Lines that ttcp and nuttcp have in common.

use linerate_model::import::{Figure, Quantity};

use super::line::NumberedLine;
use super::number::Printed;
use super::parsed_test::{ParsedTest, figure};

/// The tools label the time per call as milliseconds, but compute it with 1024 ms per second.
const CALLS_FLAW: f64 = 1.0 / 1024.0;

/// Bits per second in one ttcp unit: the prefixes of bytes and bits are both powers of 1024.
pub(crate) fn rate_unit(unit: &str) -> Option<f64> {
    let (amount, bits) = match unit.strip_suffix("/sec")? {
        amount if amount.ends_with("bit") => (amount.strip_suffix("bit")?, 1.0),
        amount if amount.ends_with("bits") => (amount.strip_suffix("bits")?, 1.0),
        amount => (amount.strip_suffix('B')?, 8.0),
    };
    let power = ["", "K", "M", "G"].iter().position(|known| *known == amount)?;
    Some(1024_f64.powi(power as i32) * bits)
}

/// A figure from the word before a text.
pub(crate) fn before(
    line: NumberedLine<'_>,
    text: &str,
    word: &str,
    quantity: Quantity,
    factor: f64,
    parsed: &mut ParsedTest,
) -> Option<Figure> {
    let (front, _) = text.split_once(word)?;
    let amount = front.rsplit([' ', '\t', '=']).find(|part| !part.is_empty())?;
    let printed = scaled(line, amount, quantity, factor, parsed)?;
    let unit = word.trim_end_matches(" = ").trim_end_matches(" / ").trim_end_matches(" in ");
    Some(figure(quantity, printed, format!("{amount}{unit}")))
}

/// A figure from the word after a text.
pub(crate) fn after(
    line: NumberedLine<'_>,
    text: &str,
    word: &str,
    quantity: Quantity,
    factor: f64,
    parsed: &mut ParsedTest,
) -> Option<Figure> {
    let (_, rest) = text.split_once(word)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !".,+-".contains(c)).unwrap_or(rest.len());
    let amount = rest[..end].trim_end_matches(',').trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let printed = scaled(line, amount, quantity, factor, parsed)?;
    Some(figure(quantity, printed, format!("{word}{amount}")))
}

fn scaled(
    line: NumberedLine<'_>,
    amount: &str,
    quantity: Quantity,
    factor: f64,
    parsed: &mut ParsedTest,
) -> Option<Printed> {
    let count = [
        Quantity::Bytes,
        Quantity::Calls,
        Quantity::Retransmits,
        Quantity::Packets,
        Quantity::Lost,
        Quantity::OutOfOrder,
    ];
    let printed = parsed.number(line, amount, false)?;
    let printed = if count.contains(&quantity) && factor == 1.0 { printed.exact() } else { printed };
    Some(printed.times(factor))
}

/// `2048 I/O calls, msec/call = 0.33, calls/sec = 3110.66`, and the forms of PCATTCP and `-fparse`.
pub(crate) fn calls(line: NumberedLine<'_>, text: &str, parsed: &mut ParsedTest) -> Vec<Figure> {
    let mut found = Vec::new();
    let each = CALLS_FLAW;
    if text.contains(" I/O calls") {
        found.push(before(line, text, " I/O calls", Quantity::Calls, 1.0, parsed));
        found.push(after(line, text, "msec/call = ", Quantity::CallTime, each, parsed));
        found.push(after(line, text, "calls/sec = ", Quantity::CallRate, 1.0, parsed));
    } else if text.contains("numCalls:") {
        found.push(after(line, text, "numCalls: ", Quantity::Calls, 1.0, parsed));
        found.push(after(line, text, "msec/call: ", Quantity::CallTime, each, parsed));
        found.push(after(line, text, "calls/sec: ", Quantity::CallRate, 1.0, parsed));
    } else if text.contains("io_calls=") {
        found.push(after(line, text, "io_calls=", Quantity::Calls, 1.0, parsed));
        found.push(after(line, text, "msec_per_call=", Quantity::CallTime, each, parsed));
        found.push(after(line, text, "calls_per_sec=", Quantity::CallRate, 1.0, parsed));
    }
    found.into_iter().flatten().collect()
}

/// `0.0user 0.0sys 0:00real 4% …`: the share of a CPU that the program used.
pub(crate) fn usage(line: NumberedLine<'_>, text: &str, parsed: &mut ParsedTest) -> Option<Figure> {
    if !(text.contains("user ") && text.contains("sys ") && text.contains("real ")) {
        return None;
    }
    let (_, rest) = text.split_once("real ")?;
    let share = rest.split_once('%')?.0.trim();
    let printed = parsed.number(line, share, false)?.times(0.01);
    Some(figure(Quantity::CpuLocal, printed, format!("{share}%")))
}
