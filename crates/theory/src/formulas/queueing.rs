//! Buffers: recommended sizes, what a measurement shows about them, and the signatures of policers and shapers.
//!
//! Not yet called: utilisation, windows at a drop, token buckets and delay lines. They are kept for predicted
//! runs in an emulated twin.

use crate::domain::{finite, not_negative, open_unit, positive};

/// Buffer for `flows` long, desynchronised flows. One flow gives the bandwidth-delay product.
///
/// Units: bytes. Domain: rate, RTT ≥ 0, flows ≥ 1; unsound below about 50 flows except for 1.
/// Source: Villamizar and Song 1994; Appenzeller, Keslassy and McKeown 2004.
#[must_use]
pub fn buffer_for_flows_bytes(capacity_bps: f64, rtt_s: f64, flows: f64) -> Option<f64> {
    finite(crate::bdp::bdp_bytes(capacity_bps, rtt_s)? / positive(flows)?.sqrt())
}

/// Buffer that keeps a link full through one back-off of a single flow.
///
/// Units: bytes. Domain: 0 < β < 1. Source: window after back-off β(BDP + B) ≥ BDP.
#[must_use]
pub fn buffer_for_backoff_bytes(capacity_bps: f64, rtt_s: f64, beta: f64) -> Option<f64> {
    finite(crate::bdp::bdp_bytes(capacity_bps, rtt_s)? * (1.0 - open_unit(beta)?) / beta)
}

/// Window right after a back-off, in bandwidth-delay products.
///
/// Units: BDP. Domain: buffer ≥ 0 BDP, 0 < β < 1. Source: β(1 + b).
#[must_use]
pub fn restart_window_bdp(buffer_bdp: f64, beta: f64) -> Option<f64> {
    finite(open_unit(beta)? * (1.0 + not_negative(buffer_bdp)?))
}

/// Utilisation of a link by one additive-increase flow that restarts at `restart_bdp` with a buffer of
/// `buffer_bdp`.
///
/// Units: ratio; both arguments in BDP. Domain: both ≥ 0. Source: mean of the sawtooth over its period; ¾
/// without buffer.
#[must_use]
pub fn aimd_utilisation(buffer_bdp: f64, restart_bdp: f64) -> Option<f64> {
    let (b, w0) = (not_negative(buffer_bdp)?, not_negative(restart_bdp)?);
    if w0 >= 1.0 {
        return Some(1.0);
    }
    // Above one BDP the window costs time (the RTT grows) but no rate is lost.
    let queued = ((1.0 + b).powi(2) - 1.0) / 2.0;
    finite(((1.0 - w0 * w0) / 2.0 + queued) / ((1.0 - w0) + queued))
}

/// Utilisation by one CUBIC flow without buffer.
///
/// Units: ratio. Domain: 0 < β < 1. Source: RFC 9438 §5.1: mean window over largest window.
#[must_use]
pub fn cubic_utilisation_without_buffer(beta: f64) -> Option<f64> {
    finite((3.0 + open_unit(beta)?) / 4.0)
}

/// Link rate that a UDP payload rate occupies.
///
/// Units: bit/s. Domain: rate ≥ 0, datagram > 0 bytes in one untagged IPv4 frame. Source: RFC 768, IEEE 802.3.
#[must_use]
pub fn udp_wire_rate_bps(payload_bps: f64, datagram_bytes: f64) -> Option<f64> {
    let headers = crate::framing::Headers::udp(crate::framing::IpVersion::V4);
    let wire = crate::framing::layers_bytes(datagram_bytes, &headers, 0.0)?;
    finite(not_negative(payload_bps)? * wire / positive(datagram_bytes)?)
}

/// RTT that a window and a rate imply together.
///
/// Units: s. Domain: window ≥ 0 bytes in flight, rate > 0. Source: Little's law.
#[must_use]
pub fn implied_rtt_s(window_bytes: f64, rate_bps: f64) -> Option<f64> {
    crate::bdp::rtt_for_window_s(window_bytes, rate_bps)
}

/// Smallest mean window that moves `bytes_per_second` at an RTT.
///
/// Units: bytes. Domain: bytes in one second ≥ 0, RTT ≥ 0. Source: Little's law.
#[must_use]
pub fn least_window_bytes(bytes_per_second: f64, rtt_s: f64) -> Option<f64> {
    crate::bdp::bdp_bytes(8.0 * bytes_per_second, rtt_s)
}

/// Queue that a rise of the RTT shows. With the largest RTT before a drop it is the buffer.
///
/// Units: bytes. Domain: loaded ≥ base ≥ 0, drain rate > 0 (of the queue, with other traffic). Source: delay
/// times drain rate.
#[must_use]
pub fn queue_bytes(loaded_rtt_s: f64, base_rtt_s: f64, drain_bps: f64) -> Option<f64> {
    let rise = finite(loaded_rtt_s)? - not_negative(base_rtt_s)?;
    finite(rise * positive(drain_bps)? / 8.0)
}

