//! The client's end of the dialogue.

use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, HostInfo, StopAfter};
use linerate_units::{Bytes, Span, Timestamp};

use super::VERSION;
use super::link::NativeConnection;
use super::message::{
    AskedFlow, MULTICAST, NativeMessage, SENDING, SWEEP, TRANSACTIONS, TXTIME, both_can, capabilities,
    cookie_from_text,
};
use super::phase::Phase;
use crate::PeerError;
use crate::session::{FlowOrder, Hello, Session, SessionInput, SessionOutput, SweepTrial, Welcome};

/// Timeout for an answer of the server.
const ANSWER_TIMEOUT: Span = Span::from_secs(5);

/// The step before the first answer, with the likely mistake.
const GREETING_WAIT: &str = "waiting for the server's greeting; check that it is the port of `linerate \
                             serve`";

/// The client's end of the dialogue.
#[derive(Debug)]
pub struct ClientSession {
    link: NativeConnection,
    hello: Hello,
    state: NativeClientState,
    phase: Phase,
    drain: Span,
    drain_until: Option<Timestamp>,
    /// When the flows of the phase were started.
    started: Timestamp,
    /// Until when the server may deliver its samples of the phase.
    delivers_until: Timestamp,
    /// Whether the phase should end early. It may not have started yet.
    stop: bool,
    /// Number of the trial whose counts the server has not sent yet.
    trial: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NativeClientState {
    /// Nothing sent yet, or waiting for admission.
    Asking,
    /// Admitted, between phases.
    Ready,
    /// The flows were announced to the server.
    Preparing,
    /// Data sockets are being opened.
    Opening,
    /// Data are being transferred.
    Running,
    /// Every local flow has ended; waiting for the server's final reports.
    Closing,
    /// Over.
    Over,
}

impl ClientSession {
    /// A session that begins at `now`. After the senders' end, the remaining data may take up to `drain` to
    /// arrive.
    #[must_use]
    pub fn new(now: Timestamp, host: HostInfo, spec: CheckedSpec, drain: Span) -> Self {
        Self::with_ticket(now, Hello { host, spec, ticket: None }, drain)
    }

    /// Like [`ClientSession::new`], with the complete greeting.
    #[must_use]
    pub fn with_ticket(now: Timestamp, hello: Hello, drain: Span) -> Self {
        let mut session = Self {
            link: NativeConnection::new(now, GREETING_WAIT),
            hello,
            state: NativeClientState::Asking,
            phase: Phase::default(),
            drain,
            drain_until: None,
            started: now,
            delivers_until: now,
            stop: false,
            trial: None,
        };
        session.begin(now);
        session
    }

    /// Whether the server is ready for the phase.
    #[must_use]
    pub fn peer_is_open(&self) -> bool {
        self.phase.peer_is_open()
    }

    fn begin(&mut self, now: Timestamp) {
        self.link.send_preface(now);
        let hello = NativeMessage::Hello {
            versions: [VERSION, VERSION],
            capabilities: capabilities().into_iter().collect(),
            host: self.hello.host.clone(),
            spec: Box::new((*self.hello.spec).clone()),
            ticket: self.hello.ticket,
        };
        // A greeting is far below the limit. If it were not, the server would report that.
        let _ = self.link.send(now, &hello);
        self.link.begin_step(now, GREETING_WAIT, ANSWER_TIMEOUT);
    }

    fn measure(&mut self, now: Timestamp, flows: Vec<FlowOrder>) -> Result<(), PeerError> {
        if self.state != NativeClientState::Ready || flows.is_empty() {
            return Err(PeerError::Local {
                why: "a phase can begin only between phases, with flows".to_owned(),
            });
        }
        self.link
            .send(now, &NativeMessage::Prepare { flows: flows.iter().map(AskedFlow::from).collect() })?;
        self.link.begin_step(now, "waiting for the server to prepare", ANSWER_TIMEOUT);
        self.phase = Phase::new(flows);
        self.trial = None;
        self.drain_until = None;
        self.stop = false;
        self.state = NativeClientState::Preparing;
        Ok(())
    }

