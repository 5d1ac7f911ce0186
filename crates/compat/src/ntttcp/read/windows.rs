//! The tables of the Windows program: a header, a rule, and a row of numbers.

use linerate_model::import::{Claim, Quantity};

use crate::import::line::NumberedLine;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// A column: its quantity, and the factor to our unit.
type WindowsColumn = Option<(Quantity, f64)>;

/// KB and MB are binary here.
const KILO: f64 = 1024.0;

/// The tables, identified by the beginning of their headers.
const TABLES: &[(&str, &[WindowsColumn])] = &[
    (
        "Bytes(MEG)    realtime(s)",
        &[
            Some((Quantity::Bytes, KILO * KILO)),
            Some((Quantity::Seconds, 1.0)),
            None,
            Some((Quantity::Bitrate, KILO * KILO * 8.0)),
        ],
    ),
    ("Throughput(Buffers/s) Cycles/Byte", &[None, Some((Quantity::CyclesPerByte, 1.0)), None]),
    ("DPCs(count/s) Pkts(num/DPC)", &[None, None, None, Some((Quantity::PacketsPerInterrupt, 1.0))]),
    (
        "Packets Sent Packets Received",
        &[None, None, Some((Quantity::Retransmits, 1.0)), None, Some((Quantity::CpuLocal, 0.01))],
    ),
];

/// The table whose header this is.
pub(super) fn head(line: NumberedLine<'_>) -> Option<usize> {
    TABLES.iter().position(|(head, _)| line.text.contains(head))
}

/// Whether this is the header of the table of threads.
pub(super) fn threads(line: NumberedLine<'_>) -> bool {
    line.text.contains("Thread  Time(s) Throughput(KB/s)")
}

/// Parses a row below a header.
pub(super) fn row(line: NumberedLine<'_>, table: usize, parsed: &mut ParsedTest) -> Option<Claim> {
    let (_, columns) = TABLES.get(table)?;
    let words: Vec<&str> = line.text.split_whitespace().collect();
    if words.len() != columns.len() {
        return None;
    }
    let mut claim = of_line(line);
    for (word, column) in words.iter().zip(*columns) {
        let Some((quantity, factor)) = column else { continue };
        if let Some(printed) = parsed.number(line, word, true) {
            let printed = if *quantity == Quantity::Retransmits { printed.exact() } else { printed };
            claim.figures.push(figure(*quantity, printed.times(*factor), *word));
        }
    }
    Some(claim)
}

/// Parses a row of the table of threads: number, time, KB/s, bytes per completion.
pub(super) fn thread(line: NumberedLine<'_>, parsed: &mut ParsedTest) -> Option<Claim> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let [index, time, rate, _] = words.as_slice() else { return None };
    let mut claim = Claim { stream: Some(index.parse().ok()?), ..of_line(line) };
    for (word, quantity, factor) in [(time, Quantity::Seconds, 1.0), (rate, Quantity::Bitrate, KILO * 8.0)] {
        if let Some(printed) = parsed.number(line, word, true) {
            claim.figures.push(figure(quantity, printed.times(factor), *word));
        }
    }
    Some(claim)
}
