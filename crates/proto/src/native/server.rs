//! The server's end of the dialogue.

use linerate_units::{Span, Timestamp};

use super::VERSION;
use super::client::{measure, misbehaved, name};
use super::link::NativeConnection;
use super::message::{AskedFlow, NativeMessage, capabilities, cookie_to_text};
use super::phase::{Phase, Phases};
use crate::PeerError;
use crate::session::{Admission, Hello, Session, SessionInput, SessionOutput, SweepTrial};

/// Timeout for the greeting of a new client.
const HELLO_TIMEOUT: Span = Span::from_secs(5);

/// Timeout for the client's data connections, and then again for its start message.
const OPEN_TIMEOUT: Span = Span::from_secs(30);

/// How long a client may pause between phases; it measures its idle latency there.
const BETWEEN_PHASES_TIMEOUT: Span = Span::from_secs(60);

/// How long a client may pause between two trials of a sweep.
const BETWEEN_TRIALS_TIMEOUT: Span = Span::from_secs(60);

/// The server's end of the dialogue.
#[derive(Debug)]
pub struct ServerSession {
    link: NativeConnection,
    state: NativeServerState,
    phase: Phase,
    /// The phases that the client has requested.
    phases: Phases,
    /// Number of the running trial.
    trial: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NativeServerState {
    /// The client has not sent its greeting.
    New,
    /// The driver has to decide.
    Asked,
    /// Admitted, between phases.
    Ready,
    /// Data sockets are arriving.
    Opening,
    /// All have arrived; waiting for the client's start message.
    Opened,
    /// Data are being transferred.
    Running,
    /// Over.
    Over,
}

impl ServerSession {
    /// A session that begins at `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let mut link = NativeConnection::new(now, "waiting for the client's greeting");
        link.begin_step(now, "waiting for the client's greeting", HELLO_TIMEOUT);
        Self {
            link,
            state: NativeServerState::New,
            phase: Phase::default(),
            phases: Phases::default(),
            trial: None,
        }
    }

    /// Like [`ServerSession::new`], after the prefaces were already exchanged.
    #[must_use]
    pub fn after_prefaces(now: Timestamp) -> Self {
        let mut session = Self::new(now);
        session.link.prefaces_exchanged();
        session
    }

    /// The data sockets of a phase are open.
    fn flows_open(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.state != NativeServerState::Opening {
            return Err(PeerError::Local { why: "unexpected data sockets were opened".to_owned() });
        }
        self.phase.local_opened();
        self.link.send(now, &NativeMessage::FlowsReady)?;
        self.link.begin_step(now, "waiting for the client's start", OPEN_TIMEOUT);
        self.state = NativeServerState::Opened;
        Ok(())
    }

    fn admit(&mut self, now: Timestamp, admission: &Admission) -> Result<(), PeerError> {
        if self.state != NativeServerState::Asked {
            return Err(PeerError::Local { why: "a client was let in that had not asked".to_owned() });
        }
        self.link.send(
            now,
            &NativeMessage::Welcome {
                version: VERSION,
                capabilities: capabilities().into_iter().collect(),
                host: admission.host.clone(),
                cookie: cookie_to_text(&admission.cookie).into(),
                concurrent_runs: admission.concurrent_runs,
            },
        )?;
        self.await_phase(now);
        self.state = NativeServerState::Ready;
        Ok(())
    }

    fn hello(&mut self, now: Timestamp, message: NativeMessage) -> Result<(), PeerError> {
        let NativeMessage::Hello { versions, host, spec, ticket, .. } = message else {
            return Err(misbehaved("its first message was not hello"));
        };
        if !(versions[0]..=versions[1]).contains(&VERSION) {
            self.link.send(now, &NativeMessage::Refused { why: format!("version {VERSION}").into() })?;
            let theirs = format!("{} to {}", versions[0], versions[1]);
            return Err(PeerError::Version { theirs: theirs.into(), ours: VERSION.to_string() });
        }
        let spec = match spec.checked().and_then(|spec| spec.agree().map(|()| spec)) {
            Ok(spec) => spec,
            Err(error) => {
                self.link.send(now, &NativeMessage::Refused { why: error.to_string().into() })?;
                return Err(misbehaved(&format!("invalid request: {error}")));
            }
        };
        self.phases = Phases::of(spec.clone());
        self.link.trust(now);
        self.link.begin_untimed_step("deciding");
        self.state = NativeServerState::Asked;
        self.link.put(SessionOutput::Asked(Box::new(Hello { host, spec, ticket })));
        Ok(())
    }