    fn start_when_open(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.state == NativeClientState::Opening && self.phase.all_open() {
            self.link.send(now, &NativeMessage::Start)?;
            self.link.measuring(now, true);
            self.started = now;
            measure(&mut self.link, now, &self.hello.spec);
            self.link.put(SessionOutput::Start);
            self.state = NativeClientState::Running;
            self.stop_when_running(now)?;
        }
        Ok(())
    }

    fn stop_when_running(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.stop && self.state == NativeClientState::Running {
            self.link.send(now, &NativeMessage::Stop)?;
            self.link.begin_step(now, "waiting for the stopped flows to end", STOP_TIMEOUT + self.drain);
            self.link.put(SessionOutput::StopWriting);
        }
        Ok(())
    }

    fn sender_done(&mut self, now: Timestamp, flow: FlowId) {
        if self.phase.sender_done(flow) {
            self.drain_until = Some(now + self.drain);
            if self.state == NativeClientState::Running {
                self.link.begin_step(now, "waiting for the last bytes", PHASE_GRACE + self.drain);
            }
        }
    }

    fn finish_phase(&mut self, now: Timestamp) {
        if matches!(self.state, NativeClientState::Running | NativeClientState::Closing) {
            if self.phase.over() {
                self.state = NativeClientState::Ready;
                self.drain_until = None;
                self.link.measuring(now, false);
                self.link.begin_untimed_step("between two phases");
                self.link.put(SessionOutput::PhaseDone);
            } else if self.phase.local_over() && self.state == NativeClientState::Running {
                self.state = NativeClientState::Closing;
                self.delivers_until = now + now.since(self.started) + PHASE_GRACE;
                self.await_counts(now);
            }
        }
    }

    fn await_counts(&mut self, now: Timestamp) {
        let (left, answer) = (self.delivers_until.since(now), ANSWER_TIMEOUT + self.drain);
        if left < answer {
            self.link.begin_step(now, "receiving its samples, which takes longer than the test", left);
        } else {
            self.link.begin_step(now, "waiting for the server's counts", answer);
        }
    }

    fn message(&mut self, now: Timestamp, message: NativeMessage) -> Result<(), PeerError> {
        match (message, self.state) {
            (NativeMessage::Heartbeat, _) | (NativeMessage::Progress(_), NativeClientState::Ready) => {}
            (NativeMessage::Refused { why }, NativeClientState::Asking) => return Err(refusal(why.into())),
            (NativeMessage::Failed { why }, _) => return Err(PeerError::GaveUp { why }),
            (NativeMessage::Busy(place), NativeClientState::Asking) => {
                self.link.trust(now);
                self.link.begin_untimed_step("waiting in the server's queue");
                self.link.put(SessionOutput::Queued(place));
            }
            (
                NativeMessage::Welcome { version, host, cookie, concurrent_runs, capabilities: theirs },
                NativeClientState::Asking,
            ) => {
                if version != VERSION {
                    return Err(PeerError::Version {
                        theirs: version.to_string().into(),
                        ours: VERSION.to_string(),
                    });
                }
                let cookie =
                    cookie_from_text(&cookie).ok_or_else(|| misbehaved("its cookie is unreadable"))?;
                let capabilities = both_can(&theirs);
                let sweep = self.hello.spec.sweep.is_some().then_some(SWEEP);
                let transactions = self.hello.spec.transactions.are_made().then_some(TRANSACTIONS);
                let transport = Some(self.hello.spec.traffic.transport().name());
                let sending = self.hello.spec.shapes_sending().then_some(SENDING);
                let multicast = self.hello.spec.traffic.multicast.is_some().then_some(MULTICAST);
                let txtime = self.hello.spec.traffic.txtime.then_some(TXTIME);
                let needed = [transport, sweep, transactions, sending, multicast, txtime];
                for needed in needed.into_iter().flatten() {
                    if !capabilities.iter().any(|name| name == needed) {
                        return Err(PeerError::Lacks { what: needed, can: theirs.join(", ").into() });
                    }
                }
                self.link.trust(now);
                self.link.begin_untimed_step("between two phases");
                self.state = NativeClientState::Ready;
                let welcome = Welcome {
                    host,
                    cookie,
                    concurrent_runs,
                    capabilities: capabilities.into_iter().collect(),
                };
                self.link.put(SessionOutput::Welcomed(Box::new(welcome)));
            }
            (NativeMessage::Prepared, NativeClientState::Preparing) => {
                self.state = NativeClientState::Opening;
                self.link.begin_step(now, "opening the data connections", OPEN_TIMEOUT);
                let flows = self.phase.flows().to_vec();
                self.link.put(SessionOutput::Open(flows));
            }
            (NativeMessage::FlowsReady, NativeClientState::Opening) => {
                self.phase.peer_opened();
                self.start_when_open(now)?;
            }
            (message, NativeClientState::Running | NativeClientState::Closing) => {
                self.running(now, message)?
            }
            (other, _) => return Err(misbehaved(&format!("'{}' at the wrong time", name(&other)))),
        }
        Ok(())
    }

