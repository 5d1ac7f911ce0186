//! The output of iperf3: text, JSON (`-J`) or JSON line by line (`--json-stream`).
//!
//! One [`Iperf3Report`] covers one test, in either role. Each method takes what has happened and returns what
//! is printed on standard output at that moment (nothing, for example, while a JSON object is incomplete).
//! The order of the calls is: `opening`, `listening` (server), `connected`, `stream` for each stream,
//! `started`,
//! `interval`…, `summary`, `server_output` (client), then one of the ends: `done`, `failed`, `interrupted`,
//! `server_error`, `client_gone`. An end may come at any time, even first.
//!
//! The text is that of iperf3 3.12 and 3.21, the JSON objects are those of 3.21. Keys that the originals repeat
//! (`error`, `target_bitrate`, `sock_bufsize`) are written once, and `-J` prints nothing but the object.

mod debug;
mod document;
mod ending;
mod facts;
mod json;
mod records;
#[cfg(test)]
mod tests;
mod text;

pub use document::VERSION;
pub use facts::{
    CpuShare, Iperf3Control, Iperf3EndResults, Iperf3Stream, Iperf3StreamEnd, Iperf3SystemInfo,
    Iperf3TestParameters, OutputText, ServerOutput, StreamEndCounts, StreamInterval,
};
pub use text::prefixed;

use serde::Serialize;

use self::debug::PrintedState;
use self::document::{Iperf3Document, Iperf3Start};
use self::ending::DirectionResults;
use self::records::Extremes;
use self::text::{Iperf3TextStyle, SEPARATOR};
use super::calendar::gmt;
use super::errors::{Iperf3Error, Iperf3ErrorNumber};
use super::settings::Iperf3Settings;

/// The report of one test.
#[derive(Debug)]
pub struct Iperf3Report {
    settings: Iperf3Settings,
    test: Iperf3TestParameters,
    streams: Vec<(Iperf3Stream, Extremes)>,
    document: Iperf3Document,
    /// The text for a client that requests the server's output.
    for_client: String,
    /// Whether the header of the intervals has been printed.
    under_header: bool,
    /// Whether the last line was a separator.
    separated: bool,
    /// Whether the peer has reported its retransmits.
    peer_knows_retransmits: bool,
    /// The state of the dialogue.
    state: PrintedState,
}

/// A line of `--json-stream`.
#[derive(Serialize)]
struct JsonStreamLine<'a, T> {
    event: &'a str,
    data: T,
}

impl Iperf3Report {
    /// Creates a report in the role of the settings.
    #[must_use]
    pub fn new(settings: &Iperf3Settings, host: &Iperf3SystemInfo) -> Self {
        Self {
            settings: settings.clone(),
            test: Iperf3TestParameters::default(),
            streams: Vec::new(),
            document: Iperf3Document { start: Iperf3Start::new(host), ..Iperf3Document::default() },
            for_client: String::new(),
            under_header: false,
            separated: false,
            peer_knows_retransmits: false,
            state: PrintedState::default(),
        }
    }

    /// Text at the start of the program (`-V`: version and system).
    pub fn opening(&mut self) -> String {
        if !self.settings.common.verbose {
            return String::new();
        }
        let text = format!("{VERSION}\n{}\n", self.document.start.system_info);
        self.line(&text)
    }

    /// Text of a listening server; tests count from 1.
    pub fn listening(&mut self, test: u64) -> OutputText {
        let rule = "-".repeat(59);
        let port = self.settings.common.port;
        let banner = self.line(&format!("{rule}\nServer listening on {port} (test #{test})\n{rule}\n"));
        let OutputText { out, err } = self.idle_state();
        OutputText { out: banner + &out, err }
    }

    /// The parameters were exchanged.
    pub fn connected(&mut self, control: &Iperf3Control, test: Iperf3TestParameters) -> String {
        self.document.start.agree(&self.settings, control, &test);
        self.document.title.clone_from(&test.title);
        self.document.extra_data.clone_from(&test.extra_data);
        self.test = test;
        let text = self.greeting(control);
        self.line_for_both(&text)
    }

    fn greeting(&self, control: &Iperf3Control) -> String {
        let (client, verbose) = (self.settings.is_client(), self.settings.common.verbose);
        let Iperf3Control { host, port, cookie, mss, unix_ms } = control;
        let mut text = String::new();
        if verbose {
            if client {
                text += &format!("Control connection MSS {mss}\n");
                if self.test.udp && self.settings.client.length.is_none() {
                    text += &format!("Setting UDP block size to {}\n", self.test.block_bytes);
                }
            }
            text += &format!("Time: {}\n", gmt(*unix_ms));
        }
        if client {
            text += &format!("Connecting to host {host}, port {port}\n");
            if self.test.reverse {
                text += &format!("Reverse mode, remote host {host} is sending\n");
            }
        } else {
            text += &format!("Accepted connection from {host}, port {port}\n");
        }
        if verbose {
            text += &format!("      Cookie: {cookie}\n");
            match self.test.mss {
                _ if self.test.udp => {}
                Some(mss) => text += &format!("      TCP MSS: {mss}\n"),
                None => text += &format!("      TCP MSS: {mss} (default)\n"),
            }
            if self.test.bitrate > 0 {
                text += &format!("      Target Bitrate: {}\n", self.test.bitrate);
            }
        }
        text
    }

