//! The contract of every protocol dialogue.
//!
//! A session does no I/O and reads no clock. *After every input, drain `output` until `None`; then wait for the next
//! input or for `deadline`, at which the input is [`Input::Tick`].* The driver runs it over sockets, the tests run two
//! ends against each other in virtual time, a fuzzer runs it with noise.

use linerate_model::{
    Caveat, CheckedSpec, Direction, ForeignText, HostInfo, Sample, Side, SideSettings, SpecError, Sweep,
    Tally,
};
use linerate_units::{Bytes, Span, Timestamp};

use crate::error::PeerError;
use crate::ticket::Ticket;

/// One end of a protocol dialogue.
pub trait Session: Send {
    /// Takes in what happened at `now`.
    ///
    /// # Errors
    /// The peer broke the protocol or gave up; the session is over.
    fn input(&mut self, now: Timestamp, input: Input<'_>) -> Result<(), PeerError>;

    /// The next thing to do; absent when there is nothing to do before the next input.
    fn output(&mut self) -> Option<Output>;

    /// When the session wants a [`Input::Tick`] if nothing else happens.
    fn deadline(&self) -> Option<Timestamp>;
}

/// What happens to a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input<'a> {
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
    /// Server: the client is turned away.
    Refuse(String),
    /// Client: measure these flows now.
    Measure(Vec<FlowOrder>),
    /// Client: nothing more to measure.
    Finish,
    /// Every data socket of the phase is open.
    FlowsOpen,
    /// The data sockets could not be opened.
    FlowsFailed(String),
    /// The local receiver has counted.
    Progress(Progress),
    /// Client: this trial of a series begins now.
    Trial(Trial),
    /// Server: a trial is over.
    TrialCounted(TrialCount),
    /// Data of the running flows arrived: the peer is alive even if its control messages are late.
    Alive,
    /// The local sender has written everything.
    SenderDone {
        /// The flow.
        flow: u16,
    },
    /// Samples of the local side.
    Samples {
        /// The flow.
        flow: u16,
        /// Intervals, in order.
        samples: Vec<Sample>,
    },
    /// The local side of a flow has closed its sockets.
    FlowEnded(Box<Ended>),
    /// Client: end the running flows early, keeping what was measured.
    Stop,
}

/// What a session wants done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Write these bytes to the control connection.
    Send(Vec<u8>),
    /// Server: a client asks to be measured; answer with `Admit`, `Wait` or `Refuse`.
    Asked(Box<Hello>),
    /// Client: the server is ready for phases.
    Welcomed(Box<Welcome>),
    /// Client: the server is busy.
    Queued(QueuePosition),
    /// Open (client) or await (server) the data sockets of these flows.
    Open(Vec<FlowOrder>),
    /// Start moving data.
    Start,
    /// Stop writing; the flows end as if their time was over.
    StopWriting,
    /// The peer's sender of this flow has written everything.
    PeerSenderDone {
        /// The flow.
        flow: u16,
    },
    /// The drain is over: close with what has arrived.
    Cut,
    /// What the peer's receiver has counted so far.
    PeerProgress(Progress),
    /// Server: exchange these messages, which the client begins at once.
    Trial(Trial),
    /// Client: what the server counted of the trial under way.
    PeerTrial(TrialCount),
    /// Samples of the peer's side.
    PeerSamples {
        /// The flow.
        flow: u16,
        /// Intervals, in order.
        samples: Vec<Sample>,
    },
    /// The peer's side of a flow has ended.
    PeerEnded(Box<Ended>),
    /// Both sides of every flow of the phase have ended.
    PhaseDone,
    /// The dialogue is over, regularly.
    Done,
}

/// A flow to be measured, in words that both ends understand.
///
/// There is none that its test does not allow: it is not read from the wire, but made by [`FlowOrder::new`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct FlowOrder {
    flow: u16,
    direction: Direction,
    length_bytes: Bytes,
}

impl FlowOrder {
    /// Flow `flow` of a run, with blocks or datagrams of `length`; of a series the length of its longest message.
    ///
    /// # Errors
    /// The test does not allow such blocks.
    pub fn new(
        spec: &CheckedSpec,
        flow: u16,
        direction: Direction,
        length: Bytes,
    ) -> Result<Self, SpecError> {
        match &spec.sweep {
            None => spec.traffic.check_length(length)?,
            Some(sweep) if (1..=sweep.longest_message().get()).contains(&length.get()) => {}
            Some(sweep) => {
                let trouble = format!("messages of {} were not asked for", length.exact());
                let remedy = format!("give messages of at most {}", sweep.longest_message().exact());
                return Err(SpecError { knob: "--to", trouble, remedy });
            }
        }
        Ok(Self { flow, direction, length_bytes: length })
    }