    fn running(&mut self, now: Timestamp, message: NativeMessage) -> Result<(), PeerError> {
        match message {
            NativeMessage::Progress(progress) => self.link.put(self.phase.peer_progress(progress)?),
            NativeMessage::Samples { flow, samples } => {
                // All of them come before the counts. On a slow path that takes a part of the time of the phase.
                if self.state == NativeClientState::Closing && !samples.is_empty() {
                    self.await_counts(now);
                }
                self.link.put(self.phase.peer_samples(flow, samples)?)
            }
            NativeMessage::SenderDone { flow } => {
                self.phase.check(flow)?;
                if self.phase.sends(flow) {
                    self.sender_done(now, flow);
                    self.link.put(SessionOutput::PeerSenderDone { flow });
                }
            }
            NativeMessage::Ended(ended) => {
                self.phase.peer_ended(ended.flow)?;
                if self.phase.side(ended.flow, true) != Some(ended.side.other()) {
                    return Err(misbehaved("it ended the wrong side of a flow"));
                }
                self.link.put(SessionOutput::PeerEnded(ended));
                self.finish_phase(now);
            }
            NativeMessage::TrialCounted(count) if self.trial == Some(count.trial) => {
                self.trial = None;
                if self.state == NativeClientState::Running {
                    self.link.begin_untimed_step("between two trials");
                }
                self.link.put(SessionOutput::PeerTrial(count));
            }
            other => return Err(misbehaved(&format!("'{}' while data is transferred", name(&other)))),
        }
        Ok(())
    }

