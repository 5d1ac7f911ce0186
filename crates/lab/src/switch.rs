//! The switch of a lab: one thread that forwards frames between the hosts' interfaces and the fabric, in real
//! time.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use linerate_sock::SockError;
use linerate_sock::clock::{self, Mono};
use linerate_sock::poll::{EventFd, Events, Interest, Poller};
use linerate_sock::routing::RoutingSocket;
use linerate_sock::tap::Tap;
use linerate_units::Timestamp;

use crate::LabError;
use crate::coalescing::Rest;
use crate::control_protocol::KeepingUp;
use crate::drop_gauges::DropGauges;
use crate::history::{CounterSample, History};
use crate::lateness::LatenessHistogram;
use crate::memory_limit::MemoryLimit;
use crate::spin_budget::SpinBudget;
use linerate_emu::fabric::{AttachmentPoint, Fabric, PacketAccounting, PortCounts};
use linerate_emu::frame::Frame;
use linerate_emu::link_direction::LinkDirection;
use linerate_emu::packet_batch::PacketBatch;
use linerate_emu::topology::{Topology, TopologyLink};

/// How often the counters are read.
const TICK_NS: u64 = 100_000_000;
/// A frame delivered later than this counts as late: a tenth of what people notice, ten times what an idle
/// machine needs.
pub(super) const LATE_BOUND_NS: u64 = 1_000_000;
/// Frames read from one interface at a time. All frames that arrived while the switch slept are read before
/// time advances; this is only a limit for a host that sends without pause.
const BATCH: usize = 256;
/// A buffer filled to at least this size is kept; the contents of others are moved to one that fits, so that
/// queued frames take little more memory than their length.
const MIN_FILL_BYTES: usize = 52_000;
/// Large buffers kept for reuse.
const MAX_SPARE_BUFFERS: usize = 64;

/// Orders of the control thread to the switch.
#[derive(Debug)]
pub(super) enum SwitchOrder {
    /// Change one direction of a link.
    Set { link: Box<TopologyLink>, number: usize, side: usize, direction: Box<LinkDirection> },
    /// Report the status.
    Report(Sender<SwitchReport>),
    /// End.
    Stop,
}

/// The status of the switch.
#[derive(Debug)]
pub(super) struct SwitchReport {
    pub(super) ports: Vec<PortCounts>,
    pub(super) packet_accounting: PacketAccounting,
    pub(super) keeping_up: KeepingUp,
    pub(super) gone: Vec<GoneInterface>,
}

/// An interface that somebody has deleted in its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GoneInterface {
    /// Index of the host in the topology.
    pub(super) host: usize,
    /// Its name there.
    pub(super) name: String,
}

impl GoneInterface {
    /// A note for users.
    pub(super) fn describe(&self, topology: &Topology) -> String {
        let host = topology.hosts.get(self.host).map_or("", |host| host.name.as_str());
        format!(
            "the interface {} of host {host} was deleted, so the host is cut off; start the lab again",
            self.name
        )
    }
}

/// An interface of a host, with a socket in its network namespace.
#[derive(Debug)]
pub(super) struct Gauge {
    pub(super) routing: RoutingSocket,
    pub(super) index: u32,
}

/// The event loop of a lab.
#[derive(Debug)]
pub(super) struct SwitchLoop {
    pub(super) fabric: Fabric<Frame>,
    pub(super) taps: Vec<(AttachmentPoint, Tap)>,
    pub(super) epoch: Mono,
    pub(super) orders: Receiver<SwitchOrder>,
    pub(super) waker: Arc<EventFd>,
    pub(super) history: Arc<Mutex<History>>,
    /// The kernel's counters of frames that it could not deliver to the switch.
    gauges: DropGauges<Gauge>,
    gone: Vec<GoneInterface>,
    tap_of: BTreeMap<AttachmentPoint, usize>,
    /// The time up to which everything has been executed.
    reached: Timestamp,
    spare: Vec<Vec<u8>>,
    lateness: LatenessHistogram,
    spin_budget: SpinBudget,
    rest: Rest,
    next_look: Mono,
    worst_ns: u64,
    counts: KeepingUp,
}

