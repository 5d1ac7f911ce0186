//! Whether datagrams were lost independently of each other.

use super::order::median;

/// Fewer intervals than this show no dispersion.
const MIN_INTERVALS: usize = 10;
/// Lost datagrams in each interval, on average, from which their spread is that of a normal distribution.
const MIN_LOST: f64 = 2.0;
/// Deviations of the statistic, in standard deviations, that independent losses have: below the first in one of 28
/// series, above the second in one of 700.
const LEAST_DEVIATION: f64 = -1.8;
const MOST_DEVIATION: f64 = 3.0;
/// Least median of the squared deviations of the intervals, which is 0.455 for independent losses (chi-squared with one
/// degree of freedom). A policer whose sender paused now and then has a few large ones among small ones.
const LEAST_MEDIAN: f64 = 0.1;

/// How unevenly losses are spread over the intervals of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossDispersion {
    /// Variance of the lost datagrams around the same share of all that were sent, over that of independent losses.
    pub ratio: f64,
    /// Median of the squares that this is the mean of.
    pub median_square: f64,
    /// Number of intervals.
    pub intervals: usize,
}

/// The dispersion of losses, from the datagrams received and lost in each interval.
///
/// Units: datagrams; the ratio is 1 for independent losses. A policer of a steady sender loses the same number in each
/// interval, far below 1, and one of an uneven sender loses what exceeds its rate, far above.
/// Domain: `None` for fewer than ten intervals after the first one with losses, or for fewer than two lost datagrams
/// in each on average.
/// Source: Pearson 1900, the test of homogeneity; Fisher 1925 section 19, the index of dispersion.
#[must_use]
pub fn loss_dispersion(intervals: &[(f64, f64)]) -> Option<LossDispersion> {
    // A policer's bucket is full at first, and is used up in the first interval with losses.
    let full = intervals.iter().take_while(|(_, lost)| *lost <= 0.0).count();
    let sent: Vec<(f64, f64)> = intervals
        .iter()
        .skip(full + 1)
        .map(|(received, lost)| (received + lost, *lost))
        .filter(|(sent, lost)| *sent > 0.0 && *lost >= 0.0)
        .collect();
    let all: f64 = sent.iter().map(|(sent, _)| sent).sum();
    let lost: f64 = sent.iter().map(|(_, lost)| lost).sum();
    let share = lost / all;
    if sent.len() < MIN_INTERVALS || lost < MIN_LOST * sent.len() as f64 || share >= 1.0 {
        return None;
    }
    let square = |(sent, lost): &(f64, f64)| (lost - share * sent).powi(2) / (sent * share * (1.0 - share));
    let squares: Vec<f64> = sent.iter().map(square).collect();
    let ratio = squares.iter().sum::<f64>() / (squares.len() - 1) as f64;
    let median_square = median(&squares)?;
    ratio.is_finite().then_some(LossDispersion { ratio, median_square, intervals: squares.len() })
}

impl LossDispersion {
    /// Whether independent losses spread like this.
    #[must_use]
    pub fn is_of_independent_losses(self) -> bool {
        let deviation = (self.ratio - 1.0) * (self.intervals.saturating_sub(1) as f64 / 2.0).sqrt();
        (LEAST_DEVIATION..=MOST_DEVIATION).contains(&deviation) && self.median_square >= LEAST_MEDIAN
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Milliseconds of an interval.
    const INTERVAL: usize = 100;

    /// Datagrams that leave in each millisecond: `rate` of them on average, in bursts, with pauses of a busy host that
    /// are made up for.
    fn sender(random: &mut StdRng, rate: f64, burst: f64, busy: bool) -> Vec<u32> {
        let (mut owed, mut pause) = (0.0, 0);
        (0..30 * INTERVAL)
            .map(|_| {
                owed += rate;
                if busy && pause == 0 && random.random_bool(0.01) {
                    pause = random.random_range(2..40);
                }
                if pause > 0 {
                    pause -= 1;
                    return 0;
                }
                let bursts = (owed / burst).floor();
                owed -= bursts * burst;
                (bursts * burst) as u32
            })
            .collect()
    }

    fn by_interval(each: &[(u32, u32)]) -> Vec<(f64, f64)> {
        let sum = |part: &[(u32, u32)]| {
            part.iter().fold((0.0, 0.0), |sum, ms| (sum.0 + f64::from(ms.0), sum.1 + f64::from(ms.1)))
        };
        each.chunks(INTERVAL).map(sum).collect()
    }

    fn independent(random: &mut StdRng, sent: &[u32], share: f64) -> Vec<(f64, f64)> {
        let each: Vec<(u32, u32)> = sent
            .iter()
            .map(|sent| {
                let lost = (0..*sent).filter(|_| random.random_bool(share)).count() as u32;
                (sent - lost, lost)
            })
            .collect();
        by_interval(&each)
    }

    /// A token bucket that lets `rate` datagrams pass in a millisecond.
    fn policed(sent: &[u32], rate: f64, bucket: f64) -> Vec<(f64, f64)> {
        let mut tokens = bucket;
        let each: Vec<(u32, u32)> = sent
            .iter()
            .map(|sent| {
                tokens = (tokens + rate).min(bucket);
                let passed = (tokens.floor() as u32).min(*sent);
                tokens -= f64::from(passed);
                (passed, sent - passed)
            })
            .collect();
        by_interval(&each)
    }

    /// Share of the worlds in which the losses count as independent: rates of 10 to 500 Mb/s, bursts of 1 to 8.
    fn called_independent(busy: bool, lose: impl Fn(&mut StdRng, &[u32], f64) -> Vec<(f64, f64)>) -> f64 {
        let mut called = Vec::new();
        for seed in 0..150 {
            let random = &mut StdRng::seed_from_u64(seed);
            let (rate, burst) = (random.random_range(0.9..45.0), f64::from(random.random_range(1..=8)));
            let sent = sender(random, rate, burst, busy);
            called.extend(
                loss_dispersion(&lose(random, &sent, rate)).map(LossDispersion::is_of_independent_losses),
            );
        }
        assert!(called.len() > 110, "only {} worlds lose enough", called.len());
        called.iter().filter(|called| **called).count() as f64 / called.len() as f64
    }

    #[test]
    fn independent_losses_are_recognised_whatever_the_sender_does() {
        for busy in [false, true] {
            let share = called_independent(busy, |random, sent, _| {
                let share = random.random_range(0.03..0.4);
                independent(random, sent, share)
            });
            assert!(share > 0.93, "busy {busy}: {share}");
        }
    }

    #[test]
    fn what_exceeds_a_rate_is_not_lost_independently() {
        for busy in [false, true] {
            let share = called_independent(busy, |random, sent, rate| {
                let passes = rate * random.random_range(0.5..0.93);
                let bucket = passes * random.random_range(2.0..80.0) + 2.0;
                policed(sent, passes, bucket)
            });
            assert!(share < 0.05, "busy {busy}: {share}");
        }
    }

    #[test]
    fn few_losses_say_nothing() {
        assert_eq!(loss_dispersion(&[(100.0, 5.0); 10]), None);
        assert_eq!(loss_dispersion(&[(100.0, 1.0); 50]), None);
        assert_eq!(loss_dispersion(&[(0.0, 10.0); 50]), None, "all of them");
        assert_eq!(loss_dispersion(&[(0.0, 0.0); 50]), None);
        assert_eq!(loss_dispersion(&[(95.0, 5.0); 50]).map(|found| found.ratio), Some(0.0));
    }
}
