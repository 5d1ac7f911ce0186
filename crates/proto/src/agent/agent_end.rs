//! The agent's end of the dialogue.

use std::collections::BTreeMap;

use linerate_units::{Span, Timestamp};

use super::VERSION;
use super::dialogue::{AgentDialogue, AgentInput, AgentOutput, Job, JobEnd, MAX_JOBS};
use super::link::{AgentConnection, misbehaved};
use super::message::AgentMessage;
use super::proof::{ChannelBinding, Nonce, Nonces, Token};
use super::settings::{MAX_SETTINGS, SettingsAnswer, SettingsRequest};
use crate::PeerError;
use crate::ticket::{from_hex, to_hex};
use crate::watch::{earliest, silent};

/// Timeout for the greeting of a new coordinator, and then again for its proof.
const HELLO_TIMEOUT: Span = Span::from_secs(5);

/// Timeout for this end's program to provide its description.
const ABOUT: Span = Span::from_secs(10);

/// How long a job may take to open everything, including a wait in the queue of its server.
const PREPARE_TIMEOUT: Span = Span::from_secs(60);

/// How long a ready job waits for its start; its server does not wait longer either.
const START_TIMEOUT: Span = Span::from_secs(25);

/// How long a job may take to end after a stop.
const END_TIMEOUT: Span = Span::from_secs(30);

/// How long this end's program may take for a settings request: network interfaces that restart need seconds.
const SETTING: Span = Span::from_secs(60);

/// Longest announced time for which a coordinator may hold the place: the longest test with two directions of a
/// day each, its omitted parts, and a start that waits for others. Waiting clients see it as their wait.
const MAX_HOLD: Span = Span::from_secs(7 * 86_400);

/// Most characters of a coordinator's name.
const MAX_NAME: usize = 64;

/// The agent's end of the dialogue.
#[derive(Debug)]
pub struct AgentEnd {
    link: AgentConnection,
    /// Absent on a server that is not an agent.
    token: Option<Token>,
    nonces: Nonces,
    name: String,
    state: AgentState,
    place: Reservation,
    jobs: BTreeMap<u32, AgentJobState>,
    last_job: Option<u32>,
    /// Deadline of the program's answer to a settings request.
    settings: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentState {
    /// Nothing received yet.
    New,
    /// Waiting for the proof.
    Challenged,
    /// Waiting for this end's program to provide its description.
    Known,
    /// Serving the coordinator.
    Serving,
    /// Over.
    Over,
}

/// The coordinator's place in this server's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reservation {
    Free,
    Asked,
    Held,
}

/// The state of a job, with its deadline.
#[derive(Debug, Clone, Copy)]
enum AgentJobState {
    Preparing(Timestamp),
    Ready(Timestamp),
    Measuring,
    Ending(Timestamp),
}

impl AgentJobState {
    fn until(self) -> Option<Timestamp> {
        match self {
            Self::Preparing(until) | Self::Ready(until) | Self::Ending(until) => Some(until),
            Self::Measuring => None,
        }
    }
}

impl AgentEnd {
    /// An end that begins at `now`. Without a token it refuses every coordinator with a reason.
    #[must_use]
    pub fn new(now: Timestamp, token: Option<Token>, nonce: Nonce) -> Self {
        Self {
            link: AgentConnection::new(now, "waiting for the coordinator's greeting", HELLO_TIMEOUT),
            token,
            nonces: Nonces { agent: nonce, ..Nonces::default() },
            name: String::new(),
            state: AgentState::New,
            place: Reservation::Free,
            jobs: BTreeMap::new(),
            last_job: None,
            settings: None,
        }
    }

    /// The same end on an encrypted connection: proofs of another connection are not accepted.
    #[must_use]
    pub fn with_channel_binding(mut self, channel: Option<ChannelBinding>) -> Self {
        self.nonces.channel = channel;
        self
    }

    fn reject(&mut self, now: Timestamp, why: &str) -> Result<(), PeerError> {
        self.link.send(now, &AgentMessage::Refused { why: why.into() })?;
        self.link.put(AgentOutput::TurnedAway(why.into()));
        self.over();
        Ok(())
    }

