//! The sampler: one thread that reads counters and probes on absolute ticks from the first byte.
//!
//! Intervals end at the moments at which the counters were really read, so their rates are exact even if a tick
//! is late. A late tick does not move the next one.

mod host;
mod log;
mod snapshot;
mod tcp;

use linerate_model::metrics::host as host_metrics;
use linerate_model::{Readings, Sample, Side};
use linerate_sock::clock::{self, StepDetector};
use linerate_sock::poll::{Interest, wait_for};
use linerate_sock::proc::cgroup::CpuCgroups;
use linerate_sock::{Mono, SockError};
use linerate_units::{Ratio, Span, Timestamp};
use std::time::Duration;

use crate::flow::FlowSide;
use crate::socket_counts::MAX_READING_GAP;
use host::HostCounters;
pub(crate) use log::SampleLog;
use snapshot::Snapshot;
use tcp::TcpState;

/// Shortest time between two readings of the host's counters.
const HOST_PERIOD: Duration = Duration::from_millis(500);
/// A smaller step of the wall clock cannot be distinguished from slewing.
const MIN_CLOCK_STEP: Duration = Duration::from_millis(50);
/// Number of ticks that the sampler may be late before the result mentions it.
const MAX_TICKS_LATE: u64 = 2;
/// How late the kernel may wake the sampler to merge wake-ups, ns.
const TIMER_SLACK_NS: u64 = 10_000;

/// Results over the whole measured part.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// Readings over the measured part.
    pub(crate) readings: Readings,
    /// CPU time of this process in the measured part.
    pub(crate) cpu: Duration,
    /// Busy share of the host in the measured part.
    pub(crate) host_busy: Option<Ratio>,
    /// Worst lateness; absent within the tolerance.
    pub(crate) late: Option<Span>,
    /// Largest step of the wall clock, ns.
    pub(crate) stepped_ns: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SamplerPhase {
    Omitted,
    Inside,
    After,
}

/// All readings of one moment.
#[derive(Clone)]
struct SamplerSnapshot {
    snapshot: Snapshot,
    host: HostCounters,
}

/// Body of the sampler thread.
pub(crate) fn run(flow: &FlowSide, log: &SampleLog) -> Sampled {
    // No current kernel refuses. If it did, ticks would be 50 µs (the default timer slack) late instead of 10.
    let _ = clock::set_timer_slack_ns(TIMER_SLACK_NS);
    let cgroups = CpuCgroups::find();
    let before = Snapshot::read(flow);
    let Ok(Some(origin)) = await_begin(flow) else { return Sampled::default() };
    let begin = before.at_begin(origin);
    let host = HostCounters::read(flow.setup.interface.as_deref(), &cgroups);
    let mut sampler = Sampler {
        flow,
        log,
        origin,
        phase: if flow.part.omits() { SamplerPhase::Omitted } else { SamplerPhase::Inside },
        connections: None,
        last: begin.clone(),
        cgroups,
        last_host: host.clone(),
        host_due: origin + HOST_PERIOD,
        opened: SamplerSnapshot { snapshot: begin, host },
        closed: None,
        steps: StepDetector::new(MIN_CLOCK_STEP),
        sampled: Sampled::default(),
    };
    // Only a failing poll ends the sampling early; the counts do not depend on it.
    let _ = sampler.follow();
    sampler.conclude()
}

/// Waits for the first byte; absent if the flow ends without one.
fn await_begin(flow: &FlowSide) -> Result<Option<Mono>, SockError> {
    loop {
        if let Some(origin) = flow.part.begun() {
            return Ok(Some(origin));
        }
        if flow.control.all_ended() {
            return Ok(flow.part.begun());
        }
        wait_for(&flow.control.sampler, Interest::READ, Mono::FAR)?;
        let _ = flow.control.sampler.clear();
    }
}

struct Sampler<'f> {
    flow: &'f FlowSide,
    log: &'f SampleLog,
    /// Time of the first byte as known when the first interval ended. A thread that had to wait for a CPU between
    /// its first byte and [`MeasuredPart::begin`] may record an earlier one after this; intervals that are out
    /// already do not move, so the bounds of the phases do not either.
    ///
    /// [`MeasuredPart::begin`]: crate::measured::MeasuredPart::begin
    origin: Mono,
    phase: SamplerPhase,
    last: Snapshot,
    /// A later reading of the connections, if the tick is so long that their counts may overflow twice.
    connections: Option<TcpState>,
    cgroups: CpuCgroups,
    last_host: HostCounters,
    host_due: Mono,
    opened: SamplerSnapshot,
    closed: Option<SamplerSnapshot>,
    steps: StepDetector,
    sampled: Sampled,
}

