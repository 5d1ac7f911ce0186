//! Responsiveness under working conditions: round trips per minute over new and over loaded connections.

use crate::domain::{finite, positive};
use crate::stats::order;

/// Share of the probes that count; the slowest are left out (TMP).
pub const TRIMMED_MEAN_SHARE: f64 = 0.95;

/// Standard deviation of stable values, as a share of the last one (SDT).
pub const STABLE_DEVIATION: f64 = 0.05;

/// Number of values that have to be stable, and of intervals in a moving average (MAD).
pub const MOVING_AVERAGE_INTERVALS: usize = 4;

/// Trimmed means of the round trips of probes, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProbeTimes {
    /// TCP handshake of a new connection.
    pub tcp_s: f64,
    /// TLS handshake of a new connection, divided by its round trips; absent without TLS.
    pub tls_s: Option<f64>,
    /// Request of one byte over a new connection.
    pub http_s: f64,
    /// The same over a connection that carries load.
    pub loaded_s: f64,
}

/// Responsiveness, round trips per minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Responsiveness {
    /// Over new connections.
    pub foreign: f64,
    /// Over connections that carry load.
    pub loaded: f64,
    /// The mean of both: the result.
    pub overall: f64,
}

/// Responsiveness over new connections: each kind of round trip has the same weight.
///
/// Units: 1/min. Domain: times > 0. Source: draft-ietf-ippm-responsiveness-09, "Aggregating the Measurements".
#[must_use]
pub fn foreign(tcp_s: f64, tls_s: Option<f64>, http_s: f64) -> Option<f64> {
    let times = [Some(tcp_s), tls_s, Some(http_s)].into_iter().flatten();
    let (mut sum, mut kinds) = (0.0, 0.0);
    for time in times {
        sum += positive(time)?;
        kinds += 1.0;
    }
    finite(60.0 * kinds / sum)
}

/// Responsiveness under working conditions.
///
/// Units: 1/min. Domain: times > 0. Source: draft-ietf-ippm-responsiveness-09, "Aggregating the Measurements".
#[must_use]
pub fn responsiveness(times: &ProbeTimes) -> Option<Responsiveness> {
    let foreign = foreign(times.tcp_s, times.tls_s, times.http_s)?;
    let loaded = super::delay::round_trips_per_minute(times.loaded_s)?;
    Some(Responsiveness { foreign, loaded, overall: finite(f64::midpoint(foreign, loaded))? })
}

/// The mean of all values up to this percentile; the larger ones are left out.
///
/// Units: those of the values, share above 0, at most 1. Domain: at least one value, all finite.
/// Source: draft-ietf-ippm-responsiveness-09, "Aggregating the Measurements".
#[must_use]
pub fn trimmed_mean(values: &[f64], share: f64) -> Option<f64> {
    let most = order::percentile(values, positive(share)?)?;
    let kept = values.iter().filter(|value| **value <= most);
    finite(kept.clone().sum::<f64>() / kept.count() as f64)
}

/// Whether the last values, of which there are enough, deviate from their mean by less than a share of the last one.
///
/// Domain: values ≥ 0. Source: draft-ietf-ippm-responsiveness-09, "Final Algorithm", with the standard deviation of a
/// population.
#[must_use]
pub fn is_stable(values: &[f64]) -> bool {
    let count = MOVING_AVERAGE_INTERVALS;
    let Some((recent, last)) =
        values.len().checked_sub(count).and_then(|from| Some((&values[from..], *values.last()?)))
    else {
        return false;
    };
    let mean = recent.iter().sum::<f64>() / count as f64;
    let variance = recent.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64;
    // Nothing at all is not a stable rate.
    last > 0.0 && variance.sqrt() < STABLE_DEVIATION * last
}

/// How good a responsiveness is: a telephone call needs 300 round trips per minute, a good one 1,000, and 6,000 are as
/// fast as a screen shows them.
///
/// Source: draft-ietf-ippm-responsiveness-09, "Introduction".
#[must_use]
pub fn grade(rpm: f64) -> &'static str {
    match rpm {
        rpm if rpm >= 6_000.0 => "excellent",
        rpm if rpm >= 1_000.0 => "good",
        rpm if rpm >= 300.0 => "fair",
        _ => "poor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_twentieth_does_not_count() {
        let mut values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(trimmed_mean(&values, 0.95), Some(10.0), "1 to 19");
        values[19] = 1e9;
        assert_eq!(trimmed_mean(&values, 0.95), Some(10.0));
        assert_eq!(trimmed_mean(&[7.0], 0.95), Some(7.0), "one value is no outlier");
        assert_eq!(trimmed_mean(&[], 0.95), None);
        assert_eq!(trimmed_mean(&[1.0], 0.0), None);
        assert_eq!(trimmed_mean(&[5.0; 30], 0.95), Some(5.0), "equal values are kept");
    }

    #[test]
    fn without_tls_the_others_have_its_weight() {
        let times = ProbeTimes { tcp_s: 0.020, tls_s: None, http_s: 0.030, loaded_s: 0.060 };
        let found = responsiveness(&times).unwrap();
        assert!((found.foreign - 2_400.0).abs() < 1e-9 && (found.loaded - 1_000.0).abs() < 1e-9);
        assert!((found.overall - 1_700.0).abs() < 1e-9);
        assert_eq!(
            responsiveness(&ProbeTimes { tls_s: Some(0.0), ..times }),
            None,
            "no handshake takes no time"
        );
    }

    #[test]
    fn stable_is_within_a_twentieth_of_the_last_value() {
        assert!(!is_stable(&[100.0; 3]), "too few");
        assert!(is_stable(&[1.0, 100.0, 100.0, 100.0, 100.0]), "only the last ones count");
        // Deviations of 4 and 6 from the mean.
        assert!(is_stable(&[96.0, 104.0, 96.0, 104.0]));
        assert!(!is_stable(&[94.0, 106.0, 94.0, 106.0]));
        assert!(!is_stable(&[0.0; 4]));
        assert!(!is_stable(&[f64::NAN; 4]));
    }

    #[test]
    fn grades_are_those_of_the_draft() {
        let grades = [299.9, 300.0, 999.0, 1_000.0, 5_999.0, 6_000.0].map(grade);
        assert_eq!(grades, ["poor", "fair", "fair", "good", "good", "excellent"]);
    }
}
