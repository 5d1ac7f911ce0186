//! Parser for output of netperf: the tables, the interim results (`-D`), and names with values (`-k`).

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, ControlEnd, Figure, ForeignResult, Quantity};
use linerate_model::metrics::Side;
use linerate_units::{Bytes, Span};

use crate::import::line::NumberedLine;
use crate::import::number::Printed;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// The units of `-f`, in bits per second. Those of bytes are binary.
const UNITS: [(&str, f64); 6] = [
    ("10^3bits", 1e3),
    ("10^6bits", 1e6),
    ("10^9bits", 1e9),
    ("KBytes", 8.0 * 1024.0),
    ("MBytes", 8.0 * 1_048_576.0),
    ("GBytes", 8.0 * 1_073_741_824.0),
];

fn unit(text: &str) -> Option<f64> {
    UNITS.iter().find(|(name, _)| text.contains(name)).map(|(_, factor)| *factor)
}

fn direction(receives: bool) -> Direction {
    if receives { Direction::Download } else { Direction::Upload }
}

/// The side of the client, which counts intervals.
fn own_side(receives: bool) -> Side {
    if receives { Side::Receiver } else { Side::Sender }
}

/// The table of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetperfTable {
    Stream,
    Datagrams,
    Transactions,
}

/// The figures of `-k`, in any order, until the test ends.
#[derive(Debug, Default)]
struct KeyvalFigures {
    /// The rate without its unit.
    rate: Option<(Claim, Printed, String)>,
    unit: Option<f64>,
    /// Figures of the end that received.
    figures: Vec<Figure>,
    /// Whether the client received; absent if the text does not say it.
    receives: Option<bool>,
    /// Bytes and retransmissions: counted locally, counted by the server.
    received: [Option<Figure>; 2],
    retransmits: [Option<Figure>; 2],
}

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct NetperfTextReader {
    parsed: ParsedTest,
    table: Option<NetperfTable>,
    unit: Option<f64>,
    /// Results of the table so far.
    rows: usize,
    /// The end of the last interval.
    interim_end: Span,
    /// An interim result before its unit and its length.
    interim: Option<(Claim, Printed, String)>,
    named: KeyvalFigures,
}

impl Default for NetperfTextReader {
    fn default() -> Self {
        Self {
            parsed: ParsedTest::new("netperf"),
            table: None,
            unit: None,
            rows: 0,
            interim_end: Span::ZERO,
            interim: None,
            named: KeyvalFigures::default(),
        }
    }
}

