//! A client of ndt7: one direction over one WebSocket (specification v0.11.0).

use std::collections::VecDeque;
use std::net::SocketAddr;

use linerate_model::flow::{FrameKind, StreamCounts};
use linerate_model::{BrowserNote, Direction, TestSpec};
use linerate_units::{Span, Timestamp};
use serde::Serialize;

use super::request::{self, HttpRequest};
use super::server::Ends;
use super::transfer::{Transfer, TransferCounts, is_due};
use super::websocket::{self, MessageReader, WebSocketMessage, close_code};
use crate::sessions::ToolSession;
use crate::stand_in::{FlowCounts, FlowId, Input, Link, Output, PayloadFraming, Planned, RunId, Stop};

/// The subprotocol.
pub(super) const PROTOCOL: &str = "net.measurementlab.ndt.v7";

/// Name in results.
pub(super) const TOOL: &str = "ndt7";

/// How long a server sends.
const DURATION: Span = Span::from_secs(10);

/// When a server ends an upload that its client has not ended.
const LONGEST: Span = Span::from_secs(13);

/// Time between two measurements; the specification allows ten a second.
const MEASUREMENT_INTERVAL: Span = Span::from_ms(250);

/// Timeout for the client's close frame.
const CLOSE_TIMEOUT: Span = Span::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ndt7Phase {
    /// Waiting for the driver's decision.
    Deciding,
    Running,
    /// The flow was stopped, or has ended by itself.
    Stopping,
    /// Waiting for the client's close frame.
    Closing,
    Over,
}

/// A client of ndt7.
#[derive(Debug)]
pub(super) struct Ndt7Session {
    link: Link,
    client: Option<SocketAddr>,
    server: SocketAddr,
    uuid: String,
    run: RunId,
    transfer: Transfer,
    accept: Vec<u8>,
    program: String,
    /// Absent if the client is no browser.
    browser: Option<BrowserNote>,
    phase: Ndt7Phase,
    due: Option<Timestamp>,
    next_look: Option<Timestamp>,
    /// Whether counts were requested; those that others have requested arrive too.
    looks: bool,
    trouble: Option<String>,
    /// Reads what follows the flow.
    reader: MessageReader,
    out: VecDeque<Output>,
}

/// A measurement, as in the specification.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Ndt7Measurement<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    app_info: Option<AppInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_info: Option<ConnectionInfo<'a>>,
    origin: &'static str,
    test: &'static str,
    #[serde(rename = "TCPInfo", skip_serializing_if = "Option::is_none")]
    tcp_info: Option<TcpInfoMessage>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct AppInfo {
    elapsed_time: u64,
    num_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct ConnectionInfo<'a> {
    client: String,
    server: String,
    #[serde(rename = "UUID")]
    uuid: &'a str,
}

/// TCP_INFO of the server's kernel; times in microseconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct TcpInfoMessage {
    busy_time: u64,
    bytes_acked: u64,
    bytes_received: u64,
    bytes_sent: u64,
    bytes_retrans: u64,
    elapsed_time: u64,
    #[serde(rename = "MinRTT")]
    min_rtt: u64,
    #[serde(rename = "RTT")]
    rtt: u64,
    #[serde(rename = "RTTVar")]
    rtt_var: u64,
    #[serde(rename = "RWndLimited")]
    rwnd_limited: u64,
    snd_buf_limited: u64,
}

fn micros(span: Span) -> u64 {
    span.as_ns() / 1000
}

impl TcpInfoMessage {
    fn new(stream: &StreamCounts, elapsed: Span) -> Option<Self> {
        let connection = stream.connection?;
        Some(Self {
            busy_time: micros(connection.busy),
            bytes_acked: connection.bytes_acknowledged,
            bytes_received: connection.bytes_received,
            bytes_sent: connection.bytes_sent,
            bytes_retrans: connection.bytes_retransmitted,
            elapsed_time: micros(elapsed),
            min_rtt: micros(connection.min_rtt),
            rtt: micros(stream.rtt.unwrap_or_default()),
            rtt_var: micros(stream.rttvar.unwrap_or_default()),
            rwnd_limited: micros(connection.rwnd_limited),
            snd_buf_limited: micros(connection.sndbuf_limited),
        })
    }
}

/// The direction of a path of ndt7.
pub(super) fn direction_of(path: &str) -> Option<Direction> {
    match path {
        "/ndt/v7/download" => Some(Direction::Download),
        "/ndt/v7/upload" => Some(Direction::Upload),
        _ => None,
    }
}

