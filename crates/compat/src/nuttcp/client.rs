//! The client: requests a test, takes part in it, and prints lines from the server's report and its own counts.

mod ending;
mod opening;

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::options::{NuttcpClientOptions, Verbosity};
use super::report::{Setup, prefix, setup_lines};
use super::results::NuttcpResults;
use super::transfer::{Failure, NuttcpTransfer, TransferEvent};
use super::wire::{LineSplitter, NuttcpFormat, NuttcpRequest, NuttcpVersion};
use super::{plan, summary};
use crate::errno::ECONNREFUSED;
use crate::stand_in::{FlowId, Input, Link, Output, RunId, StandIn, SystemError};

/// The link of the control connection.
const CONTROL: Link = Link(0);

/// Number of the first data link.
const DATA: u32 = 1;

const RUN: RunId = RunId(0);
const FLOW: FlowId = FlowId(0);

/// Timeout for an answer or the results of the server.
const SERVER_TIMEOUT: Span = Span::from_secs(60);

/// Number of attempts with `-a`, and the time between them.
const MAX_TRIES: u32 = 10;
const RETRY_DELAY: Span = Span::from_ms(500);

/// Delay between OK and the first connection: a server before 6.2.8 sends OK before it listens.
const CONNECT_DELAY: Span = Span::from_ms(30);

/// Most lines of a server's report that are kept.
const MAX_LINES: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NuttcpClientPhase {
    Connecting,
    Greeting,
    Preparing,
    Asking,
    /// Receiving the lines of an error block.
    Refused,
    /// The test is running, or the server's report is being received.
    Testing,
    Done,
}

/// A nuttcp client.
#[derive(Debug)]
pub struct NuttcpClient {
    options: NuttcpClientOptions,
    phase: NuttcpClientPhase,
    lines: LineSplitter,
    out: VecDeque<Output>,
    due: Option<Timestamp>,
    tries: u32,
    server: NuttcpVersion,
    server_address: Option<SocketAddr>,
    request: NuttcpRequest,
    transfer: Option<NuttcpTransfer>,
    /// Lines of the server that are printed at the end, or of its error block.
    server_lines: Vec<String>,
    results: NuttcpResults,
    /// Interval lines of the server that wait for the counts of our own kernel.
    waiting: VecDeque<String>,
    /// Whether interval lines were printed.
    intervals: bool,
    /// Whether the server sends no more interval lines.
    done: bool,
    control_open: bool,
    classic: bool,
    planned: bool,
}

impl NuttcpClient {
    /// Creates a client for a command line.
    #[must_use]
    pub fn new(options: NuttcpClientOptions) -> Self {
        Self {
            request: options.request(None),
            options,
            phase: NuttcpClientPhase::Connecting,
            lines: LineSplitter::default(),
            out: VecDeque::new(),
            due: None,
            tries: 0,
            server: NuttcpVersion::new(0),
            server_address: None,
            transfer: None,
            server_lines: Vec::new(),
            results: NuttcpResults::default(),
            waiting: VecDeque::new(),
            intervals: false,
            done: false,
            control_open: false,
            classic: false,
            planned: false,
        }
    }

    fn parse(&self) -> bool {
        self.options.format.has(NuttcpFormat::PARSE)
    }

    /// The prefix of the lines of one role.
    fn prefix(&self, transmit: bool) -> String {
        prefix(transmit, self.options.identifier.as_deref())
    }

    /// Our own prefix with the version, for errors.
    fn error_prefix(&self) -> String {
        format!("{}v{}: ", self.prefix(self.options.transmit), NuttcpVersion::REPORTED)
    }

    fn print_error(&mut self, text: &str) {
        self.out.push_back(Output::PrintError(format!("{text}\n")));
    }

    /// Prints a text; it goes to standard error if standard output is used for data.
    fn print(&mut self, text: String) {
        let on_stderr = self.options.stdio && !self.options.transmit;
        self.out.push_back(if on_stderr { Output::PrintError(text) } else { Output::Print(text) });
    }

    /// Prints a line that is not part of a report; its prefix is only the identifier.
    fn print_line(&mut self, line: &str) {
        let before = self.options.identifier.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        self.print(format!("{before}{line}\n"));
    }

