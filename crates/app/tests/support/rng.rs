//! Random numbers for tests, from a seed that they print.

use std::time::Duration;

/// Pseudo-random numbers: the same sequence for the same seed on every machine.
///
/// # Source
/// `SplitMix64`: Steele, Lea and Flood, OOPSLA 2014
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or(0)
    }

    /// One of them.
    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// True with a probability of `of_hundred` percent.
    pub(crate) fn percent(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    /// A time from 0 to below `limit`.
    pub(crate) fn time(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.below(1 << 20) as f64 / f64::from(1 << 20))
    }
}

/// Number of repetitions and first seed of a randomized test: `LINERATE_KILLS` and `LINERATE_KILLS_SEED`. The
/// seed increases by one each time, so that a repetition can be run alone.
pub(crate) fn repetitions(times: u64) -> std::ops::Range<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
    };
    let seed = number("LINERATE_KILLS_SEED").unwrap_or(1);
    seed..seed + number("LINERATE_KILLS").unwrap_or(times)
}
