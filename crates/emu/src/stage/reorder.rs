//! Reordering: some packets are held back while others pass.

use linerate_units::{Span, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::stage::cut::runs;
use crate::stage::departures::Departures;
use crate::stage::trials::Trials;
use crate::stage::{Stage, Stats};
use crate::train::{Framing, Train};
use crate::way::Reorder;

/// A network that lets later packets overtake some: those leave later by a fixed time, all others at once.
#[derive(Debug)]
pub struct Overtake<T> {
    chosen: Trials,
    by: Span,
    rng: StdRng,
    departures: Departures<T>,
    overtaken: u64,
}

impl<T: Train> Overtake<T> {
    /// Holds back as `reorder` says.
    #[must_use]
    pub fn new(reorder: Reorder, framing: Framing, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let chosen = Trials::new(reorder.probability, &mut rng);
        Self { chosen, by: reorder.by, rng, departures: Departures::new(framing), overtaken: 0 }
    }

    /// Packets held back so far.
    #[must_use]
    pub fn overtaken(&self) -> u64 {
        self.overtaken
    }

    /// Changes what happens to the packets that are yet to come.
    pub fn set(&mut self, reorder: Reorder) {
        self.chosen = Trials::new(reorder.probability, &mut self.rng);
        self.by = reorder.by;
    }
}

impl<T: Train> Stage<T> for Overtake<T> {
    fn push(&mut self, now: Timestamp, train: T) {
        let Self { chosen, by, rng, departures, overtaken } = self;
        departures.arrived(&train);
        runs(
            train,
            |_, _, rest| chosen.next(rest, rng),
            |run, held_back| {
                if held_back { *overtaken += u64::from(run.packets()); }
                departures.leave(if held_back { now + *by } else { now }, run)
            },
        );
    }

    fn pop(&mut self, now: Timestamp) -> Option<T> {
        self.departures.pop(now)
    }

    fn deadline(&self) -> Option<Timestamp> {
        self.departures.deadline()
    }

    fn stats(&self) -> Stats {
        self.departures.stats()
    }
}