    fn over(&mut self) {
        self.state = AgentState::Over;
        self.link.put(AgentOutput::Done);
    }

    fn hello(&mut self, now: Timestamp, versions: [u8; 2], name: &str, nonce: &str) -> Result<(), PeerError> {
        if self.token.is_none() {
            let why = "this server is not an agent; start it with: linerate serve --agent-token-file FILE";
            return self.reject(now, why);
        }
        if !(versions[0]..=versions[1]).contains(&VERSION) {
            let [lowest, highest] = versions;
            let why = format!(
                "the agent uses version {VERSION} of the agent protocol and the coordinator {lowest} to \
                 {highest}; install the same version of linerate on both"
            );
            return self.reject(now, &why);
        }
        self.nonces.coordinator =
            from_hex(nonce).ok_or_else(|| misbehaved("its number is unreadable".to_owned()))?;
        // It is shown in the server's log.
        self.name = name.chars().take(MAX_NAME).collect();
        self.link.send(
            now,
            &AgentMessage::Challenge { version: VERSION, nonce: to_hex(&self.nonces.agent).into() },
        )?;
        self.link.begin_step(now, "waiting for the coordinator's proof", HELLO_TIMEOUT);
        self.state = AgentState::Challenged;
        Ok(())
    }

    fn proof(&mut self, now: Timestamp, proof: &str) -> Result<(), PeerError> {
        if !self.token.as_ref().is_some_and(|token| token.is_coordinators(proof, &self.nonces)) {
            let why = match self.nonces.channel {
                None => "the token differs from the agent's; use the same token file on both hosts",
                Some(_) => {
                    "the token differs from the agent's, or the connection is intercepted; use the same token file \
                     on both hosts"
                }
            };
            return self.reject(now, why);
        }
        self.link.trust(now);
        self.link.begin_step(now, "collecting facts about this host", ABOUT);
        self.state = AgentState::Known;
        self.link.put(AgentOutput::Known { name: self.name.clone().into() });
        Ok(())
    }

    fn message(&mut self, now: Timestamp, message: AgentMessage) -> Result<(), PeerError> {
        match (message, self.state) {
            (_, AgentState::Over) | (AgentMessage::Heartbeat, _) => {}
            (AgentMessage::Failed { why }, _) => return Err(PeerError::GaveUp { why }),
            (AgentMessage::Bye, _) => self.over(),
            (AgentMessage::Hello { versions, name, nonce }, AgentState::New) => {
                self.hello(now, versions, &name, &nonce)?
            }
            (AgentMessage::Proof { proof }, AgentState::Challenged) => self.proof(now, &proof)?,
            (message, AgentState::Serving) => self.serve(now, message)?,
            (other, _) => return Err(misbehaved(format!("'{}' at the wrong time", other.name()))),
        }
        Ok(())
    }

    fn serve(&mut self, now: Timestamp, message: AgentMessage) -> Result<(), PeerError> {
        match message {
            AgentMessage::Ping { number, sent_ns } => {
                let pong = AgentMessage::Pong { number, sent_ns, received_ns: now, replied_ns: now };
                self.link.send(now, &pong)?;
            }
            AgentMessage::Hold { expected_ns } if expected_ns > MAX_HOLD => {
                return Err(misbehaved(format!(
                    "it requested a place for {expected_ns}; the maximum is {MAX_HOLD}"
                )));
            }
            AgentMessage::Hold { expected_ns } if self.place == Reservation::Free => {
                self.place = Reservation::Asked;
                self.link.put(AgentOutput::Hold { expected: expected_ns });
            }
            AgentMessage::Release if self.jobs.is_empty() && self.settings.is_none() => {
                if self.place != Reservation::Free {
                    self.place = Reservation::Free;
                    self.link.put(AgentOutput::Release);
                }
            }
            AgentMessage::CheckSettings(order) => self.ask_settings(now, SettingsRequest::Check(order))?,
            AgentMessage::ApplySettings(order) => self.ask_settings(now, SettingsRequest::Apply(order))?,
            AgentMessage::RestoreSettings => self.ask_settings(now, SettingsRequest::Restore)?,
            AgentMessage::Prepare(job) => self.prepare(now, job)?,
            AgentMessage::Start { job, at_ns } => match self.jobs.get_mut(&job) {
                Some(step @ AgentJobState::Ready(_)) => {
                    *step = AgentJobState::Measuring;
                    self.link.put(AgentOutput::Start { job, at: at_ns });
                }
                // It ended, or was stopped, while the start message was in transit.
                None | Some(AgentJobState::Ending(_)) => {}
                Some(_) => return Err(misbehaved(format!("it started job {job}, which is not ready"))),
            },
            AgentMessage::Stop { job } => self.stop(now, job),
            other => return Err(misbehaved(format!("'{}' at the wrong time", other.name()))),
        }
        Ok(())
    }