    /// A stream is open.
    pub fn stream(&mut self, stream: Iperf3Stream) -> String {
        self.document.start.connect(&stream, &self.test);
        self.streams.push((stream, Extremes::default()));
        let (local, remote) = (stream.local, stream.remote);
        self.line_for_both(&format!(
            "[{:3}] local {} port {} connected to {} port {}\n",
            stream.socket,
            local.ip().to_canonical(),
            local.port(),
            remote.ip().to_canonical(),
            remote.port()
        ))
    }

    /// The test was started.
    pub fn started(&mut self) -> String {
        self.document.start.begin(&self.settings, &self.test);
        if self.settings.common.json_stream {
            return event("start", &self.document.start);
        }
        let text = if self.settings.common.verbose { text::starting(&self.test) } else { String::new() };
        self.line_for_both(&text)
    }

    /// Client: the results of the server have arrived. As in iperf3, an interval that is printed only afterwards
    /// has the header of a sender if the server has reported retransmits.
    pub fn peer_results(&mut self, knows_retransmits: bool) {
        self.peer_knows_retransmits = knows_retransmits;
    }

    /// An interval has ended. `intervals` has one record per stream, in the order in which they were opened. An
    /// interval that is shorter than a tenth of the requested one and without data is not printed.
    pub fn interval(&mut self, intervals: &[StreamInterval]) -> String {
        for ((_, extremes), interval) in self.streams.iter_mut().zip(intervals) {
            extremes.add(interval);
        }
        let tenth = self.settings.common.interval.as_ns() / 10;
        let length = |i: &StreamInterval| i.end.saturating_sub(i.start).as_ns();
        if intervals.iter().all(|i| i.bytes == 0 && length(i) < tenth) {
            return String::new();
        }
        let streams: Vec<_> = self.streams.iter().map(|(stream, _)| *stream).collect();
        let groups = self.groups();
        let Some(object) = records::interval(&streams, intervals, self.test.udp, &groups) else {
            return String::new();
        };
        if self.settings.common.json {
            let streamed = self.settings.common.json_stream;
            let streamed_event = if streamed { event("interval", &object) } else { String::new() };
            if !streamed || self.settings.common.json_stream_full_output || self.test.get_server_output {
                self.document.intervals.push(object);
            }
            return streamed_event;
        }
        let style = self.style();
        let mut text = String::new();
        if !self.under_header {
            text += &style.interval_header(groups.first() == Some(&true) || self.peer_knows_retransmits);
            self.under_header = true;
        }
        let sums = [Some(object.sum), object.sum_bidir_reverse];
        for (&sends, sum) in groups.iter().zip(sums) {
            for record in object.streams.iter().filter(|record| record.sender == sends) {
                text += &style.interval(record);
            }
            if let Some(sum) = sum.filter(|_| self.test.streams > 1) {
                text += &style.interval(&sum);
            }
        }
        self.separated = self.test.streams > 1;
        if self.separated {
            text += SEPARATOR;
        }
        self.line_for_both(&text)
    }

    /// The test has ended, or was interrupted; prints what is known.
    pub fn summary(&mut self, end: &Iperf3EndResults) -> String {
        let groups = self.groups();
        let file = self.settings.common.file.as_ref();
        let directions: Vec<DirectionResults> = groups
            .iter()
            .filter_map(|&sends| ending::direction(sends, &self.streams, end, self.test.udp, file))
            .collect();
        self.document.end = ending::object(&directions, end);
        let style = self.style();
        let mut text = String::new();
        if !self.separated {
            text += SEPARATOR;
        }
        if style.verbose {
            text += "Test Complete. Summary Results:\n";
        }
        text += &style.summary_header(groups.first() == Some(&true));
        for direction in &directions {
            text += &style.summary(direction, end);
        }
        self.line_for_both(&text)
    }

    /// Client: the output of the server.
    pub fn server_output(&mut self, output: ServerOutput) -> String {
        let text = match &output {
            ServerOutput::Text(text) => format!("\nServer output:\n{text}\n"),
            ServerOutput::Json(object) => format!("\nServer JSON output:\n{}\n", json::pretty(object)),
        };
        self.document.take_server_output(output);
        // iperf3 prints it with one call, so only its first line has the title.
        match &self.settings.client.title {
            Some(title) if !self.settings.common.json => format!("{title}:  {text}"),
            _ => self.line(&text),
        }
    }

