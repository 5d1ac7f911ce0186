//! Limits inside hosts: acknowledgements, processors, buses, disks, and estimates with error bounds.

use crate::domain::{finite, not_negative, positive};
use crate::framing;

/// Acknowledgements per second when one covers `segments_per_ack` segments.
///
/// Units: 1/s. Domain: segment rate ≥ 0, segments per acknowledgement > 0. Source: RFC 5681 §4.2 (at least every second).
#[must_use]
pub fn acks_per_second(segments_per_second: f64, segments_per_ack: f64) -> Option<f64> {
    finite(not_negative(segments_per_second)? / positive(segments_per_ack)?)
}

/// Link rate that acknowledgements take from the reverse direction.
///
/// Units: bit/s. Domain: both ≥ 0. Source: RFC 5681 §4.2, IEEE 802.3.
#[must_use]
pub fn ack_rate_bps(acks_per_second: f64, ack_wire_bytes: f64) -> Option<f64> {
    finite(not_negative(acks_per_second)? * not_negative(ack_wire_bytes)? * 8.0)
}

/// Full segments per second of a goodput.
///
/// Units: 1/s. Domain: goodput ≥ 0, MSS > 0. Source: definition.
#[must_use]
pub fn segments_per_second(goodput_bps: f64, mss_bytes: f64) -> Option<f64> {
    finite(not_negative(goodput_bps)? / 8.0 / positive(mss_bytes)?)
}

/// Reads per second: also the most window updates of a stack that sends one for each.
///
/// Units: 1/s. Domain: goodput ≥ 0, read size > 0. Source: RFC 9293 §3.8.6.2.2 lets modern stacks send far fewer.
#[must_use]
pub fn reads_per_second(goodput_bps: f64, read_bytes: f64) -> Option<f64> {
    segments_per_second(goodput_bps, read_bytes)
}

/// Rate that processors sustain when a packet and each of its bytes cost cycles.
///
/// Units: bit/s, Hz, cycles. Domain: frequency, cores, MSS > 0, a positive cost. Source: linear cost model, fitted from two packet sizes.
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

/// Rate at which a core would be full, from a measured rate and the share of the core that it took.
///
/// Units: bit/s. Domain: rate ≥ 0, 0 < share. Source: proportion; holds while batch sizes stay the same.
#[must_use]
pub fn rate_at_full_core_bps(goodput_bps: f64, core_share: f64) -> Option<f64> {
    finite(not_negative(goodput_bps)? / positive(core_share)?)
}

/// Instructions per packet from a processor's speed, the share spent and the packet rate.
///
/// Units: instructions; `instructions_per_second` in 1/s. Domain: packet rate > 0. Source: division.
#[must_use]
pub fn instructions_per_packet(
    instructions_per_second: f64,
    share: f64,
    packets_per_second: f64,
) -> Option<f64> {
    finite(not_negative(instructions_per_second)? * not_negative(share)? / positive(packets_per_second)?)
}

/// Instructions per second that a packet rate costs.
///
/// Units: 1/s. Domain: both ≥ 0. Source: [`instructions_per_packet`] turned round.
#[must_use]
pub fn instructions_per_second(per_packet: f64, packets_per_second: f64) -> Option<f64> {
    finite(not_negative(per_packet)? * not_negative(packets_per_second)?)
}

/// Share of elapsed time that a process spent on a processor.
///
/// Units: ratio of one core; may exceed 1 with threads. Domain: times ≥ 0, elapsed > 0. Source: definition.
#[must_use]
pub fn cpu_share(user_s: f64, system_s: f64, elapsed_s: f64) -> Option<f64> {
    finite((not_negative(user_s)? + not_negative(system_s)?) / positive(elapsed_s)?)
}

/// Peak rate of a parallel bus.
///
/// Units: bit/s. Domain: both > 0; shared by everything on the bus. Source: PCI Local Bus Specification 2.x.
#[must_use]
pub fn bus_rate_bps(clock_hz: f64, width_bits: f64) -> Option<f64> {
    finite(positive(clock_hz)? * positive(width_bits)?)
}