impl Ndt7Session {
    /// The session of a client that requests this direction, or the response that refuses it.
    pub(super) fn new(
        now: Timestamp,
        number: u16,
        seed: u64,
        (link, ends): (Link, Ends),
        request: &HttpRequest,
    ) -> Result<Self, Vec<u8>> {
        let refuse = |why: &str| Err(request::text("400 Bad Request", why));
        let Some(direction) = direction_of(&request.path) else { return refuse("no such path\n") };
        let accept = super::server::accept(request, PROTOCOL)?;
        // 250 (megabytes) is the only value that the specification allows.
        if request.parameter("early_exit").is_some_and(|limit| limit != "250") {
            return refuse("early_exit is 250 or absent\n");
        }
        let flow = FlowId(super::server::first_flow(number));
        let mut session = Self {
            link,
            client: ends.peer,
            server: ends.local,
            uuid: format!("{seed:016x}_{number:04x}_{:x}", now.as_ns()),
            run: RunId(u32::from(number)),
            transfer: Transfer::new(flow, direction, PayloadFraming::WebSocket, ends.encryption),
            accept,
            program: request.browser().unwrap_or_else(|| "a program".to_owned()),
            browser: request.browser().map(|name| BrowserNote::named(&name)),
            phase: Ndt7Phase::Deciding,
            due: None,
            next_look: None,
            looks: false,
            trouble: None,
            reader: MessageReader::default(),
            out: VecDeque::new(),
        };
        session.ask();
        Ok(session)
    }

    fn test(&self) -> &'static str {
        match self.transfer.direction {
            Direction::Download => "download",
            Direction::Upload => "upload",
        }
    }

    fn ask(&mut self) {
        let mut spec = TestSpec::default();
        spec.traffic.upload = self.transfer.direction == Direction::Upload;
        spec.traffic.download = !spec.traffic.upload;
        spec.traffic.duration = Some(DURATION);
        spec.traffic.no_latency = true;
        self.out.push_back(Output::Ask(Box::new(Planned {
            run: self.run,
            tool: TOOL,
            peer: Some(format!("ndt7 in {}", self.program)),
            link: self.link,
            client: false,
            spec,
            flows: vec![(self.transfer.flow, self.transfer.direction)],
            expected: Some(DURATION),
        })));
    }

    fn admitted(&mut self, now: Timestamp) {
        self.phase = Ndt7Phase::Running;
        self.due = Some(now + LONGEST);
        self.next_look = Some(now + MEASUREMENT_INTERVAL);
        let bytes = std::mem::take(&mut self.accept);
        self.out.push_back(Output::Send { link: self.link, bytes });
        self.out.push_back(Output::Hold { link: self.link });
        let client = self.client.map_or_else(String::new, |client| client.to_string());
        let connection = ConnectionInfo { client, server: self.server.to_string(), uuid: &self.uuid };
        let message = self.message(None, Some(connection), None);
        self.out.push_back(Output::Send { link: self.link, bytes: message });
        // A client's upload may take a little longer, which is not measured.
        self.transfer.start(self.run, vec![self.link], Some(DURATION), &mut self.out);
    }

    fn message(
        &self,
        app_info: Option<AppInfo>,
        connection_info: Option<ConnectionInfo<'_>>,
        tcp_info: Option<TcpInfoMessage>,
    ) -> Vec<u8> {
        let measurement =
            Ndt7Measurement { app_info, connection_info, origin: "server", test: self.test(), tcp_info };
        websocket::frame(FrameKind::Text, &serde_json::to_vec(&measurement).unwrap_or_default())
    }

    /// Sends what was counted so far.
    fn measured(&mut self, counts: &FlowCounts) {
        if counts.first_at.is_none() {
            return self.transfer.baseline(counts);
        }
        self.transfer.update(counts);
        let TransferCounts { bytes, elapsed } = self.transfer.counts;
        let app_info = AppInfo { elapsed_time: micros(elapsed), num_bytes: bytes };
        let tcp_info = counts.streams.first().and_then(|stream| TcpInfoMessage::new(stream, elapsed));
        let bytes = self.message(Some(app_info), None, tcp_info);
        match (self.phase, self.transfer.direction) {
            (Ndt7Phase::Running, Direction::Download) => {
                self.transfer.insert(bytes, &mut self.out);
            }
            (Ndt7Phase::Running | Ndt7Phase::Closing, _) => {
                self.out.push_back(Output::Send { link: self.link, bytes });
            }
            _ => {}
        }
    }

    fn look(&mut self) {
        self.looks = true;
        self.out.push_back(Output::Look);
    }

    fn stop(&mut self, now: Timestamp, how: Stop) {
        if self.phase == Ndt7Phase::Running {
            // The last figures are those at the end of the time, not after the rest of the queue.
            self.look();
            self.phase = Ndt7Phase::Stopping;
            self.due = Some(now + CLOSE_TIMEOUT);
            self.next_look = None;
        }
        self.transfer.stop(how, &mut self.out);
    }

    fn ended(&mut self, now: Timestamp, counts: &FlowCounts) {
        if self.transfer.direction == Direction::Upload || self.transfer.counts.bytes == 0 {
            self.transfer.update(counts);
        }
        let least = Transfer::least(DURATION);
        let was_short = self.transfer.counts.elapsed < least;
        if let Some(trouble) = counts.trouble.as_ref().filter(|_| was_short) {
            self.trouble.get_or_insert_with(|| trouble.text.clone());
        }
        // A client may end an upload early, but not be silent until its connection is closed.
        let is_upload = self.transfer.direction == Direction::Upload;
        if is_upload && was_short && self.phase == Ndt7Phase::Stopping {
            self.trouble.get_or_insert("the client sent nothing at the end of the test".to_owned());
        }
        if self.transfer.counts.bytes == 0 {
            self.trouble.get_or_insert("no payload was transferred".to_owned());
        }
        self.transfer.peer_counted(self.browser.take(), &mut self.out);
        self.phase = Ndt7Phase::Closing;
        self.due = Some(now + CLOSE_TIMEOUT);
        self.next_look = None;
        self.measured(counts);
        self.out.push_back(Output::Send { link: self.link, bytes: websocket::close(close_code::NORMAL) });
        self.out.push_back(Output::RunOver { run: self.run, trouble: self.trouble.take() });
    }

    /// Ends the session; the run has failed unless it is over.
    pub(super) fn end(&mut self, why: &str) {
        match self.phase {
            Ndt7Phase::Running | Ndt7Phase::Stopping => {
                self.trouble.get_or_insert_with(|| why.to_owned());
                self.transfer.stop(Stop::Abort, &mut self.out);
                self.phase = Ndt7Phase::Stopping;
            }
            Ndt7Phase::Deciding | Ndt7Phase::Closing => self.over(),
            Ndt7Phase::Over => {}
        }
    }

    fn over(&mut self) {
        self.out.push_back(Output::Close { link: self.link });
        self.out.push_back(Output::Forget { flow: self.transfer.flow });
        self.phase = Ndt7Phase::Over;
        (self.due, self.next_look) = (None, None);
    }

    fn tick(&mut self, now: Timestamp) {
        if is_due(self.next_look, now) {
            self.next_look = Some(now + MEASUREMENT_INTERVAL);
            self.look();
        }
        if is_due(self.due, now) {
            self.due = None;
            match self.phase {
                Ndt7Phase::Running => self.stop(now, Stop::AtOnce),
                Ndt7Phase::Stopping => self.transfer.stop(Stop::Abort, &mut self.out),
                Ndt7Phase::Closing => self.over(),
                Ndt7Phase::Deciding | Ndt7Phase::Over => {}
            }
        }
    }
}

