//! One run on the server.

mod series;

use linerate_sock::handle::AsFd;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use linerate_engine::{Sockets, TransactionConnections};
use linerate_model::flow::FlowId;
use linerate_model::{Caveat, CaveatKind, CheckedSpec, SendMethod, TestSpec};
use linerate_proto::native::ServerSession;
use linerate_proto::{Admission, FlowOrder, Hello, QueuePosition, SessionInput, SessionOutput, Ticket};
use linerate_sock::iface::ConnectionEnds;
use linerate_sock::{Mono, clock, limits};
use linerate_units::Bytes;

use super::queue::QueueDecision;
use super::reflector::Reflector;
use super::registry::{DataSocket, RunInbox};
use super::{ServerEvent, Shared};
use crate::control_stream::ControlStream;
use crate::dialogue::{Dialogue, DialogueEvent, is_gone};
use crate::error::ControlError;
use crate::memory::{self, Loan};
use crate::multicast;
use crate::setup::{expected_time, fastest_method, flow_setup, socket_options};

/// How often a waiting client's position and the server's handle are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long data sockets are kept before their phase begins. They normally arrive right after the message that
/// announces it.
const STRAY_SOCKET_TIMEOUT: Duration = Duration::from_secs(5);

/// Open files that a server needs for a run in addition to its streams.
const EXTRA_FILES: u64 = 16;

/// Serves one client until its run is over. `received` is its greeting, which the front has read after the preface.
pub(super) fn serve(connection: ControlStream, peer: SocketAddr, received: &[u8], shared: &Arc<Shared>) {
    let result = ServerRun::begin(connection, peer, shared).and_then(|mut run| {
        // Even if a run panics, its place is released and its client is informed.
        let life = catch_unwind(AssertUnwindSafe(|| run.start(received).and_then(|()| run.serve())));
        let failed = || ControlError::Local("it failed during the run".to_owned());
        let result = life.unwrap_or_else(|_| Err(failed()));
        if let Err(error) = &result {
            let _ = catch_unwind(AssertUnwindSafe(|| run.send_reason(error)));
        }
        run.leave();
        result
    });
    let trouble = match &result {
        Ok(Served::Measured) => None,
        Ok(Served::Refused(why)) => Some(why.clone()),
        Err(error) => Some(error.to_string()),
    };
    if let Err(error) = &result
        && !is_gone(error)
    {
        tracing::info!(%peer, %error, "a run failed");
    }
    (shared.event)(ServerEvent::Ended { client: peer, trouble: trouble.map(Into::into) });
}

/// How long a client may measure nothing, or exceed its announced duration, while clients of other hosts wait.
const MAX_IDLE_WHILE_OTHERS_WAIT: Duration = Duration::from_secs(5);

const RUN_TOO_LONG: &str = "the run took longer than this server allows (--limit-time)";
const RUN_OVERSTAYED: &str =
    "other clients are waiting, and the run measured nothing for 5 s or took 5 s longer than expected";

/// When a run that begins now is expected to end; unknown for tests that are limited by bytes or blocks.
fn expected_end(spec: &TestSpec, now: Mono) -> Option<Mono> {
    spec.is_timed().then(|| now + expected_time(spec).as_duration())
}

/// The message to a client that was displaced by another host.
const DISPLACED: &str = "this server is full and a new host has priority; try again later";

enum Served {
    Measured,
    Refused(String),
}

struct ServerRun<'a> {
    dialogue: Dialogue<ServerSession>,
    peer: SocketAddr,
    shared: &'a Arc<Shared>,
    client: Option<GreetedClient>,
    begun: bool,
    reported_position: Option<QueuePosition>,
    arrived: BTreeMap<(FlowId, u32), DataSocket>,
    awaited: Vec<FlowOrder>,
    /// When data sockets of unannounced phases are closed.
    strays_until: Option<Mono>,
    refused: Option<String>,
    deadline: Option<Mono>,
    /// When the announced duration of the run is over.
    expected_end: Option<Mono>,
    /// Since when it is idle: admitted, or between two phases.
    idle_since: Option<Mono>,
    warned: bool,
    series: series::ServerSweep,
}

