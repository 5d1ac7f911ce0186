//! Benchmarking of devices according to RFC 2544 and RFC 9004.

use crate::domain::{finite, not_negative, positive};

/// Frame loss rate.
///
/// Units: percent. Domain: output ≥ 0, input > 0. More frames out than in give a negative value, which shows a
/// fault.
/// Source: RFC 2544 §26.3.
#[must_use]
pub fn frame_loss_percent(input_frames: f64, output_frames: f64) -> Option<f64> {
    let input = positive(input_frames)?;
    finite((input - not_negative(output_frames)?) * 100.0 / input)
}

/// Time for which a back-to-back burst appears to have been buffered.
///
/// Units: s. Domain: frames ≥ 0, rate > 0. Source: RFC 9004 §5.4.
#[must_use]
pub fn implied_buffer_s(burst_frames: f64, max_frames_per_second: f64) -> Option<f64> {
    finite(not_negative(burst_frames)? / positive(max_frames_per_second)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_less_came_out() {
        assert_eq!(frame_loss_percent(100.0, 90.0), Some(10.0));
        assert_eq!(frame_loss_percent(100.0, 110.0), Some(-10.0));
        assert_eq!(frame_loss_percent(0.0, 0.0), None);
    }

    #[test]
    fn a_burst_at_the_highest_rate_lasts_as_long_as_its_frames() {
        assert_eq!(implied_buffer_s(100.0, 10.0), Some(10.0));
        assert_eq!(implied_buffer_s(100.0, 0.0), None);
    }
}
