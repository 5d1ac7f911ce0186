//! A test of a page: a control connection, and connections from the browser's workers for each phase.

mod ending;

use std::collections::VecDeque;
use std::net::IpAddr;

use linerate_model::flow::FrameKind;
use linerate_model::{BrowserNote, Direction, TestSpec};
use linerate_units::{Ratio, Span, Timestamp};

use super::page::{FromPage, ToPage, terms};
use super::request::{self, HttpRequest};
use super::server::Ends;
use super::transfer::{Encryption, Transfer, TransferCounts, is_due};
use super::websocket::{self, MessageReader, WebSocketMessage, close_code};
use crate::sessions::ToolSession;
use crate::stand_in::{FlowCounts, FlowId, Input, Link, Output, PayloadFraming, Planned, RunId, Stop};

/// The subprotocol.
pub(super) const PROTOCOL: &str = "linerate.browser.1";

/// Name in results.
pub(super) const TOOL: &str = "browser";

/// Number and distance of the pings over the idle path.
const IDLE_PINGS: usize = 10;
const IDLE_PING_INTERVAL: Span = Span::from_ms(20);

/// How long the idle path is measured.
const IDLE_PHASE: Span = Span::from_ms(220);

/// Time between two reports, and between two pings, under load.
const PROGRESS_INTERVAL: Span = Span::from_ms(250);
const LOADED_PING_INTERVAL: Span = Span::from_ms(50);

/// Counts that were requested for another reason are reported if this has passed since the last report.
const SHORTEST_PROGRESS: Span = Span::from_ms(100);

/// Timeout for the connections of a phase.
const OPEN_TIMEOUT: Span = Span::from_secs(10);

/// How long a phase without payload may take longer than its time.
const GRACE: Span = Span::from_secs(5);

/// Timeout for what the page says of a phase.
const NOTE_TIMEOUT: Span = Span::from_ms(500);

/// A delay that is longer than any phase is none.
const LONGEST_LAG: Span = Span::from_secs(60);

/// Timeout for the page's close frame.
const CLOSE_TIMEOUT: Span = Span::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BrowserPhase {
    /// Waiting for the driver's decision.
    Deciding,
    /// Measuring the latency of the idle path.
    Idle,
    /// Waiting for the connections of a phase.
    Opening,
    Running,
    /// The flow was stopped.
    Stopping,
    /// Waiting for what the page says of the phase.
    Noting,
    /// The test has failed; waiting for the end of the flow.
    Draining,
    /// Waiting for the page's close frame.
    Closing,
    Over,
}

/// A test of a page.
#[derive(Debug)]
pub(super) struct BrowserSession {
    pub(super) test: String,
    pub(super) address: Option<IpAddr>,
    control: Link,
    encryption: Encryption,
    reader: MessageReader,
    browser: String,
    run: RunId,
    log: Option<String>,
    streams: usize,
    time: Span,
    /// The phases that are left, the current one first.
    phases: VecDeque<Transfer>,
    /// The connections of the current phase, by stream.
    links: Vec<Option<Link>>,
    phase: BrowserPhase,
    due: Option<Timestamp>,
    next_look: Option<Timestamp>,
    /// Whether counts were requested; those that others have requested arrive too.
    looks: bool,
    next_ping: Option<Timestamp>,
    /// When each ping was sent, and its round-trip time.
    pings: Vec<(Timestamp, Option<Span>)>,
    pinged: u64,
    reported: TransferCounts,
    trouble: Option<String>,
    /// Whether nothing is expected from the page any more.
    page_closed: bool,
    out: VecDeque<Output>,
}

