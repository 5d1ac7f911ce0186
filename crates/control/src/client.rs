//! The client of a run: connects, measures one phase after another, and writes the event log.

mod merge;
mod open;
mod phase;
mod phase_gate;
mod sweep;
mod test_file;

use linerate_engine::FlowFile;
use linerate_sock::handle::AsFd;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linerate_model::{
    Body, Calibration, CaveatKind, CheckedSpec, EVENT_SCHEMA, FlowOutcome, HostInfo, Outcome, ProbePhase,
    ProbeTransport, RunStart, TestSpec, World,
};
use linerate_proto::native::{ClientSession, NATIVE};
use linerate_proto::{Hello, SessionInput, SessionOutput};
use linerate_sock::iface::ConnectionEnds;
use linerate_sock::open::{AllowedIpVersion, ConnectOptions, connect_tcp, resolve};
use linerate_sock::poll::EventFd;
use linerate_sock::{Mono, SocketOptions, clock, tcp_info, thread};
use linerate_units::Span;

use crate::CANCELLED;
use crate::control_stream::ControlStream;
use crate::dialogue::{Dialogue, DialogueEvent};
use crate::error::ControlError;
use crate::host::host_info_of;
use crate::log::Log;
use crate::multicast::SenderShare;
use crate::port_observer::{self, PortObserver};
use crate::probe::{IntervalGrid, OffsetHistory, Prober, ProberConfig};
use crate::setup::{drain, sample_tick, socket_options};
use crate::tls::{ServerTrust, encrypt};

pub(crate) use phase_gate::PhaseGate;

/// Largest TCP segment of the control connection. Every path carries it (RFC 9293 section 3.7.1), so both ends
/// can still report the result of a flow whose full-sized segments are lost.
const DIALOGUE_SEGMENT_BYTES: u32 = 536;

/// Timeout for opening the control connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a loop checks the stop flag. A signal sets the flag without waking any thread.
const POLL_INTERVAL: Span = Span::from_ms(100);

/// What to measure, and to which server.
#[derive(Debug)]
pub struct TestRequest<'a> {
    /// Host name or address of the server.
    pub host: String,
    /// Port of the server; absent for the default port of the protocol.
    pub port: Option<u16>,
    /// How to recognise the server of an encrypted control connection; absent for one that is not encrypted.
    pub tls: Option<ServerTrust>,
    /// What to measure.
    pub spec: TestSpec,
    /// Whether the run takes place between real hosts or in a lab.
    pub world: World,
    /// Wall-clock start, RFC 3339.
    pub started_at: String,
    /// The stored calibration of this host; absent if it was never calibrated.
    pub calibration: Option<Box<Calibration>>,
    /// Reads the port counters in an emulated network; absent on real hosts.
    pub observer: Option<&'a dyn PortObserver>,
    /// The file that is sent, or written, instead of generated payload; for a test in one direction with one stream.
    pub file: Option<FlowFile>,
    /// Set by the caller, for example in a signal handler: ends the run early and keeps what was measured.
    pub stop: &'a AtomicBool,
}

impl TestRequest<'_> {
    /// The first event of the run's log.
    #[must_use]
    pub fn run_started(&self) -> Body {
        Body::RunStarted(Box::new(RunStart {
            schema: EVENT_SCHEMA.into(),
            started_at: self.started_at.clone().into(),
            world: self.world,
            linerate: env!("CARGO_PKG_VERSION").into(),
            target: self.host.clone().into(),
            spec: self.spec.clone(),
        }))
    }
}

/// Makes a run and writes its log. The last event of the log always states how the run ended.
///
/// # Errors
/// The run could not be made or finished. What was measured is in the log.
pub fn measure(request: &TestRequest<'_>, log: &mut Log<'_>) -> Result<Outcome, ControlError> {
    measure_then(request, log, &mut |_| ())
}

