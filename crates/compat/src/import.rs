//! Imports results of other programs from files and texts: detects the program and parses its output.
//!
//! The parser of each program is in its folder (`read`). Each text is processed once: JSON documents are cut
//! out and passed to their parser. Every other line goes to the parser of the line before, and if that does not
//! recognize it, to the others.

pub(crate) mod bracket;
pub(crate) mod classic;
pub(crate) mod date;
pub(crate) mod json;
pub(crate) mod line;
mod log;
pub(crate) mod number;
mod own;
pub(crate) mod parsed_test;
mod prose;
mod runs;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use linerate_model::import::ForeignResult;

pub use log::Imported;
pub use runs::{ImportedRun, ImportedRuns, runs};

/// A text that no parser recognizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// The line, from 1, that caused the error; 0 if there is none.
    pub line: u32,
    /// The error, and what to do.
    pub why: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.why)
    }
}

impl std::error::Error for ReadError {}

/// The programs whose results can be imported, by the names that `read` accepts.
pub const TOOLS: &[&str] =
    &["iperf3", "iperf2", "ttcp", "nuttcp", "ntttcp", "netpipe", "netperf", "linerate"];

/// Imports a result of any program that has a stand-in. `tool` is its name if the user gives it.
///
/// A text may contain results of several programs one after another, such as the log of a whole day. Parts that
/// cannot be parsed are listed in the readings; the rest is imported.
///
/// # Errors
/// No parser recognizes anything in the text.
pub fn read(text: &str, tool: Option<&str>) -> Result<Vec<ForeignResult>, ReadError> {
    let only = match tool {
        None => None,
        Some(name) => Some(known(name).ok_or_else(|| ReadError {
            line: 0,
            why: format!("'{name}' is no program whose results are read; there are {}", TOOLS.join(", ")),
        })?),
    };
    let readings = scan::scan(text, only);
    if readings.iter().any(|reading| !reading.tests.is_empty()) {
        return Ok(readings);
    }
    // Nothing was imported: the first unread part explains best why.
    let unread = readings.into_iter().flat_map(|reading| reading.unread).min_by_key(|unread| unread.line);
    let what = only.map_or_else(|| format!("any of {}", TOOLS.join(", ")), str::to_owned);
    Err(match unread {
        Some(unread) => ReadError { line: unread.line, why: unread.why.into() },
        None if text.trim().is_empty() => ReadError { line: 0, why: "there is nothing in it".to_owned() },
        None => {
            let first = text.lines().position(|line| !line.trim().is_empty()).map_or(0, |at| at as u32 + 1);
            ReadError { line: first, why: format!("from here on there is no result of {what}") }
        }
    })
}

/// The text of a file: UTF-8, or UTF-16 with a byte order mark as written by PowerShell. Invalid parts are
/// replaced.
#[must_use]
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return String::from_utf8_lossy(bytes),
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    Cow::Owned(char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// The name of a parser, from any common name of its tool.
fn known(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let name = match lower.as_str() {
        "iperf" => "iperf2",
        "pcattcp" => "ttcp",
        "nptcp" => "netpipe",
        other => other,
    };
    TOOLS.iter().copied().find(|tool| *tool == name)
}
