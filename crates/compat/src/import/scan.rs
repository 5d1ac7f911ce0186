//! One pass over a text: passes documents and lines to the parsers.

use linerate_model::import::ForeignResult;

use super::json::{self, JsonNode};
use super::line::{NumberedLine, plain};
use super::own;
use super::parsed_test::ParsedTest;
use crate::{iperf2, iperf3, netperf, netpipe, ntttcp, nuttcp, ttcp};

/// Longest line that any of the programs writes, with room for what loggers add.
const MAX_LINE: usize = 64 << 10;

/// A parser of text lines.
enum TextReader {
    Iperf3(iperf3::read::Iperf3TextReader),
    Iperf2(iperf2::read::Iperf2TextReader),
    Csv(iperf2::read::Csv),
    Ttcp(ttcp::read::TtcpTextReader),
    Nuttcp(nuttcp::read::NuttcpTextReader),
    Ntttcp(ntttcp::read::NtttcpTextReader),
    Netpipe(netpipe::read::NetpipeTextReader),
    Netperf(Box<netperf::read::NetperfTextReader>),
}

/// Makes the same call on every parser.
macro_rules! each {
    ($reader:expr, $inner:ident => $call:expr) => {
        match $reader {
            TextReader::Iperf3($inner) => $call,
            TextReader::Iperf2($inner) => $call,
            TextReader::Csv($inner) => $call,
            TextReader::Ttcp($inner) => $call,
            TextReader::Nuttcp($inner) => $call,
            TextReader::Ntttcp($inner) => $call,
            TextReader::Netpipe($inner) => $call,
            TextReader::Netperf($inner) => $call,
        }
    };
}

impl TextReader {
    fn all() -> Vec<Self> {
        vec![
            Self::Iperf3(iperf3::read::Iperf3TextReader::default()),
            Self::Iperf2(iperf2::read::Iperf2TextReader::default()),
            Self::Csv(iperf2::read::Csv::default()),
            Self::Nuttcp(nuttcp::read::NuttcpTextReader::default()),
            Self::Ttcp(ttcp::read::TtcpTextReader::default()),
            Self::Ntttcp(ntttcp::read::NtttcpTextReader::default()),
            Self::Netpipe(netpipe::read::NetpipeTextReader::default()),
            Self::Netperf(Box::default()),
        ]
    }

    const fn tool(&self) -> &'static str {
        match self {
            Self::Iperf3(_) => "iperf3",
            Self::Iperf2(_) | Self::Csv(_) => "iperf2",
            Self::Ttcp(_) => "ttcp",
            Self::Nuttcp(_) => "nuttcp",
            Self::Ntttcp(_) => "ntttcp",
            Self::Netpipe(_) => "netpipe",
            Self::Netperf(_) => "netperf",
        }
    }

    fn take(&mut self, line: NumberedLine<'_>, mine: bool) -> bool {
        match self {
            Self::Csv(csv) => csv.take(line),
            Self::Iperf3(text) => text.take(line, mine),
            Self::Iperf2(text) => text.take(line, mine),
            Self::Ttcp(text) => text.take(line, mine),
            Self::Nuttcp(text) => text.take(line, mine),
            Self::Ntttcp(text) => text.take(line, mine),
            Self::Netpipe(text) => text.take(line, mine),
            Self::Netperf(text) => text.take(line, mine),
        }
    }

    fn finish(&mut self) -> Option<ForeignResult> {
        each!(self, inner => inner.finish())
    }

    /// Ends the current test after a shell prompt.
    fn close(&mut self) {
        match self {
            Self::Iperf2(text) => text.restart(),
            other => each!(other, inner => inner.close()),
        }
    }
}

/// The documents of one program, and its streamed events.
struct Documents {
    tool: &'static str,
    parsed: ParsedTest,
    stream: iperf3::read::Iperf3StreamReader,
    log: own::EventLogReader,
}

impl Documents {
    fn new(tool: &'static str) -> Self {
        Self {
            tool,
            parsed: ParsedTest::new(tool),
            stream: iperf3::read::Iperf3StreamReader::default(),
            log: own::EventLogReader::default(),
        }
    }

    fn finish(&mut self) -> Option<ForeignResult> {
        self.stream.close(&mut self.parsed);
        self.log.close(&mut self.parsed);
        self.parsed.finish()
    }
}

struct Scan {
    readers: Vec<TextReader>,
    /// The parser of the previous line.
    current: Option<usize>,
    documents: Option<Documents>,
    /// Remarks about unknown lines, added to the reading that is found.
    strange: ParsedTest,
    readings: Vec<ForeignResult>,
}

/// Reads a whole text; `only` restricts it to the parser that the user names.
pub(super) fn scan(text: &str, only: Option<&'static str>) -> Vec<ForeignResult> {
    let mut readers = TextReader::all();
    readers.retain(|reader| only.is_none_or(|tool| reader.tool() == tool));
    let mut scan =
        Scan { readers, current: None, documents: None, strange: ParsedTest::new(""), readings: Vec::new() };
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut number = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        let begin = line.find('{').filter(|at| is_document(line, *at));
        if let Some(begin) = begin {
            let document = json::parse(&rest[begin..], number);
            let taken = begin + document.length;
            scan.document(&document, &rest[begin..taken], only);
            // A document that is interrupted by another one ends at the beginning of a line.
            let at_line = rest[..taken].ends_with('\n');
            let more = rest[taken..].find('\n').map_or(rest.len(), |at| taken + at + 1);
            number += document.lines + u32::from(!at_line);
            rest = if at_line { &rest[taken..] } else { &rest[more..] };
            continue;
        }
        scan.line(line, number);
        number += 1;
        rest = after;
    }
    scan.finish()
}

