//! The bootstrap: intervals for statistics without a formula.
//!
//! Not yet called: kept for such statistics in the web interface and the fleet.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Interval, order};
use crate::domain::open_unit;

/// Default number of resamples.
pub const RESAMPLES: u32 = 10_000;

/// Percentile bootstrap of any statistic, in blocks if neighbouring samples depend on each other.
///
/// `block` is the length of a block in samples: 1 for independent samples, otherwise at least twice the
/// autocorrelation time. The same seed gives the same interval. Units: those of the statistic. Domain: at least
/// 10 samples, all finite, 1 ≤ block ≤ samples, at least 100 resamples. Source: Efron 1979; Künsch 1989 for
/// blocks.
#[must_use]
pub fn bootstrap(
    samples: &[f64],
    block: usize,
    resamples: u32,
    seed: u64,
    confidence: f64,
    statistic: impl Fn(&[f64]) -> Option<f64>,
) -> Option<Interval> {
    let confidence = open_unit(confidence)?;
    let count = samples.len();
    if count < 10 || block == 0 || block > count || resamples < 100 || samples.iter().any(|x| !x.is_finite())
    {
        return None;
    }
    let mut random = StdRng::seed_from_u64(seed);
    let mut drawn = Vec::with_capacity(count + block);
    let mut values = Vec::with_capacity(resamples as usize);
    for _ in 0..resamples {
        drawn.clear();
        while drawn.len() < count {
            let start = random.random_range(0..=count - block);
            drawn.extend_from_slice(&samples[start..start + block]);
        }
        drawn.truncate(count);
        values.push(statistic(&drawn)?);
    }
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval {
        low: order::percentile(&values, tail)?,
        high: order::percentile(&values, 1.0 - tail)?,
        coverage: confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp() -> Vec<f64> {
        (0..100).map(f64::from).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let run = |seed| bootstrap(&ramp(), 1, 500, seed, 0.95, order::median).unwrap();
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors_each_way() {
        let mean = |x: &[f64]| Some(x.iter().sum::<f64>() / x.len() as f64);
        let found = bootstrap(&ramp(), 1, 2000, 1, 0.95, mean).unwrap();
        // Uniform on 0..99: standard deviation 28.87, standard error 2.887.
        assert!((found.high - found.low - 2.0 * 1.96 * 2.887).abs() < 1.0, "{found:?}");
        let blocks = bootstrap(&ramp(), 20, 2000, 1, 0.95, mean).unwrap();
        assert!(blocks.high - blocks.low > 1.5 * (found.high - found.low), "dependence widens the interval");
    }

    #[test]
    fn too_few_samples_have_no_interval() {
        assert_eq!(bootstrap(&[1.0; 9], 1, 500, 1, 0.95, order::median), None);
        assert_eq!(bootstrap(&[1.0; 20], 21, 500, 1, 0.95, order::median), None);
        let constant = bootstrap(&[1.0; 20], 1, 500, 1, 0.95, order::median).unwrap();
        assert_eq!((constant.low, constant.high), (1.0, 1.0));
    }
}