impl BrowserSession {
    /// The session of a page, or the response that refuses it.
    pub(super) fn new(
        number: u16,
        test: &str,
        (control, ends): (Link, Ends),
        request: &HttpRequest,
    ) -> Result<Self, Vec<u8>> {
        let (streams, time, directions) =
            terms(request).map_err(|why| request::text("400 Bad Request", &format!("{why}\n")))?;
        let accept = super::server::accept(request, PROTOCOL)?;
        let first = super::server::first_flow(number);
        let flows = (first..).zip(directions);
        let framing = |direction| match direction {
            Direction::Download => PayloadFraming::None,
            Direction::Upload => PayloadFraming::WebSocket,
        };
        let phases = flows.map(|(flow, direction)| {
            Transfer::new(FlowId(flow), direction, framing(direction), ends.encryption)
        });
        let mut session = Self {
            test: test.to_owned(),
            address: ends.address(),
            control,
            encryption: ends.encryption,
            reader: MessageReader::default(),
            browser: request.browser().unwrap_or_else(|| "a browser".to_owned()),
            run: RunId(u32::from(number)),
            log: None,
            streams,
            time,
            phases: phases.collect(),
            links: Vec::new(),
            phase: BrowserPhase::Deciding,
            due: None,
            next_look: None,
            looks: false,
            next_ping: None,
            pings: Vec::new(),
            pinged: 0,
            reported: TransferCounts::default(),
            trouble: None,
            page_closed: false,
            out: VecDeque::new(),
        };
        session.out.push_back(Output::Send { link: control, bytes: accept });
        session.ask();
        Ok(session)
    }

    fn ask(&mut self) {
        let mut spec = TestSpec::default();
        let has = |wanted| self.phases.iter().any(|phase| phase.direction == wanted);
        spec.traffic.upload = has(Direction::Upload) && !has(Direction::Download);
        spec.traffic.download = has(Direction::Download) && !has(Direction::Upload);
        spec.traffic.duration = Some(self.time);
        spec.traffic.streams = u32::try_from(self.streams).unwrap_or(1);
        let seconds = self.time.as_ns().saturating_mul(self.phases.len() as u64);
        self.out.push_back(Output::Ask(Box::new(Planned {
            run: self.run,
            tool: TOOL,
            peer: Some(self.browser.clone()),
            link: self.control,
            client: false,
            spec,
            flows: self.phases.iter().map(|phase| (phase.flow, phase.direction)).collect(),
            expected: Some(Span::from_ns(seconds)),
        })));
    }

    fn send_message(&mut self, message: &ToPage<'_>) {
        let text = serde_json::to_vec(message).unwrap_or_default();
        let bytes = websocket::frame(FrameKind::Text, &text);
        self.out.push_back(Output::Send { link: self.control, bytes });
    }

    fn ping(&mut self, now: Timestamp) {
        let number = self.pinged;
        self.pinged += 1;
        self.pings.push((now, None));
        let bytes = websocket::frame(FrameKind::Ping, &number.to_be_bytes());
        self.out.push_back(Output::Send { link: self.control, bytes });
    }

    fn pong(&mut self, now: Timestamp, payload: &[u8]) {
        let Ok(number) = payload.try_into().map(u64::from_be_bytes) else { return };
        // Answers to pings of an earlier phase are too late.
        let first = self.pinged - self.pings.len() as u64;
        let at = number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some((sent, rtt @ None)) = at.and_then(|at| self.pings.get_mut(at)) {
            *rtt = Some(now - *sent);
        }
    }

    /// Passes the round trips of the phase on.
    fn probed(&mut self) {
        let probes = std::mem::take(&mut self.pings);
        let flow = self.phases.front().map(|phase| phase.flow).filter(|_| self.phase != BrowserPhase::Idle);
        if !probes.is_empty() {
            self.out.push_back(Output::Latency { run: self.run, flow, probes });
        }
    }

    /// Asks for the connections of the next phase, or finishes.
    fn next_phase(&mut self, now: Timestamp) {
        let Some(direction) = self.phases.front().map(|phase| phase.direction) else {
            return self.finish(now);
        };
        self.links = vec![None; self.streams];
        self.phase = BrowserPhase::Opening;
        self.due = Some(now + OPEN_TIMEOUT);
        (self.next_look, self.next_ping) = (None, None);
        self.send_message(&ToPage::Open { phase: direction, streams: self.streams });
    }

