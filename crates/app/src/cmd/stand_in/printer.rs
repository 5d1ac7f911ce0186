//! Output of a tool to a log file, with or without timestamps.

use std::fs::OpenOptions;
use std::io::{LineWriter, Result, Write};
use std::path::Path;

use linerate_compat::c_time::strftime;

/// Opens a log file for appending.
pub(super) fn log_file(path: &Path) -> Result<Box<dyn Write>> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(Box::new(LineWriter::new(file)))
}

/// Writes a timestamp before each line.
pub(super) struct Stamped<W> {
    to: W,
    /// Format for strftime(3).
    format: String,
    at_line_start: bool,
}

impl<W: Write> Stamped<W> {
    pub(super) fn new(to: W, format: String) -> Self {
        Self { to, format, at_line_start: true }
    }
}

impl<W: Write> Write for Stamped<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.at_line_start {
                self.to.write_all(strftime(&self.format, &jiff::Zoned::now()).as_bytes())?;
            }
            self.to.write_all(line)?;
            self.at_line_start = line.ends_with(b"\n");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_time_however_it_is_written() {
        let mut written = Vec::new();
        let mut stamped = Stamped::new(&mut written, "<%%> ".to_owned());
        stamped.write_all(b"one\ntw").unwrap();
        stamped.write_all(b"o\n\n").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "<%> one\n<%> two\n<%> \n");
    }
}
