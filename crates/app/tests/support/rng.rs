//! What is left to chance in a test, from a seed that it prints.

use std::time::Duration;

/// Numbers by lot: the same seed gives the same ones on every machine.
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

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, of_hundred: usize) -> bool {
        self.below(100) < of_hundred
    }

    /// A time from 0 to below `limit`.
    pub(crate) fn time(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.below(1 << 20) as f64 / f64::from(1 << 20))
    }
}

/// How often a test that draws lots is to do so, and the seed of the first time: `LINERATE_KILLS` and
/// `LINERATE_KILLS_SEED`. Each time has the seed after the one before, so that it can be repeated by itself.
pub(crate) fn repetitions(times: u64) -> std::ops::Range<u64> {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|error| panic!("{name}={text}: {error}")))
    };
    let seed = number("LINERATE_KILLS_SEED").unwrap_or(1);
    seed..seed + number("LINERATE_KILLS").unwrap_or(times)
}
