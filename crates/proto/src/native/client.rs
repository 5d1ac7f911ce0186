//! The client's end of the dialogue.

use linerate_model::{CheckedSpec, HostInfo, StopAfter};
use linerate_units::{Bytes, Span, Timestamp};

use super::VERSION;
use super::link::Link;
use super::message::{AskedFlow, Message, SWEEP, both_can, capabilities, cookie_from_text};
use super::phase::Phase;
use crate::PeerError;
use crate::session::{FlowOrder, Hello, Input, Output, Session, Trial, Welcome};

/// Timeout for an answer of the server.
const ANSWER_TIMEOUT: Span = Span::from_secs(5);

/// The step before the first answer, with the likely mistake.
const GREETING_WAIT: &str = "waiting for the server's greeting; check that it is the port of `linerate \
                             serve`";

/// The client's end of the dialogue.
#[derive(Debug)]
pub struct ClientSession {
    link: Link,
    hello: Hello,
    state: State,
    phase: Phase,
    drain: Span,
    drain_until: Option<Timestamp>,
    /// Whether the phase should end early. It may not have started yet.
    stop: bool,
    /// Number of the trial whose counts the server has not sent yet.
    trial: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
            link: Link::new(now, GREETING_WAIT),
            hello,
            state: State::Asking,
            phase: Phase::default(),
            drain,
            drain_until: None,
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
        let hello = Message::Hello {
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
        if self.state != State::Ready || flows.is_empty() {
            return Err(PeerError::Local {
                why: "a phase can begin only between phases, with flows".to_owned(),
            });
        }
        self.link.send(now, &Message::Prepare { flows: flows.iter().map(AskedFlow::from).collect() })?;
        self.link.begin_step(now, "waiting for the server to prepare", ANSWER_TIMEOUT);
        self.phase = Phase::new(flows);
        self.trial = None;
        self.drain_until = None;
        self.stop = false;
        self.state = State::Preparing;
        Ok(())
    }

    fn start_when_open(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.state == State::Opening && self.phase.all_open() {
            self.link.send(now, &Message::Start)?;
            self.link.measuring(now, true);
            measure(&mut self.link, now, &self.hello.spec);
            self.link.put(Output::Start);
            self.state = State::Running;
            self.stop_when_running(now)?;
        }
        Ok(())
    }

    fn stop_when_running(&mut self, now: Timestamp) -> Result<(), PeerError> {
        if self.stop && self.state == State::Running {
            self.link.send(now, &Message::Stop)?;
            self.link.begin_step(now, "waiting for the stopped flows to end", STOP_TIMEOUT + self.drain);
            self.link.put(Output::StopWriting);
        }
        Ok(())
    }

    fn sender_done(&mut self, now: Timestamp, flow: u16) {
        if self.phase.sender_done(flow) {
            self.drain_until = Some(now + self.drain);
            if self.state == State::Running {
                self.link.begin_step(now, "waiting for the last bytes", PHASE_GRACE + self.drain);
            }
        }
    }

    fn finish_phase(&mut self, now: Timestamp) {
        if matches!(self.state, State::Running | State::Closing) {
            if self.phase.over() {
                self.state = State::Ready;
                self.drain_until = None;
                self.link.measuring(now, false);
                self.link.begin_untimed_step("between two phases");
                self.link.put(Output::PhaseDone);
            } else if self.phase.local_over() && self.state == State::Running {
                self.state = State::Closing;
                self.link.begin_step(now, "waiting for the server's counts", ANSWER_TIMEOUT + self.drain);
            }
        }
    }

    fn message(&mut self, now: Timestamp, message: Message) -> Result<(), PeerError> {
        match (message, self.state) {
            (Message::Heartbeat, _) | (Message::Progress(_), State::Ready) => {}
            (Message::Refused { why }, State::Asking) => return Err(refusal(why.into())),
            (Message::Failed { why }, _) => return Err(PeerError::GaveUp { why }),
            (Message::Busy(place), State::Asking) => {
                self.link.trust(now);
                self.link.begin_untimed_step("waiting in the server's queue");
                self.link.put(Output::Queued(place));
            }
            (
                Message::Welcome { version, host, cookie, concurrent_runs, capabilities: theirs },
                State::Asking,
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
                for needed in [Some(self.hello.spec.traffic.transport().name()), sweep].into_iter().flatten()
                {
                    if !capabilities.iter().any(|name| name == needed) {
                        return Err(PeerError::Lacks { what: needed, can: theirs.join(", ").into() });
                    }
                }
                self.link.trust(now);
                self.link.begin_untimed_step("between two phases");
                self.state = State::Ready;
                let welcome = Welcome {
                    host,
                    cookie,
                    concurrent_runs,
                    capabilities: capabilities.into_iter().collect(),
                };
                self.link.put(Output::Welcomed(Box::new(welcome)));
            }
            (Message::Prepared, State::Preparing) => {
                self.state = State::Opening;
                self.link.begin_step(now, "opening the data connections", OPEN_TIMEOUT);
                let flows = self.phase.flows().to_vec();
                self.link.put(Output::Open(flows));
            }
            (Message::FlowsReady, State::Opening) => {
                self.phase.peer_opened();
                self.start_when_open(now)?;
            }
            (message, State::Running | State::Closing) => self.running(now, message)?,
            (other, _) => return Err(misbehaved(&format!("'{}' at the wrong time", name(&other)))),
        }
        Ok(())
    }

