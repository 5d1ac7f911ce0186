//! Reordering: some packets are held back while others pass.

use linerate_units::{Span, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::link_direction::Reorder;
use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::Stage;
use crate::stage::cut::runs;
use crate::stage::departures::{Departures, departures};
use crate::stage::trials::Trials;

/// A network in which later packets overtake some: those are delayed by a fixed time, all others pass
/// immediately.
#[derive(Debug)]
pub struct Overtake<T> {
    chosen: Trials,
    by: Span,
    rng: StdRng,
    departures: Departures<T>,
    overtaken: u64,
}

impl<T: PacketBatch> Overtake<T> {
    /// Holds packets back as specified by `reorder`.
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

    /// Changes what happens to later packets.
    pub fn set(&mut self, reorder: Reorder) {
        self.chosen = Trials::new(reorder.probability, &mut self.rng);
        self.by = reorder.by;
    }
}

impl<T: PacketBatch> Stage<T> for Overtake<T> {
    fn push(&mut self, now: Timestamp, batch: T) {
        let Self { chosen, by, rng, departures, overtaken } = self;
        departures.arrived(&batch);
        runs(
            batch,
            |_, _, rest| chosen.next(rest, rng),
            |run, held_back| {
                *overtaken += if held_back { u64::from(run.packets()) } else { 0 };
                departures.leave(if held_back { now + *by } else { now }, run);
            },
        );
    }

    departures!(T);
}

#[cfg(test)]
mod tests {
    use linerate_units::Ratio;
    use proptest::prelude::*;

    use super::*;
    use crate::stage::laws::{Laws, Numbered, arrivals, check, likely, pass};

    fn overtake(probability: f64, by: Span, seed: u64) -> Overtake<Numbered> {
        let reorder = Reorder { probability: Ratio::new(probability).unwrap(), by };
        Overtake::new(reorder, Framing::default(), seed)
    }

    #[test]
    fn the_share_is_overtaken() {
        let packets = 1_000_000;
        for share in [0.001, 0.3] {
            // Held back beyond the end of the test, so that only the others pass.
            let mut stage = overtake(share, Span::from_secs(1_000_000), 1);
            pass(&mut stage, packets);
            let held = stage.stats().held.packets;
            assert!(likely(held, packets, share), "{held} of {packets} at {share}");
        }
    }

    #[test]
    fn held_back_packets_leave_later_by_the_time() {
        let at = |ms| Timestamp::START + Span::from_ms(ms);
        let mut stage = overtake(1.0, Span::from_ms(5), 1);
        stage.push(at(1), Numbered::new(0, 2, 100));
        stage.set(Reorder::default());
        stage.push(at(2), Numbered::new(2, 2, 100));
        assert_eq!(stage.pop(at(2)).unwrap().ids(), 2..4);
        assert_eq!((stage.pop(at(5)), stage.deadline()), (None, Some(at(6))));
        assert_eq!(stage.pop(at(6)).unwrap().ids(), 0..2);
    }

    proptest! {
        #[test]
        fn keeps_the_laws(arriving in arrivals(), share in 0.0..=1.0, by in 0..2_000_000_u64, seed: u64) {
            check(&arriving, Laws::ANY_ORDER, || overtake(share, Span::from_ns(by), seed))?;
        }
    }
}
