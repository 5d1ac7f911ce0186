//! The order of trials.

use crate::plan::{Plan, TrialOrder};

/// Largest number of trials in a plan.
pub const MAX_TRIALS: usize = 200_000;

/// One trial: one repeat of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trial {
    /// Index of the point, from 0.
    pub point: usize,
    /// Number of the repeat, from 1, in the order of time.
    pub repeat: u32,
}

impl Plan {
    /// All trials in the order of execution: each repeat of each point once. With `until` this includes trials
    /// that may turn out to be unnecessary.
    #[must_use]
    pub fn trials(&self) -> Vec<Trial> {
        order(self.order, self.grid.len(), self.largest_repeats(), self.seed)
    }
}

fn order(order: TrialOrder, points: usize, repeats: u32, seed: u64) -> Vec<Trial> {
    match order {
        TrialOrder::Sequential => {
            (0..points).flat_map(|point| (1..=repeats).map(move |repeat| Trial { point, repeat })).collect()
        }
        // Forward and backward: over two rounds each point has the same mean position, so a steady drift
        // cancels out.
        TrialOrder::Interleaved => (1..=repeats)
            .flat_map(|repeat| {
                (0..points).map(move |place| {
                    let point = if repeat % 2 == 1 { place } else { points - 1 - place };
                    Trial { point, repeat }
                })
            })
            .collect(),
        TrialOrder::Shuffled => {
            let mut lots: Vec<usize> =
                (0..points).flat_map(|point| std::iter::repeat_n(point, repeats as usize)).collect();
            let mut random = SplitMix(seed);
            // Fisher-Yates shuffle.
            for last in (1..lots.len()).rev() {
                lots.swap(last, random.below(last as u64 + 1) as usize);
            }
            let mut done = vec![0; points];
            let trial = |point: usize| {
                done[point] += 1;
                Trial { point, repeat: done[point] }
            };
            lots.into_iter().map(trial).collect()
        }
    }
}

/// SplitMix64: the same numbers on every machine and in every version, which library generators do not
/// guarantee.
///
/// # Source
/// Steele, Lea and Flood, OOPSLA 2014
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniformly distributed number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        // Numbers above the largest multiple of the limit would favour small results.
        let fair = u64::MAX - u64::MAX % limit.max(1);
        loop {
            let number = self.next();
            if number < fair {
                return number % limit.max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [TrialOrder; 3] = [TrialOrder::Interleaved, TrialOrder::Sequential, TrialOrder::Shuffled];

    fn points(trials: &[Trial]) -> Vec<usize> {
        trials.iter().map(|trial| trial.point).collect()
    }

    #[test]
    fn rounds_go_there_and_back() {
        assert_eq!(points(&order(TrialOrder::Interleaved, 3, 3, 1)), [0, 1, 2, 2, 1, 0, 0, 1, 2]);
        assert_eq!(points(&order(TrialOrder::Sequential, 2, 3, 1)), [0, 0, 0, 1, 1, 1]);
    }

    /// The first numbers of the reference program for the seed 1234567.
    #[test]
    fn the_lots_are_those_of_the_paper() {
        let mut random = SplitMix(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn another_seed_is_another_order_and_the_same_seed_the_same() {
        let shuffled = |seed| order(TrialOrder::Shuffled, 10, 3, seed);
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        assert_ne!(shuffled(1), order(TrialOrder::Sequential, 10, 3, 1));
    }

    #[test]
    fn every_order_can_be_drawn() {
        let drawn: std::collections::BTreeSet<Vec<usize>> =
            (0..100).map(|seed| points(&order(TrialOrder::Shuffled, 3, 1, seed))).collect();
        assert_eq!(drawn.len(), 6, "three points have six orders: {drawn:?}");
    }

    proptest! {
        #[test]
        fn every_order_has_each_trial_once_and_repeats_in_the_order_of_time(
            count in 0_usize..40, repeats in 1_u32..8, seed in any::<u64>(),
        ) {
            for kind in ALL {
                let trials = order(kind, count, repeats, seed);
                let mut sorted = trials.clone();
                sorted.sort();
                prop_assert_eq!(sorted, order(TrialOrder::Sequential, count, repeats, seed));
                for point in 0..count {
                    let own: Vec<u32> = trials.iter().filter(|t| t.point == point).map(|t| t.repeat).collect();
                    prop_assert!(own.is_sorted(), "{own:?}");
                }
            }
        }

        #[test]
        fn interleaved_points_have_the_same_mean_place(count in 1_usize..40, pairs in 1_u32..5) {
            let trials = order(TrialOrder::Interleaved, count, 2 * pairs, 0);
            let sum = |point| trials.iter().enumerate().filter(|(_, t)| t.point == point).map(|(at, _)| at).sum::<usize>();
            for point in 0..count {
                prop_assert_eq!(sum(point), sum(0));
            }
        }
    }
}