    /// Settings must not change during a run, and runs of other clients must not see them. Therefore they
    /// change only while the coordinator holds the place, and between its runs.
    fn ask_settings(&mut self, now: Timestamp, request: SettingsRequest) -> Result<(), PeerError> {
        if self.settings.is_some() {
            return Err(misbehaved(
                "it sent a second request about settings before the first was answered".to_owned(),
            ));
        }
        let order = match &request {
            SettingsRequest::Check(order) => Some(order),
            SettingsRequest::Apply(order) if self.place == Reservation::Held => Some(order),
            SettingsRequest::Apply(_) => {
                return Err(misbehaved("it requested settings without a place in the queue".to_owned()));
            }
            SettingsRequest::Restore => None,
        };
        let changes = !matches!(request, SettingsRequest::Check(_));
        if changes && !self.jobs.is_empty() {
            return Err(misbehaved("it requested settings while its runs are in progress".to_owned()));
        }
        if order.is_some_and(|order| order.values.len() > MAX_SETTINGS || order.towards.len() > MAX_SETTINGS)
        {
            return Err(misbehaved(format!("it requested more than {MAX_SETTINGS} settings")));
        }
        self.settings = Some(now + SETTING);
        self.link.put(AgentOutput::Settings(request));
        Ok(())
    }

    fn settings_done(&mut self, now: Timestamp, answer: Box<SettingsAnswer>) -> Result<(), PeerError> {
        // A late answer to an abandoned request.
        if self.settings.take().is_none() {
            return Ok(());
        }
        self.link.send(now, &AgentMessage::Settings(answer))
    }

    fn prepare(&mut self, now: Timestamp, job: Box<Job>) -> Result<(), PeerError> {
        if self.settings.is_some() {
            return Err(misbehaved("it requested a job while settings are being changed".to_owned()));
        }
        if self.place != Reservation::Held {
            return Err(misbehaved("it requested a job without a place in the queue".to_owned()));
        }
        if self.jobs.len() >= MAX_JOBS || self.last_job.is_some_and(|last| job.job <= last) {
            return Err(misbehaved(format!(
                "job {} exceeds the number of jobs, or its number was used before",
                job.job
            )));
        }
        self.last_job = Some(job.job);
        if let Err(error) = job.spec.check().and_then(|()| job.spec.agree()) {
            let outcome = linerate_model::Outcome::Failed;
            let ended = AgentMessage::Ended { job: job.job, outcome, reason: Some(error.to_string().into()) };
            return self.link.send(now, &ended);
        }
        self.jobs.insert(job.job, AgentJobState::Preparing(now + PREPARE_TIMEOUT));
        self.link.put(AgentOutput::Prepare(job));
        Ok(())
    }

    fn stop(&mut self, now: Timestamp, job: u32) {
        if let Some(step) = self.jobs.get_mut(&job)
            && !matches!(step, AgentJobState::Ending(_))
        {
            *step = AgentJobState::Ending(now + END_TIMEOUT);
            self.link.put(AgentOutput::Stop { job });
        }
    }

    fn ended(&mut self, now: Timestamp, end: JobEnd) -> Result<(), PeerError> {
        if self.jobs.remove(&end.job).is_none() {
            return Ok(());
        }
        let JobEnd { job, outcome, reason } = end;
        self.link.send(now, &AgentMessage::Ended { job, outcome, reason })
    }

