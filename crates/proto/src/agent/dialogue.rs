//! The contract of both ends, and what they tell each other.
//!
//! As for every protocol here: *after every input, drain `output` until `None`; then wait for the next input or for
//! `deadline`, at which the input is [`Input::Tick`].*

use linerate_model::{Body, ForeignText, HostInfo, Outcome, TestSpec, World};
use linerate_units::{Span, Timestamp};
use serde::{Deserialize, Serialize};

use super::settings::{SettingsAnswer, SettingsRequest};
use crate::error::PeerError;
use crate::session::QueuePosition;
use crate::ticket::Ticket;

/// Most jobs of one coordinator at one agent at a time.
pub const MAX_JOBS: usize = 64;

/// One end of the dialogue.
pub trait Dialogue: Send {
    /// Takes in what happened at `now`.
    ///
    /// # Errors
    /// The other end broke the protocol or gave up; the dialogue is over.
    fn input(&mut self, now: Timestamp, input: Input<'_>) -> Result<(), PeerError>;

    /// The next thing to do; absent when there is nothing to do before the next input.
    fn output(&mut self) -> Option<Output>;

    /// When it wants a [`Input::Tick`] if nothing else happens; absent only when the dialogue is over.
    fn deadline(&self) -> Option<Timestamp>;
}

/// What happens to an end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// Bytes arrived.
    Bytes(&'a [u8]),
    /// The other end closed the connection.
    Closed,
    /// The deadline has passed.
    Tick,
    /// This end cannot go on, for this reason.
    GiveUp(String),
    /// Agent: what there is to know of it; the answer to [`Output::Known`].
    About(Box<About>),
    /// Agent: the place is not free yet.
    Waiting(QueuePosition),
    /// Agent: the place is the coordinator's.
    Held(Ticket),
    /// Agent: the coordinator gets no place.
    NotHeld(String),
    /// Agent: what became of a request about settings.
    SettingsDone(Box<SettingsAnswer>),
    /// Agent: the job has begun; its own time counts from `epoch`.
    Accepted {
        /// The job.
        job: u32,
        /// On the agent's clock.
        epoch: Timestamp,
    },
    /// Agent: everything is open.
    Ready {
        /// The job.
        job: u32,
    },
    /// Agent: something happened in a job.
    Event(Box<JobEvent>),
    /// Agent: a job is over.
    Ended(JobEnd),
    /// Coordinator: ask about settings of the agent's host.
    Settings(SettingsRequest),
    /// Coordinator: ask for the agent's time.
    Ping,
    /// Coordinator: ask for a place in the agent's queue.
    Hold {
        /// How long it will be held, about.
        expected: Span,
    },
    /// Coordinator: give the place back.
    Release,
    /// Coordinator: have this prepared.
    Prepare(Box<Job>),
    /// Coordinator: begin.
    Start {
        /// The job.
        job: u32,
        /// When, on the agent's clock.
        at: Timestamp,
    },
    /// Coordinator: end early.
    Stop {
        /// The job.
        job: u32,
    },
    /// Coordinator: nothing more to ask.
    Finish,
}

/// What an end wants done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Write these bytes to the connection.
    Send(Vec<u8>),
    /// The dialogue is over, regularly, or with a refusal.
    Done,
    /// Agent: the coordinator has the token; answer with [`Input::About`].
    Known {
        /// What it calls itself.
        name: ForeignText,
    },
    /// Agent: turned away, for this reason.
    TurnedAway(ForeignText),
    /// Agent: the coordinator wants a place in the queue for about so long.
    Hold {
        /// About.
        expected: Span,
    },
    /// Agent: the coordinator needs the place no longer; what was set for it is put back first.
    Release,
    /// Agent: do this about settings of this host; answer with [`Input::SettingsDone`].
    Settings(SettingsRequest),
    /// Agent: begin this job.
    Prepare(Box<Job>),
    /// Agent: let the job begin to measure.
    Start {
        /// The job.
        job: u32,
        /// When, on the agent's clock.
        at: Timestamp,
    },
    /// Agent: end this job early.
    Stop {
        /// The job.
        job: u32,
    },
    /// Coordinator: the agent is one, has the token, and this is what it says of itself.
    Welcomed(Box<About>),
    /// Coordinator: the agent's time came.
    Pong(Exchange),
    /// Coordinator: the place is not free yet.
    Waiting(QueuePosition),
    /// Coordinator: the place is held.
    Held(Ticket),
    /// Coordinator: there will be no place, for this reason.
    NotHeld(ForeignText),
    /// Coordinator: what became of the request about settings.
    SettingsDone(Box<SettingsAnswer>),
    /// Coordinator: the job has begun; its own time counts from `epoch`.
    Accepted {
        /// The job.
        job: u32,
        /// On the agent's clock.
        epoch: Timestamp,
    },
    /// Coordinator: everything is open.
    Ready {
        /// The job.
        job: u32,
    },
    /// Coordinator: something happened in a job.
    Event(Box<JobEvent>),
    /// Coordinator: a job is over.
    Ended(JobEnd),
}

/// What an agent says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The host, with the interface that leads to the coordinator.
    pub host: HostInfo,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<World>,
    /// A random number of this server: tells two names of one server from two servers.
    pub identity: ForeignText,
    /// Longest run that it allows; absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<Span>,
    /// Congestion controls that its kernel has.
    pub congestion: Vec<ForeignText>,
    /// Interfaces that are up.
    pub interfaces: Vec<Interface>,
    /// Settings of its host that it can change and put back, by name; none for an agent that changes no settings.
    pub settings: Vec<ForeignText>,
    /// What its kernel lets this program do, in the kernel's words: `CAP_NET_ADMIN`, `MSG_ZEROCOPY (TCP)`.
    pub features: Vec<ForeignText>,
    /// Its clock source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<ForeignText>,
    /// Its wall clock when it said this, nanoseconds from the Unix epoch.
    pub wall_ns: u64,
}

/// An interface of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: ForeignText,
    /// Largest IP packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<ForeignText>,
}

/// A run that an agent shall carry out as the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Number, unique in the connection.
    pub job: u32,
    /// The server to measure to, as the agent reaches it.
    pub host: ForeignText,
    /// Its port; absent for the native protocol's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What it is to be shown; absent where no place is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Ticket>,
    /// What shall be measured.
    pub spec: TestSpec,
}

/// Something that happened in a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobEvent {
    /// The job.
    pub job: u32,
    /// 0 is the agent, 1 the server that it measures to.
    pub host: u16,
    /// Time since the job's epoch.
    pub at: Timestamp,
    /// What.
    pub body: Body,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// The job.
    pub job: u32,
    /// How.
    pub outcome: Outcome,
    /// Why, unless it was completed.
    pub reason: Option<ForeignText>,
}

/// A question for the time and its answer: T1 to T4 of RFC 5357, T2 and T3 on the agent's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When the question left.
    pub sent: Timestamp,
    /// When it came in.
    pub received: Timestamp,
    /// When the answer left.
    pub replied: Timestamp,
    /// When that came in.
    pub back: Timestamp,
}
