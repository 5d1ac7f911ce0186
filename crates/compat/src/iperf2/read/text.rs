//! The text of iperf 2. A client's part of a file is one test; a server's part is one test per client.

use std::collections::BTreeMap;

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, ControlEnd, ForeignResult, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Bytes;

use super::{TotalLineFinder, notes};
use crate::import::bracket::{Bracket, datagrams, find};
use crate::import::line::NumberedLine;
use crate::import::number::is_no_number;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// Identifies a line of a stream: its number, whether it is reverse, and whether it is the other end's report.
type Iperf2LineKey = (Option<u32>, bool, bool);

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct Iperf2TextReader {
    parsed: ParsedTest,
    /// The port on which the last banner listens.
    listens: Option<String>,
    /// Whether the test has the banner of a client.
    connects: bool,
    /// Directions of the connections by number; absent for a bounce-back connection.
    ways: BTreeMap<(u32, bool), Option<Direction>>,
    /// The next line of this stream has the counts of the other end.
    report: Option<u32>,
    totals: TotalLineFinder<Iperf2LineKey>,
    /// Whether the claims of a complete test were made.
    complete: bool,
    enhanced_sender: bool,
}

impl Default for Iperf2TextReader {
    fn default() -> Self {
        Self {
            parsed: ParsedTest::new("iperf2"),
            listens: None,
            connects: false,
            ways: BTreeMap::new(),
            report: None,
            totals: TotalLineFinder::default(),
            complete: false,
            enhanced_sender: false,
        }
    }
}

