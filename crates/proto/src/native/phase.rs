//! The flows of one phase, from the order to the last word of both sides.

use std::collections::BTreeSet;

use linerate_model::{Direction, Side};

use crate::PeerError;
use crate::session::FlowOrder;

/// What still has to happen before a phase is over.
#[derive(Debug, Default)]
pub(super) struct Phase {
    flows: Vec<FlowOrder>,
    local_open: BTreeSet<u16>,
    peer_ready: bool,
    senders: BTreeSet<u16>,
    local_running: BTreeSet<u16>,
    peer_running: BTreeSet<u16>,
}

impl Phase {
    pub(super) fn new(flows: Vec<FlowOrder>) -> Self {
        let numbers: BTreeSet<u16> = flows.iter().map(|flow| flow.flow).collect();
        Self {
            local_open: BTreeSet::new(),
            peer_ready: false,
            senders: numbers.clone(),
            local_running: numbers.clone(),
            peer_running: numbers,
            flows,
        }
    }

    pub(super) fn flows(&self) -> &[FlowOrder] {
        &self.flows
    }

    /// Which side this end is in a flow.
    pub(super) fn side(&self, flow: u16, client: bool) -> Option<Side> {
        let order = self.flows.iter().find(|order| order.flow == flow)?;
        let sends = (order.direction == Direction::Upload) == client;
        Some(if sends { Side::Sender } else { Side::Receiver })
    }

    pub(super) fn local_opened(&mut self) {
        self.local_open = self.flows.iter().map(|flow| flow.flow).collect();
    }

    pub(super) fn peer_opened(&mut self) {
        self.peer_ready = true;
    }

    pub(super) fn peer_is_open(&self) -> bool {
        self.peer_ready
    }

    pub(super) fn all_open(&self) -> bool {
        self.peer_ready && self.local_open.len() == self.flows.len()
    }

    /// A sender has written everything; true when it was the last one.
    pub(super) fn sender_done(&mut self, flow: u16) -> bool {
        self.senders.remove(&flow) && self.senders.is_empty()
    }

    pub(super) fn local_ended(&mut self, flow: u16) {
        self.senders.remove(&flow);
        self.local_running.remove(&flow);
    }

    /// The peer's last word on a flow.
    pub(super) fn peer_ended(&mut self, flow: u16) -> Result<(), PeerError> {
        self.senders.remove(&flow);
        if self.peer_running.remove(&flow) {
            Ok(())
        } else {
            Err(PeerError::Misbehaved { what: format!("it ended flow {flow}, which does not run") })
        }
    }

    pub(super) fn local_over(&self) -> bool {
        self.local_running.is_empty()
    }

    pub(super) fn over(&self) -> bool {
        self.local_running.is_empty() && self.peer_running.is_empty()
    }
}
