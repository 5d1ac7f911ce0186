//! The coordinator's end of the dialogue.

use std::collections::BTreeMap;

use linerate_model::Body;
use linerate_units::{Span, Timestamp};

use super::VERSION;
use super::dialogue::{AgentDialogue, AgentInput, AgentOutput, ClockExchange, Job, JobEnd, JobEvent};
use super::link::{AgentConnection, misbehaved};
use super::message::AgentMessage;
use super::proof::{ChannelBinding, Nonce, Nonces, Token};
use super::settings::SettingsRequest;
use crate::PeerError;
use crate::ticket::{from_hex, to_hex};
use crate::watch::{earliest, silent};

/// Timeout for an answer of the agent.
const ANSWER_TIMEOUT: Span = Span::from_secs(5);

/// Timeout for the agent to examine its host and describe itself.
const WELCOME: Span = Span::from_secs(15);

/// Timeout until a job is ready or has failed: a little longer than the agent's own.
const PREPARE_TIMEOUT: Span = Span::from_secs(100);

/// Timeout for a job to end after a stop: a little longer than the agent's own.
const END_TIMEOUT: Span = Span::from_secs(40);

/// Timeout for an answer about settings: a little longer than the agent's own.
const SETTING: Span = Span::from_secs(70);

/// The step before the first answer, with the likely mistake.
const GREETING_WAIT: &str =
    "waiting for the agent's greeting; check that it is the port of `linerate serve --agent-token-file`";

/// The coordinator's end of the dialogue.
#[derive(Debug)]
pub struct CoordinatorEnd {
    link: AgentConnection,
    token: Token,
    nonces: Nonces,
    state: CoordinatorState,
    pings: u64,
    /// The ping that is not answered yet, with its deadline.
    asked: Option<(u64, Timestamp)>,
    /// Deadline for a message about the place.
    hold: Option<Timestamp>,
    holding: bool,
    /// Deadline for an answer about settings.
    settings: Option<Timestamp>,
    jobs: BTreeMap<u32, CoordinatorJobState>,
    events: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoordinatorState {
    /// Waiting for the challenge.
    Greeted,
    /// Waiting for the welcome.
    Proved,
    /// The agent is serving.
    Served,
    /// Over.
    Over,
}

/// The state of a job, with its deadline.
#[derive(Debug, Clone, Copy)]
enum CoordinatorJobState {
    Asked(Timestamp),
    Preparing(Timestamp),
    Ready,
    Measuring,
    Ending(Timestamp),
}

impl CoordinatorJobState {
    fn until(self) -> Option<(Timestamp, &'static str, Span)> {
        match self {
            Self::Asked(until) => Some((until, "asking for a job", ANSWER_TIMEOUT)),
            Self::Preparing(until) => Some((until, "waiting for a job to be ready", PREPARE_TIMEOUT)),
            Self::Ending(until) => Some((until, "waiting for a job to end", END_TIMEOUT)),
            Self::Ready | Self::Measuring => None,
        }
    }
}

impl CoordinatorEnd {
    /// An end that begins at `now` and calls itself `name`.
    #[must_use]
    pub fn new(now: Timestamp, token: Token, nonce: Nonce, name: String) -> Self {
        let mut end = Self {
            link: AgentConnection::new(now, GREETING_WAIT, ANSWER_TIMEOUT),
            token,
            nonces: Nonces { coordinator: nonce, ..Nonces::default() },
            state: CoordinatorState::Greeted,
            pings: 0,
            asked: None,
            hold: None,
            holding: false,
            settings: None,
            jobs: BTreeMap::new(),
            events: 0,
        };
        // A greeting is far below the limit. If it were not, the agent would report that.
        let hello = AgentMessage::Hello {
            versions: [VERSION, VERSION],
            name: name.into(),
            nonce: to_hex(&nonce).into(),
        };
        let _ = end.link.send(now, &hello);
        end
    }

    /// The same end on an encrypted connection: proofs of another connection are not accepted.
    #[must_use]
    pub fn with_channel_binding(mut self, channel: Option<ChannelBinding>) -> Self {
        self.nonces.channel = channel;
        self
    }

    fn challenge(&mut self, now: Timestamp, version: u8, nonce: &str) -> Result<(), PeerError> {
        if version != VERSION {
            return Err(PeerError::Version { theirs: version.to_string().into(), ours: VERSION.to_string() });
        }
        self.nonces.agent =
            from_hex(nonce).ok_or_else(|| misbehaved("its number is unreadable".to_owned()))?;
        if self.nonces.agent == self.nonces.coordinator {
            return Err(misbehaved("it sent back our own number".to_owned()));
        }
        let proof = self.token.proof_of_coordinator(&self.nonces);
        let proof = proof.ok_or_else(|| PeerError::Local { why: "no proof could be made".to_owned() })?;
        self.link.send(now, &AgentMessage::Proof { proof: proof.into() })?;
        self.link.begin_step(now, "waiting for the agent's welcome", WELCOME);
        self.state = CoordinatorState::Proved;
        Ok(())
    }