/// A client that has sent its greeting.
struct GreetedClient {
    name: String,
    spec: CheckedSpec,
    /// Its ticket in the queue.
    ticket: u64,
    /// The ticket of its coordinator, if it uses the coordinator's place.
    guest: Option<Ticket>,
    cookie: [u8; 16],
    inbox: Arc<RunInbox>,
    /// Memory that its run needs.
    needed: Bytes,
    loan: Option<Loan>,
    /// The fastest way of sending on this host, if a calibration says it.
    fastest_method: Option<SendMethod>,
}

impl<'a> ServerRun<'a> {
    fn begin(
        connection: ControlStream,
        peer: SocketAddr,
        shared: &'a Arc<Shared>,
    ) -> Result<Self, ControlError> {
        let epoch = clock::now();
        let session = ServerSession::after_prefaces(linerate_units::Timestamp::START);
        let dialogue = Dialogue::new(session, connection, epoch, false)?;
        Ok(Self {
            dialogue,
            peer,
            shared,
            client: None,
            begun: false,
            reported_position: None,
            arrived: BTreeMap::new(),
            awaited: Vec::new(),
            strays_until: None,
            refused: None,
            deadline: None,
            expected_end: None,
            idle_since: None,
            warned: false,
            series: series::ServerSweep::default(),
        })
    }

    /// Passes the bytes that the front has read to the session.
    fn start(&mut self, received: &[u8]) -> Result<(), ControlError> {
        self.dialogue.input(SessionInput::Bytes(received))
    }

    /// Tells the client why its run is over, unless the client itself caused it.
    fn send_reason(&mut self, error: &ControlError) {
        if !matches!(error, ControlError::Peer(_)) {
            let _ = self.dialogue.input(SessionInput::FlowsFailed(format!("the server: {error}")));
            self.dialogue.flush_at_end();
        }
    }

    fn serve(&mut self) -> Result<Served, ControlError> {
        loop {
            let events = self.turn()?;
            for event in events {
                match event {
                    DialogueEvent::Session(SessionOutput::Asked(hello)) => self.asked(*hello)?,
                    DialogueEvent::Session(SessionOutput::Open(flows)) => {
                        self.dialogue.idle_ends();
                        self.awaited = flows;
                    }
                    DialogueEvent::Session(SessionOutput::Start) => self.idle_since = None,
                    DialogueEvent::Session(SessionOutput::PhaseDone) => self.idle_since = Some(clock::now()),
                    DialogueEvent::Session(SessionOutput::Trial(trial)) => self.begin_trial(trial)?,
                    DialogueEvent::Session(SessionOutput::PeerEnded(ended)) => self.end_series(&ended)?,
                    DialogueEvent::Session(SessionOutput::PeerResults(flows)) if self.begun => {
                        (self.shared.event)(ServerEvent::Measured { client: self.peer, flows });
                    }
                    DialogueEvent::Session(SessionOutput::Done) => {
                        self.dialogue.flush_at_end();
                        return Ok(self.refused.take().map_or(Served::Measured, Served::Refused));
                    }
                    _ => {}
                }
            }
            self.admit_in_turn()?;
            self.open_when_complete()?;
            self.check_series()?;
            self.notice_concurrent_runs();
            self.leave_with_coordinator()?;
            if self.shared.stopping() {
                let stopped = self.dialogue.input(SessionInput::Stop);
                self.dialogue.flush_at_end();
                stopped?;
            }
            let late = self.deadline.is_some_and(Mono::has_passed);
            if late || self.overstays() {
                let why = if late { RUN_TOO_LONG } else { RUN_OVERSTAYED }.to_owned();
                let _ = self.dialogue.input(SessionInput::FlowsFailed(why.clone()));
                self.dialogue.flush_at_end();
                return Ok(Served::Refused(why));
            }
        }
    }

