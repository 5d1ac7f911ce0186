//! The flows of a stand-in, which the engine executes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use linerate_compat::stand_in::{FlowCounts, FlowId, FlowTask, Link, RunId, Stop, SystemError};
use linerate_engine::{
    EngineError, FlowHandle, FlowProgress, FlowReport, FlowSetup, Sockets, start, update_sender,
};
use linerate_model::{Sample, Side, SideSettings};
use linerate_sock::Mono;
use linerate_sock::poll::{Interest, Poller};

use super::driver_event::{own_reason, reason_of};
use super::links::Links;
use crate::memory::Loan;

/// Tokens of the flows' wakers, above those of links.
const FIRST_FLOW_TOKEN: u64 = 1 << 40;

/// The flows of a stand-in.
#[derive(Debug, Default)]
pub(super) struct Flows {
    running: BTreeMap<FlowId, RunningFlow>,
    /// Flows that have ended and were not removed.
    over: BTreeMap<FlowId, EndedFlow>,
}

/// A flow that has ended. The kernel continues to retransmit what a sender has written.
#[derive(Debug)]
struct EndedFlow {
    counts: FlowCounts,
    /// The connections of a sender: link, addresses, and the kernel's count of retransmitted segments before the
    /// flow.
    connections: Vec<(Link, LinkAddresses, u64)>,
}

type LinkAddresses = Option<(SocketAddr, Option<SocketAddr>)>;

impl EndedFlow {
    fn new(report: &FlowReport, used: &[Link], links: &Links) -> Self {
        let of = |(link, before): (&Link, &u64)| (*link, links.ends(*link), *before);
        let connections = used.iter().zip(&report.retransmitted_before).map(of).collect();
        Self { counts: report.counts.clone(), connections }
    }

    /// Reads the kernel's counts of the connections that are still open.
    fn update(&mut self, links: &Links) {
        for (stream, (link, addresses, before)) in self.counts.streams.iter_mut().zip(&self.connections) {
            if let Some(socket) = links.stream(*link).filter(|_| links.ends(*link) == *addresses) {
                update_sender(stream, socket, *before);
            }
        }
        let Some(tally) = self.counts.tally.as_mut().filter(|_| !self.connections.is_empty()) else { return };
        tally.retransmits = self.counts.streams.iter().map(|stream| stream.retransmits).sum();
        for (counted, stream) in tally.streams.iter_mut().zip(&self.counts.streams) {
            counted.retransmits = stream.retransmits;
        }
    }
}

#[derive(Debug)]
struct RunningFlow {
    handle: FlowHandle,
    run: RunId,
    side: Side,
    links: Vec<Link>,
    written_reported: bool,
    /// The memory reserved for it, in an embedded server.
    _loan: Option<Loan>,
}

/// The state of a running flow after a poll.
#[derive(Debug)]
pub(super) enum FlowPoll {
    Nothing,
    Written,
    Ended(Box<Over>),
}

/// A flow that has ended.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) run: RunId,
    pub(super) side: Side,
    pub(super) links: Vec<Link>,
    /// Samples that were not taken before its end.
    pub(super) samples: Vec<Sample>,
    pub(super) report: FlowReport,
}

/// Samples and progress of a running flow for its log.
#[derive(Debug)]
pub(super) struct FlowInterim {
    pub(super) run: RunId,
    pub(super) flow: FlowId,
    pub(super) side: Side,
    pub(super) samples: Vec<Sample>,
    pub(super) progress: FlowProgress,
}

/// Starts a flow and registers its waker with the poller.
fn watched(
    setup: FlowSetup,
    sockets: Sockets,
    epoch: Mono,
    poller: &Poller,
) -> Result<FlowHandle, SystemError> {
    let token = FIRST_FLOW_TOKEN + u64::from(setup.flow.0);
    let handle = start(setup, sockets, epoch).map_err(|error| match &error {
        EngineError::Sock(source) | EngineError::Thread(source) => reason_of(source),
        other => own_reason(other.to_string()),
    })?;
    poller.add(handle.waker(), token, Interest::READ).map_err(|error| reason_of(&error))?;
    Ok(handle)
}

