//! TCP throughput testing according to RFC 6349: two of its three metrics.

use crate::domain::{finite, not_negative, positive};

/// TCP Efficiency: the share of sent bytes that were not retransmissions.
///
/// Units: ratio; `sent` contains the retransmissions. Domain: 0 ≤ retransmitted ≤ sent, sent > 0. Source: RFC
/// 6349 §4.2.
#[must_use]
pub fn efficiency(sent_bytes: f64, retransmitted_bytes: f64) -> Option<f64> {
    let first = not_negative(positive(sent_bytes)? - not_negative(retransmitted_bytes)?)?;
    finite(first / sent_bytes)
}

/// Buffer Delay: rise of the mean RTT over the baseline.
///
/// Units: ratio. Domain: baseline > 0. Source: RFC 6349 §4.3.
#[must_use]
pub fn buffer_delay(mean_rtt_s: f64, baseline_rtt_s: f64) -> Option<f64> {
    finite((not_negative(mean_rtt_s)? - positive(baseline_rtt_s)?) / baseline_rtt_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_of_the_examples() {
        assert!((efficiency(102_000.0, 2_000.0).unwrap() - 0.980_392_156_86).abs() < 1e-9);
        assert!((buffer_delay(0.032, 0.025).unwrap() - 0.28).abs() < 1e-9);
        assert_eq!(efficiency(1.0, 2.0), None);
        assert_eq!(buffer_delay(0.03, 0.0), None);
    }
}