/// Whether a document begins at this brace: in its own line, or after the prefix of a logger.
fn is_document(line: &str, at: usize) -> bool {
    let (before, from) = line.split_at(at);
    let inner = from[1..].trim_start();
    let names = ["\"event\"", "\"run\"", "\"schema\"", "\"start\"", "\"ntttcp"];
    names.iter().any(|name| inner.starts_with(name))
        || (before.trim().is_empty() && (inner.is_empty() || inner.starts_with(['"', '}'])))
}

impl Scan {
    fn line(&mut self, raw: &str, number: u32) {
        if raw.len() > MAX_LINE {
            let why = format!("a line of {} bytes is too long for a result", raw.len());
            self.strange.unread(number, None, why);
            return;
        }
        let clean = plain(raw.trim_end_matches(['\n', '\r']));
        // A line that was overwritten with carriage returns consists of several.
        for part in clean.split('\r') {
            self.part(NumberedLine { number, text: part });
        }
    }

    fn part(&mut self, line: NumberedLine<'_>) {
        if line.text.starts_with("$ ") {
            // A shell session with its commands: each command is a separate run of a program.
            self.readers.iter_mut().for_each(TextReader::close);
            return;
        }
        if let Some(current) = self.current
            && self.readers[current].take(line, true)
        {
            return;
        }
        let current = self.current;
        let mut others = self.readers.iter_mut().enumerate().filter(|(at, _)| Some(*at) != current);
        if let Some((at, _)) = others.find_map(|(at, reader)| reader.take(line, false).then_some((at, ()))) {
            self.leave(Some(at));
            return;
        }
        let units = ["bits/sec", "ytes/sec", " Mbps", "KB/sec", "MB/sec", " MB/s", "Gbps"];
        if units.iter().any(|unit| line.text.contains(unit)) && !line.text.contains("CPU") {
            self.strange.unread(line.number, None, "this looks like a figure, but not of a known program");
        }
    }

    /// Switches to another parser. What the previous one has parsed becomes a separate reading.
    fn leave(&mut self, next: Option<usize>) {
        if next != self.current {
            let before = self.current.and_then(|current| self.readers[current].finish());
            self.readings.extend(before);
            self.current = next;
        }
        if next.is_some() {
            let before = self.documents.take().and_then(|mut documents| documents.finish());
            self.readings.extend(before);
        }
    }

    fn document(&mut self, document: &json::JsonDocument, text: &str, only: Option<&'static str>) {
        let root = &document.root;
        let tool = tool_of(root).filter(|tool| only.is_none_or(|only| only == *tool));
        let Some(tool) = tool else {
            match &document.broken {
                Some(broken) => self.strange.unread(broken.line, Some(broken.column), broken.why.clone()),
                None => self.strange.unread(root.line, None, "a JSON document, but not of a known program"),
            }
            return;
        };
        self.leave(None);
        if self.documents.as_ref().is_some_and(|documents| documents.tool != tool) {
            let before = self.documents.take().and_then(|mut documents| documents.finish());
            self.readings.extend(before);
        }
        let documents = self.documents.get_or_insert_with(|| Documents::new(tool));
        let parsed = &mut documents.parsed;
        if let Some(broken) = &document.broken {
            parsed.unread(broken.line, Some(broken.column), broken.why.clone());
        }
        if root.get("event").is_some() {
            documents.stream.take(root, parsed);
        } else if own::is_event(root) {
            documents.log.take(text, root.line, parsed);
        } else {
            documents.stream.close(parsed);
            match tool {
                "iperf3" => iperf3::read::read(root, parsed),
                "ntttcp" => ntttcp::read::read(root, parsed),
                _ => own::read(root, text, parsed),
            }
        }
    }

    fn finish(mut self) -> Vec<ForeignResult> {
        self.leave(None);
        let last = self.documents.take().and_then(|mut documents| documents.finish());
        self.readings.extend(last);
        if let Some(strange) = self.strange.finish() {
            match self.readings.last_mut() {
                Some(reading) => {
                    reading.unread.extend(strange.unread);
                    reading.unread.sort_by_key(|unread| unread.line);
                }
                None => self.readings.push(strange),
            }
        }
        self.readings
    }
}

/// The program that writes objects like this.
fn tool_of(root: &JsonNode) -> Option<&'static str> {
    if own::is_document(root) || own::is_event(root) {
        Some("linerate")
    } else if root.get("event").is_some() && root.get("data").is_some() || iperf3::read::is_document(root) {
        Some("iperf3")
    } else if ntttcp::read::is_document(root) {
        Some("ntttcp")
    } else {
        None
    }
}