impl Iperf2TextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if self.banner(line) || self.connection(line) || self.header(line) {
            return true;
        }
        if let Some(bracket) = Bracket::of(line)
            && bracket.version().is_none_or(|version| version == 2)
        {
            self.figures(line, &bracket);
            return true;
        }
        mine && (self.remark(line) || self.failed(line) || self.boilerplate(line))
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    /// Ends the test; what follows is another one of the same end, or a new file.
    pub(crate) fn close(&mut self) {
        let end = self.parsed.current().and_then(|test| test.written_by);
        self.parsed.close();
        self.ways.clear();
        self.totals = TotalLineFinder::default();
        (self.report, self.complete) = (None, false);
        if end == Some(ControlEnd::Server) {
            self.parsed.test().written_by = end;
        } else {
            (self.connects, self.listens) = (false, None);
        }
    }

    /// Begins the output of another run of the program.
    pub(crate) fn restart(&mut self) {
        self.close();
        self.parsed.close();
        *self = Self { parsed: std::mem::take(&mut self.parsed), ..Self::default() };
    }

    fn banner(&mut self, line: NumberedLine<'_>) -> bool {
        if let Some(rest) = line.after("Client connecting to ") {
            if self.connects || (self.parsed.has_claims() && self.server() != Some(true)) {
                self.restart();
            }
            let (host, rest) = rest.split_once(", ").unwrap_or((rest, ""));
            // A server that connects back belongs to the test of its client.
            if self.server() != Some(true) {
                self.connects = true;
                let test = self.parsed.test();
                test.written_by = Some(ControlEnd::Client);
                test.target = Some(host.trim().into());
                test.spec.traffic.udp = rest.starts_with("UDP");
            }
            return true;
        }
        let Some(rest) = line.after("Server listening on ") else { return self.size(line) };
        if self.parsed.has_claims() {
            self.restart();
        }
        self.listens = rest.split_whitespace().nth(2).map(str::to_owned);
        self.parsed.test().spec.traffic.udp = rest.starts_with("UDP");
        true
    }

    /// Whether a server wrote this; absent before the first connection.
    fn server(&self) -> Option<bool> {
        self.parsed.current()?.written_by.map(|end| end == ControlEnd::Server)
    }

    fn size(&mut self, line: NumberedLine<'_>) -> bool {
        let quantity = if self.connects { Quantity::SendBuffer } else { Quantity::ReceiveBuffer };
        if let Some(rest) = line.after("window size:").or_else(|| line.after("buffer size:")) {
            if let Some(found) = notes::window(rest, quantity).filter(|_| !line.text.contains("ead buffer")) {
                let test = self.parsed.test();
                // The default is the initial size that the kernel uses; a requested size is the final one.
                let asked = (!line.text.contains("(default)")).then(|| Bytes::new(found.value as u64));
                test.spec.socket.window = test.spec.socket.window.or(asked);
                test.effective.retain(|known| known.quantity != quantity);
                test.effective.push(found);
            }
            return true;
        }
        let length = line.after("Sending ").filter(|rest| rest.contains(" byte datagrams"));
        if let Some(length) = length.and_then(|rest| rest.split(' ').next()?.parse().ok()) {
            self.parsed.test().spec.traffic.length = Some(Bytes::new(length));
            return true;
        }
        line.text.trim_start().starts_with("tcp connect failed: ") && self.failed(line)
    }

    fn failed(&mut self, line: NumberedLine<'_>) -> bool {
        let steps = ["connect failed: ", "write failed: ", "read failed: ", "bind failed: "];
        let Some(step) = steps.iter().find(|step| line.text.contains(**step)) else { return false };
        let reason = line.after(step).unwrap_or_default().trim();
        self.parsed.test().error = Some(format!("{step}{reason}").into());
        true
    }

    /// `[  1] local A port P connected with B port Q (notes)`.
    fn connection(&mut self, line: NumberedLine<'_>) -> bool {
        let found = find(line, |id, star, rest| {
            let rest = rest.trim_start().strip_prefix("local ")?;
            let (local, remote) = rest.split_once(" connected with ")?;
            Some((id?, star, local, remote))
        });
        let Some((id, star, local, remote)) = found else { return false };
        let port = local.split_whitespace().next_back().map(str::to_owned);
        let incoming = port.is_some() && port == self.listens;
        if !self.connects && !incoming && !star && self.server().is_none() && self.listens.is_some() {
            // A client that also listens prints its own connection before the incoming one.
            self.parsed.test().written_by = Some(ControlEnd::Client);
        }
        if !self.connects && incoming && self.server() != Some(false) {
            if self.complete {
                self.close();
            }
            let test = self.parsed.test();
            test.written_by = Some(ControlEnd::Server);
            test.target.get_or_insert_with(|| remote.split(' ').next().unwrap_or_default().into());
        }
        let server = self.server() == Some(true);
        let backwards =
            star || remote.contains("(reverse)") || (server != incoming && self.listens.is_some());
        let way = if backwards { Direction::Download } else { Direction::Upload };
        // A bounce-back test uses both directions.
        let way = (!remote.contains("(bb ")).then_some(way);
        self.ways.insert((id, star), way);
        if remote.contains("(full-duplex)") || (remote.contains("(reverse)") && !server) {
            self.ways.insert((id, true), Some(Direction::Download));
        }
        let test = self.parsed.test();
        let started = notes::started(line);
        test.started_at = test.started_at.take().or(started.map(Into::into));
        for found in notes::first_window(line) {
            if !test.effective.iter().any(|known| known.quantity == found.quantity) {
                test.effective.push(found);
            }
        }
        true
    }

    fn header(&mut self, line: NumberedLine<'_>) -> bool {
        let Some(head) = line.after("[ ID] Interval  ") else { return false };
        if head.starts_with("         Transfer") || !head.contains("andwidth") {
            return false;
        }
        self.enhanced_sender = head.contains("Rtry") && !head.contains("BB cnt");
        self.parsed.test();
        true
    }

    /// Parses lines about a stream that have no interval.
    fn remark(&mut self, line: NumberedLine<'_>) -> bool {
        let found = find(line, |id, _, rest| {
            let rest = rest.trim();
            (rest == "Server Report:" || rest.ends_with(" datagrams")).then_some((id, rest))
        });
        let Some((id, rest)) = found else { return false };
        if rest == "Server Report:" {
            self.report = id;
        } else if let Some(count) = rest.strip_prefix("Sent ").and_then(|rest| rest.split(' ').next()) {
            // The end that wrote the line has sent them.
            let sent = |server: bool| if server { Direction::Download } else { Direction::Upload };
            let direction = id.and(self.server()).map(sent).or_else(|| self.only_direction());
            let mut claim = Claim { stream: id, direction, side: Some(Side::Sender), ..of_line(line) };
            if let Some(printed) = self.parsed.number(line, count, false) {
                claim.figures.push(figure(Quantity::Packets, printed.exact(), rest));
            }
            self.parsed.claim(claim);
        }
        true
    }

    fn boilerplate(&self, line: NumberedLine<'_>) -> bool {
        let words =
            ["Write buffer size", "TOS ", "Bursting", "ounce-back", "ounceback", "Isochronous", "MSS req"];
        let more = ["Waiting for server", "WARNING", "TCP congestion control", "-PDF:"];
        words.iter().chain(&more).any(|word| line.text.contains(word))
    }

    /// The direction of a stream's data, and the side that counted a line of the writer.
    fn direction(&self, id: Option<u32>, star: bool) -> (Option<Direction>, Option<Side>) {
        let direction = match id {
            Some(id) => match self.ways.get(&(id, star)) {
                Some(known) => *known,
                None if star => Some(Direction::Download),
                None => self.ways.get(&(id, true)).copied().flatten().or_else(|| self.only_direction()),
            },
            None => self.only_direction(),
        };
        let server = self.server();
        let side = direction.zip(server).map(|(direction, server)| {
            if (direction == Direction::Upload) == server { Side::Receiver } else { Side::Sender }
        });
        (direction, side)
    }

    /// The direction of all connections, if it is the same.
    fn only_direction(&self) -> Option<Direction> {
        let mut ways = self.ways.values();
        let first = *ways.next()?;
        ways.all(|way| *way == first).then_some(first).flatten()
    }

    fn figures(&mut self, line: NumberedLine<'_>, bracket: &Bracket<'_>) {
        let reported = bracket.id.is_some() && self.report == bracket.id;
        let (direction, side) = self.direction(bracket.id, bracket.star);
        let side = if reported { Some(Side::Receiver) } else { side };
        if let Some((count, _)) = bracket.rest.split_once(" datagrams received out-of-order") {
            let mut claim = Claim { stream: bracket.id, direction, ..of_line(line) };
            claim.side = Some(Side::Receiver);
            // It follows the line of its interval.
            let test = self.parsed.test();
            claim.scope = test.claims.last().map_or(ClaimScope::Total, |last| last.scope);
            if let Some(count) = self.parsed.number(line, count.trim(), false) {
                claim.figures.push(figure(Quantity::OutOfOrder, count.exact(), bracket.rest.trim()));
            }
            self.parsed.claim(claim);
            return;
        }
        let Some((mut claim, tail)) = bracket.claim(line, &mut self.parsed) else { return };
        (claim.direction, claim.side) = (direction, side);
        let test = self.parsed.test();
        let at = test.claims.len();
        let key = (bracket.id, bracket.star, reported);
        claim.scope = self.totals.scope(test, key, bracket.from.value, at);
        self.complete |= claim.scope == ClaimScope::Total;
        if self.enhanced_sender && tail.contains('/') && !tail.contains(" ms ") {
            claim.figures.extend(notes::tcp_sender(tail));
        } else if tail.contains("%)") {
            claim.figures.extend(datagrams(line, tail, &mut self.parsed));
            self.parsed.test().spec.traffic.udp = true;
        }
        claim.figures.extend(notes::packet_rate(tail));
        claim.figures.retain(|figure| !is_no_number(&figure.printed));
        self.parsed.claim(claim);
        if reported {
            self.report = None;
        }
    }
}