impl NetperfTextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if let Some((title, rest)) =
            line.text.split_once(" TEST from ").filter(|(_, rest)| rest.contains(" to "))
        {
            return self.header(title, rest);
        }
        if let Some(rest) = line.after("Interim result: ") {
            return self.interim_line(line, rest);
        }
        if let Some((name, value)) = line.text.trim().split_once('=')
            && (name.starts_with("NETPERF_") || self.is_known(name, mine))
        {
            self.value(line, name, value);
            return true;
        }
        let errors = ["netperf: remote error ", "establish control: are you sure there is a netserver"];
        if errors.iter().any(|error| line.text.starts_with(error)) {
            self.parsed.test().error = Some(line.text.trim().into());
            return true;
        }
        mine && (self.row(line) || self.heading(line.text))
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        self.flush();
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    /// Ends the test; what follows is another one.
    pub(crate) fn close(&mut self) {
        self.flush();
        self.parsed.close();
        (self.table, self.unit, self.rows) = (None, None, 0);
        (self.interim_end, self.interim) = (Span::ZERO, None);
    }

    /// `MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 192.0.2.2 () port 0 AF_INET : demo`.
    fn header(&mut self, title: &str, rest: &str) -> bool {
        let table = match title.trim_start_matches("MIGRATED ") {
            "TCP STREAM" | "TCP MAERTS" | "OMNI Send" | "OMNI Receive" => NetperfTable::Stream,
            "UDP STREAM" => NetperfTable::Datagrams,
            "TCP REQUEST/RESPONSE" | "UDP REQUEST/RESPONSE" | "TCP Connect/Request/Response" => {
                NetperfTable::Transactions
            }
            _ => return false,
        };
        self.close();
        self.table = Some(table);
        let receives = title.ends_with("MAERTS") || title.ends_with("Receive");
        self.named.receives = Some(receives);
        let test = self.parsed.test();
        test.written_by = Some(ControlEnd::Client);
        test.spec.traffic.udp = title.contains("UDP");
        (test.spec.traffic.upload, test.spec.traffic.download) = (!receives, receives);
        test.target =
            rest.split_once(" to ").and_then(|(_, to)| to.split_whitespace().next()).map(Into::into);
        true
    }

    fn direction(&self) -> Option<Direction> {
        self.named.receives.map(direction)
    }

    /// A line above the figures, of which the last has the unit of the rate.
    fn heading(&mut self, text: &str) -> bool {
        let starts = ["Recv ", "Socket ", "Size ", "bytes ", "Local ", "Send ", "!!! ", "establish_control"];
        let known = text.trim().is_empty() || starts.iter().any(|start| text.starts_with(start));
        if known && text.starts_with("bytes") {
            self.unit = unit(text);
        }
        known && self.table.is_some() || text.starts_with("establish_control")
    }

    /// A line of figures.
    fn row(&mut self, line: NumberedLine<'_>) -> bool {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let numeric = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if words.is_empty() || !words.iter().all(numeric) {
            return false;
        }
        let row = self.rows;
        self.rows += 1;
        match (self.table, row, &words[..]) {
            (Some(NetperfTable::Stream), 0, [receive, send, size, time, rate, more @ ..]) => {
                self.buffers(line, &[(Quantity::ReceiveBuffer, receive), (Quantity::SendBuffer, send)]);
                self.message_size(line, size);
                let more = [(Quantity::CpuLocal, more.first()), (Quantity::CpuRemote, more.get(1))];
                self.total(
                    line,
                    Side::Receiver,
                    time,
                    Some(rate),
                    &more.map(|(of, word)| (of, word.copied())),
                );
            }
            (Some(NetperfTable::Datagrams), 0, [send, size, time, okay, _, rate, ..]) => {
                self.buffers(line, &[(Quantity::SendBuffer, send)]);
                self.message_size(line, size);
                self.total(line, Side::Sender, time, Some(rate), &[(Quantity::Packets, Some(okay))]);
            }
            (Some(NetperfTable::Datagrams), 1, [receive, time, okay, rate, ..]) => {
                self.buffers(line, &[(Quantity::ReceiveBuffer, receive)]);
                self.total(line, Side::Receiver, time, Some(rate), &[(Quantity::Packets, Some(okay))]);
            }
            // There is no figure for transactions per second.
            (Some(NetperfTable::Transactions), 0, [send, receive, _, _, time, ..]) => {
                self.buffers(line, &[(Quantity::SendBuffer, send), (Quantity::ReceiveBuffer, receive)]);
                self.total(line, Side::Sender, time, None, &[]);
            }
            (Some(NetperfTable::Transactions), 1, [_, _]) => {}
            _ => return false,
        }
        true
    }

    fn buffers(&mut self, line: NumberedLine<'_>, words: &[(Quantity, &str)]) {
        for (quantity, word) in words {
            if let Some(printed) = self.parsed.number(line, word, false) {
                self.parsed.test().effective.push(figure(*quantity, printed.exact(), *word));
            }
        }
    }

    fn message_size(&mut self, line: NumberedLine<'_>, word: &str) {
        if let Some(bytes) = self.parsed.number(line, word, false).filter(|size| size.value >= 1.0) {
            self.parsed.test().spec.traffic.length = Some(Bytes::new(bytes.value as u64));
        }
    }

    fn total(
        &mut self,
        line: NumberedLine<'_>,
        side: Side,
        time: &str,
        rate: Option<&str>,
        more: &[(Quantity, Option<&str>)],
    ) {
        let mut claim = Claim { side: Some(side), direction: self.direction(), ..of_line(line) };
        if let Some(printed) = self.parsed.number(line, time, false) {
            claim.figures.push(figure(Quantity::Seconds, printed, time));
        }
        match (rate, self.unit) {
            (Some(rate), Some(unit)) => {
                if let Some(printed) = self.parsed.number(line, rate, false) {
                    claim.figures.push(figure(Quantity::Bitrate, printed.times(unit), rate));
                }
            }
            (Some(_), None) => self.parsed.unread(line.number, None, "a rate without a unit above it"),
            (None, _) => {}
        }
        for (quantity, word) in more {
            // -1 means that it was not measured.
            let Some(word) = word.filter(|word| !word.starts_with('-')) else { continue };
            let Some(printed) = self.parsed.number(line, word, false) else { continue };
            let printed = if *quantity == Quantity::Packets { printed.exact() } else { printed.times(0.01) };
            claim.figures.push(figure(*quantity, printed, word));
        }
        self.parsed.claim(claim);
    }

    /// `Interim result: 9649.95 10^6bits/s over 0.504 seconds ending at 1795469364.152`.
    fn interim_line(&mut self, line: NumberedLine<'_>, rest: &str) -> bool {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [rate, units, "over", length, "seconds", ..] = &words[..] else { return false };
        if let Some(printed) = self.parsed.number(line, rate, false) {
            self.interim = Some((of_line(line), printed, (*rate).to_owned()));
            self.unit = unit(units);
            self.interim_ended(line, length);
        }
        true
    }

    /// An interim result is complete with its length.
    fn interim_ended(&mut self, line: NumberedLine<'_>, length: &str) {
        let Some((claim, rate, word)) = self.interim.take() else { return };
        let Some(seconds) = self.parsed.number(line, length, false) else { return };
        let (Some(unit), Some(span)) = (self.unit, Span::from_secs_f64(seconds.value)) else { return };
        let start = self.interim_end;
        self.interim_end = Span::from_ns(start.as_ns().saturating_add(span.as_ns()));
        let figures = vec![
            figure(Quantity::Seconds, seconds, length),
            figure(Quantity::Bitrate, rate.times(unit), word),
        ];
        self.parsed.claim(Claim {
            scope: ClaimScope::Interval,
            side: self.named.receives.map(own_side),
            direction: self.direction(),
            start: Some(start),
            end: Some(self.interim_end),
            figures,
            ..claim
        });
    }

    /// Whether a name of `-k` is read, or is the program's own.
    fn is_known(&self, name: &str, mine: bool) -> bool {
        let known =
            ["THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "REMOTE_BYTES_RECVD", "LOCAL_BYTES_RECVD"];
        let letters = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        known.contains(&name) || (mine && letters && !name.is_empty())
    }

    /// A name with its value.
    fn value(&mut self, line: NumberedLine<'_>, name: &str, value: &str) {
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        let count = |text: &mut Self, quantity| {
            let printed = text.parsed.number(line, value, false).filter(|printed| printed.value >= 0.0);
            printed.map(|printed| figure(quantity, printed.exact(), value))
        };
        match name {
            "NETPERF_INTERIM_RESULT" => {
                let printed = self.parsed.number(line, value, false);
                self.interim = printed.map(|printed| (of_line(line), printed, value.to_owned()));
            }
            "NETPERF_UNITS" => self.unit = unit(value),
            "NETPERF_INTERVAL" => self.interim_ended(line, value),
            "THROUGHPUT" => {
                if self.named.rate.is_some() {
                    self.close();
                }
                let printed = self.parsed.number(line, value, false);
                self.named.rate = printed.map(|printed| (of_line(line), printed, value.to_owned()));
            }
            "THROUGHPUT_UNITS" => self.named.unit = unit(value),
            "ELAPSED_TIME" => {
                if let Some(printed) = self.parsed.number(line, value, false) {
                    self.named.figures.push(figure(Quantity::Seconds, printed, value));
                }
            }
            "DIRECTION" => self.named.receives = Some(value.starts_with("Rec")),
            "PROTOCOL" => self.parsed.test().spec.traffic.udp = value == "UDP",
            "LOCAL_BYTES_RECVD" => self.named.received[0] = count(self, Quantity::Bytes),
            "REMOTE_BYTES_RECVD" => self.named.received[1] = count(self, Quantity::Bytes),
            "LOCAL_TRANSPORT_RETRANS" => self.named.retransmits[0] = count(self, Quantity::Retransmits),
            "REMOTE_TRANSPORT_RETRANS" => self.named.retransmits[1] = count(self, Quantity::Retransmits),
            _ => {}
        }
    }

    /// Makes claims of the named figures. The rate is that of the end that received. The direction may come after
    /// the intervals.
    fn flush(&mut self) {
        let named = std::mem::take(&mut self.named);
        let Some((claim, rate, word)) = named.rate else { return };
        let mut figures = named.figures;
        match named.unit.or(self.unit) {
            Some(unit) => figures.push(figure(Quantity::Bitrate, rate.times(unit), word)),
            None => self.parsed.unread(claim.line, None, "THROUGHPUT needs THROUGHPUT_UNITS"),
        }
        let test = self.parsed.test();
        test.written_by = Some(ControlEnd::Client);
        let mut sender = Claim { side: Some(Side::Sender), ..claim.clone() };
        let mut receiver = Claim { side: Some(Side::Receiver), figures, ..claim };
        if let Some(receives) = named.receives {
            (test.spec.traffic.upload, test.spec.traffic.download) = (!receives, receives);
            for interval in test.claims.iter_mut().filter(|claim| claim.scope == ClaimScope::Interval) {
                (interval.side, interval.direction) = (Some(own_side(receives)), Some(direction(receives)));
            }
            (sender.direction, receiver.direction) = (Some(direction(receives)), Some(direction(receives)));
            // The first count is the client's, the second the server's.
            let of = |[here, there]: [Option<Figure>; 2], own: bool| if own { here } else { there };
            receiver.figures.extend(of(named.received, receives));
            sender.figures.extend(of(named.retransmits, !receives));
        }
        self.parsed.claim(receiver);
        self.parsed.claim(sender);
    }
}
