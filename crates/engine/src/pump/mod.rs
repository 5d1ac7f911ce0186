//! The pumps: threads that only move bytes and count them.
//!
//! Each turn of their loops makes the call, reads the clock, adds to the pump's own counters and checks for
//! orders. It takes no lock, allocates nothing and formats no text.

mod arrival_times;
pub(crate) mod blocks;
pub(crate) mod datagram_recv;
pub(crate) mod datagram_send;
pub(crate) mod departures;
pub(crate) mod disk;
pub(crate) mod epoll;
pub(crate) mod feed;
mod gather;
mod low_water;
mod messages;
mod notes;
pub(crate) mod payload;
pub(crate) mod stream;
pub(crate) mod transactions;

use linerate_model::flow::{PayloadFraming, SystemError};
use linerate_model::foreign_text::without_error_numbers;
use linerate_model::{LossBursts, SendMethod, Side, Transport};
use linerate_sock::batch::RecvBatch;
use linerate_sock::clock::ThreadClock;
use linerate_sock::departure::DepartureClock;
use linerate_sock::handle::AsFd;
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{SockError, affinity, clock, queues};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use crate::control::PumpControl;
use crate::counters::CounterWriter;
use crate::flow::FlowSide;
use crate::histogram::TimeHistogram;
use crate::pacer::SchedulePosition;
use datagram_send::DatagramBatch;
use feed::{Drain, Feed};
use transactions::TransactionBuffers;

/// What a pump needs besides the sockets, allocated before it starts.
pub(crate) enum PumpJob {
    /// Write one TCP stream.
    Write(Feed),
    /// Write one TCP stream of whole blocks over a borrowed connection.
    WriteBlocks(Feed),
    /// Read one TCP stream.
    Read(Drain),
    /// Write several TCP streams.
    WriteMany(Feed),
    /// Read several TCP streams.
    ReadMany(Drain),
    /// Send datagrams.
    Datagrams(DatagramBatch),
    /// Receive datagrams.
    Arrivals(RecvBatch),
    /// Make requests, or respond to them.
    Transactions(TransactionBuffers),
}

impl PumpJob {
    /// The job of a pump of the flow; all jobs are alike but for the keys of encrypted connections.
    pub(crate) fn prepare(
        flow: &FlowSide,
        pump: usize,
        method: SendMethod,
        clock: Option<DepartureClock>,
    ) -> Result<Self, SockError> {
        let (setup, reads) = (&flow.setup, flow.plan.read_length(&flow.setup));
        if let Some(transactions) = &setup.transactions {
            return Ok(Self::Transactions(TransactionBuffers::new(flow, transactions)?));
        }
        if flow.sockets.udp(0).is_some() {
            return Ok(match setup.side {
                Side::Sender => Self::Datagrams(DatagramBatch::new(flow, clock)?),
                Side::Receiver => Self::Arrivals(datagram_recv::new_batch(flow)),
            });
        }
        Ok(match (setup.side, flow.plan.shared()) {
            (_, true)
                if setup.file.is_some()
                    || setup.framing != PayloadFraming::None
                    || !setup.channels.is_empty() =>
            {
                return Err(shares_a_thread());
            }
            (Side::Sender, _) => Self::write(
                flow,
                match setup.channels.get(pump) {
                    Some(channel) => Feed::encrypting(flow, Arc::clone(channel))?,
                    None => Feed::prepare(flow, method)?,
                },
            ),
            (Side::Receiver, false) => Self::Read(Drain::prepare(flow, reads, pump)?),
            (Side::Receiver, true) => Self::ReadMany(Drain::prepare(flow, reads, pump)?),
        })
    }
}

/// Longest pause of a stream that was told to stop at once, while the peer takes nothing.
const MAX_LAST_PAUSE: Duration = Duration::from_millis(5);

/// Streams that share a thread have one buffer for all.
fn shares_a_thread() -> SockError {
    let why = std::io::Error::new(ErrorKind::Unsupported, "too many streams, which share threads");
    SockError::new("move a file, messages or encrypted data", why)
}

impl PumpJob {
    /// The job of writing with this feed: one TCP stream, or those that share the pump.
    pub(crate) fn write(flow: &FlowSide, feed: Feed) -> Self {
        match (flow.plan.shared(), flow.setup.borrowed) {
            (true, _) => Self::WriteMany(feed),
            (false, true) => Self::WriteBlocks(feed),
            (false, false) => Self::Write(feed),
        }
    }
}

/// How one stream ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamEnd {
    /// Number of the stream.
    pub(crate) stream: usize,
    /// Bytes read or written.
    pub(crate) bytes: u64,
    /// Bytes left in the send queue; absent where unknown.
    pub(crate) queued: Option<u64>,
    /// Error that ended it early.
    pub(crate) trouble: Option<StreamError>,
    /// Losses in a row of a receiver of datagrams, and how far a late datagram was behind the latest.
    pub(crate) sequence: Option<(LossBursts, u64)>,
    /// The datagram that ended it.
    pub(crate) mark: Option<Vec<u8>>,
    /// Where a sender of datagrams at a rate was in its schedule. Datagrams that the kernel refused have had their time.
    pub(crate) position: Option<SchedulePosition>,
}

/// Why a stream ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamError {
    /// By an order, before the stream was complete.
    Aborted,
    /// A call failed.
    Failed {
        /// The system's error message.
        reason: SystemError,
        /// Which call failed, why, and a remedy if there is one.
        text: String,
    },
}