    fn exit(&mut self, code: i32, trouble: Option<String>) {
        if let Some(mut transfer) = self.transfer.take() {
            transfer.abort(&mut self.out);
        }
        if std::mem::take(&mut self.planned) {
            self.out.push_back(Output::RunOver { run: RUN, trouble });
        }
        if std::mem::take(&mut self.control_open) {
            self.out.push_back(Output::Close { link: CONTROL });
        }
        self.out.push_back(Output::Exit(code));
        (self.phase, self.due) = (NuttcpClientPhase::Done, None);
    }

    fn fail(&mut self, text: &str) {
        self.print_error(text);
        self.exit(1, Some(text.to_owned()));
    }

    fn system_error(&mut self, call: &str, reason: &SystemError) {
        let before = self.error_prefix();
        let number = if reason.errno == 0 { String::new() } else { format!("\nerrno={}", reason.errno) };
        self.fail(&format!("{before}Error: {call}: {}{number}", reason.text));
    }

    fn line(&mut self, now: Timestamp, line: &str) {
        match self.phase {
            NuttcpClientPhase::Greeting => match NuttcpVersion::parse_greeting(line) {
                Some(version) => {
                    self.server = version;
                    self.warn_unsupported();
                    self.prepare(now);
                }
                None if line == "KO" => self.phase = NuttcpClientPhase::Refused,
                None => {
                    let line: String = line.chars().take(80).collect();
                    self.refused(&format!("server is no nuttcp server: it said \"{line}\""));
                }
            },
            NuttcpClientPhase::Asking if line.starts_with("OK") => {
                self.phase = NuttcpClientPhase::Testing;
                self.due = None;
                if let Some(transfer) = &mut self.transfer {
                    transfer.connect_or_wait(now, CONNECT_DELAY);
                }
            }
            NuttcpClientPhase::Asking if line == "KO" => self.phase = NuttcpClientPhase::Refused,
            NuttcpClientPhase::Asking => self.refused(&format!("server {line}")),
            NuttcpClientPhase::Refused if line == "KO" => {
                let words = self.server_lines.join("\n");
                self.refused(&format!("server {words}"));
            }
            NuttcpClientPhase::Refused if self.server_lines.len() < MAX_LINES => {
                self.server_lines.push(line.to_owned())
            }
            NuttcpClientPhase::Testing => self.report_line(line),
            _ => {}
        }
    }

    fn refused(&mut self, words: &str) {
        let before = self.error_prefix();
        self.fail(&format!("{words}\n{before}error from server"));
    }

    /// Handles a line during the test or after it.
    fn report_line(&mut self, line: &str) {
        let live = self.request.interval > Span::ZERO && self.options.transmit && !self.done;
        if live && line == "DONE" {
            self.done = true;
        } else if live && !line.starts_with("nuttcp-") && !line.is_empty() {
            self.interval_of_server(line);
        } else {
            self.results.line(line);
            let own = self.rewritten(line);
            if live && self.options.verbosity > Verbosity::Brief {
                self.print(own + "\n");
            } else if self.server_lines.len() < MAX_LINES {
                self.server_lines.push(own);
            }
        }
    }

    /// The server's line with our identifier.
    fn rewritten(&self, line: &str) -> String {
        for transmit in [true, false] {
            if let Some(rest) = line.strip_prefix(&prefix(transmit, None)) {
                return self.prefix(transmit) + rest;
            }
        }
        line.to_owned()
    }

    /// Handles an interval line of a receiving server; a transmitter adds the counts of its own kernel.
    fn interval_of_server(&mut self, line: &str) {
        self.intervals = true;
        // Of several streams nuttcp shows none.
        let single = !self.options.udp && self.options.streams == 1;
        match &mut self.transfer {
            Some(transfer) if single && !line.contains("retrans") && transfer.has_begun() => {
                if self.waiting.len() < MAX_LINES {
                    self.waiting.push_back(line.to_owned());
                    transfer.request_counts(&mut self.out);
                }
            }
            _ => self.print_line(line),
        }
    }

