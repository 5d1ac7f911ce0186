//! The coordinator's end of the dialogue.

use std::collections::BTreeMap;

use linerate_model::Body;
use linerate_units::{Span, Timestamp};

use super::VERSION;
use super::dialogue::{Dialogue, Exchange, Input, Job, JobEnd, JobEvent, Output};
use super::link::{Link, misbehaved};
use super::message::Message;
use super::proof::{Nonce, Nonces, Token};
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
    link: Link,
    token: Token,
    nonces: Nonces,
    state: State,
    pings: u64,
    /// The ping that is not answered yet, with its deadline.
    asked: Option<(u64, Timestamp)>,
    /// Deadline for a message about the place.
    hold: Option<Timestamp>,
    holding: bool,
    /// Deadline for an answer about settings.
    settings: Option<Timestamp>,
    jobs: BTreeMap<u32, JobState>,
    events: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
enum JobState {
    Asked(Timestamp),
    Preparing(Timestamp),
    Ready,
    Measuring,
    Ending(Timestamp),
}

impl JobState {
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
            link: Link::new(now, GREETING_WAIT, ANSWER_TIMEOUT),
            token,
            nonces: Nonces { coordinator: nonce, ..Nonces::default() },
            state: State::Greeted,
            pings: 0,
            asked: None,
            hold: None,
            holding: false,
            settings: None,
            jobs: BTreeMap::new(),
            events: 0,
        };
        // A greeting is far below the limit. If it were not, the agent would report that.
        let hello =
            Message::Hello { versions: [VERSION, VERSION], name: name.into(), nonce: to_hex(&nonce).into() };
        let _ = end.link.send(now, &hello);
        end
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
        self.link.send(now, &Message::Proof { proof: proof.into() })?;
        self.link.begin_step(now, "waiting for the agent's welcome", WELCOME);
        self.state = State::Proved;
        Ok(())
    }

    fn message(&mut self, now: Timestamp, message: Message) -> Result<(), PeerError> {
        match (message, self.state) {
            (Message::Heartbeat, _) => {}
            (Message::Refused { why }, State::Greeted | State::Proved) => {
                return Err(PeerError::Refused { why });
            }
            (Message::Failed { why }, _) => return Err(PeerError::GaveUp { why }),
            (Message::Challenge { version, nonce }, State::Greeted) => {
                self.challenge(now, version, &nonce)?
            }
            (Message::Welcome { proof, about }, State::Proved) => {
                if !self.token.is_agents(&proof, &self.nonces) {
                    return Err(misbehaved("it has not proved that it has the token".to_owned()));
                }
                self.link.trust(now);
                self.link.begin_untimed_step("serving");
                self.state = State::Served;
                self.link.put(Output::Welcomed(about));
            }
            (message, State::Served) => self.served(now, message)?,
            (other, _) => return Err(misbehaved(format!("'{}' at the wrong time", other.name()))),
        }
        Ok(())
    }

    fn served(&mut self, now: Timestamp, message: Message) -> Result<(), PeerError> {
        match message {
            Message::Pong { number, sent_ns, received_ns, replied_ns } => {
                // A late answer to an abandoned ping is ignored.
                if self.asked.is_some_and(|(asked, _)| asked == number) {
                    self.asked = None;
                    let pong =
                        Exchange { sent: sent_ns, received: received_ns, replied: replied_ns, back: now };
                    self.link.put(Output::Pong(pong));
                }
            }
            Message::Waiting(place) if self.holding => {
                self.hold = None;
                self.link.put(Output::Waiting(place));
            }
            Message::Held { ticket } if self.holding => {
                self.hold = None;
                self.link.put(Output::Held(ticket));
            }
            Message::NotHeld { why } if self.holding => {
                (self.hold, self.holding) = (None, false);
                self.link.put(Output::NotHeld(why));
            }
            // Sent before the release arrived.
            Message::Waiting(_) | Message::Held { .. } | Message::NotHeld { .. } => {}
            Message::Settings(answer) => {
                if self.settings.take().is_none() {
                    return Err(misbehaved(
                        "it answered a request for settings that was not made".to_owned(),
                    ));
                }
                self.link.put(Output::SettingsDone(answer));
            }
            Message::Accepted { job, epoch_ns } => {
                self.advance(
                    job,
                    |step| matches!(step, JobState::Asked(_)),
                    JobState::Preparing(now + PREPARE_TIMEOUT),
                )?;
                self.link.put(Output::Accepted { job, epoch: epoch_ns });
            }
            Message::Ready { job } => {
                self.advance(job, |step| matches!(step, JobState::Preparing(_)), JobState::Ready)?;
                self.link.put(Output::Ready { job });
            }
            Message::Event { job, host, at_ns, body } => {
                if !self.jobs.contains_key(&job) {
                    return Err(misbehaved(format!("an event of job {job}, which does not exist")));
                }
                let body = serde_json::from_value(body)
                    .unwrap_or_else(|error| Body::unreadable(self.events, &error));
                self.events += 1;
                self.link.put(Output::Event(Box::new(JobEvent { job, host, at: at_ns, body })));
            }
            Message::Ended { job, outcome, reason } => {
                if self.jobs.remove(&job).is_none() {
                    return Err(misbehaved(format!("it ended job {job}, which does not exist")));
                }
                self.link.measuring(now, self.jobs.len());
                self.link.put(Output::Ended(JobEnd { job, outcome, reason }));
            }
            other => return Err(misbehaved(format!("'{}' at the wrong time", other.name()))),
        }
        Ok(())
    }

    /// Advances a job, unless it was stopped.
    fn advance(&mut self, job: u32, from: fn(&JobState) -> bool, to: JobState) -> Result<(), PeerError> {
        match self.jobs.get_mut(&job) {
            Some(JobState::Ending(_)) => Ok(()),
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
            SettingsRequest::Check(order) => Message::CheckSettings(order),
            SettingsRequest::Apply(order) => Message::ApplySettings(order),
            SettingsRequest::Restore => Message::RestoreSettings,
        };
        self.link.send(now, &message)
    }

    fn prepare(&mut self, now: Timestamp, job: Box<Job>) -> Result<(), PeerError> {
        self.jobs.insert(job.job, JobState::Asked(now + ANSWER_TIMEOUT));
        self.link.measuring(now, self.jobs.len());
        self.link.send(now, &Message::Prepare(job))
    }

    /// Sends a request of the coordinator's program.
    fn ask(&mut self, now: Timestamp, input: Input<'_>) -> Result<(), PeerError> {
        let message = match input {
            Input::Ping => {
                self.pings += 1;
                self.asked = Some((self.pings, now + ANSWER_TIMEOUT));
                Message::Ping { number: self.pings, sent_ns: now }
            }
            Input::Hold { expected } => {
                (self.hold, self.holding) = (Some(now + ANSWER_TIMEOUT), true);
                Message::Hold { expected_ns: expected }
            }
            Input::Release => {
                (self.hold, self.holding) = (None, false);
                Message::Release
            }
            Input::Settings(request) => return self.ask_settings(now, request),
            Input::Prepare(job) => return self.prepare(now, job),
            Input::Start { job, at } => {
                let Some(step @ JobState::Ready) = self.jobs.get_mut(&job) else {
                    return Err(PeerError::Local { why: format!("job {job} is not ready to start") });
                };
                *step = JobState::Measuring;
                Message::Start { job, at_ns: at }
            }
            Input::Stop { job } => {
                let Some(step) = self.jobs.get_mut(&job) else { return Ok(()) };
                if matches!(step, JobState::Ending(_)) {
                    return Ok(());
                }
                *step = JobState::Ending(now + END_TIMEOUT);
                Message::Stop { job }
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

impl Dialogue for CoordinatorEnd {
    fn input(&mut self, now: Timestamp, input: Input<'_>) -> Result<(), PeerError> {
        match input {
            _ if self.state == State::Over => {}
            Input::Bytes(bytes) => {
                self.link.bytes(now, bytes)?;
                while let Some(message) = self.link.pull()? {
                    self.message(now, message)?;
                }
            }
            Input::Closed => return Err(self.link.closed()),
            Input::Tick => self.tick(now)?,
            Input::GiveUp(why) => {
                self.link.send(now, &Message::Failed { why: why.into() })?;
                self.state = State::Over;
                self.link.put(Output::Done);
            }
            Input::Finish => {
                self.link.send(now, &Message::Bye)?;
                self.state = State::Over;
                self.link.put(Output::Done);
            }
            asked if self.state == State::Served => self.ask(now, asked)?,
            _ => return Err(PeerError::Local { why: "the agent was asked before it answered".to_owned() }),
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
        let jobs = self.jobs.values().filter_map(|step| step.until()).map(|(until, ..)| until).min();
        let asked = earliest(earliest(self.asked.map(|(_, by)| by), self.hold), self.settings);
        earliest(self.link.deadline(), earliest(jobs, asked))
    }
}
