//! Log files of stand-ins.

use std::fs::OpenOptions;
use std::io::{LineWriter, Result, Write};
use std::path::Path;

/// Opens a log file for appending, in whole lines.
///
/// # Errors
/// It cannot be created or written.
pub fn log_file(path: &Path) -> Result<Box<dyn Write>> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(Box::new(LineWriter::new(file)))
}
