//! IP-layer capacity according to RFC 9097: what counts, and the sender's rate adjustment.
//!
//! Not yet called: kept for tests according to this standard.

use crate::domain::{finite, not_negative, positive};

/// Capacity in one sub-interval: IP bits received over its length.
///
/// Units: bit/s. Domain: counts ≥ 0, interval > 0. Source: RFC 9097 §5.3.
#[must_use]
pub fn ip_capacity_bps(
    datagrams: f64,
    payload_bytes: f64,
    ip_header_bytes: f64,
    interval_s: f64,
) -> Option<f64> {
    let packet =
        not_negative(payload_bytes)? + crate::framing::UDP_HEADER_BYTES + not_negative(ip_header_bytes)?;
    finite(not_negative(datagrams)? * packet * 8.0 / positive(interval_s)?)
}

/// Settings of the rate adjustment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TypeB {
    /// Largest number of sequence errors in a good feedback interval.
    pub sequence_errors: u32,
    /// Delay variation below this is good, s.
    pub low_delay_s: f64,
    /// Delay variation above this is bad, s.
    pub high_delay_s: f64,
    /// Number of consecutive bad feedbacks after which the search stops using large steps.
    pub slow_after: u32,
    /// Rows per large step.
    pub fast_rows: u32,
    /// Number of large steps of a retreat.
    pub retreat_steps: u32,
    /// From this row on, only single steps are used: 1 Gbit/s.
    pub high_speed_row: u32,
    /// Last row of the table.
    pub last_row: u32,
}

impl Default for TypeB {
    /// The RFC's values for a table up to 10 Gbit/s.
    fn default() -> Self {
        Self {
            sequence_errors: 10,
            low_delay_s: 0.030,
            high_delay_s: 0.090,
            slow_after: 3,
            fast_rows: 10,
            retreat_steps: 3,
            high_speed_row: 1000,
            last_row: 1090,
        }
    }
}

/// The receiver's report on one feedback interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Feedback {
    /// Lost (and, if so configured, reordered) datagrams.
    pub sequence_errors: u32,
    /// Range of the one-way delay, s.
    pub delay_variation_s: f64,
}

/// The state of the adjustment: a row of the rate table and a count of bad feedbacks.
///
/// Source: RFC 9097 §8.1, algorithm B of ITU-T Y.1540.
#[derive(Debug, Clone)]
pub struct RateAdjustment {
    settings: TypeB,
    row: u32,
    bad: u32,
}

impl RateAdjustment {
    /// Starts at the first row.
    #[must_use]
    pub fn new(settings: TypeB) -> Self {
        Self { settings, row: 0, bad: 0 }
    }

    /// Processes one feedback and returns the row to send at next.
    pub fn on_feedback(&mut self, feedback: Feedback) -> u32 {
        let set = self.settings;
        let errors = feedback.sequence_errors > set.sequence_errors;
        if !errors && feedback.delay_variation_s < set.low_delay_s {
            self.raise();
        } else if errors || feedback.delay_variation_s > set.high_delay_s {
            self.lower();
        }
        self.row
    }

    fn raise(&mut self) {
        let set = self.settings;
        let step = if self.row < set.high_speed_row && self.bad < set.slow_after {
            self.bad = 0;
            set.fast_rows
        } else {
            1
        };
        self.row = self.row.saturating_add(step).min(set.last_row);
    }

    fn lower(&mut self) {
        let set = self.settings;
        self.bad = self.bad.saturating_add(1);
        let step = if self.row < set.high_speed_row && self.bad == set.slow_after {
            set.fast_rows.saturating_mul(set.retreat_steps)
        } else {
            1
        };
        self.row = self.row.saturating_sub(step);
    }
}

/// The rate of a table row: 0.5 Mbit/s, then steps of 1 Mbit/s to 1 Gbit/s, of 100 Mbit/s to 10 Gbit/s, of 1
/// Gbit/s beyond.
///
/// Units: bit/s. Domain: any row. Source: RFC 9097 §8.1.
#[must_use]
pub fn row_rate_bps(row: u32) -> f64 {
    match row {
        0 => 0.5e6,
        1..=1000 => f64::from(row) * 1e6,
        1001..=1090 => 1e9 + f64::from(row - 1000) * 100e6,
        _ => 10e9 + f64::from(row - 1090) * 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback(sequence_errors: u32, delay_ms: f64) -> Feedback {
        Feedback { sequence_errors, delay_variation_s: delay_ms / 1e3 }
    }

    #[test]
    fn three_bad_feedbacks_end_the_fast_search() {
        let mut rate = RateAdjustment::new(TypeB::default());
        for _ in 0..10 {
            rate.on_feedback(feedback(0, 5.0));
        }
        assert_eq!(rate.on_feedback(feedback(11, 0.0)), 99);
        assert_eq!(rate.on_feedback(feedback(0, 91.0)), 98);
        assert_eq!(rate.on_feedback(feedback(0, 91.0)), 68, "retreat of three large steps");
        assert_eq!(rate.on_feedback(feedback(0, 5.0)), 69, "single steps from now on");
        assert_eq!(rate.on_feedback(feedback(0, 50.0)), 69, "between the limits nothing moves");
    }

    #[test]
    fn rows_stay_inside_the_table() {
        let mut rate = RateAdjustment::new(TypeB::default());
        assert_eq!(rate.on_feedback(feedback(99, 0.0)), 0);
        for _ in 0..2000 {
            rate.on_feedback(feedback(0, 0.0));
        }
        assert_eq!(rate.on_feedback(feedback(0, 0.0)), 1090);
        assert!((row_rate_bps(1090) - 10e9).abs() < 1.0);
        assert!((row_rate_bps(1000) - 1e9).abs() < 1.0);
        assert!((row_rate_bps(1001) - 1.1e9).abs() < 1.0);
    }

    #[test]
    fn headers_count_at_the_ip_layer() {
        assert_eq!(ip_capacity_bps(84_000.0, 1222.0, 20.0, 1.0), Some(840e6));
        assert_eq!(ip_capacity_bps(1.0, 1.0, 20.0, 0.0), None);
    }
}
