//! TCP throughput testing after RFC 6349: ideal figures and the three metrics.

use crate::domain::{finite, not_negative, positive};

/// Whole frames per second as the RFC prints them.
///
/// Units: 1/s. Domain: link, MTU > 0; `layer2_bytes` is everything below IP: 38 for Ethernet, 8 on a T3. Source: RFC 6349 §4.1.1.
#[must_use]
pub fn frames_per_second(link_bps: f64, mtu_bytes: f64, layer2_bytes: f64) -> Option<f64> {
    crate::framing::frames_per_second(link_bps, positive(mtu_bytes)? + not_negative(layer2_bytes)?)
        .map(f64::floor)
}

/// Highest TCP throughput at a frame rate.
///
/// Units: bit/s. Domain: both ≥ 0; the RFC counts no options. Source: RFC 6349 §4.1.1.
#[must_use]
pub fn max_throughput_bps(mss_bytes: f64, frames_per_second: f64) -> Option<f64> {
    finite(not_negative(mss_bytes)? * 8.0 * not_negative(frames_per_second)?)
}

/// Ideal time of a transfer.
///
/// Units: s. Domain: bytes ≥ 0, rate > 0; slow start is not counted. Source: RFC 6349 §4.1.
#[must_use]
pub fn ideal_transfer_s(bytes: f64, max_throughput_bps: f64) -> Option<f64> {
    crate::conversion::transfer_time_s(bytes, max_throughput_bps)
}

/// TCP Transfer Time Ratio: actual over ideal time.
///
/// Units: ratio. Domain: actual ≥ 0, ideal > 0. Source: RFC 6349 §4.1.
#[must_use]
pub fn transfer_time_ratio(actual_s: f64, ideal_s: f64) -> Option<f64> {
    finite(not_negative(actual_s)? / positive(ideal_s)?)
}

/// TCP Efficiency: the share of sent bytes that were not retransmissions.
///
/// Units: percent; `sent` contains the retransmissions. Domain: 0 ≤ retransmitted ≤ sent, sent > 0. Source: RFC 6349 §4.2.
#[must_use]
pub fn efficiency_percent(sent_bytes: f64, retransmitted_bytes: f64) -> Option<f64> {
    let first = not_negative(positive(sent_bytes)? - not_negative(retransmitted_bytes)?)?;
    finite(first / sent_bytes * 100.0)
}

/// Buffer Delay: rise of the mean RTT over the baseline.
///
/// Units: percent. Domain: baseline > 0. Source: RFC 6349 §4.3.
#[must_use]
pub fn buffer_delay_percent(mean_rtt_s: f64, baseline_rtt_s: f64) -> Option<f64> {
    finite((not_negative(mean_rtt_s)? - positive(baseline_rtt_s)?) / baseline_rtt_s * 100.0)
}

/// Parallel connections needed when one window cannot fill the path.
///
/// Units: connections, at least 1. Domain: rate, RTT ≥ 0, window > 0. Source: RFC 6349 §5.1.
#[must_use]
pub fn connections_needed(rate_bps: f64, rtt_s: f64, window_bytes: f64) -> Option<f64> {
    finite((crate::bdp::bdp_bytes(rate_bps, rtt_s)? / positive(window_bytes)?).ceil().max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_t3_of_the_rfc_carries_42_8_megabits() {
        let fps = frames_per_second(44.21e6, 1500.0, 8.0).unwrap();
        assert_eq!(fps, 3664.0);
        assert_eq!(max_throughput_bps(1460.0, fps), Some(42_795_520.0));
    }

    #[test]
    fn the_three_metrics_of_the_examples() {
        assert_eq!(transfer_time_ratio(12.0, 8.0), Some(1.5));
        assert!((efficiency_percent(102_000.0, 2_000.0).unwrap() - 98.039_215_686).abs() < 1e-6);
        assert_eq!(buffer_delay_percent(0.032, 0.025).map(f64::round), Some(28.0));
        assert_eq!(efficiency_percent(1.0, 2.0), None);
        assert_eq!(buffer_delay_percent(0.03, 0.0), None);
    }

    #[test]
    fn one_connection_is_the_least() {
        assert_eq!(connections_needed(1e6, 0.001, 65536.0), Some(1.0));
        assert_eq!(connections_needed(500e6, 0.005, 64_000.0), Some(5.0));
    }
}