impl SwitchLoop {
    /// A switch that is not running yet.
    pub(super) fn new(
        fabric: Fabric<Frame>,
        taps: Vec<(AttachmentPoint, Tap)>,
        epoch: Mono,
        orders: Receiver<SwitchOrder>,
        waker: Arc<EventFd>,
        history: Arc<Mutex<History>>,
        gauges: Vec<Gauge>,
    ) -> Self {
        let counts = KeepingUp { bound_ns: LATE_BOUND_NS, ..KeepingUp::default() };
        let tap_of = taps.iter().enumerate().map(|(number, (attachment, _))| (*attachment, number)).collect();
        Self {
            fabric,
            taps,
            epoch,
            orders,
            waker,
            history,
            gauges: DropGauges::new(gauges),
            gone: Vec::new(),
            tap_of,
            reached: Timestamp::START,
            spare: Vec::new(),
            lateness: LatenessHistogram::default(),
            spin_budget: SpinBudget::new(clock::now()),
            rest: Rest::new(clock::now()),
            next_look: Mono(0),
            worst_ns: 0,
            counts,
        }
    }

    /// Forwards frames until it is stopped. What waits in the fabric may take so much `memory`.
    ///
    /// # Errors
    /// The kernel refuses to poll, or packets take too much memory.
    pub(super) fn run(&mut self, memory: MemoryLimit) -> Result<(), LabError> {
        let waker = self.taps.len() as u64;
        let poller = Poller::new()?;
        for (token, (_, tap)) in self.taps.iter().enumerate() {
            poller.add(tap, token as u64, Interest::READ)?;
        }
        poller.add(&*self.waker, waker, Interest::READ)?;
        let mut events = Events::with_capacity(self.taps.len() + 1);
        let mut tick = self.epoch.as_ns();
        loop {
            let came = self.wait(&poller, &mut events, Mono(tick))?.max(self.reached);
            for ready in events.iter() {
                if ready.token == waker {
                    if self.execute_requests() {
                        return Ok(());
                    }
                } else if !self.read(ready.token as usize, came) && ready.error {
                    self.unplug(ready.token as usize, &poller);
                }
            }
            self.catch_up();
            self.next_look = self.rest.polled(self.mono(self.reached));
            self.deliver();
            if clock::now().as_ns() >= tick {
                tick = self.sample();
                memory.check()?;
            }
        }
    }

    /// Sleeps, then waits until a frame arrives or is due, or until `tick`. Returns the time as of which
    /// arrived frames are read.
    fn wait(&mut self, poller: &Poller, events: &mut Events, tick: Mono) -> Result<Timestamp, SockError> {
        let due = self.fabric.wake_at().map_or(Mono::FAR, |at| self.mono(at));
        let began = clock::now();
        if began < self.next_look {
            clock::sleep_until(self.next_look);
            if poller.wait_ns(events, Mono(0))? > 0 || due.min(tick).has_passed() {
                // It arrived at some time during the sleep. The start is used, so that no frame is later than
                // the switch reports.
                return Ok(self.timestamp(began));
            }
        }
        self.watch(poller, events, due, tick)?;
        // After oversleeping, the switch finds frames that arrived meanwhile. They are treated as if they had
        // arrived when it should have polled: lateness delays what leaves, and does not slow the links.
        Ok(self.now().min(self.timestamp(due)))
    }

    /// Waits until a frame arrives, or until `due` or `tick`; before `due` it spins at the end.
    fn watch(
        &mut self,
        poller: &Poller,
        events: &mut Events,
        due: Mono,
        tick: Mono,
    ) -> Result<(), SockError> {
        let alarm = self.spin_budget.alarm(clock::now(), due).min(tick);
        poller.wait_ns(events, alarm)?;
        if alarm >= due.min(tick) || events.iter().next().is_some() {
            return Ok(());
        }
        let began = clock::now();
        while events.iter().next().is_none() && !due.has_passed() {
            poller.wait_ns(events, Mono(0))?;
        }
        self.spin_budget.spend(clock::now().as_ns().saturating_sub(began.as_ns()));
        Ok(())
    }

    /// Executes everything up to now.
    fn catch_up(&mut self) {
        self.reached = self.now();
        self.fabric.advance(self.reached);
    }

    fn now(&self) -> Timestamp {
        self.timestamp(clock::now())
    }

    /// Converts to the fabric's clock; times before its start become the start.
    fn timestamp(&self, at: Mono) -> Timestamp {
        Timestamp::from_ns(at.as_ns().saturating_sub(self.epoch.as_ns()))
    }

    fn mono(&self, at: Timestamp) -> Mono {
        Mono(self.epoch.as_ns().saturating_add(at.as_ns()))
    }

