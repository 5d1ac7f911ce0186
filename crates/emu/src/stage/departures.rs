//! The batches held by a stage, in the order of departure, and the stage's counters.

use std::collections::{BTreeMap, VecDeque};

use linerate_units::Timestamp;

use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::{Count, Stats};

/// Everything of a [`Stage`](crate::stage::Stage) that only concerns the batches in its field `departures`.
macro_rules! departures {
    ($T:ident) => {
        fn pop(&mut self, now: linerate_units::Timestamp) -> Option<$T> {
            self.departures.pop(now)
        }

        fn deadline(&self) -> Option<linerate_units::Timestamp> {
            self.departures.deadline()
        }

        fn stats(&self) -> crate::stage::Stats {
            self.departures.stats()
        }
    };
}
pub(super) use departures;

/// Time of departure; among equals, the order of arrival.
type DepartureOrder = (Timestamp, u64);

/// Batches that wait for their time of departure.
///
/// A batch that leaves after all others is appended to the line at constant cost; only one that overtakes costs
/// the logarithm of the number of those that do. Everything that overtakes leaves before the end of the line,
/// so the line is empty last.
#[derive(Debug)]
pub(super) struct Departures<T> {
    framing: Framing,
    stats: Stats,
    line: VecDeque<(DepartureOrder, T)>,
    overtaking: BTreeMap<DepartureOrder, T>,
    scheduled: u64,
}

impl<T: PacketBatch> Departures<T> {
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            stats: Stats::default(),
            line: VecDeque::new(),
            overtaking: BTreeMap::new(),
            scheduled: 0,
        }
    }

    /// Counts a batch that was pushed. Its fate is counted by [`Self::leave`] and [`Self::drop_batch`].
    pub(super) fn arrived(&mut self, batch: &T) {
        self.stats.taken.add(Count::of(batch, self.framing));
    }

    /// Counts a batch created by the stage.
    pub(super) fn made(&mut self, batch: &T) {
        self.stats.added.add(Count::of(batch, self.framing));
    }

    /// Counts a batch that is discarded.
    pub(super) fn drop_batch(&mut self, batch: &T) {
        self.stats.dropped.add(Count::of(batch, self.framing));
    }

    /// Holds a batch until `at`.
    pub(super) fn leave(&mut self, at: Timestamp, batch: T) {
        self.stats.held.add(Count::of(&batch, self.framing));
        let turn = (at, self.scheduled);
        self.scheduled += 1;
        if self.last().is_none_or(|last| last <= at) {
            self.line.push_back((turn, batch));
        } else {
            self.overtaking.insert(turn, batch);
        }
    }

    /// When the last of those held leaves.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.line.back().map(|((at, _), _)| *at)
    }

    pub(super) fn deadline(&self) -> Option<Timestamp> {
        self.next().map(|(at, _)| at)
    }

    pub(super) fn pop(&mut self, now: Timestamp) -> Option<T> {
        let turn = self.next().filter(|(at, _)| *at <= now)?;
        let batch = match self.overtaking.remove(&turn) {
            Some(batch) => batch,
            None => self.line.pop_front()?.1,
        };
        let count = Count::of(&batch, self.framing);
        self.stats.held.take(count);
        self.stats.given.add(count);
        Some(batch)
    }

    pub(super) fn stats(&self) -> Stats {
        self.stats
    }

    fn next(&self) -> Option<DepartureOrder> {
        let line = self.line.front().map(|(turn, _)| *turn);
        let overtaking = self.overtaking.first_key_value().map(|(turn, _)| *turn);
        line.into_iter().chain(overtaking).min()
    }
}
