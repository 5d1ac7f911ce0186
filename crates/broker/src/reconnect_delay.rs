//! How long to wait before dialling again.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SHORTEST: Duration = Duration::from_millis(100);
/// Upper limit after the first failure; it doubles with each further one. 10,000 agents that a broker lost at once
/// come back over this time.
const FIRST_LIMIT: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(30);
/// The same for a client that all the others wait for, of which there are few.
const LONGEST_OF_CENTRE: Duration = Duration::from_secs(1);
/// A person has to act, which takes longer than this.
const SHORTEST_AFTER_REFUSAL: Duration = Duration::from_secs(5);
/// A connection that held for this long was a good one. Shorter ones count as failures: a broker that ends connections
/// at once is not asked ever faster.
const GOOD_CONNECTION: Duration = Duration::from_secs(10);

/// Random delays with exponential limits.
#[derive(Debug)]
pub(crate) struct ReconnectDelay {
    rng: StdRng,
    failures: u32,
    longest: Duration,
}

impl ReconnectDelay {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: StdRng::seed_from_u64(seed), failures: 0, longest: LONGEST }
    }

    /// The delays of a coordinator.
    pub(crate) fn of_centre(seed: u64) -> Self {
        Self { longest: LONGEST_OF_CENTRE, ..Self::new(seed) }
    }

    /// The delay after another failure.
    pub(crate) fn after_failure(&mut self) -> Duration {
        let limit = FIRST_LIMIT.saturating_mul(1 << self.failures.min(8)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        self.rng.random_range(SHORTEST..=limit)
    }

    /// The delay after a connection that held for `held` and was then lost.
    pub(crate) fn after_connection(&mut self, held: Duration) -> Duration {
        if held >= GOOD_CONNECTION {
            self.failures = 0;
        }
        self.after_failure()
    }

    /// The delay after the broker refused the key or the permissions of this client.
    pub(crate) fn after_refusal(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.rng.random_range(SHORTEST_AFTER_REFUSAL..=LONGEST)
    }

    /// A random order of `count` servers.
    pub(crate) fn shuffle<T>(&mut self, servers: &mut [T]) {
        use rand::seq::SliceRandom;
        servers.shuffle(&mut self.rng);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn delays_stay_between_their_limits(seed: u64, kinds in proptest::collection::vec(0..3u8, 1..80)) {
            let mut delay = ReconnectDelay::new(seed);
            for kind in kinds {
                let next = match kind {
                    0 => delay.after_failure(),
                    1 => delay.after_connection(Duration::ZERO),
                    _ => delay.after_refusal(),
                };
                let shortest = if kind == 2 { SHORTEST_AFTER_REFUSAL } else { SHORTEST };
                prop_assert!((shortest..=LONGEST).contains(&next), "{:?}", next);
            }
        }
    }

    #[test]
    fn a_coordinator_is_back_within_a_second() {
        let mut delay = ReconnectDelay::of_centre(1);
        assert!((0..100).all(|_| delay.after_failure() <= LONGEST_OF_CENTRE));
    }

    #[test]
    fn delays_grow_until_a_connection_has_held() {
        let mean = |delays: &[Duration]| delays.iter().sum::<Duration>() / delays.len() as u32;
        let mut delay = ReconnectDelay::new(1);
        let mut early = Vec::new();
        for _ in 0..200 {
            early.push(delay.after_connection(GOOD_CONNECTION));
        }
        assert!(early.iter().all(|delay| *delay <= FIRST_LIMIT));
        let short_lived: Vec<_> = (0..200).map(|_| delay.after_connection(Duration::ZERO)).collect();
        assert!(mean(&early) < Duration::from_secs(2) && mean(&short_lived) > Duration::from_secs(10));
        // Others do not come back in the same moment.
        assert_ne!(ReconnectDelay::new(2).after_failure(), ReconnectDelay::new(3).after_failure());
    }
}
