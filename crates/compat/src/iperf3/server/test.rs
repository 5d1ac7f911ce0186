//! One test of a server, from the cookie to the streams.

use std::net::SocketAddr;

use linerate_units::{Span, Timestamp};

use super::{READ_TIMEOUT, ServerState};
use crate::iperf3::errors::{Iperf3Error, Iperf3ErrorNumber};
use crate::iperf3::params::Params;
use crate::iperf3::plan::{self, StreamGroup};
use crate::iperf3::report::{Iperf3Control, Iperf3Report};
use crate::iperf3::state::Iperf3State;
use crate::iperf3::test_state::Iperf3OpenTest;
use crate::iperf3::wire::{BadLength, Cookie, MAX_UNREAD_BYTES, PARAMS_LIMIT, take_message};
use crate::stand_in::{Link, LinkOptions, Opened, Output, RunId};

/// Timeout for a complete message (as in iperf3 since 3.15).
pub(super) const MESSAGE_TIMEOUT: Span = Span::from_secs(30);

/// One test.
#[derive(Debug)]
pub(super) struct Iperf3ServerTest {
    pub(super) run: RunId,
    pub(super) control: Link,
    pub(super) peer: SocketAddr,
    pub(super) cookie: Cookie,
    pub(super) report: Iperf3Report,
    pub(super) phase: Iperf3ServerPhase,
    /// When this phase times out.
    pub(super) timeout: Option<Timestamp>,
    /// When the message must be complete.
    pub(super) message_end: Timestamp,
    /// Unprocessed bytes of the control connection.
    pub(super) held: Vec<u8>,
    pub(super) params: Option<Params>,
    pub(super) streams: Vec<(Link, Opened)>,
    /// The peer whose socket is being opened.
    pub(super) adopting: Option<SocketAddr>,
    /// The groups of streams. Until these are open, a group's links are the indices of its streams.
    pub(super) groups: Vec<StreamGroup>,
    pub(super) test: Option<Iperf3OpenTest>,
    /// Why counts are needed, and whether they were requested.
    pub(super) looking: (Iperf3ServerCountsReason, bool),
    /// When the client must have ended the test.
    pub(super) safety_end: Option<Timestamp>,
    /// End of the period over which the bit rate is averaged, and the bytes at its start.
    pub(super) rate_check: Option<(Timestamp, u64)>,
    /// Present while data that were sent before the end still arrive.
    pub(super) draining: Option<StreamDrain>,
    pub(super) ended_at: Timestamp,
}

/// The phase of the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iperf3ServerPhase {
    /// Waiting for the parameters.
    Negotiating,
    /// Waiting for the driver's permission.
    Asking,
    /// Waiting for the socket for datagram streams, or for another test of this host that uses it.
    AwaitsUdpListener,
    /// Waiting for the streams.
    Creating,
    /// The timers run.
    Running,
    /// The client has ended the test. The last counts are read after the data that it sent before have arrived.
    Draining,
    /// Waiting for the flows to stop.
    Stopping,
    /// Waiting for the client's results.
    Exchanging,
    /// The results were exchanged; waiting for the client's last state.
    Showing,
    /// Over.
    Over(Ending),
}

/// The state of the drain.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamDrain {
    /// Bytes received so far.
    pub(super) bytes: u64,
    /// When their number last grew.
    pub(super) grew_at: Timestamp,
    /// When counts are read next.
    pub(super) next: Timestamp,
    /// When the drain ends at the latest.
    pub(super) until: Timestamp,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// Whether it counts as the one test of a server with `--one-off`.
    pub(super) counts: bool,
    /// Whether the client may still have to read a last message.
    pub(super) last_word: bool,
}

/// Why counts are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iperf3ServerCountsReason {
    /// They are not needed.
    No,
    /// The timers start.
    Begin,
    /// A timer is due.
    Timer,
    /// The client has ended the test.
    Last,
    /// The test is interrupted.
    BreakOff(Break),
}

/// What interrupts a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Break {
    /// The client, with a message.
    Client,
    /// The client, without a message.
    Vanished,
    /// A signal.
    Signal(i32),
}

impl Iperf3ServerTest {
    pub(super) fn new(
        now: Timestamp,
        run: RunId,
        control: Link,
        opened: &Opened,
        cookie: Cookie,
        mut report: Iperf3Report,
        server_state: &mut ServerState,
    ) -> Self {
        let words = report.sent_state(Iperf3State::ParamExchange);
        server_state.speak(words);
        server_state
            .out
            .push_back(Output::Send { link: control, bytes: vec![Iperf3State::ParamExchange.byte()] });
        Self {
            run,
            control,
            peer: opened.remote.unwrap_or(opened.local),
            cookie,
            report,
            phase: Iperf3ServerPhase::Negotiating,
            timeout: Some(now + READ_TIMEOUT),
            message_end: now + MESSAGE_TIMEOUT,
            held: Vec::new(),
            params: None,
            streams: Vec::new(),
            adopting: None,
            groups: Vec::new(),
            test: None,
            looking: (Iperf3ServerCountsReason::No, false),
            safety_end: None,
            rate_check: None,
            draining: None,
            ended_at: now,
        }
    }

    /// Whether this test keeps others from the server.
    pub(super) fn is_admitted(&self) -> bool {
        !matches!(self.phase, Iperf3ServerPhase::Negotiating | Iperf3ServerPhase::Over(_))
    }

    pub(super) fn awaits_streams(&self) -> bool {
        self.phase == Iperf3ServerPhase::Creating
    }

    pub(super) fn is_udp(&self) -> bool {
        self.params.as_ref().is_some_and(|params| params.udp)
    }

