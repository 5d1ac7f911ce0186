//! Parser for output of nuttcp: the summary line, intervals, `-fparse` and the blocks of `-v`, 6.1.2 to 8.2.2.

use linerate_model::Direction;
use linerate_model::import::{Claim, ClaimScope, ControlEnd, Figure, ForeignResult, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Bytes;

use crate::import::classic::{after, before, calls, usage};
use crate::import::line::NumberedLine;
use crate::import::parsed_test::{ParsedTest, figure, of_line};

const MEGA: f64 = 1_048_576.0;

/// Parses text line by line.
#[derive(Debug)]
pub(crate) struct NuttcpTextReader {
    parsed: ParsedTest,
    /// Roles of the ends with reports in blocks, the client's first.
    blocks: Vec<Side>,
    /// Whether the test ran without a server, as a plain ttcp transmitter.
    classic: bool,
}

impl Default for NuttcpTextReader {
    fn default() -> Self {
        Self { parsed: ParsedTest::new("nuttcp"), blocks: Vec::new(), classic: false }
    }
}

fn named(text: &str) -> Option<(Side, &str)> {
    let (_, rest) = text.split_once("nuttcp-")?;
    let side = match rest.as_bytes().first()? {
        b't' => Side::Sender,
        b'r' => Side::Receiver,
        _ => return None,
    };
    let (name, rest) = rest.split_once(": ")?;
    (name.len() < 64).then_some((side, rest))
}

impl NuttcpTextReader {
    /// Parses a line; false if this program did not write it. `mine` states that it wrote the previous line.
    pub(crate) fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        if let Some((side, text)) = named(line.text) {
            self.block(line, side, text);
            return true;
        }
        if line.text.contains(" MB / ") && line.text.contains(" sec = ") {
            self.brief(line);
            return true;
        }
        if line.text.contains("megabytes=") && line.text.contains("rate_Mbps=") {
            self.parsed(line);
            return true;
        }
        if let Some(reason) = line.after("connect failed: ").filter(|_| mine) {
            self.parsed.test().error = Some(reason.trim().into());
            return true;
        }
        if line.text.contains(" only supported for client/server mode") {
            self.parsed.test().error = Some(line.quote());
            return true;
        }
        mine && line.text.contains("errno=")
    }

    /// Returns everything that was parsed since the last call.
    pub(crate) fn finish(&mut self) -> Option<ForeignResult> {
        self.close();
        let reading = self.parsed.finish();
        *self = Self::default();
        reading
    }

    /// Ends the test; what follows is another one.
    pub(crate) fn close(&mut self) {
        if self.parsed.current().is_some() {
            let upload = self.blocks.first().map(|side| *side == Side::Sender);
            let upload = upload.or(self.classic.then_some(true));
            let test = self.parsed.test();
            test.written_by = Some(ControlEnd::Client);
            if let Some(upload) = upload {
                let direction = if upload { Direction::Upload } else { Direction::Download };
                (test.spec.traffic.upload, test.spec.traffic.download) = (upload, !upload);
                test.claims.iter_mut().for_each(|claim| claim.direction = Some(direction));
            }
        }
        self.parsed.close();
        self.blocks.clear();
        self.classic = false;
    }

    /// Parses a line of `-v`, or an error.
    fn block(&mut self, line: NumberedLine<'_>, side: Side, text: &str) {
        if text.ends_with(": socket") && self.blocks.contains(&side) {
            self.close();
        }
        if let Some(version) = text.strip_prefix('v').and_then(|rest| rest.split_once(": ")) {
            self.parsed.version(version.0);
        }
        self.classic |= text.contains("\"classic\" mode");
        if let Some((_, reason)) = text.split_once("Error: ") {
            self.parsed.test().error = Some(reason.trim().into());
            return;
        }
        if text.ends_with(": socket") || (text.contains("eal") && text.contains("rate_Mbps=")) {
            self.note_block(side);
        }
        self.setup(line, text);
        let parsed = &mut self.parsed;
        let mut figures = Vec::new();
        if text.contains(" MB in ") && text.contains(" real seconds = ") {
            figures.push(before(line, text, " MB in ", Quantity::Bytes, MEGA, parsed));
            figures.push(before(line, text, " real seconds", Quantity::Seconds, 1.0, parsed));
            figures.push(before(line, text, " Mbps", Quantity::Bitrate, 1e6, parsed));
        } else if text.contains("real_seconds=") {
            figures.extend(parsed_words(line, text, parsed).into_iter().map(Some));
        } else if text.contains("retrans") {
            let word = if text.contains("retrans = ") { "retrans = " } else { "retrans=" };
            figures.push(after(line, text, word, Quantity::Retransmits, 1.0, parsed));
            let word = if text.contains("cwnd = ") { "cwnd = " } else { "cwnd=" };
            figures.push(after(line, text, word, Quantity::CongestionWindow, 1024.0, parsed));
        } else if let Some(found) = usage(line, text, parsed) {
            let quantity = cpu_of(side);
            figures.push(Some(Figure { quantity, ..found }));
        } else {
            figures.extend(calls(line, text, parsed).into_iter().map(Some));
        }
        let figures = figures.into_iter().flatten().collect();
        self.parsed.claim(Claim { side: Some(side), figures, ..of_line(line) });
    }

    fn note_block(&mut self, side: Side) {
        if !self.blocks.contains(&side) {
            self.blocks.push(side);
        }
    }

    fn setup(&mut self, line: NumberedLine<'_>, text: &str) {
        let parsed = &mut self.parsed;
        let length = after(line, text, "buflen=", Quantity::MessageSize, 1.0, parsed);
        let streams = after(line, text, "nstream=", Quantity::MessageSize, 1.0, parsed);
        let mss = after(line, text, "mss=", Quantity::Mss, 1.0, parsed);
        let rtt = after(line, text, "RTT=", Quantity::RoundTrip, 1e-3, parsed)
            .or_else(|| after(line, text, "rtt_ms=", Quantity::RoundTrip, 1e-3, parsed));
        let test = parsed.test();
        if let Some(length) = length {
            test.spec.traffic.length = Some(Bytes::new(length.value as u64));
            test.spec.traffic.udp |= text.contains(" udp") || text.contains("mode=udp");
        }
        if let Some(streams) = streams {
            test.spec.traffic.streams = streams.value as u32;
        }
        let host =
            text.split_once(" -> ").map(|(_, host)| host).or_else(|| Some(text.split_once(" host=")?.1));
        if let Some(host) = host.and_then(|host| host.split_whitespace().next()) {
            test.target = Some(host.into());
        }
        for mut found in mss.into_iter().chain(rtt) {
            if found.quantity == Quantity::Mss {
                found.step = 0.0;
            }
            test.effective.push(found);
        }
    }

    /// `68.8905 MB / 3.06 sec = 188.9408 Mbps 0 %TX 8 %RX …`; an interval has no CPU shares.
    fn brief(&mut self, line: NumberedLine<'_>) {
        // The running total and the additions of the transmitter are separate figures.
        let cut = line.text.find(" Tot:").or_else(|| line.text.find(" Trans:")).unwrap_or(line.text.len());
        let (text, more) = line.text.split_at(cut);
        let total = text.contains("%TX") || text.contains("%RX");
        let mut claim = Claim { scope: scope(total), ..of_line(line) };
        // In both directions the receiver's counts are printed; a plain ttcp transmitter does not know them.
        claim.side = Some(if self.classic { Side::Sender } else { Side::Receiver });
        let parsed = &mut self.parsed;
        let mut found = vec![
            before(line, text, " MB / ", Quantity::Bytes, MEGA, parsed),
            before(line, text, " sec = ", Quantity::Seconds, 1.0, parsed),
            before(line, text, " Mbps", Quantity::Bitrate, 1e6, parsed),
        ];
        let words = [
            (" %TX", Quantity::CpuSender, 0.01),
            (" %RX", Quantity::CpuReceiver, 0.01),
            (" retrans", Quantity::Retransmits, 1.0),
            (" host-retrans", Quantity::Retransmits, 1.0),
            (" KB-cwnd", Quantity::CongestionWindow, 1024.0),
            (" msRTT", Quantity::RoundTrip, 1e-3),
            (" msAvgOWD", Quantity::OneWay, 1e-3),
            (" %loss", Quantity::LossRatio, 0.01),
            (" ~%loss", Quantity::LossRatio, 0.01),
            (" drop/pkt", Quantity::Packets, 1.0),
            (" ~drop/pkt", Quantity::Packets, 1.0),
        ];
        for (word, quantity, factor) in words {
            if text.contains(word) {
                found.push(before(line, text, word, quantity, factor, parsed));
            }
        }
        let drops = text.split_once(" drop/pkt").or_else(|| text.split_once(" ~drop/pkt"));
        if let Some((front, _)) = drops {
            let front = front.rsplit_once(" / ").map_or("", |(front, _)| front);
            if let Some(amount) = front.split_whitespace().next_back()
                && let Some(lost) = parsed.number(line, amount, false)
            {
                found.push(Some(figure(Quantity::Lost, lost.exact(), amount)));
            }
            parsed.test().spec.traffic.udp = true;
        }
        claim.figures = found.into_iter().flatten().collect();
        self.parsed.claim(claim);
        if let Some(sent) = more.rsplit_once("Trans:").map(|(_, rest)| rest).filter(|_| total) {
            let found = before(line, sent, " MB", Quantity::Bytes, MEGA, &mut self.parsed);
            let figures = found.into_iter().collect();
            self.parsed.claim(Claim { side: Some(Side::Sender), figures, ..of_line(line) });
        }
        if total {
            self.close();
        }
    }

    /// `megabytes=46.4048 real_seconds=2.06 rate_Mbps=188.8920 …`.
    fn parsed(&mut self, line: NumberedLine<'_>) {
        let total = line.text.contains("real_seconds=");
        let figures = parsed_words(line, line.text, &mut self.parsed);
        self.parsed.test().spec.traffic.udp |= line.text.contains("data_loss=");
        self.parsed.claim(Claim {
            scope: scope(total),
            side: Some(Side::Receiver),
            figures,
            ..of_line(line)
        });
        if total {
            self.close();
        }
    }
}

