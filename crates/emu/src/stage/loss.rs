//! Loss on the wire: random, in bursts, every nth packet, or at given times.

use std::collections::VecDeque;

use linerate_units::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::link_direction::{GilbertElliott, Loss};
use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::Stage;
use crate::stage::cut::{PacketArrivals, runs};
use crate::stage::departures::{Departures, departures};
use crate::stage::trials::{Trials, failures};

/// A wire that loses packets and passes the others immediately.
#[derive(Debug)]
pub struct Losses<T> {
    process: LossProcess,
    rng: StdRng,
    departures: Departures<T>,
}

impl<T: PacketBatch> Losses<T> {
    /// Loses packets as specified by `loss`.
    #[must_use]
    pub fn new(loss: &Loss, framing: Framing, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let process = LossProcess::new(loss, None, &mut rng);
        Self { process, rng, departures: Departures::new(framing) }
    }

    /// Changes what happens to packets after `now`. Counters and states restart; a time of [`Loss::AtTimes`] that
    /// is not after `now` has no effect, whether a packet passed then or not.
    pub fn set(&mut self, now: Timestamp, loss: &Loss) {
        self.process = LossProcess::new(loss, Some(now), &mut self.rng);
    }
}

impl<T: PacketBatch> Stage<T> for Losses<T> {
    fn push(&mut self, now: Timestamp, batch: T) {
        let Self { process, rng, departures } = self;
        departures.arrived(&batch);
        let arrivals = PacketArrivals::of(&batch, now);
        runs(
            batch,
            |_, index, rest| process.next(&arrivals, index, rest, rng),
            |run, lost| {
                if lost {
                    departures.drop_batch(&run);
                } else {
                    departures.leave(now, run);
                }
            },
        );
    }

    departures!(T);
}

/// The process that decides which packets are lost.
#[derive(Debug)]
enum LossProcess {
    None,
    Random(Trials),
    Burst(Burst),
    EveryNth {
        n: u64,
        /// Packets that pass before the next loss.
        passing: u64,
    },
    /// Times that no packet has reached yet, in order.
    AtTimes(VecDeque<Timestamp>),
}

impl LossProcess {
    /// The process from `now` on; absent: from the start of the emulation on.
    fn new(loss: &Loss, now: Option<Timestamp>, rng: &mut StdRng) -> Self {
        match loss {
            Loss::None | Loss::EveryNth(0) => Self::None,
            Loss::Random(probability) => Self::Random(Trials::new(*probability, rng)),
            Loss::Burst(settings) => Self::Burst(Burst::new(*settings, rng)),
            Loss::EveryNth(n) => Self::EveryNth { n: *n, passing: n - 1 },
            Loss::AtTimes(instants) => {
                let mut left: Vec<_> = instants.iter().copied().filter(|at| Some(*at) > now).collect();
                left.sort_unstable();
                Self::AtTimes(left.into())
            }
        }
    }

    /// Decides some of the `rest` packets from `index` on, at least one: how many, and whether they are lost.
    fn next(&mut self, arrivals: &PacketArrivals, index: u32, rest: u32, rng: &mut StdRng) -> (u32, bool) {
        match self {
            Self::None => (rest, false),
            Self::Random(trials) => trials.next(rest, rng),
            Self::Burst(burst) => burst.next(rest, rng),
            Self::EveryNth { n, passing: 0 } => {
                *self = Self::EveryNth { n: *n, passing: *n - 1 };
                (1, true)
            }
            Self::EveryNth { passing, .. } => {
                let pass = at_most(*passing, rest);
                *passing -= u64::from(pass);
                (pass, false)
            }
            Self::AtTimes(instants) => at_times(instants, arrivals, index, rest),
        }
    }
}

/// The smaller of the two.
fn at_most(many: u64, rest: u32) -> u32 {
    u32::try_from(many).map_or(rest, |many| many.min(rest))
}

fn at_times(
    instants: &mut VecDeque<Timestamp>,
    arrivals: &PacketArrivals,
    index: u32,
    rest: u32,
) -> (u32, bool) {
    let reached = |packet: &u32| instants.front().is_some_and(|at| *at <= arrivals.at(*packet));
    if !reached(&(index + rest - 1)) {
        return (rest, false);
    }
    let first = (index..index + rest).find(reached).unwrap_or(index);
    if first > index {
        return (first - index, false);
    }
    // One packet consumes every time that it is the first to reach.
    while instants.front().is_some_and(|at| *at <= arrivals.at(index)) {
        instants.pop_front();
    }
    (1, true)
}

