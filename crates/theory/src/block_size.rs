//! What a write or message costs: rate against block size.

use crate::domain::{finite, not_negative, positive};

/// Rate of messages of `block_bytes` when each costs a fixed time and its bytes.
///
/// Units: bit/s. Domain: block ≥ 0, start-up ≥ 0, rate > 0; one message outstanding. Source: Hockney's model, as in NetPIPE.
#[must_use]
pub fn block_rate_bps(block_bytes: f64, startup_s: f64, asymptotic_bps: f64) -> Option<f64> {
    let bits = 8.0 * not_negative(block_bytes)?;
    finite(bits / positive(not_negative(startup_s)? + bits / positive(asymptotic_bps)?)?)
}

/// The block size that reaches half of the asymptotic rate.
///
/// Units: bytes. Domain: start-up ≥ 0, rate > 0. Source: Hockney's n½.
#[must_use]
pub fn half_performance_bytes(startup_s: f64, asymptotic_bps: f64) -> Option<f64> {
    finite(not_negative(startup_s)? * positive(asymptotic_bps)? / 8.0)
}

/// The rate at which time grows between two block sizes: the cost of a byte without the cost of a call.
///
/// Units: bit/s. Domain: two different times. Source: slope of Hockney's model.
#[must_use]
pub fn incremental_rate_bps(small: (f64, f64), large: (f64, f64)) -> Option<f64> {
    let ((small_bytes, small_s), (large_bytes, large_s)) = (small, large);
    finite(8.0 * (large_bytes - small_bytes) / (large_s - small_s))
}

/// Time of one call at a rate.
///
/// Units: s. Domain: rate > 0. Source: definition.
#[must_use]
pub fn call_time_at_rate_s(block_bytes: f64, rate_bps: f64) -> Option<f64> {
    crate::conversion::transfer_time_s(block_bytes, rate_bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_rate_at_half_performance() {
        let half = half_performance_bytes(50e-6, 1e9).unwrap();
        assert!((block_rate_bps(half, 50e-6, 1e9).unwrap() - 0.5e9).abs() < 1e-3);
    }

    #[test]
    fn without_start_up_every_block_runs_at_full_rate() {
        assert!((block_rate_bps(1.0, 0.0, 1e9).unwrap() - 1e9).abs() < 1e-3);
        assert_eq!(block_rate_bps(0.0, 0.0, 1e9), None);
        assert_eq!(incremental_rate_bps((1.0, 1.0), (2.0, 1.0)), None);
    }
}
