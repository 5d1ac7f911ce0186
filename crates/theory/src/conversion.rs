//! Rates and sizes as other programs print them, and plain arithmetic between bytes, time and rate.
//!
//! Rates are decimal, memory sizes binary. Where a tool mixes the two, its flaw is undone here by name.

use crate::domain::{finite, not_negative, positive};

/// One kibibyte, bytes.
pub const KIB: f64 = 1024.0;
/// One mebibyte, bytes.
pub const MIB: f64 = 1_048_576.0;
/// One gibibyte, bytes.
pub const GIB: f64 = 1_073_741_824.0;

/// The letter after ttcp's `-f`, which divides bits by a power of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtcpPrefix {
    /// `k`: 1024.
    Kilo,
    /// `m`: 1024².
    Mega,
    /// `g`: 1024³.
    Giga,
}

impl TtcpPrefix {
    fn factor(self) -> f64 {
        match self {
            Self::Kilo => KIB,
            Self::Mega => MIB,
            Self::Giga => GIB,
        }
    }
}

/// The true rate behind a bit rate that ttcp printed.
///
/// Units: bit/s. Domain: printed ≥ 0. Source: ttcp.c, `outfmt`.
#[must_use]
pub fn ttcp_rate_bps(printed: f64, prefix: TtcpPrefix) -> Option<f64> {
    finite(not_negative(printed)? * prefix.factor())
}

/// What ttcp prints for a true rate.
///
/// Units: its "Kbit", "Mbit" or "Gbit" per second. Domain: rate ≥ 0. Source: ttcp.c, `outfmt`.
#[must_use]
pub fn ttcp_printed(rate_bps: f64, prefix: TtcpPrefix) -> Option<f64> {
    finite(not_negative(rate_bps)? / prefix.factor())
}

/// The rate before a factor of 1.048576 (binary for decimal mega) was applied once too often.
///
/// Units: bit/s. Domain: rate ≥ 0. Source: 2^20 / 10^6.
#[must_use]
pub fn without_binary_factor_bps(reported_bps: f64) -> Option<f64> {
    finite(not_negative(reported_bps)? / (MIB / 1e6))
}

/// What ttcp prints as "msec/call": it multiplies seconds by 1024.
///
/// Units: "msec" as printed. Domain: calls > 0. Source: ttcp.c, final report.
#[must_use]
pub fn ttcp_msec_per_call(elapsed_s: f64, calls: f64) -> Option<f64> {
    finite(1024.0 * not_negative(elapsed_s)? / positive(calls)?)
}

/// Mean time of one call.
///
/// Units: s. Domain: calls > 0. Source: definition.
#[must_use]
pub fn call_time_s(elapsed_s: f64, calls: f64) -> Option<f64> {
    finite(not_negative(elapsed_s)? / positive(calls)?)
}

/// Bytes of `count` writes of `length_bytes`.
///
/// Units: bytes. Domain: both ≥ 0. Source: definition.
#[must_use]
pub fn total_bytes(length_bytes: f64, count: f64) -> Option<f64> {
    finite(not_negative(length_bytes)? * not_negative(count)?)
}

/// Time that `bytes` take at a rate.
///
/// Units: s. Domain: bytes ≥ 0, rate > 0. Source: definition.
#[must_use]
pub fn transfer_time_s(bytes: f64, rate_bps: f64) -> Option<f64> {
    finite(not_negative(bytes)? * 8.0 / positive(rate_bps)?)
}

/// Bytes that a rate carries in a time.
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

/// A rate printed as mebibytes per second ("MB/s" of many tools).
///
/// Units: bit/s. Domain: ≥ 0. Source: 2^20 bytes of 8 bits.
#[must_use]
pub fn mebibytes_per_second_bps(printed: f64) -> Option<f64> {
    finite(not_negative(printed)? * MIB * 8.0)
}

/// What share of a ceiling a rate is.
///
/// Units: ratio. Domain: rate ≥ 0, ceiling > 0. Source: definition.
#[must_use]
pub fn share_of_ceiling(rate_bps: f64, ceiling_bps: f64) -> Option<f64> {
    finite(not_negative(rate_bps)? / positive(ceiling_bps)?)
}

/// Decimal gigabytes.
///
/// Units: GB (10^9 bytes). Domain: ≥ 0. Source: SI.
#[must_use]
pub fn gigabytes(bytes: f64) -> Option<f64> {
    finite(not_negative(bytes)? / 1e9)
}

/// Binary gigabytes.
///
/// Units: GiB (2^30 bytes). Domain: ≥ 0. Source: IEC 80000-13.
#[must_use]
pub fn gibibytes(bytes: f64) -> Option<f64> {
    finite(not_negative(bytes)? / GIB)
}

/// Product of a transfer rate and the distance it crossed, the figure of the Internet2 Land Speed Record.
///
/// Units: bit·m/s. Domain: both ≥ 0. A ranking figure, not a property of a path. Source: Internet2 LSR rules.
#[must_use]
pub fn land_speed_bit_m_per_s(rate_bps: f64, distance_m: f64) -> Option<f64> {
    finite(not_negative(rate_bps)? * not_negative(distance_m)?)
}

/// The rate behind a land speed figure.
///
/// Units: bit/s. Domain: distance > 0. Source: as [`land_speed_bit_m_per_s`].
#[must_use]
pub fn rate_of_land_speed_bps(bit_m_per_s: f64, distance_m: f64) -> Option<f64> {
    finite(not_negative(bit_m_per_s)? / positive(distance_m)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttcp_prefixes_undo_each_other() {
        for prefix in [TtcpPrefix::Kilo, TtcpPrefix::Mega, TtcpPrefix::Giga] {
            let printed = ttcp_printed(941e6, prefix).unwrap();
            assert!((ttcp_rate_bps(printed, prefix).unwrap() - 941e6).abs() < 1e-3);
        }
        assert_eq!(ttcp_rate_bps(1.0, TtcpPrefix::Mega), Some(1_048_576.0));
    }

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
        assert_eq!(call_time_s(1.0, 0.0), None);
        assert_eq!(ttcp_rate_bps(-1.0, TtcpPrefix::Kilo), None);
    }
}
