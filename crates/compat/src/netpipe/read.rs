//! Parser for output of NetPIPE: the lines of the transmitter, and the three columns of its file.

use linerate_model::import::{Claim, ClaimScope, ControlEnd, ForeignResult, Quantity};

use crate::import::line::NumberedLine;
use crate::import::number::{Printed, number};
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// NetPIPE's "Mega" is 1024 x 1024.
const MEGA: f64 = 1_048_576.0;

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct NetpipeTextReader {
    parsed: ParsedTest,
    /// The size of the previous line.
    size: f64,
    /// Whether the lines are from a file and not from a terminal.
    columns: bool,
}

impl Default for NetpipeTextReader {
    fn default() -> Self {
        Self { parsed: ParsedTest::new("netpipe"), size: 0.0, columns: false }
    }
}

impl NetpipeTextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if line.text.contains(" times --> ") {
            return self.console(line);
        }
        if let Some(buffers) = line.after("Send and receive buffers are ") {
            self.buffers(line, buffers);
            return true;
        }
        if self.row(line) {
            return true;
        }
        let error = line.after("NetPIPE: error ").or_else(|| line.after("Client: Cannot Connect!"));
        if let Some(reason) = error {
            self.parsed.test().error = Some(reason.trim().into());
            return true;
        }
        if line.text.contains("Passing data in both directions") {
            self.parsed.test().spec.traffic.bidir = true;
            return true;
        }
        let words =
            ["A bug in Linux doubles", "Now starting the main loop", "Sending output to ", "perturbation"];
        let more = ["Streaming in one direction", "socket buffer size limits", "Resetting connection after"];
        mine && words.iter().chain(&more).any(|word| line.text.contains(word))
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    /// Ends the test; what follows is another one.
    pub(crate) fn close(&mut self) {
        self.parsed.close();
        (self.size, self.columns) = (0.0, false);
    }

    fn buffers(&mut self, line: NumberedLine<'_>, text: &str) {
        if self.parsed.has_claims() {
            self.close();
        }
        let mut amounts =
            text.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        for quantity in [Quantity::SendBuffer, Quantity::ReceiveBuffer] {
            if let Some(amount) = amounts.next()
                && let Some(printed) = self.parsed.number(line, amount, false)
            {
                let found = figure(quantity, printed.exact(), format!("{amount} bytes"));
                self.parsed.test().effective.push(found);
            }
        }
    }

    /// `  0:       1 bytes  16737 times -->      1.35 Mbps in       5.66 usec`.
    fn console(&mut self, line: NumberedLine<'_>) -> bool {
        let Some((front, rest)) = line.text.split_once(" times --> ") else { return false };
        let Some((size, _)) = front.split_once(" bytes ") else { return false };
        let size = size.split_whitespace().next_back().unwrap_or_default();
        let Some(printed) = self.parsed.number(line, size, false) else { return true };
        self.next(printed.value, false);
        let mut claim = Claim { scope: ClaimScope::Size, ..of_line(line) };
        claim.figures.push(figure(Quantity::MessageSize, printed.exact(), format!("{size} bytes")));
        for (word, quantity, factor) in
            [(" Mbps in ", Quantity::Bitrate, MEGA), (" usec", Quantity::OneWay, 1e-6)]
        {
            // An integrity check has no figures.
            let amount = rest.split_once(word).and_then(|(front, _)| front.split_whitespace().next_back());
            if let Some(amount) = amount
                && let Some(printed) = self.parsed.number(line, amount, false)
            {
                claim.figures.push(figure(
                    quantity,
                    printed.times(factor),
                    format!("{amount}{}", word.trim_end_matches(" in ")),
                ));
            }
        }
        self.parsed.test().written_by = Some(ControlEnd::Client);
        self.parsed.claim(claim);
        true
    }

    /// `       1 1.348141   0.00000566`: size, "Mbps" and seconds, with six and eight decimals.
    fn row(&mut self, line: NumberedLine<'_>) -> bool {
        let mut words = line.text.split_whitespace();
        let (Some(size), Some(rate), Some(time), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        let (Ok(bytes), Ok(megabits), Ok(seconds)) =
            (number(size, false), number(rate, true), number(time, true))
        else {
            return false;
        };
        if (bytes.decimals, megabits.decimals, seconds.decimals) != (0, 6, 8) {
            return false;
        }
        self.next(bytes.value, true);
        let mut claim = Claim { scope: ClaimScope::Size, ..of_line(line) };
        let put = |quantity, printed: Printed, text: &str| figure(quantity, printed, text);
        claim.figures = vec![
            put(Quantity::MessageSize, bytes.exact(), size),
            put(Quantity::Bitrate, megabits.times(MEGA), rate),
            put(Quantity::OneWay, seconds, time),
        ];
        self.parsed.test().written_by = Some(ControlEnd::Client);
        self.parsed.claim(claim);
        true
    }

    /// Within a series the sizes grow; otherwise another series begins.
    fn next(&mut self, size: f64, columns: bool) {
        if self.parsed.has_claims() && (size < self.size || columns != self.columns) {
            self.close();
        }
        (self.size, self.columns) = (size, columns);
    }
}
