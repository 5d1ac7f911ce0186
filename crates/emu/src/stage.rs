//! The stages of a path, each a state machine without clock and without input or output.
//!
//! The contract: *push what arrives; then, at every deadline, pop until `None`.* Time is an argument. A driver that pops
//! at the deadlines, in order, gets every train at its exact time; one that comes late gets the same trains in the same
//! order, because what leaves is decided by deadlines and not by when somebody looked. All randomness comes from the
//! seed that a stage is made with.
//!
//! Waiting, serialising and propagating are three stages: a buffer holds only what waits.

mod codel;
mod cut;
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
    /// Takes a train that has arrived: its last packet arrives `now`.
    fn push(&mut self, now: Timestamp, batch: T);

    /// Gives a train that leaves at or before `now`, in the order of leaving; `None` when nothing does.
    fn pop(&mut self, now: Timestamp) -> Option<T>;

    /// When the next train leaves; `None` while the stage is empty.
    fn deadline(&self) -> Option<Timestamp>;

    /// What went through so far. In, out, dropped, added and held balance at every moment: [`Stats::balanced`].
    fn stats(&self) -> Stats;
}

/// A number of packets and their bytes, counted as [`Framing::frame`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Packets on the wire, not trains.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: Bytes,
}

impl Count {
    /// The packets of a train.
    pub fn of(batch: &impl PacketBatch, framing: Framing) -> Self {
        Self { packets: u64::from(batch.packets()), bytes: batch.bytes(framing) }
    }

    /// Adds.
    pub fn add(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes = Bytes::new(self.bytes.get() + more.bytes.get());
    }

    /// Takes away what was added before.
    pub fn take(&mut self, less: Self) {
        self.packets = self.packets.saturating_sub(less.packets);
        self.bytes = Bytes::new(self.bytes.get().saturating_sub(less.bytes.get()));
    }
}

/// The books of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Pushed.
    pub taken: Count,
    /// Popped.
    pub given: Count,
    /// Thrown away.
    pub dropped: Count,
    /// Made here: duplicates.
    pub added: Count,
    /// Here now.
    pub held: Count,
    /// Marked as having met congestion; they are in `given` or `held` too.
    pub marked: u64,
}

impl Stats {
    /// True if in and added are out, dropped and held, in packets and in bytes.
    #[must_use]
    pub fn balanced(&self) -> bool {
        let sum = |counts: &[Count], of: fn(&Count) -> u64| counts.iter().map(of).sum::<u64>();
        let (into, out) = ([self.taken, self.added], [self.given, self.dropped, self.held]);
        sum(&into, |c| c.packets) == sum(&out, |c| c.packets)
            && sum(&into, |c| c.bytes.get()) == sum(&out, |c| c.bytes.get())
    }
}
