//! A running flow, as its driver sees it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_model::flow::{FlowCounts, Stop};
use linerate_model::{Caveat, KernelCounts, Sample, SideSettings, StreamCounting, Tally, metrics};
use linerate_sock::poll::EventFd;
use linerate_sock::{Mono, clock, queues, sockopt, tcp_info, thread};
use linerate_units::{Bytes, Span, Timestamp};

use crate::caveats;
use crate::counters::Counts;
use crate::error::EngineError;
use crate::flow::FlowSide;
use crate::flow_counts;
use crate::prepare;
use crate::pump::{self, PumpEnd, StreamEnd};
use crate::sampler::{self, SampleLog, Sampled};
use crate::settings::segment;
use crate::setup::{FlowSetup, Sockets};
use crate::slots::SentSlots;
use crate::socket_counts::FlowSocketCounts;
use crate::tally;

/// How long a receiver of datagrams continues after a regular stop, so that the queues of the path can drain.
const LATE_DATAGRAM_TIMEOUT: Duration = Duration::from_secs(1);

/// A running flow. Dropping it aborts the flow and waits for its threads, for at most about 200 ms.
#[derive(Debug)]
pub struct FlowHandle {
    flow: Arc<FlowSide>,
    log: Arc<SampleLog>,
    pumps: Vec<JoinHandle<PumpEnd>>,
    sampler: Option<JoinHandle<Sampled>>,
    settings: SideSettings,
    caveats: Vec<Caveat>,
    /// Segments that each stream had retransmitted before the flow (in its handshake).
    retransmitted: Vec<u64>,
    /// Bytes that the peer had acknowledged on each connection of a sender before the flow.
    acknowledged: Vec<u64>,
    counted: FlowSocketCounts,
    epoch: Mono,
    /// CPU time of this process before the flow.
    cpu_before: Duration,
}

/// Progress of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FlowProgress {
    /// Application bytes read or written so far.
    pub bytes: Bytes,
    /// Time from the first read or write to the latest one.
    pub elapsed: Span,
    /// Smoothed round-trip time at the last tick, mean over streams; at a sender only.
    pub srtt: Option<Span>,
    /// Retransmitted segments up to the last tick; at a sender only.
    pub retransmits: Option<u64>,
    /// Whether the sender has written and half-closed everything; false at a receiver.
    pub finished_writing: bool,
    /// Whether every stream has ended.
    pub ended: bool,
}

/// Result of one side of a flow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowReport {
    /// The counts.
    pub tally: Tally,
    /// All intervals, in order.
    pub samples: Vec<Sample>,
    /// Effective socket settings.
    pub settings: SideSettings,
    /// Conditions that weaken the result.
    pub caveats: Vec<Caveat>,
    /// Time of this side's first byte since the epoch passed to [`start`]; absent if there was none.
    pub first_byte: Option<Timestamp>,
    /// Counts of every stream, with the tally.
    pub counts: FlowCounts,
    /// What the kernel had counted as retransmitted on each connection of a sender before the flow, for
    /// [`update_sender`](crate::update_sender); empty at a receiver, for datagrams, and where the kernel does
    /// not count.
    pub retransmitted_before: Vec<u64>,
}

/// Starts the threads of one side of a flow. The sender writes at once.
///
/// [`FlowReport::first_byte`] counts from `epoch`.
///
/// # Errors
/// A socket option or a thread is refused. Then nothing runs and the sockets are closed.
pub fn start(setup: FlowSetup, sockets: Sockets, epoch: Mono) -> Result<FlowHandle, EngineError> {
    let handle = arm(setup, sockets, epoch)?;
    handle.begin_at(Mono(0));
    Ok(handle)
}