/// The model of Gilbert and Elliott. It starts in the good state; the loss of a packet is decided in the
/// current state, then the state may change, so it lasts for at least one packet.
#[derive(Debug)]
struct Burst {
    settings: GilbertElliott,
    bad: bool,
    /// Remaining packets of the current state.
    stay: u64,
    losses: Trials,
}

impl Burst {
    fn new(settings: GilbertElliott, rng: &mut StdRng) -> Self {
        Self::enter(settings, false, rng)
    }

    fn enter(settings: GilbertElliott, bad: bool, rng: &mut StdRng) -> Self {
        let (leave, loss) = match bad {
            false => (settings.to_bad, settings.loss_good),
            true => (settings.to_good, settings.loss_bad),
        };
        let stay = failures(leave.get(), rng).saturating_add(1);
        Self { settings, bad, stay, losses: Trials::new(loss, rng) }
    }

    fn next(&mut self, rest: u32, rng: &mut StdRng) -> (u32, bool) {
        if self.stay == 0 {
            *self = Self::enter(self.settings, !self.bad, rng);
        }
        let decided = self.losses.next(at_most(self.stay, rest), rng);
        self.stay -= u64::from(decided.0);
        decided
    }
}

#[cfg(test)]
mod tests {
    use linerate_units::{Ratio, Span};
    use proptest::prelude::*;

    use super::*;
    use crate::stage::laws::{Laws, Numbered, arrivals, check, likely, missing, pass, within_99};

    fn ratio(value: f64) -> Ratio {
        Ratio::new(value).unwrap()
    }

    fn losses(loss: &Loss, seed: u64) -> Losses<Numbered> {
        Losses::new(loss, Framing::default(), seed)
    }

    /// By number of the packet: whether it was lost.
    fn lost(loss: &Loss, packets: u64) -> Vec<bool> {
        let mut stage = losses(loss, 1);
        let lost = missing(&pass(&mut stage, packets), packets);
        assert_eq!(stage.stats().dropped.packets, count(&lost));
        lost
    }

    fn count(lost: &[bool]) -> u64 {
        lost.iter().filter(|lost| **lost).count() as u64
    }

    /// Numbers of the lost packets.
    fn numbers(lost: &[bool]) -> Vec<usize> {
        (0..lost.len()).filter(|id| lost[*id]).collect()
    }

    #[test]
    fn random_loss_has_its_probability_and_no_memory() {
        let packets = 2_000_000;
        for probability in [1e-4, 0.02, 0.5] {
            let lost = lost(&Loss::Random(ratio(probability)), packets);
            assert!(likely(count(&lost), packets, probability), "{} at {probability}", count(&lost));
            // Each pair of neighbours, disjoint from the others, is an independent trial.
            let pairs = lost.chunks(2).filter(|pair| pair[0] && pair[1]).count() as u64;
            assert!(likely(pairs, packets / 2, probability * probability), "{pairs} pairs at {probability}");
        }
        assert_eq!(count(&lost(&Loss::Random(ratio(0.0)), 1000)), 0);
        assert_eq!(count(&lost(&Loss::Random(ratio(1.0)), 1000)), 1000);
        assert_eq!(pass(&mut losses(&Loss::None, 1), 44).len(), 1, "a batch without loss is not cut");
    }

    #[test]
    fn bursts_have_their_share_and_length() {
        let (to_bad, to_good, packets) = (0.01, 0.2, 2_000_000);
        let (loss_good, loss_bad) = (ratio(0.0), ratio(1.0));
        let settings = GilbertElliott { to_bad: ratio(to_bad), to_good: ratio(to_good), loss_good, loss_bad };
        let lost = lost(&Loss::Burst(settings), packets);

        // The stationary share of the bad state; neighbours correlate with the eigenvalue 1 - to_bad - to_good.
        let share = to_bad / (to_bad + to_good);
        let correlation = 1.0 - to_bad - to_good;
        let variance = share * (1.0 - share) * (1.0 + correlation) / (1.0 - correlation);
        let seen = count(&lost) as f64 / packets as f64;
        assert!(within_99(seen, share, (variance / packets as f64).sqrt()), "{seen}, not {share}");

        // Burst lengths are geometrically distributed.
        let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count() as f64;
        let length = count(&lost) as f64 / bursts;
        let deviation = (1.0 - to_good).sqrt() / to_good / bursts.sqrt();
        assert!(within_99(length, 1.0 / to_good, deviation), "{length}");
        let single = lost.chunk_by(|a, b| a == b).filter(|run| run[0] && run.len() == 1).count();
        assert!(likely(single as u64, bursts as u64, to_good), "{single} of {bursts}");
    }