    /// Reads what a host has sent, with `came` as the time of arrival; false if the kernel refuses to read.
    fn read(&mut self, number: usize, came: Timestamp) -> bool {
        let came = came.max(self.reached);
        self.fabric.advance(came);
        self.reached = came;
        for _ in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_default();
            let Some((attachment, tap)) = self.taps.get(number) else { return true };
            let attachment = *attachment;
            // An interface that is down returns nothing; its host reports that to its programs.
            let read = tap.read_into(&mut buffer, Frame::MAX_FRAME_BYTES);
            if !matches!(read, Ok(true)) {
                self.recycle(buffer);
                return read.is_ok();
            }
            let contents = if buffer.len() < MIN_FILL_BYTES {
                let fitting = buffer.as_slice().to_vec();
                self.recycle(buffer);
                fitting
            } else {
                buffer
            };
            match Frame::parse(contents) {
                Ok(frame) => self.fabric.input(came, attachment, frame.entering(came)),
                Err(_) => self.counts.malformed += 1,
            }
        }
        true
    }

    /// Stops polling an interface that was deleted in its host: its descriptor reports an error for ever.
    fn unplug(&mut self, number: usize, poller: &Poller) {
        let Some((attachment, tap)) = self.taps.get(number) else { return };
        // It was added, and the descriptor is still open.
        let _ = poller.remove(tap);
        self.gone.push(GoneInterface { host: attachment.host, name: tap.name().to_owned() });
    }

    /// Delivers the frames that have arrived.
    fn deliver(&mut self) {
        while let Some(delivery) = self.fabric.output() {
            let late = self.now().since(delivery.at).as_ns();
            self.rest.met(delivery.at.since(delivery.batch.entered()).as_ns());
            self.lateness.add(late);
            self.worst_ns = self.worst_ns.max(late);
            self.counts.late += u64::from(late > LATE_BOUND_NS);
            self.counts.frames += 1;
            let tap = self.tap_of.get(&delivery.attachment).and_then(|&number| self.taps.get(number));
            if let Some((_, tap)) = tap
                && tap.write(delivery.batch.bytes()).is_err()
            {
                self.counts.refused += u64::from(delivery.batch.packets());
            }
            let buffer = delivery.batch.into_buffer();
            if buffer.capacity() >= Frame::MAX_FRAME_BYTES {
                self.recycle(buffer);
            }
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < MAX_SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }

    /// Samples all counters into the history; returns when to do so next.
    fn sample(&mut self) -> u64 {
        // The time of the counters: this thread may have slept since.
        let at = self.reached;
        self.counts.overrun = self.gauges.read_part(|gauge| gauge.routing.send_drops(gauge.index).ok());
        let reading = CounterSample {
            at_ns: self.epoch.as_ns() + at.as_ns(),
            ports: self.fabric.ports(at),
            frames: self.counts.frames,
            late: self.counts.late,
            worst_ns: std::mem::take(&mut self.worst_ns),
            cpu_ns: u64::try_from(clock::thread_cpu().as_nanos()).unwrap_or(u64::MAX),
            overrun: self.counts.overrun,
        };
        self.fabric.reset_peaks(at);
        // From the current time: a tick that passed while frames were delivered is skipped.
        let next = self.epoch.as_ns() + (self.now().as_ns() / TICK_NS + 1) * TICK_NS;
        if let Ok(mut history) = self.history.lock() {
            history.add(&reading);
        }
        next
    }

    /// Executes the orders of the control thread; true after the one to stop.
    fn execute_requests(&mut self) -> bool {
        let _ = self.waker.clear();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                SwitchOrder::Stop => return true,
                SwitchOrder::Set { link, number, side, direction } => {
                    self.catch_up();
                    self.fabric.set_direction(self.reached, &link, number, side, &direction);
                }
                SwitchOrder::Report(to) => {
                    self.catch_up();
                    let now = self.reached;
                    // The receiver is gone: nothing is lost.
                    let _ = to.send(self.report(now));
                }
            }
        }
        false
    }

    fn report(&mut self, now: Timestamp) -> SwitchReport {
        let keeping_up = KeepingUp {
            late_p50_ns: self.lateness.quantile(0.5),
            late_p99_ns: self.lateness.quantile(0.99),
            late_max_ns: self.lateness.worst(),
            ..self.counts
        };
        SwitchReport {
            ports: self.fabric.ports(now),
            packet_accounting: self.fabric.accounting(),
            keeping_up,
            gone: self.gone.clone(),
        }
    }
}
