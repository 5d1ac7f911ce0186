//! The storage of a queue: waiting packets, first in, first out.

use std::collections::VecDeque;
use std::mem;

use linerate_units::Timestamp;

use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::cut::{PacketArrivals, runs, split};
use crate::stage::{Count, Stats};

/// Waiting batches, and their counters.
#[derive(Debug)]
pub(super) struct BatchStore<T> {
    waiting: VecDeque<Waiting<T>>,
    framing: Framing,
    /// The largest frame that ever waited: a full-size packet for CoDel.
    largest: u64,
    stats: Stats,
}

#[derive(Debug)]
struct Waiting<T> {
    /// When its last packet arrived.
    arrived: Timestamp,
    batch: T,
}

impl<T: PacketBatch> BatchStore<T> {
    pub(super) fn new(framing: Framing) -> Self {
        Self { waiting: VecDeque::new(), framing, largest: 0, stats: Stats::default() }
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    pub(super) fn stats(&self) -> Stats {
        self.stats
    }

    /// The first batch in the queue, and when its last packet arrived.
    pub(super) fn head(&self) -> Option<(Timestamp, &T)> {
        self.waiting.front().map(|waiting| (waiting.arrived, &waiting.batch))
    }

    /// Counts a batch that was offered.
    pub(super) fn arrived(&mut self, batch: &T) {
        self.stats.taken.add(Count::of(batch, self.framing));
    }

    /// Queues a batch whose last packet arrived at `arrived`.
    pub(super) fn enqueue(&mut self, arrived: Timestamp, batch: T) {
        self.largest = self.largest.max(self.framing.frame(batch.sizes().each));
        self.stats.held.add(Count::of(&batch, self.framing));
        self.waiting.push_back(Waiting { arrived, batch });
    }

    /// Queues the packets of a batch that arrives at `now` while they fit into `free` bytes, and drops the
    /// others. A short last packet may fit after longer ones that did not.
    pub(super) fn keep_fitting(&mut self, now: Timestamp, batch: T, mut free: u64) {
        let (framing, sizes, arrivals) = (self.framing, batch.sizes(), PacketArrivals::of(&batch, now));
        let fits = |_: &T, index: u32, rest: u32| {
            let frame = framing.frame(sizes.of(index));
            let alike = if rest > 1 { rest - 1 } else { 1 };
            let fitting = (free / frame).min(u64::from(alike));
            free -= fitting * frame;
            if fitting > 0 { (fitting as u32, true) } else { (alike, false) }
        };
        let mut settled = 0;
        runs(batch, fits, |run, fits| {
            settled += run.packets();
            if fits {
                self.enqueue(arrivals.at(settled - 1), run);
            } else {
                self.drop_batch(&run);
            }
        });
    }

    /// Counts a batch that is discarded.
    pub(super) fn drop_batch(&mut self, batch: &T) {
        self.stats.dropped.add(Count::of(batch, self.framing));
    }

    /// Counts a batch that goes to the line.
    pub(super) fn give(&mut self, batch: &T) {
        self.stats.given.add(Count::of(batch, self.framing));
    }

    /// Counts packets that were marked.
    pub(super) fn mark(&mut self, packets: u32) {
        self.stats.marked += u64::from(packets);
    }

    /// Takes the head, which is counted as neither sent nor dropped yet, with the arrival of its last packet.
    pub(super) fn take_head(&mut self) -> Option<(Timestamp, T)> {
        let Waiting { arrived, batch } = self.waiting.pop_front()?;
        self.stats.held.take(Count::of(&batch, self.framing));
        Some((arrived, batch))
    }

    /// Takes the first `packets` packets of the head (at least 1), likewise.
    pub(super) fn take_packets(&mut self, packets: u32) -> Option<(Timestamp, T)> {
        let head = self.waiting.front_mut()?;
        if packets >= head.batch.packets() {
            return self.take_head();
        }
        let arrived = PacketArrivals::of(&head.batch, head.arrived).at(packets - 1);
        let after = split(&mut head.batch, packets);
        let batch = mem::replace(&mut head.batch, after);
        self.stats.held.take(Count::of(&batch, self.framing));
        Some((arrived, batch))
    }

    /// Changes the framing from now on; waiting packets are counted as if they had arrived with it.
    pub(super) fn reframe(&mut self, framing: Framing) {
        if framing == self.framing {
            return;
        }
        self.framing = framing;
        let mut held = Count::default();
        for waiting in &self.waiting {
            held.add(Count::of(&waiting.batch, framing));
        }
        self.stats.taken.take(self.stats.held);
        self.stats.taken.add(held);
        self.stats.held = held;
        self.largest = 0;
        for waiting in &self.waiting {
            self.largest = self.largest.max(framing.frame(waiting.batch.sizes().each));
        }
    }
}