    /// Adds a connection of the current phase, or returns the response that refuses it.
    pub(super) fn join(
        &mut self,
        now: Timestamp,
        (link, encryption): (Link, Encryption),
        direction: Direction,
        request: &HttpRequest,
    ) -> Result<(), Vec<u8>> {
        let refuse = |why: &str| Err(request::text("409 Conflict", why));
        let stream = request.parameter("stream").and_then(|text| text.parse::<usize>().ok());
        let waits = self.phase == BrowserPhase::Opening
            && self.phases.front().is_some_and(|phase| phase.direction == direction);
        if !waits {
            return refuse("the test does not wait for this connection\n");
        }
        if encryption != self.encryption {
            return refuse("all connections of a test are encrypted, or none\n");
        }
        let Some(place @ None) = stream.and_then(|stream| self.links.get_mut(stream)) else {
            return refuse("stream is a number below streams, once each\n");
        };
        let bytes = match direction {
            Direction::Download => request::endless_body(),
            Direction::Upload => super::server::accept(request, PROTOCOL)?,
        };
        *place = Some(link);
        self.out.push_back(Output::Send { link, bytes });
        // What arrives early on an upload belongs to its flow. Only a link that is not held tells when it closes.
        if direction == Direction::Upload {
            self.out.push_back(Output::Hold { link });
        }
        if self.links.iter().all(Option::is_some) {
            self.go(now);
        }
        Ok(())
    }

    fn go(&mut self, now: Timestamp) {
        let links = self.links.iter().flatten().copied().collect();
        let Some(transfer) = self.phases.front() else { return };
        let direction = transfer.direction;
        transfer.start(self.run, links, Some(self.time), &mut self.out);
        self.phase = BrowserPhase::Running;
        self.reported = TransferCounts::default();
        self.due = Some(now + self.time + GRACE);
        self.next_look = Some(now + PROGRESS_INTERVAL);
        self.next_ping = Some(now);
        self.look();
        self.send_message(&ToPage::Go { phase: direction, seconds: self.time.as_secs_f64() });
    }

    fn counted(&mut self, now: Timestamp, flows: &[FlowCounts]) {
        let Some(transfer) = self.phases.front_mut() else { return };
        let Some(counts) = flows.iter().find(|counts| counts.flow == transfer.flow) else { return };
        if counts.first_at.is_none() {
            return transfer.baseline(counts);
        }
        if !matches!(self.phase, BrowserPhase::Running) {
            return;
        }
        transfer.update(counts);
        let (direction, all) = (transfer.direction, transfer.counts);
        if direction == Direction::Upload && counts.first_at.is_some_and(|first| now >= first + self.time) {
            return self.stop(now);
        }
        if all.elapsed.as_ns() < self.reported.elapsed.as_ns().saturating_add(SHORTEST_PROGRESS.as_ns()) {
            return;
        }
        let rtt = self.pings.iter().rev().find_map(|(_, rtt)| *rtt).map(Span::as_ns);
        let bitrate_bps = all.since(&std::mem::replace(&mut self.reported, all));
        let (elapsed_ns, bytes) = (all.elapsed.as_ns(), all.bytes);
        self.send_message(&ToPage::Progress {
            phase: direction,
            elapsed_ns,
            bytes,
            bitrate_bps,
            rtt_ns: rtt,
        });
    }

    fn look(&mut self) {
        self.looks = true;
        self.out.push_back(Output::Look);
    }

    /// Ends the load of a phase.
    fn stop(&mut self, now: Timestamp) {
        self.phase = BrowserPhase::Stopping;
        self.due = Some(now + GRACE);
        (self.next_look, self.next_ping) = (None, None);
        if let Some(transfer) = self.phases.front_mut() {
            transfer.stop(Stop::AtOnce, &mut self.out);
        }
    }

