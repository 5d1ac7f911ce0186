//! Limits inside hosts: acknowledgements, processors, PCI Express slots.

use crate::domain::{finite, not_negative, positive};
use crate::framing;

/// Acknowledgements per second if one covers `segments_per_ack` segments.
///
/// Units: 1/s. Domain: segment rate ≥ 0, segments per acknowledgement > 0. Source: RFC 5681 §4.2 (at least
/// every second).
#[must_use]
pub fn acks_per_second(segments_per_second: f64, segments_per_ack: f64) -> Option<f64> {
    finite(not_negative(segments_per_second)? / positive(segments_per_ack)?)
}

/// Link rate that acknowledgements take in the reverse direction.
///
/// Units: bit/s. Domain: both ≥ 0. Source: RFC 5681 §4.2, IEEE 802.3.
#[must_use]
pub fn ack_rate_bps(acks_per_second: f64, ack_wire_bytes: f64) -> Option<f64> {
    finite(not_negative(acks_per_second)? * not_negative(ack_wire_bytes)? * 8.0)
}

/// Rate that processors sustain if each packet and each byte cost cycles.
///
/// Units: bit/s, Hz, cycles. Domain: frequency, cores, MSS > 0, a positive cost. Source: linear cost model,
/// fitted from two packet sizes.
#[must_use]
pub fn cpu_rate_bps(
    frequency_hz: f64,
    cores: f64,
    cycles_per_packet: f64,
    cycles_per_byte: f64,
    mss_bytes: f64,
) -> Option<f64> {
    let mss = positive(mss_bytes)?;
    let cost = positive(not_negative(cycles_per_packet)? + not_negative(cycles_per_byte)? * mss)?;
    finite(positive(frequency_hz)? * positive(cores)? / cost * mss * 8.0)
}

/// Rate at which a core would be full, from a measured rate and the share of the core that it used.
///
/// Units: bit/s. Domain: rate ≥ 0, 0 < share. Source: proportion; holds while batch sizes stay the same.
#[must_use]
pub fn rate_at_full_core_bps(goodput_bps: f64, core_share: f64) -> Option<f64> {
    finite(not_negative(goodput_bps)? / positive(core_share)?)
}

/// Rate of a PCI Express slot in one direction: lanes times transfers, less the line code and 15 % for packet
/// headers, acknowledgements and flow control.
///
/// Units: bit/s. Domain: both > 0. Above 32·10⁹ transfers/s, where packets travel in flits without a line code,
/// the result is a few percent too high. Source: PCI Express Base Specification (8b/10b to 5 GT/s, 128b/130b
/// from 8 GT/s).
#[must_use]
pub fn pcie_rate_bps(transfers_per_second: f64, lanes: f64) -> Option<f64> {
    const PACKETS: f64 = 0.85;
    let code = if transfers_per_second <= 5e9 { 8.0 / 10.0 } else { 128.0 / 130.0 };
    finite(positive(transfers_per_second)? * positive(lanes)? * code * PACKETS)
}

/// Required rate divided by the available rate. Above 1 it is not feasible.
///
/// Units: ratio. Domain: need ≥ 0, available > 0. Source: definition.
#[must_use]
pub fn utilisation(need: f64, available: f64) -> Option<f64> {
    finite(not_negative(need)? / positive(available)?)
}

/// Goodput in one direction if the acknowledgements of the other direction share the link.
///
/// Units: bit/s. Domain: link > reverse traffic. Source: [`ack_rate_bps`] at one acknowledgement per two
/// segments.
#[must_use]
pub fn bidirectional_goodput_bps(
    link_bps: f64,
    mss_bytes: f64,
    wire_bytes: f64,
    ack_wire_bytes: f64,
) -> Option<f64> {
    // Each direction carries x segments and x/2 acknowledgements: x·wire + x/2·ack = link.
    let per_segment = positive(wire_bytes)? + not_negative(ack_wire_bytes)? / 2.0;
    framing::payload_rate_bps(link_bps, mss_bytes, per_segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_carries_its_lanes_less_code_and_headers() {
        // 8 lanes of 5 GT/s: 40 Gbit/s, 32 after 8b/10b, 27.2 of them usable.
        assert!((pcie_rate_bps(5e9, 8.0).unwrap() - 27.2e9).abs() < 1.0);
        // 4 lanes of 8 GT/s: 32 Gbit/s, 31.508 after 128b/130b, 26.782 of them usable.
        assert!((pcie_rate_bps(8e9, 4.0).unwrap() - 26.781_538e9).abs() < 1e3);
        assert_eq!(pcie_rate_bps(8e9, 0.0), None);
        assert_eq!(pcie_rate_bps(f64::NAN, 4.0), None);
    }

    #[test]
    fn acknowledgements_of_a_gigabit_take_29_megabits() {
        let fps = framing::frames_per_second(1e9, 1538.0).unwrap();
        let acks = acks_per_second(fps, 2.0).unwrap();
        assert!((ack_rate_bps(acks, 90.0).unwrap() - 29.2588e6).abs() < 1e2);
        let both = bidirectional_goodput_bps(1e9, 1448.0, 1538.0, 90.0).unwrap();
        assert!(both < 941.482e6 && both > 941.482e6 * (1.0 - 0.02927));
    }

    #[test]
    fn a_half_busy_core_could_do_twice_as_much() {
        assert_eq!(rate_at_full_core_bps(1e9, 0.5), Some(2e9));
        assert_eq!(rate_at_full_core_bps(1e9, 0.0), None);
        assert_eq!(cpu_rate_bps(1e9, 1.0, 0.0, 0.0, 1448.0), None);
    }
}
