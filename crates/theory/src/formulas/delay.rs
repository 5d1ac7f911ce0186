//! Responsiveness under load.

use crate::domain::{finite, positive};

/// Round trips per minute: the delay that a person notices, inverted so that more is better.
///
/// Units: 1/min. Domain: RTT > 0. Source: draft-ietf-ippm-responsiveness §4.
#[must_use]
pub fn round_trips_per_minute(rtt_s: f64) -> Option<f64> {
    finite(60.0 / positive(rtt_s)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_milliseconds_are_300_round_trips() {
        assert!((round_trips_per_minute(0.2).unwrap() - 300.0).abs() < 1e-9);
        assert_eq!(round_trips_per_minute(0.0), None);
    }
}