impl Sampler<'_> {
    fn follow(&mut self) -> Result<(), SockError> {
        let tick = self.flow.setup.tick.as_ns().max(1_000_000);
        loop {
            let elapsed = self.last.at.since(self.origin).as_nanos() as u64;
            let due = self.origin + Duration::from_nanos((elapsed / tick + 1).saturating_mul(tick));
            let due = due.min(self.boundary());
            let on_time = self.wait(due)?;
            let now = clock::now();
            let lateness = if on_time { Span::ZERO } else { Span::from(now.since(due)) };
            if lateness.as_ns() > MAX_TICKS_LATE * tick {
                self.sampled.late = self.sampled.late.max(Some(lateness));
            }
            let ended = self.flow.control.all_ended();
            self.take(lateness, ended);
            if ended {
                return Ok(());
            }
        }
    }

    /// The end of this phase, if its time is known in advance.
    fn boundary(&self) -> Mono {
        match self.phase {
            SamplerPhase::Omitted => self.flow.part.opens_after(self.origin),
            SamplerPhase::Inside => self.flow.part.closes_after(self.origin),
            SamplerPhase::After => Mono::FAR,
        }
    }

    /// Waits until `due`; true if the pumps reported an end before that.
    fn wait(&mut self, due: Mono) -> Result<bool, SockError> {
        let flow = self.flow;
        let control = &flow.control;
        loop {
            let news = control.all_ended()
                || (flow.writes() && self.phase != SamplerPhase::After && control.all_written());
            let now = clock::now();
            if news || now >= due {
                return Ok(news);
            }
            let look = now + MAX_READING_GAP;
            if wait_for(&control.sampler, Interest::READ, due.min(look))? {
                let _ = control.sampler.clear();
            } else if look < due {
                let earlier = self.connections.take().or_else(|| self.last.tcp.clone());
                let read =
                    |earlier: TcpState| TcpState::read(&flow.sockets, flow.setup.side).carried_on(&earlier);
                self.connections = earlier.map(read);
            }
        }
    }

    /// Moves the begin of the first interval to the earliest first byte of all streams.
    fn settle_origin(&mut self) {
        if self.last.at == self.origin {
            self.origin = self.flow.part.origin();
            self.last.at = self.origin;
            self.opened.snapshot.at = self.origin;
        }
    }

    /// Records the interval that ends now.
    fn take(&mut self, lateness: Span, ended: bool) {
        self.settle_origin();
        let connections = self.connections.take();
        let snapshot = Snapshot::read(self.flow).carried_on(connections.as_ref().or(self.last.tcp.as_ref()));
        let now = snapshot.at;
        let mut readings = snapshot.since(&self.last, self.flow.setup.side);
        readings.put(host_metrics::TICK_LATENESS, lateness);
        let next = self.next_phase(now, ended);
        let host = (now >= self.host_due || next != self.phase)
            .then(|| HostCounters::read(self.flow.setup.interface.as_deref(), &self.cgroups));
        if let Some(host) = &host {
            host.put(&self.last_host, &mut readings);
            self.last_host = host.clone();
            self.host_due = now + HOST_PERIOD;
            let step = self.steps.check();
            self.sampled.stepped_ns = self.sampled.stepped_ns.or(step);
        }
        let moment = |at: Mono| Timestamp::from_ns(at.as_ns().saturating_sub(self.origin.as_ns()));
        let sample = Sample {
            side: self.flow.setup.side,
            start_ns: moment(self.last.at),
            end_ns: moment(now),
            outside: self.phase != SamplerPhase::Inside,
            readings,
        };
        self.log.add(sample, snapshot.srtt(self.flow.setup.side), snapshot.retransmits(self.flow.setup.side));
        if next != self.phase {
            let mark = SamplerSnapshot { snapshot: snapshot.clone(), host: self.last_host.clone() };
            match next {
                SamplerPhase::Inside => self.opened = mark,
                SamplerPhase::After if self.phase == SamplerPhase::Inside => self.closed = Some(mark),
                SamplerPhase::After | SamplerPhase::Omitted => {}
            }
            self.phase = next;
        }
        self.last = snapshot;
    }

    fn next_phase(&self, now: Mono, ended: bool) -> SamplerPhase {
        let written = self.flow.writes() && self.flow.control.all_written();
        match self.phase {
            SamplerPhase::After => SamplerPhase::After,
            _ if ended || written => SamplerPhase::After,
            SamplerPhase::Omitted if now >= self.boundary() => SamplerPhase::Inside,
            SamplerPhase::Inside if now >= self.boundary() => SamplerPhase::After,
            phase => phase,
        }
    }

    fn conclude(mut self) -> Sampled {
        let Some(closed) = &self.closed else { return self.sampled };
        let mut readings = closed.snapshot.since(&self.opened.snapshot, self.flow.setup.side);
        closed.host.put(&self.opened.host, &mut readings);
        self.sampled.cpu = closed.snapshot.process_cpu.saturating_sub(self.opened.snapshot.process_cpu);
        self.sampled.host_busy = closed.host.busy(&self.opened.host);
        self.sampled.readings = readings;
        self.sampled
    }
}

/// Whether a side writes.
const fn writes(side: Side) -> bool {
    matches!(side, Side::Sender)
}
