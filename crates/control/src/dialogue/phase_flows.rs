//! The flows of a phase, as their dialogue knows them.

use linerate_engine::FlowSetup;
use linerate_model::{Side, Transport};
use linerate_sock::Mono;

use super::own_or_shared::OwnOrSharedFlow;
use super::stream_watch::StreamWatch;

/// A flow of a dialogue.
pub(super) struct DialogueFlow {
    pub(super) handle: OwnOrSharedFlow,
    pub(super) about: FlowAbout,
    pub(super) done_reported: bool,
    pub(super) bytes_seen: u64,
    pub(super) streams: StreamWatch,
}

impl DialogueFlow {
    pub(super) fn new(handle: OwnOrSharedFlow, about: FlowAbout) -> Self {
        Self { handle, about, done_reported: false, bytes_seen: 0, streams: StreamWatch::new() }
    }
}

/// What a dialogue needs to know about a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowAbout {
    pub(super) side: Side,
    pub(super) transport: Transport,
    /// Whether it makes transactions.
    pub(super) transactions: bool,
}

impl FlowAbout {
    pub(super) fn of(setup: &FlowSetup) -> Self {
        let transactions = setup.transactions.is_some();
        Self { side: setup.side, transport: setup.transport, transactions }
    }
}

/// When the flows of a phase start.
#[derive(Debug, Default)]
pub(super) struct PhaseStart {
    /// When senders of this end start; absent for as soon as the session starts the flows.
    pub(super) planned: Option<Mono>,
    /// When the session started the flows and sent the start message to the peer.
    pub(super) start_sent: Option<Mono>,
    /// Whether the peer sends data.
    pub(super) peer_sends: bool,
    /// The latest start time among flows that have already ended.
    pub(super) ended: Option<Mono>,
}
