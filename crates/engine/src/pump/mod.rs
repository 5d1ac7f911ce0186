//! The pumps: threads that do nothing but move bytes and count them.
//!
//! Inside their loops there is the call, one look at the clock, an addition to counters of their own and a look at
//! the orders; no lock, no allocation, no text.

pub(crate) mod blocks;
pub(crate) mod datagram_recv;
pub(crate) mod datagram_send;
pub(crate) mod epoll;
pub(crate) mod feed;
mod gather;
mod low_water;
mod notes;
pub(crate) mod payload;
pub(crate) mod stream;

use linerate_model::flow::Reason;
use linerate_model::{Side, Transport};
use linerate_sock::batch::RecvBatch;
use linerate_sock::clock::ThreadClock;
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::{SockError, affinity, clock, queues};
use std::io::ErrorKind;
use std::os::fd::AsFd;

use crate::control::Control;
use crate::counters::Meter;
use crate::flow::Flow;
use datagram_send::DatagramBatch;
use feed::{Drain, Feed};

/// What a pump needs beside the sockets, allocated before it starts.
pub(crate) enum Job {
    /// Write one TCP stream.
    Write(Feed),
    /// Write one TCP stream of whole blocks over a lent connection.
    WriteBlocks(Feed),
    /// Read one TCP stream.
    Read(Drain),
    /// Write several TCP streams.
    WriteMany(Vec<u8>),
    /// Read several TCP streams.
    ReadMany(Drain),
    /// Send datagrams.
    Datagrams(DatagramBatch),
    /// Receive datagrams.
    Arrivals(RecvBatch),
}

impl Job {
    /// The job of every pump of the flow; they are all alike.
    pub(crate) fn prepare(flow: &Flow) -> Result<Self, SockError> {
        let (setup, block, reads) = (&flow.setup, flow.plan.block, flow.plan.read_length(&flow.setup));
        if flow.sockets.udp(0).is_some() {
            return Ok(match setup.side {
                Side::Sender => Self::Datagrams(DatagramBatch::new(flow)?),
                Side::Receiver => Self::Arrivals(datagram_recv::new_batch()),
            });
        }
        Ok(match (setup.side, flow.plan.shared()) {
            (Side::Sender, false) => Self::write_one(flow, Feed::prepare(flow)?),
            (Side::Sender, true) => Self::WriteMany(payload::block(&setup.payload, block)?),
            (Side::Receiver, false) => Self::Read(Drain::new(setup.socket.skip_rx_copy, reads)?),
            (Side::Receiver, true) => Self::ReadMany(Drain::new(setup.socket.skip_rx_copy, reads)?),
        })
    }
}

impl Job {
    /// The job of writing one TCP stream.
    pub(crate) fn write_one(flow: &Flow, feed: Feed) -> Self {
        if flow.setup.lent { Self::WriteBlocks(feed) } else { Self::Write(feed) }
    }
}

/// How one stream ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StreamEnd {
    /// Number of the stream.
    pub(crate) stream: usize,
    /// Bytes read or written.
    pub(crate) bytes: u64,
    /// Bytes left in the send queue.
    pub(crate) queued: Option<u64>,
    /// Why it ended before its regular end.
    pub(crate) trouble: Option<StreamError>,
    /// The datagram that ended it.
    pub(crate) mark: Option<Vec<u8>>,
}

/// Why a stream ended before its regular end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamError {
    /// It was told to.
    Aborted,
    /// A call failed.
    Failed {
        /// In the words of the system.
        reason: Reason,
        /// Which call, why, and what may help.
        text: String,
    },
}

/// What the system said, in its own words alone.
#[must_use]
pub fn reason(error: &SockError) -> Reason {
    let text = error.source.to_string();
    let words = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words);
    Reason { errno: error.raw_os_error().unwrap_or(0), text: words.to_owned() }
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
    /// Whether the kernel copied although it was asked not to (MSG_ZEROCOPY).
    pub(crate) copied: bool,
    /// Whether the thread could not be kept on the CPU asked for.
    pub(crate) unpinned: bool,
    /// Datagrams of one call at the end (UDP sender).
    pub(crate) per_call: Option<u32>,
}

/// The presence of a pump at its work; it tells the others of its end even when the work panics.
pub(crate) struct PumpGuard<'f> {
    control: &'f Control,
    writing: bool,
}

impl<'f> PumpGuard<'f> {
    fn new(flow: &'f Flow) -> Self {
        Self { control: &flow.control, writing: flow.writes() }
    }

    /// Tells once that writing is finished.
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

impl Flow {
    /// Notes the end of a stream where others can see it.
    pub(crate) fn stream_ended(&self, meter: &Meter<'_>, trouble: Option<&StreamError>) {
        if let Some(StreamError::Failed { reason, .. }) = trouble {
            let _ = self.trouble.set(reason.clone());
            self.control.notify_failed();
        }
        meter.end();
    }

    /// How a receiver ends that was told to: in the regular way where its links are lent.
    pub(crate) fn told_ending(&self) -> Result<(), StreamError> {
        if self.control.stopped_at_once() && !self.control.aborted() {
            Ok(())
        } else {
            Err(StreamError::Aborted)
        }
    }

    /// Whether an error ends no stream of datagrams: their port at the other host is closed at the moment, which some
    /// tools do not mind and others look for in the counts.
    pub(crate) fn tolerates(&self, error: &SockError) -> bool {
        let tolerates = self.setup.lent && error.source.kind() == ErrorKind::ConnectionRefused;
        if tolerates {
            let _ = self.trouble.set(reason(error));
        }
        tolerates
    }

    /// Waits for a lent socket that had nothing to move: whoever else holds it may have made its calls return at once.
    pub(crate) fn pause(&self, socket: &impl AsFd, interest: Interest) -> Result<(), SockError> {
        if self.setup.lent && !self.control.stopped_at_once() {
            wait_for(socket, interest, clock::now() + self.control.max_wait())?;
        }
        Ok(())
    }
}

/// The life of one pump thread.
pub(crate) fn run(flow: &Flow, pump: usize, job: Job) -> PumpEnd {
    let mut guard = PumpGuard::new(flow);
    if let (Some(place), Some(clock)) = (flow.clocks.get(pump), ThreadClock::of_this_thread()) {
        let _ = place.set(clock);
    }
    let cpu = flow.setup.affinity.map(|cpu| cpu as usize);
    let unpinned = cpu.is_some_and(|cpu| affinity::set_thread_affinity(&[cpu]).is_err());
    flow.control.wait_at_gate();
    let end = match job {
        Job::Write(feed) => stream::write(flow, pump, &mut guard, feed),
        Job::WriteBlocks(feed) => blocks::write(flow, pump, &mut guard, feed),
        Job::Read(drain) => stream::read(flow, pump, drain),
        Job::WriteMany(block) => epoll::write(flow, pump, &mut guard, &block),
        Job::ReadMany(drain) => epoll::read(flow, pump, drain),
        Job::Datagrams(parcel) => datagram_send::write(flow, pump, &mut guard, parcel),
        Job::Arrivals(batch) => datagram_recv::read(flow, pump, batch),
    };
    PumpEnd { unpinned, ..end }
}

/// Bytes in the send queue of a stream. Of TCP the kernel counts the FIN behind them as one, which is none here.
pub(crate) fn queued(flow: &Flow, stream: usize, half_closed: bool) -> Option<u64> {
    let bytes = queues::unacknowledged(flow.sockets.tcp(stream)?).ok()?;
    let fin = half_closed && flow.setup.transport == Transport::Tcp;
    Some(bytes.saturating_sub(u64::from(fin)))
}
