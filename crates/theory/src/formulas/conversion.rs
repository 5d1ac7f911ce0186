//! Plain arithmetic between bytes, time and rate. Rates are decimal, memory sizes binary.

use crate::domain::{finite, not_negative, positive};

/// One kibibyte, bytes.
pub const KIB: f64 = 1024.0;
/// One mebibyte, bytes.
pub const MIB: f64 = 1_048_576.0;
/// One gibibyte, bytes.
pub const GIB: f64 = 1_073_741_824.0;

/// Transfer time of `bytes` at a rate.
///
/// Units: s. Domain: bytes ≥ 0, rate > 0. Source: definition.
#[must_use]
pub fn transfer_time_s(bytes: f64, rate_bps: f64) -> Option<f64> {
    finite(not_negative(bytes)? * 8.0 / positive(rate_bps)?)
}

/// Bytes transferred at a rate in a time.
///
/// Units: bytes. Domain: both ≥ 0. Source: definition.
#[must_use]
pub fn transferred_bytes(rate_bps: f64, elapsed_s: f64) -> Option<f64> {
    finite(not_negative(rate_bps)? * not_negative(elapsed_s)? / 8.0)
}

/// Mean rate of a transfer.
///
/// Units: bit/s. Domain: bytes ≥ 0, time > 0. Source: definition.
#[must_use]
pub fn average_rate_bps(bytes: f64, elapsed_s: f64) -> Option<f64> {
    finite(not_negative(bytes)? * 8.0 / positive(elapsed_s)?)
}

/// Product of a transfer rate and the distance: the metric of the Internet2 Land Speed Record.
///
/// Units: bit·m/s. Domain: both ≥ 0. A metric for rankings, not a property of a path. Source: Internet2 LSR
/// rules.
#[must_use]
pub fn land_speed_bit_m_per_s(rate_bps: f64, distance_m: f64) -> Option<f64> {
    finite(not_negative(rate_bps)? * not_negative(distance_m)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_times_its_time_gives_back_the_bytes() {
        let seconds = transfer_time_s(1e9, 941e6).unwrap();
        assert!((transferred_bytes(941e6, seconds).unwrap() - 1e9).abs() < 1e-3);
        assert!((average_rate_bps(1e9, seconds).unwrap() - 941e6).abs() < 1e-3);
    }

    #[test]
    fn no_time_means_no_rate() {
        assert_eq!(average_rate_bps(1.0, 0.0), None);
        assert_eq!(transfer_time_s(1.0, 0.0), None);
    }
}