    fn trial(&mut self, now: Timestamp, trial: SweepTrial) -> Result<(), PeerError> {
        let sound = self.hello.spec.sweep.as_ref().is_some_and(|series| trial.is_sound(series));
        if self.state != NativeClientState::Running || self.trial.is_some() || !sound {
            return Err(PeerError::Local { why: "a trial can begin only between two trials".to_owned() });
        }
        self.trial = Some(trial.trial);
        self.link.send(now, &NativeMessage::Trial(trial))?;
        self.link.begin_step(
            now,
            "waiting for the server's count of a trial",
            trial.timeout_ns + ANSWER_TIMEOUT,
        );
        Ok(())
    }
}

/// How much longer than its duration a phase may take: allows for late ends and for paths with seconds of
/// queueing.
const PHASE_GRACE: Span = Span::from_secs(30);

/// Timeout for the peer to stop.
const STOP_TIMEOUT: Span = Span::from_secs(10);

/// Begins the transfer. A phase with a known duration has a deadline, whatever the peer sends meanwhile.
pub(super) fn measure(link: &mut NativeConnection, now: Timestamp, spec: &CheckedSpec) {
    match spec.stop_after(Bytes::new(1)) {
        StopAfter::TimeNs(time) if spec.sweep.is_none() => {
            link.begin_step(now, "measuring", time + PHASE_GRACE)
        }
        _ => link.begin_untimed_step("measuring"),
    }
}

/// Timeout for opening the data connections; 10,000 of them take a while.
const OPEN_TIMEOUT: Span = Span::from_secs(30);

pub(super) fn misbehaved(what: &str) -> PeerError {
    PeerError::Misbehaved { what: what.into() }
}

fn refusal(why: String) -> PeerError {
    match why.strip_prefix("version ") {
        Some(theirs) => PeerError::Version { theirs: theirs.into(), ours: VERSION.to_string() },
        None => PeerError::Refused { why: why.into() },
    }
}

/// The name of a message type, for errors.
pub(super) fn name(message: &NativeMessage) -> String {
    serde_json::to_value(message)
        .ok()
        .and_then(|value| value.get("type")?.as_str().map(str::to_owned))
        .unwrap_or_default()
}

impl Session for ClientSession {
    fn input(&mut self, now: Timestamp, input: SessionInput<'_>) -> Result<(), PeerError> {
        match input {
            SessionInput::Bytes(bytes) => {
                self.link.bytes(now, bytes)?;
                while let Some(message) = self.link.pull()? {
                    self.message(now, message)?;
                }
            }
            SessionInput::Closed => {
                return if self.state == NativeClientState::Over { Ok(()) } else { Err(self.link.closed()) };
            }
            SessionInput::Tick => self.tick(now)?,
            SessionInput::Measure(flows) => self.measure(now, flows)?,
            SessionInput::Finish(results) => {
                self.link.send(now, &NativeMessage::Bye { results })?;
                self.state = NativeClientState::Over;
                self.link.put(SessionOutput::Done);
            }
            SessionInput::FlowsOpen => {
                self.phase.local_opened();
                self.start_when_open(now)?;
            }
            SessionInput::FlowsFailed(why) => {
                self.link.send(now, &NativeMessage::Failed { why: why.clone().into() })?;
                return Err(PeerError::Local { why });
            }
            SessionInput::Progress(progress) => self.link.send(now, &NativeMessage::Progress(progress))?,
            SessionInput::Trial(trial) => self.trial(now, trial)?,
            SessionInput::Alive => self.link.alive(now),
            SessionInput::Delivering => {}
            SessionInput::SenderDone { flow } => {
                self.link.send(now, &NativeMessage::SenderDone { flow })?;
                self.sender_done(now, flow);
            }
            SessionInput::Samples { flow, samples } => {
                self.link.send(now, &NativeMessage::Samples { flow, samples })?
            }
            SessionInput::FlowEnded(ended) => {
                self.phase.local_ended(ended.flow);
                self.link.send(now, &NativeMessage::Ended(ended))?;
                self.finish_phase(now);
            }
            SessionInput::Stop => {
                self.stop = true;
                self.stop_when_running(now)?;
            }
            SessionInput::Admit(_)
            | SessionInput::Wait(_)
            | SessionInput::Refuse(_)
            | SessionInput::TrialCounted(_) => {
                return Err(PeerError::Local { why: "a server's decision reached a client".to_owned() });
            }
        }
        Ok(())
    }

    fn output(&mut self) -> Option<SessionOutput> {
        self.link.pop()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.state == NativeClientState::Over {
            return None;
        }
        match (self.link.deadline(), self.drain_until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl ClientSession {
    fn tick(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.state == NativeClientState::Over {
            return Ok(());
        }
        if self.drain_until.is_some_and(|until| now >= until) {
            self.drain_until = None;
            self.link.send(now, &NativeMessage::Cut)?;
            self.link.put(SessionOutput::Cut);
        }
        self.link.tick(now)
    }
}