    /// Whether this end sends data.
    pub(super) fn sends(&self) -> bool {
        self.params.as_ref().is_some_and(|params| params.reverse || params.bidirectional)
    }

    pub(super) fn send_state(&mut self, state: Iperf3State, server_state: &mut ServerState) {
        let words = self.report.sent_state(state);
        server_state.speak(words);
        server_state.out.push_back(Output::Send { link: self.control, bytes: vec![state.byte()] });
    }

    pub(super) fn enter(&mut self, phase: Iperf3ServerPhase, timeout: Option<Timestamp>) {
        self.phase = phase;
        self.timeout = timeout;
    }

    /// Handles bytes of the control connection.
    pub(super) fn receive(&mut self, now: Timestamp, bytes: &[u8], server_state: &mut ServerState) {
        self.held.extend_from_slice(bytes);
        if matches!(self.phase, Iperf3ServerPhase::Negotiating | Iperf3ServerPhase::Exchanging) {
            self.timeout = Some(self.message_end.min(now + READ_TIMEOUT));
        }
        self.listen(now, server_state);
        let waits = matches!(
            self.phase,
            Iperf3ServerPhase::Asking
                | Iperf3ServerPhase::AwaitsUdpListener
                | Iperf3ServerPhase::Draining
                | Iperf3ServerPhase::Stopping
        );
        if waits && self.held.len() > MAX_UNREAD_BYTES {
            self.fail(&Iperf3Error::new(Iperf3ErrorNumber::MESSAGE), server_state);
        }
    }

    /// Takes the parameters, once they are complete.
    pub(super) fn take_params(&mut self, server_state: &mut ServerState) -> Option<Params> {
        let params = match take_message(&mut self.held, PARAMS_LIMIT) {
            Ok(None) => return None,
            Ok(Some(message)) => {
                let words = self.report.message("get_parameters:", &message);
                server_state.speak(words);
                Params::read(&message)
            }
            Err(BadLength(_)) => None,
        };
        if params.is_none() {
            self.fail(&Iperf3Error::new(Iperf3ErrorNumber::RECV_PARAMS), server_state);
        }
        params
    }

    /// The parameters are valid: requests permission from the driver.
    pub(super) fn ask(&mut self, params: Params, server_state: &mut ServerState) {
        let places: Vec<Link> = (0..).map(Link).take(params.streams()).collect();
        let groups = plan::groups(&params, false, &places, || server_state.flow());
        let flows = groups.iter().map(|group| (group.flow, group.direction)).collect();
        let interval = server_state.settings.common.interval;
        let planned = plan::planned(&params, flows, self.run, self.control, false, interval);
        server_state.out.push_back(Output::Ask(Box::new(planned)));
        self.groups = groups;
        self.params = Some(params);
        self.enter(Iperf3ServerPhase::Asking, None);
    }

    /// The driver has permitted the test.
    pub(super) fn accept(&mut self, now: Timestamp, unix_ms: u64, server_state: &mut ServerState) {
        let Some(params) = &self.params else { return };
        let control = Iperf3Control {
            host: self.peer.ip().to_string(),
            port: self.peer.port(),
            cookie: self.cookie.text(),
            mss: 0,
            unix_ms,
        };
        let text = self.report.connected(&control, plan::test(params));
        server_state.print(text);
        if params.udp {
            self.enter(Iperf3ServerPhase::AwaitsUdpListener, Some(now + server_state.stream_timeout));
        } else {
            self.create_streams(now, server_state);
        }
    }

    /// Requests the streams from the client.
    pub(super) fn create_streams(&mut self, now: Timestamp, server_state: &mut ServerState) {
        self.send_state(Iperf3State::CreateStreams, server_state);
        self.enter(Iperf3ServerPhase::Creating, Some(now + server_state.stream_timeout));
    }

    /// Options for the socket of a datagram stream; absent if this peer already has one.
    pub(super) fn adopt(&mut self, from: SocketAddr) -> Option<LinkOptions> {
        let known = self.streams.iter().any(|(_, opened)| opened.remote == Some(from));
        if known || self.adopting.is_some() {
            return None;
        }
        self.adopting = Some(from);
        self.params.as_ref().map(plan::stream_options)
    }

    /// Options for the connection of a stream; absent if the parameters have none.
    pub(super) fn tuning(&self) -> Option<LinkOptions> {
        let options = plan::stream_options(self.params.as_ref()?);
        let plain = LinkOptions { transport: options.transport, ..LinkOptions::default() };
        (options != plain).then_some(options)
    }

    /// Adds an open stream.
    pub(super) fn add_stream(
        &mut self,
        now: Timestamp,
        link: Link,
        opened: Opened,
        server_state: &mut ServerState,
    ) {
        let Some(params) = self.params.as_ref().filter(|_| self.phase == Iperf3ServerPhase::Creating) else {
            return;
        };
        self.streams.push((link, opened));
        self.timeout = Some(now + server_state.stream_timeout);
        if self.streams.len() >= params.streams() {
            // The client numbers its streams as it connects them, and their direction follows from the number. A
            // cookie that was lost arrives after that of a later connection.
            self.streams.sort_by_key(|(link, _)| *link);
            self.start(now, server_state);
        }
    }

    /// The groups of the flows with their actual links.
    pub(super) fn linked_groups(&self) -> Vec<StreamGroup> {
        let mut groups = self.groups.clone();
        for group in &mut groups {
            for link in &mut group.links {
                let at = usize::try_from(link.0).unwrap_or(usize::MAX);
                if let Some((stream, _)) = self.streams.get(at) {
                    *link = *stream;
                }
            }
        }
        groups
    }
}