/// Like [`measure`], but calls `then` with the log of a completed run after the server is free again and before
/// the log ends.
pub(crate) fn measure_then(
    request: &TestRequest<'_>,
    log: &mut Log<'_>,
    then: &mut dyn FnMut(&mut Log<'_>),
) -> Result<Outcome, ControlError> {
    log.note(request.run_started());
    let result = carry_out(request, None, log);
    if matches!(result, Ok(Outcome::Completed)) {
        then(log);
    }
    end(request, result, log)
}

/// Like [`measure`]. With a gate, the first phase begins when the gate is opened.
pub(crate) fn measure_with(
    request: &TestRequest<'_>,
    gate: Option<&PhaseGate>,
    log: &mut Log<'_>,
) -> Result<Outcome, ControlError> {
    log.note(request.run_started());
    let result = carry_out(request, gate, log);
    end(request, result, log)
}

fn carry_out(
    request: &TestRequest<'_>,
    gate: Option<&PhaseGate>,
    log: &mut Log<'_>,
) -> Result<Outcome, ControlError> {
    let outcome = ClientRun::connect(request, gate, log).and_then(|mut client| client.run(request, log));
    if let Some(file) = &request.file {
        test_file::write_out(&file.path, log);
    }
    outcome
}

fn end(
    request: &TestRequest<'_>,
    result: Result<Outcome, ControlError>,
    log: &mut Log<'_>,
) -> Result<Outcome, ControlError> {
    let (outcome, reason) = match &result {
        Ok(Outcome::Interrupted) => (Outcome::Interrupted, Some(CANCELLED.to_owned())),
        Ok(outcome) => (*outcome, None),
        Err(ControlError::Stopped) => (Outcome::Interrupted, Some(CANCELLED.to_owned())),
        // The user gave up waiting, for example for a server that does not respond.
        Err(error) if request.stop.load(Ordering::Relaxed) => {
            (Outcome::Interrupted, Some(format!("{CANCELLED}; then: {error}")))
        }
        Err(error) => (Outcome::Failed, Some(error.to_string())),
    };
    if let (Outcome::Failed, Some(observer)) = (outcome, request.observer) {
        port_observer::check_network(observer, log);
    }
    log.note(Body::RunEnded { outcome, reason: reason.map(Into::into) });
    match result {
        Err(_) if outcome == Outcome::Interrupted => Ok(Outcome::Interrupted),
        other => other,
    }
}

/// A run under way.
struct ClientRun<'g> {
    gate: Option<&'g PhaseGate>,
    dialogue: Dialogue<ClientSession>,
    server: SocketAddr,
    spec: CheckedSpec,
    file: Option<FlowFile>,
    cookie: [u8; 16],
    probes_over: Option<ProbeTransport>,
    /// The estimate of the server's clock offset from the probes so far.
    clocks: OffsetHistory,
    /// What happened while the phase waited for others.
    early: Vec<DialogueEvent>,
}