    fn turn(&mut self) -> Result<Vec<DialogueEvent>, ControlError> {
        let until = clock::now() + POLL_INTERVAL;
        let inbox = self.client.as_ref().map(|client| Arc::clone(&client.inbox));
        let wakers: Vec<_> =
            inbox.iter().map(|inbox| inbox.waker.as_fd()).chain(self.series.waker()).collect();
        let events = self.dialogue.turn(until, &wakers)?;
        for arrival in inbox.iter().flat_map(|inbox| inbox.take()) {
            self.keep_socket(arrival);
        }
        self.close_strays();
        Ok(events)
    }

    /// Keeps a data socket that may belong to a phase; closes others.
    fn keep_socket(&mut self, arrival: DataSocket) {
        let (flow, stream) = match &arrival {
            DataSocket::Tcp { flow, stream, .. } | DataSocket::Udp { flow, stream, .. } => (*flow, *stream),
        };
        let streams = self.client.as_ref().map_or(0, |client| client.spec.traffic.streams);
        // Sockets that arrive before their phase are kept for a moment.
        let awaited = self.awaited.is_empty() || self.awaited.iter().any(|order| order.flow() == flow);
        if awaited && stream < streams && self.arrived.len() < 2 * streams as usize {
            // A second socket for the same stream is an error or an attack. The first is kept.
            self.arrived.entry((flow, stream)).or_insert(arrival);
        }
    }

    /// Closes data sockets for which no phase has begun in time.
    fn close_strays(&mut self) {
        if self.arrived.is_empty() || !self.awaited.is_empty() {
            self.strays_until = None;
        } else if self.strays_until.get_or_insert_with(|| clock::now() + STRAY_SOCKET_TIMEOUT).has_passed() {
            self.arrived.clear();
        }
    }

    fn asked(&mut self, hello: Hello) -> Result<(), ControlError> {
        let length = expected_time(&hello.spec);
        let place = hello.ticket.map(|ticket| self.shared.tickets.place(&ticket));
        if place == Some(None) {
            return self.refuse(
                "the queue place that the coordinator held for this run no longer exists".to_owned(),
            );
        }
        if let Some(longest) = self.shared.longest().filter(|longest| length > *longest) {
            return self.refuse(format!(
                "the run would take {length}, but this server allows {longest}; give a shorter -t"
            ));
        }
        let needed = memory::needed(&hello.spec, false)?;
        if let Err(why) = self.shared.memory.check(needed) {
            return self.refuse(why);
        }
        let traffic = &hello.spec.traffic;
        let flows_at_once = hello.spec.phases().iter().map(Vec::len).max().unwrap_or(1) as u64;
        let in_use = limits::files_in_use().unwrap_or(EXTRA_FILES);
        // Connections for single requests are additional: twice the streams may wait, and each thread serves one.
        let anew = 3 * u64::from(hello.spec.transactions.reconnect());
        let files = u64::from(traffic.streams) * (flows_at_once + anew) + in_use + EXTRA_FILES;
        if let Err(error) = limits::raise_open_files(files) {
            return self.refuse(format!(
                "the server's limit of open files is too low: {}",
                ControlError::from(error)
            ));
        }
        let mut cookie = [0; 16];
        getrandom::fill(&mut cookie)
            .map_err(|error| ControlError::Local(format!("no random numbers: {error}")))?;
        let inbox = self.shared.registry.open(cookie, self.peer.ip(), traffic.streams)?;
        let ticket = match place.flatten().map_or_else(|| self.shared.queue.join(self.peer.ip(), length), Ok)
        {
            Ok(ticket) => ticket,
            Err(why) => {
                self.shared.registry.close(&cookie);
                return self.refuse(why.to_string());
            }
        };
        let (name, spec, guest) = (hello.host.name, hello.spec, hello.ticket);
        self.client = Some(GreetedClient {
            name: name.into(),
            spec,
            ticket,
            guest,
            cookie,
            inbox,
            needed,
            loan: None,
            fastest_method: None,
        });
        Ok(())
    }

