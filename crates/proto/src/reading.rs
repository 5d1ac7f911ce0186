//! Results of other programs, as files and texts: which program wrote them, and what they say.
//!
//! Each program has its reader in its folder (`read`). A file goes through here once: JSON documents are cut out and
//! handed to their reader, every other line to the reader of the line before, and to the others when that does not
//! know it.

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
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use linerate_model::import::Reading;

pub use log::{Imported, bodies, name, run_name};
pub use prose::prose;

/// A text that no reader knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    /// Line, from 1, that says so; 0 where none does.
    pub line: u32,
    /// What is wrong and what to do.
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

/// The programs whose results are read, by the names that `read` takes.
pub const TOOLS: &[&str] = &["iperf3", "iperf2", "ttcp", "nuttcp", "ntttcp", "netpipe", "linerate"];

/// Reads a result of any program that we stand in for; `tool` is its name where the user says it.
///
/// A text may hold results of several programs, one after the other, as a log of a whole day does. What of it cannot
/// be read is named in the readings, and the rest is read all the same.
///
/// # Errors
/// When no reader recognises anything in it.
pub fn read(text: &str, tool: Option<&str>) -> Result<Vec<Reading>, ReadError> {
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
    // Nothing was read: the first trouble says most about why.
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

/// The text of a file: UTF-8, or UTF-16 with its mark, as the shell of Windows writes it. What is neither is replaced.
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

/// The name of a reader, from a name that people use.
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
