//! Errors of sender-side counts, plausibility of reports, and the speed of light.

use crate::domain::{finite, not_negative, open_unit, positive};
use crate::framing::{self, Headers};

/// Speed of light in vacuum, m/s. Source: SI.
pub const LIGHT_M_PER_S: f64 = 299_792_458.0;
/// Group index of G.652 fibre at 1550 nm. Source: ITU-T G.652 fibres' data sheets.
pub const FIBRE_INDEX: f64 = 1.4682;

/// Relative excess of a sender's rate that counts `outstanding_bytes` not yet read by the receiver.
///
/// Units: ratio. Domain: 0 ≤ outstanding < total. Source: (N/(N−Q)) − 1, from the two definitions of the rate.
#[must_use]
pub fn overreport(total_bytes: f64, outstanding_bytes: f64) -> Option<f64> {
    let total = positive(total_bytes)?;
    finite(total / positive(total - not_negative(outstanding_bytes)?)? - 1.0)
}

/// Bytes that must have been outstanding if a report is the sender's and the true rate is known.
///
/// Units: bytes. Domain: rates > 0. Source: [`overreport`] solved for the outstanding bytes.
#[must_use]
pub fn outstanding_for_report_bytes(total_bytes: f64, true_bps: f64, reported_bps: f64) -> Option<f64> {
    finite(not_negative(total_bytes)? * (1.0 - positive(true_bps)? / positive(reported_bps)?))
}

/// Payload per packet if a rate and a packet rate are both reported.
///
/// Units: bytes. Domain: rate ≥ 0, packets per second > 0, wire packets. Source: division of the two.
#[must_use]
pub fn payload_per_packet_bytes(goodput_bps: f64, packets_per_second: f64) -> Option<f64> {
    finite(not_negative(goodput_bps)? / 8.0 / positive(packets_per_second)?)
}

/// The link rate that a reported rate and packet rate require together.
///
/// Units: bit/s. Domain: as [`payload_per_packet_bytes`]. Source: IEEE 802.3 framing of that payload.
#[must_use]
pub fn wire_rate_needed_bps(
    goodput_bps: f64,
    packets_per_second: f64,
    headers: &Headers,
    tags: f64,
) -> Option<f64> {
    let payload = payload_per_packet_bytes(goodput_bps, packets_per_second)?;
    finite(framing::layers_bytes(payload, headers, tags)? * 8.0 * packets_per_second)
}

/// Shortest round trip over a distance at a signal speed.
///
/// Units: s, m one way, m/s. Domain: distance ≥ 0, speed > 0. Source: distance over speed, twice.
#[must_use]
pub fn round_trip_floor_s(distance_m: f64, speed_m_per_s: f64) -> Option<f64> {
    finite(2.0 * not_negative(distance_m)? / positive(speed_m_per_s)?)
}

/// Signal speed in a medium.
///
/// Units: m/s. Domain: index ≥ 1. Source: c/n.
#[must_use]
pub fn signal_speed_m_per_s(refractive_index: f64) -> Option<f64> {
    finite(refractive_index).filter(|&index| index >= 1.0).map(|index| LIGHT_M_PER_S / index)
}

/// The longest one-way path that a round trip allows.
///
/// Units: m. Domain: RTT ≥ 0, speed > 0. Source: [`round_trip_floor_s`] inverted.
#[must_use]
pub fn longest_path_m(rtt_s: f64, speed_m_per_s: f64) -> Option<f64> {
    finite(not_negative(rtt_s)? / 2.0 * positive(speed_m_per_s)?)
}

/// Ratio of the longest possible path to the stated distance. Above 3 suggests detours.
///
/// Units: ratio. Domain: distance > 0. Source: [`longest_path_m`] over the distance.
#[must_use]
pub fn path_stretch(rtt_s: f64, speed_m_per_s: f64, distance_m: f64) -> Option<f64> {
    finite(longest_path_m(rtt_s, speed_m_per_s)? / positive(distance_m)?)
}

/// Test length at which the lost time causes at most the relative error `bias`.
///
/// Units: s. Domain: lost ≥ 0, 0 < bias < 1. Source: bias = lost time over length.
#[must_use]
pub fn length_for_bias_s(lost_s: f64, bias: f64) -> Option<f64> {
    finite(not_negative(lost_s)? / open_unit(bias)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::IpVersion;

    #[test]
    fn a_thousandth_of_the_bytes_outstanding_is_a_thousandth_too_much() {
        assert!((overreport(1001.0, 1.0).unwrap() - 0.001).abs() < 1e-12);
        assert_eq!(overreport(1.0, 1.0), None);
        assert_eq!(overreport(10.0, 0.0), Some(0.0));
    }

    #[test]
    fn the_gigasunet_report_needs_more_than_a_gigabit() {
        let plain = Headers::tcp(IpVersion::V4, false);
        assert!(wire_rate_needed_bps(966.5e6, 83_000.0, &plain, 0.0).unwrap() > 1.01e9);
        assert!(wire_rate_needed_bps(949e6, 81_250.0, &plain, 0.0).unwrap() < 1e9);
    }

    #[test]
    fn a_thousand_kilometres_of_fibre_take_9_8_ms() {
        let speed = signal_speed_m_per_s(FIBRE_INDEX).unwrap();
        assert!((round_trip_floor_s(1e6, speed).unwrap() - 0.009_794_8).abs() < 1e-6);
        assert!((path_stretch(0.021, speed, 1e6).unwrap() - 2.144).abs() < 1e-6);
        assert_eq!(signal_speed_m_per_s(0.5), None);
    }
}