const fn scope(total: bool) -> ClaimScope {
    if total { ClaimScope::Total } else { ClaimScope::Interval }
}

const fn cpu_of(side: Side) -> Quantity {
    match side {
        Side::Sender => Quantity::CpuSender,
        Side::Receiver => Quantity::CpuReceiver,
    }
}

/// Parses the words of `-fparse`.
fn parsed_words(line: NumberedLine<'_>, text: &str, parsed: &mut ParsedTest) -> Vec<Figure> {
    let names = [
        ("megabytes=", Quantity::Bytes, MEGA),
        ("real_sec=", Quantity::Seconds, 1.0),
        ("real_seconds=", Quantity::Seconds, 1.0),
        ("rate_Mbps=", Quantity::Bitrate, 1e6),
        ("tx_cpu=", Quantity::CpuSender, 0.01),
        ("rx_cpu=", Quantity::CpuReceiver, 0.01),
        ("retrans=", Quantity::Retransmits, 1.0),
        ("cwnd=", Quantity::CongestionWindow, 1024.0),
        ("rtt_ms=", Quantity::RoundTrip, 1e-3),
        ("drop=", Quantity::Lost, 1.0),
        ("pkt=", Quantity::Packets, 1.0),
        ("data_loss=", Quantity::LossRatio, 0.01),
    ];
    let found = names.into_iter().filter_map(|(name, quantity, factor)| {
        text.contains(name).then(|| after(line, text, name, quantity, factor, parsed)).flatten()
    });
    found.collect()
}
