//! The console output of the programs; XML documents are parsed line by line by `Xml`.

use linerate_model::import::{Claim, ClaimScope, ForeignResult, Quantity};
use linerate_model::metrics::Side;

use super::xml::Xml;
use super::{describe, windows};
use crate::import::line::NumberedLine;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct NtttcpTextReader {
    parsed: ParsedTest,
    xml: Option<Box<Xml>>,
    sends: Option<bool>,
    /// The totals of a test, which have one line per figure.
    totals: Option<Claim>,
    complete: bool,
    /// The table of the Windows program whose header was read.
    table: Option<usize>,
    threads: bool,
}

impl Default for NtttcpTextReader {
    fn default() -> Self {
        Self {
            parsed: ParsedTest::new("ntttcp"),
            xml: None,
            sends: None,
            totals: None,
            complete: false,
            table: None,
            threads: false,
        }
    }
}

/// The level and text of a console line, after its time.
fn message(text: &str) -> Option<(&str, &str)> {
    ["INFO: ", "ERR : ", "DBG : "].into_iter().find_map(|level| {
        let (before, rest) = text.split_once(level)?;
        let time = before.trim_end().rsplit(' ').next()?;
        (time.len() == 8 && time.as_bytes().get(2) == Some(&b':')).then_some((level, rest))
    })
}

impl NtttcpTextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if let Some(begun) = Xml::begins(line, &mut self.parsed) {
            self.end_xml(false);
            self.close();
            self.xml = Some(Box::new(begun));
        }
        if let Some(mut xml) = self.xml.take() {
            let ends = xml.take(line, &mut self.parsed);
            self.xml = Some(xml);
            if ends {
                self.end_xml(true);
            }
            return true;
        }
        if let Some(version) = line.after("NTTTCP for Linux ") {
            self.close();
            self.parsed.version(version.trim());
            return true;
        }
        if let Some((level, text)) = message(line.text) {
            self.message(line, level, text);
            return true;
        }
        if let Some(rate) = line.after("Real-time throughput: ") {
            let mut claim = Claim { scope: ClaimScope::Interval, ..of_line(line) };
            self.rate(line, rate.trim(), &mut claim);
            self.parsed.claim(claim);
            return true;
        }
        self.windows(line, mine) || (mine && (line.text.contains(" role") || line.text.contains("protocol:")))
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        self.end_xml(false);
        self.close();
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    fn end_xml(&mut self, whole: bool) {
        if let Some(xml) = self.xml.take() {
            xml.finish(whole, &mut self.parsed);
        }
    }

    /// Ends the test; what follows is another one.
    pub(crate) fn close(&mut self) {
        if let Some(totals) = self.totals.take() {
            // The console does not name the transport, but only TCP tests have retransmissions.
            if totals.figure(Quantity::Retransmits).is_none() {
                self.parsed.test().spec.traffic.udp = true;
            }
            self.parsed.claim(totals);
        }
        if self.parsed.current().is_some()
            && let Some(sends) = self.sends
        {
            describe(self.parsed.test(), if sends { Side::Sender } else { Side::Receiver });
        }
        self.parsed.close();
        (self.sends, self.complete, self.table, self.threads) = (None, false, None, false);
    }

    fn message(&mut self, line: NumberedLine<'_>, level: &str, text: &str) {
        let text = text.trim();
        if self.complete && (text.contains("threads created") || text.contains("progressing")) {
            self.close();
        }
        if level == "ERR : " {
            self.parsed.test().error = Some(text.into());
            return;
        }
        if text.contains("connections created in") || text.contains("connections tested") {
            self.sends = Some(true);
        } else if text.contains("Network activity progressing") && self.sends.is_none() {
            self.sends = Some(false);
        }
        if text.contains("#####  Totals:  #####") {
            self.totals = Some(of_line(line));
            self.complete = true;
            return;
        }
        let Some((name, value)) = text.split_once("\t:").or_else(|| text.split_once(" :")) else {
            self.thread(line, text);
            return;
        };
        self.total(line, name.trim(), value.trim());
    }

    fn total(&mut self, line: NumberedLine<'_>, name: &str, value: &str) {
        let Some(mut claim) = self.totals.take() else { return };
        let amount = value.split_whitespace().next().unwrap_or_default().trim_end_matches('%');
        let (quantity, factor) = match name {
            "throughput" => {
                (claim.line, claim.quote) = (line.number, line.quote());
                self.rate(line, value, &mut claim);
                self.totals = Some(claim);
                return;
            }
            "test duration" => (Quantity::Seconds, 1.0),
            "total bytes" => (Quantity::Bytes, 1.0),
            "retrans segs" => (Quantity::Retransmits, 1.0),
            "cycles/byte" => (Quantity::CyclesPerByte, 1.0),
            "pkts/interrupt" => (Quantity::PacketsPerInterrupt, 1.0),
            "tcpi rtt" => (Quantity::RoundTrip, 1e-6),
            "idle" => (Quantity::CpuLocal, 0.01),
            _ => {
                self.totals = Some(claim);
                return;
            }
        };
        if let Some(mut printed) = self.parsed.number(line, amount, false) {
            if matches!(quantity, Quantity::Bytes | Quantity::Retransmits) {
                printed = printed.exact();
            }
            if quantity == Quantity::CpuLocal {
                printed.value = 100.0 - printed.value;
            }
            let words =
                if quantity == Quantity::CpuLocal { format!("idle {value}") } else { value.to_owned() };
            claim.figures.push(figure(quantity, printed.times(factor), words));
        }
        self.totals = Some(claim);
    }

    /// `190.27Mbps`, with decimal prefixes.
    fn rate(&mut self, line: NumberedLine<'_>, value: &str, claim: &mut Claim) {
        let end = value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
        let (amount, unit) = value.split_at(end);
        let Some(prefix) = unit.trim().strip_suffix("bps") else { return };
        let Some(power) = ["", "K", "M", "G", "T"].iter().position(|known| *known == prefix) else { return };
        if let Some(printed) = self.parsed.number(line, amount.trim(), false) {
            let printed = printed.times(1000_f64.powi(power as i32));
            claim.figures.push(figure(Quantity::Bitrate, printed, value));
        }
    }

    /// `0 2.00 190.16Mbps`, a row of the table of threads.
    fn thread(&mut self, line: NumberedLine<'_>, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [index, time, rate] = words.as_slice() else { return };
        let (Ok(index), true) = (index.parse(), rate.ends_with("bps")) else { return };
        let mut claim = Claim { stream: Some(index), ..of_line(line) };
        if let Some(printed) = self.parsed.number(line, time, false) {
            claim.figures.push(figure(Quantity::Seconds, printed, *time));
        }
        self.rate(line, rate, &mut claim);
        self.parsed.claim(claim);
    }

    fn windows(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if windows::threads(line) {
            self.close();
            self.threads = true;
            return true;
        }
        if let Some(table) = windows::head(line) {
            (self.table, self.threads) = (Some(table), false);
            return true;
        }
        if line.text.trim().is_empty() || line.text.contains("=====") || line.text.contains("#####") {
            return mine;
        }
        let claim = match self.table {
            Some(table) => windows::row(line, table, &mut self.parsed),
            None if self.threads => windows::thread(line, &mut self.parsed),
            None => None,
        };
        self.table = None;
        let known = claim.is_some();
        if let Some(claim) = claim {
            self.parsed.claim(claim);
        }
        known
    }
}