    /// Number of the flow in its run.
    #[must_use]
    pub const fn flow(&self) -> u16 {
        self.flow
    }

    /// Which way, seen from the client.
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

/// What a client says first.
#[derive(Debug, Clone, PartialEq)]
pub struct Hello {
    /// The client's host.
    pub host: HostInfo,
    /// What shall be measured.
    pub spec: CheckedSpec,
    /// The place of its coordinator in the server's queue, for a run that is one of several.
    pub ticket: Option<Ticket>,
}

/// What a server answers when the client may begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Welcome {
    /// The server's host.
    pub host: HostInfo,
    /// Proves to data connections and datagrams that they belong to this run.
    pub cookie: [u8; 16],
    /// Other runs on the server at this moment.
    pub neighbours: u32,
    /// What both ends can do, by the protocol's names.
    pub capabilities: Vec<ForeignText>,
}

/// What the server decides when it lets a client in.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The server's host.
    pub host: HostInfo,
    /// An unguessable number for this run.
    pub cookie: [u8; 16],
    /// Other runs at this moment.
    pub neighbours: u32,
}

/// A place in the server's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct QueuePosition {
    /// 1 is next.
    pub place: u32,
    /// Longest expected wait.
    pub wait_ns: Span,
}

/// A receiver's count while the flow runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// The flow.
    pub flow: u16,
    /// Which side counted.
    pub side: Side,
    /// Bytes read (written) since the start of the flow.
    pub bytes: Bytes,
    /// Time since the first read (write).
    pub elapsed_ns: Span,
    /// The sender's smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<Span>,
    /// Segments sent again so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
}

/// Messages of one size, as many as the client says, over the only stream of a series.
///
/// First one byte goes to the server and one comes back, so that both ends are there; then the messages, in the way
/// that the specification says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trial {
    /// Number of the trial in its run, from 0.
    pub trial: u32,
    /// Bytes of each message, 1 to 64 MiB.
    pub message_bytes: Bytes,
    /// Messages in each direction that has any, 1 to 100,000.
    pub repeats: u32,
    /// Time after which both ends give it up.
    pub patience_ns: Span,
}

impl Trial {
    /// Most messages of a trial.
    pub const MAX_REPEATS: u32 = 100_000;
    /// The longest that a trial is waited for.
    pub const MAX_TRIAL_WAIT: Span = Span::from_secs(600);

    /// Whether both ends can carry it out, as a part of this series.
    #[must_use]
    pub fn is_sound(&self, series: &Sweep) -> bool {
        (1..=series.longest_message().get()).contains(&self.message_bytes.get())
            && (1..=Self::MAX_REPEATS).contains(&self.repeats)
            && self.patience_ns <= Self::MAX_TRIAL_WAIT
    }
}

/// What one end counted of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TrialCount {
    /// Number of the trial.
    pub trial: u32,
    /// Payload read, whole messages.
    #[serde(default)]
    pub read_bytes: Bytes,
    /// Payload written, whole messages.
    #[serde(default)]
    pub written_bytes: Bytes,
    /// From before the first call to after the last.
    #[serde(default)]
    pub elapsed_ns: Span,
    /// Of that, until the first message had gone or come (both ways, where both ends send).
    #[serde(default)]
    pub first_ns: Span,
    /// Bytes that had arrived already when the first message was complete: of its successors, which waited to be read.
    #[serde(default)]
    pub waiting_bytes: Bytes,
    /// Of messages that arrived in pieces, the bytes after the first piece of each.
    #[serde(default)]
    pub arrived_bytes: Bytes,
    /// The time in which those arrived.
    #[serde(default)]
    pub arriving_ns: Span,
    /// Why the trial could not be finished; the counts are then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ForeignText>,
}

/// One side's final word on a flow.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ended {
    /// The flow.
    pub flow: u16,
    /// Which end.
    pub side: Side,
    /// What its sockets were set to.
    #[serde(default)]
    pub settings: SideSettings,
    /// What it counted.
    pub tally: Tally,
    /// What weakens it.
    #[serde(default)]
    pub caveats: Vec<Caveat>,
}