/// Window at which a tail-drop buffer first overflows.
///
/// Units: bytes. Domain: all ≥ 0, capacity > 0. Source: Little's law with the queue full.
#[must_use]
pub fn window_at_first_drop_bytes(
    goodput_bps: f64,
    base_rtt_s: f64,
    buffer_bytes: f64,
    capacity_bps: f64,
) -> Option<f64> {
    let full = not_negative(base_rtt_s)? + not_negative(buffer_bytes)? * 8.0 / positive(capacity_bps)?;
    crate::bdp::bdp_bytes(goodput_bps, full)
}

/// Delay of a shaper's full buffer.
///
/// Units: s. Domain: buffer ≥ 0, rate > 0. Source: bytes over rate.
#[must_use]
pub fn shaper_delay_s(buffer_bytes: f64, rate_bps: f64) -> Option<f64> {
    crate::conversion::transfer_time_s(buffer_bytes, rate_bps)
}

/// Time in which line-rate traffic empties a token bucket.
///
/// Units: s. Domain: line > committed rate > 0. Source: bucket over the difference of the rates.
#[must_use]
pub fn bucket_empty_s(bucket_bytes: f64, line_bps: f64, committed_bps: f64) -> Option<f64> {
    let surplus = positive(finite(line_bps)? - not_negative(committed_bps)?)?;
    finite(not_negative(bucket_bytes)? * 8.0 / surplus)
}

/// Bytes that pass before a policer first drops.
///
/// Units: bytes. Domain: as [`bucket_empty_s`]. Source: line rate for that time.
#[must_use]
pub fn bucket_first_bytes(bucket_bytes: f64, line_bps: f64, committed_bps: f64) -> Option<f64> {
    let surplus = positive(finite(line_bps)? - not_negative(committed_bps)?)?;
    finite(line_bps * not_negative(bucket_bytes)? / surplus)
}

/// Steady loss of constant-rate traffic above a policer's rate.
///
/// Units: ratio; 0 when the traffic conforms. Domain: offered > 0. Source: 1 − committed/offered.
#[must_use]
pub fn policer_loss(committed_bps: f64, offered_bps: f64) -> Option<f64> {
    finite((1.0 - not_negative(committed_bps)? / positive(offered_bps)?).max(0.0))
}

/// Packets that a delay line must hold.
///
/// Units: packets. Domain: rate, delay ≥ 0, packet > 0 bytes. Source: bandwidth-delay product in packets;
/// `tc-netem` limit.
#[must_use]
pub fn delay_line_packets(rate_bps: f64, delay_s: f64, packet_bytes: f64) -> Option<f64> {
    crate::bdp::window_segments(rate_bps, delay_s, packet_bytes)
}

/// Rate that a delay line of this number of packets lets through.
///
/// Units: bit/s. Domain: limit, MSS ≥ 0, delay > 0. Source: [`delay_line_packets`] inverted.
#[must_use]
pub fn delay_line_rate_bps(limit_packets: f64, mss_bytes: f64, delay_s: f64) -> Option<f64> {
    crate::bdp::window_rate_bps(not_negative(limit_packets)? * not_negative(mss_bytes)?, delay_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_without_buffer_uses_three_quarters() {
        assert_eq!(aimd_utilisation(0.0, restart_window_bdp(0.0, 0.5).unwrap()), Some(0.75));
        assert_eq!(aimd_utilisation(1.0, restart_window_bdp(1.0, 0.5).unwrap()), Some(1.0));
    }

    #[test]
    fn the_buffer_for_a_backoff_makes_the_restart_a_full_bdp() {
        let bdp = crate::bdp::bdp_bytes(10e9, 0.05).unwrap();
        let buffer = buffer_for_backoff_bytes(10e9, 0.05, 0.7).unwrap();
        assert!((restart_window_bdp(buffer / bdp, 0.7).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_policer_passes_the_bucket_and_what_refills_it() {
        let time = bucket_empty_s(1e6, 1e9, 100e6).unwrap();
        let bytes = bucket_first_bytes(1e6, 1e9, 100e6).unwrap();
        assert!((bytes - (1e6 + 100e6 * time / 8.0)).abs() < 1e-3);
        assert_eq!(bucket_empty_s(1e6, 100e6, 100e6), None, "conforming traffic never empties it");
        assert_eq!(policer_loss(100e6, 50e6), Some(0.0));
    }

    #[test]
    fn a_queue_is_its_delay_times_the_drain() {
        assert!((queue_bytes(0.0923, 0.0508, 10e9).unwrap() - 51_875_000.0).abs() < 1e-3);
    }
}
