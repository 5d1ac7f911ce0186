//! Propagation: a delay, and its random part.

use linerate_units::{Span, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::link_direction::DelayJitter;
use crate::packet_batch::{Framing, PacketBatch};
use crate::stage::Stage;
use crate::stage::departures::{Departures, departures};

/// A propagation delay. A batch keeps its shape: all its packets are delayed equally.
///
/// If order is preserved, a batch that would overtake leaves together with the last before it. The same applies
/// when the delay is reduced while batches are in flight.
#[derive(Debug)]
pub struct Delay<T> {
    delay: Span,
    jitter: DelayJitter,
    rng: StdRng,
    departures: Departures<T>,
}

impl<T: PacketBatch> Delay<T> {
    /// A delay that deviates by at most `jitter` in either direction.
    #[must_use]
    pub fn new(delay: Span, jitter: DelayJitter, framing: Framing, seed: u64) -> Self {
        Self { delay, jitter, rng: StdRng::seed_from_u64(seed), departures: Departures::new(framing) }
    }

    /// Changes the delay of later batches.
    pub fn set(&mut self, delay: Span, jitter: DelayJitter) {
        (self.delay, self.jitter) = (delay, jitter);
    }

    fn draw(&mut self) -> Span {
        let most = self.jitter.most;
        if most == Span::ZERO {
            return self.delay;
        }
        let above_least = Span::from_ns(self.rng.random_range(0..=(most + most).as_ns()));
        (self.delay + above_least).saturating_sub(most)
    }
}

impl<T: PacketBatch> Stage<T> for Delay<T> {
    fn push(&mut self, now: Timestamp, batch: T) {
        self.departures.arrived(&batch);
        let at = now + self.draw();
        let last = self.departures.last().filter(|_| !self.jitter.may_overtake);
        self.departures.leave(last.map_or(at, |last| last.max(at)), batch);
    }

    departures!(T);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stage::laws::{Laws, Numbered, arrivals, check, likely, within_99};

    fn ms(ms: u64) -> Timestamp {
        Timestamp::START + Span::from_ms(ms)
    }

    fn jitter(most: Span, may_overtake: bool) -> DelayJitter {
        DelayJitter { most, may_overtake }
    }

    fn delay(delay: Span, jitter: DelayJitter) -> Delay<Numbered> {
        Delay::new(delay, jitter, Framing::default(), 1)
    }

    /// Pops everything at its deadline: number of the first packet, and time.
    fn left(stage: &mut Delay<Numbered>) -> Vec<(u64, Timestamp)> {
        let next = || stage.deadline().and_then(|at| Some((stage.pop(at)?.ids().start, at)));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_batch_arrives_whole_after_the_delay() {
        let mut stage = delay(Span::from_ms(25), DelayJitter::default());
        let batch = Numbered::new(0, 44, 9014).spread_over(Span::from_ms(1));
        stage.push(ms(3), batch.clone());
        assert_eq!(stage.deadline(), Some(ms(28)));
        assert_eq!(stage.pop(Timestamp::from_ns(27_999_999)), None);
        assert_eq!(stage.pop(ms(28)), Some(batch));
    }

    #[test]
    fn order_survives_a_shorter_delay_unless_it_need_not() {
        for (may_overtake, expected) in [
            (false, [(0, ms(101)), (1, ms(101)), (2, ms(112))]),
            (true, [(1, ms(12)), (0, ms(101)), (2, ms(112))]),
        ] {
            let mut stage = delay(Span::from_ms(100), DelayJitter::default());
            stage.push(ms(1), Numbered::new(0, 1, 100));
            stage.set(Span::from_ms(10), jitter(Span::ZERO, may_overtake));
            stage.push(ms(2), Numbered::new(1, 1, 100));
            let mut seen: Vec<_> =
                stage.pop(ms(12)).map(|batch| (batch.ids().start, ms(12))).into_iter().collect();
            seen.extend(left(&mut stage));
            stage.push(ms(102), Numbered::new(2, 1, 100));
            seen.extend(left(&mut stage));
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn jitter_is_uniform_around_the_delay() {
        let (base, most, batches) = (Span::from_ms(20), Span::from_ms(4), 100_000);
        let mut stage = delay(base, jitter(most, true));
        (0..batches).for_each(|id| stage.push(ms(id), Numbered::new(id, 1, 100)));
        let delays: Vec<f64> =
            left(&mut stage).into_iter().map(|(id, at)| at.since(ms(id)).as_secs_f64() * 1e3).collect();
        assert!(delays.iter().all(|ms| (16.0..=24.0).contains(ms)));
        let mean = delays.iter().sum::<f64>() / batches as f64;
        // The standard deviation of a uniform variable over a width of 8 is 8 / sqrt(12).
        assert!(within_99(mean, 20.0, 8.0 / 12_f64.sqrt() / (batches as f64).sqrt()), "{mean}");
        let in_quarter = delays.iter().filter(|ms| **ms < 18.0).count();
        assert!(likely(in_quarter as u64, batches, 0.25), "{in_quarter}");
    }

    #[test]
    fn jitter_never_makes_a_delay_negative() {
        let batches = 10_000;
        let mut stage = delay(Span::from_ms(1), jitter(Span::from_ms(5), true));
        (0..batches).for_each(|id| stage.push(ms(10 + id), Numbered::new(id, 1, 100)));
        let at_once = left(&mut stage).into_iter().filter(|(id, at)| *at == ms(10 + *id)).count();
        assert!(likely(at_once as u64, batches, 0.4), "four tenths of -5 to 5 lie below -1: {at_once}");
    }

    proptest! {
        #[test]
        fn keeps_the_laws(
            arriving in arrivals(), base in 0..3_000_000_u64, most in 0..3_000_000_u64, seed: u64, overtake: bool
        ) {
            let jitter = jitter(Span::from_ns(most), overtake);
            let floor = Span::from_ns(base.saturating_sub(most));
            check(&arriving, Laws { keeps_order: !overtake, floor, ..Laws::IN_ORDER }, || {
                Delay::new(Span::from_ns(base), jitter, Framing::default(), seed)
            })?;
        }

        #[test]
        fn a_plain_delay_keeps_the_laws(arriving in arrivals(), base in 0..3_000_000_u64) {
            let base = Span::from_ns(base);
            check(&arriving, Laws { floor: base, ..Laws::IN_ORDER }, || delay(base, DelayJitter::default()))?;
        }
    }
}
