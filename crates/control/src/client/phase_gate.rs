//! The synchronized start of a run in a group: it opens everything and then waits for its start time.

use linerate_sock::handle::AsFd;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use linerate_model::{Body, GroupStart};
use linerate_proto::Ticket;
use linerate_sock::poll::EventFd;
use linerate_sock::{Mono, clock};
use linerate_units::{Span, Timestamp};

use super::{ClientRun, POLL_INTERVAL};
use crate::error::ControlError;
use crate::log::Log;
use crate::multicast::MulticastSenders;

/// Spin instead of sleeping before the start: a thread that is already on a CPU starts on time however busy the
/// host is.
const SPIN_TIME: Duration = Duration::from_millis(1);

/// How long before the start a server that only receives gets the start message, so that only the senders are
/// busy at the start.
const SERVER_LEAD: Duration = Duration::from_millis(100);

/// A gate at which a run waits before its first phase.
pub(crate) struct PhaseGate {
    ticket: Option<Ticket>,
    senders: Arc<MulticastSenders>,
    ready: Box<dyn Fn() + Send + Sync>,
    /// Start time on the monotonic clock; 0 while unknown.
    opens: AtomicU64,
    passed: AtomicBool,
    waker: EventFd,
}

impl fmt::Debug for PhaseGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("opens", &self.opens)
            .field("passed", &self.passed)
            .finish_non_exhaustive()
    }
}

impl PhaseGate {
    /// A closed gate for a run that presents `ticket` and may share `senders`. `ready` is called when everything is open.
    pub(crate) fn new(
        ticket: Option<Ticket>,
        senders: Arc<MulticastSenders>,
        ready: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ControlError> {
        Ok(Self {
            ticket,
            senders,
            ready: Box::new(ready),
            opens: AtomicU64::new(0),
            passed: AtomicBool::new(false),
            waker: EventFd::new()?,
        })
    }

    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    pub(super) fn senders(&self) -> &MulticastSenders {
        &self.senders
    }

    /// Opens the gate at `at`.
    pub(crate) fn open_at(&self, at: Mono) {
        self.opens.store(at.as_ns().max(1), Ordering::Release);
        self.waker.wake();
    }

    /// Wakes the waiting run so that it checks its stop flag.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    fn opens(&self) -> Option<Mono> {
        Some(self.opens.load(Ordering::Acquire)).filter(|at| *at > 0).map(Mono)
    }
}

impl ClientRun<'_> {
    /// Reports that both ends are open and waits until the start message to the server is due. Returns the
    /// start time; absent without a gate and after the first phase. With `peer_sends` the message is due at the
    /// start, otherwise [`SERVER_LEAD`] before it. The dialogue continues meanwhile.
    pub(super) fn wait_at_gate(
        &mut self,
        peer_sends: bool,
        stop: &AtomicBool,
    ) -> Result<Option<Mono>, ControlError> {
        let Some(gate) = self.gate.filter(|gate| !gate.passed.swap(true, Ordering::Relaxed)) else {
            return Ok(None);
        };
        let awake = if peer_sends { SPIN_TIME } else { SERVER_LEAD };
        let mut reported_ready = false;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(ControlError::Stopped);
            }
            if !reported_ready && self.dialogue.session().peer_is_open() {
                reported_ready = true;
                (gate.ready)();
            }
            let opens = gate.opens();
            let (until, waker) = match opens {
                Some(at) if at.remaining() <= awake => {
                    while peer_sends && !at.has_passed() {
                        std::hint::spin_loop();
                    }
                    return Ok(opens);
                }
                // The waker is not needed any more: from here on only the clock and the stop flag count.
                Some(at) => (Mono(at.as_ns().saturating_sub(awake.as_nanos() as u64)), None),
                None => (Mono::FAR, Some(gate.waker.as_fd())),
            };
            let until = until.min(clock::now() + POLL_INTERVAL.as_duration());
            self.early.extend(self.dialogue.turn(until, waker.as_slice())?);
        }
    }
}

/// Logs the planned start and the start error when all flows have started at `begun`.
pub(super) fn note_start(planned: Option<Mono>, begun: Mono, log: &mut Log<'_>) {
    let Some(planned) = planned else { return };
    let start_error = Span::from(begun.since(planned));
    let planned = Timestamp::from_ns(planned.as_ns().saturating_sub(log.epoch().as_ns()));
    log.note(Body::Started(GroupStart { planned, start_error, clock_error: None }));
}
