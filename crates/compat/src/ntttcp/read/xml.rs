//! The XML of `-x`: a flat list of elements except for the threads, one element per line.

use linerate_model::import::{Claim, ForeignTest, Quantity};
use linerate_model::metrics::Side;
use linerate_units::Span;

use super::document::{kilo, rate};
use super::{describe, put};
use crate::import::line::NumberedLine;
use crate::import::parsed_test::{ParsedTest, figure};

/// A document whose lines are being read.
#[derive(Debug)]
pub(super) struct Xml {
    side: Side,
    kilo: f64,
    test: ForeignTest,
    /// The claim being filled: that of a thread, or the totals.
    claim: Claim,
    totals: Claim,
    first_line: u32,
}

/// The value of an attribute.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!("{name}=\""))?.1.split('"').next()
}

impl Xml {
    /// The document that begins in this line, if any.
    pub(super) fn begins(line: NumberedLine<'_>, parsed: &mut ParsedTest) -> Option<Self> {
        let (side, rest) = match (line.after("<ntttcps "), line.after("<ntttcpr ")) {
            (Some(rest), _) => (Side::Sender, rest),
            (None, Some(rest)) => (Side::Receiver, rest),
            (None, None) => return None,
        };
        let version = attribute(rest, "version").unwrap_or_default();
        parsed.version(version);
        Some(Self {
            side,
            kilo: kilo(version),
            test: ForeignTest::default(),
            claim: Claim::default(),
            totals: Claim { line: line.number, quote: "totals".into(), ..Claim::default() },
            first_line: line.number,
        })
    }

    /// Parses the elements of a line; true for the last line.
    pub(super) fn take(&mut self, line: NumberedLine<'_>, parsed: &mut ParsedTest) -> bool {
        let mut rest = line.text;
        while let Some((_, from)) = rest.split_once('<') {
            let Some((tag, after)) = from.split_once('>') else {
                parsed.unread(line.number, line.column(from), "an element has no end tag");
                return false;
            };
            let (text, _) = after.split_once('<').unwrap_or((after, ""));
            if tag.starts_with("/ntttcp") {
                return true;
            }
            self.element(line, tag, text, parsed);
            rest = after;
        }
        false
    }

    fn element(&mut self, line: NumberedLine<'_>, tag: &str, text: &str, parsed: &mut ParsedTest) {
        let name = tag.split_whitespace().next().unwrap_or_default();
        let metric = attribute(tag, "metric").unwrap_or_default();
        match name {
            "thread" => {
                let stream = attribute(tag, "index").and_then(|index| index.parse().ok());
                let quote = format!("thread {}", attribute(tag, "index").unwrap_or_default());
                self.claim = Claim { line: line.number, quote: quote.into(), stream, ..Claim::default() };
                return;
            }
            "/thread" => {
                let thread = std::mem::take(&mut self.claim);
                put(&mut self.test, thread);
                return;
            }
            "udp" => self.test.spec.traffic.udp = text == "True",
            "run_time" => self.test.spec.traffic.duration = seconds(text),
            "warmup_time" => self.test.spec.traffic.omit = seconds(text),
            _ => {}
        }
        let mega = self.kilo * self.kilo;
        let found = match (name, metric) {
            ("total_bytes", "MB") => Some((Quantity::Bytes, mega)),
            ("realtime", "s") => Some((Quantity::Seconds, 1.0)),
            ("throughput", metric) => rate(metric, self.kilo).map(|factor| (Quantity::Bitrate, factor)),
            ("avg_packets_per_interrupt", _) => Some((Quantity::PacketsPerInterrupt, 1.0)),
            ("tcp_retransmits", "retrans_segs") => Some((Quantity::Retransmits, 1.0)),
            ("cycles_per_byte" | "cycles", _) => Some((Quantity::CyclesPerByte, 1.0)),
            ("tcp_average_rtt", "us") => Some((Quantity::RoundTrip, 1e-6)),
            _ => None,
        };
        let Some((quantity, factor)) = found else { return };
        let Some(printed) = parsed.number(line, text, true) else { return };
        let claim = if self.claim.line > 0 { &mut self.claim } else { &mut self.totals };
        if quantity == Quantity::Bytes {
            claim.line = line.number;
        }
        let printed = if quantity == Quantity::Retransmits { printed.exact() } else { printed.times(factor) };
        // The rate is given in several units, the most precise last.
        claim.figures.retain(|known| known.quantity != quantity);
        claim.figures.push(figure(quantity, printed, format!("{text} {metric}").trim_end()));
    }

    /// Ends the test, complete or not.
    pub(super) fn finish(mut self, whole: bool, parsed: &mut ParsedTest) {
        if !whole {
            let why = "the document that begins here is incomplete";
            parsed.unread(self.first_line, None, why);
        }
        for claim in [std::mem::take(&mut self.claim), std::mem::take(&mut self.totals)] {
            put(&mut self.test, claim);
        }
        describe(&mut self.test, self.side);
        parsed.add(self.test);
    }
}

fn seconds(text: &str) -> Option<Span> {
    text.parse().ok().filter(|count| *count > 0).map(Span::from_secs)
}