    #[test]
    fn both_states_lose_by_their_own_probability() {
        let (to_bad, to_good, loss_good, loss_bad) = (0.05, 0.05, 0.01, 0.4);
        let settings = GilbertElliott {
            to_bad: ratio(to_bad),
            to_good: ratio(to_good),
            loss_good: ratio(loss_good),
            loss_bad: ratio(loss_bad),
        };
        let packets = 2_000_000;
        let lost = lost(&Loss::Burst(settings), packets);
        let share: f64 = 0.5 * loss_good + 0.5 * loss_bad;
        // Losses of packets k apart have the covariance of the states: (difference of probabilities)^2 / 4 x
        // eigenvalue^k.
        let between = (loss_bad - loss_good) * (loss_bad - loss_good) / 4.0;
        let variance = share * (1.0 - share) + 2.0 * between * 0.9 / (1.0 - 0.9);
        let seen = count(&lost) as f64 / packets as f64;
        assert!(within_99(seen, share, (variance / packets as f64).sqrt()), "{seen}, not {share}");
    }

    #[test]
    fn every_nth_is_every_nth() {
        assert_eq!(numbers(&lost(&Loss::EveryNth(40), 130)), [39, 79, 119]);
        assert_eq!(count(&lost(&Loss::EveryNth(1), 100)), 100);
        assert_eq!(count(&lost(&Loss::EveryNth(0), 100)), 0);
    }

    #[test]
    fn at_times_the_first_packet_from_then_on_is_lost() {
        let at = |us: u64| Timestamp::from_ns(1000 * us);
        let instants = [2500, 300, 1000, 1000, 2501].map(at).to_vec();
        let mut stage = losses(&Loss::AtTimes(instants), 1);
        // Packets 0 to 4 arrive at 600, 700, ... 1000 us; packets 5 to 9 at 2000, 2500, ... 4000 us.
        stage.push(at(1000), Numbered::new(0, 5, 1514).spread_over(Span::from_ns(400_000)));
        stage.push(at(4000), Numbered::new(5, 5, 1514).spread_over(Span::from_ms(2)));
        let left: Vec<_> = std::iter::from_fn(|| stage.pop(at(4000))).collect();
        assert_eq!(numbers(&missing(&left, 10)), [0, 4, 6, 7]);

        // A time that has passed before `set` has no effect afterwards, even if no packet has come since.
        for (instants, expected) in [(vec![at(3999), at(4000)], vec![]), (vec![at(4001)], vec![0])] {
            let mut stage = losses(&Loss::None, 1);
            stage.set(at(4000), &Loss::AtTimes(instants));
            stage.push(at(4002), Numbered::new(0, 3, 1514));
            let left: Vec<_> = std::iter::from_fn(|| stage.pop(at(4002))).collect();
            assert_eq!(numbers(&missing(&left, 3)), expected);
        }
    }

    fn any_loss() -> impl Strategy<Value = Loss> {
        let share = || (0.0..=1.0).prop_map(ratio);
        let burst =
            (share(), share(), share(), share()).prop_map(|(to_bad, to_good, loss_good, loss_bad)| {
                Loss::Burst(GilbertElliott { to_bad, to_good, loss_good, loss_bad })
            });
        let instants = prop::collection::vec((0..10_000_000_u64).prop_map(Timestamp::from_ns), 0..20);
        prop_oneof![
            Just(Loss::None),
            share().prop_map(Loss::Random),
            burst,
            (0..100_u64).prop_map(Loss::EveryNth),
            instants.prop_map(Loss::AtTimes),
        ]
    }

    proptest! {
        #[test]
        fn keeps_the_laws(arriving in arrivals(), loss in any_loss(), seed: u64) {
            check(&arriving, Laws::IN_ORDER, || losses(&loss, seed))?;
        }
    }
}