impl ToolSession for Ndt7Session {
    fn input(&mut self, now: Timestamp, input: &Input<'_>) -> bool {
        let own = self.transfer.flow;
        match input {
            Input::Admitted { run } if *run == self.run => self.admitted(now),
            Input::Refused { run, why, may_retry } if *run == self.run => {
                let bytes = if *may_retry { request::busy(why) } else { request::not_allowed(why) };
                self.out.push_back(Output::Send { link: self.link, bytes });
                self.over();
            }
            Input::Counts { flows, .. } => {
                if let Some(counts) = flows.iter().find(|counts| counts.flow == own && self.looks) {
                    self.looks = false;
                    match self.phase {
                        Ndt7Phase::Running => self.measured(counts),
                        Ndt7Phase::Stopping => self.transfer.update(counts),
                        _ => {}
                    }
                }
            }
            Input::Started { flow, .. } if *flow == own => self.look(),
            Input::NotStarted { flow, reason } if *flow == own => {
                let trouble = Some(reason.text.clone());
                self.out.push_back(Output::RunOver { run: self.run, trouble });
                self.over();
            }
            Input::Written { flow } if *flow == own => self.stop(now, Stop::AtOnce),
            Input::Ended { counts } if counts.flow == own => self.ended(now, counts),
            Input::Bytes { link, bytes } if *link == self.link => {
                if self.phase == Ndt7Phase::Closing {
                    let read = self.reader.read(bytes);
                    if read.is_ok_and(|messages| !messages.contains(&WebSocketMessage::Close)) {
                        return true;
                    }
                    self.over();
                }
            }
            Input::Closed { link, .. } if *link == self.link => self.end("the client has left"),
            Input::Tick => self.tick(now),
            _ => return false,
        }
        true
    }

    fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        [self.due, self.next_look].into_iter().flatten().min()
    }

    fn is_over(&self) -> bool {
        self.phase == Ndt7Phase::Over
    }
}