/// As [`start`], except that the threads are created with all that they need and wait for
/// [`FlowHandle::begin_at`].
///
/// # Errors
/// As [`start`].
pub fn arm(setup: FlowSetup, sockets: Sockets, epoch: Mono) -> Result<FlowHandle, EngineError> {
    prepare::check(&setup, &sockets)?;
    let flow = Arc::new(FlowSide::new(setup, sockets)?);
    let merging = prepare::sockets(&flow)?;
    let prepared = prepare::jobs(&flow)?;
    let mut handle = FlowHandle {
        log: Arc::new(SampleLog::default()),
        pumps: Vec::with_capacity(flow.plan.pumps),
        sampler: None,
        settings: SideSettings { receive_merging: merging, ..prepared.settings },
        caveats: prepared.caveats,
        retransmitted: retransmits(&flow.sockets),
        acknowledged: flow_counts::acknowledged(&flow),
        counted: FlowSocketCounts::begin(&flow),
        epoch,
        cpu_before: clock::process_cpu(),
        flow,
    };
    let (flow, log) = (Arc::clone(&handle.flow), Arc::clone(&handle.log));
    if !flow.setup.no_sampling {
        handle.sampler = Some(spawn("sampler", move || sampler::run(&flow, &log))?);
    }
    for (pump, job) in prepared.jobs.into_iter().enumerate() {
        let flow = Arc::clone(&handle.flow);
        handle.pumps.push(spawn(&format!("pump {pump}"), move || pump::run(&flow, pump, job))?);
    }
    Ok(handle)
}

fn spawn<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, EngineError> {
    thread::spawn(name, body).map_err(EngineError::Thread)
}

/// Segments retransmitted so far, of each stream; empty for datagrams and where the kernel does not count them.
fn retransmits(sockets: &Sockets) -> Vec<u64> {
    let of = |socket| tcp_info(&socket).ok()?.total_retrans.map(u64::from);
    sockets.iter().map(of).collect::<Option<_>>().unwrap_or_default()
}

impl FlowHandle {
    /// Settings of the first stream's socket: requested and effective.
    #[must_use]
    pub const fn settings(&self) -> &SideSettings {
        &self.settings
    }

    /// Lets the data threads begin at `at`, or at once if that has passed. Only the first call counts.
    pub fn begin_at(&self, at: Mono) {
        self.flow.control.gate.open_at(at);
    }

    /// When the last data thread began; absent until all have.
    #[must_use]
    pub fn began(&self) -> Option<Mono> {
        self.flow.control.gate.all_passed(self.flow.plan.pumps)
    }

    /// Progress of the flow. Every 10 s, it also reads what the kernel has counted on each connection: without a call for a
    /// minute, these counts may be absent in the report of a fast flow.
    #[must_use]
    pub fn progress(&self) -> FlowProgress {
        self.counted.follow(&self.flow);
        let counts = Counts::of(&self.flow.counters);
        let (srtt, retransmits) = self.log.latest();
        let elapsed = counts.begun().map_or(0, |begun| counts.last_at.saturating_sub(begun.as_ns()));
        FlowProgress {
            bytes: Bytes::new(counts.total),
            elapsed: Span::from_ns(elapsed),
            srtt,
            retransmits,
            finished_writing: self.flow.writes() && self.flow.control.all_written(),
            ended: self.flow.is_over(),
        }
    }

