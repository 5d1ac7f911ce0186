//! One client of a server, from its greeting to the report.

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::marks::TransmitterCounts;
use super::options::NuttcpServerOptions;
use super::plan::{ABORT_BYTE, Terms};
use super::report::{count_lines, prefix, setup_lines};
use super::summary;
use super::transfer::{Failure, NuttcpTransfer, TransferEvent};
use super::wire::{LINE_LIMIT, LineSplitter, NuttcpFormat, NuttcpRequest, NuttcpVersion};
use crate::sessions::ToolSession;
use crate::stand_in::{FlowId, Input, Link, Output, RunId, SystemError};

/// Timeout for the greeting and for the request of a client.
const REQUEST_TIMEOUT: Span = Span::from_secs(10);

/// Delay between OK and the first connection that the server opens: the client needs it to start listening.
const CONNECT_DELAY: Span = Span::from_ms(70);

/// Timeout for the driver's decision.
const DECISION_TIMEOUT: Span = Span::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NuttcpServerPhase {
    Greeting,
    Request,
    /// Waiting for the driver's decision.
    Deciding,
    /// Opening listeners.
    Preparing,
    Testing,
    Over,
}

/// One client of a server.
#[derive(Debug)]
pub(super) struct NuttcpSession {
    options: NuttcpServerOptions,
    control: Link,
    peer: Option<SocketAddr>,
    phase: NuttcpServerPhase,
    lines: LineSplitter,
    due: Option<Timestamp>,
    /// Whether another client is served first; its lines wait.
    waits: bool,
    client: NuttcpVersion,
    request: NuttcpRequest,
    transfer: Option<NuttcpTransfer>,
    base: u32,
    flow: FlowId,
    pub(super) run: RunId,
    asked: bool,
    /// Text that is sent after the test.
    text: String,
    /// Whether the client is leaving and cannot receive anything any more.
    deaf: bool,
    /// Whether a test was completed.
    pub(super) complete: bool,
    out: VecDeque<Output>,
}

impl NuttcpSession {
    /// A session whose own links have numbers from `base` on.
    pub(super) fn new(
        now: Timestamp,
        options: NuttcpServerOptions,
        control: Link,
        peer: Option<SocketAddr>,
        base: u32,
        flow: FlowId,
        run: RunId,
    ) -> Self {
        Self {
            options,
            control,
            peer,
            phase: NuttcpServerPhase::Greeting,
            lines: LineSplitter::default(),
            due: Some(now + REQUEST_TIMEOUT),
            waits: false,
            client: NuttcpVersion::new(0),
            request: NuttcpRequest::default(),
            transfer: None,
            base,
            flow,
            run,
            asked: false,
            text: String::new(),
            deaf: false,
            complete: false,
            out: VecDeque::new(),
        }
    }

    fn send_line(&mut self, text: &str) {
        if !self.deaf && !text.is_empty() {
            self.out.push_back(Output::Send { link: self.control, bytes: text.as_bytes().to_vec() });
        }
    }

    fn refuse(&mut self, words: &str) {
        self.send_line(&format!("KO\n{words}\nKO\n"));
        self.end(Some(words.to_owned()));
    }

    /// Reports an error of the operating system with the text of the tool.
    fn system_error(&mut self, call: &str, reason: &SystemError) {
        let role = prefix(!self.request.trans, None);
        let words = format!(
            "{role}v{}: Error: {call}: {}\nerrno={}",
            NuttcpVersion::REPORTED,
            reason.text,
            reason.errno
        );
        if self.phase == NuttcpServerPhase::Testing {
            let text = format!("{words}\n");
            self.send_line(&text);
            self.end(Some(words));
        } else {
            self.refuse(&words);
        }
    }

    pub(super) fn end(&mut self, trouble: Option<String>) {
        if self.phase == NuttcpServerPhase::Over {
            return;
        }
        if let Some(mut transfer) = self.transfer.take() {
            transfer.abort(&mut self.out);
        }
        if std::mem::take(&mut self.asked) {
            self.out.push_back(Output::RunOver { run: self.run, trouble });
        }
        self.out.push_back(Output::Close { link: self.control });
        (self.phase, self.due) = (NuttcpServerPhase::Over, None);
    }

    fn bytes(&mut self, now: Timestamp, bytes: &[u8]) {
        if matches!(self.phase, NuttcpServerPhase::Testing | NuttcpServerPhase::Over) {
            // Any further input of a client is a request to end the test.
            self.client_leaves(now);
            return;
        }
        self.lines.push(bytes);
        self.handle_lines(now);
    }

