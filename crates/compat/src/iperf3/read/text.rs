//! The text output of iperf3, of a client and of a server, one test after another.

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, ControlEnd, Figure, ForeignResult, Quantity};
use linerate_model::metrics::Side;
use linerate_units::{Bytes, Span};

use crate::import::bracket::{Bracket, byte_unit, datagrams};
use crate::import::date::from_rfc1123;
use crate::import::line::NumberedLine;
use crate::import::number::number;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct Iperf3TextReader {
    parsed: ParsedTest,
    reverse: bool,
    bidir: bool,
    udp: bool,
    /// Whether the local end's intervals are those of a sender, by the columns.
    sends: Option<bool>,
    /// Whether the last line was a separator.
    separated: bool,
    /// Whether the header of the summary was seen.
    summary: bool,
}

impl Default for Iperf3TextReader {
    fn default() -> Self {
        Self {
            parsed: ParsedTest::new("iperf3"),
            reverse: false,
            bidir: false,
            udp: false,
            sends: None,
            separated: false,
            summary: false,
        }
    }
}

impl Iperf3TextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        let separator = line.text.trim_end().ends_with("- - - - - - - - - -");
        let separated = std::mem::replace(&mut self.separated, separator);
        if separator || self.banner(line) || self.header(line, separated) {
            return true;
        }
        if let Some(bracket) = Bracket::of(line)
            && bracket.version().map_or(mine, |version| version == 3)
        {
            self.figures(line, &bracket);
            return true;
        }
        mine && self.detail(line)
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
        (self.reverse, self.bidir, self.udp, self.sends, self.summary) = (false, false, false, None, false);
    }

    fn begin(&mut self, end: ControlEnd, rest: &str) {
        // With -V the time is printed before.
        let unbegun = self.parsed.current().filter(|test| test.claims.is_empty() && test.error.is_none());
        let started_at = unbegun.and_then(|test| test.started_at.clone());
        self.close();
        let host = rest.split(", port ").next().unwrap_or_default().trim();
        let test = self.parsed.test();
        test.written_by = Some(end);
        test.started_at = started_at;
        test.target = (!host.is_empty()).then(|| host.into());
    }

    fn banner(&mut self, line: NumberedLine<'_>) -> bool {
        if let Some(rest) = line.after("Connecting to host ") {
            self.begin(ControlEnd::Client, rest);
        } else if let Some(rest) = line.after("Accepted connection from ") {
            self.begin(ControlEnd::Server, rest);
        } else if line.text.contains("Reverse mode, remote host ") {
            self.reverse = true;
        } else if let Some(version) = line.word_after("iperf 3.") {
            self.close();
            self.parsed.version(&format!("3.{version}"));
        } else if let Some(words) =
            line.after("iperf3: error - ").or_else(|| line.after("iperf3: interrupt - "))
        {
            self.parsed.test().error = Some(words.trim().into());
        } else if let Some(asked) = line.after("Starting Test: protocol: ") {
            self.asked(asked);
        } else {
            return false;
        }
        true
    }

    /// Parses a table header: the columns, and whether the summary begins.
    fn header(&mut self, line: NumberedLine<'_>, separated: bool) -> bool {
        let Some(head) = line.after("[ ID]") else { return false };
        let role = head.starts_with("[Role]");
        if !role && !head.starts_with(" Interval           ") {
            return false;
        }
        if self.summary && !separated {
            self.close();
        }
        self.summary = separated && self.parsed.has_claims();
        self.bidir |= role;
        self.udp |= head.contains("Datagrams");
        if !self.summary && !role && self.sends.is_none() {
            let sends = head.contains("Cwnd") || head.contains("Total Datagrams") && !head.contains("Lost/");
            self.sends = Some(sends);
        }
        let (bidir, udp) = (self.bidir, self.udp);
        let traffic = &mut self.parsed.test().spec.traffic;
        (traffic.bidir, traffic.udp) = (bidir, udp);
        true
    }

    fn detail(&mut self, line: NumberedLine<'_>) -> bool {
        let effective = |quantity, text: &str, words: &str| {
            let value = number(text, false).ok()?.exact();
            Some(figure(quantity, value, format!("{words} {text}")))
        };
        if let Some(time) = line.after("Time: ") {
            self.parsed.test().started_at = from_rfc1123(time).map(Into::into);
        } else if let Some(mss) = line.word_after("TCP MSS: ") {
            let found = effective(Quantity::Mss, mss, "TCP MSS");
            self.parsed.test().effective.extend(found);
        } else if let Some(shares) = line.after("CPU Utilization: local/") {
            self.cpu(line, shares);
        } else {
            let words =
                ["connected to", "listening on", "statistics not available", "iperf Done.", "Cookie:"];
            let more = ["congestion", "Test Complete", "Target Bitrate", "Control connection MSS"];
            return words.iter().chain(&more).any(|word| line.text.contains(word));
        }
        true
    }

    /// `TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 1 second test, tos 0`.
    fn asked(&mut self, asked: &str) {
        let traffic = &mut self.parsed.test().spec.traffic;
        for part in asked.split(", ") {
            let (first, rest) = part.split_once(' ').unwrap_or((part, ""));
            let count: Option<u64> = first.parse().ok().filter(|count| *count > 0);
            match rest {
                "streams" => traffic.streams = count.and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
                "byte blocks" => traffic.length = count.map(Bytes::new),
                "second test" => traffic.duration = count.map(Span::from_secs),
                "bytes to send" => traffic.bytes = count.map(Bytes::new),
                "blocks to send" => traffic.blocks = count,
                _ => {}
            }
        }
        self.udp |= asked.starts_with("UDP");
    }

    /// `sender 0.4% (0.0%u/0.4%s), remote/receiver 0.2% (…)`.
    fn cpu(&mut self, line: NumberedLine<'_>, shares: &str) {
        let mut claim = of_line(line);
        for (part, quantity) in shares.split("remote/").zip([Quantity::CpuLocal, Quantity::CpuRemote]) {
            let share = part.split_whitespace().nth(1).and_then(|word| word.strip_suffix('%'));
            if let Some(share) = share
                && let Some(printed) = self.parsed.number(line, share, false)
            {
                claim.figures.push(figure(quantity, printed.times(0.01), format!("{share}%")));
            }
        }
        self.parsed.claim(claim);
    }

    /// The direction of a line's data, and whether the local end sent them.
    fn direction(&self, bracket: &Bracket<'_>, tag: Option<Side>) -> (Option<Direction>, Option<bool>) {
        let end = self.parsed.current().and_then(|test| test.written_by);
        if let Some(role) = bracket.role {
            let download = matches!(role, "RX-C" | "TX-S");
            let way = if download { Direction::Download } else { Direction::Upload };
            return (Some(way), Some(role.starts_with("TX")));
        }
        let sends = match end {
            Some(ControlEnd::Client) => Some(!self.reverse),
            // A server only prints its own half.
            Some(ControlEnd::Server) => tag.map(|tag| tag == Side::Sender).or(self.sends),
            None => self.sends.filter(|_| tag.is_none()),
        };
        let upload = end.zip(sends).map(|(end, sends)| (end == ControlEnd::Client) == sends);
        (upload.map(|upload| if upload { Direction::Upload } else { Direction::Download }), sends)
    }

    fn figures(&mut self, line: NumberedLine<'_>, bracket: &Bracket<'_>) {
        let tail = bracket.rest.trim_end();
        let tag = match tail {
            tail if tail.ends_with("sender") => Some(Side::Sender),
            tail if tail.ends_with("receiver") => Some(Side::Receiver),
            _ => None,
        };
        let (direction, sends) = self.direction(bracket, tag);
        if let Some((count, _)) = tail.split_once(" datagrams received out-of-order") {
            let mut claim = Claim { stream: bracket.id, direction, ..of_line(line) };
            claim.side = Some(Side::Receiver);
            if let Some(count) = self.parsed.number(line, count.trim(), false) {
                claim.figures.push(figure(Quantity::OutOfOrder, count.exact(), tail.trim()));
            }
            self.parsed.claim(claim);
            return;
        }
        let Some((mut claim, rest)) = bracket.claim(line, &mut self.parsed) else { return };
        claim.direction = direction;
        if tag.is_some() || self.summary {
            // The old summary of datagrams has one line for both ends.
            claim.side = tag;
        } else {
            claim.scope = ClaimScope::Interval;
            claim.side = sends.map(|sends| if sends { Side::Sender } else { Side::Receiver });
        }
        claim.omitted = rest.contains("(omitted)");
        claim.figures.extend(self.tail(line, rest, tag));
        self.parsed.claim(claim);
    }

    /// Parses the columns after the rate.
    fn tail(&mut self, line: NumberedLine<'_>, rest: &str, tag: Option<Side>) -> Vec<Figure> {
        if rest.contains(" ms ") {
            self.udp = true;
            self.parsed.test().spec.traffic.udp = true;
            let mut found = datagrams(line, rest, &mut self.parsed);
            // The sender's line has 0 for what only the receiver knows.
            if tag == Some(Side::Sender) {
                found.retain(|figure| figure.quantity == Quantity::Packets);
            }
            return found;
        }
        let mut found = Vec::new();
        let mut words =
            rest.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        if let Some(count) = words.next()
            && let Some(printed) = self.parsed.number(line, count, false)
        {
            let quantity = if self.udp { Quantity::Packets } else { Quantity::Retransmits };
            found.push(figure(quantity, printed.exact(), count));
        }
        if let Some(amount) = words.next()
            && let Some(unit) = rest.split_whitespace().skip_while(|word| *word != amount).nth(1)
            && let Some(factor) = byte_unit(unit)
            && let Some(printed) = self.parsed.number(line, amount, false)
        {
            found.push(figure(Quantity::CongestionWindow, printed.times(factor), format!("{amount} {unit}")));
        }
        found
    }
}
