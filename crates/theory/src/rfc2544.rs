//! Benchmarking of devices after RFC 2544, RFC 9004 and RFC 8239: searches and corrections.

use crate::domain::{finite, not_negative, positive, unit};

/// Frame loss rate.
///
/// Units: percent. Domain: 0 ≤ output, input > 0; more out than in gives a negative figure, which is a fault to show.
/// Source: RFC 2544 §26.3.
#[must_use]
pub fn frame_loss_percent(input_frames: f64, output_frames: f64) -> Option<f64> {
    let input = positive(input_frames)?;
    finite((input - not_negative(output_frames)?) * 100.0 / input)
}

/// One trial of a throughput search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Offered load as a fraction of line rate.
    pub load: f64,
    /// Whether nothing was lost.
    pub passed: bool,
}

/// Outcome of a throughput search.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// Highest load that passed, as a fraction of line rate.
    pub throughput: f64,
    /// Every trial in the order it was run.
    pub trials: Vec<Trial>,
}

/// Binary search for the highest loss-free load, the upper end tried first.
///
/// Loads are fractions of line rate. Ends when the interval is no wider than `resolution`, or when the upper end passes.
/// Domain: 0 ≤ low < high ≤ 1, 0 < resolution. Source: RFC 2544 §26.1.
pub fn throughput_search(
    low: f64,
    high: f64,
    resolution: f64,
    mut passes: impl FnMut(f64) -> bool,
) -> Option<Search> {
    let (mut low, mut high, resolution) = (unit(low)?, unit(high)?, positive(resolution)?);
    if low >= high {
        return None;
    }
    let mut trials = Vec::new();
    let mut run = |load: f64, trials: &mut Vec<Trial>| {
        let passed = passes(load);
        trials.push(Trial { load, passed });
        passed
    };
    if run(high, &mut trials) {
        return Some(Search { throughput: high, trials });
    }
    while high - low > resolution {
        let middle = low.midpoint(high);
        if middle <= low || middle >= high {
            break; // finer than a double can divide
        }
        if run(middle, &mut trials) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(Search { throughput: low, trials })
}

/// Time that a back-to-back burst seems to have been buffered.
///
/// Units: s. Domain: frames ≥ 0, rate > 0. Source: RFC 9004 §5.4.
#[must_use]
pub fn implied_buffer_s(burst_frames: f64, max_frames_per_second: f64) -> Option<f64> {
    finite(not_negative(burst_frames)? / positive(max_frames_per_second)?)
}

/// The same, less the frames that the device forwarded meanwhile.
///
/// Units: s. Domain: 0 ≤ throughput ≤ maximum. Source: RFC 9004 §5.4.
#[must_use]
pub fn corrected_buffer_s(burst_frames: f64, max_frames_per_second: f64, throughput_fps: f64) -> Option<f64> {
    let frames = corrected_buffer_frames(burst_frames, max_frames_per_second, throughput_fps)?;
    finite(frames / max_frames_per_second)
}

/// Frames that the device held.
///
/// Units: frames. Domain: as [`corrected_buffer_s`]. Source: RFC 9004 §5.4.
#[must_use]
pub fn corrected_buffer_frames(
    burst_frames: f64,
    max_frames_per_second: f64,
    throughput_fps: f64,
) -> Option<f64> {
    let held = not_negative(1.0 - not_negative(throughput_fps)? / positive(max_frames_per_second)?)?;
    finite(not_negative(burst_frames)? * held)
}

/// Buffer found with two inputs and one output.
///
/// Units: bytes. Domain: burst ≥ 0, rates > 0. Source: RFC 8239 §3.
#[must_use]
pub fn port_buffer_bytes(burst_bytes: f64, out_bps: f64, in_bps: f64) -> Option<f64> {
    crate::slow_start::burst_queue_bytes(burst_bytes, out_bps, in_bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_narrows_to_its_resolution() {
        let found = throughput_search(0.0, 1.0, 0.005, |load| load <= 0.873).unwrap();
        assert!(found.throughput <= 0.873 && found.throughput > 0.873 - 0.005);
        assert_eq!(found.trials.len(), 9);
    }

    #[test]
    fn a_device_at_line_rate_needs_one_trial() {
        let found = throughput_search(0.0, 1.0, 0.01, |_| true).unwrap();
        assert_eq!((found.throughput, found.trials.len()), (1.0, 1));
        assert!(throughput_search(0.5, 0.5, 0.01, |_| true).is_none());
        assert!(throughput_search(0.0, f64::NAN, 0.01, |_| true).is_none());
    }

    #[test]
    fn the_search_ends_also_at_an_absurd_resolution() {
        assert!(throughput_search(0.0, 1.0, 1e-300, |load| load <= 0.3).is_some());
    }

    #[test]
    fn forwarded_frames_are_not_buffered() {
        assert_eq!(corrected_buffer_frames(100.0, 10.0, 5.0), Some(50.0));
        assert_eq!(corrected_buffer_frames(100.0, 10.0, 11.0), None);
        assert_eq!(port_buffer_bytes(30e6, 10e9, 20e9), Some(15e6));
    }
}
