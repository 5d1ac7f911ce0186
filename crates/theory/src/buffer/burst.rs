//! Estimates the buffer from the longest burst that passes without loss.

use crate::domain::{finite, not_negative, positive};

/// Buffer that holds the rest of a burst when its last byte arrives.
///
/// Units: bytes of one input; bit/s on the line: the rates of that input, of all inputs together, and of the
/// output. Domain: burst ≥ 0, rates > 0, the output slower than the inputs together; otherwise `None`, because
/// nothing waits. Source: B = L(1 − R_out/R_in), where L is the bytes of all inputs (RFC 8239 section 3; RFC
/// 2544 section 26.4).
#[must_use]
pub fn burst_buffer_bytes(burst_bytes: f64, burst_bps: f64, in_bps: f64, out_bps: f64) -> Option<f64> {
    let (own, all, out) = (positive(burst_bps)?, positive(in_bps)?, positive(out_bps)?);
    let surplus = positive(all - out)?;
    finite(not_negative(burst_bytes)? * surplus / own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_inputs_at_ten_gigabits_leave_half_of_what_they_send() {
        // 30 MB in all, 15 MB from each input, of which 15 MB wait.
        assert_eq!(burst_buffer_bytes(15e6, 10e9, 20e9, 10e9), Some(15e6));
        // A burst at 1 Gb/s and other traffic at 0.5 Gb/s into 1 Gb/s: half of the burst waits.
        assert_eq!(burst_buffer_bytes(2e6, 1e9, 1.5e9, 1e9), Some(1e6));
        assert_eq!(burst_buffer_bytes(2e6, 1e9, 1e9, 1e9), None, "nothing waits");
        assert_eq!(burst_buffer_bytes(2e6, 0.0, 1.5e9, 1e9), None);
    }
}