    /// Server: its output for this test, for a client that requests it. Call it after `summary`.
    #[must_use]
    pub fn for_client(&self) -> ServerOutput {
        if self.settings.common.json {
            let mut object = serde_json::to_value(&self.document).unwrap_or_default();
            // iperf3 adds these at the very end, to its own object only.
            for key in ["title", "extra_data"] {
                object.as_object_mut().and_then(|object| object.remove(key));
            }
            ServerOutput::Json(object)
        } else {
            ServerOutput::Text(self.for_client.clone())
        }
    }

    /// The test was successful.
    pub fn done(&mut self) -> OutputText {
        let text = if self.settings.is_client() { "\niperf Done.\n" } else { "" };
        let out = self.line(text) + &self.close(None);
        OutputText { out, err: String::new() }
    }

    /// The test has failed. A server that cannot listen also prints that it exits.
    pub fn failed(&mut self, trouble: &Iperf3Error) -> OutputText {
        let line = format!("error - {trouble}");
        if trouble.number != Iperf3ErrorNumber::LISTEN {
            return self.end_with(&line, trouble.to_string());
        }
        let OutputText { out, err } = self.end_with(&line, line.clone());
        OutputText { out, err: err + "iperf3: exiting\n" }
    }

    /// A signal ended the program; `signal` is its number.
    pub fn interrupted(&mut self, trouble: &Iperf3Error, signal: i32) -> OutputText {
        let name = match signal {
            1 => "Hangup",
            2 => "Interrupt",
            15 => "Terminated",
            _ => "Signal",
        };
        let line = format!("interrupt - {trouble} by signal {name}({signal})");
        self.end_with(&line, line.clone())
    }

    /// Client: the server has reported an error.
    pub fn server_error(&mut self, trouble: &Iperf3Error) -> OutputText {
        let errno = if trouble.errno == 0 { String::new() } else { format!(", errno: {}", trouble.detail) };
        let without_detail = Iperf3Error { detail: String::new(), ..trouble.clone() };
        self.end_with(
            &format!("SERVER ERROR - {without_detail}{errno}\niperf3: error - {trouble}"),
            trouble.to_string(),
        )
    }

    /// Server: the client has ended the test, or the connection broke.
    pub fn client_gone(&mut self, terminated: bool) -> OutputText {
        let text = if terminated {
            "the client has terminated"
        } else {
            "the client has unexpectedly closed the connection"
        };
        self.end_with(text, text.to_owned())
    }

    fn end_with(&mut self, line: &str, in_object: String) -> OutputText {
        if self.settings.common.json {
            OutputText { out: self.close(Some(in_object)), err: String::new() }
        } else {
            OutputText { out: String::new(), err: format!("iperf3: {line}\n") }
        }
    }

    /// The rest of the JSON.
    fn close(&mut self, error: Option<String>) -> String {
        if !self.settings.common.json {
            return String::new();
        }
        self.document.error = error;
        let mut text = String::new();
        if self.settings.common.json_stream {
            let document = &self.document;
            if let Some(error) = &document.error {
                text += &event("error", error);
            }
            if let Some(object) = &document.server_output_json {
                text += &event("server_output_json", object);
            }
            if let Some(output) = &document.server_output_text {
                text += &event("server_output_text", output);
            }
            text += &event("end", &document.end);
            if !self.settings.common.json_stream_full_output {
                return text;
            }
        }
        text + &json::pretty(&self.document)
    }

    /// The directions in the order of the report, as whether this host sends: with both, the client's first.
    fn groups(&self) -> Vec<bool> {
        let client = self.settings.is_client();
        if self.test.bidir { vec![client, !client] } else { vec![client != self.test.reverse] }
    }

    fn style(&self) -> Iperf3TextStyle {
        Iperf3TextStyle {
            format: self.settings.common.format,
            verbose: self.settings.common.verbose,
            client: self.settings.is_client(),
            bidir: self.test.bidir,
            udp: self.test.udp,
        }
    }

    /// Text with the title; empty if JSON is printed.
    fn line(&self, text: &str) -> String {
        if self.settings.common.json {
            return String::new();
        }
        match &self.settings.client.title {
            Some(title) => prefixed(text, &format!("{title}:  ")),
            None => text.to_owned(),
        }
    }

    /// Like `line`, but also kept for a client that requests the output.
    fn line_for_both(&mut self, text: &str) -> String {
        let line = self.line(text);
        if self.test.get_server_output && !self.settings.is_client() {
            self.for_client += &line;
        }
        line
    }
}

fn event(event: &str, data: impl Serialize) -> String {
    json::compact(&JsonStreamLine { event, data }) + "\n"
}
