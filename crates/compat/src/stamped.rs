//! Output with the time of each line.

use std::io::{Result, Write};

use jiff::Zoned;

use crate::c_time::strftime;

/// Writes the time before each line, as iperf3 does with `--timestamps`.
#[derive(Debug)]
pub struct Stamped<W> {
    to: W,
    /// The time of a line that begins.
    now: fn() -> Zoned,
    /// Format for strftime(3).
    format: String,
    at_line_start: bool,
}

impl<W: Write> Stamped<W> {
    /// Writes to `to`, with times that look as this format of strftime(3) says.
    #[must_use]
    pub fn new(to: W, format: String, now: fn() -> Zoned) -> Self {
        Self { to, now, format, at_line_start: true }
    }
}

impl<W: Write> Write for Stamped<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.at_line_start {
                self.to.write_all(strftime(&self.format, &(self.now)()).as_bytes())?;
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
        let mut stamped =
            Stamped::new(&mut written, "<%%%Y> ".to_owned(), || "1999-11-22T22:37:05[UTC]".parse().unwrap());
        stamped.write_all(b"one\ntw").unwrap();
        stamped.write_all(b"o\n\n").unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "<%1999> one\n<%1999> two\n<%1999> \n");
    }
}
