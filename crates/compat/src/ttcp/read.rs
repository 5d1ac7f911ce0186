//! Parser for output of ttcp: the BRL program of 1987, the SGI and Ohio variants, and PCATTCP 1 and 2.

use linerate_model::Direction;
use linerate_model::import::{Claim, ControlEnd, ForeignResult, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Bytes;

use crate::import::classic::{after, before, calls, rate_unit, usage};
use crate::import::line::NumberedLine;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct TtcpTextReader {
    parsed: ParsedTest,
    side: Option<Side>,
    /// The transmitter accepts the connection, or the receiver opens it (`-S`, `-C`).
    turned: bool,
    /// Whether the result has been read.
    complete: bool,
}

impl Default for TtcpTextReader {
    fn default() -> Self {
        Self { parsed: ParsedTest::new("ttcp"), side: None, turned: false, complete: false }
    }
}

/// The role and the text of a line that begins with the program's name.
fn named(text: &str) -> Option<(Side, &str)> {
    // The Ohio variant prints its running rate on the same line before the final ones.
    let at = text.rfind("ttcp-t: ").or_else(|| text.rfind("ttcp-r: "))?;
    // nuttcp-t is not ttcp-t.
    if text[..at].ends_with("nu") {
        return None;
    }
    let side = if text[at..].starts_with("ttcp-t") { Side::Sender } else { Side::Receiver };
    Some((side, &text[at + 8..]))
}

impl TtcpTextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if let Some((side, text)) = named(line.text) {
            self.role(side, text);
            if !self.figures(line, text) {
                self.setup(line, text);
            }
            return true;
        }
        if let Some(pcattcp) =
            ["TCP Transmit Test", "TCP Receive Test", "UDP Transmit Test", "UDP Receive Test"]
                .iter()
                .find(|words| line.text.contains(**words))
        {
            self.close();
            self.side = Some(if pcattcp.contains("Transmit") { Side::Sender } else { Side::Receiver });
            self.parsed.test().spec.traffic.udp = pcattcp.starts_with("UDP");
            return true;
        }
        if line.text.contains("PCAUSA Test TCP Utility") {
            self.close();
            if let Some(version) = line.word_after("Utility V") {
                self.parsed.version(version);
            }
            return true;
        }
        if line.text.contains(" real seconds = ") && line.text.contains("+++") && !line.text.contains("MB in")
        {
            if self.complete {
                self.close();
            }
            return self.figures(line, line.text);
        }
        mine && (self.figures(line, line.text) || self.pcattcp(line))
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        self.describe();
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    /// Ends the test; what follows is another one.
    pub(crate) fn close(&mut self) {
        self.describe();
        self.parsed.close();
        (self.side, self.turned, self.complete) = (None, false, false);
    }

    /// Sets the writer and the direction of the test: the transmitter connects.
    fn describe(&mut self) {
        let (Some(side), Some(_)) = (self.side, self.parsed.current()) else { return };
        let turned = self.turned;
        let test = self.parsed.test();
        let client = (side == Side::Sender) != turned;
        test.written_by = Some(if client { ControlEnd::Client } else { ControlEnd::Server });
        let direction = if turned { Direction::Download } else { Direction::Upload };
        (test.spec.traffic.upload, test.spec.traffic.download) = (!turned, turned);
        for claim in &mut test.claims {
            (claim.side, claim.direction) = (Some(side), Some(direction));
        }
    }

    fn role(&mut self, side: Side, text: &str) {
        let begins = self.complete && (text.contains("buflen=") || text.starts_with("socket"));
        if begins || self.side.is_some_and(|known| known != side) {
            self.close();
        }
        self.side = Some(side);
    }

    fn setup(&mut self, line: NumberedLine<'_>, text: &str) {
        self.turned |= match self.side {
            Some(Side::Sender) => text.starts_with("listen") || text.starts_with("accept"),
            _ => text.trim() == "connect" || text.contains(" -> "),
        };
        let udp = text.contains("  udp");
        let test = self.parsed.test();
        test.spec.traffic.udp |= udp;
        if let Some(host) = text.split_once(" -> ").map(|(_, host)| host.trim()) {
            test.target = Some(host.into());
        } else if let Some(host) = text.strip_prefix("accept from ") {
            test.target = Some(host.trim().into());
        } else if let Some((step, reason)) = text.split_once(": ") {
            test.error = Some(format!("{step}: {}", reason.trim()).into());
        }
        let Some(found) = after(line, text, "buflen=", Quantity::MessageSize, 1.0, &mut self.parsed) else {
            return;
        };
        let buffer = after(line, text, "sockbufsize=", Quantity::Bytes, 1.0, &mut self.parsed);
        let test = self.parsed.test();
        test.spec.traffic.length = Some(Bytes::new(found.value as u64));
        test.spec.socket.window = buffer.map(|bytes| Bytes::new(bytes.value as u64));
    }

    fn pcattcp(&mut self, line: NumberedLine<'_>) -> bool {
        let Some((word, rest)) = line.text.split_once(':') else {
            return line.text.trim_start().starts_with("***");
        };
        let test = self.parsed.test();
        match word.trim() {
            "Statistics" | "Transmit" | "Accept" | "recvfrom" => {
                let peer = rest.split_once("-> ").or_else(|| rest.split_once("<- "));
                if let Some((transport, peer)) = peer {
                    test.spec.traffic.udp = transport.trim() == "UDP";
                    let host = peer.trim().rsplit_once(':').map_or(peer.trim(), |(host, _)| host);
                    test.target = Some(host.into());
                }
            }
            "*** Winsock Error" => test.error = Some(rest.trim().into()),
            "Buffer Size" | "TCP_NODELAY" | "Connect" | "Send Mode" | "Receive Mode" | "Local Host"
            | "Listening..." | "Port" | "Protocol" | "Threading" | "SO_SNDBUF" | "SO_RCVBUF" | "errno" => {}
            _ => return false,
        }
        true
    }

    /// Parses a line with figures; false for every other.
    fn figures(&mut self, line: NumberedLine<'_>, text: &str) -> bool {
        let parsed = &mut self.parsed;
        let mut found = Vec::new();
        if text.contains(" real seconds = ") {
            found.push(before(line, text, " bytes in ", Quantity::Bytes, 1.0, parsed));
            found.push(before(line, text, " real seconds = ", Quantity::Seconds, 1.0, parsed));
            let mut words = text.split_once(" = ").map_or("", |(_, rest)| rest).split_whitespace();
            if let (Some(amount), Some(unit)) = (words.next(), words.next())
                && let Some(factor) = rate_unit(unit)
                && let Some(rate) = parsed.number(line, amount, false)
            {
                found.push(Some(figure(Quantity::Bitrate, rate.times(factor), format!("{amount} {unit}"))));
            }
            self.complete = true;
        } else if text.contains(" bytes processed") {
            found.push(before(line, text, " bytes processed", Quantity::Bytes, 1.0, parsed));
        } else if text.contains(" real sec ") {
            found.extend(brl(line, text, parsed));
            self.complete = true;
        } else if let Some(share) = usage(line, text, parsed) {
            found.push(Some(share));
        } else {
            found.extend(calls(line, text, parsed).into_iter().map(Some));
        }
        let known = !found.is_empty() || text.contains(" CPU sec") || text.contains("buffer address");
        let figures = found.into_iter().flatten().collect();
        self.parsed.claim(Claim { figures, ..of_line(line) });
        known
    }
}

/// `0.175787 real sec = 23300.9 KB/real sec, 186407 Kbits/sec`: six significant digits each.
fn brl(
    line: NumberedLine<'_>,
    text: &str,
    parsed: &mut ParsedTest,
) -> Vec<Option<linerate_model::import::Figure>> {
    let mut found = Vec::new();
    for (word, quantity, factor) in
        [(" real sec ", Quantity::Seconds, 1.0), (" Kbits/sec", Quantity::Bitrate, 1024.0)]
    {
        let amount = text.split_once(word).and_then(|(front, _)| front.split_whitespace().next_back());
        if let Some(amount) = amount
            && let Some(printed) = parsed.number(line, amount, false)
        {
            let printed = printed.significant(6).times(factor);
            found.push(Some(figure(quantity, printed, format!("{amount}{}", word.trim_end()))));
        }
    }
    found
}