    fn prepare(&mut self, now: Timestamp, asked: &[AskedFlow]) -> Result<(), PeerError> {
        let flows = match self.phases.next(asked) {
            Ok(flows) => flows,
            Err(error) => {
                self.link.send(now, &NativeMessage::Failed { why: error.to_string().into() })?;
                return Err(error);
            }
        };
        self.phase = Phase::new(flows.clone());
        self.trial = None;
        self.link.send(now, &NativeMessage::Prepared)?;
        self.link.begin_step(now, "waiting for the data connections", OPEN_TIMEOUT);
        self.link.put(SessionOutput::Open(flows));
        self.state = NativeServerState::Opening;
        Ok(())
    }

    fn message(&mut self, now: Timestamp, message: NativeMessage) -> Result<(), PeerError> {
        match (message, self.state) {
            (message, NativeServerState::New) => self.hello(now, message)?,
            (NativeMessage::Heartbeat, _) => {}
            (NativeMessage::Bye { mut results }, _) => {
                // They are printed: a client has no more to tell than what was measured.
                results.truncate(self.phases.flows());
                self.state = NativeServerState::Over;
                self.link.put(SessionOutput::PeerResults(results));
                self.link.put(SessionOutput::Done);
            }
            (NativeMessage::Failed { why }, _) => return Err(PeerError::GaveUp { why }),
            (NativeMessage::Prepare { flows }, NativeServerState::Ready) => self.prepare(now, &flows)?,
            (NativeMessage::Start, NativeServerState::Opened) => {
                self.link.measuring(now, true);
                measure(&mut self.link, now, self.phases.spec());
                self.await_trial(now);
                self.link.put(SessionOutput::Start);
                self.state = NativeServerState::Running;
            }
            (message, NativeServerState::Running) => self.running(now, message)?,
            // Sent by the client before it knew that the phase was over here.
            (
                NativeMessage::Stop | NativeMessage::Cut | NativeMessage::Progress(_),
                NativeServerState::Ready,
            ) => {}
            (other, _) => return Err(misbehaved(&format!("'{}' at the wrong time", name(&other)))),
        }
        Ok(())
    }

    fn running(&mut self, now: Timestamp, message: NativeMessage) -> Result<(), PeerError> {
        match message {
            NativeMessage::Trial(trial) => self.begin_trial(trial)?,
            NativeMessage::Stop if self.phase.stop() => self.link.put(SessionOutput::StopWriting),
            NativeMessage::Cut if self.phase.cut() => self.link.put(SessionOutput::Cut),
            // A repeated message.
            NativeMessage::Stop | NativeMessage::Cut => {}
            NativeMessage::Progress(progress) => self.link.put(self.phase.peer_progress(progress)?),
            NativeMessage::Samples { flow, samples } => {
                self.link.put(self.phase.peer_samples(flow, samples)?)
            }
            NativeMessage::SenderDone { flow } => {
                self.phase.check(flow)?;
                if self.phase.sends(flow) {
                    self.phase.sender_done(flow);
                    self.link.put(SessionOutput::PeerSenderDone { flow });
                }
            }
            NativeMessage::Ended(ended) => {
                self.phase.peer_ended(ended.flow)?;
                self.link.put(SessionOutput::PeerEnded(ended));
                self.finish_phase(now);
            }
            other => return Err(misbehaved(&format!("'{}' while data is transferred", name(&other)))),
        }
        Ok(())
    }

    /// A client that is alive but idle must not block the server.
    fn await_trial(&mut self, now: Timestamp) {
        if self.phases.spec().sweep.is_some() {
            self.link.begin_step(now, "waiting for the client's next trial", BETWEEN_TRIALS_TIMEOUT);
        }
    }

