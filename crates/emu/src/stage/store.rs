//! The memory of a queue: what waits, first in first out.

use std::collections::VecDeque;
use std::mem;

use linerate_units::Timestamp;

use crate::stage::cut::{Arrivals, split};
use crate::stage::{Count, Stats};
use crate::train::{Framing, Train};

/// Trains that wait, and the books about them.
#[derive(Debug)]
pub(super) struct Store<T> {
    waiting: VecDeque<Waiting<T>>,
    framing: Framing,
    /// The largest frame so far: what CoDel takes for a full packet.
    largest: u64,
    stats: Stats,
}

#[derive(Debug)]
struct Waiting<T> {
    /// When its last packet arrived.
    arrived: Timestamp,
    train: T,
}

impl<T: Train> Store<T> {
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

    /// The train that waits first, and when its last packet arrived.
    pub(super) fn head(&self) -> Option<(Timestamp, &T)> {
        self.waiting.front().map(|waiting| (waiting.arrived, &waiting.train))
    }

    /// Books a train that was offered.
    pub(super) fn arrived(&mut self, train: &T) {
        self.largest = self.largest.max(self.framing.frame(train.sizes().each));
        self.stats.taken.add(Count::of(train, self.framing));
    }

    /// Lets a train wait whose last packet arrived at `arrived`.
    pub(super) fn keep(&mut self, arrived: Timestamp, train: T) {
        self.stats.held.add(Count::of(&train, self.framing));
        self.waiting.push_back(Waiting { arrived, train });
    }

    /// Keeps the first packets of a train that arrives `now`, as many as fit into `free` bytes, and drops the others.
    pub(super) fn keep_fitting(&mut self, now: Timestamp, mut train: T, free: u64) {
        let arrivals = Arrivals::of(&train, now);
        let sizes = train.sizes();
        let fitting = if self.framing.frames_of(&sizes, sizes.packets) <= free {
            sizes.packets
        } else {
            let before_last = u64::from(sizes.packets - 1);
            (free / self.framing.frame(sizes.each)).min(before_last) as u32
        };
        if fitting == 0 {
            return self.lose(&train);
        }
        if fitting < sizes.packets {
            let rest = split(&mut train, fitting);
            self.lose(&rest);
        }
        self.keep(arrivals.at(fitting - 1), train);
    }

    /// Books a train that is thrown away.
    pub(super) fn lose(&mut self, train: &T) {
        self.stats.dropped.add(Count::of(train, self.framing));
    }

    /// Books a train that goes to the line.
    pub(super) fn give(&mut self, train: &T) {
        self.stats.given.add(Count::of(train, self.framing));
    }

    /// Books packets that were marked.
    pub(super) fn mark(&mut self, packets: u32) {
        self.stats.marked += u64::from(packets);
    }

    /// Takes the head. It is neither given nor lost yet.
    pub(super) fn take_head(&mut self) -> Option<T> {
        let train = self.waiting.pop_front()?.train;
        self.stats.held.take(Count::of(&train, self.framing));
        Some(train)
    }

    /// Takes the first `packets` packets of the head, likewise.
    pub(super) fn take_packets(&mut self, packets: u32) -> Option<T> {
        let head = self.waiting.front_mut()?;
        if packets >= head.train.packets() {
            return self.take_head();
        }
        let behind = split(&mut head.train, packets);
        let train = mem::replace(&mut head.train, behind);
        self.stats.held.take(Count::of(&train, self.framing));
        Some(train)
    }

    /// Counts in other frames from now on, as if what waits had come in them.
    pub(super) fn reframe(&mut self, framing: Framing) {
        if framing == self.framing {
            return;
        }
        self.framing = framing;
        let mut held = Count::default();
        for waiting in &self.waiting {
            held.add(Count::of(&waiting.train, framing));
        }
        self.stats.taken.take(self.stats.held);
        self.stats.taken.add(held);
        self.stats.held = held;
        self.largest = 0;
        for waiting in &self.waiting {
            self.largest = self.largest.max(framing.frame(waiting.train.sizes().each));
        }
    }
}
