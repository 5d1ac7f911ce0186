//! How long a flow takes to reach its rate, and the effect of the start on buffers.

use crate::domain::{finite, not_negative, positive};

/// Growth of the window per round trip with an acknowledgement per segment, or byte counting. Source: RFC 5681
/// §3.1, RFC 3465.
pub const GROWTH_PER_SEGMENT: f64 = 2.0;

/// Round trips until the window has grown from `initial` to `window` segments.
///
/// Units: round trips. Domain: windows > 0, growth > 1; best case, without loss or early exit. Source: RFC 5681
/// §3.1.
#[must_use]
pub fn rounds(window_segments: f64, initial_segments: f64, growth: f64) -> Option<f64> {
    let steps =
        (positive(window_segments)? / positive(initial_segments)?).ln() / greater_than_one(growth)?.ln();
    finite(steps.ceil())
}

/// Segments sent in the first `rounds` round trips.
///
/// Units: segments. Domain: rounds ≥ 0, growth > 1. Source: geometric series of RFC 5681 §3.1.
#[must_use]
pub fn sent_segments(rounds: f64, initial_segments: f64, growth: f64) -> Option<f64> {
    let growth = greater_than_one(growth)?;
    finite(positive(initial_segments)? * (growth.powf(not_negative(rounds)?) - 1.0) / (growth - 1.0))
}

/// Start of a flow, as input of [`lost_time_s`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowStart {
    /// Steady rate of the flow, bit/s.
    pub rate_bps: f64,
    /// Round trip, s.
    pub rtt_s: f64,
    /// Payload of a segment, bytes.
    pub mss_bytes: f64,
    /// Initial window, segments.
    pub initial_segments: f64,
    /// Growth of the window per round trip.
    pub growth: f64,
}

/// Time at full rate that is lost to slow start.
///
/// Units: s. Domain: all > 0, growth > 1, rounds ≥ 0. Source: duration minus data sent over rate.
#[must_use]
pub fn lost_time_s(start: &SlowStart, rounds: f64) -> Option<f64> {
    let sent = sent_segments(rounds, start.initial_segments, start.growth)?;
    let at_rate = sent * positive(start.mss_bytes)? * 8.0 / positive(start.rate_bps)?;
    finite(rounds * positive(start.rtt_s)? - at_rate)
}

/// Time to omit so that slow start is excluded: twice its duration, at least one second.
///
/// Units: s. Domain: rounds, RTT ≥ 0. Source: RFC 5681 §3.1 with a factor for the receiver's autotuning.
#[must_use]
pub fn omit_s(rounds: f64, rtt_s: f64) -> Option<f64> {
    finite((2.0 * not_negative(rounds)? * not_negative(rtt_s)?).max(1.0))
}

/// Queue that a burst leaves if it arrives faster than it drains.
///
/// Units: bytes, bit/s. Domain: burst ≥ 0, rates > 0; 0 when the output keeps up. Source: RFC 8239 §3 (two
/// inputs, one output).
#[must_use]
pub fn burst_queue_bytes(burst_bytes: f64, out_bps: f64, in_bps: f64) -> Option<f64> {
    let kept = (1.0 - positive(out_bps)? / positive(in_bps)?).max(0.0);
    finite(not_negative(burst_bytes)? * kept)
}

fn greater_than_one(growth: f64) -> Option<f64> {
    finite(growth).filter(|&value| value > 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_at_21_ms_needs_eight_rounds() {
        let window = crate::bdp::window_segments(941_482_444.733, 0.021, 1448.0).unwrap();
        assert_eq!(rounds(window, 10.0, GROWTH_PER_SEGMENT), Some(8.0));
        assert_eq!(rounds(10.0, 10.0, GROWTH_PER_SEGMENT), Some(0.0));
    }

    #[test]
    fn eight_rounds_lose_137_ms() {
        let start = SlowStart {
            rate_bps: 941_482_444.733,
            rtt_s: 0.021,
            mss_bytes: 1448.0,
            initial_segments: 10.0,
            growth: 2.0,
        };
        assert!((lost_time_s(&start, 8.0).unwrap() - 0.136_625).abs() < 1e-5);
        assert_eq!(lost_time_s(&SlowStart { growth: 1.0, ..start }, 8.0), None);
    }

    #[test]
    fn a_burst_no_faster_than_its_output_leaves_nothing() {
        assert_eq!(burst_queue_bytes(1e6, 1e9, 1e9), Some(0.0));
        assert_eq!(burst_queue_bytes(1000.0, 1e9, 2e9), Some(500.0));
    }
}
