//! One direction of a link: policer, queue and line of each member, then the impairments on the wire.

use std::collections::VecDeque;

use linerate_units::{Bytes, Ratio, Span, Timestamp};

use super::packet_accounting::{MemberCounts, PacketAccounting, PortCounts};
use super::switch::SharedMemory;
use crate::link_direction::{LinkDirection, Loss};
use crate::packet_batch::PacketBatch;
use crate::port::Port;
use crate::stage::Stage;
use crate::stage::delay::Delay;
use crate::stage::duplicate::Duplicate;
use crate::stage::lag::Lag;
use crate::stage::loss::Losses;
use crate::stage::policer::Policer;
use crate::stage::reorder::Overtake;
use crate::topology::TopologyLink;

/// One direction of a link.
#[derive(Debug)]
pub(super) struct DirectedLink<T> {
    name: String,
    pub(super) direction: LinkDirection,
    policer: Option<Policer<T>>,
    /// The count of a policer that was removed.
    policed_before: u64,
    lag: Lag,
    ports: Vec<Port<T>>,
    losses: Losses<T>,
    duplicate: Duplicate<T>,
    overtake: Overtake<T>,
    delay: Delay<T>,
    /// Packets above the MTU.
    pub(super) too_big: u64,
    /// Packets that reached the other end and have not been forwarded yet.
    pub(super) arrived: VecDeque<T>,
    /// The time that is scheduled in the agenda.
    pub(super) planned: Option<Timestamp>,
}

impl<T: PacketBatch> DirectedLink<T> {
    pub(super) fn new(name: String, link: &TopologyLink, direction: LinkDirection, seed: u64) -> Self {
        let framing = direction.framing;
        // Every random stage has its own generator, so that a change to one leaves the others unaffected.
        let seeded = |stage: u64| seed.rotate_left(17) ^ stage;
        Self {
            name,
            policer: direction.police.map(|bucket| Policer::new(bucket, framing)),
            policed_before: 0,
            lag: Lag { members: link.members, fields: link.hash, seed },
            ports: (0..link.members.max(1))
                .map(|m| Port::new(&direction, seeded(16 + u64::from(m))))
                .collect(),
            losses: Losses::new(&direction.loss, framing, seeded(1)),
            duplicate: Duplicate::new(direction.duplicate, framing, seeded(2)),
            overtake: Overtake::new(direction.reorder, framing, seeded(3)),
            delay: Delay::new(direction.delay, direction.jitter, framing, seeded(4)),
            too_big: 0,
            arrived: VecDeque::new(),
            planned: None,
            direction,
        }
    }

    pub(super) fn set(&mut self, now: Timestamp, direction: LinkDirection) {
        for port in &mut self.ports {
            port.reconfigure(now, &direction);
        }
        match (&mut self.policer, direction.police) {
            (Some(policer), Some(bucket)) => policer.set(now, bucket),
            (_, bucket) => {
                self.policed_before = self.policed();
                self.policer = bucket.map(|bucket| Policer::new(bucket, direction.framing));
            }
        }
        if direction.loss != self.direction.loss {
            self.losses.set(now, &direction.loss);
        }
        self.duplicate.set(direction.duplicate);
        self.overtake.set(direction.reorder);
        self.delay.set(direction.delay, direction.jitter);
        self.direction = direction;
    }

    /// Bytes waiting in its queues.
    pub(super) fn waiting(&self, now: Timestamp) -> u64 {
        self.ports.iter().map(|port| port.waiting(now)).sum()
    }

    /// Number of its members, each with a queue and a line.
    pub(super) fn members(&self) -> usize {
        self.ports.len()
    }

    /// Accepts a batch, into memory that is shared with other ports or its own.
    pub(super) fn push(&mut self, now: Timestamp, batch: T, shared: Option<SharedMemory>) {
        match &mut self.policer {
            None => self.enqueue(now, batch, shared),
            Some(policer) => {
                policer.push(now, batch);
                while let Some(batch) = self.policer.as_mut().and_then(|policer| policer.pop(now)) {
                    self.enqueue(now, batch, shared);
                }
            }
        }
        self.run(now);
    }