    fn ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        if self.phase == BrowserPhase::Draining {
            return self.close(now);
        }
        let by_itself = self.phase == BrowserPhase::Running;
        let Some(transfer) = self.phases.front_mut() else { return };
        if transfer.direction == Direction::Upload || transfer.counts.bytes == 0 {
            transfer.update(counts);
        }
        // The measured part of a receiver is counted exactly.
        let tally = counts.tally.as_ref().filter(|_| transfer.direction == Direction::Upload);
        if let Some(tally) = tally.filter(|tally| tally.elapsed > Span::ZERO) {
            transfer.counts = TransferCounts { bytes: tally.bytes.get(), elapsed: tally.elapsed };
        }
        let (direction, all) = (transfer.direction, transfer.counts);
        // The archive leaves out the bytes of the first read, whose time is the origin.
        let bitrate_bps = tally.map_or(all.bitrate_bps(), |tally| tally.bitrate.bps());
        self.close_links(direction);
        let lost = counts.trouble.as_ref().map(|trouble| trouble.text.clone());
        if all.bytes == 0 || (by_itself && all.elapsed < self.time) {
            let why = lost.unwrap_or_else(|| "the connections of the test ended early".to_owned());
            return self.fail(now, &why);
        }
        if all.elapsed < Transfer::least(self.time) {
            return self.fail(now, "the browser sent nothing at the end of the test");
        }
        self.probed();
        let (elapsed_ns, bytes) = (all.elapsed.as_ns(), all.bytes);
        self.send_message(&ToPage::Ended { phase: direction, bytes, elapsed_ns, bitrate_bps });
        self.phase = BrowserPhase::Noting;
        self.due = Some(now + NOTE_TIMEOUT);
    }

    /// What the page said of the phase, or nothing in time.
    fn noted(&mut self, now: Timestamp, note: BrowserNote) {
        if let Some(transfer) = self.phases.pop_front() {
            transfer.peer_counted(Some(note), &mut self.out);
        }
        self.next_phase(now);
    }

    fn close_links(&mut self, direction: Direction) {
        for link in std::mem::take(&mut self.links).into_iter().flatten() {
            match direction {
                // What is queued does not count, and would delay the next phase.
                Direction::Download => self.out.push_back(Output::Reset { link }),
                Direction::Upload => {
                    let bytes = websocket::close(close_code::NORMAL);
                    self.out.push_back(Output::Send { link, bytes });
                    self.out.push_back(Output::Discard { link });
                    self.out.push_back(Output::Close { link });
                }
            }
        }
    }

    fn note(&self) -> BrowserNote {
        BrowserNote::named(&self.browser)
    }

    fn received(&mut self, now: Timestamp, bytes: &[u8]) {
        let messages = match self.reader.read(bytes) {
            Ok(messages) => messages,
            Err(why) => {
                // No close frame can be read any more.
                self.page_closed = true;
                return self.end(now, &why);
            }
        };
        for message in messages {
            match message {
                WebSocketMessage::Pong(payload) => self.pong(now, &payload),
                WebSocketMessage::Ping(payload) => {
                    let bytes = websocket::frame(FrameKind::Pong, &payload);
                    self.out.push_back(Output::Send { link: self.control, bytes });
                }
                WebSocketMessage::Close => {
                    self.page_closed = true;
                    return self.end(now, "the page has left");
                }
                WebSocketMessage::Text(text) => match serde_json::from_slice(&text) {
                    Ok(FromPage::Cancel) => return self.end(now, "cancelled on the page"),
                    Ok(FromPage::Note { phase, starved_share, longest_lag_ns, hidden }) => {
                        let current = self.phases.front().map(|transfer| transfer.direction);
                        if self.phase == BrowserPhase::Noting && current == Some(phase) {
                            let share = starved_share.and_then(|share| share.as_f64());
                            let starved_share =
                                share.filter(|share| (0.0..=1.0).contains(share)).and_then(Ratio::new);
                            let lag = longest_lag_ns.and_then(|lag| lag.as_f64());
                            let longest_lag = lag
                                .and_then(|lag| Span::from_secs_f64(lag / 1e9))
                                .filter(|lag| *lag <= LONGEST_LAG);
                            let hidden = hidden.and_then(|hidden| hidden.as_bool()).unwrap_or_default();
                            let note = BrowserNote { starved_share, longest_lag, hidden, ..self.note() };
                            self.noted(now, note);
                        }
                    }
                    // A message of a later version.
                    Err(_) => {}
                },
            }
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if is_due(self.next_ping, now) {
            let idle = self.phase == BrowserPhase::Idle;
            self.ping(now);
            self.next_ping = Some(now + if idle { IDLE_PING_INTERVAL } else { LOADED_PING_INTERVAL });
            if idle && self.pings.len() >= IDLE_PINGS {
                self.next_ping = None;
            }
        }
        if is_due(self.next_look, now) {
            self.next_look = Some(now + PROGRESS_INTERVAL);
            self.look();
        }
        if is_due(self.due, now) {
            self.due = None;
            match self.phase {
                BrowserPhase::Idle => {
                    self.probed();
                    self.next_phase(now);
                }
                BrowserPhase::Opening => self.fail(now, "the page did not open the connections of the test"),
                BrowserPhase::Running => self.fail(now, "no payload arrived"),
                BrowserPhase::Stopping | BrowserPhase::Draining => {
                    if let Some(transfer) = self.phases.front_mut() {
                        transfer.stop(Stop::Abort, &mut self.out);
                    }
                }
                BrowserPhase::Noting => self.noted(now, self.note()),
                BrowserPhase::Closing => self.over(),
                BrowserPhase::Deciding | BrowserPhase::Over => {}
            }
        }
    }

    fn is_own_link(&self, link: Link) -> bool {
        self.links.contains(&Some(link))
    }

    fn is_own_flow(&self, flow: FlowId) -> bool {
        self.phases.front().is_some_and(|phase| phase.flow == flow)
    }
}

