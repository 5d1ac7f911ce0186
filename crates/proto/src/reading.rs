//! Results of other programs, as files and texts: which program wrote them, and what they say.

use std::fmt;

use linerate_model::reading::Reading;

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

/// Reads a result of any program that we stand in for; `tool` is its name where the user says it.
///
/// A text may hold results of several programs, one after the other, as a log of a whole day does.
///
/// # Errors
/// When no reader recognises anything in it.
pub fn read(text: &str, tool: Option<&str>) -> Result<Vec<Reading>, ReadError> {
    let _ = (text, tool);
    Err(ReadError { line: 0, why: "no result of a known program".to_owned() })
}