/// What a PCI Express slot carries in one direction: lanes times transfers, less the line code and 15 % for packet headers,
/// acknowledgements and flow control.
///
/// Units: bit/s. Domain: both > 0; for more than 32·10⁹ transfers/s, where packets travel in flits without a line code, a few
/// percent too much. Source: PCI Express Base Specification (8b/10b to 5 GT/s, 128b/130b from 8 GT/s).
#[must_use]
pub fn pcie_rate_bps(transfers_per_second: f64, lanes: f64) -> Option<f64> {
    const PACKETS: f64 = 0.85;
    let code = if transfers_per_second <= 5e9 { 8.0 / 10.0 } else { 128.0 / 130.0 };
    finite(positive(transfers_per_second)? * positive(lanes)? * code * PACKETS)
}

/// Share of a bus's clocks that move data.
///
/// Units: ratio, clocks. Domain: data > 0, overhead ≥ 0. Source: burst length over transaction length.
#[must_use]
pub fn burst_efficiency(data_clocks: f64, overhead_clocks: f64) -> Option<f64> {
    finite(positive(data_clocks)? / (data_clocks + not_negative(overhead_clocks)?))
}

/// Overhead of a burst that explains a rate below the peak.
///
/// Units: clocks. Domain: data > 0, 0 < measured ≤ peak. Source: [`burst_efficiency`] turned round.
#[must_use]
pub fn burst_overhead_clocks(data_clocks: f64, peak_bps: f64, measured_bps: f64) -> Option<f64> {
    finite(positive(data_clocks)? * not_negative(positive(peak_bps)? / positive(measured_bps)? - 1.0)?)
}

/// Rate of two stages of which only one works at a time.
///
/// Units: those of the arguments. Domain: both > 0. Source: the times of the stages add.
#[must_use]
pub fn serial_rate(first: f64, second: f64) -> Option<f64> {
    finite(1.0 / (1.0 / positive(first)? + 1.0 / positive(second)?))
}

/// Rate of the other stage when a serial pair and one stage are known.
///
/// Units: those of the arguments. Domain: 0 < total < stage. Source: [`serial_rate`] turned round.
#[must_use]
pub fn other_stage_rate(total: f64, stage: f64) -> Option<f64> {
    finite(1.0 / positive(1.0 / positive(total)? - 1.0 / positive(stage)?)?)
}

/// Rate of two stages that work at the same time.
///
/// Units: those of the arguments. Domain: both ≥ 0. Source: the slower one.
#[must_use]
pub fn overlapped_rate(first: f64, second: f64) -> Option<f64> {
    Some(not_negative(first)?.min(not_negative(second)?))
}

/// What a plan needs over what there is; above 1 it cannot be done.
///
/// Units: ratio. Domain: need ≥ 0, available > 0. Source: definition.
#[must_use]
pub fn utilisation(need: f64, available: f64) -> Option<f64> {
    finite(not_negative(need)? / positive(available)?)
}

/// Product of guessed factors.
///
/// Units: product of theirs. Domain: finite. Source: definition.
#[must_use]
pub fn estimate(factors: &[f64]) -> Option<f64> {
    finite(factors.iter().product())
}

/// By which factor a product of independent guesses may be off, when each may be off by the factor given.
///
/// Units: factor ≥ 1; the true value lies between estimate/factor and estimate·factor as surely as each guess does.
/// Domain: factors > 0. Source: independent errors add in quadrature on a logarithmic scale.
#[must_use]
pub fn estimate_error_factor(error_factors: &[f64]) -> Option<f64> {
    let mut sum = 0.0;
    for &factor in error_factors {
        sum += positive(factor)?.ln().powi(2);
    }
    finite(sum.sqrt().exp())
}

/// Goodput left in one direction when the other direction's acknowledgements share the link.
///
/// Units: bit/s. Domain: link > reverse traffic. Source: [`ack_rate_bps`] at one acknowledgement per two segments.
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
    fn serial_stages_share_the_time() {
        assert_eq!(serial_rate(100.0, 100.0), Some(50.0));
        assert!((other_stage_rate(50.0, 100.0).unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(other_stage_rate(100.0, 100.0), None);
        assert_eq!(overlapped_rate(1.0, 2.0), Some(1.0));
    }

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
    fn errors_of_guesses_add_in_quadrature() {
        assert!((estimate_error_factor(&[2.0]).unwrap() - 2.0).abs() < 1e-12);
        let both = estimate_error_factor(&[2.0, 2.0]).unwrap();
        assert!((both - 2f64.powf(2f64.sqrt())).abs() < 1e-12);
        assert_eq!(estimate_error_factor(&[]), Some(1.0));
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