    fn enqueue(&mut self, now: Timestamp, batch: T, shared: Option<SharedMemory>) {
        let member = if self.ports.len() > 1 { self.lag.member(&batch) } else { 0 };
        let port = &mut self.ports[member];
        match shared {
            Some(shared) => port.push_within(now, batch, shared.limit(port.waiting(now))),
            None => port.push(now, batch),
        }
    }

    /// The shortest time that a packet needs from the end of its line to the far end of the wire.
    pub(super) fn least_delay(&self) -> Span {
        self.direction.delay.saturating_sub(self.direction.jitter.most)
    }

    /// True if packets arrive as they were sent, only later.
    fn is_faithful(&self) -> bool {
        self.direction.loss == Loss::None
            && self.direction.duplicate == Ratio::default()
            && self.direction.reorder.probability == Ratio::default()
            && self.overtake.deadline().is_none()
    }

    /// Executes what is due at `now`, which is never later than the deadline.
    pub(super) fn run(&mut self, now: Timestamp) {
        if self.is_faithful() {
            for port in &mut self.ports {
                while let Some(batch) = port.pop(now) {
                    self.delay.push(now, batch);
                }
            }
        } else {
            self.run_unfaithful(now);
        }
        while let Some(batch) = self.delay.pop(now) {
            self.arrived.push_back(batch);
        }
    }

    fn run_unfaithful(&mut self, now: Timestamp) {
        for port in &mut self.ports {
            while let Some(batch) = port.pop(now) {
                self.losses.push(now, batch);
            }
        }
        while let Some(batch) = self.losses.pop(now) {
            self.duplicate.push(now, batch);
        }
        while let Some(batch) = self.duplicate.pop(now) {
            self.overtake.push(now, batch);
        }
        while let Some(batch) = self.overtake.pop(now) {
            self.delay.push(now, batch);
        }
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let ports = self.ports.iter().filter_map(Stage::deadline).min();
        [ports, self.overtake.deadline(), self.delay.deadline()].into_iter().flatten().min()
    }

    pub(super) fn counts(&self, now: Timestamp) -> PortCounts {
        let mut counts = PortCounts {
            name: self.name.clone(),
            dropped_policer: self.policed(),
            dropped_wire: self.losses.stats().dropped.packets,
            dropped_too_big: self.too_big,
            duplicated: self.duplicate.stats().added.packets,
            reordered: self.overtake.overtaken(),
            ..PortCounts::default()
        };
        let lag = self.ports.len() > 1;
        for port in &self.ports {
            let (stats, wire, waiting) = (port.stats(), port.wire_bytes(), port.waiting(now));
            counts.packets += stats.given.packets;
            counts.bytes = Bytes::new(counts.bytes.get() + stats.given.bytes.get());
            counts.wire_bytes = Bytes::new(counts.wire_bytes.get() + wire.get());
            counts.busy = counts.busy + port.busy(now);
            counts.queue_bytes = Bytes::new(counts.queue_bytes.get() + waiting);
            counts.queue_max_bytes = Bytes::new(counts.queue_max_bytes.get() + port.peak(now));
            counts.peak_bytes = Bytes::new(counts.peak_bytes.get() + port.peak_ever());
            counts.dropped_queue += stats.dropped.packets;
            counts.marked += stats.marked;
            if lag {
                counts.members.push(MemberCounts {
                    packets: stats.given.packets,
                    wire_bytes: wire,
                    queue_bytes: Bytes::new(waiting),
                    dropped_queue: stats.dropped.packets,
                });
            }
        }
        counts
    }

    pub(super) fn reset_peaks(&mut self, now: Timestamp) {
        for port in &mut self.ports {
            port.reset_peak(now);
        }
    }

    fn policed(&self) -> u64 {
        self.policed_before + self.policer.as_ref().map_or(0, |policer| policer.stats().dropped.packets)
    }

    pub(super) fn enter_into(&self, accounting: &mut PacketAccounting) {
        accounting.dropped += self.too_big + self.policed();
        for stats in self.ports.iter().map(Stage::stats) {
            accounting.dropped += stats.dropped.packets;
            accounting.held += stats.held.packets;
        }
        let tail = [self.losses.stats(), self.duplicate.stats(), self.overtake.stats(), self.delay.stats()];
        for stats in tail {
            accounting.dropped += stats.dropped.packets;
            accounting.made += stats.added.packets;
            accounting.held += stats.held.packets;
        }
    }
}