    /// Stops jobs that have exceeded their deadline. A job that does not stop ends the dialogue.
    fn check_jobs(&mut self, now: Timestamp) -> Result<(), PeerError> {
        let late = |step: &AgentJobState| step.until().is_some_and(|until| now >= until);
        let all: Vec<(u32, AgentJobState)> =
            self.jobs.iter().filter(|(_, step)| late(step)).map(|(job, step)| (*job, *step)).collect();
        for (job, step) in all {
            if matches!(step, AgentJobState::Ending(_)) {
                return Err(PeerError::Local { why: format!("job {job} did not end") });
            }
            self.stop(now, job);
        }
        Ok(())
    }

    /// Handles an input from this end's program while it serves.
    fn program_input(&mut self, now: Timestamp, input: AgentInput<'_>) -> Result<(), PeerError> {
        match (input, self.place) {
            (AgentInput::Waiting(place), Reservation::Asked) => {
                self.link.send(now, &AgentMessage::Waiting(place))
            }
            (AgentInput::Held(ticket), Reservation::Asked) => {
                self.place = Reservation::Held;
                self.link.send(now, &AgentMessage::Held { ticket })
            }
            (AgentInput::NotHeld(why), Reservation::Asked) => {
                self.place = Reservation::Free;
                self.link.send(now, &AgentMessage::NotHeld { why: why.into() })
            }
            (AgentInput::Accepted { job, epoch }, _) if self.jobs.contains_key(&job) => {
                self.link.send(now, &AgentMessage::Accepted { job, epoch_ns: epoch })
            }
            (AgentInput::Ready { job }, _) => match self.jobs.get_mut(&job) {
                Some(step @ AgentJobState::Preparing(_)) => {
                    *step = AgentJobState::Ready(now + START_TIMEOUT);
                    self.link.send(now, &AgentMessage::Ready { job })
                }
                _ => Ok(()),
            },
            (AgentInput::Event(event), _) if self.jobs.contains_key(&event.job) => {
                let body = serde_json::to_value(&event.body);
                let body = body.map_err(|error| PeerError::Local { why: format!("an event: {error}") })?;
                self.link.send(
                    now,
                    &AgentMessage::Event { job: event.job, host: event.host, at_ns: event.at, body },
                )
            }
            (AgentInput::Ended(end), _) => self.ended(now, end),
            (AgentInput::SettingsDone(answer), _) => self.settings_done(now, answer),
            // Late inputs about what has already ended.
            _ => Ok(()),
        }
    }
}

impl AgentDialogue for AgentEnd {
    fn input(&mut self, now: Timestamp, input: AgentInput<'_>) -> Result<(), PeerError> {
        match input {
            _ if self.state == AgentState::Over => {}
            AgentInput::Bytes(bytes) => {
                self.link.bytes(now, bytes)?;
                while let Some(message) = self.link.pull()? {
                    self.message(now, message)?;
                }
            }
            AgentInput::Closed => return Err(self.link.closed()),
            AgentInput::Tick => {
                if self.settings.is_some_and(|until| now >= until) {
                    return Err(silent("changing settings of this host", SETTING));
                }
                self.check_jobs(now)?;
                self.link.tick(now)?;
            }
            AgentInput::GiveUp(why) => {
                self.link.send(now, &AgentMessage::Failed { why: why.into() })?;
                self.over();
            }
            AgentInput::About(about) if self.state == AgentState::Known => {
                let proof = self.token.as_ref().and_then(|token| token.proof_of_agent(&self.nonces));
                let proof =
                    proof.ok_or_else(|| PeerError::Local { why: "no proof could be made".to_owned() })?;
                self.link.send(now, &AgentMessage::Welcome { proof: proof.into(), about })?;
                self.link.begin_untimed_step("serving the coordinator");
                self.state = AgentState::Serving;
            }
            input if self.state == AgentState::Serving => self.program_input(now, input)?,
            _ => {
                return Err(PeerError::Local {
                    why: "a message reached the agent at the wrong time".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn output(&mut self) -> Option<AgentOutput> {
        self.link.pop()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.state == AgentState::Over {
            return None;
        }
        let jobs = self.jobs.values().filter_map(|step| step.until()).min();
        earliest(self.link.deadline(), earliest(jobs, self.settings))
    }
}