    fn message(&mut self, now: Timestamp, message: AgentMessage) -> Result<(), PeerError> {
        match (message, self.state) {
            (AgentMessage::Heartbeat, _) => {}
            (AgentMessage::Refused { why }, CoordinatorState::Greeted | CoordinatorState::Proved) => {
                return Err(PeerError::Refused { why });
            }
            (AgentMessage::Failed { why }, _) => return Err(PeerError::GaveUp { why }),
            (AgentMessage::Challenge { version, nonce }, CoordinatorState::Greeted) => {
                self.challenge(now, version, &nonce)?
            }
            (AgentMessage::Welcome { proof, about }, CoordinatorState::Proved) => {
                if !self.token.is_agents(&proof, &self.nonces) {
                    return Err(misbehaved("it has not proved that it has the token".to_owned()));
                }
                self.link.trust(now);
                self.link.begin_untimed_step("serving");
                self.state = CoordinatorState::Served;
                self.link.put(AgentOutput::Welcomed(about));
            }
            (message, CoordinatorState::Served) => self.served(now, message)?,
            (other, _) => return Err(misbehaved(format!("'{}' at the wrong time", other.name()))),
        }
        Ok(())
    }

    fn served(&mut self, now: Timestamp, message: AgentMessage) -> Result<(), PeerError> {
        match message {
            AgentMessage::Pong { number, sent_ns, received_ns, replied_ns } => {
                // A late answer to an abandoned ping is ignored.
                if self.asked.is_some_and(|(asked, _)| asked == number) {
                    self.asked = None;
                    let pong = ClockExchange {
                        sent: sent_ns,
                        received: received_ns,
                        replied: replied_ns,
                        back: now,
                    };
                    self.link.put(AgentOutput::Pong(pong));
                }
            }
            AgentMessage::Waiting(place) if self.holding => {
                self.hold = None;
                self.link.put(AgentOutput::Waiting(place));
            }
            AgentMessage::Held { ticket } if self.holding => {
                self.hold = None;
                self.link.put(AgentOutput::Held(ticket));
            }
            AgentMessage::NotHeld { why } if self.holding => {
                (self.hold, self.holding) = (None, false);
                self.link.put(AgentOutput::NotHeld(why));
            }
            // Sent before the release arrived.
            AgentMessage::Waiting(_) | AgentMessage::Held { .. } | AgentMessage::NotHeld { .. } => {}
            AgentMessage::Settings(answer) => {
                if self.settings.take().is_none() {
                    return Err(misbehaved(
                        "it answered a request for settings that was not made".to_owned(),
                    ));
                }
                self.link.put(AgentOutput::SettingsDone(answer));
            }
            AgentMessage::Accepted { job, epoch_ns } => {
                self.advance(
                    job,
                    |step| matches!(step, CoordinatorJobState::Asked(_)),
                    CoordinatorJobState::Preparing(now + PREPARE_TIMEOUT),
                )?;
                self.link.put(AgentOutput::Accepted { job, epoch: epoch_ns });
            }
            AgentMessage::Ready { job } => {
                self.advance(
                    job,
                    |step| matches!(step, CoordinatorJobState::Preparing(_)),
                    CoordinatorJobState::Ready,
                )?;
                self.link.put(AgentOutput::Ready { job });
            }
            AgentMessage::Event { job, host, at_ns, body } => {
                if !self.jobs.contains_key(&job) {
                    return Err(misbehaved(format!("an event of job {job}, which does not exist")));
                }
                let body = serde_json::from_value(body)
                    .unwrap_or_else(|error| Body::unreadable(self.events, &error));
                self.events += 1;
                self.link.put(AgentOutput::Event(Box::new(JobEvent { job, host, at: at_ns, body })));
            }
            AgentMessage::Ended { job, outcome, reason } => {
                if self.jobs.remove(&job).is_none() {
                    return Err(misbehaved(format!("it ended job {job}, which does not exist")));
                }
                self.link.measuring(now, self.jobs.len());
                self.link.put(AgentOutput::Ended(JobEnd { job, outcome, reason }));
            }
            other => return Err(misbehaved(format!("'{}' at the wrong time", other.name()))),
        }
        Ok(())
    }

    /// Advances a job, unless it was stopped.
    fn advance(
        &mut self,
        job: u32,
        from: fn(&CoordinatorJobState) -> bool,
        to: CoordinatorJobState,
    ) -> Result<(), PeerError> {
        match self.jobs.get_mut(&job) {
            Some(CoordinatorJobState::Ending(_)) => Ok(()),
            Some(step) if from(step) => {
                *step = to;
                Ok(())
            }
            _ => Err(misbehaved(format!("job {job} went on at the wrong time"))),
        }
    }