/// The flow whose waker has this token.
pub(super) fn flow_of(token: u64) -> Option<FlowId> {
    token.checked_sub(FIRST_FLOW_TOKEN).and_then(|flow| u16::try_from(flow).ok()).map(FlowId)
}

impl Flows {
    /// Passes the links of a flow to the engine and starts it.
    pub(super) fn start(
        &mut self,
        task: &FlowTask,
        setup: FlowSetup,
        loan: Option<Loan>,
        links: &mut Links,
        epoch: Mono,
    ) -> Result<SideSettings, SystemError> {
        if self.running.contains_key(&task.flow) {
            return Err(own_reason("there is a flow of this number"));
        }
        let sockets = links.lend(&task.links)?;
        let handle = match watched(setup, sockets, epoch, links.poller()) {
            Ok(handle) => handle,
            Err(reason) => {
                links.restore(&task.links);
                return Err(reason);
            }
        };
        let settings = handle.settings().clone();
        let (run, side, links) = (task.run, task.side, task.links.clone());
        self.over.remove(&task.flow);
        self.running.insert(
            task.flow,
            RunningFlow { handle, run, side, links, written_reported: false, _loan: loan },
        );
        Ok(settings)
    }

    pub(super) fn any(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn stop(&self, flow: FlowId, how: Stop) {
        if let Some(running) = self.running.get(&flow) {
            running.handle.stop(how);
        }
    }

    /// Writes bytes between two blocks of a sender.
    pub(super) fn insert(&self, flow: FlowId, bytes: &[u8]) {
        if let Some(running) = self.running.get(&flow) {
            running.handle.insert(bytes);
        }
    }

    /// Aborts every flow of a run.
    pub(super) fn abort(&self, run: RunId) {
        self.running.values().filter(|flow| flow.run == run).for_each(|flow| flow.handle.stop(Stop::Abort));
    }

    /// Bytes that the running flows of a run have moved.
    pub(super) fn moved(&self, run: RunId) -> u64 {
        let of_run = self.running.values().filter(|flow| flow.run == run);
        of_run.map(|flow| flow.handle.progress().bytes.get()).fold(0, u64::saturating_add)
    }

    pub(super) fn remove(&mut self, flow: FlowId) {
        self.over.remove(&flow);
    }

    /// The counts of every flow, sorted by number.
    pub(super) fn counts(&mut self, links: &Links) -> Vec<FlowCounts> {
        self.over.values_mut().for_each(|ended| ended.update(links));
        let mut counts: Vec<_> = self.over.values().map(|ended| ended.counts.clone()).collect();
        counts.extend(self.running.values().map(|running| running.handle.counts()));
        counts.sort_by_key(|counts| counts.flow);
        counts
    }

    /// Checks a flow whose waker has fired.
    pub(super) fn poll_flow(&mut self, flow: FlowId, open_links: &Links) -> FlowPoll {
        let Some(running) = self.running.get_mut(&flow) else { return FlowPoll::Nothing };
        let _ = running.handle.waker().clear();
        let progress = running.handle.progress();
        if progress.finished_writing && !running.written_reported {
            running.written_reported = true;
            return FlowPoll::Written;
        }
        if !progress.ended {
            return FlowPoll::Nothing;
        }
        let Some(RunningFlow { handle, run, side, links, .. }) = self.running.remove(&flow) else {
            return FlowPoll::Nothing;
        };
        let _ = open_links.poller().remove(handle.waker());
        let samples = handle.new_samples();
        let report = handle.finish();
        self.over.insert(flow, EndedFlow::new(&report, &links, open_links));
        FlowPoll::Ended(Box::new(Over { run, side, links, samples, report }))
    }

    /// New samples and the progress of all running flows.
    pub(super) fn interim(&self) -> Vec<FlowInterim> {
        let of = |(flow, running): (&FlowId, &RunningFlow)| FlowInterim {
            run: running.run,
            flow: *flow,
            side: running.side,
            samples: running.handle.new_samples(),
            progress: running.handle.progress(),
        };
        self.running.iter().map(of).collect()
    }
}
