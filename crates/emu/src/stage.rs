//! The stages of a path, each a state machine without clock and without input or output.
//!
//! The contract: *push what arrives; then, at every deadline, pop until `None`.* Time is an argument. A driver
//! that pops at the deadlines, in order, gets every batch at its exact time; one that is late gets the same
//! batches in the same order, because departures are determined by deadlines and not by the time of the call.
//! All randomness comes from the seed of the stage.
//!
//! Queueing, serialisation and propagation are three stages: a buffer holds only waiting packets.

mod codel;
pub(crate) mod cut;
pub mod delay;
mod departures;
pub mod duplicate;
pub mod lag;
#[cfg(test)]
pub(crate) mod laws;
pub mod loss;
pub mod policer;
pub mod queue;
mod red;
pub mod reorder;
pub mod shaper;
mod store;
mod trials;

use linerate_units::{Bytes, Timestamp};

use crate::packet_batch::{Framing, PacketBatch};

/// One stage of a path.
pub trait Stage<T: PacketBatch> {
    /// Accepts a batch that has arrived: its last packet arrives at `now`.
    fn push(&mut self, now: Timestamp, batch: T);

    /// Returns a batch that leaves at or before `now`, in the order of departure; `None` if none does.
    fn pop(&mut self, now: Timestamp) -> Option<T>;

    /// When the next batch leaves; `None` while the stage is empty.
    fn deadline(&self) -> Option<Timestamp>;

    /// The counters so far. In, out, dropped, added and held balance at any time: [`Stats::balanced`].
    fn stats(&self) -> Stats;
}

/// A number of packets and their bytes, counted as [`Framing::frame`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Packets on the wire, not batches.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: Bytes,
}

impl Count {
    /// The packets of a batch.
    pub fn of(batch: &impl PacketBatch, framing: Framing) -> Self {
        Self { packets: u64::from(batch.packets()), bytes: batch.bytes(framing) }
    }

    /// Adds.
    pub fn add(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes = Bytes::new(self.bytes.get() + more.bytes.get());
    }

    /// Subtracts what was added before.
    pub fn take(&mut self, less: Self) {
        self.packets = self.packets.saturating_sub(less.packets);
        self.bytes = Bytes::new(self.bytes.get().saturating_sub(less.bytes.get()));
    }
}

/// The counters of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Pushed.
    pub taken: Count,
    /// Popped.
    pub given: Count,
    /// Discarded.
    pub dropped: Count,
    /// Created by the stage: duplicates.
    pub added: Count,
    /// In the stage now.
    pub held: Count,
    /// Marked with congestion experienced; also counted in `given` or `held`.
    pub marked: u64,
}

impl Stats {
    /// True if packets and bytes in and added equal those out, dropped and held.
    #[must_use]
    pub fn balanced(&self) -> bool {
        let sum = |counts: &[Count], of: fn(&Count) -> u64| counts.iter().map(of).sum::<u64>();
        let (into, out) = ([self.taken, self.added], [self.given, self.dropped, self.held]);
        sum(&into, |c| c.packets) == sum(&out, |c| c.packets)
            && sum(&into, |c| c.bytes.get()) == sum(&out, |c| c.bytes.get())
    }
}