impl<'g> ClientRun<'g> {
    fn connect(
        request: &TestRequest<'_>,
        gate: Option<&'g PhaseGate>,
        log: &mut Log<'_>,
    ) -> Result<Self, ControlError> {
        let spec = request.spec.clone().checked();
        let spec = spec.map_err(|error| ControlError::Local(error.to_string()))?;
        let version = match (spec.socket.ipv4, spec.socket.ipv6) {
            (true, _) => AllowedIpVersion::V4,
            (_, true) => AllowedIpVersion::V6,
            _ => match spec.traffic.multicast {
                None => AllowedIpVersion::Any,
                Some(group) if group.is_ipv4() => AllowedIpVersion::V4,
                Some(_) => AllowedIpVersion::V6,
            },
        };
        let port = request.port.unwrap_or(NATIVE.default_port);
        let addresses = resolve(&request.host, port, version).map_err(|error| {
            let error = ControlError::from(error);
            match spec.traffic.multicast.filter(|_| version != AllowedIpVersion::Any) {
                Some(group) => ControlError::Local(format!("towards the group {group}: {error}")),
                None => error,
            }
        })?;
        let socket = SocketOptions {
            local: spec.socket.bind_address,
            device: spec.socket.bind_device.clone().map(Into::into),
            ..SocketOptions::default()
        }
        .with_segment(Some(DIALOGUE_SEGMENT_BYTES));
        let connected =
            connect_tcp(&ConnectOptions { addresses, socket, deadline: clock::now() + CONNECT_TIMEOUT })?;
        let ends = ConnectionEnds::of(&connected.stream);
        let here = HostInfo { calibration: request.calibration.clone(), ..host_info_of(ends.as_ref()) };
        log.note(Body::Host { info: here.clone() });
        let hello = Hello { host: here, spec: spec.clone(), ticket: gate.and_then(PhaseGate::ticket) };
        let stream = match &request.tls {
            None => ControlStream::plain(connected.stream),
            Some(trust) => encrypt(connected.stream, &request.host, trust, request.stop)?,
        };
        let session = ClientSession::with_ticket(log.now(), hello, drain(&spec));
        Ok(Self {
            gate,
            dialogue: Dialogue::new(session, stream, log.epoch(), true)?,
            server: connected.peer,
            spec,
            file: request.file.clone(),
            cookie: [0; 16],
            probes_over: None,
            clocks: OffsetHistory::default(),
            early: Vec::new(),
        })
    }

    fn run(&mut self, request: &TestRequest<'_>, log: &mut Log<'_>) -> Result<Outcome, ControlError> {
        self.wait_for_welcome(request.stop, log)?;
        self.idle_latency(request.stop, log)?;
        if let Some(sweep) = self.spec.sweep.clone() {
            self.sweep(&sweep, request, log)?;
            return self.finish(request, log);
        }
        let mut flow = 0;
        for directions in self.spec.phases() {
            if request.stop.load(Ordering::Relaxed) {
                break;
            }
            let orders = phase::orders(&self.spec, &directions, flow)?;
            flow += orders.len() as u16;
            self.measure_phase(&orders, request, log)?;
        }
        self.finish(request, log)
    }

    fn finish(&mut self, request: &TestRequest<'_>, log: &Log<'_>) -> Result<Outcome, ControlError> {
        self.dialogue.input(SessionInput::Finish(FlowOutcome::all(log.record())))?;
        self.dialogue.flush_at_end();
        Ok(if request.stop.load(Ordering::Relaxed) { Outcome::Interrupted } else { Outcome::Completed })
    }

