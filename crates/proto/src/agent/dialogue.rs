//! The contract of both ends, and their inputs and outputs.
//!
//! As for every protocol here: *after every input, drain `output` until `None`; then wait for the next input,
//! or for `deadline`, at which the input is [`AgentInput::Tick`].*

use linerate_model::{Body, Fingerprint, ForeignText, HostInfo, Outcome, TestSpec, World};
use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::settings::{SettingsAnswer, SettingsRequest};
use crate::error::PeerError;
use crate::session::QueuePosition;
use crate::ticket::Ticket;

/// Most concurrent jobs of one coordinator at one agent.
pub const MAX_JOBS: usize = 64;

/// One end of the dialogue.
pub trait AgentDialogue: Send {
    /// Handles what happened at `now`.
    ///
    /// # Errors
    /// The other end broke the protocol or gave up; the dialogue is over.
    fn input(&mut self, now: Timestamp, input: AgentInput<'_>) -> Result<(), PeerError>;

    /// The next action; absent if there is nothing to do before the next input.
    fn output(&mut self) -> Option<AgentOutput>;

    /// When it needs an [`AgentInput::Tick`] if nothing else happens; absent only if the dialogue is over.
    fn deadline(&self) -> Option<Timestamp>;
}

/// What happens to an end.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentInput<'a> {
    /// Bytes arrived.
    Bytes(&'a [u8]),
    /// The other end closed the connection.
    Closed,
    /// The deadline has passed.
    Tick,
    /// This end cannot continue, for this reason.
    GiveUp(String),
    /// Agent: its description; the answer to [`AgentOutput::Known`].
    About(Box<About>),
    /// Agent: the place is not free yet.
    Waiting(QueuePosition),
    /// Agent: the coordinator holds the place.
    Held(Ticket),
    /// Agent: the coordinator gets no place, for this reason.
    NotHeld(String),
    /// Agent: the result of a settings request.
    SettingsDone(Box<SettingsAnswer>),
    /// Agent: the job has begun; its own time counts from `epoch`.
    Accepted {
        /// Number of the job.
        job: u32,
        /// On the agent's clock.
        epoch: Timestamp,
    },
    /// Agent: the job has opened everything.
    Ready {
        /// Number of the job.
        job: u32,
    },
    /// Agent: an event of a job.
    Event(Box<JobEvent>),
    /// Agent: a job has ended.
    Ended(JobEnd),
    /// Coordinator: send a request about settings of the agent's host.
    Settings(SettingsRequest),
    /// Coordinator: request the agent's time.
    Ping,
    /// Coordinator: request a place in the agent's queue.
    Hold {
        /// Expected time for which it will be held.
        expected: Span,
    },
    /// Coordinator: release the place.
    Release,
    /// Coordinator: request the preparation of this job.
    Prepare(Box<Job>),
    /// Coordinator: start a job.
    Start {
        /// Number of the job.
        job: u32,
        /// Start time, on the agent's clock.
        at: Timestamp,
    },
    /// Coordinator: end a job early.
    Stop {
        /// Number of the job.
        job: u32,
    },
    /// Coordinator: end the dialogue.
    Finish,
}

/// A request of an end to its driver.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentOutput {
    /// Send these bytes on the connection.
    Send(Vec<u8>),
    /// The dialogue has ended, normally or with a refusal.
    Done,
    /// Agent: the coordinator has the token; answer with [`AgentInput::About`].
    Known {
        /// Name of the coordinator.
        name: ForeignText,
    },
    /// Agent: the coordinator was refused, for this reason.
    TurnedAway(ForeignText),
    /// Agent: the coordinator requests a place in the queue.
    Hold {
        /// Expected time for which it will be held.
        expected: Span,
    },
    /// Agent: the coordinator has released the place; its settings are restored first.
    Release,
    /// Agent: execute this request about settings of this host; answer with [`AgentInput::SettingsDone`].
    Settings(SettingsRequest),
    /// Agent: begin this job.
    Prepare(Box<Job>),
    /// Agent: start the measurement of this job.
    Start {
        /// Number of the job.
        job: u32,
        /// Start time, on the agent's clock.
        at: Timestamp,
    },
    /// Agent: end this job early.
    Stop {
        /// Number of the job.
        job: u32,
    },
    /// Coordinator: the agent has the token; its description.
    Welcomed(Box<About>),
    /// Coordinator: the result of a clock exchange.
    Pong(ClockExchange),
    /// Coordinator: the place is not free yet.
    Waiting(QueuePosition),
    /// Coordinator: the place is held.
    Held(Ticket),
    /// Coordinator: there is no place, for this reason.
    NotHeld(ForeignText),
    /// Coordinator: the result of a settings request.
    SettingsDone(Box<SettingsAnswer>),
    /// Coordinator: the job has begun; its own time counts from `epoch`.
    Accepted {
        /// Number of the job.
        job: u32,
        /// On the agent's clock.
        epoch: Timestamp,
    },
    /// Coordinator: the job has opened everything.
    Ready {
        /// Number of the job.
        job: u32,
    },
    /// Coordinator: an event of a job.
    Event(Box<JobEvent>),
    /// Coordinator: a job has ended.
    Ended(JobEnd),
}

/// The self-description of an agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The host, with the interface towards the coordinator.
    pub host: HostInfo,
    /// Whether it is a real host or in a lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<World>,
    /// A random number of this server; shows whether two names refer to the same server.
    pub identity: ForeignText,
    /// Longest run that it allows; absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<Span>,
    /// Congestion control algorithms of its kernel.
    pub congestion: Vec<ForeignText>,
    /// Interfaces that are up.
    pub interfaces: Vec<Interface>,
    /// Settings of its host that it can change and restore, by name; empty if it changes none.
    pub settings: Vec<ForeignText>,
    /// Kernel features available to this program, with the kernel's names: `CAP_NET_ADMIN`, `MSG_ZEROCOPY
    /// (TCP)`.
    pub features: Vec<ForeignText>,
    /// Its clock source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<ForeignText>,
    /// Its wall-clock time when it sent this, nanoseconds since the Unix epoch.
    pub wall_ns: u64,
    /// The fingerprint of its certificate; absent if its server has no TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Fingerprint>,
}

/// An interface of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: ForeignText,
    /// Largest IP packet, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<ForeignText>,
}

/// A run that an agent executes as the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Number of the job, unique within the connection.
    pub job: u32,
    /// The server to measure to, as the agent reaches it.
    pub host: ForeignText,
    /// Its port; absent for the default port of the native protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The ticket to present to it; absent if no place is held there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// The fingerprint of its certificate; absent for a control connection without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<Fingerprint>,
    /// What to measure.
    pub spec: TestSpec,
}

/// An event of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEvent {
    /// Number of the job.
    pub job: u32,
    /// Host of the event: 0 is the agent, 1 the server that it measures to.
    pub host: u16,
    /// Time since the job's epoch.
    pub at: Timestamp,
    /// The event.
    pub body: Body,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// Number of the job.
    pub job: u32,
    /// The outcome.
    pub outcome: Outcome,
    /// Why it did not complete; absent if it did.
    pub reason: Option<ForeignText>,
}

/// A clock exchange: T1 to T4 of RFC 5357, with T2 and T3 on the agent's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockExchange {
    /// T1: the request was sent.
    pub sent: Timestamp,
    /// T2: the request arrived.
    pub received: Timestamp,
    /// T3: the answer was sent.
    pub replied: Timestamp,
    /// T4: the answer arrived.
    pub back: Timestamp,
}