    /// Lets the client wait until another one has been served.
    pub(super) fn wait(&mut self) {
        (self.waits, self.due) = (true, None);
    }

    /// The client's turn has come.
    pub(super) fn serve(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.waits) {
            self.due = Some(now + REQUEST_TIMEOUT);
            self.handle_lines(now);
        }
    }

    fn handle_lines(&mut self, now: Timestamp) {
        while let Some(line) = (!self.waits).then(|| self.lines.pull()).flatten() {
            match self.phase {
                NuttcpServerPhase::Greeting => self.greeting_received(now, &line),
                NuttcpServerPhase::Request => self.requested(now, &line),
                _ => return,
            }
        }
        // A client must wait for the answer to its request.
        let asked = matches!(self.phase, NuttcpServerPhase::Deciding | NuttcpServerPhase::Preparing);
        if (asked || self.waits) && self.lines.rest().len() > LINE_LIMIT / 2 {
            self.end(Some("the client sent more than a request".to_owned()));
        }
    }

    fn greeting_received(&mut self, now: Timestamp, line: &str) {
        let Some(version) = NuttcpVersion::parse_greeting(line) else {
            return self.refuse("no nuttcp HELO message");
        };
        self.client = version;
        self.out.push_back(Output::Send { link: self.control, bytes: NuttcpVersion::REPORTED.greeting() });
        self.phase = NuttcpServerPhase::Request;
        self.due = Some(now + REQUEST_TIMEOUT);
    }

    fn requested(&mut self, now: Timestamp, line: &str) {
        let ours = NuttcpVersion::REPORTED;
        let Some(request) = NuttcpRequest::decode(line) else {
            let words = format!(
                "nuttcp-t: v{ours}: error scanning parameters\nmay be using older client version than server\n{line}"
            );
            return self.refuse(&words);
        };
        self.request = request;
        if self.request.third_party {
            return self.refuse("doesn't allow 3rd party nuttcp");
        }
        if self.request.traceroute {
            return self.refuse("doesn't allow traceroute");
        }
        let role = prefix(!self.request.trans, None);
        let terms = match Terms::of_request(&self.request, self.options.control_port) {
            Ok(terms) => terms,
            Err(words) => return self.refuse(&format!("{role}v{ours}: {words}")),
        };
        let options = &self.options;
        let stdio = options.stdio && !terms.udp && terms.streams == 1;
        let (ipv4, ipv6) = (options.ipv4, options.ipv6);
        let terms =
            Terms { peer: self.client, to: self.peer, idle: options.idle, stdio, ipv4, ipv6, ..terms };
        let terms = Terms { affinity: terms.affinity.or(options.affinity), ..terms };
        let planned = terms.planned(self.run, self.flow, self.control, Some(self.client));
        self.transfer = Some(NuttcpTransfer::new(terms, self.base, self.flow, self.run));
        self.phase = NuttcpServerPhase::Deciding;
        self.due = Some(now + DECISION_TIMEOUT);
        if stdio {
            // No flow is measured, so nothing is archived.
            self.admitted();
        } else {
            self.asked = true;
            self.out.push_back(Output::Ask(Box::new(planned)));
        }
    }

    fn admitted(&mut self) {
        if self.phase != NuttcpServerPhase::Deciding {
            return;
        }
        self.phase = NuttcpServerPhase::Preparing;
        self.due = None;
        if let Some(transfer) = &mut self.transfer {
            transfer.prepare(&mut self.out);
        }
    }

    fn handle_events(&mut self, now: Timestamp) {
        while let Some(events) = self.transfer.as_mut().and_then(NuttcpTransfer::next_event) {
            match events {
                TransferEvent::Ready => {
                    self.phase = NuttcpServerPhase::Testing;
                    self.send_line(&format!("OK v{}\n", NuttcpVersion::REPORTED));
                    if let Some(transfer) = &mut self.transfer {
                        transfer.connect_or_wait(now, CONNECT_DELAY);
                    }
                }
                TransferEvent::Begun => self.begun(),
                TransferEvent::Interval { interval, total, marked } => {
                    self.interval(*interval, *total, marked)
                }
                TransferEvent::Looked(_) => {}
                TransferEvent::Idle => {
                    let urgent = self.transfer.as_ref().is_some_and(|transfer| transfer.terms.urgent());
                    if urgent && !self.deaf {
                        self.out.push_back(Output::Urgent { link: self.control, byte: ABORT_BYTE });
                    }
                }
                TransferEvent::Over => self.report(),
                TransferEvent::Failed(failure) => self.failed(&failure),
            }
        }
    }

    fn format(&self) -> NuttcpFormat {
        self.request.format
    }

    /// Whether the client prints our interval lines immediately.
    fn live(&self) -> bool {
        self.request.trans && self.request.interval > Span::ZERO
    }

    fn role(&self) -> String {
        prefix(!self.request.trans, None)
    }

    fn begun(&mut self) {
        let Some(transfer) = &self.transfer else { return };
        let setup = transfer.terms.setup(transfer.opened.as_ref(), self.peer);
        self.text = setup_lines(&setup, &self.role(), self.format().has(NuttcpFormat::PARSE));
        if self.live() {
            let text = std::mem::take(&mut self.text);
            self.send_line(&text);
        }
    }

    fn interval(
        &mut self,
        interval: summary::ReceiverCounts,
        total: summary::ReceiverCounts,
        marked: Option<TransmitterCounts>,
    ) {
        let Some(terms) = self.transfer.as_ref().map(|transfer| &transfer.terms) else { return };
        if !self.live() {
            return;
        }
        let line = summary::interval_line(interval, total, marked, terms.line_contents(self.format()));
        self.send_line(&format!("{line}\n"));
    }

    fn report(&mut self) {
        let Some(transfer) = &self.transfer else { return };
        let counted = transfer.counted.clone();
        let trouble = transfer.trouble.as_ref().map(|reason| reason.text.clone());
        let transmit = !self.request.trans;
        let parse = self.format().has(NuttcpFormat::PARSE);
        let mut text = std::mem::take(&mut self.text);
        if self.live() {
            text += "DONE\n";
        }
        text += &count_lines(&counted, transmit, &self.role(), parse, true).concat();
        self.send_line(&text);
        self.complete = true;
        // A client that has read enough closes while we still send, which is not an error of the test.
        self.end(trouble.filter(|_| !transmit));
    }

    fn failed(&mut self, failure: &Failure) {
        match failure {
            Failure::Listen(reason) => self.system_error("bind", reason),
            Failure::Connect(reason) => self.system_error("connect", reason),
            Failure::Start(reason) => self.system_error("socket", reason),
            Failure::Nobody => {
                let words = format!("{}v{}: Error: no data connection", self.role(), NuttcpVersion::REPORTED);
                let text = format!("{words}\n");
                self.send_line(&text);
                self.end(Some(words));
            }
        }
    }

    fn client_leaves(&mut self, now: Timestamp) {
        if let Some(transfer) = &mut self.transfer {
            transfer.peer_gone(now, &mut self.out);
        }
    }

    /// The client has closed its side. A datagram transmitter still reads the report.
    fn closed(&mut self, now: Timestamp) {
        if self.phase == NuttcpServerPhase::Testing {
            self.deaf = !(self.request.udp && self.request.trans);
            self.client_leaves(now);
        } else {
            self.deaf = true;
            self.end(Some("the client has left".to_owned()));
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if self.due.is_some_and(|due| now >= due) {
            self.due = None;
            match self.phase {
                NuttcpServerPhase::Greeting => self.refuse("no nuttcp HELO message"),
                _ => self.end(Some("the client is silent".to_owned())),
            }
        }
        if let Some(transfer) = &mut self.transfer {
            transfer.tick(now, &mut self.out);
        }
    }
}

impl ToolSession for NuttcpSession {
    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn is_over(&self) -> bool {
        self.phase == NuttcpServerPhase::Over
    }

    fn deadline(&self) -> Option<Timestamp> {
        [self.due, self.transfer.as_ref().and_then(NuttcpTransfer::deadline)].into_iter().flatten().min()
    }

    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        let mine = match input {
            Input::Bytes { link, bytes } if *link == self.control => {
                self.bytes(now, bytes);
                true
            }
            Input::Closed { link, .. } if *link == self.control => {
                self.closed(now);
                true
            }
            Input::Admitted { run } if *run == self.run => {
                self.admitted();
                true
            }
            Input::Refused { run, why, .. } if *run == self.run => {
                self.asked = false;
                let role = prefix(!self.request.trans, None);
                self.refuse(&format!("{role}v{}: {why}", NuttcpVersion::REPORTED));
                true
            }
            Input::Tick => {
                self.tick(now);
                false
            }
            _ => self.transfer.as_mut().is_some_and(|transfer| transfer.input(now, input, &mut self.out)),
        };
        self.handle_events(now);
        mine
    }
}
