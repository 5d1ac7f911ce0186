//! The contract of every protocol dialogue.
//!
//! A session does no I/O and reads no clock. *After every input, drain `output` until `None`; then wait for the
//! next input, or for `deadline`, at which the input is [`SessionInput::Tick`].* The driver runs a session
//! over sockets, tests run two ends against each other in virtual time, and a fuzzer runs it with noise.

use linerate_model::flow::FlowId;
use linerate_model::{
    Caveat, CheckedSpec, Direction, FlowOutcome, ForeignText, HostInfo, Sample, Side, SideSettings,
    SpecError, Sweep, Tally,
};
use linerate_units::{Bytes, Span, Timestamp};

use crate::error::PeerError;
use crate::ticket::Ticket;

/// One end of a protocol dialogue.
pub trait Session: Send {
    /// Handles what happened at `now`.
    ///
    /// # Errors
    /// The peer broke the protocol or gave up; the session is over.
    fn input(&mut self, now: Timestamp, input: SessionInput<'_>) -> Result<(), PeerError>;

    /// The next action; absent if there is nothing to do before the next input.
    fn output(&mut self) -> Option<SessionOutput>;

    /// When the session needs a [`SessionInput::Tick`] if nothing else happens.
    fn deadline(&self) -> Option<Timestamp>;
}

/// What happens to a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionInput<'a> {
    /// Bytes arrived on the control connection.
    Bytes(&'a [u8]),
    /// The peer closed the control connection.
    Closed,
    /// The deadline has passed.
    Tick,
    /// Server: the client may begin.
    Admit(Box<Admission>),
    /// Server: the client has to wait.
    Wait(QueuePosition),
    /// Server: the client is refused.
    Refuse(String),
    /// Client: measure these flows now.
    Measure(Vec<FlowOrder>),
    /// Client: there is nothing more to measure; these are the results, which the server prints.
    Finish(Vec<FlowOutcome>),
    /// Every data socket of the phase is open.
    FlowsOpen,
    /// The data sockets could not be opened.
    FlowsFailed(String),
    /// Progress of the local receiver.
    Progress(Progress),
    /// Client: this trial of a sweep begins now.
    Trial(SweepTrial),
    /// Server: a trial is over.
    TrialCounted(TrialCount),
    /// Data of the running flows arrived: the peer is alive even if its control messages are late.
    Alive,
    /// Bytes of earlier messages have left, and more wait: the peer may not know yet that it is its turn.
    Delivering,
    /// The local sender has written everything.
    SenderDone {
        /// Number of the flow.
        flow: FlowId,
    },
    /// Samples of the local side.
    Samples {
        /// Number of the flow.
        flow: FlowId,
        /// Intervals, in order.
        samples: Vec<Sample>,
    },
    /// The local side of a flow has closed its sockets.
    FlowEnded(Box<Ended>),
    /// Client: end the running flows early, keeping what was measured.
    Stop,
}

/// A request of a session to its driver.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionOutput {
    /// Send these bytes on the control connection.
    Send(Vec<u8>),
    /// Server: a client requests a measurement; answer with `Admit`, `Wait` or `Refuse`.
    Asked(Box<Hello>),
    /// Client: the server is ready for phases.
    Welcomed(Box<Welcome>),
    /// Client: the server is busy.
    Queued(QueuePosition),
    /// Open (client) or await (server) the data sockets of these flows.
    Open(Vec<FlowOrder>),
    /// Start to send data.
    Start,
    /// Stop writing; the flows end as if their time were over.
    StopWriting,
    /// The peer's sender of this flow has written everything.
    PeerSenderDone {
        /// Number of the flow.
        flow: FlowId,
    },
    /// The drain is over: close the flows with what has arrived.
    Cut,
    /// Progress of the peer's receiver.
    PeerProgress(Progress),
    /// Server: exchange these messages; the client begins immediately.
    Trial(SweepTrial),
    /// Client: the server's counts of the running trial.
    PeerTrial(TrialCount),
    /// Samples of the peer's side.
    PeerSamples {
        /// Number of the flow.
        flow: FlowId,
        /// Intervals, in order.
        samples: Vec<Sample>,
    },
    /// The peer's side of a flow has ended.
    PeerEnded(Box<Ended>),
    /// Both sides of every flow of the phase have ended.
    PhaseDone,
    /// Server: the results, as the client tells them at the end.
    PeerResults(Vec<FlowOutcome>),
    /// The dialogue has ended normally.
    Done,
}

/// A flow to be measured, as both ends understand it.
///
/// It always conforms to its test: it is not decoded from the wire, but created by [`FlowOrder::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct FlowOrder {
    flow: FlowId,
    direction: Direction,
    length_bytes: Bytes,
}