    /// Whether a stream has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.flow.control.failed()
    }

    /// The samples taken since the last call. The report contains all samples.
    #[must_use]
    pub fn new_samples(&self) -> Vec<Sample> {
        self.log.fresh()
    }

    /// What each stream has moved so far; absent unless the flow has 2 to 128 streams, and for transactions. Costs a
    /// system call for each connection of a sender.
    #[must_use]
    pub fn stream_bytes(&self) -> Option<(StreamCounting, Vec<Bytes>)> {
        flow_counts::stream_bytes(&self.flow, &self.acknowledged)
    }

    /// Counts of every stream so far. Costs a system call for each connection.
    #[must_use]
    pub fn counts(&self) -> FlowCounts {
        flow_counts::read(&self.flow, &self.retransmitted, self.epoch)
    }

    /// Becomes readable when the sender has finished writing and when the flow is over.
    #[must_use]
    pub fn waker(&self) -> &EventFd {
        &self.flow.control.driver
    }

    /// Wakes this too whenever [`FlowHandle::waker`] becomes readable.
    pub fn wake_also(&self, observer: Arc<EventFd>) {
        self.flow.control.wake_also(observer);
    }

    /// Makes the sender stop at once and half-close; what is in its queue is still sent.
    pub fn stop_writing(&self) {
        self.flow.control.stop_writing();
    }

    /// Makes the receiver read until `deadline` at most; a receiver of datagrams also ends after 200 ms of
    /// silence.
    pub fn stop_reading(&self, deadline: Mono) {
        self.flow.control.stop_reading(deadline);
    }

    /// Ends the flow as a stand-in requests. [`FlowProgress::ended`] becomes true within about 20 ms, the
    /// longest time that a pump waits for its peer, or within 200 ms if the peer does not take the rest of a
    /// block. [`FlowHandle::finish`] then closes the writing side ([`Stop::Regularly`]) or prepares the reset
    /// ([`Stop::Abort`]), which is sent when the last duplicate of the socket is closed.
    ///
    /// With [`Stop::Regularly`], a TCP receiver reads until its peer has closed. A receiver of datagrams ends
    /// after 200 ms of silence, at most after a second.
    pub fn stop(&self, how: Stop) {
        let control = &self.flow.control;
        match how {
            Stop::AtOnce => control.stop_at_once(),
            Stop::Regularly => {
                control.stop_writing();
                if self.flow.sockets.udp(0).is_some() {
                    control.stop_reading(clock::now() + LATE_DATAGRAM_TIMEOUT);
                }
            }
            Stop::Abort => control.abort(),
        }
        if self.flow.is_over() {
            control.wake_driver();
        }
    }

    /// Writes these bytes, which do not count, between two blocks of a single TCP stream of a stand-in. They are dropped
    /// if the flow ends before, or if the peer has not taken 64 KiB that were inserted before.
    pub fn insert(&self, bytes: &[u8]) {
        self.flow.control.insert(bytes);
    }

    /// Ends the flow at once: resets the connections; what is in their queues is lost and counted.
    pub fn abort(&self) {
        self.flow.control.abort();
    }

    /// Waits for the end of every stream and reports. Does not end a running flow: call
    /// [`FlowHandle::stop_reading`] or [`FlowHandle::abort`] first to limit the time.
    #[must_use]
    pub fn finish(mut self) -> FlowReport {
        let (ends, sampled) = self.join();
        let retransmits = self.retransmits();
        let copied = ends.iter().any(|end| end.copied);
        let unpinned = ends.iter().any(|end| end.unpinned);
        let per_call = ends.iter().filter_map(|end| end.per_call).min();
        let gaps = ends.iter().filter_map(|end| end.send_gaps.clone());
        let gaps = gaps.reduce(|all, more| all.merge(&more)).and_then(|all| all.digest());
        let streams: Vec<StreamEnd> = ends.into_iter().flat_map(|end| end.streams).collect();
        let mut counts = self.counts();
        counts.marks = flow_counts::marks(&self.flow, &streams);
        let slots = SentSlots::of(&self.flow, &streams);
        let mut tally = tally::assemble(&self.flow, streams, slots, retransmits.as_deref());
        if let Some(udp) = &mut tally.udp {
            udp.send_gaps = gaps;
        }
        tally.readings = sampled.readings.clone();
        // The pumps know the bytes of the measured part exactly, the sampler only up to its wake-up.
        tally.readings.put(metrics::flow::BYTES, tally.bytes);
        tally.readings.put(metrics::flow::BITRATE, tally.bitrate);
        tally.kernel = self.kernel();
        // Without a sampler, the CPU time from the start of the threads to their end.
        let whole = || clock::process_cpu().saturating_sub(self.cpu_before);
        let cpu = if self.flow.setup.no_sampling { whole() } else { sampled.cpu };
        tally.cpu_seconds = cpu.as_secs_f64();
        tally.host_busy = sampled.host_busy;
        let mut settings = std::mem::take(&mut self.settings);
        // The kernel may use longer segments after it has seen the peer's window.
        settings.mss.effective = self.flow.sockets.tcp(0).and_then(segment).or(settings.mss.effective);
        let mut caveats = std::mem::take(&mut self.caveats);
        if copied {
            settings.io.effective = Some("copy".into());
            caveats.push(caveats::zerocopy_copied());
        }
        settings.datagrams_per_call = per_call.or(settings.datagrams_per_call);
        if unpinned {
            settings.affinity = None;
        }
        let pace = slots.and_then(|slots| slots.pace(tally.bytes));
        caveats.extend(caveats::at_end(&self.flow, &tally, pace, &settings, &sampled, unpinned));
        counts.tally = Some(Box::new(tally.clone()));
        let first_byte = self.flow.part.begun().map(|first| flow_counts::moment(first, self.epoch));
        let retransmitted_before =
            if self.flow.writes() { std::mem::take(&mut self.retransmitted) } else { Vec::new() };
        FlowReport {
            tally,
            samples: self.log.take(),
            settings,
            caveats,
            first_byte,
            counts,
            retransmitted_before,
        }
    }

    /// Waits for every thread. The counts of a thread that panicked remain, and the tally reports it.
    fn join(&mut self) -> (Vec<PumpEnd>, Sampled) {
        let ends = self.pumps.drain(..).filter_map(|pump| pump.join().ok()).collect();
        let sampled = self.sampler.take().and_then(|sampler| sampler.join().ok()).unwrap_or_default();
        if self.flow.control.aborted() {
            self.reset();
        } else if self.flow.setup.borrowed {
            self.return_sockets();
        }
        (ends, sampled)
    }

    /// Borrowed sockets continue as links: a regular end closes their writing side, and datagrams arrive one by
    /// one again.
    fn return_sockets(&self) {
        let regular =
            self.flow.writes() && self.flow.control.stop_requested() && !self.flow.control.stopped_at_once();
        match &self.flow.sockets {
            // Fails only if the peer has already closed the connection.
            Sockets::Tcp(streams) if regular => {
                streams.iter().for_each(|stream| drop(queues::finish_writing(stream)));
            }
            // Can be refused only where turning it on was refused too.
            Sockets::Udp(sockets) if !self.flow.writes() => {
                sockets.iter().for_each(|socket| drop(sockopt::set_udp_gro(socket, false)));
            }
            _ => {}
        }
    }

    /// Makes closing the sockets send a reset. Has no effect on connections that have already ended.
    fn reset(&self) {
        if let Sockets::Tcp(streams) = &self.flow.sockets {
            for stream in streams {
                let _ = sockopt::set_linger_abort(stream);
            }
        }
    }

    /// Counts of the connections in this flow.
    fn kernel(&self) -> Option<Box<KernelCounts>> {
        let socket = self.counted.total(&self.flow)?;
        Some(Box::new(KernelCounts { socket: Some(socket), ..KernelCounts::default() }))
    }

    /// Segments that each stream of a sender has retransmitted in this flow.
    fn retransmits(&self) -> Option<Vec<u64>> {
        let now = retransmits(&self.flow.sockets);
        let known = self.flow.writes() && !now.is_empty() && now.len() == self.retransmitted.len();
        known.then(|| {
            now.iter().zip(&self.retransmitted).map(|(now, then)| now.saturating_sub(*then)).collect()
        })
    }
}

impl Drop for FlowHandle {
    fn drop(&mut self) {
        if self.pumps.is_empty() && self.sampler.is_none() {
            return;
        }
        self.flow.control.abort_unstarted(self.flow.plan.pumps - self.pumps.len());
        self.join();
    }
}