impl ToolSession for BrowserSession {
    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        match input {
            Input::Bytes { link, bytes } if *link == self.control => self.received(now, bytes),
            Input::Closed { link, .. } if *link == self.control => {
                self.end(now, "the page has left");
                if self.phase == BrowserPhase::Closing {
                    self.over();
                }
            }
            Input::Closed { link, .. } if self.is_own_link(*link) => {
                if self.phase == BrowserPhase::Opening {
                    self.fail(now, "the page closed a connection of the test");
                }
            }
            Input::Bytes { link, .. } if self.is_own_link(*link) => {}
            Input::Admitted { run } if *run == self.run => {
                self.phase = BrowserPhase::Idle;
                self.next_ping = Some(now);
                self.due = Some(now + IDLE_PHASE);
            }
            Input::Logged { run, id } if *run == self.run => self.log = Some((*id).to_owned()),
            Input::Refused { run, why, may_retry } if *run == self.run => {
                let (message, code) = match may_retry {
                    true => (ToPage::Busy { why }, close_code::TRY_AGAIN_LATER),
                    false => (ToPage::Failed { why }, close_code::NORMAL),
                };
                self.send_message(&message);
                let bytes = websocket::close(code);
                self.out.push_back(Output::Send { link: self.control, bytes });
                self.phase = BrowserPhase::Closing;
                self.due = Some(now + CLOSE_TIMEOUT);
            }
            Input::Counts { flows, .. } => {
                if std::mem::take(&mut self.looks) {
                    self.counted(now, flows);
                }
            }
            Input::Started { flow, .. } if self.is_own_flow(*flow) => self.look(),
            Input::NotStarted { flow, reason } if self.is_own_flow(*flow) => {
                self.links.clear();
                self.fail(now, &reason.text);
            }
            Input::Written { flow } if self.is_own_flow(*flow) => {
                self.look();
                self.next_look = None;
                if let Some(transfer) = self.phases.front_mut() {
                    transfer.stop(Stop::AtOnce, &mut self.out);
                }
                self.due = Some(now + GRACE);
            }
            Input::Ended { counts } if self.is_own_flow(counts.flow) => self.ended(now, counts),
            Input::Tick => self.tick(now),
            _ => return false,
        }
        true
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        [self.due, self.next_look, self.next_ping].into_iter().flatten().min()
    }

    fn is_over(&self) -> bool {
        self.phase == BrowserPhase::Over
    }
}