impl FlowOrder {
    /// Flow number `flow` of a run, with blocks or datagrams of `length`. In a sweep, the length is that of the
    /// longest message.
    ///
    /// # Errors
    /// The test does not allow blocks of this length.
    pub fn new(
        spec: &CheckedSpec,
        flow: FlowId,
        direction: Direction,
        length: Bytes,
    ) -> Result<Self, SpecError> {
        match &spec.sweep {
            None => spec.check_length(length)?,
            Some(sweep) if (1..=sweep.longest_message().get()).contains(&length.get()) => {}
            Some(sweep) => {
                let trouble = format!("messages of {} do not match the request", length.exact());
                let remedy = format!("give messages of at most {}", sweep.longest_message().exact());
                return Err(SpecError { knob: "--to", trouble, remedy });
            }
        }
        Ok(Self { flow, direction, length_bytes: length })
    }

    /// Number of the flow in its run.
    #[must_use]
    pub const fn flow(&self) -> FlowId {
        self.flow
    }

    /// The direction as seen from the client.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Payload of one datagram or block, resolved by the client.
    #[must_use]
    pub const fn length(&self) -> Bytes {
        self.length_bytes
    }
}

/// The greeting of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Hello {
    /// The client's host.
    pub host: HostInfo,
    /// What to measure.
    pub spec: CheckedSpec,
    /// The ticket for the place that its coordinator holds in the server's queue; absent for an independent
    /// run.
    pub ticket: Option<Ticket>,
}

/// The answer of a server that admits the client.
#[derive(Debug, Clone, PartialEq)]
pub struct Welcome {
    /// The server's host.
    pub host: HostInfo,
    /// Identifies the data connections and datagrams of this run.
    pub cookie: [u8; 16],
    /// Number of other runs on the server at this moment.
    pub concurrent_runs: u32,
    /// What both ends can do, by the names in the protocol.
    pub capabilities: Vec<ForeignText>,
}

/// The decision of a server that admits a client.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The server's host.
    pub host: HostInfo,
    /// An unguessable number for this run.
    pub cookie: [u8; 16],
    /// Number of other runs at this moment.
    pub concurrent_runs: u32,
}

/// A place in the server's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueuePosition {
    /// Position in the queue; 1 is next.
    pub position: u32,
    /// Longest expected wait.
    pub wait_ns: Span,
}

/// The counts of one side of a running flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Number of the flow.
    pub flow: FlowId,
    /// The side that counted.
    pub side: Side,
    /// Bytes read (written) since the start of the flow.
    pub bytes: Bytes,
    /// Time since the first read (write).
    pub elapsed_ns: Span,
    /// The sender's smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<Span>,
    /// Segments retransmitted so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}

/// A trial: messages of one size over the only stream of a sweep; the client chooses their number.
///
/// First one byte goes to the server and one comes back, so that both ends are ready. Then the messages are
/// exchanged in the mode of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SweepTrial {
    /// Number of the trial in its run, from 0.
    pub trial: u32,
    /// Bytes of each message, 1 to 64 MiB.
    pub message_bytes: Bytes,
    /// Messages in each direction that is used, 1 to 100,000.
    pub repeats: u32,
    /// Timeout after which both ends abandon the trial.
    pub timeout_ns: Span,
}

impl SweepTrial {
    /// Most messages of a trial.
    pub const MAX_REPEATS: u32 = 100_000;
    /// Longest timeout of a trial.
    pub const MAX_TRIAL_WAIT: Span = Span::from_secs(600);

    /// Whether both ends can execute it as a part of this sweep.
    #[must_use]
    pub fn is_sound(&self, series: &Sweep) -> bool {
        (1..=series.longest_message().get()).contains(&self.message_bytes.get())
            && (1..=Self::MAX_REPEATS).contains(&self.repeats)
            && self.timeout_ns <= Self::MAX_TRIAL_WAIT
    }
}

/// The counts of one end for a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TrialCount {
    /// Number of the trial.
    pub trial: u32,
    /// Payload read, in whole messages.
    #[serde(default)]
    pub read_bytes: Bytes,
    /// Payload written, in whole messages.
    #[serde(default)]
    pub written_bytes: Bytes,
    /// Time from before the first call until after the last.
    #[serde(default)]
    pub elapsed_ns: Span,
    /// The part of that time until the first message was complete (in both directions if both ends send).
    #[serde(default)]
    pub first_ns: Span,
    /// Bytes of later messages that had already arrived, and waited to be read, when the first message was
    /// complete.
    #[serde(default)]
    pub waiting_bytes: Bytes,
    /// For messages that arrived in pieces: the bytes after the first piece of each.
    #[serde(default)]
    pub arrived_bytes: Bytes,
    /// The time in which those bytes arrived.
    #[serde(default)]
    pub arriving_ns: Span,
    /// Why the trial could not be finished; the counts are 0 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ForeignText>,
}

/// The final report of one side of a flow.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ended {
    /// Number of the flow.
    pub flow: FlowId,
    /// The side.
    pub side: Side,
    /// The settings of its sockets.
    #[serde(default)]
    pub settings: SideSettings,
    /// Its counts.
    pub tally: Tally,
    /// What weakens the result.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}
