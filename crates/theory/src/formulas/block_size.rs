//! Cost of a write or message: rate against block size.

use crate::domain::{finite, not_negative, positive};

/// The block size at which half of the asymptotic rate is reached.
///
/// Units: bytes. Domain: start-up ≥ 0, rate > 0. Source: Hockney's n½.
#[must_use]
pub fn half_performance_bytes(startup_s: f64, asymptotic_bps: f64) -> Option<f64> {
    finite(not_negative(startup_s)? * positive(asymptotic_bps)? / 8.0)
}

/// A series is saturated from this share of its highest rate.
const SATURATED_SHARE: f64 = 0.9;

/// Fewest points for a fit: two points always lie on a line.
const MIN_SIZES: usize = 3;

/// A line `time = start-up + cost · bytes` through measured points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeLine {
    /// Time of an empty message, s.
    pub startup_s: f64,
    /// Time of one more byte, s.
    pub per_byte_s: f64,
    /// Largest distance of a point from the line, as a share of the point's time.
    pub largest_error: f64,
}

/// Fits a line through points of (bytes, seconds) with the least sum of squared relative errors.
///
/// Errors are relative because the times of a series differ by orders of magnitude. Domain: at least three
/// points, times > 0, not all of one size; start-up and cost of the line > 0. Source: Hockney's model, weighted
/// least squares.
#[must_use]
pub fn fit_line(points: &[(f64, f64)]) -> Option<TimeLine> {
    if points.len() < MIN_SIZES {
        return None;
    }
    let mut sums = [0.0_f64; 5];
    for (bytes, seconds) in points {
        let (x, y) = (not_negative(*bytes)?, positive(*seconds)?);
        let weight = 1.0 / (y * y);
        for (sum, term) in sums.iter_mut().zip([1.0, x, y, x * x, x * y]) {
            *sum += weight * term;
        }
    }
    let [one, x, y, xx, xy] = sums;
    let per_byte_s = positive((one * xy - x * y) / positive(one * xx - x * x)?)?;
    let startup_s = positive((y - per_byte_s * x) / one)?;
    let error = |(bytes, seconds): &(f64, f64)| ((startup_s + per_byte_s * bytes) / seconds - 1.0).abs();
    let largest_error = points.iter().map(error).fold(0.0, f64::max);
    Some(TimeLine { startup_s, per_byte_s, largest_error: finite(largest_error)? })
}

/// Index of the first size from which on all rates reach 90 % of the highest. The sizes ascend.
///
/// Domain: rates ≥ 0, the highest > 0; `None` if the last rate is lower, or if it alone reaches them: a larger size
/// might be faster. Source: NetPIPE's saturation point
/// (Snell, Mikler, Gustafson 1996), with a fixed share instead of visual judgement.
#[must_use]
pub fn saturation(rates: &[f64]) -> Option<usize> {
    let highest = positive(rates.iter().copied().fold(0.0, f64::max))?;
    let below = rates.iter().rposition(|rate| *rate < SATURATED_SHARE * highest);
    Some(below.map_or(0, |at| at + 1)).filter(|at| at + 1 < rates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_follows_the_model_gives_its_parameters_back() {
        // F2.5: 50 us and 941.48 Mb/s have n1/2 = 5884.25 B.
        let times: Vec<(f64, f64)> =
            (0..24).map(|k| f64::from(1 << k)).map(|bytes| (bytes, 50e-6 + bytes * 8.0 / 941.48e6)).collect();
        let line = fit_line(&times).unwrap();
        assert!((line.startup_s / 50e-6 - 1.0).abs() < 1e-6, "{line:?}");
        assert!((8.0 / line.per_byte_s / 941.48e6 - 1.0).abs() < 1e-6, "{line:?}");
        assert!(line.largest_error < 1e-6, "{line:?}");
        let half = half_performance_bytes(line.startup_s, 8.0 / line.per_byte_s).unwrap();
        assert!((half - 5884.25).abs() < 0.01, "{half}");
        // The largest size has 99.93 % of the asymptote. 90 % of that are reached at 52.6 kB, so at 64 KiB.
        let rates: Vec<f64> = times.iter().map(|(bytes, seconds)| bytes * 8.0 / seconds).collect();
        assert_eq!(saturation(&rates), Some(16));
    }

    #[test]
    fn errors_count_as_shares_of_the_times() {
        // By hand, weights 1, 1/4 and 1/16: slope 14/11, start 32/33; the second and third point deviate by
        // 4/33 of their time.
        let line = fit_line(&[(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)]).unwrap();
        assert!((line.per_byte_s - 14.0 / 11.0).abs() < 1e-12, "{line:?}");
        assert!((line.startup_s - 32.0 / 33.0).abs() < 1e-12, "{line:?}");
        assert!((line.largest_error - 4.0 / 33.0).abs() < 1e-12, "{line:?}");
    }

    #[test]
    fn a_curve_that_falls_again_is_saturated_only_behind_its_dip() {
        assert_eq!(saturation(&[1.0, 9.0, 5.0, 9.5, 10.0]), Some(3));
        assert_eq!(saturation(&[10.0, 9.0]), Some(0));
        assert_eq!(saturation(&[1.0, 10.0, 8.0]), None);
        assert_eq!(saturation(&[0.0]), None);
        assert_eq!(saturation(&[]), None);
    }

    #[test]
    fn there_is_no_line_through_too_little_or_through_what_falls() {
        assert_eq!(fit_line(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(fit_line(&[(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]), None);
        assert_eq!(fit_line(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), None);
        assert_eq!(fit_line(&[(1.0, 0.0), (2.0, 2.0), (3.0, 3.0)]), None);
        // 1 + 2x exactly.
        let line = fit_line(&[(1.0, 3.0), (2.0, 5.0), (4.0, 9.0)]).unwrap();
        assert!((line.startup_s - 1.0).abs() < 1e-9 && (line.per_byte_s - 2.0).abs() < 1e-9, "{line:?}");
    }
}
