//! Where a measurement's ramp-up ends.

use crate::domain::positive;
use crate::stats::{order, spread};

/// Number of intervals that must agree for the ramp to be over.
const AGREEING_INTERVALS: usize = 5;
/// Largest relative difference between their median and that of the steady part.
const MEDIAN_TOLERANCE: f64 = 0.05;

/// Two standard errors of the median of five, in standard deviations: a rate that oscillates is not rising.
const NOISE_FACTOR: f64 = 1.12;

/// Largest distance of a single interval from the rest, in standard deviations.
const SINGLE_NOISE_FACTOR: f64 = 5.0;

/// Number of intervals that belong to the ramp. It ends before the first interval from which five have a median
/// within 5 % (or the noise) of that of the last half. Outliers at the front of these five belong to the ramp
/// too.
///
/// Units: any rate. Domain: at least ten intervals, all finite, the last half not silent. `None` also if the
/// rate never becomes steady. Source: RFC 6349 §3.3.2 requires the steady state.
#[must_use]
pub fn find(goodputs: &[f64]) -> Option<usize> {
    if goodputs.len() < 2 * AGREEING_INTERVALS {
        return None;
    }
    let last_half = &goodputs[goodputs.len() / 2..];
    let steady = positive(order::median(last_half)?)?;
    let noise = spread::robust_sigma(last_half).unwrap_or(0.0) / steady;
    let closeness = MEDIAN_TOLERANCE.max(NOISE_FACTOR * noise);
    let near = |window: &[f64]| {
        order::median(window).is_some_and(|median| (median / steady - 1.0).abs() <= closeness)
    };
    let agreeing = goodputs.windows(AGREEING_INTERVALS).position(near)?;
    // A median does not react to one or two outliers at the front.
    let far = |rate: &&f64| (**rate / steady - 1.0).abs() > MEDIAN_TOLERANCE.max(SINGLE_NOISE_FACTOR * noise);
    Some(agreeing + goodputs[agreeing..].iter().take(AGREEING_INTERVALS).take_while(far).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramped(ramp: usize, total: usize) -> Vec<f64> {
        (0..total).map(|i| if i < ramp { 100.0 * i as f64 / ramp as f64 } else { 100.0 }).collect()
    }

    #[test]
    fn the_ramp_ends_where_the_rate_comes_to_rest() {
        let found = find(&ramped(10, 60)).unwrap();
        // A median of five needs three steady values, so it ends the ramp two intervals early.
        assert!((8..=10).contains(&found), "{found}");
    }

    #[test]
    fn a_rate_that_swings_has_no_ramp() {
        // A fixed sequence around 100 that swings by 20 % both ways.
        let swings: Vec<f64> =
            (0..40).map(|i| 100.0 + 20.0 * f64::from((i * 7919 % 41) - 20) / 20.0).collect();
        assert_eq!(find(&swings), Some(0));
    }

    #[test]
    fn a_ramp_of_one_or_two_intervals_is_found() {
        for slow in 1..=3 {
            let mut series = vec![941.5; 10];
            series[..slow].fill(805.0);
            assert_eq!(find(&series), Some(slow), "{slow}");
            // A burst at the start is not part of the steady state either.
            series[..slow].fill(1100.0);
            assert_eq!(find(&series), Some(slow), "{slow}");
        }
        let mut later = vec![941.5; 20];
        later[3] = 805.0;
        assert_eq!(find(&later), Some(0), "one slow interval in the middle is no ramp");
    }

    #[test]
    fn a_steady_rate_has_no_ramp() {
        assert_eq!(find(&[100.0; 40]), Some(0));
    }

    #[test]
    fn silence_and_short_series_have_no_answer() {
        assert_eq!(find(&[0.0; 40]), None);
        assert_eq!(find(&[100.0; 9]), None);
        assert_eq!(find(&[f64::NAN; 40]), None);
    }
}