    fn handle_events(&mut self, now: Timestamp) {
        while let Some(events) = self.transfer.as_mut().and_then(NuttcpTransfer::next_event) {
            match events {
                TransferEvent::Ready => self.ready(now),
                TransferEvent::Begun => self.begun(),
                TransferEvent::Interval { interval, total, marked } => {
                    self.intervals = true;
                    let Some(terms) = self.transfer.as_ref().map(|transfer| &transfer.terms) else {
                        continue;
                    };
                    let contents = terms.line_contents(self.options.format);
                    self.print_line(&summary::interval_line(*interval, *total, marked, contents));
                }
                TransferEvent::Looked(counts) => {
                    let Some(line) = self.waiting.pop_front() else { continue };
                    let own = counts.map(|counts| counts.interval);
                    self.print_line(&summary::with_own_counts(&line, own, self.options.format));
                }
                TransferEvent::Idle => {
                    let urgent =
                        self.control_open && self.transfer.as_ref().is_some_and(|t| t.terms.urgent());
                    if urgent {
                        self.out.push_back(Output::Urgent { link: CONTROL, byte: plan::ABORT_BYTE });
                    }
                }
                TransferEvent::Over => self.over(now),
                TransferEvent::Failed(failure) => self.failed(&failure),
            }
        }
    }

    fn begun(&mut self) {
        if self.options.verbosity == Verbosity::Brief {
            return;
        }
        let before = self.prefix(self.options.transmit);
        let Some(transfer) = &self.transfer else { return };
        let host = self.options.data_host.map_or_else(|| self.options.host.clone(), |host| host.to_string());
        let setup = transfer.terms.setup(transfer.opened.as_ref(), self.server_address);
        let setup = Setup { host: Some(host), ..setup };
        let text = setup_lines(&setup, &before, self.parse());
        self.print(text);
    }

    fn failed(&mut self, failure: &Failure) {
        match failure {
            Failure::Listen(reason) => self.system_error("bind", reason),
            Failure::Connect(reason) => self.system_error("connect", reason),
            Failure::Start(reason) => self.system_error("socket", reason),
            Failure::Nobody if self.control_open => {
                let before = self.error_prefix();
                self.fail(&format!(
                    "{before}Error: no data from the server; is a firewall in between? Try -F"
                ));
            }
            Failure::Nobody => self.refused("server aborted connection"),
        }
    }

    /// The server has closed the control connection.
    fn closed(&mut self, now: Timestamp) {
        self.control_open = false;
        self.out.push_back(Output::Close { link: CONTROL });
        match self.phase {
            NuttcpClientPhase::Testing => {
                if let Some(transfer) = self.transfer.as_mut().filter(|transfer| !transfer.is_over()) {
                    transfer.peer_gone(now, &mut self.out);
                }
                self.handle_events(now);
                self.finish_if_complete();
            }
            NuttcpClientPhase::Refused => {
                let words = self.server_lines.join("\n");
                self.refused(&format!("server {words}"));
            }
            NuttcpClientPhase::Done => {}
            _ => self.refused("server aborted connection"),
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if self.due.is_some_and(|due| now >= due) {
            self.due = None;
            match self.phase {
                NuttcpClientPhase::Connecting => self.connect(),
                NuttcpClientPhase::Testing => self.fail("Error: not receiving server info"),
                _ => self.refused("server does not answer"),
            }
        }
        if let Some(transfer) = &mut self.transfer {
            transfer.tick(now, &mut self.out);
        }
    }

    fn signal(&mut self, now: Timestamp, number: i32) {
        // The first interrupt of a transmitter ends the test; the results are still printed.
        let interrupt = number == 2;
        match &mut self.transfer {
            Some(transfer) if interrupt && self.options.transmit && transfer.is_running() => {
                transfer.stop(now, &mut self.out);
            }
            _ => self.exit(128 + number, Some("interrupted".to_owned())),
        }
    }
}

impl StandIn for NuttcpClient {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.phase == NuttcpClientPhase::Done {
            return;
        }
        match &input {
            Input::Begin => self.connect(),
            Input::Opened { link: CONTROL, opened } => self.connected(now, opened),
            Input::NotOpened { link: CONTROL, reason } => self.not_connected(now, reason),
            Input::Bytes { link: CONTROL, bytes } => {
                self.lines.push(bytes);
                while let Some(line) = self.lines.pull() {
                    self.line(now, &line);
                }
            }
            Input::Closed { link: CONTROL, .. } => self.closed(now),
            Input::Signal(number) => self.signal(now, *number),
            Input::Tick => self.tick(now),
            _ => {
                if let Some(transfer) = &mut self.transfer {
                    transfer.input(now, &input, &mut self.out);
                }
            }
        }
        self.handle_events(now);
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        let transfer = self.transfer.as_ref().and_then(NuttcpTransfer::deadline);
        [self.due, transfer].into_iter().flatten().min()
    }
}