    fn running(&mut self, now: Timestamp, message: Message) -> Result<(), PeerError> {
        match message {
            Message::Progress(progress) => self.link.put(self.phase.peer_progress(progress)?),
            Message::Samples { flow, samples } => self.link.put(self.phase.peer_samples(flow, samples)?),
            Message::SenderDone { flow } => {
                self.phase.check(flow)?;
                if self.phase.sends(flow) {
                    self.sender_done(now, flow);
                    self.link.put(Output::PeerSenderDone { flow });
                }
            }
            Message::Ended(ended) => {
                self.phase.peer_ended(ended.flow)?;
                if self.phase.side(ended.flow, true) != Some(ended.side.other()) {
                    return Err(misbehaved("it ended the wrong side of a flow"));
                }
                self.link.put(Output::PeerEnded(ended));
                self.finish_phase(now);
            }
            Message::TrialCounted(count) if self.trial == Some(count.trial) => {
                self.trial = None;
                if self.state == State::Running {
                    self.link.begin_untimed_step("between two trials");
                }
                self.link.put(Output::PeerTrial(count));
            }
            other => return Err(misbehaved(&format!("'{}' while data is transferred", name(&other)))),
        }
        Ok(())
    }

    fn trial(&mut self, now: Timestamp, trial: Trial) -> Result<(), PeerError> {
        let sound = self.hello.spec.sweep.as_ref().is_some_and(|series| trial.is_sound(series));
        if self.state != State::Running || self.trial.is_some() || !sound {
            return Err(PeerError::Local { why: "a trial can begin only between two trials".to_owned() });
        }
        self.trial = Some(trial.trial);
        self.link.send(now, &Message::Trial(trial))?;
        self.link.begin_step(
            now,
            "waiting for the server's count of a trial",
            trial.patience_ns + ANSWER_TIMEOUT,
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
pub(super) fn measure(link: &mut Link, now: Timestamp, spec: &CheckedSpec) {
    match spec.traffic.stop_after(Bytes::new(1)) {
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
pub(super) fn name(message: &Message) -> String {
    serde_json::to_value(message)
        .ok()
        .and_then(|value| value.get("type")?.as_str().map(str::to_owned))
        .unwrap_or_default()
}

impl Session for ClientSession {
    fn input(&mut self, now: Timestamp, input: Input<'_>) -> Result<(), PeerError> {
        match input {
            Input::Bytes(bytes) => {
                self.link.bytes(now, bytes)?;
                while let Some(message) = self.link.pull()? {
                    self.message(now, message)?;
                }
            }
            Input::Closed => {
                return if self.state == State::Over { Ok(()) } else { Err(self.link.closed()) };
            }
            Input::Tick => self.tick(now)?,
            Input::Measure(flows) => self.measure(now, flows)?,
            Input::Finish => {
                self.link.send(now, &Message::Bye)?;
                self.state = State::Over;
                self.link.put(Output::Done);
            }
            Input::FlowsOpen => {
                self.phase.local_opened();
                self.start_when_open(now)?;
            }
            Input::FlowsFailed(why) => {
                self.link.send(now, &Message::Failed { why: why.clone().into() })?;
                return Err(PeerError::Local { why });
            }
            Input::Progress(progress) => self.link.send(now, &Message::Progress(progress))?,
            Input::Trial(trial) => self.trial(now, trial)?,
            Input::Alive => self.link.alive(now),
            Input::SenderDone { flow } => {
                self.link.send(now, &Message::SenderDone { flow })?;
                self.sender_done(now, flow);
            }
            Input::Samples { flow, samples } => self.link.send(now, &Message::Samples { flow, samples })?,
            Input::FlowEnded(ended) => {
                self.phase.local_ended(ended.flow);
                self.link.send(now, &Message::Ended(ended))?;
                self.finish_phase(now);
            }
            Input::Stop => {
                self.stop = true;
                self.stop_when_running(now)?;
            }
            Input::Admit(_) | Input::Wait(_) | Input::Refuse(_) | Input::TrialCounted(_) => {
                return Err(PeerError::Local { why: "a server's decision reached a client".to_owned() });
            }
        }
        Ok(())
    }

    fn output(&mut self) -> Option<Output> {
        self.link.pop()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.state == State::Over {
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
        if self.state == State::Over {
            return Ok(());
        }
        if self.drain_until.is_some_and(|until| now >= until) {
            self.drain_until = None;
            self.link.send(now, &Message::Cut)?;
            self.link.put(Output::Cut);
        }
        self.link.tick(now)
    }
}