    fn begin_trial(&mut self, trial: SweepTrial) -> Result<(), PeerError> {
        let sound = self.phases.spec().sweep.as_ref().is_some_and(|series| trial.is_sound(series));
        if !sound || self.trial.is_some() {
            return Err(misbehaved("an invalid trial"));
        }
        self.trial = Some(trial.trial);
        self.link.begin_untimed_step("exchanging messages");
        self.link.put(SessionOutput::Trial(trial));
        Ok(())
    }

    fn await_phase(&mut self, now: Timestamp) {
        self.link.begin_step(now, "waiting for the client's next phase", BETWEEN_PHASES_TIMEOUT);
    }

    fn finish_phase(&mut self, now: Timestamp) {
        if self.state == NativeServerState::Running && self.phase.over() {
            self.state = NativeServerState::Ready;
            self.link.measuring(now, false);
            self.await_phase(now);
            self.link.put(SessionOutput::PhaseDone);
        }
    }

    fn refuse(&mut self, now: Timestamp, why: String) -> Result<(), PeerError> {
        self.link.send(now, &NativeMessage::Refused { why: why.into() })?;
        self.state = NativeServerState::Over;
        self.link.put(SessionOutput::Done);
        Ok(())
    }
}

impl Session for ServerSession {
    fn input(&mut self, now: Timestamp, input: SessionInput<'_>) -> Result<(), PeerError> {
        match input {
            SessionInput::Bytes(bytes) => {
                self.link.bytes(now, bytes)?;
                if self.link.known() {
                    // Our preface tells the client that this is a linerate server.
                    self.link.send_preface(now);
                }
                while let Some(message) = self.link.pull()? {
                    self.message(now, message)?;
                }
            }
            SessionInput::Closed => {
                return if self.state == NativeServerState::Over { Ok(()) } else { Err(self.link.closed()) };
            }
            SessionInput::Tick if self.state == NativeServerState::Over => {}
            SessionInput::Tick => self.link.tick(now)?,
            SessionInput::Admit(admission) => self.admit(now, &admission)?,
            SessionInput::Wait(place) => self.link.send(now, &NativeMessage::Busy(place))?,
            SessionInput::Refuse(why) => self.refuse(now, why)?,
            SessionInput::FlowsOpen => self.flows_open(now)?,
            SessionInput::FlowsFailed(why) => {
                self.link.send(now, &NativeMessage::Failed { why: why.clone().into() })?;
                return Err(PeerError::Local { why });
            }
            // Receivers read before the client's start message, which may wait for the starts of other runs.
            SessionInput::Progress(_) if self.state != NativeServerState::Running => {}
            SessionInput::Progress(progress) => self.link.send(now, &NativeMessage::Progress(progress))?,
            SessionInput::TrialCounted(count) if self.trial == Some(count.trial) => {
                self.trial = None;
                self.await_trial(now);
                self.link.send(now, &NativeMessage::TrialCounted(count))?;
            }
            SessionInput::TrialCounted(_) => {
                return Err(PeerError::Local {
                    why: "counts arrived for a trial that is not running".to_owned(),
                });
            }
            SessionInput::Alive => self.link.alive(now),
            SessionInput::Delivering if self.state == NativeServerState::Ready => self.await_phase(now),
            SessionInput::Delivering => {}
            SessionInput::SenderDone { flow } => {
                self.phase.sender_done(flow);
                self.link.send(now, &NativeMessage::SenderDone { flow })?;
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
                self.link.send(now, &NativeMessage::Failed { why: "the server was stopped".into() })?;
                return Err(PeerError::Local { why: "the server was stopped".to_owned() });
            }
            SessionInput::Measure(_) | SessionInput::Finish(_) | SessionInput::Trial(_) => {
                return Err(PeerError::Local {
                    why: "a message of a client's role reached a server".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn output(&mut self) -> Option<SessionOutput> {
        self.link.pop()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.state == NativeServerState::Over { None } else { self.link.deadline() }
    }
}