    fn tick(&mut self, now: Timestamp) -> Result<(), PeerError> {
        let late = |until: Timestamp| now >= until;
        if self.asked.is_some_and(|(_, by)| late(by)) {
            return Err(silent("asking for its time", ANSWER_TIMEOUT));
        }
        if self.hold.is_some_and(late) {
            return Err(silent("asking for a place in its queue", ANSWER_TIMEOUT));
        }
        if self.settings.is_some_and(late) {
            return Err(silent("asking for settings of its host", SETTING));
        }
        let mut untils = self.jobs.values().filter_map(|step| step.until());
        if let Some((_, during, allowed)) = untils.find(|(until, ..)| late(*until)) {
            return Err(silent(during, allowed));
        }
        self.link.tick(now)
    }

    fn ask_settings(&mut self, now: Timestamp, request: SettingsRequest) -> Result<(), PeerError> {
        if self.settings.is_some() {
            return Err(PeerError::Local { why: "a request about settings is not answered yet".to_owned() });
        }
        self.settings = Some(now + SETTING);
        let message = match request {
            SettingsRequest::Check(order) => AgentMessage::CheckSettings(order),
            SettingsRequest::Apply(order) => AgentMessage::ApplySettings(order),
            SettingsRequest::Restore => AgentMessage::RestoreSettings,
        };
        self.link.send(now, &message)
    }

    fn prepare(&mut self, now: Timestamp, job: Box<Job>) -> Result<(), PeerError> {
        self.jobs.insert(job.job, CoordinatorJobState::Asked(now + ANSWER_TIMEOUT));
        self.link.measuring(now, self.jobs.len());
        self.link.send(now, &AgentMessage::Prepare(job))
    }

    /// Sends a request of the coordinator's program.
    fn ask(&mut self, now: Timestamp, input: AgentInput<'_>) -> Result<(), PeerError> {
        let message = match input {
            AgentInput::Ping => {
                self.pings += 1;
                self.asked = Some((self.pings, now + ANSWER_TIMEOUT));
                AgentMessage::Ping { number: self.pings, sent_ns: now }
            }
            AgentInput::Hold { expected } => {
                (self.hold, self.holding) = (Some(now + ANSWER_TIMEOUT), true);
                AgentMessage::Hold { expected_ns: expected }
            }
            AgentInput::Release => {
                (self.hold, self.holding) = (None, false);
                AgentMessage::Release
            }
            AgentInput::Settings(request) => return self.ask_settings(now, request),
            AgentInput::Prepare(job) => return self.prepare(now, job),
            AgentInput::Start { job, at } => {
                let Some(step @ CoordinatorJobState::Ready) = self.jobs.get_mut(&job) else {
                    return Err(PeerError::Local { why: format!("job {job} is not ready to start") });
                };
                *step = CoordinatorJobState::Measuring;
                AgentMessage::Start { job, at_ns: at }
            }
            AgentInput::Stop { job } => {
                let Some(step) = self.jobs.get_mut(&job) else { return Ok(()) };
                if matches!(step, CoordinatorJobState::Ending(_)) {
                    return Ok(());
                }
                *step = CoordinatorJobState::Ending(now + END_TIMEOUT);
                AgentMessage::Stop { job }
            }
            _ => {
                return Err(PeerError::Local {
                    why: "a message of an agent's role reached the coordinator".to_owned(),
                });
            }
        };
        self.link.send(now, &message)
    }
}

impl AgentDialogue for CoordinatorEnd {
    fn input(&mut self, now: Timestamp, input: AgentInput<'_>) -> Result<(), PeerError> {
        match input {
            _ if self.state == CoordinatorState::Over => {}
            AgentInput::Bytes(bytes) => {
                self.link.bytes(now, bytes)?;
                while let Some(message) = self.link.pull()? {
                    self.message(now, message)?;
                }
            }
            AgentInput::Closed => return Err(self.link.closed()),
            AgentInput::Tick => self.tick(now)?,
            AgentInput::GiveUp(why) => {
                self.link.send(now, &AgentMessage::Failed { why: why.into() })?;
                self.state = CoordinatorState::Over;
                self.link.put(AgentOutput::Done);
            }
            AgentInput::Finish => {
                self.link.send(now, &AgentMessage::Bye)?;
                self.state = CoordinatorState::Over;
                self.link.put(AgentOutput::Done);
            }
            asked if self.state == CoordinatorState::Served => self.ask(now, asked)?,
            _ => return Err(PeerError::Local { why: "the agent was asked before it answered".to_owned() }),
        }
        Ok(())
    }

    fn output(&mut self) -> Option<AgentOutput> {
        self.link.pop()
    }

    fn deadline(&self) -> Option<Timestamp> {
        if self.state == CoordinatorState::Over {
            return None;
        }
        let jobs = self.jobs.values().filter_map(|step| step.until()).map(|(until, ..)| until).min();
        let asked = earliest(earliest(self.asked.map(|(_, by)| by), self.hold), self.settings);
        earliest(self.link.deadline(), earliest(jobs, asked))
    }
}