    fn refuse(&mut self, why: String) -> Result<(), ControlError> {
        self.dialogue.input(SessionInput::Refuse(why.clone()))?;
        self.refused = Some(why);
        Ok(())
    }

    fn admit_in_turn(&mut self) -> Result<(), ControlError> {
        let waits = !self.begun && self.refused.is_none();
        let Some(client) = self.client.as_mut().filter(|_| waits) else { return Ok(()) };
        match self.shared.queue.turn(client.ticket) {
            QueueDecision::Now { concurrent_runs } => {
                match self.shared.memory.reserve(client.needed) {
                    Ok(loan) => client.loan = Some(loan),
                    Err(why) => return self.refuse(why),
                }
                self.begun = true;
                let now = clock::now();
                (self.expected_end, self.idle_since) = (expected_end(&client.spec, now), Some(now));
                self.deadline = self.shared.longest().map(|longest| {
                    // The requested duration was checked against the limit; the grace time is for opening,
                    // draining and the dialogue.
                    clock::now() + longest.as_duration() + Duration::from_secs(10)
                });
                let ends = ConnectionEnds::of(self.dialogue.stream());
                let host = self.shared.config.host_of(ends.as_ref());
                client.fastest_method = fastest_method(&client.spec, &host);
                let admission = Admission { host, cookie: client.cookie, concurrent_runs };
                (self.shared.event)(ServerEvent::Begun {
                    client: self.peer,
                    name: client.name.as_str().into(),
                });
                self.dialogue.input(SessionInput::Admit(Box::new(admission)))?;
                // After the answer, which the client waits for. Until then the front answers datagrams.
                Reflector::start(self.shared)?;
                self.dialogue.idle_begins();
                Ok(())
            }
            QueueDecision::Displaced => self.refuse(DISPLACED.to_owned()),
            QueueDecision::Later { position, wait } => {
                let place = QueuePosition { position, wait_ns: wait };
                if self
                    .reported_position
                    .is_none_or(|reported_position| reported_position.position != place.position)
                {
                    self.reported_position = Some(place);
                    (self.shared.event)(ServerEvent::Waiting { client: self.peer, position: place.position });
                    self.dialogue.input(SessionInput::Wait(place))?;
                }
                Ok(())
            }
        }
    }

    fn open_when_complete(&mut self) -> Result<(), ControlError> {
        let Some(client) = self.client.as_ref().filter(|_| !self.awaited.is_empty()) else { return Ok(()) };
        let streams = client.spec.traffic.streams;
        let here = |flow: FlowId| self.arrived.range((flow, 0)..(flow, streams)).count() as u32;
        if self.awaited.iter().any(|order| here(order.flow()) < streams) {
            return Ok(());
        }
        let options = socket_options(&client.spec, false);
        let here = self
            .dialogue
            .stream()
            .local_addr()
            .map_err(|error| ControlError::Local(format!("the control connection: {error}")))?;
        let here = here.ip();
        let ends = ConnectionEnds::of(self.dialogue.stream());
        let interface = ends.and_then(|ends| ends.interface().ok()).map(|link| link.name);
        let mut flows = Vec::new();
        for order in std::mem::take(&mut self.awaited) {
            let udp = client.spec.traffic.udp;
            let mut sockets = take_sockets(&mut self.arrived, order.flow(), udp, &options)?;
            let mut cookie = client.cookie;
            if let Sockets::Udp(opened) = &sockets
                && let Some(receivers) = multicast::receivers(&client.spec, opened, here, &options)?
            {
                (sockets, cookie) = (Sockets::Udp(receivers.sockets), receivers.cookie);
            }
            let mut setup = flow_setup(&client.spec, &order, false, &cookie);
            setup.interface.clone_from(&interface);
            setup.fastest_method = client.fastest_method;
            if let Some(transactions) = &mut setup.transactions
                && client.spec.transactions.reconnect()
            {
                let accepted = client.inbox.take_transactions(options.clone());
                transactions.connections = TransactionConnections::Accepted(accepted);
            }
            setup.account = self.shared.queue.account(client.ticket);
            if client.spec.sweep.is_some() {
                return self.begin_series(sockets);
            }
            flows.push((setup, sockets));
        }
        // Sockets of other flows are not needed any more.
        self.arrived.clear();
        self.dialogue.arm(flows)?;
        self.dialogue.begin(None)
    }