/// The system's error number and message, without context.
#[must_use]
pub fn reason(error: &SockError) -> SystemError {
    let text = error.source.to_string();
    let words = without_error_numbers(&text).into_owned();
    SystemError { errno: error.raw_os_error().unwrap_or(0), text: words }
}

impl From<SockError> for StreamError {
    fn from(error: SockError) -> Self {
        let text = match error.remedy() {
            Some(remedy) => format!("{error}: {}; {remedy}", error.source),
            None => format!("{error}: {}", error.source),
        };
        Self::Failed { reason: reason(&error), text }
    }
}

/// How the streams of one pump ended.
#[derive(Debug, Default)]
pub(crate) struct PumpEnd {
    pub(crate) streams: Vec<StreamEnd>,
    /// Whether the kernel copied despite MSG_ZEROCOPY.
    pub(crate) copied: bool,
    /// Whether the thread could not be pinned to the requested CPU.
    pub(crate) unpinned: bool,
    /// Times between the calls of a sender of datagrams with a rate.
    pub(crate) send_gaps: Option<TimeHistogram>,
    /// Datagrams per call at the end (UDP sender).
    pub(crate) per_call: Option<u32>,
}

/// Held by a running pump; reports the pump's end when dropped, even after a panic.
pub(crate) struct PumpGuard<'f> {
    control: &'f PumpControl,
    writing: bool,
}

impl<'f> PumpGuard<'f> {
    fn new(flow: &'f FlowSide) -> Self {
        Self { control: &flow.control, writing: flow.writes() }
    }

    /// Reports once that writing is finished.
    pub(crate) fn written(&mut self) {
        if std::mem::take(&mut self.writing) {
            self.control.notify_written();
        }
    }
}

impl Drop for PumpGuard<'_> {
    fn drop(&mut self) {
        self.written();
        self.control.notify_ended();
    }
}

impl FlowSide {
    /// Publishes the end of a stream.
    pub(crate) fn stream_ended(&self, meter: &CounterWriter<'_>, trouble: Option<&StreamError>) {
        if let Some(StreamError::Failed { reason, .. }) = trouble {
            let _ = self.trouble.set(reason.clone());
            self.control.notify_failed();
        }
        meter.end();
    }

    /// The result of a receiver that was stopped: regular if its links are borrowed.
    pub(crate) fn stop_result(&self) -> Result<(), StreamError> {
        if self.control.stopped_at_once() && !self.control.aborted() {
            Ok(())
        } else {
            Err(StreamError::Aborted)
        }
    }

    /// Whether an error does not end a stream of datagrams. ECONNREFUSED says that the peer's port is closed at
    /// the moment, which some tools ignore and others read from the counts.
    pub(crate) fn tolerates(&self, error: &SockError) -> bool {
        let tolerates = self.setup.borrowed && error.source.kind() == ErrorKind::ConnectionRefused;
        if tolerates {
            let _ = self.trouble.set(reason(error));
        }
        tolerates
    }

    /// Waits for a borrowed socket that moved nothing: another holder may have made it non-blocking, and that of an
    /// encrypted connection always is.
    pub(crate) fn pause(&self, socket: &impl AsFd, interest: Interest) -> Result<(), SockError> {
        let longest = match (self.setup.borrowed, self.control.stopped_at_once()) {
            (false, _) => return Ok(()),
            (true, false) => self.control.max_wait(),
            (true, true) => MAX_LAST_PAUSE,
        };
        wait_for(socket, interest, clock::now() + longest)?;
        Ok(())
    }
}

/// Body of a pump thread.
pub(crate) fn run(flow: &FlowSide, pump: usize, job: PumpJob) -> PumpEnd {
    let mut guard = PumpGuard::new(flow);
    if let (Some(place), Some(clock)) = (flow.clocks.get(pump), ThreadClock::of_this_thread()) {
        let _ = place.set(clock);
    }
    let cpu = flow.setup.affinity.map(|cpu| cpu as usize);
    let unpinned = cpu.is_some_and(|cpu| affinity::set_thread_affinity(&[cpu]).is_err());
    flow.control.wait_at_gate();
    let end = match job {
        PumpJob::Write(feed) => stream::write(flow, pump, &mut guard, feed),
        PumpJob::WriteBlocks(feed) => blocks::write(flow, pump, &mut guard, feed),
        PumpJob::Read(drain) => stream::read(flow, pump, drain),
        PumpJob::WriteMany(feed) => epoll::write(flow, pump, &mut guard, feed),
        PumpJob::ReadMany(drain) => epoll::read(flow, pump, drain),
        PumpJob::Datagrams(datagrams) => datagram_send::write(flow, pump, &mut guard, datagrams),
        PumpJob::Arrivals(batch) => datagram_recv::read(flow, pump, batch),
        PumpJob::Transactions(buffers) if flow.writes() => {
            transactions::request(flow, pump, &mut guard, buffers)
        }
        PumpJob::Transactions(buffers) => transactions::respond(flow, pump, buffers),
    };
    PumpEnd { unpinned, ..end }
}

/// Bytes in the send queue of a stream. The kernel counts a FIN after them as one byte, which is subtracted
/// here.
pub(crate) fn queued(flow: &FlowSide, stream: usize, half_closed: bool) -> Option<u64> {
    let bytes = queues::unacknowledged(flow.sockets.tcp(stream)?).ok()?;
    let fin = half_closed && flow.setup.transport == Transport::Tcp;
    Some(bytes.saturating_sub(u64::from(fin)))
}
