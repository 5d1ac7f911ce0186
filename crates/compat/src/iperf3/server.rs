//! iperf3's server.

mod admission;
mod ending;
mod run;
mod test;
mod visitors;

use std::collections::{BTreeMap, VecDeque};

use linerate_units::{Span, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::auth::Authenticator;
use super::errors::{Iperf3Error, Iperf3ErrorNumber};
use super::plan;
use super::report::{Iperf3Report, Iperf3SystemInfo, OutputText};
use super::settings::Iperf3Settings;
use crate::EmbeddedServerConfig;
use crate::stand_in::{FlowId, Input, Link, Opened, Output, RunId, StandIn, SystemError, Transport};
use admission::DatagramListener;
use test::Iperf3ServerTest;
use visitors::Visitor;

/// Timeout for a cookie, and between the parts of a message (as in iperf3 since 3.15). On a port that is shared with other
/// protocols also for each stream of a test that is being set up.
const READ_TIMEOUT: Span = Span::from_secs(10);

/// The configuration of a server in addition to its command line.
#[derive(Debug)]
pub struct Iperf3ServerConfig {
    /// The settings from the command line.
    pub settings: Iperf3Settings,
    /// The description of this host.
    pub host: Iperf3SystemInfo,
    /// Milliseconds since the Unix epoch at [`Timestamp::START`].
    pub unix_ms: u64,
    /// Random seed for logins; must be unguessable.
    pub seed: [u8; 32],
    /// Decides which users may test; absent for everybody.
    pub gate: Option<Authenticator>,
    /// Whether several tests may run at once, distinguished by their cookies.
    pub shared: bool,
}

/// The server of iperf3: tests in sequence or in parallel.
#[derive(Debug)]
pub struct Iperf3Server {
    server_state: ServerState,
    random: StdRng,
    gate: Option<Authenticator>,
    shared: bool,
    listener: Link,
    udp_listener: Option<DatagramListener>,
    visitors: BTreeMap<Link, Visitor>,
    tests: BTreeMap<RunId, Iperf3ServerTest>,
    next_run: RunId,
    /// The report of the next test.
    lobby: Option<Iperf3Report>,
    /// The printed number of the next test.
    number: u64,
    /// Since when the server is idle; absent during a test.
    idle_since: Option<Timestamp>,
    /// Whether the program ends as soon as no client is left.
    leaving: bool,
    over: bool,
}

/// What the server and its tests share.
#[derive(Debug)]
struct ServerState {
    settings: Iperf3Settings,
    host: Iperf3SystemInfo,
    unix_ms: u64,
    out: VecDeque<Output>,
    /// Send and receive buffer of the listener, bytes; absent for a port that is shared with other protocols.
    listener_buffers: Option<(u64, u64)>,
    /// How long a test that is being set up waits for its next stream.
    stream_timeout: Span,
    next_flow: FlowId,
    next_link: u32,
}

impl Iperf3Server {
    /// Creates a server that has not started.
    #[must_use]
    pub fn new(config: Iperf3ServerConfig) -> Self {
        let Iperf3ServerConfig { settings, host, unix_ms, seed, gate, shared } = config;
        let server_state = ServerState {
            stream_timeout: settings.common.rcv_timeout,
            settings,
            host,
            unix_ms,
            out: VecDeque::new(),
            listener_buffers: None,
            next_flow: FlowId(0),
            next_link: 1,
        };
        Self {
            server_state,
            random: StdRng::from_seed(seed),
            gate,
            shared,
            listener: Link(0),
            udp_listener: None,
            visitors: BTreeMap::new(),
            tests: BTreeMap::new(),
            next_run: RunId(0),
            lobby: None,
            number: 1,
            idle_since: None,
            leaving: false,
            over: false,
        }
    }

    /// Creates the server for a port that is shared with other protocols; it has no output and no logins.
    #[must_use]
    pub fn embedded_server(config: &EmbeddedServerConfig) -> Box<dyn StandIn> {
        let mut settings = Iperf3Settings::default();
        settings.common.port = config.port;
        let seed = StdRng::seed_from_u64(config.seed).random();
        let shared = config.shared;
        let host = Iperf3SystemInfo::default();
        let unix_ms = config.wall.as_ns() / 1_000_000;
        let mut server = Self::new(Iperf3ServerConfig { settings, host, unix_ms, seed, gate: None, shared });
        // Other clients may be waiting; the two minutes of the tool are for a dedicated server. A running test keeps
        // them: a slow client may send one block in many seconds, and the driver knows whether others wait.
        server.server_state.stream_timeout = READ_TIMEOUT;
        Box::new(server)
    }

    fn begin(&mut self) {
        let mut report = Iperf3Report::new(&self.server_state.settings, &self.server_state.host);
        let opening = report.opening();
        self.server_state.print(opening);
        self.lobby = Some(report);
        self.listen();
    }

    fn listen(&mut self) {
        let options = plan::control_options(&self.server_state.settings.common);
        // An MPTCP listener serves plain TCP clients with plain TCP.
        let options = crate::stand_in::LinkOptions { transport: Transport::Mptcp, ..options };
        self.listener = self.server_state.link();
        let port = self.server_state.settings.common.port;
        self.server_state.out.push_back(Output::Listen { link: self.listener, port, options });
    }

    fn opened(&mut self, now: Timestamp, link: Link, opened: Opened) {
        if link == self.listener {
            self.server_state.settings.common.port = opened.local.port();
            let buffers = (opened.snd_buf, opened.rcv_buf);
            self.server_state.listener_buffers = Some(buffers).filter(|buffers| *buffers != (0, 0));
            if self.idle_since.replace(now).is_none() {
                self.announce();
            }
        } else if let Some(Visitor::Stream(run)) = self.visitors.get(&link) {
            if let Some(test) = self.tests.get_mut(run) {
                test.add_stream(now, link, opened, &mut self.server_state);
            }
        } else {
            self.udp_listener_opened(now, link);
        }
    }

    fn not_opened(&mut self, now: Timestamp, link: Link, reason: &SystemError) {
        if link == self.listener {
            let trouble = Iperf3Error::because(Iperf3ErrorNumber::LISTEN, reason.errno, reason.text.clone());
            let words = self.report().failed(&trouble);
            self.server_state.speak(words);
            self.exit(1);
        } else {
            self.udp_listener_failed(now, link, reason);
        }
    }

    /// Prints that the server is listening.
    fn announce(&mut self) {
        let mut report = self.report();
        let words = report.listening(self.number);
        self.server_state.speak(words);
        self.lobby = Some(report);
    }

    /// The report that was prepared for the next test, or a new one.
    fn report(&mut self) -> Iperf3Report {
        self.lobby
            .take()
            .unwrap_or_else(|| Iperf3Report::new(&self.server_state.settings, &self.server_state.host))
    }

    fn tick(&mut self, now: Timestamp) {
        self.part_from_late(now);
        for test in self.tests.values_mut() {
            test.tick(now, &mut self.server_state);
        }
        self.request_counts();
        if self.idle_end().is_some_and(|end| end <= now) {
            self.end_idling(now);
        }
    }

    /// Requests counts, once for all tests that need them.
    fn request_counts(&mut self) {
        let asking =
            self.tests.values_mut().map(Iperf3ServerTest::starts_looking).filter(|starts| *starts).count();
        if asking > 0 {
            self.server_state.out.push_back(Output::Look);
        }
    }

    /// When the idle timeout passes.
    fn idle_end(&self) -> Option<Timestamp> {
        let timeout = self.server_state.settings.server.idle_timeout?;
        Some(self.idle_since? + timeout)
    }

    fn end_idling(&mut self, now: Timestamp) {
        if self.server_state.settings.server.one_off {
            return self.exit(0);
        }
        self.idle_since = Some(now);
        self.server_state.out.push_back(Output::Close { link: self.listener });
        self.listen();
    }

    fn exit(&mut self, code: i32) {
        self.server_state.out.push_back(Output::Exit(code));
        self.over = true;
    }
}

impl ServerState {
    fn print(&mut self, text: String) {
        if !text.is_empty() {
            self.out.push_back(Output::Print(text));
        }
    }

    fn speak(&mut self, words: OutputText) {
        self.print(words.out);
        if !words.err.is_empty() {
            self.out.push_back(Output::PrintError(words.err));
        }
    }

    fn link(&mut self) -> Link {
        let link = Link(self.next_link % Link::FIRST_ACCEPTED.0);
        self.next_link = self.next_link.wrapping_add(1);
        link
    }

    fn flow(&mut self) -> FlowId {
        let flow = self.next_flow;
        self.next_flow = self.next_flow.next();
        flow
    }
}

impl StandIn for Iperf3Server {
    fn input(&mut self, now: Timestamp, input: Input<'_>) {
        if self.over {
            return;
        }
        match input {
            Input::Begin => self.begin(),
            Input::Opened { link, opened } => self.opened(now, link, opened),
            Input::NotOpened { link, reason } => self.not_opened(now, link, &reason),
            Input::Accepted { listener, link, opened } => self.accepted(now, listener, link, opened),
            Input::Bytes { link, bytes } => self.bytes(now, link, bytes),
            Input::Datagram { link, from, .. } => self.datagram(link, from),
            Input::Closed { link, .. } => self.closed(now, link),
            Input::Admitted { run } => self.admitted(now, run),
            Input::Refused { run, .. } => self.refused(run),
            Input::NotStarted { flow, reason } => {
                for test in self.tests.values_mut() {
                    test.not_started(flow, &reason, &mut self.server_state);
                }
            }
            Input::Counts { cpu, flows } => {
                for test in self.tests.values_mut() {
                    test.counts(now, cpu, flows, &mut self.server_state);
                }
            }
            Input::Ended { counts } => {
                for test in self.tests.values_mut() {
                    test.flow_ended(now, counts, &mut self.server_state);
                }
                self.server_state.out.push_back(Output::Forget { flow: counts.flow });
            }
            Input::Tick => self.tick(now),
            Input::Signal(signal) => self.interrupt(signal),
            _ => {}
        }
        self.request_counts();
        self.sweep(now);
        self.leave();
    }

    fn output(&mut self) -> Option<Output> {
        self.server_state.out.pop_front()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.over {
            return None;
        }
        let visitors = self.visitors.values().filter_map(|visitor| match visitor {
            Visitor::Arriving { until, .. } | Visitor::Parting { until } => Some(*until),
            Visitor::Control(_) | Visitor::Stream(_) => None,
        });
        let tests = self.tests.values().filter_map(|test| test.deadline(&self.server_state.settings));
        visitors.chain(tests).chain(self.idle_end()).min()
    }
}