    /// Whether this run keeps a client of another host waiting although it measures nothing or exceeds its
    /// announced duration.
    fn overstays(&self) -> bool {
        let Some(client) = self.client.as_ref().filter(|client| self.begun && client.guest.is_none()) else {
            return false;
        };
        if client.spec.sweep.is_some() {
            return false;
        }
        let streams = Duration::from_millis(u64::from(client.spec.traffic.streams));
        let idle_end = self.idle_since.map(|since| since + client.spec.idle_time().as_duration() + streams);
        let ends = [self.expected_end, idle_end].into_iter().flatten();
        ends.into_iter().any(|end| (end + MAX_IDLE_WHILE_OTHERS_WAIT).has_passed())
            && self.shared.queue.others_wait(client.ticket)
    }

    /// Ends a run that uses its coordinator's place when the coordinator has lost it.
    fn leave_with_coordinator(&mut self) -> Result<(), ControlError> {
        let guest = self.client.as_ref().and_then(|client| client.guest);
        if guest.is_none_or(|ticket| self.shared.tickets.place(&ticket).is_some()) {
            return Ok(());
        }
        let why = "the coordinator of this run has disconnected".to_owned();
        let ended = self.dialogue.input(SessionInput::FlowsFailed(why));
        self.dialogue.flush_at_end();
        ended
    }

    /// Adds a caveat when other runs have started during this one.
    fn notice_concurrent_runs(&mut self) {
        let Some(client) = self.client.as_ref().filter(|_| self.begun && !self.warned) else { return };
        if let QueueDecision::Now { concurrent_runs } = self.shared.queue.turn(client.ticket)
            && concurrent_runs > 0
        {
            self.warned = true;
            let text = format!("up to {concurrent_runs} other run(s) on the server at the same time");
            self.dialogue.add_caveat(Caveat { kind: CaveatKind::ConcurrentRun, text: text.into() });
        }
    }

    fn leave(&mut self) {
        // The next run must not be measured while flows of this one are still ending.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.series.drop_stream();
            if self.dialogue.flows_running() {
                self.dialogue.abort_flows();
            }
        }));
        if let Some(client) = self.client.take() {
            self.shared.registry.close(&client.cookie);
            if client.guest.is_some() {
                return;
            }
            self.shared.queue.leave(client.ticket);
            if self.begun && self.shared.config.one_off {
                self.shared.switch.turn_off();
            }
        }
    }
}

/// The sockets of a flow in the order of their streams, with the options that the client requests.
fn take_sockets(
    arrived: &mut BTreeMap<(FlowId, u32), DataSocket>,
    flow: FlowId,
    udp: bool,
    options: &linerate_sock::SocketOptions,
) -> Result<Sockets, ControlError> {
    let rest = arrived.split_off(&(flow, 0));
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut sockets: Vec<UdpSocket> = Vec::new();
    for (key, arrival) in rest {
        match arrival {
            _ if key.0 != flow => drop(arrived.insert(key, arrival)),
            DataSocket::Tcp { connection, .. } if !udp => {
                options.apply_tcp(&connection)?;
                connections.push(connection);
            }
            DataSocket::Udp { socket, .. } if udp => {
                options.apply_any(&socket)?;
                sockets.push(socket);
            }
            _ => {}
        }
    }
    Ok(if udp { Sockets::Udp(sockets) } else { Sockets::Tcp(connections) })
}
