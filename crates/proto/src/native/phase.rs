//! The flows of one phase, from the request to the final reports of both sides.

use std::collections::BTreeSet;

use linerate_model::flow::FlowId;
use linerate_model::{CheckedSpec, Direction, Sample, Side};

use super::message::AskedFlow;
use crate::PeerError;
use crate::session::{FlowOrder, Progress, SessionOutput};

/// The phases of a run by its specification, and which of them comes next.
#[derive(Debug, Default)]
pub(super) struct Phases {
    spec: CheckedSpec,
    begun: usize,
    numbers: BTreeSet<FlowId>,
}

impl Phases {
    pub(super) fn of(spec: CheckedSpec) -> Self {
        Self { spec, ..Self::default() }
    }

    pub(super) fn spec(&self) -> &CheckedSpec {
        &self.spec
    }

    /// The flows of the next phase, if the requested ones match the specification.
    pub(super) fn next(&mut self, asked: &[AskedFlow]) -> Result<Vec<FlowOrder>, PeerError> {
        let misbehaved = |what: String| PeerError::Misbehaved { what: what.into() };
        let phases = self.spec.phases();
        let directions: Vec<Direction> = asked.iter().map(|flow| flow.direction).collect();
        if phases.get(self.begun) != Some(&directions) {
            let number = self.begun + 1;
            return Err(misbehaved(format!(
                "phase {number} of {} flow(s) that were not requested",
                asked.len()
            )));
        }
        let mut orders = Vec::with_capacity(asked.len());
        for AskedFlow { flow, direction, length_bytes } in asked {
            if !self.numbers.insert(*flow) {
                return Err(misbehaved(format!("two flows with number {flow}")));
            }
            let order = FlowOrder::new(&self.spec, *flow, *direction, *length_bytes);
            orders.push(order.map_err(|error| misbehaved(format!("invalid request: {error}")))?);
        }
        self.begun += 1;
        Ok(orders)
    }

    /// Number of flows in the phases so far.
    pub(super) fn flows(&self) -> usize {
        self.numbers.len()
    }
}

/// What is left to happen before a phase is over.
#[derive(Debug, Default)]
pub(super) struct Phase {
    flows: Vec<FlowOrder>,
    local_open: BTreeSet<FlowId>,
    peer_ready: bool,
    senders: BTreeSet<FlowId>,
    local_running: BTreeSet<FlowId>,
    peer_running: BTreeSet<FlowId>,
    stopped: bool,
    cut: bool,
}

impl Phase {
    pub(super) fn new(flows: Vec<FlowOrder>) -> Self {
        let numbers: BTreeSet<FlowId> = flows.iter().map(FlowOrder::flow).collect();
        Self {
            local_open: BTreeSet::new(),
            peer_ready: false,
            senders: numbers.clone(),
            local_running: numbers.clone(),
            peer_running: numbers,
            flows,
            stopped: false,
            cut: false,
        }
    }

    /// Notes the peer's stop message; true for the first one.
    pub(super) fn stop(&mut self) -> bool {
        !std::mem::replace(&mut self.stopped, true)
    }

    /// Notes the peer's cut message; true for the first one.
    pub(super) fn cut(&mut self) -> bool {
        !std::mem::replace(&mut self.cut, true)
    }

    /// Checks and returns the progress of the peer's receiver.
    pub(super) fn peer_progress(&self, progress: Progress) -> Result<SessionOutput, PeerError> {
        self.check(progress.flow)?;
        Ok(SessionOutput::PeerProgress(progress))
    }

    /// Checks and returns samples of the peer's side.
    pub(super) fn peer_samples(
        &self,
        flow: FlowId,
        samples: Vec<Sample>,
    ) -> Result<SessionOutput, PeerError> {
        self.check(flow)?;
        Ok(SessionOutput::PeerSamples { flow, samples })
    }

    /// Checks that the flow in a message of the peer exists.
    pub(super) fn check(&self, flow: FlowId) -> Result<(), PeerError> {
        if self.flows.iter().any(|order| order.flow() == flow) {
            return Ok(());
        }
        Err(PeerError::Misbehaved { what: format!("it named flow {flow}, which does not exist").into() })
    }

    /// Whether the sender of this flow has not reported its end yet.
    pub(super) fn sends(&self, flow: FlowId) -> bool {
        self.senders.contains(&flow)
    }

    pub(super) fn flows(&self) -> &[FlowOrder] {
        &self.flows
    }

    /// The side of this end in a flow.
    pub(super) fn side(&self, flow: FlowId, client: bool) -> Option<Side> {
        let order = self.flows.iter().find(|order| order.flow() == flow)?;
        let sends = (order.direction() == Direction::Upload) == client;
        Some(if sends { Side::Sender } else { Side::Receiver })
    }

    pub(super) fn local_opened(&mut self) {
        self.local_open = self.flows.iter().map(FlowOrder::flow).collect();
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

    /// Notes that a sender has written everything; true if it was the last one.
    pub(super) fn sender_done(&mut self, flow: FlowId) -> bool {
        self.senders.remove(&flow) && self.senders.is_empty()
    }

    pub(super) fn local_ended(&mut self, flow: FlowId) {
        self.senders.remove(&flow);
        self.local_running.remove(&flow);
    }

    /// Notes the peer's final report of a flow.
    pub(super) fn peer_ended(&mut self, flow: FlowId) -> Result<(), PeerError> {
        self.senders.remove(&flow);
        if self.peer_running.remove(&flow) {
            Ok(())
        } else {
            Err(PeerError::Misbehaved { what: format!("it ended flow {flow}, which is not running").into() })
        }
    }

    pub(super) fn local_over(&self) -> bool {
        self.local_running.is_empty()
    }

    pub(super) fn over(&self) -> bool {
        self.local_running.is_empty() && self.peer_running.is_empty()
    }
}
