//! Delay, its variation, loss in round trips, and responsiveness under load.

use crate::domain::{finite, not_negative, positive};

/// The four time stamps of a two-way exchange, s on two clocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exchange {
    /// Sent, on the sender's clock.
    pub sent_s: f64,
    /// Received, on the reflector's clock.
    pub reflector_received_s: f64,
    /// Sent back, on the reflector's clock.
    pub reflector_sent_s: f64,
    /// Received, on the sender's clock.
    pub received_s: f64,
}

/// Round trip without the reflector's own time; the offset of its clock cancels.
///
/// Units: s. Domain: finite stamps. Source: RFC 5357 §4, RFC 8762 §4.
#[must_use]
pub fn round_trip_s(exchange: &Exchange) -> Option<f64> {
    let outside = exchange.received_s - exchange.sent_s;
    finite(outside - (exchange.reflector_sent_s - exchange.reflector_received_s))
}

/// RFC 3550's running jitter after every packet but the first.
///
/// Units: those of `transit` (arrival minus sending time). Shape: `[packet − 1]`, in order of arrival.
/// A smoothed estimate with a time constant of 16 packets, not a statistic of the run.
/// Domain: finite values; empty for fewer than two or when one is not finite. Source: RFC 3550 §6.4.1.
#[must_use]
pub fn jitter(transit: &[f64]) -> Vec<f64> {
    let mut estimate = 0.0;
    variation(transit)
        .into_iter()
        .map(|difference| {
            estimate += (difference.abs() - estimate) / 16.0;
            estimate
        })
        .collect()
}

/// Inter-packet delay variation: each delay less the one before.
///
/// Units: those of `delay`. Shape: `[packet − 1]`. Domain: as [`jitter`]; lost packets have none. Source: RFC 3393 §4.
#[must_use]
pub fn variation(delay: &[f64]) -> Vec<f64> {
    if delay.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    delay.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Packet delay variation: each delay less the smallest.
///
/// Units: those of `delay`. Shape: `[packet]`. Domain: as [`jitter`]. Source: RFC 5481 §4.2.
#[must_use]
pub fn excess_over_minimum(delay: &[f64]) -> Vec<f64> {
    if delay.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let least = delay.iter().copied().fold(f64::INFINITY, f64::min);
    delay.iter().map(|value| value - least).collect()
}

/// Round-trip loss.
///
/// Units: percent. Domain: 0 ≤ lost ≤ sent, sent > 0. Source: RFC 6673 §4.
#[must_use]
pub fn round_trip_loss_percent(lost: f64, sent: f64) -> Option<f64> {
    let share = not_negative(lost)? / positive(sent)?;
    (share <= 1.0).then_some(share * 100.0)
}

/// Round trips that fit in a minute: what a person waits for, turned so that more is better.
///
/// Units: 1/min. Domain: RTT > 0. Source: draft-ietf-ippm-responsiveness §4.
#[must_use]
pub fn round_trips_per_minute(rtt_s: f64) -> Option<f64> {
    finite(60.0 / positive(rtt_s)?)
}

/// Handshake times of probes on new connections, s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForeignProbe {
    /// TCP handshake.
    pub tcp_s: f64,
    /// TLS handshake, per round trip; absent on plain TCP.
    pub tls_s: Option<f64>,
    /// Request and answer.
    pub http_s: f64,
}

/// Responsiveness under load: mean of new connections and of the loaded one.
///
/// Units: round trips per minute. Domain: times ≥ 0 with a positive mean, loaded > 0.
/// Source: draft-ietf-ippm-responsiveness §4.3.
#[must_use]
pub fn responsiveness_rpm(foreign: &ForeignProbe, loaded_s: f64) -> Option<f64> {
    let (tcp, http) = (not_negative(foreign.tcp_s)?, not_negative(foreign.http_s)?);
    let mean = match foreign.tls_s {
        Some(tls) => (tcp + not_negative(tls)? + http) / 3.0,
        None => f64::midpoint(tcp, http),
    };
    finite(f64::midpoint(round_trips_per_minute(mean)?, round_trips_per_minute(loaded_s)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reflectors_clock_does_not_matter() {
        let mut exchange = Exchange {
            sent_s: 10.0,
            reflector_received_s: 110.0102,
            reflector_sent_s: 110.01035,
            received_s: 10.0208,
        };
        let first = round_trip_s(&exchange).unwrap();
        assert!((first - 0.02065).abs() < 1e-9);
        exchange.reflector_received_s += 7.0;
        exchange.reflector_sent_s += 7.0;
        assert!((round_trip_s(&exchange).unwrap() - first).abs() < 1e-9);
    }

    #[test]
    fn constant_delay_has_no_variation() {
        assert_eq!(jitter(&[20.0; 4]), [0.0; 3]);
        assert_eq!(excess_over_minimum(&[20.0; 2]), [0.0; 2]);
        assert!(jitter(&[1.0]).is_empty());
        assert!(variation(&[1.0, f64::NAN]).is_empty());
    }

    #[test]
    fn a_single_step_of_16_raises_jitter_by_one() {
        assert_eq!(jitter(&[0.0, 16.0]), [1.0]);
    }

    #[test]
    fn two_hundred_milliseconds_are_300_round_trips() {
        assert!((round_trips_per_minute(0.2).unwrap() - 300.0).abs() < 1e-9);
        let plain = ForeignProbe { tcp_s: 0.020, tls_s: None, http_s: 0.024 };
        assert!((responsiveness_rpm(&plain, 0.060).unwrap() - 1_863.636_363).abs() < 1e-3);
        assert_eq!(round_trip_loss_percent(2.0, 1.0), None);
    }
}