    fn wait_for_welcome(&mut self, stop: &AtomicBool, log: &mut Log<'_>) -> Result<(), ControlError> {
        loop {
            for event in self.dialogue.turn(clock::now() + POLL_INTERVAL.as_duration(), &[])? {
                match event {
                    DialogueEvent::Session(SessionOutput::Queued(place)) => {
                        log.note(Body::Queued { position: place.position, wait: place.wait_ns });
                    }
                    DialogueEvent::Session(SessionOutput::Welcomed(welcome)) => {
                        self.cookie = welcome.cookie;
                        let can =
                            |name: &str| welcome.capabilities.iter().any(|capability| capability == name);
                        self.probes_over = (!can("probe_udp")).then_some(ProbeTransport::Tcp);
                        if !can("probe_udp") && !can("probe_tcp") {
                            self.spec = self.spec.clone().without_latency();
                        }
                        let mut info = welcome.host;
                        info.address = Some(self.server.ip().to_canonical().to_string().into());
                        log.note_from(1, Body::Host { info });
                        if welcome.concurrent_runs > 0 {
                            let text = format!(
                                "{} other run(s) on the server at the same time; use its default policy for a rated result",
                                welcome.concurrent_runs
                            );
                            log.warn(None, CaveatKind::ConcurrentRun, text);
                        }
                        self.dialogue.idle_begins();
                        return Ok(());
                    }
                    _ => {}
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Err(ControlError::Stopped);
            }
        }
    }

    /// Starts probing; `epoch` is the start of the run.
    fn prober(&self, phase: ProbePhase, length: Option<Span>, epoch: Mono) -> Option<Prober> {
        if !self.spec.probes_latency() {
            return None;
        }
        let options = SocketOptions {
            local: self.spec.socket.bind_address,
            device: self.spec.socket.bind_device.clone().map(Into::into),
            tos: self.spec.socket.tos_byte(),
            ..SocketOptions::default()
        };
        let (over, known) = (self.probes_over, self.clocks.clone());
        let (server, cookie) = (self.server, self.cookie);
        let intervals = IntervalGrid { epoch, tick: sample_tick(&self.spec) };
        let rtt = tcp_info(self.dialogue.stream()).ok().and_then(|info| info.rtt);
        let rtt = Span::from_us(rtt.unwrap_or(0).into());
        Prober::start(ProberConfig { server, options, cookie, phase, length, over, known, intervals, rtt })
    }

    fn idle_latency(&mut self, stop: &AtomicBool, log: &mut Log<'_>) -> Result<(), ControlError> {
        let idle = Some(self.spec.idle_time());
        let Some(prober) = self.prober(ProbePhase::Idle, idle, log.epoch()) else {
            return Ok(());
        };
        while !prober.finished() {
            self.dialogue.turn(clock::now() + Span::from_ms(20).as_duration(), &[])?;
            if stop.load(Ordering::Relaxed) {
                prober.stop();
                return Err(ControlError::Stopped);
            }
        }
        let Some((report, clocks)) = prober.report() else { return Ok(()) };
        self.clocks = clocks;
        self.probes_over = Some(report.transport);
        if report.transport == ProbeTransport::Tcp {
            let text = "no UDP probe came back, so latency was probed over a separate TCP connection; open \
                        the server's UDP port for one-way delays without head-of-line blocking";
            log.warn(None, CaveatKind::UdpBlocked, text.to_owned());
        }
        log.note(Body::Latency { flow: None, report });
        Ok(())
    }

    /// Opens the data sockets while the dialogue continues to exchange heartbeats.
    fn open_flows(
        &mut self,
        orders: &[linerate_proto::FlowOrder],
        share: Option<&SenderShare>,
        stop: &AtomicBool,
    ) -> Result<Vec<linerate_engine::Sockets>, ControlError> {
        let mut options = socket_options(&self.spec, true);
        if let Some(share) = share {
            options.local = Some(share.source());
        }
        let task = open::OpenTask {
            server: self.server,
            options,
            shared_ports: share.map(|share| share.ports().to_vec()).unwrap_or_default(),
            cookie: self.cookie,
            streams: self.spec.traffic.streams,
            files: if self.spec.transactions.reconnect() { u64::from(self.spec.traffic.streams) } else { 0 },
            udp: self.spec.traffic.udp,
            flows: orders.iter().map(linerate_proto::FlowOrder::flow).collect(),
            give_up: AtomicBool::new(false),
        };
        let waker = EventFd::new()?;
        std::thread::scope(|scope| {
            let opener = thread::spawn_scoped(scope, "opener", || {
                let opened = open::open(&task);
                waker.wake();
                opened
            })?;
            let mut trouble = None;
            while !opener.is_finished() && trouble.is_none() {
                let turned = self.dialogue.turn(clock::now() + POLL_INTERVAL.as_duration(), &[waker.as_fd()]);
                trouble =
                    turned.err().or_else(|| stop.load(Ordering::Relaxed).then_some(ControlError::Stopped));
            }
            if let Some(trouble) = trouble {
                task.give_up.store(true, Ordering::Relaxed);
                return Err(trouble);
            }
            opener.join().unwrap_or_else(|_| {
                Err(ControlError::Local("the opener of data connections failed".to_owned()))
            })
        })
    }
}
