//! Duplication: some packets arrive twice.

use linerate_units::{Ratio, Timestamp};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::Stage;
use crate::stage::cut::{runs, split};
use crate::stage::departures::{Departures, departures};
use crate::stage::trials::Trials;

/// A network that duplicates packets, each with the same probability; the copy immediately follows its packet.
#[derive(Debug)]
pub struct Duplicate<T> {
    chosen: Trials,
    rng: StdRng,
    departures: Departures<T>,
}

impl<T: PacketBatch> Duplicate<T> {
    /// Duplicates a `share` of the packets.
    #[must_use]
    pub fn new(share: Ratio, framing: Framing, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        Self { chosen: Trials::new(share, &mut rng), rng, departures: Departures::new(framing) }
    }

    /// Changes the share for later packets.
    pub fn set(&mut self, share: Ratio) {
        self.chosen = Trials::new(share, &mut self.rng);
    }
}

impl<T: PacketBatch> Stage<T> for Duplicate<T> {
    fn push(&mut self, now: Timestamp, batch: T) {
        let Self { chosen, rng, departures } = self;
        departures.arrived(&batch);
        runs(
            batch,
            |_, _, rest| chosen.next(rest, rng),
            |run, twice| {
                if twice {
                    leave_twice(departures, now, run);
                } else {
                    departures.leave(now, run);
                }
            },
        );
    }

    departures!(T);
}

/// Sends each packet of a run, followed by its copy.
fn leave_twice<T: PacketBatch>(departures: &mut Departures<T>, now: Timestamp, run: T) {
    let mut rest = Some(run);
    while let Some(mut packet) = rest {
        rest = (packet.packets() > 1).then(|| split(&mut packet, 1));
        let copy = packet.duplicate();
        departures.made(&copy);
        departures.leave(now, packet);
        departures.leave(now, copy);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stage::laws::{Laws, Numbered, arrivals, check, likely, pass};

    fn duplicate(share: f64, seed: u64) -> Duplicate<Numbered> {
        Duplicate::new(Ratio::new(share).unwrap(), Framing::default(), seed)
    }

    #[test]
    fn the_share_arrives_twice() {
        let packets = 1_000_000;
        for share in [0.001, 0.3] {
            let mut stage = duplicate(share, 1);
            pass(&mut stage, packets);
            let added = stage.stats().added.packets;
            assert!(likely(added, packets, share), "{added} of {packets} at {share}");
        }
    }

    #[test]
    fn each_copy_follows_its_packet() {
        let mut stage = duplicate(1.0, 1);
        let left = pass(&mut stage, 3);
        let seen: Vec<_> = left.iter().map(|batch| (batch.ids(), batch.copy())).collect();
        assert_eq!(
            seen,
            [(0..1, false), (0..1, true), (1..2, false), (1..2, true), (2..3, false), (2..3, true)]
        );
        stage.set(Ratio::default());
        assert_eq!(pass(&mut stage, 44).len(), 1, "a batch without duplicates is not cut");
    }

    proptest! {
        #[test]
        fn keeps_the_laws(arriving in arrivals(), share in 0.0..=1.0, seed: u64) {
            check(&arriving, Laws::IN_ORDER, || duplicate(share, seed))?;
        }
    }
}
